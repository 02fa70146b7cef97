//! Differences between versions: `compare` for two, `compareSummary` for all (section 4.3 of the contract).

use std::collections::{BTreeMap, HashMap, HashSet};

use pinakes_store::{View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::blocks::{FieldType, Registry};
use crate::datasets::show::{require_files, window};
use crate::datasets::version::{self, Withdrawn};
use crate::datasets::wanted::Wanted;
use crate::datasets::{Dataset, State, Version};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{envelope, files, permissions};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/versions/{version}/compare/{other}", compare)
        .get("/datasets/{id}/versions/compareSummary", summarize)
}

/// Returns the values of a version's fields as texts: (block, field) to value.
fn texts_of(version: &Version) -> BTreeMap<(String, String), Vec<String>> {
    let mut all = BTreeMap::new();
    for (block, body) in &version.metadata_blocks {
        for field in body["fields"].as_array().into_iter().flatten() {
            let name = field["typeName"].as_str().unwrap_or_default();
            all.insert((block.clone(), name.to_owned()), texts(&field["value"]));
        }
    }
    all
}

/// Returns a value as texts; a compound value gives the joined values of its children.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Object(children) => {
            let parts: Vec<String> = children.values().flat_map(|it| texts(&it["value"])).collect();
            vec![parts.join("; ")]
        }
        _ => Vec::new(),
    }
}

/// Returns the value of a field as it is shown to readers: the values of compound fields with the formats of their
/// children, so that an affiliation stands in parentheses and mail addresses are hidden.
fn shown(registry: &Registry, version: &Version, (block, name): &(String, String)) -> String {
    let fields = version.metadata_blocks.get(block).and_then(|it| it["fields"].as_array());
    let field = fields.into_iter().flatten().find(|it| it["typeName"].as_str() == Some(name.as_str()));
    let Some(value) = field.map(|it| &it["value"]) else { return String::new() };
    let compounds: Vec<&Map<String, Value>> = match value {
        Value::Array(list) => list.iter().filter_map(Value::as_object).collect(),
        value => value.as_object().into_iter().collect(),
    };
    if compounds.is_empty() {
        return texts(value).join("; ");
    }
    let mut parts = Vec::new();
    for (name, child) in compounds.into_iter().flatten() {
        let ty = registry.field(name);
        for text in texts(&child["value"]) {
            parts.push(ty.map_or_else(|| text.clone(), |it| formatted(it, &text)));
        }
    }
    parts.retain(|it| !it.is_empty());
    parts.join("; ")
}

/// Returns a value in the format of its field. Formats with markup are for pages.
fn formatted(ty: &FieldType, text: &str) -> String {
    let format = ty.display_format.as_str();
    if ty.is_controlled || format.is_empty() || format.contains('<') {
        return text.to_owned();
    }
    let filled = format.replace("#NAME", &ty.title).replace("#EMAIL", "").replace("#VALUE", text);
    filled.trim().to_owned()
}

/// Describes a compared version.
fn head(version: &Version) -> Value {
    Value::Object(envelope::object(json!({
        "versionNumber": version.friendly_number(),
        "versionState": version.state.name(),
        "versionNote": version.version_note,
        "lastUpdatedDate": version.last_update_time,
    })))
}

/// Returns the fields with different values, by the display name of their block.
fn metadata_changes(registry: &Registry, old: &Version, new: &Version) -> Vec<Value> {
    let (before, after) = (texts_of(old), texts_of(new));
    let mut by_block: Vec<(String, Vec<Value>)> = Vec::new();
    let keys: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
    // Sorted by the order of fields in their blocks.
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_by_key(|it| registry.place(&it.1).unwrap_or(usize::MAX));
    for key in keys {
        let (a, b) = (before.get(&key), after.get(&key));
        if a == b {
            continue;
        }
        let block = registry.block(&key.0).map_or_else(|| key.0.clone(), |it| it.display_name.clone());
        let field = registry.field(&key.1).map_or_else(|| key.1.clone(), |it| it.title.clone());
        let (a, b) = (shown(registry, old, &key), shown(registry, new, &key));
        let change = json!({"fieldName": field, "oldValue": a, "newValue": b});
        match by_block.iter_mut().find(|it| it.0 == block) {
            Some((_, list)) => list.push(change),
            None => by_block.push((block, vec![change])),
        }
    }
    by_block.into_iter().map(|(block, list)| json!({"blockName": block, "changed": list})).collect()
}

/// Returns a file as JSON for comparisons.
fn file_json(file: &Value) -> Value {
    let data = &file["dataFile"];
    Value::Object(envelope::object(json!({
        "fileName": file["label"],
        "filePath": file.get("directoryLabel"),
        "MD5": data.get("md5"),
        "type": data.get("contentType"),
        "fileId": data.get("id"),
        "description": file.get("description"),
        "isRestricted": file["restricted"].as_bool().unwrap_or(false),
        "categories": file.get("categories"),
        "tags": data.get("tabularTags"),
    })))
}

/// Files that were added, removed, replaced, or have a changed description.
#[derive(Default)]
struct FileChanges {
    added: Vec<Value>,
    removed: Vec<Value>,
    replaced: Vec<Value>,
    changed: Vec<Value>,
}

/// The parts of a file's description that are compared: name in the answer, and key in the JSON.
const DESCRIBED: [(&str, &str); 5] = [
    ("FileName", "label"),
    ("FilePath", "directoryLabel"),
    ("Description", "description"),
    ("IsRestricted", "restricted"),
    ("Categories", "categories"),
];

/// Returns the changes from the files that only the older version has as they are there to those of the newer one.
fn file_changes(old: &[Value], new: &[Value]) -> FileChanges {
    let id = |it: &Value| it["dataFile"]["id"].as_i64();
    let before: HashMap<Option<i64>, &Value> = old.iter().map(|it| (id(it), it)).collect();
    let mut gone: HashSet<Option<i64>> = before.keys().copied().collect();
    let mut changes = FileChanges::default();
    for file in new {
        if let Some(before) = before.get(&id(file)) {
            gone.remove(&id(file));
            let mut changed = Map::new();
            for (name, key) in DESCRIBED {
                if before.get(key) != file.get(key) {
                    let (a, b) = (before.get(key).cloned(), file.get(key).cloned());
                    changed.insert(name.into(), json!({"oldValue": a, "newValue": b}));
                }
            }
            if !changed.is_empty() {
                changes.changed.push(json!({
                    "fileName": file["label"], "MD5": file["dataFile"].get("md5"), "fileId": id(file),
                    "changed": changed,
                }));
            }
            continue;
        }
        let previous = file["dataFile"]["previousDataFileId"].as_i64();
        match before.get(&previous).filter(|_| previous.is_some()) {
            Some(before) => {
                gone.remove(&previous);
                changes.replaced.push(json!({"oldFile": file_json(before), "newFile": file_json(file)}));
            }
            None => changes.added.push(file_json(file)),
        }
    }
    changes.removed = old.iter().filter(|it| gone.contains(&id(it))).map(file_json).collect();
    changes
}

/// Returns the licence and terms that differ, by name.
fn terms_changes(old: &Version, new: &Version) -> Map<String, Value> {
    let mut changed = Map::new();
    let names: std::collections::BTreeSet<&String> = old.terms.keys().chain(new.terms.keys()).collect();
    for name in names {
        let (a, b) = (old.terms.get(name), new.terms.get(name));
        if a != b {
            changed.insert(name.clone(), json!({"oldValue": a, "newValue": b}));
        }
    }
    if old.license != new.license {
        changed.insert("license".into(), json!({"oldValue": old.license, "newValue": new.license}));
    }
    if old.file_access_request != new.file_access_request {
        let values = json!({"oldValue": old.file_access_request, "newValue": new.file_access_request});
        changed.insert("fileAccessRequest".into(), values);
    }
    changed
}

async fn compare(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let (a, b) = (call.param("version").to_owned(), call.param("other").to_owned());
    let withdrawn = match call.query.is_true("includeDeaccessioned") {
        true => Withdrawn::Shown,
        false => Withdrawn::Hidden,
    };
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        let old = version::find(view, &asker, &dataset, &a, withdrawn)?;
        let new = version::find(view, &asker, &dataset, &b, withdrawn)?;
        require_files(view, &asker, &dataset, &old)?;
        require_files(view, &asker, &dataset, &new)?;
        if new.ordinal < old.ordinal {
            return Err(ApiError::bad_request(
                "Compare requires the older dataset version to be listed first.",
            ));
        }
        let mut map = Map::new();
        map.insert("oldVersion".into(), head(&old));
        map.insert("newVersion".into(), head(&new));
        let mut add = |name: &str, list: Vec<Value>| {
            if !list.is_empty() {
                map.insert(name.into(), list.into());
            }
        };
        add("metadataChanges", metadata_changes(&registry, &old, &new));
        let (old_files, new_files) = files::differing_json(view, &dataset, old.ordinal, new.ordinal)?;
        let changes = file_changes(&old_files, &new_files);
        add("filesAdded", changes.added);
        add("filesRemoved", changes.removed);
        add("filesReplaced", changes.replaced);
        add("fileChanges", changes.changed);
        let terms = terms_changes(&old, &new);
        if !terms.is_empty() {
            map.insert("TermsOfAccess".into(), json!({"changed": terms}));
        }
        Ok(Value::Object(map))
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Counts the values that were added, deleted and changed in each field, by block.
fn field_counts(registry: &Registry, old: &Version, new: &Version) -> Map<String, Value> {
    let (before, after) = (texts_of(old), texts_of(new));
    let mut blocks = Map::new();
    let keys: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
    for key in keys {
        let empty = Vec::new();
        let (a, b) = (before.get(&key).unwrap_or(&empty), after.get(&key).unwrap_or(&empty));
        if a == b {
            continue;
        }
        let n_changed = a.iter().zip(b).filter(|(a, b)| a != b).count();
        let block = registry.block(&key.0).map_or_else(|| key.0.clone(), |it| it.display_name.clone());
        let counts = [b.len().saturating_sub(a.len()), a.len().saturating_sub(b.len()), n_changed];
        // Citation fields in the form of a new dataset are listed by name; other fields are summed up per block.
        let is_citation = key.0 == "citation";
        match registry.field(&key.1).filter(|it| is_citation && it.is_on_create) {
            Some(field) => {
                let map = blocks.entry(block).or_insert_with(|| json!({}));
                add_counts(&mut map[field.title.as_str()], counts);
            }
            None => {
                let block = if is_citation { "Additional Citation Metadata".to_owned() } else { block };
                add_counts(blocks.entry(block).or_insert(Value::Null), counts);
            }
        }
    }
    blocks
}

/// Adds the numbers of added, deleted and changed values to the counts in `place`.
fn add_counts(place: &mut Value, counts: [usize; 3]) {
    for (name, n) in ["added", "deleted", "changed"].into_iter().zip(counts) {
        let before = place[name].as_u64().unwrap_or(0);
        place[name] = (before + n as u64).into();
    }
}

async fn summarize(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let (limit, offset) = window(&call)?;
    let find = move |view: &mut View<'_>| -> Result<(u64, Vec<Value>), ApiError> {
        let dataset = wanted.find(view)?;
        let sees_draft = permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        let seen: Vec<Version> = version::newest_first(view, &dataset)?
            .into_iter()
            .filter(|it| sees_draft || it.state != State::Draft)
            .collect();
        if seen.is_empty() {
            return Err(permissions::refusal(&asker));
        }
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let take = limit.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
        let mut items = Vec::new();
        for (place, version) in seen.iter().enumerate().skip(skip).take(take) {
            let before = seen.get(place + 1);
            items.push(summary_json(view, &registry, &dataset, version, before)?);
        }
        Ok((seen.len() as u64, items))
    };
    let (n_all, items) = call.db().read(Weight::Scan, find).await?;
    envelope::page(n_all, items)
}

fn summary_json(
    view: &mut View<'_>,
    registry: &Registry,
    dataset: &Dataset,
    version: &Version,
    before: Option<&Version>,
) -> Result<Value, ApiError> {
    let summary = match (version.state, before) {
        (State::Deaccessioned, _) => json!({
            "deaccessioned": envelope::object(json!({
                "reason": version.deaccession_note, "url": version.deaccession_link,
            })),
        }),
        (State::Released, None) => json!("firstPublished"),
        (State::Draft, None) => json!("firstDraft"),
        (_, Some(before)) if before.state == State::Deaccessioned => json!("previousVersionDeaccessioned"),
        (_, Some(before)) => {
            let mut map = field_counts(registry, before, version);
            let (old, new) = files::differing_json(view, dataset, before.ordinal, version.ordinal)?;
            let changes = file_changes(&old, &new);
            let n_of = |it: &Value| it["changed"].as_object().map_or(0, Map::len);
            let n_changes: usize = changes.changed.iter().map(n_of).sum();
            map.insert(
                "files".into(),
                json!({
                    "added": changes.added.len(),
                    "removed": changes.removed.len(),
                    "replaced": changes.replaced.len(),
                    "changedFileMetaData": n_changes,
                    "changedVariableMetadata": 0,
                }),
            );
            map.insert("termsAccessChanged".into(), (!terms_changes(before, version).is_empty()).into());
            Value::Object(map)
        }
    };
    Ok(Value::Object(envelope::object(json!({
        "id": version.id,
        "versionNumber": version.friendly_number(),
        "versionNote": version.version_note,
        "contributors": version.contributors.join(", "),
        "publishedOn": version.release_time.as_deref().unwrap_or_default(),
        "summary": summary,
    }))))
}
