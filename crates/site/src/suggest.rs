//! Suggestions while a search is being typed: keywords, authors and titles with this beginning, from what the visitor
//! may see. They fill the search form's list, and browsers request them for their own search bar (`OpenSearch`). No
//! script is needed.

use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::Result;
use crate::fields::{Fields, encoded};
use crate::record::{items, text};

/// Maximum number of suggestions for one text.
const SUGGESTED_MAX: usize = 10;
/// Maximum number of titles that each dialect suggests.
const TITLES_MAX: u32 = 4;
/// Maximum length of a text that gets suggestions, and of a suggestion, in characters.
const CHARACTERS_MAX: usize = 120;

/// `GET /site/suggest?q=`: what was typed, and the suggestions, in `OpenSearch`'s form.
pub(crate) async fn suggest(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let typed = fields.text("q");
    let found = site.suggestions(&visitor, typed).await;
    let json = HeaderValue::from_static("application/x-suggestions+json; charset=utf-8");
    let response = answer::bytes(StatusCode::OK, json, json!([typed, found]).to_string());
    let response = answer::with_header(response, CACHE_CONTROL, "private, max-age=60");
    Ok(answer::with_header(response, VARY, "Cookie"))
}

/// `GET /site/opensearch.xml`: tells browsers how to search here.
pub(crate) async fn description(State(site): State<Site>, visitor: Visitor) -> Result<Response> {
    let escaped = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let address = |path: &str| escaped(&site.whole_url(&visitor, path));
    // At most 16 characters, as the format requires.
    let short: String = site.settings.name.chars().take(16).collect();
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">\n\
         <ShortName>{}</ShortName>\n<Description>{}</Description>\n<InputEncoding>UTF-8</InputEncoding>\n\
         <Url type=\"text/html\" template=\"{}\"/>\n\
         <Url type=\"application/x-suggestions+json\" template=\"{}\"/>\n\
         </OpenSearchDescription>\n",
        escaped(&short),
        escaped(&site.settings.name),
        address("/site/search?q={searchTerms}"),
        address("/site/suggest?q={searchTerms}"),
    );
    let kind = HeaderValue::from_static("application/opensearchdescription+xml; charset=utf-8");
    let response = answer::bytes(StatusCode::OK, kind, xml);
    Ok(answer::with_header(response, CACHE_CONTROL, "public, max-age=3600"))
}

impl Site {
    /// Returns suggestions for the beginning of a search; empty if nothing was typed.
    pub(crate) async fn suggestions(&self, visitor: &Visitor, typed: &str) -> Vec<String> {
        let words = typed.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.chars().count() < 2 || CHARACTERS_MAX < words.chars().count() {
            return Vec::new();
        }
        let (keywords, deposits, titles, topics) = tokio::join!(
            self.keywords_of_datasets(visitor),
            of_deposits(self, visitor, &words),
            of_titles(self, visitor, &words),
            of_topics(self, visitor, &words),
        );
        let keywords = keywords.into_iter().filter(|it| begins_so(it, &words));
        let mut out: Vec<String> = Vec::new();
        for it in keywords.chain(deposits).chain(titles).chain(topics) {
            let is_new = !out.iter().any(|known| known.to_lowercase() == it.to_lowercase());
            if is_new && it.to_lowercase() != words.to_lowercase() && it.chars().count() <= CHARACTERS_MAX {
                out.push(it);
            }
        }
        out.truncate(SUGGESTED_MAX);
        out
    }

    /// Returns the keywords of datasets that the visitor may see, most frequent first.
    async fn keywords_of_datasets(&self, visitor: &Visitor) -> Vec<String> {
        let query = format!("fields={}&facets={}", encoded("{}"), encoded("[\"keywords\"]"));
        let path = format!("/api/v3/datasets/fullfacet?{query}");
        let Ok(said) = self.read(visitor, "scicat", &path).await else { return Vec::new() };
        items(&said[0], "keywords").iter().map(|it| text(it, "_id")).collect()
    }
}

/// Says whether a word of a text begins with what was typed, ignoring case.
fn begins_so(text: &str, typed: &str) -> bool {
    let (text, typed) = (text.to_lowercase(), typed.to_lowercase());
    text.match_indices(&typed)
        .any(|(at, _)| text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric()))
}

/// Returns the words as a search in which the last one is a prefix. Characters with a meaning in searches are dropped.
fn as_beginning(words: &str) -> String {
    let plain: String =
        words.chars().map(|it| if it.is_alphanumeric() || it == '-' { it } else { ' ' }).collect();
    let mut parts: Vec<&str> = plain.split_whitespace().map(|it| it.trim_matches('-')).collect();
    parts.retain(|it| !it.is_empty());
    if parts.is_empty() { String::new() } else { format!("{}*", parts.join(" ")) }
}

async fn of_deposits(site: &Site, visitor: &Visitor, words: &str) -> Vec<String> {
    let beginning = as_beginning(words);
    if beginning.is_empty() {
        return Vec::new();
    }
    let path =
        format!("/api/search?q={}&type=dataset&show_facets=true&per_page={TITLES_MAX}", encoded(&beginning));
    let Ok(said) = site.read(visitor, "dataverse", &path).await else { return Vec::new() };
    let facets = &said["data"]["facets"][0];
    let labels = ["keywordValue_ss", "authorName_ss"].into_iter().flat_map(|it| items(&facets[it], "labels"));
    let values = labels.filter_map(Value::as_object).flat_map(|it| it.keys().cloned());
    let values = values.filter(|it| begins_so(it, words)).take(SUGGESTED_MAX);
    let titles = items(&said, "data/items").iter().map(|it| text(it, "name"));
    values.chain(titles).collect()
}

async fn of_titles(site: &Site, visitor: &Visitor, words: &str) -> Vec<String> {
    let beginning = as_beginning(words);
    if beginning.is_empty() || visitor.caller.is_anonymous() {
        return Vec::new();
    }
    let query = encoded(&format!("title all \"{beginning}\""));
    let path = format!("/search/instances?query={query}&limit={TITLES_MAX}");
    let Ok(said) = site.read(visitor, "folio", &path).await else { return Vec::new() };
    items(&said, "instances").iter().map(|it| text(it, "title")).collect()
}

async fn of_topics(site: &Site, visitor: &Visitor, words: &str) -> Vec<String> {
    let Some(map) = site.settings.maps.first() else { return Vec::new() };
    let path = format!("/topics/v1/{}/search?q={}&limit={TITLES_MAX}", encoded(map), encoded(words));
    let Ok(said) = site.read(visitor, "conclave", &path).await else { return Vec::new() };
    items(&said, "items").iter().map(|it| text(it, "label")).filter(|it| begins_so(it, words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_begin_as_a_word_of_theirs_does() {
        for (text, typed, expected) in [
            ("X-ray scattering", "sca", true),
            ("X-ray scattering", "Ray", true),
            ("X-ray scattering", "cat", false),
            ("Öl", "ö", true),
            ("", "a", false),
        ] {
            assert_eq!(begins_so(text, typed), expected, "{text} {typed}");
        }
    }

    #[test]
    fn what_was_typed_cannot_leave_its_string() {
        assert_eq!(as_beginning("tide \"or* a"), "tide or a*");
        assert_eq!(as_beginning(" \" "), "");
    }
}
