//! The entries of jobs as batches have stored them, see `journal.rs`.

use std::borrow::Cow;

use pinakes_store::{Direction, End, Expr, Query, Record, StoreError, Value as Condition, View};
use serde::Deserialize;
use serde_json::Value;

use crate::data_import::{JOURNAL, Job, children};
use crate::platform::dates;
use crate::platform::error::FolioError;

/// A stored text. A newtype, because only one borrows from the batch where texts are in a list.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'b>(#[serde(borrow)] pub(super) Cow<'b, str>);

/// One stored entry, see [`Entry`](crate::data_import::journal::Entry).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stored<'b> {
    #[serde(rename = "o")]
    pub(super) order: u64,
    #[serde(borrow, rename = "i")]
    pub(super) incoming_id: Text<'b>,
    #[serde(borrow, rename = "s")]
    pub(super) source_id: Text<'b>,
    #[serde(borrow, rename = "y")]
    pub(super) record_type: Text<'b>,
    #[serde(borrow, rename = "t")]
    pub(super) title: Text<'b>,
    #[serde(borrow, rename = "e")]
    pub(super) error: Text<'b>,
    #[serde(borrow, rename = "w")]
    pub(super) warning: Text<'b>,
    #[serde(borrow, rename = "j")]
    rows: Vec<[Option<Text<'b>>; 5]>,
}

/// The stored entries of a batch.
#[derive(Debug, Deserialize)]
pub(super) struct Batch<'b> {
    /// In milliseconds since 1970.
    #[serde(default)]
    pub(super) date: i64,
    #[serde(borrow, default)]
    pub(super) entries: Vec<Stored<'b>>,
}

impl<'b> Batch<'b> {
    pub(super) fn of(record: &'b Record) -> Result<Self, StoreError> {
        let fault = |error| StoreError::Damaged(format!("journal record {:?}: {error}", record.id));
        serde_json::from_slice(&record.body).map_err(fault)
    }

    /// Returns the reason why a job failed as a whole, as an entry that precedes those of its records.
    pub(super) fn of_whole(job: &'b Job) -> Option<Self> {
        let text = |it: &'b str| Text(Cow::Borrowed(it));
        let reason = job.work("error").as_str()?;
        let entry = Stored {
            incoming_id: text(job.id()),
            title: text("No content"),
            error: text(reason),
            ..Stored::default()
        };
        let date = dates::parse_ms(job.text("completedDate")).unwrap_or(0);
        Some(Self { date, entries: vec![entry] })
    }
}

impl Stored<'_> {
    /// Returns (entity, id, hrid, action, error) of each row.
    pub(super) fn rows(&self) -> impl Iterator<Item = [&str; 5]> {
        self.rows.iter().map(|row| row.each_ref().map(|it| it.as_ref().map_or("", |text| &*text.0)))
    }

    /// Returns whether it is the entry of a record, by the id that came or that was stored.
    pub(super) fn is_of(&self, record: &str) -> bool {
        self.incoming_id.0 == record || self.source_id.0 == record
    }
}

/// Returns a job and its children.
pub(super) fn with_children(view: &mut View<'_>, job: &str) -> Result<Vec<Job>, StoreError> {
    let mut jobs: Vec<Job> = Job::get(view, job)?.into_iter().collect();
    jobs.extend(children(view, job)?);
    Ok(jobs)
}

/// Passes the batches of some jobs to `visit`, each with the position of its job and the id of its record, which is empty
/// for the reason why a job failed as a whole.
pub(super) fn each_batch(
    view: &mut View<'_>,
    jobs: &[Job],
    errors_only: bool,
    mut visit: impl FnMut(usize, &str, Batch<'_>),
) -> Result<(), FolioError> {
    for (job_at, job) in jobs.iter().enumerate() {
        if let Some(batch) = Batch::of_whole(job) {
            visit(job_at, "", batch);
        }
        let mut filter = Expr::Is("jobId".into(), job.id().into());
        if errors_only {
            filter = filter.and(Expr::Is("hasErrors".into(), true.into()));
        }
        let query = Query::filter(filter).sorted("order", Direction::Ascending);
        view.try_for_each(&JOURNAL, &query, |record| {
            visit(job_at, &record.id, Batch::of(&record)?);
            Ok::<_, FolioError>(())
        })?;
    }
    Ok(())
}

/// Checks whether the job's entries are exactly those of its file's records, one for each.
pub(super) fn is_of_file_alone(job: &Job) -> bool {
    job.work("source").as_str() == Some("file") && job.work("error").is_null()
}

/// Passes the entries of the records `from` up to but excluding `to` of such a job to `visit`, in order; only the journal
/// records that contain them are read.
pub(super) fn some_of_file(
    view: &mut View<'_>,
    job: &Job,
    from: u64,
    to: u64,
    mut visit: impl FnMut(&Stored<'_>),
) -> Result<(), FolioError> {
    let position = |order: u64| Condition::Integer(i64::try_from(order).unwrap_or(i64::MAX));
    let own = |begin: End, end: End| {
        Expr::Is("jobId".into(), job.id().into()).and(Expr::Range("order".into(), begin, end))
    };
    let first = Query::filter(own(End::Open, End::Included(position(from))))
        .sorted("order", Direction::Descending)
        .window(0, 1);
    let first = view.find(&JOURNAL, &first)?.first().map(Record::json).transpose()?;
    let first = first.and_then(|it| it.get("order").and_then(Value::as_u64)).unwrap_or(0);
    let batches = own(End::Included(position(first)), End::Excluded(position(to)));
    let batches = Query::filter(batches).sorted("order", Direction::Ascending);
    view.try_for_each(&JOURNAL, &batches, |record| {
        let batch = Batch::of(&record)?;
        batch.entries.iter().filter(|it| (from..to).contains(&it.order)).for_each(&mut visit);
        Ok::<_, FolioError>(())
    })
}
