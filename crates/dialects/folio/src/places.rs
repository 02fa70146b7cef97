//! Locations and the units above them, and service points (section 10 of the contract).

use pinakes_store::{Column, Index, Kind, Txn, Type};
use serde_json::Value;

use crate::circulation::policies::{SERVICE_POINT, forget_point};
use crate::platform::collection::{Collection, Hooks, Kinds, Reference, Schema, Unique, UnlessAsked, Writer};
use crate::platform::cql::Names;
use crate::platform::error::{Fault, FolioError};
use crate::platform::json::text_at;

/// `/service-points`.
pub static SERVICE_POINTS: Collection = Collection {
    permission: "inventory-storage.service-points",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("code", Type::Folded),
            Column::one("pickupLocation", Type::Boolean),
        ],
        indexes: &[Index::unique(&["name"]), Index::unique(&["code"])],
        ..Kind::named(SERVICE_POINT)
    },
    schema: Schema {
        required: &["name", "code", "discoveryDisplayName"],
        types: &[("pickupLocation", Kinds::Boolean)],
        lists: &["staffSlips"],
        defaults: &[("pickupLocation", "false")],
        ..Schema::OPEN
    },
    unique: &[
        Unique { column: "name", message: "Service Point Exists" },
        Unique { column: "code", message: "Service Point Exists" },
    ],
    names: Names { whole: &["code"], ..Names::PLAIN },
    hooks: Hooks { stored: point_stored, deleting: point_deleted, ..Hooks::NONE },
    reference_data: include_str!("../reference/service-points.json"),
    ..Collection::named("/service-points", "servicepoints", "service_point")
};

/// Refuses a pickup location that does not say how long a hold waits, and such a period elsewhere.
fn check_hold_shelf(point: &Value) -> Result<(), FolioError> {
    let message = match (is_for_pickup(point), point.get("holdShelfExpiryPeriod").is_some()) {
        (true, false) => {
            "Hold shelf expiry period must be specified when service point can be used for pickup."
        }
        (false, true) => {
            "Hold shelf expiry period cannot be specified when service point cannot be used for pickup"
        }
        _ => return Ok(()),
    };
    Err(FolioError::unprocessable(Fault::new(message).with("holdShelfExpiryPeriod", "")))
}

fn is_for_pickup(point: &Value) -> bool {
    point["pickupLocation"].as_bool() == Some(true)
}

/// Checks a service point, and removes one that is no longer a pickup location from request policies.
fn point_stored(
    txn: &mut Txn<'_>,
    writer: &Writer,
    point: &Value,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    check_hold_shelf(point)?;
    if old.is_some_and(is_for_pickup) && !is_for_pickup(point) {
        forget_point(txn, writer, text_at(point, "id").unwrap_or_default())?;
    }
    Ok(())
}

fn point_deleted(txn: &mut Txn<'_>, writer: &Writer, point: &Value) -> Result<(), FolioError> {
    forget_point(txn, writer, text_at(point, "id").unwrap_or_default())
}

/// `/location-units/institutions`.
pub static INSTITUTIONS: Collection = Collection {
    permission: "inventory-storage.location-units.institutions",
    schema: Schema { required: &["name", "code"], ..Schema::OPEN },
    reference_data: include_str!("../reference/institutions.json"),
    ..unit("/location-units/institutions", "locinsts", "folio_institution", "locinstitution")
};

/// `/location-units/campuses`.
pub static CAMPUSES: Collection = Collection {
    permission: "inventory-storage.location-units.campuses",
    schema: Schema {
        required: &["name", "institutionId", "code"],
        types: &[("institutionId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    references: &[Reference { path: "institutionId", to: || &INSTITUTIONS }],
    reference_data: include_str!("../reference/campuses.json"),
    ..unit("/location-units/campuses", "loccamps", "folio_campus", "loccampus")
};

/// `/location-units/libraries`.
pub static LIBRARIES: Collection = Collection {
    permission: "inventory-storage.location-units.libraries",
    schema: Schema {
        required: &["name", "campusId", "code"],
        types: &[("campusId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    references: &[Reference { path: "campusId", to: || &CAMPUSES }],
    reference_data: include_str!("../reference/libraries.json"),
    ..unit("/location-units/libraries", "loclibs", "folio_library", "loclibrary")
};

/// `/locations`.
pub static LOCATIONS: Collection = Collection {
    permission: "inventory-storage.locations",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("code", Type::Folded),
            Column::one("institutionId", Type::Text),
            Column::one("campusId", Type::Text),
            Column::one("libraryId", Type::Text),
            Column::one("primaryServicePoint", Type::Text),
            Column::one("isShadow", Type::Boolean),
            Column::many("servicePointIds", Type::Text),
        ],
        indexes: &[Index::unique(&["name"]), Index::unique(&["code"]), Index::on(&["libraryId"])],
        ..Kind::named("folio_location")
    },
    schema: Schema {
        required: &["name", "code", "institutionId", "campusId", "libraryId", "primaryServicePoint"],
        types: &[
            ("institutionId", Kinds::Uuid),
            ("campusId", Kinds::Uuid),
            ("libraryId", Kinds::Uuid),
            ("primaryServicePoint", Kinds::Uuid),
            ("servicePointIds", Kinds::List),
            ("isActive", Kinds::Boolean),
        ],
        lists: &["servicePointIds"],
        defaults: &[("isActive", "true")],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "name", message: "" }, Unique { column: "code", message: "" }],
    unless_asked: UNLESS_SHADOWS_ARE_ASKED_FOR,
    references: &[
        Reference { path: "institutionId", to: || &INSTITUTIONS },
        Reference { path: "campusId", to: || &CAMPUSES },
        Reference { path: "libraryId", to: || &LIBRARIES },
        // Service points are often created after their locations, so this reference is not checked.
    ],
    names: Names { whole: &["code"], ..Names::PLAIN },
    reference_data: include_str!("../reference/locations.json"),
    ..Collection::named("/locations", "locations", "location")
};

/// Shadow locations stand for locations of other libraries in a lending network; lists omit them unless asked for.
const UNLESS_SHADOWS_ARE_ASKED_FOR: Option<UnlessAsked> =
    Some(UnlessAsked { parameters: &["includeShadowLocations", "includeShadow"], hidden: "isShadow" });

const UNIT_COLUMNS: &[Column] = &[
    Column::one("name", Type::Folded),
    Column::one("code", Type::Folded),
    Column::one("institutionId", Type::Text),
    Column::one("campusId", Type::Text),
    Column::one("isShadow", Type::Boolean),
];
const UNIT_INDEXES: &[Index] = &[Index::unique(&["name"]), Index::on(&["code"])];

/// Declares a unit above locations: name and code, the name unique.
const fn unit(path: &'static str, list: &'static str, kind: &'static str, table: &'static str) -> Collection {
    Collection {
        kind: Kind { id_path: Some("id"), columns: UNIT_COLUMNS, indexes: UNIT_INDEXES, ..Kind::named(kind) },
        table,
        unique: &[Unique { column: "name", message: "" }],
        unless_asked: UNLESS_SHADOWS_ARE_ASKED_FOR,
        ..Collection::named(path, list, kind)
    }
}
