//! What the form asks for: the metadata blocks of a collection and their fields, as Dataverse describes them.

use serde_json::Value;

use crate::record::text;

/// Values of a vocabulary beyond which they are typed and not chosen: a list of thousands, as that of languages, is of no use on
/// a page.
const CHOICES_MAX: usize = 500;

/// What a field's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Text,
    Date,
    Email,
    Url,
    Whole,
    Decimal,
}

impl Kind {
    fn named(name: &str) -> Self {
        match name {
            "TEXTBOX" => Self::Text,
            "DATE" => Self::Date,
            "EMAIL" => Self::Email,
            "URL" => Self::Url,
            "INT" => Self::Whole,
            "FLOAT" => Self::Decimal,
            _ => Self::Line,
        }
    }
}

/// A field, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// What it is called within its parent.
    pub(super) title: String,
    /// What Dataverse calls it in refusals.
    pub(super) display_name: String,
    pub(super) hint: String,
    /// What stands in the empty input.
    pub(super) example: String,
    pub(super) kind: Kind,
    pub(super) is_multiple: bool,
    pub(super) is_required: bool,
    is_on_create: bool,
    /// The values to choose from; none where any text is taken.
    pub(super) choices: Option<Vec<String>>,
    /// Of a compound field.
    pub(super) parts: Vec<Field>,
}

/// A metadata block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) fields: Vec<Field>,
}

/// The values of an object by their places on the form.
fn in_order(map: &Value) -> Vec<Field> {
    let mut list: Vec<&Value> = map.as_object().into_iter().flat_map(|it| it.values()).collect();
    list.sort_by_key(|it| it["displayOrder"].as_i64().unwrap_or(0));
    list.into_iter().map(Field::of).collect()
}

impl Block {
    /// Of an answer that lists blocks with their fields.
    pub(super) fn list(said: &Value) -> Vec<Self> {
        let of = |it: &Value| Self {
            name: text(it, "name"),
            title: text(it, "displayName"),
            fields: in_order(&it["fields"]),
        };
        said.as_array().into_iter().flatten().map(of).collect()
    }
}

impl Field {
    fn of(it: &Value) -> Self {
        let values = it["controlledVocabularyValues"].as_array();
        let choices = || values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        Self {
            name: text(it, "name"),
            title: text(it, "title"),
            display_name: text(it, "displayName"),
            hint: text(it, "description"),
            example: text(it, "watermark"),
            kind: Kind::named(&text(it, "type")),
            is_multiple: it["multiple"] == true,
            is_required: it["isRequired"] == true,
            is_on_create: it["displayOnCreate"] == true,
            choices: (it["isControlledVocabulary"] == true).then(choices),
            parts: in_order(&it["childFields"]),
        }
    }

    /// Whether it stands on the form at once, and not behind "more".
    pub(super) fn is_main(&self) -> bool {
        self.is_on_create || self.is_required
    }

    pub(super) fn is_compound(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Whether all its values are chosen in one list.
    pub(super) fn is_chosen_at_once(&self) -> bool {
        !self.is_compound() && self.is_multiple && self.choices.is_some()
    }

    /// Whether its values are those of a vocabulary that is too long to choose from.
    pub(super) fn is_typed(&self) -> bool {
        self.choices.as_ref().is_some_and(|it| CHOICES_MAX < it.len())
    }

    /// Whether its texts are typed as lines of one input.
    pub(super) fn is_in_lines(&self) -> bool {
        self.is_multiple && (self.is_typed() || self.choices.is_none())
    }

    /// Whether it has rows, of which there may be more.
    pub(super) fn has_rows(&self) -> bool {
        self.is_multiple && !self.is_chosen_at_once()
    }

    /// What each of its rows consists of: its parts, or itself.
    pub(super) fn cells(&self) -> &[Self] {
        if self.is_compound() { &self.parts } else { std::slice::from_ref(self) }
    }

    /// The name of an input.
    pub(super) fn input(&self, row: usize, cell: &Self) -> String {
        match self.is_compound() {
            true => format!("{}/{row}/{}", self.name, cell.name),
            false => format!("{}/{row}", self.name),
        }
    }

    /// As Dataverse classes it.
    pub(super) fn class(&self) -> &'static str {
        match (self.is_compound(), &self.choices) {
            (true, _) => "compound",
            (false, Some(_)) => "controlledVocabulary",
            (false, None) => "primitive",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// A block with a field of each sort.
    pub(in super::super) fn block() -> Block {
        let part = |name: &str, title: &str, kind: &str, order: u32| {
            json!({"name": name, "title": title, "displayName": format!("Author {title}"), "type": kind,
                "displayOrder": order, "isRequired": order == 1})
        };
        let field = |name: &str, kind: &str, is_multiple: bool, more: Value| {
            let mut it = json!({"name": name, "title": name, "displayName": name, "type": kind, "multiple": is_multiple});
            if let (Some(map), Value::Object(more)) = (it.as_object_mut(), more) {
                map.extend(more);
            }
            it
        };
        let choices = json!({"isControlledVocabulary": true, "controlledVocabularyValues": ["Physics", "Law"], "displayOrder": 3});
        let list = json!([{"name": "citation", "displayName": "Citation", "fields": {
            "title": field("title", "TEXT", false, json!({"isRequired": true})),
            "author": field("author", "NONE", true, json!({"displayOrder": 1, "childFields": {
                "authorIdentifier": part("authorIdentifier", "Identifier", "TEXT", 3),
                "authorName": part("authorName", "Name", "TEXT", 1),
                "authorIdentifierScheme": {"name": "authorIdentifierScheme", "title": "Scheme", "displayName": "Author Scheme",
                    "type": "TEXT", "displayOrder": 2, "isControlledVocabulary": true, "controlledVocabularyValues": ["ORCID", "GND"]},
            }})),
            "words": field("words", "TEXT", true, json!({"displayOrder": 2})),
            "subject": field("subject", "TEXT", true, choices),
            "size": field("size", "INT", false, json!({"displayOrder": 4})),
        }}]);
        Block::list(&list).remove(0)
    }

    #[test]
    fn fields_stand_in_their_order_and_are_of_their_sorts() {
        let block = block();
        let names: Vec<&str> = block.fields.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["title", "author", "words", "subject", "size"]);
        let [title, author, words, subject, size] = &block.fields[..] else { panic!("five fields") };
        assert_eq!(
            author.cells().iter().map(|it| it.title.as_str()).collect::<Vec<_>>(),
            ["Name", "Scheme", "Identifier"]
        );
        assert_eq!([title, author, words, subject].map(Field::has_rows), [false, true, true, false]);
        assert_eq!(
            [title, author, subject].map(Field::class),
            ["primitive", "compound", "controlledVocabulary"]
        );
        assert_eq!((size.kind, title.is_main(), size.is_main()), (Kind::Whole, true, false));
        assert_eq!(author.input(1, &author.parts[0]), "author/1/authorName");
        assert_eq!(words.input(1, words), "words/1");
    }
}
