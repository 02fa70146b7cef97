//! Records that the dialect keeps about a tenant.

use pinakes_store::Kind;

/// The record `tenant` contains the tenant's description if it was changed after creation; the record `reference` says
/// which reference data was loaded.
pub(crate) static META: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_meta") };
