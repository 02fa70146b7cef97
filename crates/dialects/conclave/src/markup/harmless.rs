//! Sanitising of HTML: keeps elements of text, tables and pictures, and links to the web and to mail addresses. Removes
//! scripts, styles, forms, frames and event handlers.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};

static LIST: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut list = Builder::default();
    list.url_schemes(HashSet::from(["http", "https", "ftp", "mailto"]));
    list.url_relative(UrlRelative::PassThrough);
    list.link_rel(Some("nofollow noopener"));
    list.strip_comments(true);
    // Written by the Markdown renderer itself: headings with ids, footnotes, the language of code.
    for heading in ["h1", "h2", "h3", "h4", "h5", "h6"] {
        list.add_tag_attributes(heading, ["id"]);
    }
    list.add_tag_attributes("code", ["class"]);
    list.add_tag_attributes("img", ["loading"]);
    list
});

/// Returns the harmless parts of some HTML.
pub(super) fn html(text: &str) -> String {
    LIST.clean(text).to_string()
}

/// Returns whether a link may have this target: the web, a mail address, or a page of this site, but not `javascript:`
/// or `data:`.
pub(crate) fn safe_link(href: &str) -> bool {
    // Browsers drop control characters and white space, so `java\nscript:` would be a scheme.
    if href.contains(|it: char| it.is_control()) {
        return false;
    }
    let href = href.trim();
    match href.find([':', '/', '?', '#']) {
        Some(at) if href.as_bytes()[at] == b':' => {
            ["http", "https", "ftp", "mailto"].iter().any(|it| href[..at].eq_ignore_ascii_case(it))
        }
        _ => !href.starts_with('\\'),
    }
}
