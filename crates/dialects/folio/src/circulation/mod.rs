//! Circulation: rules, due dates, check-out and check-in, loans and requests (sections 9 and 12 of the contract).
//!
//! What decides is plain code on plain data (`rules`, `due_date`, `calendar`, `loan_policy`); around it, one transaction
//! per request reads what it decides on and writes what follows.

mod book;
mod calendar;
pub(crate) mod check_in;
mod check_out;
mod due_date;
pub(crate) mod fees;
#[cfg(test)]
mod golden;
mod loan_policy;
pub(crate) mod loans;
mod moment;
mod neighbours;
mod openings;
mod overrides;
pub(crate) mod policies;
mod records;
pub(crate) mod requests;
pub(crate) mod rules;
mod rules_routes;
mod terms;

pub(crate) use terms::RULES;

use crate::permissions::Access;
use crate::routes::Routes;

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post(
            "/circulation/check-out-by-barcode",
            Access::to("circulation.check-out-by-barcode.post"),
            check_out::check_out,
        )
        .post(
            "/circulation/check-in-by-barcode",
            Access::to("circulation.check-in-by-barcode.post"),
            check_in::check_in,
        )
        .get(
            "/automated-patron-blocks/{id}",
            Access::to("automated-patron-blocks.collection.get"),
            fees::show_automated,
        )
        .with(rules_routes::routes)
        .with(loans::routes)
        .with(requests::routes)
        .with(openings::routes)
}
