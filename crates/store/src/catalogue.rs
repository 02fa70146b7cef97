//! All tenants of a server: where they are, which are open.

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
    /// A folder with one file per tenant. Made when it is not there.
    Folder(PathBuf),
    /// A PostgreSQL database with one schema per tenant, as libpq writes its URL: several hosts and
    /// `target_session_attrs` are understood. `catalogue=name` among its parameters keeps the tenants of
    /// several installations in one database apart. Calls that are not asynchronous themselves may block; on
    /// the threads of an asynchronous runtime they need one with several threads.
    Postgres(String),
}

impl std::str::FromStr for Location {
    type Err = StoreError;

    /// `sqlite:FOLDER` or `postgres://…`.
    fn from_str(text: &str) -> Result<Self> {
        if let Some(folder) = text.strip_prefix("sqlite:") {
            return Ok(Self::Folder(folder.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        // Not the text itself, which may hold a password.
        let scheme = text.split(':').next().unwrap_or_default();
        Err(StoreError::Query(format!(
            "what begins with {scheme:?} is no place for records; expected sqlite:FOLDER or \
             postgres://user:password@host:port/database"
        )))
    }
}

/// The tenants of a server. Clones share it.
#[derive(Clone)]
pub struct Catalogue(Arc<Everything>);

struct Everything {
    place: Place,
    /// Places of tenants that do not lie with the others.
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
    /// Descriptions of tenants in a folder, each with the number of the file that it was read from.
    descriptions: Mutex<HashMap<String, (u64, String)>>,
    clock: AtomicU64,
    is_closed: AtomicBool,
}

impl Everything {
    /// Where a tenant lies, or would.
    fn place_of(&self, tenant: &str) -> &Place {
        self.own.get(tenant).map_or(&self.place, |it| it)
    }
}

/// The engines' places.
enum Place {
    Folder(PathBuf),
    Postgres(Cluster),
}

/// Where a server keeps its search indexes of a tenant in a database.
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

    /// What a tenant holds is gone when this returns; nobody may have it open here.
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

/// The place of one tenant: opening one holds up nobody who asks for another, and nobody who asks whether it is open.
#[derive(Default)]
struct Slot {
    /// Locked for moments.
    tenant: Mutex<Option<Tenant>>,
    /// Locked while it is opened, made, closed or deleted, which may take as long as a migration.
    change: Mutex<()>,
    /// Where those stand in line for it who must not wait on their thread.
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
    /// Opens the place; tenants are opened when they are first asked for.
    ///
    /// Errors: the folder cannot be made or read, the URL cannot be read; a kind's declaration cannot be. A
    /// database is first asked when a tenant is.
    pub fn open(location: Location, kinds: &'static [&'static Kind], limits: Limits) -> Result<Self> {
        Self::open_spread(location, &BTreeMap::new(), None, kinds, limits)
    }

    /// The same with places of their own for some tenants, by name: over several databases, say. Tenants with the
    /// same place share its sessions. What lies under the name of such a tenant in the common place is not seen.
    /// `search` is a folder of this server alone, made if need be, for its search indexes of tenants in a database; without
    /// it searches there read rows and bodies. Tenants that are files have theirs beside them.
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

    /// The bounds it was opened with.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// What the requests of this server may hold at once.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// A tenant by name, opened if need be, on this thread.
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

    /// The same for callers on threads that serve others: one that is open is given at once, one that is not is opened
    /// aside, as is all that asks the disk or the database. Of those who ask for one tenant meanwhile, all but one wait
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

    /// Runs work that waits on a thread of its own. Whoever goes away meanwhile leaves it at work, with its place.
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

    /// The slot of a tenant. Errors: there is no such tenant.
    fn slot(&self, name: &str) -> Result<Arc<Slot>> {
        if let Some(slot) = self.lock().get(name) {
            return Ok(slot.clone());
        }
        match self.0.place_of(name).exists(name)? {
            true => Ok(self.lock().entry(name.to_owned()).or_default().clone()),
            false => Err(StoreError::UnknownTenant(name.to_owned())),
        }
    }

    /// The tenant of a slot, if it is open; the last that was used from now on.
    fn used(&self, slot: &Slot) -> Option<Tenant> {
        slot.last_use.store(self.0.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot.lock().clone()
    }

    /// Makes a tenant.
    ///
    /// Errors: the name is taken, or cannot be one.
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
        // A list that came in between has read it as empty.
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

    /// The tenant, made with an empty description if it is not there.
    pub fn tenant_or_new(&self, name: &str) -> Result<Tenant> {
        self.tenant_or_new_described(name, "")
    }

    /// The tenant, made with this description if it is not there.
    pub fn tenant_or_new_described(&self, name: &str, description: &str) -> Result<Tenant> {
        match self.tenant(name) {
            Err(StoreError::UnknownTenant(_)) => match self.create_tenant(name, description) {
                Err(StoreError::TenantExists(_)) => self.tenant(name),
                made => made,
            },
            other => other,
        }
    }

    /// Deletes a tenant and all it holds.
    ///
    /// Errors: there is none of that name; somebody is using it.
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

    /// All tenants, by name.
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

    /// What was said of a tenant in a folder when it was made: read once, without opening the tenant. One that cannot be
    /// read so, as files of former formats cannot, is opened.
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

    /// A text of the catalogue as a whole, such as the secret that tokens are signed with: what `make` gives when
    /// nobody has asked before, the same for every server ever after. Only a database keeps such texts; for a
    /// folder, beside whose tenants there are files, this is always `None`.
    pub fn constant(&self, name: &str, make: impl FnOnce() -> Option<String>) -> Result<Option<String>> {
        match &self.0.place {
            Place::Folder(_) => Ok(None),
            Place::Postgres(cluster) => cluster.constant(name, make),
        }
    }

    /// Figures of the tenants that are open.
    pub fn statistics(&self) -> Vec<TenantStats> {
        let slots: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
        let tenants = slots.iter().filter_map(|slot| slot.lock().clone());
        tenants.map(|tenant| tenant.statistics()).collect()
    }

    /// Why a tenant that is open writes nothing any more, if that is so; see [`Tenant::failure`].
    pub fn failure(&self) -> Option<String> {
        let slots: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
        slots.iter().find_map(|slot| slot.lock().as_ref()?.failure())
    }

    /// Closes all tenants for good, also those that are still held: what waits to be written is finished, and when this
    /// returns nothing changes their files any more. Later writes, and tenants asked for later, are refused as closed.
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

    /// Errors: it was closed.
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

    /// Closes idle tenants beyond the bound; those in use stay open, however many they are.
    fn close_least_used(&self) {
        let mut slots: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
        slots.retain(|slot| slot.lock().is_some());
        let mut n_over = slots.len().saturating_sub(self.0.limits.open_tenants);
        slots.sort_unstable_by_key(|slot| slot.last_use.load(Ordering::Relaxed));
        for slot in slots {
            if n_over == 0 {
                return;
            }
            // Whoever asks for it now opens it again when it is closed, and not before.
            let Ok(_change) = slot.change.try_lock() else { continue };
            let mut opened = slot.lock();
            // One that may not write any more must not come back as one that may.
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

/// Folder of the tenants' files.
const TENANTS: &str = "tenants";
/// Ending of a tenant's file.
const EXTENSION: &str = ".sqlite";

/// Drops the tenant if nobody else holds it.
fn into_last(tenant: Tenant) -> std::result::Result<(), Tenant> {
    Arc::try_unwrap(tenant.0).map(drop).map_err(Tenant)
}
