//! Fresh catalogues, one per engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pinakes_store::{Catalogue, Kind, Limits, Location, Result, StoreError, Tenant, Txn, View};
use tempfile::TempDir;

use crate::engine::Engine;

/// A place for a catalogue, deleted when dropped.
pub(crate) struct Place {
    pub(crate) engine: &'static str,
    pub(crate) location: Location,
    pub(crate) folder: TempDir,
}

/// Returns one fresh place per engine.
pub(crate) fn engines() -> Vec<Place> {
    Engine::all().into_iter().map(Place::on).collect()
}

/// Returns a fresh place of the embedded engine.
pub(crate) fn sqlite() -> Place {
    Place::on(Engine::Sqlite)
}

impl Place {
    fn on(engine: Engine) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let location = engine.location(&folder).expect("a place");
        Self { engine: engine.name(), location, folder }
    }

    /// Opens the catalogue.
    pub(crate) fn open(&self, kinds: &'static [&'static Kind], limits: Limits) -> Catalogue {
        let search = Some(self.folder.path().join("search"));
        Catalogue::open_spread(self.location.clone(), &BTreeMap::new(), search, kinds, limits)
            .expect("a catalogue")
    }

    /// Opens the catalogue and its tenant `t`, created if needed.
    pub(crate) fn tenant(&self, kinds: &'static [&'static Kind]) -> Tenant {
        self.open(kinds, Limits::default()).tenant_or_new("t").expect("a tenant")
    }

    /// Returns the file of a tenant of the embedded engine.
    pub(crate) fn file(&self, tenant: &str) -> std::path::PathBuf {
        self.folder.path().join("tenants").join(format!("{tenant}.sqlite"))
    }
}

/// Runs a test on a fresh tenant of each engine, then checks that the tenant is sound.
pub(crate) fn on_each(kinds: &'static [&'static Kind], test: impl Fn(&Tenant)) {
    for place in engines() {
        let tenant = place.tenant(kinds);
        test(&tenant);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new(), "{}", place.engine);
    }
}

/// Runs a write that must succeed.
pub(crate) fn write<R: Send + 'static>(
    tenant: &Tenant,
    closure: impl FnMut(&mut Txn<'_>) -> Result<R> + Send + 'static,
) -> R {
    tenant.write_blocking(closure).expect("a write")
}

/// Runs a write that must be refused.
pub(crate) fn refused<R: Send + std::fmt::Debug + 'static>(
    tenant: &Tenant,
    closure: impl FnMut(&mut Txn<'_>) -> Result<R> + Send + 'static,
) -> StoreError {
    tenant.write_blocking(closure).expect_err("a refusal")
}

/// Runs a read that must succeed.
pub(crate) fn read<R>(tenant: &Tenant, closure: impl FnMut(&mut View<'_>) -> Result<R>) -> R {
    tenant.read_blocking(closure).expect("a read")
}

/// Returns the result of a closure, and what is told of how it was found, a line each.
pub(crate) fn told_with<R>(ask: impl FnOnce() -> R) -> (R, String) {
    let told = Arc::new(Mutex::new(String::new()));
    let into = told.clone();
    let tell = Box::new(move |line: String| into.lock().expect("no panic").extend([&line, "\n"]));
    let result = pinakes_store::explained(tell, ask);
    let told = told.lock().expect("no panic").clone();
    (result, told)
}

/// Runs statements in the schema of the tenant `t` of a place in a database, as an administrator would.
pub(crate) fn sql(place: &Place, statements: &str) {
    let Location::Postgres(url) = &place.location else { panic!("{} has no server", place.engine) };
    let (url, catalogue) = url.split_once("catalogue=").expect("a catalogue");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let url = url.trim_end_matches(['?', '&']);
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a server");
        let statements = format!("SET search_path = \"{catalogue}:t\"; {statements}");
        let asked = async move { client.batch_execute(&statements).await };
        let (asked, _) = tokio::join!(asked, connection);
        asked.expect("statements");
    });
}

/// An open transaction of another client in the schema of the tenant `t`.
pub(crate) struct Held {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
    asking: tokio_postgres::Client,
}

impl Held {
    /// Begins a transaction with a statement.
    pub(crate) fn lock(place: &Place, statement: &str) -> Self {
        let Location::Postgres(url) = &place.location else { panic!("{} has no server", place.engine) };
        let (url, catalogue) = url.split_once("catalogue=").expect("a catalogue");
        let url = url.trim_end_matches(['?', '&']);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let connect = async || {
            let (client, connection) =
                tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a server");
            tokio::spawn(connection);
            client.batch_execute(&format!("SET search_path = \"{catalogue}:t\"")).await.expect("a schema");
            client
        };
        let (client, asking) = runtime.block_on(async { (connect().await, connect().await) });
        runtime.block_on(client.batch_execute(&format!("BEGIN; {statement}"))).expect("a lock");
        Self { runtime, client, asking }
    }

    /// Waits, outside the transaction, until a query returns true.
    pub(crate) fn wait_until(&self, query: &str) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while !self.runtime.block_on(self.asking.query_one(query, &[])).expect("an answer").get::<_, bool>(0)
        {
            assert!(std::time::Instant::now() < until, "{query}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Ends the transaction.
    pub(crate) fn release(&self) {
        self.runtime.block_on(self.client.batch_execute("COMMIT")).expect("an end");
    }
}

/// Polls until the condition holds; a minute is longer than any machine needs.
pub(crate) fn eventually(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it did not come to be");
        std::thread::sleep(Duration::from_millis(2));
    }
}
