//! DataCite's kernel 4: `Datacite`, the form registered with a DOI, and `oai_datacite`, the form that `OpenAIRE`
//! harvests.

use super::xml::Xml;
use crate::exports::source::{Source, is_organization, person, plain, text};

const RESOURCE: &[(&str, &str)] = &[
    ("xmlns", "http://datacite.org/schema/kernel-4"),
    ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    (
        "xsi:schemaLocation",
        "http://datacite.org/schema/kernel-4 http://schema.datacite.org/meta/kernel-4.5/metadata.xsd",
    ),
];

/// The form that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    DataCite,
    OpenAire,
}

/// Writes the format `Datacite`.
pub fn datacite(source: &Source<'_>) -> String {
    resource(source, Flavour::DataCite)
}

/// Writes the format `oai_datacite`.
pub fn openaire(source: &Source<'_>) -> String {
    resource(source, Flavour::OpenAire)
}

fn resource(source: &Source<'_>, flavour: Flavour) -> String {
    let metadata = source.metadata();
    let mut xml = Xml::document();
    xml.open("resource", RESOURCE);
    let identifier = format!("{}/{}", text(source.dataset, "authority"), text(source.dataset, "identifier"));
    let kind = if text(source.dataset, "protocol") == "doi" { "DOI" } else { "Handle" };
    xml.leaf_with("identifier", &[("identifierType", kind)], &identifier);
    xml.group("creators", |xml| creators(source, xml));
    xml.group("titles", |xml| {
        xml.leaf("title", source.title());
        xml.leaf_with("title", &[("titleType", "Subtitle")], metadata.one("subtitle").unwrap_or_default());
        for it in metadata.many("alternativeTitle") {
            xml.leaf_with("title", &[("titleType", "AlternativeTitle")], it);
        }
    });
    xml.leaf("publisher", source.publisher);
    xml.leaf("publicationYear", year(source, flavour));
    xml.group("subjects", |xml| subjects(source, xml));
    xml.group("contributors", |xml| contributors(source, xml));
    xml.group("dates", |xml| dates(source, flavour, xml));
    let languages = metadata.many("language");
    if let [language] = languages[..] {
        let code = source.registry.field("language").and_then(|it| it.term(language)).and_then(code_of);
        xml.leaf("language", code.as_deref().unwrap_or_default());
    }
    let kinds = metadata.many("kindOfData").join(", ");
    let general = match text(source.dataset, "datasetType") {
        "software" => "Software",
        "workflow" => "Workflow",
        "review" => "Other",
        _ => "Dataset",
    };
    let kinds = match text(source.dataset, "datasetType") {
        "review" if kinds.is_empty() => "Review".to_owned(),
        _ => kinds,
    };
    match kinds.is_empty() {
        true => xml.empty("resourceType", &[("resourceTypeGeneral", general)]),
        false => xml.leaf_with("resourceType", &[("resourceTypeGeneral", general)], &kinds),
    };
    xml.group("alternateIdentifiers", |xml| {
        for it in metadata.compounds("otherId") {
            let agency = it.get("otherIdAgency").unwrap_or(":unav");
            let attributes = [("alternateIdentifierType", agency)];
            xml.leaf_with("alternateIdentifier", &attributes, it.get("otherIdValue").unwrap_or_default());
        }
    });
    xml.group("relatedIdentifiers", |xml| related(source, xml));
    xml.group("sizes", |xml| {
        for file in source.files() {
            xml.leaf("size", &file["dataFile"]["filesize"].to_string());
        }
    });
    xml.group("formats", |xml| {
        for file in source.files() {
            xml.leaf("format", text(&file["dataFile"], "contentType"));
        }
    });
    xml.leaf("version", &source.number());
    rights(source, &mut xml);
    xml.group("descriptions", |xml| descriptions(source, xml));
    xml.group("geoLocations", |xml| locations(source, xml));
    xml.group("fundingReferences", |xml| funding(source, xml));
    xml.finish()
}

fn code_of(term: &crate::blocks::Term) -> Option<String> {
    let two = term.alternates.iter().find(|it| it.len() == 2);
    two.or(Some(&term.identifier)).cloned()
}

/// Returns the year that is registered: that of the first publication; of the citation's date before that; of the creation
/// where there is none. `OpenAIRE` is told the year of this version.
fn year<'a>(source: &Source<'a>, flavour: Flavour) -> &'a str {
    let date = match flavour {
        _ if source.is_draft() => source.citation_date(),
        Flavour::DataCite => source.publication_date(),
        Flavour::OpenAire => source.release_date(),
    };
    let date = if date.is_empty() { text(source.version(), "createTime") } else { date };
    date.get(..4).unwrap_or("9999")
}

fn name(xml: &mut Xml, element: &str, name: &str, is_person: bool) {
    match person(name) {
        Some((family, given)) => {
            xml.leaf_with(element, &[("nameType", "Personal")], name);
            xml.leaf("givenName", given).leaf("familyName", family);
        }
        None => {
            let is_personal = is_person || !is_organization(name);
            let kind = if is_personal { "Personal" } else { "Organizational" };
            xml.leaf_with(element, &[("nameType", kind)], name);
        }
    }
}

fn creators(source: &Source<'_>, xml: &mut Xml) {
    for it in source.metadata().compounds("author") {
        xml.open("creator", &[]);
        let scheme = it.get("authorIdentifierScheme").unwrap_or_default();
        name(xml, "creatorName", it.get("authorName").unwrap_or(":unav"), scheme == "ORCID");
        if let Some(identifier) = it.get("authorIdentifier").filter(|_| !scheme.is_empty()) {
            let uri = scheme_uri(scheme);
            let bare = identifier.rsplit('/').next().unwrap_or(identifier);
            let shown = match scheme {
                "ORCID" => format!("https://orcid.org/{bare}"),
                "ROR" => format!("https://ror.org/{bare}"),
                _ => identifier.to_owned(),
            };
            let attributes = [("nameIdentifierScheme", scheme), ("schemeURI", uri)];
            xml.leaf_with("nameIdentifier", &attributes, &shown);
        }
        xml.leaf("affiliation", it.get("authorAffiliation").unwrap_or_default());
        xml.close();
    }
}

fn scheme_uri(scheme: &str) -> &'static str {
    match scheme {
        "ORCID" => "https://orcid.org",
        "ROR" => "https://ror.org",
        "ISNI" => "http://www.isni.org/isni/",
        "LCNA" => "http://id.loc.gov/authorities/names/",
        "VIAF" => "https://viaf.org/viaf/",
        "GND" => "https://d-nb.info/gnd/",
        _ => "",
    }
}

fn subjects(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    xml.leaves("subject", metadata.many("subject"));
    for (parent, value, vocabulary, uri, value_uri) in [
        ("keyword", "keywordValue", "keywordVocabulary", "keywordVocabularyURI", "keywordTermURI"),
        ("topicClassification", "topicClassValue", "topicClassVocab", "topicClassVocabURI", ""),
    ] {
        for it in metadata.compounds(parent) {
            let attributes = [
                ("subjectScheme", it.get(vocabulary).unwrap_or_default()),
                ("schemeURI", it.get(uri).unwrap_or_default()),
                ("valueURI", it.get(value_uri).unwrap_or_default()),
            ];
            xml.leaf_with("subject", &attributes, it.get(value).unwrap_or_default());
        }
    }
}

fn contributors(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    let mut contributor = |kind: &str, shown: &str, affiliation: &str| {
        if shown.is_empty() {
            return;
        }
        xml.open("contributor", &[("contributorType", kind)]);
        name(xml, "contributorName", shown, false);
        xml.leaf("affiliation", affiliation);
        xml.close();
    };
    for (kind, parent, child, affiliation) in [
        ("ContactPerson", "datasetContact", "datasetContactName", "datasetContactAffiliation"),
        ("Producer", "producer", "producerName", "producerAffiliation"),
        ("Distributor", "distributor", "distributorName", "distributorAffiliation"),
    ] {
        for it in metadata.compounds(parent) {
            contributor(kind, it.get(child).unwrap_or_default(), it.get(affiliation).unwrap_or_default());
        }
    }
    for it in metadata.compounds("contributor") {
        let kind = it.get("contributorType").unwrap_or("Other").replace(' ', "");
        if kind != "Funder" {
            contributor(&kind, it.get("contributorName").unwrap_or_default(), "");
        }
    }
}

fn dates(source: &Source<'_>, flavour: Flavour, xml: &mut Xml) {
    let metadata = source.metadata();
    let mut date = |kind: &str, information: &str, value: &str| {
        xml.leaf_with("date", &[("dateType", kind), ("dateInformation", information)], value);
    };
    date("Issued", "", metadata.one("distributionDate").unwrap_or_default());
    date("Created", "", metadata.one("productionDate").unwrap_or_default());
    date("Submitted", "", metadata.one("dateOfDeposit").unwrap_or_default());
    if !source.is_draft() {
        if flavour == Flavour::DataCite {
            date("Available", "", source.publication_date());
        }
        if flavour == Flavour::OpenAire || source.release_date() != source.publication_date() {
            date("Updated", "", source.release_date());
        }
    }
    for it in metadata.compounds("dateOfCollection") {
        date("Collected", "", &range(it.get("dateOfCollectionStart"), it.get("dateOfCollectionEnd")));
    }
    for it in metadata.compounds("timePeriodCovered") {
        let period = range(it.get("timePeriodCoveredStart"), it.get("timePeriodCoveredEnd"));
        date("Other", "Time period covered by the data", &period);
    }
}

fn range(start: Option<&str>, end: Option<&str>) -> String {
    match (start, end) {
        (None, None) => String::new(),
        (start, end) => format!("{}/{}", start.unwrap_or_default(), end.unwrap_or_default()),
    }
}

fn related(source: &Source<'_>, xml: &mut Xml) {
    for it in source.metadata().compounds("publication") {
        let relation = it.get("publicationRelationType").unwrap_or("IsSupplementTo");
        let kind = it.get("publicationIDType").unwrap_or_default();
        let number = it.get("publicationIDNumber").unwrap_or_default();
        let (kind, number) = match (kind, number) {
            ("" | "DASH-NRS" | "cstr", _) | (_, "") => ("URL", it.get("publicationURL").unwrap_or_default()),
            (
                "ark" | "doi" | "ean13" | "eissn" | "isbn" | "issn" | "istc" | "lissn" | "lsid" | "pmid"
                | "purl" | "upc" | "url" | "urn",
                number,
            ) => (kind, number),
            (other, number) => (other, number),
        };
        let kind = match kind {
            "handle" | "arXiv" | "bibcode" | "URL" => match kind {
                "handle" => "Handle".to_owned(),
                other => other.to_owned(),
            },
            other => other.to_uppercase(),
        };
        // DOIs do not differ by case; their canonical form is in capitals.
        let number = if kind == "DOI" { number.to_uppercase() } else { number.to_owned() };
        let attributes = [("relationType", relation), ("relatedIdentifierType", kind.as_str())];
        xml.leaf_with("relatedIdentifier", &attributes, &number);
    }
}

fn rights(source: &Source<'_>, xml: &mut Xml) {
    let version = source.version();
    let is_open = source.files().iter().all(|it| it["restricted"].as_bool() != Some(true));
    let access = if is_open { "openAccess" } else { "restrictedAccess" };
    xml.open("rightsList", &[]);
    xml.empty("rights", &[("rightsURI", &format!("info:eu-repo/semantics/{access}"))]);
    if let Some((name, uri)) = source.license() {
        let license = &version["license"];
        let attributes = [
            ("rightsURI", uri),
            ("rightsIdentifier", text(license, "rightsIdentifier")),
            ("rightsIdentifierScheme", text(license, "rightsIdentifierScheme")),
            ("schemeURI", text(license, "schemeUri")),
            ("xml:lang", text(license, "languageCode")),
        ];
        let shown = if source.license_text.is_empty() { name } else { source.license_text };
        xml.leaf_with("rights", &attributes, shown);
    } else {
        xml.leaf("rights", text(version, "termsOfUse"));
    }
    xml.close();
}

fn descriptions(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    for it in metadata.children("dsDescription", "dsDescriptionValue") {
        xml.leaf_with("description", &[("descriptionType", "Abstract")], &plain(it));
    }
    for it in metadata.compounds("software") {
        let whole = [it.get("softwareName"), it.get("softwareVersion")];
        let whole = whole.into_iter().flatten().collect::<Vec<_>>().join(", ");
        xml.leaf_with("description", &[("descriptionType", "TechnicalInfo")], &whole);
    }
    for it in metadata.many("originOfSources") {
        xml.leaf_with("description", &[("descriptionType", "Methods")], it);
    }
    for it in metadata.children("series", "seriesInformation") {
        xml.leaf_with("description", &[("descriptionType", "SeriesInformation")], it);
    }
    for it in metadata.many("notesText") {
        xml.leaf_with("description", &[("descriptionType", "Other")], it);
    }
}

fn locations(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    for place in metadata.many("productionPlace") {
        xml.open("geoLocation", &[]).leaf("geoLocationPlace", place).close();
    }
    for it in metadata.compounds("geographicCoverage") {
        let parts = ["country", "state", "city", "otherGeographicCoverage"];
        let place = parts.into_iter().filter_map(|name| it.get(name)).collect::<Vec<_>>().join(", ");
        if !place.is_empty() {
            xml.open("geoLocation", &[]).leaf("geoLocationPlace", &place).close();
        }
    }
    for it in metadata.compounds("geographicBoundingBox") {
        xml.group("geoLocation", |xml| {
            xml.group("geoLocationBox", |xml| {
                for (element, child) in [
                    ("westBoundLongitude", "westLongitude"),
                    ("eastBoundLongitude", "eastLongitude"),
                    ("southBoundLatitude", "southLatitude"),
                    ("northBoundLatitude", "northLatitude"),
                ] {
                    xml.leaf(element, it.get(child).unwrap_or_default());
                }
            });
        });
    }
}

fn funding(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    for it in
        metadata.compounds("contributor").iter().filter(|it| it.get("contributorType") == Some("Funder"))
    {
        let name = it.get("contributorName").unwrap_or_default();
        xml.group("fundingReference", |xml| {
            xml.leaf("funderName", name);
        });
    }
    for it in metadata.compounds("grantNumber") {
        xml.group("fundingReference", |xml| {
            xml.leaf("funderName", it.get("grantNumberAgency").unwrap_or_default());
            xml.leaf("awardNumber", it.get("grantNumberValue").unwrap_or_default());
        });
    }
}
