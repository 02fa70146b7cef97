//! Text search by PostgreSQL where no search index is available: the words are a column of the record, written with it.

use crate::TextQuery;
use crate::postgres::words;

/// Returns the SQL condition that a record's text satisfies the query bound to parameter `n`, for a kind with text.
pub(crate) fn condition(n: usize) -> String {
    format!("r.words @@ to_tsquery('pinakes', ?{n})")
}

/// Returns the query in the database's own syntax; empty when it can find nothing.
pub(crate) fn match_text(query: &TextQuery) -> String {
    words::query(query)
}
