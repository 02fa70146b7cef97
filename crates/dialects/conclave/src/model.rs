//! A topic and its members: metadata, arcs, occurrences (section 1 of the contract), and the form in which they are
//! stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinakes_store::Document;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::dated;
use crate::error::{ConclaveError, Result};
use crate::facts::Facts;
use crate::kinds::{DATED, POINTS, TOPIC, UNIT, draw_of};
use crate::names::{DEFAULT_SCOPE, LABEL, TIMESTAMP};
use crate::subjects::of_iri;

/// Longest id, scope, type, role or name, in bytes.
const NAME_LEN_MAX_BYTES: usize = 2_000;
/// Maximum number of members of one topic: metadata, arcs and occurrences together. A topic is read as a whole: with a
/// million members, one request took 6 GB.
const MEMBERS_MAX: usize = 100_000;

/// A topic with all its members.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topic {
    /// `{map}/{id}`, the id of the record.
    pub key: String,
    /// The map it belongs to.
    pub map: String,
    /// Its id in the map.
    pub id: String,
    /// Its label, from the metadata; its id if there is none.
    pub label: String,
    /// When it was last changed, in milliseconds since 1970.
    #[serde(rename = "at")]
    pub modified_ms: i64,
    /// Its metadata.
    pub metadata: Vec<Metadata>,
    /// Its arcs.
    pub arcs: Vec<Arc>,
    /// Its occurrences.
    pub occurrences: Vec<Occurrence>,
    /// Subject identifiers.
    pub subject_identifiers: Vec<String>,
    /// Subject locators.
    pub subject_locators: Vec<String>,
    /// Item identifiers.
    pub item_identifiers: Vec<String>,
    /// What the topic map data model states beyond the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Facts>>,
}

/// A value of a topic or an arc; scope and name are its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Scope.
    pub scope: String,
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// A directed association: its topic points at another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arc {
    /// Id, unique in the map.
    pub id: String,
    /// Type.
    pub ty: String,
    /// Scope.
    pub scope: String,
    /// Id of the topic pointed at, which need not exist.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The role that the topic pointed at plays.
    pub role: String,
    /// Metadata; the most important one is the label.
    pub metadata: Vec<Metadata>,
}

/// A text or resource of a topic; its key is everything but the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// Scope.
    pub scope: String,
    /// Role.
    pub role: String,
    /// Behaviour: how it is shown.
    pub behaviour: String,
    /// Address of the resource; `self` for the data.
    pub reference: String,
    /// Text; data that is not text is in `base64` instead.
    #[serde(default)]
    pub data: String,
    /// Data that is not UTF-8, in base 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl Occurrence {
    /// Returns the data as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        match &self.base64 {
            Some(text) => STANDARD.decode(text).unwrap_or_default(),
            None => self.data.clone().into_bytes(),
        }
    }

    /// Sets the data: as text if it is UTF-8.
    pub fn set_bytes(&mut self, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => (self.data, self.base64) = (text, None),
            Err(error) => (self.data, self.base64) = (String::new(), Some(STANDARD.encode(error.as_bytes()))),
        }
    }

    /// Returns an occurrence without data, in the default scope.
    pub(crate) fn new(role: &str, behaviour: &str, reference: &str) -> Occurrence {
        Occurrence {
            scope: DEFAULT_SCOPE.to_owned(),
            role: role.to_owned(),
            behaviour: behaviour.to_owned(),
            reference: reference.to_owned(),
            data: String::new(),
            base64: None,
        }
    }

    /// Returns scope, role, behaviour and reference.
    pub(crate) fn key(&self) -> [String; 4] {
        [&self.scope, &self.role, &self.behaviour, &self.reference].map(String::clone)
    }

    /// Returns whether both have the same key.
    pub fn has_key_of(&self, other: &Occurrence) -> bool {
        (&self.scope, &self.role, &self.behaviour, &self.reference)
            == (&other.scope, &other.role, &other.behaviour, &other.reference)
    }

    /// Returns whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.base64.is_none()
    }
}

impl Arc {
    /// Returns the label for a reader of `scope`: that of the scope, that of the default scope, or the reference.
    pub fn label(&self, scope: &str) -> &str {
        label_of(&self.metadata, scope).unwrap_or(&self.reference)
    }

    /// Returns the target of the link that this arc produces.
    fn target(&self, map: &str) -> String {
        target(map, &self.reference, &[&self.ty, &self.role, &self.scope])
    }
}

/// The body of a topic's record: the topic, followed by derived values that queries use.
struct Stored<'t> {
    topic: &'t Topic,
    draw: i64,
    points: Vec<String>,
    dated: Vec<String>,
    arc_ids: Vec<String>,
    si: Vec<String>,
    sl: Vec<String>,
    ii: Vec<String>,
    subjects: Value,
}

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let it = self.topic;
        let mut out = serializer.serialize_map(None)?;
        for (name, text) in [("key", &it.key), ("map", &it.map), ("id", &it.id), ("label", &it.label)] {
            out.serialize_entry(name, text)?;
        }
        out.serialize_entry("at", &it.modified_ms)?;
        out.serialize_entry("metadata", &it.metadata)?;
        out.serialize_entry("arcs", &it.arcs)?;
        out.serialize_entry("occurrences", &it.occurrences)?;
        for (name, list) in [
            ("subject_identifiers", &it.subject_identifiers),
            ("subject_locators", &it.subject_locators),
            ("item_identifiers", &it.item_identifiers),
        ] {
            out.serialize_entry(name, list)?;
        }
        if let Some(facts) = &it.facts {
            out.serialize_entry("facts", facts)?;
        }
        out.serialize_entry("draw", &self.draw)?;
        for (name, list) in [
            (POINTS, &self.points),
            ("arc_ids", &self.arc_ids),
            ("si", &self.si),
            ("sl", &self.sl),
            ("ii", &self.ii),
        ] {
            out.serialize_entry(name, list)?;
        }
        if !self.dated.is_empty() {
            out.serialize_entry(DATED, &self.dated)?;
        }
        out.serialize_entry("subjects", &self.subjects)?;
        out.end()
    }
}

impl Stored<'_> {
    /// Returns the part of the body that the kind declares ([`TOPIC`]).
    fn taken(self) -> Value {
        let mut out = serde_json::Map::new();
        for (name, text) in [("key", &self.topic.key), ("map", &self.topic.map), ("label", &self.topic.label)]
        {
            out.insert(name.to_owned(), text.as_str().into());
        }
        out.insert("draw".to_owned(), self.draw.into());
        let lists = [
            (POINTS, self.points),
            (DATED, self.dated),
            ("arc_ids", self.arc_ids),
            ("si", self.si),
            ("sl", self.sl),
            ("ii", self.ii),
        ];
        out.extend(lists.map(|(name, list)| (name.to_owned(), Value::from(list))));
        out.insert("subjects".to_owned(), self.subjects);
        Value::Object(out)
    }
}

/// Returns the prefix of the links to a topic, with as many of type, role and scope as are given.
pub(crate) fn target(map: &str, reference: &str, parts: &[&str]) -> String {
    let mut out = format!("{map}/{reference}");
    for part in parts {
        out.push(UNIT);
        out.push_str(part);
    }
    out
}

/// Returns the label in some metadata.
pub(crate) fn label_of<'m>(metadata: &'m [Metadata], scope: &str) -> Option<&'m str> {
    let mut labels = metadata.iter().filter(|it| it.name == LABEL);
    let first = labels.clone().find(|it| it.scope == scope);
    let first =
        first.or_else(|| labels.clone().find(|it| it.scope == DEFAULT_SCOPE)).or_else(|| labels.next());
    first.map(|it| it.value.as_str())
}

impl Topic {
    /// Returns an empty topic.
    pub fn new(map: &str, id: &str) -> Topic {
        Topic {
            key: key(map, id),
            map: map.to_owned(),
            id: id.to_owned(),
            label: id.to_owned(),
            ..Topic::default()
        }
    }

    /// Parses the body of a record.
    pub fn stored(body: &[u8]) -> Result<Topic> {
        serde_json::from_slice(body).map_err(|error| ConclaveError::damaged(error.to_string()))
    }

    /// Sets a metadata value.
    pub fn set(&mut self, scope: &str, name: &str, value: impl Into<String>) {
        set(&mut self.metadata, scope, name, value.into());
    }

    /// Returns a metadata value.
    pub fn get(&self, scope: &str, name: &str) -> Option<&str> {
        self.metadata.iter().find(|it| it.scope == scope && it.name == name).map(|it| it.value.as_str())
    }

    /// Returns the label for a reader of `scope`.
    pub fn label_in(&self, scope: &str) -> &str {
        label_of(&self.metadata, scope).unwrap_or(&self.id)
    }

    /// Returns the timestamp of the topic for a reader of `scope`, as far as it is compared: that of the scope, or that of
    /// the default scope. Empty if there is none.
    pub(crate) fn date(&self, scope: &str) -> &str {
        let text = self.get(scope, TIMESTAMP).or_else(|| self.get(DEFAULT_SCOPE, TIMESTAMP));
        dated::compared(text.unwrap_or_default())
    }

    /// Returns the target of the link that an arc produces because the topic has a timestamp.
    fn dated_target(&self, arc: &Arc) -> Option<String> {
        let date = Some(self.date(&arc.scope)).filter(|it| !it.is_empty())?;
        Some(dated::target(&arc.target(&self.map), date))
    }

    /// Sorts the members, derives the label, and returns the record to be stored.
    ///
    /// The body is serialised once, directly from the members; the values that the kind declares are handed over beside
    /// it.
    ///
    /// Errors: a name is too long or holds a control character; there are too many members.
    pub fn document(&mut self) -> Result<Document> {
        self.put_in_order();
        self.check()?;
        let own = format!("{}~", self.id);
        let sorted = |mut targets: Vec<String>| {
            targets.sort_unstable();
            targets.dedup();
            targets
        };
        let others = self.arcs.iter().filter(|it| !it.id.starts_with(&own));
        let within = |list: &[String]| list.iter().map(|it| identity(&self.map, it)).collect();
        let stored = Stored {
            topic: self,
            draw: draw_of(&self.key),
            points: sorted(self.arcs.iter().map(|it| it.target(&self.map)).collect()),
            dated: sorted(self.arcs.iter().filter_map(|it| self.dated_target(it)).collect()),
            arc_ids: others.map(|it| format!("{}/{}", self.map, it.id)).collect(),
            si: within(&self.subject_identifiers),
            sl: within(&self.subject_locators),
            ii: within(&self.item_identifiers),
            subjects: by_scheme(self),
        };
        let bytes = serde_json::to_vec(&stored).map_err(|error| ConclaveError::damaged(error.to_string()))?;
        let taken = stored.taken();
        Ok(Document::with_bytes(&TOPIC, self.key.clone(), &taken, bytes)?)
    }

    /// Sorts metadata by scope and name; arcs by type, role, label and id; occurrences by role, scope, behaviour, reference.
    pub fn put_in_order(&mut self) {
        let by_name =
            |it: &Metadata, other: &Metadata| (&it.scope, &it.name).cmp(&(&other.scope, &other.name));
        self.metadata.sort_by(by_name);
        self.metadata.dedup_by(|it, kept| it.scope == kept.scope && it.name == kept.name);
        for arc in &mut self.arcs {
            arc.metadata.sort_by(by_name);
        }
        self.arcs.sort_by(|it, other| {
            let names = (&it.ty, &it.role).cmp(&(&other.ty, &other.role));
            names
                .then_with(|| it.label(DEFAULT_SCOPE).cmp(other.label(DEFAULT_SCOPE)))
                .then_with(|| it.id.cmp(&other.id))
        });
        self.occurrences.sort_by(|it, other| {
            (&it.role, &it.scope, &it.behaviour, &it.reference).cmp(&(
                &other.role,
                &other.scope,
                &other.behaviour,
                &other.reference,
            ))
        });
        for list in [&mut self.subject_identifiers, &mut self.subject_locators, &mut self.item_identifiers] {
            list.sort();
            list.dedup();
        }
        self.label = self.label_in(DEFAULT_SCOPE).to_owned();
    }

    /// Checks the limits of the model. Errors: 422 for too many members, and for names that are empty or too long.
    pub(crate) fn check(&self) -> Result<()> {
        let n_members = self.metadata.len() + self.arcs.len() + self.occurrences.len();
        if n_members > MEMBERS_MAX {
            return Err(ConclaveError::rule(format!(
                "the topic {:?} would have {n_members} members; at most {MEMBERS_MAX} are kept in one",
                self.id
            )));
        }
        check_name("the id of a topic", &self.id)?;
        for it in &self.metadata {
            check_name("a scope", &it.scope)?;
            check_name("the name of a metadata", &it.name)?;
        }
        for it in &self.arcs {
            let parts = [&it.id, &it.ty, &it.scope, &it.reference, &it.role];
            let names = ["the id of an association", "its type", "its scope", "its reference", "its role"];
            for (name, part) in names.into_iter().zip(parts) {
                check_name(name, part)?;
            }
        }
        for it in &self.occurrences {
            check_name("the role of an occurrence", &it.role)?;
            check_name("its behaviour", &it.behaviour)?;
            check_name("its scope", &it.scope)?;
        }
        Ok(())
    }

    /// Returns the topic with only the members of one scope.
    pub fn within(mut self, scope: Option<&str>) -> Topic {
        let Some(scope) = scope else { return self };
        self.retain(|it| it == scope);
        self
    }

    /// Keeps the members whose scope the reader may see.
    pub fn retain(&mut self, may_see: impl Fn(&str) -> bool) {
        self.metadata.retain(|it| may_see(&it.scope));
        self.arcs.retain_mut(|it| {
            it.metadata.retain(|it| may_see(&it.scope));
            may_see(&it.scope)
        });
        self.occurrences.retain(|it| may_see(&it.scope));
    }

    /// Removes variants of names that the reader may not see. Only for topics that are sent: an edit must keep them.
    pub(crate) fn retain_variants(&mut self, may_see: impl Fn(&str) -> bool) {
        if let Some(facts) = &mut self.facts {
            facts.retain_variants(may_see);
        }
    }
}

/// Sets a value in a metadata list.
pub(crate) fn set(list: &mut Vec<Metadata>, scope: &str, name: &str, value: String) {
    match list.iter_mut().find(|it| it.scope == scope && it.name == name) {
        Some(it) => it.value = value,
        None => list.push(Metadata { scope: scope.to_owned(), name: name.to_owned(), value }),
    }
}

/// Returns the id of a topic's record.
pub fn key(map: &str, id: &str) -> String {
    format!("{map}/{id}")
}

/// Returns an identity in the form of the store's identifiers, which includes the map.
pub(crate) fn identity(map: &str, iri: &str) -> String {
    format!("{map} {iri}")
}

fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(ConclaveError::bad_request(format!("{what} is empty")));
    }
    if name.len() > NAME_LEN_MAX_BYTES {
        let len = name.len();
        return Err(ConclaveError::bad_request(format!(
            "{what} has {len} bytes; at most {NAME_LEN_MAX_BYTES}"
        )));
    }
    if name.contains(|it: char| it.is_control()) {
        return Err(ConclaveError::bad_request(format!("{what} holds a control character: {name:?}")));
    }
    Ok(())
}

/// Returns the identifiers of a topic that records of other dialects may carry, by scheme.
pub(crate) fn by_scheme(topic: &Topic) -> Value {
    let mut out = Map::new();
    for (scheme, value) in of_topic(topic) {
        if let Value::Array(list) = out.entry(scheme).or_insert_with(|| Value::Array(Vec::new())) {
            list.push(value.into());
        }
    }
    Value::Object(out)
}

/// Returns the identifiers of a topic that records of other dialects may have, as pairs of scheme and value.
pub(crate) fn of_topic(topic: &Topic) -> Vec<(&'static str, &str)> {
    topic.subject_identifiers.iter().chain(&topic.subject_locators).filter_map(|it| of_iri(it)).collect()
}

#[cfg(test)]
mod tests {
    use pinakes_store::Document;

    use super::*;

    /// The values handed over beside the bytes must be those that the store would extract from them.
    #[test]
    fn the_store_takes_what_it_would_find_in_the_body() {
        let mut topic = Topic::new("m", "Top/Arts");
        topic.set(DEFAULT_SCOPE, LABEL, "Arts \"&\" é");
        topic.set(DEFAULT_SCOPE, TIMESTAMP, "2026-02-01");
        topic.subject_identifiers.push("https://doi.org/10.5072/x".to_owned());
        topic.subject_locators.push("http://example.org/".to_owned());
        topic.item_identifiers.push("urn:x#1".to_owned());
        topic.facts = Some(Box::default());
        for (id, reference) in [("Top/Arts~1", "Top/Music"), ("uuid", "Top/Film"), ("other", "Top/Film")] {
            topic.arcs.push(Arc {
                id: id.to_owned(),
                ty: "category".to_owned(),
                scope: DEFAULT_SCOPE.to_owned(),
                reference: reference.to_owned(),
                role: "narrow".to_owned(),
                metadata: Vec::new(),
            });
        }
        topic.occurrences.push(Occurrence::new("link", "url", "http://example.org/x"));
        let document = topic.document().unwrap();
        let whole: Value = serde_json::from_slice(document.body()).unwrap();
        let expected = Document::new(&TOPIC, topic.key.clone(), &whole).unwrap();
        assert_eq!(format!("{document:?}"), format!("{expected:?}"));
        assert_eq!(Topic::stored(document.body()).unwrap(), topic);
    }
}
