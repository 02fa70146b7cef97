//! The routes of users.

use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::users::composite::{by_id, by_username, list, show_self};
use crate::users::user::USERS;
use crate::users::{forgotten, pins, staging, user_tenants};

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .with(|routes| {
            crate::platform::collection::routes_at(routes, &USERS, "/users-keycloak/users", "users-keycloak")
        })
        .with(pins::routes)
        .with(staging::routes)
        .with(user_tenants::routes)
        .with(forgotten::routes)
        .get("/users-keycloak/_self", Access::User, show_self)
        .get("/bl-users", Access::to("users-bl.collection.get"), list)
        .get("/bl-users/_self", Access::User, show_self)
        .get("/bl-users/by-username/{name}", Access::to("users-bl.item.get"), by_username)
        .get("/bl-users/by-id/{id}", Access::to("users-bl.item.get"), by_id)
}
