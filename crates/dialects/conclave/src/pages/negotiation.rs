//! Format in which a topic is shown: by the end of its path, or by `Accept`.

use http::HeaderMap;
use http::header::ACCEPT;

/// Format in which a topic is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Json,
    Xml,
    Jtm,
    Xtm,
    Markdown,
}

impl Form {
    /// Returns the name used in entity tags.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Html => "html",
            Form::Json => "json",
            Form::Xml => "xml",
            Form::Jtm => "jtm",
            Form::Xtm => "xtm",
            Form::Markdown => "md",
        }
    }
}

pub(crate) const SUFFIXES: [(&str, Form); 6] = [
    (".html", Form::Html),
    (".json", Form::Json),
    (".xml", Form::Xml),
    (".jtm", Form::Jtm),
    (".xtm", Form::Xtm),
    (".md", Form::Markdown),
];

/// Returns the format that a suffix of an address names.
pub(crate) fn form_of(path: &str) -> Option<Form> {
    SUFFIXES.into_iter().find(|it| path.ends_with(it.0)).map(|it| it.1)
}

/// Returns the format that the client prefers: a page for browsers and for clients that state no preference.
pub(crate) fn preferred(headers: &HeaderMap) -> Form {
    let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if accept.is_empty() || accept.starts_with("text/html") || accept.starts_with("*/*") {
        return Form::Html;
    }
    let known = [
        ("text/html", Form::Html),
        ("application/xhtml+xml", Form::Html),
        ("application/json", Form::Json),
        ("application/x-tm+jtm", Form::Jtm),
        ("application/xtm+xml", Form::Xtm),
        ("application/x-tm+xtm", Form::Xtm),
        ("application/xml", Form::Xml),
        ("text/xml", Form::Xml),
        ("text/markdown", Form::Markdown),
    ];
    let mut best = (0.0, Form::Html);
    for part in accept.split(',') {
        let mut pieces = part.split(';').map(str::trim);
        let name = pieces.next().unwrap_or_default();
        let quality = pieces.find_map(|it| it.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        let form = known.iter().find(|it| name.eq_ignore_ascii_case(it.0)).map(|it| it.1);
        if let Some(form) = form.filter(|_| quality > best.0) {
            best = (quality, form);
        }
    }
    best.1
}
