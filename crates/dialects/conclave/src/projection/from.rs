//! Conversion of a topic map into topics.

use std::collections::{BTreeMap, HashMap, HashSet};

use pinakes_topicmap::iri::{self, datatype, model};
use pinakes_topicmap::{Association, Item, Name, Occurrence as Value, Role, TopicId, TopicMap};

use super::to::member_of;
use super::{BASE64, DANGLING, GROUP, MAP, REFERENCE, REIFIES, SOURCE};
use crate::error::Result;
use crate::facts::{
    AssociationFact, Facts, ItemFact, Member, NameFact, OWN, Ref, RoleFact, ValueFact, VariantFact, short,
};
use crate::facts::{joined, text_of};
use crate::model::{Arc, Metadata, Occurrence, Topic, set};
use crate::names::{DEFAULT_SCOPE, LABEL, SELF};
use crate::text::hash;

/// Maximum length, in characters, of a literal that becomes metadata rather than an occurrence.
const METADATA_LEN_MAX: usize = 256;

/// A topic map that is being converted into topics of a stored map.
pub(crate) struct Projection<'m> {
    map: &'m TopicMap,
    name: &'m str,
    /// Id of each topic.
    ids: Vec<String>,
    /// Whether it is a topic in its own right, rather than only a name that others use.
    is_real: Vec<bool>,
    /// Labels of topics that are stored already, by number.
    labels: HashMap<usize, String>,
    /// The type of names without a stated type.
    topic_name: Option<TopicId>,
}

/// Returns the topics that something refers to, and those that play roles.
fn used(map: &TopicMap) -> (HashSet<TopicId>, HashSet<TopicId>) {
    let (mut used, mut playing) = (HashSet::new(), HashSet::new());
    for it in &map.topics {
        for name in &it.names {
            used.insert(name.kind);
            used.extend(name.scope.iter().chain(name.variants.iter().flat_map(|it| &it.scope)));
        }
        for value in &it.occurrences {
            used.insert(value.kind);
            used.extend(&value.scope);
        }
    }
    for it in &map.associations {
        used.insert(it.kind);
        used.extend(&it.scope);
        for role in &it.roles {
            used.insert(role.kind);
            playing.insert(role.player);
        }
    }
    (used, playing)
}

impl<'m> Projection<'m> {
    /// Converts a map into topics of the map `name`. `base` is the IRI of the document: a topic that one of its
    /// fragments identifies gets the fragment as its id. Topics whose numbers are in `given` get those ids; no other
    /// topic gets an id that `is_taken`.
    pub(crate) fn new(
        map: &'m TopicMap,
        name: &'m str,
        base: &str,
        given: &HashMap<usize, String>,
        is_taken: &mut dyn FnMut(&str) -> Result<bool>,
    ) -> Result<Self> {
        let base = iri::document(&iri::decode(base)).to_owned();
        let (used, playing) = used(map);
        let mut taken: HashSet<String> = given.values().cloned().collect();
        let (mut ids, mut is_real) = (Vec::new(), Vec::new());
        for (number, topic) in map.topics.iter().enumerate() {
            let id = TopicId(u32::try_from(number).unwrap_or(u32::MAX));
            let native = native_id(topic);
            let own = topic.subject_identifiers.iter().find(|it| it.starts_with(OWN)).map(|it| short(it));
            let core = topic.subject_identifiers.iter().find_map(|it| it.strip_prefix(model::BASE));
            // A topic that only names something may share its name with a real topic.
            // So may a topic of the data model about which nothing is stated, such as the type of names.
            let is_bare = topic.names.is_empty() && topic.occurrences.is_empty() && !playing.contains(&id);
            let n_identities =
                topic.subject_identifiers.len() + topic.subject_locators.len() + topic.item_identifiers.len();
            let is_core = core.is_some() && is_bare && n_identities == 1 && used.contains(&id);
            is_real.push(native.is_some() || own.is_none() && !is_core);
            if let Some(id) = given.get(&number) {
                ids.push(id.clone());
                continue;
            }
            let fragment = || {
                let mut lists = topic.item_identifiers.iter().chain(&topic.subject_identifiers);
                lists.find_map(|it| it.strip_prefix(&base)?.strip_prefix('#'))
            };
            let other = || {
                let mut lists = topic.subject_identifiers.iter().chain(&topic.subject_locators);
                lists.next().or(topic.item_identifiers.first()).map(String::as_str)
            };
            let found = native.or(own).or(core).or_else(fragment).or_else(other).filter(|it| !it.is_empty());
            let mut id = found.map_or_else(|| format!("topic-{}", number + 1), str::to_owned);
            id.retain(|it| !it.is_control());
            if native.is_none() && is_real[number] {
                let wanted = id.clone();
                let mut n_taken = 1;
                while taken.contains(&id) || is_taken(&id)? {
                    n_taken += 1;
                    id = format!("{wanted}-{n_taken}");
                }
            }
            if is_real[number] {
                taken.insert(id.clone());
            }
            ids.push(id);
        }
        let topic_name = map.by_subject_identifier(model::TOPIC_NAME);
        Ok(Projection { map, name, ids, is_real, labels: HashMap::new(), topic_name })
    }

    /// Sets the label of a topic that is stored already: arcs that point at it carry that one.
    pub(crate) fn set_label(&mut self, number: usize, label: String) {
        self.labels.insert(number, label);
    }

    fn id(&self, topic: TopicId) -> &str {
        &self.ids[topic.index()]
    }

    fn is_real(&self, topic: TopicId) -> bool {
        self.is_real[topic.index()]
    }

    fn refer(&self, topic: TopicId) -> Ref {
        let subject = self.map.topic(topic).subject_identifiers.first();
        match subject {
            Some(si) if !self.is_real(topic) && !si.starts_with(DANGLING) => Ref::Subject { si: si.clone() },
            _ => Ref::Topic(self.id(topic).to_owned()),
        }
    }

    fn refer_all(&self, topics: &[TopicId]) -> Vec<Ref> {
        let mut out: Vec<Ref> = topics.iter().map(|&it| self.refer(it)).collect();
        out.sort();
        out
    }

    /// Returns the facts of an item. A reifier that is only a generated name is left out: it is read with the statement
    /// that it reifies.
    fn item(&self, item: &Item) -> ItemFact {
        let reifier = item.reifier.filter(|&it| self.is_real(it)).map(|it| self.refer(it));
        ItemFact { reifier, identifiers: item.item_identifiers.clone() }
    }

    /// Returns the statements about the map itself.
    pub(crate) fn of_map(&self) -> ItemFact {
        self.item(&self.map.item)
    }

    /// Returns whether a statement is of a kind that native topics produce.
    fn is_native(&self, kind: TopicId, themes: &[TopicId], item: &ItemFact) -> bool {
        let is_own = |it: TopicId| {
            !self.is_real(it) && self.map.topic(it).subject_identifiers.iter().any(|it| it.starts_with(OWN))
        };
        (is_own(kind) || Some(kind) == self.topic_name)
            && themes.iter().all(|&it| is_own(it))
            && *item == ItemFact::default()
    }

    fn scope(&self, themes: &[TopicId]) -> (String, Option<String>) {
        let mut behaviour = None;
        let mut parts: Vec<&str> = Vec::new();
        for &theme in themes {
            let own = self.map.topic(theme).subject_identifiers.iter();
            match own.clone().find_map(|it| it.strip_prefix("urn:conclave:behaviour:")) {
                Some(name) => behaviour = Some(name.to_owned()),
                None => parts.push(self.id(theme)),
            }
        }
        (joined(parts.into_iter()), behaviour)
    }

    /// Returns the topics by their numbers in the map.
    pub(crate) fn topics(&self) -> BTreeMap<usize, Topic> {
        let mut topics: BTreeMap<usize, Topic> = BTreeMap::new();
        for (number, it) in self.map.topics.iter().enumerate().filter(|it| self.is_real[it.0]) {
            let mut topic = Topic::new(self.name, &self.ids[number]);
            topic.subject_identifiers.clone_from(&it.subject_identifiers);
            topic.subject_locators.clone_from(&it.subject_locators);
            topic.item_identifiers =
                it.item_identifiers.iter().filter(|it| !it.starts_with(MAP)).cloned().collect();
            let is_foreign = native_id(it).is_none();
            let mut facts = Facts { is_foreign, ..Facts::default() };
            topic.metadata = self.metadata(number, &mut facts);
            topic.occurrences = self.occurrences(number, &mut facts);
            if facts != Facts::default() {
                topic.facts = Some(Box::new(facts));
            }
            topics.insert(number, topic);
        }
        let mut labels: HashMap<usize, String> =
            topics.iter().map(|(at, it)| (*at, it.label_in(DEFAULT_SCOPE).to_owned())).collect();
        labels.extend(self.labels.iter().map(|(at, it)| (*at, it.clone())));
        for it in &self.map.associations {
            self.association(it, &labels, &mut topics);
        }
        self.reified(&mut topics);
        topics
    }

    /// Returns the metadata of a topic: its names, and its short literals.
    fn metadata(&self, topic: usize, facts: &mut Facts) -> Vec<Metadata> {
        let it = &self.map.topics[topic];
        let mut out = Gathered::default();
        let default = self.topic_name;
        let mut names: Vec<&Name> = it.names.iter().collect();
        names.sort_by(|one, other| {
            (one.scope.len(), Some(one.kind) != default, &one.value).cmp(&(
                other.scope.len(),
                Some(other.kind) != default,
                &other.value,
            ))
        });
        for name in names {
            let (scope, _) = self.scope(&name.scope);
            let ty = (Some(name.kind) != default).then(|| self.refer(name.kind));
            let wanted = ty.as_ref().map_or(LABEL, text_of);
            let at = out.add(&scope, wanted, &name.value);
            let mut variants = Vec::new();
            for variant in &name.variants {
                let is_sort = variant.scope.iter().any(|it| {
                    let own = &self.map.topic(*it).subject_identifiers;
                    own.iter().any(|it| it == model::SORT || it.ends_with("core.xtm#sort"))
                });
                variants.push(VariantFact {
                    value: variant.value.clone(),
                    datatype: variant.datatype.clone(),
                    scope: self.refer_all(&variant.scope),
                    at: is_sort.then(|| out.add(&scope, "sort", &variant.value)),
                    item: self.item(&variant.item),
                });
            }
            let item = self.item(&name.item);
            let is_label = matches!(&at, Member::Metadata { name, .. } if name == LABEL);
            let is_plain = is_label && variants.is_empty() && self.is_native(name.kind, &name.scope, &item);
            if !is_plain {
                facts.names.push(NameFact { at, ty, scope: self.refer_all(&name.scope), variants, item });
            }
        }
        for value in &it.occurrences {
            let (scope, behaviour) = self.scope(&value.scope);
            if behaviour.is_none() && self.is_metadata(value) {
                let at = out.add(&scope, self.id(value.kind), &value.value);
                self.value_fact(value, at, facts);
            }
        }
        out.list
    }

    fn value_fact(&self, value: &Value, at: Member, facts: &mut Facts) {
        let item = self.item(&value.item);
        if !self.is_native(value.kind, &value.scope, &item) {
            facts.values.push(ValueFact {
                at,
                ty: self.refer(value.kind),
                datatype: value.datatype.clone(),
                scope: self.refer_all(&value.scope),
                item,
            });
        }
    }

    fn is_metadata(&self, it: &Value) -> bool {
        let own = &self.map.topic(it.kind).subject_identifiers;
        own.iter().any(|it| it.starts_with("urn:conclave:metadata:"))
            || it.datatype != datatype::ANY_URI
                && it.value.chars().count() <= METADATA_LEN_MAX
                && !it.value.contains('\n')
    }

    fn occurrences(&self, topic: usize, facts: &mut Facts) -> Vec<Occurrence> {
        let mut out: Vec<Occurrence> = Vec::new();
        let mut taken: HashSet<Member> = HashSet::new();
        for value in &self.map.topics[topic].occurrences {
            let (scope, behaviour) = self.scope(&value.scope);
            if behaviour.is_none() && self.is_metadata(value) {
                continue;
            }
            let role = self.id(value.kind).to_owned();
            let (is_uri, is_reference) = (value.datatype == datatype::ANY_URI, value.datatype == REFERENCE);
            let behaviour = behaviour.unwrap_or_else(|| if is_uri { "url" } else { "text" }.to_owned());
            let mut it = Occurrence {
                scope,
                role,
                behaviour,
                reference: SELF.to_owned(),
                data: String::new(),
                base64: None,
            };
            if is_uri || is_reference {
                it.reference.clone_from(&value.value);
                let beside = value.item.reifier.map(|it| self.map.topic(it));
                let is_ours = value.item.reifier.is_some_and(|it| !self.is_real(it));
                if let Some(data) = beside.filter(|_| is_ours).and_then(|it| it.occurrences.first()) {
                    put_data(&mut it, data);
                }
            } else {
                put_data(&mut it, value);
            }
            // Two texts of one role would have the same key, so the second gets a number.
            let mut number = 1;
            let role = it.role.clone();
            while !taken.insert(member_of(&it)) {
                number += 1;
                it.role = format!("{role}-{number}");
            }
            self.value_fact(value, member_of(&it), facts);
            out.push(it);
        }
        out
    }

    fn association(
        &self,
        it: &Association,
        labels: &HashMap<usize, String>,
        topics: &mut BTreeMap<usize, Topic>,
    ) {
        let is_source =
            |role: &Role| self.map.topic(role.kind).subject_identifiers.iter().any(|it| it == SOURCE);
        let (scope, _) = self.scope(&it.scope);
        let ty = self.id(it.kind).to_owned();
        let own = format!("{OWN}arc:");
        let known =
            it.item.item_identifiers.iter().find_map(|it| Some(it.strip_prefix(&own)?.split_once(':')?.1));
        if let ([one, other], Some(id)) = (it.roles.as_slice(), known) {
            let (from, to) = if is_source(one) { (one, other) } else { (other, one) };
            let own = &mut Facts::default();
            let metadata = it.item.reifier.map_or_else(Vec::new, |it| self.metadata(it.index(), own));
            let arc = Arc {
                id: id.to_owned(),
                ty,
                scope,
                reference: self.id(to.player).to_owned(),
                role: self.id(to.kind).to_owned(),
                metadata,
            };
            if let Some(topic) = topics.get_mut(&from.player.index()) {
                topic.arcs.push(arc);
            }
            return;
        }
        let mut roles: Vec<&Role> = it.roles.iter().collect();
        roles.sort_by_key(|it| (self.id(it.kind), self.id(it.player)));
        let mut fact = AssociationFact {
            ty: self.refer(it.kind),
            scope: self.refer_all(&it.scope),
            roles: roles
                .iter()
                .map(|it| RoleFact {
                    ty: self.refer(it.kind),
                    player: self.refer(it.player),
                    item: self.item(&it.item),
                })
                .collect(),
            at: None,
            item: self.item(&it.item),
        };
        if let [role] = roles.as_slice() {
            if let Some(topic) = topics.get_mut(&role.player.index()) {
                let mut list = Gathered::of(std::mem::take(&mut topic.metadata));
                fact.at = Some(list.add(&scope, &ty, self.id(role.kind)));
                topic.metadata = list.list;
                topic.facts.get_or_insert_default().associations.push(fact);
            }
            return;
        }
        // The id of an arc is derived from what the association states: importing it again gives the same arc, and
        // associations of different maps get different ids.
        let said: Vec<(&str, &str)> =
            roles.iter().map(|role| (self.id(role.kind), self.id(role.player))).collect();
        let number = format!("{:016x}", hash(format!("{ty}\u{1F}{scope}\u{1F}{said:?}").as_bytes()));
        let mut players: Vec<usize> = roles.iter().map(|it| it.player.index()).collect();
        players.sort_unstable();
        players.dedup();
        for player in players {
            if let Some(topic) = topics.get_mut(&player) {
                topic.facts.get_or_insert_default().associations.push(fact.clone());
            }
        }
        for (at, from) in roles.iter().enumerate() {
            for (place, to) in roles.iter().enumerate().filter(|(place, _)| *place != at) {
                let Some(topic) = topics.get_mut(&from.player.index()) else { continue };
                let mut arc = Arc {
                    id: format!("{}~{number}.{at}.{place}", topic.id),
                    ty: ty.clone(),
                    scope: scope.clone(),
                    reference: self.id(to.player).to_owned(),
                    role: self.id(to.kind).to_owned(),
                    metadata: Vec::new(),
                };
                if let Some(label) = labels.get(&to.player.index()).filter(|it| **it != arc.reference) {
                    set(&mut arc.metadata, DEFAULT_SCOPE, LABEL, label.clone());
                }
                if it.roles.len() > 2 {
                    set(&mut arc.metadata, DEFAULT_SCOPE, GROUP, number.clone());
                }
                topic.arcs.push(arc);
            }
        }
    }

    /// Notes on each reifying topic what it reifies.
    fn reified(&self, topics: &mut BTreeMap<usize, Topic>) {
        let mut say = |item: &Item, what: &dyn Fn() -> String| {
            let topic =
                item.reifier.filter(|&it| self.is_real(it)).and_then(|it| topics.get_mut(&it.index()));
            if let Some(topic) = topic {
                topic.set(DEFAULT_SCOPE, REIFIES, what());
            }
        };
        say(&self.map.item, &|| "topic map".to_owned());
        for (number, it) in self.map.topics.iter().enumerate() {
            let id = &self.ids[number];
            for name in &it.names {
                say(&name.item, &|| format!("name {} of {id}", name.value));
                for variant in &name.variants {
                    say(&variant.item, &|| format!("variant {} of {id}", variant.value));
                }
            }
            for value in &it.occurrences {
                say(&value.item, &|| format!("{} of {id}", self.id(value.kind)));
            }
        }
        for it in &self.map.associations {
            let players = || -> Vec<&str> { it.roles.iter().map(|it| self.id(it.player)).collect() };
            say(&it.item, &|| format!("{} of {}", self.id(it.kind), players().join(", ")));
            for role in &it.roles {
                let what = || format!("{} in {}", self.id(role.player), self.id(it.kind));
                say(&role.item, &what);
            }
        }
    }
}

/// Returns the id of a topic that was exported by Conclave.
pub(crate) fn native_id(topic: &pinakes_topicmap::Topic) -> Option<&str> {
    topic.item_identifiers.iter().find_map(|it| Some(it.strip_prefix(MAP)?.split_once('#')?.1))
}

fn put_data(it: &mut Occurrence, value: &Value) {
    match value.datatype.as_str() {
        BASE64 => it.base64 = Some(value.value.clone()),
        _ => it.data.clone_from(&value.value),
    }
}

/// Metadata being collected.
#[derive(Default)]
struct Gathered {
    list: Vec<Metadata>,
    /// Values by scope and name.
    values: HashMap<(String, String), String>,
}

impl Gathered {
    fn of(list: Vec<Metadata>) -> Self {
        let of = |it: &Metadata| ((it.scope.clone(), it.name.clone()), it.value.clone());
        Self { values: list.iter().map(of).collect(), list }
    }

    /// Adds a value; a different value of the same name gets a numbered name. Returns the member that holds it.
    fn add(&mut self, scope: &str, name: &str, value: &str) -> Member {
        let mut wanted = (scope.to_owned(), name.to_owned());
        let mut number = 1;
        while let Some(known) = self.values.get(&wanted) {
            if known == value {
                return Member::Metadata { scope: wanted.0, name: wanted.1 };
            }
            number += 1;
            wanted.1 = format!("{name}-{number}");
        }
        self.values.insert(wanted.clone(), value.to_owned());
        let (scope, name) = wanted;
        self.list.push(Metadata { scope: scope.clone(), name: name.clone(), value: value.to_owned() });
        Member::Metadata { scope, name }
    }
}
