//! The routes of `labed`: `/`, `/id/`, `/doi/`, `/cache`, `/stats`.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use http::header::{CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use pinakes_citations::{Doi, Graph};
use pinakes_http::{Db, Sink, answer};
use pinakes_store::{View, Weight};

use crate::app::Labe;
use crate::citation::{self, Output, Question, Stop};
use crate::error::{LabeError, page_not_found};
use crate::id_maps::Mapped;
use crate::isil;
use crate::path::{self, Slashes};
use crate::statistics::Part;

/// `application/json` without parameters.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Buffer size per neighbour in an answer, in bytes: the average size of abridged documents, including the many works
/// without one.
const DOCUMENT_BYTES: usize = 320;

/// Returns the routes. They accept every method, as refused methods get an answer without `Allow`.
pub(crate) fn routes() -> Router<Labe> {
    Router::new()
        .route("/", any(root))
        .route("/id/{*id}", any(by_id))
        .route("/doi/", any(by_doi))
        .route("/doi/{*doi}", any(by_doi))
        .route("/cache", any(cache))
        .route("/stats", any(stats))
}

/// Answers for unknown paths: a redirect to the cleaned path, or 404.
pub(crate) async fn elsewhere(uri: Uri) -> Response {
    path::cleaning_redirect(&uri, Slashes::Collapse).unwrap_or_else(page_not_found)
}

/// `GET /`: describes the service and its endpoints.
async fn root(method: Method, headers: HeaderMap) -> Response {
    if method != Method::GET {
        return method_not_allowed();
    }
    let host =
        headers.get(HOST).and_then(|it| it.to_str().ok()).filter(|it| is_host(it)).unwrap_or("localhost");
    let text = format!(
        "pinakes {version}: citations joined with the catalogue (labe interface)\n\
         process {pid}, https://github.com/slub/labe\n\n\
         Endpoints\n\n\
         \x20   /                GET     this page\n\
         \x20   /id/{{id}}         GET     citations of a record, by its local id; ?i=ISIL for the holdings of one institution\n\
         \x20   /doi/{{doi}}       GET     the same by DOI: a redirect to the record\n\
         \x20   /cache           GET     size of the cache, which is not needed and always empty\n\
         \x20   /cache           DELETE  empties it\n\
         \x20   /stats           GET     statistics of this process\n\
         \x20   /index/v2        GET     the OpenCitations API\n\n\
         Examples\n\n\
         \x20   http://{host}/id/ai-49-aHR0cDovL2R4LmRvaS5vcmcvMTAuMTA3My9wbmFzLjg1LjguMjQ0NA\n\
         \x20   http://{host}/id/ai-49-aHR0cDovL2R4LmRvaS5vcmcvMTAuMTA3My9wbmFzLjg1LjguMjQ0NA?i=DE-14\n\
         \x20   http://{host}/doi/10.1073/pnas.85.8.2444\n\
         \x20   http://{host}/cache\n\
         \x20   http://{host}/stats\n\
         \x20   http://{host}/index/v2/references/doi:10.1073/pnas.85.8.2444\n\
         \x20   http://{host}/index/v2/citation-count/doi:10.1073/pnas.85.8.2444\n",
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
    );
    answer::text(StatusCode::OK, text)
}

/// `GET /id/{id}`, `GET /id/{id}?i=ISIL`: the citation document.
async fn by_id(
    State(app): State<Labe>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, LabeError> {
    let started = Instant::now();
    if method != Method::GET {
        return Ok(method_not_allowed());
    }
    if let Some(redirect) = path::cleaning_redirect(&uri, Slashes::Stay) {
        return Ok(redirect);
    }
    let institution = isil::of_query(uri.query())?;
    let id = path::rest(&uri, "/id/").ok_or(LabeError::UnknownId)?;
    let db = app.db(&headers).await?;
    let graph = app.graph();
    let mapped = mapped(&app, &db, graph.clone(), &id).await?.ok_or(LabeError::UnknownId)?;
    app.parts.statistics.note_part(Part::LookUp, started.elapsed());
    let Some(graph) = graph else { return Ok(no_edges()) };
    let Some(question) = Question::of(&graph, &id, mapped, institution, started) else {
        return Ok(no_edges());
    };
    document(app, &db, graph, question).await
}

/// Returns the DOI of an id. Most ids are in the tables, which needs no read of the store.
async fn mapped(
    app: &Labe,
    db: &Db,
    graph: Option<Arc<Graph>>,
    id: &str,
) -> Result<Option<Mapped>, LabeError> {
    if let Some(mapped) = app.parts.maps(graph.as_deref()).doi_in_tables(id) {
        return Ok(Some(mapped));
    }
    let (app, id) = (app.clone(), id.to_owned());
    db.read(Weight::Point, move |view| Ok(app.parts.maps(graph.as_deref()).doi_of(view, &id)?)).await
}

/// Answers with the document: at once, or as a stream if there are many neighbours.
async fn document(app: Labe, db: &Db, graph: Arc<Graph>, question: Question) -> Result<Response, LabeError> {
    let n_neighbours = question.n_neighbours(&graph);
    let is_short = n_neighbours <= app.parts.settings.inline_neighbours;
    let room_bytes = DOCUMENT_BYTES * (1 + n_neighbours);
    let limits = app.context.limits().clone();
    let tenant = db.tenant().clone();
    let write = move |view: &mut View<'_>, out: &mut Output<'_>| {
        let shelf = app.parts.shelves.current(&app, &tenant, &graph, view)?;
        let maps = app.parts.maps(Some(&graph));
        finish(&app, citation::write(view, maps, &graph, &question, shelf.as_deref(), out))
    };
    let body = if is_short {
        let whole = db
            .read(Weight::Point, move |view| -> Result<Vec<u8>, LabeError> {
                let mut body = Vec::with_capacity(room_bytes);
                let mut push = |bytes: &[u8]| {
                    body.extend_from_slice(bytes);
                    Ok(())
                };
                write(view, &mut push)?;
                Ok(body)
            })
            .await?;
        whole.into()
    } else {
        db.stream(&limits, move |view, sink: &mut Sink| -> Result<(), LabeError> {
            write(view, &mut |bytes: &[u8]| sink.push(bytes).map_err(|_| Stop::Gone))
        })
        .await?
    };
    Ok(answer::with_body(StatusCode::OK, JSON, body))
}

/// Adds the reading times to the statistics; a client that has gone away is not an error.
fn finish(app: &Labe, written: Result<citation::Reads, Stop>) -> Result<(), LabeError> {
    match written {
        Ok(reads) => {
            app.parts.statistics.note_part(Part::Documents, reads.documents);
            Ok(())
        }
        Err(Stop::Gone) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// `GET /doi/{doi}`: redirects to the first record with the DOI in this spelling.
async fn by_doi(
    State(app): State<Labe>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, LabeError> {
    if method != Method::GET {
        return Ok(method_not_allowed());
    }
    if let Some(redirect) = path::cleaning_redirect(&uri, Slashes::Stay) {
        return Ok(redirect);
    }
    let asked = path::rest(&uri, "/doi/").unwrap_or_default();
    let db = app.db(&headers).await?;
    let id = db.read(Weight::Point, move |view| first_id(&app, view, &asked)).await?;
    let Some(id) = id else {
        return Ok(answer::text(StatusCode::NOT_FOUND, "{\"msg\": \"no id found\", \"status\": 404}\n"));
    };
    let mut location = format!("/id/{}", path::escaped(&id));
    if let Some(query) = uri.query() {
        location.push('?');
        location.push_str(query);
    }
    let mut redirect =
        answer::with_header(answer::empty(StatusCode::TEMPORARY_REDIRECT), LOCATION, &location);
    redirect.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(redirect)
}

/// Returns the first record whose DOI is spelt as requested.
fn first_id(app: &Labe, view: &mut View<'_>, asked: &str) -> Result<Option<String>, LabeError> {
    let graph = app.graph();
    let maps = app.parts.maps(graph.as_deref());
    let (exact, trimmed) = (Doi::parse(asked).ok(), Doi::parse_dirty(asked).ok());
    let trimmed = trimmed.filter(|it| exact.as_ref() != Some(it));
    for doi in [exact, trimmed].into_iter().flatten() {
        for holding in maps.holdings_of(view, doi.as_str())? {
            if maps.doi_of(view, &holding.id)?.is_some_and(|it| it.spelled == asked) {
                return Ok(Some(holding.id));
            }
        }
    }
    Ok(None)
}

/// `GET /cache`, `DELETE /cache`: there is no cache, as answers are fast enough without one.
async fn cache(method: Method) -> Response {
    match method {
        Method::GET => answer::text(StatusCode::OK, "{\"count\":0,\"path\":\"\"}\n"),
        Method::DELETE => answer::empty(StatusCode::OK),
        _ => method_not_allowed(),
    }
}

/// `GET /stats`: statistics of this process.
async fn stats(State(app): State<Labe>, method: Method) -> Response {
    if method != Method::GET {
        return method_not_allowed();
    }
    let statistics = app.parts.statistics.json(app.context.clock().now_ms());
    answer::bytes(StatusCode::OK, JSON, statistics.to_string())
}

/// Answers for a known record without citations and references.
fn no_edges() -> Response {
    answer::bytes(StatusCode::NOT_FOUND, JSON, "")
}

fn method_not_allowed() -> Response {
    answer::empty(StatusCode::METHOD_NOT_ALLOWED)
}

/// Says whether a host may be repeated in the answer: `^[a-zA-Z0-9._-]+(:[0-9]+)?$`.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty()
        && name.bytes().all(is_name_byte)
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
}
