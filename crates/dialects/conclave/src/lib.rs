//! The Conclave dialect: topic maps as pages and over HTTP, and their exchange in the formats of ISO/IEC 13250.
//!
//! A topic with all its members is one record ([`TOPIC`]), so that a page is one read. Its arcs are links of the store,
//! so that the topics pointing at it are a range of an index. `docs/dialects/conclave.md` says what is covered, and
//! where the behaviour differs on purpose.
//!
//! | file | what |
//! |---|---|
//! | `model.rs`, `document.rs` | a topic as it is stored, and as clients see it |
//! | `edit.rs` | the operations, in one transaction |
//! | `api/` | the HTTP API below `/topics/v1` |
//! | `pages/`, `templates/` | the pages |
//! | `markup/` | rendering of texts |
//! | `projection.rs`, `import.rs` | conversion to and from topic maps; import |

mod api;
mod app;
mod basic;
mod call;
mod dated;
mod document;
mod edit;
mod error;
mod facts;
pub mod import;
mod kinds;
mod markup;
mod model;
mod names;
mod pages;
pub mod projection;
mod settings;
mod subjects;
mod text;
mod unite;
mod validators;

use std::sync::Arc;

use axum::Router;
use pinakes_http::{Context, Mount};

pub use crate::names::{DEFAULT_MAP, DEFAULT_SCOPE, LABEL, SELF};
pub use crate::pages::templates::TemplateError;
pub use document::line;
pub use error::{ConclaveError, Result};
pub use facts::{Facts, OfMap};
pub use kinds::{KINDS, MAP, REVISION, TOPIC};
pub use model::{Arc as TopicArc, Metadata, Occurrence, Topic, key};
pub use settings::Settings;

/// Where the dialect lives.
const BASE_PATHS: [&str; 4] = ["/topics", "/t", "/conclave", "/conclave.cms"];

/// Returns the HTML that a text of some behaviour is shown as; links to topics begin with `link_base`. `None` for a
/// behaviour that makes no HTML of text.
pub fn rendered(behaviour: &str, text: &str, link_base: &str) -> Option<String> {
    markup::Resolver::new(link_base).render(behaviour, text)
}

/// Returns the dialect as the shell serves it.
///
/// # Errors
/// A template of the site cannot be read, or is not a template.
pub fn mount(context: Context, settings: Settings) -> std::result::Result<Mount, TemplateError> {
    let pages = Arc::new(crate::pages::templates::Templates::read(&settings)?);
    let remembered = basic::Remembered::default();
    let app = app::Conclave { context, settings: Arc::new(settings), pages, remembered };
    let router = Router::new().merge(api::routes()).merge(pages::routes(&app)).with_state(app);
    Ok(Mount { refuse: error::render, ..Mount::new("conclave", &BASE_PATHS, router) })
}
