//! Lost items whose cost staff find out: a record waits until it is billed, cancelled or its time is over.

use http::StatusCode;
use pinakes_store::{End, Expr, Query, StoreError, Txn, Value as Wanted, View};
use serde_json::{Map, Value, json};

use super::OWNERS;
use super::accounts::{self, Charge};
use super::money::Money;
use crate::circulation::book::Book;
use crate::circulation::fees::actual_cost_records::{self, ACTUAL_COSTS, OPEN};
use crate::circulation::fees::charged::Automatic;
use crate::circulation::fees::settled;
use crate::circulation::loans::LOANS;
use crate::circulation::neighbours::{GROUPS, ITEMS, LOAN_TYPES, LOCATIONS, USERS};
use crate::circulation::records::{Records, copy, object, text};
use crate::circulation::{loan_policy, moment};
use crate::platform::app::Call;
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::vocabularies::IDENTIFIER_TYPES;

/// How an item was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    Declared,
    AgedToLost,
}

impl Loss {
    fn name(self) -> &'static str {
        match self {
            Self::Declared => "Declared lost",
            Self::AgedToLost => "Aged to lost",
        }
    }
}

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post("/actual-cost-fee-fine/bill", Access::to("actual-cost-fee-fine-bill.post"), |call| {
            decide(call, bill)
        })
        .post("/actual-cost-fee-fine/cancel", Access::to("actual-cost-fee-fine-cancel.post"), |call| {
            decide(call, cancel)
        })
}

/// Begins to wait for what a lost item costs.
pub(super) fn open(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    (loan, book): (&Value, &Book),
    (owner, policy): (&Value, &Value),
    loss: Loss,
) -> Result<(), FolioError> {
    let now = moment::from_ms(writer.now_ms);
    let user = known.at(txn, &USERS, loan, "userId")?.unwrap_or_default();
    let group = known.at(txn, &GROUPS, &user, "patronGroup")?.unwrap_or_default();
    let expires = loan_policy::after(policy, "lostItemChargeFeeFine", now).map(moment::wire);
    let shown = book.summary();
    let mut patron = Map::new();
    copy(&user, &["id", "barcode"], &mut patron);
    copy(&user["personal"], &["firstName", "lastName", "middleName"], &mut patron);
    copy(
        &json!({"patronGroupId": group["id"], "patronGroup": group["group"]}),
        &["patronGroupId", "patronGroup"],
        &mut patron,
    );
    let record = json!({
        "lossType": loss.name(),
        "lossDate": moment::wire(now),
        "expirationDate": expires,
        "status": OPEN,
        "user": patron,
        "loan": {"id": loan["id"]},
        "item": item_shown(txn, known, book)?,
        "instance": {
            "id": book.instance_id(),
            "title": book.title(),
            "identifiers": identifiers(txn, known, book)?,
            "contributors": shown.get("contributors"),
        },
        "feeFine": {
            "ownerId": owner["id"],
            "owner": owner["owner"],
            "typeId": accounts::id_of(Automatic::LostItemActualCost, txn)?,
            "type": Automatic::LostItemActualCost.name(),
        },
    });
    collection::insert(txn, writer, &ACTUAL_COSTS, object(&record)).map(drop)
}

fn item_shown(view: &mut View<'_>, known: &mut Records, book: &Book) -> Result<Value, StoreError> {
    let mut map = Map::new();
    let item = &book.item;
    copy(item, &["id", "barcode", "holdingsRecordId", "materialTypeId"], &mut map);
    map.insert("materialType".into(), book.material_type().into());
    for (id, name, location) in [
        (
            "permanentLocationId",
            "permanentLocation",
            known.at(view, &LOCATIONS, item, "permanentLocationId")?,
        ),
        (
            "effectiveLocationId",
            "effectiveLocation",
            known.at(view, &LOCATIONS, item, "effectiveLocationId")?,
        ),
    ] {
        if let Some(location) = location {
            map.insert(id.into(), location["id"].clone());
            map.insert(name.into(), location["name"].clone());
        }
    }
    if let Some(loan_type) = known.get(view, &LOAN_TYPES, book.loan_type_id())? {
        map.insert("loanTypeId".into(), loan_type["id"].clone());
        map.insert("loanType".into(), loan_type["name"].clone());
    }
    let mut components = Map::new();
    copy(&item["effectiveCallNumberComponents"], &["callNumber", "prefix", "suffix"], &mut components);
    map.insert("effectiveCallNumberComponents".into(), Value::Object(components));
    copy(item, &["volume", "enumeration", "chronology", "displaySummary", "copyNumber"], &mut map);
    Ok(Value::Object(map))
}

fn identifiers(view: &mut View<'_>, known: &mut Records, book: &Book) -> Result<Vec<Value>, StoreError> {
    let mut list = Vec::new();
    for identifier in book.identifiers() {
        let ty = known.at(view, &IDENTIFIER_TYPES, identifier, "identifierTypeId")?.unwrap_or_default();
        list.push(json!({
            "value": identifier["value"], "identifierType": ty["name"],
            "identifierTypeId": identifier["identifierTypeId"],
        }));
    }
    Ok(list)
}

/// What staff decide about a record.
type Decision = fn(&mut Txn<'_>, &Writer, &Value, &mut Map<String, Value>) -> Result<(), FolioError>;

async fn decide(mut call: Call, decision: Decision) -> Answer {
    let body = Value::Object(call.object().await?);
    let id = text(&body, "actualCostRecordId").to_owned();
    if id.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("actualCostRecordId")));
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let writer = writer();
        let Some(record) = txn.get(&ACTUAL_COSTS.kind, &id)? else {
            return Err(FolioError::not_found(format!("Actual cost record {id} was not found")));
        };
        let record = record.json()?;
        let status = text(&record, "status");
        if status != OPEN {
            let message = format!("Actual cost record {id} is already {}", status.to_lowercase());
            return Err(FolioError::unprocessable(Fault::new(message).with("actualCostRecordId", &id)));
        }
        let mut changed = object(&record);
        copy(&body, &["additionalInfoForStaff", "additionalInfoForPatron"], &mut changed);
        decision(txn, &writer, &body, &mut changed)?;
        let stored =
            collection::put(txn, &writer, &ACTUAL_COSTS, &id, changed, Missing::Refuse, Lock::Ignored)?;
        settled::close_if_settled(txn, &writer, text(&record, "loan.id"))?;
        Ok(stored.body)
    };
    Ok(json_answer(StatusCode::CREATED, &call.db().write(write).await?))
}

fn cancel(_: &mut Txn<'_>, _: &Writer, _: &Value, record: &mut Map<String, Value>) -> Result<(), FolioError> {
    record.insert("status".into(), "Cancelled".into());
    Ok(())
}

fn bill(
    txn: &mut Txn<'_>,
    writer: &Writer,
    asked: &Value,
    record: &mut Map<String, Value>,
) -> Result<(), FolioError> {
    let amount = Money::of(&asked["amount"]).filter(|it| it.is_positive()).ok_or_else(|| {
        FolioError::unprocessable(
            Fault::new("Amount must be positive").with("amount", asked["amount"].to_string()),
        )
    })?;
    let mut known = Records::default();
    let whole = Value::Object(record.clone());
    let missing = |what: &str, id: &str| {
        FolioError::unprocessable(
            Fault::new(format!("{what} of the actual cost record is not there")).with("id", id),
        )
    };
    let Some(loan) = txn.get(&LOANS.kind, text(&whole, "loan.id"))? else {
        return Err(missing("The loan", text(&whole, "loan.id")));
    };
    let loan = loan.json()?;
    let Some(item) = known.at(txn, &ITEMS, &loan, "itemId")? else {
        return Err(missing("The item", text(&loan, "itemId")));
    };
    let book = Book::of(txn, &mut known, item)?;
    let owner = txn.get(&OWNERS.kind, text(&whole, "feeFine.ownerId"))?;
    let owner = match owner {
        Some(owner) => owner.json()?,
        None => return Err(missing("The owner", text(&whole, "feeFine.ownerId"))),
    };
    let comments = [("STAFF : ", "additionalInfoForStaff"), ("PATRON : ", "additionalInfoForPatron")]
        .iter()
        .filter(|(_, name)| !text(asked, name).is_empty())
        .map(|(whose, name)| format!("{whose}{}", text(asked, name)))
        .collect::<Vec<_>>()
        .join(" \n ");
    let charge = Charge {
        kind: Automatic::LostItemActualCost,
        amount,
        owner: &owner,
        loan: &loan,
        book: &book,
        service_point: text(asked, "servicePointId"),
        comments: Some(comments).filter(|it| !it.is_empty()),
        event: None,
    };
    let account = accounts::charge(txn, writer, &charge)?;
    let mut fee = object(&whole["feeFine"]);
    fee.insert("billedAmount".into(), amount.number());
    fee.insert("accountId".into(), account["id"].clone());
    record.insert("feeFine".into(), Value::Object(fee));
    record.insert("status".into(), "Billed".into());
    Ok(())
}

fn end(txn: &mut Txn<'_>, writer: &Writer, record: &Value, status: &str) -> Result<(), FolioError> {
    let mut changed = object(record);
    changed.insert("status".into(), status.into());
    let id = text(record, "id").to_owned();
    collection::put(txn, writer, &ACTUAL_COSTS, &id, changed, Missing::Refuse, Lock::Ignored).map(drop)
}

/// The item is back: nobody need find out what it costs.
pub(super) fn cancel_of_loan(txn: &mut Txn<'_>, writer: &Writer, loan: &str) -> Result<(), FolioError> {
    for record in actual_cost_records::open_of_loan(txn, loan)? {
        end(txn, writer, &record, "Cancelled")?;
    }
    Ok(())
}

/// Ends the wait for records whose time is over, at most `limit` of them; tells how many it were.
pub(crate) fn expire(txn: &mut Txn<'_>, writer: &Writer, limit: u64) -> Result<u64, FolioError> {
    let over = Expr::Is("status".into(), OPEN.into()).and(Expr::Range(
        "expirationDate".into(),
        End::Open,
        End::Included(Wanted::Instant(writer.now_ms)),
    ));
    let found = txn.find(&ACTUAL_COSTS.kind, &Query { limit: Some(limit), ..Query::filter(over) })?;
    for record in &found {
        let record = record.json()?;
        end(txn, writer, &record, "Expired")?;
        settled::close_if_settled(txn, writer, text(&record, "loan.id"))?;
    }
    Ok(found.len() as u64)
}
