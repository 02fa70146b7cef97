//! Writes XTM 2.1.

use std::io::{self, Write};

use crate::builder::IdentityKind;
use crate::iri::{self, datatype, model};
use crate::model::{Item, Name, Occurrence, TopicId, TopicMap};
use crate::references;
use crate::xml::{Children, escape, escape_attribute};

struct Writer<'m, 'o> {
    map: &'m TopicMap,
    topic_name: Option<TopicId>,
    out: &'o mut dyn Write,
}

/// Writes a map. Reading it gives the same map again. XML cannot hold most control characters: they become U+FFFD.
pub(crate) fn write(map: &TopicMap, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer { map, topic_name: map.by_subject_identifier(model::TOPIC_NAME), out };
    writer.map()
}

impl Writer<'_, '_> {
    fn map(&mut self) -> io::Result<()> {
        let map = self.map;
        let (types, associations) = references::instances(map);
        self.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
        self.raw("<topicMap xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.1\">\n")?;
        self.item(&map.item)?;
        for id in map.ids() {
            self.topic(id, types.get(&id).map_or(&[], Vec::as_slice))?;
        }
        for it in associations {
            self.raw("<association>")?;
            self.item(&it.item)?;
            self.holding("type", &[it.kind])?;
            self.holding("scope", &it.scope)?;
            for role in &it.roles {
                self.raw("<role>")?;
                self.item(&role.item)?;
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
        self.raw("<topic>")?;
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
        self.raw("<name>")?;
        self.item(&it.item)?;
        if Some(it.kind) != self.topic_name {
            self.holding("type", &[it.kind])?;
        }
        self.holding("scope", &it.scope)?;
        self.raw("<value>")?;
        self.text(&it.value)?;
        self.raw("</value>")?;
        for variant in &it.variants {
            self.raw("<variant>")?;
            self.item(&variant.item)?;
            let own: Vec<TopicId> =
                variant.scope.iter().copied().filter(|theme| !it.scope.contains(theme)).collect();
            self.holding("scope", &own)?;
            self.value(&variant.value, &variant.datatype)?;
            self.raw("</variant>")?;
        }
        self.raw("</name>")
    }

    fn occurrence(&mut self, it: &Occurrence) -> io::Result<()> {
        self.raw("<occurrence>")?;
        self.item(&it.item)?;
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
        // Embedded XML goes out as it is, if it is XML.
        if datatype == datatype::ANY_TYPE && is_well_formed(value) {
            self.raw(value)?;
        } else {
            self.text(value)?;
        }
        self.raw("</resourceData>")
    }

    fn item(&mut self, it: &Item) -> io::Result<()> {
        if let Some(reifier) = it.reifier {
            self.holding("reifier", &[reifier])?;
        }
        for iri in &it.item_identifiers {
            self.href("itemIdentity", iri)?;
        }
        Ok(())
    }

    /// An element around references; none where there are none.
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

    fn text(&mut self, text: &str) -> io::Result<()> {
        let mut out = String::with_capacity(text.len());
        escape(text, &mut out);
        let is_control =
            |it: char| it < ' ' && !matches!(it, '\t' | '\n' | '\r') || matches!(it, '\u{FFFE}' | '\u{FFFF}');
        if out.contains(is_control) {
            out = out.replace(is_control, "\u{FFFD}");
        }
        self.raw(&out)
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }
}

fn is_well_formed(content: &str) -> bool {
    let document = format!("<content>{content}</content>");
    let mut children = Children::new(&document, "", 64);
    matches!(children.next(), Ok(Some(_))) && matches!(children.enter(), Ok(None))
}
