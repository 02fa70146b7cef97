//! Import, export and conversion over HTTP (section 10.5 of the contract).

use std::collections::BTreeSet;
use std::io::Read as _;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue, StatusCode};
use pinakes_http::{answer, body};
use pinakes_store::{Direction, End, Expr, Query, Weight};
use pinakes_topicmap::{Format, Options, read, write};
use serde_json::json;

use super::Answer;
use super::topics::after_prefix;
use crate::app::{Asker, Conclave, Params, map_name};
use crate::document;
use crate::edit::find;
use crate::error::{ConclaveError, Result};
use crate::import::{Existing, Ready, put_all};
use crate::kinds::TOPIC;
use crate::model::{Topic, key};
use crate::projection::{from_map, to_map};

/// Topics that one import by HTTP may bring; it is one transaction. More are loaded by `pinakes import topics`.
const TOPICS_MAX: usize = 100_000;
/// Topics that one export may hold in memory; a whole larger map is exported as NDJSON or by `pinakes export topics`.
const EXPORTED_MAX: u64 = 200_000;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/import", post(import))
        .route("/topics/v1/{map}/export", get(export))
        .route("/topics/v1/convert", post(convert))
}

fn format_named(name: &str) -> Result<Format> {
    Format::named(name).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|it| it.0).collect();
        ConclaveError::bad_request(format!("{name:?} is no format; known are {}", known.join(", ")))
    })
}

/// A body, unpacked if it is gzip.
async fn received(app: &Conclave, headers: &HeaderMap, body: Body) -> Result<Bytes> {
    let limits = app.context.limits();
    let most = app.settings.import_bytes;
    let bytes = body::receive(headers, body, most, limits).await?;
    let is_gzip = bytes.starts_with(&[0x1F, 0x8B]) && !headers.contains_key(CONTENT_ENCODING);
    if !is_gzip {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let mut unpacked = flate2::read::GzDecoder::new(&bytes[..]).take(most + 1);
    unpacked
        .read_to_end(&mut out)
        .map_err(|error| ConclaveError::bad_request(format!("the body cannot be unpacked: {error}")))?;
    if out.len() as u64 > most {
        return Err(ConclaveError::bad_request(format!("the body unpacks to more than {most} bytes")));
    }
    Ok(out.into())
}

async fn import(
    State(app): State<Conclave>,
    asker: Asker,
    Path(map): Path<String>,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_administer()?;
    let map = map_name(&map)?.to_owned();
    let format = format_named(params.required("format")?)?;
    let existing = match params.0.get("mode") {
        None | Some("merge") => Existing::Merge,
        Some("replace") => Existing::Replace,
        Some(other) => {
            return Err(ConclaveError::bad_request(format!("mode is {other:?}; expected merge or replace")));
        }
    };
    let base = params.0.get("base").map_or_else(|| format!("urn:conclave:import:{map}"), str::to_owned);
    let (is_strict, is_dry) = (params.0.is_set("strict"), params.0.is_set("dry"));
    let bytes = received(&app, &headers, body).await?;
    let (topics, counts, warnings) = blocking(move || {
        let reading = read(format, &bytes, Options { is_strict, ..Options::new(base.clone()) })?;
        let topics = from_map(&reading.map, &map, &base);
        if topics.len() > TOPICS_MAX {
            return Err(ConclaveError::rule(format!(
                "the map has {} topics; by HTTP at most {TOPICS_MAX} are taken, more by `pinakes import topics`",
                topics.len()
            )));
        }
        let ready: Vec<Ready> = topics.into_iter().map(Ready::new).collect::<Result<_>>()?;
        let warnings: Vec<String> = reading.warnings.iter().take(100).map(ToString::to_string).collect();
        Ok((ready, reading.map.counts(), warnings))
    })
    .await?;
    let mut answered = json!({
        "dry": is_dry, "topics": counts.topics, "names": counts.names, "occurrences": counts.occurrences,
        "associations": counts.associations, "warnings": warnings,
    });
    if !is_dry {
        let loaded = asker.db.write(move |txn| put_all(txn, &topics, existing)).await?;
        answered["made"] = json!(loaded.n_made);
        answered["merged"] = json!(loaded.n_changed);
    }
    Ok(answer::json(StatusCode::OK, &answered))
}

/// Runs work of the processor off the threads that serve requests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let given = tokio::task::spawn_blocking(work).await;
    given.unwrap_or_else(|_| Err(pinakes_http::Refusal::Panic.into()))
}

/// Topics in some format.
pub(crate) fn written(format: Format, topics: &[Topic], base: &str) -> Result<Response> {
    let map = to_map(topics).map_err(|conflict| ConclaveError::rule(conflict.to_string()))?;
    let mut out = Vec::new();
    write(format, &map, base, &mut out).map_err(|error| ConclaveError::bad_request(error.to_string()))?;
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static(format.media_type()), out))
}

async fn export(State(_): State<Conclave>, asker: Asker, Path(map): Path<String>, params: Params) -> Answer {
    asker.may_read()?;
    let map = map_name(&map)?.to_owned();
    let name = params.0.get("format").unwrap_or("xtm").to_owned();
    let is_lines = name == "ndjson";
    let format = if is_lines { Format::Jtm } else { format_named(&name)? };
    let ids: BTreeSet<String> =
        params.0.0.iter().filter(|it| it.0 == "id").map(|it| it.1.clone()).take(1000).collect();
    let with_neighbours = params.0.get("depth") == Some("1");
    let reader = asker.clone();
    let base = format!("urn:conclave:map:{map}");
    let topics = asker
        .db
        .read(Weight::Scan, move |view| {
            let mut out = Vec::new();
            if ids.is_empty() {
                let own = key(&map, "");
                let low = End::Included(own.as_str().into());
                let high = End::Excluded(after_prefix(&own).into());
                let range = Expr::Range("key".into(), low, high);
                let n_topics = view.count(&TOPIC, &Expr::Is("map".into(), map.as_str().into()))?;
                if n_topics > EXPORTED_MAX {
                    return Err(ConclaveError::rule(format!(
                        "the map has {n_topics} topics; by HTTP at most {EXPORTED_MAX} are sent, more by \
                         `pinakes export topics`"
                    )));
                }
                let mut bad = None;
                view.for_each(&TOPIC, &Query::filter(range).sorted("key", Direction::Ascending), |record| {
                    match Topic::stored(&record.body) {
                        Ok(topic) => out.push(topic),
                        Err(error) => bad = Some(error),
                    }
                    std::ops::ControlFlow::Continue(())
                })?;
                if let Some(error) = bad {
                    return Err(error);
                }
            } else {
                let mut wanted = ids.clone();
                for id in &ids {
                    let Some(found) = find(view, &map, id)? else { continue };
                    if with_neighbours {
                        wanted.extend(found.topic.arcs.iter().map(|it| it.reference.clone()));
                    }
                }
                for id in wanted {
                    out.extend(find(view, &map, &id)?.map(|it| it.topic));
                }
            }
            for topic in &mut out {
                topic.retain(|it| reader.sees(it));
            }
            Ok(out)
        })
        .await?;
    blocking(move || {
        if is_lines {
            let lines: Vec<String> =
                topics.iter().map(|it| format!("{}\n", document::topic(it, None))).collect();
            return Ok(answer::bytes(StatusCode::OK, answer::NDJSON, lines.concat()));
        }
        written(format, &topics, &base)
    })
    .await
}

/// Stateless: from one format to another.
async fn convert(
    State(app): State<Conclave>,
    asker: Asker,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    asker.may_read()?;
    let (from, to) = (format_named(params.required("from")?)?, format_named(params.required("to")?)?);
    let base = params.0.get("base").unwrap_or("urn:conclave:convert").to_owned();
    let is_strict = params.0.get("strict") != Some("0");
    // Whoever may convert without an account gets the ordinary bound.
    let bytes = app.received(&headers, body).await?;
    blocking(move || {
        let reading = read(from, &bytes, Options { is_strict, ..Options::new(base.clone()) })?;
        let mut out = Vec::new();
        write(to, &reading.map, &base, &mut out)
            .map_err(|error| ConclaveError::bad_request(error.to_string()))?;
        Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static(to.media_type()), out))
    })
    .await
}
