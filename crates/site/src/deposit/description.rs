//! The fields of the form: the metadata blocks of a collection and their fields, as Dataverse describes them.

use serde_json::Value;

use crate::record::{items, text};

/// Maximum number of values of a vocabulary that can be chosen from a list; values of longer vocabularies are typed, as
/// a list of thousands (such as the languages) is of no use on a page. Dataverse checks what was typed.
const CHOICES_MAX: usize = 500;

/// The format of a field's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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

/// A field, or a part of a compound field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(super) name: String,
    /// Its title within its parent.
    pub(super) title: String,
    /// Its name in Dataverse's error messages.
    pub(super) display_name: String,
    pub(super) hint: String,
    /// The placeholder of the empty input.
    pub(super) example: String,
    pub(super) kind: Kind,
    pub(super) is_multiple: bool,
    pub(super) is_required: bool,
    is_on_create: bool,
    is_searchable: bool,
    /// The values to choose from, none if they are typed; `None` if any text is accepted.
    pub(super) choices: Option<Vec<String>>,
    is_typed: bool,
    /// Parts of a compound field.
    pub(super) parts: Vec<Field>,
}

/// A metadata block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) fields: Vec<Field>,
}

/// Returns the values of an object, ordered by their positions on the form.
fn in_order(map: &Value) -> Vec<Field> {
    let mut list: Vec<&Value> = map.as_object().into_iter().flat_map(|it| it.values()).collect();
    list.sort_by_key(|it| it["displayOrder"].as_i64().unwrap_or(0));
    list.into_iter().map(Field::of).collect()
}

impl Block {
    /// Parses an answer that describes a block with its fields, or lists several.
    pub(super) fn list(said: &Value) -> Vec<Self> {
        let of = |it: &Value| Self {
            name: text(it, "name"),
            title: text(it, "displayName"),
            fields: in_order(&it["fields"]),
        };
        match said {
            Value::Array(list) => list.iter().map(of).collect(),
            Value::Object(_) => vec![of(said)],
            _ => Vec::new(),
        }
    }
}

impl Field {
    fn of(it: &Value) -> Self {
        let values = items(it, "controlledVocabularyValues");
        let is_typed = CHOICES_MAX < values.len();
        let offered = if is_typed { &[] } else { values };
        let choices = || offered.iter().filter_map(Value::as_str).map(str::to_owned).collect();
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
            is_searchable: it["isAdvancedSearchFieldType"] == true,
            choices: (it["isControlledVocabulary"] == true).then(choices),
            is_typed,
            parts: in_order(&it["childFields"]),
        }
    }

    /// Says whether it is shown on the form at once, rather than under "more".
    pub(super) fn is_main(&self) -> bool {
        self.is_on_create || self.is_required
    }

    /// Says whether its values are addresses.
    pub(super) fn is_address(&self) -> bool {
        self.kind == Kind::Url
    }

    /// Says whether its values are mail addresses.
    pub(super) fn is_mail(&self) -> bool {
        self.kind == Kind::Email
    }

    /// Says whether deposits with the same value are of interest: it is searched for on its own, and neither a text nor
    /// a number.
    pub(super) fn is_compared(&self) -> bool {
        self.is_searchable && (self.choices.is_some() || self.kind == Kind::Line)
    }

    pub(super) fn is_compound(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Says whether all of its values are chosen in one list.
    pub(super) fn is_chosen_at_once(&self) -> bool {
        !self.is_compound() && self.is_multiple && self.choices.is_some()
    }

    /// Says whether its values belong to a vocabulary that is too long to choose from.
    pub(super) fn is_typed(&self) -> bool {
        self.choices.is_some() && self.is_typed
    }

    /// Says whether its texts are typed as lines of one input.
    pub(super) fn is_in_lines(&self) -> bool {
        self.is_multiple && (self.is_typed() || self.choices.is_none())
    }

    /// Says whether it has rows, to which more can be added.
    pub(super) fn has_rows(&self) -> bool {
        self.is_multiple && !self.is_chosen_at_once()
    }

    /// Returns the cells of each row: its parts, or the field itself.
    pub(super) fn cells(&self) -> &[Self] {
        if self.is_compound() { &self.parts } else { std::slice::from_ref(self) }
    }

    /// Returns the name of an input.
    pub(super) fn input(&self, row: usize, cell: &Self) -> String {
        match self.is_compound() {
            true => format!("{}/{row}/{}", self.name, cell.name),
            false => format!("{}/{row}", self.name),
        }
    }

    /// Returns its class in Dataverse.
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

    /// Returns a block with a field of each type.
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
