//! What the server says about itself: `/api/info`.

use http::Method;

use crate::app::Call;
use crate::envelope;
use crate::error::Answer;
use crate::routes::Routes;

/// The version of Dataverse whose interface this is.
const VERSION: &str = "6.11";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/info/version", version).elsewhere(Method::GET, "/api", version)
}

async fn version(_: Call) -> Answer {
    envelope::ok(serde_json::json!({"version": VERSION, "build": env!("CARGO_PKG_VERSION")}))
}
