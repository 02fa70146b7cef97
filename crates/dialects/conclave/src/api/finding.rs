//! Finding topics: by label and words, by identity, and by the record of another dialect that they are about.

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Direction, End, Expr, Query, TextQuery, Value as Cell, View, Weight};
use serde_json::{Value, json};

use crate::app::{Asker, Conclave};
use crate::call::Answer;
use crate::call::Reading;
use crate::edit::Found;
use crate::error::{ConclaveError, Result};
use crate::kinds::{ITEM_IDENTIFIER, SUBJECT_IDENTIFIER, SUBJECT_LOCATOR, TOPIC};
use crate::model::{Topic, identity};
use crate::text::{after_prefix, topic_href_raw};

/// Maximum number of records that each of the two ways of searching reads.
const SEARCH_LIMIT_MAX: u32 = 200;

pub(super) fn routes() -> Router<Conclave> {
    Router::new()
        .route("/topics/v1/{map}/search", get(search))
        .route("/topics/v1/{map}/identity", get(by_identity))
        .route("/topics/v1/{map}/about", get(about))
}

/// Returns a topic as an item of a list.
pub(super) fn item(asker: &Asker, found: Found) -> Value {
    let topic = asker.filtered(found).topic;
    json!({"id": topic.id, "label": topic.label})
}

/// Returns the topics that a query finds.
pub(super) fn listed(view: &mut View<'_>, query: &Query) -> Result<Vec<Found>> {
    view.find(&TOPIC, query)?
        .into_iter()
        .map(|it| Ok(Found { topic: Topic::stored(&it.body)?, version: it.version, sequence: it.sequence }))
        .collect()
}

/// Returns topics whose label begins with the text, ordered by label; case and accents are ignored.
fn labelled(view: &mut View<'_>, map: &str, text: &str, limit: u32) -> Result<Vec<Found>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let folded = pinakes_store::fold(text);
    let low = End::Included(Cell::Folded(folded.clone()));
    let high = End::Excluded(Cell::Folded(after_prefix(&folded)));
    let filter = Expr::Is("map".into(), map.into()).and(Expr::Range("label".into(), low, high));
    let query = Query::filter(filter).sorted("label", Direction::Ascending).window(0, u64::from(limit));
    listed(view, &query)
}

/// Parameters of a search.
#[derive(Clone)]
pub(crate) struct Search {
    text: String,
    limit: u32,
    with_words: bool,
}

impl Search {
    /// Searches for labels that begin with the text, then for topics that hold all its words.
    pub(crate) fn new(text: &str, limit: u32) -> Search {
        Search { text: text.trim().to_owned(), limit: limit.min(SEARCH_LIMIT_MAX), with_words: true }
    }

    /// Restricts the search to labels.
    pub(crate) fn labels_alone(self) -> Search {
        Search { with_words: false, ..self }
    }

    /// Returns the topics, each with what the reader may see of it. Leaves out topics that were found only by something
    /// that the reader may not see.
    pub(crate) async fn run(self, call: &Reading) -> Result<Vec<Topic>> {
        let words: Vec<String> = self.text.split_whitespace().map(str::to_owned).collect();
        let folded: Vec<String> = words.iter().map(|it| pinakes_store::fold(it)).collect();
        let found = call
            .read(Weight::Scan, move |view, map| {
                let mut out = labelled(view, map, &self.text, self.limit)?;
                if self.with_words && (out.len() as u32) < self.limit && !words.is_empty() {
                    // Every word must occur, so each is searched as a phrase of one word.
                    let query = TextQuery { phrases: words.clone(), ..TextQuery::default() };
                    let filter = Expr::Is("map".into(), map.into()).and(Expr::Text(query));
                    for it in listed(view, &Query::filter(filter).window(0, u64::from(self.limit)))? {
                        if !out.iter().any(|known| known.topic.id == it.topic.id) {
                            out.push(it);
                        }
                    }
                }
                out.truncate(self.limit as usize);
                Ok(out)
            })
            .await?;
        let sees_all = call.asker.sees_all();
        let shown = found.into_iter().map(|it| call.asker.filtered(it).topic);
        Ok(shown.filter(|it| sees_all || is_told_by(it, &folded)).collect())
    }
}

/// Returns whether every word occurs in what the reader may see. Topics found by a hidden word are not listed.
fn is_told_by(topic: &Topic, words: &[String]) -> bool {
    let values = topic.metadata.iter().map(|it| it.value.as_str());
    let texts = topic.occurrences.iter().map(|it| it.data.as_str());
    let all = values.chain(texts).chain([topic.label.as_str()]).map(pinakes_store::fold);
    let all: Vec<String> = all.collect();
    words.iter().all(|word| all.iter().any(|it| it.contains(word.as_str())))
}

async fn search(call: Reading) -> Answer {
    let search = Search::new(call.params.required("q")?, call.params.limit()?);
    let search = if call.params.0.is_set("labels") { search.labels_alone() } else { search };
    let scope = call.params.0.get("scope");
    let items: Vec<Value> = search
        .run(&call)
        .await?
        .into_iter()
        .map(|it| it.within(scope))
        .map(|it| json!({"id": it.id, "label": it.label, "description": it.get("default", "description")}))
        .collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items})))
}

/// Finds a topic by subject identifier, subject locator or item identifier. Answers with its id; clients that prefer
/// HTML are redirected to its page.
async fn by_identity(call: Reading) -> Answer {
    let schemes = [("si", SUBJECT_IDENTIFIER), ("sl", SUBJECT_LOCATOR), ("ii", ITEM_IDENTIFIER)];
    let asked =
        schemes.into_iter().find_map(|(name, scheme)| Some((scheme, call.params.0.get(name)?.to_owned())));
    let (scheme, iri) = asked.ok_or_else(|| ConclaveError::bad_request("one of si, sl and ii is needed"))?;
    let wanted = iri.clone();
    let found =
        call.read(Weight::Point, move |view, map| Ok(view.by_identifier(scheme, &identity(map, &wanted))?));
    let id = found.await?.into_iter().find(|it| it.0 == TOPIC.name);
    let id = id.and_then(|(_, id)| Some(id.split_once('/')?.1.to_owned()));
    let id = id.ok_or_else(|| ConclaveError::not_found(format!("no topic of the map has {iri}")))?;
    let accept = call.headers.get(http::header::ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if accept.contains("text/html") {
        let page = topic_href_raw(&call.link_base(), &id);
        return Ok(answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &page));
    }
    Ok(answer::json(StatusCode::OK, &json!({"id": id})))
}

/// Lists the topics about a record of any dialect: those that share an identifier with it. The identifier is given as
/// `scheme` and `value`, or as the IRI that a topic would have as subject identifier (`iri`).
async fn about(call: Reading) -> Answer {
    let (scheme, value) = match call.params.0.get("iri") {
        Some(iri) => crate::subjects::of_iri(iri)
            .map(|(scheme, value)| (scheme.to_owned(), value.to_owned()))
            .ok_or_else(|| {
                ConclaveError::bad_request(format!("{iri:?} is of no scheme that records have"))
            })?,
        None => (call.params.required("scheme")?.to_owned(), call.params.required("value")?.to_owned()),
    };
    let found = call
        .read(Weight::Scan, move |view, map| {
            let own = format!("{map}/");
            let named = view.by_identifier(&scheme, &value)?;
            let keys = named.into_iter().filter(|it| it.0 == TOPIC.name && it.1.starts_with(&own));
            let keys: Vec<String> = keys.map(|it| it.1).take(1000).collect();
            let mut out = Vec::new();
            for it in view.get_many(&TOPIC, &keys)?.into_iter().flatten() {
                let topic = Topic::stored(&it.body)?;
                out.push(Found { topic, version: it.version, sequence: it.sequence });
            }
            Ok(out)
        })
        .await?;
    let items: Vec<Value> = found.into_iter().map(|it| item(&call.asker, it)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"items": items})))
}
