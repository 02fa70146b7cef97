//! `/coursereserves`: courses, their instructors, and the items reserved for them (mod-courses).
//!
//! Courses that are taught together share a listing, which holds the term, the instructors and the reserves. A reserve
//! of an item keeps a copy of the item's data from the time of the reservation.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Search, Txn, Type, Value as StoreValue};
use serde_json::{Map, Value, json};

use crate::circulation::book::Book;
use crate::circulation::neighbours::ITEMS;
use crate::circulation::records::{Records, text};
use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Missing, Page, Reference, Schema, Writer,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Declares a collection of names.
const fn names(
    path: &'static str,
    list: &'static str,
    kind: &'static str,
    permission: &'static str,
) -> Collection {
    Collection {
        permission,
        schema: Schema { required: &["name"], types: &[("name", Kinds::Text)], ..Schema::OPEN },
        names: Names { fields: &["description"], ..Names::PLAIN },
        ..Collection::named(path, list, kind)
    }
}

/// `/coursereserves/roles`.
pub(crate) static ROLES: Collection =
    names("/coursereserves/roles", "roles", "folio_course_role", "course-reserves-storage.roles");
/// `/coursereserves/coursetypes`.
pub(crate) static TYPES: Collection = names(
    "/coursereserves/coursetypes",
    "courseTypes",
    "folio_course_type",
    "course-reserves-storage.course-types",
);
/// `/coursereserves/departments`.
pub(crate) static DEPARTMENTS: Collection = names(
    "/coursereserves/departments",
    "departments",
    "folio_course_department",
    "course-reserves-storage.departments",
);
/// `/coursereserves/processingstatuses`.
pub(crate) static PROCESSING: Collection = names(
    "/coursereserves/processingstatuses",
    "processingStatuses",
    "folio_course_processing",
    "course-reserves-storage.processing-statuses",
);
/// `/coursereserves/copyrightstatuses`.
pub(crate) static COPYRIGHT: Collection = names(
    "/coursereserves/copyrightstatuses",
    "copyrightStatuses",
    "folio_course_copyright",
    "course-reserves-storage.copyright-statuses",
);
/// `/coursereserves/terms`.
pub(crate) static TERMS: Collection = Collection {
    schema: Schema {
        required: &["name", "startDate", "endDate"],
        types: &[("name", Kinds::Text), ("startDate", Kinds::Text), ("endDate", Kinds::Text)],
        ..Schema::OPEN
    },
    ..names("/coursereserves/terms", "terms", "folio_course_term", "course-reserves-storage.terms")
};
/// `/coursereserves/courselistings`.
pub(crate) static LISTINGS: Collection = Collection {
    schema: Schema { required: &["termId"], types: &[("termId", Kinds::Uuid)], ..Schema::OPEN },
    references: &[
        Reference { path: "termId", to: || &TERMS },
        Reference { path: "courseTypeId", to: || &TYPES },
    ],
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("termId", Type::Text), Column::one("externalId", Type::Folded)],
        indexes: &[Index::on(&["termId"])],
        search: Search::Folded,
        ..Kind::named("folio_course_listing")
    },
    names: Names { fields: &["registrarId", "servicepointId", "locationId", "courseTypeId"], ..Names::PLAIN },
    ..names(
        "/coursereserves/courselistings",
        "courseListings",
        "folio_course_listing",
        "course-reserves-storage.courselistings",
    )
};
/// `/coursereserves/courses`.
pub(crate) static COURSES: Collection = Collection {
    schema: Schema {
        required: &["name", "courseListingId"],
        types: &[("name", Kinds::Text), ("courseListingId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    references: &[
        Reference { path: "courseListingId", to: || &LISTINGS },
        Reference { path: "departmentId", to: || &DEPARTMENTS },
    ],
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("courseNumber", Type::Folded),
            Column::one("sectionName", Type::Folded),
            Column::one("courseListingId", Type::Text),
            Column::one("departmentId", Type::Text),
        ],
        indexes: &[Index::on(&["courseListingId"]), Index::on(&["name"])],
        search: Search::Folded,
        ..Kind::named("folio_course")
    },
    ..names("/coursereserves/courses", "courses", "folio_course", "course-reserves-storage.courses")
};
/// `/coursereserves/courselistings/{id}/instructors`.
pub(crate) static INSTRUCTORS: Collection = Collection {
    schema: Schema {
        required: &["name", "courseListingId"],
        types: &[("name", Kinds::Text), ("courseListingId", Kinds::Uuid), ("userId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    references: &[Reference { path: "courseListingId", to: || &LISTINGS }],
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("courseListingId", Type::Text), Column::one("name", Type::Folded)],
        indexes: &[Index::on(&["courseListingId"])],
        ..Kind::named("folio_course_instructor")
    },
    is_served: false,
    ..names(
        "/coursereserves/instructors",
        "instructors",
        "folio_course_instructor",
        "course-reserves-storage.courselistings.instructors",
    )
};
/// `/coursereserves/reserves`.
pub(crate) static RESERVES: Collection = Collection {
    schema: Schema {
        required: &["courseListingId"],
        types: &[("courseListingId", Kinds::Uuid), ("itemId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    references: &[
        Reference { path: "courseListingId", to: || &LISTINGS },
        Reference { path: "processingStatusId", to: || &PROCESSING },
    ],
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("courseListingId", Type::Text), Column::one("itemId", Type::Text)],
        indexes: &[Index::unique(&["courseListingId", "itemId"]), Index::on(&["itemId"])],
        search: Search::Folded,
        ..Kind::named("folio_course_reserve")
    },
    names: Names { fields: &["startDate", "endDate", "temporaryLoanTypeId"], ..Names::PLAIN },
    hooks: Hooks { prepare: copy_item, ..Hooks::NONE },
    ..names(
        "/coursereserves/reserves",
        "reserves",
        "folio_course_reserve",
        "course-reserves-storage.reserves",
    )
};

/// Collections below a listing: the last part of the path, and the records.
static BELOW: [(&str, &Collection); 3] =
    [("courses", &COURSES), ("instructors", &INSTRUCTORS), ("reserves", &RESERVES)];

/// Adds the routes below listings.
pub(crate) fn routes(mut routes: Routes) -> Routes {
    for (end, of) in BELOW {
        let path = format!("/coursereserves/courselistings/{{listing}}/{end}");
        let item = format!("{path}/{{id}}");
        let to = |what: &str| Access::owned(format!("course-reserves-storage.courselistings.{end}.{what}"));
        routes = routes
            .get(&path, to("collection.get"), move |call| list(call, of))
            .post(&path, to("item.post"), move |call| create(call, of))
            .get(&item, to("item.get"), move |call| collection::by_id(call, of))
            .put(&item, to("item.put"), move |call| replace(call, of))
            .delete(&item, to("item.delete"), move |call| collection::remove(call, of));
    }
    routes
}

/// Lists the records of a listing.
async fn list(call: Call, of: &'static Collection) -> Answer {
    let listing = call.uuid_param("listing")?;
    let mut page = Page::of(&call)?;
    page.cql.among("courseListingId", &listing);
    collection::answer_list(&call, of, page).await
}

async fn create(mut call: Call, of: &'static Collection) -> Answer {
    let listing = call.uuid_param("listing")?;
    let mut body = call.object().await?;
    body.insert("courseListingId".into(), listing.into());
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| collection::insert(txn, &writer(), of, body.clone());
    let stored = call.db().write(write).await?;
    let location = format!("{}/{}", call.uri.path(), stored.id);
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &stored.body), LOCATION, &location))
}

async fn replace(mut call: Call, of: &'static Collection) -> Answer {
    let (listing, id) = (call.uuid_param("listing")?, call.uuid_param("id")?);
    let mut body = call.object().await?;
    body.insert("courseListingId".into(), listing.into());
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        let (missing, lock) = (Missing::Refuse, Lock::Ignored);
        collection::put(txn, &writer(), of, &id, body.clone(), missing, lock).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Copies the data of the item that a reserve names by its id or by `copiedItem.barcode`.
///
/// Errors: 422 for an unknown item.
fn copy_item(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let whole = Value::Object(body.clone());
    let (id, barcode) = (text(&whole, "itemId"), text_at(&whole, "copiedItem.barcode").unwrap_or_default());
    let found = match (id, barcode) {
        ("", "") => return Ok(()),
        ("", barcode) => {
            let is_it = Expr::Is("barcode".into(), StoreValue::Folded(pinakes_store::fold(barcode)));
            txn.first(&ITEMS.kind, is_it)?
        }
        (id, _) => txn.get(&ITEMS.kind, id)?,
    };
    let Some(item) = found else {
        let fault = match id {
            "" => {
                Fault::new(format!("No item with barcode {barcode} could be found")).with("barcode", barcode)
            }
            id => Fault::new(format!("No item with ID {id} could be found")).with("itemId", id),
        };
        return Err(FolioError::unprocessable(fault));
    };
    let book = Book::of(txn, &mut Records::default(), item.json()?.into())?;
    let mut copied = Value::Object(book.summary());
    let status = text(&copied["status"], "name").to_owned();
    for (name, value) in [
        ("uuid", json!(book.id())),
        ("holdingsId", copied["holdingsRecordId"].clone()),
        ("temporaryLocationId", book.item["temporaryLocationId"].clone()),
        ("permanentLocationId", book.item["effectiveLocationId"].clone()),
        ("status", json!(status)),
    ] {
        copied[name] = value;
    }
    if let Value::Object(map) = &mut copied {
        for name in ["id", "holdingsRecordId", "location", "materialType", "callNumberComponents"] {
            map.shift_remove(name);
        }
        map.retain(|_, value| !value.is_null());
    }
    body.insert("itemId".into(), book.id().into());
    body.insert("copiedItem".into(), copied);
    Ok(())
}
