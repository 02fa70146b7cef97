//! The index of a kind on disk: its fields, and how a record maps to them.

use tantivy::schema::{
    BytesOptions, Field, IndexRecordOption, JsonObjectOptions, NumericOptions, Schema, TextFieldIndexing,
    TextOptions,
};

use super::document::{DocumentBuilder, IndexDocument, Number};
use super::entries::{LISTS, entry_term, group_of, hash_key, hash_of};
use super::member_values::{MEMBER_VALUES, Summary, SummaryParts};
use super::members::OfMembers;
use super::read_members::ReadMembers;
use super::terms::{self, Sink, Tag};
use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::searched_text_of;
use crate::field_values::VALUE_BYTES;
use crate::lists::entries_of;
use crate::owners::join_hashes;
use crate::postgres::words::folded;
use crate::strings::unique_texts;
use crate::{Kind, Path, Result, StoreError, Text, Tree, Type, fold};

/// Must change whenever the index content for the same record changes: an index of another version is rebuilt.
const VERSION: u32 = 9;

/// Name of the tokenizer that splits the text into words.
pub(super) const CUTTER: &str = "pinakes";

/// Column of numbers at any path.
pub(super) const NUMBERS: &str = "n";
/// Column of points in time at any path, milliseconds since 1970.
pub(super) const INSTANTS: &str = "t";
/// Column of row keys.
pub(super) const KEY: &str = "key";
/// Column of sequence numbers.
pub(super) const SEQUENCE: &str = "sequence";
/// Column of the numbers of members.
pub(super) const MEMBERS: &str = "members";

/// The fields of a kind's index.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) schema: Schema,
    pub(super) terms: Field,
    pub(super) text: Field,
    /// Texts that are no whole terms are stored, each behind its path, for tests that terms cannot decide. Of one longer
    /// than [`VALUE_BYTES`] only the path is.
    pub(super) long_texts: Field,
    key: Field,
    sequence: Field,
    numbers: Field,
    instants: Field,
    lists: Field,
    /// A field for each column with one value, in their order.
    columns: Vec<Field>,
    /// A field for each facet.
    facets: Vec<Field>,
    /// A field for each path by which records are joined.
    joins: Vec<Field>,
    /// The number of members, if the kind has members.
    members: Option<Field>,
    /// Columns of [`Kind::member_values`], if the kind declares any.
    member_values: Option<Field>,
    read: ReadMembers,
    /// The bytes of each path of [`Kind::patterns`].
    patterns: Vec<Vec<u8>>,
    /// The bytes and the column name of each path of [`Kind::member_values`].
    member_paths: Vec<(Vec<u8>, String)>,
}

/// Returns the name of a sorted column.
pub(super) fn column_name(index: usize) -> String {
    format!("c{index}")
}

/// Returns the name of a facet's column.
pub(super) fn facet_name(index: usize) -> String {
    format!("f{index}")
}

/// Returns the name of the column of a path by which records are joined.
pub(super) fn join_name(index: usize) -> String {
    format!("j{index}")
}

/// Returns the name of the column of the numbers that a tag tells at a path.
pub(super) fn column_name_of(tag: Tag, path: &Path) -> String {
    format!("{NUMBERS}.{}", terms::key_of(tag, &terms::column_key(path.as_steps())))
}

/// Returns the name of the column of numbers, or points in time, at a path.
pub(super) fn path_column_name(family: &str, path: &Path) -> String {
    format!("{family}.{}", terms::column_key(path.as_steps()))
}

/// Returns what is stored before a long text at a path, of which this is the column name.
pub(super) fn stored_prefix(key: &str) -> String {
    // No name has a control character.
    format!("{key}\0")
}

impl Layout {
    pub(super) fn of(kind: &'static Kind) -> Self {
        let mut builder = Schema::builder();
        let terms = builder.add_bytes_field("terms", BytesOptions::default().set_indexed());
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(CUTTER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions)
            .set_fieldnorms(false);
        let text = builder.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
        let long_texts = builder.add_text_field("long_texts", TextOptions::default().set_stored());
        let fast = || NumericOptions::default().set_fast();
        let key = builder.add_i64_field(KEY, fast());
        let sequence = builder.add_i64_field(SEQUENCE, fast());
        let dynamic = || JsonObjectOptions::default().set_fast("raw");
        let numbers = builder.add_json_field(NUMBERS, dynamic());
        let instants = builder.add_json_field(INSTANTS, dynamic());
        let lists = builder.add_json_field(LISTS, dynamic());
        let texts = || TextOptions::default().set_fast("raw");
        let mut columns = Vec::new();
        for (index, column) in one_columns(kind).enumerate() {
            let name = column_name(index);
            columns.push(match column.ty {
                Type::Text | Type::Folded => builder.add_text_field(&name, texts()),
                Type::Integer | Type::Boolean | Type::Instant => builder.add_i64_field(&name, fast()),
                Type::Real => builder.add_f64_field(&name, fast()),
            });
        }
        let facets =
            (0..kind.facets.len()).map(|index| builder.add_text_field(&facet_name(index), texts())).collect();
        let joins =
            (0..kind.joins.len()).map(|index| builder.add_i64_field(&join_name(index), fast())).collect();
        let members = kind.members.map(|_| builder.add_i64_field(MEMBERS, fast()));
        let has_member_values = !kind.member_values.is_empty();
        let member_values = has_member_values.then(|| builder.add_json_field(MEMBER_VALUES, dynamic()));
        Self {
            schema: builder.build(),
            terms,
            text,
            long_texts,
            key,
            sequence,
            numbers,
            instants,
            lists,
            columns,
            facets,
            joins,
            members,
            member_values,
            read: ReadMembers::of(kind),
            patterns: kind.patterns.iter().map(|it| terms::path_bytes(Path::dotted(it).as_steps())).collect(),
            member_paths: kind
                .member_values
                .iter()
                .map(|it| Path::dotted(it))
                .map(|it| (terms::path_bytes(it.as_steps()), terms::column_key(it.as_steps())))
                .collect(),
        }
    }

    /// Returns the index document of a record; `document` is empty before and after.
    ///
    /// Errors: the body is not JSON.
    pub(super) fn document(
        &self,
        kind: &'static Kind,
        row: &Row,
        document: &mut DocumentBuilder,
    ) -> Result<IndexDocument> {
        let damaged =
            |error: serde_json::Error| StoreError::Damaged(format!("{} {:?}: {error}", kind.name, row.id));
        let tree: Tree<'_> = serde_json::from_slice(&row.body).map_err(damaged)?;
        let (body, taken) = self.read.take(kind, &tree);
        if !terms::walk(kind, &tree, &mut Terms { layout: self, document }) {
            document.clear();
            document.add_bytes(self.terms, &terms::beyond_term());
        }
        document.add_whole(self.key, row.key);
        document.add_whole(self.sequence, row.sequence);
        for term in [terms::id_term(&row.id), terms::key_term(row.key), terms::class_term(taken.class.0)] {
            document.add_bytes(self.terms, &term);
        }
        if kind.text != Text::None {
            let text = searched_text_of(kind, &body, || Ok(unique_texts(&tree))).map_err(damaged)?;
            document.add_text(self.text, &folded(&text));
        }
        for (field, cell) in self.columns.iter().zip(&taken.cells) {
            match cell {
                Cell::Text(text) => document.add_text(*field, text),
                Cell::Int(number) if self.is_real(*field) => {
                    document.add_number(*field, Number::Real(*number as f64));
                }
                Cell::Int(number) => document.add_whole(*field, *number),
                Cell::Real(number) => document.add_number(*field, Number::Real(*number)),
                _ => {}
            }
        }
        for (column, cell) in one_columns(kind).zip(&taken.cells) {
            let number = kind.patterns.iter().position(|it| *it == column.path);
            if let (Some(number), Cell::Text(text)) = (number, cell) {
                for gram in terms::grams_of(&fold(text)) {
                    let term = terms::term(&self.patterns[number], Tag::Gram, &gram);
                    document.add_bytes(self.terms, &term);
                }
            }
        }
        match &row.members.grams {
            Some(grams) => grams.iter().for_each(|(number, gram)| {
                let path = &self.patterns[usize::from(*number)];
                document.add_bytes(self.terms, &terms::term(path, Tag::Gram, gram));
            }),
            None => document.add_bytes(self.terms, &terms::many_grams_term()),
        }
        if let Some(field) = self.member_values {
            let mut parts = Summaries { terms: self.terms, field, document };
            for (number, (path, key)) in self.member_paths.iter().enumerate() {
                match &row.members.values {
                    Some(of_paths) => of_paths[number].write(path, key, &mut parts),
                    None => Summary::write_unknown(path, &mut parts),
                }
            }
        }
        let mut is_listed = true;
        for (number, list) in kind.lists.iter().enumerate() {
            for entry in entries_of(list.entries, &body) {
                match entry_term(number, &entry) {
                    Some(term) => document.add_bytes(self.terms, &term),
                    None => is_listed = false,
                }
                let hash = Number::Whole(hash_of(&group_of(&entry)));
                document.add_to_column(self.lists, &hash_key(number, &entry.traits), hash);
            }
        }
        if !is_listed {
            document.add_bytes(self.terms, &terms::unlisted_term());
        }
        for (index, values) in &taken.counted {
            values.values().for_each(|it| document.add_text(self.facets[*index], it));
        }
        for (field, path) in self.joins.iter().zip(kind.joins) {
            let hashes = join_hashes(&body, &Path::dotted(path));
            hashes.into_iter().for_each(|it| document.add_whole(*field, it));
        }
        if let Some(field) = self.members {
            document.add_whole(field, row.n_members);
        }
        Ok(document.finish())
    }

    fn is_real(&self, field: Field) -> bool {
        self.schema.get_field_entry(field).field_type().value_type() == tantivy::schema::Type::F64
    }
}

/// A record as the index reads it from the store.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: i64,
    pub(super) id: String,
    pub(super) version: i64,
    pub(super) sequence: i64,
    /// 0 if the kind has no members.
    pub(super) n_members: i64,
    pub(super) members: OfMembers,
    pub(super) body: bytes::Bytes,
}

/// Returns the fingerprint that an index must have been created with to be used: its layout, and the tenant's identity.
pub(super) fn fingerprint(kind: &'static Kind, store: &str) -> String {
    let lists: Vec<&str> = kind.lists.iter().map(|it| it.name).collect();
    // Kinds without keep the fingerprint that they had.
    let joins = if kind.joins.is_empty() { String::new() } else { format!(" {:?}", kind.joins) };
    let values = kind.member_values;
    let values = if values.is_empty() { String::new() } else { format!(" members {values:?}") };
    let declaration = format!(
        "{} {:?} {:?} {lists:?} {}{joins}{values}",
        kind.name,
        kind.search,
        kind.patterns,
        kind.declaration()
    );
    format!("{VERSION} {:016x} {store}", crate::document::fnv(declaration.as_bytes(), 0))
}

/// Adds terms to a document.
struct Terms<'t> {
    layout: &'t Layout,
    document: &'t mut DocumentBuilder,
}

impl Sink for Terms<'_> {
    fn term(&mut self, term: &[u8]) {
        self.document.add_bytes(self.layout.terms, term);
    }

    fn long_text(&mut self, key: &str, text: &str) {
        let stored = if text.len() <= VALUE_BYTES { text } else { "" };
        self.document.add_text(self.layout.long_texts, &format!("{}{stored}", stored_prefix(key)));
    }

    fn number(&mut self, key: &str, number: f64) {
        self.document.add_to_column(self.layout.numbers, key, Number::of(number));
    }

    fn instant(&mut self, key: &str, ms: i64) {
        self.document.add_to_column(self.layout.instants, key, Number::Whole(ms));
    }
}

/// Adds summaries of members to a document.
struct Summaries<'d> {
    terms: Field,
    field: Field,
    document: &'d mut DocumentBuilder,
}

impl SummaryParts for Summaries<'_> {
    fn term(&mut self, term: &[u8]) {
        self.document.add_bytes(self.terms, term);
    }

    fn number(&mut self, column: &str, number: Number) {
        self.document.add_to_column(self.field, column, number);
    }
}
