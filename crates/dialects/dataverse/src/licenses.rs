//! Licences: `/api/licenses`.

use pinakes_store::{Column, Index, Kind, Type};
use serde::{Deserialize, Serialize};

/// Licences by number: body is a [`License`].
pub(crate) static LICENSE: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::one("uri", Type::Text)],
    indexes: &[Index::unique(&["name"]), Index::unique(&["uri"])],
    ..Kind::named("dataverse_license")
};

/// A licence, in the form in which it is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct License {
    /// Number.
    pub id: i64,
    /// `CC0 1.0`.
    pub name: String,
    /// What it says, in a sentence.
    pub short_description: String,
    /// Where it stands.
    pub uri: String,
    /// Its picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
    /// Whether new versions may choose it.
    pub active: bool,
    /// Whether new datasets have it.
    pub is_default: bool,
    /// Position in lists.
    pub sort_order: i64,
    /// `CC0-1.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights_identifier: Option<String>,
    /// `SPDX`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights_identifier_scheme: Option<String>,
    /// `https://spdx.org/licenses/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme_uri: Option<String>,
    /// `en`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language_code: Option<String>,
}
