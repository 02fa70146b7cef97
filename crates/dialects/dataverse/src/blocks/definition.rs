//! Definitions of metadata blocks.

/// A metadata block: a named group of fields.
#[derive(Debug, Clone)]
pub struct Block {
    /// Number of the block, from 1, in the order of loading.
    pub id: u64,
    /// Name in JSON and URLs, e.g. `citation`.
    pub name: String,
    /// Display name.
    pub display_name: String,
    /// Alias of the collection that owns the block; empty for blocks of the server.
    pub owner: String,
    /// Namespace of the block's fields without one of their own; may be empty.
    pub uri: String,
    /// Indices of its fields in the registry, children included, in display order.
    pub fields: Vec<usize>,
}

/// The kind of values that a field takes.
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
    /// None: a compound field.
    None,
}

impl FieldKind {
    /// Parses the column `fieldType` of the table.
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

    /// Returns the name that the interface uses.
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
    /// The value as it is displayed and stored.
    pub value: String,
    /// The publisher's own identifier for it; may be empty.
    pub identifier: String,
    /// Position among the values.
    pub order: i64,
    /// Other spellings, such as language codes.
    pub alternates: Vec<String>,
}

/// A field.
#[derive(Debug, Clone)]
pub struct FieldType {
    /// Number of the field, from 1, in the order of loading.
    pub id: u64,
    /// Name in JSON, e.g. `authorName`.
    pub name: String,
    /// Display name within its parent, e.g. `Name`.
    pub title: String,
    /// Explanation for users.
    pub description: String,
    /// Placeholder of the empty input.
    pub watermark: String,
    /// The kind of its values.
    pub kind: FieldKind,
    /// Position in its block.
    pub order: i64,
    /// How a value is displayed; for a compound field, the text between its children.
    pub display_format: String,
    /// Whether the advanced search form includes it.
    pub is_searchable: bool,
    /// Whether its values come from a controlled vocabulary.
    pub is_controlled: bool,
    /// Whether it may have several values.
    pub is_multiple: bool,
    /// Whether collections may offer it as a facet.
    pub is_facetable: bool,
    /// Whether the form of a new dataset includes it.
    pub is_on_create: bool,
    /// Whether it must have a value.
    pub is_required: bool,
    /// Index of its parent in the registry.
    pub parent: Option<usize>,
    /// Indices of its children in the registry, in display order.
    pub children: Vec<usize>,
    /// Index of its block in the registry.
    pub block: usize,
    /// URI of its meaning; may be empty.
    pub uri: String,
    /// Allowed values.
    pub vocabulary: Vec<Term>,
}

impl FieldType {
    /// Returns `primitive`, `compound` or `controlledVocabulary`.
    pub fn type_class(&self) -> &'static str {
        if !self.children.is_empty() {
            "compound"
        } else if self.is_controlled {
            "controlledVocabulary"
        } else {
            "primitive"
        }
    }

    /// Returns whether it has children.
    pub fn is_compound(&self) -> bool {
        !self.children.is_empty()
    }

    /// Returns the vocabulary's term for a text: the value itself, its identifier or an alternate.
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
