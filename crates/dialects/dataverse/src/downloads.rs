//! Guestbooks for downloads: who must sign one, and what is recorded.

use pinakes_store::{Expr, Query, Txn, View};
use serde_json::{Map, Value, json};

use crate::asker::Asker;
use crate::datasets::{self, Dataset};
use crate::error::ApiError;
use crate::files::DataFile;
use crate::grants::Permission;
use crate::guestbooks::{self, Entry, Guestbook};
use crate::{permissions, stored};

/// Returns the guestbook that a caller must sign before downloading files of a dataset; `None` for callers who may edit
/// it.
pub(crate) fn demanded(
    view: &mut View<'_>,
    dataset: &Dataset,
    asker: &Asker,
) -> Result<Option<i64>, ApiError> {
    let Some(id) = dataset.guestbook.filter(|_| dataset.was_released()) else { return Ok(None) };
    if guestbooks::by_id(view, id)?.is_none_or(|it| !it.enabled) {
        return Ok(None);
    }
    let is_editor = permissions::may(view, asker, dataset.place(), Permission::EditDataset)?;
    Ok((!is_editor).then_some(id))
}

/// Returns whether a user signed a guestbook when requesting access to a file.
pub(crate) fn was_answered_at_request(
    view: &mut View<'_>,
    guestbook: i64,
    asker: &Asker,
    file: i64,
) -> Result<bool, ApiError> {
    let Some(user) = &asker.user else { return Ok(false) };
    let filter = Expr::Is("file".into(), file.into()).and(Expr::Is("user".into(), user.id.into()));
    let entries: Vec<Entry> = stored::find(view, &guestbooks::ENTRY, &Query::filter(filter))?;
    Ok(entries.iter().any(|it| it.is_request && it.guestbook == Some(guestbook)))
}

fn entry(
    dataset: &Dataset,
    now: &str,
    asker: &Asker,
    file: &DataFile,
    response: Map<String, Value>,
) -> Entry {
    Entry {
        guestbook: dataset.guestbook,
        user: asker.user.as_ref().map(|it| it.id),
        dataset: dataset.id,
        file: file.id,
        time: now.to_owned(),
        is_request: false,
        response,
    }
}

/// Records a download of a file.
pub(crate) fn note(
    txn: &mut Txn<'_>,
    id: i64,
    now: &str,
    asker: &Asker,
    file: &DataFile,
) -> Result<(), ApiError> {
    let Some(dataset) = datasets::by_id(txn, file.dataset)? else { return Ok(()) };
    guestbooks::record(txn, id, &entry(&dataset, now, asker, file, Map::new()))
}

/// The occasion of signing a guestbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A file is downloaded.
    Download,
    /// Access to a file is requested.
    Request,
}

/// Records a caller's guestbook entry; values that it lacks are taken from the caller's account.
///
/// Errors: 400 if the guestbook requires more, or an answer is not one of its options.
pub(crate) fn sign(
    txn: &mut Txn<'_>,
    id: i64,
    now: &str,
    asker: &Asker,
    file: &DataFile,
    (occasion, given): (Occasion, &Value),
) -> Result<(), ApiError> {
    let Some(dataset) = datasets::by_id(txn, file.dataset)? else { return Ok(()) };
    let Some(guestbook) = dataset.guestbook.map(|id| guestbooks::by_id(txn, id)).transpose()?.flatten()
    else {
        return Ok(());
    };
    let response = checked(&guestbook, asker, given)?;
    let is_request = occasion == Occasion::Request;
    guestbooks::record(txn, id, &Entry { is_request, ..entry(&dataset, now, asker, file, response) })
}

fn checked(guestbook: &Guestbook, asker: &Asker, given: &Value) -> Result<Map<String, Value>, ApiError> {
    let user = asker.user.as_deref();
    let said = |name: &str, own: Option<String>| {
        let text = given[name].as_str().map(str::to_owned).filter(|it| !it.trim().is_empty());
        text.or(own).unwrap_or_default()
    };
    let fields = [
        ("name", "Name", said("name", user.map(|it| it.display_name())), guestbook.name_required),
        ("email", "Email", said("email", user.map(|it| it.email.clone())), guestbook.email_required),
        (
            "institution",
            "Institution",
            said("institution", user.and_then(|it| it.affiliation.clone())),
            guestbook.institution_required,
        ),
        (
            "position",
            "Position",
            said("position", user.and_then(|it| it.position.clone())),
            guestbook.position_required,
        ),
    ];
    let mut missing: Vec<&str> = fields.iter().filter(|it| it.3 && it.2.is_empty()).map(|it| it.1).collect();
    let empty = Vec::new();
    let given_answers = given["answers"].as_array().unwrap_or(&empty);
    for answer in given_answers {
        let is_known = guestbook.custom_questions.iter().any(|it| it["id"] == answer["id"]);
        if !is_known {
            return Err(ApiError::bad_request(format!(
                "Guestbook Custom Question ID {} not found.",
                answer["id"]
            )));
        }
    }
    let mut answers = Vec::new();
    for question in &guestbook.custom_questions {
        let text = question["question"].as_str().unwrap_or_default();
        let answer = given_answers.iter().find(|it| it["id"] == question["id"]).map(|it| &it["value"]);
        let values: Vec<&str> = match answer {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(text)) => vec![text.as_str()],
            _ => Vec::new(),
        };
        let value = values.join("\n");
        if value.trim().is_empty() {
            if question["required"] == true && question["hidden"] != true {
                missing.push(text);
            }
            continue;
        }
        let options = question["optionValues"].as_array();
        let is_option = options.is_none_or(|list| {
            list.iter().any(|it| {
                it == &value || it["value"] == value.as_str() || it["optionValue"] == value.as_str()
            })
        });
        if !is_option {
            return Err(ApiError::bad_request(format!(
                "Guestbook Custom Question Answer not a valid option ({value})."
            )));
        }
        answers.push(json!({"id": question["id"], "question": text, "value": value}));
    }
    if !missing.is_empty() {
        return Err(ApiError::bad_request(format!(
            "Guestbook Response entry is required but not present ({}).",
            missing.join(",")
        )));
    }
    let mut response: Map<String, Value> =
        fields.into_iter().map(|(name, _, value, _)| (name.to_owned(), value.into())).collect();
    response.insert("answers".to_owned(), answers.into());
    Ok(response)
}
