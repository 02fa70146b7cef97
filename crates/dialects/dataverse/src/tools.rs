//! External tools: external programs that explore, preview or configure files and datasets, and the URLs that launch
//! them.
//! `/api/admin/externalTools`, `/api/externalTools`, `…/externalTool/{tool}/toolUrl`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinakes_store::{Expr, Kind, Query, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::datasets::wanted::Wanted;
use crate::datasets::{Dataset, Version, version};
use crate::error::{Answer, ApiError};
use crate::files::kinds::AUXILIARY;
use crate::files::{self, Found};
use crate::routing::Routes;
use crate::{envelope, ids, permissions, signing, stored};

/// Tools by number: body is the posted manifest, with `id`.
pub(crate) static TOOL: Kind = Kind::named("dataverse_external_tool");

/// Tools have a number sequence of their own.
const NUMBERS: &str = "externalTools";
/// Maximum number of tools of an installation.
const TOOLS: usize = 200;
/// Validity of a tool's signed URL, in minutes.
const MINUTES: i64 = 60;
/// Placeholders for values in a manifest.
const RESERVED: [&str; 9] = [
    "{fileId}",
    "{filePid}",
    "{siteUrl}",
    "{apiToken}",
    "{datasetId}",
    "{datasetPid}",
    "{datasetVersion}",
    "{fileMetadataId}",
    "{localeCode}",
];

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/externalTools", list)
        .post("/admin/externalTools", add)
        .get("/admin/externalTools/{tool}", show)
        .delete("/admin/externalTools/{tool}", remove)
        .get("/externalTools", list)
        .post("/externalTools", add_as_superuser)
        .get("/externalTools/{tool}", show)
        .delete("/externalTools/{tool}", remove_as_superuser)
        .post("/files/{id}/externalTool/{tool}/toolUrl", file_url)
        .post("/datasets/{id}/externalTool/{tool}/toolUrl", dataset_url)
        .get("/files/{id}/metadata/{row}/toolparams/{tool}", file_parameters)
        .get("/datasets/{id}/versions/{version}/toolparams/{tool}", dataset_parameters)
}

/// Returns a checked manifest.
///
/// Errors: 400 for missing, unknown or incomplete parts.
fn manifest(body: &Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    let bad = |text: String| ApiError::bad_request(text);
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let required = |name: &str| {
        text(name).ok_or_else(|| bad(format!("Required attribute '{name}' is missing or not a text.")))
    };
    let types: Vec<&str> = match body.get("types").and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => vec![required("type")?],
    };
    if types.is_empty() {
        return Err(bad("Required attribute 'types' is empty.".to_owned()));
    }
    for ty in &types {
        if !["explore", "configure", "preview", "query"].contains(ty) {
            return Err(bad(format!(
                "Type must be one of these values: [explore, configure, preview, query] but was {ty}."
            )));
        }
    }
    let scope = required("scope")?;
    let parameters = body.get("toolParameters").and_then(Value::as_object);
    let parameters =
        parameters.ok_or_else(|| bad("Required attribute 'toolParameters' is missing.".to_owned()))?;
    let words: Vec<&str> = parameters
        .get("queryParameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(|it| it.values())
        .filter_map(Value::as_str)
        .collect();
    if let Some(unknown) = words.iter().find(|it| !RESERVED.contains(it)) {
        return Err(bad(format!("Unknown reserved word: {unknown}")));
    }
    let one_of = match scope {
        "file" => ["{fileId}", "{filePid}"],
        "dataset" => ["{datasetId}", "{datasetPid}"],
        other => {
            return Err(bad(format!("Scope must be one of these values: [file, dataset] but was {other}.")));
        }
    };
    let has_calls = body.get("allowedApiCalls").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    if !has_calls && !words.iter().any(|it| one_of.contains(it)) {
        return Err(bad(format!("One of the following reserved words is required: {}.", one_of.join(", "))));
    }
    let mut kept = Map::new();
    kept.insert("displayName".into(), required("displayName")?.into());
    kept.insert("description".into(), required("description")?.into());
    kept.insert("types".into(), types.into());
    kept.insert("scope".into(), scope.into());
    if scope == "file" {
        kept.insert("contentType".into(), text("contentType").unwrap_or("text/tab-separated-values").into());
    }
    let url = required("toolUrl")?;
    let is_plain = ["http://", "https://", "/"].iter().any(|it| url.starts_with(it));
    if !is_plain {
        return Err(bad(format!(
            "toolUrl is {url:?}; expected an http or https URL, or a path of this site."
        )));
    }
    kept.insert("toolUrl".into(), url.into());
    for name in ["toolName", "toolParameters", "allowedApiCalls", "requirements"] {
        if let Some(value) = body.get(name).filter(|it| !it.is_null()) {
            kept.insert(name.into(), value.clone());
        }
    }
    Ok(kept)
}

async fn add_as_superuser(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    add(call).await
}

async fn add(mut call: Call) -> Answer {
    let body = call.object().await?;
    let kept = manifest(&body)?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        if TOOLS as u64 <= txn.count(&TOOL, &Expr::All)? {
            return Err(ApiError::bad_request(format!(
                "There are {TOOLS} tools already, the most that are kept."
            )));
        }
        let id = ids::next_of(txn, NUMBERS)?;
        let mut tool = Map::new();
        tool.insert("id".into(), id.into());
        tool.extend(kept.clone());
        txn.insert(&TOOL, &id.to_string(), &Value::Object(tool.clone()))?;
        Ok(tool.into())
    };
    envelope::ok(call.db().write(write).await?)
}

async fn list(call: Call) -> Answer {
    let read = |view: &mut View<'_>| stored::find::<Value>(view, &TOOL, &Query::filter(Expr::All));
    envelope::ok(call.db().read(Weight::Scan, read).await?)
}

fn named(view: &mut View<'_>, id: &str) -> Result<Value, ApiError> {
    let found: Option<Value> = stored::get(view, &TOOL, id)?;
    found.ok_or_else(|| ApiError::not_found(format!("Could not find external tool with id of {id}")))
}

async fn show(call: Call) -> Answer {
    let id = call.param("tool").to_owned();
    envelope::ok(call.db().read(Weight::Point, move |view| named(view, &id)).await?)
}

async fn remove_as_superuser(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    remove(call).await
}

async fn remove(call: Call) -> Answer {
    let id = call.param("tool").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        named(txn, &id)?;
        txn.delete(&TOOL, &id)?;
        Ok(format!("Deleted external tool with id of {id}"))
    };
    envelope::message(call.db().write(write).await?)
}

/// Values of the placeholders.
struct Values {
    site_url: String,
    token: Option<String>,
    locale: Option<String>,
    dataset: Dataset,
    version: Version,
    /// The file, with the number of its row in the version.
    file: Option<(Found, i64)>,
}

impl Values {
    fn of(&self, word: &str) -> Option<Value> {
        let file = self.file.as_ref();
        Some(match word {
            "{fileId}" => file?.0.file.id.into(),
            "{filePid}" => file?.0.file.pid.clone()?.into(),
            "{fileMetadataId}" => file?.1.into(),
            "{siteUrl}" => self.site_url.as_str().into(),
            "{apiToken}" => self.token.clone()?.into(),
            "{datasetId}" => self.dataset.id.into(),
            "{datasetPid}" => self.dataset.pid.as_str().into(),
            "{datasetVersion}" => self.number().into(),
            "{localeCode}" => self.locale.clone()?.into(),
            other => other.into(),
        })
    }

    fn number(&self) -> String {
        match (self.version.number, self.version.minor) {
            (Some(number), Some(minor)) => format!("{number}.{minor}"),
            _ => ":draft".to_owned(),
        }
    }

    /// Returns the parameters of a manifest with their values; leaves out those without a value.
    fn parameters(&self, tool: &Value) -> Vec<(String, Value)> {
        let list = tool["toolParameters"]["queryParameters"].as_array().into_iter().flatten();
        let pairs = list.filter_map(Value::as_object).flat_map(Map::iter);
        pairs.filter_map(|(name, word)| Some((name.clone(), self.of(word.as_str()?)?))).collect()
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the file of a path, after checking that the caller may see it, with its dataset and version.
async fn values_of_file(call: &Call, locale: Option<String>) -> Result<(Value, Values), ApiError> {
    let (wanted, asker, tool) = (files::Wanted::of(call)?, call.asker.clone(), call.param("tool").to_owned());
    let (site_url, token) = (call.site_url(), call.asker.token.clone());
    let read = move |view: &mut View<'_>| {
        let tool = named(view, &tool)?;
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        if !found.may_see(view, &asker)? {
            return Err(permissions::refusal(&asker));
        }
        if tool["scope"] != "file" {
            return Err(ApiError::bad_request("External tool does not have file scope."));
        }
        let (expected, ty) = (tool["contentType"].as_str().unwrap_or_default(), &found.file.content_type);
        if expected != ty {
            return Err(ApiError::bad_request(format!(
                "External tool content type ({expected}) does not match file content type ({ty})."
            )));
        }
        let required = tool["requirements"]["auxFilesExist"].as_array().cloned().unwrap_or_default();
        for it in &required {
            let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            let id = format!("{}/{}/{}", found.file.id, text("formatTag"), text("formatVersion"));
            if !view.has(&AUXILIARY, &id)? {
                return Err(ApiError::bad_request("External tool requirements not met for this file."));
            }
        }
        let version = version::find(view, &asker, &found.dataset, ":latest", version::Withdrawn::Hidden)?;
        let row = found.rows.iter().find(|it| it.is_in(version.ordinal)).map_or(0, |it| it.id);
        let dataset = found.dataset.clone();
        let values = Values {
            site_url: site_url.clone(),
            token: token.clone(),
            locale: locale.clone(),
            dataset,
            version,
            file: Some((found, row)),
        };
        Ok((tool, values))
    };
    call.db().read(Weight::Point, read).await
}

/// Returns the dataset of a path in a version that the caller may see.
async fn values_of_dataset(
    call: &Call,
    wanted_version: String,
    locale: Option<String>,
) -> Result<(Value, Values), ApiError> {
    let (wanted, asker, tool) = (Wanted::of(call)?, call.asker.clone(), call.param("tool").to_owned());
    let (site_url, token) = (call.site_url(), call.asker.token.clone());
    let read = move |view: &mut View<'_>| {
        let tool = named(view, &tool)?;
        let dataset = wanted.find(view)?;
        let version = version::find(view, &asker, &dataset, &wanted_version, version::Withdrawn::Hidden)?;
        if tool["scope"] != "dataset" {
            return Err(ApiError::bad_request("External tool does not have dataset scope."));
        }
        let values = Values {
            site_url: site_url.clone(),
            token: token.clone(),
            locale: locale.clone(),
            dataset,
            version,
            file: None,
        };
        Ok((tool, values))
    };
    call.db().read(Weight::Point, read).await
}

/// Parses the body of a request for a URL: whether it is for a preview, and the language.
async fn wish(call: &mut Call) -> Result<(bool, Option<String>), ApiError> {
    let bytes = call.bytes().await?;
    if bytes.is_empty() {
        return Ok((false, None));
    }
    let body: Value = serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad_request(format!("Error parsing Json: {error}")))?;
    let locale = body["locale"].as_str().map(str::to_owned);
    Ok((body["preview"] == true, locale))
}

/// Answers with the URL that launches a tool: with the values as parameters, or with a signed URL at which the tool
/// finds them.
fn url(call: &Call, tool: &Value, values: &Values, is_preview: bool) -> Answer {
    let own = tool["toolUrl"].as_str().unwrap_or_default();
    let mut url = own.to_owned();
    let mut add = |name: &str, value: &str| {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&format!("{name}={value}"));
    };
    let has_calls = tool["allowedApiCalls"].as_array().is_some_and(|it| !it.is_empty());
    if has_calls {
        let path = match &values.file {
            Some((found, row)) => {
                format!("/api/v1/files/{}/metadata/{row}/toolparams/{}", found.file.id, tool["id"])
            }
            None => format!(
                "/api/v1/datasets/{}/versions/{}/toolparams/{}",
                values.dataset.id,
                values.number(),
                tool["id"]
            ),
        };
        let path = match &values.locale {
            Some(locale) => format!("{path}?locale={locale}"),
            None => path,
        };
        add(
            "callback",
            &STANDARD.encode(signed(call, &format!("{}{path}", values.site_url), "GET", MINUTES)),
        );
        if is_preview {
            add("preview", "true");
        }
    } else {
        for (name, value) in values.parameters(tool) {
            add(&name, &shown(&value));
        }
        if is_preview {
            add("preview", "true");
        }
    }
    envelope::ok(json!({
        "toolUrl": url, "toolId": tool["id"], "displayName": tool["displayName"], "preview": is_preview,
    }))
}

/// Returns a signed URL that the caller may pass on while it is valid.
fn signed(call: &Call, url: &str, method: &str, minutes: i64) -> String {
    let user = call.asker.user.as_ref().map_or(":guest", |it| it.name.as_str());
    signing::sign(call, url, method, user, minutes)
}

async fn file_url(mut call: Call) -> Answer {
    let (is_preview, locale) = wish(&mut call).await?;
    let (tool, values) = values_of_file(&call, locale).await?;
    url(&call, &tool, &values, is_preview)
}

async fn dataset_url(mut call: Call) -> Answer {
    let (is_preview, locale) = wish(&mut call).await?;
    let (tool, values) = values_of_dataset(&call, ":latest".to_owned(), locale).await?;
    url(&call, &tool, &values, is_preview)
}

/// Answers with what a tool finds at its signed URL: the values, and signed URLs for the calls that its manifest
/// allows.
fn parameters(call: &Call, tool: &Value, values: &Values) -> Answer {
    let parameters: Map<String, Value> = values.parameters(tool).into_iter().collect();
    let calls = tool["allowedApiCalls"].as_array().into_iter().flatten().map(|it| {
        let mut path = it["urlTemplate"].as_str().unwrap_or_default().to_owned();
        for word in RESERVED.iter().filter(|it| **it != "{apiToken}") {
            if let Some(value) = values.of(word) {
                path = path.replace(word, &shown(&value));
            }
        }
        let method = it["httpMethod"].as_str().unwrap_or("GET");
        let minutes = it["timeOut"].as_i64().unwrap_or(10).clamp(1, 24 * 60);
        json!({
            "name": it["name"],
            "httpMethod": method,
            "signedUrl": signed(call, &format!("{}{path}", values.site_url), method, minutes),
            "timeOut": minutes,
        })
    });
    envelope::ok(json!({"queryParameters": parameters, "signedUrls": calls.collect::<Vec<Value>>()}))
}

async fn file_parameters(call: Call) -> Answer {
    let locale = call.query.filled("locale").map(str::to_owned);
    let (tool, values) = values_of_file(&call, locale).await?;
    parameters(&call, &tool, &values)
}

async fn dataset_parameters(call: Call) -> Answer {
    let locale = call.query.filled("locale").map(str::to_owned);
    let wanted = call.param("version").to_owned();
    let (tool, values) = values_of_dataset(&call, wanted, locale).await?;
    parameters(&call, &tool, &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: Value) -> String {
        manifest(body.as_object().unwrap()).unwrap_err().message
    }

    #[test]
    fn manifests_are_checked() {
        let sound = json!({
            "displayName": "Plot", "description": "Plots.", "types": ["explore"], "scope": "file",
            "toolUrl": "https://plot.example.org",
            "toolParameters": {"queryParameters": [{"id": "{fileId}"}, {"key": "{apiToken}"}]},
        });
        let kept = manifest(sound.as_object().unwrap()).unwrap();
        assert_eq!(kept["contentType"], "text/tab-separated-values");
        let with = |name: &str, value: Value| {
            let mut body = sound.clone();
            body[name] = value;
            body
        };
        assert!(refused(with("scope", json!("world"))).contains("[file, dataset]"));
        assert!(refused(with("types", json!(["dance"]))).contains("dance"));
        assert!(refused(with("types", json!([]))).contains("empty"));
        assert!(refused(with("toolUrl", json!("javascript:alert(1)"))).contains("toolUrl"));
        assert!(refused(with("displayName", json!(""))).contains("displayName"));
        let other = json!({"queryParameters": [{"x": "{fileid}"}]});
        assert_eq!(refused(with("toolParameters", other)), "Unknown reserved word: {fileid}");
        let fixed = json!({"queryParameters": [{"id": "{fileId}"}, {"mode": "fast"}]});
        assert_eq!(refused(with("toolParameters", fixed)), "Unknown reserved word: fast");
        let none = json!({"queryParameters": [{"key": "{apiToken}"}]});
        let message = "One of the following reserved words is required: {fileId}, {filePid}.";
        assert_eq!(refused(with("toolParameters", none)), message);
    }
}
