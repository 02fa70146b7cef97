//! Writes prepared records in batches, and maintains what depends on several of them.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::thread;

use pinakes_store::{Document, Expr, Kind, StoreError, Tenant, Txn, Value as Condition};
use serde_json::Value;

use super::{Existing, ImportError, Prepared};
use crate::blocks::sorts::follow;
use crate::import::imported::Importer;
use crate::import::imported::RecordType;
use crate::kinds::DATASET;
use crate::kinds::POLICY;
use crate::kinds::PROPOSAL;
use crate::kinds::{DATABLOCK, ORIG_DATABLOCK};
use crate::policies::{self, First};

/// Number of proposals counted in one transaction.
const STEP_PROPOSALS: usize = 100;
/// Minimum number of records at which a batch is split.
const FEWEST_PARTED: usize = 200;

/// A running import into one tenant.
pub struct Loading {
    importer: Importer,
    tenant: Tenant,
    existing: Existing,
    /// Owner groups of datasets, each with the first mail address found.
    owner_groups: BTreeMap<String, Option<String>>,
    proposals: HashSet<String>,
    /// Whether blocks may have been stored before their datasets.
    has_blocks: bool,
    has_deferred: bool,
}

/// The outcome of a batch.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Number of created records, by type.
    pub n_new: BTreeMap<RecordType, u64>,
    /// Number of replaced records, by type.
    pub n_replaced: BTreeMap<RecordType, u64>,
    /// Number of existing records that were left unchanged, by type.
    pub n_kept: BTreeMap<RecordType, u64>,
    /// Refused records, by their position in the batch, with the reason.
    pub refused: Vec<(usize, String)>,
}

impl Written {
    fn and(mut self, other: Self) -> Self {
        for (counts, more) in [
            (&mut self.n_new, other.n_new),
            (&mut self.n_replaced, other.n_replaced),
            (&mut self.n_kept, other.n_kept),
        ] {
            more.into_iter().for_each(|(sort, n)| *counts.entry(sort).or_default() += n);
        }
        self.refused.extend(other.refused);
        self
    }
}

/// The outcome of one record.
enum Fate {
    New,
    Replaced,
    Kept,
    Refused(String),
}

impl Loading {
    /// Starts an import. If there are no datasets yet, their indexes are built at the end.
    pub fn begin(importer: Importer, tenant: Tenant, existing: Existing) -> Result<Self, ImportError> {
        let (has_deferred, has_blocks) = tenant.write_blocking(|txn| {
            let has_deferred = txn.defer_indexes(&DATASET)?;
            let n_blocks = txn.count(&ORIG_DATABLOCK, &Expr::All)? + txn.count(&DATABLOCK, &Expr::All)?;
            Ok::<_, StoreError>((has_deferred, 0 < n_blocks))
        })?;
        let (owner_groups, proposals) = (BTreeMap::new(), HashSet::new());
        Ok(Self { importer, tenant, existing, owner_groups, proposals, has_blocks, has_deferred })
    }

    /// Writes a batch; it is on disk when [`Loading::finish`] returns. The embedded engine writes all of it or nothing;
    /// in a database, records that do not depend on each other are written in several concurrent transactions.
    pub fn write(&mut self, batch: &Arc<[Prepared]>) -> Result<Written, ImportError> {
        self.note(batch);
        let n_parts = self.n_parts(batch);
        let part_records = batch.len().div_ceil(n_parts).max(1);
        let parts = (0..batch.len()).step_by(part_records).map(|at| at..batch.len().min(at + part_records));
        let write = |part: Range<usize>| self.write_part(batch, part);
        let write = &write;
        let results: Vec<Result<Written, ImportError>> = thread::scope(|scope| {
            let mut parts = parts;
            let first = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || write(part))).collect();
            let ended = others.into_iter().map(|it| it.join().unwrap_or(Err(StoreError::Panicked.into())));
            first.map(write).into_iter().chain(ended).collect()
        });
        results.into_iter().try_fold(Written::default(), |sum, it| Ok(sum.and(it?)))
    }

    /// Writes a part of a batch. A record that the engine cannot store is found by bisection and refused alone.
    fn write_part(&self, batch: &Arc<[Prepared]>, part: Range<usize>) -> Result<Written, ImportError> {
        let (own, existing, has_blocks) = (Arc::clone(batch), self.existing, self.has_blocks);
        let (begin, end) = (part.start, part.end);
        let written =
            self.tenant.load_blocking(move |txn| write_batch(txn, &own[part.clone()], existing, has_blocks));
        match written {
            Err(ImportError::Store(StoreError::Query(reason))) if end - begin == 1 => {
                Ok(Written { refused: vec![(begin, reason)], ..Written::default() })
            }
            Err(ImportError::Store(StoreError::Query(_))) if begin + 1 < end => {
                let middle = begin.midpoint(end);
                Ok(self.write_part(batch, begin..middle)?.and(self.write_part(batch, middle..end)?))
            }
            Err(error) => Err(error),
            Ok(mut written) => {
                written.refused.iter_mut().for_each(|it| it.0 += begin);
                Ok(written)
            }
        }
    }

    /// Returns the number of transactions into which a batch may be split.
    fn n_parts(&self, batch: &[Prepared]) -> usize {
        if self.tenant.is_embedded() || self.has_blocks || batch.len() < FEWEST_PARTED {
            return 1;
        }
        let mut seen = HashSet::new();
        let are_apart = batch.iter().all(|it| seen.insert((it.sort, it.id())));
        if are_apart { self.tenant.limits().tenant_writers.max(1) } else { 1 }
    }

    fn note(&mut self, batch: &[Prepared]) {
        for it in batch {
            if let Some(group) = &it.owner_group
                && !self.owner_groups.contains_key(group)
            {
                self.owner_groups.insert(group.clone(), it.owner_email.clone());
            }
            for proposal in it.proposals.iter().filter(|id| !id.is_empty()) {
                if !self.proposals.contains(proposal) {
                    self.proposals.insert(proposal.clone());
                }
            }
            self.has_blocks |= it.sort.has_files();
        }
    }

    /// Finishes an import, which is on disk when this returns: builds indexes, creates the policies of new owner
    /// groups, and counts the datasets of proposals.
    pub fn finish(self) -> Result<(), ImportError> {
        if self.has_deferred {
            self.tenant.make_indexes(&DATASET)?;
        }
        self.make_policies()?;
        let proposals: Vec<String> = self.proposals.into_iter().collect();
        for step in proposals.chunks(STEP_PROPOSALS) {
            let step = step.to_vec();
            self.tenant.write_blocking(move |txn| step.iter().try_for_each(|id| count_datasets(txn, id)))?;
        }
        Ok(())
    }

    fn make_policies(&self) -> Result<(), ImportError> {
        let app = &self.importer.app;
        let policy_of = |(group, email): (&String, &Option<String>)| {
            let owner_email = email.as_deref().unwrap_or_default();
            let first = First { owner_group: group, owner_email, classification: "" };
            let policy = policies::of_new_group(app, first, &self.importer.username);
            Document::new(&POLICY, group.as_str(), &policy)
        };
        let documents = self.owner_groups.iter().map(policy_of).collect::<Result<Vec<_>, _>>()?;
        self.tenant.write_blocking(move |txn| {
            for document in &documents {
                if !txn.has(&POLICY, document.id())? {
                    txn.insert_document(document)?;
                }
            }
            Ok::<_, ImportError>(())
        })
    }
}

fn write_batch(
    txn: &mut Txn<'_>,
    batch: &[Prepared],
    existing: Existing,
    has_blocks: bool,
) -> Result<Written, ImportError> {
    let mut written = Written::default();
    let mut touched = HashSet::new();
    let mut made = Vec::new();
    for (index, record) in batch.iter().enumerate() {
        if made.len() <= index {
            made.extend(write_missing(txn, &batch[index..])?);
        }
        let fate = if record.sort.has_files() {
            write_block(txn, record, existing, &mut touched)?
        } else if made[index] {
            Fate::New
        } else {
            write_document(txn, &record.document, record.sort.kind(), existing)?
        };
        let counts = match fate {
            Fate::New => &mut written.n_new,
            Fate::Replaced => &mut written.n_replaced,
            Fate::Kept => &mut written.n_kept,
            Fate::Refused(reason) => {
                written.refused.push((index, reason));
                continue;
            }
        };
        *counts.entry(record.sort).or_default() += 1;
        if has_blocks && record.sort.is_of(&DATASET) && !matches!(fate, Fate::Kept) {
            touched.insert(record.id().to_owned());
        }
    }
    for pid in &touched {
        reconcile(txn, pid)?;
    }
    Ok(written)
}

/// Inserts those records of the first run of one type that do not exist yet, and returns for each whether it was
/// inserted. A block is never inserted here, as blocks are written separately.
fn write_missing(txn: &mut Txn<'_>, batch: &[Prepared]) -> Result<Vec<bool>, ImportError> {
    let Some(first) = batch.first().filter(|it| !it.sort.has_files()) else { return Ok(vec![false]) };
    let of_sort = batch.iter().take_while(|it| it.sort == first.sort);
    let documents: Vec<&Document> = of_sort.map(|it| &it.document).collect();
    Ok(txn.insert_missing(&documents)?)
}

fn write_document(
    txn: &mut Txn<'_>,
    document: &Document,
    kind: &'static Kind,
    existing: Existing,
) -> Result<Fate, ImportError> {
    let refused = match txn.insert_document(document) {
        Ok(_) => return Ok(Fate::New),
        Err(refused @ StoreError::Duplicate { .. }) => refused,
        Err(error) => return Err(error.into()),
    };
    // The duplicate may be the id itself, or another unique value of a record with a different id.
    if !txn.has(kind, document.id())? {
        return Ok(Fate::Refused(refused.to_string()));
    }
    match existing {
        Existing::Keep => Ok(Fate::Kept),
        Existing::Replace => replace(txn, document),
    }
}

fn replace(txn: &mut Txn<'_>, document: &Document) -> Result<Fate, ImportError> {
    match txn.update_document(document) {
        Ok(_) => Ok(Fate::Replaced),
        Err(refused @ StoreError::Duplicate { .. }) => Ok(Fate::Refused(refused.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Writes a block with its files. The caller updates the sums of its dataset.
fn write_block(
    txn: &mut Txn<'_>,
    record: &Prepared,
    existing: Existing,
    touched: &mut HashSet<String>,
) -> Result<Fate, ImportError> {
    let kind = record.sort.kind();
    let stored = txn.get(kind, record.id())?;
    if stored.is_some() && existing == Existing::Keep {
        return Ok(Fate::Kept);
    }
    let list = txn.new_list(kind)?;
    for chunk in &record.files {
        txn.append_members(kind, list, chunk.first, chunk.n, chunk.bytes.clone())?;
    }
    let n_files = record.files.iter().map(|it| u64::from(it.n)).sum();
    let document = record.document.clone().with_list(list, n_files);
    let fate = match &stored {
        Some(_) => replace(txn, &document)?,
        None => write_document(txn, &document, kind, Existing::Keep)?,
    };
    if let Fate::Refused(_) = fate {
        txn.discard_list(kind, list)?;
        return Ok(fate);
    }
    for body in stored.iter().map(|it| &it.body).chain([document.body()]) {
        touched.extend(dataset_of(body)?);
    }
    Ok(fate)
}

fn dataset_of(block: &[u8]) -> Result<Option<String>, ImportError> {
    let block: Value =
        serde_json::from_slice(block).map_err(|error| ImportError::Damaged(error.to_string()))?;
    Ok(block.get("datasetId").and_then(Value::as_str).map(str::to_owned))
}

/// Raises a number to at least `sum`.
fn raise(number: &mut Value, sum: Value) {
    if number.as_f64().unwrap_or(0.0) < sum.as_f64().unwrap_or(0.0) {
        *number = sum;
    }
}

/// Raises a dataset's sums to at least those of its blocks, and gives its blocks its own access fields. A dataset that
/// came with larger sums keeps them: it may claim files that are in no block, and in a dump the blocks are already
/// included.
fn reconcile(txn: &mut Txn<'_>, pid: &str) -> Result<(), ImportError> {
    let Some(record) = txn.get(&DATASET, pid)? else { return Ok(()) };
    let before = record.json()?;
    let mut dataset = before.clone();
    for (kind, size_of_block, size, n_files) in [
        (&ORIG_DATABLOCK, "size", "size", "numberOfFiles"),
        (&DATABLOCK, "packedSize", "packedSize", "numberOfFilesArchived"),
    ] {
        let blocks = txn.find(kind, &crate::datasets::include::of_dataset(pid))?;
        if blocks.is_empty() {
            continue;
        }
        let mut sum = 0.0;
        for block in &blocks {
            let body = block.json()?;
            sum += body.get(size_of_block).and_then(Value::as_f64).unwrap_or(0.0);
            let mut following = body.clone();
            if let Some(block) = following.as_object_mut() {
                follow(block, &before);
            }
            if following != body {
                txn.update(kind, &block.id, &following)?;
            }
        }
        let n_members = blocks.iter().map(|it| it.n_members).sum::<u64>();
        raise(&mut dataset[size], crate::blocks::sorts::whole_number(sum));
        raise(&mut dataset[n_files], n_members.into());
    }
    if dataset != before {
        txn.update(&DATASET, pid, &dataset)?;
    }
    Ok(())
}

/// Sets a proposal's number of datasets to the actual number.
fn count_datasets(txn: &mut Txn<'_>, id: &str) -> Result<(), ImportError> {
    let Some(record) = txn.get(&PROPOSAL, id)? else { return Ok(()) };
    let n = txn.count(&DATASET, &Expr::Is("proposalIds".into(), Condition::Text(id.to_owned())))?;
    let mut proposal = record.json()?;
    if proposal.get("numberOfDatasets").and_then(Value::as_u64) != Some(n) {
        proposal["numberOfDatasets"] = n.into();
        txn.update(&PROPOSAL, id, &proposal)?;
    }
    Ok(())
}
