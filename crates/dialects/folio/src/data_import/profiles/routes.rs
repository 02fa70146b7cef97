//! `/data-import-profiles`.

use http::header::{IF_MATCH, LOCATION};
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, StoreError, Txn, View, Weight, matches};
use serde_json::{Map, Value, json};

use super::snapshot::{PROFILE_SNAPSHOT, SnapshotError, snapshot_of, store_snapshot};
use super::{ASSOCIATION, ProfileType, all, associations, get, is_default, not_found};
use crate::platform::app::Call;
use crate::platform::collection::{self, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};
use crate::platform::{cql, dates};

/// Prefixes a path with `/data-import-profiles/`.
macro_rules! path {
    ($rest:literal) => {
        concat!("/data-import-profiles/", $rest)
    };
}

fn to(name: &str) -> Access {
    Access::Permission(format!("converter-storage.{name}").into())
}

/// Adds the routes of profiles and of field protection.
pub(crate) fn routes(routes: Routes) -> Routes {
    let routes = ProfileType::ALL.into_iter().fold(routes, |routes, sort| {
        let base = format!("/data-import-profiles/{}", sort.list());
        let item = format!("{base}/{{id}}");
        let permission = |end: &str| to(&format!("{}profile.{end}", sort.word().to_lowercase()));
        routes
            .get(&base, permission("collection.get"), move |call| list(call, sort))
            .post(&base, permission("post"), move |call| create(call, sort))
            .get(&item, permission("item.get"), move |call| by_id(call, sort))
            .put(&item, permission("put"), move |call| replace(call, sort))
            .delete(&item, permission("delete"), move |call| remove(call, sort))
    });
    routes
        .post(path!("jobProfileSnapshots/{id}"), to("jobprofilesnapshots.post"), make_snapshot)
        .get(path!("jobProfileSnapshots/{id}"), to("jobprofilesnapshots.get"), stored_snapshot)
        .post(path!("profileSnapshots"), to("profilesnapshots.post"), keep_snapshot)
        .get(path!("profileSnapshots/{id}"), to("profilesnapshots.get"), current_snapshot)
        .get(path!("profileAssociations"), to("profileassociation.collection.get"), list_associations)
        .post(path!("profileAssociations"), to("profileassociation.post"), associate)
        .get(path!("profileAssociations/{id}"), to("profileassociations.item.get"), association)
        .put(path!("profileAssociations/{id}"), to("profileassociation.put"), change_association)
        .delete(path!("profileAssociations/{id}"), to("profileassociation.delete"), remove_association)
        .get(path!("profileAssociations/{id}/details"), to("profileassociation.item.get"), details)
        .get(path!("profileAssociations/{id}/masters"), to("profileassociation.item.get"), masters)
        .get(path!("entityTypes"), to("entity-types.collection.get"), entity_types)
        .with(super::protection::routes)
        .with(super::forms::routes)
}

impl From<SnapshotError> for FolioError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Store(error) => error.into(),
            other => Self::unprocessable(Fault::new(other.to_string())),
        }
    }
}

async fn list(call: Call, sort: ProfileType) -> Answer {
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let parsed = collection::parsed(&call.app.settings, call.query.get("query").unwrap_or_default())?;
    let names = cql::Names::PLAIN;
    let filter = cql::meaning(&parsed.condition, sort.kind(), &names, &mut |_| Ok::<_, FolioError>(None))?;
    let order = cql::order(&parsed, &names);
    let (shows_hidden, with_relations) =
        (call.query.is_true("showHidden"), call.query.is_true("withRelations"));
    let shows_deleted = call.query.is_true("showDeleted");
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let flag = |value: &Value, name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
        let mut list = all(view, sort)?;
        list.retain(|it| {
            (shows_hidden || !flag(it, "hidden"))
                && (shows_deleted || !flag(it, "deleted"))
                && fits(&filter, it)
        });
        for order in order.iter().rev() {
            let text = |value: &Value| {
                let at = order.path.as_steps().iter().try_fold(value, |at, step| at.get(step));
                at.and_then(Value::as_str).unwrap_or_default().to_lowercase()
            };
            list.sort_by_key(|it| text(it));
            if order.direction == pinakes_store::Direction::Descending {
                list.reverse();
            }
        }
        let total = list.len();
        let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut page: Vec<Value> = list.into_iter().skip(at(offset)).take(at(limit)).collect();
        if with_relations {
            page.iter_mut().try_for_each(|it| relate(view, sort, it))?;
        }
        Ok(json!({sort.list(): page, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Evaluates a filter on a profile, including conditions on ids: default profiles are not in the store.
fn fits(filter: &Expr, profile: &Value) -> bool {
    match filter {
        Expr::And(list) => list.iter().all(|it| fits(it, profile)),
        Expr::Or(list) => list.iter().any(|it| fits(it, profile)),
        Expr::Not(it) => !fits(it, profile),
        Expr::Ids(ids) => {
            profile.get("id").and_then(Value::as_str).is_some_and(|id| ids.iter().any(|it| it == id))
        }
        other => matches(other, profile),
    }
}

/// Adds `childProfiles` and `parentProfiles`.
fn relate(view: &mut View<'_>, sort: ProfileType, profile: &mut Value) -> Result<(), StoreError> {
    let id = profile.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let job = (sort == ProfileType::Job).then_some(id.as_str());
    let below = associations::below(view, &id, job)?;
    let children = related(view, &below, "detailProfileId", "detailProfileType")?;
    let above = associations::above(view, &id)?;
    let parents = related(view, &above, "masterProfileId", "masterProfileType")?;
    if let Value::Object(map) = profile {
        map.insert("childProfiles".into(), children.into());
        map.insert("parentProfiles".into(), parents.into());
    }
    Ok(())
}

fn related(
    view: &mut View<'_>,
    associations: &[Value],
    id_name: &str,
    type_name: &str,
) -> Result<Vec<Value>, StoreError> {
    let mut list = Vec::new();
    for association in associations {
        let text = |name: &str| association.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(sort) = ProfileType::typed(text(type_name)) else { continue };
        if let Some(content) = get(view, sort, text(id_name))? {
            list.push(json!({
                "id": association.get("id"),
                "profileId": text(id_name),
                "contentType": sort.type_name(),
                "order": association.get("order"),
                "reactTo": association.get("reactTo"),
                "content": content,
            }));
        }
    }
    Ok(list)
}

async fn by_id(call: Call, sort: ProfileType) -> Answer {
    let id = call.uuid_param("id")?;
    let with_relations = call.query.is_true("withRelations");
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut found = get(view, sort, &id)?.ok_or_else(|| not_found(sort, &id))?;
        if with_relations {
            relate(view, sort, &mut found)?;
        }
        Ok(found)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// The content of a request to write a profile.
#[derive(Clone)]
struct Update {
    profile: Map<String, Value>,
    added: Vec<Value>,
    deleted: Vec<Value>,
}

impl Update {
    fn read(mut body: Map<String, Value>) -> Result<Self, FolioError> {
        let mut list = |name: &str| match body.remove(name) {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        let (added, deleted) = (list("addedRelations"), list("deletedRelations"));
        match body.remove("profile") {
            Some(Value::Object(profile)) => Ok(Self { profile, added, deleted }),
            _ => Err(FolioError::unprocessable(Fault::missing("profile"))),
        }
    }
}

/// Refuses an invalid profile, and a name that is in use.
fn check(txn: &mut Txn<'_>, sort: ProfileType, id: &str, update: &Update) -> Result<(), FolioError> {
    let text = |name: &str| update.profile.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = text("name");
    let refuse = |message: String| Err(FolioError::unprocessable(Fault::new(message)));
    let lacking: Vec<Fault> = sort
        .required()
        .iter()
        .filter(|it| text(it).trim().is_empty())
        .map(|it| Fault::missing(&format!("profile.{it}")))
        .collect();
    if !lacking.is_empty() {
        return Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, lacking));
    }
    let is_other = |it: &Value| {
        it.get("name").and_then(Value::as_str).is_some_and(|it| it.eq_ignore_ascii_case(name))
            && it.get("id").and_then(Value::as_str) != Some(id)
    };
    if all(txn, sort)?.iter().any(is_other) {
        return refuse(format!("{} profile '{name}' already exists", sort.word()));
    }
    for relation in &update.added {
        for (id_name, type_name) in
            [("masterProfileId", "masterProfileType"), ("detailProfileId", "detailProfileType")]
        {
            let text = |name: &str| relation.get(name).and_then(Value::as_str).unwrap_or_default();
            let other = text(id_name);
            if other.is_empty() || other == id {
                continue;
            }
            let Some(of) = ProfileType::typed(text(type_name)) else {
                return refuse(format!(
                    "addedRelations: {type_name} {:?} is no type of profile",
                    text(type_name)
                ));
            };
            if get(txn, of, other)?.is_none() {
                return refuse(format!(
                    "Linked {} profile with id '{other}' was not found",
                    of.word().to_lowercase()
                ));
            }
        }
    }
    if sort == ProfileType::Action {
        check_mapping(txn, id, update, text("action"), text("folioRecord"))?;
    }
    Ok(())
}

/// Checks that an action has one mapping, for records of its own type.
fn check_mapping(
    txn: &mut Txn<'_>,
    id: &str,
    update: &Update,
    action: &str,
    record: &str,
) -> Result<(), FolioError> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let gone = |it: &Value| {
        update.deleted.iter().any(|gone| text(gone, "detailProfileId") == text(it, "detailProfileId"))
    };
    let before: Vec<Value> = associations::below(txn, id, None)?.into_iter().filter(|it| !gone(it)).collect();
    let is_mapping = |it: &&Value| text(it, "detailProfileType") == "MAPPING_PROFILE";
    let mappings: Vec<&Value> = before.iter().chain(&update.added).filter(is_mapping).collect();
    if 1 < mappings.len() {
        return Err(FolioError::unprocessable(Fault::new(
            "Action profile can be linked to one mapping profile only",
        )));
    }
    // A delete action needs no mapping.
    if mappings.is_empty() && action != "DELETE" {
        return Err(FolioError::unprocessable(Fault::new(
            "Action profile must be linked to a mapping profile",
        )));
    }
    for association in mappings {
        let mapping =
            get(txn, ProfileType::Mapping, &text(association, "detailProfileId"))?.unwrap_or_default();
        let existing = text(&mapping, "existingRecordType");
        if existing != record {
            return Err(FolioError::unprocessable(Fault::new(format!(
                "Action profile's FOLIO record type ({record}) and its mapping profile's ({existing}) do not match"
            ))));
        }
    }
    Ok(())
}

fn complete(profile: &mut Map<String, Value>, id: &str, writer: &Writer, old: Option<&Value>) {
    profile.insert("id".into(), id.into());
    for name in ["childProfiles", "parentProfiles"] {
        profile.shift_remove(name);
    }
    for (name, value) in [("deleted", json!(false)), ("hidden", json!(false))] {
        profile.entry(name).or_insert(value);
    }
    let now = dates::rmb(writer.now_ms);
    let created = old.and_then(|it| it.pointer("/metadata/createdDate")).cloned();
    let mut metadata = Map::new();
    metadata.insert("createdDate".into(), created.unwrap_or_else(|| now.as_str().into()));
    metadata.insert("updatedDate".into(), now.into());
    metadata.extend(writer.user.as_ref().map(|it| ("updatedByUserId".to_owned(), it.as_str().into())));
    profile.insert("metadata".into(), Value::Object(metadata));
}

fn answered(status: StatusCode, profile: &Value, added: &[Value]) -> axum::response::Response {
    let id = profile.get("id");
    json_answer(
        status,
        &json!({"id": id, "profile": profile, "addedRelations": added, "deletedRelations": []}),
    )
}

async fn create(mut call: Call, sort: ProfileType) -> Answer {
    let update = Update::read(call.object().await?)?;
    let given = update.profile.get("id").and_then(Value::as_str).and_then(parse_uuid);
    let id = given.unwrap_or_else(|| call.app.new_uuid());
    let (writer, at) = (Writer::of(&call), id.clone());
    let (profile, added) = call
        .db()
        .write(move |txn| -> Result<_, FolioError> {
            let writer = writer();
            if get(txn, sort, &at)?.is_some() {
                let message = format!("{} profile with id '{at}' already exists", sort.word());
                return Err(FolioError::unprocessable(Fault::new(message)));
            }
            check(txn, sort, &at, &update)?;
            let mut profile = update.profile.clone();
            complete(&mut profile, &at, &writer, None);
            let profile = Value::Object(profile);
            txn.insert(sort.kind(), &at, &profile)?;
            let added = associations::add(txn, sort, &at, &update.added, &|| writer.new_uuid())?;
            Ok((profile, added))
        })
        .await?;
    let answer = answered(StatusCode::CREATED, &profile, &added);
    Ok(answer::with_header(answer, LOCATION, &format!("/data-import-profiles/{}/{id}", sort.list())))
}

fn refuse_default(sort: ProfileType, id: &str) -> Result<(), FolioError> {
    if is_default(sort, id) {
        let message = format!("Can't change or delete the default {} profile with id '{id}'", sort.word());
        return Err(FolioError::unprocessable(Fault::new(message)));
    }
    Ok(())
}

/// Returns when the profile was last changed, as the caller saw it: `If-Match` contains its `updatedDate` in quotes.
/// FOLIO's own clients do not send this header and are not checked.
fn seen(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(IF_MATCH)?.to_str().ok()?;
    Some(text.trim().trim_matches('"').to_owned())
}

/// Checks that the profile has not changed. Errors: 409.
fn expect_unchanged(old: &Value, seen: Option<&str>) -> Result<(), FolioError> {
    let changed = old.pointer("/metadata/updatedDate").and_then(Value::as_str).unwrap_or_default();
    match seen {
        Some(seen) if seen != changed => {
            let message =
                format!("The profile was changed at {changed}, If-Match names {seen}: load it again");
            Err(FolioError::text(StatusCode::CONFLICT, message))
        }
        _ => Ok(()),
    }
}

async fn replace(mut call: Call, sort: ProfileType) -> Answer {
    let id = call.uuid_param("id")?;
    refuse_default(sort, &id)?;
    let update = Update::read(call.object().await?)?;
    let seen = seen(&call.headers);
    let writer = Writer::of(&call);
    let (profile, added) = call
        .db()
        .write(move |txn| -> Result<_, FolioError> {
            let writer = writer();
            let old = get(txn, sort, &id)?.ok_or_else(|| not_found(sort, &id))?;
            expect_unchanged(&old, seen.as_deref())?;
            check(txn, sort, &id, &update)?;
            let mut profile = update.profile.clone();
            complete(&mut profile, &id, &writer, Some(&old));
            let profile = Value::Object(profile);
            txn.update(sort.kind(), &id, &profile)?;
            associations::remove(txn, &id, &update.deleted)?;
            let added = associations::add(txn, sort, &id, &update.added, &|| writer.new_uuid())?;
            Ok((profile, added))
        })
        .await?;
    Ok(answered(StatusCode::OK, &profile, &added))
}

async fn remove(call: Call, sort: ProfileType) -> Answer {
    let id = call.uuid_param("id")?;
    refuse_default(sort, &id)?;
    call.db()
        .write(move |txn| -> Result<(), FolioError> {
            if get(txn, sort, &id)?.is_none() {
                return Err(not_found(sort, &id));
            }
            if !associations::above(txn, &id)?.is_empty() {
                let message = format!(
                    "Can not delete profile by id '{id}' cause profile associated with other profiles"
                );
                return Err(FolioError::text(StatusCode::CONFLICT, message));
            }
            txn.delete(sort.kind(), &id)?;
            associations::remove_all(txn, &id)?;
            Ok(())
        })
        .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn make_snapshot(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    let made = call
        .db()
        .write(move |txn| -> Result<Value, FolioError> {
            let writer = writer();
            let made = snapshot_of(txn, ProfileType::Job, &id, None, &|| writer.new_uuid())?;
            let made = made.ok_or_else(|| not_found(ProfileType::Job, &id))?;
            store_snapshot(txn, &made)?;
            Ok(made)
        })
        .await?;
    Ok(json_answer(StatusCode::CREATED, &made))
}

async fn stored_snapshot(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let at = id.clone();
    let found = call.db().read(Weight::Point, move |view| view.get(&PROFILE_SNAPSHOT, &at)).await?;
    let missing = || FolioError::not_found(format!("Profile snapshot with id '{id}' was not found"));
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(missing)?.json()?))
}

/// Stores a snapshot created by a client, unchanged.
async fn keep_snapshot(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    required_text(&body, "profileId")?;
    let sort = required_text(&body, "contentType")?;
    if ProfileType::typed(sort).is_none() {
        let fault = Fault::new(format!("{sort} is no type of profile")).with("contentType", sort);
        return Err(FolioError::unprocessable(fault));
    }
    let given = body.get("id").and_then(Value::as_str).and_then(parse_uuid);
    let id = given.unwrap_or_else(|| call.app.new_uuid());
    body.insert("id".into(), id.as_str().into());
    body.entry("childSnapshotWrappers").or_insert_with(|| json!([]));
    let snapshot = Value::Object(body);
    let stored = snapshot.clone();
    call.db().write(move |txn| store_snapshot(txn, &stored).map(drop)).await?;
    let location = format!("/data-import-profiles/profileSnapshots/{id}");
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &snapshot), LOCATION, &location))
}

async fn current_snapshot(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let name = call.query.get("profileType").unwrap_or("JOB_PROFILE");
    let sort = ProfileType::typed(name)
        .ok_or_else(|| FolioError::bad_request(format!("profileType {name:?} is no type of profile")))?;
    let job = call.query.get("jobProfileId").map(str::to_owned);
    let entropy = call.app.context.entropy().clone();
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let made = snapshot_of(view, sort, &id, job.as_deref(), &|| entropy.uuid().to_string())?;
        made.ok_or_else(|| not_found(sort, &id))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn list_associations(call: Call) -> Answer {
    let (master, detail) = (
        call.query.get("master").and_then(ProfileType::typed),
        call.query.get("detail").and_then(ProfileType::typed),
    );
    let list = call.db().read(Weight::Scan, move |view| associations::between(view, master, detail)).await?;
    let total = list.len();
    Ok(json_answer(StatusCode::OK, &json!({"profileAssociations": list, "totalRecords": total})))
}

/// Builds the association described by a body, with the types of `?master=&detail=`; both profiles must exist.
fn association_of(
    view: &mut View<'_>,
    mut body: Map<String, Value>,
    types: &[Option<ProfileType>; 2],
) -> Result<Map<String, Value>, FolioError> {
    for ((name, type_name), given) in
        [("masterProfileId", "masterProfileType"), ("detailProfileId", "detailProfileType")]
            .into_iter()
            .zip(types)
    {
        let id = required_text(&body, name)?.to_owned();
        let told = body.get(type_name).and_then(Value::as_str).and_then(ProfileType::typed);
        let Some(sort) = given.or(told) else {
            return Err(FolioError::unprocessable(Fault::missing(type_name)));
        };
        if get(view, sort, &id)?.is_none() {
            return Err(not_found(sort, &id));
        }
        body.insert(type_name.to_owned(), sort.type_name().into());
    }
    body.entry("order").or_insert_with(|| json!(0));
    body.entry("triggered").or_insert_with(|| json!(false));
    Ok(body)
}

fn types_asked(call: &Call) -> [Option<ProfileType>; 2] {
    ["master", "detail"].map(|it| call.query.get(it).and_then(ProfileType::typed))
}

fn no_association(id: &str) -> FolioError {
    FolioError::not_found(format!("Profile association with id '{id}' was not found"))
}

async fn associate(mut call: Call) -> Answer {
    let (body, types) = (call.object().await?, types_asked(&call));
    let given = body.get("id").and_then(Value::as_str).and_then(parse_uuid);
    let id = given.unwrap_or_else(|| call.app.new_uuid());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let mut stored = association_of(txn, body.clone(), &types)?;
        stored.insert("id".to_owned(), id.as_str().into());
        let stored = Value::Object(stored);
        txn.insert(&ASSOCIATION, &id, &stored)?;
        Ok(stored)
    };
    Ok(json_answer(StatusCode::CREATED, &call.db().write(write).await?))
}

async fn association(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        associations::by_id(view, &id)?.ok_or_else(|| no_association(&id))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Point, read).await?))
}

async fn change_association(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let (body, types) = (call.object().await?, types_asked(&call));
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        if !txn.has(&ASSOCIATION, &id)? {
            return Err(no_association(&id));
        }
        let mut stored = association_of(txn, body.clone(), &types)?;
        stored.insert("id".to_owned(), id.as_str().into());
        let stored = Value::Object(stored);
        txn.update(&ASSOCIATION, &id, &stored)?;
        Ok(stored)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

async fn remove_association(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        txn.delete(&ASSOCIATION, &id)?.map(drop).ok_or_else(|| no_association(&id))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn details(call: Call) -> Answer {
    related_to(call, "childSnapshotWrappers", "detailProfileId", "detailProfileType").await
}

async fn masters(call: Call) -> Answer {
    related_to(call, "parentSnapshotWrappers", "masterProfileId", "masterProfileType").await
}

async fn related_to(
    call: Call,
    list: &'static str,
    id_name: &'static str,
    type_name: &'static str,
) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = match list {
            "childSnapshotWrappers" => associations::below(view, &id, None)?,
            _ => associations::above(view, &id)?,
        };
        Ok(json!({"id": id, list: related(view, &found, id_name, type_name)?}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn entity_types(_: Call) -> Answer {
    let types = [
        "INSTANCE",
        "HOLDINGS",
        "ITEM",
        "ORDER",
        "INVOICE",
        "MARC_BIBLIOGRAPHIC",
        "MARC_HOLDINGS",
        "MARC_AUTHORITY",
        "EDIFACT_INVOICE",
        "DELIMITED",
        "STATIC_VALUE",
    ];
    Ok(json_answer(StatusCode::OK, &json!({"entityTypes": types, "totalRecords": types.len()})))
}
