//! The basis of all FOLIO modules: the gateway, permissions, collections of records, CQL.
//!
//! | file | what |
//! |---|---|
//! | `app.rs` | the starting point of a handler: the caller, the tenant, the parts of the server |
//! | `routes.rs`, `permissions.rs` | routes with the permission that each requires; who holds which |
//! | `collection/`, `cql/` | collections of records, the query language |
//! | `error.rs`, `json.rs`, `coerce.rs`, `dates.rs` | error answers, the spacing of JSON, types of values, points in time |
//! | `values.rs`, `hrids.rs`, `meta.rs` | values of requests, human-readable ids, records about a tenant |
//! | `chore.rs` | the input of recurring work |
//! | `listed.rs` | entries of records in browse lists |
//! | `tenants.rs` | the gateway's own endpoints |
//! | `settings.rs`, `limits.rs` | the site's settings, and bounds |

pub mod app;
pub(crate) mod chore;
mod coerce;
pub mod collection;
pub mod cql;
pub mod dates;
pub mod error;
pub(crate) mod hrids;
pub mod json;
pub(crate) mod limits;
pub(crate) mod listed;
pub(crate) mod meta;
pub mod permissions;
pub mod routes;
pub mod settings;
pub(crate) mod tenants;
pub(crate) mod values;
