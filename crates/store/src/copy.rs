//! Copies tenants from one catalogue to another, of any engines: `pinakes move`.
//!
//! Records are copied in pages, in insertion order; the transaction that writes a page in the target also records how
//! far the copy has come. So an interrupted copy resumes after its last page, and a finished one is recognised.
//! Versions are kept; sequence numbers are the target's own, so followers start from the beginning. Waiting jobs are
//! copied and can be taken at once. At the end both sides are read and compared. Nobody may write to the source
//! meanwhile: differences are found, not repaired.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::document::fnv;
use crate::leases;
use crate::{Catalogue, Document, Expr, Kind, ListId, Query, Record, Result, StoreError, Tenant, Txn, View};

/// Maximum number of records in a page.
const PAGE_RECORDS: u64 = 500;
/// Size of bodies after which a page ends.
const PAGE_BYTES: usize = 8 << 20;
/// Deletions copied in one transaction.
const PAGE_DELETIONS: u32 = 1_000;
/// Prefix of the copy's marks in the target's `meta`.
const MARK: &str = "copied:";
/// Name of the mark for deletions.
const DELETIONS: &str = "copied deletions";

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    /// Records, members of lists not counted.
    pub n_records: u64,
    /// Bytes of their bodies.
    pub n_bytes: u64,
    /// What was compared at the end, by kind and tenant: equal on both sides.
    pub kinds: Vec<CopiedKind>,
}

/// A kind of a tenant, equal on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedKind {
    /// The tenant.
    pub tenant: String,
    /// The kind.
    pub kind: &'static str,
    /// Number of its records.
    pub n_records: u64,
    /// Sum of the hashes of ids, versions, bodies and members.
    pub checksum: u64,
}

/// The stage of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStage {
    /// Records are being copied.
    Copying,
    /// Both sides are being read and compared.
    Comparing,
}

/// Progress of a copy, reported after each page.
#[derive(Debug, Clone, Copy)]
pub struct CopyProgress<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The current kind.
    pub kind: &'static str,
    /// The current stage.
    pub stage: CopyStage,
    /// Records of the kind that are done: copied by this run or an earlier one, or read for comparison.
    pub n_done: u64,
    /// Records of the kind in the source.
    pub n_records: u64,
}

/// Copies every tenant. Tenants missing in the target are created.
///
/// Errors: a tenant of the target holds other records; the sides differ at the end.
pub fn copy_catalogue(
    from: &Catalogue,
    to: &Catalogue,
    report: &mut dyn FnMut(CopyProgress<'_>),
) -> Result<Copied> {
    let mut sum = Copied::default();
    for info in from.tenants()? {
        let target = to.tenant_or_new_described(&info.name, &info.description)?;
        sum.add(copy_tenant(&from.tenant(&info.name)?, &target, report)?);
    }
    Ok(sum)
}

/// Copies one tenant; both must be open with the same kinds. If everything is copied already, only compares.
///
/// Errors: the target holds other records; the sides differ at the end.
pub fn copy_tenant(from: &Tenant, to: &Tenant, report: &mut dyn FnMut(CopyProgress<'_>)) -> Result<Copied> {
    let kinds = from.read_blocking(|view| Ok::<_, StoreError>(view.shared.kinds))?;
    let mut sum = Copied::default();
    if beginning(from, to, kinds)? != Beginning::Done {
        copy_deletions(from, to)?;
        for kind in kinds {
            sum.add(copy_kind(from, to, kind, report)?);
        }
        let jobs = Arc::new(from.read_blocking(leases::all)?);
        to.write_blocking(move |txn| leases::queue_all(txn, &jobs))?;
    }
    for kind in kinds {
        sum.kinds.push(compare(from, to, kind, report)?);
    }
    to.write_blocking(|txn| txn.view.session.execute("DELETE FROM meta WHERE name LIKE 'copied%'", &[]))?;
    Ok(sum)
}

impl Copied {
    fn add(&mut self, part: Self) {
        self.n_records += part.n_records;
        self.n_bytes += part.n_bytes;
        self.kinds.extend(part.kinds);
    }
}

/// State of the target when a copy begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// Empty.
    Fresh,
    /// Holds part of an earlier copy.
    Begun,
    /// Has as many records as the source and no copy under way: an earlier copy is complete, or the comparison will
    /// find the difference.
    Done,
}

/// Returns the state of the target; refuses a target with records that no copy has written.
fn beginning(from: &Tenant, to: &Tenant, kinds: &[&'static Kind]) -> Result<Beginning> {
    let (mut beginning, mut other) = (Beginning::Fresh, None);
    for kind in kinds {
        let name = mark_name(kind);
        let (mark, n) = to
            .read_blocking(|view| Ok::<_, StoreError>((mark(view, &name)?, view.count(kind, &Expr::All)?)))?;
        if mark.is_some() {
            return Ok(Beginning::Begun);
        }
        if n != 0 {
            beginning = Beginning::Done;
        }
        let n_source = from.read_blocking(|view| view.count(kind, &Expr::All))?;
        if n != n_source && other.is_none() {
            other = Some((kind.name, n, n_source));
        }
    }
    match (beginning, other) {
        (Beginning::Done, Some((kind, n, n_source))) => Err(StoreError::Query(format!(
            "tenant {:?} of the target holds records already, of {kind} {n} where the source has {n_source}; \
             copy into an empty one",
            to.name()
        ))),
        _ => Ok(beginning),
    }
}

fn copy_deletions(from: &Tenant, to: &Tenant) -> Result<()> {
    let mut after = to.read_blocking(|view| mark(view, DELETIONS))?.unwrap_or(0).cast_unsigned();
    loop {
        let page = Arc::new(from.read_blocking(|view| view.deletions(after, PAGE_DELETIONS))?);
        let Some(last) = page.last() else { return Ok(()) };
        after = last.sequence;
        to.write_blocking(move |txn| {
            for deletion in page.iter() {
                txn.note_deletion(&deletion.kind, &deletion.id)?;
            }
            set_mark(txn, DELETIONS, after.cast_signed())
        })?;
    }
}

fn copy_kind(
    from: &Tenant,
    to: &Tenant,
    kind: &'static Kind,
    report: &mut dyn FnMut(CopyProgress<'_>),
) -> Result<Copied> {
    let name = mark_name(kind);
    let n_records = from.read_blocking(|view| view.count(kind, &Expr::All))?;
    let n_before = to.read_blocking(|view| view.count(kind, &Expr::All))?;
    let mut after = to.read_blocking(|view| mark(view, &name))?;
    if after.is_none() && n_records != 0 {
        to.write_blocking(move |txn| txn.defer_indexes(kind))?;
    }
    let mut copied = Copied::default();
    loop {
        let page = from.read_blocking(|view| read_page(view, kind, after))?;
        let Some(last) = page.last() else { break };
        let end = last.key;
        after = Some(end);
        copied.n_records += page.len() as u64;
        copied.n_bytes += page.iter().map(|it| it.body.len() as u64).sum::<u64>();
        let documents = page
            .into_iter()
            .map(|record| Ok((copy_record(from, to, kind, &record)?, record.version)))
            .collect::<Result<Vec<_>>>()?;
        let (documents, name) = (Arc::new(documents), name.clone());
        to.write_blocking(move |txn| {
            txn.insert_stored(&documents)?;
            set_mark(txn, &name, end)
        })?;
        let n_done = n_before + copied.n_records;
        let stage = CopyStage::Copying;
        report(CopyProgress { tenant: from.name(), kind: kind.name, stage, n_done, n_records });
    }
    to.make_indexes(kind)?;
    Ok(copied)
}

fn read_page(view: &mut View<'_>, kind: &'static Kind, after: Option<i64>) -> Result<Vec<Record>> {
    let query = Query { after, ..Query::filter(Expr::All).window(0, PAGE_RECORDS) };
    let (mut page, mut n_bytes) = (Vec::new(), 0);
    view.for_each(kind, &query, |record| {
        n_bytes += record.body.len();
        page.push(record);
        if PAGE_BYTES <= n_bytes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(page)
}

/// Returns the document to insert, after staging its members in the target chunk by chunk.
fn copy_record(from: &Tenant, to: &Tenant, kind: &'static Kind, record: &Record) -> Result<Document> {
    let document = Document::stored(kind, record.id.clone(), record.body.clone())?;
    if record.list.is_none() {
        return Ok(document);
    }
    let list = to.write_blocking(move |txn| txn.new_list(kind))?;
    let mut next = 0;
    while let Some((position, n, chunk)) = next_chunk(from, kind, record, next)? {
        to.write_blocking(move |txn| txn.append_members(kind, list, position, n, chunk.clone()))?;
        next = position + u64::from(n);
    }
    Ok(document.with_list(ListId(list.0), record.n_members))
}

/// Returns the chunk of a list that begins at or after `position`.
fn next_chunk(
    from: &Tenant,
    kind: &'static Kind,
    record: &Record,
    position: u64,
) -> Result<Option<(u64, u32, bytes::Bytes)>> {
    from.read_blocking(|view| {
        let mut found = None;
        view.members(kind, record, position, |at, n, chunk| {
            found = Some((at, n, bytes::Bytes::copy_from_slice(chunk)));
            ControlFlow::Break(())
        })?;
        Ok(found)
    })
}

/// Number of records and the sum of their hashes, independent of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sum {
    n_records: u64,
    hash: u64,
}

fn compare(
    from: &Tenant,
    to: &Tenant,
    kind: &'static Kind,
    report: &mut dyn FnMut(CopyProgress<'_>),
) -> Result<CopiedKind> {
    let n_records = from.read_blocking(|view| view.count(kind, &Expr::All))?;
    let mut read = |n_done| {
        let stage = CopyStage::Comparing;
        report(CopyProgress { tenant: from.name(), kind: kind.name, stage, n_done, n_records });
    };
    // Both sides are read: each counts half.
    let source = sum_of(from, kind, &mut |n| read(n / 2))?;
    let target = sum_of(to, kind, &mut |n| read((n_records + n) / 2))?;
    if source == target {
        let Sum { n_records, hash: checksum } = source;
        return Ok(CopiedKind { tenant: from.name().to_owned(), kind: kind.name, n_records, checksum });
    }
    Err(StoreError::Damaged(format!(
        "the copy of {} in tenant {:?} differs: the source has {} records (checksum {:016x}), the target {} ({:016x}); \
         was the source written to meanwhile, or does the target hold other records?",
        kind.name,
        from.name(),
        source.n_records,
        source.hash,
        target.n_records,
        target.hash
    )))
}

fn sum_of(tenant: &Tenant, kind: &'static Kind, report: &mut dyn FnMut(u64)) -> Result<Sum> {
    let (mut sum, mut after) = (Sum::default(), None);
    loop {
        let page = tenant.read_blocking(|view| read_page(view, kind, after))?;
        let Some(last) = page.last() else { return Ok(sum) };
        after = Some(last.key);
        for record in &page {
            let mut hash = fnv(record.id.as_bytes(), fnv(&record.body, record.version));
            let mut next = 0;
            while let Some((position, n, chunk)) = next_chunk(tenant, kind, record, next)? {
                hash = fnv(&chunk, hash ^ position);
                next = position + u64::from(n);
            }
            sum.hash = sum.hash.wrapping_add(hash);
            sum.n_records += 1;
        }
        report(sum.n_records);
    }
}

fn mark_name(kind: &Kind) -> String {
    format!("{MARK}{}", kind.name)
}

fn mark(view: &mut View<'_>, name: &str) -> Result<Option<i64>> {
    view.session.first("SELECT value FROM meta WHERE name = ?1", &[name.into()], |row| row.int(0))
}

fn set_mark(txn: &mut Txn<'_>, name: &str, value: i64) -> Result<()> {
    let sql = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    txn.view.session.execute(sql, &[name.into(), value.into()]).map(|_| ())
}
