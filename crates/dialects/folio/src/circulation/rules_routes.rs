//! `/circulation/rules`: the text of the rules, and the policies they choose for a case (section 9.2 of the contract).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::neighbours::LOCATIONS;
use super::policies::{
    LOAN_POLICIES, LOST_ITEM_POLICIES, NOTICE_POLICIES, OVERDUE_POLICIES, REQUEST_POLICIES,
};
use super::records::text;
use super::rules::{Criterion, Facts, PolicyKind, Rule, Rules, RulesFault};
use super::terms::{self, RULES, RULES_ID};
use crate::platform::app::Call;
use crate::platform::collection::Collection;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Adds the routes of the rules.
pub(crate) fn routes(mut routes: Routes) -> Routes {
    let stored = "/circulation-rules-storage";
    routes = routes
        .get("/circulation/rules", Access::to("circulation.rules.get"), show)
        .put("/circulation/rules", Access::to("circulation.rules.put"), |call| {
            replace(call, Policies::Checked)
        })
        .get(stored, Access::to("circulation-storage.circulation-rules.get"), show)
        .put(stored, Access::to("circulation-storage.circulation-rules.put"), |call| {
            replace(call, Policies::Any)
        });
    for (kind, name) in NAMES {
        let path = format!("/circulation/rules/{name}-policy");
        routes = routes.get(&path, Access::to("circulation.rules.get"), move |call| decide(call, kind)).get(
            &format!("{path}-all"),
            Access::to("circulation.rules.get"),
            move |call| list_fitting(call, kind),
        );
    }
    routes
}

/// The kinds of policy and their names in paths.
const NAMES: [(PolicyKind, &str); 5] = [
    (PolicyKind::Loan, "loan"),
    (PolicyKind::Request, "request"),
    (PolicyKind::Notice, "notice"),
    (PolicyKind::OverdueFine, "overdue-fine"),
    (PolicyKind::LostItem, "lost-item"),
];

fn collection_of(kind: PolicyKind) -> &'static Collection {
    match kind {
        PolicyKind::Loan => &LOAN_POLICIES,
        PolicyKind::Request => &REQUEST_POLICIES,
        PolicyKind::Notice => &NOTICE_POLICIES,
        PolicyKind::OverdueFine => &OVERDUE_POLICIES,
        PolicyKind::LostItem => &LOST_ITEM_POLICIES,
    }
}

async fn show(call: Call) -> Answer {
    let text = call.db().read(Weight::Point, terms::rules_text).await?;
    Ok(json_answer(StatusCode::OK, &json!({"id": RULES_ID, "rulesAsText": text})))
}

/// Answers 422 with line and column of the first fault.
fn fault(fault: &RulesFault) -> FolioError {
    let (line, column) = (fault.line.to_string(), fault.column.to_string());
    FolioError::unprocessable(Fault::new(&fault.message).with("line", line).with("column", column))
}

/// Whether the policies named by the rules must exist: the storage route accepts rules before their policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policies {
    Checked,
    Any,
}

async fn replace(mut call: Call, policies: Policies) -> Answer {
    let body = call.object().await?;
    let Some(text) = body.get("rulesAsText").and_then(Value::as_str).map(str::to_owned) else {
        return Err(FolioError::unprocessable(Fault::missing("rulesAsText")));
    };
    let rules = terms::compiled(&text).map_err(|it| fault(&it))?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if policies == Policies::Checked {
            require_policies(txn, &rules)?;
        }
        txn.put(&RULES, RULES_ID, &json!({"id": RULES_ID, "rulesAsText": text}))?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Refuses rules that name a policy which does not exist.
fn require_policies(txn: &mut Txn<'_>, rules: &Rules) -> Result<(), FolioError> {
    for (letter, kind) in PolicyKind::ALL {
        let collection = collection_of(kind);
        let mut ids: Vec<String> = rules.iter().map(|it| it.policies.id(kind).to_owned()).collect();
        ids.sort_unstable();
        ids.dedup();
        let found = txn.get_many(&collection.kind, &ids)?;
        let missing: Vec<&String> =
            ids.iter().zip(&found).filter(|(_, it)| it.is_none()).map(|it| it.0).collect();
        let mut places = rules.iter().filter(|it| missing.iter().any(|id| *id == it.policies.id(kind)));
        let Some(first) = places.next() else { continue };
        let first = places.fold(first, |a, b| if b.line < a.line { b } else { a });
        let (line, column) = first.place_of(kind);
        let message = format!("The policy {letter} {} does not exist", first.policies.id(kind));
        return Err(fault(&RulesFault { line, column, message }));
    }
    Ok(())
}

/// The case that a request describes.
struct Case {
    group: String,
    material: String,
    loan_type: String,
    location: Value,
}

impl Case {
    fn of(call: &Call) -> Result<(Self, String), FolioError> {
        let needed = |name: &str| match call.query.get(name) {
            Some(value) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(FolioError::bad_request(format!("required query parameter missing: {name}"))),
        };
        let case = Self {
            material: needed("item_type_id")?,
            group: needed("patron_type_id")?,
            loan_type: needed("loan_type_id")?,
            location: Value::Null,
        };
        Ok((case, needed("location_id")?))
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            group: &self.group,
            material: &self.material,
            loan_type: &self.loan_type,
            institution: text(&self.location, "institutionId"),
            campus: text(&self.location, "campusId"),
            library: text(&self.location, "libraryId"),
            location: text(&self.location, "id"),
        }
    }
}

/// Applies the rules to the request's case; `answer` builds the answer.
async fn case(call: &Call, answer: impl Fn(&Rules, &Case) -> Value + Send + 'static) -> Answer {
    let (case, location) = Case::of(call)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let place = view.get(&LOCATIONS.kind, &location)?.map(|it| it.json()).transpose()?;
        let place = place.unwrap_or_else(|| json!({"id": location}));
        let case = Case {
            group: case.group.clone(),
            material: case.material.clone(),
            loan_type: case.loan_type.clone(),
            location: place,
        };
        Ok(answer(&*terms::rules(view)?, &case))
    };
    let body = call.db().read(Weight::Point, read).await?;
    Ok(json_answer(StatusCode::OK, &body))
}

async fn decide(call: Call, kind: PolicyKind) -> Answer {
    let answer = move |rules: &Rules, it: &Case| {
        let mut body = Map::new();
        if let Some(rule) = rules.best(&it.facts()) {
            body.insert(kind.id_key().into(), rule.policies.id(kind).into());
            body.insert("appliedRuleConditions".into(), conditions(rule));
        }
        Value::Object(body)
    };
    case(&call, answer).await
}

fn conditions(rule: &Rule) -> Value {
    json!({
        "isItemTypePresent": rule.names(Criterion::Material),
        "isLoanTypePresent": rule.names(Criterion::LoanType),
        "isPatronGroupPresent": rule.names(Criterion::Group),
    })
}

async fn list_fitting(call: Call, kind: PolicyKind) -> Answer {
    let answer = move |rules: &Rules, it: &Case| {
        let facts = it.facts();
        let list: Vec<Value> = rules
            .fitting(&facts)
            .map(|rule| json!({kind.id_key(): rule.policies.id(kind), "circulationRuleLine": rule.line}))
            .collect();
        json!({"circulationRules": list})
    };
    case(&call, answer).await
}
