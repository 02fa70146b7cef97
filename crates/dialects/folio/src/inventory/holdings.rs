//! Holdings: what a location has of an instance (section 10 of the contract).

use std::ops::ControlFlow;

use pinakes_store::{Column, Expr, Facet, Index, Kind, Query, Search, Txn, Type};
use serde_json::{Map, Value};

use super::instances::{INSTANCES, number};
use super::{derived, joins, kinds};
use crate::places::LOCATIONS;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Locking, Missing, Reference, Schema, Writer, by_kind,
};
use crate::platform::cql::Names;
use crate::platform::error::FolioError;
use crate::platform::hrids::Numbered;
use crate::vocabularies as types;

/// Properties of holdings.
const KNOWN: &[&str] = &[
    "acquisitionFormat",
    "acquisitionMethod",
    "additionalCallNumbers",
    "administrativeNotes",
    "bareHoldingsItems",
    "callNumber",
    "callNumberPrefix",
    "callNumberSuffix",
    "callNumberTypeId",
    "copyNumber",
    "digitizationPolicy",
    "discoverySuppress",
    "effectiveLocationId",
    "electronicAccess",
    "formerIds",
    "holdingsInstance",
    "holdingsItems",
    "holdingsStatements",
    "holdingsStatementsForIndexes",
    "holdingsStatementsForSupplements",
    "holdingsTypeId",
    "hrid",
    "illPolicy",
    "illPolicyId",
    "instanceId",
    "notes",
    "numberOfItems",
    "permanentLocation",
    "permanentLocationId",
    "receiptStatus",
    "receivingHistory",
    "retentionPolicy",
    "shelvingTitle",
    "sourceId",
    "statisticalCodeIds",
    "tags",
    "temporaryLocation",
    "temporaryLocationId",
];

/// `/holdings-storage/holdings`.
pub static HOLDINGS: Collection = Collection {
    permission: "inventory-storage.holdings",
    table: "holdings_record",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("hrid", Type::Folded),
            Column::one("instanceId", Type::Text),
            Column::one("permanentLocationId", Type::Text),
            Column::one("effectiveLocationId", Type::Text),
            Column::one("sourceId", Type::Text),
            Column::one("callNumber", Type::Folded),
            Column::one("discoverySuppress", Type::Boolean),
            Column::at("createdDate", "metadata.createdDate", Type::Instant),
            Column::at("updatedDate", "metadata.updatedDate", Type::Instant),
        ],
        indexes: &[Index::unique(&["hrid"]), Index::on(&["instanceId"]), Index::on(&["updatedDate"])],
        search: Search::Folded,
        joins: &["id", "instanceId"],
        facets: &[
            Facet::values("permanentLocationId"),
            Facet::values("temporaryLocationId"),
            Facet::values("effectiveLocationId"),
            Facet::values("sourceId"),
            Facet::values("holdingsTypeId"),
            Facet::values("callNumberTypeId"),
            Facet::values("illPolicyId"),
            Facet::values("statisticalCodeIds"),
        ],
        ..Kind::named(kinds::HOLDINGS)
    },
    schema: Schema {
        required: &["instanceId", "permanentLocationId", "sourceId"],
        types: &[
            ("instanceId", Kinds::Uuid),
            ("permanentLocationId", Kinds::Uuid),
            ("temporaryLocationId", Kinds::Uuid),
            ("sourceId", Kinds::Uuid),
            ("holdingsTypeId", Kinds::Uuid),
            ("callNumberTypeId", Kinds::Uuid),
            ("illPolicyId", Kinds::Uuid),
            ("hrid", Kinds::Text),
            ("callNumber", Kinds::Text),
            ("copyNumber", Kinds::Text),
            ("notes", Kinds::List),
            ("formerIds", Kinds::List),
            ("electronicAccess", Kinds::List),
            ("holdingsStatements", Kinds::List),
            ("statisticalCodeIds", Kinds::List),
            ("discoverySuppress", Kinds::Boolean),
        ],
        known: KNOWN,
        lists: &[
            "formerIds",
            "electronicAccess",
            "administrativeNotes",
            "notes",
            "holdingsStatements",
            "holdingsStatementsForIndexes",
            "holdingsStatementsForSupplements",
            "statisticalCodeIds",
            "additionalCallNumbers",
        ],
        defaults: &[("discoverySuppress", "false")],
    },
    references: &[
        Reference { path: "instanceId", to: || &INSTANCES },
        Reference { path: "permanentLocationId", to: || &LOCATIONS },
        Reference { path: "temporaryLocationId", to: || &LOCATIONS },
        Reference { path: "sourceId", to: || &types::HOLDINGS_SOURCES },
        Reference { path: "holdingsTypeId", to: || &types::HOLDINGS_TYPES },
        Reference { path: "callNumberTypeId", to: || &types::CALL_NUMBER_TYPES },
        Reference { path: "illPolicyId", to: || &types::ILL_POLICIES },
        Reference { path: "statisticalCodeIds", to: || &types::STATISTICAL_CODES },
    ],
    names: Names {
        elements: &[("notes", "note"), ("electronicAccess", "uri"), ("holdingsStatements", "statement")],
        whole: &["hrid", "callNumber"],
        anywhere: &["hrid", "callNumber"],
        ..Names::PLAIN
    },
    locking: Locking::From(1),
    numbered: Some(Numbered::Holdings),
    hooks: Hooks {
        prepare,
        foreign: joins::of_holdings,
        stored: follow,
        deleting: crate::inventory::harvested::holdings_go,
        ..Hooks::NONE
    },
    ..Collection::named("/holdings-storage/holdings", "holdingsRecords", "folio_holdings")
};

fn prepare(
    txn: &mut Txn<'_>,
    writer: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    number(txn, writer, Numbered::Holdings, body, old)?;
    for name in [
        "holdingsInstance",
        "holdingsItems",
        "bareHoldingsItems",
        "permanentLocation",
        "temporaryLocation",
        "illPolicy",
    ] {
        body.shift_remove(name);
    }
    let location = ["temporaryLocationId", "permanentLocationId"]
        .iter()
        .find_map(|it| body.get(*it).filter(|it| it.is_string()));
    match location.cloned() {
        Some(location) => drop(body.insert("effectiveLocationId".to_owned(), location)),
        None => drop(body.shift_remove("effectiveLocationId")),
    }
    Ok(())
}

/// Properties that items derive from their holdings.
const INHERITED: [&str; 5] =
    ["effectiveLocationId", "callNumber", "callNumberPrefix", "callNumberSuffix", "callNumberTypeId"];

/// Updates the items after a change of location or call number.
fn follow(txn: &mut Txn<'_>, writer: &Writer, body: &Value, old: Option<&Value>) -> Result<(), FolioError> {
    crate::inventory::harvested::holdings_stored(txn, writer, body, old)?;
    let Some(old) = old else { return Ok(()) };
    if INHERITED.iter().all(|name| old.get(name) == body.get(name)) {
        return Ok(());
    }
    let id = body.get("id").and_then(Value::as_str).unwrap_or_default();
    let items = by_kind(writer.collections, kinds::ITEM)?;
    let mut bodies = Vec::new();
    let of_holdings = Query::filter(Expr::Is("holdingsRecordId".into(), id.into()));
    txn.for_each(&items.kind, &of_holdings, |record| {
        bodies.push(record);
        ControlFlow::Continue(())
    })?;
    for record in bodies {
        let Value::Object(item) = record.json()? else { continue };
        let mut changed = item.clone();
        derived::derive(&mut changed, body);
        if changed != item {
            collection::put(txn, writer, items, &record.id, changed, Missing::Refuse, Lock::Ignored)?;
        }
    }
    Ok(())
}
