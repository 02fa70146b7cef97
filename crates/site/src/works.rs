//! Works of the citation graph (labe), and the landing pages of DOIs.

use std::fmt::Write as _;

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use serde_json::Value;

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::{encoded, encoded_rest};
use crate::record::{Link, Record, doi_of, text};

/// Maximum number of works that a list shows.
const LISTED_MAX: usize = 200;
/// Maximum number of works on each side of the drawing.
const DRAWN_MAX: usize = 8;
/// Number of citations above which a list is not requested, as labe's answer has to be complete before any of
/// it is shown.
const ASKED_MAX: u64 = 20_000;

/// `GET /site/doi/{doi}`: the landing page of a DOI, no matter where its record is kept.
pub(crate) async fn landing(
    State(site): State<Site>,
    visitor: Visitor,
    Path(doi): Path<String>,
) -> Result<Response> {
    let place = place_of(&site, &visitor, &doi).await;
    let redirect = place.map(|it| answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &it));
    site.shown(&visitor, redirect)
}

async fn place_of(site: &Site, visitor: &Visitor, asked: &str) -> Result<String> {
    let doi = doi_of(asked);
    if doi.is_empty() {
        return Err(SiteError::NotFound);
    }
    let (segment, rest) = (encoded(&doi), encoded_rest(&doi));
    let persistent = encoded(&format!("doi:{doi}"));
    for (dialect, path, page) in [
        ("scicat", format!("/api/v3/publisheddata/{segment}"), format!("/site/publication/{rest}")),
        ("scicat", format!("/api/v3/datasets/{segment}"), format!("/site/dataset/{rest}")),
        (
            "dataverse",
            format!(
                "/api/datasets/:persistentId?persistentId={persistent}&excludeFiles=true&excludeMetadataBlocks=true"
            ),
            format!("/site/deposit/{}", encoded_rest(&format!("doi:{doi}"))),
        ),
    ] {
        match site.read(visitor, dialect, &path).await {
            Ok(Value::Null) => {}
            Ok(_) => return Ok(page),
            Err(SiteError::NotFound | SiteError::SignIn) => {}
            Err(other) => return Err(other),
        }
    }
    if site.neighbour("labe").is_some() {
        let (cites, cited) = tokio::join!(
            count(site, visitor, "reference-count", &doi),
            count(site, visitor, "citation-count", &doi)
        );
        if cites? + cited? > 0 {
            return Ok(format!("/site/work/{rest}"));
        }
    }
    Err(SiteError::NotFound)
}

pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(doi): Path<String>,
) -> Result<Response> {
    let record = work(&site, &visitor, &doi).await;
    let shown = record.and_then(|it| site.record_page(&visitor, &it));
    site.shown(&visitor, shown)
}

async fn count(site: &Site, visitor: &Visitor, operation: &str, doi: &str) -> Result<u64> {
    let path = format!("/index/v2/{operation}/doi:{}", encoded_rest(doi));
    let said = site.read(visitor, "labe", &path).await?;
    Ok(said.get(0).and_then(|it| text(it, "count").parse().ok()).unwrap_or(0))
}

/// Returns the DOIs at the other end of a work's citations.
async fn others(
    site: &Site,
    visitor: &Visitor,
    operation: &str,
    side: &str,
    doi: &str,
) -> Result<Vec<String>> {
    let path = format!("/index/v2/{operation}/doi:{}", encoded_rest(doi));
    let said = site.read(visitor, "labe", &path).await?;
    let rows = said.as_array().map_or(&[][..], Vec::as_slice).iter();
    let dois = rows.filter_map(|it| text(it, side).split(' ').map(doi_of).find(|it| !it.is_empty()));
    Ok(dois.take(LISTED_MAX).collect())
}

async fn work(site: &Site, visitor: &Visitor, asked: &str) -> Result<Record> {
    let doi = doi_of(asked);
    if doi.is_empty() || site.neighbour("labe").is_none() {
        return Err(SiteError::NotFound);
    }
    let (n_cites, n_cited) = tokio::join!(
        count(site, visitor, "reference-count", &doi),
        count(site, visitor, "citation-count", &doi)
    );
    let (n_cites, n_cited) = (n_cites?, n_cited?);
    if n_cites + n_cited == 0 {
        return Err(SiteError::NotFound);
    }
    let cites = if n_cites > ASKED_MAX {
        Vec::new()
    } else {
        others(site, visitor, "references", "cited", &doi).await?
    };
    let cited = if n_cited > ASKED_MAX {
        Vec::new()
    } else {
        others(site, visitor, "citations", "citing", &doi).await?
    };
    let mut record = Record { kind_key: "work", title: doi.clone(), ..Record::default() };
    record.fact("identifier", [Link::to(doi.clone(), format!("https://doi.org/{}", encoded_rest(&doi)))]);
    record.plain("n_cited_by", [n_cited.to_string()]);
    record.plain("n_cites", [n_cites.to_string()]);
    record.drawing = Some(drawing(&doi, &cited, &cites));
    let rows = |list: &[String]| list.iter().map(|it| vec![Link::to(it.clone(), href(it))]).collect();
    record.table("cited_by", &["work"], rows(&cited), Some(n_cited));
    record.table("cites", &["work"], rows(&cites), Some(n_cites));
    for (name, operation) in [("citations", "citations"), ("references", "references")] {
        let path = format!("/index/v2/{operation}/doi:{}", encoded_rest(&doi));
        if let Some(href) = site.href(visitor, "labe", &path) {
            record.exports.push(Link { text: format!("JSON ({name})"), href: Some(href) });
        }
    }
    Ok(record)
}

fn href(doi: &str) -> String {
    format!("/site/doi/{}", encoded_rest(doi))
}

/// Draws the neighbourhood: citing works on the left, cited works on the right.
fn drawing(doi: &str, cited_by: &[String], cites: &[String]) -> String {
    let (left, right) = (&cited_by[..cited_by.len().min(DRAWN_MAX)], &cites[..cites.len().min(DRAWN_MAX)]);
    let height = 40 * left.len().max(right.len()).max(2) + 20;
    let middle = height / 2;
    let mut out = format!(
        "<svg class=\"graph\" viewBox=\"0 0 720 {height}\" role=\"group\" aria-labelledby=\"graph\">"
    );
    let place = |at: usize, n: usize| middle - 20 * n + 40 * at + 20;
    for at in 0..left.len() {
        let y = place(at, left.len());
        let _ = write!(out, "<path d=\"M190 {y} C 240 {y} 240 {middle} 282 {middle}\"/>");
    }
    for at in 0..right.len() {
        let y = place(at, right.len());
        let _ = write!(out, "<path d=\"M438 {middle} C 480 {middle} 480 {y} 530 {y}\"/>");
    }
    for (list, x) in [(left, 5), (right, 535)] {
        for (at, it) in list.iter().enumerate() {
            label(&mut out, "near", x, place(at, list.len()), it);
        }
    }
    label(&mut out, "self", 287, middle, doi);
    out.push_str("</svg>");
    out
}

fn label(out: &mut String, class: &str, x: usize, y: usize, doi: &str) {
    let top = y - 15;
    let width = if class == "self" { 150 } else { 180 };
    let short: String = match doi.chars().count() {
        0..=24 => doi.to_owned(),
        _ => doi.chars().take(22).chain(['…']).collect(),
    };
    let (center, base) = (x + width / 2, y + 5);
    let shape = format!("<rect x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"30\" rx=\"6\"/>");
    let _ = write!(
        out,
        "<a href=\"{}\" class=\"{class}\"><title>{}</title>{shape}<text x=\"{center}\" y=\"{base}\">{}</text></a>",
        escaped(&href(doi)),
        escaped(doi),
        escaped(&short)
    );
}

/// Escapes text for HTML elements and attributes in double quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            it => out.push(it),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_holds_no_markup_of_identifiers() {
        let drawn = drawing("10.1/a", &["10.1/<script>\"'&".to_owned()], &["10.2/b".to_owned()]);
        assert!(!drawn.contains("<script") && drawn.contains("10.1/&lt;script&gt;&quot;"), "{drawn}");
        assert_eq!(drawn.matches("<path").count(), 2);
        assert_eq!(drawn.matches("<a ").count(), 3);
    }
}
