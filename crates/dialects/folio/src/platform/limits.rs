//! Bounds that no operator has a reason to set, in one place. Those that one may want to set are keys of `[folio]`
//! ([`crate::Settings`]).

/// Records of an import's batch, at least and at most.
pub(crate) const BATCH_RECORDS: (usize, usize) = (8, 1_024);
/// Bytes of a batch's records at most.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Announced records that never came, each with a line of its own in the log.
pub(crate) const MISSING_LINES: u64 = 1_000;
/// Bytes that tell what a file is.
pub(crate) const HEAD_BYTES: usize = 64 << 10;
/// Records among those bytes of which one must be whole when the beginning is damaged.
pub(crate) const HEAD_RECORDS: usize = 100;
/// How long a server that went away keeps its imports.
pub(crate) const LEASE_MS: u32 = 5_000;
/// How often a lease that another server has is asked for again.
pub(crate) const LEASE_WAIT_MS: u64 = 500;
/// How often a server looks for imports that others have left.
pub(crate) const LOOK_S: u64 = 10;
/// How long a batch waits for writes that wait, at most.
pub(crate) const YIELD_MS: u64 = 20;
/// How long after a request has written imports take others to be at work.
pub(crate) const AT_WORK_S: u64 = 10;
/// Pause between two batches beside others: so many times what the last one took with its commit. Hardly one request in
/// twenty then finds a batch under way.
pub(crate) const PAUSE_TIMES: u32 = 25;
/// Longest such pause.
pub(crate) const PAUSE_MS: u64 = 400;
/// Records of a file of authorities that one transaction stores.
pub(crate) const BULK_RECORDS: usize = 100;
/// Bytes of such a file that may be refused; the rest is not looked at.
pub(crate) const BULK_REFUSED_BYTES: usize = 64 << 20;
/// Bytes of an upload that one write appends.
pub(crate) const WRITE_BYTES: usize = 256 << 10;
/// Bytes of an upload that one read takes.
pub(crate) const READ_BYTES: usize = 512 << 10;
/// Records that a match looks at: more than one is an error or is narrowed by the next match.
pub(crate) const MATCH_HITS: usize = 1_000;
/// Authorities whose links are counted at once. Beyond: 422.
pub(crate) const COUNTED_AUTHORITIES: usize = 10_000;
/// Records for which links are suggested at once. Beyond: 422.
pub(crate) const SUGGESTED_RECORDS: usize = 1_000;
/// Entries of a list that is browsed, in one answer. Beyond: 400.
pub(crate) const BROWSED_ENTRIES: u64 = 1_000;
/// Accounts, loans or requests that one request is about. Beyond: 400 or 422.
pub(crate) const BULK_ACCOUNTS: usize = 1_000;
/// How often a server looks for timers that are due.
pub(crate) const TIMER_LOOK_MS: u64 = 500;
/// How long a tenant that was written to is looked at all the time; others at most so often.
pub(crate) const TIMER_ACTIVE_S: u64 = 60;
/// How long a tenant is not looked at, at most: another server may have changed its timers.
pub(crate) const TIMER_IDLE_S: u64 = 600;
/// Records that a chore reads, or changes in one transaction, at once.
pub(crate) const CHORE_RECORDS: u64 = 100;
/// Slips of a service point that are printed at once.
pub(crate) const SLIPS: usize = 5_000;
/// Bytes of a notice's text.
pub(crate) const NOTICE_BYTES: usize = 256 << 10;
/// How often a message is tried.
pub(crate) const MAIL_ATTEMPTS: u64 = 3;
/// Messages that are read at once to be sent.
pub(crate) const MAIL_BATCH: u64 = 50;
/// How long the mail server may take for a step.
pub(crate) const MAIL_TIMEOUT_S: u64 = 15;
/// After how long a visit of a patron that nobody ended is over.
pub(crate) const SESSION_MINUTES: i64 = 20;
/// Days whose openings are shown at once (ten years). Beyond: 400.
pub(crate) const CALENDAR_DAYS: i64 = 3_660;
/// Files of jobs long over that are cleared away with the beginning of an upload: the tenant's writer is held meanwhile.
pub(crate) const EXPIRED_FILES: u64 = 2;
/// Uploads nobody finished that are cleared away with the beginning of another.
pub(crate) const EXPIRED_UPLOADS: u64 = 100;
/// Fields of a tenant's own in a specification of MARC records, and parts of one field. Beyond: 400.
pub(crate) const SPECIFICATION_PARTS: usize = 1_000;
/// Characters of a label or a URL in a specification. Beyond: 400.
pub(crate) const SPECIFICATION_LABEL: usize = 350;
/// Bytes of a list of identifiers of records that are changed alike.
pub(crate) const BULK_EDIT_BYTES: u64 = 8 << 20;
/// Identifiers of such a list: they are written with the operation, in one transaction.
pub(crate) const BULK_EDIT_RECORDS: usize = 100_000;
/// Rows of such a list that one transaction finds records for or tries rules on.
pub(crate) const BULK_EDIT_BATCH: u64 = 200;
/// Records of one operation that are written at once, each in its transaction.
pub(crate) const BULK_EDIT_WRITES: usize = 16;
/// Actions of the rules of such an operation.
pub(crate) const BULK_EDIT_RULES: usize = 100;
/// How long a Z39.50 server may take for a step.
pub(crate) const COPYCAT_TIMEOUT_S: u64 = 20;
/// Bytes of an answer of such a server.
pub(crate) const COPYCAT_ANSWER_BYTES: usize = 4 << 20;
/// How long a client waits for the import of a single record, and how often it is looked at.
pub(crate) const COPYCAT_WAIT_S: u64 = 60;
/// See [`COPYCAT_WAIT_S`].
pub(crate) const COPYCAT_LOOK_MS: u64 = 50;
/// Conditions of a query about records by their fields. Beyond: 422.
pub(crate) const QUERY_CONDITIONS: usize = 200;
/// Records that such a query may find: their ids are kept with it. Beyond: 422.
pub(crate) const QUERY_IDS: usize = 100_000;
/// How long such a query is kept.
pub(crate) const QUERY_KEPT_MS: i64 = 86_400_000;
/// Records of a tenant's file that one transaction stores.
pub(crate) const MOVED_RECORDS: usize = 200;
/// Records of such a file that were refused and are tried again in the end.
pub(crate) const MOVED_WAITING: usize = 50_000;
