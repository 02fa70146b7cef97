//! A record in the editor's form.

use http::StatusCode;
use pinakes_store::View;
use serde_json::Value;

use crate::platform::error::FolioError;
use crate::quick_marc::refused::refused;
use crate::quick_marc::wire;
use crate::source_records::source_storage;

/// Returns the source record of an instance, holdings record or authority in the editor's form.
pub(crate) fn shown(view: &mut View<'_>, external_id: &str) -> Result<Value, FolioError> {
    let found = source_storage::resolve(view, external_id, "EXTERNAL", Some("ACTUAL"))?.ok_or_else(|| {
        let message = format!("The Record with id {external_id} was not found");
        refused(StatusCode::NOT_FOUND, "EXTERNAL_OR_UNDEFINED", message)
    })?;
    wire::shown(view, &found)
}
