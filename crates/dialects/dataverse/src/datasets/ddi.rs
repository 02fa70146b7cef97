//! `POST …/datasets/:importddi?pid=&release=`: creates datasets from DDI Codebook 2.5 (section 3 of the contract).
//!
//! The paths of elements are those that `exports/ddi.rs` and Dataverse's own exports write.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::create::{self, New};
use crate::app::{Call, Dataverse};
use crate::blocks::{Fields, Gathered, Registry};
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::xml_tree::Element;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/dataverses/{id}/datasets/:importddi", import)
}

/// Elements below `stdyDscr` whose text is the value of a field: (path, field).
const TEXTS: [(&str, &str); 41] = [
    ("citation/titlStmt/titl", "title"),
    ("citation/titlStmt/subTitl", "subtitle"),
    ("citation/titlStmt/altTitl", "alternativeTitle"),
    ("citation/prodStmt/prodDate", "productionDate"),
    ("citation/prodStmt/prodPlac", "productionPlace"),
    ("citation/distStmt/distDate", "distributionDate"),
    ("citation/distStmt/depositr", "depositor"),
    ("citation/distStmt/depDate", "dateOfDeposit"),
    ("stdyInfo/sumDscr/geogUnit", "geographicUnit"),
    ("stdyInfo/sumDscr/anlyUnit", "unitOfAnalysis"),
    ("stdyInfo/sumDscr/universe", "universe"),
    ("stdyInfo/sumDscr/dataKind", "kindOfData"),
    ("stdyInfo/notes", "notesText"),
    ("notes", "notesText"),
    ("method/dataColl/timeMeth", "timeMethod"),
    ("method/dataColl/dataCollector", "dataCollector"),
    ("method/dataColl/collectorTraining", "collectorTraining"),
    ("method/dataColl/frequenc", "frequencyOfDataCollection"),
    ("method/dataColl/sampProc", "samplingProcedure"),
    ("method/dataColl/deviat", "deviationsFromSampleDesign"),
    ("method/dataColl/collMode", "collectionMode"),
    ("method/dataColl/resInstru", "researchInstrument"),
    ("method/dataColl/sources/dataSrc", "dataSources"),
    ("method/dataColl/sources/srcOrig", "originOfSources"),
    ("method/dataColl/sources/srcChar", "characteristicOfSources"),
    ("method/dataColl/sources/srcDocu", "accessToSources"),
    ("method/dataColl/collSitu", "dataCollectionSituation"),
    ("method/dataColl/actMin", "actionsToMinimizeLoss"),
    ("method/dataColl/conOps", "controlOperations"),
    ("method/dataColl/weight", "weighting"),
    ("method/dataColl/cleanOps", "cleaningOperations"),
    ("method/anlyInfo/respRate", "responseRate"),
    ("method/anlyInfo/EstSmpErr", "samplingErrorEstimates"),
    ("method/anlyInfo/dataAppr", "otherDataAppraisal"),
    ("othrStdyMat/relMat", "relatedMaterial"),
    ("othrStdyMat/relStdy", "relatedDatasets"),
    ("othrStdyMat/othRefs", "otherReferences"),
    ("othrStdyMat/notes", "datasetLevelErrorNotes"),
    ("citation/verStmt/notes", "notesText"),
    ("stdyInfo/sumDscr/notes", "notesText"),
    ("citation/notes", "notesText"),
];

/// Elements that become compound values: (path, field, child for the text, children for attributes).
type Compound = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);
const COMPOUNDS: [Compound; 14] = [
    ("citation/titlStmt/IDNo", "otherId", "otherIdValue", &[("agency", "otherIdAgency")]),
    ("citation/rspStmt/AuthEnty", "author", "authorName", &[("affiliation", "authorAffiliation")]),
    ("citation/rspStmt/othId", "contributor", "contributorName", &[("role", "contributorType")]),
    (
        "citation/prodStmt/producer",
        "producer",
        "producerName",
        &[
            ("affiliation", "producerAffiliation"),
            ("abbr", "producerAbbreviation"),
            ("URI", "producerURL"),
            ("role", "producerLogoURL"),
        ],
    ),
    ("citation/prodStmt/software", "software", "softwareName", &[("version", "softwareVersion")]),
    ("citation/prodStmt/grantNo", "grantNumber", "grantNumberValue", &[("agency", "grantNumberAgency")]),
    (
        "citation/distStmt/distrbtr",
        "distributor",
        "distributorName",
        &[
            ("affiliation", "distributorAffiliation"),
            ("abbr", "distributorAbbreviation"),
            ("URI", "distributorURL"),
            ("role", "distributorLogoURL"),
        ],
    ),
    (
        "citation/distStmt/contact",
        "datasetContact",
        "datasetContactName",
        &[("affiliation", "datasetContactAffiliation"), ("email", "datasetContactEmail")],
    ),
    (
        "stdyInfo/subject/keyword",
        "keyword",
        "keywordValue",
        &[("vocab", "keywordVocabulary"), ("vocabURI", "keywordVocabularyURI")],
    ),
    (
        "stdyInfo/subject/topcClas",
        "topicClassification",
        "topicClassValue",
        &[("vocab", "topicClassVocab"), ("vocabURI", "topicClassVocabURI")],
    ),
    ("stdyInfo/abstract", "dsDescription", "dsDescriptionValue", &[("date", "dsDescriptionDate")]),
    ("stdyInfo/sumDscr/nation", "geographicCoverage", "country", &[]),
    ("stdyInfo/sumDscr/geogCover", "geographicCoverage", "otherGeographicCoverage", &[]),
    (
        "method/notes",
        "socialScienceNotes",
        "socialScienceNotesText",
        &[("type", "socialScienceNotesType"), ("subject", "socialScienceNotesSubject")],
    ),
];

/// Elements with terms: (path, term).
const TERMS: [(&str, &str); 13] = [
    ("dataAccs/setAvail/accsPlac", "dataAccessPlace"),
    ("dataAccs/setAvail/origArch", "originalArchive"),
    ("dataAccs/setAvail/avlStatus", "availabilityStatus"),
    ("dataAccs/setAvail/collSize", "sizeOfCollection"),
    ("dataAccs/setAvail/complete", "studyCompletion"),
    ("dataAccs/useStmt/confDec", "confidentialityDeclaration"),
    ("dataAccs/useStmt/specPerm", "specialPermissions"),
    ("dataAccs/useStmt/restrctn", "restrictions"),
    ("dataAccs/useStmt/contact", "contactForAccess"),
    ("dataAccs/useStmt/citReq", "citationRequirements"),
    ("dataAccs/useStmt/deposReq", "depositorRequirements"),
    ("dataAccs/useStmt/conditions", "conditions"),
    ("dataAccs/useStmt/disclaimer", "disclaimer"),
];

/// Periods: (path, field, child for the start, child for the end).
const PERIODS: [(&str, &str, &str, &str); 2] = [
    ("stdyInfo/sumDscr/timePrd", "timePeriodCovered", "timePeriodCoveredStart", "timePeriodCoveredEnd"),
    ("stdyInfo/sumDscr/collDate", "dateOfCollection", "dateOfCollectionStart", "dateOfCollectionEnd"),
];

/// The subject of a study whose codebook states none.
const NO_SUBJECT: &str = "Other";

/// The study that a codebook describes.
#[derive(Debug)]
pub(crate) struct Study {
    pub fields: Fields,
    /// The terms, as in the JSON of a version.
    pub version: Map<String, Value>,
    /// The identifier that it may have on this site.
    pub pid: Option<String>,
}

/// Parses a codebook; `is_ours` recognises identifiers that datasets may have on this site.
///
/// Errors: a document that is not a codebook; values that a field cannot have.
pub(crate) fn read(
    registry: &Registry,
    bytes: &[u8],
    is_ours: impl Fn(&str) -> bool,
) -> Result<Study, String> {
    read_element(registry, &Element::read(bytes)?, is_ours)
}

/// Parses a codebook from its root element.
pub(crate) fn read_element(
    registry: &Registry,
    root: &Element,
    is_ours: impl Fn(&str) -> bool,
) -> Result<Study, String> {
    let studies = root.all("stdyDscr");
    let study = match (root.name.as_str(), studies.as_slice()) {
        ("codeBook", [study]) => *study,
        ("codeBook", studies) => {
            return Err(format!("the codeBook describes {} studies (stdyDscr); expected one", studies.len()));
        }
        (name, _) => return Err(format!("its root is {name}; expected codeBook of DDI 2.5")),
    };
    let mut found = Gathered::new(registry);
    for (path, field) in TEXTS {
        study.all(path).iter().for_each(|it| found.text(field, &it.plain()));
    }
    let mut pid = None;
    for (path, field, child, attributes) in COMPOUNDS {
        for it in study.all(path) {
            let text = it.plain();
            let has_attributes = attributes.iter().any(|(name, _)| !it.attribute(name).is_empty());
            match field {
                "keyword" if !has_attributes && found.is_term("subject", &text) => {
                    found.text("subject", &text)
                }
                // The archive that supplied the codebook is not a distributor of the study.
                "distributor" if it.attribute("source") == "archive" => {}
                "otherId" if pid.is_none() && is_ours(&text) => pid = Some(text),
                "socialScienceNotes" if !has_attributes => found.text("datasetLevelErrorNotes", &text),
                _ => {
                    let mut children = vec![(child, text.as_str())];
                    children.extend(attributes.iter().map(|(name, child)| (*child, it.attribute(name))));
                    found.compound(field, &children);
                }
            }
        }
    }
    for (path, field, start, end) in PERIODS {
        for [from, to] in periods(&study.all(path)) {
            found.compound(field, &[(start, &from), (end, &to)]);
        }
    }
    boxes_and_series(study, &mut found);
    publications(study, &mut found);
    let version = terms(study);
    if !found.has("subject") {
        // Codebooks have no element for it, and a dataset must have one.
        found.text("subject", NO_SUBJECT);
    }
    Ok(Study { fields: found.into_fields()?, version, pid })
}

/// Returns the terms of use and of access, in the form of a version's JSON.
fn terms(study: &Element) -> Map<String, Value> {
    let mut texts: Vec<(&str, String)> = Vec::new();
    for (path, term) in TERMS {
        texts.extend(study.all(path).iter().map(|it| (term, it.plain())));
    }
    for note in study.all("dataAccs/notes") {
        let term = if note.attribute("type") == "DVN:TOA" { "termsOfAccess" } else { "termsOfUse" };
        texts.push((term, note.plain()));
    }
    let mut terms = Map::new();
    for (term, text) in texts.into_iter().filter(|it| !it.1.is_empty()) {
        let said = match terms.get(term).and_then(Value::as_str) {
            Some(before) => format!("{before}\n{text}"),
            None => text,
        };
        terms.insert(term.to_owned(), said.into());
    }
    terms
}

/// Returns start and end of each period. Those with the same cycle belong together; without cycles, an end belongs to
/// the start before it.
fn periods(elements: &[&Element]) -> Vec<[String; 2]> {
    let mut list: Vec<[String; 2]> = Vec::new();
    let mut last_of_cycle: HashMap<&str, usize> = HashMap::new();
    for it in elements {
        let date = match it.attribute("date") {
            "" => it.plain(),
            date => date.to_owned(),
        };
        let (cycle, side) = (it.attribute("cycle"), usize::from(it.attribute("event") == "end"));
        // A start without a cycle begins a new period.
        let is_joined = side == 1 || !cycle.is_empty();
        let open = last_of_cycle.get(cycle).copied().filter(|at| is_joined && list[*at][side].is_empty());
        let at = open.unwrap_or_else(|| {
            list.push([String::new(), String::new()]);
            list.len() - 1
        });
        list[at][side] = date;
        last_of_cycle.insert(cycle, at);
    }
    list
}

fn boxes_and_series(study: &Element, found: &mut Gathered<'_>) {
    let one = |it: &Element, name: &str| it.all(name).first().map(|it| it.plain()).unwrap_or_default();
    for it in study.all("stdyInfo/sumDscr/geoBndBox") {
        let (west, east) = (one(it, "westBL"), one(it, "eastBL"));
        let (south, north) = (one(it, "southBL"), one(it, "northBL"));
        found.compound(
            "geographicBoundingBox",
            &[
                ("westLongitude", &west),
                ("eastLongitude", &east),
                ("southLatitude", &south),
                ("northLatitude", &north),
            ],
        );
    }
    for it in study.all("citation/serStmt") {
        let (name, information) = (one(it, "serName"), one(it, "serInfo"));
        found.compound("series", &[("seriesName", &name), ("seriesInformation", &information)]);
    }
    for it in study.all("method/dataColl/targetSampleSize") {
        let (size, formula) = (one(it, "sampleSize"), one(it, "sampleSizeFormula"));
        found.compound(
            "targetSampleSize",
            &[("targetSampleActualSize", &size), ("targetSampleSizeFormula", &formula)],
        );
    }
}

fn publications(study: &Element, found: &mut Gathered<'_>) {
    for it in study.all("othrStdyMat/relPubl") {
        let citation = it.all("citation/biblCit").first().map(|it| it.plain()).unwrap_or_default();
        let citation = if it.children().next().is_none() { it.plain() } else { citation };
        let number = it.all("citation/titlStmt/IDNo").first().copied();
        let agency = number.map(|it| it.attribute("agency")).unwrap_or_default();
        let url = it.all("ExtLink").first().map(|it| it.attribute("URI")).unwrap_or_default();
        found.compound(
            "publication",
            &[
                ("publicationCitation", &citation),
                ("publicationIDType", agency),
                ("publicationIDNumber", &number.map(Element::plain).unwrap_or_default()),
                ("publicationURL", url),
            ],
        );
    }
}

async fn import(mut call: Call) -> Answer {
    call.asker.superuser("Not a superuser")?;
    let bytes = call.bytes().await?;
    let registry = call.app.registry(call.db()).await?;
    let mut new = new_of(&call.app, &registry, &bytes)?;
    if let Some(pid) = call.query.filled("pid") {
        new.pid = Some(create::own_pid(&call.app, pid)?);
    }
    create::store_import(&call, registry, new).await
}

/// Returns the dataset that a codebook describes. Errors: 400 for a document that is not a codebook.
pub(crate) fn new_of(app: &Dataverse, registry: &Registry, bytes: &[u8]) -> Result<New, ApiError> {
    let study = read(registry, bytes, |pid| create::own_pid(app, pid).is_ok())
        .map_err(|fault| ApiError::bad_request(format!("Invalid DDI XML: {fault}")))?;
    let mut new = New::of(study.fields, study.version);
    new.pid = study.pid.map(|it| create::own_pid(app, &it)).transpose()?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::blocks::fields::Metadata;

    fn imported(study: &str) -> (Value, Study) {
        let registry = Registry::shipped();
        let text = format!("<codeBook xmlns=\"ddi:codebook:2_5\"><stdyDscr>{study}</stdyDscr></codeBook>");
        let study = read(&registry, text.as_bytes(), |it| it.starts_with("doi:10.5072/")).unwrap();
        (study.fields.to_json(&registry), study)
    }

    #[test]
    fn every_field_of_the_tables_is_one() {
        let registry = Registry::shipped();
        let children = COMPOUNDS.iter().flat_map(|it| it.3.iter().map(|it| it.1).chain([it.1, it.2]));
        let periods = PERIODS.iter().flat_map(|it| [it.1, it.2, it.3]);
        for name in TEXTS.iter().map(|it| it.1).chain(children).chain(periods) {
            assert!(registry.field(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_study_becomes_fields() {
        let (fields, study) = imported(
            "<citation><titlStmt><titl>A <b>bold</b> title</titl><IDNo agency='DOI'>doi:10.5072/FK2/X</IDNo>\
             <IDNo agency='shelf'>12</IDNo><IDNo>doi:10.7910/DVN/Y</IDNo></titlStmt>\
             <distStmt><distrbtr source='archive'>Root</distrbtr><distrbtr abbr='U'>Us</distrbtr></distStmt></citation>\
             <stdyInfo><subject><keyword>Law</keyword><keyword vocab='v'>Law</keyword><keyword>tides</keyword></subject>\
             <sumDscr><collDate cycle='P1' event='start' date='2001'>y</collDate><collDate cycle='P2' event='start'>2003\
             </collDate><collDate cycle='P1' event='end' date='2002'/><timePrd event='start'>1</timePrd>\
             <timePrd event='end'>2</timePrd><timePrd event='start'>3</timePrd>\
             <geoBndBox><westBL>1</westBL><northBL>4</northBL></geoBndBox></sumDscr><notes>one</notes></stdyInfo>\
             <dataAccs><notes type='DVN:TOU'>Use well</notes><useStmt><conditions>none</conditions></useStmt></dataAccs>\
             <othrStdyMat><relPubl><citation><titlStmt><IDNo agency='ARXIV'>7</IDNo></titlStmt></citation></relPubl>\
             </othrStdyMat><notes>two</notes>",
        );
        let metadata = Metadata(&fields);
        assert_eq!(metadata.one("title"), Some("A bold title"));
        assert_eq!(metadata.many("subject"), ["Law"]);
        assert_eq!(metadata.children("keyword", "keywordValue"), ["Law", "tides"]);
        assert_eq!(metadata.children("distributor", "distributorName"), ["Us"]);
        assert_eq!(metadata.children("otherId", "otherIdValue"), ["12", "doi:10.7910/DVN/Y"]);
        assert_eq!(metadata.children("dateOfCollection", "dateOfCollectionStart"), ["2001", "2003"]);
        assert_eq!(metadata.children("dateOfCollection", "dateOfCollectionEnd"), ["2002"]);
        assert_eq!(metadata.children("timePeriodCovered", "timePeriodCoveredStart"), ["1", "3"]);
        assert_eq!(metadata.children("geographicBoundingBox", "northLatitude"), ["4"]);
        assert_eq!(metadata.children("publication", "publicationIDType"), ["arXiv"]);
        assert_eq!(metadata.one("notesText"), Some("one\ntwo"));
        assert_eq!(study.pid.as_deref(), Some("doi:10.5072/FK2/X"));
        assert_eq!(json!(study.version), json!({"conditions": "none", "termsOfUse": "Use well"}));
    }

    /// Dataverse's own export of a study is read completely: no field in the codebook is lost.
    #[test]
    fn exported_codebooks_are_read() {
        let Some(folder) = pinakes_test_support::collection("dataverse") else { return };
        let registry = Registry::shipped();
        let counts = |name: &str| {
            let bytes = std::fs::read(folder.join("exports").join(name)).unwrap();
            let study = read(&registry, &bytes, |_| false).unwrap();
            let title = Metadata(&study.fields.to_json(&registry)).one("title").map(str::to_owned);
            (title, study.fields.0.len(), study.version.len())
        };
        for (name, title, n_fields, n_terms) in [
            ("export-dataset-finch-private.xml", "Darwin's Finches", 12, 0),
            ("export-dataset-finch-terms-of-use.xml", "Darwin's Finches", 17, 1),
            ("export-dataset-perma.xml", "Spruce Goose", 6, 0),
            ("export-dataset-spruce1.xml", "Spruce Goose", 5, 0),
            ("export-ddi_dataset.xml", "Replication Data for: Title", 55, 15),
        ] {
            assert_eq!(counts(name), (Some(title.to_owned()), n_fields, n_terms), "{name}");
        }
    }

    #[test]
    fn what_is_no_codebook_is_refused() {
        for (text, part) in [
            ("<mods/>", "its root is mods"),
            ("<codeBook/>", "describes 0 studies"),
            ("<codeBook><stdyDscr/><stdyDscr/></codeBook>", "describes 2 studies"),
            ("{}", "ends before its root"),
            (
                "<codeBook><stdyDscr><citation><distStmt><depDate>1</depDate><depDate>2</depDate></distStmt></citation>\
                 </stdyDscr></codeBook>",
                "dateOfDeposit takes one value",
            ),
        ] {
            let fault = read(&Registry::shipped(), text.as_bytes(), |_| false).unwrap_err();
            assert!(fault.contains(part), "{text}: {fault}");
        }
    }
}
