//! The record store: tenants, kinds, records, queries and transactions.
//!
//! A **record** is a JSON document with an id, of one [`Kind`], in one [`Tenant`], with a version. Its body is kept as
//! the bytes that will be sent; beside it are the columns, indexes, counts, identifiers and links that the kind
//! declares. Domain code is a synchronous closure over a snapshot ([`View`]) or a transaction ([`Txn`]); the changes of
//! a transaction are on disk when [`Tenant::write`] returns.
//!
//! ```
//! use pinakes_store::{Catalogue, Column, End, Expr, Kind, Limits, Location, Query, StoreError, Type, Weight};
//! use serde_json::json;
//!
//! static SAMPLE: Kind = Kind { columns: &[Column::one("mass", Type::Real)], ..Kind::named("sample") };
//! static KINDS: &[&Kind] = &[&SAMPLE];
//!
//! let folder = tempfile::tempdir()?;
//! let catalogue = Catalogue::open(Location::Folder(folder.path().into()), KINDS, Limits::default())?;
//! let tenant = catalogue.create_tenant("rcp1", "an institute")?;
//! tenant.write_blocking(|txn| -> Result<(), StoreError> {
//!     txn.insert(&SAMPLE, "s1", &json!({"mass": 2.5}))?;
//!     Ok(())
//! })?;
//! let heavy = Query::filter(Expr::Range("mass".into(), End::Included(2.0.into()), End::Open));
//! let found = tenant.read_blocking(|view| view.find(&SAMPLE, &heavy))?;
//! assert_eq!(found[0].id, "s1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod browse;
mod budget;
mod by_id;
mod catalogue;
mod caution;
mod cell;
mod check;
mod chunks;
mod classes;
mod columns;
mod copy;
mod counters;
mod distinct;
mod document;
mod error;
mod eval;
mod explain;
mod field_values;
mod find;
mod fold;
mod folders;
mod format;
mod identifiers;
mod index;
mod jobs;
mod join_keys;
mod joins;
mod kind;
mod kind_statements;
mod lease_table;
mod leases;
mod limits;
mod lists;
mod marks;
mod member_search;
mod members;
mod memory;
mod narrow;
mod ordered_hashes;
mod owners;
mod pace;
mod parts;
mod pending_links;
mod pipeline;
mod places;
mod plan;
mod postgres;
mod priority;
mod query;
mod ranked;
mod reads;
mod record;
mod remake;
mod remaker;
mod renumber;
mod row;
mod scan;
mod session;
mod sorted_rows;
mod sqlite;
mod statements;
mod strings;
mod tenant;
mod tenant_info;
mod text;
mod texts;
mod tree;
mod txn;
mod users;
mod view;
mod whole_lists;
mod word;

pub use budget::{Budget, Held};
pub use catalogue::{Catalogue, Location};
pub use copy::{Copied, CopiedKind, CopyProgress, CopyStage, copy_catalogue, copy_tenant};
pub use distinct::TextCounts;
pub use document::{Document, Part};
pub use error::{Result, StoreError};
pub use eval::matches;
pub use explain::explained;
pub use field_values::{Field, ValueCounts, number_text};
pub use fold::fold;
pub use folders::make_folder;
pub use index::Hurry;
pub use jobs::{Weight, WriteTimes};
pub use join_keys::JoinKeys;
pub use kind::{Arity, Column, Counts, Facet, Identifier, Index, Kind, Link, Search, Text, Type, Uniqueness};
pub use leases::{Heartbeat, Lease, QueuedJob};
pub use limits::Limits;
pub use lists::{Browsed, ListEntry, ListPlace, Listed, Listing, Wanted};
pub use member_search::{Member, MemberQuery};
pub use members::MemberFilter;
pub use owners::Owners;
pub use pipeline::pipeline;
pub use places::ScanPlace;
pub use priority::step_back;
pub use query::{Direction, End, Expr, FacetCount, Order, Path, Pattern, Query, TextPart, TextQuery, Value};
pub use ranked::{Ranked, Weighted};
pub use record::{Change, Class, ListId, Record};
pub use tenant::{Loading, ReadJob, Tenant, TenantStats};
pub use tenant_info::TenantInfo;
pub use texts::Texts;
pub use tree::{Fields, Name, Tree};
pub use txn::{Txn, Written};
pub use view::View;
pub use word::Word;
