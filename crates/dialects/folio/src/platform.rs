//! What every module of FOLIO stands on: the gateway, permissions, collections of records, CQL.
//!
//! | file | what |
//! |---|---|
//! | `app.rs` | what a handler starts from: who asks, for which tenant, with what |
//! | `routes.rs`, `permissions.rs` | routes with the permission that each needs; who holds which |
//! | `collection/`, `cql/` | collections of records, the query language |
//! | `error.rs`, `json.rs`, `coerce.rs`, `dates.rs` | refusals, the spacing of JSON, types of values, points in time |
//! | `values.rs`, `hrids.rs`, `meta.rs` | values of requests, human-readable ids, what is noted about a tenant |
//! | `chore.rs` | what work is given that is done from time to time |
//! | `listed.rs` | what records add to lists that are browsed |
//! | `tenants.rs` | the gateway's own endpoints |
//! | `settings.rs`, `limits.rs` | what a site sets, and bounds |

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
