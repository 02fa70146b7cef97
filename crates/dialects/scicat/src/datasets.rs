//! Datasets: the kind, and the forms in which versions 3 and 4 of the API show it (section 4 of the contract).
//!
//! A stored body is the v4 form up to `__v`, followed by the scalars that only v3 shows, so that either answer
//! is a slice of the stored bytes: v3 sends all of it, v4 all up to `__v`, v3's read by pid adds `history`.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod facets;
pub(crate) mod include;
pub(crate) mod incoming;
pub(crate) mod lifecycle;
pub(crate) mod metadata_schema;
pub(crate) mod read;
pub(crate) mod shape;
pub(crate) mod v4;

use axum::Router;
use axum::routing::{get, post};
use bytes::{BufMut as _, Bytes, BytesMut};
use pinakes_store::{Column, Counts, Facet, Index, Kind, Text, Type};
use serde_json::{Map, Value};

use crate::app::Scicat;
use crate::dto;
use crate::fullquery::Search;
use crate::history::{self, Tracked};
use crate::import::complete;
use crate::import::sorts::{Imported, Marks};
use crate::resource::Resource;
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

/// Datasets, for the rest of the dialect.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&DATASET],
    tracked: &[Tracked {
        name: history::DATASETS,
        kind: &DATASET,
        readers: |it| &it.history_access_dataset_groups,
    }],
    imported: &[Imported {
        name: "dataset",
        plural: "datasets",
        kind: &DATASET,
        table: || dto::dataset::v4(),
        complete: complete::dataset,
        marks: &[
            Marks { with: &["sourceFolder"], ..Marks::rank(3) },
            Marks { with: &["type", "contactEmail"], ..Marks::rank(12) },
        ],
    }],
    ..Resource::of_routes(routes)
};

fn routes() -> Router<Scicat> {
    Router::new().merge(routes_v3()).merge(routes_v4())
}

fn routes_v3() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/datasets", get(read::list).post(create::create_v3))
        .route("/api/v3/datasets/isvalid", post(create::is_valid_v3))
        .route("/api/v3/datasets/findone", get(read::find_one))
        .route("/api/v3/datasets/count", get(read::count))
        .route("/api/v3/datasets/fullquery", get(read::full_query))
        .route("/api/v3/datasets/fullfacet", get(facets::full_facet))
        .route("/api/v3/datasets/metadatakeys", get(facets::metadata_keys))
        .route(
            "/api/v3/datasets/{pid}",
            get(read::by_pid).patch(change::patch_v3).put(change::put_v3).delete(change::delete_v3),
        )
        .route("/api/v3/datasets/{pid}/datasetlifecycle", get(lifecycle::get).patch(lifecycle::patch))
        .route("/api/v3/datasets/{pid}/appendtoarrayfield", post(change::append_to_array_field))
        .route("/api/v3/datasets/{pid}/thumbnail", get(read::thumbnail))
}

fn routes_v4() -> Router<Scicat> {
    Router::new()
        .route("/api/v4/datasets", get(v4::list).post(create::create_v4))
        .route("/api/v4/datasets/isvalid", post(create::is_valid_v4))
        .route("/api/v4/datasets/findone", get(v4::find_one))
        .route("/api/v4/datasets/count", get(v4::count))
        .route("/api/v4/datasets/fullfacet", get(v4::full_facet))
        .route("/api/v4/datasets/metadatakeys", get(v4::metadata_keys))
        .route("/api/v4/datasets/public", get(v4::list_public))
        .route("/api/v4/datasets/public/findone", get(v4::find_one_public))
        .route("/api/v4/datasets/public/count", get(v4::count_public))
        .route("/api/v4/datasets/public/fullfacet", get(v4::full_facet_public))
        .route("/api/v4/datasets/public/metadatakeys", get(v4::metadata_keys_public))
        .route("/api/v4/datasets/public/{pid}", get(v4::by_pid_public))
        .route(
            "/api/v4/datasets/{pid}",
            get(v4::by_pid).patch(change::patch_v4).put(change::put_v4).delete(change::delete_v4),
        )
        .route("/api/v4/datasets/{pid}/datasetlifecycle", get(lifecycle::get).patch(lifecycle::patch))
}

/// The facet of metadata keys, each with its human name.
pub(crate) const METADATA_KEYS: &str = "namedMetadataKeys";

/// How datasets are searched.
pub(crate) static SEARCH: Search =
    Search { kind: &DATASET, quantities: "scientificMetadata", quantity_key: "scientific" };

/// The scalars of v3 and the lists of which they show the first element.
const SCALARS: [(&str, &str); 5] = [
    ("proposalId", "proposalIds"),
    ("sampleId", "sampleIds"),
    ("instrumentId", "instrumentIds"),
    ("principalInvestigator", "principalInvestigators"),
    ("investigator", "principalInvestigators"),
];

/// What begins the part that only v3 shows. No JSON string can contain it: its quotes would be escaped there.
const CORE_END: &[u8] = br#","__v":"#;

/// Turns the scalars of a v3 body into the lists that are stored. A scalar that was not sent leaves an empty list.
pub(crate) fn scalars_to_lists(body: &mut Map<String, Value>) {
    for (scalar, list) in SCALARS {
        match body.shift_remove(scalar) {
            Some(Value::Null) | None => {}
            Some(value) => {
                body.insert(list.to_owned(), Value::Array(vec![value]));
            }
        }
    }
}

/// Puts the end of a stored body in its place: `__v`, then the scalars of v3.
pub(crate) fn seal(body: &mut Map<String, Value>) {
    let version = body.shift_remove("__v").unwrap_or_else(|| Value::from(0));
    for (scalar, _) in SCALARS {
        body.shift_remove(scalar);
    }
    body.insert("__v".to_owned(), version);
    let is_raw = body.get("type").and_then(Value::as_str) == Some("raw");
    for (scalar, list) in SCALARS {
        // Raw datasets have no investigator beside their principal one.
        if is_raw && scalar == "investigator" {
            continue;
        }
        let first = body.get(list).and_then(Value::as_array).and_then(|it| it.first());
        if let Some(first @ Value::String(_)) = first {
            let first = first.clone();
            body.insert(scalar.to_owned(), first);
        }
    }
}

/// A stored body as v4 shows it.
pub(crate) fn v4_bytes(body: &Bytes) -> Bytes {
    let Some(at) = memchr::memmem::rfind(body, CORE_END) else { return body.clone() };
    let after = &body[at + CORE_END.len()..];
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = at + CORE_END.len() + digits;
    if body.get(end) == Some(&b'}') {
        return body.clone();
    }
    let mut core = BytesMut::with_capacity(end + 1);
    core.put_slice(&body[..end]);
    core.put_u8(b'}');
    core.freeze()
}

/// A stored body as v3's read by pid shows it.
pub(crate) fn with_history(body: &Bytes) -> Bytes {
    const HISTORY: &[u8] = br#","history":[]}"#;
    let end = body.len().saturating_sub(1);
    let mut whole = BytesMut::with_capacity(end + HISTORY.len());
    whole.put_slice(&body[..end]);
    whole.put_slice(HISTORY);
    whole.freeze()
}

/// The version of the API that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    V3,
    V4,
}

impl Api {
    /// What a dataset made through it carries as `version`.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V4 => "4",
        }
    }

    /// A stored body as this version shows it in lists.
    pub(crate) fn bytes(self, body: &Bytes) -> Bytes {
        match self {
            Self::V3 => body.clone(),
            Self::V4 => v4_bytes(body),
        }
    }
}
