//! Actions on fees and fines, as they are stored.

use pinakes_store::{Column, Index, Kind, Search, Type};

use crate::circulation::fees::charged::plain;
use crate::circulation::notices::fee_actions;
use crate::platform::collection::{Collection, Hooks, Kinds, Metadata, Schema};
use crate::platform::cql::Names;

/// `/feefineactions`: the actions on accounts.
pub(crate) static FEE_FINE_ACTIONS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("accountId", Type::Text),
            Column::one("userId", Type::Text),
            Column::one("typeAction", Type::Folded),
            Column::one("dateAction", Type::Instant),
        ],
        indexes: &[Index::on(&["accountId"]), Index::on(&["userId"]), Index::on(&["dateAction"])],
        search: Search::Folded,
        ..Kind::named("folio_fee_fine_action")
    },
    schema: Schema {
        required: &["accountId", "userId"],
        types: &[("accountId", Kinds::Uuid), ("userId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    metadata: Metadata::Off,
    has_result_info: false,
    names: Names {
        fields: &[
            "comments",
            "notify",
            "amountAction",
            "balance",
            "transactionInformation",
            "createdAt",
            "source",
            "paymentMethod",
            "originalCreatedAt",
        ],
        ..Names::PLAIN
    },
    hooks: Hooks { stored: fee_actions::fee_action, ..Hooks::NONE },
    gone: Some("FeefineactionObject does not exist"),
    ..plain("/feefineactions", "feefineactions", "feefineactions", "folio_fee_fine_action", "feefineactions")
};
