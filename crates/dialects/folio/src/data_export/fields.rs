//! `/data-export/transformation-fields`: the fields that a mapping profile can add to a MARC record.

use http::StatusCode;
use serde_json::{Value, json};

use crate::platform::app::Call;
use crate::platform::error::Answer;
use crate::platform::values::json_answer;

/// Where fields are: the name in their ids, the path of the records, the record type.
const PLACES: [(&str, &str, &str, &[&str]); 3] = [
    ("instance", "$.instance.", "INSTANCE", &INSTANCE),
    ("holdings", "$.holdings[*].", "HOLDINGS", &HOLDINGS),
    ("item", "$.holdings[*].items[*].", "ITEM", &ITEM),
];

const INSTANCE: [&str; 26] = [
    "administrativeNotes",
    "alternativeTitles[*].alternativeTitle",
    "catalogedDate",
    "classifications[*].classificationNumber",
    "contributors[*].name",
    "editions",
    "electronicAccess[*].uri",
    "hrid",
    "id",
    "identifiers[*].value",
    "indexTitle",
    "instanceFormatIds",
    "instanceTypeId",
    "languages",
    "metadata.createdDate",
    "metadata.updatedDate",
    "modeOfIssuanceId",
    "notes[*].note",
    "physicalDescriptions",
    "publication[*].publisher",
    "publicationFrequency",
    "publicationRange",
    "series[*].value",
    "source",
    "subjects[*].value",
    "title",
];

const HOLDINGS: [&str; 17] = [
    "callNumber",
    "callNumberPrefix",
    "callNumberSuffix",
    "callNumberTypeId",
    "copyNumber",
    "effectiveLocationId",
    "electronicAccess[*].uri",
    "holdingsStatements[*].statement",
    "holdingsTypeId",
    "hrid",
    "id",
    "instanceId",
    "metadata.createdDate",
    "metadata.updatedDate",
    "notes[*].note",
    "permanentLocationId",
    "temporaryLocationId",
];

const ITEM: [&str; 23] = [
    "accessionNumber",
    "barcode",
    "chronology",
    "copyNumber",
    "effectiveCallNumberComponents.callNumber",
    "effectiveCallNumberComponents.prefix",
    "effectiveCallNumberComponents.suffix",
    "effectiveLocationId",
    "effectiveShelvingOrder",
    "electronicAccess[*].uri",
    "enumeration",
    "holdingsRecordId",
    "hrid",
    "id",
    "materialTypeId",
    "metadata.createdDate",
    "metadata.updatedDate",
    "notes[*].note",
    "permanentLoanTypeId",
    "permanentLocationId",
    "status.name",
    "temporaryLoanTypeId",
    "volume",
];

/// What can be exported of a location.
const OF_LOCATION: [&str; 8] = [
    "name",
    "code",
    "library.name",
    "library.code",
    "campus.name",
    "campus.code",
    "institution.name",
    "institution.code",
];

/// Lists the fields.
pub(super) async fn transformation_fields(_: Call) -> Answer {
    let mut fields: Vec<Value> = Vec::new();
    for (name, records, record_type, paths) in PLACES {
        for path in paths {
            // `identifiers[*].value` is the field `instance.identifiers.value`.
            let plain = path.replace("[*]", "");
            let keys = match plain.strip_suffix("LocationId") {
                Some(sort) => {
                    OF_LOCATION.iter().map(|part| format!("{name}.{sort}Location.{part}")).collect()
                }
                None => vec![format!("{name}.{plain}")],
            };
            fields.extend(keys.into_iter().map(|key| {
                json!({
                    "fieldId": key.to_ascii_lowercase(), "path": format!("{records}{path}"),
                    "recordType": record_type, "displayNameKey": key,
                })
            }));
        }
    }
    Ok(json_answer(StatusCode::OK, &json!({"transformationFields": fields, "totalRecords": fields.len()})))
}
