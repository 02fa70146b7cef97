//! Writes XTM 1.0.
//!
//! It cannot represent some of what the data model holds. The type of a name becomes a theme of its scope, so that
//! names stay distinct. Datatypes other than text and `xsd:anyURI` become text. Reifiers and identifiers of roles are
//! left out, as are item identifiers of other parts, unless they are ids of this document: with several ids, each is on
//! a copy of the part, which readers fold into one.

use std::collections::HashMap;
use std::io::{self, Write};

use super::ids::{Ids, each_item};
use super::write::text;
use crate::iri::{self, datatype, model};
use crate::model::{Association, Item, Name, Occurrence, TopicId, TopicMap};
use crate::references;
use crate::xml::escape_attribute;
use crate::xtm::names::NAMESPACE_1;

struct Writer<'m, 'o> {
    map: &'m TopicMap,
    topic_name: Option<TopicId>,
    ids: Ids,
    /// Ids of the parts that topics reify.
    reified: HashMap<TopicId, String>,
    out: &'o mut dyn Write,
}

/// Writes a map. `base` is the IRI with which the document will be read.
pub(crate) fn write(map: &TopicMap, base: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut ids = Ids::new(map, base);
    let mut reified = HashMap::new();
    each_item(map, &mut |it| {
        if let Some(reifier) = it.reifier {
            reified.entry(reifier).or_insert_with(|| ids.make("item"));
        }
    });
    let topic_name = map.by_subject_identifier(model::TOPIC_NAME);
    Writer { map, topic_name, ids, reified, out }.map()
}

impl Writer<'_, '_> {
    fn map(&mut self) -> io::Result<()> {
        let map = self.map;
        let (types, associations) = references::instances(map);
        self.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
        self.raw(&format!("<topicMap xmlns=\"{NAMESPACE_1}\" xmlns:xlink=\"http://www.w3.org/1999/xlink\""))?;
        // The last one is for the reifier.
        if let Some(Some(id)) = self.ids_of(&map.item).pop() {
            self.raw(&format!(" id=\"{id}\""))?;
        }
        self.raw(">\n")?;
        for id in map.ids() {
            self.topic(id, types.get(&id).map_or(&[], Vec::as_slice))?;
        }
        for it in associations {
            for id in self.ids_of(&it.item) {
                self.association(it, id.as_deref())?;
            }
        }
        self.raw("</topicMap>\n")
    }

    /// Returns the ids of a part, one for each copy of it: those of this document, and one for its reifier.
    fn ids_of(&self, it: &Item) -> Vec<Option<String>> {
        let own = it.item_identifiers.iter().filter_map(|iri| self.ids.local(iri)).map(str::to_owned);
        let reified = it.reifier.and_then(|it| self.reified.get(&it)).cloned();
        let ids: Vec<Option<String>> = own.chain(reified).map(Some).collect();
        if ids.is_empty() { vec![None] } else { ids }
    }

    fn topic(&mut self, id: TopicId, types: &[TopicId]) -> io::Result<()> {
        let it = self.map.topic(id);
        let own = self.ids.of(id).to_owned();
        self.raw(&format!("<topic id=\"{own}\">"))?;
        for kind in types {
            self.holding("instanceOf", &[*kind])?;
        }
        let (locator, other_locators) = match it.subject_locators.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, &[][..]),
        };
        let is_other = |iri: &&String| self.ids.local(iri) != Some(&own);
        let item_identifiers: Vec<&String> = it.item_identifiers.iter().filter(is_other).collect();
        let reified = self.reified.get(&id).cloned();
        let has_identity = locator.is_some()
            || !item_identifiers.is_empty()
            || !it.subject_identifiers.is_empty()
            || reified.is_some();
        if has_identity {
            self.raw("<subjectIdentity>")?;
            if let Some(iri) = locator {
                self.href("resourceRef", iri)?;
            }
            for iri in item_identifiers {
                self.href("topicRef", iri)?;
            }
            for iri in &it.subject_identifiers {
                self.href("subjectIndicatorRef", iri)?;
            }
            if let Some(part) = reified {
                self.raw(&format!("<subjectIndicatorRef xlink:href=\"#{part}\"/>"))?;
            }
            self.raw("</subjectIdentity>")?;
        }
        for name in &it.names {
            for (at, id) in self.ids_of(&name.item).into_iter().enumerate() {
                self.name(name, id.as_deref(), at == 0)?;
            }
        }
        for occurrence in &it.occurrences {
            for id in self.ids_of(&occurrence.item) {
                self.occurrence(occurrence, id.as_deref())?;
            }
        }
        self.raw("</topic>\n")?;
        // An identity holds one locator: the others are on topics that are declared identical to this one.
        for iri in other_locators {
            let other = self.ids.make("topic");
            self.raw(&format!("<topic id=\"{other}\"><subjectIdentity>"))?;
            self.href("resourceRef", iri)?;
            self.reference(id)?;
            self.raw("</subjectIdentity></topic>\n")?;
        }
        Ok(())
    }

    fn name(&mut self, it: &Name, id: Option<&str>, is_first: bool) -> io::Result<()> {
        self.open("baseName", id)?;
        let mut scope = it.scope.clone();
        if Some(it.kind) != self.topic_name && !scope.contains(&it.kind) {
            scope.push(it.kind);
        }
        self.holding("scope", &scope)?;
        self.raw("<baseNameString>")?;
        text(&it.value, self.out)?;
        self.raw("</baseNameString>")?;
        for variant in it.variants.iter().filter(|_| is_first) {
            for id in self.ids_of(&variant.item) {
                self.open("variant", id.as_deref())?;
                let own: Vec<TopicId> =
                    variant.scope.iter().copied().filter(|theme| !it.scope.contains(theme)).collect();
                self.holding("parameters", &own)?;
                self.raw("<variantName>")?;
                self.value(&variant.value, &variant.datatype)?;
                self.raw("</variantName></variant>")?;
            }
        }
        self.raw("</baseName>")
    }

    fn occurrence(&mut self, it: &Occurrence, id: Option<&str>) -> io::Result<()> {
        self.open("occurrence", id)?;
        self.holding("instanceOf", &[it.kind])?;
        self.holding("scope", &it.scope)?;
        self.value(&it.value, &it.datatype)?;
        self.raw("</occurrence>")
    }

    fn association(&mut self, it: &Association, id: Option<&str>) -> io::Result<()> {
        self.open("association", id)?;
        self.holding("instanceOf", &[it.kind])?;
        self.holding("scope", &it.scope)?;
        for role in &it.roles {
            self.raw("<member>")?;
            self.holding("roleSpec", &[role.kind])?;
            self.reference(role.player)?;
            self.raw("</member>")?;
        }
        self.raw("</association>\n")
    }

    fn value(&mut self, value: &str, datatype: &str) -> io::Result<()> {
        if datatype == datatype::ANY_URI {
            return self.href("resourceRef", value);
        }
        self.raw("<resourceData>")?;
        text(value, self.out)?;
        self.raw("</resourceData>")
    }

    fn open(&mut self, element: &str, id: Option<&str>) -> io::Result<()> {
        match id {
            Some(id) => self.raw(&format!("<{element} id=\"{id}\">")),
            None => self.raw(&format!("<{element}>")),
        }
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
        let reference = format!("<topicRef xlink:href=\"#{}\"/>", self.ids.of(topic));
        self.raw(&reference)
    }

    fn href(&mut self, element: &str, iri: &str) -> io::Result<()> {
        let mut attribute = String::new();
        escape_attribute(&iri::encode(iri), &mut attribute);
        self.raw(&format!("<{element} xlink:href=\"{attribute}\"/>"))
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }
}
