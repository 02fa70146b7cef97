//! The files of blocks as separate rows: `fullquery/files`, `fullfacet` and v4's `files`.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Direction, Expr, MemberFilter, Order, Path, Query, Record, StoreError, View, Weight};
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
/// Maximum number of blocks that are looked through because the search index tells that they may hold a file: with
/// more, all blocks are.
const CANDIDATES_MAX: u64 = 50_000;

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

/// Returns the ids of the blocks that match a query and hold a file that satisfies a condition, after `skip`
/// and up to `limit`.
pub(super) fn blocks_with(
    view: &mut View<'_>,
    sort: &'static BlockType,
    rows: &Query,
    of_file: Expr,
    skip: u64,
    limit: u64,
) -> Result<Vec<String>, ScicatError> {
    let of_file = MemberFilter::new(of_file, &[]);
    let (mut ids, mut n_found) = (Vec::new(), 0);
    each_block(view, sort, rows, of_file.condition(), |view, record| {
        let is_found =
            view.each_member(sort.kind, &record, &of_file, |_, _| ControlFlow::Break(()))?.is_break();
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

/// Calls `visit` with each block of a query, in its order, until it breaks; blocks that cannot hold a file that satisfies
/// a condition may be left out. A page often lies in the first blocks.
fn each_block(
    view: &mut View<'_>,
    sort: &'static BlockType,
    blocks: &Query,
    of_file: &Expr,
    mut visit: impl FnMut(&mut View<'_>, Record) -> Result<ControlFlow<()>, ScicatError>,
) -> Result<(), ScicatError> {
    if let Some(ids) = view.with_members(sort.kind, &blocks.filter, of_file, CANDIDATES_MAX)? {
        let (mut ordered, mut in_order) = (Vec::new(), blocks.clone());
        in_order.filter = Expr::Ids(ids);
        view.for_each(sort.kind, &in_order, |record| {
            ordered.push(record.id);
            ControlFlow::Continue(())
        })?;
        for step in ordered.chunks(FIRST_BLOCKS as usize) {
            for record in view.get_many(sort.kind, step)?.into_iter().flatten() {
                if visit(view, record)?.is_break() {
                    return Ok(());
                }
            }
        }
        return Ok(());
    }
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
    /// Sort by fields of the files, whose paths begin at a file; if empty, files come in the order of the blocks.
    of_files: Vec<Order>,
    skip: u64,
    limit: u64,
}

impl Rows {
    fn of(mut blocks: Query, of_file: Expr, window: Window) -> Self {
        let (mut of_files, mut of_blocks) = (Vec::new(), Vec::new());
        for order in window.order {
            match order.path.as_steps() {
                [list, of_file @ ..] if list == FILES => {
                    of_files.push(Order { path: Path::steps(of_file), direction: order.direction });
                }
                _ => of_blocks.push(order),
            }
        }
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
            [] => window_of_files(view, sort, &wanted),
            _ => sorted_files(view, sort, &wanted),
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

/// Files that a sort collects beyond the end of its page before it drops the surplus.
const SPARE_FILES: usize = 4_096;

/// A file among those that are sorted.
struct Sorted {
    keys: Vec<Value>,
    block: Arc<Record>,
    position: u64,
}

/// Returns a page of all files, sorted by their own fields. Keeps little more than the sort keys up to the end of
/// the page in memory.
fn sorted_files(
    view: &mut View<'_>,
    sort: &'static BlockType,
    wanted: &Rows,
) -> Result<Vec<Value>, ScicatError> {
    let n_kept = usize::try_from(wanted.skip.saturating_add(wanted.limit)).unwrap_or(usize::MAX);
    let paths: Vec<Path> = wanted.of_files.iter().map(|it| it.path.clone()).collect();
    let of_file = MemberFilter::new(wanted.of_file.clone(), &paths);
    let mut kept: Vec<Sorted> = Vec::new();
    let by_keys = |a: &Sorted, b: &Sorted| compare_keys(&a.keys, &b.keys, &wanted.of_files);
    each_block(view, sort, &wanted.blocks, &wanted.of_file, |view, record| {
        let block = Arc::new(record);
        Ok(view.each_member(sort.kind, &block, &of_file, |position, file| {
            let key = |it: &Path| it.as_steps().iter().fold(file, |at, step| &at[step.as_str()]).clone();
            let keys = paths.iter().map(key).collect();
            kept.push(Sorted { keys, block: block.clone(), position });
            if n_kept.saturating_add(SPARE_FILES) < kept.len() {
                kept.sort_by(by_keys);
                kept.truncate(n_kept);
            }
            ControlFlow::Continue(())
        })?)
    })?;
    kept.sort_by(by_keys);
    let skip = usize::try_from(wanted.skip).unwrap_or(usize::MAX);
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let page: Vec<Sorted> = kept.into_iter().skip(skip).take(limit).collect();
    rows_in_order(view, sort, &page)
}

/// Returns the rows of files in their order; the files of a block are read together.
fn rows_in_order(
    view: &mut View<'_>,
    sort: &'static BlockType,
    page: &[Sorted],
) -> Result<Vec<Value>, ScicatError> {
    let mut by_block: Vec<usize> = (0..page.len()).collect();
    by_block.sort_by(|a, b| {
        let at = |place: &usize| (&page[*place].block.id, page[*place].position);
        at(a).cmp(&at(b))
    });
    let mut rows = vec![Value::Null; page.len()];
    for places in by_block.chunk_by(|a, b| page[*a].block.id == page[*b].block.id) {
        let Some(first) = places.first() else { continue };
        let positions: Vec<u64> = places.iter().map(|it| page[*it].position).collect();
        let of_block = rows_of(view, sort, &page[*first].block, &positions)?;
        places.iter().zip(of_block).for_each(|(place, row)| rows[*place] = row);
    }
    Ok(rows)
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

/// Returns a page of files in the order of their blocks. Blocks that lie wholly before the page are skipped by their
/// number of files.
fn window_of_files(
    view: &mut View<'_>,
    sort: &'static BlockType,
    wanted: &Rows,
) -> Result<Vec<Value>, ScicatError> {
    let (mut rows, mut left) = (Vec::new(), wanted.skip);
    let of_file = MemberFilter::new(wanted.of_file.clone(), &[]);
    let is_unconditional = matches!(wanted.of_file, Expr::All);
    each_block(view, sort, &wanted.blocks, &wanted.of_file, |view, record| {
        let mut n_wanted = wanted.limit.saturating_sub(rows.len() as u64);
        let mut positions = Vec::new();
        let flow = if is_unconditional {
            let skipped = left.min(record.n_members);
            left -= skipped;
            positions
                .extend((skipped..record.n_members).take(usize::try_from(n_wanted).unwrap_or(usize::MAX)));
            if n_wanted <= positions.len() as u64 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        } else {
            view.each_member(sort.kind, &record, &of_file, |position, _| {
                if 0 < left {
                    left -= 1;
                    return ControlFlow::Continue(());
                }
                positions.push(position);
                n_wanted = n_wanted.saturating_sub(1);
                if n_wanted == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?
        };
        if !positions.is_empty() {
            rows.extend(rows_of(view, sort, &record, &positions)?);
        }
        Ok(flow)
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
            let of_file = MemberFilter::new(of_file.clone(), &[]);
            let mut n = 0;
            each_block(view, sort, &Query::filter(blocks.clone()), of_file.condition(), |view, record| {
                Ok(view.each_member(sort.kind, &record, &of_file, |_, _| {
                    n += 1;
                    ControlFlow::Continue(())
                })?)
            })?;
            Ok(n)
        })
        .await
}

fn answer_total(n: u64) -> Answer {
    let all = if n == 0 { json!([]) } else { json!([{"totalSets": n}]) };
    Ok(answer::json(StatusCode::OK, &json!([{"all": all}])))
}
