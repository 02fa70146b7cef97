//! What an answer shows of datasets: fields, related rows, history. It is written while the client receives it,
//! so that a dataset with a million files needs no more memory than one with none.

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use pinakes_http::{Sink, answer};
use pinakes_store::{Query, Record, StoreError, View};
use serde_json::{Map, Value};

use super::include::{self, Relation, Rows};
use crate::app::Asker;
use crate::datasets::forms::{Api, SCALARS};
use crate::error::{JSON, ScicatError};
use crate::filter::Filter;
use crate::history;
use crate::kinds::DATASET;
use crate::projection::Projection;
use crate::rights::Rights;
use crate::tracking::Tracking;

/// Maximum number of datasets whose related rows are read together, and of their bytes.
const STEP_DATASETS: usize = 50;
const STEP_BYTES: usize = 4 << 20;

/// What an answer shows of each dataset.
pub(crate) struct Shape {
    api: Api,
    fields: Projection,
    relations: Vec<Relation>,
    /// Set if `history` is appended; says how changes are tracked.
    history: Option<Tracking>,
}

/// A dataset that is shown.
struct Shown {
    id: String,
    /// As the version of the interface shows it, with all fields.
    bytes: Bytes,
    fields: Map<String, Value>,
}

impl Shape {
    /// Creates the shape that a filter asks for. Errors: 400 for unknown relations.
    pub(crate) fn of(asker: &Asker, filter: &Filter, api: Api) -> Result<Self, ScicatError> {
        let relations = include::relations(&filter.include, api, asker)?;
        Ok(Self { api, fields: filter.fields.clone(), relations, history: None })
    }

    /// Shows blocks only to the members of their groups.
    pub(crate) fn with_blocks_for_members(mut self, rights: &Rights) -> Self {
        self.relations = self.relations.into_iter().map(|it| it.with_blocks_for_members(rights)).collect();
        self
    }

    /// Appends the dataset's `history`, as v3's reads by pid do.
    pub(crate) fn with_history(self, tracking: Tracking) -> Self {
        Self { history: Some(tracking), ..self }
    }

    /// Answers with one dataset.
    pub(crate) async fn answer_one(self, asker: &Asker, record: Record) -> Result<Response, ScicatError> {
        let limits = asker.db.tenant().limits().clone();
        let body =
            asker.db.stream(&limits, move |view, sink| self.push(view, &record, sink).map(|_| ())).await?;
        Ok(answer::with_body(StatusCode::OK, JSON, body))
    }

    /// Answers with the datasets of a query, as a list.
    pub(crate) async fn answer_list(self, asker: &Asker, query: Query) -> Result<Response, ScicatError> {
        let limits = asker.db.tenant().limits().clone();
        let push_all = move |view: &mut View<'_>, sink: &mut Sink| {
            let mut separator: &[u8] = b"[";
            let records = view.find(&DATASET, &query)?;
            let mut left = records.as_slice();
            while !left.is_empty() {
                let (step, rest) = left.split_at(self.n_together(view, left));
                let shown = step.iter().map(|it| self.shown(it)).collect::<Result<Vec<_>, _>>()?;
                let rows = self.read_ahead(view, &shown)?;
                for it in shown {
                    if sink.push(separator).is_err() || !self.push_shown(view, it, &rows, sink)? {
                        return Ok::<_, ScicatError>(());
                    }
                    separator = b",";
                }
                left = rest;
            }
            // If the client has gone away, the missing end does not matter.
            let _ = sink.push(if separator == b"[" { b"[]" } else { b"]" });
            Ok(())
        };
        let body = asker.db.stream(&limits, push_all).await?;
        Ok(answer::with_body(StatusCode::OK, JSON, body))
    }

    /// Writes one dataset; returns false when the client has gone away.
    pub(crate) fn push(
        &self,
        view: &mut View<'_>,
        record: &Record,
        sink: &mut Sink,
    ) -> Result<bool, ScicatError> {
        self.push_shown(view, self.shown(record)?, &[], sink)
    }

    /// Returns the number of the first datasets of a list for which related rows are read together: one where that saves
    /// nothing.
    fn n_together(&self, view: &View<'_>, records: &[Record]) -> usize {
        if self.relations.is_empty() || !view.is_remote() {
            return 1;
        }
        let mut n_bytes = 0;
        let is_within = |it: &&Record| {
            n_bytes += it.body.len();
            n_bytes <= STEP_BYTES
        };
        records.iter().take(STEP_DATASETS).take_while(is_within).count().max(1)
    }

    fn shown(&self, record: &Record) -> Result<Shown, ScicatError> {
        let bytes = self.api.bytes(&record.body);
        let fields = serde_json::from_slice(&bytes)
            .map_err(|error| StoreError::Damaged(format!("{:?}: {error}", record.id)))?;
        Ok(Shown { id: record.id.clone(), bytes, fields })
    }

    /// Reads what belongs to several datasets together: for each relation, unless it is read for each dataset.
    fn read_ahead(&self, view: &mut View<'_>, datasets: &[Shown]) -> Result<Vec<Option<Rows>>, ScicatError> {
        let fields = || datasets.iter().map(|it| &it.fields);
        self.relations.iter().map(|it| it.read_ahead(view, fields())).collect()
    }

    /// As [`Shape::push`], with what was read of the relations before.
    fn push_shown(
        &self,
        view: &mut View<'_>,
        Shown { id, bytes: whole, fields: dataset }: Shown,
        ahead: &[Option<Rows>],
        sink: &mut Sink,
    ) -> Result<bool, ScicatError> {
        let own = match &self.fields {
            Projection::Everything => whole,
            fields => Value::Object(chosen(dataset.clone(), fields)).to_string().into(),
        };
        let mut is_taken = sink.push(&own[..own.len().saturating_sub(1)]).is_ok();
        let mut comma: &[u8] = if own.len() <= 2 { b"" } else { b"," };
        for (number, relation) in self.relations.iter().enumerate() {
            let rows = ahead.get(number).and_then(Option::as_ref);
            let name = format!("\"{}\":", relation.name);
            is_taken = is_taken && sink.push(comma).and_then(|()| sink.push(name.as_bytes())).is_ok();
            if !is_taken || !relation.push(view, &dataset, rows, self.api, sink)? {
                return Ok(false);
            }
            comma = b",";
        }
        if let Some(tracking) = self.history {
            let changes =
                if tracking == Tracking::Off { Vec::new() } else { history::of_dataset(view, &id)? };
            let history = format!("\"history\":{}", Value::Array(changes));
            is_taken = is_taken && sink.push(comma).and_then(|()| sink.push(history.as_bytes())).is_ok();
        }
        Ok(is_taken && sink.push(b"}").is_ok())
    }
}

/// Keeps the chosen fields; v3's scalars are kept with the lists that they come from.
fn chosen(mut dataset: Map<String, Value>, fields: &Projection) -> Map<String, Value> {
    for (scalar, list) in SCALARS {
        if !fields.shows(scalar) && !fields.shows(list) {
            dataset.shift_remove(scalar);
        }
    }
    let with_lists: Vec<(String, Value)> = SCALARS
        .iter()
        .filter(|(_, list)| fields.shows(list))
        .filter_map(|(scalar, _)| dataset.get(*scalar).map(|it| ((*scalar).to_owned(), it.clone())))
        .collect();
    fields.apply(&mut dataset);
    dataset.extend(with_lists);
    dataset
}
