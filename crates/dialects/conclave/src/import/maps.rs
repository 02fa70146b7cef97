//! Import of topic maps into the store. What a map states about an existing topic, found by one of its identities, is
//! added to that topic; topics that turn out to be one are merged (ISO 13250-2, section 6.2), in the map and in the
//! store.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pinakes_store::{End, Expr, Query, Txn};
use pinakes_topicmap::{Builder, TopicId, TopicMap};

use super::{Existing, Loaded, Ready, put_all};
use crate::edit::{Author, Edit, History};
use crate::error::{ConclaveError, Result};
use crate::facts::{OfMap, Same};
use crate::kinds::{ITEM_IDENTIFIER, SUBJECT_IDENTIFIER, SUBJECT_LOCATOR, TOPIC};
use crate::model::{identity, key};
use crate::names::DEFAULT_SCOPE;
use crate::projection::{Projection, native_id};
use crate::text::after_prefix;

/// Maximum number of arcs that the associations of one map may produce.
const ARCS_MAX: usize = 20_000_000;

/// A topic map that was read, and its destination.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The topic map.
    pub map: TopicMap,
    /// Name of the map in the store.
    pub name: String,
    /// IRI of the document: a topic that one of its fragments identifies gets the fragment as its id.
    pub base: String,
}

/// Writes a topic map in a transaction.
///
/// Errors: 422 if the map contradicts the stored one, because one topic would stand for two things.
pub(crate) fn put_map(
    txn: &mut Txn<'_>,
    mapped: &Mapped,
    existing: Existing,
    author: &Author,
) -> Result<Loaded> {
    check_size(&mapped.map)?;
    let name = mapped.name.as_str();
    if is_empty(txn, name)? {
        let projection =
            Projection::new(&mapped.map, name, &mapped.base, &HashMap::new(), &mut |_| Ok(false))?;
        let ready = projection.topics().into_values().map(|mut it| {
            it.modified_ms = author.now_ms;
            Ready::new(it, Existing::Replace)
        });
        let loaded = put_all(txn, &ready.collect::<Result<Vec<_>>>()?)?;
        OfMap::put(txn, name, projection.of_map())?;
        return Ok(loaded);
    }
    let mut map = mapped.map.clone();
    let known = loop {
        let known = known(txn, &map, name)?;
        match one_by_store(&map, &known) {
            None => break known,
            Some(builder) => {
                map = builder.finish().map_err(|conflict| ConclaveError::rule(conflict.to_string()))?;
            }
        }
    };
    let mut edit = Edit::new(txn, name, author, History::None);
    let mut given = HashMap::new();
    let mut same = Same::new();
    for (number, ids) in &known {
        let mut ids = ids.iter();
        let Some(first) = ids.next() else { continue };
        for other in ids {
            same.extend(edit.merge(other, first)?);
        }
        given.insert(*number, first.clone());
    }
    let mut is_taken = |id: &str| Ok(edit.get(id)?.is_some());
    let mut projection = Projection::new(&map, name, &mapped.base, &given, &mut is_taken)?;
    for (number, id) in &given {
        let label = edit.get(id)?.map(|it| it.label_in(DEFAULT_SCOPE)).filter(|it| it != id);
        if let Some(label) = label {
            projection.set_label(*number, label.to_owned());
        }
    }
    let mut loaded = Loaded::default();
    for topic in projection.topics().into_values() {
        let is_there = edit.get(&topic.id)?.is_some();
        (loaded.n_made, loaded.n_changed) =
            (loaded.n_made + u64::from(!is_there), loaded.n_changed + u64::from(is_there));
        match existing {
            Existing::Merge => same.extend(edit.add(topic)?),
            Existing::Replace => edit.put(topic)?,
        }
    }
    edit.merge_all(same)?;
    edit.finish()?;
    OfMap::put(txn, name, projection.of_map())?;
    Ok(loaded)
}

/// Checks a map as writing it into an empty map would.
pub(crate) fn check(mapped: &Mapped) -> Result<()> {
    let none = HashMap::new();
    let projection = Projection::new(&mapped.map, &mapped.name, &mapped.base, &none, &mut |_| Ok(false))?;
    check_size(&mapped.map)?;
    projection.topics().into_values().try_for_each(|mut it| it.document().map(drop))
}

/// Checks the number of arcs: each of the `n` players of an association gets an arc to each other one, and stores all
/// players.
fn check_size(map: &TopicMap) -> Result<()> {
    let n_arcs = map.associations.iter().map(|it| it.roles.len().pow(2)).fold(0_usize, usize::saturating_add);
    if n_arcs > ARCS_MAX {
        return Err(ConclaveError::rule(format!(
            "the associations of the map make {n_arcs} arcs; at most {ARCS_MAX} are taken at once"
        )));
    }
    Ok(())
}

/// Returns whether a map has no topics.
fn is_empty(txn: &mut Txn<'_>, name: &str) -> Result<bool> {
    let own = key(name, "");
    let high = End::Excluded(after_prefix(&own).into());
    let range = Expr::Range("key".into(), End::Included(own.into()), high);
    Ok(txn.find(&TOPIC, &Query::filter(range).window(0, 1))?.is_empty())
}

/// Returns the ids of stored topics that share an identity with a topic of the map, by the number of the latter.
fn known(txn: &mut Txn<'_>, map: &TopicMap, name: &str) -> Result<BTreeMap<usize, BTreeSet<String>>> {
    let mut out: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for (number, topic) in map.topics.iter().enumerate() {
        let mut ids = BTreeSet::new();
        if let Some(native) = native_id(topic)
            && txn.get(&TOPIC, &key(name, native))?.is_some()
        {
            ids.insert(native.to_owned());
        }
        // A subject identifier that is the item identifier of another topic makes the two topics one.
        let both = [SUBJECT_IDENTIFIER, ITEM_IDENTIFIER];
        let identifiers = topic.subject_identifiers.iter().chain(&topic.item_identifiers);
        let wanted = identifiers.flat_map(|iri| both.map(|scheme| (scheme, iri)));
        let locators = topic.subject_locators.iter().map(|iri| (SUBJECT_LOCATOR, iri));
        for (scheme, iri) in wanted.chain(locators) {
            let found = txn.by_identifier(scheme, &identity(name, iri))?;
            let topics = found.into_iter().filter(|it| it.0 == TOPIC.name);
            ids.extend(topics.filter_map(|(_, id)| Some(id.split_once('/')?.1.to_owned())));
        }
        if !ids.is_empty() {
            out.insert(number, ids);
        }
    }
    Ok(out)
}

/// Returns the map after merging those of its topics that are a single topic in the store; `None` if there are none.
fn one_by_store(map: &TopicMap, known: &BTreeMap<usize, BTreeSet<String>>) -> Option<Builder> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut pairs = Vec::new();
    for (number, ids) in known {
        for id in ids {
            match first.get(id.as_str()) {
                Some(other) => pairs.push((*other, *number)),
                None => {
                    first.insert(id, *number);
                }
            }
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let mut builder = Builder::from(map.clone());
    let topic = |number: usize| TopicId(u32::try_from(number).unwrap_or(u32::MAX));
    pairs.into_iter().for_each(|(one, other)| builder.merge(topic(one), topic(other)));
    Some(builder)
}
