//! Users, their groups and related records (section 11 of the contract).
//!
//! A user is a record of `/users`. A user who may log in also has an account of the server, with the record's id as its
//! UUID; name and `active` of the account follow the record.

use std::collections::HashSet;

use pinakes_accounts::{AccountsError, User, user};
use pinakes_store::{Column, Index, Kind, Search, Txn, Type, View};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::places;
use crate::platform::collection::{Collection, Hooks, Kinds, Reference, Schema, Unique, Writer};
use crate::platform::cql::{ANYWHERE, Names};
use crate::platform::error::{Fault, FolioError};
use crate::platform::json::text_at;

/// `/users`.
pub static USERS: Collection = Collection {
    permission: "users",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("username", Type::Folded),
            Column::one("barcode", Type::Folded),
            Column::one("externalSystemId", Type::Folded),
            Column::one("patronGroup", Type::Text),
            Column::one("active", Type::Boolean),
            Column::at("lastName", "personal.lastName", Type::Folded),
            Column::at("firstName", "personal.firstName", Type::Folded),
            Column::at("preferredFirstName", "personal.preferredFirstName", Type::Folded),
            Column::at("middleName", "personal.middleName", Type::Folded),
            Column::at("email", "personal.email", Type::Folded),
            Column::one("type", Type::Folded),
        ],
        indexes: &[
            Index::unique(&["username"]),
            Index::unique(&["barcode"]),
            Index::unique(&["externalSystemId"]),
            Index::on(&["lastName"]),
        ],
        search: Search::Folded,
        joins: &["id"],
        facets: &[pinakes_store::Facet::values("patronGroup"), pinakes_store::Facet::values("departments")],
        ..Kind::named("folio_user")
    },
    schema: Schema {
        required: &["personal.lastName"],
        types: &[
            ("username", Kinds::Text),
            ("barcode", Kinds::Text),
            ("externalSystemId", Kinds::Text),
            ("active", Kinds::Boolean),
            ("patronGroup", Kinds::Uuid),
            ("personal", Kinds::Object),
            ("departments", Kinds::List),
            ("proxyFor", Kinds::List),
        ],
        lists: &["proxyFor", "departments"],
        known: &[
            "username",
            "externalSystemId",
            "barcode",
            "active",
            "type",
            "patronGroup",
            "departments",
            "meta",
            "proxyFor",
            "personal",
            "enrollmentDate",
            "expirationDate",
            "createdDate",
            "updatedDate",
            "tags",
            "customFields",
            "preferredEmailCommunication",
        ],
        ..Schema::OPEN
    },
    other_id: Some("You cannot change the value of the id field"),
    is_put_refused_plainly: true,
    unique: &[
        Unique { column: "id", message: "User with this id already exists" },
        Unique { column: "username", message: "User with this username already exists" },
        Unique { column: "barcode", message: "This barcode has already been taken" },
        Unique { column: "externalSystemId", message: "User with this externalSystemId already exists" },
    ],
    references: &[
        Reference { path: "patronGroup", to: || &GROUPS },
        Reference { path: "departments", to: || &DEPARTMENTS },
        Reference { path: "personal.addresses.addressTypeId", to: || &ADDRESS_TYPES },
    ],
    names: Names {
        aliases: &[("keywords", ANYWHERE)],
        elements: &[("personal.addresses", "addressLine1")],
        whole: &["username", "barcode", "externalSystemId"],
        anywhere: &[
            "username",
            "barcode",
            "externalSystemId",
            "personal.lastName",
            "personal.firstName",
            "personal.preferredFirstName",
            "personal.middleName",
            "personal.email",
        ],
        fields: &[
            "type",
            "enrollmentDate",
            "expirationDate",
            "createdDate",
            "updatedDate",
            "preferredEmailCommunication",
            "personal.phone",
            "personal.mobilePhone",
            "personal.dateOfBirth",
            "personal.addresses.addressTypeId",
            "personal.addresses.city",
            "personal.addresses.region",
            "personal.addresses.countryId",
            "personal.addresses.postalCode",
            "personal.preferredContactTypeId",
            "personal.profilePictureLink",
            "personal.pronouns",
        ],
    },
    hooks: Hooks { prepare: check, stored: follow, deleting: remove_account, ..Hooks::NONE },
    ..Collection::named("/users", "users", "users")
};

/// `/groups`.
pub static GROUPS: Collection = Collection {
    permission: "usergroups",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("group", Type::Folded)],
        indexes: &[Index::unique(&["group"])],
        ..Kind::named("folio_group")
    },
    schema: Schema { required: &["group"], types: &[("group", Kinds::Text)], ..Schema::OPEN },
    unique: &[Unique { column: "group", message: "Group with this name already exists" }],
    names: Names { whole: &["group"], ..Names::PLAIN },
    reference_data: include_str!("../../reference/groups.json"),
    ..Collection::named("/groups", "usergroups", "groups")
};

/// `/addresstypes`.
pub static ADDRESS_TYPES: Collection = Collection {
    permission: "addresstypes",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("addressType", Type::Folded)],
        indexes: &[Index::unique(&["addressType"])],
        ..Kind::named("folio_address_type")
    },
    schema: Schema { required: &["addressType"], ..Schema::OPEN },
    unique: &[Unique { column: "addressType", message: "" }],
    reference_data: include_str!("../../reference/address-types.json"),
    ..Collection::named("/addresstypes", "addressTypes", "addresstype")
};

/// `/departments`.
pub static DEPARTMENTS: Collection = Collection {
    permission: "departments",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded), Column::one("code", Type::Folded)],
        indexes: &[Index::unique(&["name"]), Index::unique(&["code"])],
        ..Kind::named("folio_department")
    },
    schema: Schema { required: &["name", "code"], ..Schema::OPEN },
    unique: &[
        Unique { column: "name", message: "This department name already exists" },
        Unique { column: "code", message: "This department code already exists" },
    ],
    ..Collection::named("/departments", "departments", "departments")
};

/// `/proxiesfor`: who may borrow on behalf of whom.
pub static PROXIES_FOR: Collection = Collection {
    permission: "proxiesfor",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("userId", Type::Text), Column::one("proxyUserId", Type::Text)],
        indexes: &[Index::unique(&["userId", "proxyUserId"]), Index::on(&["proxyUserId"])],
        search: Search::Folded,
        ..Kind::named("folio_proxy_for")
    },
    schema: Schema { types: &[("userId", Kinds::Uuid), ("proxyUserId", Kinds::Uuid)], ..Schema::OPEN },
    unique: &[Unique { column: "proxyUserId", message: "Proxy relationship already exists" }],
    references: &[
        Reference { path: "userId", to: || &USERS },
        Reference { path: "proxyUserId", to: || &USERS },
    ],
    ..Collection::named("/proxiesfor", "proxiesFor", "proxyfor")
};

/// `/request-preference-storage/request-preference`: how users want requested items delivered.
pub static REQUEST_PREFERENCES: Collection = Collection {
    permission: "request-preference-storage.request-preference",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("userId", Type::Text)],
        indexes: &[Index::unique(&["userId"])],
        search: Search::Folded,
        ..Kind::named("folio_request_preference")
    },
    schema: Schema {
        required: &["userId", "holdShelf", "delivery"],
        types: &[("userId", Kinds::Uuid), ("holdShelf", Kinds::Boolean), ("delivery", Kinds::Boolean)],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "userId", message: "Request preference for specified user already exists" }],
    ..Collection::named(
        "/request-preference-storage/request-preference",
        "requestPreferences",
        "user_request_preference",
    )
};

/// `/service-points-users`: at which service points users work.
pub static SERVICE_POINTS_USERS: Collection = Collection {
    permission: "inventory-storage.service-points-users",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("userId", Type::Text),
            Column::one("defaultServicePointId", Type::Text),
            Column::many("servicePointsIds", Type::Text),
        ],
        indexes: &[Index::unique(&["userId"])],
        search: Search::Folded,
        ..Kind::named("folio_service_points_user")
    },
    schema: Schema {
        required: &["userId"],
        types: &[("userId", Kinds::Uuid), ("servicePointsIds", Kinds::List)],
        lists: &["servicePointsIds", "servicePoints"],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "userId", message: "" }],
    references: &[
        Reference { path: "defaultServicePointId", to: || &places::SERVICE_POINTS },
        Reference { path: "servicePointsIds", to: || &places::SERVICE_POINTS },
    ],
    ..Collection::named("/service-points-users", "servicePointsUsers", "service_point_user")
};

/// Builds the record of a user whose account was created in another way.
pub(crate) fn record_of(account: &User) -> Map<String, Value> {
    let last_name = account.last_name.clone().or_else(|| account.display_name.clone());
    let mut personal = json!({"lastName": last_name.unwrap_or_else(|| account.username.clone())});
    if let Some(first_name) = &account.first_name {
        personal["firstName"] = first_name.as_str().into();
    }
    if let Some(email) = &account.email {
        personal["email"] = email.as_str().into();
    }
    let body = json!({
        "id": account.uuid.to_string(), "username": account.username, "active": account.active, "type": "staff",
        "personal": personal,
    });
    body.as_object().cloned().unwrap_or_default()
}

/// Builds the account of a user's record; `None` without a username.
pub(crate) fn account_of(record: &Value, uuid: Uuid, now_ms: i64) -> Option<User> {
    let mut account = User::with_uuid(text_at(record, "username")?, uuid, now_ms);
    bring_up_to_date(&mut account, record);
    Some(account)
}

fn bring_up_to_date(account: &mut User, record: &Value) {
    if let Some(name) = text_at(record, "username") {
        name.clone_into(&mut account.username);
    }
    // A record without `active` does not change whether the account may log in.
    account.active = record.get("active").and_then(Value::as_bool).unwrap_or(account.active);
    let text = |path: &str| text_at(record, path).map(str::to_owned);
    account.last_name = text("personal.lastName").or(account.last_name.take());
    account.first_name = text("personal.firstName").or(account.first_name.take());
    account.email = text("personal.email").or(account.email.take());
}

/// Refuses a name that another user's account has, and addresses that have no type or share one.
fn check(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    check_addresses(txn, body)?;
    let (name, id) = (body.get("username").and_then(Value::as_str), body.get("id").and_then(Value::as_str));
    let Some(name) = name else { return Ok(()) };
    match user::by_username(txn, name)? {
        Some(account) if Some(account.uuid.to_string().as_str()) != id => Err(name_taken(name)),
        _ => Ok(()),
    }
}

fn check_addresses(view: &mut View<'_>, body: &Map<String, Value>) -> Result<(), FolioError> {
    let addresses = body.get("personal").and_then(|it| it.get("addresses")).and_then(Value::as_array);
    let types: Vec<&str> =
        addresses.into_iter().flatten().filter_map(|it| text_at(it, "addressTypeId")).collect();
    let mut seen = HashSet::new();
    if !types.iter().all(|it| seen.insert(*it)) {
        return Err(FolioError::bad_request("Users are limited to one address per addresstype"));
    }
    for id in types {
        if !view.has(&ADDRESS_TYPES.kind, &id.to_lowercase())? {
            return Err(FolioError::bad_request("You cannot add addresses with non-existant address types"));
        }
    }
    Ok(())
}

fn name_taken(name: &str) -> FolioError {
    let fault = Fault::new("User with this username already exists").ty("1").code("-1");
    FolioError::unprocessable(fault.with("username", name))
}

/// Updates the account from the record.
fn follow(txn: &mut Txn<'_>, writer: &Writer, body: &Value, _: Option<&Value>) -> Result<(), FolioError> {
    let uuid = text_at(body, "id").and_then(|it| Uuid::parse_str(it).ok()).unwrap_or_default();
    let Some(account) = user::by_uuid(txn, uuid)? else { return Ok(()) };
    let changed = user::change(txn, &account.id, writer.now_ms, |account| bring_up_to_date(account, body));
    match changed {
        Ok(_) => Ok(()),
        Err(AccountsError::UsernameTaken(name)) => Err(name_taken(&name)),
        Err(error) => Err(error.into()),
    }
}

fn remove_account(txn: &mut Txn<'_>, _: &Writer, body: &Value) -> Result<(), FolioError> {
    let uuid = text_at(body, "id").and_then(|it| Uuid::parse_str(it).ok()).unwrap_or_default();
    if let Some(account) = user::by_uuid(txn, uuid)? {
        user::remove(txn, &account.id)?;
    }
    txn.delete(&PIN, &uuid.to_string())?;
    Ok(())
}

/// PINs: `{id, hash}`, by the user's id.
pub(crate) static PIN: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_patron_pin") };
