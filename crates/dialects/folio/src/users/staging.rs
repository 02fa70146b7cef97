//! `/staging-users`: people who registered themselves and wait for a member of staff, who creates users from them or
//! updates existing users (mod-users).

use http::StatusCode;
use pinakes_store::{Column, Expr, Index, Kind, Search, Txn, Type, Value as StoreValue};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Kinds, Lock, Missing, Page, Schema, Unique, Writer};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::{at, text_at};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::users::user::{ADDRESS_TYPES, GROUPS, USERS};

/// `/staging-users`.
pub(crate) static STAGING_USERS: Collection = Collection {
    permission: "staging-users",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("externalSystemId", Type::Folded),
            Column::one("status", Type::Folded),
            Column::at("lastName", "personalInfo.lastName", Type::Folded),
            Column::at("firstName", "personalInfo.firstName", Type::Folded),
            Column::at("email", "contactInfo.email", Type::Folded),
        ],
        indexes: &[Index::unique(&["externalSystemId"]), Index::on(&["lastName"])],
        search: Search::Folded,
        ..Kind::named("folio_staging_user")
    },
    schema: Schema {
        required: &["personalInfo.firstName", "personalInfo.lastName", "contactInfo.email"],
        types: &[
            ("isEmailVerified", Kinds::Boolean),
            ("personalInfo", Kinds::Object),
            ("contactInfo", Kinds::Object),
            ("externalSystemId", Kinds::Text),
        ],
        defaults: &[("isEmailVerified", "false")],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "externalSystemId", message: "" }],
    names: Names { whole: &["externalSystemId", "status"], ..Names::PLAIN },
    table: "staging_users",
    is_served: false,
    ..Collection::named("/staging-users", "staging_users", "folio_staging_user")
};

/// The group of a user created from a registration, if the site has one of that name.
const GROUP: &str = "Remote Non-circulating";
/// The type of the address.
const ADDRESS_TYPE: &str = "Home";

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get("/staging-users", to("staging-users.collection.get"), |call| async move {
            let page = Page::of(&call)?;
            collection::answer_list(&call, &STAGING_USERS, page).await
        })
        .post("/staging-users", to("staging-users.item.post"), |call| {
            collection::create(call, &STAGING_USERS)
        })
        .put("/staging-users/{id}", to("staging-users.external-system-id.put"), replace)
        .put("/staging-users/{id}/mergeOrCreateUser", to("staging-users.item.put"), make_user)
}

/// Replaces the registration with an external id and returns it.
pub(crate) async fn replace(mut call: Call) -> Answer {
    let external = call.param("id").to_owned();
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let is_it = Expr::Is("externalSystemId".into(), StoreValue::Folded(external.clone()));
        let Some(found) = txn.first(&STAGING_USERS.kind, is_it)? else {
            let message = format!("Staging user with externalSystemId {external} not found");
            return Err(FolioError::not_found(message));
        };
        let mut body = body.clone();
        body.insert("externalSystemId".into(), external.as_str().into());
        let (collection, writer) = (&STAGING_USERS, writer());
        Ok(collection::put(txn, &writer, collection, &found.id, body, Missing::Refuse, Lock::Ignored)?.body)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

/// Updates the user of `?userId=`, or creates one without it, and deletes the registration.
async fn make_user(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let user = call.query.get("userId").filter(|it| !it.is_empty()).map(str::to_owned);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<String, FolioError> {
        let writer = writer();
        let Some(found) = txn.get(&STAGING_USERS.kind, &id)? else {
            return Err(FolioError::not_found(format!("Staging user with id {id} not found")));
        };
        let person = found.json()?;
        let user_id = match &user {
            Some(user) => {
                let Some(record) = txn.get(&USERS.kind, user)? else {
                    return Err(FolioError::not_found(format!("User with id {user} not found")));
                };
                let Value::Object(mut body) = record.json()? else { return Err(FolioError::not_found("")) };
                bring(txn, &person, &mut body)?;
                collection::put(txn, &writer, &USERS, user, body, Missing::Refuse, Lock::Ignored)?.id
            }
            None => {
                let mut body = Map::new();
                body.insert("active".into(), true.into());
                body.insert("type".into(), "patron".into());
                let name = Expr::Is("group".into(), StoreValue::Folded(GROUP.to_owned()));
                if let Some(group) = txn.first(&GROUPS.kind, name)? {
                    body.insert("patronGroup".into(), group.id.into());
                }
                bring(txn, &person, &mut body)?;
                collection::insert(txn, &writer, &USERS, body)?.id
            }
        };
        txn.delete(&STAGING_USERS.kind, &id)?;
        Ok(user_id)
    };
    let user_id = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &json!({"userId": user_id})))
}

/// Copies the data of a registration into a user's record; what is missing is kept.
fn bring(txn: &mut Txn<'_>, person: &Value, user: &mut Map<String, Value>) -> Result<(), FolioError> {
    if let Some(id) = text_at(person, "externalSystemId") {
        user.insert("externalSystemId".into(), id.into());
    }
    let personal = user.entry("personal").or_insert_with(|| json!({}));
    for (from, to) in [
        ("personalInfo.firstName", "firstName"),
        ("personalInfo.middleName", "middleName"),
        ("personalInfo.lastName", "lastName"),
        ("personalInfo.preferredFirstName", "preferredFirstName"),
        ("contactInfo.email", "email"),
        ("contactInfo.phone", "phone"),
        ("contactInfo.mobilePhone", "mobilePhone"),
    ] {
        if let Some(text) = text_at(person, from) {
            personal[to] = text.into();
        }
    }
    personal["preferredContactTypeId"] = "002".into();
    if let Some(address) = at(person, "addressInfo").filter(|it| it.is_object()) {
        let name = Expr::Is("addressType".into(), StoreValue::Folded(ADDRESS_TYPE.to_owned()));
        let Some(ty) = txn.first(&ADDRESS_TYPES.kind, name)? else {
            let fault = Fault::new(format!("there is no address type {ADDRESS_TYPE}"));
            return Err(FolioError::unprocessable(fault.with("addressInfo", ADDRESS_TYPE)));
        };
        let text = |name: &str| address.get(name).cloned().unwrap_or_default();
        let mut stored = json!({
            "addressLine1": text("addressLine0"), "addressLine2": text("addressLine1"), "city": text("city"),
            "region": text("province"), "countryId": text("country"), "postalCode": text("zip"),
            "addressTypeId": ty.id, "primaryAddress": true,
        });
        if let Value::Object(map) = &mut stored {
            map.retain(|_, value| !value.is_null());
        }
        personal["addresses"] = json!([stored]);
    }
    Ok(())
}
