//! The kinds of records that are stored.

use pinakes_store::{Column, Counts, Facet, Identifier, Index, Kind, Link, Search, Text, Type};

use crate::scientific;

/// Datasets by pid.
pub(crate) static DATASET: Kind = Kind {
    id_path: Some("pid"),
    columns: &[
        Column::one("type", Type::Text),
        Column::one("owner", Type::Text),
        Column::one("ownerGroup", Type::Text),
        Column::one("ownerEmail", Type::Text),
        Column::one("contactEmail", Type::Text),
        Column::one("sourceFolder", Type::Text),
        Column::one("datasetName", Type::Text),
        Column::one("creationLocation", Type::Text),
        Column::one("creationTime", Type::Instant),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
        Column::one("createdBy", Type::Text),
        Column::one("size", Type::Integer),
        Column::one("packedSize", Type::Integer),
        Column::one("numberOfFiles", Type::Integer),
        Column::one("isPublished", Type::Boolean),
        Column::one("validationStatus", Type::Text),
        Column::one("runNumber", Type::Text),
        Column::at("archivable", "datasetlifecycle.archivable", Type::Boolean),
        Column::at("retrievable", "datasetlifecycle.retrievable", Type::Boolean),
        Column::at("archiveStatusMessage", "datasetlifecycle.archiveStatusMessage", Type::Text),
        Column::at("retrieveStatusMessage", "datasetlifecycle.retrieveStatusMessage", Type::Text),
        Column::many("keywords", Type::Text),
        Column::many("proposalIds", Type::Text),
        Column::many("sampleIds", Type::Text),
        Column::many("instrumentIds", Type::Text),
        Column::many("principalInvestigators", Type::Text),
        Column::many("inputDatasets", Type::Text),
    ],
    indexes: &[
        Index::on(&["createdAt"]),
        Index::on(&["creationTime"]),
        Index::on(&["class", "createdAt"]),
        Index::on(&["sourceFolder"]),
        Index::on(&["datasetName"]),
        Index::on(&["size"]),
    ],
    facets: &[
        Facet::values("type"),
        Facet::values("keywords"),
        Facet::values("creationLocation"),
        Facet::values("ownerGroup"),
        Facet::values("accessGroups"),
        Facet::values("isPublished"),
        Facet::values("owner"),
        Facet::values("proposalIds"),
        Facet::values("sampleIds"),
        Facet::values("instrumentIds"),
        Facet::values("principalInvestigators"),
        Facet::values("datasetlifecycle.archiveStatusMessage"),
        Facet::values("datasetlifecycle.retrieveStatusMessage"),
        Facet::days("creationTime"),
        Facet {
            name: METADATA_KEYS,
            path: "scientificMetadata",
            counts: Counts::Strings(scientific::add_keys),
        },
    ],
    class_fields: &["ownerGroup", "accessGroups", "isPublished", "sharedWith"],
    text: Text::AllStrings,
    patterns: &["datasetName", "sourceFolder"],
    ..Kind::named("scicat_dataset")
};

/// The facet of metadata keys, each with its human-readable name.
pub(crate) const METADATA_KEYS: &str = "namedMetadataKeys";

/// The list of files of a block.
pub(crate) const FILES: &str = "dataFileList";
/// What people search for among the files of all blocks: their paths.
const FILE_PATTERNS: &[&str] = &["dataFileList.path"];
/// By what else files of all blocks are found, and by what they are sorted.
const FILE_VALUES: &[&str] = &[
    "dataFileList.path",
    "dataFileList.size",
    "dataFileList.time",
    "dataFileList.chk",
    "dataFileList.uid",
    "dataFileList.gid",
    "dataFileList.perm",
];

/// Lists of the original files of a dataset.
pub(crate) static ORIG_DATABLOCK: Kind = Kind {
    id_path: Some("_id"),
    columns: &[
        Column::one("datasetId", Type::Text),
        Column::one("ownerGroup", Type::Text),
        Column::one("size", Type::Integer),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
    ],
    indexes: &[Index::on(&["datasetId"]), Index::on(&["createdAt"])],
    facets: &[Facet::values("ownerGroup")],
    class_fields: CLASS_FIELDS,
    links: LINKS,
    members: Some(FILES),
    patterns: FILE_PATTERNS,
    member_values: FILE_VALUES,
    search: Search::Exact,
    ..Kind::named("scicat_origdatablock")
};

/// Archived packages of a dataset.
pub(crate) static DATABLOCK: Kind = Kind {
    id_path: Some("_id"),
    columns: &[
        Column::one("datasetId", Type::Text),
        Column::one("archiveId", Type::Text),
        Column::one("ownerGroup", Type::Text),
        Column::one("size", Type::Integer),
        Column::one("createdAt", Type::Instant),
    ],
    indexes: &[Index::on(&["datasetId"]), Index::unique(&["archiveId"])],
    class_fields: CLASS_FIELDS,
    links: LINKS,
    members: Some(FILES),
    patterns: FILE_PATTERNS,
    member_values: FILE_VALUES,
    search: Search::Exact,
    ..Kind::named("scicat_datablock")
};

pub(crate) const CLASS_FIELDS: &[&str] = &["ownerGroup", "accessGroups", "isPublished", "sharedWith"];

pub(crate) const LINKS: &[Link] = &[Link { relation: "dataset", path: "datasetId", to: "scicat_dataset" }];

/// Attachments by their id.
pub(crate) static ATTACHMENT: Kind = Kind {
    id_path: Some("aid"),
    columns: &[
        Column::one("ownerGroup", Type::Text),
        Column::one("caption", Type::Text),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
        Column { name: "targetIds", path: TARGETS, ty: Type::Text, arity: pinakes_store::Arity::Many },
    ],
    indexes: &[Index::on(&["createdAt"])],
    class_fields: &["ownerGroup", "accessGroups", "isPublished", "sharedWith"],
    search: Search::Exact,
    ..Kind::named("scicat_attachment")
};

/// Samples by their own id.
pub(crate) static SAMPLE: Kind = Kind {
    id_path: Some("sampleId"),
    columns: &[
        Column::one("sampleName", Type::Text),
        Column::one("owner", Type::Text),
        Column::one("ownerGroup", Type::Text),
        Column::one("type", Type::Text),
        Column::one("description", Type::Text),
        Column::one("proposalId", Type::Text),
        Column::one("parentSampleId", Type::Text),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
    ],
    indexes: &[
        Index::on(&["createdAt"]),
        Index::on(&["class", "createdAt"]),
        Index::on(&["description"]),
        Index::on(&["proposalId"]),
        Index::on(&["sampleName"]),
    ],
    facets: &[
        Facet::values("ownerGroup"),
        Facet::values("type"),
        Facet { name: METADATA_KEYS, path: QUANTITIES, counts: Counts::Strings(scientific::add_keys) },
    ],
    class_fields: &["ownerGroup", "accessGroups", "isPublished", "sharedWith"],
    text: Text::AllStrings,
    identifiers: &[Identifier { scheme: "sample", path: "sampleId" }],
    ..Kind::named("scicat_sample")
};

/// Proposals by their own id.
pub(crate) static PROPOSAL: Kind = Kind {
    id_path: Some("proposalId"),
    columns: &[
        Column::one("title", Type::Text),
        Column::one("type", Type::Text),
        Column::one("ownerGroup", Type::Text),
        Column::one("email", Type::Text),
        Column::one("firstname", Type::Text),
        Column::one("lastname", Type::Text),
        Column::one("pi_email", Type::Text),
        Column::one("pi_lastname", Type::Text),
        Column::one("parentProposalId", Type::Text),
        Column::one("numberOfDatasets", Type::Integer),
        Column::one("startTime", Type::Instant),
        Column::one("endTime", Type::Instant),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
        Column::many("instrumentIds", Type::Text),
    ],
    indexes: &[
        Index::on(&["createdAt"]),
        Index::on(&["startTime"]),
        Index::on(&["class", "createdAt"]),
        Index::on(&["parentProposalId"]),
    ],
    facets: &[
        Facet::values("type"),
        Facet::values("ownerGroup"),
        Facet::values("instrumentIds"),
        Facet::values("pi_lastname"),
        Facet::values("lastname"),
        Facet::values("parentProposalId"),
        Facet::days("startTime"),
        Facet::days("endTime"),
        Facet { name: METADATA_KEYS, path: "metadata", counts: Counts::Strings(scientific::add_keys) },
    ],
    class_fields: &["ownerGroup", "accessGroups", "isPublished", "sharedWith"],
    text: Text::AllStrings,
    identifiers: &[Identifier { scheme: "proposal", path: "proposalId" }],
    ..Kind::named("scicat_proposal")
};

/// Instruments by pid.
pub(crate) static INSTRUMENT: Kind = Kind {
    id_path: Some("pid"),
    columns: &[
        Column::one("uniqueName", Type::Text),
        Column::one("name", Type::Text),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
    ],
    indexes: &[Index::unique(&["uniqueName"]), Index::on(&["name"])],
    facets: &[Facet {
        name: METADATA_KEYS,
        path: "customMetadata",
        counts: Counts::Strings(scientific::add_keys),
    }],
    text: Text::AllStrings,
    identifiers: &[Identifier { scheme: "pid", path: "pid" }],
    ..Kind::named("scicat_instrument")
};

/// Policies by owner group.
pub(crate) static POLICY: Kind = Kind {
    id_path: Some("ownerGroup"),
    columns: &[
        Column::at("object_id", "_id", Type::Text),
        Column::many("manager", Type::Text),
        Column::one("tapeRedundancy", Type::Text),
        Column::one("autoArchive", Type::Boolean),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
    ],
    indexes: &[Index::unique(&["object_id"])],
    search: Search::Exact,
    ..Kind::named("scicat_policy")
};

/// Jobs by their id.
pub(crate) static JOB: Kind = Kind {
    id_path: Some("_id"),
    columns: &[
        Column::one("type", Type::Text),
        Column::one("statusCode", Type::Text),
        Column::one("ownerUser", Type::Text),
        Column::one("ownerGroup", Type::Text),
        Column::one("contactEmail", Type::Text),
        Column::one("createdBy", Type::Text),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
        Column {
            name: "datasetPids",
            path: "jobParams.datasetList.pid",
            ty: Type::Text,
            arity: pinakes_store::Arity::Many,
        },
    ],
    indexes: &[Index::on(&["createdAt"]), Index::on(&["ownerUser"]), Index::on(&["statusCode"])],
    facets: &[
        Facet::values("type"),
        Facet::values("statusCode"),
        Facet::values("ownerGroup"),
        Facet::values("ownerUser"),
        Facet::days("createdAt"),
        Facet { name: "jobStatusMessage", path: "statusCode", counts: pinakes_store::Counts::Values },
        Facet { name: "emailJobInitiator", path: "contactEmail", counts: pinakes_store::Counts::Values },
        Facet { name: "creationTime", path: "createdAt", counts: pinakes_store::Counts::Days },
    ],
    class_fields: &["ownerGroup", "accessGroups"],
    text: pinakes_store::Text::AllStrings,
    ..Kind::named("scicat_job")
};

/// Pending actions of jobs, by an id of their own.
pub(crate) static JOB_ACTION: Kind = Kind { id_path: Some("_id"), ..Kind::named("scicat_job_action") };

/// Published data by DOI.
pub(crate) static PUBLISHED_DATA: Kind = Kind {
    id_path: Some("doi"),
    columns: &[
        Column::one("title", Type::Text),
        Column::one("status", Type::Text),
        Column::one("createdBy", Type::Text),
        Column::one("createdAt", Type::Instant),
        Column::one("updatedAt", Type::Instant),
        Column::one("registeredTime", Type::Instant),
        Column::many("datasetPids", Type::Text),
    ],
    indexes: &[Index::on(&["createdAt"]), Index::on(&["status"])],
    text: Text::AllStrings,
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    ..Kind::named("scicat_published_data")
};

/// Settings by the user's id.
pub(crate) static USER_SETTINGS: Kind =
    Kind { id_path: Some("userId"), ..Kind::named("scicat_user_settings") };

/// Entries of history.
pub(crate) static HISTORY: Kind = Kind {
    columns: &[
        Column::one("subsystem", Type::Text),
        Column::one("documentId", Type::Text),
        Column::one("operation", Type::Text),
        Column::one("user", Type::Text),
        Column::one("timestamp", Type::Instant),
    ],
    indexes: &[Index::on(&["documentId"]), Index::on(&["timestamp"])],
    search: Search::Declared,
    ..Kind::named("scicat_history")
};

/// The path of the ids of records that an attachment belongs to.
pub(crate) const TARGETS: &str = "relationships.targetId";

/// The field that holds quantities.
pub(crate) const QUANTITIES: &str = "sampleCharacteristics";
