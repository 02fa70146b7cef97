//! Rendering of a page as an answer.

use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use minijinja::{Value, context};
use pinakes_http::answer;

use crate::call::Reading;
use crate::error::Result;
use crate::pages::leaf::Frame;
use crate::pages::templates::Pages;
use crate::text::HTML;

impl Pages {
    /// Returns the values that every template gets: `site`, `map`, `user`, `is_editor`, `csrf`, and `page` with the
    /// rest.
    pub(super) fn framed(&self, frame: &Frame<'_>, page: Value) -> Value {
        context! {
            site => frame.site, map => frame.map, user => frame.user, is_editor => frame.is_editor,
            csrf => &frame.csrf, page => page,
        }
    }
}

/// Content security policy: scripts and styles are this site's own files, and no site may frame a page.
pub(crate) const POLICY: &str = "default-src 'self'; img-src 'self' https: http:; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

impl Reading {
    /// Renders a page; [`Pages::framed`] describes the values of its template.
    pub(crate) fn page(&self, status: StatusCode, name: &str, page: Value) -> Result<Response> {
        let pages = self.app.pages.now();
        finished(status, pages.render(name, pages.framed(&Frame::of(self), page))?)
    }

    /// Reloads the templates if the flag `nocache` is set.
    pub(crate) fn renew_templates(&self) -> Result<()> {
        if self.params.0.is_set("nocache") && self.asker.is_administrator() {
            self.app.pages.read_anew(&self.app.settings)?;
        }
        Ok(())
    }
}

pub(crate) fn finished(status: StatusCode, html: String) -> Result<Response> {
    let mut response = answer::bytes(status, HTML, html);
    harden(&mut response);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept, Cookie"));
    Ok(response)
}

pub(crate) fn harden(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("referrer-policy"), HeaderValue::from_static("same-origin"));
}
