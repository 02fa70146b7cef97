//! One import as the published script runs it: announce a file, upload it, have it processed with a job profile, poll
//! the lists of jobs until it is over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::client::Request;
use crate::load::{Group, Load, Loops, Script, User, Work};
use crate::result::WorkDone;
use crate::scenario::folio::Session;

/// The requests of the script, by their place in [`Script::flows`].
const FLOWS: [&str; 4] = ["announce", "upload", "process", "ask for jobs"];
const ANNOUNCE: usize = 0;
const UPLOAD: usize = 1;
const PROCESS: usize = 2;
const ASK: usize = 3;

/// An import that takes longer is abandoned.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(2 * 3600);

/// A file of records, ready to send.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) bytes: Bytes,
    pub(super) n_records: u64,
}

/// A job profile, in the form `processFiles` expects: id, name, type of data.
#[derive(Clone, Debug)]
pub(super) struct Profile(pub(super) Value);

/// What one user imports.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) session: Session,
    pub(super) profile: Profile,
    pub(super) file: File,
}

/// A finished import.
#[derive(Clone, Debug)]
pub(super) struct Imported {
    /// Place among the tenants of the step.
    pub(super) tenant: usize,
    pub(super) job: String,
    pub(super) definition: String,
    pub(super) status: String,
    pub(super) n_records: u64,
    pub(super) n_bytes: u64,
    pub(super) began: Instant,
    /// Time until the file was uploaded.
    pub(super) uploaded: Duration,
    /// Time until the client saw the end.
    pub(super) took: Duration,
    /// Time from the job's start to its end by the server's clock, if it reports both.
    pub(super) job_took: Option<Duration>,
}

/// The imports of a step, including those that were not seen to end.
#[derive(Clone, Default)]
pub(super) struct Imports(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    over: Vec<Imported>,
    /// Job and upload definition of each, by tenant.
    begun: Vec<(usize, String, String)>,
}

impl Imports {
    fn noted<R>(&self, with: impl FnOnce(&mut Noted) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns those that are over.
    pub(super) fn over(&self) -> Vec<Imported> {
        self.noted(|it| it.over.clone())
    }

    /// (tenant, job, upload definition) of all that began.
    pub(super) fn begun(&self) -> Vec<(usize, String, String)> {
        self.noted(|it| it.begun.clone())
    }
}

/// Returns all imports of a step as one piece of work.
pub(super) fn work_of(imports: &[Imported]) -> Option<WorkDone> {
    let began = imports.iter().map(|it| it.began).min()?;
    let ended = imports.iter().map(|it| it.began + it.took).max()?;
    Some(WorkDone {
        unit: "records".to_owned(),
        n: imports.iter().map(|it| it.n_records).sum(),
        took_s: (ended - began).as_secs_f64(),
        n_requests: imports.len() as u64,
        sent_bytes: imports.iter().map(|it| it.n_bytes).sum(),
    })
}

/// Returns one user per file, who imports it `loops` times.
pub(super) fn group(
    name: &str,
    loads: Vec<Upload>,
    loops: Loops,
    poll: Duration,
    imports: &Imports,
) -> Group {
    let connections = loads.len();
    let (loads, imports) = (Arc::new(loads), imports.clone());
    let script = Script {
        flows: FLOWS.iter().map(|it| (*it).to_owned()).collect(),
        body: Arc::new(move |user, _| {
            let (loads, imports) = (Arc::clone(&loads), imports.clone());
            Box::pin(async move {
                let tenant = user.index % loads.len();
                run(user, &loads[tenant], tenant, poll, &imports).await
            })
        }),
    };
    Group { name: name.to_owned(), load: Load::closed(loops), connections, work: Work::Script(script) }
}

async fn run(
    user: &mut User,
    load: &Upload,
    tenant: usize,
    poll: Duration,
    imports: &Imports,
) -> Result<(), ()> {
    let (session, file) = (&load.session, &load.file);
    let began = Instant::now();
    let announced = json!({"fileDefinitions": [
        {"name": file.name, "size": file.bytes.len().div_ceil(1024), "uiKey": format!("{}.1", file.name)}
    ]});
    let definition = post(user, ANNOUNCE, session, "/data-import/uploadDefinitions", &announced).await?;
    let announced = &definition["fileDefinitions"][0];
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(());
    let (id, file_id) = (text(&definition["id"])?, text(&announced["id"])?);
    let job = text(&announced["jobExecutionId"])?;
    imports.noted(|it| it.begun.push((tenant, job.clone(), id.clone())));

    let path = session.path(&format!("/data-import/uploadDefinitions/{id}/files/{file_id}"));
    let headers = Arc::new(octets(&session.headers()));
    let answer = user.send(UPLOAD, Request::post(path, &headers, file.bytes.clone())).await?;
    let definition: Value = serde_json::from_slice(&answer.body).map_err(|_| ())?;
    let uploaded = began.elapsed();

    let path = format!("/data-import/uploadDefinitions/{id}/processFiles?defaultMapping=false");
    let body = json!({"uploadDefinition": definition, "jobProfileInfo": load.profile.0});
    let body = Bytes::from(body.to_string());
    user.send(PROCESS, Request::post(session.path(&path), &session.headers(), body)).await?;

    while began.elapsed() < GIVEN_UP_AFTER {
        tokio::time::sleep(poll).await;
        if let Some(ended) = ended(user, session, &job).await? {
            let took = began.elapsed();
            let status = ended["status"].as_str().unwrap_or_default().to_owned();
            imports.noted(|it| {
                it.over.push(Imported {
                    tenant,
                    job,
                    definition: id,
                    status,
                    n_records: file.n_records,
                    n_bytes: file.bytes.len() as u64,
                    began,
                    uploaded,
                    took,
                    job_took: between(&ended["startedDate"], &ended["completedDate"]),
                });
            });
            return Ok(());
        }
    }
    Err(())
}

/// Returns the job, if it is among those that are over. Running jobs are queried first, as the published script
/// does.
async fn ended(user: &mut User, session: &Session, job: &str) -> Result<Option<Value>, ()> {
    const RUNNING: &str = "/metadata-provider/jobExecutions?statusNot=DISCARDED&uiStatusAny=PREPARING_FOR_PREVIEW\
                           &uiStatusAny=READY_FOR_PREVIEW&uiStatusAny=RUNNING&limit=50";
    const OVER: &str = "/metadata-provider/jobExecutions?limit=25&sortBy=completed_date,desc&statusAny=COMMITTED\
                        &statusAny=ERROR&statusAny=CANCELLED";
    if listed(user, session, RUNNING, job).await?.is_some() {
        return Ok(None);
    }
    listed(user, session, OVER, job).await
}

async fn listed(user: &mut User, session: &Session, path: &str, job: &str) -> Result<Option<Value>, ()> {
    let answer = user.send(ASK, Request::get(session.path(path), &session.headers())).await?;
    let mut page: Value = serde_json::from_slice(&answer.body).map_err(|_| ())?;
    let jobs = page["jobExecutions"].as_array_mut().map(std::mem::take).unwrap_or_default();
    Ok(jobs.into_iter().find(|it| it["id"] == job))
}

async fn post(
    user: &mut User,
    flow: usize,
    session: &Session,
    path: &str,
    body: &Value,
) -> Result<Value, ()> {
    let body = Bytes::from(body.to_string());
    let answer = user.send(flow, Request::post(session.path(path), &session.headers(), body)).await?;
    serde_json::from_slice(&answer.body).map_err(|_| ())
}

fn octets(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers
}

/// Returns the time between two dates as this interface writes them.
fn between(from: &Value, to: &Value) -> Option<Duration> {
    let read = |date: &Value| OffsetDateTime::parse(date.as_str()?, &Rfc3339).ok();
    (read(to)? - read(from)?).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_side_by_side_count_from_the_first_to_the_last() {
        let began = Instant::now();
        let import = |tenant, after_s, took_s| Imported {
            tenant,
            job: String::new(),
            definition: String::new(),
            status: "COMMITTED".to_owned(),
            n_records: 100,
            n_bytes: 1000,
            began: began + Duration::from_secs(after_s),
            uploaded: Duration::ZERO,
            took: Duration::from_secs(took_s),
            job_took: None,
        };
        let work = work_of(&[import(0, 0, 4), import(1, 1, 9), import(2, 2, 3)]).unwrap();
        assert_eq!((work.n, work.took_s, work.n_requests, work.sent_bytes), (300, 10.0, 3, 3000));
        assert_eq!((work.per_s(), work_of(&[])), (30.0, None));
    }

    #[test]
    fn dates_are_those_of_the_interface() {
        let (from, to) = ("2026-01-31T10:20:30.123+00:00", "2026-01-31T10:31:01.123+00:00");
        assert_eq!(between(&from.into(), &to.into()), Some(Duration::from_secs(631)));
        assert_eq!(between(&to.into(), &from.into()), None);
        assert_eq!(between(&Value::Null, &to.into()), None);
    }
}
