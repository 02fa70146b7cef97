//! Job executions: the stored state of a job, and its transitions between statuses (section 3 of the contract).
//!
//! A job is one record: the properties that FOLIO shows, and `_work`, the state that the runner needs to continue where
//! it stopped. Both change in the transaction that stores a batch's records, so they never disagree.

use pinakes_store::{
    Column, Direction, End, Expr, Index, Kind, Query, Search, StoreError, Txn, Type, Value as StoreValue,
    View,
};
use serde_json::{Map, Value, json};

use super::files::FILE_PART;
use super::journal::Summary;
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::limits::EXPIRED_FILES;

/// Jobs, by id.
pub(crate) static JOB: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("hrId", Type::Integer),
        Column::one("status", Type::Text),
        Column::one("uiStatus", Type::Text),
        Column::one("parentJobId", Type::Text),
        Column::one("subordinationType", Type::Text),
        Column::one("fileName", Type::Text),
        Column::one("userId", Type::Text),
        Column::one("startedDate", Type::Instant),
        Column::one("completedDate", Type::Instant),
        Column::at("profileId", "jobProfileInfo.id", Type::Text),
        Column::at("pending", "_work.pending", Type::Boolean),
        Column::at("hidden", "_work.hidden", Type::Boolean),
        Column::at("hasFile", "_work.hasFile", Type::Boolean),
        Column::at("heardAt", "_work.heardAt", Type::Integer),
        Column::at("profileName", "jobProfileInfo.name", Type::Text),
        Column::at("firstName", "runBy.firstName", Type::Text),
        Column::at("lastName", "runBy.lastName", Type::Text),
        Column::at("total", "progress.total", Type::Integer),
    ],
    indexes: &[
        Index::on(&["hrId"]),
        Index::on(&["parentJobId"]),
        Index::on(&["pending"]),
        Index::on(&["heardAt"]),
        Index::on(&["startedDate"]),
        Index::on(&["completedDate"]),
        Index::on(&["hasFile", "completedDate"]),
    ],
    search: Search::Declared,
    ..Kind::named("folio_job_execution")
};

/// Chunks of records that clients sent, by id. Completed ones are kept, empty, so that a repeated chunk is recognised.
pub(crate) static CHUNK: Kind = Kind {
    columns: &[
        Column::one("jobId", Type::Text),
        Column::one("number", Type::Integer),
        Column::one("isOpen", Type::Boolean),
    ],
    indexes: &[Index::on(&["jobId", "isOpen", "number"])],
    ..Kind::named("folio_import_chunk")
};

/// A job, changed in memory.
#[derive(Debug, Clone)]
pub(crate) struct Job(pub(crate) Map<String, Value>);

/// The initial data of a job.
#[derive(Debug, Clone)]
pub(crate) struct NewJob {
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) subordination: &'static str,
    pub(crate) file_name: String,
    pub(crate) user_id: String,
    pub(crate) run_by: Value,
    pub(crate) profile: Option<Value>,
    pub(crate) now_ms: i64,
}

/// Returns the user interface's name for a status.
pub(crate) fn ui_status(status: &str) -> &'static str {
    match status {
        "PARENT" => "PARENT",
        "NEW" | "FILE_UPLOADED" => "INITIALIZATION",
        "PARSING_IN_PROGRESS" | "COMMIT_IN_PROGRESS" => "RUNNING",
        "PARSING_FINISHED" | "COMMITTED" => "RUNNING_COMPLETE",
        "PROCESSING_IN_PROGRESS" => "PREPARING_FOR_PREVIEW",
        "PROCESSING_FINISHED" => "READY_FOR_PREVIEW",
        "DISCARDED" => "DISCARDED",
        "CANCELLED" => "CANCELLED",
        _ => "ERROR",
    }
}

/// Every status.
pub(crate) const STATUSES: [&str; 12] = [
    "PARENT",
    "NEW",
    "FILE_UPLOADED",
    "PARSING_IN_PROGRESS",
    "PARSING_FINISHED",
    "PROCESSING_IN_PROGRESS",
    "PROCESSING_FINISHED",
    "COMMIT_IN_PROGRESS",
    "COMMITTED",
    "ERROR",
    "DISCARDED",
    "CANCELLED",
];

/// Maximum number of jobs given up in one transaction.
const GIVEN_UP: u64 = 100;

/// Gives up jobs whose sender has sent nothing since an instant, so that announced records that never arrived count as
/// failed. Returns whether there were any.
pub(crate) fn give_up_unheard(txn: &mut Txn<'_>, since_ms: i64) -> Result<bool, StoreError> {
    let unheard = Expr::Range("_work.heardAt".into(), End::Open, End::Excluded(since_ms.into()));
    let mut has_any = false;
    for record in txn.find(&JOB, &Query::filter(unheard).window(0, GIVEN_UP))? {
        let Some(mut job) = Job::of(record.json()?) else { continue };
        job.set_work("heardAt", Value::Null);
        if !job.is_final() {
            job.set_work("last", true);
            job.set_work("pending", true);
        }
        job.save(txn)?;
        has_any = true;
    }
    Ok(has_any)
}

impl Job {
    /// Creates and stores a job with the tenant's next number.
    pub(crate) fn create(txn: &mut Txn<'_>, new: NewJob) -> Result<Self, StoreError> {
        let last = Query::filter(Expr::All).sorted("hrId", Direction::Descending).window(0, 1);
        let last = txn.find(&JOB, &last)?.first().map(|it| it.json()).transpose()?;
        let number = last.and_then(|it| it.get("hrId").and_then(Value::as_u64)).unwrap_or(0) + 1;
        let status = if new.subordination == "PARENT_MULTIPLE" { "PARENT" } else { "NEW" };
        let mut map = Map::new();
        map.insert("id".into(), new.id.as_str().into());
        map.insert("hrId".into(), number.into());
        map.insert("parentJobId".into(), new.parent.into());
        map.insert("subordinationType".into(), new.subordination.into());
        map.extend(new.profile.map(|it| ("jobProfileInfo".to_owned(), it)));
        map.insert("sourcePath".into(), new.file_name.as_str().into());
        map.insert("fileName".into(), new.file_name.into());
        map.insert("runBy".into(), new.run_by);
        map.insert("progress".into(), json!({"jobExecutionId": new.id, "current": 0, "total": 0}));
        map.insert("startedDate".into(), dates::rmb(new.now_ms).into());
        map.insert("status".into(), status.into());
        map.insert("uiStatus".into(), ui_status(status).into());
        map.insert("userId".into(), new.user_id.into());
        map.insert("_work".into(), json!({"pending": false, "hidden": false}));
        let job = Self(map);
        txn.insert(&JOB, job.id(), &Value::Object(job.0.clone()))?;
        Ok(job)
    }

    /// Returns the job with an id.
    pub(crate) fn get(view: &mut View<'_>, id: &str) -> Result<Option<Self>, StoreError> {
        let Some(record) = view.get(&JOB, id)? else { return Ok(None) };
        Ok(Self::of(record.json()?))
    }

    /// Wraps a stored body.
    pub(crate) fn of(body: Value) -> Option<Self> {
        match body {
            Value::Object(map) => Some(Self(map)),
            _ => None,
        }
    }

    /// Stores the changes.
    pub(crate) fn save(&self, txn: &mut Txn<'_>) -> Result<(), StoreError> {
        txn.update(&JOB, self.id(), &Value::Object(self.0.clone())).map(drop)
    }

    /// Returns the job in the form of an answer.
    pub(crate) fn shown(mut self) -> Value {
        self.0.shift_remove("_work");
        Value::Object(self.0)
    }

    pub(crate) fn id(&self) -> &str {
        self.text("id")
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets the status and its user interface name.
    pub(crate) fn set_status(&mut self, status: &str) {
        self.set("status", status);
        self.set("uiStatus", ui_status(status));
    }

    /// Checks whether the job is finished.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.text("status"), "COMMITTED" | "ERROR" | "DISCARDED" | "CANCELLED")
    }

    pub(crate) fn work(&self, name: &str) -> &Value {
        self.0.get("_work").and_then(|it| it.get(name)).unwrap_or(&Value::Null)
    }

    pub(crate) fn work_number(&self, name: &str) -> u64 {
        self.work(name).as_u64().unwrap_or(0)
    }

    pub(crate) fn set_work(&mut self, name: &str, value: impl Into<Value>) {
        if let Value::Object(work) = self.0.entry("_work").or_insert_with(|| json!({})) {
            work.insert(name.to_owned(), value.into());
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.progress("total")
    }

    pub(crate) fn current(&self) -> u64 {
        self.progress("current")
    }

    fn progress(&self, name: &str) -> u64 {
        self.0.get("progress").and_then(|it| it.get(name)).and_then(Value::as_u64).unwrap_or(0)
    }

    pub(crate) fn set_progress(&mut self, current: u64, total: u64) {
        let id = self.id().to_owned();
        self.set("progress", json!({"jobExecutionId": id, "current": current, "total": total}));
    }

    /// Assigns the file to process; `source` says how it was sent.
    pub(crate) fn take_file(&mut self, parts: &Value, source: &str) {
        self.set_work("parts", parts.clone());
        self.set_work("source", source);
        self.set_work("hasFile", true);
        self.set_work("pending", true);
    }

    /// Returns the counts of the records processed so far.
    pub(crate) fn summary(&self) -> Summary {
        Summary(self.work("summary").as_object().cloned().unwrap_or_default())
    }

    /// Ends the job with an error that concerns all of it.
    pub(crate) fn fail(&mut self, error_status: &str, message: &str, now_ms: i64) {
        self.set_status("ERROR");
        self.set("errorStatus", error_status);
        self.set("completedDate", dates::rmb(now_ms));
        self.set_work("pending", false);
        self.set_work("error", message);
    }

    /// Ends the job with a status that follows from its records.
    pub(crate) fn finish(&mut self, now_ms: i64) {
        let n_failed = self.work_number("failed");
        self.set_status(if n_failed == 0 { "COMMITTED" } else { "ERROR" });
        let total = self.total().max(self.current());
        self.set_progress(total, total);
        self.set("completedDate", dates::rmb(now_ms));
        self.set_work("pending", false);
    }
}

/// Deletes the files of some jobs that were finished by `until_ms`; the next upload continues.
pub(crate) fn forget_files(txn: &mut Txn<'_>, until_ms: i64) -> Result<(), StoreError> {
    let until = End::Included(StoreValue::Instant(until_ms));
    let old = Expr::Is("_work.hasFile".into(), true.into()).and(Expr::Range(
        "completedDate".into(),
        End::Open,
        until,
    ));
    for record in txn.find(&JOB, &Query::filter(old).window(0, EXPIRED_FILES))? {
        let Some(mut job) = Job::of(record.json()?).filter(Job::is_final) else { continue };
        for part in job.work("parts").as_array().into_iter().flatten() {
            if let Some(id) = part.get(0).and_then(Value::as_str) {
                txn.delete(&FILE_PART, id)?;
            }
        }
        job.set_work("parts", json!([]));
        job.set_work("hasFile", false);
        job.save(txn)?;
    }
    Ok(())
}

/// Returns the children of a job, in the order of their parts.
pub(crate) fn children(view: &mut View<'_>, parent: &str) -> Result<Vec<Job>, StoreError> {
    let query = Query::filter(Expr::And(vec![
        Expr::Is("parentJobId".into(), parent.into()),
        Expr::In("subordinationType".into(), vec!["CHILD".into(), "COMPOSITE_CHILD".into()]),
    ]));
    let mut list = Vec::new();
    for record in view.find(&JOB, &query)? {
        list.extend(Job::of(record.json()?));
    }
    list.sort_by_key(|it| it.0.get("jobPartNumber").and_then(Value::as_u64).unwrap_or(0));
    Ok(list)
}

/// Finishes the parent when its last child is finished; the child must already be stored.
pub(crate) fn child_ended(txn: &mut Txn<'_>, child: &Job, now_ms: i64) -> Result<(), StoreError> {
    if child.text("subordinationType") != "COMPOSITE_CHILD" {
        return Ok(());
    }
    let parent = child.text("parentJobId").to_owned();
    let Some(mut parent_job) = Job::get(txn, &parent)? else { return Ok(()) };
    let open = Expr::And(vec![
        Expr::Is("parentJobId".into(), parent.as_str().into()),
        Expr::Is("subordinationType".into(), "COMPOSITE_CHILD".into()),
        Expr::Is("_work.pending".into(), true.into()),
    ]);
    let open = txn.find(&JOB, &Query::filter(open).window(0, 2))?;
    if parent_job.is_final() || open.iter().any(|it| it.id != child.id()) {
        return Ok(());
    }
    let list = children(txn, &parent)?;
    let sum = |of: fn(&Job) -> u64| list.iter().map(of).sum::<u64>();
    parent_job.set_progress(sum(Job::total), sum(Job::total));
    parent_job.set_status("COMMITTED");
    parent_job.set("completedDate", dates::rmb(now_ms));
    parent_job.set_work("pending", false);
    parent_job.save(txn)
}

/// Builds the error `JobExecution with id '…' was not found`.
pub(crate) fn not_found(id: &str) -> FolioError {
    FolioError::not_found(format!("JobExecution with id '{id}' was not found"))
}
