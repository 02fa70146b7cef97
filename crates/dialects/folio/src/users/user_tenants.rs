//! `/user-tenants`: the tenants of a consortium in which a user is known (mod-users). Clients request it at every
//! login; a tenant outside any consortium answers with an empty list.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{
    Column, Expr, Index, Kind, Query, Record, Search, Txn, Type, Value as StoreValue, View, Weight,
};
use serde_json::{Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Kinds, Schema, Writer};
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Parameters by which a list can be filtered.
const PARAMETERS: [&str; 8] = [
    "userId",
    "username",
    "tenantId",
    "externalSystemId",
    "barcode",
    "email",
    "phoneNumber",
    "mobilePhoneNumber",
];
/// Default number of records in an answer.
const DEFAULT_LIMIT: u64 = 10;

/// `/user-tenants`.
pub(crate) static USER_TENANTS: Collection = Collection {
    permission: "user-tenants",
    table: "user_tenant",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("userId", Type::Text),
            Column::one("username", Type::Folded),
            Column::one("tenantId", Type::Folded),
            Column::one("externalSystemId", Type::Folded),
            Column::one("barcode", Type::Folded),
            Column::one("email", Type::Folded),
            Column::one("phoneNumber", Type::Folded),
            Column::one("mobilePhoneNumber", Type::Folded),
        ],
        indexes: &[
            Index::on(&["userId"]),
            Index::on(&["username"]),
            Index::on(&["tenantId"]),
            Index::on(&["externalSystemId"]),
            Index::on(&["barcode"]),
            Index::on(&["email"]),
            Index::on(&["phoneNumber"]),
            Index::on(&["mobilePhoneNumber"]),
        ],
        search: Search::Folded,
        ..Kind::named("folio_user_tenant")
    },
    schema: Schema {
        required: &["userId", "tenantId"],
        types: &[
            ("userId", Kinds::Uuid),
            ("username", Kinds::Text),
            ("tenantId", Kinds::Text),
            ("externalSystemId", Kinds::Text),
            ("barcode", Kinds::Text),
            ("email", Kinds::Text),
            ("phoneNumber", Kinds::Text),
            ("mobilePhoneNumber", Kinds::Text),
        ],
        ..Schema::OPEN
    },
    is_served: false,
    ..Collection::named("/user-tenants", "userTenants", "folio_user_tenant")
};

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get("/user-tenants", to("user-tenants.collection.get"), list)
        .post("/user-tenants", to("user-tenants.item.post"), |call| collection::create(call, &USER_TENANTS))
        .delete("/user-tenants", to("user-tenants.item.delete"), remove)
}

fn is(name: &str, value: &str) -> Expr {
    let value = match name {
        "userId" => StoreValue::Text(value.to_ascii_lowercase()),
        _ => StoreValue::Folded(value.to_owned()),
    };
    Expr::Is(name.into(), value)
}

/// Lists the records that satisfy every parameter, or any of them with `queryOp=or`.
async fn list(call: Call) -> Answer {
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", DEFAULT_LIMIT)?);
    let given = PARAMETERS.iter().filter_map(|name| Some(is(name, call.query.get(name)?)));
    let given: Vec<Expr> = given.collect();
    let is_any = call.query.get("queryOp").is_some_and(|it| it.eq_ignore_ascii_case("or"));
    let filter = match given.len() {
        0 => Expr::All,
        _ if is_any => Expr::Or(given),
        _ => Expr::And(given),
    };
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let total = view.count(&USER_TENANTS.kind, &filter)?;
        let query = Query::filter(filter.clone()).window(offset, limit);
        let found = if limit == 0 { Vec::new() } else { view.find(&USER_TENANTS.kind, &query)? };
        let list = found.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"userTenants": list, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Deletes the records of one tenant, `?tenantId=`. Errors: 400 without it, so that it never deletes all.
async fn remove(call: Call) -> Answer {
    let Some(tenant) = call.query.get("tenantId").filter(|it| !it.is_empty()).map(str::to_owned) else {
        return Err(FolioError::bad_request("tenantId must be given: it says whose records go"));
    };
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        for record in txn.find(&USER_TENANTS.kind, &Query::filter(is("tenantId", &tenant)))? {
            collection::delete(txn, &writer, &USER_TENANTS, &record.id)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
