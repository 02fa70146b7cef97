//! `/bulk-operations/profiles`: rules that are kept under a name, to be applied again.

use http::StatusCode;
use pinakes_store::{Column, Index, Kind, Txn, Type};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Metadata, Missing, Page, Schema, Writer,
};
use crate::platform::cql::Names;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// `/bulk-operations/profiles`.
pub(crate) static PROFILES: Collection = Collection {
    permission: "bulk-operations.profiles",
    table: "profile",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("name", Type::Folded),
            Column::one("entityType", Type::Text),
            Column::one("updatedDate", Type::Instant),
        ],
        indexes: &[Index::on(&["name"]), Index::on(&["updatedDate"])],
        ..Kind::named("folio_bulk_profile")
    },
    schema: Schema {
        required: &["name", "entityType"],
        types: &[
            ("name", Kinds::Text),
            ("description", Kinds::Text),
            ("entityType", Kinds::Text),
            ("locked", Kinds::Boolean),
            ("ruleDetails", Kinds::List),
            ("marcRuleDetails", Kinds::List),
        ],
        defaults: &[("locked", "false")],
        lists: &["ruleDetails", "marcRuleDetails"],
        ..Schema::OPEN
    },
    names: Names { fields: &["createdDate", "createdBy", "updatedBy"], ..Names::PLAIN },
    metadata: Metadata::Off,
    has_result_info: false,
    hooks: Hooks { prepare: date, ..Hooks::NONE },
    is_served: false,
    ..Collection::named("/bulk-operations/profiles", "content", "folio_bulk_profile")
};

/// Records who wrote a profile, and when, as properties of its own.
fn date(
    _: &mut Txn<'_>,
    writer: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let now = dates::rmb(writer.now_ms);
    let user = writer.user.as_deref();
    let (created, by) = match old {
        Some(old) => (text_at(old, "createdDate").unwrap_or(&now), text_at(old, "createdBy")),
        None => (now.as_str(), user),
    };
    let written =
        [("createdDate", Some(created)), ("createdBy", by), ("updatedDate", Some(&now)), ("updatedBy", user)];
    body.extend(written.into_iter().map(|(name, text)| (name.to_owned(), json!(text))));
    Ok(())
}

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let item = "/bulk-operations/profiles/{id}";
    routes
        .get("/bulk-operations/profiles", to("bulk-operations.profiles.collection.get"), |call| async move {
            let page = Page::of(&call)?;
            collection::answer_list(&call, &PROFILES, page).await
        })
        .post("/bulk-operations/profiles", to("bulk-operations.profiles.item.post"), |call| {
            collection::create(call, &PROFILES)
        })
        .put(item, to("bulk-operations.profiles.item.put"), replace)
        .delete(item, to("bulk-operations.profiles.item.delete"), |call| collection::remove(call, &PROFILES))
}

/// Replaces a profile, and answers with it.
async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        collection::put(txn, &writer(), &PROFILES, &id, body.clone(), Missing::Refuse, Lock::Checked)
    };
    let stored = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &stored.body))
}
