//! Writes JTM 1.1, without prefixes.

use std::io::{self, Write};

use crate::builder::IdentityKind;
use crate::iri::{self, datatype, model};
use crate::model::{Item, Name, Occurrence, TopicId, TopicMap};
use crate::references;

struct Writer<'m, 'o> {
    map: &'m TopicMap,
    topic_name: Option<TopicId>,
    out: &'o mut dyn Write,
}

/// Writes a map, one topic and one association a line.
pub(crate) fn write(map: &TopicMap, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer { map, topic_name: map.by_subject_identifier(model::TOPIC_NAME), out };
    writer.map()
}

impl Writer<'_, '_> {
    fn map(&mut self) -> io::Result<()> {
        let map = self.map;
        let (types, associations) = references::instances(map);
        self.raw("{\"version\":\"1.1\",\"item_type\":\"topicmap\"")?;
        self.raw(",\"topics\":[")?;
        for id in map.ids() {
            self.raw(if id.0 == 0 { "\n" } else { ",\n" })?;
            self.topic(id, types.get(&id).map_or(&[], Vec::as_slice))?;
        }
        self.raw("],\"associations\":[")?;
        for (at, it) in associations.into_iter().enumerate() {
            self.raw(if at == 0 { "\n{" } else { ",\n{" })?;
            self.reference("type", it.kind)?;
            self.raw(",\"roles\":[")?;
            for (at, role) in it.roles.iter().enumerate() {
                self.raw(if at == 0 { "{" } else { ",{" })?;
                self.reference("player", role.player)?;
                self.raw(",")?;
                self.reference("type", role.kind)?;
                self.item(&role.item)?;
                self.raw("}")?;
            }
            self.raw("]")?;
            self.references("scope", &it.scope)?;
            self.item(&it.item)?;
            self.raw("}")?;
        }
        self.raw("]")?;
        self.identifiers("item_identifiers", &map.item.item_identifiers)?;
        if let Some(reifier) = map.item.reifier {
            self.raw(",")?;
            self.reference("reifier", reifier)?;
        }
        self.raw("}\n")
    }

    fn topic(&mut self, id: TopicId, types: &[TopicId]) -> io::Result<()> {
        let it = self.map.topic(id);
        self.raw("{")?;
        let mut is_first = true;
        for (key, list) in [
            ("item_identifiers", &it.item_identifiers),
            ("subject_identifiers", &it.subject_identifiers),
            ("subject_locators", &it.subject_locators),
        ] {
            if !list.is_empty() {
                self.raw(if is_first { "" } else { "," })?;
                self.string(key)?;
                self.raw(":")?;
                self.list(list)?;
                is_first = false;
            }
        }
        if !it.names.is_empty() {
            self.raw(",\"names\":[")?;
            for (at, name) in it.names.iter().enumerate() {
                self.raw(if at == 0 { "" } else { "," })?;
                self.name(name)?;
            }
            self.raw("]")?;
        }
        if !it.occurrences.is_empty() {
            self.raw(",\"occurrences\":[")?;
            for (at, occurrence) in it.occurrences.iter().enumerate() {
                self.raw(if at == 0 { "" } else { "," })?;
                self.occurrence(occurrence)?;
            }
            self.raw("]")?;
        }
        self.references("instance_of", types)?;
        self.raw("}")
    }

    fn name(&mut self, it: &Name) -> io::Result<()> {
        self.raw("{\"value\":")?;
        self.string(&it.value)?;
        if Some(it.kind) != self.topic_name {
            self.raw(",")?;
            self.reference("type", it.kind)?;
        }
        self.references("scope", &it.scope)?;
        if !it.variants.is_empty() {
            self.raw(",\"variants\":[")?;
            for (at, variant) in it.variants.iter().enumerate() {
                self.raw(if at == 0 { "{" } else { ",{" })?;
                self.value(&variant.value, &variant.datatype)?;
                let own: Vec<TopicId> =
                    variant.scope.iter().copied().filter(|theme| !it.scope.contains(theme)).collect();
                self.references("scope", &own)?;
                self.item(&variant.item)?;
                self.raw("}")?;
            }
            self.raw("]")?;
        }
        self.item(&it.item)?;
        self.raw("}")
    }

    fn occurrence(&mut self, it: &Occurrence) -> io::Result<()> {
        self.raw("{")?;
        self.value(&it.value, &it.datatype)?;
        self.raw(",")?;
        self.reference("type", it.kind)?;
        self.references("scope", &it.scope)?;
        self.item(&it.item)?;
        self.raw("}")
    }

    fn value(&mut self, value: &str, datatype: &str) -> io::Result<()> {
        self.raw("\"value\":")?;
        match datatype {
            datatype::ANY_URI => self.string(&escaped(value))?,
            _ => self.string(value)?,
        }
        if datatype != datatype::STRING {
            self.raw(",\"datatype\":")?;
            self.string(&escaped(datatype))?;
        }
        Ok(())
    }

    fn item(&mut self, it: &Item) -> io::Result<()> {
        if let Some(reifier) = it.reifier {
            self.raw(",")?;
            self.reference("reifier", reifier)?;
        }
        self.identifiers("item_identifiers", &it.item_identifiers)
    }

    fn identifiers(&mut self, key: &str, list: &[String]) -> io::Result<()> {
        if list.is_empty() {
            return Ok(());
        }
        self.raw(",")?;
        self.string(key)?;
        self.raw(":")?;
        self.list(list)
    }

    fn list(&mut self, list: &[String]) -> io::Result<()> {
        self.raw("[")?;
        for (at, it) in list.iter().enumerate() {
            self.raw(if at == 0 { "" } else { "," })?;
            self.string(&escaped(it))?;
        }
        self.raw("]")
    }

    fn references(&mut self, key: &str, topics: &[TopicId]) -> io::Result<()> {
        if topics.is_empty() {
            return Ok(());
        }
        self.raw(",")?;
        self.string(key)?;
        self.raw(":[")?;
        for (at, &it) in topics.iter().enumerate() {
            self.raw(if at == 0 { "" } else { "," })?;
            self.topic_reference(it)?;
        }
        self.raw("]")
    }

    fn reference(&mut self, key: &str, topic: TopicId) -> io::Result<()> {
        self.string(key)?;
        self.raw(":")?;
        self.topic_reference(topic)
    }

    fn topic_reference(&mut self, topic: TopicId) -> io::Result<()> {
        let text = match references::of(self.map, topic) {
            Some((IdentityKind::SubjectIdentifier, iri)) => format!("si:{}", escaped(iri)),
            Some((IdentityKind::SubjectLocator, iri)) => format!("sl:{}", escaped(iri)),
            Some((IdentityKind::ItemIdentifier, iri)) => format!("ii:{}", escaped(iri)),
            None => return Err(io::Error::new(io::ErrorKind::InvalidData, "a topic has no identity")),
        };
        self.string(&text)
    }

    fn string(&mut self, text: &str) -> io::Result<()> {
        serde_json::to_writer(&mut *self.out, text).map_err(io::Error::from)
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }
}

/// Escapes a locator so that it is read back unchanged: a bracket at its beginning would be taken as a
/// prefix.
fn escaped(locator: &str) -> String {
    let escaped = iri::encode(locator);
    match escaped.strip_prefix('[') {
        Some(rest) => format!("%5B{rest}"),
        None => escaped,
    }
}
