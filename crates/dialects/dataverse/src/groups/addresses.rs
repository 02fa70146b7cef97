//! IP groups: requests from one of their addresses are in the group. `/api/admin/groups/ip`.

use std::net::IpAddr;

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, groups, stored};

/// IP groups by number: body is an [`AddressGroup`].
pub(crate) static ADDRESS_GROUP: Kind = Kind {
    columns: &[Column::one("alias", Type::Text)],
    indexes: &[Index::unique(&["alias"])],
    ..Kind::named("dataverse_address_group")
};

/// An IP group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AddressGroup {
    /// Number.
    pub id: i64,
    /// Short name: the group is `&ip/{alias}`.
    pub alias: String,
    /// Name.
    pub name: String,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// First and last address of each range, both included.
    pub ranges: Vec<(IpAddr, IpAddr)>,
}

impl AddressGroup {
    fn identifier(&self) -> String {
        format!("&ip/{}", self.alias)
    }

    fn has(&self, address: IpAddr) -> bool {
        self.ranges
            .iter()
            .any(|(from, to)| from.is_ipv4() == address.is_ipv4() && *from <= address && address <= *to)
    }

    fn json(&self) -> Value {
        let (single, ranges): (Vec<_>, Vec<_>) = self.ranges.iter().partition(|it| it.0 == it.1);
        let mut map = Map::new();
        map.insert("identifier".into(), self.identifier().into());
        map.insert("id".into(), self.id.into());
        map.insert("alias".into(), self.alias.as_str().into());
        map.insert("name".into(), self.name.as_str().into());
        map.insert("description".into(), self.description.as_str().into());
        let text = |it: &IpAddr| Value::String(it.to_string());
        if !ranges.is_empty() {
            map.insert("ranges".into(), ranges.iter().map(|(a, b)| json!([text(a), text(b)])).collect());
        }
        if !single.is_empty() {
            map.insert("addresses".into(), single.iter().map(|it| text(&it.0)).collect());
        }
        Value::Object(map)
    }
}

/// Returns the groups that contain an address.
pub(crate) fn of(view: &mut View<'_>, address: Option<IpAddr>) -> Result<Vec<String>, ApiError> {
    let Some(address) = address else { return Ok(Vec::new()) };
    let all: Vec<AddressGroup> = stored::find(view, &ADDRESS_GROUP, &Query::filter(Expr::All))?;
    Ok(all.iter().filter(|it| it.has(address)).map(AddressGroup::identifier).collect())
}

/// Returns the group with that short name.
pub(crate) fn by_alias(view: &mut View<'_>, alias: &str) -> Result<Option<AddressGroup>, ApiError> {
    let found = view.first(&ADDRESS_GROUP, Expr::Is("alias".into(), alias.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

fn by_text(view: &mut View<'_>, text: &str) -> Result<AddressGroup, ApiError> {
    let found = match text.parse::<i64>() {
        Ok(_) => stored::get(view, &ADDRESS_GROUP, text)?,
        Err(_) => by_alias(view, text)?,
    };
    found.ok_or_else(|| ApiError::not_found(format!("Group {text} not found")))
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/groups/ip", list)
        .post("/admin/groups/ip", create)
        .put("/admin/groups/ip/{alias}", replace)
        .get("/admin/groups/ip/{alias}", show)
        .delete("/admin/groups/ip/{alias}", delete)
        .get("/admin/groups/shib", none)
}

async fn none(_: Call) -> Answer {
    envelope::ok(Vec::<Value>::new())
}

async fn list(call: Call) -> Answer {
    let all = |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let all: Vec<AddressGroup> = stored::find(view, &ADDRESS_GROUP, &Query::filter(Expr::All))?;
        Ok(all.iter().map(AddressGroup::json).collect())
    };
    envelope::ok(call.db().read(Weight::Scan, all).await?)
}

/// Returns the ranges and single addresses in a body. Errors: 400 that names the invalid address.
fn read_ranges(body: &Map<String, Value>) -> Result<Vec<(IpAddr, IpAddr)>, ApiError> {
    let address = |value: Option<&Value>| -> Result<IpAddr, ApiError> {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        text.parse().map_err(|_| ApiError::bad_request(format!("{text:?} is not an IP address")))
    };
    let list = |name: &str| body.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut ranges = Vec::new();
    for range in list("ranges") {
        let (from, to) = (address(range.get(0))?, address(range.get(1))?);
        ranges.push((from.min(to), from.max(to)));
    }
    for single in list("addresses") {
        let at = address(Some(&single))?;
        ranges.push((at, at));
    }
    Ok(ranges)
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let alias = body.get("alias").and_then(Value::as_str).unwrap_or_default().to_owned();
    store(call, body, alias).await
}

async fn replace(mut call: Call) -> Answer {
    let body = call.object().await?;
    let alias = call.param("alias").to_owned();
    store(call, body, alias).await
}

async fn store(call: Call, body: Map<String, Value>, alias: String) -> Answer {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if !groups::is_alias(&alias) {
        return Err(ApiError::bad_request("alias must be letters, digits, '-' and '_'"));
    }
    let (name, description, ranges) = (text("name"), text("description"), read_ranges(&body)?);
    let (ids, is_new) = (call.ids(1).await?, call.method == http::Method::POST);
    let write = move |txn: &mut Txn<'_>| -> Result<AddressGroup, ApiError> {
        let mut ids = ids;
        let id = ids.next()?;
        let mut alias = if alias.is_empty() { format!("ipGroup{id}") } else { alias.clone() };
        let there = by_alias(txn, &alias)?;
        if there.is_some() && is_new {
            alias = format!("{alias}-{id}");
        }
        let id = there.filter(|_| !is_new).map_or(id, |it| it.id);
        let group = AddressGroup {
            id,
            alias,
            name: name.clone(),
            description: description.clone(),
            ranges: ranges.clone(),
        };
        stored::put(txn, &ADDRESS_GROUP, &group.id.to_string(), &group)?;
        Ok(group)
    };
    let group = call.db().write(write).await?;
    envelope::created(&format!("/admin/groups/ip/{}", group.alias), group.json())
}

async fn show(call: Call) -> Answer {
    let alias = call.param("alias").to_owned();
    let found = call.db().read(Weight::Point, move |view| by_text(view, &alias)).await?;
    envelope::ok(found.json())
}

async fn delete(call: Call) -> Answer {
    let alias = call.param("alias").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let group = by_text(txn, &alias)?;
        groups::forget(txn, &group.identifier())?;
        txn.delete(&ADDRESS_GROUP, &group.id.to_string())?;
        Ok(group.alias)
    };
    let alias = call.db().write(write).await?;
    envelope::message(format!("Group {alias} deleted."))
}
