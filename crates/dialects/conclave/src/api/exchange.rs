//! Import, export and conversion over HTTP (section 10.5 of the contract).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::ops::ControlFlow;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use pinakes_http::{Gone, Sink, answer, body};
use pinakes_store::{Direction, End, Expr, Query, Txn, View, Weight};
use pinakes_topicmap::{Format, Limits, Options, TopicMap, read, write};
use serde_json::{Value, json};

use crate::app::Conclave;
use crate::call::Answer;
use crate::call::{Administering, Reading};
use crate::document;
use crate::edit::{Author, find};
use crate::error::{ConclaveError, Result};
use crate::facts::OfMap;
use crate::import::streaming::Categories;
use crate::import::streaming::Dmoz;
use crate::import::streaming::Streaming;
use crate::import::{Existing, Gathered, Loaded, Mapped, Ready, Source, check, put_all, put_map};
use crate::kinds::TOPIC;
use crate::model::{Topic, key};
use crate::projection::{beside, part_to_map};
use crate::text::after_prefix;

/// Maximum number of topics in one import by HTTP, which is one transaction. Larger maps are loaded by `pinakes import
/// topics`.
const TOPICS_MAX: usize = 100_000;
/// Maximum number of topics that one export may hold in memory; a larger map is exported by `pinakes export topics`.
const EXPORTED_MAX: u64 = 200_000;
/// Maximum number of topics, and of template statements, that a conversion may produce: the caller may have no account.
const CONVERTED_STATEMENTS_MAX: usize = 2_000_000;
/// Maximum number of documents in a bundle.
const BUNDLE_MAX: usize = 256;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/import", post(import))
        .route("/topics/v1/{map}/export", get(export))
        .route("/topics/v1/convert", post(convert))
}

fn not_known(name: &str) -> ConclaveError {
    ConclaveError::bad_request(format!("{name:?} is no format; known are {}", Source::names().join(", ")))
}

fn format_named(name: &str) -> Result<Format> {
    Format::named(name).ok_or_else(|| not_known(name))
}

/// Returns the source that a parameter names or, without it, that of the body's media type.
fn source_of(call: &Reading, parameter: &str) -> Result<Source> {
    if let Some(name) = call.params.0.get(parameter) {
        return Source::named(name).ok_or_else(|| not_known(name));
    }
    let content_type = call.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    content_type.and_then(Source::of_media_type).ok_or_else(|| {
        ConclaveError::bad_request(format!(
            "the parameter {parameter} is missing, and Content-Type names no format; known are {}",
            Source::names().join(", ")
        ))
    })
}

/// Returns the format to write: that of the parameter `to`, or the first one in `Accept`.
fn target_of(call: &Reading) -> Result<Format> {
    if let Some(name) = call.params.0.get("to") {
        return format_named(name);
    }
    let accept = call.headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let named = accept.split(',').find_map(Format::of_media_type);
    named.ok_or_else(|| {
        ConclaveError::bad_request(
            "the parameter to is missing, and Accept names no format; write xtm, xtm2, xtm1, jtm or cxtm",
        )
    })
}

/// Returns a body, decompressed if it is gzip.
async fn received(app: &Conclave, headers: &HeaderMap, body: Body) -> Result<Bytes> {
    let limits = app.context.limits();
    let most = app.settings.import_bytes;
    let bytes = body::receive(headers, body, most, limits).await?;
    match bytes.starts_with(&[0x1F, 0x8B]) && !headers.contains_key(CONTENT_ENCODING) {
        true => Ok(unpacked(&bytes, most)?.into()),
        false => Ok(bytes),
    }
}

/// Decompresses gzip, up to a limit.
fn unpacked(bytes: &[u8], most: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(most + 1)
        .read_to_end(&mut out)
        .map_err(|error| ConclaveError::bad_request(format!("the body cannot be unpacked: {error}")))?;
    if out.len() as u64 > most {
        return Err(ConclaveError::bad_request(format!("the body unpacks to more than {most} bytes")));
    }
    Ok(out)
}

/// What an import received: the document and, by name, the other documents of the bundle that it may merge.
#[derive(Default)]
struct Bundle {
    document: Vec<u8>,
    others: BTreeMap<String, Vec<u8>>,
}

/// Splits a form into its parts. The first is the document; the others, by file name, are the documents that it merges.
async fn bundle(boundary: &str, bytes: Bytes, most: u64) -> Result<Bundle> {
    let wrong =
        |error: multer::Error| ConclaveError::bad_request(format!("the bundle cannot be read: {error}"));
    let once = futures_util::stream::once(async move { Ok::<_, std::io::Error>(bytes) });
    let mut form = multer::Multipart::new(once, boundary);
    let mut out = Bundle::default();
    let mut is_first = true;
    while let Some(part) = form.next_field().await.map_err(wrong)? {
        let name = part.file_name().or(part.name()).unwrap_or_default().to_owned();
        let mut content = part.bytes().await.map_err(wrong)?.to_vec();
        if content.starts_with(&[0x1F, 0x8B]) {
            content = unpacked(&content, most)?;
        }
        if is_first {
            (out.document, is_first) = (content, false);
        } else if out.others.len() < BUNDLE_MAX {
            out.others.insert(name, content);
        } else {
            return Err(ConclaveError::bad_request(format!("the bundle has more than {BUNDLE_MAX} parts")));
        }
    }
    Ok(out)
}

/// The parameters of an import.
struct Wanted {
    source: Source,
    map: String,
    base: String,
    existing: Existing,
    how: Dmoz,
    is_strict: bool,
}

/// What was read and checked, ready to be written.
enum Prepared {
    Topics(Vec<Ready>),
    Map(Mapped, Existing),
}

impl Prepared {
    /// Makes the checks of a dry run that go beyond reading.
    fn check(&self) -> Result<()> {
        match self {
            Prepared::Topics(_) => Ok(()),
            Prepared::Map(mapped, _) => check(mapped),
        }
    }

    fn put(&self, txn: &mut Txn<'_>, author: &Author) -> Result<Loaded> {
        match self {
            Prepared::Topics(topics) => put_all(txn, topics),
            Prepared::Map(mapped, existing) => put_map(txn, mapped, *existing, author),
        }
    }
}

/// Reads and checks the input, and describes what it holds.
fn prepared(wanted: &Wanted, bundle: &Bundle) -> Result<(Prepared, Value)> {
    let mut gathered = Gathered::default();
    let mut told = json!({});
    let too_many = |n: usize| {
        ConclaveError::rule(format!(
            "{n} topics or more; by HTTP at most {TOPICS_MAX} are taken, more by `pinakes import topics`"
        ))
    };
    if let Source::Map(format) = wanted.source {
        let folder = pinakes_topicmap::iri::decode(&pinakes_topicmap::iri::resolve(&wanted.base, "./"));
        let mut loader = |iri: &str| {
            let name = iri.strip_prefix(&folder).unwrap_or(iri);
            bundle.others.get(name).cloned().ok_or_else(|| "the bundle has no part of that name".to_owned())
        };
        let has_others = !bundle.others.is_empty();
        let mut options = Options { is_strict: wanted.is_strict, ..Options::new(wanted.base.clone()) };
        options.limits = Limits { n_statements_max: 20 * TOPICS_MAX, ..options.limits };
        if has_others {
            options.loader = Some(&mut loader);
        }
        let reading = read(format, &bundle.document, options)?;
        let counts = reading.map.counts();
        let warnings: Vec<String> = reading.warnings.iter().take(100).map(ToString::to_string).collect();
        told = json!({
            "topics": counts.topics, "names": counts.names, "occurrences": counts.occurrences,
            "associations": counts.associations, "warnings": warnings,
        });
        if counts.topics > TOPICS_MAX {
            return Err(too_many(counts.topics));
        }
        let (name, base) = (wanted.map.clone(), wanted.base.clone());
        let mapped = Mapped { map: reading.map, name, base };
        return Ok((Prepared::Map(mapped, wanted.existing), told));
    } else {
        let mut sink = |topic| {
            gathered.add(topic);
            if gathered.len() > TOPICS_MAX { Err(too_many(gathered.len())) } else { Ok(()) }
        };
        let mut reading = Streaming {
            document: &wanted.base,
            map: &wanted.map,
            how: wanted.how,
            categories: &mut Categories::default(),
            sink: &mut sink,
        };
        wanted.source.stream(&bundle.document[..], &mut reading)?;
    }
    if gathered.len() > TOPICS_MAX {
        return Err(too_many(gathered.len()));
    }
    if told.get("topics").is_none() {
        told = json!({"topics": gathered.len(), "warnings": []});
    }
    let ready = gathered.into_topics().map(|it| Ready::new(it, wanted.existing)).collect::<Result<_>>()?;
    Ok((Prepared::Topics(ready), told))
}

/// Reads and checks everything before writing it, in one transaction.
async fn import(call: Administering, body: Body) -> Answer {
    let source = source_of(&call, "format")?;
    let existing = match call.params.0.get("mode") {
        None | Some("merge") => Existing::Merge,
        Some("replace") => Existing::Replace,
        Some(other) => {
            return Err(ConclaveError::bad_request(format!("mode is {other:?}; expected merge or replace")));
        }
    };
    let map = call.map.clone();
    let base = call.params.0.get("base").map_or_else(|| format!("urn:conclave:import:{map}"), str::to_owned);
    let n_links_max = call.params.0.get("maxLinks").map_or(Ok(0), str::parse);
    let how = Dmoz {
        is_seed: call.params.0.get("profile") == Some("seed"),
        n_links_max: n_links_max.map_err(|_| ConclaveError::bad_request("maxLinks is no number"))?,
    };
    let is_strict = call.params.0.is_set("strict");
    let wanted = Wanted { source, map, base, existing, how, is_strict };
    let is_dry = call.params.0.is_set("dry");
    let bytes = received(&call.app, &call.headers, body).await?;
    let content_type = call.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let bundle = match multer::parse_boundary(content_type) {
        Ok(boundary) => bundle(&boundary, bytes, call.app.settings.import_bytes).await?,
        Err(_) => Bundle { document: bytes.to_vec(), others: BTreeMap::new() },
    };
    let (prepared, mut told) = blocking(move || prepared(&wanted, &bundle)).await?;
    told["dry"] = json!(is_dry);
    if is_dry {
        blocking(move || prepared.check()).await?;
    } else {
        let author = call.asker.author(call.app.now_ms());
        let loaded = call.asker.db.write(move |txn| prepared.put(txn, &author)).await?;
        told["made"] = json!(loaded.n_made);
        told["merged"] = json!(loaded.n_changed);
    }
    Ok(answer::json(StatusCode::OK, &told))
}

/// Runs CPU-bound work off the threads that serve requests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let given = tokio::task::spawn_blocking(work).await;
    given.unwrap_or_else(|_| Err(pinakes_http::Refusal::Panic.into()))
}

/// Writes a map in the given format.
fn written_map(format: Format, map: &TopicMap, base: &str) -> Result<Response> {
    let mut out = Vec::new();
    write(format, map, base, &mut out).map_err(|error| ConclaveError::bad_request(error.to_string()))?;
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static(format.media_type()), out))
}

/// Writes topics in the given format.
pub(crate) fn written(
    format: Format,
    topics: &[Topic],
    (beside, of_map): (&[Topic], &OfMap),
    base: &str,
) -> Result<Response> {
    let map =
        part_to_map(topics, beside, of_map).map_err(|conflict| ConclaveError::rule(conflict.to_string()))?;
    written_map(format, &map, base)
}

/// Returns every topic of a map, in id order. Errors: 422 when there are too many to hold.
fn whole_map(view: &mut View<'_>, map: &str) -> Result<Vec<Topic>> {
    let n_topics = view.count(&TOPIC, &Expr::Is("map".into(), map.into()))?;
    if n_topics > EXPORTED_MAX {
        return Err(ConclaveError::rule(format!(
            "the map has {n_topics} topics; by HTTP at most {EXPORTED_MAX} are sent, more by `pinakes export topics`"
        )));
    }
    let (mut out, mut bad) = (Vec::new(), None);
    view.for_each(&TOPIC, &Query::filter(range_of(map)).sorted("key", Direction::Ascending), |record| {
        match Topic::stored(&record.body) {
            Ok(topic) => out.push(topic),
            Err(error) => bad = Some(error),
        }
        ControlFlow::Continue(())
    })?;
    bad.map_or(Ok(out), Err)
}

/// Sends all topics of a map, one per line, while they are read; their number is not limited.
async fn lines(call: &Reading) -> Answer {
    let (map, asker) = (call.map.clone(), call.asker.clone());
    let produce = move |view: &mut View<'_>, sink: &mut Sink| {
        let mut damaged = None;
        let query = Query::filter(range_of(&map)).sorted("key", Direction::Ascending);
        view.for_each(&TOPIC, &query, |record| match Topic::stored(&record.body) {
            Ok(mut topic) => {
                topic.retain(|it| asker.sees(it));
                topic.label = topic.label_in(crate::names::DEFAULT_SCOPE).to_owned();
                match sink.push(document::line(&topic).as_bytes()) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(Gone) => ControlFlow::Break(()),
                }
            }
            Err(error) => {
                damaged = Some(error);
                ControlFlow::Break(())
            }
        })?;
        damaged.map_or(Ok(()), Err)
    };
    let body = call.asker.db.stream(call.app.context.limits(), produce).await?;
    Ok(answer::with_body(StatusCode::OK, answer::NDJSON, body))
}

/// Returns the condition for every key of a map.
fn range_of(map: &str) -> Expr {
    let own = key(map, "");
    let high = End::Excluded(after_prefix(&own).into());
    Expr::Range("key".into(), End::Included(own.into()), high)
}

async fn export(call: Reading) -> Answer {
    let name = call.params.0.get("format").unwrap_or("xtm").to_owned();
    // NDJSON holds the topics as they are; the other formats hold a topic map.
    let format = if name == "ndjson" { None } else { Some(format_named(&name)?) };
    let ids: BTreeSet<String> = call.params.0.all("id").map(str::to_owned).take(1000).collect();
    if format.is_none() && ids.is_empty() {
        return lines(&call).await;
    }
    let with_neighbours = call.params.0.get("depth") == Some("1");
    let asker = call.asker.clone();
    let topics = call.read(Weight::Scan, move |view, map| {
        let (mut out, mut of_map) = (Vec::new(), OfMap::default());
        if ids.is_empty() {
            out = whole_map(view, map)?;
            of_map = OfMap::stored(view, map)?;
        } else {
            let mut wanted = ids.clone();
            for id in ids.iter().filter(|_| with_neighbours) {
                let Some(found) = find(view, map, id)? else { continue };
                wanted.extend(asker.filtered(found).topic.arcs.into_iter().map(|it| it.reference));
            }
            for id in wanted {
                out.extend(find(view, map, &id)?.map(|it| it.topic));
            }
        }
        for topic in &mut out {
            topic.retain(|it| asker.sees(it));
            topic.retain_variants(|it| asker.sees(it));
        }
        let others = if ids.is_empty() { Vec::new() } else { beside(view, map, &out)? };
        Ok((out, others, of_map))
    });
    let ((topics, others, of_map), base) = (topics.await?, format!("urn:conclave:map:{}", call.map));
    blocking(move || match format {
        Some(format) => written(format, &topics, (&others, &of_map), &base),
        None => {
            let lines: Vec<String> = topics.iter().map(document::line).collect();
            Ok(answer::bytes(StatusCode::OK, answer::NDJSON, lines.concat()))
        }
    })
    .await
}

/// Converts from one format to another, without storing anything.
async fn convert(call: Reading, body: Body) -> Answer {
    let from = match source_of(&call, "from")? {
        Source::Map(format) => format,
        Source::DmozStructure => Format::DmozStructure,
        Source::DmozContent => Format::DmozContent,
        Source::Curlie | Source::Ndjson => {
            return Err(ConclaveError::bad_request("topic documents and tables are imported, not converted"));
        }
    };
    let to = target_of(&call)?;
    let base = call.params.0.get("base").unwrap_or("urn:conclave:convert").to_owned();
    let is_strict = call.params.0.get("strict") != Some("0");
    // Callers without an account may convert, too, so the ordinary limit applies.
    let bytes = call.received(body).await?;
    blocking(move || {
        let mut options = Options { is_strict, ..Options::new(base.clone()) };
        options.limits = Limits { n_statements_max: CONVERTED_STATEMENTS_MAX, ..options.limits };
        let reading = read(from, &bytes, options)?;
        written_map(to, &reading.map, &base)
    })
    .await
}
