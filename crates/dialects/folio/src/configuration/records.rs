//! Other plain records of a tenant: settings, tags, custom fields (sections 11 and 13 of the contract).

use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{
    Column, Expr, Index, Kind, Query, Record, Search, Txn, Type, Value as StoreValue, View, Weight, fold,
};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Manner, Missing, Page, Schema, Unique, Writer,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};

/// `/configurations/entries`.
pub static CONFIGURATIONS: Collection = Collection {
    permission: "configuration.entries",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("module", Type::Folded),
            Column::one("configName", Type::Folded),
            Column::one("code", Type::Folded),
            Column::one("userId", Type::Folded),
        ],
        indexes: &[
            Index::on(&["module", "configName", "code", "userId"]),
            Index::on(&["module", "configName", "userId", "code"]),
        ],
        search: Search::Folded,
        ..Kind::named("folio_configuration")
    },
    schema: Schema {
        required: &["module", "configName"],
        types: &[("module", Kinds::Text), ("configName", Kinds::Text), ("enabled", Kinds::Boolean)],
        defaults: &[("enabled", "true")],
        ..Schema::OPEN
    },
    names: Names { whole: &["module", "configName", "code"], ..Names::PLAIN },
    hooks: Hooks { prepare: refuse_double_entry, ..Hooks::NONE },
    ..Collection::named("/configurations/entries", "configs", "config_data")
};

/// Maximum number of entries of the same module, name, code and user among which one that is switched on is looked for.
const ENTRIES_ALIKE_MAX: u64 = 100;

/// Refuses an entry that is switched on while another of the same module, name, code and user is.
fn refuse_double_entry(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let own = Value::Object(body.clone());
    let is_on = |it: &Value| it.get("enabled").and_then(Value::as_bool) != Some(false);
    let (Some(module), Some(name)) = (text_at(&own, "module"), text_at(&own, "configName")) else {
        return Ok(());
    };
    if !is_on(&own) {
        return Ok(());
    }
    let folded = |text: &str| StoreValue::Folded(text.to_owned());
    let is = |path: &str, text: &str| Expr::Is(path.into(), folded(text));
    let same = |it: &Value, path: &str| {
        let folded = |it| text_at(it, path).map(fold).unwrap_or_default();
        folded(it) == folded(&own)
    };
    let mut alike = Query::filter(is("module", module).and(is("configName", name)));
    for path in ["code", "userId"] {
        let text = text_at(&own, path).filter(|it| !it.is_empty());
        alike = collection::with_or_without(alike, path, text.map(folded));
    }
    for record in txn.find(&CONFIGURATIONS.kind, &alike.window(0, ENTRIES_ALIKE_MAX))? {
        let other = record.json()?;
        let is_other = text_at(&own, "id").is_none_or(|it| !it.eq_ignore_ascii_case(&record.id));
        if is_other && is_on(&other) && same(&other, "code") && same(&other, "userId") {
            let message = format!(
                "duplicate key value violates unique constraint \"config_data_module_configname_code_idx_unique\": \
                 {module}, {name} is the entry {}",
                record.id
            );
            return Err(FolioError::unprocessable(
                Fault::new(message).ty("1").code("-1").with("configName", name),
            ));
        }
    }
    Ok(())
}

/// `/tags`.
pub static TAGS: Collection = Collection {
    permission: "tags",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("label", Type::Folded)],
        indexes: &[Index::unique(&["label"])],
        ..Kind::named("folio_tag")
    },
    schema: Schema { required: &["label"], types: &[("label", Kinds::Text)], ..Schema::OPEN },
    unique: &[Unique { column: "label", message: "Tag with this label already exists" }],
    reference_data: include_str!("../../reference/tags.json"),
    names: Names { whole: &["label"], fields: &["description"], ..Names::PLAIN },
    missing: Some(("Tag", "TagNotFoundException")),
    manner: Manner::Spring,
    ..Collection::named("/tags", "tags", "tags")
};

/// `/custom-fields`.
pub static CUSTOM_FIELDS: Collection = Collection {
    permission: "user-settings.custom-fields",
    schema: Schema { required: &["name", "type"], ..Schema::OPEN },
    hooks: Hooks { prepare: name_field, ..Hooks::NONE },
    ..Collection::named("/custom-fields", "customFields", "folio_custom_field")
};

/// Gives a custom field the name under which users have its value, `refId`, which does not change, and its place.
fn name_field(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    if let Some(old) = old {
        for name in ["refId", "order"] {
            if let (None, Some(kept)) = (body.get(name), old.get(name)) {
                body.insert(name.to_owned(), kept.clone());
            }
        }
        return Ok(());
    }
    let base = fold(body.get("name").and_then(Value::as_str).unwrap_or_default().trim()).replace(' ', "-");
    let (mut n_fields, mut last) = (0_u64, 0_u64);
    txn.for_each_body(&CUSTOM_FIELDS.kind, &Query::filter(Expr::All), |_, field| {
        n_fields += u64::from(field.get("entityType") == body.get("entityType"));
        let number = text_at(&field, "refId").and_then(|it| it.rsplit_once('_')).filter(|it| it.0 == base);
        last = last.max(number.and_then(|it| it.1.parse().ok()).unwrap_or(0));
        ControlFlow::Continue(())
    })?;
    body.entry("refId").or_insert_with(|| format!("{base}_{}", last + 1).into());
    body.entry("order").or_insert_with(|| (n_fields + 1).into());
    Ok(())
}

/// `/organizations-storage/organizations`.
pub static ORGANIZATIONS: Collection = Collection {
    permission: "organizations-storage.organizations",
    table: "organizations",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded), Column::one("code", Type::Folded)],
        indexes: &[Index::unique(&["code"])],
        search: Search::Folded,
        ..Kind::named("folio_organization")
    },
    schema: Schema { required: &["name", "code", "status"], ..Schema::OPEN },
    unique: &[Unique { column: "code", message: "" }],
    names: Names { whole: &["code"], ..Names::PLAIN },
    ..Collection::named("/organizations-storage/organizations", "organizations", "folio_organization")
};

/// `/templates`: templates of notices.
pub static TEMPLATES: Collection = Collection {
    permission: "templates",
    schema: Schema { required: &["outputFormats", "templateResolver"], ..Schema::OPEN },
    hooks: Hooks { deleting: refuse_used_template, ..Hooks::NONE },
    ..Collection::named("/templates", "templates", "folio_template")
};

/// Refuses to delete a template that a notice policy names.
fn refuse_used_template(txn: &mut Txn<'_>, writer: &Writer, template: &Value) -> Result<(), FolioError> {
    let policies = collection::by_list(writer.collections, "patronNoticePolicies");
    let Some(policies) = policies else { return Ok(()) };
    let id = template.get("id");
    let mut is_used = false;
    txn.for_each_body(&policies.kind, &Query::filter(Expr::All), |_, policy| {
        let lists = ["loanNotices", "requestNotices", "feeFineNotices"]
            .iter()
            .filter_map(|it| policy.get(*it)?.as_array());
        is_used |= lists.flatten().any(|it| it.get("templateId") == id);
        if is_used { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if is_used {
        return Err(FolioError::bad_request("Cannot delete template which is currently in use"));
    }
    Ok(())
}

/// `/orders/composite-orders`: stored as given.
pub static COMPOSITE_ORDERS: Collection = Collection {
    permission: "orders.composite-orders",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("poNumber", Type::Folded),
            Column::one("vendor", Type::Text),
            Column::one("workflowStatus", Type::Folded),
        ],
        indexes: &[Index::unique(&["poNumber"])],
        search: Search::Folded,
        ..Kind::named("folio_order")
    },
    schema: Schema { required: &["orderType", "vendor"], ..Schema::OPEN },
    unique: &[Unique { column: "poNumber", message: "PO Number already exists" }],
    names: Names { whole: &["poNumber"], ..Names::PLAIN },
    ..Collection::named("/orders/composite-orders", "purchaseOrders", "folio_order")
};

/// Language, currency and time zone of a tenant; one record.
pub(crate) static LOCALE: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_locale") };
/// Id of that record.
const LOCALE_ID: &str = "locale";

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    let organization = "/organizations/organizations/{id}";
    routes
        .get(
            "/organizations/organizations",
            Access::to("organizations.organizations.collection.get"),
            |call| async move {
                let page = Page::of(&call)?;
                collection::answer_list(&call, &ORGANIZATIONS, page).await
            },
        )
        .post("/organizations/organizations", Access::to("organizations.organizations.item.post"), |call| {
            collection::create(call, &ORGANIZATIONS)
        })
        .get(organization, Access::to("organizations.organizations.item.get"), |call| {
            collection::by_id(call, &ORGANIZATIONS)
        })
        .put(organization, Access::to("organizations.organizations.item.put"), |call| {
            collection::replace(call, &ORGANIZATIONS)
        })
        .delete(organization, Access::to("organizations.organizations.item.delete"), |call| {
            collection::remove(call, &ORGANIZATIONS)
        })
        .get("/custom-fields/{id}/stats", Access::to("user-settings.custom-fields.item.stats.get"), |call| {
            field_uses(call, false)
        })
        .get(
            "/custom-fields/{id}/options/{option}/stats",
            Access::to("user-settings.custom-fields.item.option.stats.get"),
            |call| field_uses(call, true),
        )
        .put("/custom-fields", Access::to("user-settings.custom-fields.collection.put"), replace_fields)
        .get("/locale", Access::to("locale.item.get"), locale)
        .put("/locale", Access::to("locale.item.put"), change_locale)
}

/// Counts the users who have a value of a custom field, or one of its options.
async fn field_uses(call: Call, of_option: bool) -> Answer {
    let (id, option) = (call.uuid_param("id")?, call.param("option").to_owned());
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let Some(field) = view.get(&CUSTOM_FIELDS.kind, &id)? else {
            return Err(CUSTOM_FIELDS.not_found(&id));
        };
        let field = field.json()?;
        let path = format!("customFields.{}", text_at(&field, "refId").unwrap_or(&id));
        let filter = match of_option {
            true => Expr::Is(path.as_str().into(), StoreValue::Folded(option.clone())),
            false => Expr::Exists(path.as_str().into()),
        };
        let count = view.count(&crate::users::user::USERS.kind, &filter)?;
        let entity = text_at(&field, "entityType").unwrap_or("user");
        Ok(match of_option {
            true => json!({"customFieldId": id, "optionId": option, "entityType": entity, "count": count}),
            false => json!({"fieldId": id, "entityType": entity, "count": count}),
        })
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Replaces the custom fields of a record type, in order: `{"entityType","customFields":[…]}`. Fields that are not
/// listed are deleted.
async fn replace_fields(mut call: Call) -> Answer {
    let body = call.object().await?;
    let entity = required_text(&body, "entityType")?.to_owned();
    let Some(given) = body.get("customFields").and_then(Value::as_array).cloned() else {
        return Err(FolioError::unprocessable(Fault::missing("customFields")));
    };
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        let mut kept = Vec::new();
        for (order, field) in (1_u64..).zip(given.iter().filter_map(Value::as_object)) {
            let mut field = field.clone();
            field.insert("order".into(), order.into());
            field.insert("entityType".into(), entity.as_str().into());
            let id = field.get("id").and_then(Value::as_str).and_then(parse_uuid);
            kept.push(match id {
                Some(id) => {
                    collection::put(txn, &writer, &CUSTOM_FIELDS, &id, field, Missing::Insert, Lock::Ignored)?
                        .id
                }
                None => collection::insert(txn, &writer, &CUSTOM_FIELDS, field)?.id,
            });
        }
        let of_entity = Expr::Is("entityType".into(), StoreValue::Folded(entity.clone()));
        for record in txn.find(&CUSTOM_FIELDS.kind, &Query::filter(of_entity))? {
            if !kept.contains(&record.id) {
                collection::delete(txn, &writer, &CUSTOM_FIELDS, &record.id)?;
            }
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Returns the tenant's locale: `/locale`, else the configuration entry of older clients, else English in UTC.
pub fn locale_of(view: &mut View<'_>) -> Result<Value, FolioError> {
    if let Some(record) = view.get(&LOCALE, LOCALE_ID)? {
        let mut body = record.json()?;
        if let Value::Object(map) = &mut body {
            map.shift_remove("id");
        }
        return Ok(body);
    }
    let is = |path: &str, text: &str| Expr::Is(path.into(), StoreValue::Folded(text.to_owned()));
    let entry =
        view.first(&CONFIGURATIONS.kind, is("module", "ORG").and(is("configName", "localeSettings")))?;
    let entry = entry.as_ref().map(Record::json).transpose()?;
    let kept = entry
        .as_ref()
        .and_then(|it| text_at(it, "value"))
        .and_then(|it| serde_json::from_str::<Value>(it).ok());
    let text = |name: &str, otherwise: &str| {
        kept.as_ref().and_then(|it| text_at(it, name)).unwrap_or(otherwise).to_owned()
    };
    Ok(json!({
        "locale": text("locale", "en-US"), "currency": text("currency", "USD"),
        "timezone": text("timezone", "UTC"), "numberingSystem": text("numberingSystem", "latn"),
    }))
}

async fn locale(call: Call) -> Answer {
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, locale_of).await?))
}

async fn change_locale(mut call: Call) -> Answer {
    let body = call.object().await?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut body = body.clone();
        body.insert("id".to_owned(), LOCALE_ID.into());
        txn.put(&LOCALE, LOCALE_ID, &Value::Object(body))?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::CREATED))
}
