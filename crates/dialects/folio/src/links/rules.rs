//! `/linking-rules/instance-authority`: which field of a bibliographic record is controlled by which field of an
//! authority. The rules are part of the program; a tenant stores which of them link automatically.

use std::sync::LazyLock;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Kind, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// A tenant's changes to a rule, by the rule's number.
pub(crate) static LINKING_RULE: Kind = Kind::named("folio_linking_rule");

static RULES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    // A test checks that the built-in rules are valid JSON.
    serde_json::from_str(include_str!("../../data/linking-rules.json")).unwrap_or_default()
});

/// The property that a tenant may change.
const SWITCH: &str = "autoLinkingEnabled";

/// A rule in parsed form.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: u64,
    pub(super) bib_field: String,
    pub(super) authority_field: String,
    pub(super) subfields: Vec<char>,
    /// Whether the authority's `$t` becomes `$a`.
    pub(super) title_is_a: bool,
    /// Whether the authority's field must have a `$t`, or must not; `None` if it does not matter.
    pub(super) has_title: Option<bool>,
    pub(super) links_itself: bool,
}

impl Rule {
    fn of(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let codes = value.get("authoritySubfields").and_then(Value::as_array).into_iter().flatten();
        Self {
            id: value.get("id").and_then(Value::as_u64).unwrap_or(0),
            bib_field: text("bibField"),
            authority_field: text("authorityField"),
            subfields: codes.filter_map(|it| it.as_str()?.chars().next()).collect(),
            title_is_a: value.get("subfieldModifications").is_some(),
            has_title: value.pointer("/validation/existence/0/t").and_then(Value::as_bool),
            links_itself: value.get(SWITCH).and_then(Value::as_bool).unwrap_or(true),
        }
    }
}

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let item = "/linking-rules/instance-authority/{ruleId}";
    routes
        .get("/linking-rules/instance-authority", to("instance-authority.linking-rules.collection.get"), list)
        .get(item, to("instance-authority.linking-rules.item.get"), by_id)
        .on(http::Method::PATCH, item, to("instance-authority.linking-rules.item.patch"), change)
}

/// Returns the rules as they apply in a tenant.
fn shown(view: &mut View<'_>) -> Result<Vec<Value>, FolioError> {
    let mut list = RULES.clone();
    for rule in &mut list {
        let id = rule.get("id").map(Value::to_string).unwrap_or_default();
        let changed = view.get(&LINKING_RULE, &id)?.map(|it| it.json()).transpose()?;
        if let Some(switch) = changed.and_then(|it| it.get(SWITCH).cloned()) {
            rule[SWITCH] = switch;
        }
    }
    Ok(list)
}

/// Returns the same rules in parsed form.
pub(super) fn rules(view: &mut View<'_>) -> Result<Vec<Rule>, FolioError> {
    Ok(shown(view)?.iter().map(Rule::of).collect())
}

/// Returns the bibliographic field of a rule.
pub(crate) fn bib_field(rule: u64) -> Option<&'static str> {
    RULES.iter().find(|it| it.get("id").and_then(Value::as_u64) == Some(rule))?.get("bibField")?.as_str()
}

fn not_found(id: &str) -> FolioError {
    let fault = Fault::new(format!("Linking rule with ID [{id}] was not found"));
    FolioError::faults(
        StatusCode::NOT_FOUND,
        vec![fault.ty("LinkingRuleNotFoundException").code("not-found")],
    )
}

async fn list(call: Call) -> Answer {
    let list = call.db().read(Weight::Scan, shown).await?;
    Ok(json_answer(StatusCode::OK, &Value::Array(list)))
}

fn found(list: Vec<Value>, id: &str) -> Result<Value, FolioError> {
    let number = id.parse::<u64>().ok();
    let is_it = |it: &Value| number.is_some() && it.get("id").and_then(Value::as_u64) == number;
    list.into_iter().find(is_it).ok_or_else(|| not_found(id))
}

async fn by_id(call: Call) -> Answer {
    let id = call.param("ruleId").to_owned();
    let rule = call.db().read(Weight::Scan, move |view| found(shown(view)?, &id)).await?;
    Ok(json_answer(StatusCode::OK, &rule))
}

/// Switches automatic linking of a rule, `{"id": 8, "autoLinkingEnabled": false}`; nothing else can be changed.
async fn change(mut call: Call) -> Answer {
    let id = call.param("ruleId").to_owned();
    let body: Map<String, Value> = call.object().await?;
    let is_other = |it: &Value| !it.is_null() && it.as_u64() != id.parse().ok();
    if body.get("id").is_some_and(is_other) {
        let fault = Fault::new("Request should have id = ".to_owned() + &id).code("validation-error");
        return Err(FolioError::unprocessable(fault.ty("RequestBodyValidationException")));
    }
    let switch = body.get(SWITCH).and_then(Value::as_bool);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        found(shown(txn)?, &id)?;
        if let Some(switch) = switch {
            txn.put(&LINKING_RULE, &id, &json!({SWITCH: switch}))?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::ACCEPTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_numbered_and_whole() {
        assert_eq!(RULES.len(), 22);
        for (at, value) in RULES.iter().enumerate() {
            let rule = Rule::of(value);
            assert_eq!(rule.id, at as u64 + 1);
            assert!(rule.bib_field.len() == 3 && rule.authority_field.len() == 3, "{value}");
            assert!(!rule.subfields.is_empty() && rule.links_itself, "{value}");
        }
    }
}
