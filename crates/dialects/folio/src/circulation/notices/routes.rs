//! The routes of notices.

use crate::circulation::notices::{mail, messages, render_template, sessions};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// Adds the routes of notices and mail.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/template-request", Access::to("template-request.post"), render_template)
        .with(mail::routes)
        .with(messages::routes)
        .with(sessions::routes)
}
