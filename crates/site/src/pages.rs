//! Rendering of pages: templates that escape their values, the style, and the headers of every page.

use axum::extract::{Path, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, VARY};
use http::{HeaderName, HeaderValue, StatusCode};
use pinakes_http::answer;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::encoded;
use crate::language::Language;

/// No scripts at all, styles of this server, pictures of this server or within the page.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// Returns the policy of a page. With a script it also allows that script, by a nonce that no other page has, and
/// requests to this server.
fn policy(script_key: Option<&str>) -> Result<HeaderValue> {
    let Some(key) = script_key else { return Ok(HeaderValue::from_static(POLICY)) };
    let policy = format!("{POLICY}; script-src 'nonce-{key}'; connect-src 'self'");
    HeaderValue::from_str(&policy).map_err(|error| SiteError::Damaged(error.to_string()))
}

impl Site {
    /// Renders a page. Every template gets `t` (the texts), `site`, `lang`, `user`, `csrf`, `here`, and `page`.
    pub(crate) fn page(
        &self,
        visitor: &Visitor,
        status: StatusCode,
        name: &str,
        page: Value,
    ) -> Result<Response> {
        self.made(visitor, status, name, page, None)
    }

    /// Renders a page that a script makes more convenient: one of [`SCRIPTS`]. Only this script may run on the page.
    pub(crate) fn page_with_script(
        &self,
        visitor: &Visitor,
        status: StatusCode,
        name: &str,
        page: Value,
        script: &'static str,
    ) -> Result<Response> {
        self.made(visitor, status, name, page, Some(script))
    }

    fn made(
        &self,
        visitor: &Visitor,
        status: StatusCode,
        name: &str,
        page: Value,
        script: Option<&'static str>,
    ) -> Result<Response> {
        let key = script.map(|_| self.context.entropy().uuid().simple().to_string());
        let other = match visitor.language {
            Language::English => Language::German,
            Language::German => Language::English,
        };
        // The answer to a submitted form cannot be requested again.
        let values = json!({
            "t": visitor.language.texts(), "site": &self.settings.name, "lang": visitor.language.tag(),
            "other_lang": other.tag(), "user": visitor.caller.username(), "csrf": visitor.csrf(),
            "here": encoded(&visitor.asked), "has_folio": self.neighbour("folio").is_some(),
            "has_dataverse": self.neighbour("dataverse").is_some(),
            "is_operator": self.is_operator(visitor), "manages_accounts": self.manages_accounts(visitor), "page": page,
            "has_conclave": self.neighbour("conclave").is_some(), "script": script, "script_key": &key,
        });
        let html = self.pages.render(name, values)?;
        let mut response = answer::bytes(status, HeaderValue::from_static("text/html; charset=utf-8"), html);
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, policy(key.as_deref())?);
        headers.insert(HeaderName::from_static("referrer-policy"), HeaderValue::from_static("same-origin"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Language, Cookie"));
        Ok(response)
    }

    /// Returns the page, or one that explains the error.
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

/// Answers with the style sheet.
pub(crate) async fn style(State(site): State<Site>) -> Response {
    let text = HeaderValue::from_static("text/css; charset=utf-8");
    let response = answer::bytes(StatusCode::OK, text, site.pages.style.clone());
    answer::with_header(response, CACHE_CONTROL, "public, max-age=300")
}

/// The scripts. Everything works without them too, less conveniently.
const SCRIPTS: [(&str, &str); 2] =
    [("upload.js", include_str!("../assets/upload.js")), ("live.js", include_str!("../assets/live.js"))];

/// `GET /site/assets/{script}`
pub(crate) async fn script(Path(name): Path<String>) -> Response {
    let Some((_, text)) = SCRIPTS.iter().find(|it| it.0 == name) else {
        return answer::empty(StatusCode::NOT_FOUND);
    };
    let kind = HeaderValue::from_static("text/javascript; charset=utf-8");
    answer::with_header(answer::bytes(StatusCode::OK, kind, *text), CACHE_CONTROL, "public, max-age=300")
}
