//! `/links-suggestions/marc`: the authorities to which headings of bibliographic records can be linked, by their `$0`.

use http::StatusCode;
use pinakes_marc::{DataField, Record};
use pinakes_store::{Expr, Query, Value as Condition, View, Weight, fold};
use serde_json::{Map, Value, json};

use super::rules::{self, Rule};
use crate::authorities::authority::{AUTHORITIES, SOURCE_FILES};
use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::SUGGESTED_RECORDS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{QueryText, json_answer};
use crate::source_records::marc;
use crate::source_records::source_storage;

/// No authority matches `$0`.
const NONE_FOUND: &str = "101";
/// Several authorities match.
const SEVERAL_FOUND: &str = "102";
/// The rule of the field does not link automatically.
const SWITCHED_OFF: &str = "103";

pub(super) fn routes(routes: Routes) -> Routes {
    routes.post(
        "/links-suggestions/marc",
        Access::to("instance-authority-links.suggestions.marc.post"),
        suggest,
    )
}

/// Returns the records of `{"records":[{"leader","fields":[…]}]}` with `linkDetails` in each field that can be linked;
/// its controlled subfields are replaced with those of the authority.
async fn suggest(mut call: Call) -> Answer {
    let body = call.object().await?;
    let Some(Value::Array(records)) = body.get("records").cloned() else {
        return Err(FolioError::unprocessable(Fault::missing("records")));
    };
    if SUGGESTED_RECORDS < records.len() {
        let fault =
            Fault::new(format!("records must be at most {SUGGESTED_RECORDS}")).code("validation-error");
        return Err(FolioError::unprocessable(fault));
    }
    let wish = Wish::of(&call.query);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut list = records.clone();
        let fields = list.iter_mut().filter_map(|it| it.get_mut("fields")?.as_array_mut()).flatten();
        suggest_for(view, fields, wish)?;
        Ok(json!({"records": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// How to look for authorities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Whether to look by the id in `$9` instead of the number in `$0`.
    by_id: bool,
    /// Whether to also use rules that do not link automatically.
    ignores_switch: bool,
}

impl Wish {
    /// Parses `authoritySearchParameter` (`ID`, else `NATURAL_ID`) and `ignoreAutoLinkingEnabled` (`false`).
    pub(crate) fn of(query: &QueryText) -> Self {
        Self {
            by_id: query.get("authoritySearchParameter") == Some("ID"),
            ignores_switch: query.is_true("ignoreAutoLinkingEnabled"),
        }
    }
}

/// Adds `linkDetails` to the fields of MARC-in-JSON that can be linked.
pub(crate) fn suggest_for<'f>(
    view: &mut View<'_>,
    fields: impl Iterator<Item = &'f mut Value>,
    wish: Wish,
) -> Result<(), FolioError> {
    let rules = rules::rules(view)?;
    for field in fields {
        let Some((tag, field)) = field.as_object_mut().and_then(|it| it.iter_mut().next()) else {
            continue;
        };
        let rules: Vec<&Rule> = rules.iter().filter(|it| it.bib_field == *tag).collect();
        if let (false, Value::Object(field)) = (rules.is_empty(), field) {
            link(view, &rules, field, wish)?;
        }
    }
    Ok(())
}

/// Returns the values of a subfield of a field in MARC-in-JSON.
fn values<'f>(field: &'f Map<String, Value>, code: &str) -> impl Iterator<Item = &'f str> {
    let subfields = field.get("subfields").and_then(Value::as_array).into_iter().flatten();
    subfields.filter_map(move |it| it.get(code)?.as_str())
}

fn link(
    view: &mut View<'_>,
    rules: &[&Rule],
    field: &mut Map<String, Value>,
    Wish { by_id, ignores_switch }: Wish,
) -> Result<(), FolioError> {
    let wanted: Vec<String> = match by_id {
        true => values(field, "9").map(str::to_owned).collect(),
        // The number is the last part of a URI.
        false => values(field, "0").filter_map(|it| it.rsplit('/').next()).map(str::to_owned).collect(),
    };
    if wanted.is_empty() {
        return Ok(());
    }
    let error = |cause: &str| json!({"status": "ERROR", "errorCause": cause});
    if !ignores_switch && !rules.iter().any(|it| it.links_itself) {
        field.insert("linkDetails".into(), error(SWITCHED_OFF));
        return Ok(());
    }
    let filter = match by_id {
        true => Expr::Ids(wanted),
        false => Expr::In("naturalId".into(), wanted.iter().map(|it| Condition::Folded(fold(it))).collect()),
    };
    let mut fitting = Vec::new();
    for found in view.find(&AUTHORITIES.kind, &Query::filter(filter))? {
        let authority = found.json()?;
        let source = source_storage::current_of(view, "authorityId", &found.id)?;
        let content = source.as_ref().and_then(|it| it.pointer("/parsedRecord/content"));
        let Some(record) = content.and_then(marc::from_value) else { continue };
        let rule =
            rules.iter().find(|it| (ignores_switch || it.links_itself) && heading(&record, it).is_some());
        if let Some(rule) = rule {
            fitting.push((authority, record, *rule));
        }
    }
    match fitting.as_slice() {
        [] => _ = field.insert("linkDetails".into(), error(NONE_FOUND)),
        [(authority, record, rule)] => {
            let is_linked = values(field, "9").any(|it| Some(it) == text_at(authority, "id"));
            control(view, field, authority, record, rule)?;
            field.insert(
                "linkDetails".into(),
                json!({
                    "authorityId": authority.get("id"),
                    "authorityNaturalId": authority.get("naturalId"),
                    "linkingRuleId": rule.id,
                    "status": if is_linked { "ACTUAL" } else { "NEW" },
                }),
            );
        }
        _ => _ = field.insert("linkDetails".into(), error(SEVERAL_FOUND)),
    }
    Ok(())
}

/// Returns the authority's heading field, if the rule applies to it.
pub(super) fn heading<'r>(record: &'r Record, rule: &Rule) -> Option<&'r DataField> {
    let field = record.data_fields(&rule.authority_field).next()?;
    let has_title = field.values('t').next().is_some();
    rule.has_title.is_none_or(|wanted| wanted == has_title).then_some(field)
}

/// Replaces the controlled subfields with those of the authority, `$0` with its URI, `$9` with its id.
fn control(
    view: &mut View<'_>,
    field: &mut Map<String, Value>,
    authority: &Value,
    record: &Record,
    rule: &Rule,
) -> Result<(), FolioError> {
    let Some(heading) = heading(record, rule) else { return Ok(()) };
    let is_controlled = |code: char| rule.subfields.contains(&code) || (rule.title_is_a && code == 'a');
    let one = |code: char, value: &str| json!({code.to_string(): value});
    let mut subfields: Vec<Value> = Vec::new();
    for subfield in heading.subfields.iter().filter(|it| rule.subfields.contains(&it.code)) {
        let code = if rule.title_is_a && subfield.code == 't' { 'a' } else { subfield.code };
        subfields.push(one(code, &subfield.value));
    }
    let kept = field.get("subfields").and_then(Value::as_array).into_iter().flatten();
    subfields.extend(
        kept.filter(|it| {
            let code = it.as_object().and_then(|it| it.keys().next()?.chars().next()).unwrap_or(' ');
            !is_controlled(code) && code != '0' && code != '9'
        })
        .cloned(),
    );
    let natural = text_at(authority, "naturalId").unwrap_or_default();
    let base = match text_at(authority, "sourceFileId") {
        Some(id) => view.get(&SOURCE_FILES.kind, id)?.map(|it| it.json()).transpose()?,
        None => None,
    };
    let base = base.as_ref().and_then(|it| text_at(it, "baseUrl")).unwrap_or_default();
    subfields.push(one('0', &format!("{base}{natural}")));
    subfields.push(one('9', text_at(authority, "id").unwrap_or_default()));
    field.insert("subfields".into(), subfields.into());
    Ok(())
}
