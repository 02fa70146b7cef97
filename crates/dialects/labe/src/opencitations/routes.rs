//! Paths and operations of the OpenCitations API, its headers and its errors.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, LINK, LOCATION, REFERER,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use pinakes_citations::Graph;
use pinakes_http::{Refusal, Sink, answer};
use pinakes_store::{StoreError, View, Weight};

use super::identifiers::{self, Version, WorkId};
use super::parameters::{self, Format, Page, PageBounds, ParameterError, Parameters};
use super::typed::{Column, Row};
use super::write::{self, Stopped};
use super::{index, meta};
use crate::app::Labe;
use crate::envelope;
use crate::kinds::{AUTHOR_SCHEME, EDITOR_SCHEME, ISSN_SCHEME};

/// Separates the identifiers of several works in a path.
const BETWEEN_IDS: &str = "__";
/// Current and former paths of index v1; old clients still use the former ones.
const V1_BASES: [&str; 6] = [
    "/index/v1",
    "/index/api/v1",
    "/index/coci/api/v1",
    "/index/doci/api/v1",
    "/index/croci/api/v1",
    "/index/poci/api/v1",
];
const V2_BASES: [&str; 2] = ["/index/v2", "/index/api/v2"];
const META_BASES: [&str; 2] = ["/meta/v1", "/meta/api/v1"];

/// Returns the routes.
pub(crate) fn routes() -> Router<Labe> {
    let mut router = Router::new()
        .route("/health", any(health))
        .route("/index", any(to_index))
        .route("/meta", any(to_meta))
        .route("/index/{*rest}", any(api))
        .route("/meta/{*rest}", any(api));
    for base in V1_BASES.iter().chain(&V2_BASES).chain(&META_BASES) {
        router = router.route(base, any(manual)).route(&format!("{base}/{{operation}}/{{*id}}"), any(api));
    }
    router
}

/// An operation and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    Citations(Version, WorkId),
    References(Version, WorkId),
    Citation(Version, String),
    CitationCount(WorkId),
    ReferenceCount(WorkId),
    /// Counts for several works, which the path names.
    CitationCounts(Vec<(String, WorkId)>),
    ReferenceCounts(Vec<(String, WorkId)>),
    OldMetadata(Vec<WorkId>),
    Metadata(Vec<WorkId>),
    /// Works of a person, `orcid:…` or `omid:ra/…`, or of a venue, with the scheme of the store.
    NamedBy(&'static str, String),
    /// Count for an ISSN.
    VenueCount(String),
}

impl Operation {
    /// Returns the operation at a decoded path; `None` if there is none, or its identifier does not match.
    fn at(path: &str, works_max: usize) -> Option<Self> {
        let below = |bases: &[&str]| bases.iter().find_map(|base| path.strip_prefix(base)?.strip_prefix('/'));
        let (version, rest) = match (below(&V1_BASES), below(&V2_BASES)) {
            (Some(rest), _) => (Version::V1, rest),
            (None, Some(rest)) => (Version::V2, rest),
            (None, None) => {
                let (name, id) = below(&META_BASES)?.split_once('/')?;
                return match name {
                    "metadata" => several(id, works_max, WorkId::of_meta).map(Self::Metadata),
                    "author" => identifiers::person(id).map(|it| Self::NamedBy(AUTHOR_SCHEME, it)),
                    "editor" => identifiers::person(id).map(|it| Self::NamedBy(EDITOR_SCHEME, it)),
                    "venue" => {
                        envelope::issn(id.strip_prefix("issn:")?).map(|it| Self::NamedBy(ISSN_SCHEME, it))
                    }
                    _ => None,
                };
            }
        };
        let (name, id) = rest.split_once('/')?;
        let work = || WorkId::of_index(version, id);
        let named = |it: &str| Some((it.to_owned(), WorkId::of_index(version, it)?));
        let is_batch = id.contains(BETWEEN_IDS) && id.split(BETWEEN_IDS).all(|it| named(it).is_some());
        match (name, version) {
            ("citation-count", _) if is_batch => several(id, works_max, named).map(Self::CitationCounts),
            ("reference-count", _) if is_batch => several(id, works_max, named).map(Self::ReferenceCounts),
            ("citations", _) => Some(Self::Citations(version, work()?)),
            ("references", _) => Some(Self::References(version, work()?)),
            ("citation-count", _) => Some(Self::CitationCount(work()?)),
            ("reference-count", _) => Some(Self::ReferenceCount(work()?)),
            ("venue-citation-count", Version::V2) => {
                envelope::issn(id.strip_prefix("issn:")?).map(Self::VenueCount)
            }
            ("citation", _) => {
                identifiers::is_oci(version, id).then(|| Self::Citation(version, id.to_owned()))
            }
            ("metadata", Version::V1) => {
                several(id, works_max, |it| WorkId::of_index(version, it)).map(Self::OldMetadata)
            }
            _ => None,
        }
    }

    fn columns(&self) -> &'static [Column] {
        match self {
            Self::Citations(..) | Self::References(..) | Self::Citation(..) => &index::CITATION,
            Self::CitationCount(_) | Self::ReferenceCount(_) | Self::VenueCount(_) => &index::COUNT,
            Self::CitationCounts(_) | Self::ReferenceCounts(_) => &index::COUNTS,
            Self::OldMetadata(_) => &meta::OLD_METADATA,
            Self::Metadata(_) | Self::NamedBy(..) => &meta::META,
        }
    }

    /// Returns the approximate number of rows.
    fn n_rows(&self, graph: &Graph) -> usize {
        let number = |work: &WorkId| work.number(graph);
        match self {
            Self::Citations(_, work) => number(work).map_or(0, |it| graph.citations(it).len()),
            Self::References(_, work) => number(work).map_or(0, |it| graph.references(it).len()),
            // Not known in advance; the maximum makes a reading thread answer.
            Self::NamedBy(..) | Self::VenueCount(_) => usize::MAX,
            _ => 1,
        }
    }

    /// Passes the rows to `take`.
    fn rows(
        &self,
        app: &Labe,
        graph: Option<&Graph>,
        view: &mut View<'_>,
        take: &mut dyn FnMut(&mut dyn Iterator<Item = Row>) -> Result<(), Stopped>,
    ) -> Result<Result<(), Stopped>, StoreError> {
        let find = |work: &WorkId| graph.and_then(|graph| Some((graph, work.number(graph)?)));
        let count = |n: Option<usize>| std::iter::once(vec![n.unwrap_or(0).to_string()]);
        Ok(match self {
            Self::Citations(version, work) => match find(work) {
                Some((graph, number)) => take(&mut index::citations(graph, *version, number)),
                None => take(&mut std::iter::empty()),
            },
            Self::References(version, work) => match find(work) {
                Some((graph, number)) => take(&mut index::references(graph, *version, number)),
                None => take(&mut std::iter::empty()),
            },
            Self::Citation(version, oci) => {
                let row = graph.and_then(|graph| {
                    let (citing, cited) = identifiers::ends_of_oci(graph, oci)?;
                    Some(index::row(graph, *version, citing, cited, &graph.citation(citing, cited)?))
                });
                take(&mut row.into_iter())
            }
            Self::CitationCount(work) => {
                take(&mut count(find(work).map(|(graph, number)| graph.citations(number).len())))
            }
            Self::ReferenceCount(work) => {
                take(&mut count(find(work).map(|(graph, number)| graph.references(number).len())))
            }
            Self::CitationCounts(works) => take(&mut works.iter().map(|(id, work)| {
                let n = find(work).map_or(0, |(graph, number)| graph.citations(number).len());
                vec![id.clone(), n.to_string()]
            })),
            Self::ReferenceCounts(works) => take(&mut works.iter().map(|(id, work)| {
                let n = find(work).map_or(0, |(graph, number)| graph.references(number).len());
                vec![id.clone(), n.to_string()]
            })),
            Self::VenueCount(issn) => {
                let n_citing = match graph {
                    Some(graph) => meta::n_citing_venue(view, app, graph, issn)?,
                    None => 0,
                };
                take(&mut count(Some(n_citing)))
            }
            Self::NamedBy(scheme, name) => {
                let mut rows = Vec::new();
                if let Some(graph) = graph {
                    let maps = app.parts.maps(Some(graph));
                    let works = meta::named_by(view, app, graph, scheme, name, app.parts.settings.rows)?;
                    for number in works {
                        rows.push(meta::meta_row(view, maps, graph, number)?);
                    }
                }
                take(&mut rows.into_iter())
            }
            Self::OldMetadata(works) | Self::Metadata(works) => {
                let mut rows = Vec::new();
                let mut seen = Vec::new();
                for work in works {
                    if let WorkId::Other(Some(id)) = work {
                        let (maps, max) = (app.parts.maps(graph), app.parts.settings.metadata_works);
                        rows.extend(meta::rows_of_documents(view, maps, graph, id, max)?);
                    }
                    let Some((graph, number)) = find(work) else { continue };
                    if seen.contains(&number) {
                        continue;
                    }
                    seen.push(number);
                    let maps = app.parts.maps(Some(graph));
                    rows.push(match self {
                        Self::Metadata(_) => meta::meta_row(view, maps, graph, number)?,
                        _ => meta::old_row(view, maps, graph, number)?,
                    });
                }
                take(&mut rows.into_iter())
            }
        })
    }
}

fn several<T>(text: &str, works_max: usize, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let works: Vec<T> = text.split(BETWEEN_IDS).take(works_max + 1).map(parse).collect::<Option<_>>()?;
    (works.len() <= works_max).then_some(works)
}

/// Reason why an operation returns no rows.
#[derive(Debug, thiserror::Error)]
enum ApiError {
    #[error("No API operation found at URL '{0}'")]
    NoOperation(String),
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    #[error("this API answers GET only")]
    Method,
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

impl ApiError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoOperation(_) => StatusCode::NOT_FOUND,
            Self::Parameters(ParameterError::Unexpected(_)) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Parameters(ParameterError::Malformed(_)) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Refused(refusal) => refusal.status(),
        }
    }

    fn response(&self, format: Format) -> Response {
        let code = self.status().as_u16();
        match self {
            Self::Refused(refusal) => {
                let text = format!("HTTP status code {code}: {}", refusal.message());
                refusal.with_body(content_type(format), text)
            }
            Self::NoOperation(_) => answer::bytes(self.status(), content_type(format), self.to_string()),
            other => {
                let text = format!("HTTP status code {code}: {other}");
                answer::bytes(other.status(), content_type(format), text)
            }
        }
    }
}

/// Handles all operations.
async fn api(State(app): State<Labe>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let pairs = parameters::pairs(uri.query().unwrap_or_default());
    let format = Format::of(&pairs, &headers);
    let response = if method == Method::OPTIONS {
        answer::bytes(StatusCode::OK, content_type(format), "")
    } else {
        let answered = answered(&app, &method, &uri, &headers, &pairs).await;
        answered.unwrap_or_else(|error| error.response(format))
    };
    for_other_origins(response, &headers)
}

async fn answered(
    app: &Labe,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    pairs: &[(String, String)],
) -> Result<Response, ApiError> {
    if method != Method::GET {
        return Err(ApiError::Method);
    }
    let settings = &app.parts.settings;
    let path = percent_encoding::percent_decode_str(uri.path()).decode_utf8_lossy().into_owned();
    let operation =
        Operation::at(&path, settings.metadata_works).ok_or_else(|| ApiError::NoOperation(path.clone()))?;
    let bounds = PageBounds { size_default: settings.page_rows, size_max: settings.rows };
    let parameters = Parameters::parse(pairs, headers, operation.columns(), bounds)?;
    let db = app.db(headers).await?;
    let graph = app.graph();
    let n_rows = graph.as_deref().map_or(0, |graph| operation.n_rows(graph));
    let is_short = n_rows <= settings.inline_neighbours;
    let asked = Asked { app: app.clone(), graph, operation, parameters };
    let content_type = content_type(asked.parameters.format);
    if let Some(page) = asked.parameters.page {
        let weight = if is_short { Weight::Point } else { Weight::Scan };
        let (body, n_kept) = db.read(weight, move |view| asked.page(view, page)).await?;
        let response = answer::bytes(StatusCode::OK, content_type, body);
        return Ok(answer::with_header(response, LINK, &links(uri, pairs, page, n_kept)));
    }
    let body = if is_short {
        let whole = db.read(Weight::Point, move |view| {
            let mut body = Vec::new();
            let mut push = |bytes: &[u8]| {
                body.extend_from_slice(bytes);
                Ok(())
            };
            asked.write(view, &mut push)?;
            Ok::<_, ApiError>(body)
        });
        Body::from(whole.await?)
    } else {
        let limits = app.context.limits().clone();
        db.stream(&limits, move |view, sink: &mut Sink| {
            asked.write(view, &mut |bytes: &[u8]| sink.push(bytes).map_err(|_| Stopped))
        })
        .await?
    };
    Ok(answer::with_body(StatusCode::OK, content_type, body))
}

/// A valid request.
struct Asked {
    app: Labe,
    graph: Option<Arc<Graph>>,
    operation: Operation,
    parameters: Parameters,
}

impl Asked {
    /// Writes all rows. A client that has gone away is not an error.
    fn write(&self, view: &mut View<'_>, out: &mut write::Output<'_>) -> Result<(), ApiError> {
        let parameters = &self.parameters;
        let rows_max = self.app.parts.settings.rows;
        let written = self.operation.rows(&self.app, self.graph.as_deref(), view, &mut |rows| {
            let mut kept = rows.take(rows_max).filter(|row| parameters.keeps(row));
            if parameters.keeps_order() {
                return write::rows(parameters, &mut kept, out);
            }
            let mut rows: Vec<Row> = kept.collect();
            parameters.sort(&mut rows);
            write::rows(parameters, &mut rows.into_iter(), out)
        })?;
        match written {
            Ok(()) | Err(Stopped) => Ok(()),
        }
    }

    /// Returns the rows of a page as bytes, and the total number of rows on all pages.
    fn page(&self, view: &mut View<'_>, page: Page) -> Result<(Vec<u8>, usize), ApiError> {
        let parameters = &self.parameters;
        let rows_max = self.app.parts.settings.rows;
        let mut all: Vec<Row> = Vec::new();
        let taken = self.operation.rows(&self.app, self.graph.as_deref(), view, &mut |rows| {
            all.extend(rows.take(rows_max).filter(|row| parameters.keeps(row)));
            Ok(())
        })?;
        debug_assert_eq!(taken, Ok(()));
        parameters.sort(&mut all);
        let n_kept = all.len();
        let skipped = page.size.saturating_mul(page.number - 1);
        let mut body = Vec::new();
        let mut rows = all.into_iter().skip(skipped).take(page.size);
        let written = write::rows(parameters, &mut rows, &mut |bytes| {
            body.extend_from_slice(bytes);
            Ok(())
        });
        debug_assert_eq!(written, Ok(()));
        Ok((body, n_kept))
    }
}

/// Returns the links to the neighbouring pages (RFC 8288): `<…?page=2&page_size=10>; rel="next", …`.
fn links(uri: &Uri, pairs: &[(String, String)], page: Page, n_rows: usize) -> String {
    let n_pages = n_rows.div_ceil(page.size).max(1);
    let others = pairs.iter().filter(|(name, _)| name != "page" && name != "page_size");
    let encode = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let query: String = others.map(|(name, value)| format!("{}={}&", encode(name), encode(value))).collect();
    let link = |number: usize, relation: &str| {
        format!("<{}?{query}page={number}&page_size={}>; rel=\"{relation}\"", uri.path(), page.size)
    };
    let previous = (1 < page.number).then(|| link((page.number - 1).min(n_pages), "prev"));
    let next = (page.number < n_pages).then(|| link(page.number + 1, "next"));
    let all = [Some(link(1, "first")), previous, next, Some(link(n_pages, "last"))];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

async fn health() -> Response {
    answer::bytes(StatusCode::OK, content_type(Format::Json), "{\"status\": \"ok\"}")
}

async fn to_index() -> Response {
    answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, "/index/v2")
}

async fn to_meta() -> Response {
    answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, "/meta/v1")
}

/// Answers at the root of a version with a page that lists its operations.
async fn manual(uri: Uri) -> Response {
    let base = uri.path();
    let operations: &[&str] = if META_BASES.contains(&base) {
        &[
            "metadata/{doi:…|pmid:…|omid:br/…}__…",
            "author/{orcid:…|omid:ra/…}",
            "editor/{orcid:…|omid:ra/…}",
            "venue/{issn:…}",
        ]
    } else if V2_BASES.contains(&base) {
        &[
            "citations/{doi:…|pmid:…|omid:br/…}",
            "references/{…}",
            "citation-count/{…}",
            "reference-count/{…}",
            "citation/{oci}",
            "venue-citation-count/{issn:…}",
        ]
    } else {
        &[
            "citations/{doi}",
            "references/{doi}",
            "citation-count/{doi}",
            "reference-count/{doi}",
            "citation/{oci}",
            "metadata/{doi}__…",
        ]
    };
    let items: String = operations.iter().map(|it| format!("<li><code>{base}/{it}</code></li>\n")).collect();
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Citations at {base}</title></head><body>\n\
         <h1>Citations at {base}</h1>\n<p>The OpenCitations REST API, answered from a local copy of the open citation data.</p>\n\
         <ul>\n{items}</ul>\n\
         <p>Parameters: <code>require</code>, <code>filter</code>, <code>sort</code>, <code>format</code>, <code>json</code>, \
         <code>page</code>, <code>page_size</code>.</p>\n</body></html>\n"
    );
    answer::bytes(StatusCode::OK, HeaderValue::from_static("text/html; charset=utf-8"), page)
}

fn content_type(format: Format) -> HeaderValue {
    HeaderValue::from_static(match format {
        Format::Json => "application/json",
        Format::Csv => "text/csv",
    })
}

/// Adds the headers that let pages of other origins read the answer: the referrer's site, or any if there is
/// none.
fn for_other_origins(mut response: Response, request: &HeaderMap) -> Response {
    let referer = request.get(REFERER).and_then(|it| it.to_str().ok()).map(|it| {
        let mut text = it.to_owned();
        text.pop();
        text
    });
    let origin =
        referer.and_then(|it| HeaderValue::from_str(&it).ok()).unwrap_or(HeaderValue::from_static("*"));
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Authorization"));
    response
}
