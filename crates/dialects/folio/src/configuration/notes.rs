//! Notes on records of any kind, their types, and the links between notes and records (mod-notes).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{
    Arity, Column, Direction, Expr, Index, Kind, Order, Query, Record, Search, Txn, Type,
    Value as StoreValue, View, Weight,
};
use serde_json::{Map, Value, json};

use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Manner, Missing, Reference, Schema, Unique, Writer,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

/// `/note-types`.
pub(crate) static NOTE_TYPES: Collection = Collection {
    permission: "note.types",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded)],
        indexes: &[Index::unique(&["name"])],
        ..Kind::named("folio_note_type")
    },
    schema: Schema { required: &["name"], types: &[("name", Kinds::Text)], ..Schema::OPEN },
    unique: &[Unique { column: "name", message: "Key (name)=({value}) already exists." }],
    names: Names { whole: &["name"], ..Names::PLAIN },
    missing: Some(("Note type", "NoteTypeNotFoundException")),
    manner: Manner::Spring,
    hooks: Hooks { prepare: without_usage, shown: Some(with_usage), ..Hooks::NONE },
    reference_data: include_str!("../../reference/note-types.json"),
    ..Collection::named("/note-types", "noteTypes", "note_type")
};

/// `/notes`.
pub(crate) static NOTES: Collection = Collection {
    permission: "notes",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("title", Type::Folded),
            Column::one("domain", Type::Folded),
            Column::one("typeId", Type::Text),
            Column { name: "linkIds", path: "links.id", ty: Type::Text, arity: Arity::Many },
        ],
        indexes: &[Index::on(&["typeId"])],
        facets: &[pinakes_store::Facet::values("typeId")],
        search: Search::Folded,
        ..Kind::named("folio_note")
    },
    schema: Schema {
        required: &["typeId", "title", "domain", "links"],
        types: &[
            ("typeId", Kinds::Uuid),
            ("title", Kinds::Text),
            ("domain", Kinds::Text),
            ("links", Kinds::List),
            ("popUpOnCheckOut", Kinds::Boolean),
            ("popUpOnUser", Kinds::Boolean),
        ],
        ..Schema::OPEN
    },
    references: &[Reference { path: "typeId", to: || &NOTE_TYPES }],
    names: Names { fields: &["content", "type", "links.type", "status"], ..Names::PLAIN },
    missing: Some(("Note", "NoteNotFoundException")),
    manner: Manner::Spring,
    hooks: Hooks { shown: Some(with_types), ..Hooks::NONE },
    ..Collection::named("/notes", "notes", "note")
};

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(
            "/note-links/domain/{domain}/type/{type}/id/{linked}",
            Access::to("note.links.collection.get"),
            notes_of,
        )
        .put("/note-links/type/{type}/id/{linked}", Access::to("note.links.collection.put"), link)
}

/// Removes `usage`, which is computed and never stored.
fn without_usage(
    _: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    body.shift_remove("usage");
    Ok(())
}

/// Adds whether there are notes of a type.
fn with_usage(view: &mut View<'_>, types: &mut [Value]) -> Result<(), FolioError> {
    for body in types {
        let id = text_at(body, "id").unwrap_or_default().to_owned();
        let is_assigned = view.first(&NOTES.kind, Expr::Is("typeId".into(), id.as_str().into()))?.is_some();
        body["usage"] = json!({"isAssigned": is_assigned});
    }
    Ok(())
}

/// Adds to notes the current name of their type.
fn with_types(view: &mut View<'_>, notes: &mut [Value]) -> Result<(), FolioError> {
    let ids: Vec<String> =
        notes.iter().map(|it| text_at(it, "typeId").unwrap_or_default().to_owned()).collect();
    let types = view.get_many(&NOTE_TYPES.kind, &ids)?;
    for (note, ty) in notes.iter_mut().zip(types) {
        let Some(ty) = ty else { continue };
        note["type"] = ty.json()?["name"].take();
    }
    Ok(())
}

/// Returns the condition that a note is linked to a record.
fn linked(ty: &str, id: &str) -> Expr {
    let text = |text: &str| StoreValue::Text(text.to_owned());
    let link = Expr::And(vec![Expr::Is("id".into(), text(id)), Expr::Is("type".into(), text(ty))]);
    Expr::Is("links.id".into(), text(id)).and(Expr::Element("links".into(), Box::new(link)))
}

/// Lists the notes of a domain, filtered by whether they are linked to a record (`status=assigned`, the default,
/// `unassigned` or `all`), by type and by words of the title; ordered by `orderBy`.
async fn notes_of(call: Call) -> Answer {
    let (domain, ty, id) = (call.param("domain"), call.param("type"), call.param("linked"));
    let is_linked = linked(ty, id);
    let mut filter = Expr::Is("domain".into(), StoreValue::Folded(domain.to_owned()));
    match call.query.get("status").unwrap_or("assigned").to_ascii_lowercase().as_str() {
        "unassigned" => filter = filter.and(Expr::Not(Box::new(is_linked))),
        "all" => {}
        _ => filter = filter.and(is_linked),
    }
    if let Some(words) = call.query.get("search").filter(|it| !it.trim().is_empty()) {
        let pattern = pinakes_store::Pattern::new(&regex_of(words), "f")?;
        filter = filter.and(Expr::Or(vec![
            Expr::Regex("title".into(), pattern.clone()),
            Expr::Regex("content".into(), pattern),
        ]));
    }
    let wanted: Vec<String> = call.query.all("noteType").map(str::to_owned).collect();
    let path = match call.query.get("orderBy").unwrap_or_default() {
        "title" => "title",
        "updatedDate" => "metadata.updatedDate",
        _ => "metadata.createdDate",
    };
    let is_ascending = call.query.get("order").is_some_and(|it| it.eq_ignore_ascii_case("asc"));
    let direction = if is_ascending { Direction::Ascending } else { Direction::Descending };
    let is_ordered = call.query.get("orderBy").is_some();
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut filter = filter.clone();
        if !wanted.is_empty() {
            let names = wanted.iter().map(|it| StoreValue::Folded(it.clone())).collect();
            let types = view.find(&NOTE_TYPES.kind, &Query::filter(Expr::In("name".into(), names)))?;
            let ids = types.into_iter().map(|it| StoreValue::Text(it.id)).collect();
            filter = filter.and(Expr::In("typeId".into(), ids));
        }
        let total = view.count(&NOTES.kind, &filter)?;
        let mut query = Query::filter(filter).window(offset, limit);
        if is_ordered {
            query.order = vec![Order { path: path.into(), direction }];
        }
        let found = view.find(&NOTES.kind, &query)?;
        let mut notes = found.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
        with_types(view, &mut notes)?;
        Ok(json!({"notes": notes, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Converts the words of a search into a regular expression: every character stands for itself, except `*`.
fn regex_of(words: &str) -> String {
    let mut text = String::new();
    for character in pinakes_store::fold(words.trim()).chars() {
        match character {
            '*' => text.push_str(".*"),
            it if it.is_ascii_punctuation() => text.extend(['\\', it]),
            it => text.push(it),
        }
    }
    text
}

/// Links notes to a record or removes links: `{"notes": [{"id", "status": "ASSIGNED" | "UNASSIGNED"}]}`. A note without
/// any link left is deleted.
async fn link(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (ty, id) = (call.param("type").to_owned(), call.param("linked").to_owned());
    let mut wanted = Vec::new();
    for note in body.get("notes").and_then(Value::as_array).into_iter().flatten() {
        let Some(note_id) = text_at(note, "id").and_then(parse_uuid) else {
            let fault = Fault::new("Validation failed for argument [0]: notes.id must be a UUID");
            return Err(FolioError::unprocessable(fault.code("VALIDATION_ERROR")));
        };
        wanted.push((note_id, text_at(note, "status").unwrap_or_default() == "ASSIGNED"));
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        for (note_id, is_to_be) in &wanted {
            let Some(record) = txn.get(&NOTES.kind, note_id)? else { continue };
            let mut body = match record.json()? {
                Value::Object(body) => body,
                _ => continue,
            };
            let mut links = body.get("links").and_then(Value::as_array).cloned().unwrap_or_default();
            let is_this = |it: &Value| {
                text_at(it, "id") == Some(id.as_str()) && text_at(it, "type") == Some(ty.as_str())
            };
            match (links.iter().any(is_this), is_to_be) {
                (true, true) | (false, false) => continue,
                (false, true) => links.push(json!({"id": id, "type": ty})),
                (true, false) => links.retain(|it| !is_this(it)),
            }
            if links.is_empty() {
                collection::delete(txn, &writer, &NOTES, note_id)?;
                continue;
            }
            body.insert("links".to_owned(), links.into());
            collection::put(txn, &writer, &NOTES, note_id, body, Missing::Refuse, Lock::Ignored)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
