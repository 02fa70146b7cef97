//! Users: their records, login, permissions, and importing them.

pub(crate) mod composite;
mod forgotten;
pub(crate) mod login;
pub(crate) mod password_rules;
pub(crate) mod perms;
pub(crate) mod pins;
pub(crate) mod profile_pictures;
pub(crate) mod routes;
pub(crate) mod staging;
pub mod user;
pub(crate) mod user_import;
pub(crate) mod user_settings;
pub(crate) mod user_tenants;
