//! Policies and what else circulation is set up with: collections that a site edits (sections 12 and 14.3).

use pinakes_store::{Column, Index, Kind, Type};

use crate::collection::{Collection, Kinds, Metadata, Reference, Schema, Unique};

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
    ..named(
        "/fixed-due-date-schedule-storage/fixed-due-date-schedules",
        "fixedDueDateSchedules",
        "fixed_due_date_schedule",
        "folio_fixed_due_date_schedule",
        "circulation-storage.fixed-due-date-schedules",
    )
};

/// `/staff-slips-storage/staff-slips`: what is printed at the desk.
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
pub(crate) static SETTINGS: Collection = Collection {
    schema: Schema { required: &["name", "value"], ..Schema::OPEN },
    ..named(
        "/circulation/settings",
        "circulationSettings",
        "circulation_settings",
        "folio_circulation_setting",
        "circulation.settings",
    )
};

/// `/calendar/calendars`: when service points are open.
pub(crate) static CALENDARS: Collection = Collection {
    schema: Schema {
        required: &["name", "startDate", "endDate"],
        types: &[("normalHours", Kinds::List), ("exceptions", Kinds::List), ("assignments", Kinds::List)],
        lists: &["assignments", "normalHours", "exceptions"],
        ..Schema::OPEN
    },
    unique: &[],
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

const NAME: &[Column] = &[Column::one("name", Type::Folded)];
const UNIQUE_NAME: &[Index] = &[Index::unique(&["name"])];

/// A collection whose records have unique names.
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
