//! Operations and their rows, as they are stored.

use pinakes_store::{Column, Expr, Index, Kind, Query, Search, Type, View};
use serde_json::{Map, Value};

use crate::platform::collection::{Collection, Metadata};
use crate::platform::cql::Names;
use crate::platform::error::{Fault, FolioError};

/// Operations.
pub(crate) static OPERATIONS: Collection = Collection {
    permission: "bulk-operations",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("status", Type::Text),
            Column::one("entityType", Type::Text),
            Column::one("userId", Type::Text),
            Column::one("startTime", Type::Instant),
        ],
        indexes: &[Index::on(&["startTime"])],
        search: Search::Folded,
        ..Kind::named("folio_bulk_operation")
    },
    names: Names {
        fields: &["identifierType", "approach", "operationType", "endTime", "hrId"],
        ..Names::PLAIN
    },
    metadata: Metadata::Off,
    is_served: false,
    ..Collection::named("/bulk-operations", "bulkOperations", "folio_bulk_operation")
};

/// A row of an operation: `{operation, n, identifier, recordId?, before?, after?, state, error?}`.
pub(crate) static ROW: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("operation", Type::Text),
        Column::one("n", Type::Integer),
        Column::one("state", Type::Text),
        Column::one("recordId", Type::Text),
    ],
    indexes: &[Index::on(&["operation", "n"]), Index::on(&["operation", "recordId"])],
    ..Kind::named("folio_bulk_row")
};

pub(crate) fn refused(message: impl Into<String>, name: &str, value: &str) -> FolioError {
    FolioError::unprocessable(Fault::new(message).with(name, value))
}

/// Reads an operation. Errors: 404.
pub(crate) fn operation(view: &mut View<'_>, id: &str) -> Result<Map<String, Value>, FolioError> {
    match view.get(&OPERATIONS.kind, id)?.map(|it| it.json()).transpose()? {
        Some(Value::Object(found)) => Ok(found),
        _ => Err(FolioError::not_found(format!("BulkOperation was not found by id={id}"))),
    }
}

/// Returns the rows of an operation that are in one of the given states, in order.
pub(crate) fn rows(
    view: &mut View<'_>,
    id: &str,
    states: &[&str],
    window: (u64, u64),
) -> Result<Vec<Value>, FolioError> {
    let query = Query::filter(in_states(id, states)).sorted("n", pinakes_store::Direction::Ascending);
    let found = view.find(&ROW, &query.window(window.0, window.1))?;
    Ok(found.iter().map(pinakes_store::Record::json).collect::<Result<_, _>>()?)
}

pub(crate) fn in_states(id: &str, states: &[&str]) -> Expr {
    let states = states.iter().map(|it| (*it).into()).collect();
    Expr::Is("operation".into(), id.into()).and(Expr::In("state".into(), states))
}
