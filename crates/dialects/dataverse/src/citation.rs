//! The citation of a version (section 4.3 of the contract).

use serde_json::{Value, json};

use crate::blocks::fields::Metadata;
use crate::datasets::{Dataset, Version};
use crate::error::ApiError;
use crate::exports::xml::Xml;

/// The parts of a citation.
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
    /// `dataset`, `software`, `review`, …
    pub dataset_type: String,
}

impl Cited {
    /// Returns the citation of a version.
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
            dataset_type: dataset.dataset_type.clone(),
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

    /// Returns the citation as text.
    pub(crate) fn text(&self) -> String {
        self.joined(&self.url)
    }

    /// Returns the citation as HTML, with the identifier as a link.
    pub(crate) fn html(&self) -> String {
        self.joined(&format!("<a href=\"{0}\" target=\"_blank\">{0}</a>", self.url))
    }
}

impl Cited {
    /// Hides the authors.
    pub(crate) fn withhold_authors(&mut self) {
        self.authors = vec!["Author name(s) withheld".to_owned()];
    }
}

/// A citation format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// HTML, as pages show it.
    Internal,
    /// BibTeX.
    BibTex,
    /// EndNote XML.
    EndNote,
    /// RIS.
    Ris,
    /// CSL-JSON.
    Csl,
}

impl Format {
    /// Returns the format of that name. Errors: 400.
    pub(crate) fn named(name: &str) -> Result<Self, ApiError> {
        Ok(match name.to_lowercase().as_str() {
            "internal" => Self::Internal,
            "bibtex" => Self::BibTex,
            "endnote" => Self::EndNote,
            "ris" => Self::Ris,
            "csl" | "csljson" => Self::Csl,
            _ => return Err(ApiError::bad_request("Invalid Format Requested.")),
        })
    }

    /// Returns the media type of the format.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Internal => "text/html",
            Self::BibTex | Self::Ris => "text/plain",
            Self::EndNote => "text/xml",
            Self::Csl => "application/json",
        }
    }

    /// Returns a citation in this format.
    pub(crate) fn write(self, cited: &Cited) -> String {
        match self {
            Self::Internal => cited.html(),
            Self::BibTex => bibtex(cited),
            Self::EndNote => endnote(cited),
            Self::Ris => ris(cited),
            Self::Csl => csl(cited).to_string(),
        }
    }
}

fn doi(cited: &Cited) -> &str {
    cited.url.strip_prefix("https://doi.org/").unwrap_or(&cited.url)
}

fn bibtex(cited: &Cited) -> String {
    let is_kept = |it: &char| !matches!(it, '{' | '}' | '\\');
    let clean = |text: &str| text.chars().filter(is_kept).collect::<String>();
    let key: String = doi(cited).chars().map(|it| if it.is_alphanumeric() { it } else { '_' }).collect();
    let fields = [
        ("author", cited.authors.join(" and ")),
        ("publisher", cited.publisher.clone()),
        ("title", cited.title.clone()),
        ("year", cited.year.clone()),
        ("version", cited.version.clone()),
        ("doi", doi(cited).to_owned()),
        ("url", cited.url.clone()),
    ];
    let lines: Vec<String> =
        fields.iter().map(|(name, text)| format!("{name} = {{{}}}", clean(text))).collect();
    format!("@data{{{key},\n{}\n}}\n", lines.join(",\n"))
}

fn ris(cited: &Cited) -> String {
    let clean = |text: &str| text.replace(['\r', '\n'], " ");
    // The first two lines say for whom the text is; programs that read RIS skip them.
    let mut text = format!(
        "Provider: {}\nContent: text/plain; charset=\"utf-8\"\nTY  - DATA\n",
        clean(&cited.publisher)
    );
    let mut line = |name: &str, value: &str| text.push_str(&format!("{name}  - {}\n", clean(value)));
    line("T1", &cited.title);
    cited.authors.iter().for_each(|it| line("AU", it));
    line("DO", doi(cited));
    line("ET", &cited.version);
    line("PY", &cited.year);
    line("UR", &cited.url);
    line("PB", &cited.publisher);
    text.push_str("ER  - \n");
    text
}

fn endnote(cited: &Cited) -> String {
    let mut xml = Xml::document();
    xml.open("xml", &[]).open("records", &[]).open("record", &[]);
    xml.leaf_with("ref-type", &[("name", "Dataset")], "59");
    xml.open("contributors", &[]).open("authors", &[]);
    for author in &cited.authors {
        xml.leaf("author", author);
    }
    xml.close().close().open("titles", &[]).leaf("title", &cited.title).close();
    xml.leaf("section", "").open("dates", &[]).leaf("year", &cited.year).close();
    xml.leaf("edition", &cited.version).leaf("publisher", &cited.publisher);
    xml.open("urls", &[]).open("related-urls", &[]).leaf("url", &cited.url).close().close();
    xml.leaf("electronic-resource-num", doi(cited));
    xml.close().close().close();
    xml.finish()
}

fn csl(cited: &Cited) -> Value {
    let authors: Vec<Value> = cited
        .authors
        .iter()
        .map(|it| match it.split_once(',') {
            Some((family, given)) => json!({"family": family.trim(), "given": given.trim()}),
            None => json!({"literal": it}),
        })
        .collect();
    let ty = match cited.dataset_type.as_str() {
        "software" => "software",
        "review" => "review",
        _ => "dataset",
    };
    let year = cited.year.parse::<i64>().map_or_else(|_| json!(cited.year), Value::from);
    json!({
        "id": cited.url, "type": ty, "DOI": doi(cited), "URL": cited.url, "title": cited.title,
        "author": authors, "issued": {"date-parts": [[year]]}, "publisher": cited.publisher,
        "version": cited.version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_has_five_forms() {
        let cited = Cited {
            authors: vec!["Gull, Ada".to_owned(), "Tide Office".to_owned()],
            year: "2026".to_owned(),
            title: "Tides {at} <sea>".to_owned(),
            url: "https://doi.org/10.5072/FK2/AB12CD".to_owned(),
            publisher: "Root".to_owned(),
            version: "V1".to_owned(),
            dataset_type: "software".to_owned(),
        };
        let bibtex = Format::BibTex.write(&cited);
        assert!(
            bibtex.starts_with("@data{10_5072_FK2_AB12CD,\nauthor = {Gull, Ada and Tide Office},"),
            "{bibtex}"
        );
        assert!(bibtex.contains("title = {Tides at <sea>}"), "{bibtex}");
        let ris = Format::Ris.write(&cited);
        let head = "Provider: Root\nContent: text/plain; charset=\"utf-8\"\nTY  - DATA\nT1  - Tides ";
        assert!(ris.starts_with(head), "{ris}");
        assert!(ris.contains("AU  - Gull, Ada\nAU  - Tide Office\n") && ris.ends_with("ER  - \n"), "{ris}");
        let endnote = Format::EndNote.write(&cited);
        assert!(endnote.contains("<title>Tides {at} &lt;sea&gt;</title>"), "{endnote}");
        let csl = csl(&cited);
        assert_eq!((&csl["type"], &csl["author"][0]["family"]), (&json!("software"), &json!("Gull")));
        assert_eq!(csl["issued"]["date-parts"][0][0], 2026);
        assert!(Format::named("word").is_err());
    }
}
