//! `/circulation/loans` and the paths below it that only read and write loans.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{StoreError, View, Weight};
use serde_json::{Map, Value, json};

use super::{HISTORY, LOANS, actions, renew, view};
use crate::circulation::neighbours::{ITEMS, USERS};
use crate::circulation::records::{Records, object};
use crate::platform::app::Call;
use crate::platform::collection::{self, Lock, Missing, Page, Writer, answer_list, page_of};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};

/// Adds the routes of loans.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/circulation/loans", Access::to("circulation.loans.collection.get"), list)
        .post("/circulation/loans", Access::to("circulation.loans.item.post"), create)
        .get("/circulation/loans/{id}", Access::to("circulation.loans.item.get"), by_id)
        .put("/circulation/loans/{id}", Access::to("circulation.loans.item.put"), replace)
        .delete("/circulation/loans/{id}", Access::to("circulation.loans.item.delete"), remove)
        .delete("/circulation/loans", Access::to("circulation.loans.collection.delete"), |call| {
            collection::remove_by_query(call, &LOANS)
        })
        .post("/circulation/loans/{id}/add-info", Access::to("circulation.loans.add-info.post"), add_info)
        .get(
            "/loan-storage/loan-history",
            Access::to("circulation-storage.loans-history.collection.get"),
            history,
        )
        .with(renew::routes)
        .with(actions::routes)
}

async fn list(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<(Vec<Value>, u64), FolioError> {
        let (records, total) = page_of(view, &LOANS, &page)?;
        let loans: Result<Vec<Value>, StoreError> = records.iter().map(pinakes_store::Record::json).collect();
        Ok((view::extended_all(view, &mut Records::default(), loans?)?, total))
    };
    let (loans, total) = call.db().read(Weight::Scan, read).await?;
    Ok(json_answer(StatusCode::OK, &json!({"loans": loans, "totalRecords": total})))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Option<Value>, FolioError> {
        let Some(record) = view.get(&LOANS.kind, &id)? else { return Ok(None) };
        Ok(view::extended_all(view, &mut Records::default(), vec![record.json()?])?.pop())
    };
    let found = call.db().read(Weight::Point, read).await?;
    let loan = found.ok_or_else(|| FolioError::not_found("loan not found"))?;
    Ok(json_answer(StatusCode::OK, &loan))
}

async fn history(call: Call) -> Answer {
    let page = Page::of(&call)?;
    answer_list(&call, &HISTORY, page).await
}

/// Removes from a client's loan the properties that were added for reading.
fn stored(mut body: Map<String, Value>) -> Map<String, Value> {
    const ADDED: [&str; 9] = [
        "item",
        "borrower",
        "proxy",
        "patronGroupAtCheckout",
        "loanPolicy",
        "overdueFinePolicy",
        "lostItemPolicy",
        "checkoutServicePoint",
        "checkinServicePoint",
    ];
    let group = body.get("patronGroupAtCheckout").and_then(|it| it.get("id")).cloned();
    body.retain(|name, _| {
        !ADDED.contains(&name.as_str()) && !matches!(name.as_str(), "feesAndFines" | "isDcb")
    });
    if let Some(group) = group {
        body.entry("patronGroupIdAtCheckout").or_insert(group);
    }
    body
}

/// Creates a loan by the ids of item and user, e.g. one that comes from another system.
async fn create(mut call: Call) -> Answer {
    let body = stored(call.object().await?);
    let writer = Writer::of(&call);
    let write = move |txn: &mut pinakes_store::Txn<'_>| -> Result<Value, FolioError> {
        let writer = writer();
        require(txn, &USERS, &body, "userId", "user")?;
        require(txn, &ITEMS, &body, "itemId", "item")?;
        let mut body = body.clone();
        body.entry("action").or_insert("checkedout".into());
        let loan = collection::insert(txn, &writer, &LOANS, body)?.body;
        Ok(view::extended_all(txn, &mut Records::default(), vec![loan])?.pop().unwrap_or_default())
    };
    let loan = call.db().write(write).await?;
    let location = format!("/circulation/loans/{}", loan["id"].as_str().unwrap_or_default());
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &loan), LOCATION, &location))
}

fn require(
    view: &mut View<'_>,
    collection: &'static crate::platform::collection::Collection,
    body: &Map<String, Value>,
    field: &str,
    what: &str,
) -> Result<(), FolioError> {
    let id = body.get(field).and_then(Value::as_str).unwrap_or_default();
    if view.has(&collection.kind, id)? {
        return Ok(());
    }
    let fault = Fault::new(format!("No {what} with ID {id} could be found")).with(field, id);
    Err(FolioError::unprocessable(fault))
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = stored(call.object().await?);
    let writer = Writer::of(&call);
    let write = move |txn: &mut pinakes_store::Txn<'_>| {
        collection::put(txn, &writer(), &LOANS, &id, body.clone(), Missing::Insert, Lock::Ignored).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn remove(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    call.db().write(move |txn| collection::delete(txn, &writer(), &LOANS, &id).map(drop)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Adds a remark to a loan, kept in its history: `{"action":"patronInfoAdded","actionComment"}`.
async fn add_info(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let [action, comment] = [required_text(&body, "action")?, required_text(&body, "actionComment")?];
    if !matches!(action, "patronInfoAdded" | "staffInfoAdded") {
        let fault = Fault::new("action must be one of: patronInfoAdded, staffInfoAdded");
        return Err(FolioError::unprocessable(fault.with("action", action)));
    }
    let [action, comment] = [action, comment].map(str::to_owned);
    let writer = Writer::of(&call);
    let write = move |txn: &mut pinakes_store::Txn<'_>| -> Result<(), FolioError> {
        let record = txn.get(&LOANS.kind, &id)?.ok_or_else(|| FolioError::not_found("loan not found"))?;
        let mut loan = object(&record.json()?);
        loan.insert("action".into(), action.as_str().into());
        loan.insert("actionComment".into(), comment.as_str().into());
        super::change(txn, &writer(), loan).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
