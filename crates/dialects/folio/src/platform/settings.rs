//! The dialect's settings: the `[folio]` table of `pinakes.toml`.

use serde::Deserialize;

/// Settings of the dialect. Lists contain exact group names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// May do everything in their tenant; those of the default tenant also create and remove tenants.
    pub admin_groups: Vec<String>,
    /// May do everything but users, permissions, settings and tenants.
    pub librarian_groups: Vec<String>,
    /// May check items out and in, and read what the desk needs.
    pub desk_groups: Vec<String>,
    /// May read records that are not about persons.
    pub reader_groups: Vec<String>,
    /// Lifetime of an access token, in seconds (600).
    pub access_token_s: i64,
    /// Lifetime of a refresh token, in seconds (a week).
    pub refresh_token_s: i64,
    /// Lifetime of a token of `/authn/login`, which cannot be refreshed, in seconds (a day).
    pub login_token_s: i64,
    /// Maximum length of a CQL query, in bytes (64 KiB). Beyond: 400.
    pub cql_bytes: usize,
    /// Maximum nesting depth of parentheses in a CQL query (32). Beyond: 400.
    pub cql_depth: usize,
    /// Maximum number of conditions in a CQL query (1,000). Beyond: 400.
    pub cql_clauses: usize,
    /// Maximum number of words in the terms of a CQL query (1,000). Beyond: 400.
    pub cql_words: usize,
    /// Maximum number of records in one request of a batch endpoint (20,000). Beyond: 413.
    pub batch_records: usize,
    /// Number of import jobs of one tenant that take turns (4); further jobs wait until one of these has ended.
    pub import_jobs: u64,
    /// How long a batch of an import may hold the tenant's writer while nobody else writes, in milliseconds (40); the
    /// size of batches is adjusted to this. If somebody else wants to write, a batch ends after its current record.
    pub import_hold_ms: u32,
    /// The same for ten seconds after a request has written something, in milliseconds (3); each batch is then followed
    /// by a pause 25 times as long as the batch and its commit took.
    pub import_hold_beside_ms: u32,
    /// Number of records per child of a file that is imported in parts (1,000).
    pub import_child_records: u64,
    /// Number of consecutive unreadable records after which an import abandons its file (1,000).
    pub import_unreadable_records: u64,
    /// How long an import that receives its records by requests waits for the next ones, in seconds (an hour): then it
    /// ends, and announced records that never arrived count as failed.
    pub import_silence_s: i64,
    /// Whether authorities are mapped in FOLIO's extended mode (false): subdivisions joined by `--`; broader and narrower
    /// terms, earlier and later headings from 5xx $w.
    pub authority_extended: bool,
    /// How long an unfinished upload is kept, in seconds (a week).
    pub upload_keep_s: i64,
    /// How long the file of a finished job is kept, in seconds (30 days); it is then deleted by a later upload.
    pub import_file_keep_s: i64,
    /// Number of records in one answer to a harvester (100).
    pub oai_page_records: u64,
    /// Origins (`https://folio.example.org`) whose pages may send the cookies of a login. Pages of other origins are
    /// limited to requests that they authenticate with a header of their own.
    pub cors_origins: Vec<String>,
    /// Whether a new tenant gets FOLIO's sample institution with its campuses, libraries and locations (false).
    pub sample_locations: bool,
    /// Contact address for harvesters. Empty: `noreply` at the server's host.
    pub oai_admin_email: String,
}

impl Default for Settings {
    fn default() -> Self {
        let groups = |name: &str| vec![name.to_owned()];
        Self {
            admin_groups: groups("admin"),
            librarian_groups: groups("librarian"),
            desk_groups: groups("desk"),
            reader_groups: groups("reader"),
            access_token_s: 600,
            refresh_token_s: 604_800,
            login_token_s: 86_400,
            cql_bytes: 64 << 10,
            cql_depth: 32,
            cql_clauses: 1_000,
            cql_words: 1_000,
            batch_records: 20_000,
            import_jobs: 4,
            import_hold_ms: 40,
            import_hold_beside_ms: 3,
            import_child_records: 1_000,
            import_unreadable_records: 1_000,
            import_silence_s: 3_600,
            authority_extended: false,
            upload_keep_s: 604_800,
            import_file_keep_s: 2_592_000,
            oai_page_records: 100,
            cors_origins: Vec::new(),
            sample_locations: false,
            oai_admin_email: String::new(),
        }
    }
}
