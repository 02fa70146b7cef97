//! Relations of instances and holdings: preceding and succeeding titles, relationships, items bound with several
//! holdings.

use http::StatusCode;
use pinakes_store::{Column, Index, Kind, Search, Type};

use super::holdings::HOLDINGS;
use super::instances::INSTANCES;
use super::items::ITEMS;
use crate::platform::collection::{Collection, Hooks, Kinds, Reference, Schema};
use crate::platform::error::{Fault, FolioError};
use crate::vocabularies::INSTANCE_RELATIONSHIP_TYPES;

/// `/preceding-succeeding-titles`.
pub static PRECEDING_SUCCEEDING_TITLES: Collection = Collection {
    permission: "inventory-storage.preceding-succeeding-titles",
    table: "preceding_succeeding_title",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("precedingInstanceId", Type::Text),
            Column::one("succeedingInstanceId", Type::Text),
        ],
        indexes: &[Index::on(&["precedingInstanceId"]), Index::on(&["succeedingInstanceId"])],
        search: Search::Folded,
        ..Kind::named("folio_preceding_succeeding_title")
    },
    schema: Schema {
        types: &[
            ("precedingInstanceId", Kinds::Uuid),
            ("succeedingInstanceId", Kinds::Uuid),
            ("title", Kinds::Text),
            ("identifiers", Kinds::List),
        ],
        known: &["precedingInstanceId", "succeedingInstanceId", "title", "hrid", "identifiers"],
        lists: &["identifiers"],
        ..Schema::OPEN
    },
    references: &[
        Reference { path: "precedingInstanceId", to: || &INSTANCES },
        Reference { path: "succeedingInstanceId", to: || &INSTANCES },
    ],
    hooks: Hooks {
        prepare: |_, _, body, _| {
            let has = |name: &str| body.get(name).is_some_and(|it| !it.is_null());
            if has("precedingInstanceId") || has("succeedingInstanceId") {
                return Ok(());
            }
            let fault = Fault::new(
                "The precedingInstanceId and succeedingInstanceId can't be empty at the same time",
            );
            Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, vec![fault.ty("1").code("-1")]))
        },
        ..Hooks::NONE
    },
    ..Collection::named(
        "/preceding-succeeding-titles",
        "precedingSucceedingTitles",
        "folio_preceding_succeeding_title",
    )
};

/// `/instance-storage/instance-relationships`.
pub static INSTANCE_RELATIONSHIPS: Collection = Collection {
    permission: "inventory-storage.instances.instance-relationships",
    table: "instance_relationship",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("superInstanceId", Type::Text),
            Column::one("subInstanceId", Type::Text),
            Column::one("instanceRelationshipTypeId", Type::Text),
        ],
        indexes: &[Index::on(&["superInstanceId"]), Index::on(&["subInstanceId"])],
        search: Search::Folded,
        ..Kind::named("folio_instance_relationship")
    },
    schema: Schema {
        required: &["superInstanceId", "subInstanceId", "instanceRelationshipTypeId"],
        types: &[
            ("superInstanceId", Kinds::Uuid),
            ("subInstanceId", Kinds::Uuid),
            ("instanceRelationshipTypeId", Kinds::Uuid),
        ],
        ..Schema::OPEN
    },
    references: &[
        Reference { path: "superInstanceId", to: || &INSTANCES },
        Reference { path: "subInstanceId", to: || &INSTANCES },
        Reference { path: "instanceRelationshipTypeId", to: || &INSTANCE_RELATIONSHIP_TYPES },
    ],
    ..Collection::named(
        "/instance-storage/instance-relationships",
        "instanceRelationships",
        "folio_instance_relationship",
    )
};

/// `/inventory-storage/bound-with-parts`: an item that is bound with further holdings.
pub static BOUND_WITH_PARTS: Collection = Collection {
    permission: "inventory-storage.bound-with-parts",
    table: "bound_with_part",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("holdingsRecordId", Type::Text), Column::one("itemId", Type::Text)],
        indexes: &[Index::unique(&["itemId", "holdingsRecordId"]), Index::on(&["holdingsRecordId"])],
        search: Search::Folded,
        ..Kind::named("folio_bound_with_part")
    },
    schema: Schema {
        required: &["holdingsRecordId", "itemId"],
        types: &[("holdingsRecordId", Kinds::Uuid), ("itemId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    references: &[
        Reference { path: "holdingsRecordId", to: || &HOLDINGS },
        Reference { path: "itemId", to: || &ITEMS },
    ],
    ..Collection::named("/inventory-storage/bound-with-parts", "boundWithParts", "folio_bound_with_part")
};
