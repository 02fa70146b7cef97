//! The parts of the acquisitions modules that migrations and lists need: parts of organizations, acquisition methods,
//! funds (mod-organizations-storage, mod-orders, mod-finance). They are plain records: nothing is ordered, paid or
//! counted here.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Record, Search, Txn, Type, View, Weight};

use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Kinds, Lock, Metadata, Missing, Reference, Schema, Unique, Writer,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

const VALUE: &[Column] = &[Column::one("value", Type::Folded)];
const BY_VALUE: &[Index] = &[Index::unique(&["value"])];

/// `/organizations-storage/categories`.
pub(crate) static CATEGORIES: Collection = Collection {
    permission: "organizations-storage.categories",
    kind: Kind {
        id_path: Some("id"),
        columns: VALUE,
        indexes: BY_VALUE,
        ..Kind::named("folio_organization_category")
    },
    schema: Schema { required: &["value"], types: &[("value", Kinds::Text)], ..Schema::OPEN },
    unique: &[Unique { column: "value", message: "" }],
    ..Collection::named("/organizations-storage/categories", "categories", "folio_organization_category")
};
/// `/organizations-storage/organization-types`.
pub(crate) static ORGANIZATION_TYPES: Collection = Collection {
    permission: "organizations-storage.organization-types",
    schema: Schema { required: &["name", "status"], types: &[("name", Kinds::Text)], ..Schema::OPEN },
    names: Names { fields: &["status"], ..Names::PLAIN },
    ..Collection::named(
        "/organizations-storage/organization-types",
        "organizationTypes",
        "folio_organization_type",
    )
};
/// `/organizations-storage/contacts`.
pub(crate) static CONTACTS: Collection = Collection {
    permission: "organizations-storage.contacts",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("lastName", Type::Folded), Column::one("firstName", Type::Folded)],
        indexes: &[Index::on(&["lastName"])],
        search: Search::Folded,
        ..Kind::named("folio_organization_contact")
    },
    schema: Schema {
        required: &["firstName", "lastName"],
        lists: &["categories", "addresses", "phoneNumbers", "emails", "urls"],
        ..Schema::OPEN
    },
    names: Names { fields: &["inactive", "notes"], ..Names::PLAIN },
    ..Collection::named("/organizations-storage/contacts", "contacts", "folio_organization_contact")
};
/// `/organizations-storage/interfaces`.
pub(crate) static INTERFACES: Collection = Collection {
    permission: "organizations-storage.interfaces",
    schema: Schema { lists: &["type"], ..Schema::OPEN },
    names: Names { fields: &["uri", "available", "notes"], ..Names::PLAIN },
    ..Collection::named("/organizations-storage/interfaces", "interfaces", "folio_organization_interface")
};
/// Credentials of an interface: `{id, interfaceId, username, password}`; at most one record per interface.
pub(crate) static CREDENTIALS: Collection = Collection {
    permission: "organizations-storage.interfaces.credentials",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("interfaceId", Type::Text)],
        indexes: &[Index::unique(&["interfaceId"])],
        ..Kind::named("folio_interface_credential")
    },
    schema: Schema { required: &["username", "password", "interfaceId"], ..Schema::OPEN },
    references: &[Reference { path: "interfaceId", to: || &INTERFACES }],
    unique: &[Unique { column: "interfaceId", message: "" }],
    is_served: false,
    ..Collection::named(
        "/organizations-storage/interfaces",
        "interfaceCredentials",
        "folio_interface_credential",
    )
};
/// `/organizations/banking-information`.
pub(crate) static BANKING: Collection = Collection {
    permission: "organizations.banking-information",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("organizationId", Type::Text)],
        indexes: &[Index::on(&["organizationId"])],
        ..Kind::named("folio_banking_information")
    },
    schema: Schema {
        required: &["organizationId"],
        types: &[("organizationId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    ..Collection::named(
        "/organizations/banking-information",
        "bankingInformation",
        "folio_banking_information",
    )
};

/// Adds the routes of interface credentials.
pub(crate) fn routes(routes: Routes) -> Routes {
    let path = "/organizations-storage/interfaces/{interface}/credentials";
    let to = |end: &str| Access::owned(format!("{}.item.{end}", CREDENTIALS.permission));
    routes
        .get(path, to("get"), show_login)
        .post(path, to("post"), add_login)
        .put(path, to("put"), change_login)
        .delete(path, to("delete"), remove_login)
}

/// Returns the credentials of the interface in a path. Errors: 404.
fn login_of(view: &mut View<'_>, interface: &str) -> Result<Record, FolioError> {
    let found = view.first(&CREDENTIALS.kind, Expr::Is("interfaceId".into(), interface.into()))?;
    found.ok_or_else(|| FolioError::not_found("Not found"))
}

async fn show_login(call: Call) -> Answer {
    let interface = call.uuid_param("interface")?;
    let found = call.db().read(Weight::Point, move |view| login_of(view, &interface)).await?;
    Ok(json_answer(StatusCode::OK, &found.json()?))
}

async fn add_login(mut call: Call) -> Answer {
    let interface = call.uuid_param("interface")?;
    let mut body = call.object().await?;
    body.insert("interfaceId".into(), interface.into());
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| collection::insert(txn, &writer(), &CREDENTIALS, body.clone());
    let stored = call.db().write(write).await?;
    Ok(json_answer(StatusCode::CREATED, &stored.body))
}

async fn change_login(mut call: Call) -> Answer {
    let interface = call.uuid_param("interface")?;
    let mut body = call.object().await?;
    body.insert("interfaceId".into(), interface.as_str().into());
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let id = login_of(txn, &interface)?.id;
        let (missing, lock) = (Missing::Refuse, Lock::Ignored);
        collection::put(txn, &writer(), &CREDENTIALS, &id, body.clone(), missing, lock).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn remove_login(call: Call) -> Answer {
    let interface = call.uuid_param("interface")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let id = login_of(txn, &interface)?.id;
        collection::delete(txn, &writer(), &CREDENTIALS, &id).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// `/orders/acquisition-methods`.
pub(crate) static ACQUISITION_METHODS: Collection = Collection {
    permission: "orders.acquisition-methods",
    kind: Kind {
        id_path: Some("id"),
        columns: VALUE,
        indexes: BY_VALUE,
        ..Kind::named("folio_acquisition_method")
    },
    schema: Schema {
        required: &["value"],
        types: &[("value", Kinds::Text)],
        defaults: &[("source", "\"User\"")],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "value", message: "" }],
    metadata: Metadata::Rmb,
    reference_data: include_str!("../../reference/acquisition-methods.json"),
    ..Collection::named("/orders/acquisition-methods", "acquisitionMethods", "folio_acquisition_method")
};
/// `/finance/funds`.
pub(crate) static FUNDS: Collection = Collection {
    permission: "finance.funds",
    schema: Schema {
        required: &["name", "code", "fundStatus", "ledgerId"],
        types: &[("name", Kinds::Text), ("code", Kinds::Text), ("ledgerId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    unique: &[],
    names: Names { whole: &["code"], fields: &["fundStatus", "ledgerId"], ..Names::PLAIN },
    ..Collection::named("/finance/funds", "funds", "folio_fund")
};
