//! Settings of a search: languages and features (mod-search).
//!
//! They are kept and shown. Texts are searched in the same way in every language, and no feature is missing.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Kind, Query, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::refusals::invalid;
use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

/// Languages of a tenant: `{id, code}`, beside the one that it begins with.
pub(crate) static LANGUAGE: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_search_language") };
/// Features of a tenant, by name: `{id, feature, enabled}`.
pub(crate) static FEATURE: Kind = Kind { id_path: Some("feature"), ..Kind::named("folio_search_feature") };

/// Languages that mod-search has.
const LANGUAGES: [&str; 13] =
    ["ara", "chi", "eng", "fre", "ger", "heb", "ita", "jpn", "kor", "por", "rus", "spa", "swe"];
/// The language that a tenant begins with.
const FIRST: (&str, &str) = ("4d7e3c2e-0c5b-4a55-9f0e-1d0f7c6f3a10", "eng");
/// Maximum number of languages of a tenant.
const MOST_LANGUAGES: usize = 5;

/// Features that mod-search has.
const FEATURES: [&str; 6] = [
    "search.all.fields",
    "browse.cn.intermediate.values",
    "browse.cn.intermediate.remove.duplicates",
    "browse.contributors",
    "browse.subjects",
    "browse.classifications",
];

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let (languages, language) = ("/search/config/languages", "/search/config/languages/{id}");
    let (features, feature) = ("/search/config/features", "/search/config/features/{feature}");
    routes
        .get(languages, to("search.config.languages.collection.get"), list_languages)
        .post(languages, to("search.config.languages.item.post"), add_language)
        .put(language, to("search.config.languages.item.put"), change_language)
        .delete(language, to("search.config.languages.item.delete"), remove_language)
        .get(features, to("search.config.features.collection.get"), list_features)
        .post(features, to("search.config.features.item.post"), add_feature)
        .put(feature, to("search.config.features.item.put"), change_feature)
        .delete(feature, to("search.config.features.item.delete"), remove_feature)
}

fn missing(message: String) -> FolioError {
    let fault = Fault::new(message).ty("EntityNotFoundException").code("not_found_error");
    FolioError::faults(StatusCode::NOT_FOUND, vec![fault])
}

fn text<'b>(body: &'b Map<String, Value>, name: &str) -> &'b str {
    body.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns all records of a kind.
fn all(view: &mut View<'_>, kind: &'static Kind) -> Result<Vec<Value>, FolioError> {
    let found = view.find(kind, &Query::filter(Expr::All))?;
    Ok(found.iter().map(pinakes_store::Record::json).collect::<Result<_, _>>()?)
}

/// Returns the languages of a tenant. As long as it has changed none, there is one.
fn languages(view: &mut View<'_>) -> Result<Vec<Value>, FolioError> {
    let kept = all(view, &LANGUAGE)?;
    let is_changed = kept.iter().any(|it| it["id"] == FIRST.0);
    let first = (!is_changed).then(|| json!({"id": FIRST.0, "code": FIRST.1}));
    Ok(first.into_iter().chain(kept).filter(|it| it["isRemoved"] != true).collect())
}

async fn list_languages(call: Call) -> Answer {
    let found = call.db().read(Weight::Point, languages).await?;
    Ok(json_answer(StatusCode::OK, &json!({"languageConfigs": found, "totalRecords": found.len()})))
}

/// Returns the language of a body: its code must be known.
fn language_of(body: &Map<String, Value>, id: &str) -> Result<Value, FolioError> {
    let code = text(body, "code");
    if !LANGUAGES.contains(&code) {
        return Err(invalid("Language has no analyzer available", "code", code));
    }
    let mut language = json!({"id": id, "code": code});
    if let Some(analyzer) = body.get("languageAnalyzer").filter(|it| it.is_string()) {
        language["languageAnalyzer"] = analyzer.clone();
    }
    Ok(language)
}

async fn add_language(mut call: Call) -> Answer {
    let body = call.object().await?;
    let given = parse_uuid(text(&body, "id"));
    let id = given.unwrap_or_else(|| call.app.new_uuid());
    let language = language_of(&body, &id)?;
    let stored = language.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let kept = languages(txn)?;
        let code = stored["code"].as_str().unwrap_or_default();
        if kept.iter().any(|it| it["code"] == code) {
            return Err(invalid("Language config already exists", "code", code));
        }
        if MOST_LANGUAGES <= kept.len() {
            let message = format!("Tenant is allowed to have only {MOST_LANGUAGES} languages configured");
            return Err(invalid(message, "code", code));
        }
        txn.put(&LANGUAGE, &id, &stored)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &language))
}

async fn change_language(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    if !text(&body, "id").is_empty() && text(&body, "id") != id {
        return Err(invalid("Id in the body is not that of the path", "id", text(&body, "id")));
    }
    let language = language_of(&body, &id)?;
    let stored = language.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        require_language(txn, &id)?;
        txn.put(&LANGUAGE, &id, &stored)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &language))
}

fn require_language(view: &mut View<'_>, id: &str) -> Result<(), FolioError> {
    let is_there = languages(view)?.iter().any(|it| it["id"] == id);
    if is_there { Ok(()) } else { Err(missing(format!("Language config not found for id: {id}"))) }
}

async fn remove_language(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        require_language(txn, &id)?;
        if id == FIRST.0 {
            txn.put(&LANGUAGE, &id, &json!({"id": id, "code": FIRST.1, "isRemoved": true}))?;
        } else {
            txn.delete(&LANGUAGE, &id)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn list_features(call: Call) -> Answer {
    let found = call.db().read(Weight::Point, |view: &mut View<'_>| all(view, &FEATURE)).await?;
    Ok(json_answer(StatusCode::OK, &json!({"features": found, "totalRecords": found.len()})))
}

/// Returns the name of a feature. Errors: 400 for an unknown one.
fn known_feature(name: &str) -> Result<String, FolioError> {
    if FEATURES.contains(&name) {
        return Ok(name.to_owned());
    }
    let message = format!("Unexpected value '{name}', expected one of {}", FEATURES.join(", "));
    Err(invalid(message, "feature", name))
}

fn feature_of(body: &Map<String, Value>, name: &str, id: &str) -> Result<Value, FolioError> {
    match body.get("enabled").and_then(Value::as_bool) {
        Some(enabled) => Ok(json!({"id": id, "feature": name, "enabled": enabled})),
        None => Err(invalid("must not be null", "enabled", "null")),
    }
}

async fn add_feature(mut call: Call) -> Answer {
    let body = call.object().await?;
    let name = known_feature(text(&body, "feature"))?;
    let feature = feature_of(&body, &name, &call.app.new_uuid())?;
    let stored = feature.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if txn.get(&FEATURE, &name)?.is_some() {
            return Err(invalid("Feature configuration already exists", "feature", &name));
        }
        txn.put(&FEATURE, &name, &stored)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &feature))
}

fn stored_feature(view: &mut View<'_>, name: &str) -> Result<Value, FolioError> {
    let absent = || missing(format!("Feature configuration not found for id: {name}"));
    Ok(view.get(&FEATURE, name)?.ok_or_else(absent)?.json()?)
}

async fn change_feature(mut call: Call) -> Answer {
    let name = known_feature(call.param("feature"))?;
    let body = call.object().await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let old = stored_feature(txn, &name)?;
        let feature = feature_of(&body, &name, old["id"].as_str().unwrap_or_default())?;
        txn.put(&FEATURE, &name, &feature)?;
        Ok(feature)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

async fn remove_feature(call: Call) -> Answer {
    let name = known_feature(call.param("feature"))?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        stored_feature(txn, &name)?;
        txn.delete(&FEATURE, &name)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
