//! All tenants of a server: where they are stored and which are open.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Semaphore;

use crate::budget::Budget;
use crate::classes::Classes;
use crate::folders::make_folder;
use crate::index;
use crate::postgres::Cluster;
use crate::remake::Remakes;
use crate::remaker;
use crate::session::Flavour;
use crate::sqlite::{self, Sqlite};
use crate::statements::Statements;
use crate::tenant::{Engine, Inner};
use crate::view::Shared;
use crate::{Kind, Limits, Result, StoreError, Tenant, TenantInfo, TenantStats};

/// Where the records are kept.
#[derive(Debug, Clone)]
pub enum Location {
    /// A folder with one file per tenant. Created if it does not exist.
    Folder(PathBuf),
    /// A PostgreSQL database with one schema per tenant, given as a libpq URL; several hosts and `target_session_attrs`
    /// are supported. The parameter `catalogue=name` separates the tenants of several installations in one database.
    /// Calls that are not asynchronous may block; on an asynchronous runtime they need a multi-threaded one.
    Postgres(String),
}

impl std::str::FromStr for Location {
    type Err = StoreError;

    /// Parses `sqlite:FOLDER` or `postgres://…`.
    fn from_str(text: &str) -> Result<Self> {
        if let Some(folder) = text.strip_prefix("sqlite:") {
            return Ok(Self::Folder(folder.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        // Not the whole text, which may hold a password.
        let scheme = text.split(':').next().unwrap_or_default();
        Err(StoreError::Query(format!(
            "what begins with {scheme:?} is no place for records; expected sqlite:FOLDER or \
             postgres://user:password@host:port/database"
        )))
    }
}

/// The tenants of a server. Clones share the same catalogue.
#[derive(Clone)]
pub struct Catalogue(Arc<Everything>);

struct Everything {
    place: Place,
    /// Places of the tenants that are not stored with the others.
    own: HashMap<String, Arc<Place>>,
    /// Folder of the search indexes of tenants in a database.
    search: Option<PathBuf>,
    kinds: &'static [&'static Kind],
    limits: Limits,
    scans: Arc<Semaphore>,
    points: Arc<Semaphore>,
    budget: Budget,
    parking: Arc<Semaphore>,
    openings: Arc<Semaphore>,
    open: Mutex<HashMap<String, Arc<Slot>>>,
    /// Descriptions of tenants in a folder, each with the inode number of the file it was read from.
    descriptions: Mutex<HashMap<String, (u64, String)>>,
    clock: AtomicU64,
    is_closed: AtomicBool,
}

impl Everything {
    /// Returns the place where a tenant is stored, or would be.
    fn place_of(&self, tenant: &str) -> &Place {
        self.own.get(tenant).map_or(&self.place, |it| it)
    }
}

/// A place of either engine.
enum Place {
    Folder(PathBuf),
    Postgres(Cluster),
}

/// Returns the folder of a server's search indexes of a tenant in a database.
fn search_of(folder: Option<&PathBuf>, tenant: &str) -> Option<PathBuf> {
    folder.map(|it| it.join(tenant))
}

impl Place {
    fn open(location: Location, limits: &Limits) -> Result<Self> {
        match location {
            Location::Folder(folder) => {
                let tenants = folder.join(TENANTS);
                make_folder(&tenants)
                    .map_err(|source| StoreError::Io { path: tenants.display().to_string(), source })?;
                Ok(Self::Folder(tenants))
            }
            Location::Postgres(url) => Cluster::new(&url, limits).map(Self::Postgres),
        }
    }

    fn exists(&self, name: &str) -> Result<bool> {
        match self {
            Self::Folder(folder) => Ok(file(folder, name).exists()),
            Self::Postgres(cluster) => cluster.exists(name),
        }
    }

    fn create(&self, name: &str, description: &str) -> Result<()> {
        match self {
            Self::Folder(folder) => sqlite::create(&file(folder, name)),
            Self::Postgres(cluster) => cluster.create(name, description),
        }
    }

    /// Deletes a tenant's data before it returns; nobody may have the tenant open here.
    fn delete(&self, name: &str) -> Result<()> {
        let folder = match self {
            Self::Folder(folder) => folder,
            Self::Postgres(cluster) => return cluster.delete(name),
        };
        index::remove(&index::folder_of(&file(folder, name)))?;
        sqlite::delete(&file(folder, name))
    }
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{EXTENSION}"))
}

/// The slot of one tenant: opening it blocks neither callers of other tenants nor those who ask whether it is open.
#[derive(Default)]
struct Slot {
    /// Locked only briefly.
    tenant: Mutex<Option<Tenant>>,
    /// Locked while the tenant is opened, created, closed or deleted, which may take as long as a migration.
    change: Mutex<()>,
    /// Where callers that must not block their thread queue for the slot.
    line: Arc<tokio::sync::Mutex<()>>,
    last_use: AtomicU64,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Tenant>> {
        self.tenant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_change(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Catalogue {
    /// Opens the place; tenants are opened on first use.
    ///
    /// Errors: the folder cannot be created or read; the URL cannot be parsed; a kind's declaration is invalid. A
    /// database is first contacted when a tenant is used.
    pub fn open(location: Location, kinds: &'static [&'static Kind], limits: Limits) -> Result<Self> {
        Self::open_spread(location, &BTreeMap::new(), None, kinds, limits)
    }

    /// Opens a catalogue in which some tenants, by name, have places of their own, for example in several databases.
    /// Tenants with the same place share its sessions. What the common place holds under the name of such a tenant is
    /// ignored. `search` is a folder of this server alone, created if needed, for its search indexes of tenants in a
    /// database; without it, searches there read rows and bodies. Tenants in files have their search indexes beside
    /// them.
    pub fn open_spread(
        location: Location,
        own: &BTreeMap<String, Location>,
        search: Option<PathBuf>,
        kinds: &'static [&'static Kind],
        limits: Limits,
    ) -> Result<Self> {
        kinds.iter().try_for_each(|kind| kind.check())?;
        let (mut by_location, mut places) = (HashMap::<String, Arc<Place>>::new(), HashMap::new());
        for (name, location) in own {
            check_name(name)?;
            let key = format!("{location:?}");
            let place = match by_location.get(&key) {
                Some(place) => place.clone(),
                None => Arc::new(Place::open(location.clone(), &limits)?),
            };
            by_location.insert(key, place.clone());
            places.insert(name.clone(), place);
        }
        Ok(Self(Arc::new(Everything {
            place: Place::open(location, &limits)?,
            own: places,
            search,
            kinds,
            scans: Arc::new(Semaphore::new(limits.scans)),
            points: Arc::new(Semaphore::new(limits.database_sessions)),
            budget: Budget::new(limits.held_bytes),
            parking: Arc::new(Semaphore::new(limits.slow_streams)),
            openings: Arc::new(Semaphore::new(limits.openings.max(1))),
            descriptions: Mutex::default(),
            limits,
            open: Mutex::default(),
            clock: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        })))
    }

    /// Returns the limits that the catalogue was opened with.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns the budget of bytes that the requests of this server share.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Returns a tenant by name, opening it on this thread if needed.
    pub fn tenant(&self, name: &str) -> Result<Tenant> {
        check_name(name)?;
        let slot = self.slot(name)?;
        if let Some(tenant) = self.used(&slot) {
            return Ok(tenant);
        }
        let change = slot.begin_change();
        if let Some(tenant) = self.used(&slot) {
            return Ok(tenant);
        }
        self.require_open()?;
        if !self.0.place_of(name).exists(name)? {
            return Err(StoreError::UnknownTenant(name.to_owned()));
        }
        let tenant = self.open_tenant(name)?;
        *slot.lock() = Some(tenant.clone());
        drop(change);
        self.close_least_used();
        Ok(tenant)
    }

    /// Returns a tenant without blocking the thread: an open one at once; any other is opened on a thread of its own,
    /// where all disk and database access happens. Of several callers that wait for the same tenant, all but one wait
    /// without a thread; at most `limits.openings` tenants are opened at once.
    pub async fn tenant_aside(&self, name: &str) -> Result<Tenant> {
        check_name(name)?;
        let known = self.lock().get(name).cloned();
        if let Some(tenant) = known.as_ref().and_then(|slot| self.used(slot)) {
            return Ok(tenant);
        }
        let slot = match known {
            Some(slot) => slot,
            None => {
                let (catalogue, wanted) = (self.clone(), name.to_owned());
                self.aside(None, move || catalogue.slot(&wanted)).await?
            }
        };
        let turn = slot.line.clone().lock_owned().await;
        if let Some(tenant) = self.used(&slot) {
            return Ok(tenant);
        }
        let (catalogue, wanted) = (self.clone(), name.to_owned());
        self.aside(Some(turn), move || catalogue.tenant(&wanted)).await
    }

    /// Runs blocking work on a thread of its own. If the caller goes away, the work goes on and keeps its permit.
    async fn aside<R: Send + 'static>(
        &self,
        turn: Option<tokio::sync::OwnedMutexGuard<()>>,
        work: impl FnOnce() -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let place = self.0.openings.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let run = move || {
            let done = work();
            drop((place, turn));
            done
        };
        tokio::task::spawn_blocking(run).await.unwrap_or(Err(StoreError::Panicked))
    }

    /// Returns the slot of a tenant. Errors: there is no such tenant.
    fn slot(&self, name: &str) -> Result<Arc<Slot>> {
        if let Some(slot) = self.lock().get(name) {
            return Ok(slot.clone());
        }
        match self.0.place_of(name).exists(name)? {
            true => Ok(self.lock().entry(name.to_owned()).or_default().clone()),
            false => Err(StoreError::UnknownTenant(name.to_owned())),
        }
    }

    /// Returns the tenant of a slot if it is open, and marks it as the most recently used.
    fn used(&self, slot: &Slot) -> Option<Tenant> {
        slot.last_use.store(self.0.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot.lock().clone()
    }

    /// Creates a tenant.
    ///
    /// Errors: the name is taken or invalid.
    pub fn create_tenant(&self, name: &str, description: &str) -> Result<Tenant> {
        check_name(name)?;
        {
            let slot = self.lock().entry(name.to_owned()).or_default().clone();
            let _change = slot.begin_change();
            self.require_open()?;
            if self.0.place_of(name).exists(name)? {
                return Err(StoreError::TenantExists(name.to_owned()));
            }
            self.0.place_of(name).create(name, description)?;
        }
        let tenant = self.tenant(name)?;
        if matches!(self.0.place_of(name), Place::Postgres(_)) {
            return Ok(tenant);
        }
        let description = description.to_owned();
        // A listing that ran meanwhile has cached an empty description.
        let forget = || self.0.descriptions.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        let written = tenant.write_blocking(move |txn| {
            let sql = "INSERT INTO meta (name, value, text) VALUES ('description', 0, ?1) \
                       ON CONFLICT (name) DO UPDATE SET text = excluded.text";
            txn.view.session.execute(sql, &[description.as_str().into()])
        });
        forget();
        written?;
        Ok(tenant)
    }

    /// Returns the tenant, creating it with an empty description if it does not exist.
    pub fn tenant_or_new(&self, name: &str) -> Result<Tenant> {
        self.tenant_or_new_described(name, "")
    }

    /// Returns the tenant, creating it with this description if it does not exist.
    pub fn tenant_or_new_described(&self, name: &str, description: &str) -> Result<Tenant> {
        match self.tenant(name) {
            Err(StoreError::UnknownTenant(_)) => match self.create_tenant(name, description) {
                Err(StoreError::TenantExists(_)) => self.tenant(name),
                made => made,
            },
            other => other,
        }
    }

    /// Deletes a tenant and everything in it.
    ///
    /// Errors: there is no tenant of that name; it is in use.
    pub fn delete_tenant(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let slot = self.slot(name)?;
        let _change = slot.begin_change();
        if !self.0.place_of(name).exists(name)? {
            return Err(StoreError::UnknownTenant(name.to_owned()));
        }
        let opened = slot.lock().take();
        if let Some(tenant) = opened
            && let Err(tenant) = into_last(tenant)
        {
            *slot.lock() = Some(tenant);
            return Err(StoreError::Query(format!(
                "tenant {name:?} is in use; try again when its requests are done"
            )));
        }
        if let (Place::Postgres(_), Some(folder)) =
            (self.0.place_of(name), search_of(self.0.search.as_ref(), name))
        {
            index::remove(&folder)?;
        }
        self.0.place_of(name).delete(name)
    }

    /// Returns all tenants, by name.
    pub fn tenants(&self) -> Result<Vec<TenantInfo>> {
        let own = &self.0.own;
        let mut list = self.tenants_in(&self.0.place, |name| !own.contains_key(name))?;
        for (name, place) in own {
            list.extend(self.tenants_in(place, |it| it == name)?);
        }
        list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(list)
    }

    fn tenants_in(&self, place: &Place, is_meant: impl Fn(&str) -> bool) -> Result<Vec<TenantInfo>> {
        let folder = match place {
            Place::Folder(folder) => folder,
            Place::Postgres(cluster) => {
                let mut list = cluster.tenants()?;
                list.retain(|it| is_meant(&it.name));
                return Ok(list);
            }
        };
        let failed = |source| StoreError::Io { path: folder.display().to_string(), source };
        let mut list = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            let name = file.to_str().and_then(|it| it.strip_suffix(EXTENSION));
            if let Some(name) = name.filter(|it| is_meant(it)) {
                list.push(TenantInfo { name: name.to_owned(), description: self.described(folder, name)? });
            }
        }
        Ok(list)
    }

    /// Returns the description that a tenant in a folder was created with, read once and without opening the tenant. A
    /// tenant whose file does not allow this, as with former formats, is opened.
    fn described(&self, folder: &Path, name: &str) -> Result<String> {
        let file = file(folder, name);
        let number = std::fs::metadata(&file)
            .map(|it| it.ino())
            .map_err(|source| StoreError::Io { path: file.display().to_string(), source })?;
        let known = || self.0.descriptions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = known().get(name).filter(|it| it.0 == number) {
            return Ok(text.clone());
        }
        let text = match sqlite::meta_text(&file, "description") {
            Some(text) => text,
            None => self.tenant(name)?.read_blocking(|view| {
                let sql = "SELECT text FROM meta WHERE name = 'description'";
                let found = view.session.first(sql, &[], |row| row.text(0))?;
                Ok::<_, StoreError>(found.unwrap_or_default())
            })?,
        };
        known().insert(name.to_owned(), (number, text.clone()));
        Ok(text)
    }

    /// Returns a text of the catalogue as a whole, such as the secret that signs tokens: the result of `make` at the
    /// first call ever, and the same text on every server from then on. Only a database keeps such texts; for a folder,
    /// which has files for them beside the tenants, this is always `None`.
    pub fn constant(&self, name: &str, make: impl FnOnce() -> Option<String>) -> Result<Option<String>> {
        match &self.0.place {
            Place::Folder(_) => Ok(None),
            Place::Postgres(cluster) => cluster.constant(name, make),
        }
    }

    /// Returns statistics of the open tenants.
    pub fn statistics(&self) -> Vec<TenantStats> {
        let slots: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
        let tenants = slots.iter().filter_map(|slot| slot.lock().clone());
        tenants.map(|tenant| tenant.statistics()).collect()
    }

    /// Returns why an open tenant no longer accepts writes, if one does not; see [`Tenant::failure`].
    pub fn failure(&self) -> Option<String> {
        let slots: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
        slots.iter().find_map(|slot| slot.lock().as_ref()?.failure())
    }

    /// Closes all tenants for good, also those still in use: queued writes are finished, and when this returns nothing
    /// changes the files any more. Later writes, and later requests for tenants, are refused as closed.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        let all: Vec<Arc<Slot>> = self.lock().drain().map(|(_, slot)| slot).collect();
        for slot in all {
            let _change = slot.begin_change();
            let opened = slot.lock().take();
            if let Some(tenant) = opened {
                tenant.close();
            }
        }
    }

    /// Checks that the catalogue is open. Errors: it was closed.
    fn require_open(&self) -> Result<()> {
        if self.0.is_closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    fn open_tenant(&self, name: &str) -> Result<Tenant> {
        let shared = |flavour, side| Shared {
            kinds: self.0.kinds,
            statements: Statements::of(flavour, self.0.kinds),
            classes: Classes::new(),
            side,
            indexes: OnceLock::new(),
            remakes: Remakes::default(),
            declared: AtomicI64::new(0),
            limits: self.0.limits.clone(),
            budget: self.0.budget.clone(),
        };
        let engine = match self.0.place_of(name) {
            Place::Folder(folder) => {
                let shared = Arc::new(shared(Flavour::Sqlite, None));
                Engine::Sqlite(Sqlite::open(&file(folder, name), shared)?)
            }
            Place::Postgres(cluster) => {
                let search = search_of(self.0.search.as_ref(), name);
                Engine::Postgres(cluster.open(name, search, |side| shared(Flavour::Postgres, Some(side)))?)
            }
        };
        let (scans, points) = (self.0.scans.clone(), self.0.points.clone());
        let parking = self.0.parking.clone();
        let read_timeout_ms = self.0.limits.read_timeout_ms;
        let name = name.to_owned();
        let remaker = OnceLock::new();
        let tenant =
            Tenant(Arc::new(Inner { name, engine, scans, points, parking, read_timeout_ms, remaker }));
        remaker::start(&tenant)?;
        Ok(tenant)
    }

    /// Closes the least recently used idle tenants beyond the limit; tenants in use stay open, however many they are.
    fn close_least_used(&self) {
        let mut slots: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
        slots.retain(|slot| slot.lock().is_some());
        let mut n_over = slots.len().saturating_sub(self.0.limits.open_tenants);
        slots.sort_unstable_by_key(|slot| slot.last_use.load(Ordering::Relaxed));
        for slot in slots {
            if n_over == 0 {
                return;
            }
            // A caller that asks for the tenant now waits until it is closed and then opens it again.
            let Ok(_change) = slot.change.try_lock() else { continue };
            let mut opened = slot.lock();
            // A tenant that has stopped writing must not become writable again by being reopened.
            let is_idle =
                opened.as_ref().is_some_and(|it| Arc::strong_count(&it.0) == 1 && it.failure().is_none());
            let idle = if is_idle { opened.take() } else { None };
            drop(opened);
            n_over -= usize::from(idle.is_some());
            drop(idle);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_name = (1..=63).contains(&name.len())
        && name.bytes().all(|byte| is_plain(byte) || byte == b'-' || byte == b'_')
        && name.bytes().next().is_some_and(is_plain);
    if is_name { Ok(()) } else { Err(StoreError::TenantName(name.to_owned())) }
}

/// Name of the folder with the tenants' files.
const TENANTS: &str = "tenants";
/// File extension of a tenant's file.
const EXTENSION: &str = ".sqlite";

/// Drops the tenant if this is the last handle, or returns it.
fn into_last(tenant: Tenant) -> std::result::Result<(), Tenant> {
    Arc::try_unwrap(tenant.0).map(drop).map_err(Tenant)
}
