//! Narrowing a search: the facets of the results, and the values that were chosen.

use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::Result;
use crate::fields::{Fields, encoded};
use crate::record::items;

/// Maximum number of values that narrow a search.
const CHOSEN_MAX: usize = 10;
/// Number of values shown for a facet, the most frequent ones.
const VALUES_MAX: usize = 8;

/// The facets of deposits: their names in Dataverse, and the keys of their headings.
const OF_DEPOSITS: [(&str, &str); 5] = [
    ("subject_ss", "subjects"),
    ("authorName_ss", "creator"),
    ("keywordValue_ss", "keywords"),
    ("publicationDate", "year"),
    ("license", "license"),
];
/// The facets of datasets, with their names in SciCat.
const OF_DATASETS: [(&str, &str); 3] =
    [("type", "type"), ("keywords", "keywords"), ("creationLocation", "location")];

/// The facets of library titles, with their names in FOLIO.
const OF_TITLES: [(&str, &str); 2] = [("languages", "languages"), ("source", "source")];

fn known(scope: &str) -> &'static [(&'static str, &'static str)] {
    match scope {
        "deposits" => &OF_DEPOSITS,
        "datasets" => &OF_DATASETS,
        "titles" => &OF_TITLES,
        _ => &[],
    }
}

/// A value of a facet that narrows a search: `f=keywords:x-ray`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) facet: &'static str,
    pub(crate) value: String,
}

/// Returns the values that a request chose among the facets of a scope; others are ignored.
pub(crate) fn chosen(fields: &Fields, scope: &str) -> Vec<Chosen> {
    let one = |text: &str| {
        let (name, value) = text.split_once(':')?;
        let facet = known(scope).iter().find(|it| it.0 == name)?.0;
        Some(Chosen { facet, value: value.to_owned() }).filter(|it| !it.value.is_empty())
    };
    let mut found: Vec<Chosen> = Vec::new();
    for it in fields.all("f").filter_map(one) {
        if !found.contains(&it) && found.len() < CHOSEN_MAX {
            found.push(it);
        }
    }
    found
}

/// Returns the part of an address that repeats the chosen values.
pub(crate) fn as_query(chosen: &[Chosen]) -> String {
    chosen.iter().map(|it| format!("&f={}", encoded(&format!("{}:{}", it.facet, it.value)))).collect()
}

/// Returns the chosen values as conditions of Dataverse's search.
pub(crate) fn as_filter_queries(chosen: &[Chosen]) -> String {
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"");
    let one = |it: &Chosen| format!("&fq={}", encoded(&format!("{}:\"{}\"", it.facet, quoted(&it.value))));
    chosen.iter().map(one).collect()
}

/// Adds the chosen values to the fields of SciCat's search.
pub(crate) fn add_to_fields(chosen: &[Chosen], fields: &mut Value) {
    for it in chosen {
        match fields[it.facet].as_array_mut() {
            Some(list) => list.push(it.value.as_str().into()),
            None => fields[it.facet] = json!([it.value]),
        }
    }
}

/// A facet on a page.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Shown {
    /// Key of its heading.
    key: &'static str,
    values: Vec<ShownValue>,
}

/// A value of a facet; its link adds it to the chosen values, or removes it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ShownValue {
    text: String,
    n: u64,
    href: String,
    is_chosen: bool,
}

/// Returns the facets of the results of a search. `path` is the dialect's request without its facets, `base` the page's
/// address without the chosen values.
///
/// Errors: as [`Site::read`].
pub(crate) async fn of_deposits(
    site: &Site,
    visitor: &Visitor,
    path: &str,
    base: &str,
    chosen: &[Chosen],
) -> Result<Vec<Shown>> {
    let said = site.read(visitor, "dataverse", &format!("{path}&show_facets=true")).await?;
    let found = &said["data"]["facets"][0];
    let counts = |name: &str| {
        let labels = items(&found[name], "labels");
        let pairs = labels.iter().filter_map(Value::as_object).flatten();
        pairs.map(|(value, n)| (value.clone(), n.as_u64().unwrap_or(0))).collect()
    };
    Ok(shown(&OF_DEPOSITS, counts, base, chosen))
}

/// Does the same for datasets.
pub(crate) async fn of_datasets(
    site: &Site,
    visitor: &Visitor,
    fields: &Value,
    base: &str,
    chosen: &[Chosen],
) -> Result<Vec<Shown>> {
    let names = json!(OF_DATASETS.map(|it| it.0));
    let query = format!("fields={}&facets={}", encoded(&fields.to_string()), encoded(&names.to_string()));
    let said = site.read(visitor, "scicat", &format!("/api/v3/datasets/fullfacet?{query}")).await?;
    let counts = |name: &str| {
        let buckets = items(&said[0], name).iter();
        let named = buckets.filter_map(|it| Some((it["_id"].as_str()?.to_owned(), it["count"].as_u64()?)));
        named.collect()
    };
    Ok(shown(&OF_DATASETS, counts, base, chosen))
}

/// Does the same for library titles; `cql` is the search including the chosen values.
pub(crate) async fn of_titles(
    site: &Site,
    visitor: &Visitor,
    cql: &str,
    base: &str,
    chosen: &[Chosen],
) -> Result<Vec<Shown>> {
    let wanted: String = OF_TITLES.iter().map(|it| format!("&facet={}:{VALUES_MAX}", it.0)).collect();
    let path = format!("/search/instances/facets?query={}{wanted}", encoded(cql));
    let said = site.read(visitor, "folio", &path).await?;
    let counts = |name: &str| {
        let values = items(&said["facets"][name], "values").iter();
        let named =
            values.filter_map(|it| Some((it["id"].as_str()?.to_owned(), it["totalRecords"].as_u64()?)));
        named.collect()
    };
    Ok(shown(&OF_TITLES, counts, base, chosen))
}

fn shown(
    facets: &[(&'static str, &'static str)],
    counts: impl Fn(&str) -> Vec<(String, u64)>,
    base: &str,
    chosen: &[Chosen],
) -> Vec<Shown> {
    let mut list = Vec::new();
    for (facet, key) in facets {
        let is_on = |value: &str| chosen.iter().any(|it| it.facet == *facet && it.value == value);
        let mut counted = counts(facet);
        // Chosen values come first, so that they stay visible.
        counted.sort_by(|a, b| (is_on(&b.0), b.1, &a.0).cmp(&(is_on(&a.0), a.1, &b.0)));
        counted.truncate(VALUES_MAX);
        let values = counted.into_iter().map(|(text, n)| {
            let it = Chosen { facet, value: text.clone() };
            let is_chosen = chosen.contains(&it);
            let rest = chosen.iter().filter(|other| **other != it).cloned();
            let next: Vec<Chosen> = rest.chain((!is_chosen).then_some(it.clone())).collect();
            ShownValue { text, n, href: format!("{base}{}", as_query(&next)), is_chosen }
        });
        let values: Vec<ShownValue> = values.collect();
        if !values.is_empty() {
            list.push(Shown { key, values });
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_facets_of_the_scope_are_chosen_and_leave_their_string_nowhere() {
        let fields =
            Fields::parse("f=subject_ss:Earth%20%22&f=subject_ss:Earth%20%22&f=q:x&f=license:&f=type:raw");
        let found = chosen(&fields, "deposits");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(as_filter_queries(&found), format!("&fq={}", encoded(r#"subject_ss:"Earth \"""#)));
        assert_eq!(as_query(&found), "&f=subject_ss%3AEarth%20%22");
        assert!(chosen(&fields, "titles").is_empty());
        let mut wanted = json!({"text": "x"});
        add_to_fields(&chosen(&fields, "datasets"), &mut wanted);
        assert_eq!(wanted, json!({"text": "x", "type": ["raw"]}));
    }

    #[test]
    fn a_value_leads_to_more_or_to_less() {
        let on = Chosen { facet: "type", value: "raw".to_owned() };
        let counts = |name: &str| match name {
            "type" => vec![("derived".to_owned(), 9), ("raw".to_owned(), 2)],
            _ => Vec::new(),
        };
        let found = shown(&OF_DATASETS, counts, "/site/search?q=x&in=datasets", &[on]);
        assert_eq!(found.len(), 1);
        let hrefs: Vec<&str> = found[0].values.iter().map(|it| it.href.as_str()).collect();
        assert_eq!(
            hrefs,
            ["/site/search?q=x&in=datasets", "/site/search?q=x&in=datasets&f=type%3Araw&f=type%3Aderived"]
        );
        assert!(found[0].values[0].is_chosen);
    }
}
