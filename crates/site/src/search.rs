//! Search over all dialects, each with its own search, so that each decides what the visitor may see.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::Result;
use crate::facets::{self, Chosen};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::{Link, bytes_shown, doi_of, items, text, texts};

/// Number of hits of each dialect if all are searched.
const FEW: u32 = 5;
/// Number of hits on a page if one is searched.
const PAGE: u32 = 20;
/// The last page that can be requested.
const PAGES_MAX: u32 = 50;

/// The scopes of a search: name in addresses, key of the heading, and dialect.
const SCOPES: [(&str, &str, &str); 5] = [
    ("datasets", "datasets", "scicat"),
    ("deposits", "deposits", "dataverse"),
    ("titles", "titles", "folio"),
    ("authorities", "authorities", "folio"),
    ("topics", "topics", "conclave"),
];

/// A hit.
#[derive(Debug, Serialize)]
struct Hit {
    link: Link,
    /// A short description.
    about: String,
}

/// The hits of one scope.
#[derive(Serialize)]
struct Group {
    scope: &'static str,
    name_key: &'static str,
    hits: Vec<Hit>,
    /// The total number of hits, if the dialect tells.
    n_all: Option<u64>,
    /// Key of a sentence if the search failed.
    note_key: Option<&'static str>,
    /// Address of all hits, or of the next page.
    more: Option<String>,
}

/// The search.
struct Asked<'a> {
    text: &'a str,
    /// A measured value to search for: name, value, unit.
    measured: Option<(&'a str, &'a str, &'a str)>,
    /// The chosen facet values.
    chosen: Vec<Chosen>,
    limit: u32,
    skip: u32,
}

/// `GET /site/search?q=&in=&page=`, narrowed by any number of `&f=facet:value`, or `in=datasets&name=&value=&unit=` for datasets with a measured value.
pub(crate) async fn search(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let words = fields.text("q");
    let wanted = SCOPES.iter().find(|it| it.0 == fields.text("in"));
    let number = fields.text("page").parse::<u32>().unwrap_or(1).clamp(1, PAGES_MAX);
    let measured = Some((fields.text("name"), fields.text("value"), fields.text("unit")));
    let measured = measured.filter(|it| !it.0.is_empty());
    let limit = if wanted.is_some() { PAGE } else { FEW };
    let chosen = facets::chosen(&fields, wanted.map_or("", |it| it.0));
    let asked = Asked { text: words, measured, chosen, limit, skip: (number - 1) * PAGE };
    let mut groups = Vec::new();
    if !words.is_empty() || wanted.is_some() {
        let of = |at: usize| found(&site, &visitor, &asked, SCOPES[at], wanted.map(|it| it.0));
        let (a, b, c, d, e) = tokio::join!(of(0), of(1), of(2), of(3), of(4));
        groups.extend([a, b, c, d, e].into_iter().flatten());
    }
    // A search that finds enough needs no suggestions.
    let n_hits: usize = groups.iter().map(|it| it.hits.len()).sum();
    let suggestions = match n_hits {
        0..=3 if !words.is_empty() => site.suggestions(&visitor, words).await,
        _ => Vec::new(),
    };
    let suggested = |it: String| {
        let scope = wanted.map_or("", |it| it.0);
        Link::to(it.clone(), format!("/site/search?q={}&in={scope}", encoded(&it)))
    };
    let suggestions: Vec<Link> = suggestions.into_iter().map(suggested).collect();
    let facets = match wanted {
        Some((scope, ..)) => narrowing(&site, &visitor, &asked, scope).await,
        None => Vec::new(),
    };
    for group in &mut groups {
        let is_whole = group.hits.len() < limit as usize;
        let page = if wanted.is_some() { number + 1 } else { 1 };
        if !is_whole && page <= PAGES_MAX {
            let more = format!("{}{}", address(&asked, group.scope), facets::as_query(&asked.chosen));
            group.more = Some(format!("{more}&page={page}"));
        }
    }
    let doi = Some(doi_of(words)).filter(|it| !it.is_empty());
    let doi = doi.map(|it| Link::to(it.clone(), format!("/site/doi/{}", encoded_rest(&it))));
    let scopes: Vec<_> =
        SCOPES.iter().filter(|it| site.neighbour(it.2).is_some()).map(|it| (it.0, it.1)).collect();
    let measured = measured.map(|it| format!("{} = {} {}", it.0, it.1, it.2));
    let page = json!({
        "title_key": "search", "q": words, "scope": wanted.map_or("", |it| it.0), "scopes": scopes, "number": number,
        "groups": groups, "facets": facets, "doi": doi, "measured": measured,
        "suggestions": suggestions, "is_asked": !words.is_empty() || wanted.is_some(),
    });
    site.page(&visitor, StatusCode::OK, "search.html", page)
}

/// Returns the address of a search in one scope, without chosen facet values and without its page.
fn address(asked: &Asked<'_>, scope: &str) -> String {
    let mut address = format!("/site/search?q={}&in={scope}", encoded(asked.text));
    if let Some((name, value, unit)) = asked.measured {
        let (name, value, unit) = (encoded(name), encoded(value), encoded(unit));
        address.push_str(&format!("&name={name}&value={value}&unit={unit}"));
    }
    address
}

/// Returns the facets that can narrow a search further; empty if the dialect has none.
async fn narrowing(site: &Site, visitor: &Visitor, asked: &Asked<'_>, scope: &str) -> Vec<facets::Shown> {
    let base = address(asked, scope);
    let said = match scope {
        "deposits" => {
            let path = deposits_path(&Asked { limit: 1, skip: 0, chosen: asked.chosen.clone(), ..*asked });
            facets::of_deposits(site, visitor, &path, &base, &asked.chosen).await
        }
        "titles" => facets::of_titles(site, visitor, &cql(asked), &base, &asked.chosen).await,
        "datasets" => facets::of_datasets(site, visitor, &datasets_fields(asked), &base, &asked.chosen).await,
        _ => Ok(Vec::new()),
    };
    // An error of the facets also occurs for the hits, which report it.
    said.unwrap_or_default()
}

/// Returns the hits of one scope; `None` if its dialect is not served, or another scope is wanted.
async fn found(
    site: &Site,
    visitor: &Visitor,
    asked: &Asked<'_>,
    (scope, name_key, dialect): (&'static str, &'static str, &'static str),
    wanted: Option<&str>,
) -> Option<Group> {
    if wanted.is_some_and(|it| it != scope) || site.neighbour(dialect).is_none() {
        return None;
    }
    let outcome = match scope {
        "datasets" => datasets(site, visitor, asked).await,
        "deposits" => deposits(site, visitor, asked).await,
        "titles" => titles(site, visitor, asked).await,
        "authorities" => authorities(site, visitor, asked).await,
        _ => topics(site, visitor, asked).await,
    };
    let group = Group { scope, name_key, hits: Vec::new(), n_all: None, note_key: None, more: None };
    Some(match outcome {
        Ok((hits, n_all)) => Group { hits, n_all, ..group },
        Err(crate::error::SiteError::SignIn) if visitor.caller.is_anonymous() => {
            Group { note_key: Some("search_sign_in"), ..group }
        }
        Err(error) => match error.status() {
            StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED => {
                Group { note_key: Some("search_not_allowed"), ..group }
            }
            _ => Group { note_key: Some("error_failed"), ..group },
        },
    })
}

type Found = Result<(Vec<Hit>, Option<u64>)>;

/// Returns the conditions of a search in SciCat's form.
fn datasets_fields(asked: &Asked<'_>) -> Value {
    let mut fields = json!({});
    if !asked.text.is_empty() {
        fields["text"] = json!(asked.text);
    }
    if let Some((name, value, unit)) = asked.measured {
        let condition = match value.parse::<f64>() {
            Ok(number) => json!({"lhs": name, "relation": "EQUAL_TO_NUMERIC", "rhs": number, "unit": unit}),
            Err(_) => json!({"lhs": name, "relation": "EQUAL_TO_STRING", "rhs": value, "unit": ""}),
        };
        fields["scientific"] = json!([condition]);
    }
    facets::add_to_fields(&asked.chosen, &mut fields);
    fields
}

async fn datasets(site: &Site, visitor: &Visitor, asked: &Asked<'_>) -> Found {
    let fields = datasets_fields(asked);
    let limits = json!({"limit": asked.limit, "skip": asked.skip, "order": "creationTime:desc"});
    let query = format!("fields={}&limits={}", encoded(&fields.to_string()), encoded(&limits.to_string()));
    let said = site.read(visitor, "scicat", &format!("/api/v3/datasets/fullquery?{query}")).await?;
    let hits = said.as_array().map_or(&[][..], Vec::as_slice).iter().map(dataset_hit).collect();
    Ok((hits, None))
}

fn dataset_hit(it: &Value) -> Hit {
    let pid = text(it, "pid");
    let name = Some(text(it, "datasetName")).filter(|it| !it.is_empty()).unwrap_or_else(|| pid.clone());
    let date = text(it, "creationTime");
    let mut about = vec![pid.clone(), text(it, "type"), date.get(..10).unwrap_or_default().to_owned()];
    if let Some(size) = it.get("size").and_then(Value::as_f64).filter(|it| *it > 0.0) {
        about.push(bytes_shown(size));
    }
    about.retain(|it| !it.is_empty());
    Hit { link: Link::to(name, format!("/site/dataset/{}", encoded_rest(&pid))), about: about.join(" · ") }
}

fn deposits_path(asked: &Asked<'_>) -> String {
    let words = if asked.text.is_empty() { "*" } else { asked.text };
    let (words, limit, skip) = (encoded(words), asked.limit, asked.skip);
    let narrowed = facets::as_filter_queries(&asked.chosen);
    format!("/api/search?q={words}&type=dataset&per_page={limit}&start={skip}{narrowed}")
}

async fn deposits(site: &Site, visitor: &Visitor, asked: &Asked<'_>) -> Found {
    let path = deposits_path(asked);
    let said = site.read(visitor, "dataverse", &path).await?;
    let hit = |it: &Value| {
        let pid = text(it, "global_id");
        let date = text(it, "published_at");
        let mut about = vec![pid.clone(), texts(it, "authors", "").join("; ")];
        about.push(date.get(..10).unwrap_or_default().to_owned());
        about.retain(|it| !it.is_empty());
        Hit {
            link: Link::to(text(it, "name"), format!("/site/deposit/{}", encoded_rest(&pid))),
            about: about.join(" · "),
        }
    };
    let n_all = said["data"]["total_count"].as_u64();
    Ok((items(&said, "data/items").iter().map(hit).collect(), n_all))
}

/// Quotes words as a CQL string.
fn quoted(words: &str) -> String {
    let escaped: String = words
        .chars()
        .flat_map(|it| matches!(it, '"' | '\\').then_some('\\').into_iter().chain([it]))
        .collect();
    format!("\"{escaped}\"")
}

fn cql(asked: &Asked<'_>) -> String {
    let words = match asked.text {
        "" => "cql.allRecords=1".to_owned(),
        text => format!("keyword all {}", quoted(text)),
    };
    let narrowed = asked.chosen.iter().map(|it| format!(" and {}=={}", it.facet, quoted(&it.value)));
    words + &narrowed.collect::<String>()
}

async fn titles(site: &Site, visitor: &Visitor, asked: &Asked<'_>) -> Found {
    let query = encoded(&cql(asked));
    let path =
        format!("/search/instances?query={query}&limit={}&offset={}&expandAll=true", asked.limit, asked.skip);
    let said = site.read(visitor, "folio", &path).await?;
    let hit = |it: &Value| {
        let mut about = vec![texts(it, "contributors", "name").join("; ")];
        about.push(
            items(it, "publication").first().map(|it| text(it, "dateOfPublication")).unwrap_or_default(),
        );
        about.retain(|it| !it.is_empty());
        let href = format!("/site/title/{}", encoded(&text(it, "id")));
        Hit { link: Link::to(text(it, "title"), href), about: about.join(" · ") }
    };
    Ok((items(&said, "instances").iter().map(hit).collect(), said["totalRecords"].as_u64()))
}

async fn authorities(site: &Site, visitor: &Visitor, asked: &Asked<'_>) -> Found {
    let query = encoded(&cql(asked));
    let path = format!("/search/authorities?query={query}&limit={}&offset={}", asked.limit, asked.skip);
    let said = site.read(visitor, "folio", &path).await?;
    let hit = |it: &Value| {
        let href = format!("/site/authority/{}", encoded(&text(it, "id")));
        Hit { link: Link::to(text(it, "headingRef"), href), about: text(it, "headingType") }
    };
    Ok((items(&said, "authorities").iter().map(hit).collect(), said["totalRecords"].as_u64()))
}

async fn topics(site: &Site, visitor: &Visitor, asked: &Asked<'_>) -> Found {
    let mut hits = Vec::new();
    for map in &site.settings.maps {
        if asked.text.is_empty() || asked.skip > 0 {
            break;
        }
        let map = encoded(map);
        let path = format!("/topics/v1/{map}/search?q={}&limit={}", encoded(asked.text), asked.limit);
        let said = site.read(visitor, "conclave", &path).await?;
        hits.extend(items(&said, "items").iter().filter_map(|it| {
            let path = format!("/t/{map}/{}", encoded_rest(&text(it, "id")));
            let href = site.href(visitor, "conclave", &path)?;
            let label = Some(text(it, "label")).filter(|it| !it.is_empty()).unwrap_or_else(|| text(it, "id"));
            Some(Hit { link: Link { text: label, href: Some(href) }, about: text(it, "description") })
        }));
    }
    hits.truncate(asked.limit as usize);
    Ok((hits, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_leave_their_string_in_cql() {
        assert_eq!(quoted(r#"a" or b\"#), r#""a\" or b\\""#);
    }
}
