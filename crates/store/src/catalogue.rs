//! All tenants of a server: where they are, which are open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::classes::Classes;
use crate::sqlite::{self, Sqlite};
use crate::tenant::{Engine, Inner};
use crate::view::Shared;
use crate::{Kind, Limits, Result, StoreError, Tenant, TenantStats};

/// Where the records are kept.
#[derive(Debug, Clone)]
pub enum Location {
    /// A folder with one file per tenant. Made when it is not there.
    Folder(PathBuf),
}

/// A tenant, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantInfo {
    /// Its name, also that of its file.
    pub name: String,
    /// What was said of it when it was made.
    pub description: String,
}

/// The tenants of a server. Clones share it.
#[derive(Clone)]
pub struct Catalogue(Arc<Everything>);

struct Everything {
    folder: PathBuf,
    kinds: &'static [&'static Kind],
    limits: Limits,
    scans: Arc<Semaphore>,
    open: Mutex<HashMap<String, Opened>>,
    clock: AtomicU64,
}

struct Opened {
    tenant: Tenant,
    last_use: u64,
}

impl Catalogue {
    /// Opens the place; tenants are opened when they are first asked for.
    ///
    /// Errors: the folder cannot be made or read.
    pub fn open(location: Location, kinds: &'static [&'static Kind], limits: Limits) -> Result<Self> {
        let Location::Folder(folder) = location;
        let tenants = folder.join(TENANTS);
        std::fs::create_dir_all(&tenants)
            .map_err(|source| StoreError::Io { path: tenants.display().to_string(), source })?;
        Ok(Self(Arc::new(Everything {
            folder: tenants,
            kinds,
            scans: Arc::new(Semaphore::new(limits.scans)),
            limits,
            open: Mutex::default(),
            clock: AtomicU64::new(0),
        })))
    }

    /// The bounds it was opened with.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// A tenant by name, opened if need be.
    pub fn tenant(&self, name: &str) -> Result<Tenant> {
        let last_use = self.0.clock.fetch_add(1, Ordering::Relaxed);
        let mut open = self.lock();
        if let Some(opened) = open.get_mut(name) {
            opened.last_use = last_use;
            return Ok(opened.tenant.clone());
        }
        let path = self.path(name)?;
        if !path.exists() {
            return Err(StoreError::UnknownTenant(name.to_owned()));
        }
        let tenant = self.open_file(name, &path)?;
        self.close_least_used(&mut open);
        open.insert(name.to_owned(), Opened { tenant: tenant.clone(), last_use });
        Ok(tenant)
    }

    /// Makes a tenant.
    ///
    /// Errors: the name is taken, or cannot be one.
    pub fn create_tenant(&self, name: &str, description: &str) -> Result<Tenant> {
        let path = self.path(name)?;
        {
            let _open = self.lock();
            if path.exists() {
                return Err(StoreError::TenantExists(name.to_owned()));
            }
            sqlite::create(&path)?;
        }
        let tenant = self.tenant(name)?;
        let description = description.to_owned();
        tenant.write_blocking(move |txn| {
            let sql = "INSERT INTO meta (name, value, text) VALUES ('description', 0, ?1) \
                       ON CONFLICT (name) DO UPDATE SET text = excluded.text";
            txn.view.session.execute(sql, &[description.as_str().into()])
        })?;
        Ok(tenant)
    }

    /// The tenant, made with an empty description if it is not there.
    pub fn tenant_or_new(&self, name: &str) -> Result<Tenant> {
        match self.tenant(name) {
            Err(StoreError::UnknownTenant(_)) => match self.create_tenant(name, "") {
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
        let path = self.path(name)?;
        let mut open = self.lock();
        if !path.exists() {
            return Err(StoreError::UnknownTenant(name.to_owned()));
        }
        if let Some(opened) = open.remove(name)
            && let Err(tenant) = into_last(opened.tenant)
        {
            open.insert(name.to_owned(), Opened { tenant, last_use: 0 });
            return Err(StoreError::Query(format!(
                "tenant {name:?} is in use; try again when its requests are done"
            )));
        }
        for end in ["", "-wal", "-shm"] {
            let file = PathBuf::from(format!("{}{end}", path.display()));
            match std::fs::remove_file(&file) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Io { path: file.display().to_string(), source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All tenants, by name.
    pub fn tenants(&self) -> Result<Vec<TenantInfo>> {
        let failed = |source| StoreError::Io { path: self.0.folder.display().to_string(), source };
        let mut list = Vec::new();
        for entry in std::fs::read_dir(&self.0.folder).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            if let Some(name) = file.to_str().and_then(|it| it.strip_suffix(EXTENSION)) {
                let description = self.tenant(name)?.read_blocking(|view| {
                    view.session
                        .first("SELECT text FROM meta WHERE name = 'description'", &[], |row| row.text(0))
                })?;
                list.push(TenantInfo { name: name.to_owned(), description: description.unwrap_or_default() });
            }
        }
        list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(list)
    }

    /// Figures of the tenants that are open.
    pub fn statistics(&self) -> Vec<TenantStats> {
        self.lock().values().map(|opened| opened.tenant.statistics()).collect()
    }

    /// Lets go of all tenants: each is closed, its queue finished, when its last user is done.
    pub fn close(&self) {
        let all: Vec<Opened> = self.lock().drain().map(|(_, opened)| opened).collect();
        drop(all);
    }

    fn open_file(&self, name: &str, path: &Path) -> Result<Tenant> {
        let shared =
            Arc::new(Shared { kinds: self.0.kinds, classes: Classes::new(), limits: self.0.limits.clone() });
        let engine = Engine::Sqlite(Sqlite::open(path, shared)?);
        Ok(Tenant(Arc::new(Inner { name: name.to_owned(), engine, scans: self.0.scans.clone() })))
    }

    fn close_least_used(&self, open: &mut HashMap<String, Opened>) {
        if open.len() < self.0.limits.open_tenants {
            return;
        }
        let idle = open.iter().filter(|(_, it)| Arc::strong_count(&it.tenant.0) == 1);
        if let Some(name) = idle.min_by_key(|(_, it)| it.last_use).map(|(name, _)| name.clone()) {
            open.remove(&name);
        }
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = (1..=63).contains(&name.len())
            && name.bytes().all(|byte| is_plain(byte) || byte == b'-' || byte == b'_')
            && name.bytes().next().is_some_and(is_plain);
        if !is_name {
            return Err(StoreError::TenantName(name.to_owned()));
        }
        Ok(self.0.folder.join(format!("{name}{EXTENSION}")))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Opened>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Folder of the tenants' files.
const TENANTS: &str = "tenants";
/// Ending of a tenant's file.
const EXTENSION: &str = ".sqlite";

/// Drops the tenant if nobody else holds it.
fn into_last(tenant: Tenant) -> std::result::Result<(), Tenant> {
    Arc::try_unwrap(tenant.0).map(drop).map_err(Tenant)
}
