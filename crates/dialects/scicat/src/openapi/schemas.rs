//! The schemas of bodies, built from the tables that check them, and those of answers, read from `answers.txt`.

use serde_json::{Map, Value, json};

use crate::dto;
use crate::validate::{Dto, Field, Form, Nested, Presence, Rule};

/// The fields of answers; the first lines of the file describe its syntax.
const ANSWERS: &str = include_str!("answers.txt");

/// Schemas of bodies by the original's names. Names that begin with `Partial` are bodies of a `PATCH`, names that
/// begin with `Update` are bodies of a `PUT`.
static BODIES: [(&str, &Dto); 51] = [
    ("CreateRawDatasetObsoleteDto", &dto::dataset::RAW),
    ("CreateDerivedDatasetObsoleteDto", &dto::dataset::DERIVED),
    ("CreateDatasetDto", &dto::dataset::OTHER),
    ("UpdateRawDatasetObsoleteDto", &dto::dataset::RAW),
    ("UpdateDerivedDatasetObsoleteDto", &dto::dataset::DERIVED),
    ("UpdateDatasetDto", &dto::dataset::OTHER),
    ("PartialUpdateRawDatasetObsoleteDto", &dto::dataset::RAW),
    ("PartialUpdateDerivedDatasetObsoleteDto", &dto::dataset::DERIVED),
    ("PartialUpdateDatasetDto", &dto::dataset::OTHER),
    ("TechniqueClass", &dto::dataset::TECHNIQUE),
    ("CreateRelationshipDto", &dto::dataset::RELATIONSHIP),
    ("LifecycleClass", &dto::lifecycle::LIFECYCLE),
    ("UpdateDatasetLifecycleDto", &dto::lifecycle::LIFECYCLE),
    ("PartialUpdateDatasetLifecycleDto", &dto::lifecycle::LIFECYCLE),
    ("DataFile", &dto::origdatablock::DATA_FILE),
    ("CreateOrigDatablockDto", &dto::origdatablock::ORIG_DATABLOCK),
    ("CreateDatasetOrigDatablockDto", &dto::origdatablock::ORIG_DATABLOCK_OF_DATASET),
    ("UpdateOrigDatablockDto", &dto::origdatablock::ORIG_DATABLOCK),
    ("PartialUpdateOrigDatablockDto", &dto::origdatablock::ORIG_DATABLOCK),
    ("CreateDatablockDto", &dto::datablock::DATABLOCK),
    ("CreateDatasetDatablockDto", &dto::datablock::DATABLOCK_OF_DATASET),
    ("PartialUpdateDatablockDto", &dto::datablock::DATABLOCK),
    ("AttachmentRelationshipsV4Dto", &dto::attachment::RELATIONSHIP),
    ("CreateAttachmentV4Dto", &dto::attachment::V4),
    ("UpdateAttachmentV4Dto", &dto::attachment::V4),
    ("PartialUpdateAttachmentV4Dto", &dto::attachment::V4),
    ("CreateAttachmentV3Dto", &dto::attachment::V3),
    ("CreateSubAttachmentV3Dto", &dto::attachment::V3),
    ("UpdateAttachmentV3Dto", &dto::attachment::V3),
    ("PartialUpdateAttachmentV3Dto", &dto::attachment::V3),
    ("CreateMeasurementPeriodDto", &dto::proposal::MEASUREMENT_PERIOD),
    ("CreateProposalDto", &dto::proposal::PROPOSAL),
    ("PartialUpdateProposalDto", &dto::proposal::PROPOSAL),
    ("CreateSampleDto", &dto::sample::SAMPLE),
    ("PartialUpdateSampleDto", &dto::sample::SAMPLE),
    ("CreateInstrumentDto", &dto::instrument::INSTRUMENT),
    ("PartialUpdateInstrumentDto", &dto::instrument::INSTRUMENT),
    ("CreatePolicyDto", &dto::policy::POLICY),
    ("PartialUpdatePolicyDto", &dto::policy::POLICY),
    ("UpdatePolicyDto", &dto::policy::POLICY),
    ("DatasetListDto", &dto::job::JOB_DATASET),
    ("CreateJobDtoV3", &dto::job::V3_CREATE),
    ("UpdateJobDtoV3", &dto::job::V3_UPDATE),
    ("CreateJobDto", &dto::job::V4_CREATE),
    ("UpdateJobDto", &dto::job::V4_UPDATE),
    ("CreatePublishedDataDto", &dto::published_data::V3),
    ("UpdatePublishedDataDto", &dto::published_data::V3),
    ("PartialUpdatePublishedDataDto", &dto::published_data::V3),
    ("CreatePublishedDataV4Dto", &dto::published_data::V4),
    ("PartialUpdatePublishedDataV4Dto", &dto::published_data::V4),
    ("CreateUserSettingsDto", &dto::user_settings::USER_SETTINGS),
];

/// Bodies that their handlers check in code.
static BY_HAND: [(&str, &Dto); 6] = [
    ("PartialUpdateUserSettingsDto", &dto::user_settings::USER_SETTINGS),
    ("CredentialsDto", &dto::account::LOGIN),
    ("UpdateUserPasswordDto", &dto::account::OWN_PASSWORD),
    ("AdminUpdateUserPasswordDto", &dto::account::NEW_PASSWORD),
    ("IdTokenDto", &dto::account::ID_TOKEN),
    ("CreateCustomJwt", &dto::account::TOKEN_LIFE),
];

/// Returns all schemas of the document, by name.
pub(super) fn all() -> Map<String, Value> {
    let tables = BODIES.iter().chain(&BY_HAND).map(|(name, dto)| ((*name).to_owned(), body(name, dto)));
    let policies = json!({
        "type": "object", "required": ["ownerGroupList", "data"],
        "properties": {"ownerGroupList": {"type": "string"}, "data": reference("UpdatePolicyDto")},
    });
    let entries = answers();
    let shown = entries.iter().filter(|it| it.0.starts_with(char::is_uppercase));
    tables
        .chain([("UpdateWherePolicyDto".to_owned(), policies)])
        .chain(shown.map(|(name, _)| ((*name).to_owned(), answer(name, &entries))))
        .collect()
}

/// Returns the schema of a type as `operations.txt` and `answers.txt` write it: `date`, `Policy[]`, `A|B` for one
/// of several.
pub(super) fn of(written: &str) -> Value {
    if let Some(inner) = written.strip_suffix("[]") {
        return json!({"type": "array", "items": of(inner)});
    }
    if written.contains('|') {
        return json!({"anyOf": written.split('|').map(of).collect::<Vec<_>>()});
    }
    match written {
        "any" => json!({}),
        "map" => json!({"type": "object", "additionalProperties": {}}),
        "date" => json!({"type": "string", "format": "date-time"}),
        "string" | "number" | "integer" | "boolean" | "object" => json!({"type": written}),
        name => reference(name),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

type Entries = Vec<(&'static str, Vec<&'static str>)>;

/// Returns each entry's name and the words of its fields.
fn answers() -> Entries {
    let mut entries = Entries::new();
    for line in ANSWERS.lines().filter(|it| !it.starts_with('#')) {
        match (line.strip_prefix("  "), entries.last_mut()) {
            (Some(fields), Some((_, words))) => words.extend(fields.split_whitespace()),
            _ => entries.push((line, Vec::new())),
        }
    }
    entries
}

fn answer(name: &str, entries: &Entries) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (field, ty, may_lack) in fields(name, entries, false) {
        properties.insert(field.to_owned(), of(ty));
        if !may_lack {
            required.push(field);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns the name and type of each field of an entry, and whether it is optional.
fn fields(name: &str, entries: &Entries, all_may_lack: bool) -> Vec<(&'static str, &'static str, bool)> {
    let words = entries.iter().find(|it| it.0 == name).map_or(&[][..], |it| &it.1);
    let mut list = Vec::new();
    for word in words {
        if let Some(taken) = word.strip_prefix('+') {
            let other = taken.trim_end_matches('?');
            list.extend(fields(other, entries, all_may_lack || other != taken));
            continue;
        }
        let (field, ty) = word.split_once(':').unwrap_or((word, "string"));
        let name = field.trim_end_matches('?');
        list.push((name, ty, all_may_lack || name != field));
    }
    list
}

fn body(name: &str, dto: &Dto) -> Value {
    let form = match name {
        // The bodies of `resync` and `updateWhere` are changes in spite of their names.
        "UpdatePublishedDataDto" | "UpdatePolicyDto" => Form::Update,
        _ if name.starts_with("Partial") => Form::Update,
        _ if name.starts_with("Update") => Form::Replace,
        _ => Form::Create,
    };
    let known = || dto.fields.iter().filter(|it| it.is_known_to(form));
    let properties: Map<String, Value> = known().map(|it| (it.name.to_owned(), property(it))).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    let required: Vec<&str> =
        known().filter(|it| it.presence == Presence::Required).map(|it| it.name).collect();
    if !required.is_empty() && form != Form::Update {
        schema["required"] = json!(required);
    }
    schema
}

fn property(field: &Field) -> Value {
    match field.nested {
        Some(Nested::Each(dto)) => return json!({"type": "array", "items": nested(dto)}),
        Some(Nested::One(dto)) => return nested(dto),
        None if field.name == "datasetlifecycle" => return reference("LifecycleClass"),
        None => {}
    }
    field.rules.iter().find_map(|it| type_of(*it)).unwrap_or_else(|| json!({}))
}

/// Returns the schema of a nested object, as a reference by name if it has one.
fn nested(dto: &'static Dto) -> Value {
    let named = BODIES.iter().find(|(_, it)| std::ptr::eq(*it, dto));
    named.map_or_else(|| body("", dto), |(name, _)| reference(name))
}

/// Returns what a rule says about a value's type; `None` if it says something else.
fn type_of(rule: Rule) -> Option<Value> {
    Some(match rule {
        Rule::Text | Rule::EmailList => json!({"type": "string"}),
        Rule::EachText => json!({"type": "array", "items": {"type": "string"}}),
        Rule::Integer => json!({"type": "integer"}),
        Rule::Number => json!({"type": "number"}),
        Rule::Boolean => json!({"type": "boolean"}),
        Rule::Date => json!({"type": "string", "format": "date-time"}),
        Rule::Email => json!({"type": "string", "format": "email"}),
        Rule::Url | Rule::UrlOfAnyProtocol => json!({"type": "string", "format": "uri"}),
        Rule::Object => json!({"type": "object"}),
        Rule::List => json!({"type": "array", "items": {}}),
        Rule::Enum(choices) | Rule::OneOf(choices) => json!({"type": "string", "enum": choices}),
        Rule::NotEmpty | Rule::ListNotEmpty | Rule::NotNegative | Rule::Countable => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_a_type_is_a_schema() {
        let schemas = Value::Object(all());
        let text = schemas.to_string();
        let n_references = text.matches("\"#/components/schemas/").count();
        assert!(50 < n_references, "{n_references}");
        for (at, _) in text.match_indices("\"#/components/schemas/") {
            let name = text[at..].split(['/', '"']).nth(4).unwrap_or_default();
            assert!(schemas.get(name).is_some(), "{name:?} is no schema");
        }
    }

    #[test]
    fn answers_take_fields_of_others() {
        let entries = answers();
        let whole = answer("OutputDatasetDto", &entries);
        let part = answer("PartialOutputDatasetDto", &entries);
        assert_eq!(whole["properties"], part["properties"]);
        assert!(whole["required"].as_array().is_some_and(|it| it.contains(&json!("createdAt"))));
        assert_eq!(part.get("required"), None);
    }
}
