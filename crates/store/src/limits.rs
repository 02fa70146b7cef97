//! Every limit of the server, in one place: exceeding one yields a clear error.
//!
//! Each is a key of the `[limits]` table of `pinakes.toml` with the same name as the field.

use serde::Deserialize;

/// Limits on queues, bodies, pages, pools and caches. `Default` holds the values used when nothing is set.
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
    /// How long an answer may take to start, in milliseconds (60 s). Beyond: 503.
    pub request_timeout_ms: u64,
    /// Duration in milliseconds from which a request is kept for the operators' page of slow requests (500); 0: none
    /// is.
    pub slow_request_ms: u64,
    /// How long the check of the store and the files at `/health/ready` may take, in milliseconds (5 s). Beyond: 503.
    pub ready_timeout_ms: u64,
    /// Connections open at once (20,000). Beyond: accepted when one closes.
    pub connections: usize,
    /// How long a shutdown waits for answers under way, in milliseconds (30 s).
    pub drain_timeout_ms: u64,
    /// Deepest nesting of a JSON body or filter (100 levels). Beyond: 400.
    pub json_depth: usize,
    /// Bytes that the bodies and answers of all requests may hold at once (1 GiB). Beyond: 503 with `Retry-After`. The
    /// first 16 KiB of a request are not counted: `connections` bounds those.
    pub held_bytes: u64,
    /// Minimum bytes per second that a client must send or take, on average after `body_timeout_ms` (4 KiB). Below: 408
    /// for a body, the end of the connection for an answer.
    pub least_speed_bytes_s: u64,
    /// How long a body or an answer may wait for its client in total, in milliseconds (1 h).
    pub transfer_timeout_ms: u64,
    /// Streamed answers that may wait for slow clients without holding one of the `scans` (128). Beyond: a connection
    /// that keeps an answer waiting for a second is closed.
    pub slow_streams: usize,
    /// Rows that one list answer may hold (1,000,000).
    pub page_rows: u64,
    /// Total size of the different values of a facet, in bytes (64 MiB). Beyond: an error that asks for a narrower search.
    pub facet_bytes: u64,
    /// Total size of the bodies that a list answer collects before it is sent, in bytes (256 MiB). Beyond: an error
    /// that asks for a smaller page.
    pub page_bytes: u64,

    /// Writes that may wait for one tenant's writer (4,096). Beyond: 503 with `Retry-After`.
    pub write_queue: usize,
    /// Maximum number of writes that share one commit (512).
    pub batch_writes: usize,
    /// Bytes written after which a batch is committed even if more writes wait, in bytes (16 MiB).
    pub batch_bytes: usize,
    /// Scans (lists, counts, facets) that run at once over all tenants (16); others wait.
    pub scans: usize,
    /// How long one read may run before it is stopped, in milliseconds (30 s).
    pub read_timeout_ms: u64,
    /// Tenants open at once (256); with more, the least recently used idle one is closed.
    pub open_tenants: usize,
    /// Tenants that may be opening at once (16); requests for others wait. Tenants that are open are not affected.
    pub openings: usize,
    /// Reading connections kept per tenant (16).
    pub readers: usize,
    /// Page cache of one connection, in KiB (8 MiB). Most pages come from the mapped file.
    pub page_cache_kib: u32,
    /// How much of a tenant's file may be memory-mapped, in bytes (1 TiB). A file larger than half of the memory that the
    /// process may use is not mapped.
    pub map_bytes: u64,
    /// Maximum number of sessions that one server opens to a PostgreSQL database, over all tenants (32).
    pub database_sessions: usize,
    /// Concurrent write transactions of one tenant on PostgreSQL (2): each runs the writes waiting in its queue
    /// together.
    pub tenant_writers: usize,
    /// How long to wait for a PostgreSQL database that does not respond, counted from when it stopped responding, in
    /// milliseconds (20 s). Beyond: 503.
    pub database_wait_ms: u64,
    /// How far a PostgreSQL standby may lag behind its primary and still answer the reads for which a dialect allows
    /// it, in milliseconds. 0: all reads go to the primary.
    pub standby_lag_ms: u64,
    /// Size of the write-ahead log at which it is checkpointed, in bytes (64 MiB).
    pub log_bytes: u64,
    /// Memory for building a search index that is far behind, per tenant, in bytes (256 MiB). In a hurry
    /// ([`crate::Tenant::hurry_indexes`]), an eighth of the machine's memory if that is more, at most 1 GiB.
    pub index_memory_bytes: usize,
    /// Minimum time between two commits of a search index, in milliseconds (300): each search reads the records changed
    /// since the last one itself.
    pub index_pause_ms: u64,
    /// Records of a kind with a changed declaration that are rebuilt before a tenant is served (10,000). The rest is
    /// rebuilt while serving.
    pub remake_records_first: u64,
    /// Pause between two steps of such a rebuild, in milliseconds (20), but at least as long as the step took, so that
    /// other writes get their turn.
    pub remake_pause_ms: u64,

    /// Accounts cached in resolved form, by token (10,000).
    pub cached_callers: usize,
    /// Password checks that run at once (2): each takes a core for a while.
    pub password_checks: usize,
    /// Password checks that may wait for those (256). Beyond: 503 with `Retry-After`.
    pub password_queue: usize,
    /// How many of those may be for one account (8), and how many from one address (128; for IPv6, one /64 network).
    /// Beyond: 503 with `Retry-After`, for that account or address alone.
    pub password_queue_account: usize,
    /// See `password_queue_account`.
    pub password_queue_address: usize,
    /// Failed logins to one account from one network (20) within `sign_in_window_s`; beyond, further ones have to wait:
    /// 429 with `Retry-After`. Ten times as many are allowed to one account from anywhere, and from one network to any
    /// account.
    pub sign_in_failures: u32,
    /// How long a failed login counts, in seconds (300).
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
            facet_bytes: 64 << 20,
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
