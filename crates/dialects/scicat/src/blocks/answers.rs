//! Answers with blocks: whole, with chosen fields, or streamed.

use bytes::{BufMut as _, BytesMut};
use http::StatusCode;
use pinakes_http::{Sink, answer, stages};
use pinakes_store::{Expr, Kind, Query, Record, StoreError, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Scicat};
use crate::blocks::sorts::BlockType;
use crate::datasets::forms::Api;
use crate::documents::object;
use crate::error::{Answer, JSON, ScicatError};
use crate::filter::Filter;
use crate::kinds::DATASET;
use crate::projection::Projection;
use crate::rights::Rights;

/// Maximum number of members that a list collects in memory; longer lists are streamed as they are.
pub(crate) const COLLECTED_FILES: u64 = 20_000;

pub(crate) async fn answer_count(asker: &Asker, condition: Expr, kind: &'static Kind) -> Answer {
    let count = asker.db.read(Weight::Scan, move |view| view.count(kind, &condition)).await;
    let count: u64 = count.map_err(|error: StoreError| ScicatError::from(error))?;
    Ok(answer::json(StatusCode::OK, &json!({"count": count})))
}

/// Streams the blocks that a filter finds.
pub(crate) async fn answer_list(
    asker: &Asker,
    filter: &Filter,
    visible: Expr,
    sort: &'static BlockType,
) -> Answer {
    let shown = Shown::of(asker, filter)?;
    stream_chosen(asker, filter.query(visible), shown, sort).await
}

pub(crate) async fn stream_rows(asker: &Asker, query: Query, sort: &'static BlockType) -> Answer {
    stream_chosen(asker, query, Shown::everything(), sort).await
}

/// Which fields of blocks are shown, and whether their datasets are included.
pub(crate) struct Shown {
    fields: Projection,
    /// Which fields of the dataset are shown, and the rights that limit them.
    dataset: Option<(Projection, Rights)>,
}

impl Shown {
    fn everything() -> Self {
        Self { fields: Projection::Everything, dataset: None }
    }

    /// Reads what a filter asks for. Errors: 400 for a relation other than `dataset`.
    pub(crate) fn of(asker: &Asker, filter: &Filter) -> Result<Self, ScicatError> {
        if let Some(other) =
            filter.include.iter().find(|it| !["dataset", "all"].contains(&it.relation.as_str()))
        {
            return Err(ScicatError::bad_request(format!(
                "Provided include field \"{}\" is not part of the origdatablock relations",
                other.relation
            )));
        }
        let dataset =
            (!filter.include.is_empty()).then(|| (filter.fields.below("dataset"), asker.rights.clone()));
        Ok(Self { fields: filter.fields.clone(), dataset })
    }

    /// Writes one block; returns false when the client has gone away.
    fn push(
        &self,
        view: &mut View<'_>,
        kind: &'static Kind,
        record: &Record,
        sink: &mut Sink,
    ) -> Result<bool, ScicatError> {
        let mut tail = String::new();
        if let Some((fields, rights)) = &self.dataset {
            let mut list = Vec::new();
            if let Some(dataset) = view.get(&DATASET, &text(&object(record)?, "datasetId"))?
                && rights.may_read(&*view.class(&DATASET, dataset.class)?)
            {
                let mut shown: Map<String, Value> = serde_json::from_slice(&Api::V4.bytes(&dataset.body))
                    .map_err(|error| StoreError::Damaged(format!("{:?}: {error}", dataset.id)))?;
                fields.apply(&mut shown);
                list.push(Value::Object(shown));
            }
            tail = format!(",\"dataset\":{}", Value::Array(list));
        }
        crate::blocks::sorts::push(view, kind, record, &self.fields, &tail, sink)
    }
}

pub(crate) async fn stream_chosen(
    asker: &Asker,
    query: Query,
    shown: Shown,
    sort: &'static BlockType,
) -> Answer {
    let limits = asker.db.tenant().limits().clone();
    let body = asker
        .db
        .stream(&limits, move |view, sink| {
            let mut separator: &[u8] = b"[";
            for record in view.find(sort.kind, &query)? {
                if sink.push(separator).is_err() || !shown.push(view, sort.kind, &record, sink)? {
                    return Ok(());
                }
                separator = b",";
            }
            let end: &[u8] = if separator == b"[" { b"[]" } else { b"]" };
            let _ = sink.push(end);
            Ok::<_, ScicatError>(())
        })
        .await?;
    Ok(answer::with_body(StatusCode::OK, JSON, body))
}

/// Answers with one block and its files; streams them when there are many.
pub(crate) async fn answer_whole(
    _: &Scicat,
    asker: &Asker,
    record: Record,
    sort: &'static BlockType,
    status: StatusCode,
) -> Answer {
    answer_one(asker, record, Shown::everything(), sort, status).await
}

pub(crate) async fn answer_one(
    asker: &Asker,
    record: Record,
    shown: Shown,
    sort: &'static BlockType,
    status: StatusCode,
) -> Answer {
    let limits = asker.db.tenant().limits().clone();
    let body = asker
        .db
        .stream(&limits, move |view, sink| shown.push(view, sort.kind, &record, sink).map(|_| ()))
        .await?;
    Ok(answer::with_body(status, JSON, body))
}

pub(crate) fn whole_bytes(
    view: &mut View<'_>,
    kind: &'static Kind,
    record: &Record,
) -> Result<BytesMut, ScicatError> {
    let mut bytes = BytesMut::with_capacity(record.body.len() + 64);
    bytes.put_slice(&record.body[..record.body.len().saturating_sub(1)]);
    bytes.put_slice(b",\"dataFileList\":[");
    view.members(kind, record, 0, |first, _, chunk| {
        if first != 0 {
            bytes.put_u8(b',');
        }
        bytes.put_slice(chunk);
        std::ops::ControlFlow::Continue(())
    })?;
    bytes.put_slice(b"]}");
    stages::note_progress();
    Ok(bytes)
}

pub(crate) fn text(body: &Map<String, Value>, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
