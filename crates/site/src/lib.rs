//! The pages for people: a front page, search over all dialects, and a page for each record.
//!
//! The site reads no records itself, and stores nothing but uploads in progress ([`KINDS`]). It sends requests to the
//! other dialects as clients do, on behalf of the visitor ([`pinakes_http::Neighbour`]): what a dialect refuses is not
//! shown. Pages are complete without scripts; their content security policy allows none, except that two types of pages
//! allow one of this server's own. Addresses are listed in `docs/site.md`.
//!
//! | file | what |
//! |---|---|
//! | `app.rs` | the state, and the visitor that every handler takes |
//! | `language.rs`, `data/texts.tsv` | the texts, in English and German |
//! | `pages.rs`, `templates/` | rendering pages |
//! | `record.rs` | the content of a record's page, and its citation |
//! | `front.rs`, `search.rs`, `facets.rs`, `suggest.rs` | the dialects that are served, search and its facets |
//! | `datasets.rs`, `deposits.rs`, `library.rs`, `works.rs` | the records of each dialect |
//! | `preview.rs`, `versions.rs` | files of deposits, and differences between versions |
//! | `deposit/` | depositing: drafts, the form, files, review and publication |
//! | `desk.rs`, `imports.rs`, `import_record.rs`, `operators.rs`, `log.rs` | for staff |
//! | `editing/` | editors of datasets' metadata, topics, and mapping profiles |
//! | `account.rs`, `users.rs` | the visitor's own account and tokens; all accounts, for those who manage them |
//! | `session.rs` | signing in and out |

mod account;
mod app;
mod datasets;
mod deposit;
mod deposits;
mod desk;
mod editing;
mod error;
mod facets;
mod fields;
mod front;
mod import_record;
mod imports;
mod language;
mod library;
mod log;
mod operators;
mod pages;
mod preview;
mod record;
mod search;
mod session;
mod settings;
mod suggest;
mod templates;
mod users;
mod versions;
mod works;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};
use pinakes_http::{Context, Entrance, Mount, Neighbour, entrance::TENANT_HEADER};
use pinakes_store::Kind;

/// The kinds of the site: uploads in progress.
pub static KINDS: &[&Kind] = &[&deposit::resumable::UPLOAD];

pub use error::MountError;
pub use log::{Line, RecentLog};
pub use settings::{Setting, Settings};

/// Returns the site as the shell serves it, with the dialects whose records it shows.
///
/// # Errors
/// The brand file cannot be read.
pub fn mount(context: Context, settings: Settings, neighbours: Vec<Neighbour>) -> Result<Mount, MountError> {
    let pages = Arc::new(crate::templates::Pages::read(&settings)?);
    let app = app::Site {
        context,
        settings: Arc::new(settings),
        neighbours: neighbours.into(),
        pages,
        descriptions: deposit::descriptions::Descriptions::default(),
    };
    let router = Router::new()
        .route("/", axum::routing::any(front::front))
        .route("/site", get(front::moved))
        .route("/site/", get(front::moved))
        .route("/site/search", get(search::search))
        .route("/site/suggest", get(suggest::suggest))
        .route("/site/opensearch.xml", get(suggest::description))
        .route("/site/dataset/{*pid}", get(datasets::page))
        .route("/site/publication/{*doi}", get(datasets::publication))
        .route("/site/deposit/{*pid}", get(deposits::page))
        .route("/site/deposits", get(deposit::list).post(deposit::join))
        .route("/site/deposits/new", get(deposit::edit::new).post(deposit::edit::create))
        .route("/site/deposits/edit/{*pid}", get(deposit::edit::edit).post(deposit::edit::save))
        .route("/site/deposits/files/{*pid}", get(deposit::files::page).post(deposit::files::upload))
        .route("/site/deposits/act/{*pid}", post(deposit::files::act))
        .route("/site/uploads", post(deposit::resumable::begin))
        .route(
            "/site/uploads/{id}",
            put(deposit::resumable::piece)
                .post(deposit::resumable::finish)
                .delete(deposit::resumable::give_up),
        )
        .route("/site/edit/dataset/{*pid}", get(editing::dataset::edit).post(editing::dataset::save))
        .route("/site/edit/topic/{map}/{*id}", get(editing::topic::edit).post(editing::topic::save))
        .route("/site/topics", get(editing::topic::list))
        .route("/site/mapping", get(editing::profile::list))
        .route("/site/mapping/{id}", get(editing::profile::edit).post(editing::profile::act))
        .route("/site/preview/{id}", get(preview::page))
        .route("/site/preview/{id}/content", get(preview::content))
        .route("/site/differences/{*pid}", get(versions::page))
        .route("/site/title/{id}", get(library::title))
        .route("/site/authority/{id}", get(library::authority))
        .route("/site/work/{*doi}", get(works::page))
        .route("/site/doi/{*doi}", get(works::landing))
        .route("/site/desk", get(desk::form).post(desk::act))
        .route("/site/imports", get(imports::list))
        .route("/site/imports/{job}", get(imports::page))
        .route("/site/imports/{job}/records/{record}", get(import_record::page))
        .route("/site/operators", get(operators::page))
        .route("/site/sign-in", get(session::form).post(session::sign_in))
        .route("/site/sign-in/provider", get(session::depart))
        .route("/site/sign-in/callback", get(session::arrive))
        .route("/site/account", get(account::page).post(account::act))
        .route("/site/users", get(users::list).post(users::create))
        .route("/site/users/{id}", get(users::page).post(users::act))
        .route("/site/sign-out", post(session::sign_out))
        .route("/site/language", get(session::language))
        .route("/site/assets/site.css", get(pages::style))
        .route("/site/assets/{script}", get(pages::script))
        .fallback(front::nothing_there)
        .with_state(app);
    let entrance = Entrance { tokens: &[], tenant_headers: &[TENANT_HEADER] };
    let whole_paths = vec!["/".to_owned()];
    Ok(Mount {
        entrance,
        whole_paths,
        refuse: |refusal| refusal.plain(),
        ..Mount::new("site", &["/site"], router)
    })
}
