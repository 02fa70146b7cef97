//! How a page is made: templates that escape what they are given, the style, and the headers of every page.

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

/// No script at all, styles of this server, pictures of this server or within the page.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// What a page with a script allows beside: that script, by a key that no other page has, and requests to this server.
fn policy(script_key: Option<&str>) -> Result<HeaderValue> {
    let Some(key) = script_key else { return Ok(HeaderValue::from_static(POLICY)) };
    let policy = format!("{POLICY}; script-src 'nonce-{key}'; connect-src 'self'");
    HeaderValue::from_str(&policy).map_err(|error| SiteError::Damaged(error.to_string()))
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
        self.made(visitor, status, name, page, None)
    }

    /// A page that a script makes more convenient: one of [`SCRIPTS`]. Only that page lets a script run, and no other one.
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
        // What was sent by a form cannot be asked for again.
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

/// The scripts: what they do is there without them too, less conveniently.
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
