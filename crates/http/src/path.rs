//! Paths as clients write them: words in any case, a slash at the end, doubled slashes.
//!
//! SciCat's clients send `Datasets` and `datasets`, with and without a final slash; FOLIO's send
//! `//circulation`. A dialect lists the fixed words of its routes; they are changed to the listed spelling
//! before routing. Everything else in a path, identifiers above all, stays as it is.

use std::collections::HashMap;

use http::Uri;
use http::uri::PathAndQuery;

/// The URI as requested, stored in the request's extensions if the path was rewritten.
#[derive(Debug, Clone)]
pub struct AskedUri(pub Uri);

/// How the paths of a dialect are rewritten before routing. `Default` changes nothing.
#[derive(Debug, Clone, Default)]
pub struct PathRules {
    words: HashMap<String, String>,
    final_slash: FinalSlash,
    double_slashes: DoubleSlashes,
}

/// How a slash at the end is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FinalSlash {
    /// It stays.
    #[default]
    Keep,
    /// It is dropped.
    Drop,
}

/// How consecutive slashes are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DoubleSlashes {
    /// They stay.
    #[default]
    Keep,
    /// They become one.
    Collapse,
}

impl PathRules {
    /// Spells segments that equal one of `words`, regardless of the case of ASCII letters, as listed.
    pub fn words<W: AsRef<str>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        let pairs = words.into_iter().map(|it| (it.as_ref().to_ascii_lowercase(), it.as_ref().to_owned()));
        self.words.extend(pairs);
        self
    }

    /// Sets the rule for the slash at the end.
    pub fn final_slash(mut self, rule: FinalSlash) -> Self {
        self.final_slash = rule;
        self
    }

    /// Sets the rule for doubled slashes.
    pub fn double_slashes(mut self, rule: DoubleSlashes) -> Self {
        self.double_slashes = rule;
        self
    }

    /// Returns the path as the routes spell it; `None` if it is that already.
    pub fn rewritten(&self, path: &str) -> Option<String> {
        if !self.concerns(path) {
            return None;
        }
        let mut new = String::with_capacity(path.len());
        let mut segments = path.split('/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            if segment.is_empty() && self.drops_empty(is_last) {
                continue;
            }
            new.push('/');
            new.push_str(self.spelled(segment));
        }
        if new.is_empty() {
            new.push('/');
        }
        (new != path).then_some(new)
    }

    /// Applies [`PathRules::rewritten`] to a whole URI; the query stays.
    pub fn rewrite(&self, uri: &Uri) -> Option<Uri> {
        with_path(uri, self.rewritten(uri.path())?)
    }

    /// Returns whether the path contains anything that a rule applies to; most paths are done here.
    fn concerns(&self, path: &str) -> bool {
        let bytes = path.as_bytes();
        let slashes = self.final_slash == FinalSlash::Drop && path.ends_with('/')
            || self.double_slashes == DoubleSlashes::Collapse && bytes.windows(2).any(|it| it == b"//");
        // Words may be listed with capitals (`metadataKeys`), so any letter may concern them.
        slashes || !self.words.is_empty() && path.starts_with('/')
    }

    fn drops_empty(&self, is_last: bool) -> bool {
        match is_last {
            true => self.final_slash == FinalSlash::Drop,
            false => self.double_slashes == DoubleSlashes::Collapse,
        }
    }

    fn spelled<'a>(&'a self, segment: &'a str) -> &'a str {
        if self.words.contains_key(segment) || segment.bytes().any(|it| it.is_ascii_uppercase()) {
            let key = segment.to_ascii_lowercase();
            return self.words.get(&key).map_or(segment, String::as_str);
        }
        segment
    }
}

/// Returns the URI behind the prefix of a mount, with which its path begins, perhaps behind doubled slashes.
pub(crate) fn without_prefix(uri: &Uri, prefix: &str) -> Uri {
    let path = uri.path();
    let n_doubled = path.bytes().take_while(|it| *it == b'/').count().saturating_sub(1);
    let rest = path.get(n_doubled + prefix.len()..).unwrap_or_default();
    let rest = if rest.is_empty() { "/".to_owned() } else { rest.to_owned() };
    with_path(uri, rest).unwrap_or_else(|| uri.clone())
}

/// Returns the URI with another path; the query stays.
fn with_path(uri: &Uri, mut path: String) -> Option<Uri> {
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scicat() -> PathRules {
        PathRules::default()
            .words(["api", "v3", "datasets", "metadataKeys", "count"])
            .final_slash(FinalSlash::Drop)
            .double_slashes(DoubleSlashes::Collapse)
    }

    #[test]
    fn words_are_spelled_as_listed_and_the_rest_stays() {
        let rules = scicat();
        for (path, expected) in [
            ("/api/v3/Datasets", Some("/api/v3/datasets")),
            ("/API/V3/datasets/PID.Pfx%2FABC", Some("/api/v3/datasets/PID.Pfx%2FABC")),
            ("/api/v3/datasets/metadatakeys", Some("/api/v3/datasets/metadataKeys")),
            ("/api/v3/datasets/", Some("/api/v3/datasets")),
            ("//api//v3/datasets", Some("/api/v3/datasets")),
            ("/", None),
            ("//", Some("/")),
            ("/api/v3/datasets", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(rules.rewritten(path).as_deref(), expected, "{path}");
        }
        assert_eq!(PathRules::default().rewritten("//A//b/"), None);
    }

    #[test]
    fn queries_stay() {
        let uri: Uri = "/API/v3/Datasets/?filter=%7B%22A%22%3A1%7D".parse().unwrap_or_default();
        let new = scicat().rewrite(&uri).map(|it| it.to_string());
        assert_eq!(new.as_deref(), Some("/api/v3/datasets?filter=%7B%22A%22%3A1%7D"));
    }

    proptest! {
        #[test]
        fn rewriting_is_done_once(path in "(/[A-Za-z%0-9]{0,6}){1,6}/?") {
            let rules = scicat();
            let once = rules.rewritten(&path).unwrap_or(path);
            prop_assert_eq!(rules.rewritten(&once), None);
        }
    }
}
