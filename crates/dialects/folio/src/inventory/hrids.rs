//! Human-readable ids: `in00000000001`, `ho…`, `it…`, given out in order (section 1.3 of the contract).
//!
//! The next numbers are one record. Whoever makes many records in one transaction reserves their numbers first, so
//! that the record is written once.

use pinakes_store::{Kind, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::platform::app::{Call, json_answer};
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// Settings and next numbers of a tenant, one record.
pub(crate) static HRID_SETTINGS: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_hrid_settings") };

/// The id of that record, FOLIO's.
const ID: &str = "a501f2a8-5b31-48b2-874d-2191e48db8cd";
/// Digits of a number with its leading zeroes.
const DIGITS: usize = 11;
/// The greatest number of that many digits.
const MAX_NUMBER: u64 = 99_999_999_999;

/// What has such ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbered {
    /// Instances, `in…`.
    Instances,
    /// Holdings, `ho…`.
    Holdings,
    /// Items, `it…`.
    Items,
}

impl Numbered {
    const ALL: [Self; 3] = [Self::Instances, Self::Holdings, Self::Items];

    fn name(self) -> &'static str {
        match self {
            Self::Instances => "instances",
            Self::Holdings => "holdings",
            Self::Items => "items",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Instances => "in",
            Self::Holdings => "ho",
            Self::Items => "it",
        }
    }
}

/// Numbers that a transaction reserved and has not used yet: the prefix, the next number, how many are left, and
/// whether zeroes are kept.
#[derive(Debug, Clone)]
pub struct Reserved {
    prefix: String,
    next: u64,
    left: u64,
    keeps_zeroes: bool,
}

fn defaults() -> Value {
    let mut map = Map::new();
    map.insert("id".into(), ID.into());
    for it in Numbered::ALL {
        map.insert(it.name().into(), json!({"prefix": it.prefix(), "startNumber": 1, "currentNumber": 0}));
    }
    map.insert("commonRetainLeadingZeroes".into(), true.into());
    Value::Object(map)
}

fn settings(view: &mut View<'_>) -> Result<Value, FolioError> {
    match view.get(&HRID_SETTINGS, ID)? {
        Some(record) => Ok(record.json()?),
        None => Ok(defaults()),
    }
}

/// Sets numbers aside for records that this transaction will make.
pub fn reserve(txn: &mut Txn<'_>, writer: &Writer, numbered: Numbered, n: u64) -> Result<(), FolioError> {
    if n == 0 {
        return Ok(());
    }
    let mut all = settings(txn)?;
    let keeps_zeroes = all["commonRetainLeadingZeroes"].as_bool().unwrap_or(true);
    let own = &mut all[numbered.name()];
    let last = own["currentNumber"].as_u64().unwrap_or(0);
    let prefix = own["prefix"].as_str().unwrap_or_default().to_owned();
    if MAX_NUMBER < last.saturating_add(n) {
        return Err(FolioError::bad_request(format!("hrids of {} are used up", numbered.name())));
    }
    own["currentNumber"] = (last + n).into();
    txn.put(&HRID_SETTINGS, ID, &all)?;
    writer.reserve(numbered, Reserved { prefix, next: last + 1, left: n, keeps_zeroes });
    Ok(())
}

/// The next id.
pub fn next(txn: &mut Txn<'_>, writer: &Writer, numbered: Numbered) -> Result<String, FolioError> {
    if let Some(id) = writer.next_reserved(numbered) {
        return Ok(id);
    }
    reserve(txn, writer, numbered, 1)?;
    writer.next_reserved(numbered).ok_or_else(|| FolioError::bad_request("no hrid was reserved"))
}

impl Reserved {
    /// The next id of these; `None` when all are used.
    pub(crate) fn take(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let number = self.next;
        self.next += 1;
        let prefix = &self.prefix;
        Some(if self.keeps_zeroes {
            format!("{prefix}{number:0DIGITS$}")
        } else {
            format!("{prefix}{number}")
        })
    }
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let path = "/hrid-settings-storage/hrid-settings";
    routes.get(path, Access::to("inventory-storage.hrid-settings.item.get"), show).put(
        path,
        Access::to("inventory-storage.hrid-settings.item.put"),
        change,
    )
}

async fn show(call: Call) -> Answer {
    let all = call.db().read(Weight::Point, settings).await?;
    Ok(json_answer(http::StatusCode::OK, &all))
}

/// A start number is taken up when it is changed.
async fn change(mut call: Call) -> Answer {
    let body = call.object().await?;
    let mut faults = Vec::new();
    for it in Numbered::ALL {
        let start = body.get(it.name()).and_then(|it| it.get("startNumber"));
        match start.map(Value::as_u64) {
            None => faults.push(Fault::missing(it.name())),
            Some(Some(1..=MAX_NUMBER)) => {}
            Some(_) => {
                let fault = Fault::new(format!("must be between 1 and {MAX_NUMBER}"));
                faults.push(fault.ty("1").with(
                    format!("{}.startNumber", it.name()),
                    start.map_or_else(String::new, Value::to_string),
                ));
            }
        }
        if body.get(it.name()).and_then(|it| it.get("prefix")).is_some_and(|it| !is_prefix(it)) {
            let fault = Fault::new("must be at most 10 letters, digits, - or .");
            faults.push(fault.ty("1").with(format!("{}.prefix", it.name()), ""));
        }
    }
    if !faults.is_empty() {
        return Err(FolioError::faults(http::StatusCode::UNPROCESSABLE_ENTITY, faults));
    }
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut all = settings(txn)?;
        for it in Numbered::ALL {
            let given = &body[it.name()];
            let own = &mut all[it.name()];
            if let Some(prefix) = given.get("prefix") {
                own["prefix"] = prefix.clone();
            }
            if own["startNumber"] != given["startNumber"] {
                own["startNumber"] = given["startNumber"].clone();
                own["currentNumber"] = (given["startNumber"].as_u64().unwrap_or(1) - 1).into();
            }
        }
        if let Some(keeps) = body.get("commonRetainLeadingZeroes").filter(|it| it.is_boolean()) {
            all["commonRetainLeadingZeroes"] = keeps.clone();
        }
        txn.put(&HRID_SETTINGS, ID, &all)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(pinakes_http::answer::empty(http::StatusCode::NO_CONTENT))
}

fn is_prefix(value: &Value) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.');
    value.as_str().is_some_and(|it| it.len() <= 10 && it.bytes().all(is_part))
}
