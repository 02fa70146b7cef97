//! A collection as it is declared, and who writes its records.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use http::StatusCode;
use pinakes_accounts::Entropy;
use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, View};
use serde_json::{Map, Value};

use crate::platform::cql::{Clause, Names};
use crate::platform::dates;
use crate::platform::error::{Fault, FolioError};
use crate::platform::hrids::{Numbered, Reserved};

/// Every collection of the dialect, handed down from where they are listed.
pub type Collections = &'static [&'static Collection];

/// The collection whose lists have that name.
pub(crate) fn by_list(collections: Collections, list: &str) -> Option<&'static Collection> {
    collections.iter().copied().find(|it| it.list == list)
}

/// The collection of a kind that lies higher than who needs it, and so cannot be named there.
///
/// Errors: 500 when none of the collections keeps such records.
pub(crate) fn by_kind(collections: Collections, kind: &str) -> Result<&'static Collection, FolioError> {
    collections.iter().copied().find(|it| it.kind.name == kind).ok_or_else(|| {
        let message =
            format!("no collection keeps records of the kind {kind}; list the one that does in modules.rs");
        FolioError::text(StatusCode::INTERNAL_SERVER_ERROR, message)
    })
}

/// A collection.
#[derive(Debug)]
pub struct Collection {
    /// Where it lives: `/material-types`.
    pub path: &'static str,
    /// Name of the list in answers: `mtypes`.
    pub list: &'static str,
    /// Its kind in the store; `id_path` is `id`.
    pub kind: Kind,
    /// Name of the table in FOLIO's messages: `material_type`.
    pub table: &'static str,
    /// What permissions begin with: `inventory-storage.material-types`.
    pub permission: &'static str,
    /// What a record looks like.
    pub schema: Schema,
    /// Values that must be unique.
    pub unique: &'static [Unique],
    /// References to other collections.
    pub references: &'static [Reference],
    /// What the names in queries stand for.
    pub names: Names,
    /// Optimistic locking.
    pub locking: Locking,
    /// `metadata` and the form of its dates.
    pub metadata: Metadata,
    /// Records that lists leave out unless a parameter asks for them.
    pub unless_asked: Option<UnlessAsked>,
    /// What its human-readable ids are numbered as.
    pub numbered: Option<Numbered>,
    /// How the module says that a record is not there: what it calls a record, and the exception. Most say nothing.
    pub missing: Option<(&'static str, &'static str)>,
    /// How the module that FOLIO has for it refuses.
    pub manner: Manner,
    /// The text of a 404, where the module has one of its own.
    pub gone: Option<&'static str>,
    /// The text of a 400 for an id or a value that is taken, where the module has one of its own.
    pub taken: Option<&'static str>,
    /// Whether its lists say `resultInfo`, as those of most modules do.
    pub has_result_info: bool,
    /// Rules of its own.
    pub hooks: Hooks,
    /// Records of a new tenant: a JSON array, or empty.
    pub reference_data: &'static str,
    /// Whether the handlers of this module serve it; otherwise a module of its own does.
    pub is_served: bool,
}

/// Records that lists leave out unless they are asked for.
#[derive(Debug, Clone, Copy)]
pub struct UnlessAsked {
    /// Parameters any of which asks for them.
    pub parameters: &'static [&'static str],
    /// The boolean property that they have.
    pub hidden: &'static str,
}

/// What a record must look like.
#[derive(Debug)]
pub struct Schema {
    /// Dotted paths that must be there and not null.
    pub required: &'static [&'static str],
    /// Types of properties, by dotted path; others may be anything.
    pub types: &'static [(&'static str, Kinds)],
    /// Names of the properties that there are, apart from `id`, `metadata` and `_version`; empty for any.
    pub known: &'static [&'static str],
    /// Names of list properties that are `[]` when not given.
    pub lists: &'static [&'static str],
    /// Properties with the JSON that stands for them when not given.
    pub defaults: &'static [(&'static str, &'static str)],
}

impl Schema {
    /// Anything goes.
    pub const OPEN: Self = Self { required: &[], types: &[], known: &[], lists: &[], defaults: &[] };
}

/// Types of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// A string.
    Text,
    /// A UUID.
    Uuid,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A boolean.
    Boolean,
    /// A list.
    List,
    /// An object.
    Object,
}

/// A value that two records must not share.
#[derive(Debug)]
pub struct Unique {
    /// Name of the column of the unique index.
    pub column: &'static str,
    /// What a client is told; `{value}` stands for the value. Empty: FOLIO's text of a database rule.
    pub message: &'static str,
}

/// A reference to a record of another collection.
#[derive(Debug)]
pub struct Reference {
    /// Dotted path of the id; lists are entered.
    pub path: &'static str,
    /// Where it points.
    pub to: fn() -> &'static Collection,
}

/// Whether `_version` guards against lost updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// It does not.
    Off,
    /// It does; the first version is this.
    From(u64),
}

/// Whether records say who made and changed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// They do not.
    Off,
    /// With dates as most modules write them.
    Rmb,
    /// With dates as mod-entities-links writes them.
    Micros,
}

/// Completes or refuses a record; the last argument is what it replaces.
pub type Prepare =
    fn(&mut Txn<'_>, &Writer, &mut Map<String, Value>, Option<&Value>) -> Result<(), FolioError>;

/// Rules of a collection beyond its declaration.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// Completes or refuses a record before it is checked and stored; `old` is what it replaces.
    pub prepare: Prepare,
    /// Answers a clause of a query about records of other kinds, which the collections keep; `None` when it is about this
    /// one.
    pub foreign: fn(&mut View<'_>, Collections, &Clause) -> Result<Option<Expr>, FolioError>,
    /// Does what else a stored record brings about; `old` is what it replaced.
    pub stored: fn(&mut Txn<'_>, &Writer, &Value, Option<&Value>) -> Result<(), FolioError>,
    /// Refuses that a record goes, or does what else that brings about.
    pub deleting: fn(&mut Txn<'_>, &Writer, &Value) -> Result<(), FolioError>,
    /// Completes records for those who read them; without it the stored bytes are sent.
    pub shown: Option<Shown>,
}

/// Completes records that are about to be shown.
pub type Shown = fn(&mut View<'_>, &mut [Value]) -> Result<(), FolioError>;

impl Hooks {
    /// None.
    pub const NONE: Self = Self {
        prepare: |_, _, _, _| Ok(()),
        foreign: |_, _, _| Ok(None),
        stored: |_, _, _, _| Ok(()),
        deleting: |_, _, _| Ok(()),
        shown: None,
    };
}

pub(crate) const NAME_AND_CODE: &[Column] = &[
    Column::one("name", Type::Folded),
    Column::one("code", Type::Folded),
    Column::one("source", Type::Folded),
];

pub(crate) const BY_NAME_AND_CODE: &[Index] = &[Index::on(&["name"]), Index::on(&["code"])];

impl Collection {
    /// The answer when there is no record of that id.
    pub fn not_found(&self, id: &str) -> FolioError {
        let Some((name, exception)) = self.missing else {
            return FolioError::not_found(self.gone.unwrap_or_default());
        };
        let fault =
            Fault::new(format!("{name} with ID [{id}] was not found")).ty(exception).code("not-found");
        FolioError::faults(StatusCode::NOT_FOUND, vec![fault])
    }

    /// Whether a query may name a field: it is one of those declared, by its whole path or, for a property of the record
    /// itself, by its name.
    pub fn declares(&self, names: &Names, index: &str) -> bool {
        const ALWAYS: [&str; 6] = ["id", "metadata", "_version", "tags", "tags.tagList", "customFields"];
        const DATES: [&str; 4] = [
            "metadata.createdDate",
            "metadata.updatedDate",
            "metadata.createdByUserId",
            "metadata.updatedByUserId",
        ];
        let path = names.path(index);
        let is_own = !path.contains('.');
        let fits = |declared: &str| {
            declared == path || is_own && declared.split('.').next().is_some_and(|it| it == path)
        };
        let schema = &self.schema;
        path != index
            || ALWAYS.iter().chain(&DATES).any(|it| fits(it))
            || [schema.required, schema.known, schema.lists, names.fields, names.anywhere, names.whole]
                .into_iter()
                .flatten()
                .any(|it| fits(it))
            || schema.types.iter().map(|it| it.0).any(fits)
            || schema.defaults.iter().map(|it| it.0).any(fits)
            || names.elements.iter().any(|(list, field)| fits(list) || path == format!("{list}.{field}"))
            || self.kind.columns.iter().map(|it| it.path).any(fits)
            || self.references.iter().map(|it| it.path).any(fits)
    }

    /// A collection with a name and a code, both indexed, as most reference data is; to be completed by struct update
    /// syntax.
    pub const fn named(path: &'static str, list: &'static str, kind: &'static str) -> Self {
        Self {
            path,
            list,
            kind: Kind {
                id_path: Some("id"),
                columns: NAME_AND_CODE,
                indexes: BY_NAME_AND_CODE,
                ..Kind::named(kind)
            },
            table: kind,
            permission: path,
            schema: Schema::OPEN,
            unique: &[],
            references: &[],
            names: Names { whole: &["code"], ..Names::PLAIN },
            locking: Locking::Off,
            metadata: Metadata::Rmb,
            unless_asked: None,
            numbered: None,
            missing: None,
            manner: Manner::Rmb,
            gone: None,
            taken: None,
            has_result_info: true,
            hooks: Hooks::NONE,
            reference_data: "",
            is_served: true,
        }
    }
}

/// Who writes, and when. Made anew for each run of a transaction.
#[derive(Debug)]
pub struct Writer {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// UUID of the user; none for the server itself.
    pub user: Option<String>,
    /// Makes ids.
    pub entropy: Entropy,
    /// Every collection: a record that another refers to stays.
    pub collections: Collections,
    /// Records of other collections that this transaction has found to be there.
    pub(super) known: RefCell<HashSet<(&'static str, String)>>,
    /// Human-readable ids that this transaction has set aside.
    reserved: RefCell<HashMap<Numbered, Reserved>>,
}

impl Writer {
    /// Of its parts.
    pub fn new(now_ms: i64, user: Option<String>, entropy: Entropy, collections: Collections) -> Self {
        Self { now_ms, user, entropy, collections, known: RefCell::default(), reserved: RefCell::default() }
    }

    /// A new UUID, greater than those made before.
    pub fn new_uuid(&self) -> String {
        self.entropy.uuid_at(self.now_ms).to_string()
    }

    /// Sets human-readable ids aside; see [`super::numbers::reserve`].
    pub(crate) fn reserve(&self, numbered: Numbered, reserved: Reserved) {
        self.reserved.borrow_mut().insert(numbered, reserved);
    }

    /// The next of those that were set aside.
    pub(crate) fn next_reserved(&self, numbered: Numbered) -> Option<String> {
        self.reserved.borrow_mut().get_mut(&numbered)?.take()
    }

    pub(super) fn metadata(&self, form: Metadata, old: Option<&Value>) -> Option<Value> {
        let now = match form {
            Metadata::Off => return None,
            Metadata::Rmb => dates::rmb(self.now_ms),
            Metadata::Micros => dates::micros(self.now_ms),
        };
        let before = old.and_then(|it| it.get("metadata"));
        let field = |name: &str| before.and_then(|it| it.get(name)).cloned();
        let user = || self.user.clone().map(Value::from);
        let created_by = if old.is_some() { field("createdByUserId") } else { user() };
        let mut map = Map::new();
        map.insert("createdDate".into(), field("createdDate").unwrap_or_else(|| now.as_str().into()));
        map.extend(created_by.map(|it| ("createdByUserId".to_owned(), it)));
        map.insert("updatedDate".into(), now.into());
        map.extend(user().map(|it| ("updatedByUserId".to_owned(), it)));
        Some(Value::Object(map))
    }
}

/// What a module of FOLIO is built on, as far as clients can see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Raml-module-builder: 400 in plain text for what cannot be read.
    Rmb,
    /// Spring: 422 `VALIDATION_ERROR` for it, 415 for a body that is not JSON, bounds on `limit` and `offset`.
    Spring,
    /// Spring as mod-entities-links has it: faults of a body are told by the exception and by `validation-error`.
    Links,
}
