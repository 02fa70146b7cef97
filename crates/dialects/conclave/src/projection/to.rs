//! Conversion of topics into a topic map.

use std::collections::{BTreeSet, HashMap, HashSet};

use pinakes_store::View;
use pinakes_topicmap::IdentityKind::{ItemIdentifier, SubjectIdentifier, SubjectLocator};
use pinakes_topicmap::iri::{self, datatype, model};
use pinakes_topicmap::{
    Association, Builder, Conflict, Item, Name, Occurrence as Value, Role, TopicId, TopicMap, Variant,
};

use super::{BASE64, DANGLING, DATA, GROUP, MAP, REFERENCE, REIFIES, SOURCE};
use crate::facts::{AssociationFact, Facts, ItemFact, Member, OWN, OfMap, Ref, joined, text_of};
use crate::kinds::TOPIC;
use crate::model::{Arc, Metadata, Occurrence, Topic, key};
use crate::names::{DEFAULT_SCOPE, LABEL, SELF};

/// Maximum number of referenced topics whose identities are looked up for a partial export.
const BESIDE_MAX: usize = 10_000;

/// Converts all topics of a map into a topic map; `of_map` holds the statements about the map itself.
///
/// # Errors
/// One topic stands for two subjects, or two statements have the same item identifier.
pub fn to_map(topics: &[Topic], of_map: &OfMap) -> Result<TopicMap, Conflict> {
    part_to_map(topics, &[], of_map)
}

/// Converts some topics of a map into a topic map. Topics that they refer to outside of this set get their identities
/// from `beside`.
pub(crate) fn part_to_map(topics: &[Topic], beside: &[Topic], of_map: &OfMap) -> Result<TopicMap, Conflict> {
    let mut writer = Writer {
        builder: Builder::new(),
        known: HashMap::new(),
        beside: beside.iter().map(|it| (it.id.as_str(), it)).collect(),
        ids: HashMap::new(),
    };
    for it in topics {
        writer.introduce(it);
    }
    let explained = writer.associations(topics);
    for (at, it) in topics.iter().enumerate() {
        writer.topic(it, &explained[at]);
    }
    let item = writer.item(&of_map.0);
    if let Some(reifier) = item.reifier {
        writer.builder.reify_map(reifier);
    }
    item.item_identifiers.into_iter().for_each(|it| writer.builder.identify_map(it));
    writer.builder.finish()
}

/// Returns the topics outside of `topics` that their facts refer to, for a partial export. Of very many only the first
/// are returned.
pub(crate) fn beside(view: &mut View<'_>, map: &str, topics: &[Topic]) -> crate::error::Result<Vec<Topic>> {
    let there: HashSet<&str> = topics.iter().map(|it| it.id.as_str()).collect();
    let facts = topics.iter().filter_map(|it| it.facts.as_deref());
    let mut wanted: BTreeSet<&str> = facts.flat_map(Facts::ids).collect();
    wanted.retain(|it| !there.contains(it));
    let keys: Vec<String> = wanted.into_iter().take(BESIDE_MAX).map(|it| key(map, it)).collect();
    let records = view.get_many(&TOPIC, &keys)?.into_iter().flatten();
    records.map(|it| Topic::stored(&it.body)).collect()
}

struct Writer<'t> {
    builder: Builder,
    /// The exported topics, by current and by former ids.
    known: HashMap<&'t str, TopicId>,
    /// Topics of which only the identities are written, when they are referred to.
    beside: HashMap<&'t str, &'t Topic>,
    /// Former ids to current ones.
    ids: HashMap<&'t str, &'t str>,
}

/// Type, role, scope and reference of an arc.
type Said = (String, String, String, String);

/// Members of a topic that are expressed by its facts.
#[derive(Default)]
struct Explained {
    arcs: HashSet<usize>,
    members: HashSet<Member>,
}

impl<'t> Writer<'t> {
    fn introduce(&mut self, it: &'t Topic) {
        let topic = self.builder.add_topic();
        let facts = it.facts.as_deref();
        let lists = [
            (SubjectIdentifier, &it.subject_identifiers),
            (SubjectLocator, &it.subject_locators),
            (ItemIdentifier, &it.item_identifiers),
        ];
        let has_identity = lists.iter().any(|it| !it.1.is_empty());
        if !has_identity || !facts.is_some_and(|it| it.is_foreign) {
            self.builder.identify(topic, ItemIdentifier, &format!("{MAP}{}#{}", it.map, it.id));
        }
        for (kind, list) in lists {
            list.iter().for_each(|iri| self.builder.identify(topic, kind, iri));
        }
        self.known.insert(&it.id, topic);
        for former in facts.into_iter().flat_map(|it| &it.former_ids) {
            self.known.entry(former).or_insert(topic);
            self.ids.entry(former).or_insert(&it.id);
        }
    }

    fn own(&mut self, kind: &str, name: &str) -> TopicId {
        self.builder.subject(&format!("{OWN}{kind}:{name}"))
    }

    fn named(&mut self, id: &str) -> TopicId {
        match self.known.get(id) {
            Some(&topic) => topic,
            // Pointed at, but does not exist.
            None => self.builder.subject(&format!("{DANGLING}{id}")),
        }
    }

    fn refer(&mut self, to: &Ref) -> TopicId {
        match to {
            Ref::Topic(id) => {
                if !self.known.contains_key(id.as_str())
                    && let Some(topic) = self.beside.remove(id.as_str())
                {
                    self.introduce(topic);
                }
                self.named(id)
            }
            Ref::Subject { si } => self.builder.subject(si),
        }
    }

    fn refer_all(&mut self, to: &[Ref]) -> Vec<TopicId> {
        to.iter().map(|it| self.refer(it)).collect()
    }

    fn item(&mut self, fact: &ItemFact) -> Item {
        let reifier = fact.reifier.as_ref().map(|it| self.refer(it));
        Item { reifier, item_identifiers: fact.identifiers.clone() }
    }

    /// Returns the themes of a scope: its parts, if joining them in order gives the scope again.
    fn themes(&mut self, scope: &str) -> Vec<TopicId> {
        if scope == DEFAULT_SCOPE {
            return Vec::new();
        }
        let parts: Vec<&str> = scope.split("::").collect();
        let is_ordered = parts.windows(2).all(|it| it[0] < it[1]) && parts.iter().all(|it| !it.is_empty());
        let parts = if is_ordered { parts } else { vec![scope] };
        parts.into_iter().map(|it| self.own("scope", it)).collect()
    }

    /// Returns the current id of a topic.
    fn current<'i>(&'i self, id: &'i str) -> &'i str {
        self.ids.get(id).copied().unwrap_or(id)
    }

    /// Writes the associations all of whose arcs exist, as far as their topics are exported. Returns which arcs those
    /// are.
    fn associations(&mut self, topics: &'t [Topic]) -> Vec<Explained> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut arcs: Vec<HashMap<Said, Vec<usize>>> = Vec::with_capacity(topics.len());
        for (at, topic) in topics.iter().enumerate() {
            places.insert(&topic.id, at);
            let mut own: HashMap<Said, Vec<usize>> = HashMap::new();
            if topic.facts.as_ref().is_some_and(|it| !it.associations.is_empty()) {
                let plain = topic.arcs.iter().enumerate().filter(|it| is_plain(it.1));
                for (number, it) in plain {
                    let reference = self.current(&it.reference).to_owned();
                    let said = (it.ty.clone(), it.role.clone(), it.scope.clone(), reference);
                    own.entry(said).or_default().push(number);
                }
            }
            arcs.push(own);
        }
        let mut explained: Vec<Explained> = topics.iter().map(|_| Explained::default()).collect();
        for (at, topic) in topics.iter().enumerate() {
            for fact in topic.facts.iter().flat_map(|it| &it.associations) {
                let is_there = match &fact.at {
                    Some(member) => {
                        let is_there = matches!(member, Member::Metadata { scope, name } if topic.get(scope, name).is_some());
                        explained[at].members.extend(is_there.then(|| member.clone()));
                        is_there
                    }
                    None => match self.arcs_of(fact, &places, &arcs) {
                        Some(found) => {
                            found.into_iter().for_each(|(owner, arc)| {
                                explained[owner].arcs.insert(arc);
                            });
                            true
                        }
                        None => false,
                    },
                };
                if is_there {
                    self.association(fact);
                }
            }
        }
        explained
    }

    /// Returns the arcs of an association, by owner and position. `None` if one of them was removed or changed.
    fn arcs_of(
        &self,
        fact: &AssociationFact,
        places: &HashMap<&str, usize>,
        arcs: &[HashMap<Said, Vec<usize>>],
    ) -> Option<Vec<(usize, usize)>> {
        let (ty, scope) = (text_of(&fact.ty), joined(fact.scope.iter().map(text_of)));
        let mut out = Vec::new();
        for (at, from) in fact.roles.iter().enumerate() {
            let Ref::Topic(player) = &from.player else { continue };
            let Some(&owner) = places.get(self.current(player)) else { continue };
            for (_, to) in fact.roles.iter().enumerate().filter(|it| it.0 != at) {
                let reference = self.current(text_of(&to.player)).to_owned();
                let said = (ty.to_owned(), text_of(&to.ty).to_owned(), scope.clone(), reference);
                let found = arcs[owner].get(&said)?;
                out.extend(found.iter().map(|&it| (owner, it)));
            }
        }
        (!out.is_empty()).then_some(out)
    }

    fn association(&mut self, fact: &AssociationFact) {
        let kind = self.refer(&fact.ty);
        let scope = self.refer_all(&fact.scope);
        let mut roles = Vec::with_capacity(fact.roles.len());
        for it in &fact.roles {
            let (kind, player) = (self.refer(&it.ty), self.refer(&it.player));
            roles.push(Role { kind, player, item: self.item(&it.item) });
        }
        let item = self.item(&fact.item);
        // Every player adds it; duplicates are removed at the end.
        self.builder.add_association(Association { kind, scope, roles, item });
    }

    fn topic(&mut self, it: &Topic, explained: &Explained) {
        let topic = self.named(&it.id);
        let mut members = explained.members.clone();
        if let Some(facts) = &it.facts {
            self.facts(topic, it, facts, &mut members);
        }
        let is_reifier = it.facts.as_ref().is_some_and(|it| it.is_foreign);
        let metadata = it.metadata.iter().filter(|it| {
            let member = Member::Metadata { scope: it.scope.clone(), name: it.name.clone() };
            !(members.contains(&member) || is_reifier && it.name.starts_with(REIFIES))
        });
        self.metadata(topic, metadata);
        for (number, occurrence) in it.occurrences.iter().enumerate() {
            if !members.contains(&member_of(occurrence)) {
                self.occurrence(topic, occurrence, &format!("{}:{number}", it.key));
            }
        }
        for (_, arc) in it.arcs.iter().enumerate().filter(|it| !explained.arcs.contains(&it.0)) {
            let (kind, role) = (self.own("type", &arc.ty), self.own("role", &arc.role));
            let source = self.builder.subject(SOURCE);
            let player = self.named(&arc.reference);
            let role_of = |kind, player| Role { kind, player, item: Item::default() };
            let mut item =
                Item { reifier: None, item_identifiers: vec![format!("{OWN}arc:{}:{}", it.map, arc.id)] };
            if !arc.metadata.is_empty() {
                let reifier = self.own("arc-metadata", &format!("{}:{}", it.map, arc.id));
                self.metadata(reifier, &arc.metadata);
                item.reifier = Some(reifier);
            }
            let roles = vec![role_of(source, topic), role_of(role, player)];
            let scope = self.themes(&arc.scope);
            self.builder.add_association(Association { kind, scope, roles, item });
        }
    }

    /// Writes the names and occurrences whose members still exist, with the current values of those.
    fn facts(&mut self, topic: TopicId, it: &Topic, facts: &Facts, members: &mut HashSet<Member>) {
        let values = values_of(it);
        for fact in &facts.names {
            let Some(&value) = values.get(&fact.at) else { continue };
            let kind = match &fact.ty {
                Some(ty) => self.refer(ty),
                None => self.builder.subject(model::TOPIC_NAME),
            };
            let mut name = Name::new(value, kind);
            name.scope = self.refer_all(&fact.scope);
            name.item = self.item(&fact.item);
            for variant in &fact.variants {
                if let Some(at) = &variant.at
                    && values.get(at).is_some_and(|it| *it == variant.value)
                {
                    members.insert(at.clone());
                }
                name.variants.push(Variant {
                    value: variant.value.clone(),
                    datatype: variant.datatype.clone(),
                    scope: self.refer_all(&variant.scope),
                    item: self.item(&variant.item),
                });
            }
            self.builder.add_name(topic, name);
            members.insert(fact.at.clone());
        }
        for fact in &facts.values {
            let Some(&value) = values.get(&fact.at) else { continue };
            let kind = self.refer(&fact.ty);
            let mut occurrence = Value::new(kind, value, &fact.datatype);
            occurrence.scope = self.refer_all(&fact.scope);
            occurrence.item = self.item(&fact.item);
            self.builder.add_occurrence(topic, occurrence);
            members.insert(fact.at.clone());
        }
    }

    fn metadata<'m>(&mut self, topic: TopicId, list: impl IntoIterator<Item = &'m Metadata>) {
        for it in list {
            let scope = self.themes(&it.scope);
            if it.name == LABEL {
                let kind = self.builder.subject(model::TOPIC_NAME);
                self.builder.add_name(topic, Name { scope, ..Name::new(&it.value, kind) });
            } else {
                let kind = self.own("metadata", &it.name);
                self.builder
                    .add_occurrence(topic, Value { scope, ..Value::new(kind, &it.value, datatype::STRING) });
            }
        }
    }

    fn occurrence(&mut self, topic: TopicId, it: &Occurrence, key: &str) {
        let kind = self.own("occurrence", &it.role);
        let mut scope = self.themes(&it.scope);
        scope.push(self.own("behaviour", &it.behaviour));
        let data = match &it.base64 {
            Some(data) => (data.clone(), BASE64),
            None => (it.data.clone(), datatype::STRING),
        };
        let is_own = it.reference == SELF;
        let is_iri = iri::scheme(&it.reference).is_some() && iri::decode(&it.reference) == it.reference;
        let (value, kind_of_value) = match (is_own, is_iri) {
            (true, _) => data.clone(),
            (false, true) => (it.reference.clone(), datatype::ANY_URI),
            (false, false) => (it.reference.clone(), REFERENCE),
        };
        let mut item = Item::default();
        if !is_own && !it.is_empty() {
            let reifier = self.own("occurrence-data", key);
            let beside = self.builder.subject(DATA);
            self.builder.add_occurrence(reifier, Value::new(beside, data.0, data.1));
            item.reifier = Some(reifier);
        }
        let occurrence = Value { scope, item, ..Value::new(kind, value, kind_of_value) };
        self.builder.add_occurrence(topic, occurrence);
    }
}

/// Returns whether an arc has no metadata beyond what an association expresses.
fn is_plain(arc: &Arc) -> bool {
    arc.metadata.iter().all(|it| it.name == LABEL || it.name == GROUP)
}

/// Returns the key of an occurrence as a member.
pub(super) fn member_of(it: &Occurrence) -> Member {
    let [scope, role, behaviour, reference] = it.key();
    Member::Occurrence { scope, role, behaviour, reference }
}

/// Returns the values of a topic's members.
fn values_of(topic: &Topic) -> HashMap<Member, &str> {
    let mut out = HashMap::new();
    for it in &topic.metadata {
        let member = Member::Metadata { scope: it.scope.clone(), name: it.name.clone() };
        out.insert(member, it.value.as_str());
    }
    for it in topic.occurrences.iter().filter(|it| it.base64.is_none()) {
        let value = if it.reference == SELF { &it.data } else { &it.reference };
        out.insert(member_of(it), value.as_str());
    }
    out
}
