//! What the statements of a kind are, whichever engine runs them.

/// Chunks of members that a database sends at once.
pub(crate) const STEP_CHUNKS: u32 = 8;

/// The statements of one kind. Their parameters are described for the embedded engine; in PostgreSQL a record is one
/// row, and `postgres/records.rs` describes the parameters.
pub(crate) struct KindStatements {
    /// Narrow row: key or NULL, id, version, sequence, class, columns, list and its length. No `RETURNING`: the
    /// embedded engine would copy every page it touches, to be able to undo the statement alone.
    pub(crate) insert_row: String,
    /// Body: key, bytes.
    pub(crate) insert_body: String,
    /// Key, version, sequence, class, columns.
    pub(crate) update_row: String,
    /// The same, then list and its length.
    pub(crate) update_row_and_list: String,
    /// Key, bytes.
    pub(crate) update_body: String,
    /// Key.
    pub(crate) delete_row: String,
    /// Key.
    pub(crate) delete_body: String,
    /// Whole record: id.
    pub(crate) by_id: String,
    /// Whole records: set of ids.
    pub(crate) by_ids: String,
    /// Whole record: key; in PostgreSQL whole records: set of keys.
    pub(crate) by_key: String,
    /// Whole records, without a condition, in PostgreSQL: the rows are `r`.
    pub(crate) records: String,
    /// 1 when the id exists.
    pub(crate) has: String,
    /// Value and key, one statement for each declared column; empty for columns with one value.
    pub(crate) insert_many: Vec<String>,
    /// Value and key, as `insert_many`.
    pub(crate) delete_many: Vec<String>,
    /// Chunk of members: list, position, number, bytes.
    pub(crate) insert_members: String,
    /// Chunks of a list from a position on: list, position.
    pub(crate) members: String,
    /// Chunks of lists, in PostgreSQL: set of lists.
    pub(crate) members_of_lists: String,
    /// Members of a list: list.
    pub(crate) delete_members: String,
}
