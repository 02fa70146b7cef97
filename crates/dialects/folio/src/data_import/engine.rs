//! The processing of a record: the walk through the profile's tree (sections 5 and 6 of the contract).
//!
//! Work that depends on the record alone (reading, mapping an authority, serialising) is done before the transaction,
//! in [`Setup::prepare`]; [`Engine::run`] does the rest inside it, record by record in order, so that a record sees
//! what earlier ones have created.

use std::collections::HashMap;
use std::sync::Arc;

use pinakes_accounts::Entropy;
use pinakes_marc::{Record, RecordKind, Tag};
use pinakes_store::{Document, StoreError, Txn};
use serde_json::{Map, Value, json};

use super::incoming::Incoming;
use super::journal::{Entry, Row};
use super::tree::{Action, Entity, Node, Tree, Verb};
use crate::authorities::authority::AUTHORITIES;
use crate::data_import::hits::{Cache, Hit};
use crate::data_import::mapping::{self, Reference, Rules};
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::platform::collection::{Collection, Writer};
use crate::platform::error::FolioError;
use crate::platform::{dates, json as text_form};
use crate::source_records::marc;
use crate::source_records::source_storage::SOURCE_RECORD;

/// The tenant's and the job's data that an import needs. Built once per job.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) job_id: String,
    pub(crate) user_id: Option<String>,
    pub(crate) tree: Tree,
    pub(crate) bib_rules: Arc<Rules>,
    pub(crate) authority_rules: Arc<Rules>,
    pub(crate) holdings_rules: Arc<Rules>,
    pub(crate) reference: Reference,
    /// (id, codes) of the authority source files.
    pub(crate) source_files: Vec<(String, Vec<String>)>,
    pub(crate) protections: Vec<Protection>,
    /// Whether bibliographic records may carry the id of their instance.
    pub(crate) accepts_instance_id: bool,
    pub(crate) entropy: Entropy,
    /// Whether authorities are mapped in the extended mode.
    pub(crate) is_extended: bool,
    /// Number of consecutive unreadable records after which a file is abandoned.
    pub(crate) most_unreadable: u64,
}

/// A field that updates do not change.
#[derive(Debug, Clone)]
pub(crate) struct Protection {
    pub(crate) id: String,
    pub(crate) tag: String,
    pub(crate) indicators: [char; 2],
    pub(crate) subfield: char,
    /// `*` for any.
    pub(crate) data: String,
}

/// A record, with all the work that can be done before the transaction.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) incoming: Incoming,
    pub(crate) title: String,
    /// Id of the source record that a create action stores; also the id of the incoming record in the log.
    pub(crate) record_id: String,
    /// Id of the instance, authority or holdings record that a create action stores.
    pub(crate) external_id: String,
    /// The documents of a "create authority" action.
    pub(crate) authority: Option<ReadyAuthority>,
}

/// An authority and its source record, ready for insertion.
#[derive(Debug)]
pub(crate) struct ReadyAuthority {
    pub(crate) source: Document,
    pub(crate) source_body: Arc<Value>,
    pub(crate) authority: Document,
    pub(crate) hrid: String,
}

/// The result of a batch.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) entries: Vec<Entry>,
    pub(crate) n_failed: u64,
    /// Number of records processed, counted from the first.
    pub(crate) n_done: usize,
}

/// Why a batch must be run again: a record now known to fail.
#[derive(Debug)]
pub(crate) struct FailedLate {
    /// Position in the batch.
    pub(crate) at: usize,
    pub(crate) failure: Failure,
}

/// The step at which a record fails after earlier ones have written: what those did stays, as in FOLIO.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// Number of steps (matches and actions) that succeed before it.
    pub(crate) n_done: usize,
    pub(crate) message: String,
}

/// Why a batch was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError {
    /// A record failed after part of it was written: everything is rolled back and the step is marked.
    #[error("record at {} failed late: {}", .0.at, .0.failure.message)]
    Late(FailedLate),
    /// The job was changed by somebody else in the meantime.
    #[error("the job was taken over or stopped")]
    Lost,
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A rule of another collection was violated, not by a particular record.
    #[error("{0}")]
    Other(String),
}

impl From<FolioError> for BatchError {
    fn from(error: FolioError) -> Self {
        Self::Other(error.message())
    }
}

impl Setup {
    /// Checks whether the profile accepts records of that kind.
    pub(crate) fn takes(&self, kind: RecordKind) -> bool {
        self.tree.has_action(|action| {
            let wanted = match action.entity {
                Entity::Authority | Entity::MarcAuthority => RecordKind::Authority,
                Entity::MarcHoldings => RecordKind::Holdings,
                Entity::Holdings => return matches!(kind, RecordKind::Holdings | RecordKind::Bibliographic),
                _ => RecordKind::Bibliographic,
            };
            kind == wanted
        })
    }

    /// Does all the work for a record that needs nothing from the store, ahead of the transaction.
    pub(crate) fn prepare(&self, incoming: Incoming, now_ms: i64) -> Prepared {
        let new_id = || self.entropy.uuid_at(now_ms).to_string();
        let (record_id, external_id) = (new_id(), new_id());
        let title = incoming.record.as_ref().map_or_else(|_| "No content".to_owned(), marc::title);
        let mut prepared = Prepared { incoming, title, record_id, external_id, authority: None };
        let creates = |action: &Action| action.verb == Verb::Create && action.entity == Entity::Authority;
        let modifies = |action: &Action| action.verb == Verb::Modify;
        if self.tree.has_action(creates) && !self.tree.has_action(modifies) {
            prepared.authority = self.ready_authority(&prepared, now_ms);
        }
        prepared
    }

    /// Builds the documents of an authority that MODIFY actions have changed.
    pub(crate) fn authority_of(&self, prepared: &Prepared, now_ms: i64) -> Option<ReadyAuthority> {
        self.ready_authority(prepared, now_ms)
    }

    /// Builds the documents of an authority; `None` if the record is not one or cannot become one: the action then
    /// reports why.
    fn ready_authority(&self, prepared: &Prepared, now_ms: i64) -> Option<ReadyAuthority> {
        let record = prepared.incoming.record.as_ref().ok()?;
        if record.leader.kind() != RecordKind::Authority
            || marc::folio_id(record, 'i').is_some()
            || marc::folio_id(record, 's').is_some()
        {
            return None;
        }
        let mut record = record.clone();
        let hrid = record.control("001").unwrap_or_default().trim().to_owned();
        if self.tree.matches_on(Entity::MarcAuthority) {
            marc::keep_control_number(&mut record);
        }
        let id = &prepared.external_id;
        let body = self.authority_body(&record, id, now_ms)?;
        self.finish(&mut record, id, &prepared.record_id, now_ms);
        let source_body = self.source_record(
            prepared,
            Made {
                id: &prepared.record_id,
                record: &record,
                matched_id: &prepared.record_id,
                generation: 0,
                external: Some((Entity::MarcAuthority, id, &hrid)),
                now_ms,
            },
        );
        let bytes = text_form::bytes(&source_body);
        let source =
            Document::with_bytes(&SOURCE_RECORD, prepared.record_id.as_str(), &source_body, bytes).ok()?;
        let bytes = text_form::bytes(&body);
        let authorities = collection_of(Entity::Authority)?;
        let authority = Document::with_bytes(&authorities.kind, id.as_str(), &body, bytes).ok()?;
        Some(ReadyAuthority { source, source_body: Arc::new(source_body), authority, hrid })
    }

    /// Builds a new authority as it is stored; `None` if nothing can serve as its natural id.
    fn authority_body(&self, record: &Record, id: &str, now_ms: i64) -> Option<Value> {
        let mapped = self.map_authority(record);
        mapped.get("naturalId")?;
        let mut body = Map::with_capacity(mapped.len() + 5);
        body.insert("id".into(), id.into());
        body.insert("_version".into(), 0.into());
        body.extend(mapped);
        for name in ["identifiers", "notes"] {
            body.entry(name).or_insert_with(|| json!([]));
        }
        let mut metadata = Map::new();
        let now = dates::micros(now_ms);
        metadata.insert("createdDate".into(), now.as_str().into());
        metadata.extend(self.user_id.as_ref().map(|it| ("createdByUserId".to_owned(), it.as_str().into())));
        metadata.insert("updatedDate".into(), now.into());
        metadata.extend(self.user_id.as_ref().map(|it| ("updatedByUserId".to_owned(), it.as_str().into())));
        body.insert("metadata".into(), Value::Object(metadata));
        Some(Value::Object(body))
    }

    /// Maps a record to the properties of an authority.
    pub(crate) fn map_authority(&self, record: &Record) -> Map<String, Value> {
        let mut mapped =
            mapping::authority(&self.authority_rules, record, &self.reference, &self.source_files);
        if self.is_extended {
            mapping::add_related(&self.authority_rules, record, &self.reference, &mut mapped);
        }
        mapped
    }

    /// Sets 005, 999 ff and the leader's lengths, the last step before a record is stored.
    pub(crate) fn finish(&self, record: &mut Record, external_id: &str, matched_id: &str, now_ms: i64) {
        if !self.protections.iter().any(|it| it.tag == "005") {
            record.set_control(Tag::new(b"005"), dates::marc_005(now_ms));
        }
        marc::set_folio_ids(record, external_id, matched_id);
        marc::set_lengths(record);
    }

    /// Builds the body of a source record.
    pub(crate) fn source_record(&self, prepared: &Prepared, made: Made<'_>) -> Value {
        let (id, record) = (made.id, made.record);
        let status = record.leader.status();
        let mut body = self.source_head(id, made.matched_id, made.generation);
        let record_type = marc::record_type(record.leader.kind()).unwrap_or("MARC_BIB");
        body.insert("recordType".into(), record_type.into());
        body.insert("rawRecord".into(), raw_part(id, &prepared.incoming));
        body.insert("parsedRecord".into(), marc::part(id, marc::to_value(record)));
        body.insert("deleted".into(), matches!(status, 'd' | 's' | 'x').into());
        body.insert("order".into(), prepared.incoming.order.into());
        if let Some((entity, external, hrid)) = made.external {
            let (id_name, hrid_name) = match entity {
                Entity::MarcAuthority => ("authorityId", "authorityHrid"),
                Entity::MarcHoldings => ("holdingsId", "holdingsHrid"),
                _ => ("instanceId", "instanceHrid"),
            };
            let mut holder = Map::with_capacity(2);
            holder.insert(id_name.into(), external.into());
            holder.insert(hrid_name.into(), hrid.into());
            body.insert("externalIdsHolder".into(), Value::Object(holder));
        }
        self.source_tail(&mut body, made.now_ms);
        body.insert("leaderRecordStatus".into(), status.to_string().into());
        Value::Object(body)
    }

    /// Builds the body of a source record that could not be imported: its bytes and the reason.
    pub(crate) fn error_record(&self, prepared: &Prepared, message: &str, now_ms: i64) -> Value {
        let id = prepared.record_id.as_str();
        let mut body = self.source_head(id, id, 0);
        let kind = prepared.incoming.record.as_ref().ok().map(|it| it.leader.kind());
        let record_type = kind.and_then(marc::record_type).unwrap_or("MARC_BIB");
        body.insert("recordType".into(), record_type.into());
        body.insert("rawRecord".into(), raw_part(id, &prepared.incoming));
        let content = match &prepared.incoming.record {
            Ok(record) => marc::to_value(record).to_string(),
            Err(_) => prepared.incoming.raw_text(),
        };
        let description = json!({"message": message, "error": message}).to_string();
        body.insert("errorRecord".into(), json!({"id": id, "description": description, "content": content}));
        body.insert("deleted".into(), false.into());
        body.insert("order".into(), prepared.incoming.order.into());
        self.source_tail(&mut body, now_ms);
        Value::Object(body)
    }

    fn source_head(&self, id: &str, matched_id: &str, generation: u64) -> Map<String, Value> {
        let mut body = Map::with_capacity(16);
        body.insert("id".into(), id.into());
        body.insert("snapshotId".into(), self.job_id.as_str().into());
        body.insert("matchedId".into(), matched_id.into());
        body.insert("generation".into(), generation.into());
        body
    }

    fn source_tail(&self, body: &mut Map<String, Value>, now_ms: i64) {
        body.insert("additionalInfo".into(), json!({"suppressDiscovery": false}));
        body.insert("state".into(), "ACTUAL".into());
        let mut metadata = Map::new();
        let now = dates::rmb(now_ms);
        metadata.insert("createdDate".into(), now.as_str().into());
        metadata.extend(self.user_id.as_ref().map(|it| ("createdByUserId".to_owned(), it.as_str().into())));
        metadata.insert("updatedDate".into(), now.into());
        metadata.extend(self.user_id.as_ref().map(|it| ("updatedByUserId".to_owned(), it.as_str().into())));
        body.insert("metadata".into(), Value::Object(metadata));
    }
}

/// A MARC record to be stored.
pub(crate) struct Made<'a> {
    pub(crate) id: &'a str,
    pub(crate) record: &'a Record,
    pub(crate) matched_id: &'a str,
    pub(crate) generation: u64,
    /// The record that it describes: (kind of source record, id, hrid).
    pub(crate) external: Option<(Entity, &'a str, &'a str)>,
    pub(crate) now_ms: i64,
}

/// Builds `rawRecord`: the bytes as text, and also in base64 if text cannot represent them exactly.
fn raw_part(id: &str, incoming: &Incoming) -> Value {
    let mut part = marc::part(id, incoming.raw_text().into());
    if !incoming.is_text_exact()
        && let Value::Object(map) = &mut part
    {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(&incoming.raw);
        map.insert("contentBase64".into(), encoded.into());
    }
    part
}

/// Returns the collection that holds an entity's records.
pub(crate) fn collection_of(entity: Entity) -> Option<&'static Collection> {
    match entity {
        Entity::Instance => Some(&INSTANCES),
        Entity::Holdings => Some(&HOLDINGS),
        Entity::Item => Some(&ITEMS),
        Entity::Authority => Some(&AUTHORITIES),
        _ => None,
    }
}

/// A batch being processed within a transaction.
pub(crate) struct Engine<'s, 't, 'v> {
    pub(crate) setup: &'s Setup,
    pub(crate) txn: &'t mut Txn<'v>,
    pub(crate) writer: Writer,
    pub(crate) now_ms: i64,
    pub(crate) cache: Cache,
}

/// The state of one record during its walk.
pub(crate) struct Case<'p> {
    pub(crate) prepared: &'p Prepared,
    /// The record, as MODIFY actions have left it.
    pub(crate) record: Record,
    /// Whether it is unchanged since it arrived.
    pub(crate) is_unchanged: bool,
    pub(crate) found: Found,
    pub(crate) rows: Vec<Row>,
    /// The source record that was last stored for it.
    pub(crate) source_id: Option<String>,
    /// Number of source records, and of what they describe, to which ids were given.
    pub(crate) n_sources: usize,
    pub(crate) n_externals: usize,
    pub(crate) did_something: bool,
    /// Whether part of it has already been written in the transaction.
    pub(crate) has_written: bool,
    /// Number of steps (matches and actions) that have succeeded.
    pub(crate) n_done: usize,
    /// The row of the current step, without its result.
    pub(crate) step: Option<Row>,
}

impl Case<'_> {
    /// Returns the id for the next source record.
    pub(crate) fn next_source_id(&mut self, setup: &Setup, now_ms: i64) -> String {
        next_id(&mut self.n_sources, &self.prepared.record_id, setup, now_ms)
    }

    /// Returns the id for the next instance, holdings record or authority with a source record.
    pub(crate) fn next_external_id(&mut self, setup: &Setup, now_ms: i64) -> String {
        next_id(&mut self.n_externals, &self.prepared.external_id, setup, now_ms)
    }

    /// Returns the matched source record if it describes the record with this id.
    pub(crate) fn source_of(&self, external_id: &str) -> Option<Arc<Value>> {
        self.found
            .source
            .as_ref()
            .filter(|it| it.external_id() == Some(external_id))
            .map(|it| Arc::clone(&it.0))
    }
}

/// Returns the id prepared for a record, and new ones from the second on.
fn next_id(n: &mut usize, prepared: &str, setup: &Setup, now_ms: i64) -> String {
    *n += 1;
    if *n == 1 { prepared.to_owned() } else { setup.entropy.uuid_at(now_ms).to_string() }
}

/// The matched records, narrowed from node to node.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) source: Option<Hit>,
    pub(crate) instances: Vec<String>,
    pub(crate) holdings: Vec<String>,
    /// For created holdings: the ids by field that names a location, in the record's order.
    pub(crate) holdings_by_field: Vec<String>,
    pub(crate) items: Vec<String>,
    /// For several matched holdings or items: the ids, each with the position of the field whose value matched it.
    pub(crate) matched_by_field: Vec<(String, usize)>,
    pub(crate) authority: Option<String>,
}

/// Why a step failed.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The record fails; the others continue.
    Record(String),
    /// The whole batch fails.
    Store(StoreError),
}

impl From<StoreError> for StepError {
    /// What the data themselves cause would be the same on every attempt.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Duplicate { .. } | StoreError::Missing { .. } | StoreError::Query(_) => {
                Self::Record(error.to_string())
            }
            error => Self::Store(error),
        }
    }
}

impl From<FolioError> for StepError {
    fn from(error: FolioError) -> Self {
        Self::Record(error.message())
    }
}

impl From<String> for StepError {
    fn from(message: String) -> Self {
        Self::Record(message)
    }
}

/// Returns the next node with the same reaction.
pub(crate) fn next_sibling(level: &[Node], at: usize) -> Option<usize> {
    let react = level.get(at)?.react;
    (at + 1..level.len()).find(|it| level[*it].react == react)
}

/// Returns the type of source record for a kind of record.
pub(crate) const fn entity_of(kind: RecordKind) -> Entity {
    match kind {
        RecordKind::Authority => Entity::MarcAuthority,
        RecordKind::Holdings => Entity::MarcHoldings,
        _ => Entity::MarcBib,
    }
}

/// Returns FOLIO's message for a profile that does not fit the records.
pub(crate) fn unsupported(profile: &str, kind: RecordKind) -> String {
    let record_type = marc::record_type(kind).unwrap_or("MARC_BIB");
    format!("Chosen job profile '{profile}' does not support '{record_type}' record type")
}

/// Steps known to fail, by the position of the record, collected over the runs of one batch.
pub(crate) type KnownFailures = HashMap<usize, Failure>;
