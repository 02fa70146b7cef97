//! What a metadata block defines.

/// A metadata block: a named group of fields.
#[derive(Debug, Clone)]
pub struct Block {
    /// Number of the block, from 1, in the order of loading.
    pub id: u64,
    /// Name in JSON and URLs, e.g. `citation`.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    /// Alias of the collection that owns the block; empty for blocks of the server.
    pub owner: String,
    /// Namespace of the block's fields without one of their own; may be empty.
    pub uri: String,
    /// Places of its fields in the registry, children included, in display order.
    pub fields: Vec<usize>,
}

/// What a field's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// One line.
    Text,
    /// Several lines, HTML allowed.
    Textbox,
    /// A date: `yyyy`, `yyyy-MM`, `yyyy-MM-dd` and the forms of [`mod@super::validate`].
    Date,
    /// An e-mail address.
    Email,
    /// A URL.
    Url,
    /// A decimal number.
    Float,
    /// A whole number.
    Int,
    /// Nothing of its own: a compound field.
    None,
}

impl FieldKind {
    /// From the table's column `fieldType`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "text" | "string" => Self::Text,
            "textbox" => Self::Textbox,
            "date" => Self::Date,
            "email" => Self::Email,
            "url" => Self::Url,
            "float" => Self::Float,
            "int" | "integer" => Self::Int,
            "none" => Self::None,
            _ => return None,
        })
    }

    /// As the interface names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "TEXT",
            Self::Textbox => "TEXTBOX",
            Self::Date => "DATE",
            Self::Email => "EMAIL",
            Self::Url => "URL",
            Self::Float => "FLOAT",
            Self::Int => "INT",
            Self::None => "NONE",
        }
    }
}

/// A value of a controlled vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The value as it is shown and stored.
    pub value: String,
    /// The publisher's own name of it; may be empty.
    pub identifier: String,
    /// Place among the values.
    pub order: i64,
    /// Other texts that mean it, such as language codes.
    pub alternates: Vec<String>,
}

/// A field.
#[derive(Debug, Clone)]
pub struct FieldType {
    /// Number of the field, from 1, in the order of loading.
    pub id: u64,
    /// Name in JSON, e.g. `authorName`.
    pub name: String,
    /// Name for people within its parent, e.g. `Name`.
    pub title: String,
    /// Explanation for people.
    pub description: String,
    /// Text in the empty input.
    pub watermark: String,
    /// What its text must be.
    pub kind: FieldKind,
    /// Place in its block.
    pub order: i64,
    /// How a value is shown; for a compound what stands between its children.
    pub display_format: String,
    /// Whether the form of the advanced search has it.
    pub is_searchable: bool,
    /// Whether its values come from a vocabulary.
    pub is_controlled: bool,
    /// Whether it may have several values.
    pub is_multiple: bool,
    /// Whether collections may offer it as a facet.
    pub is_facetable: bool,
    /// Whether the form of a new dataset has it.
    pub is_on_create: bool,
    /// Whether it must have a value.
    pub is_required: bool,
    /// Place of its parent in the registry.
    pub parent: Option<usize>,
    /// Places of its children in the registry, in display order.
    pub children: Vec<usize>,
    /// Place of its block in the registry.
    pub block: usize,
    /// What it means, as a URI; may be empty.
    pub uri: String,
    /// Values allowed.
    pub vocabulary: Vec<Term>,
}

impl FieldType {
    /// `primitive`, `compound` or `controlledVocabulary`.
    pub fn type_class(&self) -> &'static str {
        if !self.children.is_empty() {
            "compound"
        } else if self.is_controlled {
            "controlledVocabulary"
        } else {
            "primitive"
        }
    }

    /// Whether it has children.
    pub fn is_compound(&self) -> bool {
        !self.children.is_empty()
    }

    /// The vocabulary's value that `text` names: the value itself, its identifier or an alternate.
    pub fn term(&self, text: &str) -> Option<&Term> {
        let by_value = self.vocabulary.iter().find(|it| it.value == text);
        by_value.or_else(|| {
            self.vocabulary.iter().find(|it| {
                it.alternates.iter().any(|alternate| alternate == text)
                    || (!it.identifier.is_empty() && it.identifier == text)
            })
        })
    }
}
