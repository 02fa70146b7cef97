//! Between topics and the topic maps data model (section 16 of the contract).
//!
//! What Conclave knows and the model does not has identifiers of its own, beginning with `urn:conclave:`. Reading back
//! what was written gives the same topics. Of maps from elsewhere the projection keeps identities, names, occurrences and
//! associations; variants other than those for sorting, and who stands for what, are not kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pinakes_topicmap::IdentityKind::{ItemIdentifier, SubjectIdentifier, SubjectLocator};
use pinakes_topicmap::iri::{self, datatype, model};
use pinakes_topicmap::{
    Association, Builder, Conflict, Item, Name, Occurrence as Value, Role, TopicId, TopicMap,
};

use crate::model::{Arc, DEFAULT_SCOPE, LABEL, Metadata, Occurrence, SELF, Topic, set};
use crate::text::hash;

const OWN: &str = "urn:conclave:";
const MAP: &str = "urn:conclave:map:";
const SOURCE: &str = "urn:conclave:source";
const DATA: &str = "urn:conclave:data";
const BASE64: &str = "urn:conclave:base64";
const REFERENCE: &str = "urn:conclave:reference";
/// Longest literal that becomes metadata rather than an occurrence, in characters.
const METADATA_LEN_MAX: usize = 256;

/// Topics as a topic map.
pub fn to_map(topics: &[Topic]) -> Result<TopicMap, Conflict> {
    let known: BTreeSet<&str> = topics.iter().map(|it| it.id.as_str()).collect();
    let mut writer = Writer { builder: Builder::new(), known };
    for it in topics {
        writer.topic(it);
    }
    writer.builder.finish()
}

struct Writer<'t> {
    builder: Builder,
    known: BTreeSet<&'t str>,
}

impl Writer<'_> {
    fn own(&mut self, kind: &str, name: &str) -> TopicId {
        self.builder.subject(&format!("{OWN}{kind}:{name}"))
    }

    fn named(&mut self, map: &str, id: &str) -> TopicId {
        if self.known.contains(id) {
            return self.builder.topic(ItemIdentifier, &format!("{MAP}{map}#{id}"));
        }
        // Pointed at, but not there.
        self.own("dangling", id)
    }

    /// Themes of a scope: its parts, where joining them in order gives it back.
    fn themes(&mut self, scope: &str) -> Vec<TopicId> {
        if scope == DEFAULT_SCOPE {
            return Vec::new();
        }
        let parts: Vec<&str> = scope.split("::").collect();
        let is_ordered = parts.windows(2).all(|it| it[0] < it[1]) && parts.iter().all(|it| !it.is_empty());
        let parts = if is_ordered { parts } else { vec![scope] };
        parts.into_iter().map(|it| self.own("scope", it)).collect()
    }

    fn topic(&mut self, it: &Topic) {
        let topic = self.named(&it.map, &it.id);
        for (kind, list) in [
            (SubjectIdentifier, &it.subject_identifiers),
            (SubjectLocator, &it.subject_locators),
            (ItemIdentifier, &it.item_identifiers),
        ] {
            for iri in list {
                self.builder.identify(topic, kind, iri);
            }
        }
        self.metadata(topic, &it.metadata);
        for (number, occurrence) in it.occurrences.iter().enumerate() {
            self.occurrence(topic, occurrence, &format!("{}:{number}", it.key));
        }
        for arc in &it.arcs {
            let (kind, role) = (self.own("type", &arc.ty), self.own("role", &arc.role));
            let source = self.builder.subject(SOURCE);
            let player = self.named(&it.map, &arc.reference);
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

    fn metadata(&mut self, topic: TopicId, list: &[Metadata]) {
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

/// A topic map as topics of the map `name`. `base` is the IRI of the document: what its fragments name keeps that name.
pub fn from_map(map: &TopicMap, name: &str, base: &str) -> Vec<Topic> {
    let reader = Reader::new(map, name, base);
    reader.read()
}

struct Reader<'m> {
    map: &'m TopicMap,
    name: &'m str,
    /// Id of each topic, and whether it is one of its own rather than a name of something.
    ids: Vec<String>,
    is_real: Vec<bool>,
    /// The type of names that state none.
    topic_name: Option<TopicId>,
}

impl<'m> Reader<'m> {
    fn new(map: &'m TopicMap, name: &'m str, base: &str) -> Self {
        let base = iri::document(&iri::decode(base)).to_owned();
        let mut taken: HashMap<String, usize> = HashMap::new();
        let (mut ids, mut is_real) = (Vec::new(), Vec::new());
        for (number, topic) in map.topics.iter().enumerate() {
            let native =
                topic.item_identifiers.iter().find_map(|it| Some(it.strip_prefix(MAP)?.split_once('#')?.1));
            let own = topic.subject_identifiers.iter().find_map(|it| it.strip_prefix(OWN));
            let named = own.map(|it| it.split_once(':').map_or(it, |it| it.1));
            let core = topic.subject_identifiers.iter().find_map(|it| it.strip_prefix(model::BASE));
            let fragment = || {
                let mut lists = topic.item_identifiers.iter().chain(&topic.subject_identifiers);
                lists.find_map(|it| it.strip_prefix(&base)?.strip_prefix('#'))
            };
            let other = || {
                let mut lists = topic.subject_identifiers.iter().chain(&topic.subject_locators);
                lists.next().or(topic.item_identifiers.first()).map(String::as_str)
            };
            let found =
                native.or(named).or(core).or_else(fragment).or_else(other).filter(|it| !it.is_empty());
            let mut id = found.map_or_else(|| format!("topic-{}", number + 1), str::to_owned);
            id.retain(|it| !it.is_control());
            // What only names something may share its name with a topic.
            // So may a topic of the model itself of which nothing is said: it is the type of names, say.
            let is_bare = topic.names.is_empty() && topic.occurrences.is_empty();
            let n_identities =
                topic.subject_identifiers.len() + topic.subject_locators.len() + topic.item_identifiers.len();
            let is_own =
                native.is_none() && (own.is_some() || core.is_some() && is_bare && n_identities == 1);
            if !is_own {
                let n_taken = taken.entry(id.clone()).or_insert(0);
                *n_taken += 1;
                if *n_taken > 1 {
                    id = format!("{id}-{n_taken}");
                }
            }
            is_real.push(!is_own);
            ids.push(id);
        }
        Reader { map, name, ids, is_real, topic_name: map.by_subject_identifier(model::TOPIC_NAME) }
    }

    fn id(&self, topic: TopicId) -> &str {
        &self.ids[topic.index()]
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
        parts.sort_unstable();
        let scope = if parts.is_empty() { DEFAULT_SCOPE.to_owned() } else { parts.join("::") };
        (scope, behaviour)
    }

    fn read(self) -> Vec<Topic> {
        let mut topics: BTreeMap<usize, Topic> = BTreeMap::new();
        for (number, it) in self.map.topics.iter().enumerate().filter(|it| self.is_real[it.0]) {
            let mut topic = Topic::new(self.name, &self.ids[number]);
            topic.subject_identifiers.clone_from(&it.subject_identifiers);
            topic.subject_locators.clone_from(&it.subject_locators);
            topic.item_identifiers =
                it.item_identifiers.iter().filter(|it| !it.starts_with(MAP)).cloned().collect();
            topic.metadata = self.metadata(number);
            topic.occurrences = self.occurrences(number);
            topics.insert(number, topic);
        }
        let labels: HashMap<usize, String> =
            topics.iter().map(|(at, it)| (*at, it.label_in(DEFAULT_SCOPE).to_owned())).collect();
        for it in &self.map.associations {
            self.association(it, &labels, &mut topics);
        }
        topics.into_values().collect()
    }

    /// Names, and literals that are short.
    fn metadata(&self, topic: usize) -> Vec<Metadata> {
        let it = &self.map.topics[topic];
        let mut out = Vec::new();
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
            let wanted = if Some(name.kind) == default { LABEL } else { self.id(name.kind) };
            add(&mut out, &scope, wanted, &name.value);
            for variant in &name.variants {
                let is_sort = |it: &TopicId| {
                    self.map
                        .topic(*it)
                        .subject_identifiers
                        .iter()
                        .any(|it| it == model::SORT || it.ends_with("core.xtm#sort"))
                };
                if variant.scope.iter().any(is_sort) {
                    add(&mut out, &scope, "sort", &variant.value);
                }
            }
        }
        for value in &it.occurrences {
            let (scope, behaviour) = self.scope(&value.scope);
            if behaviour.is_none() && self.is_metadata(value) {
                add(&mut out, &scope, self.id(value.kind), &value.value);
            }
        }
        out
    }

    fn is_metadata(&self, it: &Value) -> bool {
        let own = &self.map.topic(it.kind).subject_identifiers;
        own.iter().any(|it| it.starts_with("urn:conclave:metadata:"))
            || it.datatype != datatype::ANY_URI
                && it.value.chars().count() <= METADATA_LEN_MAX
                && !it.value.contains('\n')
    }

    fn occurrences(&self, topic: usize) -> Vec<Occurrence> {
        let mut out: Vec<Occurrence> = Vec::new();
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
                if let Some(data) = beside.and_then(|it| it.occurrences.first()) {
                    put_data(&mut it, data);
                }
            } else {
                put_data(&mut it, value);
            }
            // Two texts of one role cannot be told apart by their key: the second gets a number.
            let mut number = 1;
            let role = it.role.clone();
            while out.iter().any(|other| other.has_key_of(&it)) {
                number += 1;
                it.role = format!("{role}-{number}");
            }
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
            let metadata = it.item.reifier.map_or_else(Vec::new, |it| self.metadata(it.index()));
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
        if let [role] = it.roles.as_slice() {
            if let Some(topic) = topics.get_mut(&role.player.index()) {
                let value = self.id(role.kind).to_owned();
                add(&mut topic.metadata, &scope, &ty, &value);
            }
            return;
        }
        // An arc is named by what the association says: the same one read again is the same arc, and associations of
        // different maps do not take each other's place.
        let said: Vec<(&str, &str)> =
            it.roles.iter().map(|role| (self.id(role.kind), self.id(role.player))).collect();
        let number = format!("{:016x}", hash(format!("{ty}\u{1F}{scope}\u{1F}{said:?}").as_bytes()));
        for (at, from) in it.roles.iter().enumerate() {
            for (place, to) in it.roles.iter().enumerate().filter(|(place, _)| *place != at) {
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
                    set(&mut arc.metadata, DEFAULT_SCOPE, "tm::group", number.clone());
                }
                topic.arcs.push(arc);
            }
        }
    }
}

fn put_data(it: &mut Occurrence, value: &Value) {
    match value.datatype.as_str() {
        BASE64 => it.base64 = Some(value.value.clone()),
        _ => it.data.clone_from(&value.value),
    }
}

/// Adds a value; another one of the same name gets a number behind it.
fn add(list: &mut Vec<Metadata>, scope: &str, name: &str, value: &str) {
    let mut wanted = name.to_owned();
    let mut number = 1;
    while let Some(known) = list.iter().find(|it| it.scope == scope && it.name == wanted) {
        if known.value == value {
            return;
        }
        number += 1;
        wanted = format!("{name}-{number}");
    }
    list.push(Metadata { scope: scope.to_owned(), name: wanted, value: value.to_owned() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinakes_topicmap::{Format, Options, read, write};

    fn occurrence(role: &str, behaviour: &str, reference: &str, data: &str) -> Occurrence {
        Occurrence {
            scope: DEFAULT_SCOPE.to_owned(),
            role: role.to_owned(),
            behaviour: behaviour.to_owned(),
            reference: reference.to_owned(),
            data: data.to_owned(),
            base64: None,
        }
    }

    /// Topics -> XTM or JTM -> topics is the same.
    #[test]
    fn native_topics_come_back_as_they_were() {
        let mut arts = Topic::new("default", "Top/Arts & 50% <x>");
        arts.set(DEFAULT_SCOPE, LABEL, "Arts");
        arts.set("es::sales", LABEL, "Artes");
        arts.set("sales::es", "description", "two\nlines <b>");
        arts.set(DEFAULT_SCOPE, "keywords", "");
        arts.subject_identifiers.push("https://doi.org/10.5072/x".to_owned());
        arts.occurrences.push(occurrence("wiki", "markdown", SELF, "# text\r\n*here*"));
        arts.occurrences.push(occurrence("link", "url", "http://example.org/", "{\"title\":\"x\"}"));
        arts.occurrences.push(occurrence("link", "topic", "Top/Music", ""));
        let mut binary = occurrence("image", "image", SELF, "");
        binary.set_bytes(vec![0xFF, 0, 1]);
        arts.occurrences.push(binary);
        let arc = |id: &str, reference: &str, label: Option<&str>| {
            let mut metadata = Vec::new();
            if let Some(label) = label {
                set(&mut metadata, DEFAULT_SCOPE, LABEL, label.to_owned());
                set(&mut metadata, "es", "position", "1".to_owned());
            }
            Arc {
                id: id.to_owned(),
                ty: "category".to_owned(),
                scope: DEFAULT_SCOPE.to_owned(),
                reference: reference.to_owned(),
                role: "narrow".to_owned(),
                metadata,
            }
        };
        arts.arcs.push(arc("Top/Arts~1", "Top/Music", Some("Music")));
        arts.arcs.push(arc("a-uuid", "Top/Missing", None));
        let mut music = Topic::new("default", "Top/Music");
        music.arcs.push(arc("another", "Top/Arts & 50% <x>", None));
        let mut topics = vec![arts, music];
        topics.iter_mut().for_each(Topic::put_in_order);
        let map = to_map(&topics).unwrap();
        for format in [Format::Xtm, Format::Jtm] {
            let mut bytes = Vec::new();
            write(format, &map, "", &mut bytes).unwrap();
            let again = read(format, &bytes, Options::new("file:///export")).unwrap().map;
            let mut back = from_map(&again, "default", "file:///export");
            back.iter_mut().for_each(Topic::put_in_order);
            back.sort_by(|one, other| one.id.cmp(&other.id));
            assert_eq!(back, topics, "{format:?}");
        }
    }
}
