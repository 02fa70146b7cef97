//! Jobs with their datasets: `include` in lists, and `datasetDetails`, which adds the datasets' own relations. Only
//! what the caller may read is shown; it is written while the client receives it.

use axum::extract::State;
use http::{HeaderMap, StatusCode};
use pinakes_http::{Sink, answer};
use pinakes_store::{Expr, Record, View};
use serde_json::{Map, Value, json};

use super::{forms, rules, visible};
use crate::app::{Asker, QueryText, Scicat, json_parameter};
use crate::datasets::forms::Api;
use crate::datasets::read;
use crate::datasets::shape::Shape;
use crate::documents::object;
use crate::error::{Answer, JSON, ScicatError};
use crate::filter::{self, Filter, Include};
use crate::jobs::visible::readable;
use crate::kinds::DATASET;
use crate::kinds::JOB;
use crate::projection::Projection;
use crate::rights::Rights;

/// Relations of a dataset that details include.
const RELATIONS: [&str; 3] = ["datablocks", "origdatablocks", "attachments"];
/// Maximum number of datasets in one answer.
const MAX_SHOWN: usize = 10_000;
/// Datasets that are read in one step.
const STEP_DATASETS: usize = 100;

/// `GET /jobs?filter={"include":["datasets"]}`.
///
/// Errors: 400 for a relation other than `datasets`.
pub(super) async fn list_with_datasets(asker: &Asker, filter: &Filter, visible: Expr, api: Api) -> Answer {
    require_datasets_alone(filter)?;
    answer(asker, filter, visible, "datasets", &[], api).await
}

/// `GET /jobs/{id}?filter={"include":["datasets"]}` of v4.
///
/// Errors: 400 for a relation other than `datasets`.
pub(super) async fn one_with_datasets(asker: &Asker, filter: &Filter, record: Record) -> Answer {
    require_datasets_alone(filter)?;
    let writer = Writer::of(asker, filter, "datasets", &[], Api::V4)?;
    let limits = asker.db.tenant().limits().clone();
    let push = move |view: &mut View<'_>, sink: &mut Sink| {
        let mut n_left = MAX_SHOWN;
        writer.push(view, object(&record)?, &mut n_left, sink).map(|_| ())
    };
    Ok(answer::with_body(StatusCode::OK, JSON, asker.db.stream(&limits, push).await?))
}

fn require_datasets_alone(filter: &Filter) -> Result<(), ScicatError> {
    if filter.include.iter().all(|it| ["datasets", "all"].contains(&it.relation.as_str())) {
        return Ok(());
    }
    Err(ScicatError::bad_request(
        "The 'include' filter must contain 'datasets' — it’s currently the only collection that can be merged. \
         To include related data, add use Jobs/v4/datasetDetails endpoint",
    ))
}

/// v3: `?jobId=&datasetFields=&include=&includeFields=`, the datasets of a job. v4: `?filter=`, jobs with their
/// datasets and the datasets' relations.
pub(super) async fn dataset_details(
    app: State<Scicat>,
    asker: Asker,
    query: QueryText,
    headers: HeaderMap,
    api: Api,
) -> Answer {
    if api == Api::V3 || query.get("jobId").is_some() {
        return of_job(&app, &asker, &query).await;
    }
    asker.forbid_anonymous()?;
    let filter = crate::jobs::visible::filter(&query, &headers)?;
    if !filter.include.is_empty() {
        return Err(ScicatError::bad_request("Property include should not exist in the filter object"));
    }
    let visible = visible(&app, &asker);
    answer(&asker, &filter, visible, "datasetDetails", &RELATIONS, api).await
}

/// Answers with the datasets of a job that the caller may see.
async fn of_job(app: &Scicat, asker: &Asker, query: &QueryText) -> Answer {
    let record = readable(app, asker, query.get("jobId").unwrap_or_default()).await?;
    let pids = rules::pids(&object(&record)?)?;
    let parameter = |name: &str| {
        let text = query.get(name).filter(|it| !it.is_empty());
        text.map(|it| json_parameter(name, it)).transpose().map(Option::unwrap_or_default)
    };
    let mut include = parameter("include")?;
    let fields = parameter("includeFields")?;
    if let (Value::Object(relation), false) = (&mut include, fields.is_null()) {
        relation.entry("scope").or_insert_with(|| json!({"fields": fields}));
    }
    let filter = filter::from_value(
        &json!({
            "where": {"pid": {"inq": pids}}, "limits": {"limit": pids.len().max(1)},
            "fields": parameter("datasetFields")?, "include": include,
        }),
        &DATASET,
    )?;
    read::answer_list(asker, &filter, asker.rights.visible(), Api::V3).await
}

/// Answers with the jobs of a filter, each with its datasets in `field`.
async fn answer(
    asker: &Asker,
    filter: &Filter,
    visible: Expr,
    field: &'static str,
    relations: &[&str],
    api: Api,
) -> Answer {
    let writer = Writer::of(asker, filter, field, relations, api)?;
    let (query, limits) = (filter.query(visible), asker.db.tenant().limits().clone());
    let body = asker
        .db
        .stream(&limits, move |view, sink| {
            let (mut separator, mut n_left): (&[u8], usize) = (b"[", MAX_SHOWN);
            for record in view.find(&JOB, &query)? {
                if sink.push(separator).is_err() || !writer.push(view, object(&record)?, &mut n_left, sink)? {
                    return Ok::<_, ScicatError>(());
                }
                separator = b",";
            }
            // If the client has gone away, the missing end does not matter.
            let _ = sink.push(if separator == b"[" { b"[]" } else { b"]" });
            Ok(())
        })
        .await?;
    Ok(answer::with_body(StatusCode::OK, JSON, body))
}

struct Writer {
    fields: Projection,
    field: &'static str,
    shape: Shape,
    api: Api,
    rights: Rights,
}

impl Writer {
    /// Creates the writer of a filter's jobs, with their datasets in `field` and those relations in the datasets.
    fn of(
        asker: &Asker,
        filter: &Filter,
        field: &'static str,
        relations: &[&str],
        api: Api,
    ) -> Result<Self, ScicatError> {
        let include = relations.iter().map(|name| Include {
            relation: (*name).to_owned(),
            scope: scope_of(&filter.fields.below(field).below(name)),
        });
        let of_datasets = Filter {
            fields: without(filter.fields.below(field), relations),
            include: include.collect(),
            ..Filter::default()
        };
        // Blocks concern those who handle the data: who reads a dataset only because it is public does not see them.
        let shape = Shape::of(asker, &of_datasets, Api::V4)?.with_blocks_for_members(&asker.rights);
        Ok(Self { fields: filter.fields.clone(), field, shape, api, rights: asker.rights.clone() })
    }

    /// Writes one job; returns false when the client has gone away.
    fn push(
        &self,
        view: &mut View<'_>,
        mut job: Map<String, Value>,
        n_left: &mut usize,
        sink: &mut Sink,
    ) -> Result<bool, ScicatError> {
        let pids = rules::pids(&job).unwrap_or_default();
        if self.api == Api::V3 {
            forms::show_as_v3(&mut job);
        }
        self.fields.apply(&mut job);
        let head = Value::Object(job).to_string();
        let comma = if head.len() <= 2 { "" } else { "," };
        let begin = format!("{}{comma}\"{}\":", &head[..head.len() - 1], self.field);
        if sink.push(begin.as_bytes()).is_err() {
            return Ok(false);
        }
        let mut separator: &[u8] = b"[";
        for step in pids.chunks(STEP_DATASETS) {
            let step = &step[..step.len().min(*n_left)];
            view.read_ahead(&DATASET, step.iter().cloned())?;
            for pid in step {
                let Some(record) = view.get(&DATASET, pid)? else { continue };
                if !self.rights.may_read(&*view.class(&DATASET, record.class)?) {
                    continue;
                }
                if sink.push(separator).is_err() || !self.shape.push(view, &record, sink)? {
                    return Ok(false);
                }
                *n_left -= 1;
                separator = b",";
            }
        }
        let end: &[u8] = if separator == b"[" { b"[]}" } else { b"]}" };
        Ok(sink.push(end).is_ok())
    }
}

/// Removes the names that belong to relations from the fields of a dataset.
fn without(fields: Projection, relations: &[&str]) -> Projection {
    match fields {
        Projection::Only(mut names) => {
            names.retain(|it| !relations.contains(&it.split('.').next().unwrap_or_default()));
            Projection::Only(names)
        }
        other => other,
    }
}

fn scope_of(fields: &Projection) -> Option<Value> {
    match fields {
        Projection::Only(names) => Some(json!({"fields": names})),
        _ => None,
    }
}
