//! Dublin Core: `oai_dc`, the fifteen elements, and `dcterms`, the terms.

use super::xml::Xml;
use crate::exports::source::{Source, text};

const OAI_DC: &[(&str, &str)] = &[
    ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    ("xmlns:oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
    ("xmlns:dc", "http://purl.org/dc/elements/1.1/"),
    (
        "xsi:schemaLocation",
        "http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
    ),
];
const DCTERMS: &[(&str, &str)] = &[
    ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    ("xmlns:dc", "http://purl.org/dc/elements/1.1/"),
    ("xmlns:dcterms", "http://purl.org/dc/terms/"),
    ("xmlns", "http://dublincore.org/documents/dcmi-terms/"),
];

/// Writes the format `oai_dc`.
pub fn oai_dc(source: &Source<'_>) -> String {
    let metadata = source.metadata();
    let mut xml = Xml::document();
    xml.open("oai_dc:dc", OAI_DC);
    xml.leaf("dc:title", source.title()).leaf("dc:identifier", source.pid_url());
    xml.leaves("dc:creator", metadata.children("author", "authorName"));
    xml.leaf("dc:publisher", source.publisher);
    xml.leaves("dc:description", metadata.children("dsDescription", "dsDescriptionValue"));
    xml.leaves("dc:subject", metadata.many("subject"));
    xml.leaves("dc:subject", metadata.children("keyword", "keywordValue"));
    xml.leaves("dc:language", metadata.many("language"));
    for it in metadata.compounds("producer") {
        xml.leaf("dc:contributor", it.get("producerName").unwrap_or_default());
    }
    xml.leaf("dc:date", source.citation_date());
    for it in metadata.compounds("contributor") {
        xml.leaf("dc:contributor", it.get("contributorName").unwrap_or_default());
    }
    xml.leaf("dc:contributor", metadata.one("depositor").unwrap_or_default());
    relations(source, &mut xml, "dc:relation");
    xml.leaf("dc:type", "Dataset");
    xml.leaves("dc:type", metadata.many("kindOfData"));
    xml.leaves("dc:source", metadata.many("dataSources"));
    spatial(source, &mut xml, "dc:coverage");
    let terms = rights(source);
    xml.leaves("dc:rights", terms.iter().map(|it| it.1.as_str()));
    xml.finish()
}

/// Writes the format `dcterms`.
pub fn dcterms(source: &Source<'_>) -> String {
    let metadata = source.metadata();
    let version = source.version();
    let mut xml = Xml::document();
    xml.open("metadata", DCTERMS);
    xml.leaf("dcterms:title", source.title()).leaf("dcterms:identifier", source.pid_url());
    xml.leaves("dcterms:creator", metadata.children("author", "authorName"));
    xml.leaf("dcterms:publisher", source.publisher);
    xml.leaf("dcterms:issued", source.publication_date());
    xml.leaf("dcterms:modified", text(version, "lastUpdateTime"));
    xml.leaves("dcterms:description", metadata.children("dsDescription", "dsDescriptionValue"));
    xml.leaves("dcterms:subject", metadata.many("subject"));
    xml.leaves("dcterms:subject", metadata.children("keyword", "keywordValue"));
    xml.leaves("dcterms:language", metadata.many("language"));
    for it in metadata.compounds("publication") {
        let citation = it.get("publicationCitation").unwrap_or_default();
        let url = it.get("publicationURL").unwrap_or_default();
        let whole = [citation, url].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ");
        xml.leaf("dcterms:isReferencedBy", &whole);
    }
    xml.leaf("dcterms:date", source.publication_date());
    for it in metadata.compounds("contributor") {
        xml.leaf("dcterms:contributor", it.get("contributorName").unwrap_or_default());
    }
    xml.leaf("dcterms:contributor", metadata.one("depositor").unwrap_or_default());
    xml.leaf("dcterms:dateSubmitted", metadata.one("dateOfDeposit").unwrap_or_default());
    for (parent, start, end) in [
        ("timePeriodCovered", "timePeriodCoveredStart", "timePeriodCoveredEnd"),
        ("dateOfCollection", "dateOfCollectionStart", "dateOfCollectionEnd"),
    ] {
        for it in metadata.compounds(parent) {
            xml.leaf("dcterms:temporal", it.get(start).unwrap_or_default());
            xml.leaf("dcterms:temporal", it.get(end).unwrap_or_default());
        }
    }
    relations(source, &mut xml, "dcterms:relation");
    xml.leaves("dcterms:type", metadata.many("kindOfData"));
    xml.leaves("dcterms:source", metadata.many("dataSources"));
    spatial(source, &mut xml, "dcterms:spatial");
    for (name, value) in rights(source) {
        xml.leaf(name, &value);
    }
    xml.finish()
}

fn relations(source: &Source<'_>, xml: &mut Xml, name: &str) {
    xml.leaves(name, source.metadata().many("relatedDatasets"));
    xml.leaves(name, source.metadata().many("relatedMaterial"));
}

fn spatial(source: &Source<'_>, xml: &mut Xml, name: &str) {
    for it in source.metadata().compounds("geographicCoverage") {
        for child in ["city", "country", "state", "otherGeographicCoverage"] {
            xml.leaf(name, it.get(child).unwrap_or_default());
        }
    }
}

/// Returns licence and rights: (term, text).
fn rights(source: &Source<'_>) -> Vec<(&'static str, String)> {
    let version = source.version();
    let mut list = Vec::new();
    if let Some((name, _)) = source.license() {
        list.push(("dcterms:license", name.to_owned()));
    }
    for (term, key) in [("dcterms:rights", "termsOfUse"), ("dcterms:accessRights", "restrictions")] {
        if !text(version, key).is_empty() {
            list.push((term, text(version, key).to_owned()));
        }
    }
    list
}
