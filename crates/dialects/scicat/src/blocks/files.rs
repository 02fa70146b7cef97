//! The files of blocks as separate rows: `fullquery/files`, `fullfacet` and v4's `files`.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Direction, Expr, Order, Query, Record, StoreError, View, Weight, matches};
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

/// Splits the fields of a search into those of blocks and those of files. A `text` is searched for in the
/// paths.
pub(super) fn split(fields: &Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let (mut of_block, mut of_file) = (Map::new(), Map::new());
    for (name, value) in fields {
        if name == "text" {
            if let Some(text) = value.as_str().filter(|it| !it.trim().is_empty()) {
                let path = json!({"$regex": regex::escape(text.trim()), "$options": "i"});
                of_file.insert(format!("{PREFIX}path"), path);
            }
        } else if name.starts_with(PREFIX) {
            of_file.insert(name.clone(), value.clone());
        } else {
            of_block.insert(name.clone(), value.clone());
        }
    }
    (of_block, of_file)
}

/// Returns the condition on one file, which is evaluated on `{"dataFileList": file}`.
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

/// Returns the ids of the blocks that match a query and hold a file that satisfies a condition, after `skip`
/// and up to `limit`.
pub(super) fn blocks_with(
    view: &mut View<'_>,
    sort: &'static BlockType,
    rows: &Query,
    of_file: &Expr,
    skip: u64,
    limit: u64,
) -> Result<Vec<String>, ScicatError> {
    let (mut ids, mut n_found) = (Vec::new(), 0);
    each_block(view, sort, rows, |view, record| {
        let is_found =
            each_file(view, sort, &record, 0, of_file, &mut |_| ControlFlow::Break(()))?.is_break();
        n_found += u64::from(is_found);
        if is_found && skip < n_found {
            ids.push(record.id);
        }
        let is_full = limit <= ids.len() as u64;
        Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(ids)
}

/// Blocks read in the first step; each further step reads [`GROWTH`] times as many, up to [`STEP_BLOCKS`].
const FIRST_BLOCKS: u64 = 100;
const GROWTH: u64 = 4;
const STEP_BLOCKS: u64 = 10_000;

/// Calls `visit` with each block of a query, in its order, until it breaks. A page often lies in the first blocks.
fn each_block(
    view: &mut View<'_>,
    sort: &'static BlockType,
    blocks: &Query,
    mut visit: impl FnMut(&mut View<'_>, Record) -> Result<ControlFlow<()>, ScicatError>,
) -> Result<(), ScicatError> {
    let (mut skip, mut limit) = (0, FIRST_BLOCKS);
    loop {
        let records = view.find(sort.kind, &blocks.clone().window(skip, limit))?;
        let is_last = (records.len() as u64) < limit;
        for record in records {
            if visit(view, record)?.is_break() {
                return Ok(());
            }
        }
        if is_last {
            return Ok(());
        }
        skip += limit;
        limit = STEP_BLOCKS.min(limit * GROWTH);
    }
}

/// Calls `visit` with each file of a block that satisfies the condition, starting at number `from`.
fn each_file(
    view: &mut View<'_>,
    sort: &'static BlockType,
    record: &Record,
    from: u64,
    of_file: &Expr,
    visit: &mut impl FnMut(Value) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, ScicatError> {
    let mut flow = ControlFlow::Continue(());
    let mut damage = None;
    view.members(sort.kind, record, from, |first, _, chunk| {
        let text = [b"[", chunk, b"]"].concat();
        let files: Vec<Value> = match serde_json::from_slice(&text) {
            Ok(files) => files,
            Err(error) => {
                damage = Some(StoreError::Damaged(format!("files of {:?}: {error}", record.id)));
                return ControlFlow::Break(());
            }
        };
        for (index, file) in files.into_iter().enumerate() {
            if first + (index as u64) < from {
                continue;
            }
            let row = json!({FILES: file});
            if matches(of_file, &row) {
                flow = visit(row);
            }
            if flow.is_break() {
                return flow;
            }
        }
        flow
    })?;
    damage.map_or(Ok(flow), |it| Err(it.into()))
}

pub(super) async fn full_query(asker: Asker, query: QueryText, sort: &'static BlockType) -> Answer {
    let fields = object_parameter(&query, "fields")?;
    let (of_block, of_file) = split(&fields);
    let found = fullquery::parse(&of_block, &sort.search, &asker.rights)?;
    let limits =
        query.get("limits").filter(|it| !it.is_empty()).map(|it| json_parameter("limits", it)).transpose()?;
    let window = filter::window(limits.as_ref(), sort.kind)?;
    let rows = Rows::of(Query::filter(found.condition), condition(&of_file)?, window);
    answer_files(&asker, rows, sort).await
}

/// Which blocks a page of files covers, and how the files are sorted.
struct Rows {
    blocks: Query,
    of_file: Expr,
    /// Sort by fields of the files; if empty, files come in the order of the blocks.
    of_files: Vec<Order>,
    skip: u64,
    limit: u64,
}

impl Rows {
    fn of(mut blocks: Query, of_file: Expr, window: Window) -> Self {
        let is_of_files = |it: &Order| it.path.as_steps().first().is_some_and(|step| step == FILES);
        let (of_files, of_blocks) = window.order.into_iter().partition(is_of_files);
        blocks.order = of_blocks;
        Self { blocks, of_file, of_files, skip: window.skip, limit: window.limit }
    }
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
    answer_files(&asker, Rows::of(Query::filter(visible.and(of_block)), of_file, filter.window), sort).await
}

/// Splits the `where` of a v4 filter into a condition on blocks and one on files.
fn split_filter(query: &QueryText, sort: &'static BlockType) -> Result<(Expr, Expr), ScicatError> {
    let filter = object_parameter(query, "filter")?;
    let empty = Map::new();
    let fields = filter.get("where").and_then(Value::as_object).unwrap_or(&empty);
    let (of_block, of_file) = split(fields);
    Ok((condition::parse(&of_block, sort.kind, Language::Mongo)?, condition(&of_file)?))
}

async fn answer_files(asker: &Asker, wanted: Rows, sort: &'static BlockType) -> Answer {
    let rows = asker
        .db
        .read(Weight::Scan, move |view| match wanted.of_files.as_slice() {
            [] => {
                let Rows { blocks, of_file, skip, limit, .. } = &wanted;
                window_of_files(view, sort, blocks, of_file, *skip, *limit)
            }
            _ => sorted_files(view, sort, &wanted),
        })
        .await?;
    Ok(answer::json(StatusCode::OK, &rows))
}

/// Rows that a sort collects beyond the end of its page before it drops the surplus.
const SPARE_ROWS: usize = 4_096;

/// Returns a page of all files, sorted by their own fields. Keeps little more than the rows up to the end of
/// the page in memory.
fn sorted_files(
    view: &mut View<'_>,
    sort: &'static BlockType,
    wanted: &Rows,
) -> Result<Vec<Value>, ScicatError> {
    let n_kept = usize::try_from(wanted.skip.saturating_add(wanted.limit)).unwrap_or(usize::MAX);
    let mut kept: Vec<(Vec<Value>, Value)> = Vec::new();
    let by_keys =
        |a: &(Vec<Value>, Value), b: &(Vec<Value>, Value)| compare_keys(&a.0, &b.0, &wanted.of_files);
    each_block(view, sort, &wanted.blocks, |view, record| {
        let block = object(&record)?;
        let pid = block.get("datasetId").and_then(Value::as_str).unwrap_or_default();
        let has_dataset = view.has(&DATASET, pid)?;
        let flow = each_file(view, sort, &record, 0, &wanted.of_file, &mut |mut file| {
            let key =
                |it: &Order| it.path.as_steps().iter().fold(&file, |at, step| &at[step.as_str()]).clone();
            let keys = wanted.of_files.iter().map(key).collect();
            let mut row = block.clone();
            row.insert(FILES.to_owned(), file[FILES].take());
            row.insert("datasetExist".to_owned(), has_dataset.into());
            kept.push((keys, Value::Object(row)));
            if n_kept.saturating_add(SPARE_ROWS) < kept.len() {
                kept.sort_by(by_keys);
                kept.truncate(n_kept);
            }
            ControlFlow::Continue(())
        })?;
        debug_assert!(flow.is_continue(), "nothing stops the sort");
        Ok(flow)
    })?;
    kept.sort_by(by_keys);
    let skip = usize::try_from(wanted.skip).unwrap_or(usize::MAX);
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    Ok(kept.into_iter().skip(skip).take(limit).map(|it| it.1).collect())
}

/// Compares the sort keys of files: missing values first, then numbers, then texts.
fn compare_keys(a: &[Value], b: &[Value], order: &[Order]) -> Ordering {
    let rank = |it: &Value| match it {
        Value::Null => 0,
        Value::Number(_) => 1,
        _ => 2,
    };
    let one = |a: &Value, b: &Value| match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    };
    let compared = a.iter().zip(b).zip(order).map(|((a, b), order)| match order.direction {
        Direction::Ascending => one(a, b),
        Direction::Descending => one(b, a),
    });
    compared.fold(Ordering::Equal, Ordering::then)
}

/// Returns one row per file: the block's fields with that file as `dataFileList`. Blocks that lie wholly
/// before the window are skipped by their number of files.
fn window_of_files(
    view: &mut View<'_>,
    sort: &'static BlockType,
    blocks: &Query,
    of_file: &Expr,
    skip: u64,
    limit: u64,
) -> Result<Vec<Value>, ScicatError> {
    let (mut rows, mut left) = (Vec::new(), skip);
    let is_unconditional = matches!(of_file, Expr::All);
    each_block(view, sort, blocks, |view, record| {
        if is_unconditional && record.n_members <= left {
            left -= record.n_members;
            return Ok(ControlFlow::Continue(()));
        }
        let block = object(&record)?;
        let pid = block.get("datasetId").and_then(Value::as_str).unwrap_or_default();
        let has_dataset = view.has(&DATASET, pid)?;
        let from = if is_unconditional { std::mem::take(&mut left) } else { 0 };
        each_file(view, sort, &record, from, of_file, &mut |mut file| {
            if 0 < left {
                left -= 1;
                return ControlFlow::Continue(());
            }
            let mut row = block.clone();
            row.insert(FILES.to_owned(), file[FILES].take());
            row.insert("datasetExist".to_owned(), has_dataset.into());
            rows.push(Value::Object(row));
            if limit <= rows.len() as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    })?;
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
    asker
        .db
        .read(Weight::Scan, move |view| {
            if matches!(of_file, Expr::All) {
                return Ok(view.count_members(sort.kind, &blocks)?);
            }
            let mut n = 0;
            each_block(view, sort, &Query::filter(blocks.clone()), |view, record| {
                each_file(view, sort, &record, 0, &of_file, &mut |_| {
                    n += 1;
                    ControlFlow::Continue(())
                })
            })?;
            Ok(n)
        })
        .await
}

fn answer_total(n: u64) -> Answer {
    let all = if n == 0 { json!([]) } else { json!([{"totalSets": n}]) };
    Ok(answer::json(StatusCode::OK, &json!([{"all": all}])))
}
