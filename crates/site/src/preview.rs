//! Previews of files of deposits: pictures, PDF, the beginning of tables and of texts. Bytes are requested from
//! Dataverse's dialect on behalf of the visitor, by ranges, which do not count as downloads. Nothing in a file is
//! executed: what browsers would execute (HTML, SVG) is shown as text.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use futures_util::StreamExt as _;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, RANGE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use pinakes_http::{Question, RequestScope, answer};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::{encoded, encoded_rest};
use crate::record::{bytes_shown, text};

/// Number of bytes of a text or table that are read.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum size of a picture that is shown, in bytes.
const PICTURE_BYTES_MAX: u64 = 20_000_000;
/// Maximum size of a PDF that is shown, in bytes.
const PDF_BYTES_MAX: u64 = 100_000_000;
/// Maximum number of rows and columns of a table that are shown.
const ROWS_MAX: usize = 100;
const COLUMNS_MAX: usize = 50;

/// How a file is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Showing {
    /// The whole file as a picture, with the content type for the browser.
    Picture(&'static str),
    /// The whole file in the browser's own viewer.
    Pdf,
    /// The first rows.
    Table {
        /// The separator of cells.
        divider: char,
    },
    /// The first lines.
    Text,
}

impl Showing {
    /// Returns how files of a content type are shown; `None` if they have no preview.
    pub(crate) fn of(content_type: &str, name: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let ending = name.rsplit_once('.').map(|it| it.1.to_ascii_lowercase()).unwrap_or_default();
        Some(match essence.as_str() {
            "image/png" => Self::Picture("image/png"),
            "image/jpeg" | "image/jpg" => Self::Picture("image/jpeg"),
            "image/gif" => Self::Picture("image/gif"),
            "image/webp" => Self::Picture("image/webp"),
            "application/pdf" => Self::Pdf,
            "text/tab-separated-values" | "text/tsv" => Self::Table { divider: '\t' },
            "text/csv" | "text/comma-separated-values" => Self::Table { divider: ',' },
            "application/json"
            | "application/ld+json"
            | "application/geo+json"
            | "application/xml"
            | "application/x-yaml"
            | "application/yaml"
            | "application/toml"
            | "application/x-sh"
            | "application/sql"
            | "application/javascript"
            | "application/x-ipynb+json"
            | "image/svg+xml" => Self::Text,
            it if it.starts_with("text/") || it.ends_with("+xml") || it.ends_with("+json") => Self::Text,
            _ => match ending.as_str() {
                "csv" => Self::Table { divider: ',' },
                "tsv" | "tab" => Self::Table { divider: '\t' },
                "txt" | "md" | "rst" | "log" | "json" | "xml" | "yaml" | "yml" | "toml" | "ini" | "py"
                | "r" | "sh" | "sql" | "c" | "h" | "rs" | "jl" | "m" => Self::Text,
                _ => return None,
            },
        })
    }
}

/// A file, as Dataverse describes it.
struct File {
    name: String,
    content_type: String,
    n_bytes: u64,
    pid: String,
    description: String,
    showing: Option<Showing>,
    is_restricted: bool,
}

async fn file(site: &Site, visitor: &Visitor, id: &str) -> Result<File> {
    let path = format!("/api/files/{}?returnOwners=true", encoded(id));
    let said = site.read(visitor, "dataverse", &path).await?;
    let it = &said["data"];
    let name = text(it, "label");
    let content_type = text(it, "dataFile/contentType");
    Ok(File {
        showing: Showing::of(&content_type, &name),
        name,
        content_type,
        n_bytes: it["dataFile"]["filesize"].as_u64().unwrap_or(0),
        pid: text(it, "dataFile/isPartOf/persistentIdentifier"),
        description: text(it, "description"),
        is_restricted: it["restricted"] == true,
    })
}

/// Returns the bytes of a file up to and including `last`, as a stream.
async fn bytes(site: &Site, visitor: &Visitor, id: &str, last: u64) -> Result<Response> {
    let path = format!("/api/access/datafile/{}", encoded(id));
    let range = HeaderValue::from_str(&format!("bytes=0-{last}"));
    let range = range.map_err(|error| SiteError::Damaged(error.to_string()))?;
    let question =
        Question { method: Method::GET, path: &path, headers: vec![(RANGE, range)], body: Body::empty() };
    let answer = site.open(visitor, "dataverse", question).await?;
    match answer.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(answer),
        StatusCode::RANGE_NOT_SATISFIABLE => Ok(answer::empty(StatusCode::OK)),
        status => Err(SiteError::of_status(status)),
    }
}

/// Returns the first bytes of a file.
async fn head(site: &Site, visitor: &Visitor, id: &str) -> Result<Vec<u8>> {
    let answer = bytes(site, visitor, id, HEAD_BYTES as u64 - 1).await?;
    let mut pieces = answer.into_body().into_data_stream();
    let mut head = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| SiteError::Damaged(error.to_string()))?;
        head.extend_from_slice(&piece[..piece.len().min(HEAD_BYTES - head.len())]);
        if HEAD_BYTES <= head.len() {
            break;
        }
    }
    Ok(head)
}

/// The beginning of a table.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    has_more_columns: bool,
}

/// Parses rows of separated values, RFC 4180; the last row is dropped if the text was cut off in it.
fn table(text: &str, divider: char, is_cut: bool) -> Table {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut has_more_columns) = (false, false);
    let mut signs = text.chars().peekable();
    let mut end_cell = |row: &mut Vec<String>, cell: &mut String| {
        let cell = std::mem::take(cell);
        if row.len() < COLUMNS_MAX { row.push(cell) } else { has_more_columns = true }
    };
    while let Some(sign) = signs.next() {
        match sign {
            '"' if is_quoted && signs.peek() == Some(&'"') => {
                cell.push('"');
                signs.next();
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.is_empty() => is_quoted = true,
            '\r' if !is_quoted && signs.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                end_cell(&mut row, &mut cell);
                rows.push(std::mem::take(&mut row));
                if ROWS_MAX < rows.len() {
                    break;
                }
            }
            it if it == divider && !is_quoted => end_cell(&mut row, &mut cell),
            it => cell.push(it),
        }
    }
    if !is_cut && (!row.is_empty() || !cell.is_empty()) && rows.len() <= ROWS_MAX {
        end_cell(&mut row, &mut cell);
        rows.push(row);
    }
    let mut rows = rows.into_iter().filter(|it| *it != [""]);
    let heads = rows.next().unwrap_or_default();
    Table { heads, rows: rows.collect(), has_more_columns }
}

/// Decodes a file's first bytes: as UTF-8, or else as Latin-1, which old instruments write. A character that was cut
/// off is dropped.
fn decoded(head: &[u8], is_cut: bool) -> String {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    match std::str::from_utf8(head) {
        Ok(text) => text.to_owned(),
        Err(error) if is_cut && error.error_len().is_none() => {
            String::from_utf8_lossy(&head[..error.valid_up_to()]).into_owned()
        }
        Err(_) => head.iter().map(|it| char::from(*it)).collect(),
    }
}

/// `GET /site/preview/{id}`
pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let page = shown(&site, &visitor, &id).await;
    site.shown(&visitor, page)
}

async fn shown(site: &Site, visitor: &Visitor, id: &str) -> Result<Response> {
    let it = file(site, visitor, id).await?;
    let (mut table_shown, mut text_shown, mut picture, mut pdf) = (Value::Null, Value::Null, false, false);
    let is_cut = HEAD_BYTES as u64 <= it.n_bytes;
    let mut note_key = None;
    match it.showing {
        Some(Showing::Picture(_)) if it.n_bytes <= PICTURE_BYTES_MAX => picture = true,
        Some(Showing::Pdf) if it.n_bytes <= PDF_BYTES_MAX => pdf = true,
        Some(Showing::Table { divider }) => match head(site, visitor, id).await {
            Ok(head) => table_shown = json!(table(&decoded(&head, is_cut), divider, is_cut)),
            Err(error) => note_key = Some(refused(error)?),
        },
        Some(Showing::Text) => match head(site, visitor, id).await {
            Ok(head) => text_shown = json!(decoded(&head, is_cut)),
            Err(error) => note_key = Some(refused(error)?),
        },
        Some(Showing::Picture(_) | Showing::Pdf) => note_key = Some("preview_too_large"),
        None => note_key = Some("preview_none"),
    }
    let download = site.href(visitor, "dataverse", &format!("/api/access/datafile/{}", encoded(id)));
    let page = json!({
        "title_key": "preview_of", "name": it.name, "content_type": it.content_type,
        "size": bytes_shown(it.n_bytes as f64), "description": it.description, "table": table_shown,
        "text": text_shown, "picture": picture, "pdf": pdf, "note_key": note_key, "is_cut": is_cut,
        "is_restricted": it.is_restricted, "content": format!("/site/preview/{}/content", encoded(id)),
        "download": download, "deposit": (!it.pid.is_empty()).then(|| format!("/site/deposit/{}", encoded_rest(&it.pid))),
    });
    let mut response = site.page(visitor, StatusCode::OK, "preview.html", page)?;
    if pdf {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(OF_PDF_PAGES));
    }
    Ok(response)
}

/// The policy of the page with a PDF, which the browser's viewer shows in a frame of this server.
const OF_PDF_PAGES: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; object-src 'self'; \
                            frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Returns the key of a note that is shown instead of bytes that the visitor may not access.
fn refused(error: SiteError) -> Result<&'static str> {
    match error {
        SiteError::NotFound | SiteError::SignIn | SiteError::Forbidden => Ok("preview_refused"),
        other => Err(other),
    }
}

/// `GET /site/preview/{id}/content`: the bytes of a picture or a PDF, for display within a page of this server.
pub(crate) async fn content(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let it = file(&site, &visitor, &id).await?;
    let (content_type, most) = match it.showing {
        Some(Showing::Picture(content_type)) => (content_type, PICTURE_BYTES_MAX),
        Some(Showing::Pdf) => ("application/pdf", PDF_BYTES_MAX),
        _ => return Err(SiteError::NotFound),
    };
    if most < it.n_bytes {
        return Err(SiteError::NotFound);
    }
    let scope = RequestScope::current();
    let pieces = bytes(&site, &visitor, &id, most - 1).await?.into_body().into_data_stream();
    let body = Body::from_stream(pieces.inspect(move |_| {
        if let Some(scope) = &scope {
            scope.note_progress();
        }
    }));
    let mut response = answer::with_body(StatusCode::OK, HeaderValue::from_static(content_type), body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("inline"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'self'"),
    );
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_run_is_text() {
        for (content_type, name, expected) in [
            ("image/png", "a.png", Some(Showing::Picture("image/png"))),
            ("image/svg+xml", "a.svg", Some(Showing::Text)),
            ("text/html; charset=utf-8", "a.html", Some(Showing::Text)),
            ("application/pdf", "a", Some(Showing::Pdf)),
            ("text/tab-separated-values", "a.tab", Some(Showing::Table { divider: '\t' })),
            ("application/octet-stream", "a.CSV", Some(Showing::Table { divider: ',' })),
            ("application/octet-stream", "a.bin", None),
            ("application/zip", "a.zip", None),
        ] {
            assert_eq!(Showing::of(content_type, name), expected, "{content_type} {name}");
        }
    }

    #[test]
    fn tables_are_read_with_their_quotes_and_without_a_row_that_is_cut_off() {
        let found = table("a,\"b \"\"x\"\"\"\r\n1,\"2\n3\"\n\n4", ',', false);
        assert_eq!(found.heads, ["a", "b \"x\""]);
        assert_eq!(found.rows, [vec!["1", "2\n3"], vec!["4"]]);
        assert_eq!(table("a\n1\n2", ',', true).rows, [["1"]]);
        let wide = table(&vec!["x"; 60].join("\t"), '\t', false);
        assert_eq!((wide.heads.len(), wide.has_more_columns), (COLUMNS_MAX, true));
        let long = table(&"1\n".repeat(500), ',', true);
        assert_eq!(long.rows.len(), ROWS_MAX);
    }

    #[test]
    fn texts_are_utf_8_or_latin_1() {
        assert_eq!(decoded("\u{feff}grün".as_bytes(), false), "grün");
        assert_eq!(decoded(b"gr\xfcn", false), "grün");
        assert_eq!(decoded(&"grün".as_bytes()[..3], true), "gr");
    }
}
