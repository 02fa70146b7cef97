//! Importing topics in batches: from topic maps, from the dumps of the Open Directory, from topic documents.

mod curlie;
mod directory;
mod documents;
mod maps;
pub(crate) mod streaming;

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::io::BufRead;

use pinakes_store::{Document, Loading, Tenant, Txn, pipeline};
use pinakes_topicmap::Format;

use crate::edit::Author;
use crate::error::{ConclaveError, Result};
use crate::kinds::{TOPIC, draw_of};
use crate::model::{Occurrence, Topic};

pub use maps::Mapped;
pub(crate) use maps::{check, put_map};
pub use streaming::{Categories, Dmoz, Streaming};

/// Topics written in one transaction of a load.
pub const BATCH_TOPICS: usize = 1_000;

/// How an import treats topics that exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// They keep their content and get what is new.
    Merge,
    /// They are replaced.
    Replace,
}

/// Result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Topics that were created.
    pub n_made: u64,
    /// Topics that existed already.
    pub n_changed: u64,
}

impl Loaded {
    /// Waits for the batch that is being written, and adds its result.
    fn wait_for(&mut self, under_way: &mut Option<Loading<Loaded, ConclaveError>>) -> Result<()> {
        if let Some(under_way) = under_way.take() {
            let batch = under_way.wait()?;
            self.n_made += batch.n_made;
            self.n_changed += batch.n_changed;
        }
        Ok(())
    }
}

/// Format of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A topic map, which is read as a whole.
    Map(Format),
    /// Categories of the Open Directory (`structure.rdf.u8`).
    DmozStructure,
    /// Its links (`content.rdf.u8`).
    DmozContent,
    /// Tables of its successor, Curlie: categories (`rdf-*-s.tsv`) or links (`rdf-*-c.tsv`).
    Curlie,
    /// Topic documents, one per line, as exports write them.
    Ndjson,
}

impl Source {
    /// Returns the source of that name, as clients and the command state it.
    pub fn named(name: &str) -> Option<Source> {
        match name {
            "ndjson" => Some(Source::Ndjson),
            "curlie" => Some(Source::Curlie),
            name => Format::named(name).map(Source::of_format),
        }
    }

    /// Returns the source of a media type.
    pub fn of_media_type(name: &str) -> Option<Source> {
        let essence = name.split(';').next().unwrap_or_default().trim();
        match essence {
            "application/x-ndjson" | "application/jsonl" => Some(Source::Ndjson),
            _ => Format::of_media_type(essence).map(Source::of_format),
        }
    }

    /// Returns the source that the name of a file suggests.
    pub fn of_file(name: &str) -> Option<Source> {
        let stem = [".gz", ".zst"].iter().find_map(|it| name.strip_suffix(it)).unwrap_or(name);
        match stem.rsplit('.').next()? {
            "ndjson" | "jsonl" => Some(Source::Ndjson),
            "tsv" => Some(Source::Curlie),
            _ => Format::of_file(stem).map(Source::of_format),
        }
    }

    fn of_format(format: Format) -> Source {
        match format {
            Format::DmozStructure => Source::DmozStructure,
            Format::DmozContent => Source::DmozContent,
            format => Source::Map(format),
        }
    }

    /// Returns the names of all sources.
    pub fn names() -> Vec<&'static str> {
        Format::ALL.iter().map(|it| it.0).chain(["curlie", "ndjson"]).collect()
    }

    /// Reads entries one after the other; a topic may come in several parts. Errors: 422 with the name of the document
    /// and the line; what came before is in the sink. Topic maps are read as a whole and not supported here.
    pub fn stream(self, input: impl BufRead, reading: &mut Streaming<'_>) -> Result<()> {
        match self {
            Source::DmozStructure => directory::structure(input, reading),
            Source::DmozContent => directory::content(input, reading),
            Source::Curlie => curlie::read(input, reading),
            Source::Ndjson => documents::read(input, reading),
            Source::Map(_) => Err(ConclaveError::bad_request("a topic map is read whole")),
        }
    }
}

/// A topic serialised for writing: prepared outside of transactions.
pub struct Ready {
    document: Document,
    existing: Existing,
}

impl Ready {
    /// Serialises a topic. Errors: it breaks a rule of the model.
    pub fn new(mut topic: Topic, existing: Existing) -> Result<Self> {
        let document = topic.document()?;
        Ok(Self { document, existing })
    }
}

/// Topics collected in memory; parts with the same id are merged.
#[derive(Debug, Default)]
pub struct Gathered(BTreeMap<String, Topic>);

impl Gathered {
    /// Adds a topic or a part of one.
    pub fn add(&mut self, topic: Topic) {
        match self.0.get_mut(&topic.key) {
            Some(known) => merge_into(known, topic),
            None => {
                self.0.insert(topic.key.clone(), topic);
            }
        }
    }

    /// Returns the number of topics.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no topics.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the topics by id.
    pub fn into_topics(self) -> impl Iterator<Item = Topic> {
        self.0.into_values()
    }
}

/// Writes topics in a transaction.
pub fn put_all(txn: &mut Txn<'_>, topics: &[Ready]) -> Result<Loaded> {
    let documents: Vec<&Document> = topics.iter().map(|it| &it.document).collect();
    let is_made = txn.insert_missing(&documents)?;
    let mut loaded = Loaded::default();
    for (ready, is_made) in topics.iter().zip(is_made) {
        if is_made {
            loaded.n_made += 1;
            continue;
        }
        loaded.n_changed += 1;
        match ready.existing {
            Existing::Replace => {
                txn.update_document(&ready.document)?;
            }
            Existing::Merge => {
                let record = txn.get(&TOPIC, ready.document.id())?;
                let Some(record) = record else { continue };
                let mut old = Topic::stored(&record.body)?;
                merge_into(&mut old, Topic::stored(ready.document.body())?);
                txn.update_document(&old.document()?)?;
            }
        }
    }
    Ok(loaded)
}

/// Adds the members of `new`, which replace members with the same key. For dumps and documents, whose topics are
/// identified by id alone.
fn merge_into(old: &mut Topic, new: Topic) {
    fn replace<T, K: Eq + Hash>(old: &mut Vec<T>, new: Vec<T>, key: impl Fn(&T) -> K) {
        if !old.is_empty() {
            let coming: HashSet<K> = new.iter().map(&key).collect();
            old.retain(|it| !coming.contains(&key(it)));
        }
        old.extend(new);
    }
    replace(&mut old.metadata, new.metadata, |it| (it.scope.clone(), it.name.clone()));
    replace(&mut old.arcs, new.arcs, |it| it.id.clone());
    replace(&mut old.occurrences, new.occurrences, Occurrence::key);
    old.subject_identifiers.extend(new.subject_identifiers);
    old.subject_locators.extend(new.subject_locators);
    old.item_identifiers.extend(new.item_identifiers);
}

/// A load of many topics in consecutive batches; builds the indexes at the end if the catalogue held no topics before.
pub struct Load<'t> {
    tenant: &'t Tenant,
    existing: Existing,
    has_deferred: bool,
    /// Not written yet, because the next source may have more of these topics.
    batch: Gathered,
    /// Topics that were replaced in this load, by their [`draw_of`]: later parts of them are added.
    replaced: HashSet<i64>,
    loaded: Loaded,
    /// The batch that is being written while the next one is read.
    under_way: Option<Loading<Loaded, ConclaveError>>,
}

impl<'t> Load<'t> {
    /// Begins a load.
    pub fn begin(tenant: &'t Tenant, existing: Existing) -> Result<Self> {
        let has_deferred =
            tenant.write_blocking(|txn| txn.defer_indexes(&TOPIC).map_err(ConclaveError::from))?;
        Ok(Self {
            tenant,
            existing,
            has_deferred,
            batch: Gathered::default(),
            replaced: HashSet::new(),
            loaded: Loaded::default(),
            under_way: None,
        })
    }

    /// Adds the topics, or parts of topics, that `source` passes to its argument. They are read on a thread of their
    /// own, serialised on others, and written meanwhile. Returns the result of `source`.
    ///
    /// Errors: a batch cannot be written; earlier ones are kept.
    pub fn fill<R: Send>(
        &mut self,
        source: impl FnOnce(&mut dyn FnMut(Topic) -> Result<()>) -> R + Send,
    ) -> Result<R> {
        let Self { tenant, existing, batch, replaced, loaded, under_way, .. } = self;
        let existing = *existing;
        let read = |take: &mut dyn FnMut(Vec<(Topic, Existing)>) -> bool| {
            source(&mut |topic| {
                batch.add(topic);
                if batch.len() < BATCH_TOPICS || take(parted(batch, existing, replaced)) {
                    return Ok(());
                }
                Err(ConclaveError::bad_request("a batch could not be written"))
            })
        };
        pipeline(read, prepared, |ready: Result<Vec<Ready>>| {
            let ready = ready?;
            loaded.wait_for(under_way)?;
            // At most one batch is being written.
            *under_way = Some(tenant.load_later(move |txn| put_all(txn, &ready))?);
            Ok(())
        })
    }

    /// Writes the remaining topics.
    fn write_rest(&mut self) -> Result<()> {
        self.loaded.wait_for(&mut self.under_way)?;
        if !self.batch.is_empty() {
            let ready = prepared(parted(&mut self.batch, self.existing, &mut self.replaced))?;
            self.under_way = Some(self.tenant.load_later(move |txn| put_all(txn, &ready))?);
        }
        self.loaded.wait_for(&mut self.under_way)
    }

    /// Adds a topic map, entirely or not at all.
    pub fn add_map(&mut self, mapped: Mapped) -> Result<()> {
        self.write_rest()?;
        // Existing topics are looked up, which needs the indexes.
        if std::mem::take(&mut self.has_deferred) {
            self.tenant.make_indexes(&TOPIC)?;
        }
        let existing = self.existing;
        let author = Author { name: "import".to_owned(), now_ms: 0, hidden: Vec::new() };
        let loaded = self.tenant.load_blocking(move |txn| put_map(txn, &mapped, existing, &author))?;
        self.loaded.n_made += loaded.n_made;
        self.loaded.n_changed += loaded.n_changed;
        Ok(())
    }

    /// Ends the load: writes the rest, builds the indexes, and waits until everything is on disk.
    pub fn finish(mut self) -> Result<Loaded> {
        self.write_rest()?;
        if self.has_deferred {
            self.tenant.make_indexes(&TOPIC)?;
        }
        self.tenant.write_blocking(|_| Ok::<_, ConclaveError>(()))?;
        Ok(self.loaded)
    }
}

/// Returns the topics of a batch, each with how an existing topic is treated.
fn parted(batch: &mut Gathered, existing: Existing, replaced: &mut HashSet<i64>) -> Vec<(Topic, Existing)> {
    let topics = std::mem::take(batch).into_topics().map(|it| {
        let is_first = existing == Existing::Replace && replaced.insert(draw_of(&it.key));
        (it, if is_first { Existing::Replace } else { Existing::Merge })
    });
    topics.collect()
}

fn prepared(topics: Vec<(Topic, Existing)>) -> Result<Vec<Ready>> {
    topics.into_iter().map(|(topic, existing)| Ready::new(topic, existing)).collect()
}
