//! The files of blocks as separate rows: `fullquery/files`, `fullfacet` and v4's `files`.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Member, MemberQuery, Order, Path, Query, Record, StoreError, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::object_parameter;
use crate::app::{Asker, QueryText, json_parameter};
use crate::blocks::sorts::BlockType;
use crate::blocks::visible::{Public, filter_v4, visible_v4};
use crate::condition::{self, Language};
use crate::documents::object;
use crate::error::{Answer, ScicatError};
use crate::filter::{self, Window};
use crate::fullquery;
use crate::kinds::DATASET;
use crate::kinds::FILES;

/// Prefix of `dataFileList.path` and similar names.
const PREFIX: &str = "dataFileList.";

/// Splits the fields of a search into those of blocks and those of files, whose names begin at a file. A `text` is
/// searched for in the paths.
pub(super) fn split(fields: &Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let (mut of_block, mut of_file) = (Map::new(), Map::new());
    for (name, value) in fields {
        if name == "text" {
            if let Some(text) = value.as_str().filter(|it| !it.trim().is_empty()) {
                let path = json!({"$regex": regex::escape(text.trim()), "$options": "i"});
                of_file.insert("path".to_owned(), path);
            }
        } else if let Some(of_each) = name.strip_prefix(PREFIX) {
            of_file.insert(of_each.to_owned(), value.clone());
        } else {
            of_block.insert(name.clone(), value.clone());
        }
    }
    (of_block, of_file)
}

/// Returns the condition on one file.
pub(super) fn condition(of_file: &Map<String, Value>) -> Result<Expr, ScicatError> {
    static NO_KIND: pinakes_store::Kind = pinakes_store::Kind::named("file");
    let plain: Map<String, Value> = of_file
        .iter()
        .map(|(name, value)| {
            let value = match value {
                Value::Array(list) => json!({"$in": list}),
                other => other.clone(),
            };
            (name.clone(), value)
        })
        .collect();
    condition::parse(&plain, &NO_KIND, Language::LoopBack)
}

pub(super) async fn full_query(asker: Asker, query: QueryText, sort: &'static BlockType) -> Answer {
    let fields = object_parameter(&query, "fields")?;
    let (of_block, of_file) = split(&fields);
    let found = fullquery::parse(&of_block, &sort.search, &asker.rights)?;
    let limits =
        query.get("limits").filter(|it| !it.is_empty()).map(|it| json_parameter("limits", it)).transpose()?;
    let window = filter::window(limits.as_ref(), sort.kind)?;
    let rows = page(Query::filter(found.condition), condition(&of_file)?, window);
    answer_files(&asker, rows, sort).await
}

/// Returns the page of files that a window of all files of some blocks holds.
fn page(mut blocks: Query, of_member: Expr, window: Window) -> MemberQuery {
    let mut order = Vec::new();
    for it in window.order {
        match it.path.as_steps() {
            [list, of_file @ ..] if list == FILES => {
                order.push(Order { path: Path::steps(of_file), direction: it.direction });
            }
            _ => blocks.order.push(it),
        }
    }
    MemberQuery { records: blocks, of_member, order, skip: window.skip, limit: window.limit }
}

pub(super) async fn list_v4(
    asker: Asker,
    query: QueryText,
    sort: &'static BlockType,
    public: Public,
) -> Answer {
    let visible = visible_v4(&asker, public)?;
    let (of_block, of_file) = split_filter(&query, sort)?;
    let filter = filter_v4(&query, sort)?;
    answer_files(&asker, page(Query::filter(visible.and(of_block)), of_file, filter.window), sort).await
}

/// Splits the `where` of a v4 filter into a condition on blocks and one on files.
fn split_filter(query: &QueryText, sort: &'static BlockType) -> Result<(Expr, Expr), ScicatError> {
    let filter = object_parameter(query, "filter")?;
    let empty = Map::new();
    let fields = filter.get("where").and_then(Value::as_object).unwrap_or(&empty);
    let (of_block, of_file) = split(fields);
    Ok((condition::parse(&of_block, sort.kind, Language::Mongo)?, condition(&of_file)?))
}

async fn answer_files(asker: &Asker, wanted: MemberQuery, sort: &'static BlockType) -> Answer {
    let rows = asker
        .db
        .read(Weight::Scan, move |view| {
            let files = view.find_members(sort.kind, &wanted)?;
            rows_in_order(view, sort, &files)
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &rows))
}

/// Returns rows for some files of a block, whose positions ascend: the block's fields with each file as `dataFileList`.
fn rows_of(
    view: &mut View<'_>,
    sort: &'static BlockType,
    record: &Record,
    positions: &[u64],
) -> Result<Vec<Value>, ScicatError> {
    let block = object(record)?;
    let pid = block.get("datasetId").and_then(Value::as_str).unwrap_or_default();
    let has_dataset = view.has(&DATASET, pid)?;
    let files = view.members_at(sort.kind, record, positions)?;
    let row = |file: Value| {
        let mut row = block.clone();
        row.insert(FILES.to_owned(), file);
        row.insert("datasetExist".to_owned(), has_dataset.into());
        Value::Object(row)
    };
    Ok(files.into_iter().map(row).collect())
}

/// Returns the rows of files in their order; the files of a block are read together.
fn rows_in_order(
    view: &mut View<'_>,
    sort: &'static BlockType,
    page: &[Member],
) -> Result<Vec<Value>, ScicatError> {
    let mut by_block: Vec<usize> = (0..page.len()).collect();
    by_block.sort_by(|a, b| {
        let at = |place: &usize| (&page[*place].0.id, page[*place].1);
        at(a).cmp(&at(b))
    });
    let mut rows = vec![Value::Null; page.len()];
    for places in by_block.chunk_by(|a, b| page[*a].0.id == page[*b].0.id) {
        let Some(first) = places.first() else { continue };
        let positions: Vec<u64> = places.iter().map(|it| page[*it].1).collect();
        let of_block = rows_of(view, sort, &page[*first].0, &positions)?;
        places.iter().zip(of_block).for_each(|(place, row)| rows[*place] = row);
    }
    Ok(rows)
}

pub(super) async fn full_facet(
    asker: Asker,
    query: QueryText,
    sort: &'static BlockType,
    public: Public,
) -> Answer {
    let (blocks, _) = faceted(&asker, &query, sort, public)?;
    let n = asker.db.read(Weight::Scan, move |view| view.count(sort.kind, &blocks)).await;
    answer_total(n.map_err(|error: StoreError| ScicatError::from(error))?)
}

pub(super) async fn full_facet_files(
    asker: Asker,
    query: QueryText,
    sort: &'static BlockType,
    public: Public,
) -> Answer {
    let (blocks, of_file) = faceted(&asker, &query, sort, public)?;
    answer_total(count_files(&asker, blocks, of_file, sort).await?)
}

/// Splits the condition of `fields` into what applies to blocks, limited to those the caller may see, and what
/// applies to files.
fn faceted(
    asker: &Asker,
    query: &QueryText,
    sort: &'static BlockType,
    public: Public,
) -> Result<(Expr, Expr), ScicatError> {
    let (of_block, of_file) = split(&object_parameter(query, "fields")?);
    let found = fullquery::parse(&of_block, &sort.search, &asker.rights)?;
    let blocks = match public {
        Public::Yes => visible_v4(asker, public)?.and(found.condition),
        Public::No => found.condition,
    };
    Ok((blocks, condition(&of_file)?))
}

pub(super) async fn count_v4(
    asker: Asker,
    query: QueryText,
    sort: &'static BlockType,
    public: Public,
) -> Answer {
    let visible = visible_v4(&asker, public)?;
    let (of_block, of_file) = split_filter(&query, sort)?;
    let count = count_files(&asker, visible.and(of_block), of_file, sort).await?;
    Ok(answer::json(StatusCode::OK, &json!({"count": count})))
}

async fn count_files(
    asker: &Asker,
    blocks: Expr,
    of_file: Expr,
    sort: &'static BlockType,
) -> Result<u64, ScicatError> {
    asker.db.read(Weight::Scan, move |view| Ok(view.count_such_members(sort.kind, &blocks, &of_file)?)).await
}

fn answer_total(n: u64) -> Answer {
    let all = if n == 0 { json!([]) } else { json!([{"totalSets": n}]) };
    Ok(answer::json(StatusCode::OK, &json!([{"all": all}])))
}
