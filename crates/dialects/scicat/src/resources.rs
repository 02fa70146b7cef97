//! The list of all resources. From it come the kinds that are stored, the routes, the words of paths, and what
//! imports and exports know.

use std::sync::LazyLock;

use pinakes_store::Kind;

use crate::resource::Resource;

/// All of them. Exports write records in this order, what others refer to first.
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

/// Every kind of record that the dialect keeps, to be declared when the catalogue is opened.
pub static KINDS: LazyLock<Vec<&'static Kind>> =
    LazyLock::new(|| RESOURCES.iter().flat_map(|it| it.kinds).copied().collect());
