//! Authority storage: authorities, their source files, note types and identifier types (section 8.3 of the contract;
//! mod-entities-links).
//!
//! A deleted authority is archived and can be listed with `deleted=true` until it expires.

use std::ops::ControlFlow;

use http::header::ACCEPT;
use http::{HeaderValue, StatusCode};
use pinakes_http::{Gone, Sink, answer};
use pinakes_store::{
    Arity, Column, End, Expr, Facet, Index, Kind, Query, Search, Text, Txn, Type, Value as StoreValue, View,
};
use serde_json::{Value, json};

use super::{headings, settings};
use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Locking, Manner, Metadata, Page, Reference, Schema, Unique, Writer,
    expr_of,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, FolioError};
use crate::platform::values::json_answer;
use crate::platform::{dates, json};

pub(crate) use crate::authorities::settings::{SETTING, value_of as setting};
pub use crate::authorities::source_files::SOURCE_FILES;

/// Default number of days for which a deleted authority is kept before it expires.
const KEPT_DAYS: i64 = 7;
/// A day in milliseconds.
const DAY_MS: i64 = 86_400_000;
/// Headings and references that a search covers.
const SEARCHED: &[&str] = &[
    "personalName",
    "personalNameTitle",
    "corporateName",
    "corporateNameTitle",
    "meetingName",
    "meetingNameTitle",
    "uniformTitle",
    "namedEvent",
    "topicalTerm",
    "geographicName",
    "genreTerm",
    "chronTerm",
    "mediumPerfTerm",
    "generalSubdivision",
    "geographicSubdivision",
    "chronSubdivision",
    "formSubdivision",
    "sftPersonalName",
    "sftPersonalNameTitle",
    "sftCorporateName",
    "sftCorporateNameTitle",
    "sftMeetingName",
    "sftMeetingNameTitle",
    "sftUniformTitle",
    "sftNamedEvent",
    "sftTopicalTerm",
    "sftGeographicName",
    "sftGenreTerm",
    "sftChronTerm",
    "sftMediumPerfTerm",
    "sftGeneralSubdivision",
    "sftGeographicSubdivision",
    "sftChronSubdivision",
    "sftFormSubdivision",
    "saftPersonalName",
    "saftPersonalNameTitle",
    "saftCorporateName",
    "saftCorporateNameTitle",
    "saftMeetingName",
    "saftMeetingNameTitle",
    "saftUniformTitle",
    "saftNamedEvent",
    "saftTopicalTerm",
    "saftGeographicName",
    "saftGenreTerm",
    "saftChronTerm",
    "saftMediumPerfTerm",
    "saftGeneralSubdivision",
    "saftGeographicSubdivision",
    "saftChronSubdivision",
    "saftFormSubdivision",
    "naturalId",
    "identifiers.value",
];

const COLUMNS: &[Column] = &[
    Column::one("naturalId", Type::Folded),
    Column::one("sourceFileId", Type::Text),
    Column::at("createdDate", "metadata.createdDate", Type::Instant),
    Column::at("updatedDate", "metadata.updatedDate", Type::Instant),
    Column { name: "identifiers", path: "identifiers.value", ty: Type::Folded, arity: Arity::Many },
];

/// `/authority-storage/authorities`.
pub static AUTHORITIES: Collection = Collection {
    permission: "inventory-storage.authorities",
    table: "authority",
    kind: Kind {
        id_path: Some("id"),
        columns: COLUMNS,
        indexes: &[Index::on(&["naturalId"]), Index::on(&["updatedDate"])],
        facets: &[Facet::values("sourceFileId"), Facet::values("subjectHeadings"), Facet::values("source")],
        search: Search::Folded,
        lists: super::listed::OF_AUTHORITIES,
        text: Text::At(SEARCHED),
        ..Kind::named("folio_authority")
    },
    schema: Schema {
        required: &["source", "naturalId"],
        types: &[
            ("source", Kinds::Text),
            ("naturalId", Kinds::Text),
            ("sourceFileId", Kinds::Uuid),
            ("personalName", Kinds::Text),
            ("personalNameTitle", Kinds::Text),
            ("corporateName", Kinds::Text),
            ("corporateNameTitle", Kinds::Text),
            ("meetingName", Kinds::Text),
            ("meetingNameTitle", Kinds::Text),
            ("uniformTitle", Kinds::Text),
            ("topicalTerm", Kinds::Text),
            ("geographicName", Kinds::Text),
            ("genreTerm", Kinds::Text),
            ("subjectHeadings", Kinds::Text),
            ("identifiers", Kinds::List),
            ("notes", Kinds::List),
            ("sftPersonalName", Kinds::List),
            ("saftPersonalName", Kinds::List),
        ],
        lists: &["identifiers", "notes"],
        ..Schema::OPEN
    },
    references: &[Reference { path: "sourceFileId", to: || &SOURCE_FILES }],
    names: Names {
        elements: &[("identifiers", "value"), ("notes", "note")],
        whole: &["naturalId", "source"],
        anywhere: SEARCHED,
        ..Names::PLAIN
    },
    locking: Locking::From(0),
    metadata: Metadata::Micros,
    missing: Some(("Authority", "AuthorityNotFoundException")),
    manner: Manner::Links,
    hooks: Hooks { stored: note_change, deleting: archive, ..Hooks::NONE },
    is_served: false,
    ..Collection::named("/authority-storage/authorities", "authorities", "folio_authority")
};

/// Archived (deleted) authorities, as they were when they were deleted.
pub static ARCHIVES: Collection = Collection {
    table: "authority_archive",
    kind: Kind {
        id_path: Some("id"),
        columns: COLUMNS,
        search: Search::Folded,
        ..Kind::named("folio_authority_archive")
    },
    names: AUTHORITIES_NAMES,
    is_served: false,
    ..Collection::named("/authority-storage/authorities", "authorities", "folio_authority_archive")
};

const AUTHORITIES_NAMES: Names = Names {
    elements: &[("identifiers", "value"), ("notes", "note")],
    whole: &["naturalId", "source"],
    anywhere: SEARCHED,
    ..Names::PLAIN
};

/// `/authority-note-types`.
pub static NOTE_TYPES: Collection = Collection {
    permission: "inventory-storage.authority-note-types",
    table: "authority_note_type",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded)],
        indexes: &[Index::unique(&["name"])],
        ..Kind::named("folio_authority_note_type")
    },
    schema: Schema { required: &["name"], types: &[("name", Kinds::Text)], ..Schema::OPEN },
    metadata: Metadata::Micros,
    unique: &[Unique {
        column: "name",
        message: "Authority note type with the given 'name' already exists.",
    }],
    missing: Some(("Authority note type", "AuthorityNoteTypeNotFoundException")),
    manner: Manner::Links,
    reference_data: include_str!("../../reference/authority-note-types.json"),
    ..Collection::named("/authority-note-types", "authorityNoteTypes", "folio_authority_note_type")
};

/// Lists authorities. `deleted=true` lists deleted ones; `idOnly=true` gives ids alone, one per line for clients that
/// accept text.
pub(crate) async fn list(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let collection = if call.query.is_true("deleted") { &ARCHIVES } else { &AUTHORITIES };
    if !call.query.is_true("idOnly") {
        return collection::answer_list(&call, collection, page).await;
    }
    let accepted = call.headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let is_text = accepted.contains("text/plain");
    let content_type = if is_text { "text/plain" } else { "application/json" };
    let produce = move |view: &mut View<'_>, sink: &mut Sink| -> Result<(), FolioError> {
        let (filter, order) = expr_of(view, page.collections, collection, &page.cql)?;
        let total = view.count(&collection.kind, &filter)?;
        let query = Query { filter, order, skip: page.offset, limit: Some(page.limit), after: None };
        let mut sent = if is_text { Ok(()) } else { sink.push(b"{\"authorities\" : [") };
        let mut n_sent = 0;
        view.for_each(&collection.kind, &query, |record| {
            let line = match (is_text, n_sent) {
                (true, _) => format!("{}\n", record.id),
                (false, 0) => format!("{{\"id\" : \"{}\"}}", record.id),
                (false, _) => format!(",{{\"id\" : \"{}\"}}", record.id),
            };
            n_sent += 1;
            sent = sent.and_then(|()| sink.push(line.as_bytes()));
            if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if is_text || sent == Err(Gone) {
            return Ok(());
        }
        // If the client has disconnected, the end of the list is not needed.
        let _ = sink.push(format!("],\"totalRecords\" : {total}}}").as_bytes());
        Ok(())
    };
    let body = call.db().stream(call.app.context.limits(), produce).await?;
    Ok(answer::with_body(StatusCode::OK, HeaderValue::from_static(content_type), body))
}

/// Records the change of an authority's headings for the link statistics.
fn note_change(
    txn: &mut Txn<'_>,
    writer: &Writer,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let Some(old) = old else { return Ok(()) };
    let n_links =
        crate::links::linked::n_links(txn, old.get("id").and_then(Value::as_str).unwrap_or_default())?;
    crate::links::noted::note(txn, writer, old, Some(new), n_links)
}

/// Moves a deleted authority to the archive and removes its links.
fn archive(txn: &mut Txn<'_>, writer: &Writer, body: &Value) -> Result<(), FolioError> {
    let mut kept = body.clone();
    kept["deleted"] = true.into();
    if let Some(metadata) = kept.get_mut("metadata") {
        metadata["updatedDate"] = dates::micros(writer.now_ms).into();
    }
    let id = body.get("id").and_then(Value::as_str).unwrap_or_default();
    let n_links = crate::links::linked::unlink(txn, writer, id)?;
    crate::links::noted::note(txn, writer, body, None, n_links)?;
    let document = pinakes_store::Document::with_bytes(&ARCHIVES.kind, id, &kept, json::bytes(&kept))?;
    if txn.has(&ARCHIVES.kind, id)? {
        txn.update_document(&document)?;
    } else {
        txn.insert_document(&document)?;
    }
    Ok(())
}

/// Deletes archived authorities that are older than the retention period of the settings, if expiration is enabled.
pub(crate) async fn expire(call: Call) -> Answer {
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if settings::value_of(txn, "archives.expiration.enabled")? == Value::Bool(false) {
            return Ok(());
        }
        let days = settings::value_of(txn, "archives.expiration.period")?.as_i64().unwrap_or(KEPT_DAYS);
        let until = StoreValue::Instant(now_ms.saturating_sub(days.saturating_mul(DAY_MS)));
        let old = Expr::Range("metadata.updatedDate".into(), End::Open, End::Included(until));
        let mut ids = Vec::new();
        txn.for_each(&ARCHIVES.kind, &Query::filter(old), |record| {
            ids.push(record.id);
            ControlFlow::Continue(())
        })?;
        ids.iter().try_for_each(|id| txn.delete(&ARCHIVES.kind, id).map(drop).map_err(FolioError::from))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::ACCEPTED))
}

/// Lists the heading types: the field of each, and its name in searches.
pub(crate) async fn heading_types(_: Call) -> Answer {
    let list: Vec<Value> =
        headings::HEADINGS.iter().map(|(code, name)| json!({"code": code, "name": name})).collect();
    Ok(json_answer(StatusCode::OK, &json!({"authorityHeadingTypes": list, "totalRecords": list.len()})))
}

/// Names of the identifier types used for authorities.
const IDENTIFIER_TYPES: [&str; 5] =
    ["Control number", "LCCN", "Canceled LCCN", "Other standard identifier", "System control number"];

pub(crate) async fn identifier_types(call: Call) -> Answer {
    let read = |view: &mut View<'_>| {
        let names = IDENTIFIER_TYPES.iter().map(|it| StoreValue::Folded((*it).to_owned())).collect();
        view.find(&crate::vocabularies::IDENTIFIER_TYPES.kind, &Query::filter(Expr::In("name".into(), names)))
    };
    let found = call.db().read(pinakes_store::Weight::Scan, read).await?;
    let list = found.iter().map(pinakes_store::Record::json).collect::<Result<Vec<Value>, _>>()?;
    let shown: Vec<Value> = list
        .iter()
        .map(|it| json!({"id": it.get("id"), "name": it.get("name"), "source": "folio"}))
        .collect();
    Ok(json_answer(StatusCode::OK, &json!({"authorityIdentifierTypes": shown, "totalRecords": shown.len()})))
}
