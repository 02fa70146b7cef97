//! Exports: a version of a dataset in the formats of other systems (section 10 of the contract).
//!
//! Each is generated from the dataset's own JSON, the export `dataverse_json`, so that no export contains anything that
//! the caller could not see in the API: see [`Source`].

pub mod croissant;
pub mod datacite;
pub mod ddi;
pub mod dublin_core;
pub mod html;
pub mod ore;
pub mod schema_org;
pub(crate) mod serve;
pub mod source;
pub mod xml;

use serde_json::{Map, Value, json};

use crate::exports::source::Source;

/// A format.
#[derive(Debug)]
pub struct Exporter {
    /// Name in URLs.
    pub name: &'static str,
    /// Display name.
    pub display_name: &'static str,
    /// Media type of the answer.
    pub media_type: &'static str,
    /// Namespace, schema and schema version of XML formats.
    pub schema: Option<[&'static str; 3]>,
    /// Whether OAI-PMH offers it.
    pub is_harvestable: bool,
    /// Whether the page of a dataset should offer it.
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

/// Returns the format with a name.
pub fn exporter(name: &str) -> Option<&'static Exporter> {
    EXPORTERS.iter().find(|it| it.name == name)
}

/// Returns the formats as JSON, for `GET /api/info/exportFormats`.
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

#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;
