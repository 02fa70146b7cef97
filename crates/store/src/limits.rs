//! Every bound of the server, in one place: what is beyond one gets a clear error.
//!
//! Each is a key of the `[limits]` table of `pinakes.toml`, named as the field.

use serde::Deserialize;

/// Bounds on queues, bodies, pages, pools and caches. `Default` is what runs when nothing is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest request body on ordinary routes, in bytes (16 MiB). Beyond: 413.
    pub body_bytes: u64,
    /// Largest request body on routes that stream lists of files or records, in bytes (1 GiB). Beyond: 413.
    pub stream_body_bytes: u64,
    /// Largest head (request line and header fields) of a request, in bytes (64 KiB). Beyond: 431.
    pub header_bytes: usize,
    /// How long a client may take to send the head of a request, in milliseconds (15 s).
    pub header_timeout_ms: u64,
    /// How long a client may pause while it sends a body, in milliseconds (30 s).
    pub body_timeout_ms: u64,
    /// How long an answer may take to begin, in milliseconds (60 s). Beyond: 503.
    pub request_timeout_ms: u64,
    /// From how many milliseconds on a request is kept for the operators' page of slow requests (500); 0: none is.
    pub slow_request_ms: u64,
    /// How long a look at the store and the files may take at `/health/ready`, in milliseconds (5 s). Beyond: 503.
    pub ready_timeout_ms: u64,
    /// Connections open at once (20,000). Beyond: accepted when one closes.
    pub connections: usize,
    /// How long a shutdown waits for answers under way, in milliseconds (30 s).
    pub drain_timeout_ms: u64,
    /// Deepest nesting of a JSON body or filter (100 levels). Beyond: 400.
    pub json_depth: usize,
    /// Bytes that the bodies and answers of all requests hold at once (1 GiB). Beyond: 503 with `Retry-After`. What a
    /// request holds up to 16 KiB is not counted: `connections` bounds that.
    pub held_bytes: u64,
    /// How many bytes a second a client sends or takes at least, on average after `body_timeout_ms` (4 KiB). Below: 408
    /// for a body, the end of the connection for an answer.
    pub least_speed_bytes_s: u64,
    /// How long a body or an answer may wait for its client altogether, in milliseconds (1 h).
    pub transfer_timeout_ms: u64,
    /// Streamed answers that wait for slow clients without a place among the `scans` (128). Beyond: the connection of
    /// one that makes an answer wait for a second is ended.
    pub slow_streams: usize,
    /// Rows that one list answer may hold (1,000,000).
    pub page_rows: u64,
    /// Bytes of bodies that a list answer collects before it is sent, in bytes (256 MiB). Beyond: an error that asks for a smaller page.
    pub page_bytes: u64,

    /// Writes that may wait for one tenant's writer (4,096). Beyond: 503 with `Retry-After`.
    pub write_queue: usize,
    /// Writes that share one commit at most (512).
    pub batch_writes: usize,
    /// Bytes written after which a batch is committed although more writes wait, in bytes (16 MiB).
    pub batch_bytes: usize,
    /// Scans (lists, counts, facets) that run at once over all tenants (16); others wait.
    pub scans: usize,
    /// How long one read may run before it is stopped, in milliseconds (30 s).
    pub read_timeout_ms: u64,
    /// Tenants open at once (256); the least recently used is closed beyond.
    pub open_tenants: usize,
    /// Tenants that are being opened at once (16); who asks for others waits. Those that are open are not concerned.
    pub openings: usize,
    /// Reading connections kept per tenant (16).
    pub readers: usize,
    /// Page cache of one connection, in KiB (8 MiB). Pages mostly come from the mapped file.
    pub page_cache_kib: u32,
    /// How much of a tenant's file may be mapped, in bytes (1 TiB).
    pub map_bytes: u64,
    /// Sessions of a PostgreSQL database that one server opens at most, over all tenants (32).
    pub database_sessions: usize,
    /// Transactions of one tenant that run at once on PostgreSQL (2): each takes the writes that wait in its queue together.
    pub tenant_writers: usize,
    /// How long a PostgreSQL database that does not answer is waited for, counted from its first silence, in
    /// milliseconds (20 s). Beyond: 503.
    pub database_wait_ms: u64,
    /// How far behind its primary a PostgreSQL standby may be that answers reads for which a dialect allows it, in
    /// milliseconds. 0: all reads go to the primary.
    pub standby_lag_ms: u64,
    /// Size of the write-ahead log at which it is written back, in bytes (64 MiB).
    pub log_bytes: u64,
    /// Memory that a search index is made with when it is far behind, per tenant, in bytes (256 MiB).
    pub index_memory_bytes: usize,
    /// Between two commits of a search index at least, in milliseconds (300): what was changed since is looked at by each
    /// search.
    pub index_pause_ms: u64,
    /// Records of a kind whose declaration has changed that are made anew before a tenant is served (10,000). The rest follows
    /// beside reads and writes.
    pub remake_records_first: u64,
    /// Pause between two steps of that, in milliseconds (20), and at least as long as the step took: writes of others come in
    /// between.
    pub remake_pause_ms: u64,

    /// Accounts kept resolved, by token (10,000).
    pub cached_callers: usize,
    /// Password checks that run at once (2): each takes a core for a while.
    pub password_checks: usize,
    /// Password checks that may wait for those (256). Beyond: 503 with `Retry-After`.
    pub password_queue: usize,
    /// Of those, how many may be for one account (8), and how many from one address (128; of IPv6 one network of 64 bits).
    /// Beyond: 503 with `Retry-After`, for that account or address alone.
    pub password_queue_account: usize,
    /// See `password_queue_account`.
    pub password_queue_address: usize,
    /// Failed logins to one account from one network (20) within `sign_in_window_s`, beyond which it waits: 429 with
    /// `Retry-After`. Ten times as many to one account from anywhere, and from one network to any account.
    pub sign_in_failures: u32,
    /// For how long failed logins count, in seconds (300).
    pub sign_in_window_s: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            stream_body_bytes: 1 << 30,
            header_bytes: 64 << 10,
            header_timeout_ms: 15_000,
            body_timeout_ms: 30_000,
            request_timeout_ms: 60_000,
            slow_request_ms: 500,
            ready_timeout_ms: 5_000,
            connections: 20_000,
            drain_timeout_ms: 30_000,
            json_depth: 100,
            held_bytes: 1 << 30,
            least_speed_bytes_s: 4 << 10,
            transfer_timeout_ms: 3_600_000,
            slow_streams: 128,
            page_rows: 1_000_000,
            page_bytes: 256 << 20,
            write_queue: 4_096,
            batch_writes: 512,
            batch_bytes: 16 << 20,
            scans: 16,
            read_timeout_ms: 30_000,
            open_tenants: 256,
            openings: 16,
            readers: 16,
            page_cache_kib: 8 << 10,
            map_bytes: 1 << 40,
            database_sessions: 32,
            tenant_writers: 2,
            database_wait_ms: 20_000,
            standby_lag_ms: 0,
            log_bytes: 64 << 20,
            index_memory_bytes: 256 << 20,
            index_pause_ms: 300,
            remake_records_first: 10_000,
            remake_pause_ms: 20,
            cached_callers: 10_000,
            password_checks: 2,
            password_queue: 256,
            password_queue_account: 8,
            password_queue_address: 128,
            sign_in_failures: 20,
            sign_in_window_s: 300,
        }
    }
}
