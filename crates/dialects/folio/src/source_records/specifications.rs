//! `/specification-storage`: the fields, indicators and subfields that a MARC record may have, and the rules for
//! validating it (mod-record-specifications). The editor of single records uses them to validate.
//!
//! | file | what |
//! |---|---|
//! | `standard.rs` | standard MARC 21, and the available rules |
//! | `tailored.rs` | a tenant's version of a specification |
//! | `check.rs` | validating a record |
//!
//! Fields, indicators, indicator codes and subfields have one of three scopes: `system` cannot be changed, of
//! `standard` only whether it is required can be changed, `local` ones belong to the tenant.

mod check;
mod standard;
mod tailored;

use http::{Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

pub(crate) use check::{are_errors, issues};
pub(crate) use tailored::{CHANGES, Tailored};

use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::{SPECIFICATION_LABEL as LABEL, SPECIFICATION_PARTS as PARTS};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let base = "/specification-storage/specifications";
    let one = "/specification-storage/specifications/{id}";
    let mut routes = routes
        .get(base, to("specification-storage.specifications.collection.get"), list)
        .get(one, to("specification-storage.specifications.item.get"), show)
        .post(&format!("{one}/sync"), to("specification-storage.specifications.sync.execute"), sync)
        .get(&format!("{one}/rules"), to("specification-storage.specification.rules.collection.get"), rules)
        .on(
            Method::PATCH,
            &format!("{one}/rules/{{rule}}"),
            to("specification-storage.specification.rules.item.patch"),
            toggle,
        )
        .get(
            &format!("{one}/fields"),
            to("specification-storage.specification.fields.collection.get"),
            fields,
        )
        .post(
            &format!("{one}/fields"),
            to("specification-storage.specification.fields.item.post"),
            add_field,
        );
    for level in LEVELS {
        let item = format!("/specification-storage/{}/{{id}}", level.path);
        let may = |what: &str| Access::owned(format!("specification-storage.{}.item.{what}", level.path));
        routes = routes
            .get(&item, may("get"), move |call| part(call, level))
            .put(&item, may("put"), move |call| change(call, level))
            .delete(&item, may("delete"), move |call| remove(call, level));
        if let Some(parent) = level.parent {
            let below = format!("/specification-storage/{}/{{id}}/{}", parent.path, level.path);
            let may = |what: &str| {
                Access::owned(format!("specification-storage.{}.{}.{what}", parent.name, level.path))
            };
            routes = routes.get(&below, may("collection.get"), move |call| parts(call, level)).post(
                &below,
                may("item.post"),
                move |call| add_part(call, level),
            );
        }
    }
    routes
}

/// A level of a specification's parts.
#[derive(Debug, PartialEq, Eq)]
struct Level {
    /// `indicator`.
    name: &'static str,
    /// `indicators`, in paths.
    path: &'static str,
    /// Name of the list in the parent, and in answers.
    list: &'static str,
    /// The property that distinguishes it from its siblings.
    key: &'static str,
    /// The property with the id of its parent.
    owner: &'static str,
    /// The level of its parent; fields belong to the specification itself.
    parent: Option<&'static Level>,
}

static FIELD: Level = Level {
    name: "field",
    path: "fields",
    list: "fields",
    key: "tag",
    owner: "specificationId",
    parent: None,
};
static INDICATOR: Level = Level {
    name: "indicator",
    path: "indicators",
    list: "indicators",
    key: "order",
    owner: "fieldId",
    parent: Some(&FIELD),
};
static SUBFIELD: Level = Level {
    name: "subfield",
    path: "subfields",
    list: "subfields",
    key: "code",
    owner: "fieldId",
    parent: Some(&FIELD),
};
static CODE: Level = Level {
    name: "indicator-code",
    path: "indicator-codes",
    list: "codes",
    key: "code",
    owner: "indicatorId",
    parent: Some(&INDICATOR),
};
static LEVELS: [&Level; 4] = [&FIELD, &INDICATOR, &SUBFIELD, &CODE];

impl Level {
    /// Returns the lists in a field that hold parts of this level; none for the field itself.
    fn lists<'f>(&self, field: &'f mut Value) -> Vec<&'f mut Vec<Value>> {
        let list = |of: &'f mut Value, name: &str| of.get_mut(name).and_then(Value::as_array_mut);
        match self.parent {
            None => Vec::new(),
            Some(parent) if *parent == FIELD => list(field, self.list).into_iter().collect(),
            Some(parent) => {
                let above = list(field, parent.list).into_iter().flatten();
                above.filter_map(|it| list(it, self.list)).collect()
            }
        }
    }

    /// Returns the part of a field with an id.
    fn within<'f>(&self, field: &'f mut Value, id: &str) -> Option<&'f mut Value> {
        if self.parent.is_none() {
            return (text_at(field, "id") == Some(id)).then_some(field);
        }
        self.lists(field).into_iter().flatten().find(|it| text_at(it, "id") == Some(id))
    }
}

fn missing(what: &str, id: &str) -> FolioError {
    let fault = Fault::new(format!("{what} with ID [{id}] was not found"))
        .ty("ResourceNotFoundException")
        .code("404");
    FolioError::faults(StatusCode::NOT_FOUND, vec![fault])
}

fn refused(message: impl Into<String>, key: &str, value: &str) -> FolioError {
    let fault = Fault::new(message).ty("ResourceValidationFailedException").code("101").with(key, value);
    FolioError::faults(StatusCode::BAD_REQUEST, vec![fault])
}

/// Returns a specification with as much detail as asked for: `include=all`, `fields.required` or nothing.
fn shown(specification: &Tailored, include: &str) -> Value {
    let mut body = specification.standard.head();
    if include.is_empty() || include == "none" {
        return body;
    }
    let is_wanted = |field: &Value| include == "all" || field["required"] == true;
    body["fields"] = specification.fields().into_iter().filter(|it| is_wanted(it)).cloned().collect();
    if include == "all" {
        body["rules"] = specification.rules().into();
    }
    body
}

fn listed(name: &str, records: Vec<Value>, total: usize) -> Answer {
    Ok(json_answer(StatusCode::OK, &json!({name: records, "totalRecords": total})))
}

/// Lists specifications: `family`, `profile`, `include`, `limit`, `offset`.
async fn list(call: Call) -> Answer {
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 100)?);
    let wanted = |name: &str| call.query.get(name).unwrap_or_default().to_lowercase();
    let (family, profile, include) = (wanted("family"), wanted("profile"), wanted("include"));
    let all = call.db().read(Weight::Scan, Tailored::all).await?;
    let fits = |it: &&Tailored| {
        (family.is_empty() || family == "marc") && (profile.is_empty() || profile == it.standard.profile)
    };
    let found: Vec<Value> = all.iter().filter(fits).map(|it| shown(it, &include)).collect();
    let total = found.len();
    let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    listed("specifications", found.into_iter().skip(at(offset)).take(at(limit)).collect(), total)
}

async fn specification(call: &Call) -> Result<Tailored, FolioError> {
    let id = call.uuid_param("id")?;
    let wanted = id.clone();
    let found = call.db().read(Weight::Scan, move |view| Tailored::by_id(view, &wanted)).await?;
    found.ok_or_else(|| missing("specification", &id))
}

async fn show(call: Call) -> Answer {
    let include = call.query.get("include").unwrap_or_default().to_lowercase();
    Ok(json_answer(StatusCode::OK, &shown(&specification(&call).await?, &include)))
}

async fn rules(call: Call) -> Answer {
    let rules = specification(&call).await?.rules();
    let total = rules.len();
    listed("rules", rules, total)
}

async fn fields(call: Call) -> Answer {
    let specification = specification(&call).await?;
    let fields: Vec<Value> = specification.fields().into_iter().cloned().collect();
    let total = fields.len();
    listed("fields", fields, total)
}

/// Resets changes to MARC 21's own fields.
async fn sync(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        Tailored::by_id(txn, &id)?.ok_or_else(|| missing("specification", &id))?.reset(txn)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::ACCEPTED))
}

/// Switches a rule on or off: `{enabled}`.
async fn toggle(mut call: Call) -> Answer {
    let (id, rule) = (call.uuid_param("id")?, call.uuid_param("rule")?);
    let body = call.object().await?;
    let enabled = body
        .get("enabled")
        .and_then(Value::as_bool)
        .ok_or_else(|| refused("The 'enabled' field is required.", "enabled", "null"))?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut found = Tailored::by_id(txn, &id)?.ok_or_else(|| missing("specification", &id))?;
        let code = found.standard.rules().find(|it| it.0 == rule).map(|it| it.1.code);
        found.set_rule(txn, code.ok_or_else(|| missing("specification rule", &rule))?, enabled)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Returns the specification with a part, and the field that contains it.
fn holder(view: &mut View<'_>, level: &Level, id: &str) -> Result<(Tailored, Value), FolioError> {
    for specification in Tailored::all(view)? {
        let found = specification.fields().into_iter().find_map(|field| {
            let mut field = field.clone();
            level.within(&mut field, id).is_some().then_some(field)
        });
        if let Some(field) = found {
            return Ok((specification, field));
        }
    }
    Err(missing(&format!("{} definition", level.name), id))
}

async fn part(call: Call, level: &'static Level) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (_, mut field) = holder(view, level, &id)?;
        Ok(level.within(&mut field, &id).cloned().unwrap_or_default())
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn parts(call: Call, level: &'static Level) -> Answer {
    let id = call.uuid_param("id")?;
    let parent = level.parent.unwrap_or(&FIELD);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (_, mut field) = holder(view, parent, &id)?;
        Ok(parent.within(&mut field, &id).map(|it| it[level.list].take()).unwrap_or_default())
    };
    let parts = call.db().read(Weight::Scan, read).await?;
    let parts = parts.as_array().cloned().unwrap_or_default();
    let total = parts.len();
    listed(level.list, parts, total)
}

/// Adds a local field.
async fn add_field(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let mut body = checked(&FIELD, call.object().await?)?;
    complete(&call, &mut body, &FIELD, &id);
    body.insert("indicators".into(), json!([]));
    body.insert("subfields".into(), json!([]));
    let body = Value::Object(body);
    let answer = json_answer(StatusCode::CREATED, &body);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut found = Tailored::by_id(txn, &id)?.ok_or_else(|| missing("specification", &id))?;
        let fields: Vec<Value> = found.fields().into_iter().cloned().collect();
        refuse_twins(&FIELD, &fields, &body)?;
        found.set_field(txn, text_at(&body, "id").unwrap_or_default(), Some(body.clone()))
    };
    call.db().write(write).await?;
    Ok(answer)
}

/// Adds a local part.
async fn add_part(mut call: Call, level: &'static Level) -> Answer {
    let id = call.uuid_param("id")?;
    let parent = level.parent.unwrap_or(&FIELD);
    let mut body = checked(level, call.object().await?)?;
    complete(&call, &mut body, level, &id);
    if *level == INDICATOR {
        body.insert("codes".into(), json!([]));
    }
    let body = Value::Object(body);
    let answer = json_answer(StatusCode::CREATED, &body);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let (mut found, mut field) = holder(txn, parent, &id)?;
        let field_id = text_at(&field, "id").unwrap_or_default().to_owned();
        if let Some(above) = parent.within(&mut field, &id) {
            if above["scope"] == "system" {
                return Err(refused(format!("A system {} has no local parts.", parent.name), "id", &id));
            }
            if let Some(Value::Array(parts)) = above.get_mut(level.list) {
                refuse_twins(level, parts, &body)?;
                parts.push(body.clone());
            }
        }
        found.set_field(txn, &field_id, Some(field))
    };
    call.db().write(write).await?;
    Ok(answer)
}

/// Adds the generated properties of a local part.
fn complete(call: &Call, body: &mut Map<String, Value>, level: &Level, owner: &str) {
    let now = dates::rmb(call.app.now_ms());
    let mut metadata = json!({"createdDate": now, "updatedDate": now});
    if let Some(user) = call.asker.user_id() {
        metadata["createdByUserId"] = user.as_str().into();
        metadata["updatedByUserId"] = user.into();
    }
    body.insert("id".into(), call.app.new_uuid().into());
    body.insert(level.owner.into(), owner.into());
    body.insert("scope".into(), "local".into());
    body.insert("metadata".into(), metadata);
}

async fn change(mut call: Call, level: &'static Level) -> Answer {
    let id = call.uuid_param("id")?;
    let body = checked(level, call.object().await?)?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let (mut found, mut field) = holder(txn, level, &id)?;
        let field_id = text_at(&field, "id").unwrap_or_default().to_owned();
        let part = level.within(&mut field, &id).ok_or_else(|| missing(level.name, &id))?;
        refuse_change(level, part, &body)?;
        if let Some(map) = part.as_object_mut() {
            map.extend(body.clone());
        }
        let changed = part.clone();
        if *level == FIELD {
            let fields: Vec<Value> = found.fields().into_iter().cloned().collect();
            refuse_twins(level, &fields, &changed)?;
        }
        for parts in level.lists(&mut field) {
            if parts.iter().any(|it| text_at(it, "id") == Some(&id)) {
                refuse_twins(level, parts, &changed)?;
            }
        }
        found.set_field(txn, &field_id, Some(field))?;
        Ok(changed)
    };
    Ok(json_answer(StatusCode::ACCEPTED, &call.db().write(write).await?))
}

async fn remove(call: Call, level: &'static Level) -> Answer {
    let id = call.uuid_param("id")?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let (mut found, mut field) = holder(txn, level, &id)?;
        let field_id = text_at(&field, "id").unwrap_or_default().to_owned();
        let scope = level.within(&mut field, &id).and_then(|it| text_at(it, "scope").map(str::to_owned));
        if scope.as_deref() != Some("local") {
            let scope = scope.unwrap_or_default();
            return Err(refused(format!("A {scope} scope {} cannot be deleted.", level.name), "id", &id));
        }
        if *level == FIELD {
            return found.set_field(txn, &field_id, None);
        }
        for parts in level.lists(&mut field) {
            parts.retain(|it| text_at(it, "id") != Some(&id));
        }
        found.set_field(txn, &field_id, Some(field))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Refuses a part that duplicates a sibling, and one beyond the maximum number.
fn refuse_twins(level: &Level, neighbours: &[Value], part: &Value) -> Result<(), FolioError> {
    if PARTS <= neighbours.len() {
        return Err(refused(format!("There are {PARTS} {} already.", level.path), level.key, ""));
    }
    let is_twin = |it: &Value| it["id"] != part["id"] && it[level.key] == part[level.key];
    if neighbours.iter().any(is_twin) {
        let value = part[level.key].to_string();
        return Err(refused(
            format!("The '{}' must be unique.", level.key),
            level.key,
            value.trim_matches('"'),
        ));
    }
    Ok(())
}

/// Refuses changes to parts that are not local, except whether they are required.
fn refuse_change(level: &Level, old: &Value, new: &Map<String, Value>) -> Result<(), FolioError> {
    let scope = text_at(old, "scope").unwrap_or_default();
    // An indicator has no scope: tenants may change its label.
    if scope == "local" || *level == INDICATOR && scope.is_empty() {
        return Ok(());
    }
    for (name, value) in new {
        let may = scope == "standard" && matches!(name.as_str(), "required" | "url" | "description");
        if !may && old.get(name) != Some(value) {
            let message = format!("'{name}' of a {scope} scope {} cannot be changed.", level.name);
            return Err(refused(message, name, value.to_string().trim_matches('"')));
        }
    }
    Ok(())
}

/// Returns the properties sent for a part, with its defaults and nothing else.
///
/// Errors: 400 for missing or malformed properties.
fn checked(level: &Level, body: Map<String, Value>) -> Result<Map<String, Value>, FolioError> {
    let mut checked = Map::new();
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let key = match body.get(level.key) {
        Some(Value::Number(number)) => number.to_string(),
        _ => text(level.key).to_owned(),
    };
    let is_code = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    let one = |is: &dyn Fn(char) -> bool| key.chars().count() == 1 && key.chars().all(is);
    let (is_good, wanted) = match level.name {
        "field" => (
            key.len() == 3 && key.bytes().all(|it| it.is_ascii_digit()),
            "A 'tag' must contain three characters and can only accept numbers 0-9.",
        ),
        "indicator" => (matches!(key.as_str(), "1" | "2"), "An 'order' must be 1 or 2."),
        "subfield" => (
            one(&is_code),
            "A 'code' must contain one character and can only accept numbers 0-9 or letters a-z.",
        ),
        _ => (
            one(&|it| is_code(it) || it == '\\'),
            "A 'code' must contain one character and can only accept numbers 0-9, letters a-z or a '\\'.",
        ),
    };
    if !is_good {
        return Err(refused(wanted, level.key, &key));
    }
    let key = if *level == INDICATOR { Value::from(u8::from(key == "2") + 1) } else { key.into() };
    checked.insert(level.key.into(), key);
    let label = text("label");
    if label.is_empty() || LABEL < label.chars().count() {
        return Err(refused(
            format!("The 'label' field is required and has {LABEL} characters at most."),
            "label",
            label,
        ));
    }
    checked.insert("label".into(), label.into());
    if *level == FIELD && body.get("url").is_some_and(|it| !it.is_null()) {
        let url = text("url");
        if !(url.starts_with("https://") || url.starts_with("http://")) || LABEL < url.chars().count() {
            return Err(refused("The 'url' field should be valid URL.", "url", url));
        }
        checked.insert("url".into(), url.into());
    }
    let flags: &[(&str, bool)] = match level.name {
        "field" | "subfield" => &[("repeatable", true), ("required", false), ("deprecated", false)],
        "indicator" => &[],
        _ => &[("deprecated", false)],
    };
    for (name, default) in flags {
        let value = match body.get(*name) {
            None | Some(Value::Null) => *default,
            Some(Value::Bool(value)) => *value,
            Some(other) => {
                return Err(refused(format!("'{name}' must be true or false."), name, &other.to_string()));
            }
        };
        checked.insert((*name).into(), value.into());
    }
    Ok(checked)
}
