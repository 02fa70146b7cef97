//! The routes of authorities.

use crate::authorities::authority::{AUTHORITIES, expire, heading_types, identifier_types, list};
use crate::authorities::{bulk, settings, source_files};
use crate::platform::collection::{self, in_manner};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let item = "/authority-storage/authorities/{id}";
    routes
        .get(AUTHORITIES.path, to("inventory-storage.authorities.collection.get"), list)
        .post(AUTHORITIES.path, to("inventory-storage.authorities.item.post"), |call| {
            in_manner(call, &AUTHORITIES, true, |call| collection::create(call, &AUTHORITIES))
        })
        .get(item, to("inventory-storage.authorities.item.get"), |call| collection::by_id(call, &AUTHORITIES))
        .delete(AUTHORITIES.path, to("inventory-storage.authorities.collection.delete"), |call| {
            collection::remove_by_query(call, &AUTHORITIES)
        })
        .put(item, to("inventory-storage.authorities.item.put"), |call| {
            in_manner(call, &AUTHORITIES, true, |call| collection::replace(call, &AUTHORITIES))
        })
        .delete(item, to("inventory-storage.authorities.item.delete"), |call| {
            collection::remove(call, &AUTHORITIES)
        })
        .post(
            "/authority-storage/expire/authorities",
            to("inventory-storage.authorities.item.delete"),
            expire,
        )
        .get(
            "/authority-identifier-types",
            to("inventory-storage.authority-identifier-types.collection.get"),
            identifier_types,
        )
        .get("/authority-heading-types", to("inventory-storage.authorities.collection.get"), heading_types)
        .post("/authority-storage/authorities/bulk", to("inventory-storage.authorities.bulk.post"), |call| {
            bulk::load(call, &AUTHORITIES)
        })
        .with(source_files::routes)
        .with(settings::routes)
}
