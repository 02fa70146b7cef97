//! Which blocks a caller may see, and the filter of v4.

use pinakes_store::{Expr, Value as Condition};

use crate::app::{Asker, QueryText};
use crate::blocks::sorts::BlockType;
use crate::error::ScicatError;
use crate::filter::Filter;
use crate::strict;

/// Whether a route is for anonymous callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Public {
    Yes,
    No,
}

pub(crate) fn published() -> Expr {
    Expr::Is("isPublished".into(), Condition::Boolean(true))
}

/// Returns what a v4 route shows: public blocks on public routes, otherwise what the caller may see.
pub(crate) fn visible_v4(asker: &Asker, public: Public) -> Result<Expr, ScicatError> {
    match public {
        Public::Yes => Ok(published()),
        Public::No if asker.caller().is_anonymous() => Err(ScicatError::forbidden("Unauthorized access")),
        Public::No => Ok(asker.rights.visible()),
    }
}

pub(crate) fn filter_v4(query: &QueryText, sort: &BlockType) -> Result<Filter, ScicatError> {
    let mut known: Vec<&str> = sort.table.fields.iter().map(|it| it.name).collect();
    known.extend(["_id", "id", "createdAt", "updatedAt", "createdBy", "updatedBy", "__v", "dataset"]);
    strict::parse(query, sort.kind, &known)
}
