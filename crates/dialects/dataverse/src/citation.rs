//! The text by which a version is cited (section 4.3 of the contract).

use serde_json::Value;

use crate::blocks::fields::Metadata;
use crate::datasets::{Dataset, Version};

/// What a citation says, taken from a version.
#[derive(Debug, Clone)]
pub(crate) struct Cited {
    /// Names of the authors.
    pub authors: Vec<String>,
    /// Year of publication, or of the last change.
    pub year: String,
    /// Title.
    pub title: String,
    /// `https://doi.org/…`.
    pub url: String,
    /// Name of the installation.
    pub publisher: String,
    /// `V1`, `DRAFT VERSION`, `V1, DEACCESSIONED VERSION`.
    pub version: String,
}

impl Cited {
    /// Of a version.
    pub(crate) fn of(dataset: &Dataset, version: &Version, publisher: &str) -> Self {
        let blocks = Value::Object(version.metadata_blocks.clone());
        let metadata = Metadata(&blocks);
        let authors: Vec<String> =
            metadata.children("author", "authorName").into_iter().map(|it| it.trim().to_owned()).collect();
        let dated = dataset
            .citation_date_field
            .as_deref()
            .and_then(|field| metadata.one(field))
            .or(dataset.publication_date.as_deref())
            .unwrap_or(&version.create_time);
        let shown = match (version.number, version.state) {
            (Some(number), crate::datasets::State::Deaccessioned) => {
                format!("V{number}, DEACCESSIONED VERSION")
            }
            (Some(number), _) => format!("V{number}"),
            (None, _) => "DRAFT VERSION".to_owned(),
        };
        Self {
            authors,
            year: dated.get(..4).unwrap_or(dated).to_owned(),
            title: metadata.one("title").unwrap_or_default().to_owned(),
            url: dataset.persistent_url(),
            publisher: publisher.to_owned(),
            version: shown,
        }
    }

    fn joined(&self, link: &str) -> String {
        let mut parts = Vec::new();
        if !self.authors.is_empty() {
            parts.push(self.authors.join("; "));
        }
        parts.push(self.year.clone());
        parts.push(format!("\"{}\"", self.title));
        parts.push(link.to_owned());
        parts.push(self.publisher.clone());
        parts.push(self.version.clone());
        parts.join(", ")
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        self.joined(&self.url)
    }

    /// As HTML, with the identifier as a link.
    pub(crate) fn html(&self) -> String {
        self.joined(&format!("<a href=\"{0}\" target=\"_blank\">{0}</a>", self.url))
    }
}
