//! Attachments as they are stored, and as version 3 of the API shows them.

use serde_json::{Map, Value};

use crate::app::{Asker, Scicat};
use crate::dto::attachment as dto;
use crate::error::ScicatError;
use crate::resource;

/// Fields that a filter may name in addition to those that a create may set.
pub(crate) const SET_BY_SERVER: [&str; 7] =
    ["_id", "id", "createdAt", "updatedAt", "createdBy", "updatedBy", "__v"];

/// Turns an attachment into what v3 shows below `target_id`: with that id instead of the relationships.
pub(crate) fn v3_view(body: &mut Map<String, Value>, target_type: &str, target_id: &str) {
    body.shift_remove("relationships");
    let field = match target_type {
        "dataset" => "datasetId",
        "sample" => "sampleId",
        "proposal" => "proposalId",
        _ => return,
    };
    let end: Vec<(String, Value)> = ["createdBy", "updatedBy", "createdAt", "updatedAt", "__v"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), body.shift_remove(name)?)))
        .collect();
    body.insert(field.to_owned(), target_id.into());
    body.extend(end);
}

/// Returns the id and the stored form of a new attachment.
pub(crate) fn stored(app: &Scicat, asker: &Asker, body: Map<String, Value>) -> (String, Map<String, Value>) {
    let aid = match crate::documents::text(&body, "aid") {
        "" => app.new_uuid(),
        given => given.to_owned(),
    };
    let mut attachment = Map::new();
    for name in ["aid", "_id", "id"] {
        attachment.insert(name.to_owned(), aid.clone().into());
    }
    resource::complete(&mut attachment, body, &dto::V4);
    crate::documents::sign(&mut attachment, &asker.username(), &app.now());
    (aid, attachment)
}

pub(crate) fn taken(aid: &str) -> ScicatError {
    ScicatError::conflict(format!("Attachment with aid {aid} already exists"))
}

/// Keeps only what survives a full replacement of an attachment: its ids, its creator and its creation time.
pub(crate) fn keep_identity(attachment: &mut Map<String, Value>) {
    const KEPT: [&str; 6] = ["aid", "_id", "id", "createdBy", "createdAt", "__v"];
    attachment.retain(|name, _| KEPT.contains(&name.as_str()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn v3_names_the_thing_in_place_of_the_relationships() {
        let Value::Object(mut body) = json!({
            "aid": "a", "caption": "c", "relationships": [{"targetId": "p/1", "targetType": "dataset"}],
            "createdBy": "u", "createdAt": "t", "__v": 0,
        }) else {
            unreachable!("an object")
        };
        v3_view(&mut body, "dataset", "p/1");
        let shown = Value::Object(body).to_string();
        assert_eq!(
            shown,
            r#"{"aid":"a","caption":"c","datasetId":"p/1","createdBy":"u","createdAt":"t","__v":0}"#
        );
    }
}
