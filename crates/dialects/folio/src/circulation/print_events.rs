//! Who printed the slips of requests, and how often (`/print-events-storage`, `/circulation/print-events-entry`).

use std::collections::HashMap;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Query, Search, StoreError, Txn, Type, View, Weight};
use serde_json::{Map, Value, json};

use super::moment;
use super::neighbours::USERS;
use super::policies::setting;
use super::records::{Records, copy, object, text};
use super::requests::REQUESTS;
use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Kinds, Schema, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::limits::BULK_ACCOUNTS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

/// Prints, one record per request and print.
pub(crate) static PRINT_EVENTS: Collection = Collection {
    table: "print_events",
    permission: "print-events-storage",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("requestId", Type::Text), Column::one("printEventDate", Type::Instant)],
        indexes: &[Index::on(&["requestId"])],
        search: Search::Folded,
        ..Kind::named("folio_print_event")
    },
    schema: Schema {
        required: &["requestId", "requesterId"],
        types: &[("requestId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    is_served: false,
    ..Collection::named("/print-events-storage/print-events", "printEvents", "folio_print_event")
};

/// Adds the routes of prints.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post(
            "/print-events-storage/print-events-entry",
            Access::to("print-events-storage.print-events-entry.item.post"),
            store,
        )
        .post(
            "/print-events-storage/print-events-status",
            Access::to("print-events-storage.print-events-status.item.post"),
            status,
        )
        .post("/circulation/print-events-entry", Access::to("circulation.print-events-entry.item.post"), note)
}

/// Returns the request ids in a body. Errors: 422 with the messages of FOLIO's validators.
fn request_ids(body: &Map<String, Value>) -> Result<Vec<String>, FolioError> {
    let list = body.get("requestIds").filter(|it| !it.is_null());
    let Some(list) = list.and_then(Value::as_array) else {
        return Err(FolioError::unprocessable(Fault::missing("requestIds")));
    };
    if list.is_empty() || BULK_ACCOUNTS < list.len() {
        let fault = Fault::new("size must be between 1 and 2147483647").ty("1");
        let fault = fault.code("jakarta.validation.constraints.Size.message");
        return Err(FolioError::unprocessable(fault.with("requestIds", json!(list).to_string())));
    }
    let ids: Option<Vec<String>> = list.iter().map(|it| it.as_str().and_then(parse_uuid)).collect();
    ids.ok_or_else(|| {
        let fault = Fault::new("elements in list must match pattern").ty("1").code("-1");
        FolioError::unprocessable(fault.with("requestIds", json!(list).to_string()))
    })
}

/// A print: of which requests, by whom, when.
#[derive(Debug, Clone)]
struct Print {
    requests: Vec<String>,
    by: Map<String, Value>,
}

impl Print {
    fn of(body: &Map<String, Value>) -> Result<Self, FolioError> {
        for name in ["requesterId", "requesterName", "printEventDate"] {
            if body.get(name).is_none_or(Value::is_null) {
                return Err(FolioError::unprocessable(Fault::missing(name)));
            }
        }
        let requests = request_ids(body)?;
        let whole = Value::Object(body.clone());
        if parse_uuid(text(&whole, "requesterId")).is_none() {
            return Err(collection::not_a_uuid("requesterId", text(&whole, "requesterId")));
        }
        let Some(date) = moment::parse(text(&whole, "printEventDate")) else {
            let fault = Fault::new("printEventDate is no date and time in ISO 8601");
            return Err(FolioError::unprocessable(
                fault.with("printEventDate", text(&whole, "printEventDate")),
            ));
        };
        let mut by = Map::new();
        copy(&whole, &["requesterId", "requesterName"], &mut by);
        by.insert("printEventDate".into(), moment::wire(date).into());
        Ok(Self { requests, by })
    }

    fn store(&self, txn: &mut Txn<'_>, writer: &Writer) -> Result<(), FolioError> {
        for request in &self.requests {
            let mut body = self.by.clone();
            body.insert("requestId".into(), request.as_str().into());
            collection::insert(txn, writer, &PRINT_EVENTS, body)?;
        }
        Ok(())
    }
}

async fn store(mut call: Call) -> Answer {
    let print = Print::of(&call.object().await?)?;
    let writer = Writer::of(&call);
    call.db().write(move |txn| print.store(txn, &writer())).await?;
    Ok(answer::empty(StatusCode::CREATED))
}

/// Stores a print for the desk, if the site's setting allows it.
async fn note(mut call: Call) -> Answer {
    let invalid = |_| FolioError::unprocessable(Fault::new("Print Event Request  JSON is invalid"));
    let print = Print::of(&call.object().await?).map_err(invalid)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let refused = |message: &str| Err(FolioError::unprocessable(Fault::new(message)));
        let Some(setting) = setting(txn, SETTING)? else {
            return refused("No configuration found for print event feature");
        };
        if !is_on(&setting) {
            return refused("print event feature is disabled for this tenant");
        }
        if txn.get_many(&REQUESTS.kind, &print.requests)?.iter().any(Option::is_none) {
            return refused("invalid request found");
        }
        print.store(txn, &writer())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Name of the setting that allows prints to be recorded.
const SETTING: &str = "printEventLogFeature";

fn is_on(setting: &Value) -> bool {
    let flag = &setting["enablePrintLog"];
    flag == &Value::Bool(true) || flag.as_str() == Some("true")
}

/// Returns for each request the number of prints and the last one.
fn last_prints(view: &mut View<'_>, requests: &[&str]) -> Result<HashMap<String, (u64, Value)>, StoreError> {
    let mut found: HashMap<String, (u64, Value)> = HashMap::new();
    if requests.is_empty() {
        return Ok(found);
    }
    let of_requests = Expr::In("requestId".into(), requests.iter().map(|it| (*it).into()).collect());
    for record in view.find(&PRINT_EVENTS.kind, &Query::filter(of_requests))? {
        let print = record.json()?;
        let known = found.entry(text(&print, "requestId").to_owned()).or_default();
        known.0 += 1;
        if text(&known.1, "printEventDate") <= text(&print, "printEventDate") {
            known.1 = print;
        }
    }
    Ok(found)
}

async fn status(mut call: Call) -> Answer {
    let ids = request_ids(&call.object().await?)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
        let prints = last_prints(view, &wanted)?;
        let list: Vec<Value> = ids
            .iter()
            .filter_map(|id| {
                let (count, last) = prints.get(id)?;
                let mut shown = object(&json!({"requestId": id, "count": count}));
                copy(last, &["requesterId", "requesterName", "printEventDate"], &mut shown);
                Some(Value::Object(shown))
            })
            .collect();
        Ok(json!({"totalRecords": list.len(), "printEventsStatusResponses": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Adds to requests, as the desk shows them, how often they were printed and by whom last.
pub(super) fn add_details(
    view: &mut View<'_>,
    known: &mut Records,
    requests: &mut [Value],
) -> Result<(), StoreError> {
    if requests.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = requests.iter().map(|it| text(it, "id")).collect();
    let prints = last_prints(view, &ids)?;
    known.load(view, &USERS, prints.values().map(|it| text(&it.1, "requesterId")))?;
    for request in requests {
        let Some((count, last)) = prints.get(text(request, "id")) else { continue };
        let mut shown = object(&json!({"printCount": count, "printEventDate": last["printEventDate"]}));
        if let Some(user) = known.at(view, &USERS, last, "requesterId")? {
            let mut by = Map::new();
            copy(&user["personal"], &["firstName", "lastName", "middleName"], &mut by);
            shown.insert("lastPrintRequester".into(), Value::Object(by));
        }
        if let Value::Object(map) = request {
            map.insert("printDetails".into(), Value::Object(shown));
        }
    }
    Ok(())
}
