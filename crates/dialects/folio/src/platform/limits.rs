//! Limits that operators have no reason to change, in one place. Those that they may want to change are keys of
//! `[folio]` ([`crate::Settings`]).

/// Minimum and maximum number of records in a batch of an import.
pub(crate) const BATCH_RECORDS: (usize, usize) = (8, 1_024);
/// Maximum size of a batch's records, in bytes.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of missing announced records that are logged individually.
pub(crate) const MISSING_LINES: u64 = 1_000;
/// Number of bytes from which the format of a file is detected.
pub(crate) const HEAD_BYTES: usize = 64 << 10;
/// Number of records within those bytes, one of which must be intact if the start is damaged.
pub(crate) const HEAD_RECORDS: usize = 100;
/// How long the lease on imports outlives a server that disappeared, in milliseconds.
pub(crate) const LEASE_MS: u32 = 5_000;
/// Interval between attempts to take a lease that another server holds, in milliseconds.
pub(crate) const LEASE_WAIT_MS: u64 = 500;
/// Interval at which a server looks for imports left behind by others, in seconds.
pub(crate) const LOOK_S: u64 = 10;
/// Maximum time for which a batch waits for other waiting writes, in milliseconds.
pub(crate) const YIELD_MS: u64 = 20;
/// How long after a request's write imports assume that others are active, in seconds.
pub(crate) const AT_WORK_S: u64 = 10;
/// Pause between two batches while others are active, as a multiple of the time that the last batch and its commit
/// took. Then hardly one request in twenty meets a batch in progress.
pub(crate) const PAUSE_TIMES: u32 = 25;
/// Maximum length of such a pause, in milliseconds.
pub(crate) const PAUSE_MS: u64 = 400;
/// Number of records of an authority file that one transaction stores.
pub(crate) const BULK_RECORDS: usize = 100;
/// Maximum size of refused lines in such a file, in bytes; the rest of the file is not read.
pub(crate) const BULK_REFUSED_BYTES: usize = 64 << 20;
/// Number of bytes of an upload that one write appends.
pub(crate) const WRITE_BYTES: usize = 256 << 10;
/// Number of bytes of an upload that one read returns.
pub(crate) const READ_BYTES: usize = 512 << 10;
/// Maximum number of records that a match considers: more than one is an error or is narrowed by the next match.
pub(crate) const MATCH_HITS: usize = 1_000;
/// Maximum number of parts of incoming values that a match looks up. Beyond: all stored values are compared.
pub(crate) const MATCH_PARTS: usize = 20_000;
/// Number of bytes of incoming values that a match looks for by one pattern: beyond, a pattern becomes too large.
pub(crate) const MATCH_PATTERN_BYTES: usize = 5_000;
/// Maximum number of authorities whose links are counted in one request. Beyond: 422.
pub(crate) const COUNTED_AUTHORITIES: usize = 10_000;
/// Maximum number of records in a request for link suggestions. Beyond: 422.
pub(crate) const SUGGESTED_RECORDS: usize = 1_000;
/// Maximum number of entries of a browse list in one answer. Beyond: 400.
pub(crate) const BROWSED_ENTRIES: u64 = 1_000;
/// Maximum size of the stored batches of which one answer shows entries of an import's log, in bytes. Beyond: 400.
pub(crate) const LOG_BYTES: usize = 256 << 20;
/// Maximum number of such entries that are sorted for a page. Beyond: 400.
pub(crate) const LOG_ENTRIES: usize = 1_000_000;
/// Maximum number of accounts, loans or requests in one request. Beyond: 400 or 422.
pub(crate) const BULK_ACCOUNTS: usize = 1_000;
/// Interval at which a server looks for due timers, in milliseconds.
pub(crate) const TIMER_LOOK_MS: u64 = 500;
/// How long a tenant that was written to is checked continuously, in seconds; also the minimum interval for others.
pub(crate) const TIMER_ACTIVE_S: u64 = 60;
/// Maximum time between two checks of a tenant, in seconds: another server may have changed its timers.
pub(crate) const TIMER_IDLE_S: u64 = 600;
/// Maximum number of records that a chore reads at once, or changes in one transaction.
pub(crate) const CHORE_RECORDS: u64 = 100;
/// Maximum number of slips of a service point in one answer.
pub(crate) const SLIPS: usize = 5_000;
/// Maximum size of a notice's text, in bytes.
pub(crate) const NOTICE_BYTES: usize = 256 << 10;
/// Maximum number of attempts to send a message.
pub(crate) const MAIL_ATTEMPTS: u64 = 3;
/// Number of messages that are read at once for sending.
pub(crate) const MAIL_BATCH: u64 = 50;
/// Timeout of the mail server for one step, in seconds.
pub(crate) const MAIL_TIMEOUT_S: u64 = 15;
/// How long messages are kept at least if a client that deletes old ones does not say, in milliseconds.
pub(crate) const MAIL_KEPT_MS: i64 = 86_400_000;
/// How long nothing is sent to an address at the wish of somebody who is not logged in, after the last message to it,
/// in milliseconds.
pub(crate) const MAIL_PAUSE_MS: i64 = 60_000;
/// How long a link to set a password works if the site says nothing else, in hours.
pub(crate) const RESET_HOURS: i64 = 24;
/// Time after which a patron's visit that nobody ended is over, in minutes.
pub(crate) const SESSION_MINUTES: i64 = 20;
/// Maximum number of days whose openings are shown at once (ten years). Beyond: 400.
pub(crate) const CALENDAR_DAYS: i64 = 3_660;
/// Number of files of long-finished jobs that are deleted when an upload begins, which holds the tenant's writer.
pub(crate) const EXPIRED_FILES: u64 = 2;
/// Number of unfinished uploads that are deleted when another one begins.
pub(crate) const EXPIRED_UPLOADS: u64 = 100;
/// Maximum number of a tenant's own fields in a specification of MARC records, and of parts of one field. Beyond: 400.
pub(crate) const SPECIFICATION_PARTS: usize = 1_000;
/// Maximum number of characters of a label or a URL in a specification. Beyond: 400.
pub(crate) const SPECIFICATION_LABEL: usize = 350;
/// Maximum size of a list of identifiers for a bulk edit, in bytes.
pub(crate) const BULK_EDIT_BYTES: u64 = 8 << 20;
/// Maximum number of identifiers in such a list: they are written with the operation, in one transaction.
pub(crate) const BULK_EDIT_RECORDS: usize = 100_000;
/// Number of rows of such a list for which one transaction finds records or previews rules.
pub(crate) const BULK_EDIT_BATCH: u64 = 200;
/// Number of records of one operation that are written concurrently, each in its own transaction.
pub(crate) const BULK_EDIT_WRITES: usize = 16;
/// Maximum number of actions in the rules of such an operation.
pub(crate) const BULK_EDIT_RULES: usize = 100;
/// Timeout of a Z39.50 server for one step, in seconds.
pub(crate) const COPYCAT_TIMEOUT_S: u64 = 20;
/// Maximum size of an answer of such a server, in bytes.
pub(crate) const COPYCAT_ANSWER_BYTES: usize = 4 << 20;
/// How long a client waits for the import of a single record, in seconds; [`COPYCAT_LOOK_MS`] is the polling interval.
pub(crate) const COPYCAT_WAIT_S: u64 = 60;
/// See [`COPYCAT_WAIT_S`].
pub(crate) const COPYCAT_LOOK_MS: u64 = 50;
/// Maximum number of conditions in a query on records by their fields. Beyond: 422.
pub(crate) const QUERY_CONDITIONS: usize = 200;
/// Maximum number of records that such a query may find, because their ids are stored with it. Beyond: 422.
pub(crate) const QUERY_IDS: usize = 100_000;
/// How long such a query is kept, in milliseconds.
pub(crate) const QUERY_KEPT_MS: i64 = 86_400_000;
/// Number of records of a tenant's file that one transaction stores.
pub(crate) const MOVED_RECORDS: usize = 200;
/// Maximum number of refused records of such a file that are tried again at the end.
pub(crate) const MOVED_WAITING: usize = 50_000;
/// Maximum number of conditions in an expression by which MARC records are searched. Beyond: 400.
pub(crate) const MARC_CONDITIONS: usize = 200;
/// Maximum number of open parentheses in such an expression. Beyond: 400.
pub(crate) const MARC_NESTING: usize = 20;
/// Maximum number of different values of a field in one answer; more are not collected.
pub(crate) const QUERY_VALUES: usize = 1_000;
