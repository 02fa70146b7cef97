//! Circulation: rules, due dates, check-out and check-in, loans and requests (sections 9 and 12 of the contract).
//!
//! Decisions are plain code on plain data (`rules`, `due_date`, `calendar`, `loan_policy`); around them, one
//! transaction per request reads the input and writes the result.

pub(crate) mod aging;
pub(crate) mod anonymise;
pub(crate) mod book;
pub(crate) mod calendar;
mod calendars;
pub(crate) mod check_in;
mod check_out;
pub(crate) mod courses;
mod due_date;
pub(crate) mod fees;
#[cfg(test)]
mod golden;
pub(crate) mod loan_policy;
pub(crate) mod loans;
pub(crate) mod moment;
pub(crate) mod neighbours;
pub(crate) mod notices;
mod openings;
pub(crate) mod overrides;
pub(crate) mod patron;
pub(crate) mod patron_blocks;
pub(crate) mod policies;
pub(crate) mod print_events;
pub(crate) mod records;
pub(crate) mod requests;
pub(crate) mod rules;
mod rules_routes;
pub(crate) mod slips;
mod storage;
pub(crate) mod terms;
mod transactions;
mod use_at_location;

pub(crate) use check_out::inactive;
pub(crate) use storage::{FEATURE_JOBS, LOCKS};
pub(crate) use terms::RULES;

use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post(
            "/circulation/check-out-by-barcode",
            Access::to("circulation.check-out-by-barcode.post"),
            check_out::check_out,
        )
        .post(
            "/circulation/check-out-by-barcode-dry-run",
            Access::to("circulation.check-out-by-barcode-dry-run.post"),
            check_out::dry_run,
        )
        .post(
            "/circulation/check-in-by-barcode",
            Access::to("circulation.check-in-by-barcode.post"),
            check_in::check_in,
        )
        .with(rules_routes::routes)
        .with(storage::routes)
        .with(use_at_location::routes)
        .with(loans::routes)
        .with(requests::routes)
        .with(openings::routes)
        .with(anonymise::routes)
        .with(slips::routes)
        .with(print_events::routes)
        .with(transactions::routes)
        .with(policies::setting_routes)
}
