//! Declarations of kinds of records: data from a dialect, from which the store derives tables and indexes.

use crate::identifiers;
use crate::{Fields, Listing, Path, Result, StoreError, Texts};

/// Columns that every kind's table has.
const OWN_COLUMNS: [&str; 9] =
    ["key", "id", "version", "sequence", "class", "list", "n_members", "body", "words"];

/// A kind of record. Declared once as a `static`; its name is unique over all dialects.
#[derive(Debug)]
pub struct Kind {
    /// Lower-case letters, digits and `_`, e.g. `scicat_dataset`; part of table names.
    pub name: &'static str,
    /// Dotted path in the body that repeats the record's id, so that conditions on it use the id's index.
    pub id_path: Option<&'static str>,
    /// Fields of the body that queries and sorts use without reading bodies.
    pub columns: &'static [Column],
    /// Ordered indexes over columns. Each costs a B-tree update on every write.
    pub indexes: &'static [Index],
    /// Values that are counted incrementally over the records.
    pub facets: &'static [Facet],
    /// Paths (top-level field names) whose values together decide who may see a record. Records with
    /// equal values share a class; conditions on these fields are answered from the few classes.
    pub class_fields: &'static [&'static str],
    /// The part of the body that a text search looks in.
    pub text: Text,
    /// What the search index holds of a record. A kind with text has an index in any case.
    pub search: Search,
    /// Paths of single-valued text columns in which people search for parts of texts: regular expressions and
    /// substrings on them are answered without reading all texts. Each costs the search index about thirty terms per
    /// record. A path below [`Kind::members`] is one of texts of the members, for
    /// [`View::find_members`](crate::View::find_members).
    pub patterns: &'static [&'static str],
    /// Lists that can be browsed, see [`View::browse`](crate::View::browse); a kind with any has a search index. Not
    /// for kinds whose records have classes.
    pub lists: &'static [Listing],
    /// Dotted paths of texts or whole numbers by which records are joined with those of other kinds
    /// ([`crate::Expr::Joined`]), such as an id and the paths that hold another record's id; each is a column of the
    /// search index.
    pub joins: &'static [&'static str],
    /// Identifiers of the record that are valid across kinds (DOI, barcode, …).
    pub identifiers: &'static [Identifier],
    /// References to other records.
    pub links: &'static [Link],
    /// Name of the list field whose members are stored as child rows, outside the body.
    pub members: Option<&'static str>,
    /// Paths of what members have ([`Kind::members`] and a name) by whose values they are found and sorted
    /// ([`View::find_members`](crate::View::find_members)): of each record, the search index holds which values its
    /// members have, as far as they are not too many, and between which they lie.
    pub member_values: &'static [&'static str],
}

impl Kind {
    /// Returns a kind with a name and nothing else, to be completed by struct update syntax.
    pub const fn named(name: &'static str) -> Self {
        Self {
            name,
            id_path: None,
            columns: &[],
            indexes: &[],
            facets: &[],
            class_fields: &[],
            text: Text::None,
            search: Search::None,
            patterns: &[],
            lists: &[],
            joins: &[],
            identifiers: &[],
            links: &[],
            members: None,
            member_values: &[],
        }
    }

    /// Returns a copy of the declaration.
    pub(crate) const fn again(&self) -> Self {
        Self { ..*self }
    }

    /// Returns the column declared for `path`, if any.
    pub fn column_of(&self, path: &Path) -> Option<&'static Column> {
        self.columns.iter().find(|column| path.is_dotted(column.path))
    }

    /// Returns the column of that name.
    pub fn column_named(&self, name: &str) -> Option<&'static Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Returns the facet of that name.
    pub fn facet_named(&self, name: &str) -> Option<&'static Facet> {
        self.facets.iter().find(|facet| facet.name == name)
    }

    /// Returns whether `path` is one of the fields that determine the record's class, or lies below one. Positions in a
    /// list do not count: a class keeps its lists as sets.
    pub fn is_class_field(&self, path: &Path) -> bool {
        let is_position = |step: &String| Path::position(step).is_some();
        match path.as_steps() {
            [first, below @ ..] => {
                self.class_fields.contains(&first.as_str()) && !below.iter().any(is_position)
            }
            [] => false,
        }
    }

    /// Returns the part of a path below a member of [`Kind::members`].
    pub(crate) fn below_member<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(self.members?)?.strip_prefix('.')
    }

    /// Returns whether `path` is the path that repeats the id.
    pub fn is_id(&self, path: &Path) -> bool {
        self.id_path.is_some_and(|id_path| path.is_dotted(id_path))
    }

    /// Returns whether the kind has a search index.
    pub(crate) fn is_searched(&self) -> bool {
        self.search != Search::None || self.text != Text::None || !self.lists.is_empty()
    }

    /// Checks that a table can be created from the declaration.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(StoreError::Query(format!("kind {:?}: {what}", self.name)));
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if self.name.is_empty() || !self.name.bytes().all(is_plain) {
            return refuse("a kind's name is made of a-z, 0-9 and _".to_owned());
        }
        for (index, column) in self.columns.iter().enumerate() {
            let same = |name: &str| name.eq_ignore_ascii_case(column.name);
            if OWN_COLUMNS.iter().any(|name| same(name)) {
                return refuse(format!(
                    "column {:?} has a name that the store uses; give another",
                    column.name
                ));
            }
            if self.columns[..index].iter().any(|it| same(it.name)) {
                return refuse(format!("column {:?} is declared twice", column.name));
            }
        }
        for name in self.indexes.iter().flat_map(|index| index.columns) {
            let column = self.column_named(name);
            if *name != "class" && column.is_none_or(|it| it.arity == Arity::Many) {
                return refuse(format!("an index is on {name:?}, which is no column with one value"));
            }
        }
        if !self.lists.is_empty() && !self.class_fields.is_empty() {
            return refuse("lists show what all may see, and its records have classes".to_owned());
        }
        for path in self.patterns {
            let is_text = |it: &Column| it.arity == Arity::One && matches!(it.ty, Type::Text | Type::Folded);
            let is_column = self.columns.iter().any(|it| it.path == *path && is_text(it));
            if !is_column && self.below_member(path).is_none() {
                return refuse(format!(
                    "patterns are on {path:?}, which is no text column with one value, and not below its members"
                ));
            }
        }
        for path in self.member_values {
            if self.below_member(path).is_none_or(|it| it.contains('.')) {
                return refuse(format!("{path:?} does not name what members have values of"));
            }
        }
        for index in self.indexes {
            let Uniqueness::UniqueAmong(name, _) = index.uniqueness else { continue };
            let is_text = |it: &Column| it.arity == Arity::One && it.ty == Type::Text;
            if !self.column_named(name).is_some_and(is_text) {
                return refuse(format!("an index is over records by {name:?}, which is no text column"));
            }
        }
        Ok(())
    }

    /// Returns the declaration as text: when it differs from the one a tenant was written with, columns, indexes and
    /// counts are rebuilt from the bodies. Counting functions are represented by the facet's name.
    pub(crate) fn declaration(&self) -> String {
        let facets = self.facets.iter().map(Facet::declared);
        let is_folded = self.identifiers.iter().any(|it| identifiers::is_folded(it.scheme));
        let folded = if is_folded { " folded" } else { "" };
        format!(
            "id {:?}; columns {:?}; facets {:?}; classes {:?}; text {:?}; identifiers {:?}{folded}; links {:?}; members {:?}{INDEXES}{:?}",
            self.id_path,
            self.columns,
            facets.collect::<Vec<_>>(),
            self.class_fields,
            self.text,
            self.identifiers,
            self.links,
            self.members,
            self.indexes
        )
    }
}

/// Splits a declaration's text into its parts: id, columns, facets, classes, text, identifiers, links, members,
/// indexes. `None` for a text of another form.
pub(crate) fn sections(declaration: &str) -> Option<[&str; 9]> {
    const BEGIN: [&str; 8] = [
        "; columns ",
        "; facets ",
        "; classes ",
        "; text ",
        "; identifiers ",
        "; links ",
        "; members ",
        INDEXES,
    ];
    let mut parts = [""; 9];
    let mut rest = declaration;
    for (number, begin) in BEGIN.into_iter().enumerate() {
        (parts[number], rest) = rest.split_once(begin)?;
    }
    parts[8] = rest;
    Some(parts)
}

/// Introduces the indexes in a declaration's text, which come last.
const INDEXES: &str = "; indexes ";

/// Returns whether two declarations differ in their indexes at most, so that no body has to be read.
pub(crate) fn differ_in_indexes_only(a: &str, b: &str) -> bool {
    let before_indexes = |text: &str| text.rsplit_once(INDEXES).map(|it| it.0.to_owned());
    before_indexes(a).is_some() && before_indexes(a) == before_indexes(b)
}

/// A field of the body stored beside it, for conditions and sorting.
#[derive(Debug)]
pub struct Column {
    /// SQL-safe name, unique in the kind without regard to case; not `key`, `id`, `version`, `sequence`, `class`,
    /// `list`, `n_members`, `body` or `words`, which are the store's own.
    pub name: &'static str,
    /// Dotted path in the body.
    pub path: &'static str,
    /// Type of the value; a value of another type is stored as absent.
    pub ty: Type,
    /// One value or a list of them.
    pub arity: Arity,
}

impl Column {
    /// Returns a column named as its path, with one value.
    pub const fn one(path: &'static str, ty: Type) -> Self {
        Self { name: path, path, ty, arity: Arity::One }
    }
    /// Returns a column named as its path, over a list of values; always indexed.
    pub const fn many(path: &'static str, ty: Type) -> Self {
        Self { name: path, path, ty, arity: Arity::Many }
    }
    /// Returns a copy of the declaration.
    pub(crate) const fn again(&self) -> Self {
        Self { ..*self }
    }
    /// Returns a column with a name of its own, for a nested path.
    pub const fn at(name: &'static str, path: &'static str, ty: Type) -> Self {
        Self { name, path, ty, arity: Arity::One }
    }
}

/// How many values a column holds for one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// At most one.
    One,
    /// Any number; stored in a separate table, indexed by value.
    Many,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// JSON string.
    Text,
    /// JSON number that is whole, exact up to 64 bits.
    Integer,
    /// JSON number.
    Real,
    /// JSON boolean.
    Boolean,
    /// ISO 8601 date and time as a JSON string; stored as milliseconds since 1970.
    Instant,
    /// JSON string, stored without case and accents ([`crate::fold()`]): for [`crate::Value::Folded`], unique indexes
    /// and sorts that ignore both.
    Folded,
}

/// An ordered index over columns; `class` may come first to serve sorted lists of one class.
#[derive(Debug)]
pub struct Index {
    /// Column names, in order. The name `class` stands for the record's class.
    pub columns: &'static [&'static str],
    /// Whether several records may have equal values.
    pub uniqueness: Uniqueness,
}

impl Index {
    /// Returns an index that allows equal values.
    pub const fn on(columns: &'static [&'static str]) -> Self {
        Self { columns, uniqueness: Uniqueness::Shared }
    }
    /// Returns an index that refuses equal values with [`crate::StoreError::Duplicate`].
    pub const fn unique(columns: &'static [&'static str]) -> Self {
        Self { columns, uniqueness: Uniqueness::Unique }
    }
    /// Returns a copy of the declaration.
    pub(crate) const fn again(&self) -> Self {
        Self { ..*self }
    }
    /// Returns whether the index holds every record.
    pub(crate) fn is_over_all(&self) -> bool {
        !matches!(self.uniqueness, Uniqueness::UniqueAmong(..))
    }
    /// Returns an index over the records whose `column`, of [`Type::Text`], is `value`; it refuses equal values among
    /// them with [`crate::StoreError::Duplicate`].
    pub const fn unique_among(
        column: &'static str,
        value: &'static str,
        columns: &'static [&'static str],
    ) -> Self {
        Self { columns, uniqueness: Uniqueness::UniqueAmong(column, value) }
    }
}

/// Whether an index refuses equal values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness {
    /// Equal values are allowed.
    Shared,
    /// Equal values are refused. Absent values are never equal.
    Unique,
    /// Equal values are refused among the records whose column has this text; the others are not in the index.
    UniqueAmong(&'static str, &'static str),
}

impl Uniqueness {
    /// Returns whether some equal values are refused.
    pub(crate) fn refuses(self) -> bool {
        self != Self::Shared
    }

    /// Returns the ` WHERE` clause of the records in the index; empty for all.
    pub(crate) fn condition_sql(self) -> String {
        match self {
            Self::UniqueAmong(column, value) => {
                format!(" WHERE \"{column}\" = '{}'", value.replace('\'', "''"))
            }
            Self::Shared | Self::Unique => String::new(),
        }
    }
}

/// A value that is counted over records.
#[derive(Debug)]
pub struct Facet {
    /// Name that queries use.
    pub name: &'static str,
    /// Dotted path in the body.
    pub path: &'static str,
    /// What is counted there.
    pub counts: Counts,
}

impl Facet {
    /// Counts the values of a field, each element of a list separately.
    pub const fn values(path: &'static str) -> Self {
        Self { name: path, path, counts: Counts::Values }
    }
    /// Returns the facet as it appears in a declaration's text.
    pub(crate) fn declared(&self) -> String {
        let counts = match self.counts {
            Counts::Values => "values",
            Counts::Days => "days",
            Counts::Strings(_) => "strings",
        };
        format!("{}:{}:{counts}", self.name, self.path)
    }
    /// Returns a copy of the declaration.
    pub(crate) const fn again(&self) -> Self {
        Self { ..*self }
    }
    /// Counts the days (UTC, `YYYY-MM-DD`) of an instant.
    pub const fn days(path: &'static str) -> Self {
        Self { name: path, path, counts: Counts::Days }
    }
}

/// What a facet counts at its path.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// The value, or each element of a list: text as it is, numbers and booleans as JSON writes them.
    Values,
    /// The day (UTC) of an instant.
    Days,
    /// The strings that the function extracts from the object, e.g. its keys.
    Strings(fn(&Fields<'_>, &mut Texts)),
}

/// The part of a body that is searched as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// Nothing.
    None,
    /// Every string in the body, at any depth; keys are not searched.
    AllStrings,
    /// The strings at these dotted paths.
    At(&'static [&'static str]),
}

/// The content of a kind's search index, which answers conditions on any path of the body, and sorts by columns and
/// counts facets under conditions, without reading bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// No index, unless the kind has text; then as `Exact`.
    None,
    /// The values of declared columns, and whatever else is in the same members of a body, as written: for large bodies
    /// of which searches ask for little. Other conditions read bodies.
    Declared,
    /// As `Declared`, without what tells absent values, lists and objects: for large bodies with many paths, of which
    /// searches ask for the values. Conditions on what is absent, on elements of lists and on whole lists and objects read
    /// bodies, as do sorts and counts by paths without a column.
    Values,
    /// Every value at every path as it is written.
    Exact,
    /// As `Exact`; in addition strings without case and accents, whole and word by word, for [`crate::Value::Folded`]
    /// and [`crate::Expr::Word`].
    Folded,
}

/// An identifier of the record that is valid across kinds.
#[derive(Debug)]
pub struct Identifier {
    /// E.g. `doi`, `orcid`, `barcode`.
    pub scheme: &'static str,
    /// Dotted path in the body; a list yields several.
    pub path: &'static str,
}

/// A reference from a record to another.
#[derive(Debug)]
pub struct Link {
    /// Name of the relation, e.g. `dataset`.
    pub relation: &'static str,
    /// Dotted path of the target's id in the body; a list yields several.
    pub path: &'static str,
    /// Name of the target's kind.
    pub to: &'static str,
}

/// A part of a kind's indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexShare {
    /// The index of words, which costs as much as all others.
    Words,
    Others,
}
