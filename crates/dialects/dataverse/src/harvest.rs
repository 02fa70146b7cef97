//! Harvesting of datasets from other servers: `/api/harvest/clients` and their runs.
//!
//! A client names an OAI-PMH provider and a collection. A run is a job in the store's queue: it requests records that
//! changed since the last successful run and stores each as a published dataset without files (`take_in.rs`). Records
//! that cannot be read are counted and skipped.

pub(crate) mod fetch;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod take_in;

use pinakes_store::{Kind, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::{collections, envelope, stored};

/// Clients by nickname: body is a [`Client`].
pub(crate) static CLIENT: Kind = Kind::named("dataverse_harvest_client");

/// Supported metadata formats.
const FORMATS: [&str; 4] = ["oai_dc", "oai_ddi", "ddi", "dataverse_json"];

/// A provider that is harvested into a collection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Client {
    /// Name.
    pub nick_name: String,
    /// Name in the facet of metadata sources; the nickname if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_name: Option<String>,
    /// The collection's number.
    pub collection: i64,
    /// The user who created the client, and is the creator of its datasets.
    pub creator: i64,
    /// Base URL of the provider.
    pub harvest_url: String,
    /// URL of the provider's website.
    pub archive_url: String,
    /// Description of the provider.
    pub archive_description: String,
    /// `dataverse`, `default`, …
    pub style: String,
    /// One of [`FORMATS`].
    pub metadata_format: String,
    /// The set that is harvested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// A header `name: value` that is sent with every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_headers: Option<String>,
    /// Whether terms that a vocabulary lacks are skipped, rather than the whole record.
    #[serde(rename = "allowHarvestingMissingCVV")]
    pub allow_missing_terms: bool,
    /// Whether identifiers of records are used if the metadata contains none.
    pub use_oai_identifiers_as_pids: bool,
    /// Stored for API clients that set it, without effect: records are always requested in lists.
    pub use_list_records: bool,
    /// Whether a run is in progress.
    pub in_progress: bool,
    /// Outcome of its runs.
    pub outcome: Outcome,
}

/// Outcome of a client's runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Outcome {
    /// Start of the last run.
    pub last: Option<String>,
    /// `SUCCESS`, `PARTIAL` or `FAILED`, and the reason.
    pub result: Option<String>,
    /// Start of the last run that reached the end of the list: the next run requests changes since then.
    pub last_successful: Option<String>,
    /// Start of the last such run that found something.
    pub last_non_empty: Option<String>,
    /// Records stored by the last run.
    pub n_harvested: u64,
    /// Records removed by it.
    pub n_deleted: u64,
    /// Records that could not be read.
    pub n_failed: u64,
}

impl Client {
    /// Returns the client as JSON; its custom headers, which may contain a key of the provider, only for superusers.
    fn json(&self, view: &mut View<'_>, to_superuser: bool) -> Result<Value, ApiError> {
        let alias = collections::by_id(view, self.collection)?.map(|it| it.alias);
        let outcome = &self.outcome;
        let was_run = outcome.last.is_some();
        let count = |n: u64| was_run.then_some(n);
        Ok(Value::Object(envelope::object(json!({
            "nickName": self.nick_name,
            "sourceName": self.source_name,
            "dataverseAlias": alias,
            "type": "oai",
            "style": self.style,
            "harvestUrl": self.harvest_url,
            "archiveUrl": self.archive_url,
            "archiveDescription": self.archive_description,
            "metadataFormat": self.metadata_format,
            "set": self.set,
            "customHeaders": self.custom_headers.as_ref().filter(|_| to_superuser),
            "allowHarvestingMissingCVV": self.allow_missing_terms,
            "useOaiIdentifiersAsPids": self.use_oai_identifiers_as_pids,
            "useListRecords": self.use_list_records,
            "schedule": "none",
            "status": if self.in_progress { "inProgress" } else { "inActive" },
            "lastHarvest": outcome.last,
            "lastResult": outcome.result,
            "lastSuccessful": outcome.last_successful,
            "lastNonEmpty": outcome.last_non_empty,
            "lastDatasetsHarvested": count(outcome.n_harvested),
            "lastDatasetsDeleted": count(outcome.n_deleted),
            "lastDatasetsFailed": count(outcome.n_failed),
        }))))
    }

    /// Returns the name in the facet of metadata sources.
    pub(crate) fn source(&self) -> &str {
        self.source_name.as_deref().unwrap_or(&self.nick_name)
    }

    /// Sets the members that a body states. Errors: 400.
    fn put(&mut self, view: &mut View<'_>, body: &Map<String, Value>) -> Result<(), ApiError> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(|it| it.trim().to_owned());
        let flag = |name: &str, before: bool| body.get(name).and_then(Value::as_bool).unwrap_or(before);
        if let Some(alias) = text("dataverseAlias") {
            let missing = |_| ApiError::bad_request(format!("No such dataverse: {alias}"));
            self.collection = collections::find(view, &alias).map_err(missing)?.id;
        }
        if let Some(url) = text("harvestUrl") {
            if !crate::blocks::validate::is_url(&url) || !url.starts_with("http") {
                return Err(ApiError::bad_request(format!("harvestUrl {url} is no URL of HTTP.")));
            }
            self.archive_url = text("archiveUrl").unwrap_or_else(|| origin(&url).to_owned());
            self.harvest_url = url;
        }
        for (name, value) in [
            ("archiveUrl", &mut self.archive_url),
            ("archiveDescription", &mut self.archive_description),
            ("style", &mut self.style),
            ("metadataFormat", &mut self.metadata_format),
        ] {
            if let Some(given) = text(name) {
                *value = given;
            }
        }
        for (name, value) in [
            ("sourceName", &mut self.source_name),
            ("set", &mut self.set),
            ("customHeaders", &mut self.custom_headers),
        ] {
            if body.contains_key(name) {
                *value = text(name).filter(|it| !it.is_empty());
            }
        }
        self.allow_missing_terms = flag("allowHarvestingMissingCVV", self.allow_missing_terms);
        self.use_oai_identifiers_as_pids = flag("useOaiIdentifiersAsPids", self.use_oai_identifiers_as_pids);
        self.use_list_records = flag("useListRecords", self.use_list_records);
        self.check()
    }

    fn check(&self) -> Result<(), ApiError> {
        let missing = |what: &str| Err(ApiError::bad_request(format!("{what} must be supplied")));
        if self.collection == 0 {
            return missing("dataverseAlias");
        }
        if self.harvest_url.is_empty() {
            return missing("harvestUrl");
        }
        if !FORMATS.contains(&self.metadata_format.as_str()) {
            return Err(ApiError::bad_request(format!(
                "metadataFormat {:?} is not read here; expected one of {}",
                self.metadata_format,
                FORMATS.join(", ")
            )));
        }
        if let Some(header) = &self.custom_headers
            && fetch::header(header).is_none()
        {
            return Err(ApiError::bad_request(
                "Client header name can only contain letters, digits, underscores (_) and dashes (-); the entire \
                 header string must be in the form of \"header-name: header-value\"",
            ));
        }
        Ok(())
    }
}

/// Returns the origin of a URL: `https://demo.dataverse.org` for `https://demo.dataverse.org/oai`.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |it| it + 3);
    url.get(start..).and_then(|rest| rest.find('/')).and_then(|at| url.get(..start + at)).unwrap_or(url)
}

/// Returns the client with that nickname. Errors: 404 if there is none.
pub(crate) fn named(view: &mut View<'_>, name: &str) -> Result<Client, ApiError> {
    let missing = || ApiError::not_found(format!("No such client: {name}"));
    stored::get(view, &CLIENT, name)?.ok_or_else(missing)
}
