//! Paths as `labed`'s router treats them: dot segments and double slashes are removed by a redirect, and an id is the
//! decoded rest of its path.

use axum::response::Response;
use http::header::LOCATION;
use http::{StatusCode, Uri};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use pinakes_http::answer;

/// Characters that are escaped in the path of a `Location`.
const IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Returns the decoded text after `prefix`; `None` if there is none, or it is not UTF-8.
pub(crate) fn rest(uri: &Uri, prefix: &str) -> Option<String> {
    let rest = uri.path().strip_prefix(prefix)?;
    Some(percent_decode_str(rest).decode_utf8().ok()?.into_owned())
}

/// Returns a redirect to the cleaned path if `path` has dot segments, or, if requested, `//`.
pub(crate) fn cleaning_redirect(uri: &Uri, slashes: Slashes) -> Option<Response> {
    let path = uri.path();
    let has_dots = path.split('/').any(|it| it == "." || it == "..");
    if !has_dots && (slashes == Slashes::Stay || !path.contains("//")) {
        return None;
    }
    let mut location = cleaned(path);
    if let Some(query) = uri.query() {
        location = format!("{location}?{query}");
    }
    Some(answer::with_header(answer::empty(StatusCode::MOVED_PERMANENTLY), LOCATION, &location))
}

/// Whether double slashes are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slashes {
    /// They are part of an identifier.
    Stay,
    /// They are reduced to one.
    Collapse,
}

/// Escapes `text` as part of a path in a `Location`.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, IN_PATH).to_string()
}

fn cleaned(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let mut clean = format!("/{}", segments.join("/"));
    if path.ends_with('/') && 1 < clean.len() {
        clean.push('/');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_the_router_does() {
        for (path, expected) in [
            ("//id/x", "/id/x"),
            ("/a/../stats", "/stats"),
            ("/./cache", "/cache"),
            ("/../..", "/"),
            ("/id//x/", "/id/x/"),
        ] {
            assert_eq!(cleaned(path), expected, "{path}");
        }
        assert_eq!(escaped("a b/ü?#%"), "a%20b/%C3%BC%3F%23%25");
    }
}
