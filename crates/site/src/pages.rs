//! How a page is made: templates that escape what they are given, the style, and the headers of every page.

use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, VARY};
use http::{HeaderName, HeaderValue, StatusCode};
use minijinja::{Environment, UndefinedBehavior};
use pinakes_http::{Stage, answer, stages};
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::{MountError, Result, SiteError};
use crate::fields::encoded;
use crate::language::Language;
use crate::settings::Settings;

/// No script at all, styles of this server, pictures of this server or within the page.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("../assets/site.css");

/// Every template that a page is made of.
const TEMPLATES: [(&str, &str); 19] = [
    ("layout.html", include_str!("../templates/layout.html")),
    ("parts.html", include_str!("../templates/parts.html")),
    ("front.html", include_str!("../templates/front.html")),
    ("search.html", include_str!("../templates/search.html")),
    ("record.html", include_str!("../templates/record.html")),
    ("signin.html", include_str!("../templates/signin.html")),
    ("error.html", include_str!("../templates/error.html")),
    ("deposits.html", include_str!("../templates/deposits.html")),
    ("deposit_form.html", include_str!("../templates/deposit_form.html")),
    ("deposit_files.html", include_str!("../templates/deposit_files.html")),
    ("preview.html", include_str!("../templates/preview.html")),
    ("differences.html", include_str!("../templates/differences.html")),
    ("account.html", include_str!("../templates/account.html")),
    ("users.html", include_str!("../templates/users.html")),
    ("user.html", include_str!("../templates/user.html")),
    ("desk.html", include_str!("../templates/desk.html")),
    ("imports.html", include_str!("../templates/imports.html")),
    ("import.html", include_str!("../templates/import.html")),
    ("operators.html", include_str!("../templates/operators.html")),
];

/// Templates and the style.
pub(crate) struct Pages {
    environment: Environment<'static>,
    style: String,
}

impl Pages {
    /// The built-in ones, with the brand of the institution behind the style.
    pub(crate) fn read(settings: &Settings) -> std::result::Result<Self, MountError> {
        let mut environment = Environment::new();
        // A name that a page does not give is a fault, and never an empty place.
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, text) in TEMPLATES {
            let added = environment.add_template(name, text);
            added.map_err(|error| MountError::Template { name, reason: error.to_string() })?;
        }
        let mut style = STYLE.to_owned();
        if !settings.brand.as_os_str().is_empty() {
            let path = settings.brand.clone();
            let brand =
                std::fs::read_to_string(&path).map_err(|source| MountError::Brand { path, source })?;
            style.push_str(&brand);
        }
        Ok(Self { environment, style })
    }

    fn render(&self, name: &str, values: Value) -> Result<String> {
        let render = || self.environment.get_template(name)?.render(minijinja::value::Serde(&values));
        stages::timed(Stage::Render, render)
            .map_err(|error| SiteError::Damaged(format!("template {name}: {error:#}")))
    }
}

impl Site {
    /// A page. What every template has: `t` (the texts), `site`, `lang`, `user`, `csrf`, `here`, and `page`.
    pub(crate) fn page(
        &self,
        visitor: &Visitor,
        status: StatusCode,
        name: &str,
        page: Value,
    ) -> Result<Response> {
        let other = match visitor.language {
            Language::English => Language::German,
            Language::German => Language::English,
        };
        // What was sent by a form cannot be asked for again.
        let values = json!({
            "t": visitor.language.texts(), "site": &self.settings.name, "lang": visitor.language.tag(),
            "other_lang": other.tag(), "user": visitor.caller.username(), "csrf": visitor.csrf(),
            "here": encoded(&visitor.asked), "has_folio": self.neighbour("folio").is_some(),
            "has_dataverse": self.neighbour("dataverse").is_some(),
            "is_operator": self.is_operator(visitor), "manages_accounts": self.manages_accounts(visitor), "page": page,
        });
        let html = self.pages.render(name, values)?;
        let mut response = answer::bytes(status, HeaderValue::from_static("text/html; charset=utf-8"), html);
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(HeaderName::from_static("referrer-policy"), HeaderValue::from_static("same-origin"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Language, Cookie"));
        Ok(response)
    }

    /// The page, or one that says why there is none.
    pub(crate) fn shown(&self, visitor: &Visitor, outcome: Result<Response>) -> Result<Response> {
        outcome.or_else(|error| {
            if matches!(error, SiteError::Refused(_) | SiteError::Damaged(_)) {
                return Err(error);
            }
            let page = json!({
                "title_key": "error", "sentence_key": error.text_key(), "status": error.status().as_u16(),
            });
            self.page(visitor, error.status(), "error.html", page)
        })
    }
}

/// The one style sheet.
pub(crate) async fn style(State(site): State<Site>) -> Response {
    let text = HeaderValue::from_static("text/css; charset=utf-8");
    let response = answer::bytes(StatusCode::OK, text, site.pages.style.clone());
    answer::with_header(response, CACHE_CONTROL, "public, max-age=300")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_name_texts_that_there_are() {
        let texts = Language::English.texts();
        for (name, template) in TEMPLATES {
            for part in template.split("t.").skip(1) {
                let key: String =
                    part.chars().take_while(|it| it.is_ascii_lowercase() || *it == '_').collect();
                let before = &template[..template.len() - part.len()];
                let is_of_texts = template.find(part).is_some_and(|at| {
                    let name_before = template[..at].trim_end_matches("t.").chars().next_back();
                    name_before.is_some_and(|it| matches!(it, ' ' | '(' | '{'))
                });
                if is_of_texts && !before.is_empty() {
                    assert!(texts.contains_key(key.as_str()), "{name} names the text {key:?}");
                }
            }
            assert!(
                !template.contains("style=") && !template.contains("<style"),
                "{name} has a style of its own"
            );
            let scripts = template.matches("<script").count();
            let data = template.matches("<script type=\"application/ld+json\">").count();
            assert_eq!(scripts, data, "{name} has a script");
        }
    }
}
