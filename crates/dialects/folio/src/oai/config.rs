//! Configuration of a tenant's repository: `/oai-pmh/configuration-settings`, else the entries of the module `OAIPMH`
//! in `/configurations/entries`, else the defaults (mod-oai-pmh).
//!
//! There are three settings, `general`, `behavior` and `technical`, each an object of texts. A new tenant has them with
//! the defaults; one that nobody has changed does not hide the entries.

use http::StatusCode;
use pinakes_oai_pmh::{Code, Deletions};
use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, Value as StoreValue, View};
use serde_json::{Map, Value};

use crate::configuration::records::CONFIGURATIONS;
use crate::platform::collection::{Collection, Hooks, Kinds, Schema, Unique, Writer};
use crate::platform::cql::Names;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// The settings of a new tenant.
const DEFAULTS: &str = include_str!("../../reference/oai-settings.json");

/// `/oai-pmh/configuration-settings`.
pub(crate) static SETTINGS: Collection = Collection {
    permission: "oai-pmh.configuration-settings",
    table: "configuration_settings",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::at("name", "configName", Type::Folded)],
        indexes: &[Index::unique(&["name"])],
        ..Kind::named("folio_oai_setting")
    },
    schema: Schema {
        required: &["configName", "configValue"],
        types: &[("configName", Kinds::Text), ("configValue", Kinds::Object)],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "name", message: "" }],
    names: Names { aliases: &[("name", "configName")], whole: &["configName"], ..Names::PLAIN },
    has_result_info: false,
    hooks: Hooks { prepare: replace_default, ..Hooks::NONE },
    reference_data: DEFAULTS,
    ..Collection::named("/oai-pmh/configuration-settings", "configurationSettings", "folio_oai_setting")
};

/// Makes room for a setting that a tenant creates, if the one of that name is as it was loaded.
fn replace_default(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let name = body.get("configName").and_then(Value::as_str).unwrap_or_default();
    if old.is_none()
        && let Some(record) = txn.first(&SETTINGS.kind, named("configName", name))?
        && is_default(name, &record.json()?["configValue"])
    {
        txn.delete(&SETTINGS.kind, &record.id)?;
    }
    Ok(())
}

fn named(path: &str, text: &str) -> Expr {
    Expr::Is(path.into(), StoreValue::Folded(pinakes_store::fold(text)))
}

/// How records suppressed from discovery are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suppressed {
    /// As a header with the status deleted.
    Deleted,
    /// Not at all: they are skipped.
    Skipped,
    /// As records; in MARC formats, `$t` of 999 ff, 952 and 856 says whether they are suppressed.
    Shown,
}

/// The sources of the MARC formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sources {
    /// The source records of the instances that have one.
    Records,
    /// Source records, and for instances without one, the data of the instance.
    Both,
    /// The data of instances without a source record.
    Inventory,
}

/// The configuration of a tenant's repository.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) is_enabled: bool,
    pub(super) repository: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) mail: Option<String>,
    pub(super) has_days_only: bool,
    pub(super) deletions: Deletions,
    pub(super) suppressed: Suppressed,
    pub(super) sources: Sources,
    /// Whether refusals have their own HTTP statuses.
    pub(super) tells_by_status: bool,
    pub(super) page_records: Option<u64>,
}

impl Config {
    /// Reads the tenant's configuration.
    pub(super) fn of(view: &mut View<'_>) -> Result<Self, FolioError> {
        let [general, behavior, technical] =
            [setting(view, "general")?, setting(view, "behavior")?, setting(view, "technical")?];
        let text = |of: &Value, name: &str| match &of[name] {
            Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Value::Bool(is) => Some(is.to_string()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let deletions = match text(&behavior, "deletedRecordsSupport").as_deref() {
            Some("no") => Deletions::No,
            Some("persistent") => Deletions::Persistent,
            _ => Deletions::Transient,
        };
        let suppressed = match text(&behavior, "suppressedRecordsProcessing").as_deref() {
            Some("true") => Suppressed::Shown,
            Some("false") => Suppressed::Skipped,
            _ => Suppressed::Deleted,
        };
        let sources = match text(&behavior, "recordsSource").unwrap_or_default().to_lowercase() {
            both if both.contains("source") && both.contains("inventory") => Sources::Both,
            inventory if inventory == "inventory" => Sources::Inventory,
            _ => Sources::Records,
        };
        let page = text(&technical, "maxRecordsPerResponse").and_then(|it| it.parse().ok());
        let granularity = text(&general, "timeGranularity");
        Ok(Self {
            is_enabled: text(&general, "enableOaiService").as_deref() != Some("false"),
            repository: text(&general, "repositoryName"),
            base_url: text(&general, "baseUrl"),
            mail: text(&general, "administratorEmail"),
            has_days_only: granularity.is_some_and(|it| it.eq_ignore_ascii_case("YYYY-MM-DD")),
            deletions,
            suppressed,
            sources,
            tells_by_status: text(&behavior, "errorsProcessing").as_deref() == Some("500"),
            page_records: page.filter(|it| 0 < *it),
        })
    }

    /// Returns the HTTP status of an answer that tells an error, or none.
    pub(super) fn status(&self, code: Option<Code>) -> StatusCode {
        match code.filter(|_| self.tells_by_status) {
            None => StatusCode::OK,
            Some(Code::BadArgument | Code::BadResumptionToken | Code::BadVerb) => StatusCode::BAD_REQUEST,
            Some(Code::CannotDisseminateFormat) => StatusCode::UNPROCESSABLE_ENTITY,
            Some(_) => StatusCode::NOT_FOUND,
        }
    }
}

/// Checks whether a setting is as a new tenant has it.
fn is_default(name: &str, value: &Value) -> bool {
    let defaults: Vec<Value> = serde_json::from_str(DEFAULTS).unwrap_or_default();
    defaults.iter().any(|it| it["configName"] == name && it["configValue"] == *value)
}

/// Returns one of the three settings; null if it does not exist.
fn setting(view: &mut View<'_>, name: &str) -> Result<Value, FolioError> {
    if let Some(record) = view.first(&SETTINGS.kind, named("configName", name))? {
        let value = record.json()?["configValue"].take();
        if !is_default(name, &value) {
            return Ok(value);
        }
    }
    let entry = named("module", "OAIPMH").and(named("configName", name));
    let Some(record) = view.first(&CONFIGURATIONS.kind, entry)? else { return Ok(Value::Null) };
    let entry = record.json()?;
    let Some(value) = text_at(&entry, "value") else { return Ok(Value::Null) };
    Ok(serde_json::from_str(value).unwrap_or_else(|error| {
        tracing::warn!(%error, name, id = record.id, "an entry of OAI-PMH's configuration is not JSON; the defaults apply");
        Value::Null
    }))
}
