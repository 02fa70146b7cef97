//! The routes of fees.

use crate::circulation::fees::{actions, actual_cost, reports};
use crate::platform::routes::Routes;

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.with(actions::routes).with(actual_cost::routes).with(reports::routes)
}
