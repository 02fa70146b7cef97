//! Processing a batch: each record goes through the tree of its profile.

use pinakes_marc::RecordKind;
use pinakes_store::Document;

use crate::data_import::actions;
use crate::data_import::engine::{
    BatchError, Case, Engine, FailedLate, Failure, Found, KnownFailures, Outcome, Prepared, StepError,
    entity_of, next_sibling, unsupported,
};
use crate::data_import::hits::{Cache, Hits};
use crate::data_import::journal::{Entry, Row};
use crate::data_import::tree::{Content, Entity, Node, React};
use crate::platform::json as text_form;
use crate::platform::limits::BATCH_RECORDS;
use crate::source_records::source_storage::SOURCE_RECORD;

impl<'s, 't, 'v> Engine<'s, 't, 'v> {
    /// Runs a batch, or only its beginning if others are waiting for the writer. `failed` holds the steps known to
    /// fail, by the position of the record.
    pub(crate) fn run(
        &mut self,
        batch: &[Prepared],
        failed: &KnownFailures,
        is_waited_for: &dyn Fn() -> bool,
    ) -> Result<Outcome, BatchError> {
        let mut outcome = Outcome::default();
        self.cache = Cache::fetch(self.txn, self.setup, batch)?;
        for (at, prepared) in batch.iter().enumerate() {
            let result = match &prepared.incoming.record {
                Err(message) => Err((message.clone(), None)),
                Ok(_) => self.record(at, prepared, failed.get(&at), &mut outcome)?,
            };
            if let Err((message, step)) = result {
                outcome.n_failed += 1;
                let entry = self.failed(prepared, &message, step)?;
                outcome.entries.push(entry);
            }
            outcome.n_done = at + 1;
            if BATCH_RECORDS.0 <= outcome.n_done && is_waited_for() {
                break;
            }
        }
        Ok(outcome)
    }

    /// Processes one record, up to the step that is known to fail; the inner error is that of the record,
    /// with the step that failed.
    fn record(
        &mut self,
        at: usize,
        prepared: &Prepared,
        failure: Option<&Failure>,
        outcome: &mut Outcome,
    ) -> Result<Result<(), (String, Option<Row>)>, BatchError> {
        let Ok(record) = &prepared.incoming.record else { return Ok(Ok(())) };
        if !self.setup.takes(record.leader.kind()) {
            return Ok(Err((unsupported(&self.setup.tree.name, record.leader.kind()), None)));
        }
        let mut case = Case {
            prepared,
            record: record.clone(),
            is_unchanged: true,
            found: Found::default(),
            rows: vec![Row::done(entity_of(record.leader.kind()), "PARSE")],
            source_id: None,
            n_sources: 0,
            n_externals: 0,
            did_something: false,
            has_written: false,
            n_done: 0,
            step: None,
        };
        match self.walk(&mut case, failure) {
            Ok(()) => {}
            Err(StepError::Store(error)) => return Err(error.into()),
            Err(StepError::Record(message)) if case.has_written => {
                let failure = Failure { n_done: case.n_done, message };
                return Err(BatchError::Late(FailedLate { at, failure }));
            }
            Err(StepError::Record(message)) => return Ok(Err((message, case.step))),
        }
        let warning = prepared.incoming.told_losses();
        let raw = case.source_id.is_none().then(|| prepared.incoming.raw_text());
        outcome.n_failed += u64::from(failure.is_some());
        outcome.entries.push(Entry {
            order: prepared.incoming.order,
            incoming_id: prepared.record_id.clone(),
            source_id: case.source_id.clone(),
            record_type: entity_of(record.leader.kind()).name().to_owned(),
            title: prepared.title.clone(),
            error: failure.map(|it| placed(&prepared.incoming.place, &it.message)).unwrap_or_default(),
            warning,
            raw,
            rows: case.rows,
        });
        Ok(Ok(()))
    }

    /// Stores a failed record with the reason, which is also that of the step that failed.
    fn failed(&mut self, prepared: &Prepared, message: &str, step: Option<Row>) -> Result<Entry, BatchError> {
        let message = &placed(&prepared.incoming.place, message);
        let body = self.setup.error_record(prepared, message, self.now_ms);
        let bytes = text_form::bytes(&body);
        let document = Document::with_bytes(&SOURCE_RECORD, prepared.record_id.as_str(), &body, bytes)?;
        self.txn.insert_document(&document)?;
        let kind = prepared.incoming.record.as_ref().map_or(RecordKind::Unknown, |it| it.leader.kind());
        let entity = entity_of(kind);
        let action = if prepared.incoming.record.is_ok() { "CREATE" } else { "PARSE" };
        let mut rows = vec![Row { error: Some(message.to_owned()), ..Row::done(entity, action) }];
        let step = step.filter(|it| it.entity != entity && it.action != "MATCH");
        rows.extend(step.map(|it| Row { error: Some(message.to_owned()), ..it }));
        Ok(Entry {
            order: prepared.incoming.order,
            incoming_id: prepared.record_id.clone(),
            source_id: Some(prepared.record_id.clone()),
            record_type: if kind == RecordKind::Unknown { String::new() } else { entity.name().to_owned() },
            title: prepared.title.clone(),
            error: message.to_owned(),
            warning: String::new(),
            raw: None,
            rows,
        })
    }

    /// Walks the tree: a node, the branch that its match selects, then the next node beside it. Ends before the step
    /// that is known to fail, with a row that says why.
    fn walk(&mut self, case: &mut Case<'_>, failure: Option<&Failure>) -> Result<(), StepError> {
        let mut open: Vec<(&'s [Node], usize)> = vec![(&self.setup.tree.roots, 0)];
        while let Some((level, at)) = open.pop() {
            let Some(node) = level.get(at) else { continue };
            open.extend(next_sibling(level, at).map(|it| (level, it)));
            let step = step_of(&node.content);
            if let Some(failure) = failure.filter(|it| it.n_done == case.n_done) {
                let message = placed(&case.prepared.incoming.place, &failure.message);
                case.rows.push(Row { error: Some(message), ..step });
                return Ok(());
            }
            case.step = Some(step);
            match &node.content {
                Content::Action(action) => {
                    actions::perform(self, case, action)?;
                    case.did_something = true;
                }
                Content::Match(spec) => {
                    let outcome = self.matched(case, spec, node)?;
                    let child = node.children.iter().position(|it| it.react == Some(outcome));
                    open.extend(child.map(|it| (node.children.as_slice(), it)));
                }
            }
            case.n_done += 1;
        }
        Ok(())
    }

    /// Evaluates a match and stores its hits in the case.
    fn matched(
        &mut self,
        case: &mut Case<'_>,
        spec: &crate::data_import::tree::MatchSpec,
        node: &Node,
    ) -> Result<React, StepError> {
        let hits = crate::data_import::matching::find(self, case, spec)?;
        let next_narrows = node
            .children
            .iter()
            .find(|it| it.react == Some(React::Match))
            .is_some_and(|it| matches!(it.content, Content::Match(_)));
        let n_hits = hits.len();
        case.found.matched_by_field.clear();
        if 1 < n_hits && !next_narrows {
            // Several holdings or items are fine if each is matched by a field of its own.
            let by_field = crate::data_import::matching::by_field(self, case, spec, &hits)?;
            case.found.matched_by_field = by_field.ok_or_else(|| {
                StepError::Record("Found multiple records matching specified conditions".to_owned())
            })?;
        }
        if n_hits == 0 {
            case.rows.push(Row::done(spec.existing_type, "NON_MATCH"));
            return Ok(React::NonMatch);
        }
        case.rows.push(Row::done(spec.existing_type, "MATCH"));
        match hits {
            Hits::Sources(mut list) => {
                let hit = list.swap_remove(0);
                let external = hit.external_id().map(str::to_owned);
                match spec.existing_type {
                    Entity::MarcBib => case.found.instances = external.into_iter().collect(),
                    Entity::MarcHoldings => case.found.holdings = external.into_iter().collect(),
                    _ => case.found.authority = external,
                }
                case.found.source = Some(hit);
            }
            Hits::Records(ids) => match spec.existing_type {
                Entity::Instance => case.found.instances = ids,
                Entity::Holdings => case.found.holdings = ids,
                Entity::Item => case.found.items = ids,
                _ => case.found.authority = ids.into_iter().next(),
            },
        }
        Ok(React::Match)
    }
}

/// Builds the row of a step, without its result.
fn step_of(content: &Content) -> Row {
    match content {
        Content::Match(spec) => Row::done(spec.existing_type, "MATCH"),
        Content::Action(action) => Row::done(action.entity, action.verb.name()),
    }
}

/// Begins a message with the place of the record, unless it names it already.
fn placed(place: &str, message: &str) -> String {
    if message.starts_with("record ") { message.to_owned() } else { format!("{place}: {message}") }
}
