//! The templates of pages: the built-in ones, overridden by those of the site.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value, escape_formatter};
use pinakes_http::{Stage, stages};

use crate::error::{ConclaveError, Result};
use crate::settings::Settings;
use crate::text::{escape, hash};

pub(crate) const STYLE: &str = include_str!("../../assets/site.css");

pub(crate) const SCRIPT: &str = include_str!("../../assets/site.js");

/// Every template.
pub(crate) const TEMPLATES: [(&str, &str); 8] = [
    ("layout.html", include_str!("../../templates/layout.html")),
    ("topic.html", include_str!("../../templates/topic.html")),
    ("search.html", include_str!("../../templates/search.html")),
    ("pointing.html", include_str!("../../templates/pointing.html")),
    ("edit.html", include_str!("../../templates/edit.html")),
    ("history.html", include_str!("../../templates/history.html")),
    ("signin.html", include_str!("../../templates/signin.html")),
    ("error.html", include_str!("../../templates/error.html")),
];

/// A template of the site cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// It cannot be read.
    #[error("the template {} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a valid template.
    #[error("the template {name}: {reason}")]
    Syntax {
        /// Name of the template.
        name: &'static str,
        /// What is wrong, with the line.
        reason: String,
    },
}

/// The templates.
pub(crate) struct Pages {
    environment: Environment<'static>,
    /// Changes with the templates, and is part of every page's entity tag.
    pub(crate) revision: u64,
    /// Whether the page of a topic is the built-in one.
    pub(crate) has_own_leaf: bool,
}

/// The current templates; an administrator reloads them with the flag `nocache`.
pub(crate) struct Templates(RwLock<Arc<Pages>>);

impl Templates {
    /// Reads the built-in templates, overridden by those of the site.
    pub(crate) fn read(settings: &Settings) -> std::result::Result<Templates, TemplateError> {
        Ok(Templates(RwLock::new(Arc::new(Pages::read(settings)?))))
    }

    /// Returns the current templates.
    pub(crate) fn now(&self) -> Arc<Pages> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reloads the templates. Errors: 422 with the file and what is wrong with it; the previous templates stay in use.
    pub(crate) fn read_anew(&self, settings: &Settings) -> Result<()> {
        let read = Pages::read(settings).map_err(|error| ConclaveError::rule(error.to_string()))?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
        Ok(())
    }
}

impl Pages {
    /// Reads the built-in templates, overridden by those of the site.
    pub(crate) fn read(settings: &Settings) -> std::result::Result<Pages, TemplateError> {
        let mut environment = Environment::new();
        environment.set_formatter(|out, state, value| match value.as_str() {
            // Slashes are not escaped: most values on a page are addresses.
            Some(text) if !value.is_safe() && *state.auto_escape() == AutoEscape::Html => {
                out.write_str(&escape(text)).map_err(|_| Error::from(ErrorKind::WriteFailure))
            }
            _ => escape_formatter(out, state, value),
        });
        // The content of pages that does not come from topics.
        let of_site = format!("{}{:?}", settings.site_name, settings.records);
        let mut all = format!("{STYLE}{SCRIPT}{}{of_site}", env!("CARGO_PKG_VERSION"));
        let mut has_own_leaf = true;
        for (name, built_in) in TEMPLATES {
            let path = settings.templates.join(name);
            let is_built_in = settings.templates.as_os_str().is_empty() || !path.is_file();
            has_own_leaf &= is_built_in || !matches!(name, "layout.html" | "topic.html");
            let text = match is_built_in {
                true => built_in.to_owned(),
                false => std::fs::read_to_string(&path)
                    .map_err(|source| TemplateError::Read { path: path.clone(), source })?,
            };
            all.push_str(&text);
            let added = environment.add_template_owned(name, text);
            added.map_err(|error| TemplateError::Syntax { name, reason: error.to_string() })?;
        }
        let revision = hash(all.as_bytes());
        Ok(Pages { environment, revision, has_own_leaf })
    }

    pub(crate) fn render(&self, name: &str, values: Value) -> Result<String> {
        let render = || self.environment.get_template(name)?.render(values);
        stages::timed(Stage::Render, render).map_err(|error| {
            ConclaveError::damaged(format!("the template {name} cannot be rendered: {error}"))
        })
    }
}
