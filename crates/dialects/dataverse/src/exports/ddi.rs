//! DDI Codebook 2.5: the study, its files, and the variables of its tables.

use serde_json::Value;

use super::xml::{Attributes, Xml};
use crate::exports::source::{Source, text};

/// Attributes of the root element.
const CODEBOOK: Attributes<'_> = &[
    ("xmlns", "ddi:codebook:2_5"),
    ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    (
        "xsi:schemaLocation",
        "ddi:codebook:2_5 https://ddialliance.org/Specification/DDI-Codebook/2.5/XMLSchema/codebook.xsd",
    ),
    ("version", "2.5"),
];

/// Language of the terms of controlled vocabularies.
const VOCABULARY_LANGUAGE: &str = "en";

/// Writes the format `ddi`: with the variables of openly accessible tables.
pub fn with_variables(source: &Source<'_>) -> String {
    codebook(source, true)
}

/// Writes the format `oai_ddi`: without variables.
pub fn without_variables(source: &Source<'_>) -> String {
    codebook(source, false)
}

/// Opens the root element, in the language of the metadata if the dataset states one.
fn root(source: &Source<'_>, xml: &mut Xml) {
    let mut attributes = CODEBOOK.to_vec();
    attributes.push(("xml:lang", source.language()));
    xml.open("codeBook", &attributes);
}

fn codebook(source: &Source<'_>, has_variables: bool) -> String {
    let mut xml = Xml::document();
    root(source, &mut xml);
    document(source, &mut xml);
    study(source, &mut xml);
    let tables = |file: &&Value| source.tables.contains_key(&file["dataFile"]["id"].to_string());
    for file in source.files().iter().filter(tables) {
        let id = file["dataFile"]["id"].to_string();
        file_description(source.site_url, file, &source.tables[&id], &mut xml);
    }
    if has_variables {
        let open: Vec<&Value> =
            source.files().iter().filter(tables).filter(|it| source.is_open(it)).collect();
        if !open.is_empty() {
            xml.open("dataDscr", &[]);
            for file in open {
                let id = file["dataFile"]["id"].to_string();
                variables(&id, &source.tables[&id], &mut xml);
            }
            xml.close();
        }
    }
    for file in source.files().iter().filter(|it| !tables(it)) {
        other_material(source.site_url, file, &mut xml);
    }
    xml.finish()
}

/// Returns the codebook of one table: its file and variables, for `/api/access/datafile/{id}/metadata/ddi`.
pub fn of_file(source: &Source<'_>, file: &Value, tables: &Value) -> String {
    let mut xml = Xml::document();
    root(source, &mut xml);
    xml.open("stdyDscr", &[]).open("citation", &[]);
    titles(source, &mut xml);
    xml.around("rspStmt", |xml| responsible(source, xml));
    xml.leaf("biblCit", source.citation());
    xml.close().close();
    file_description(source.site_url, file, tables, &mut xml);
    xml.open("dataDscr", &[]);
    variables(&file["dataFile"]["id"].to_string(), tables, &mut xml);
    xml.close();
    xml.finish()
}

fn agency(source: &Source<'_>) -> &'static str {
    match text(source.dataset, "protocol") {
        "hdl" => "handle",
        "perma" => "perma",
        _ => "DOI",
    }
}

fn titles(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    xml.open("titlStmt", &[]);
    xml.leaf_with("titl", &[("xml:lang", source.language())], source.title());
    xml.leaf("subTitl", metadata.one("subtitle").unwrap_or_default());
    xml.leaves("altTitl", metadata.many("alternativeTitle"));
    xml.leaf_with("IDNo", &[("agency", agency(source))], &source.pid());
    for it in metadata.compounds("otherId") {
        let attributes = [("agency", it.get("otherIdAgency").unwrap_or_default())];
        xml.leaf_with("IDNo", &attributes, it.get("otherIdValue").unwrap_or_default());
    }
    xml.close();
}

fn responsible(source: &Source<'_>, xml: &mut Xml) {
    for it in source.metadata().compounds("author") {
        let attributes = [("affiliation", it.get("authorAffiliation").unwrap_or_default())];
        xml.leaf_with("AuthEnty", &attributes, it.get("authorName").unwrap_or_default());
    }
    for it in source.metadata().compounds("contributor") {
        let attributes = [("role", it.get("contributorType").unwrap_or_default())];
        xml.leaf_with("othId", &attributes, it.get("contributorName").unwrap_or_default());
    }
}

fn version_statement(source: &Source<'_>, xml: &mut Xml) {
    let number = source.version()["versionNumber"].as_i64().map(|it| it.to_string()).unwrap_or_default();
    let attributes = [("date", source.release_date()), ("type", source.state())];
    xml.open("verStmt", &[("source", "archive")]);
    match number.is_empty() {
        true => xml.empty("version", &attributes),
        false => xml.leaf_with("version", &attributes, &number),
    };
    xml.close();
}

fn document(source: &Source<'_>, xml: &mut Xml) {
    xml.open("docDscr", &[]).open("citation", &[]);
    xml.open("titlStmt", &[]);
    xml.leaf_with("titl", &[("xml:lang", source.language())], source.title());
    xml.leaf_with("IDNo", &[("agency", agency(source))], &source.pid());
    xml.close();
    xml.around("distStmt", |xml| {
        xml.leaf_with("distrbtr", &[("source", "archive")], source.publisher);
        xml.leaf("distDate", source.publication_date());
    });
    version_statement(source, xml);
    xml.leaf("biblCit", source.citation());
    xml.close().close();
}

fn study(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    xml.open("stdyDscr", &[]).open("citation", &[]);
    titles(source, xml);
    xml.around("rspStmt", |xml| responsible(source, xml));
    xml.around("prodStmt", |xml| {
        for it in metadata.compounds("producer") {
            let attributes = [
                ("affiliation", it.get("producerAffiliation").unwrap_or_default()),
                ("abbr", it.get("producerAbbreviation").unwrap_or_default()),
            ];
            xml.leaf_with("producer", &attributes, it.get("producerName").unwrap_or_default());
        }
        xml.leaves("prodDate", metadata.many("productionDate"));
        xml.leaves("prodPlac", metadata.many("productionPlace"));
        for it in metadata.compounds("software") {
            let attributes = [("version", it.get("softwareVersion").unwrap_or_default())];
            xml.leaf_with("software", &attributes, it.get("softwareName").unwrap_or_default());
        }
        for it in metadata.compounds("grantNumber") {
            let attributes = [("agency", it.get("grantNumberAgency").unwrap_or_default())];
            xml.leaf_with("grantNo", &attributes, it.get("grantNumberValue").unwrap_or_default());
        }
    });
    xml.around("distStmt", |xml| distribution(source, xml));
    for it in metadata.compounds("series") {
        xml.group("serStmt", |xml| {
            xml.leaf("serName", it.get("seriesName").unwrap_or_default());
            xml.leaf("serInfo", it.get("seriesInformation").unwrap_or_default());
        });
    }
    xml.empty("holdings", &[("URI", source.pid_url())]);
    xml.close();
    information(source, xml);
    method(source, xml);
    access(source, xml);
    other_study_material(source, xml);
    xml.leaves("notes", metadata.many("notesText"));
    xml.close();
}

fn distribution(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    xml.leaf_with("distrbtr", &[("source", "archive")], source.publisher);
    for it in metadata.compounds("distributor") {
        let attributes = [
            ("xml:lang", source.language()),
            ("affiliation", it.get("distributorAffiliation").unwrap_or_default()),
            ("abbr", it.get("distributorAbbreviation").unwrap_or_default()),
            ("URI", it.get("distributorURL").unwrap_or_default()),
        ];
        xml.leaf_with("distrbtr", &attributes, it.get("distributorName").unwrap_or_default());
    }
    for it in metadata.compounds("datasetContact") {
        let attributes = [
            ("affiliation", it.get("datasetContactAffiliation").unwrap_or_default()),
            ("email", it.get("datasetContactEmail").unwrap_or_default()),
        ];
        xml.leaf_with("contact", &attributes, it.get("datasetContactName").unwrap_or_default());
    }
    xml.leaves("distDate", metadata.many("distributionDate"));
    xml.leaves("depositr", metadata.many("depositor"));
    xml.leaves("depDate", metadata.many("dateOfDeposit"));
}

fn information(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    xml.open("stdyInfo", &[]);
    xml.around("subject", |xml| {
        for subject in metadata.many("subject") {
            xml.leaf_with("keyword", &[("xml:lang", VOCABULARY_LANGUAGE)], subject);
        }
        for it in metadata.compounds("keyword") {
            let attributes = [
                ("vocab", it.get("keywordVocabulary").unwrap_or_default()),
                ("vocabURI", it.get("keywordVocabularyURI").unwrap_or_default()),
            ];
            xml.leaf_with("keyword", &attributes, it.get("keywordValue").unwrap_or_default());
        }
        for it in metadata.compounds("topicClassification") {
            let attributes = [
                ("vocab", it.get("topicClassVocab").unwrap_or_default()),
                ("vocabURI", it.get("topicClassVocabURI").unwrap_or_default()),
            ];
            xml.leaf_with("topcClas", &attributes, it.get("topicClassValue").unwrap_or_default());
        }
    });
    for it in metadata.compounds("dsDescription") {
        let date = it.get("dsDescriptionDate").unwrap_or_default();
        let attributes = [("xml:lang", source.language()), ("date", date)];
        xml.leaf_with("abstract", &attributes, it.get("dsDescriptionValue").unwrap_or_default());
    }
    xml.around("sumDscr", |xml| {
        periods(
            source,
            xml,
            "timePrd",
            ["timePeriodCovered", "timePeriodCoveredStart", "timePeriodCoveredEnd"],
        );
        periods(
            source,
            xml,
            "collDate",
            ["dateOfCollection", "dateOfCollectionStart", "dateOfCollectionEnd"],
        );
        for it in metadata.compounds("geographicCoverage") {
            xml.leaf("nation", it.get("country").unwrap_or_default());
            for child in ["city", "state", "otherGeographicCoverage"] {
                xml.leaf("geogCover", it.get(child).unwrap_or_default());
            }
        }
        xml.leaves("geogUnit", metadata.many("geographicUnit"));
        for it in metadata.compounds("geographicBoundingBox").into_iter().take(1) {
            xml.group("geoBndBox", |xml| {
                for (element, child) in [
                    ("westBL", "westLongitude"),
                    ("eastBL", "eastLongitude"),
                    ("southBL", "southLatitude"),
                    ("northBL", "northLatitude"),
                ] {
                    xml.leaf(element, it.get(child).unwrap_or_default());
                }
            });
        }
        xml.leaves("anlyUnit", metadata.many("unitOfAnalysis"));
        xml.leaves("universe", metadata.many("universe"));
        xml.leaves("dataKind", metadata.many("kindOfData"));
    });
    xml.close();
}

fn periods(source: &Source<'_>, xml: &mut Xml, element: &str, [parent, start, end]: [&str; 3]) {
    for (index, it) in source.metadata().compounds(parent).into_iter().enumerate() {
        let cycle = format!("P{}", index + 1);
        for (event, child) in [("start", start), ("end", end)] {
            let date = it.get(child).unwrap_or_default();
            xml.leaf_with(element, &[("cycle", &cycle), ("event", event), ("date", date)], date);
        }
    }
}

fn method(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    xml.around("method", |xml| {
        xml.around("dataColl", |xml| {
            for (element, field) in [
                ("timeMeth", "timeMethod"),
                ("dataCollector", "dataCollector"),
                ("collectorTraining", "collectorTraining"),
                ("frequenc", "frequencyOfDataCollection"),
                ("sampProc", "samplingProcedure"),
                ("deviat", "deviationsFromSampleDesign"),
                ("collMode", "collectionMode"),
                ("resInstru", "researchInstrument"),
            ] {
                xml.leaves(element, metadata.many(field));
            }
            xml.around("sources", |xml| {
                for (element, field) in [
                    ("dataSrc", "dataSources"),
                    ("srcOrig", "originOfSources"),
                    ("srcChar", "characteristicOfSources"),
                    ("srcDocu", "accessToSources"),
                ] {
                    xml.leaves(element, metadata.many(field));
                }
            });
            for (element, field) in [
                ("collSitu", "dataCollectionSituation"),
                ("actMin", "actionsToMinimizeLoss"),
                ("conOps", "controlOperations"),
                ("weight", "weighting"),
                ("cleanOps", "cleaningOperations"),
            ] {
                xml.leaves(element, metadata.many(field));
            }
        });
        xml.leaves("notes", metadata.many("datasetLevelErrorNotes"));
        xml.around("anlyInfo", |xml| {
            for (element, field) in [
                ("respRate", "responseRate"),
                ("EstSmpErr", "samplingErrorEstimates"),
                ("dataAppr", "otherDataAppraisal"),
            ] {
                xml.leaves(element, metadata.many(field));
            }
        });
    });
}

fn access(source: &Source<'_>, xml: &mut Xml) {
    let version = source.version();
    xml.open("dataAccs", &[]);
    xml.around("setAvail", |xml| {
        for (element, key) in [
            ("accsPlac", "dataAccessPlace"),
            ("origArch", "originalArchive"),
            ("avlStatus", "availabilityStatus"),
            ("collSize", "sizeOfCollection"),
            ("complete", "studyCompletion"),
        ] {
            xml.leaf(element, text(version, key));
        }
    });
    xml.around("useStmt", |xml| {
        for (element, key) in [
            ("confDec", "confidentialityDeclaration"),
            ("specPerm", "specialPermissions"),
            ("restrctn", "restrictions"),
            ("contact", "contactForAccess"),
            ("citReq", "citationRequirements"),
            ("deposReq", "depositorRequirements"),
            ("conditions", "conditions"),
            ("disclaimer", "disclaimer"),
        ] {
            xml.leaf(element, text(version, key));
        }
    });
    let note = |xml: &mut Xml, kind: &str, uri: &str, value: &str| {
        xml.leaf_with("notes", &[("type", kind), ("level", "dv"), ("resp", uri)], value);
    };
    match source.license() {
        Some((name, uri)) => {
            let shown = format!("<a href=\"{uri}\">{name}</a>");
            note(xml, "DVN:TOU", uri, &shown);
        }
        None => note(xml, "DVN:TOU", "", text(version, "termsOfUse")),
    }
    note(xml, "DVN:TOA", "", text(version, "termsOfAccess"));
    xml.close();
}

fn other_study_material(source: &Source<'_>, xml: &mut Xml) {
    let metadata = source.metadata();
    xml.around("othrStdyMat", |xml| {
        xml.leaves("relMat", metadata.many("relatedMaterial"));
        xml.leaves("relStdy", metadata.many("relatedDatasets"));
        for it in metadata.compounds("publication") {
            xml.group("relPubl", |xml| {
                xml.group("citation", |xml| {
                    let number = it.get("publicationIDNumber").unwrap_or_default();
                    xml.group("titlStmt", |xml| {
                        xml.leaf("titl", it.get("publicationCitation").unwrap_or_default());
                        let attributes = [("agency", it.get("publicationIDType").unwrap_or_default())];
                        xml.leaf_with("IDNo", &attributes, number);
                    });
                    xml.leaf("biblCit", it.get("publicationCitation").unwrap_or_default());
                });
                if let Some(url) = it.get("publicationURL") {
                    xml.leaf_with("ExtLink", &[("URI", url)], url);
                }
            });
        }
        xml.leaves("othRefs", metadata.many("otherReferences"));
    });
}

fn file_uri(site_url: &str, id: &str) -> String {
    format!("{site_url}/api/access/datafile/{id}")
}

fn file_description(site_url: &str, file: &Value, tables: &Value, xml: &mut Xml) {
    let data_file = &file["dataFile"];
    let id = data_file["id"].to_string();
    let uri = file_uri(site_url, &id);
    xml.open("fileDscr", &[("ID", &format!("f{id}")), ("URI", &uri)]);
    xml.open("fileTxt", &[]).leaf("fileName", text(file, "label"));
    for table in tables.as_array().into_iter().flatten() {
        xml.open("dimensns", &[]);
        xml.leaf("caseQnty", &table["caseQuantity"].to_string());
        xml.leaf("varQnty", &table["varQuantity"].to_string());
        xml.close();
    }
    xml.leaf("fileType", text(data_file, "contentType"));
    xml.close();
    let unf = text(data_file, "UNF");
    let attributes = [("level", "file"), ("type", "VDC:UNF"), ("subject", "Universal Numeric Fingerprint")];
    xml.leaf_with("notes", &attributes, unf);
    for tag in data_file["tabularTags"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let attributes = [("level", "file"), ("type", "DATAVERSE:TAG"), ("subject", "Data File Tag")];
        xml.leaf_with("notes", &attributes, tag);
    }
    xml.close();
}

fn other_material(site_url: &str, file: &Value, xml: &mut Xml) {
    let data_file = &file["dataFile"];
    let id = data_file["id"].to_string();
    let uri = file_uri(site_url, &id);
    xml.open("otherMat", &[("ID", &format!("f{id}")), ("URI", &uri), ("level", "datafile")]);
    xml.leaf("labl", text(file, "label")).leaf("txt", text(file, "description"));
    let attributes = [("level", "file"), ("type", "DATAVERSE:CONTENTTYPE"), ("subject", "Content/MIME Type")];
    xml.leaf_with("notes", &attributes, text(data_file, "contentType"));
    xml.close();
}

/// Writes the `var` elements of a file's tables.
pub fn variables(file: &str, tables: &Value, xml: &mut Xml) {
    for table in tables.as_array().into_iter().flatten() {
        for group in table["variableGroups"].as_array().into_iter().flatten() {
            let names = group["variables"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let names = names.collect::<Vec<_>>().join(" ");
            xml.open("varGrp", &[("ID", text(group, "id")), ("var", &names)]);
            xml.leaf("labl", text(group, "label")).close();
        }
        for variable in table["dataVariables"].as_array().into_iter().flatten() {
            one_variable(file, variable, xml);
        }
    }
}

fn one_variable(file: &str, variable: &Value, xml: &mut Xml) {
    let id = format!("v{}", variable["id"]);
    let is_weighted = variable["isWeightVar"].as_bool() == Some(true);
    let weight = variable["weightVariableId"].as_i64().map(|it| format!("v{it}")).unwrap_or_default();
    xml.open(
        "var",
        &[
            ("ID", &id),
            ("name", text(variable, "name")),
            ("wgt", if is_weighted { "wgt" } else { "" }),
            ("wgt-var", &weight),
            ("intrvl", text(variable, "variableIntervalType")),
        ],
    );
    xml.empty("location", &[("fileid", &format!("f{file}"))]);
    xml.leaf_with("labl", &[("level", "variable")], text(variable, "label"));
    xml.group("qstn", |xml| {
        xml.leaf("qstnLit", text(variable, "literalQuestion"));
        xml.leaf("ivuInstr", text(variable, "interviewInstruction"));
        xml.leaf("postQTxt", text(variable, "postQuestion"));
    });
    for range in variable["invalidRanges"].as_array().into_iter().flatten() {
        xml.open("invalrng", &[]);
        match range["value"].as_str() {
            Some(value) => xml.empty("item", &[("VALUE", value)]),
            None => xml.empty("range", &[("min", text(range, "min")), ("max", text(range, "max"))]),
        };
        xml.close();
    }
    xml.leaf("universe", text(variable, "universe"));
    if let Some(statistics) = variable["summaryStatistics"].as_object() {
        for (kind, value) in statistics {
            xml.leaf_with("sumStat", &[("type", kind)], value.as_str().unwrap_or_default());
        }
    }
    for category in variable["variableCategories"].as_array().into_iter().flatten() {
        let missing = if category["isMissing"].as_bool() == Some(true) { "Y" } else { "" };
        xml.open("catgry", &[("missing", missing)]);
        xml.leaf("catValu", text(category, "value"));
        xml.leaf_with("labl", &[("level", "category")], text(category, "label"));
        if let Some(n) = category["frequency"].as_f64() {
            xml.leaf_with("catStat", &[("type", "freq")], &n.to_string());
        }
        if let Some(n) = category["weightedFrequency"].as_f64() {
            xml.leaf_with("catStat", &[("wgtd", "wgtd"), ("type", "freq")], &n.to_string());
        }
        xml.close();
    }
    let kind = if text(variable, "variableFormatType") == "NUMERIC" { "numeric" } else { "character" };
    let attributes = [
        ("type", kind),
        ("formatname", text(variable, "format")),
        ("category", text(variable, "formatCategory")),
    ];
    xml.empty("varFormat", &attributes);
    let attributes =
        [("level", "variable"), ("type", "VDC:UNF"), ("subject", "Universal Numeric Fingerprint")];
    xml.leaf_with("notes", &attributes, text(variable, "UNF"));
    xml.leaf("notes", text(variable, "notes"));
    xml.close();
}
