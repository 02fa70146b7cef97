//! The routes of permissions.

use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::users::perms::{add, by_id, catalogue, create, list, names, remove, replace, take_away};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let read = || Access::to("perms.users.get");
    let change = || Access::to("perms.users.item.put");
    routes
        .get("/perms/users", read(), list)
        .post("/perms/users", Access::to("perms.users.item.post"), create)
        .get("/perms/users/{id}", read(), by_id)
        .put("/perms/users/{id}", change(), replace)
        .delete("/perms/users/{id}", Access::to("perms.users.item.delete"), remove)
        .get("/perms/users/{id}/permissions", read(), names)
        .post("/perms/users/{id}/permissions", change(), add)
        .delete("/perms/users/{id}/permissions/{name}", change(), take_away)
        .with(catalogue::routes)
}
