//! Writes XTM 2.0 and 2.1. In 2.0 every topic has an id, and all references are to ids.

use std::io::{self, Write};

use super::ids::Ids;
use crate::builder::IdentityKind;
use crate::iri::{self, datatype, model};
use crate::model::{Item, Name, Occurrence, TopicId, TopicMap};
use crate::references;
use crate::xml::{Children, escape, escape_attribute};
use crate::xtm::names::NAMESPACE_2;

/// The version of XTM 2 to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// 2.0: topics that have no id in the document get one.
    Two,
    /// 2.1.
    TwoOne,
}

struct Writer<'m, 'o> {
    map: &'m TopicMap,
    topic_name: Option<TopicId>,
    /// The ids, for 2.0.
    ids: Option<Ids>,
    out: &'o mut dyn Write,
}

/// Writes a map. Reading it gives the same map again, except for the ids that 2.0 requires. XML cannot hold most
/// control characters: they become U+FFFD. `base` is the IRI with which the document will be read.
pub(crate) fn write(version: Version, map: &TopicMap, base: &str, out: &mut dyn Write) -> io::Result<()> {
    let ids = (version == Version::Two).then(|| Ids::new(map, base));
    let topic_name = map.by_subject_identifier(model::TOPIC_NAME);
    Writer { map, topic_name, ids, out }.map()
}

impl Writer<'_, '_> {
    fn map(&mut self) -> io::Result<()> {
        let map = self.map;
        let (types, associations) = references::instances(map);
        self.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
        let version = if self.ids.is_some() { "2.0" } else { "2.1" };
        self.open(&format!("topicMap xmlns=\"{NAMESPACE_2}\" version=\"{version}\""), &map.item, "\n")?;
        for id in map.ids() {
            self.topic(id, types.get(&id).map_or(&[], Vec::as_slice))?;
        }
        for it in associations {
            self.open("association", &it.item, "")?;
            self.holding("type", &[it.kind])?;
            self.holding("scope", &it.scope)?;
            for role in &it.roles {
                self.open("role", &role.item, "")?;
                self.holding("type", &[role.kind])?;
                self.reference(role.player)?;
                self.raw("</role>")?;
            }
            self.raw("</association>\n")?;
        }
        self.raw("</topicMap>\n")
    }

    fn topic(&mut self, id: TopicId, types: &[TopicId]) -> io::Result<()> {
        let it = self.map.topic(id);
        let start = match &self.ids {
            Some(ids) => format!("<topic id=\"{}\">", ids.of(id)),
            None => "<topic>".to_owned(),
        };
        self.raw(&start)?;
        for (element, list) in [
            ("itemIdentity", &it.item_identifiers),
            ("subjectIdentifier", &it.subject_identifiers),
            ("subjectLocator", &it.subject_locators),
        ] {
            for iri in list {
                self.href(element, iri)?;
            }
        }
        self.holding("instanceOf", types)?;
        for name in &it.names {
            self.name(name)?;
        }
        for occurrence in &it.occurrences {
            self.occurrence(occurrence)?;
        }
        self.raw("</topic>\n")
    }

    fn name(&mut self, it: &Name) -> io::Result<()> {
        self.open("name", &it.item, "")?;
        if Some(it.kind) != self.topic_name {
            self.holding("type", &[it.kind])?;
        }
        self.holding("scope", &it.scope)?;
        self.raw("<value>")?;
        text(&it.value, self.out)?;
        self.raw("</value>")?;
        for variant in &it.variants {
            self.open("variant", &variant.item, "")?;
            let own: Vec<TopicId> =
                variant.scope.iter().copied().filter(|theme| !it.scope.contains(theme)).collect();
            self.holding("scope", &own)?;
            self.value(&variant.value, &variant.datatype)?;
            self.raw("</variant>")?;
        }
        self.raw("</name>")
    }

    fn occurrence(&mut self, it: &Occurrence) -> io::Result<()> {
        self.open("occurrence", &it.item, "")?;
        self.holding("type", &[it.kind])?;
        self.holding("scope", &it.scope)?;
        self.value(&it.value, &it.datatype)?;
        self.raw("</occurrence>")
    }

    fn value(&mut self, value: &str, datatype: &str) -> io::Result<()> {
        match datatype {
            datatype::ANY_URI => return self.href("resourceRef", value),
            datatype::STRING => self.raw("<resourceData>")?,
            datatype => {
                let mut attribute = String::new();
                escape_attribute(&iri::encode(datatype), &mut attribute);
                self.raw(&format!("<resourceData datatype=\"{attribute}\">"))?;
            }
        }
        // Embedded XML is written as it is, if it is XML.
        if datatype == datatype::ANY_TYPE && is_well_formed(value) {
            self.raw(value)?;
        } else {
            text(value, self.out)?;
        }
        self.raw("</resourceData>")
    }

    /// Writes the start of an element, with the properties of every part.
    fn open(&mut self, start: &str, it: &Item, end: &str) -> io::Result<()> {
        let attribute = match (&self.ids, it.reifier) {
            (Some(ids), Some(reifier)) => format!(" reifier=\"#{}\"", ids.of(reifier)),
            _ => String::new(),
        };
        self.raw(&format!("<{start}{attribute}>{end}"))?;
        if let (None, Some(reifier)) = (&self.ids, it.reifier) {
            self.holding("reifier", &[reifier])?;
        }
        for iri in &it.item_identifiers {
            self.href("itemIdentity", iri)?;
        }
        Ok(())
    }

    /// Writes an element around references; nothing if there are none.
    fn holding(&mut self, element: &str, topics: &[TopicId]) -> io::Result<()> {
        if topics.is_empty() {
            return Ok(());
        }
        self.raw(&format!("<{element}>"))?;
        for &it in topics {
            self.reference(it)?;
        }
        self.raw(&format!("</{element}>"))
    }

    fn reference(&mut self, topic: TopicId) -> io::Result<()> {
        if let Some(ids) = &self.ids {
            let reference = format!("<topicRef href=\"#{}\"/>", ids.of(topic));
            return self.raw(&reference);
        }
        let (kind, iri) = references::of(self.map, topic)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a topic has no identity"))?;
        let element = match kind {
            IdentityKind::SubjectIdentifier => "subjectIdentifierRef",
            IdentityKind::SubjectLocator => "subjectLocatorRef",
            IdentityKind::ItemIdentifier => "topicRef",
        };
        self.href(element, iri)
    }

    fn href(&mut self, element: &str, iri: &str) -> io::Result<()> {
        let mut attribute = String::new();
        escape_attribute(&iri::encode(iri), &mut attribute);
        self.raw(&format!("<{element} href=\"{attribute}\"/>"))
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }
}

/// Writes text between elements.
pub(super) fn text(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut escaped = String::with_capacity(text.len());
    escape(text, &mut escaped);
    let is_control =
        |it: char| it < ' ' && !matches!(it, '\t' | '\n' | '\r') || matches!(it, '\u{FFFE}' | '\u{FFFF}');
    if escaped.contains(is_control) {
        escaped = escaped.replace(is_control, "\u{FFFD}");
    }
    out.write_all(escaped.as_bytes())
}

fn is_well_formed(content: &str) -> bool {
    let document = format!("<content>{content}</content>");
    let mut children = Children::new(&document, "", 64);
    matches!(children.next(), Ok(Some(_))) && matches!(children.enter(), Ok(None))
}
