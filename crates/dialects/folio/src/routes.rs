//! The route table, collected from all modules, and the mount of the dialect.

use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, StatusCode, Uri};
use pinakes_http::entrance::TENANT_HEADER;
use pinakes_http::{Context, Cors, DoubleSlashes, Entrance, FinalSlash, Mount, PathRules, TokenPlace};
use serde_json::Value;

use crate::circulation::{courses, fees, notices, patron, patron_blocks};
use crate::configuration::{acquisitions, notes, records, setting_entries};
use crate::data_import::{change_manager, copycat, mapping, metadata_provider, preview, profiles, uploads};
use crate::platform::app::Folio;
use crate::platform::error::{FolioError, render};
use crate::platform::routes::{Route, Routes};
use crate::platform::settings::Settings;
use crate::platform::tenants;
use crate::search::browse;
use crate::source_records::{source_storage, specifications};
use crate::users::{login, password_rules, perms, profile_pictures, user_import, user_settings};
use crate::{
    bulk_edit, chores, circulation, data_export, inventory, links, modules, oai, queries, quick_marc, search,
    timers,
};

/// Collects all routes of the dialect.
fn all() -> Routes {
    let routes = Routes::default()
        .with(login::routes)
        .with(crate::users::routes::routes)
        .with(perms::routes::routes)
        .with(tenants::routes)
        .with(source_storage::routes::routes)
        .with(specifications::routes)
        .with(data_export::routes)
        .with(profiles::routes)
        .with(mapping::routes::routes)
        .with(uploads::routes::routes)
        .with(change_manager::routes::routes)
        .with(metadata_provider::routes)
        .with(circulation::routes)
        .with(fees::routes::routes)
        .with(patron_blocks::routes)
        .with(patron::routes)
        .with(courses::routes)
        .with(password_rules::routes)
        .with(copycat::routes)
        .with(preview::routes)
        .with(queries::routes)
        .with(acquisitions::routes)
        .with(notices::routes::routes)
        .with(chores::routes)
        .with(timers::routes)
        .with(inventory::routes)
        .with(crate::authorities::routes::routes)
        .with(user_import::routes)
        .with(links::routes)
        .with(search::routes)
        .with(browse::routes)
        .with(bulk_edit::routes)
        .with(oai::routes)
        .with(notes::routes)
        .with(quick_marc::routes)
        .with(user_settings::routes)
        .with(profile_pictures::routes)
        .with(records::routes)
        .with(setting_entries::routes);
    modules::COLLECTIONS.iter().copied().filter(|it| it.is_served).fold(routes, Routes::collection)
}

/// Returns all routes with what they require of the caller.
pub fn table() -> Vec<Route> {
    all().table
}

/// Returns the part of a path that the dialect claims: the first segment. Other harvesting interfaces are also below
/// `/oai`, so two segments are claimed there.
fn base_path(path: &str) -> Option<String> {
    let mut words = path.split('/').skip(1);
    match (words.next()?, words.next()) {
        ("oai", Some(second)) => Some(format!("/oai/{second}")),
        (first, _) => Some(format!("/{first}")),
    }
}

/// Returns the base paths of the dialect.
fn base_paths(table: &[Route]) -> Vec<String> {
    let mut bases: Vec<String> = table.iter().filter_map(|it| base_path(&it.path)).collect();
    bases.push("/consortia".to_owned());
    bases.push("/entitlements".to_owned());
    bases.sort_unstable();
    bases.dedup();
    bases
}

/// FOLIO's clients send token and tenant in headers of the gateway; browsers send the token in a cookie.
const ENTRANCE: Entrance = Entrance {
    tokens: &[
        TokenPlace::Bearer,
        TokenPlace::Header("x-okapi-token"),
        TokenPlace::Cookie("folioAccessToken"),
    ],
    tenant_headers: &["x-okapi-tenant", TENANT_HEADER],
};

/// Builds the mount through which the shell serves the dialect.
pub fn mount(context: Context, settings: Settings) -> Mount {
    let origins = settings.cors_origins.clone();
    let Routes { router, table } = all();
    let app = Folio::new(context, settings, modules::COLLECTIONS, perms::catalogue::built_in(&table));
    app.imports.start();
    app.timers.start();
    let bases = base_paths(&table);
    let bases: Vec<&str> = bases.iter().map(String::as_str).collect();
    let router = router.fallback(nothing_there).method_not_allowed_fallback(nothing_there).with_state(app);
    Mount {
        entrance: ENTRANCE,
        path_rules: PathRules::default()
            .double_slashes(DoubleSlashes::Collapse)
            .final_slash(FinalSlash::Drop),
        openapi: Value::Null,
        cors: Cors::Listed(origins),
        refuse: |refusal| render(&refusal),
        ..Mount::new("folio", &bases, router)
    }
}

/// Answers `No suitable module found for path /x for tenant t`.
async fn nothing_there(State(app): State<Folio>, headers: HeaderMap, uri: Uri, _: Body) -> FolioError {
    let tenant = app.context.tenant_name(&headers).unwrap_or_default();
    let message = format!("No suitable module found for path {} for tenant {tenant}", uri.path());
    FolioError::text(StatusCode::NOT_FOUND, message)
}
