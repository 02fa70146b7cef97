//! Moving a tenant's records to a file and back: `pinakes export folio`, `pinakes import folio`.
//!
//! A line is `{"path":"/instance-storage/instances","id":"…","record":{…}}`, in an order in which records refer only to
//! earlier ones. Answers of FOLIO's interfaces can be read as well: an object with one of their lists. Records keep
//! their ids, numbers and dates. Whatever sends something or gives access is left out: logins with their permissions,
//! passwords and PINs, mails and the mail server, timers, jobs.

use std::io::{self, Read, Write};

use pinakes_accounts::{Clock, Entropy};
use pinakes_store::{Expr, Kind, Query, StoreError, Tenant, Txn, View};
use serde_json::{Map, Value};

use crate::authorities::authority;
use crate::configuration::records;
use crate::data_import::{mapping, profiles};
use crate::inventory::upkeep;
use crate::modules::COLLECTIONS;
use crate::platform::collection::{Collection, Writer, by_list, moved_in};
use crate::platform::error::{FolioError, Shape};
use crate::platform::limits::{MOVED_RECORDS, MOVED_WAITING};
use crate::platform::settings::Settings;
use crate::source_records::{source_storage, specifications};
use crate::users::perms;
use crate::{circulation, links, reference};

/// Collections that are left out, by kind.
const STAYING: [&str; 14] = [
    "folio_smtp_configuration",
    "folio_email",
    "folio_scheduled_notice",
    "folio_patron_session",
    "folio_timer",
    "folio_check_out_lock",
    "folio_interface_credential",
    "folio_banking_information",
    "folio_block_sync_job",
    "folio_tlr_toggle_job",
    "folio_export_job",
    "folio_export_log",
    "folio_bulk_operation",
    "folio_user_tenant",
];

/// Returns the path and kind of records outside the collections.
fn others() -> Vec<(&'static str, &'static Kind)> {
    let mut others: Vec<(&'static str, &'static Kind)> = vec![
        ("/source-storage/snapshots", &source_storage::SNAPSHOT),
        ("/source-storage/records", &source_storage::SOURCE_RECORD),
        ("/links", &crate::links::linked::LINKS),
        ("/linking-rules", &links::LINKING_RULE),
        ("/perms/permissions", &perms::PERMISSION),
        ("/circulation/rules", &circulation::RULES),
        ("/hrid-settings-storage/hrid-settings", &crate::platform::collection::numbers::HRID_SETTINGS),
        ("/locale", &records::LOCALE),
        ("/authorities/config", &authority::SETTING),
        ("/inventory-settings", &upkeep::SETTING),
        ("/specification-storage", &specifications::CHANGES),
    ];
    let profiles = [
        "/data-import-profiles/jobProfiles",
        "/data-import-profiles/matchProfiles",
        "/data-import-profiles/actionProfiles",
        "/data-import-profiles/mappingProfiles",
        "/data-import-profiles/profileAssociations",
        "/data-import-profiles/profileSnapshots",
        "/field-protection-settings/marc",
    ];
    others.extend(profiles.into_iter().zip(profiles::KINDS));
    others.extend(mapping::KINDS.iter().map(|it| ("/mapping-rules", *it)));
    others
}

/// Why records could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum MovingError {
    /// An error of the store, or an invalid record.
    #[error("{0}")]
    Records(#[from] FolioError),
    /// An error of the file.
    #[error("the file: {0}")]
    File(#[from] io::Error),
}

impl From<StoreError> for MovingError {
    fn from(error: StoreError) -> Self {
        Self::Records(error.into())
    }
}

fn moving() -> impl Iterator<Item = &'static Collection> {
    COLLECTIONS.iter().copied().filter(|it| !STAYING.contains(&it.kind.name))
}

/// Writes every record of a tenant, from one consistent state. Calls `note` after each with the number of bytes written
/// for it. Returns the number of records of each type.
///
/// Errors: those of the store and of the output.
pub fn export(
    tenant: &Tenant,
    output: &mut impl Write,
    mut note: impl FnMut(u64),
) -> Result<Vec<(&'static str, u64)>, MovingError> {
    let sorts: Vec<(&'static str, &'static Kind)> =
        moving().map(|it| (it.path, &it.kind)).chain(others()).collect();
    tenant.read_blocking(|view| {
        let mut counts = Vec::new();
        for (path, kind) in &sorts {
            let n = export_kind(view, path, kind, output, &mut note)?;
            counts.push((*path, n));
        }
        Ok(counts)
    })
}

fn export_kind(
    view: &mut View<'_>,
    path: &str,
    kind: &'static Kind,
    output: &mut impl Write,
    note: &mut impl FnMut(u64),
) -> Result<u64, MovingError> {
    let mut n = 0;
    view.try_for_each(kind, &Query::filter(Expr::All), |record| {
        let head = format!("{{\"path\":\"{path}\",\"id\":{},\"record\":", Value::from(record.id.as_str()));
        output.write_all(head.as_bytes())?;
        output.write_all(&record.body)?;
        output.write_all(b"}\n")?;
        n += 1;
        note((head.len() + record.body.len() + 2) as u64);
        Ok::<_, MovingError>(())
    })?;
    Ok(n)
}

/// The type of a record.
#[derive(Debug, Clone, Copy)]
enum Sort {
    Collection(&'static Collection),
    Other(&'static Kind),
}

impl Sort {
    fn at(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        let of_collection = moving().find(|it| it.path == path).map(Self::Collection);
        of_collection.or_else(|| others().into_iter().find(|it| it.0 == path).map(|it| Self::Other(it.1)))
    }

    /// Returns the type by the name of its list in answers of FOLIO's interfaces.
    fn listed_as(list: &str) -> Option<Self> {
        match list {
            "records" | "sourceRecords" => Some(Self::Other(&source_storage::SOURCE_RECORD)),
            "snapshots" => Some(Self::Other(&source_storage::SNAPSHOT)),
            list => {
                by_list(COLLECTIONS, list).filter(|it| !STAYING.contains(&it.kind.name)).map(Self::Collection)
            }
        }
    }
}

/// A record read from the file.
#[derive(Debug, Clone)]
struct Incoming {
    sort: Sort,
    id: String,
    body: Map<String, Value>,
    /// Number of the object in the file, from 1.
    place: u64,
}

/// A record that was left out.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// Number of the object in the file, from 1; a list is one object.
    pub place: u64,
    /// Its id, if it has one.
    pub id: String,
    /// The reason.
    pub reason: String,
}

/// The result of an import.
#[derive(Debug, Clone, Default)]
pub struct Moved {
    /// Number of records stored.
    pub n_stored: u64,
    /// Records left out, in the order of the file.
    pub left_out: Vec<LeftOut>,
}

/// What an import needs besides the records.
#[derive(Debug, Clone)]
pub struct MoveParts {
    /// The site's settings.
    pub settings: Settings,
    /// The clock.
    pub clock: Clock,
    /// Source of ids.
    pub entropy: Entropy,
}

/// Reads records from a file into a tenant; `path` is their type if they do not name it themselves. A record that
/// exists is replaced. One that refers to a later record is tried again at the end. Calls `note` with the number of
/// records stored so far.
///
/// Errors: those of the store; a file that is not JSON, with the position. The records read before that are stored.
pub fn import(
    tenant: &Tenant,
    input: &mut dyn Read,
    path: Option<&str>,
    parts: &MoveParts,
    note: &mut dyn FnMut(u64),
) -> Result<Moved, MovingError> {
    let now_ms = parts.clock.now_ms();
    let settings = parts.settings.clone();
    if !tenant.read_blocking(move |view| reference::is_loaded(view, &settings, COLLECTIONS))? {
        let settings = parts.settings.clone();
        tenant
            .write_blocking(move |txn: &mut Txn<'_>| reference::load(txn, &settings, now_ms, COLLECTIONS))?;
    }
    let mut moved = Moved::default();
    let (mut batch, mut waiting) = (Vec::new(), Vec::new());
    let mut place = 0;
    let objects = serde_json::Deserializer::from_reader(io::BufReader::new(input)).into_iter::<Value>();
    for object in objects {
        place += 1;
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                store(tenant, parts, &mut batch, &mut waiting, &mut moved)?;
                let message = format!("object {place} is no JSON: {error}; what stood before it is stored");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message).into());
            }
        };
        match incoming(object, path, place) {
            Ok(found) => batch.extend(found),
            Err(left_out) => moved.left_out.push(left_out),
        }
        if MOVED_RECORDS <= batch.len() {
            store(tenant, parts, &mut batch, &mut waiting, &mut moved)?;
            note(moved.n_stored);
        }
    }
    store(tenant, parts, &mut batch, &mut waiting, &mut moved)?;
    // The records referred to may have been stored in the meantime, or be among those still waiting.
    loop {
        let n_before = moved.n_stored;
        let mut again: Vec<Incoming> = waiting.drain(..).map(|it: (Incoming, String)| it.0).collect();
        store(tenant, parts, &mut again, &mut waiting, &mut moved)?;
        if moved.n_stored == n_before {
            break;
        }
    }
    moved.left_out.extend(waiting.into_iter().map(|(it, reason)| LeftOut {
        place: it.place,
        id: it.id,
        reason,
    }));
    moved.left_out.sort_by_key(|it| it.place);
    note(moved.n_stored);
    Ok(moved)
}

/// Returns the records of an object of the file.
fn incoming(object: Value, path: Option<&str>, place: u64) -> Result<Vec<Incoming>, LeftOut> {
    let left_out = |id: &str, reason: String| LeftOut { place, id: id.to_owned(), reason };
    let of = |sort: Sort, id: Option<&str>, record: Value| -> Result<Incoming, LeftOut> {
        let Value::Object(body) = record else {
            return Err(left_out("", format!("a record must be an object, found {record:.60}")));
        };
        let own = id.or_else(|| body.get("id").and_then(Value::as_str));
        let own = own.or_else(|| body.get("jobExecutionId").and_then(Value::as_str));
        let id = own.unwrap_or_default().to_owned();
        Ok(Incoming { sort, id, body, place })
    };
    let Value::Object(mut map) = object else {
        let named = path.and_then(Sort::at);
        return match (object, named) {
            (Value::Array(list), Some(sort)) => list.into_iter().map(|it| of(sort, None, it)).collect(),
            _ => Err(left_out("", "an object was expected, or a list with --path".to_owned())),
        };
    };
    if let (Some(Value::String(own)), Some(true)) =
        (map.get("path").cloned(), map.get("record").map(Value::is_object))
    {
        let id = map.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(sort) = Sort::at(&own) else {
            return Err(left_out(&id, format!("records of {own} are not read")));
        };
        let record = map.remove("record").unwrap_or_default();
        return Ok(vec![of(sort, Some(&id), record)?]);
    }
    if let Some(path) = path {
        let sort = Sort::at(path).ok_or_else(|| left_out("", format!("records of {path} are not read")))?;
        let listed = map.values().find(|it| it.is_array() && map.contains_key("totalRecords")).cloned();
        return match listed {
            Some(Value::Array(list)) => list.into_iter().map(|it| of(sort, None, it)).collect(),
            _ => Ok(vec![of(sort, None, Value::Object(map))?]),
        };
    }
    let list = map.iter().find_map(|(name, value)| Some((Sort::listed_as(name)?, value.as_array()?.clone())));
    match list {
        Some((sort, list)) => list.into_iter().map(|it| of(sort, None, it)).collect(),
        None => {
            let id = map.get("id").and_then(Value::as_str).unwrap_or_default();
            Err(left_out(id, "what it is must be said by --path, or in the line".to_owned()))
        }
    }
}

/// Stores a batch in one transaction; if it is refused, each record separately. Refused records wait to be tried again.
fn store(
    tenant: &Tenant,
    parts: &MoveParts,
    batch: &mut Vec<Incoming>,
    waiting: &mut Vec<(Incoming, String)>,
    moved: &mut Moved,
) -> Result<(), FolioError> {
    if batch.is_empty() {
        return Ok(());
    }
    let (now_ms, entropy) = (parts.clock.now_ms(), parts.entropy.clone());
    let write = |some: Vec<Incoming>| {
        let entropy = entropy.clone();
        tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
            let writer = Writer::new(now_ms, None, entropy.clone(), COLLECTIONS);
            some.iter().try_for_each(|it| store_one(txn, &writer, it))
        })
    };
    let all = std::mem::take(batch);
    if write(all.clone()).is_ok() {
        moved.n_stored += all.len() as u64;
        return Ok(());
    }
    for one in all {
        match write(vec![one.clone()]) {
            Ok(()) => moved.n_stored += 1,
            Err(error) if error.status.is_server_error() => return Err(error),
            Err(error) if waiting.len() < MOVED_WAITING => waiting.push((one, reason(&error))),
            Err(error) => {
                moved.left_out.push(LeftOut { place: one.place, id: one.id, reason: reason(&error) });
            }
        }
    }
    Ok(())
}

fn store_one(txn: &mut Txn<'_>, writer: &Writer, one: &Incoming) -> Result<(), FolioError> {
    match one.sort {
        Sort::Collection(collection) => moved_in(txn, writer, collection, one.body.clone()),
        Sort::Other(_) if one.id.is_empty() => Err(FolioError::bad_request("the record has no id")),
        Sort::Other(kind) => {
            txn.put(kind, &one.id, &Value::Object(one.body.clone()))?;
            Ok(())
        }
    }
}

/// Returns the reason why a record was refused, with the names of the properties at fault.
fn reason(error: &FolioError) -> String {
    let Shape::Errors(faults) = &error.shape else { return error.message() };
    let named = faults.iter().map(|fault| match fault.parameters.first() {
        Some((property, _)) => format!("{property}: {}", fault.message),
        None => fault.message.clone(),
    });
    named.collect::<Vec<_>>().join("; ")
}
