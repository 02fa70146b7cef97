//! The list of all resources. The stored kinds, the routes, the words of paths, and the types for import and
//! export are derived from it.

use std::sync::LazyLock;

use pinakes_store::Kind;

use crate::resource::Resource;

/// All resources. Exports write records in this order; records that others refer to come first.
pub(crate) static RESOURCES: [&Resource; 15] = [
    &crate::datasets::RESOURCE,
    &crate::blocks::RESOURCE,
    &crate::attachments::RESOURCE,
    &crate::samples::RESOURCE,
    &crate::proposals::RESOURCE,
    &crate::instruments::RESOURCE,
    &crate::policies::RESOURCE,
    &crate::jobs::RESOURCE,
    &crate::published_data::RESOURCE,
    &crate::users::RESOURCE,
    &crate::site::RESOURCE,
    &crate::history::RESOURCE,
    &crate::auth::RESOURCE,
    &crate::logbooks::RESOURCE,
    &crate::openapi::RESOURCE,
];

/// Every kind of record that the dialect stores, to be declared when the catalogue is opened.
pub static KINDS: LazyLock<Vec<&'static Kind>> =
    LazyLock::new(|| RESOURCES.iter().flat_map(|it| it.kinds).copied().collect());
