//! Job and mapping profiles of exports. The default profiles are part of the initial data of a tenant.

use http::StatusCode;
use pinakes_store::{Column, Index, Kind, Type};
use serde_json::{Map, Value};

use crate::platform::collection::{Collection, Hooks, Kinds, Reference, Schema, Unique};
use crate::platform::cql::Names;
use crate::platform::error::{Fault, FolioError};
use crate::platform::json::text_at;

/// `/data-export/mapping-profiles`.
pub(crate) static MAPPING_PROFILES: Collection = Collection {
    permission: "data-export.mapping-profiles",
    table: "mapping_profiles",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded)],
        indexes: &[Index::unique(&["name"])],
        ..Kind::named("folio_export_mapping_profile")
    },
    schema: Schema {
        required: &["name", "recordTypes", "outputFormat"],
        types: &[("name", Kinds::Text), ("recordTypes", Kinds::List), ("outputFormat", Kinds::Text)],
        defaults: &[("default", "false")],
        lists: &["transformations"],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "name", message: "Mapping profile with name '{value}' already exists." }],
    names: Names { fields: &["description", "userInfo"], ..Names::PLAIN },
    hooks: Hooks {
        prepare: |_, _, body, _| refuse_empty(body),
        stored: |_, _, _, old| keep_default(old, "Editing", "mapping"),
        deleting: |_, _, old| keep_default(Some(old), "Deletion", "mapping"),
        ..Hooks::NONE
    },
    reference_data: include_str!("../../reference/export-mapping-profiles.json"),
    ..Collection::named("/data-export/mapping-profiles", "mappingProfiles", "folio_export_mapping_profile")
};

/// `/data-export/job-profiles`.
pub(crate) static JOB_PROFILES: Collection = Collection {
    permission: "data-export.job-profiles",
    table: "job_profiles",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded), Column::one("mappingProfileId", Type::Text)],
        indexes: &[Index::unique(&["name"])],
        ..Kind::named("folio_export_job_profile")
    },
    schema: Schema {
        required: &["name", "mappingProfileId"],
        types: &[("name", Kinds::Text), ("mappingProfileId", Kinds::Uuid)],
        defaults: &[("default", "false")],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "name", message: "Job profile with name '{value}' already exists." }],
    references: &[Reference { path: "mappingProfileId", to: || &MAPPING_PROFILES }],
    names: Names { fields: &["description", "userInfo"], ..Names::PLAIN },
    hooks: Hooks {
        stored: |_, _, _, old| keep_default(old, "Editing", "job"),
        deleting: |_, _, old| keep_default(Some(old), "Deletion", "job"),
        ..Hooks::NONE
    },
    reference_data: include_str!("../../reference/export-job-profiles.json"),
    ..Collection::named("/data-export/job-profiles", "jobProfiles", "folio_export_job_profile")
};

/// Refuses transformations of holdings and items that have no place for the value.
fn refuse_empty(body: &Map<String, Value>) -> Result<(), FolioError> {
    let text = |line: &Value, name: &str| text_at(line, name).unwrap_or_default().trim().to_owned();
    let lines = body.get("transformations").and_then(Value::as_array).into_iter().flatten();
    let ids: Vec<String> = lines
        .filter(|it| matches!(text(it, "recordType").as_str(), "HOLDINGS" | "ITEM"))
        .filter(|it| text(it, "transformation").is_empty())
        .map(|it| text(it, "fieldId"))
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    let ids = ids.join(",");
    let message =
        format!("Transformations for fields with ids: {ids} cannot be empty. Please provide a value.");
    Err(FolioError::unprocessable(Fault::new(message).with("transformations", ids)))
}

/// Refuses to change the profiles that every tenant has.
fn keep_default(old: Option<&Value>, what: &str, kind: &str) -> Result<(), FolioError> {
    if old.is_some_and(|it| it["default"] == true) {
        let message = format!("{what} of default {kind} profile is forbidden");
        return Err(FolioError::text(StatusCode::FORBIDDEN, message));
    }
    Ok(())
}

/// Returns the default job profile of a record type.
pub(super) fn default_of(record_type: &str) -> &'static str {
    match record_type {
        "HOLDINGS" => "5e9835fc-0e51-44c8-8a47-f7b8fce35da7",
        "AUTHORITY" => "56944b1c-f3f9-475b-bed0-7387c33620ce",
        _ => "6f7f3cd7-9f24-42eb-ae91-91af1cd54d0a",
    }
}
