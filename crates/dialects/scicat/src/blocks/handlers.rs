//! The routes of both types of blocks, in v3, v4 and below datasets.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, post};
use bytes::BytesMut;
use http::{HeaderMap, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Document, Expr, Query, Record, StoreError, Weight};
use serde_json::{Map, Value, json};

use super::files;
use super::metadata::MetadataSchema;
use super::receive::{Received, receive};
use crate::app::{Asker, Path, QueryText, Scicat, json_parameter};
use crate::blocks::answers::{
    COLLECTED_FILES, Shown, answer_count, answer_list, answer_one, answer_whole, stream_rows, text,
    whole_bytes,
};
use crate::blocks::sorts::{ARCHIVED, BlockType, ORIG, add_to_dataset, follow};
use crate::blocks::visible::{Public, filter_v4, visible_v4};
use crate::datasets::forms::Api;
use crate::datasets::include::of_dataset;
use crate::documents::{object, stamp};
use crate::error::{Answer, ScicatError};
use crate::kinds::{DATASET, FILES};
use crate::precondition::Precondition;
use crate::rights::Rights;
use crate::tracking::Tracking;
use crate::validate::Form;
use crate::{faults, filter, fullquery};

pub(super) fn routes() -> Router<Scicat> {
    Router::new()
        .merge(routes_of(&ORIG, "origdatablocks"))
        .merge(routes_of(&ARCHIVED, "datablocks"))
        .route(
            "/api/v3/origdatablocks/isvalid",
            post(|a, b, c, d| is_valid(a, b, None, c, d, &ORIG, Api::V3)),
        )
        .route(
            "/api/v3/datasets/{pid}/origdatablocks/isvalid",
            post(|a, b, Path(pid): Path<String>, c, d| is_valid(a, b, Some(pid), c, d, &ORIG, Api::V3)),
        )
        .route("/api/v3/origdatablocks/fullquery", get(|a, b, c| full_query(a, b, c, &ORIG)))
        .route("/api/v3/origdatablocks/fullquery/files", get(|b, c| files::full_query(b, c, &ORIG)))
        .route("/api/v3/origdatablocks/fullfacet", get(|b, c| files::full_facet(b, c, &ORIG, Public::No)))
        .route(
            "/api/v3/origdatablocks/fullfacet/files",
            get(|b, c| files::full_facet_files(b, c, &ORIG, Public::No)),
        )
        .route(
            "/api/v4/origdatablocks",
            get(|a, b, c| list_v4(a, b, c, &ORIG, Public::No))
                .post(|a, b, c, d| create(a, b, None, c, d, &ORIG, Api::V4)),
        )
        .route(
            "/api/v4/origdatablocks/isvalid",
            post(|a, b, c, d| is_valid(a, b, None, c, d, &ORIG, Api::V4)),
        )
        .route("/api/v4/origdatablocks/public", get(|a, b, c| list_v4(a, b, c, &ORIG, Public::Yes)))
        .route("/api/v4/origdatablocks/files", get(|b, c| files::list_v4(b, c, &ORIG, Public::No)))
        .route("/api/v4/origdatablocks/files/count", get(|b, c| files::count_v4(b, c, &ORIG, Public::No)))
        .route(
            "/api/v4/origdatablocks/public/files/count",
            get(|b, c| files::count_v4(b, c, &ORIG, Public::Yes)),
        )
        .route(
            "/api/v4/origdatablocks/public/fullfacet",
            get(|b, c| files::full_facet(b, c, &ORIG, Public::Yes)),
        )
        .route(
            "/api/v4/origdatablocks/public/fullfacet/files",
            get(|b, c| files::full_facet_files(b, c, &ORIG, Public::Yes)),
        )
        .route("/api/v4/origdatablocks/public/files", get(|b, c| files::list_v4(b, c, &ORIG, Public::Yes)))
        .route("/api/v4/origdatablocks/fullfacet", get(|b, c| files::full_facet(b, c, &ORIG, Public::No)))
        .route(
            "/api/v4/origdatablocks/fullfacet/files",
            get(|b, c| files::full_facet_files(b, c, &ORIG, Public::No)),
        )
        .route(
            "/api/v4/origdatablocks/public/{id}",
            get(|a, b, c, d| by_id(a, b, c, d, &ORIG, Api::V4, Public::Yes)),
        )
        .route(
            "/api/v4/origdatablocks/{id}",
            get(|a, b, c, d| by_id(a, b, c, d, &ORIG, Api::V4, Public::No))
                .patch(|a, b, Path(id): Path<String>, d, e| patch(a, b, id, d, e, &ORIG, Api::V4))
                .delete(|a, b, Path(id): Path<String>| delete(a, b, id, &ORIG)),
        )
}

/// Returns the v3 routes that both types have.
fn routes_of(sort: &'static BlockType, name: &str) -> Router<Scicat> {
    Router::new()
        .route(
            &format!("/api/v3/{name}"),
            get(move |a, b, c, d| list(a, b, c, d, sort))
                .post(move |a, b, c, d| create(a, b, None, c, d, sort, Api::V3)),
        )
        .route(&format!("/api/v3/{name}/count"), get(move |a, b, c, d| count(a, b, c, d, sort)))
        .route(
            &format!("/api/v3/{name}/{{id}}"),
            get(move |a, b, c, d| by_id(a, b, c, d, sort, Api::V3, Public::No))
                .patch(move |a, b, Path(id): Path<String>, d, e| patch(a, b, id, d, e, sort, Api::V3))
                .delete(move |a, b, Path(id): Path<String>| delete(a, b, id, sort)),
        )
        .route(
            &format!("/api/v3/datasets/{{pid}}/{name}"),
            get(move |a, b, c| list_of_dataset(a, b, c, sort))
                .post(move |a, b, Path(pid): Path<String>, c, d| create(a, b, Some(pid), c, d, sort, Api::V3))
                .delete(move |a, b, c| delete_all(a, b, c, sort)),
        )
        .route(
            &format!("/api/v3/datasets/{{pid}}/{name}/count"),
            get(move |a, b, c| count_of_dataset(a, b, c, sort)),
        )
        .route(
            &format!("/api/v3/datasets/{{pid}}/{name}/{{id}}"),
            get(move |a, b, Path((_, id)): Path<(String, String)>, d| {
                by_id(a, b, Path(id), d, sort, Api::V3, Public::No)
            })
            .patch(move |a, b, Path((_, id)): Path<(String, String)>, d, e| {
                patch(a, b, id, d, e, sort, Api::V3)
            })
            .delete(move |a, b, Path((_, id)): Path<(String, String)>| delete(a, b, id, sort)),
        )
}

/// `POST` of a block, either at the top level or below dataset `pid`.
async fn create(
    app: State<Scicat>,
    asker: Asker,
    pid: Option<String>,
    headers: HeaderMap,
    body: Body,
    sort: &'static BlockType,
    api: Api,
) -> Answer {
    if !asker.rights.has_create_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let table = if pid.is_some() { sort.table_of_dataset } else { sort.table };
    let received = receive(&app, &asker.db, sort, &headers, body, table, Form::Create).await?;
    let record = insert(&app, &asker, pid, &received, sort, api).await?;
    answer_whole(&app, &asker, record, sort, StatusCode::CREATED).await
}

async fn insert(
    app: &Scicat,
    asker: &Asker,
    pid: Option<String>,
    received: &Received,
    sort: &'static BlockType,
    api: Api,
) -> Result<Record, ScicatError> {
    if !received.faults.is_empty() {
        return Err(ScicatError::faults_as_list(&received.faults));
    }
    let mut head = received.head.clone();
    head.shift_remove(FILES);
    let is_below = pid.is_some();
    let pid = pid.unwrap_or_else(|| text(&head, "datasetId"));
    let id = app.new_uuid();
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let files = received.files.clone();
    asker
        .db
        .write(move |txn| {
            let dataset = txn.get(&DATASET, &pid)?.ok_or_else(|| {
                ScicatError::not_found(format!(
                    "Dataset: {pid} not found for attaching an {}",
                    sort.name.to_lowercase()
                ))
            })?;
            if !rights.may_add_to(&*txn.class(&DATASET, dataset.class)?) {
                return Err(ScicatError::forbidden("Unauthorized to create this dataset"));
            }
            let mut block = stored(&head, &id, &pid, &username, &now, &dataset.json()?);
            if api == Api::V4 {
                publish_as_said(&mut block, head.get("isPublished"));
            }
            let document =
                files.join(txn, sort, Document::new(sort.kind, id.clone(), &Value::Object(block))?)?;
            let inserted = txn.insert_document(&document);
            inserted
                .map_err(|error| if is_below { duplicate_below(error) } else { duplicate(error, sort) })?;
            add_to_dataset(txn, sort, &pid, size_of(&head, sort), files.n.cast_signed())?;
            txn.get(sort.kind, &id)?.ok_or_else(ScicatError::bare_not_found)
        })
        .await
}

/// Returns a block as it is stored, without its files. The dataset decides who may see it.
fn stored(
    head: &Map<String, Value>,
    id: &str,
    pid: &str,
    username: &str,
    now: &str,
    dataset: &Value,
) -> Map<String, Value> {
    let mut block = Map::with_capacity(head.len() + 12);
    block.insert("_id".to_owned(), id.into());
    block.insert("id".to_owned(), id.into());
    block.insert("datasetId".to_owned(), pid.into());
    for (name, value) in head {
        if !value.is_null() {
            block.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in
        [("createdBy", username), ("updatedBy", username), ("createdAt", now), ("updatedAt", now)]
    {
        block.insert(name.to_owned(), value.into());
    }
    block.insert("__v".to_owned(), 0.into());
    follow(&mut block, dataset);
    block
}

/// Sets whether a block created through v4 is public: a file list of a public dataset is public only if its own body
/// says so, as scitacean's own tests expect of SciCat 5.3. `block` holds the dataset's value.
fn publish_as_said(block: &mut Map<String, Value>, said: Option<&Value>) {
    let is_public = block.get("isPublished") == Some(&true.into()) && said == Some(&true.into());
    block.insert("isPublished".to_owned(), is_public.into());
}

fn duplicate(error: StoreError, sort: &BlockType) -> ScicatError {
    match error {
        StoreError::Duplicate { .. } => ScicatError::conflict(format!(
            "A {} with this this unique key already exists!",
            sort.name.to_lowercase()
        )),
        other => other.into(),
    }
}

/// Maps a duplicate id below a dataset to 500, as the original does and its own tests expect.
fn duplicate_below(error: StoreError) -> ScicatError {
    match error {
        StoreError::Duplicate { .. } => {
            ScicatError::text(StatusCode::INTERNAL_SERVER_ERROR, "Internal server error")
        }
        other => other.into(),
    }
}

fn size_of(block: &Map<String, Value>, sort: &BlockType) -> f64 {
    block.get(sort.size.0).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Checks a body without storing it. Below dataset `pid` it may omit `datasetId`.
async fn is_valid(
    app: State<Scicat>,
    asker: Asker,
    pid: Option<String>,
    headers: HeaderMap,
    body: Body,
    sort: &'static BlockType,
    api: Api,
) -> Answer {
    if !asker.rights.has_create_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let mut body = app.object(&headers, body).await?;
    if let Some(pid) = pid
        && body.get("datasetId").is_none_or(Value::is_null)
    {
        body.insert("datasetId".to_owned(), pid.into());
    }
    let mut found = sort.table.check(&body, Form::Create);
    if found.iter().all(|it| it.property != FILES) {
        found.extend(MetadataSchema::of(&app.settings).check_block(&body));
    }
    let dataset = text(&body, "datasetId");
    if found.is_empty() && api == Api::V4 && !has_dataset(&asker, &dataset).await? {
        return Err(ScicatError::not_found(format!(
            "Dataset: {dataset} not found for attaching an origdatablock"
        )));
    }
    let errors = faults::raw(&found, &Value::Object(body));
    let list = if api == Api::V4 { "reason" } else { "errors" };
    Ok(answer::json(StatusCode::OK, &json!({"valid": found.is_empty(), list: errors})))
}

async fn list(
    _: State<Scicat>,
    asker: Asker,
    query: QueryText,
    headers: HeaderMap,
    sort: &'static BlockType,
) -> Answer {
    let filter = filter::parse(filter::text("filter", &query, &headers)?, sort.kind)?;
    answer_list(&asker, &filter, asker.rights.visible(), sort).await
}

async fn list_v4(
    _: State<Scicat>,
    asker: Asker,
    query: QueryText,
    sort: &'static BlockType,
    public: Public,
) -> Answer {
    let visible = visible_v4(&asker, public)?;
    answer_list(&asker, &filter_v4(&query, sort)?, visible, sort).await
}

async fn count(
    _: State<Scicat>,
    asker: Asker,
    query: QueryText,
    headers: HeaderMap,
    sort: &'static BlockType,
) -> Answer {
    let filter = match query.get("where") {
        Some(condition) => {
            let condition = json_parameter("where", condition)?;
            // Some clients send a whole filter here.
            let is_filter = condition.get("where").is_some_and(Value::is_object);
            let filter = if is_filter { condition } else { json!({"where": condition}) };
            filter::from_value(&filter, sort.kind)?
        }
        None => filter::parse(filter::text("filter", &query, &headers)?, sort.kind)?,
    };
    let condition = asker.rights.visible().and(filter.condition);
    answer_count(&asker, condition, sort.kind).await
}

async fn full_query(_: State<Scicat>, asker: Asker, query: QueryText, sort: &'static BlockType) -> Answer {
    let fields = crate::app::object_parameter(&query, "fields")?;
    let (of_block, of_file) = files::split(&fields);
    let found = fullquery::parse(&of_block, &sort.search, &asker.rights)?;
    let limits =
        query.get("limits").filter(|it| !it.is_empty()).map(|it| json_parameter("limits", it)).transpose()?;
    let window = filter::window(limits.as_ref(), sort.kind)?;
    let mut rows = Query::filter(found.condition);
    rows.order = window.order;
    if of_file.is_empty() {
        (rows.skip, rows.limit) = (window.skip, Some(window.limit));
        return stream_rows(&asker, rows, sort).await;
    }
    let condition = files::condition(&of_file)?;
    let order = rows.order.clone();
    let rows = rows.window(window.skip, window.limit);
    let matching =
        asker.db.read(Weight::Scan, move |view| view.find_with_member(sort.kind, &rows, &condition)).await?;
    let mut found = Query::filter(Expr::Ids(matching));
    found.order = order;
    stream_rows(&asker, found, sort).await
}

async fn list_of_dataset(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    sort: &'static BlockType,
) -> Answer {
    crate::datasets::read::readable(&app, &asker, &pid).await?;
    stream_rows(&asker, of_dataset(&pid), sort).await
}

async fn count_of_dataset(
    app: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    sort: &'static BlockType,
) -> Answer {
    crate::datasets::read::readable(&app, &asker, &pid).await?;
    answer_count(&asker, of_dataset(&pid).filter, sort.kind).await
}

async fn by_id(
    app: State<Scicat>,
    asker: Asker,
    Path(id): Path<String>,
    query: QueryText,
    sort: &'static BlockType,
    api: Api,
    public: Public,
) -> Answer {
    if api == Api::V4 {
        visible_v4(&asker, public)?;
    }
    let rights = asker.rights.clone();
    let wanted = id.clone();
    let record = asker
        .db
        .read(Weight::Point, move |view| {
            let Some(record) = view.get(sort.kind, &wanted)? else { return Ok::<_, ScicatError>(None) };
            let may_read = rights.sees_all() || rights.may_read(&*view.class(sort.kind, record.class)?);
            Ok(may_read.then_some(record))
        })
        .await?;
    match (record, api) {
        (Some(record), Api::V3) => answer_whole(&app, &asker, record, sort, StatusCode::OK).await,
        (Some(record), Api::V4) => {
            let shown = Shown::of(&asker, &filter_v4(&query, sort)?)?;
            answer_one(&asker, record, shown, sort, StatusCode::OK).await
        }
        (None, Api::V4) if public == Public::Yes => Ok(answer::empty(StatusCode::OK)),
        (None, Api::V4) if !has(&asker, sort, id.clone()).await? => {
            Err(ScicatError::not_found(format!("{}: {id} not found", sort.name)))
        }
        (None, _) => Err(ScicatError::forbidden("Unauthorized access")),
    }
}

async fn has_dataset(asker: &Asker, pid: &str) -> Result<bool, ScicatError> {
    let pid = pid.to_owned();
    let found = asker.db.read(Weight::Point, move |view| view.has(&DATASET, &pid)).await;
    found.map_err(|error: StoreError| error.into())
}

async fn has(asker: &Asker, sort: &'static BlockType, id: String) -> Result<bool, ScicatError> {
    let found = asker.db.read(Weight::Point, move |view| view.has(sort.kind, &id)).await;
    found.map_err(|error: StoreError| error.into())
}

async fn patch(
    app: State<Scicat>,
    asker: Asker,
    id: String,
    headers: HeaderMap,
    body: Body,
    sort: &'static BlockType,
    api: Api,
) -> Answer {
    if !asker.rights.has_update_role() {
        return Err(ScicatError::forbidden_resource());
    }
    let received = receive(&app, &asker.db, sort, &headers, body, sort.table, Form::Update).await?;
    let record = change(&app, &asker, id, &headers, &received, sort, api).await?;
    answer_whole(&app, &asker, record, sort, StatusCode::OK).await
}

async fn change(
    app: &Scicat,
    asker: &Asker,
    id: String,
    headers: &HeaderMap,
    received: &Received,
    sort: &'static BlockType,
    api: Api,
) -> Result<Record, ScicatError> {
    let (rights, username, now) = (asker.rights.clone(), asker.username(), app.now());
    let (mut changes, files, faults) =
        (received.head.clone(), received.files.clone(), received.faults.clone());
    let (precondition, tracking) = (Precondition::of(headers), asker.tracking(sort.kind));
    changes.shift_remove(FILES);
    asker
        .db
        .write(move |txn| {
            let not_found = || ScicatError::not_found(format!("{}: {id} not found", sort.name));
            let record = txn.get(sort.kind, &id)?.ok_or_else(not_found)?;
            if !faults.is_empty() {
                return Err(ScicatError::faults_as_list(&faults));
            }
            require_parent(txn, &rights, &record, sort)?;
            let mut block = object(&record)?;
            precondition.check(sort.name, "on server", &id, &block)?;
            let (pid, size_before) = (text(&block, "datasetId"), size_of(&block, sort));
            for (name, value) in changes.clone() {
                if !["ownerGroup", "accessGroups", "isPublished"].contains(&name.as_str()) {
                    block.insert(name, value);
                }
            }
            if api == Api::V4 && changes.contains_key("isPublished") {
                let dataset = txn.get(&DATASET, &pid)?.ok_or_else(not_found)?.json()?;
                block.insert("isPublished".to_owned(), dataset["isPublished"].clone());
                publish_as_said(&mut block, changes.get("isPublished"));
            }
            stamp(&mut block, &username, &now);
            let size_difference = size_of(&block, sort) - size_before;
            let mut document = Document::new(sort.kind, id.clone(), &Value::Object(block))?;
            let mut n_difference = 0;
            if files.is_given {
                document = files.join(txn, sort, document)?;
                n_difference = files.n.cast_signed() - record.n_members.cast_signed();
            }
            if tracking != Tracking::Off {
                let after: Map<String, Value> = serde_json::from_slice(document.body())
                    .map_err(|error| StoreError::Damaged(error.to_string()))?;
                tracking.note_change(txn, &id, record.version, &object(&record)?, &after)?;
            }
            txn.update_document(&document).map_err(|error| duplicate(error, sort))?;
            add_to_dataset(txn, sort, &pid, size_difference, n_difference)?;
            txn.get(sort.kind, &id)?.ok_or_else(not_found)
        })
        .await
}

/// Checks that the caller may change a block: the parent dataset decides, and the block's own fields if the dataset is
/// gone.
fn require_parent(
    txn: &mut pinakes_store::Txn<'_>,
    rights: &Rights,
    block: &Record,
    sort: &BlockType,
) -> Result<(), ScicatError> {
    let pid = text(&object(block)?, "datasetId");
    let class = match txn.get(&DATASET, &pid)? {
        Some(dataset) => txn.class(&DATASET, dataset.class)?,
        None => txn.class(sort.kind, block.class)?,
    };
    if rights.may_update(&class) {
        Ok(())
    } else {
        Err(ScicatError::forbidden("Unauthorized to update this dataset"))
    }
}

async fn delete(app: State<Scicat>, asker: Asker, id: String, sort: &'static BlockType) -> Answer {
    if !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    let (username, now, tracking) = (asker.username(), app.now(), asker.tracking(sort.kind));
    let (record, bytes) = asker
        .db
        .write(move |txn| {
            let Some(record) = txn.get(sort.kind, &id)? else {
                return Err(ScicatError::not_found(format!("{}: {id} not found", lower_first(sort.name))));
            };
            let mut bytes = BytesMut::new();
            if record.n_members <= COLLECTED_FILES {
                bytes = whole_bytes(txn, sort.kind, &record)?;
            }
            if tracking != Tracking::Off {
                tracking.note_deletion(txn, &id, record.version, &object(&record)?, &username, &now)?;
            }
            remove(txn, &record, sort)?;
            Ok((record, bytes))
        })
        .await?;
    Ok(answer::stored_json(StatusCode::OK, if bytes.is_empty() { record.body } else { bytes.freeze() }))
}

async fn delete_all(
    _: State<Scicat>,
    asker: Asker,
    Path(pid): Path<String>,
    sort: &'static BlockType,
) -> Answer {
    if !asker.rights.may_delete {
        return Err(ScicatError::forbidden_resource());
    }
    let count = asker
        .db
        .write(move |txn| {
            if !txn.has(&DATASET, &pid)? {
                return Err(ScicatError::not_found(format!("dataset: {pid} not found")));
            }
            let blocks = txn.find(sort.kind, &of_dataset(&pid))?;
            for block in &blocks {
                remove(txn, block, sort)?;
            }
            Ok(blocks.len())
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &json!({"count": count})))
}

fn remove(txn: &mut pinakes_store::Txn<'_>, record: &Record, sort: &BlockType) -> Result<(), ScicatError> {
    let block = object(record)?;
    txn.delete(sort.kind, &record.id)?;
    let n_files = record.n_members.cast_signed();
    add_to_dataset(txn, sort, &text(&block, "datasetId"), -size_of(&block, sort), -n_files)
}

fn lower_first(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
