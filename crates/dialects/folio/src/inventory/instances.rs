//! Instances: the description of a title, whatever the number of copies (section 10 of the contract).

use pinakes_store::{Arity, Column, Counts, Facet, Index, Kind, Search, Text, Txn, Type};
use serde_json::{Map, Value, json};

use super::joins;
use super::kinds::INSTANCE;
use crate::platform::collection::{Collection, Hooks, Kinds, Locking, Reference, Schema, Writer};
use crate::platform::cql::Names;
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::hrids::Numbered;
use crate::platform::json::text_at;
use crate::vocabularies as types;

/// Properties of an instance.
const KNOWN: &[&str] = &[
    "administrativeNotes",
    "alternativeTitles",
    "catalogedDate",
    "childInstances",
    "classifications",
    "contributors",
    "dates",
    "deleted",
    "discoverySuppress",
    "editions",
    "electronicAccess",
    "holdingsRecords2",
    "hrid",
    "identifiers",
    "indexTitle",
    "instanceFormatIds",
    "instanceFormats",
    "instanceTypeId",
    "isBoundWith",
    "languages",
    "matchKey",
    "modeOfIssuanceId",
    "natureOfContentTermIds",
    "notes",
    "parentInstances",
    "physicalDescriptions",
    "precedingTitles",
    "previouslyHeld",
    "publication",
    "publicationFrequency",
    "publicationPeriod",
    "publicationRange",
    "series",
    "shared",
    "source",
    "sourceRecordFormat",
    "sourceUri",
    "staffSuppress",
    "statisticalCodeIds",
    "statusId",
    "statusUpdatedDate",
    "subjects",
    "succeedingTitles",
    "tags",
    "title",
];

/// Lists that are always present, even if they were not given.
const LISTS: &[&str] = &[
    "alternativeTitles",
    "editions",
    "series",
    "identifiers",
    "contributors",
    "subjects",
    "classifications",
    "publication",
    "publicationFrequency",
    "publicationRange",
    "electronicAccess",
    "instanceFormatIds",
    "physicalDescriptions",
    "languages",
    "notes",
    "administrativeNotes",
    "statisticalCodeIds",
    "natureOfContentTermIds",
];

/// `/instance-storage/instances`.
pub static INSTANCES: Collection = Collection {
    permission: "inventory-storage.instances",
    table: "instance",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("hrid", Type::Folded),
            Column::one("title", Type::Folded),
            Column::one("source", Type::Folded),
            Column::one("instanceTypeId", Type::Text),
            Column::one("discoverySuppress", Type::Boolean),
            Column::one("staffSuppress", Type::Boolean),
            Column::at("createdDate", "metadata.createdDate", Type::Instant),
            Column::at("updatedDate", "metadata.updatedDate", Type::Instant),
            Column { name: "identifiers", path: "identifiers.value", ty: Type::Folded, arity: Arity::Many },
        ],
        indexes: &[Index::unique(&["hrid"]), Index::on(&["updatedDate"])],
        facets: &[
            Facet::values("instanceTypeId"),
            Facet::values("statusId"),
            Facet::values("modeOfIssuanceId"),
            Facet::values("natureOfContentTermIds"),
            Facet::values("statisticalCodeIds"),
            Facet::values("instanceFormatIds"),
            Facet::values("languages"),
            Facet::values("source"),
            Facet::values("discoverySuppress"),
            Facet::values("staffSuppress"),
            Facet::values("contributors.contributorNameTypeId"),
            Facet::values("contributors.contributorTypeId"),
            Facet::values("subjects.sourceId"),
            Facet::values("subjects.typeId"),
            Facet::values("classifications.classificationTypeId"),
            Facet { name: "instanceTags", path: "tags.tagList", counts: Counts::Values },
            Facet { name: "instanceDateType", path: "dates.dateTypeId", counts: Counts::Values },
        ],
        search: Search::Folded,
        joins: &["id"],
        patterns: &["title"],
        lists: super::listed::OF_INSTANCES,
        text: Text::At(&[
            "title",
            "alternativeTitles.alternativeTitle",
            "contributors.name",
            "series.value",
            "subjects.value",
            "identifiers.value",
            "publication.publisher",
        ]),
        ..Kind::named(INSTANCE)
    },
    schema: Schema {
        required: &[
            "source",
            "title",
            "instanceTypeId",
            "alternativeTitles.alternativeTitle",
            "contributors.name",
            "contributors.contributorNameTypeId",
            "identifiers.value",
            "identifiers.identifierTypeId",
            "classifications.classificationNumber",
            "classifications.classificationTypeId",
            "electronicAccess.uri",
            "series.value",
            "subjects.value",
        ],
        types: &[
            ("source", Kinds::Text),
            ("title", Kinds::Text),
            ("hrid", Kinds::Text),
            ("indexTitle", Kinds::Text),
            ("instanceTypeId", Kinds::Uuid),
            ("modeOfIssuanceId", Kinds::Uuid),
            ("statusId", Kinds::Uuid),
            ("alternativeTitles", Kinds::List),
            ("editions", Kinds::List),
            ("series", Kinds::List),
            ("identifiers", Kinds::List),
            ("identifiers.identifierTypeId", Kinds::Uuid),
            ("contributors", Kinds::List),
            ("contributors.contributorNameTypeId", Kinds::Uuid),
            ("contributors.primary", Kinds::Boolean),
            ("subjects", Kinds::List),
            ("classifications", Kinds::List),
            ("classifications.classificationTypeId", Kinds::Uuid),
            ("publication", Kinds::List),
            ("notes", Kinds::List),
            ("notes.staffOnly", Kinds::Boolean),
            ("electronicAccess", Kinds::List),
            ("languages", Kinds::List),
            ("instanceFormatIds", Kinds::List),
            ("natureOfContentTermIds", Kinds::List),
            ("statisticalCodeIds", Kinds::List),
            ("dates", Kinds::Object),
            ("discoverySuppress", Kinds::Boolean),
            ("staffSuppress", Kinds::Boolean),
            ("previouslyHeld", Kinds::Boolean),
            ("deleted", Kinds::Boolean),
        ],
        known: KNOWN,
        lists: LISTS,
        defaults: &[
            ("discoverySuppress", "false"),
            ("staffSuppress", "false"),
            ("previouslyHeld", "false"),
            ("deleted", "false"),
        ],
    },
    references: &[
        Reference { path: "instanceTypeId", to: || &types::INSTANCE_TYPES },
        Reference { path: "statusId", to: || &types::INSTANCE_STATUSES },
        Reference { path: "modeOfIssuanceId", to: || &types::MODES_OF_ISSUANCE },
        Reference { path: "statisticalCodeIds", to: || &types::STATISTICAL_CODES },
        Reference { path: "dates.dateTypeId", to: || &types::INSTANCE_DATE_TYPES },
    ],
    names: Names {
        fields: &[],
        aliases: &[
            ("contributorNames", "contributors"),
            ("publisher", "publication.publisher"),
            ("subject", "subjects"),
            ("isbn", "identifiers"),
            ("issn", "identifiers"),
        ],
        elements: &[
            ("alternativeTitles", "alternativeTitle"),
            ("contributors", "name"),
            ("identifiers", "value"),
            ("classifications", "classificationNumber"),
            ("notes", "note"),
            ("electronicAccess", "uri"),
            ("series", "value"),
            ("subjects", "value"),
            ("publication", "publisher"),
        ],
        whole: &["hrid", "source"],
        anywhere: &["title", "alternativeTitles", "contributors", "identifiers", "series", "subjects"],
    },
    locking: Locking::From(1),
    numbered: Some(Numbered::Instances),
    hooks: Hooks {
        prepare,
        foreign: joins::of_instances,
        deleting: crate::inventory::harvested::note_gone,
        ..Hooks::NONE
    },
    ..Collection::named("/instance-storage/instances", "instances", "folio_instance")
};

/// Completes an instance: hrid, match key, date of its status.
fn prepare(
    txn: &mut Txn<'_>,
    writer: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    number(txn, writer, Numbered::Instances, body, old)?;
    // Properties added by the business layer are not stored.
    for name in [
        "precedingTitles",
        "succeedingTitles",
        "parentInstances",
        "childInstances",
        "instanceFormats",
        "isBoundWith",
        "holdingsRecords2",
    ] {
        body.shift_remove(name);
    }
    let status = |body: &Value| text_at(body, "statusId").map(str::to_owned);
    let given = body.get("statusId").and_then(Value::as_str).map(str::to_owned);
    match old {
        Some(old) if status(old) == given => {
            if let Some(date) = old.get("statusUpdatedDate") {
                body.insert("statusUpdatedDate".to_owned(), date.clone());
            }
        }
        _ => {
            body.insert("statusUpdatedDate".to_owned(), dates::rmb(writer.now_ms).into());
        }
    }
    // A key set by the client is kept; a generated one is updated with its sources.
    let before = old.and_then(|it| text_at(it, "matchKey"));
    let made = old.and_then(Value::as_object).map(match_key);
    match (body.get("matchKey").and_then(Value::as_str), before) {
        (Some(given), _) if made.as_deref() != Some(given) => {}
        (None, Some(before)) if made.as_deref() != Some(before) => {
            body.insert("matchKey".to_owned(), before.into());
        }
        _ => {
            body.insert("matchKey".to_owned(), match_key(body).into());
        }
    }
    Ok(())
}

/// Builds a key by which copies of a description are found: title, year and publisher in a normalised form.
fn match_key(body: &Map<String, Value>) -> String {
    let plain = |text: &str| -> String {
        pinakes_store::fold(text).chars().map(|it| if it.is_alphanumeric() { it } else { '_' }).collect()
    };
    let first = |name: &str| {
        body.get("publication")
            .and_then(|it| it.get(0))
            .and_then(|it| text_at(it, name))
            .map(plain)
            .unwrap_or_default()
    };
    let title = body.get("title").and_then(Value::as_str).map(plain).unwrap_or_default();
    format!("{title:.70}_{:.8}_{}", first("dateOfPublication"), first("publisher"))
}

/// Assigns a hrid to a record without one, and keeps an existing one.
///
/// Errors: 400 if a request changes it.
pub(super) fn number(
    txn: &mut Txn<'_>,
    writer: &Writer,
    numbered: Numbered,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let given = body.get("hrid").and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned);
    let stored = old.and_then(|it| text_at(it, "hrid"));
    let hrid = match (given, stored) {
        (Some(given), Some(stored)) if given != stored => {
            let message = format!("The hrid field cannot be changed: new={given}, old={stored}");
            return Err(FolioError::bad_request(message));
        }
        (_, Some(stored)) => stored.to_owned(),
        (Some(given), None) => given,
        (None, None) => crate::platform::collection::numbers::next(txn, writer, numbered)?,
    };
    body.insert("hrid".to_owned(), json!(hrid));
    Ok(())
}
