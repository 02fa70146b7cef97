//! What origdatablocks (file lists) and datablocks (archived packages) share: a block belongs to a dataset,
//! keeps its list of files as members, and updates the dataset's sums by the difference (sections 5 and 7).

mod answers;
pub(crate) mod chunks;
mod files;
mod handlers;
mod metadata;
mod receive;
pub(crate) mod sorts;
mod visible;

use axum::Router;

use crate::app::Scicat;
use crate::dto::{datablock, origdatablock};
use crate::import::complete;
use crate::import::imported::{Imported, Marks};
use crate::kinds::{DATABLOCK, FILES, ORIG_DATABLOCK};
use crate::resource::Resource;

/// The routes and kinds of file lists and archived packages.
pub(crate) static RESOURCE: Resource = Resource {
    kinds: &[&ORIG_DATABLOCK, &DATABLOCK],
    imported: &[
        Imported {
            name: "origdatablock",
            plural: "origdatablocks",
            kind: &ORIG_DATABLOCK,
            table: || &origdatablock::ORIG_DATABLOCK,
            complete: complete::block,
            marks: &[Marks {
                with: &[FILES],
                one_of: &["datasetId", "rawDatasetId"],
                without: &["sourceFolder"],
                ..Marks::rank(2)
            }],
        },
        Imported {
            name: "datablock",
            plural: "datablocks",
            kind: &DATABLOCK,
            table: || &datablock::DATABLOCK,
            complete: complete::block,
            marks: &[Marks { with: &["archiveId"], without: &["jobParams"], ..Marks::rank(1) }],
        },
    ],
    ..Resource::of_routes(routes)
};

pub(crate) fn routes() -> Router<Scicat> {
    handlers::routes()
}
