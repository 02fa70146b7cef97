//! Filling a map: topics in batches, from topic maps, from the dumps of the Open Directory, from topic documents.

use std::collections::BTreeMap;
use std::io::BufRead;

use pinakes_store::{Document, Tenant, Txn};
use pinakes_topicmap::dmoz::{self, ArcKind, Category, Entry};
use serde_json::json;

use crate::error::{ConclaveError, Result};
use crate::kinds::TOPIC;
use crate::model::{Arc, DEFAULT_SCOPE, LABEL, Occurrence, SELF, Topic, set};

/// Topics written in one transaction of a load.
pub const BATCH_TOPICS: usize = 1_000;

/// What becomes of topics that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// They keep what they have and get what is new.
    Merge,
    /// They are replaced.
    Replace,
}

/// What an import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Topics that were not there.
    pub n_made: u64,
    /// Topics that were.
    pub n_changed: u64,
}

/// A topic, ready to be written: made outside of transactions.
pub struct Ready {
    topic: Topic,
    document: Document,
}

impl Ready {
    /// Of a topic. Errors: it breaks a rule of the model.
    pub fn new(mut topic: Topic) -> Result<Self> {
        let document = Document::new(&TOPIC, topic.key.clone(), &topic.body()?)?;
        Ok(Self { topic, document })
    }
}

/// Writes topics in a transaction.
pub fn put_all(txn: &mut Txn<'_>, topics: &[Ready], existing: Existing) -> Result<Loaded> {
    let documents: Vec<&Document> = topics.iter().map(|it| &it.document).collect();
    let is_made = txn.insert_missing(&documents)?;
    let mut loaded = Loaded::default();
    for (ready, is_made) in topics.iter().zip(is_made) {
        if is_made {
            loaded.n_made += 1;
            continue;
        }
        loaded.n_changed += 1;
        match existing {
            Existing::Replace => {
                txn.update_document(&ready.document)?;
            }
            Existing::Merge => {
                let record = txn.get(&TOPIC, &ready.topic.key)?;
                let Some(record) = record else { continue };
                let mut old = Topic::stored(&record.body)?;
                merge_into(&mut old, ready.topic.clone());
                let body = old.body()?;
                txn.update(&TOPIC, &ready.topic.key, &body)?;
            }
        }
    }
    Ok(loaded)
}

/// Adds what is new; of one key the new one counts.
fn merge_into(old: &mut Topic, new: Topic) {
    for it in new.metadata {
        set(&mut old.metadata, &it.scope, &it.name, it.value);
    }
    for it in new.arcs {
        old.arcs.retain(|known| known.id != it.id);
        old.arcs.push(it);
    }
    for it in new.occurrences {
        old.occurrences.retain(|known| !known.has_key_of(&it));
        old.occurrences.push(it);
    }
    old.subject_identifiers.extend(new.subject_identifiers);
    old.subject_locators.extend(new.subject_locators);
    old.item_identifiers.extend(new.item_identifiers);
}

/// A load of many topics: batches that follow each other, indexes at the end when the catalogue holds no topics yet.
pub struct Load<'t> {
    tenant: &'t Tenant,
    existing: Existing,
    has_deferred: bool,
    /// By key: a topic that comes again within the batch is merged there.
    batch: BTreeMap<String, Topic>,
    loaded: Loaded,
}

impl<'t> Load<'t> {
    /// Begins.
    pub fn begin(tenant: &'t Tenant, existing: Existing) -> Result<Self> {
        let has_deferred =
            tenant.write_blocking(|txn| txn.defer_indexes(&TOPIC).map_err(ConclaveError::from))?;
        Ok(Self { tenant, existing, has_deferred, batch: BTreeMap::new(), loaded: Loaded::default() })
    }

    /// Adds a topic.
    pub fn add(&mut self, topic: Topic) -> Result<()> {
        match self.batch.get_mut(&topic.key) {
            Some(known) => merge_into(known, topic),
            None => {
                self.batch.insert(topic.key.clone(), topic);
            }
        }
        if self.batch.len() >= BATCH_TOPICS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let ready: Vec<Ready> = batch.into_values().map(Ready::new).collect::<Result<_>>()?;
        let existing = self.existing;
        let loaded = self.tenant.load_blocking(move |txn| put_all(txn, &ready, existing))?;
        self.loaded.n_made += loaded.n_made;
        self.loaded.n_changed += loaded.n_changed;
        Ok(())
    }

    /// Ends: writes the rest, makes the indexes, and has it all on disk.
    pub fn finish(mut self) -> Result<Loaded> {
        self.write()?;
        if self.has_deferred {
            self.tenant.make_indexes(&TOPIC)?;
        }
        self.tenant.write_blocking(|_| Ok::<_, ConclaveError>(()))?;
        Ok(self.loaded)
    }
}

/// How the Open Directory is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dmoz {
    /// As the original loader did: relations without digits alone, texts cut at 50 characters, a fixed text in each topic.
    pub is_seed: bool,
    /// Links kept for each category; 0 for all.
    pub n_links_max: usize,
}

/// Reads a dump of categories into a load.
pub fn load_structure(
    input: impl BufRead,
    document: &str,
    map: &str,
    how: Dmoz,
    load: &mut Load<'_>,
) -> Result<()> {
    let mut reader = dmoz::Reader::new(input, document);
    while let Some(entry) = reader.next_entry()? {
        if let Entry::Category(it) = entry
            && !it.id.is_empty()
        {
            load.add(category(map, it, how))?;
        }
    }
    Ok(())
}

/// Reads a dump of links into a load: occurrences of their categories.
pub fn load_content(
    input: impl BufRead,
    document: &str,
    map: &str,
    how: Dmoz,
    load: &mut Load<'_>,
) -> Result<()> {
    let mut reader = dmoz::Reader::new(input, document);
    let mut kinds: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut n_links: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(entry) = reader.next_entry()? {
        match entry {
            Entry::Category(it) if !it.id.is_empty() => {
                // Pages follow their category.
                kinds.clear();
                n_links.clear();
                for (kind, url) in &it.links {
                    kinds.insert((it.id.clone(), url.clone()), kind.clone());
                }
                let mut topic = Topic::new(map, &it.id);
                topic.set(DEFAULT_SCOPE, LABEL, dmoz::label_of(&it.id));
                if let Some(catid) = it.catid {
                    topic.set(DEFAULT_SCOPE, "catid", catid);
                }
                load.add(topic)?;
            }
            Entry::Page(it) if !it.category.is_empty() => {
                let n_seen = n_links.entry(it.category.clone()).or_insert(0);
                *n_seen += 1;
                if how.n_links_max > 0 && *n_seen > how.n_links_max {
                    continue;
                }
                let kind = kinds.get(&(it.category.clone(), it.url.clone()));
                let mut topic = Topic::new(map, &it.category);
                topic.set(DEFAULT_SCOPE, LABEL, dmoz::label_of(&it.category));
                let mut data = json!({"title": it.title, "description": it.description});
                if let Some(priority) = it.priority {
                    data["priority"] = json!(priority);
                }
                topic.occurrences.push(Occurrence {
                    scope: DEFAULT_SCOPE.to_owned(),
                    role: kind.map_or("link", String::as_str).to_owned(),
                    behaviour: "url".to_owned(),
                    reference: it.url,
                    data: data.to_string(),
                    base64: None,
                });
                load.add(topic)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A category as a topic (section 17 of the contract).
fn category(map: &str, it: Category, how: Dmoz) -> Topic {
    let cut = |text: String| if how.is_seed { text.chars().take(50).collect() } else { text };
    let mut topic = Topic::new(map, &it.id);
    let title = it.title.filter(|title| title != "Top" || it.id == "Top");
    let label = title.map_or_else(|| dmoz::label_of(&it.id), |title| title.replace('_', " "));
    topic.set(DEFAULT_SCOPE, LABEL, cut(label));
    for (name, text) in [
        ("catid", it.catid),
        ("description", it.description.map(|text| without_tags(&text))),
        ("last-update", it.last_update),
        ("dispname", it.display_name),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            topic.set(DEFAULT_SCOPE, name, cut(text));
        }
    }
    for (number, arc) in it.arcs.into_iter().enumerate() {
        if how.is_seed && (arc.group.is_some() || arc.kind == ArcKind::Language) {
            continue;
        }
        let (ty, role) = match arc.kind {
            ArcKind::Narrow => ("category", "narrow".to_owned()),
            ArcKind::Related => ("navigation", "related".to_owned()),
            ArcKind::Symbolic => ("similar", arc.label.clone().unwrap_or_else(|| "symbolic".to_owned())),
            ArcKind::Language => ("language", arc.label.clone().unwrap_or_else(|| "language".to_owned())),
        };
        let mut metadata = Vec::new();
        set(&mut metadata, DEFAULT_SCOPE, LABEL, cut(dmoz::label_of(&arc.target)));
        if let Some(group) = arc.group {
            set(&mut metadata, DEFAULT_SCOPE, "position", group.to_string());
        }
        topic.arcs.push(Arc {
            id: format!("{}~{}", it.id, number + 1),
            ty: ty.to_owned(),
            scope: DEFAULT_SCOPE.to_owned(),
            reference: arc.target,
            role: cut(role),
            metadata,
        });
    }
    for address in it.newsgroups {
        topic.occurrences.push(Occurrence {
            scope: DEFAULT_SCOPE.to_owned(),
            role: "newsgroup".to_owned(),
            behaviour: "url".to_owned(),
            reference: address,
            data: String::new(),
            base64: None,
        });
    }
    if how.is_seed {
        topic.occurrences.push(Occurrence {
            scope: DEFAULT_SCOPE.to_owned(),
            role: "wiki".to_owned(),
            behaviour: "markdown".to_owned(),
            reference: SELF.to_owned(),
            data: "This topic came with the directory.".to_owned(),
            base64: None,
        });
    }
    topic
}

/// The text of a description that may hold HTML.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_tag = false;
    for it in text.chars() {
        match it {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            it if !is_tag => out.push(it),
            _ => {}
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}
