//! `/oai-pmh/sets` and the other routes of mod-oai-pmh besides harvesting: the values that sets can be built from, data
//! about harvests, and clean-up. Pages are read directly from the records: nothing is fetched in advance, so there is
//! nothing to report and nothing to clean up.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Direction, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde_json::{Map, Value, json};

use crate::places::LOCATIONS;
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Hooks, Kinds, Metadata, Schema, Unique, Writer};
use crate::platform::cql::Names;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::vocabularies::{ILL_POLICIES, INSTANCE_FORMATS, INSTANCE_TYPES, MATERIAL_TYPES};

/// `/oai-pmh/sets`.
pub(crate) static SETS: Collection = Collection {
    permission: "oai-pmh.sets",
    table: "set_lb",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded), Column::one("setSpec", Type::Folded)],
        indexes: &[Index::unique(&["name"]), Index::unique(&["setSpec"])],
        ..Kind::named("folio_oai_set")
    },
    schema: Schema {
        required: &["name", "setSpec"],
        types: &[("name", Kinds::Text), ("setSpec", Kinds::Text), ("filteringConditions", Kinds::List)],
        ..Schema::OPEN
    },
    unique: &[
        Unique {
            column: "name",
            message: "Field 'name' cannot have duplicated values. Value '{value}' is already taken. Please, pass another value.",
        },
        Unique {
            column: "setSpec",
            message: "Field 'setSpec' cannot have duplicated values. Value '{value}' is already taken. Please, pass another value.",
        },
    ],
    names: Names { whole: &["setSpec"], fields: &["description"], ..Names::PLAIN },
    metadata: Metadata::Off,
    has_result_info: false,
    hooks: Hooks { prepare, ..Hooks::NONE },
    ..Collection::named("/oai-pmh/sets", "sets", "folio_oai_set")
};

/// What sets can be built from: names, and the records that have the values.
static CONDITIONS: [(&str, &Collection); 5] = [
    ("location", &LOCATIONS),
    ("illPolicy", &ILL_POLICIES),
    ("materialType", &MATERIAL_TYPES),
    ("resourceType", &INSTANCE_TYPES),
    ("format", &INSTANCE_FORMATS),
];

/// Adds the routes beyond the collections.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let request = |end: &str| format!("/oai-pmh/request-metadata/{{id}}/{end}");
    let mut routes = routes
        .get("/oai-pmh/filtering-conditions", to("oai-pmh.filtering-conditions.get"), conditions)
        .get("/oai-pmh/request-metadata", to("oai-pmh.request-metadata.collection.get"), |call| {
            nothing(call, "requestMetadataCollection")
        })
        .post("/oai-pmh/clean-up-error-logs", to("oai-pmh.clean-up-error-logs.post"), done)
        .post("/oai-pmh/clean-up-instances", to("oai-pmh.clean-up-instances.post"), done);
    for (end, permission) in [
        ("failed-to-save-instances", "oai-pmh.request-metadata.failed-to-save-instances.collection.get"),
        ("failed-instances", "oai-pmh.request-metadata.failed-instances.collection.get"),
        ("skipped-instances", "oai-pmh.request-metadata.skipped-instances.collection.get"),
        (
            "suppressed-from-discovery-instances",
            "oai-pmh.request-metadata.suppressed-from-discovery-instances.collection.get",
        ),
    ] {
        routes = routes.get(&request(end), to(permission), |call| nothing(call, "uuidCollection"));
    }
    routes
}

/// Sets in a set's own properties who created it and when.
fn prepare(
    _: &mut Txn<'_>,
    writer: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    for name in ["name", "setSpec"] {
        let is_blank = body.get(name).and_then(Value::as_str).is_none_or(|it| it.trim().is_empty());
        if is_blank {
            let message = format!("Field '{name}' cannot be empty or null");
            return Err(FolioError::unprocessable(Fault::new(message).with(name, "")));
        }
    }
    let now = dates::rmb(writer.now_ms);
    let of_old = |name: &str| old.and_then(|it| it.get(name)).cloned();
    let user = || writer.user.clone().map(Value::from);
    let created = [
        ("createdDate", of_old("createdDate").or_else(|| Some(now.as_str().into()))),
        ("createdByUserId", of_old("createdByUserId").or_else(user)),
        ("updatedDate", Some(now.as_str().into())),
        ("updatedByUserId", user()),
    ];
    for (name, value) in created {
        body.extend(value.map(|it| (name.to_owned(), it)));
    }
    Ok(())
}

async fn conditions(call: Call) -> Answer {
    let read = |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut list = Vec::new();
        for (name, collection) in &CONDITIONS {
            let by_name = Query::filter(Expr::All).sorted("name", Direction::Ascending);
            let mut values = Vec::new();
            for record in view.find(&collection.kind, &by_name)? {
                values.push(record.json()?["name"].take());
            }
            list.push(json!({"name": name, "values": values}));
        }
        Ok(json!({"setsFilteringConditions": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn nothing(_: Call, list: &'static str) -> Answer {
    Ok(json_answer(StatusCode::OK, &json!({list: [], "totalRecords": 0})))
}

async fn done(_: Call) -> Answer {
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
