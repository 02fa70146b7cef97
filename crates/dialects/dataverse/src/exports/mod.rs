//! Exports: a version of a dataset in the formats that others read (section 10 of the contract).
//!
//! Each is made from the dataset's own JSON, the export `dataverse_json`, so that nothing is in an export that the caller of
//! the interface would not see: see [`Source`].

pub mod croissant;
pub mod datacite;
pub mod ddi;
pub mod dublin_core;
pub mod html;
pub mod ore;
pub mod schema_org;
pub(crate) mod serve;
pub mod xml;

use serde_json::{Map, Value, json};

use crate::blocks::Registry;
use crate::blocks::fields::Metadata;

/// What an export is made from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The dataset with its version under `datasetVersion`, files among it.
    pub dataset: &'a Value,
    /// What fields there are.
    pub registry: &'a Registry,
    /// Where clients reach the server.
    pub site_url: &'a str,
    /// Name of the root collection.
    pub publisher: &'a str,
    /// The collections that the dataset lies in, nearest first: (alias, name).
    pub owners: &'a [(String, String)],
    /// Variables of tabular files that the caller may download, by the file's number: their `dataTables`.
    pub tables: &'a Map<String, Value>,
    /// The day on which it is written, `2026-01-31`: embargoes end and retentions run out.
    pub today: &'a str,
}

/// A format.
#[derive(Debug)]
pub struct Exporter {
    /// Name in URLs.
    pub name: &'static str,
    /// Name for people.
    pub display_name: &'static str,
    /// Media type of the answer.
    pub media_type: &'static str,
    /// Name space, schema and its version, of formats of XML.
    pub schema: Option<[&'static str; 3]>,
    /// Whether OAI-PMH offers it.
    pub is_harvestable: bool,
    /// Whether a page of the dataset would offer it.
    pub is_visible: bool,
    /// Writes it.
    pub write: fn(&Source<'_>) -> String,
}

const XML: &str = "application/xml";
const JSON: &str = "application/json";
const DDI: [&str; 3] = [
    "ddi:codebook:2_5",
    "https://ddialliance.org/Specification/DDI-Codebook/2.5/XMLSchema/codebook.xsd",
    "2.5",
];
const OAI_DC: [&str; 3] =
    ["http://www.openarchives.org/OAI/2.0/oai_dc/", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", "2.0"];
const DATACITE: [&str; 3] = [
    "http://datacite.org/schema/kernel-4",
    "http://datacite.org/schema/kernel-4 http://schema.datacite.org/meta/kernel-4.5/metadata.xsd",
    "4.5",
];
const OPENAIRE: [&str; 3] =
    ["http://datacite.org/schema/kernel-4", "http://schema.datacite.org/meta/kernel-4.1/metadata.xsd", "4.1"];
const DCTERMS: [&str; 3] =
    ["http://purl.org/dc/terms/", "http://dublincore.org/schemas/xmls/qdc/dcterms.xsd", "2.0"];

macro_rules! exporter {
    ($name:literal, $shown:literal, $media:expr, $schema:expr, $harvestable:literal, $visible:literal, $write:expr) => {
        Exporter {
            name: $name,
            display_name: $shown,
            media_type: $media,
            schema: $schema,
            is_harvestable: $harvestable,
            is_visible: $visible,
            write: $write,
        }
    };
}

/// All formats.
pub static EXPORTERS: [Exporter; 12] = [
    exporter!("ddi", "DDI Codebook v2", XML, Some(DDI), false, true, ddi::with_variables),
    exporter!("oai_ddi", "DDI Codebook v2", XML, Some(DDI), true, false, ddi::without_variables),
    exporter!("dcterms", "Dublin Core", XML, Some(DCTERMS), false, true, dublin_core::dcterms),
    exporter!("oai_dc", "Dublin Core", XML, Some(OAI_DC), true, false, dublin_core::oai_dc),
    exporter!("Datacite", "DataCite", XML, Some(DATACITE), true, true, datacite::datacite),
    exporter!("oai_datacite", "OpenAIRE", XML, Some(OPENAIRE), true, true, datacite::openaire),
    exporter!("schema.org", "Schema.org JSON-LD", JSON, None, false, true, schema_org::schema_org),
    exporter!("OAI_ORE", "OAI_ORE", JSON, None, false, true, ore::ore),
    exporter!("dataverse_json", "JSON", JSON, None, true, true, native),
    exporter!("html", "DDI HTML Codebook", "text/html", None, false, true, html::html),
    exporter!("croissant", "Croissant", JSON, None, false, true, croissant::croissant),
    exporter!("croissantSlim", "Croissant Slim", JSON, None, false, true, croissant::slim),
];

/// The format of a name.
pub fn exporter(name: &str) -> Option<&'static Exporter> {
    EXPORTERS.iter().find(|it| it.name == name)
}

/// The formats, for `GET /api/info/exportFormats`.
pub fn formats_json() -> Value {
    let shown = |it: &Exporter| {
        let mut json = json!({
            "displayName": it.display_name,
            "mediaType": it.media_type,
            "isHarvestable": it.is_harvestable,
            "isVisibleInUserInterface": it.is_visible,
        });
        if let Some([space, schema, version]) = it.schema {
            json["XMLNameSpace"] = space.into();
            json["XMLSchemaLocation"] = schema.into();
            json["XMLSchemaVersion"] = version.into();
        }
        json
    };
    let map: Map<String, Value> = EXPORTERS.iter().map(|it| (it.name.to_owned(), shown(it))).collect();
    map.into()
}

fn native(source: &Source<'_>) -> String {
    source.dataset.to_string()
}

/// A text of a JSON object; empty when there is none.
pub(crate) fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_default()
}

impl<'a> Source<'a> {
    /// The version.
    pub fn version(&self) -> &'a Value {
        &self.dataset["datasetVersion"]
    }

    /// The version's metadata.
    pub fn metadata(&self) -> Metadata<'a> {
        Metadata(&self.version()["metadataBlocks"])
    }

    /// `doi:10.5072/FK2/AB12CD`.
    pub fn pid(&self) -> String {
        let it = self.dataset;
        format!("{}:{}/{}", text(it, "protocol"), text(it, "authority"), text(it, "identifier"))
    }

    /// `https://doi.org/10.5072/FK2/AB12CD`.
    pub fn pid_url(&self) -> &'a str {
        text(self.dataset, "persistentUrl")
    }

    /// The title.
    pub fn title(&self) -> &'a str {
        self.metadata().one("title").unwrap_or_default()
    }

    /// `DRAFT`, `RELEASED` or `DEACCESSIONED`.
    pub fn state(&self) -> &'a str {
        text(self.version(), "versionState")
    }

    /// Whether it is a draft.
    pub fn is_draft(&self) -> bool {
        self.state() == "DRAFT"
    }

    /// `1.0`, or `DRAFT`.
    pub fn number(&self) -> String {
        let version = self.version();
        match (version["versionNumber"].as_i64(), version["versionMinorNumber"].as_i64()) {
            (Some(number), Some(minor)) => format!("{number}.{minor}"),
            _ => "DRAFT".to_owned(),
        }
    }

    /// The day of the first publication.
    pub fn publication_date(&self) -> &'a str {
        let own = text(self.version(), "publicationDate");
        if own.is_empty() { text(self.dataset, "publicationDate") } else { own }
    }

    /// The day on which this version was released; empty for a draft.
    pub fn release_date(&self) -> &'a str {
        text(self.version(), "releaseTime").get(..10).unwrap_or_default()
    }

    /// The date that citations show; that of the publication unless the dataset says another.
    pub fn citation_date(&self) -> &'a str {
        let own = text(self.version(), "citationDate");
        if own.is_empty() { self.publication_date() } else { own }
    }

    /// The files of the version.
    pub fn files(&self) -> &'a [Value] {
        self.version()["files"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The licence's name and URI.
    pub fn license(&self) -> Option<(&'a str, &'a str)> {
        let license = &self.version()["license"];
        license["name"].as_str().map(|name| (name, text(license, "uri")))
    }

    /// Whether a file may be had by everybody: neither restricted, nor under an embargo, nor beyond its retention. A date
    /// that is not one keeps it shut.
    pub fn is_open(&self, file: &Value) -> bool {
        let (embargo, retention) = (&file["dataFile"]["embargo"], &file["dataFile"]["retention"]);
        let is_over = |it: &str| !it.is_empty() && it <= self.today;
        let still_holds = |it: &str| self.today <= it;
        file["restricted"].as_bool() != Some(true)
            && (embargo.is_null() || is_over(text(embargo, "dateAvailable")))
            && (retention.is_null() || still_holds(text(retention, "dateUnavailable")))
    }

    /// The citation's text.
    pub fn citation(&self) -> &'a str {
        text(self.version(), "citation")
    }
}

/// Whether a name is a person's, as Dataverse guesses it: `Family, Given`, or anything that an ORCID stands beside. Names of
/// organisations that hold a comma begin it with a known word.
pub(crate) fn person(name: &str) -> Option<(&str, &str)> {
    let (family, given) = name.split_once(',')?;
    let (family, given) = (family.trim(), given.trim());
    let words = [
        "university",
        "institute",
        "department",
        "inc",
        "inc.",
        "ltd",
        "ltd.",
        "llc",
        "gmbh",
        "center",
        "centre",
        "the",
    ];
    let is_organization = name.split([' ', ',']).any(|it| words.contains(&it.to_lowercase().as_str()));
    (!is_organization && !family.is_empty() && !given.is_empty() && !given.contains(','))
        .then_some((family, given))
}

/// Text without HTML: whatever stands between `<` and `>` where a tag can begin; a `<` that begins none stays.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let is_tag = after.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/' || it == '!');
        match after.find('>').filter(|_| is_tag) {
            Some(end) if !after[..end].contains('<') => rest = &after[end + 1..],
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
