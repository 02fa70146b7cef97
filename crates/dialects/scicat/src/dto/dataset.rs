//! Datasets: raw, derived and other types of v3, and the one flat table of v4.

use serde_json::{Map, Value};

use super::*;
use crate::validate::{Dto, Presence};

const OWNER: Field = Field::required("owner", TEXT);
const OWNER_EMAIL: Field = Field::optional("ownerEmail", EMAIL);
const ORCID_OF_OWNER: Field = Field::optional("orcidOfOwner", TEXT);
const CONTACT_EMAIL: Field = Field::required("contactEmail", &[Rule::EmailList]);
const SOURCE_FOLDER: Field = Field::required("sourceFolder", FILLED);
const SOURCE_FOLDER_HOST: Field = Field::optional("sourceFolderHost", &[Rule::UrlOfAnyProtocol]);
const SIZE: Field = Field::optional("size", INTEGER).default_to(Default::Zero);
const PACKED_SIZE: Field = Field::optional("packedSize", INTEGER).default_to(Default::Zero);
const NUMBER_OF_FILES: Field = Field::optional("numberOfFiles", INTEGER).default_to(Default::Zero);
const NUMBER_OF_FILES_ARCHIVED: Field =
    Field::optional("numberOfFilesArchived", INTEGER).default_to(Default::Zero);
const CREATION_TIME: Field = Field::required("creationTime", DATE);
const TYPE: Field = Field::required("type", TEXT).on_create();
const VALIDATION_STATUS: Field = Field::optional("validationStatus", TEXT);
const KEYWORDS: Field = Field::optional("keywords", TEXTS).default_to(Default::EmptyList);
const DESCRIPTION: Field = Field::optional("description", TEXT);
const DATASET_NAME: Field = Field::optional("datasetName", TEXT);
const REQUIRED_DATASET_NAME: Field = Field::required("datasetName", TEXT);
const CLASSIFICATION: Field = Field::optional("classification", TEXT);
const LICENSE: Field = Field::optional("license", TEXT);
const TECHNIQUES: Field = Field::optional("techniques", LIST).each(&TECHNIQUE).default_to(Default::EmptyList);
const SHARED_WITH: Field = Field::optional("sharedWith", TEXTS).default_to(Default::EmptyList);
const RELATIONSHIPS: Field =
    Field::optional("relationships", LIST).each(&RELATIONSHIP).default_to(Default::EmptyList);
const LIFECYCLE: Field = Field::optional("datasetlifecycle", ANY);
const SCIENTIFIC_METADATA: Field =
    Field::optional("scientificMetadata", OBJECT).default_to(Default::EmptyObject);
const SCIENTIFIC_METADATA_SCHEMA: Field = Field::optional("scientificMetadataSchema", &[Rule::Url]);
const SCIENTIFIC_METADATA_VALID: Field = Field::optional("scientificMetadataValid", BOOLEAN);
const COMMENT: Field = Field::optional("comment", TEXT);
const DATA_QUALITY_METRICS: Field = Field::optional("dataQualityMetrics", NUMBER);
const RUN_NUMBER: Field = Field::optional("runNumber", TEXT);
const PID: Field = Field::optional("pid", TEXT).on_create();
const VERSION: Field = Field::optional("version", TEXT).on_create();
const PROPOSAL_ID: Field = Field::optional("proposalId", TEXT);
const INPUT_DATASETS: Field = Field::optional("inputDatasets", TEXTS).default_to(Default::EmptyList);
const USED_SOFTWARE: Field = Field::optional("usedSoftware", TEXTS).default_to(Default::EmptyList);
const JOB_PARAMETERS: Field = Field::optional("jobParameters", OBJECT);
const JOB_LOG_DATA: Field = Field::optional("jobLogData", TEXT);
const DATA_FORMAT: Field = Field::optional("dataFormat", TEXT);
const START_TIME: Field = Field::optional("startTime", DATE);
const END_TIME: Field = Field::optional("endTime", DATE);

/// A technique: `{pid, name}`.
pub static TECHNIQUE: Dto = Dto { fields: &[Field::required("pid", TEXT), Field::required("name", TEXT)] };

/// A relation to an external resource.
pub static RELATIONSHIP: Dto = Dto {
    fields: &[
        Field::required("identifier", TEXT),
        Field::optional("identifierType", TEXT).default_to(Default::Text("Other")),
        Field::optional("relationship", TEXT).default_to(Default::Text("IsReferencedBy")),
        Field::optional("entityType", TEXT).default_to(Default::Text("Other")),
        Field::optional("externalId", TEXT),
    ],
};

/// `type: "raw"` of v3.
pub static RAW: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        OWNER,
        OWNER_EMAIL,
        ORCID_OF_OWNER,
        CONTACT_EMAIL,
        SOURCE_FOLDER,
        SOURCE_FOLDER_HOST,
        SIZE,
        PACKED_SIZE,
        NUMBER_OF_FILES,
        NUMBER_OF_FILES_ARCHIVED,
        CREATION_TIME,
        VALIDATION_STATUS,
        KEYWORDS,
        DESCRIPTION,
        DATASET_NAME,
        CLASSIFICATION,
        LICENSE,
        IS_PUBLISHED,
        TECHNIQUES,
        SHARED_WITH,
        RELATIONSHIPS,
        LIFECYCLE,
        SCIENTIFIC_METADATA,
        SCIENTIFIC_METADATA_SCHEMA,
        SCIENTIFIC_METADATA_VALID,
        COMMENT,
        DATA_QUALITY_METRICS,
        Field::required("principalInvestigator", TEXT),
        START_TIME,
        END_TIME,
        Field::required("creationLocation", TEXT),
        DATA_FORMAT,
        PROPOSAL_ID,
        Field::optional("sampleId", TEXT),
        Field::optional("instrumentId", TEXT),
        RUN_NUMBER,
        Field::optional("investigator", ANY),
        Field::optional("inputDatasets", ANY).default_to(Default::EmptyList),
        Field::optional("usedSoftware", ANY).default_to(Default::EmptyList),
        Field::optional("jobParameters", ANY),
        Field::optional("jobLogData", ANY),
        PID,
        TYPE,
        VERSION,
    ],
};

/// `type: "derived"` of v3.
pub static DERIVED: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        OWNER,
        OWNER_EMAIL,
        ORCID_OF_OWNER,
        CONTACT_EMAIL,
        SOURCE_FOLDER,
        SOURCE_FOLDER_HOST,
        SIZE,
        PACKED_SIZE,
        NUMBER_OF_FILES,
        NUMBER_OF_FILES_ARCHIVED,
        CREATION_TIME,
        VALIDATION_STATUS,
        KEYWORDS,
        DESCRIPTION,
        DATASET_NAME,
        CLASSIFICATION,
        LICENSE,
        IS_PUBLISHED,
        TECHNIQUES,
        SHARED_WITH,
        RELATIONSHIPS,
        LIFECYCLE,
        SCIENTIFIC_METADATA,
        SCIENTIFIC_METADATA_SCHEMA,
        SCIENTIFIC_METADATA_VALID,
        COMMENT,
        DATA_QUALITY_METRICS,
        Field::required("investigator", TEXT),
        Field::required("inputDatasets", TEXTS),
        Field::required("usedSoftware", TEXTS),
        JOB_PARAMETERS,
        JOB_LOG_DATA,
        PROPOSAL_ID,
        RUN_NUMBER,
        PID,
        TYPE,
        VERSION,
    ],
};

/// Any other `type` of v3, and every dataset of v4.
pub static OTHER: Dto = Dto {
    fields: &[
        OWNER_GROUP,
        ACCESS_GROUPS,
        INSTRUMENT_GROUP,
        OWNER,
        OWNER_EMAIL,
        ORCID_OF_OWNER,
        CONTACT_EMAIL,
        SOURCE_FOLDER,
        SOURCE_FOLDER_HOST,
        SIZE,
        PACKED_SIZE,
        NUMBER_OF_FILES,
        NUMBER_OF_FILES_ARCHIVED,
        CREATION_TIME,
        VALIDATION_STATUS,
        KEYWORDS,
        DESCRIPTION,
        REQUIRED_DATASET_NAME,
        CLASSIFICATION,
        LICENSE,
        IS_PUBLISHED,
        TECHNIQUES,
        SHARED_WITH,
        RELATIONSHIPS,
        LIFECYCLE,
        SCIENTIFIC_METADATA,
        SCIENTIFIC_METADATA_SCHEMA,
        SCIENTIFIC_METADATA_VALID,
        COMMENT,
        DATA_QUALITY_METRICS,
        Field::optional("principalInvestigators", TEXTS).default_to(Default::EmptyList),
        START_TIME,
        END_TIME,
        Field::optional("creationLocation", TEXT),
        DATA_FORMAT,
        Field::optional("proposalIds", TEXTS).default_to(Default::EmptyList),
        Field::optional("sampleIds", TEXTS).default_to(Default::EmptyList),
        Field::optional("instrumentIds", TEXTS).default_to(Default::EmptyList),
        INPUT_DATASETS,
        USED_SOFTWARE,
        JOB_PARAMETERS,
        JOB_LOG_DATA,
        RUN_NUMBER,
        PID,
        TYPE,
    ],
};

/// Returns the table for a v3 dataset of type `kind`.
pub fn v3(kind: &str) -> &'static Dto {
    match kind {
        "raw" => &RAW,
        "derived" => &DERIVED,
        _ => &OTHER,
    }
}

/// Returns the table for a v4 dataset.
pub fn v4() -> &'static Dto {
    &OTHER
}

/// Completes a valid body for a create or a replacement: sets defaults, removes the trailing `/` of the source
/// folder, and names raw and derived datasets after that folder. Dates and metadata have their own modules.
pub fn complete(dto: &Dto, body: &mut Map<String, Value>) {
    trim_source_folder(body);
    if dto.field("datasetName").is_some_and(|it| it.presence == Presence::Optional)
        && !body.contains_key("datasetName")
        && let Some(name) = body.get("sourceFolder").and_then(Value::as_str).map(name_of_folder)
    {
        body.insert("datasetName".to_owned(), Value::from(name));
    }
    dto.fill_defaults(body);
}

/// Converts relationships in version 4's form, `{pid, relationship}`: the `pid` becomes the identifier.
pub fn name_identifiers(body: &mut Map<String, Value>) {
    let Some(Value::Array(list)) = body.get_mut("relationships") else { return };
    for relationship in list.iter_mut().filter_map(Value::as_object_mut) {
        if !relationship.contains_key("identifier")
            && let Some(pid) = relationship.shift_remove("pid")
        {
            relationship.insert("identifier".to_owned(), pid);
        }
    }
}

/// Removes one `/` at the end of `sourceFolder`; a lone `/` stays.
pub fn trim_source_folder(body: &mut Map<String, Value>) {
    if let Some(Value::String(folder)) = body.get_mut("sourceFolder")
        && 1 < folder.len()
        && folder.ends_with('/')
    {
        folder.pop();
    }
}

/// Returns the last two segments of a folder: `2020/run7` for `/data/2020/run7`.
pub fn name_of_folder(folder: &str) -> String {
    let segments: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    segments[segments.len().saturating_sub(2)..].join("/")
}
