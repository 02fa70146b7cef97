//! Pages of library records and authorities (FOLIO).

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::Value;

use crate::app::{Site, Visitor};
use crate::error::Result;
use crate::fields::{encoded, encoded_rest};
use crate::record::{Citable, Link, Record, doi_of, items, text, texts};

/// Maximum number of items that a page lists.
const ITEMS_MAX: usize = 200;

pub(crate) async fn title(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let record = instance(&site, &visitor, &id).await;
    let shown = record.and_then(|it| site.record_page(&visitor, &it));
    site.shown(&visitor, shown)
}

async fn instance(site: &Site, visitor: &Visitor, id: &str) -> Result<Record> {
    let it = site.read(visitor, "folio", &format!("/inventory/instances/{}", encoded(id))).await?;
    let of_title = encoded(&format!("instance.id==\"{}\"", id.replace(['"', '\\'], "")));
    let copies = format!("/inventory/items?query={of_title}&limit={ITEMS_MAX}");
    let of_title = encoded(&format!("instanceId==\"{}\"", id.replace(['"', '\\'], "")));
    let holdings = format!("/holdings-storage/holdings?query={of_title}&limit={ITEMS_MAX}");
    let (copies, holdings) =
        tokio::join!(site.read(visitor, "folio", &copies), site.read(visitor, "folio", &holdings));
    let mut record = Record { kind_key: "title_record", title: text(&it, "title"), ..Record::default() };
    let search =
        |word: String| Link::to(word.clone(), format!("/site/search?q={}&in=titles", encoded(&word)));
    record.fact("contributor", texts(&it, "contributors", "name").into_iter().map(search));
    let published = items(&it, "publication").iter().map(|it| {
        let parts = ["place", "publisher", "dateOfPublication"].map(|name| text(it, name));
        parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ")
    });
    record.plain("published", published);
    record.plain("edition", texts(&it, "editions", ""));
    record.plain("extent", texts(&it, "physicalDescriptions", ""));
    record.plain("series", texts(&it, "series", "value"));
    record.plain("languages", texts(&it, "languages", ""));
    record.fact("subjects", texts(&it, "subjects", "value").into_iter().map(search));
    let identifier = |it: String| match doi_of(&it) {
        doi if doi.is_empty() => Link::plain(it),
        doi => Link::to(it, format!("/site/doi/{}", encoded_rest(&doi))),
    };
    record.fact("identifier", texts(&it, "identifiers", "value").into_iter().map(identifier));
    record.plain(
        "notes",
        items(&it, "notes").iter().filter(|it| it["staffOnly"] != true).map(|it| text(it, "note")),
    );
    let online = items(&it, "electronicAccess").iter().map(|it| {
        let uri = text(it, "uri");
        let label = Some(text(it, "linkText")).filter(|it| !it.is_empty()).unwrap_or_else(|| uri.clone());
        Link::to(label, uri)
    });
    record.fact("online", online);
    let holdings = holdings.ok();
    let shelves = holdings.iter().flat_map(|it| items(it, "holdingsRecords")).map(|it| {
        vec![
            Link::plain(text(it, "callNumber")),
            Link::plain(texts(it, "holdingsStatements", "statement").join("; ")),
        ]
    });
    record.table("holdings", &["call_number", "statement"], shelves.collect(), None);
    if let Ok(copies) = copies {
        let rows = items(&copies, "items").iter().map(|it| {
            let place = text(it, "effectiveLocation/name");
            let status = text(it, "status/name");
            let (barcode, call_number) =
                (text(it, "barcode"), text(it, "effectiveCallNumberComponents/callNumber"));
            let desk = Link::to(barcode.clone(), format!("/site/desk?item={}", encoded(&barcode)));
            vec![
                if barcode.is_empty() { Link::plain("–") } else { desk },
                Link::plain(status),
                Link::plain(place),
                Link::plain(call_number),
            ]
        });
        record.table(
            "items",
            &["barcode", "status", "location", "call_number"],
            rows.collect(),
            copies["totalRecords"].as_u64(),
        );
    }
    if let Some(href) = site.href(visitor, "folio", &format!("/inventory/instances/{}", encoded(id))) {
        record.exports.push(Link { text: "JSON".to_owned(), href: Some(href) });
    }
    let first = items(&it, "publication").first().cloned().unwrap_or(Value::Null);
    let cited = Citable {
        title: record.title.clone(),
        creators: texts(&it, "contributors", "name"),
        date: text(&first, "dateOfPublication"),
        publisher: text(&first, "publisher"),
        url: site.whole_url(visitor, &format!("/site/title/{}", encoded(id))),
        ..Citable::default()
    };
    // A title is not a dataset, so only the citation is set.
    record.citation = Some(cited.text());
    record.metas = cited.metas();
    Ok(record)
}

pub(crate) async fn authority(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let record = authority_record(&site, &visitor, &id).await;
    let shown = record.and_then(|it| site.record_page(&visitor, &it));
    site.shown(&visitor, shown)
}

/// Properties that can hold the heading of an authority, which has exactly one.
const HEADINGS: [&str; 9] = [
    "personalName",
    "personalNameTitle",
    "corporateName",
    "corporateNameTitle",
    "meetingName",
    "meetingNameTitle",
    "uniformTitle",
    "topicalTerm",
    "geographicName",
];

async fn authority_record(site: &Site, visitor: &Visitor, id: &str) -> Result<Record> {
    let path = format!("/authority-storage/authorities/{}", encoded(id));
    let it = site.read(visitor, "folio", &path).await?;
    let found = HEADINGS.iter().find(|name| it.get(**name).is_some());
    let heading = found.map_or_else(|| id.to_owned(), |name| text(&it, name));
    let mut record = Record { kind_key: "authority", title: heading.clone(), ..Record::default() };
    record.plain("type", found.map(|it| (*it).to_owned()));
    record.plain("identifier", [vec![text(&it, "naturalId")], texts(&it, "identifiers", "value")].concat());
    // `sft` are the variant names, `saft` the related ones.
    for (key, prefix) in [("see_from", "sft"), ("see_also", "saft")] {
        let named = it
            .as_object()
            .into_iter()
            .flatten()
            .filter(|it| it.0.strip_prefix(prefix).is_some_and(is_capital));
        let names: Vec<String> = named.flat_map(|pair| list(pair.1)).collect();
        record.plain(key, names);
    }
    record.plain(
        "notes",
        items(&it, "notes").iter().filter(|it| it["staffOnly"] != true).map(|it| text(it, "note")),
    );
    record.fact(
        "titles",
        [Link::to(heading.clone(), format!("/site/search?q={}&in=titles", encoded(&heading)))],
    );
    if let Some(href) = site.href(visitor, "folio", &path) {
        record.exports.push(Link { text: "JSON".to_owned(), href: Some(href) });
    }
    Ok(record)
}

fn is_capital(rest: &str) -> bool {
    rest.starts_with(|it: char| it.is_ascii_uppercase())
}

fn list(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}
