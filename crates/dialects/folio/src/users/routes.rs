//! The routes of users.

use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::users::user::{USERS, by_id, by_username, show_self};
use crate::users::{pins, staging, user_tenants};

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .with(|routes| {
            crate::platform::collection::routes_at(routes, &USERS, "/users-keycloak/users", "users-keycloak")
        })
        .with(pins::routes)
        .with(staging::routes)
        .with(user_tenants::routes)
        .get("/users-keycloak/_self", Access::User, show_self)
        .get("/bl-users/_self", Access::User, show_self)
        .get("/bl-users/by-username/{name}", Access::to("users-bl.item.get"), by_username)
        .get("/bl-users/by-id/{id}", Access::to("users-bl.item.get"), by_id)
}
