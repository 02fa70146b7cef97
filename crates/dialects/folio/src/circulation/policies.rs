//! Policies and other configuration of circulation: collections that a site edits (sections 12 and 14.3).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Query, StoreError, Txn, Type, Value as Wanted, View};
use serde_json::{Map, Value};

use super::moment;
use super::records::object;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Metadata, Missing, Reference, Schema, Unique, Writer, by_kind,
};
use crate::platform::error::{Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// Kind of service points; they are referenced by policies.
pub(crate) const SERVICE_POINT: &str = "folio_service_point";

/// `/loan-policy-storage/loan-policies`.
pub(crate) static LOAN_POLICIES: Collection = Collection {
    schema: Schema {
        required: &["name", "loanable", "renewable"],
        types: &[("loanable", Kinds::Boolean), ("renewable", Kinds::Boolean), ("loansPolicy", Kinds::Object)],
        ..Schema::OPEN
    },
    references: &[
        Reference { path: "loansPolicy.fixedDueDateScheduleId", to: || &SCHEDULES },
        Reference { path: "renewalsPolicy.alternateFixedDueDateScheduleId", to: || &SCHEDULES },
    ],
    // Two policies may have the same name.
    kind: Kind {
        id_path: Some("id"),
        columns: NAME,
        indexes: &[Index::on(&["name"])],
        ..Kind::named("folio_loan_policy")
    },
    unique: &[],
    reference_data: include_str!("../../reference/loan-policies.json"),
    ..named(
        "/loan-policy-storage/loan-policies",
        "loanPolicies",
        "loan_policy",
        "folio_loan_policy",
        "circulation-storage.loan-policies",
    )
};

/// `/request-policy-storage/request-policies`.
pub(crate) static REQUEST_POLICIES: Collection = Collection {
    schema: Schema { required: &["name"], types: &[("requestTypes", Kinds::List)], ..Schema::OPEN },
    hooks: Hooks { prepare: check_allowed_points, ..Hooks::NONE },
    reference_data: include_str!("../../reference/request-policies.json"),
    ..named(
        "/request-policy-storage/request-policies",
        "requestPolicies",
        "request_policy",
        "folio_request_policy",
        "circulation-storage.request-policies",
    )
};

/// `/patron-notice-policy-storage/patron-notice-policies`.
pub(crate) static NOTICE_POLICIES: Collection = Collection {
    reference_data: include_str!("../../reference/notice-policies.json"),
    ..named(
        "/patron-notice-policy-storage/patron-notice-policies",
        "patronNoticePolicies",
        "patron_notice_policy",
        "folio_notice_policy",
        "circulation-storage.patron-notice-policies",
    )
};

/// `/overdue-fines-policies`.
pub(crate) static OVERDUE_POLICIES: Collection = Collection {
    unique: &[
        Unique { column: "id", message: "id value already exists in table overdue_fine_policy: {value}" },
        Unique { column: "name", message: "" },
    ],
    has_result_info: false,
    reference_data: include_str!("../../reference/overdue-fines-policies.json"),
    ..named(
        "/overdue-fines-policies",
        "overdueFinePolicies",
        "overdue_fine_policy",
        "folio_overdue_fine_policy",
        "overdue-fines-policies",
    )
};

/// `/lost-item-fees-policies`.
pub(crate) static LOST_ITEM_POLICIES: Collection = Collection {
    unique: &[
        Unique { column: "id", message: "id value already exists in table lost_item_fee_policy: {value}" },
        Unique { column: "name", message: "" },
    ],
    has_result_info: false,
    reference_data: include_str!("../../reference/lost-item-fees-policies.json"),
    ..named(
        "/lost-item-fees-policies",
        "lostItemFeePolicies",
        "lost_item_fee_policy",
        "folio_lost_item_fee_policy",
        "lost-item-fees-policies",
    )
};

/// `/fixed-due-date-schedule-storage/fixed-due-date-schedules`.
pub(crate) static SCHEDULES: Collection = Collection {
    schema: Schema {
        required: &["name"],
        types: &[("schedules", Kinds::List)],
        lists: &["schedules"],
        ..Schema::OPEN
    },
    hooks: Hooks { stored: |_, _, body, _| check_ranges(body), ..Hooks::NONE },
    ..named(
        "/fixed-due-date-schedule-storage/fixed-due-date-schedules",
        "fixedDueDateSchedules",
        "fixed_due_date_schedule",
        "folio_fixed_due_date_schedule",
        "circulation-storage.fixed-due-date-schedules",
    )
};

/// Refuses ranges without a readable date, that end before they begin, fall due before they end, or overlap.
fn check_ranges(body: &Value) -> Result<(), FolioError> {
    let date = |range: &Value, name: &str| {
        let date = range[name].as_str().and_then(moment::parse);
        date.ok_or_else(|| bad_range(&format!("{name} must be a date"), range))
    };
    let mut ranges = Vec::new();
    for range in body["schedules"].as_array().into_iter().flatten() {
        let (from, to, due) = (date(range, "from")?, date(range, "to")?, date(range, "due")?);
        if to < from || due < to {
            return Err(bad_range("from must not be after to, nor to after due", range));
        }
        if ranges.iter().any(|(begin, end)| from < *end && *begin < to) {
            return Err(bad_range("two ranges overlap", range));
        }
        ranges.push((from, to));
    }
    Ok(())
}

fn bad_range(reason: &str, range: &Value) -> FolioError {
    let message = format!("Unable to save fixed due date schedule: {reason}");
    FolioError::unprocessable(Fault::new(message).with("schedules", range.to_string()))
}

/// `/staff-slips-storage/staff-slips`: templates of slips printed at the desk.
pub(crate) static STAFF_SLIPS: Collection = Collection {
    schema: Schema { required: &["name", "template"], ..Schema::OPEN },
    reference_data: include_str!("../../reference/staff-slips.json"),
    ..named(
        "/staff-slips-storage/staff-slips",
        "staffSlips",
        "staff_slips",
        "folio_staff_slip",
        "circulation-storage.staff-slips",
    )
};

/// `/cancellation-reason-storage/cancellation-reasons`.
pub(crate) static CANCELLATION_REASONS: Collection = Collection {
    schema: Schema { required: &["name"], ..Schema::OPEN },
    reference_data: include_str!("../../reference/cancellation-reasons.json"),
    ..named(
        "/cancellation-reason-storage/cancellation-reasons",
        "cancellationReasons",
        "cancellation_reason",
        "folio_cancellation_reason",
        "circulation-storage.cancellation-reasons",
    )
};

/// `/circulation/settings`: values by name, e.g. `TLR`.
pub(crate) static SETTINGS: Collection = settings("/circulation/settings", "circulation.settings");

/// `/circulation-settings-storage/circulation-settings`: the same records.
pub(crate) static STORED_SETTINGS: Collection = settings(
    "/circulation-settings-storage/circulation-settings",
    "circulation-storage.circulation-settings",
);

const fn settings(path: &'static str, permission: &'static str) -> Collection {
    Collection {
        schema: Schema { required: &["name", "value"], ..Schema::OPEN },
        is_served: false,
        ..named(path, "circulationSettings", "circulation_settings", "folio_circulation_setting", permission)
    }
}

/// Adds the routes of settings, under both paths.
pub(super) fn setting_routes(routes: Routes) -> Routes {
    [&SETTINGS, &STORED_SETTINGS].into_iter().fold(routes, |routes, it: &'static Collection| {
        let one = format!("{}/{{id}}", it.path);
        let to = |end: &str| Access::owned(format!("{}.{end}", it.permission));
        routes
            .get(it.path, to("collection.get"), move |call| async move {
                let page = collection::Page::of(&call)?;
                collection::answer_list(&call, it, page).await
            })
            .post(it.path, to("item.post"), move |call| collection::create(call, it))
            .get(&one, to("item.get"), move |call| collection::by_id(call, it))
            .put(&one, to("item.put"), move |call| collection::replace(call, it))
            .delete(&one, to("item.delete"), move |call| async move {
                let answered = collection::remove(call, it).await;
                match answered {
                    // This route treats deleting a missing setting as success.
                    Err(error) if error.status == StatusCode::NOT_FOUND && std::ptr::eq(it, &SETTINGS) => {
                        Ok(answer::empty(StatusCode::NO_CONTENT))
                    }
                    answered => answered,
                }
            })
    })
}

/// Returns the value of a setting; `None` if it does not exist.
pub(crate) fn setting(view: &mut View<'_>, name: &str) -> Result<Option<Value>, StoreError> {
    let named = Expr::Is("name".into(), Wanted::Folded(name.to_owned()));
    let found = view.first(&SETTINGS.kind, named)?.map(|it| it.json()).transpose()?;
    Ok(found.map(|it| it["value"].clone()))
}

/// `/calendar/calendars`: when service points are open.
pub(crate) static CALENDARS: Collection = Collection {
    schema: Schema {
        required: &["name", "startDate", "endDate"],
        types: &[("normalHours", Kinds::List), ("exceptions", Kinds::List), ("assignments", Kinds::List)],
        lists: &["assignments", "normalHours", "exceptions"],
        ..Schema::OPEN
    },
    unique: &[],
    is_served: false,
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("startDate", Type::Text),
            Column::one("endDate", Type::Text),
            Column::many("assignments", Type::Text),
        ],
        ..Kind::named("folio_calendar")
    },
    ..named("/calendar/calendars", "calendars", "calendars", "folio_calendar", "calendar.endpoint.calendars")
};

/// Checks that the service points that a request policy allows for each type exist and are pickup locations.
fn check_allowed_points(
    txn: &mut Txn<'_>,
    writer: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let allowed = body.get("allowedServicePoints").and_then(Value::as_object);
    let lists = allowed.into_iter().flat_map(Map::values).filter_map(Value::as_array);
    let mut ids: Vec<String> = lists.flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    ids.sort_unstable();
    ids.dedup();
    let points = &by_kind(writer.collections, SERVICE_POINT)?.kind;
    for found in txn.get_many(points, &ids)? {
        let point = found.map(|it| it.json()).transpose()?.unwrap_or_default();
        if point["pickupLocation"].as_bool() != Some(true) {
            let fault = Fault::new("One or more Pickup locations are no longer available");
            return Err(FolioError::unprocessable(fault.code("INVALID_ALLOWED_SERVICE_POINT")));
        }
    }
    Ok(())
}

/// Removes a service point that is no longer a pickup location from all request policies.
pub(crate) fn forget_point(txn: &mut Txn<'_>, writer: &Writer, id: &str) -> Result<(), FolioError> {
    for record in txn.find(&REQUEST_POLICIES.kind, &Query::filter(Expr::All))? {
        let mut body = object(&record.json()?);
        let Some(Value::Object(allowed)) = body.get_mut("allowedServicePoints") else { continue };
        let n_before: usize = allowed.values().filter_map(Value::as_array).map(Vec::len).sum();
        for list in allowed.values_mut().filter_map(Value::as_array_mut) {
            list.retain(|it| it.as_str() != Some(id));
        }
        allowed.retain(|_, it| it.as_array().is_none_or(|it| !it.is_empty()));
        if allowed.values().filter_map(Value::as_array).map(Vec::len).sum::<usize>() != n_before {
            let id = record.id;
            collection::put(txn, writer, &REQUEST_POLICIES, &id, body, Missing::Refuse, Lock::Ignored)?;
        }
    }
    Ok(())
}

const NAME: &[Column] = &[Column::one("name", Type::Folded)];
const UNIQUE_NAME: &[Index] = &[Index::unique(&["name"])];

/// Declares a collection whose records have unique names.
const fn named(
    path: &'static str,
    list: &'static str,
    table: &'static str,
    kind: &'static str,
    permission: &'static str,
) -> Collection {
    Collection {
        permission,
        table,
        kind: Kind { id_path: Some("id"), columns: NAME, indexes: UNIQUE_NAME, ..Kind::named(kind) },
        schema: Schema { required: &["name"], ..Schema::OPEN },
        unique: &[Unique { column: "name", message: "" }],
        metadata: Metadata::Rmb,
        ..Collection::named(path, list, kind)
    }
}
