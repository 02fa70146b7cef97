//! `POST /circulation/check-out-by-barcode` (section 9.1 of the contract).
//!
//! One transaction reads everything that the answer depends on and writes the loan, the item and a request that it
//! fulfils, or nothing. The checks are in the order of the contract; faults of patron and item are reported together.

use http::StatusCode;
use http::header::LOCATION;
use jiff::Timestamp;
use pinakes_http::answer;
use pinakes_store::{StoreError, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::loan_policy::LoanPolicy;
use super::loans::{self, LOANS};
use super::neighbours::{ITEMS, PROXIES_FOR, SERVICE_POINTS, USERS};
use super::overrides::{Block, Overrides};
use super::policies::{LOAN_POLICIES, LOST_ITEM_POLICIES, NOTICE_POLICIES, OVERDUE_POLICIES};
use super::records::{Records, by_barcode, text};
use super::requests::queue::{Queue, Request};
use super::rules::PolicyKind;
use super::terms::{self, Chosen, Circumstances};
use super::{moment, use_at_location};
use crate::circulation::notices;
use crate::circulation::notices::sending::LoanEvent;
use crate::circulation::patron_blocks;
use crate::platform::app::Call;
use crate::platform::collection::{self, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::values::json_answer;

/// Statuses in which an item is not lent, besides `Checked out`.
const NOT_LENT: [&str; 4] = ["Declared lost", "Claimed returned", "Aged to lost", "Intellectual item"];

/// The content of a check-out request.
#[derive(Debug, Clone)]
struct Asked {
    item: String,
    user: String,
    proxy: Option<String>,
    service_point: String,
    loan_date: Option<Timestamp>,
    forced_policy: Option<String>,
    overrides: Overrides,
}

impl Asked {
    fn of(call: &Call, body: &Map<String, Value>) -> Result<Self, FolioError> {
        let given = |name: &str| body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        let loan_date = match given("loanDate") {
            None => None,
            Some(text) => Some(moment::parse(text).ok_or_else(|| {
                let fault = Fault::new("loanDate is no date and time in ISO 8601");
                FolioError::unprocessable(fault.with("loanDate", text))
            })?),
        };
        Ok(Self {
            item: given("itemBarcode").unwrap_or_default().to_owned(),
            user: given("userBarcode").unwrap_or_default().to_owned(),
            proxy: given("proxyUserBarcode").map(str::to_owned),
            service_point: given("servicePointId").unwrap_or_default().to_owned(),
            loan_date,
            forced_policy: given("forceLoanPolicyId").map(str::to_owned),
            overrides: Overrides::of(call, body)?,
        })
    }
}

/// Checks an item out.
pub(crate) async fn check_out(mut call: Call) -> Answer {
    let body = call.object().await?;
    let asked = Asked::of(&call, &body)?;
    let writer = Writer::of(&call);
    let loan = call.db().write(move |txn| check_out_item(txn, &writer(), &asked)).await?;
    let location = format!("/circulation/loans/{}", text(&loan, "id"));
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &loan), LOCATION, &location))
}

/// The outcome of a check-out before anything is written: the policies that apply and the due dates.
struct Decision {
    known: Records,
    user: Value,
    proxy: Option<Value>,
    book: Book,
    queue: Queue,
    chosen: Chosen,
    policy: LoanPolicy,
    fulfilled: Option<Request>,
    loan_date: Timestamp,
    /// By the policy, before a recall shortens the loan.
    due: Timestamp,
    recalled: Timestamp,
}

/// Returns the policies that a check-out would follow, without lending anything.
///
/// Errors: those of a check-out.
pub(crate) async fn dry_run(mut call: Call) -> Answer {
    let body = call.object().await?;
    let asked = Asked::of(&call, &body)?;
    let writer = Writer::of(&call);
    let decide = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let decision = decide(view, &writer(), &asked)?;
        let policy = |kind: PolicyKind| decision.chosen.policies.id(kind).to_owned();
        Ok(json!({
            "loanPolicyId": decision.policy.id,
            "overdueFinePolicyId": policy(PolicyKind::OverdueFine),
            "lostItemPolicyId": policy(PolicyKind::LostItem),
            "patronNoticePolicyId": policy(PolicyKind::Notice),
        }))
    };
    let policies = call.db().read(Weight::Point, decide).await?;
    Ok(json_answer(StatusCode::CREATED, &policies))
}

/// Reads everything that a check-out depends on. Errors: 422 with all the reasons against it.
fn decide(view: &mut View<'_>, writer: &Writer, asked: &Asked) -> Result<Decision, FolioError> {
    let mut known = Records::default();
    let mut faults = Vec::new();
    if asked.service_point.is_empty() {
        faults.push(
            Fault::new("Check out must be performed at a service point")
                .with("checkoutServicePointId", "null"),
        );
    }
    let user = borrower(view, writer, asked, &mut faults)?;
    let proxy = proxy(view, writer, asked, user.as_ref(), &mut faults)?;
    let book = item(view, &mut known, asked, &mut faults)?;
    let mut queue = Queue::default();
    if let (Some(user), Some(book)) = (&user, &book) {
        queue = Queue::of_item(view, book, writer.now_ms)?;
        faults.extend(requested_by_another(&queue, user, book));
    }
    let (Some(user), Some(book), true) = (user, book, faults.is_empty()) else {
        return Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, faults));
    };
    known.put(&USERS, user.clone());
    let chosen = terms::choose(view, &book, text(&user, "patronGroup"))?;
    let policy_id = asked.forced_policy.as_deref().unwrap_or(chosen.policies.id(PolicyKind::Loan));
    view.read_ahead_of(&[
        (&LOAN_POLICIES.kind, vec![policy_id]),
        (&OVERDUE_POLICIES.kind, vec![chosen.policies.id(PolicyKind::OverdueFine)]),
        (&LOST_ITEM_POLICIES.kind, vec![chosen.policies.id(PolicyKind::LostItem)]),
        (&NOTICE_POLICIES.kind, vec![chosen.policies.id(PolicyKind::Notice)]),
        (&SERVICE_POINTS.kind, vec![&asked.service_point]),
    ])?;
    let policy = terms::loan_policy(view, &mut known, policy_id)?;
    let fulfilled = queue.take_first_of(text(&user, "id"));
    let loan_date = asked.loan_date.unwrap_or(moment::from_ms(writer.now_ms));
    let circumstances = Circumstances::of(view, &mut known, &policy, &asked.service_point, writer.now_ms)?;
    let limit = beyond_limit(view, &mut known, &chosen, &policy, &user, &book)?;
    let terms = circumstances.terms(&policy, queue.has(Request::is_hold));
    let due = due_date(asked, &policy, limit, || terms.at_check_out(loan_date))?;
    let recalled = if queue.has(Request::is_recall) { terms.at_recall(loan_date, due) } else { due };
    Ok(Decision { known, user, proxy, book, queue, chosen, policy, fulfilled, loan_date, due, recalled })
}

fn check_out_item(txn: &mut Txn<'_>, writer: &Writer, asked: &Asked) -> Result<Value, FolioError> {
    let mut decision = decide(txn, writer, asked)?;
    if let Some(request) = decision.fulfilled.take() {
        decision.queue.close(txn, writer, request, "Closed - Filled")?;
    }
    decision.book.set_status(txn, writer, &mut decision.known, "Checked out", |_| {})?;
    let mut loan = loan_of(asked, &decision);
    if decision.recalled != decision.due {
        loan.insert("dueDateChangedByRecall".into(), true.into());
    }
    loan.extend(decision.proxy.as_ref().map(|it| ("proxyUserId".to_owned(), it["id"].clone())));
    if decision.policy.is_for_use_at_location {
        loan.insert("forUseAtLocation".into(), use_at_location::in_use(writer.now_ms));
    }
    let stored = collection::insert(txn, writer, &LOANS, loan).map_err(|error| open_already(error, asked))?;
    notices::loan(txn, writer, &mut decision.known, LoanEvent::CheckOut, &stored.body)?;
    Ok(loans::view::extended(txn, &mut decision.known, &stored.body, 0.0)?)
}

/// Returns the borrower, and adds the faults that keep them from borrowing.
fn borrower(
    view: &mut View<'_>,
    writer: &Writer,
    asked: &Asked,
    faults: &mut Vec<Fault>,
) -> Result<Option<Value>, FolioError> {
    let Some(user) = by_barcode(view, &USERS, &asked.user)? else {
        let fault = Fault::new("Could not find user with matching barcode").code("USER_BARCODE_NOT_FOUND");
        faults.push(fault.with("userBarcode", &asked.user));
        return Ok(None);
    };
    let user = user.json()?;
    if !asked.overrides.passes(Block::Patron) {
        for reason in patron_blocks::manual_blocks(view, text(&user, "id"), "borrowing", writer.now_ms)? {
            let fault = Fault::new("Patron blocked from borrowing").code("USER_IS_BLOCKED_MANUALLY");
            faults.push(asked.overrides.refusal(fault.with("reason", reason), Block::Patron));
        }
        for block in patron_blocks::automated_blocks(view, &user, writer.now_ms)? {
            if block.keeps_from_borrowing {
                let fault = Fault::new(block.message).code("USER_IS_BLOCKED_AUTOMATICALLY");
                faults.push(asked.overrides.refusal(fault, Block::Patron));
            }
        }
    }
    if let Some(message) = inactive(&user, writer.now_ms, "Cannot check out to inactive user") {
        faults.push(Fault::new(message).with("userBarcode", &asked.user));
    }
    Ok(Some(user))
}

/// Returns the reason why a user is not active; `message` is used if the user is inactive or expired.
pub(crate) fn inactive(user: &Value, now_ms: i64, message: &'static str) -> Option<&'static str> {
    let ends_ms = moment::parse(text(user, "expirationDate")).map(|it| it.as_millisecond());
    match user["active"].as_bool() {
        None => Some("Cannot determine if user is active or not"),
        Some(true) if ends_ms.is_none_or(|it| now_ms < it) => None,
        Some(_) => Some(message),
    }
}

/// Returns the proxy who borrows on behalf of the borrower.
fn proxy(
    view: &mut View<'_>,
    writer: &Writer,
    asked: &Asked,
    user: Option<&Value>,
    faults: &mut Vec<Fault>,
) -> Result<Option<Value>, FolioError> {
    let (Some(barcode), Some(user)) = (&asked.proxy, user) else { return Ok(None) };
    let Some(proxy) = by_barcode(view, &USERS, barcode)? else {
        let fault = Fault::new("Could not find user with matching barcode").code("USER_BARCODE_NOT_FOUND");
        faults.push(fault.with("userBarcode", barcode));
        return Ok(None);
    };
    let proxy = proxy.json()?;
    if let Some(message) = inactive(&proxy, writer.now_ms, "Cannot check out via inactive proxying user") {
        faults.push(Fault::new(message).with("proxyUserBarcode", barcode));
    }
    if !is_proxy(view, writer.now_ms, text(&proxy, "id"), text(user, "id"))? {
        let fault = Fault::new("Cannot check out item via proxy when relationship is invalid");
        faults.push(fault.with("proxyUserBarcode", barcode));
    }
    Ok(Some(proxy))
}

/// Checks whether a user may currently borrow on behalf of another.
pub(crate) fn is_proxy(
    view: &mut View<'_>,
    now_ms: i64,
    proxy: &str,
    user: &str,
) -> Result<bool, StoreError> {
    use pinakes_store::Expr;
    let both = Expr::Is("proxyUserId".into(), proxy.into()).and(Expr::Is("userId".into(), user.into()));
    let Some(relation) = view.first(&PROXIES_FOR.kind, both)? else { return Ok(false) };
    let relation = relation.json()?;
    let ends_ms = moment::parse(text(&relation, "expirationDate")).map(|it| it.as_millisecond());
    Ok(text(&relation, "status") != "Inactive" && ends_ms.is_none_or(|it| now_ms < it))
}

/// Returns the item, and adds the faults that keep it from being lent.
fn item(
    view: &mut View<'_>,
    known: &mut Records,
    asked: &Asked,
    faults: &mut Vec<Fault>,
) -> Result<Option<Book>, FolioError> {
    let Some(item) = by_barcode(view, &ITEMS, &asked.item)? else {
        let message = format!("No item with barcode {} could be found", asked.item);
        faults.push(Fault::new(message).with("itemBarcode", &asked.item));
        return Ok(None);
    };
    let book = Book::of(view, known, item.json()?.into())?;
    let status = book.status();
    if status == "Checked out" {
        faults.push(Fault::new("Item is already checked out").with("itemBarcode", &asked.item));
    } else if NOT_LENT.contains(&status) {
        let message =
            format!("{} has the item status {status} and cannot be checked out", book.named_with_type());
        faults.push(Fault::new(message).with("itemBarcode", &asked.item));
    }
    if loans::open_loan_of(view, book.id())?.is_some() {
        faults.push(open_loan(asked));
    }
    Ok(Some(book))
}

fn open_loan(asked: &Asked) -> Fault {
    Fault::new("Cannot check out item that already has an open loan")
        .code("ITEM_HAS_OPEN_LOAN")
        .with("itemBarcode", &asked.item)
}

/// Translates the store's error for a second open loan into the desk's message.
fn open_already(error: FolioError, asked: &Asked) -> FolioError {
    if error.message() == LOANS.unique[0].message {
        FolioError::unprocessable(open_loan(asked))
    } else {
        error
    }
}

fn requested_by_another(queue: &Queue, user: &Value, book: &Book) -> Option<Fault> {
    let first = queue.first()?;
    if first.requester() == text(user, "id") {
        return None;
    }
    let name = match (text(user, "personal.lastName"), text(user, "personal.firstName")) {
        (last, "") => last.to_owned(),
        (last, first) => format!("{last}, {first}"),
    };
    let message = format!(
        "{} cannot be checked out to user {name} because it has been requested by another patron",
        book.named()
    );
    Some(Fault::new(message).with("userBarcode", text(user, "barcode")))
}

/// Returns a fault if the patron has as many items as the policy allows. Loans are counted by the criteria that the
/// matching circulation rule names.
fn beyond_limit(
    view: &mut View<'_>,
    known: &mut Records,
    chosen: &Chosen,
    policy: &LoanPolicy,
    user: &Value,
    book: &Book,
) -> Result<Option<Fault>, FolioError> {
    let Some(limit) = policy.item_limit else { return Ok(None) };
    let loans: Result<Vec<Value>, StoreError> =
        loans::open_loans_of(view, text(user, "id"))?.iter().map(pinakes_store::Record::json).collect();
    let loans = loans?;
    let items = known.load(view, &ITEMS, loans.iter().map(|it| text(it, "itemId")))?;
    let is_alike = |item: &Value| {
        let loan_type = match text(item, "temporaryLoanTypeId") {
            "" => text(item, "permanentLoanTypeId"),
            temporary => temporary,
        };
        let same_material = text(item, "materialTypeId") == text(&book.item, "materialTypeId");
        (!chosen.names_material || same_material)
            && (!chosen.names_loan_type || loan_type == book.loan_type_id())
    };
    let n_alike = items.iter().filter(|it| is_alike(it)).count() as u64;
    if n_alike < limit {
        return Ok(None);
    }
    let of = match (chosen.names_group, chosen.names_material, chosen.names_loan_type) {
        (true, true, true) => " for combination of patron group, material type and loan type",
        (true, true, false) => " for combination of patron group and material type",
        (true, false, true) => " for combination of patron group and loan type",
        (false, true, true) => " for combination of material type and loan type",
        (false, true, false) => " for material type",
        (false, false, true) => " for loan type",
        (_, false, false) => "",
    };
    let message = format!("Patron has reached maximum limit of {limit} items{of}");
    Ok(Some(policy_fault(message, policy, book)))
}

fn policy_fault(message: impl Into<String>, policy: &LoanPolicy, book: &Book) -> Fault {
    Fault::new(message)
        .with("itemBarcode", book.barcode())
        .with("loanPolicyName", &policy.name)
        .with("loanPolicyId", &policy.id)
}

/// Returns the due date by the policy, or by the override of the request.
fn due_date(
    asked: &Asked,
    policy: &LoanPolicy,
    limit: Option<Fault>,
    by_policy: impl FnOnce() -> Result<Timestamp, String>,
) -> Result<Timestamp, FolioError> {
    let overrides = &asked.overrides;
    let mut faults = Vec::new();
    if let Some(fault) = limit.filter(|_| !overrides.passes(Block::ItemLimit)) {
        faults.push(overrides.refusal(fault, Block::ItemLimit));
    }
    if !policy.is_loanable && !overrides.passes(Block::NotLoanable) {
        let fault = Fault::new("Item is not loanable").code("ITEM_NOT_LOANABLE");
        let fault = fault
            .with("itemBarcode", &asked.item)
            .with("loanPolicyName", &policy.name)
            .with("loanPolicyId", &policy.id);
        faults.push(overrides.refusal(fault, Block::NotLoanable));
    }
    if !faults.is_empty() {
        return Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, faults));
    }
    if let Some(due) = overrides.due_date(Block::NotLoanable) {
        return Ok(due);
    }
    if !policy.is_loanable {
        let fault = Fault::new("Item not loanable override requires a due date").with("dueDate", "null");
        return Err(FolioError::unprocessable(fault));
    }
    by_policy().map_err(|message| {
        let fault = Fault::new(message).with("loanPolicyName", &policy.name);
        FolioError::unprocessable(fault.with("loanPolicyId", &policy.id))
    })
}

fn loan_of(asked: &Asked, decision: &Decision) -> Map<String, Value> {
    let Decision { chosen, policy, user, book, .. } = decision;
    let overrides = &asked.overrides;
    let is_overridden =
        [Block::Patron, Block::ItemLimit, Block::NotLoanable].iter().any(|it| overrides.passes(*it));
    let action = if is_overridden { "checkedOutThroughOverride" } else { "checkedout" };
    let loan = json!({
        "userId": user["id"],
        "itemId": book.id(),
        "itemEffectiveLocationIdAtCheckOut": book.item["effectiveLocationId"],
        "status": {"name": loans::OPEN},
        "loanDate": moment::wire(decision.loan_date),
        "dueDate": moment::wire(decision.recalled),
        "action": action,
        "actionComment": overrides.comment().filter(|_| is_overridden),
        "itemStatus": "Checked out",
        "loanPolicyId": policy.id,
        "overdueFinePolicyId": chosen.policies.id(PolicyKind::OverdueFine),
        "lostItemPolicyId": chosen.policies.id(PolicyKind::LostItem),
        "checkoutServicePointId": asked.service_point,
        "patronGroupIdAtCheckout": user["patronGroup"],
    });
    super::records::object(&loan)
}
