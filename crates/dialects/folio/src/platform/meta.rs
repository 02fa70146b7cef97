//! What the dialect notes about a tenant.

use pinakes_store::Kind;

/// What a tenant says of itself, where it was changed after it was made: the record `tenant`. Also what of the
/// reference data was loaded: the record `reference`.
pub(crate) static META: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_meta") };
