//! The declaration of a collection, and the writer of its records.

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

/// All collections of the dialect, passed down from the place where they are listed.
pub type Collections = &'static [&'static Collection];

/// Returns the collection whose list has that name.
pub(crate) fn by_list(collections: Collections, list: &str) -> Option<&'static Collection> {
    collections.iter().copied().find(|it| it.list == list)
}

/// Returns the collection of a kind; for code below that collection, which cannot import it.
///
/// Errors: 500 if no collection has that kind.
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
    /// Base path: `/material-types`.
    pub path: &'static str,
    /// Name of the list in answers: `mtypes`.
    pub list: &'static str,
    /// Its kind in the store; `id_path` is `id`.
    pub kind: Kind,
    /// Name of the table in FOLIO's messages: `material_type`.
    pub table: &'static str,
    /// Prefix of its permissions: `inventory-storage.material-types`.
    pub permission: &'static str,
    /// Requirements on its records.
    pub schema: Schema,
    /// Values that must be unique.
    pub unique: &'static [Unique],
    /// References to other collections.
    pub references: &'static [Reference],
    /// The meaning of names in queries.
    pub names: Names,
    /// Optimistic locking.
    pub locking: Locking,
    /// Whether records have `metadata`, and the format of its dates.
    pub metadata: Metadata,
    /// Records that lists omit unless a parameter asks for them.
    pub unless_asked: Option<UnlessAsked>,
    /// The sequence of its human-readable ids, if it has them.
    pub numbered: Option<Numbered>,
    /// How the module reports that a record does not exist: its name for a record, and the exception. Most have
    /// neither.
    pub missing: Option<(&'static str, &'static str)>,
    /// The error style of the corresponding FOLIO module.
    pub manner: Manner,
    /// The text of a 404, if the module has one of its own.
    pub gone: Option<&'static str>,
    /// The text of a 400 for a body with another id than the path, if the module refuses it; others take the path's.
    pub other_id: Option<&'static str>,
    /// The text of a 400 for an id or a value that is taken, if the module has one of its own.
    pub taken: Option<&'static str>,
    /// Whether a `PUT` with a value that another record has is refused with the message alone, as plain text (400), as
    /// in mod-users; a `POST` is refused with 422.
    pub is_put_refused_plainly: bool,
    /// Whether its lists contain `resultInfo`, as those of most modules do.
    pub has_result_info: bool,
    /// Rules of its own.
    pub hooks: Hooks,
    /// Initial records of a new tenant: a JSON array, or empty.
    pub reference_data: &'static str,
    /// Whether the handlers of this module serve it; otherwise another module does.
    pub is_served: bool,
}

/// Records that lists omit unless asked for.
#[derive(Debug, Clone, Copy)]
pub struct UnlessAsked {
    /// Parameters, any of which includes them.
    pub parameters: &'static [&'static str],
    /// The boolean property that marks them.
    pub hidden: &'static str,
}

/// The requirements on a record.
#[derive(Debug)]
pub struct Schema {
    /// Dotted paths that must be present and not null.
    pub required: &'static [&'static str],
    /// Types of properties, by dotted path; other properties may have any type.
    pub types: &'static [(&'static str, Kinds)],
    /// Names of all allowed properties, apart from `id`, `metadata` and `_version`; empty if any are allowed.
    pub known: &'static [&'static str],
    /// Names of list properties that default to `[]`.
    pub lists: &'static [&'static str],
    /// Properties with their default values, as JSON.
    pub defaults: &'static [(&'static str, &'static str)],
}

impl Schema {
    /// A schema without requirements.
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

/// A value that must be unique among the records.
#[derive(Debug)]
pub struct Unique {
    /// Name of the column of the unique index.
    pub column: &'static str,
    /// The error message; `{value}` stands for the value. Empty: FOLIO's text for a database constraint.
    pub message: &'static str,
}

/// A reference to a record of another collection.
#[derive(Debug)]
pub struct Reference {
    /// Dotted path of the id, including inside lists.
    pub path: &'static str,
    /// The collection that it refers to.
    pub to: fn() -> &'static Collection,
}

/// Whether `_version` protects against lost updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// No.
    Off,
    /// Yes; the first version is this number.
    From(u64),
}

/// Whether records contain who created and changed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// No.
    Off,
    /// Yes, with dates in the format of most modules.
    Rmb,
    /// Yes, with dates in the format of mod-entities-links.
    Micros,
}

/// Completes or refuses a record; the last argument is the record it replaces.
pub type Prepare =
    fn(&mut Txn<'_>, &Writer, &mut Map<String, Value>, Option<&Value>) -> Result<(), FolioError>;

/// Rules of a collection beyond its declaration.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// Completes or refuses a record before it is checked and stored; `old` is the record it replaces.
    pub prepare: Prepare,
    /// Evaluates a clause about records of other kinds, which are found in the collections; `None` if the clause is
    /// about this kind.
    pub foreign: fn(&mut View<'_>, Collections, &Clause) -> Result<Option<Expr>, FolioError>,
    /// Applies the consequences of storing a record; `old` is the record it replaced.
    pub stored: fn(&mut Txn<'_>, &Writer, &Value, Option<&Value>) -> Result<(), FolioError>,
    /// Refuses the deletion of a record, or applies its consequences.
    pub deleting: fn(&mut Txn<'_>, &Writer, &Value) -> Result<(), FolioError>,
    /// Completes records for reading; if there is none, the stored bytes are sent.
    pub shown: Option<Shown>,
}

/// Completes records that are about to be shown.
pub type Shown = fn(&mut View<'_>, &mut [Value]) -> Result<(), FolioError>;

impl Hooks {
    /// No hooks.
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
    /// Builds the answer for an id that does not exist.
    pub fn not_found(&self, id: &str) -> FolioError {
        let Some((name, exception)) = self.missing else {
            return FolioError::not_found(self.gone.unwrap_or_default());
        };
        let fault =
            Fault::new(format!("{name} with ID [{id}] was not found")).ty(exception).code("not-found");
        FolioError::faults(StatusCode::NOT_FOUND, vec![fault])
    }

    /// Checks whether a query may name a field: it is declared, by its whole path or, for a top-level property, by its
    /// name.
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

    /// Declares a collection with a name and a code, both indexed, like most reference data; to be completed with
    /// struct update syntax.
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
            other_id: None,
            taken: None,
            is_put_refused_plainly: false,
            has_result_info: true,
            hooks: Hooks::NONE,
            reference_data: "",
            is_served: true,
        }
    }
}

/// Who writes, and when. Created anew for each run of a transaction.
#[derive(Debug)]
pub struct Writer {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// UUID of the user; `None` for the server itself.
    pub user: Option<String>,
    /// Source of ids.
    pub entropy: Entropy,
    /// All collections, needed to check whether other records refer to one that is deleted.
    pub collections: Collections,
    /// Records of other collections that are known in this transaction to exist.
    pub(super) known: RefCell<HashSet<(&'static str, String)>>,
    /// Human-readable ids that this transaction has reserved.
    reserved: RefCell<HashMap<Numbered, Reserved>>,
}

impl Writer {
    /// Creates a writer from its parts.
    pub fn new(now_ms: i64, user: Option<String>, entropy: Entropy, collections: Collections) -> Self {
        Self { now_ms, user, entropy, collections, known: RefCell::default(), reserved: RefCell::default() }
    }

    /// Returns a new UUID, greater than those created before.
    pub fn new_uuid(&self) -> String {
        self.entropy.uuid_at(self.now_ms).to_string()
    }

    /// Reserves human-readable ids; see [`super::numbers::reserve`].
    pub(crate) fn reserve(&self, numbered: Numbered, reserved: Reserved) {
        self.reserved.borrow_mut().insert(numbered, reserved);
    }

    /// Returns the next reserved id.
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

/// The framework of a FOLIO module, as far as clients notice it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Raml-module-builder: 400 in plain text for unreadable input.
    Rmb,
    /// Spring: 422 `VALIDATION_ERROR` for it, 415 for a body that is not JSON, limits on `limit` and `offset`.
    Spring,
    /// Spring as in mod-entities-links: faults of a body are reported with the exception and `validation-error`.
    Links,
}
