//! Reading the log of a job: its entries as batches have stored them.

use std::borrow::Cow;

use pinakes_store::{Direction, End, Expr, Query, Record, StoreError, Value as Condition, View};
use serde::Deserialize;
use serde_json::Value;

use crate::data_import::{JOURNAL, Job, children};
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::limits::LOG_BYTES;

/// A stored text. A newtype, because only one borrows from the batch where texts are in a list.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'b>(#[serde(borrow)] pub(crate) Cow<'b, str>);

/// One stored entry, see [`Entry`](super::Entry).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stored<'b> {
    #[serde(rename = "o")]
    pub(crate) order: u64,
    #[serde(borrow, rename = "i")]
    pub(crate) incoming_id: Text<'b>,
    #[serde(borrow, rename = "s")]
    pub(crate) source_id: Text<'b>,
    #[serde(borrow, rename = "y")]
    pub(crate) record_type: Text<'b>,
    #[serde(borrow, rename = "t")]
    pub(crate) title: Text<'b>,
    #[serde(borrow, rename = "e")]
    pub(crate) error: Text<'b>,
    #[serde(borrow, rename = "w")]
    pub(crate) warning: Text<'b>,
    #[serde(borrow, rename = "j")]
    rows: Vec<[Option<Text<'b>>; 5]>,
}

/// The stored entries of a batch.
#[derive(Debug, Deserialize)]
pub(crate) struct Batch<'b> {
    /// In milliseconds since 1970.
    #[serde(default)]
    pub(crate) date: i64,
    #[serde(borrow, default)]
    pub(crate) entries: Vec<Stored<'b>>,
}

impl<'b> Batch<'b> {
    pub(crate) fn of(record: &'b Record) -> Result<Self, StoreError> {
        let fault = |error| StoreError::Damaged(format!("journal record {:?}: {error}", record.id));
        serde_json::from_slice(&record.body).map_err(fault)
    }

    /// Returns the reason why a job failed as a whole, as an entry that precedes those of its records.
    pub(crate) fn of_whole(job: &'b Job) -> Option<Self> {
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
    pub(crate) fn rows(&self) -> impl Iterator<Item = [&str; 5]> {
        self.rows.iter().map(|row| row.each_ref().map(|it| it.as_ref().map_or("", |text| &*text.0)))
    }

    /// Returns whether it is the entry of a record, by the id that came or that was stored.
    pub(crate) fn is_of(&self, record: &str) -> bool {
        self.incoming_id.0 == record || self.source_id.0 == record
    }
}

/// Returns a job and its children.
pub(crate) fn with_children(view: &mut View<'_>, job: &str) -> Result<Vec<Job>, StoreError> {
    let mut jobs: Vec<Job> = Job::get(view, job)?.into_iter().collect();
    jobs.extend(children(view, job)?);
    Ok(jobs)
}

/// Passes the batches of a job to `visit`, in order, each with its record; of those with errors only, if so asked.
pub(crate) fn each_batch_of(
    view: &mut View<'_>,
    job: &str,
    errors_only: bool,
    mut visit: impl FnMut(&Record, Batch<'_>) -> Result<(), FolioError>,
) -> Result<(), FolioError> {
    let mut filter = Expr::Is("jobId".into(), job.into());
    if errors_only {
        filter = filter.and(Expr::Is("hasErrors".into(), true.into()));
    }
    let query = Query::filter(filter).sorted("order", Direction::Ascending);
    view.try_for_each(&JOURNAL, &query, |record| visit(&record, Batch::of(&record)?))
}

/// Passes the batches of some jobs to `visit`, each with the position of its job and its record; without one, the reason
/// why a job failed as a whole.
pub(crate) fn each_batch(
    view: &mut View<'_>,
    jobs: &[Job],
    errors_only: bool,
    mut visit: impl FnMut(usize, Option<&Record>, Batch<'_>) -> Result<(), FolioError>,
) -> Result<(), FolioError> {
    for (job_at, job) in jobs.iter().enumerate() {
        if let Some(batch) = Batch::of_whole(job) {
            visit(job_at, None, batch)?;
        }
        each_batch_of(view, job.id(), errors_only, |record, batch| visit(job_at, Some(record), batch))?;
    }
    Ok(())
}

/// The size of the batches of which an answer shows entries.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    n_bytes: usize,
}

impl Shown {
    /// Adds a batch of that size. Errors: 400 if there are more than [`LOG_BYTES`].
    pub(crate) fn add(&mut self, n_bytes: usize) -> Result<(), FolioError> {
        self.n_bytes += n_bytes;
        if LOG_BYTES < self.n_bytes {
            return Err(FolioError::bad_request(format!(
                "the answer holds entries of more than {LOG_BYTES} bytes of the log; ask for pages of \
                 /metadata-provider/jobLogEntries"
            )));
        }
        Ok(())
    }
}

/// Checks whether the job's entries are exactly those of its file's records, one for each.
pub(crate) fn is_of_file_alone(job: &Job) -> bool {
    job.work("source").as_str() == Some("file") && job.work("error").is_null()
}

/// Passes the entries of the records `from` up to but excluding `to` of such a job to `visit`, in order; only the journal
/// records that contain them are read.
pub(crate) fn some_of_file(
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
    let mut all = Shown::default();
    view.try_for_each(&JOURNAL, &batches, |record| {
        all.add(record.body.len())?;
        let batch = Batch::of(&record)?;
        batch.entries.iter().filter(|it| (from..to).contains(&it.order)).for_each(&mut visit);
        Ok::<_, FolioError>(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_bounded() {
        let mut all = Shown::default();
        assert!(all.add(LOG_BYTES - 1).and_then(|()| all.add(1)).is_ok());
        assert!(all.add(1).is_err());
    }
}
