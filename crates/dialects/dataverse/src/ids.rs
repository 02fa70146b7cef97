//! Numbers of objects: collections, datasets, files, versions and everything else share one sequence per tenant.
//!
//! A process reserves a range of numbers with one durable write and assigns them from memory, so that no record is
//! rewritten for each new object. Unused numbers of a range leave gaps, as in the original.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pinakes_http::Db;
use pinakes_store::{Kind, Txn};
use serde_json::json;

use crate::error::ApiError;

/// End of the last reserved range: one record `numbers` with `{"next": n}`, and one for each separate sequence.
pub(crate) static SEQUENCE: Kind = Kind::named("dataverse_sequence");

/// Id of that record.
const ID: &str = "numbers";
/// Numbers reserved at once.
const RANGE: i64 = 1000;
/// The first number of a new tenant; smaller ones are assigned by `bootstrap.rs`.
pub(crate) const FIRST: i64 = 10;

/// Larger numbers are not exact in the arithmetic of clients (2^53).
const LARGEST: i64 = 9_007_199_254_740_992;

/// Numbers for one write. A copy starts from the beginning, so that a closure that runs again assigns the same numbers.
#[derive(Debug, Clone, Copy)]
pub struct Ids {
    next: i64,
    end: i64,
}

impl Ids {
    /// Returns the next number.
    ///
    /// Errors: more numbers are taken than were reserved, which is a bug.
    pub fn next(&mut self) -> Result<i64, ApiError> {
        if self.end <= self.next {
            tracing::error!("a request used more numbers than it had reserved");
            return Err(ApiError::internal("More numbers are needed than were reserved."));
        }
        self.next += 1;
        Ok(self.next - 1)
    }
}

/// The ranges that this process has reserved, by tenant.
#[derive(Clone, Default)]
pub(crate) struct Ranges(Arc<Mutex<HashMap<String, Ids>>>);

impl Ranges {
    /// Reserves `n` numbers.
    pub(crate) async fn take(&self, db: &Db, n: i64) -> Result<Ids, ApiError> {
        let name = db.tenant().name();
        loop {
            if let Some(ids) = self.held(name, n) {
                return Ok(ids);
            }
            let size = RANGE.max(n);
            let next = db.write(move |txn| set_aside(txn, size)).await?;
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(name.to_owned(), Ids { next, end: next + size });
        }
    }

    fn held(&self, tenant: &str, n: i64) -> Option<Ids> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let range = all.get_mut(tenant).filter(|it| it.next + n <= it.end)?;
        range.next += n;
        Some(Ids { next: range.next - n, end: range.next })
    }
}

/// Returns the next number of a separate sequence, for kinds of objects with few records.
pub(crate) fn next_of(txn: &mut Txn<'_>, name: &str) -> Result<i64, ApiError> {
    let stored = txn.get(&SEQUENCE, name)?;
    let next = match stored {
        Some(record) => record.json()?["next"].as_i64().unwrap_or(1),
        None => 1,
    };
    txn.put(&SEQUENCE, name, &json!({"next": next + 1}))?;
    Ok(next)
}

/// Reserves a span of numbers that were assigned elsewhere, shifted behind all numbers that were assigned here. Returns
/// by how much it is shifted: not at all in a tenant without objects.
///
/// Errors: 400 for numbers that do not fit behind those of the tenant.
pub(crate) fn span_set_aside(txn: &mut Txn<'_>, (low, high): (i64, i64)) -> Result<i64, ApiError> {
    if low < FIRST || high < low || LARGEST < high {
        return Err(ApiError::bad_request(format!(
            "the numbers from {low} to {high} are none of objects; expected such from {FIRST} to {LARGEST}"
        )));
    }
    let stored = txn.get(&SEQUENCE, ID)?;
    let next = match stored {
        Some(record) => record.json()?["next"].as_i64().unwrap_or(FIRST),
        None => FIRST,
    };
    let distance = (next - low).max(0);
    if LARGEST < high + distance {
        return Err(ApiError::bad_request(format!(
            "the numbers from {low} to {high} do not fit behind {next}, where those of this tenant end"
        )));
    }
    txn.put(&SEQUENCE, ID, &json!({"next": high + distance + 1}))?;
    Ok(distance)
}

/// Reserves `n` numbers, and returns the first.
pub(crate) fn set_aside(txn: &mut Txn<'_>, n: i64) -> Result<i64, ApiError> {
    let stored = txn.get(&SEQUENCE, ID)?;
    let next = match stored {
        Some(record) => record.json()?["next"].as_i64().unwrap_or(FIRST),
        None => FIRST,
    };
    txn.put(&SEQUENCE, ID, &json!({"next": next + n}))?;
    Ok(next)
}
