//! Who may see a publication, and who may change it.

use pinakes_accounts::Caller;
use pinakes_store::{Expr, Record, Value as Condition};
use serde_json::{Map, Value};

use crate::app::Asker;
use crate::datasets::forms::Api;
use crate::documents::object;
use crate::error::ScicatError;
use crate::kinds::PUBLISHED_DATA;
use crate::listing;
use crate::published_data::status;
use crate::rights::Rights;
use crate::settings::Settings;

/// Refuses anonymous callers: v4 asks them to log in with 401, v3 answers 403.
pub(crate) fn require_user(asker: &Asker, api: Api) -> Result<(), ScicatError> {
    match api {
        Api::V4 => asker.require_user(),
        Api::V3 => asker.forbid_anonymous(),
    }
}

/// Returns the statuses in which other users' publications are visible: in v3, anonymous callers see registered
/// ones; everyone else sees all that are no longer private.
pub(crate) fn statuses_of_others(caller: &Caller, api: Api) -> &'static [&'static str] {
    match api {
        Api::V3 if caller.is_anonymous() => &[status::REGISTERED, status::AMENDED],
        _ => &[status::PUBLIC, status::REGISTERED, status::AMENDED],
    }
}

/// Returns the condition on the publications that the caller may see; [`is_visible`] decides the same for one.
pub(crate) fn visible(asker: &Asker, api: Api) -> Expr {
    if asker.rights.is_admin {
        return Expr::All;
    }
    let statuses = statuses_of_others(asker.caller(), api).iter().map(|it| Condition::Text((*it).to_owned()));
    let of_others = Expr::In("status".into(), statuses.collect());
    match asker.caller().username() {
        Some(name) => {
            Expr::Or(vec![Expr::Is("createdBy".into(), Condition::Text(name.to_owned())), of_others])
        }
        None => of_others,
    }
}

pub(crate) fn is_visible(rights: &Rights, publication: &Map<String, Value>, api: Api) -> bool {
    rights.is_admin
        || is_own(rights, publication)
        || statuses_of_others(rights.caller(), api).contains(&crate::documents::text(publication, "status"))
}

pub(crate) fn is_own(rights: &Rights, publication: &Map<String, Value>) -> bool {
    rights.caller().username().is_some_and(|name| name == crate::documents::text(publication, "createdBy"))
}

pub(crate) fn absent(id: &str) -> ScicatError {
    ScicatError::not_found(format!("No PublishedData with the id '{id}' exists"))
}

/// Returns a publication that the caller may see.
pub(crate) async fn readable(asker: &Asker, id: &str, api: Api) -> Result<Record, ScicatError> {
    let record = listing::get(asker, &PUBLISHED_DATA, id).await?.ok_or_else(|| absent(id))?;
    if is_visible(&asker.rights, &object(&record)?, api) { Ok(record) } else { Err(absent(id)) }
}

/// Checks that the caller may change a publication: its creator and admins may.
///
/// Errors: 404 if the caller may not even see it, else 403.
pub(crate) fn require_editor(
    rights: &Rights,
    publication: &Map<String, Value>,
    api: Api,
) -> Result<(), ScicatError> {
    if rights.is_admin || is_own(rights, publication) {
        return Ok(());
    }
    if is_visible(rights, publication, api) {
        Err(ScicatError::forbidden("Unauthorized to update this published data"))
    } else {
        Err(absent(crate::documents::text(publication, "doi")))
    }
}

/// Returns the site's metadata schema; without one every value is valid.
pub(crate) fn metadata_schema(settings: &Settings) -> Value {
    let config: Value = serde_json::from_str(&settings.published_data_config).unwrap_or_default();
    config.get("metadataSchema").cloned().unwrap_or(Value::Bool(true))
}
