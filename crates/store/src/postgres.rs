//! The engine for many servers: one schema per tenant in a PostgreSQL database.
//!
//! Servers keep no state of their own except copies of the search indexes: any number run against one database. A write
//! closure runs in one serializable transaction and is retried when it conflicts with another (after a few attempts,
//! one at a time; at last while no other write runs), so it means the same as in the embedded engine. Counts are in rows
//! that only one session changes and are summed when read. A read closure sees one snapshot; one that needs a single
//! statement costs a single round trip. The number of sessions is limited over all tenants.

mod asked;
mod batch;
mod binary;
pub(crate) mod bulk;
mod cells;
mod constants;
mod direct;
mod distribution;
mod driver;
mod errors;
mod fate;
mod pool;
pub(crate) mod records;
pub(crate) mod schema;
mod session;
mod side;
mod standby;
mod stems;
mod straight;
mod tls;
mod vectors;
pub(crate) mod words;
mod writers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

pub(crate) use asked::Asked;
pub(crate) use cells::{cell, get};
use direct::Lane;
pub(crate) use driver::aside;
use pool::Pool;
pub(crate) use session::PgSession;
pub(crate) use side::Side;
use standby::Standby;
use writers::Writers;

use crate::index::{self, Builder, Indexes, Remembered, Snapshots};
use crate::jobs::{Job, Look, Statistics};
use crate::reads::Reads;
use crate::session::{Session, State};
use crate::view::Shared;
use crate::{Kind, Limits, Result, StoreError, TenantInfo, View};

/// Separates the catalogue's name from the tenant's in a schema's name.
const SEPARATOR: char = ':';
/// Catalogue of a URL that names none.
const CATALOGUE: &str = "pinakes";
/// The URL parameter that names the catalogue.
const PARAMETER: &str = "catalogue";
/// Maximum length of a schema name in bytes.
const SCHEMA_BYTES: usize = 63;

/// A database and its schemas that belong to the catalogue.
pub(crate) struct Cluster {
    pool: Arc<Pool>,
    standby: Option<Arc<Standby>>,
    catalogue: String,
}

/// The open schema of a tenant.
pub(crate) struct Postgres {
    pool: Arc<Pool>,
    standby: Option<Arc<Standby>>,
    schema: String,
    shared: Arc<Shared>,
    statistics: Arc<Statistics>,
    writers: Writers,
    lane: Lane,
    /// The thread that maintains the search indexes.
    builder: Mutex<Option<JoinHandle<()>>>,
}

impl Cluster {
    /// Parses `url` as libpq does, including several hosts and `target_session_attrs`; its parameter `catalogue=name`
    /// separates the schemas of several installations in one database.
    ///
    /// Errors: the URL cannot be parsed.
    pub(crate) fn new(url: &str, limits: &Limits) -> Result<Self> {
        let (url, own) = split(url);
        let refused = |reason: String| {
            StoreError::Query(format!(
                "database URL: {reason}; expected postgres://user:password@host:port/database"
            ))
        };
        let mut config: Config =
            url.parse().map_err(|error: tokio_postgres::Error| refused(error.to_string()))?;
        let (mode, tls) = tls::of(&own)?;
        config.ssl_mode(mode);
        let catalogue = own.get(PARAMETER).map_or(CATALOGUE, |it| it).to_owned();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        if 1 < config.get_hosts().len() && config.get_target_session_attrs() == TargetSessionAttrs::Any {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.tcp_user_timeout(Duration::from_secs(15)).keepalives_idle(Duration::from_secs(30));
        if config.get_application_name().is_none() {
            config.application_name("pinakes");
        }
        let standby = Standby::of(&config, &tls, limits).map(Arc::new);
        Ok(Self { pool: Arc::new(Pool::new(config, tls, limits)), standby, catalogue })
    }

    /// Returns the tenants, by name.
    pub(crate) fn tenants(&self) -> Result<Vec<TenantInfo>> {
        self.with_public(|session| {
            let prefix = format!("{}{SEPARATOR}", self.catalogue);
            let sql = "SELECT nspname::text, coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace \
                       WHERE starts_with(nspname::text, ?1) ORDER BY nspname::text COLLATE \"C\"";
            session.all(sql, &[prefix.as_str().into()], |row| {
                let name = row.text(0)?.trim_start_matches(&prefix).to_owned();
                Ok(TenantInfo { name, description: row.text(1)? })
            })
        })
    }

    pub(crate) fn exists(&self, tenant: &str) -> Result<bool> {
        let schema = self.schema(tenant)?;
        self.with_public(|session| {
            let sql = "SELECT 1 FROM pg_namespace WHERE nspname = ?1::text::name";
            Ok(session.first(sql, &[schema.as_str().into()], |_| Ok(()))?.is_some())
        })
    }

    /// Creates the schema. Errors: it exists.
    pub(crate) fn create(&self, tenant: &str, description: &str) -> Result<()> {
        let schema = self.schema(tenant)?;
        let made = self.with_public(|session| {
            let comment = description.replace('\'', "''").replace('\0', " ");
            session.batch(&format!(
                "BEGIN; CREATE SCHEMA \"{schema}\"; SET LOCAL standard_conforming_strings = on; \
                 COMMENT ON SCHEMA \"{schema}\" IS '{comment}'; COMMIT"
            ))
        });
        match made {
            Err(StoreError::Postgres { code, .. }) if code == "42P06" || code == "23505" => {
                Err(StoreError::TenantExists(tenant.to_owned()))
            }
            other => other,
        }
    }

    /// Drops the schema. Errors: another server has the tenant open.
    pub(crate) fn delete(&self, tenant: &str) -> Result<()> {
        let schema = self.schema(tenant)?;
        self.pool.close(&schema);
        self.with_public(|session| {
            side::alone_with(session, &schema, tenant)?;
            let dropped = session.batch(&format!("DROP SCHEMA \"{schema}\" CASCADE"));
            side::leave(session, &schema)?;
            dropped
        })
    }

    fn schema(&self, tenant: &str) -> Result<String> {
        let schema = format!("{}{SEPARATOR}{tenant}", self.catalogue);
        if SCHEMA_BYTES < schema.len() {
            return Err(StoreError::TenantName(tenant.to_owned()));
        }
        Ok(schema)
    }

    /// Runs a query on the database as a whole; a session that ends in an error is not reused.
    fn with_public<T>(&self, ask: impl FnOnce(&mut Session<'_>) -> Result<T>) -> Result<T> {
        let mut pg = self.pool.take("public")?;
        let result = ask(&mut Session::Postgres(&mut pg));
        pg.is_broken |= matches!(&result, Err(error) if !matches!(error, StoreError::Postgres { .. }));
        if result.is_err() && !pg.is_broken {
            pg.batch("ROLLBACK")?;
        }
        self.pool.give_back(pg);
        result
    }

    /// Opens a tenant and brings its tables into line with the declared kinds. Its search indexes are in `search`;
    /// without a folder there are none.
    pub(crate) fn open(
        &self,
        tenant: &str,
        search: Option<PathBuf>,
        shared: impl FnOnce(Side) -> Shared,
    ) -> Result<Postgres> {
        let schema = self.schema(tenant)?;
        let shared = Arc::new(shared(Side::new(self.pool.clone(), &schema)));
        if let Some(side) = &shared.side {
            let (under_way, declared) = side.open(shared.kinds)?;
            shared.declared.store(declared, Ordering::Release);
            shared.remakes.set(under_way);
        }
        let statistics = Arc::new(Statistics::default());
        let writers = Writers::new(self.pool.clone(), schema.clone(), shared.clone(), statistics.clone());
        let lane = Lane::new(self.pool.clone(), &schema, shared.limits.connections);
        let (pool, standby) = (self.pool.clone(), self.standby.clone());
        let builder = Mutex::new(search.and_then(|folder| begin_to_follow(&pool, &schema, folder, &shared)));
        Ok(Postgres { pool, standby, schema, shared, statistics, writers, lane, builder })
    }
}

/// Starts the thread that maintains the search indexes; without them a search reads rows and bodies.
fn begin_to_follow(
    pool: &Arc<Pool>,
    schema: &str,
    folder: PathBuf,
    shared: &Arc<Shared>,
) -> Option<JoinHandle<()>> {
    let started = follow(pool, schema, folder, shared).and_then(|builder| {
        let thread = std::thread::Builder::new().name("store-index".to_owned());
        thread
            .spawn(move || builder.run())
            .map_err(|source| StoreError::Io { path: "thread store-index".to_owned(), source })
    });
    started.inspect_err(|error| tracing::warn!(schema, %error, "the search indexes could not be opened; searches do without them")).ok()
}

/// Returns the builder of a schema's search indexes, with a session of its own.
fn follow(pool: &Arc<Pool>, schema: &str, folder: PathBuf, shared: &Arc<Shared>) -> Result<Builder> {
    let mut first = pool.connect(schema)?;
    first.begin(SNAPSHOT, None);
    let opened = {
        let mut session = Session::Postgres(&mut first);
        index::store_identity(&mut session).and_then(|store| {
            Indexes::open(folder, shared.kinds, &mut session).map(|indexes| (store, Arc::new(indexes)))
        })
    };
    first.end();
    let (store, indexes) = opened?;
    // The tenant is opened only once, so this cannot have been set before.
    shared.indexes.set(indexes.clone()).ok();
    let (limits, shared, pool, schema) =
        (shared.limits.clone(), shared.clone(), pool.clone(), schema.to_owned());
    let mut kept = Some(first);
    let read = move |closure: &mut dyn FnMut(&mut View<'_>) -> Result<()>| {
        let session = match kept.take().filter(|it| !it.is_broken) {
            Some(session) => kept.insert(session),
            None => kept.insert(pool.connect_once(&schema)?),
        };
        session.begin(SNAPSHOT, None);
        let result = closure(&mut View {
            session: Session::Postgres(session),
            state: State::Committed,
            shared: &shared,
            remakes: shared.remakes.current(),
            indexes: None,
            pace: None,
            reads: Reads::default(),
            remembered: Remembered::default(),
        });
        session.end();
        result
    };
    Ok(Builder::new(indexes, &store, &limits, index::LOOK_AT_DATABASE, Box::new(read)))
}

/// Removes our own parameters from a URL and returns them.
fn split(url: &str) -> (String, BTreeMap<&str, &str>) {
    let Some((place, parameters)) = url.split_once('?') else { return (url.to_owned(), BTreeMap::new()) };
    let (mut own, mut kept) = (BTreeMap::new(), Vec::new());
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some((name, value)) if name == PARAMETER || tls::PARAMETERS.contains(&name) => {
                own.insert(name, value);
            }
            _ => kept.push(parameter),
        }
    }
    let url = if kept.is_empty() { place.to_owned() } else { format!("{place}?{}", kept.join("&")) };
    (url, own)
}

/// How a read sees the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    /// One statement, which needs no explicit snapshot.
    OneStatement,
    /// Any number of statements on one snapshot.
    Snapshot,
}

/// Begins a read on one snapshot; returns how often declarations have changed.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                        SELECT NULL, (SELECT value FROM meta WHERE name = 'declared')";
/// Begins such a read without the database's statement timeout.
const LONG_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; \
                             SELECT NULL, (SELECT value FROM meta WHERE name = 'declared')";
/// Begins such a read on a standby, where it also returns whether a kind is being rebuilt in that snapshot: this
/// process may know already that the rebuild has ended.
const LAGGING_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                                SELECT NULL, (SELECT value FROM meta WHERE name = 'declared'), \
                                (SELECT count(*) FROM (SELECT 1 FROM meta WHERE starts_with(name, 'remake:') LIMIT 1) m)";

/// Maximum number of retries of a read whose connection is lost: other idle connections may be dead as well.
const READ_ATTEMPTS: u32 = 8;

impl Postgres {
    /// Runs a read whose single statement is sent together with those of others; false when it needs more than one, or
    /// the lane is down, and it must be read with [`Postgres::read`].
    pub(crate) async fn read_beside(
        &self,
        look: &mut (dyn FnMut(&mut View<'_>) -> bool + Send),
    ) -> Result<bool> {
        let mut asked = Asked::default();
        self.look(&mut asked, look);
        if asked.has_more() {
            return Ok(false);
        }
        if !asked.is_waiting() {
            return Ok(true);
        }
        if !self.lane.answer(&mut asked).await? {
            return Ok(false);
        }
        self.look(&mut asked, look);
        Ok(!asked.has_more())
    }

    /// Runs a read on a snapshot of a standby that is recent enough, otherwise of the primary, for at most `timeout`.
    pub(crate) fn read_lagging(&self, timeout: Duration, look: Look<'_>) -> Result<()> {
        let begun = Instant::now();
        if let Some(standby) = &self.standby
            && let Some(mut session) = standby.session(&self.pool, &self.schema)
        {
            session.begin(LAGGING_SNAPSHOT, Some(begun + timeout));
            let is_asked = session.require_declared(self.shared.declared.load(Ordering::Acquire)).is_ok();
            debug_assert!(is_asked, "nothing is known of a snapshot that has not begun");
            // The indexes may hold changes that a standby does not have yet.
            self.view(&mut session, None, look);
            session.end();
            // A standby may cancel a read that blocks its replay, or not have a new table yet.
            let is_answer = !session.is_broken && !session.is_conflict && !session.is_failed;
            standby.give_back(session);
            if is_answer {
                return Ok(());
            }
        }
        self.read(crate::Weight::Scan, timeout.saturating_sub(begun.elapsed()), look)
    }

    /// Builds the missing indexes of a kind while others read and write.
    pub(crate) fn bring_indexes(&self, kind: &'static Kind) -> Result<()> {
        let mut session = self.pool.connect(&self.schema)?;
        let made = schema::bring_indexes(&mut session, &[kind]);
        session.release();
        made
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn view(&self, session: &mut PgSession, indexes: Option<Arc<Snapshots>>, look: Look<'_>) -> bool {
        look(&mut View {
            session: Session::Postgres(session),
            state: State::Committed,
            shared: &self.shared,
            remakes: self.shared.remakes.current(),
            indexes,
            pace: None,
            reads: Reads::default(),
            remembered: Remembered::default(),
        })
    }

    fn look(&self, asked: &mut Asked, look: Look<'_>) {
        look(&mut View {
            session: Session::Asked(asked),
            state: State::Committed,
            shared: &self.shared,
            remakes: self.shared.remakes.current(),
            indexes: None,
            pace: None,
            reads: Reads::default(),
            remembered: Remembered::default(),
        });
    }

    /// Runs a read on a snapshot, for at most `timeout`. One that promises few records is first tried without a
    /// transaction, and runs again when it needs a second statement.
    pub(crate) fn read(&self, weight: crate::Weight, timeout: Duration, look: Look<'_>) -> Result<()> {
        let mut mode = match weight {
            crate::Weight::Point => ReadMode::OneStatement,
            crate::Weight::Scan => ReadMode::Snapshot,
        };
        let deadline = Instant::now() + timeout;
        let mut n_lost = 0;
        loop {
            let indexes = self.shared.published();
            let mut session = self.pool.take(&self.schema)?;
            match mode {
                ReadMode::OneStatement => session.expect_one(deadline),
                ReadMode::Snapshot => {
                    session.begin(SNAPSHOT, Some(deadline));
                    if Duration::from_millis(self.shared.limits.read_timeout_ms) < timeout {
                        session.begin(LONG_SNAPSHOT, None);
                        session.wait_long();
                    }
                }
            }
            let is_result = self.view(&mut session, indexes, look);
            session.end();
            let (is_broken, wants_snapshot) = (session.is_broken, session.wants_snapshot);
            self.pool.give_back(session);
            if wants_snapshot && !is_broken {
                mode = ReadMode::Snapshot;
            } else if is_broken && !is_result && n_lost < READ_ATTEMPTS && Instant::now() < deadline {
                // Reads continue when the server behind the session is gone and another has taken over.
                n_lost += 1;
            } else {
                return Ok(());
            }
        }
    }

    /// Returns the limits it was opened with.
    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Queues a write.
    pub(crate) fn submit(&self, job: Box<dyn Job>) -> Result<()> {
        self.writers.submit(job)
    }

    /// Queues a write, waiting for room in the queue.
    pub(crate) fn submit_waiting(&self, job: Box<dyn Job>) -> Result<()> {
        self.writers.submit_waiting(job)
    }

    /// Finishes the queued writes, accepts no more, and stops maintaining the search indexes.
    pub(crate) fn close(&self) {
        self.writers.close();
        if let Some(indexes) = self.shared.indexes.get() {
            indexes.close();
        }
        let builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner).take();
        if builder.is_some_and(|it| it.join().is_err()) {
            tracing::error!(
                schema = self.schema,
                "the thread of the search indexes stopped by an internal fault"
            );
        }
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub(crate) fn n_idle_readers(&self) -> usize {
        self.pool.n_idle(&self.schema)
    }
}

impl Drop for Postgres {
    /// Finishes the queued writes, then closes the sessions.
    fn drop(&mut self) {
        self.close();
        self.lane.close();
        self.pool.close(&self.schema);
        self.standby.iter().for_each(|it| it.close(&self.schema));
        if let Some(side) = &self.shared.side {
            side.close();
        }
    }
}
