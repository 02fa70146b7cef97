//! Datasets: their routes in versions 3 and 4 of the API (section 4 of the contract). `forms.rs` describes how each
//! version shows one.
//!
//! A stored body is the v4 form up to `__v`, followed by the scalars that only v3 shows, so that both answers are
//! slices of the stored bytes: v3 sends all of it, v4 everything up to `__v`, and v3's read by pid adds `history`.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod facets;
pub(crate) mod filling;
pub(crate) mod forms;
pub(crate) mod include;
pub(crate) mod incoming;
pub(crate) mod life;
pub(crate) mod lifecycle;
pub(crate) mod metadata_schema;
pub(crate) mod read;
pub(crate) mod schemas;
pub(crate) mod shape;
pub(crate) mod v4;

use axum::Router;
use axum::routing::{get, post};

use crate::app::Scicat;
use crate::dto;
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::DATASET;
use crate::resource::Resource;

/// The routes and kind of datasets.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&DATASET],
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
