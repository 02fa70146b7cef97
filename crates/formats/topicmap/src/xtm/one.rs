//! Reads XTM 1.0 and converts it to the data model.

use std::collections::HashMap;

use crate::builder::Builder;
use crate::builder::IdentityKind::{self, ItemIdentifier, SubjectIdentifier, SubjectLocator};
use crate::error::Error;
use crate::format::Format;
use crate::iri::{self, datatype, model};
use crate::model::{Association, Item, Name, Occurrence, Role, TopicId, Variant};
use crate::session::Session;
use crate::xml::{self, Children, Element};
use crate::xtm::names::{NAMESPACE_1, place};

const XLINK: &str = "http://www.w3.org/1999/xlink";
const CORE: &str = "http://www.topicmaps.org/xtm/1.0/core.xtm#";

struct Reader<'s, 'l> {
    session: &'s mut Session<'l>,
    /// IRI of the document, for errors.
    document: &'s str,
    /// Added to every scope.
    themes: Vec<TopicId>,
}

/// Reads the root, already entered: a `topicMap`, or an element that contains some.
pub(super) fn read(
    root: Element,
    children: &mut Children<'_>,
    base: &str,
    themes: &[TopicId],
    session: &mut Session<'_>,
) -> Result<(), Error> {
    session.has_read_xtm_1 = true;
    let mut reader = Reader { session, document: base, themes: themes.to_vec() };
    let of_root = reader.base(base, &root);
    if root.name == "topicMap" {
        return reader.map(&root, children, &of_root);
    }
    let mut n_maps = 0;
    while let Some(mut it) = children.enter()? {
        if name(&it) == "topicMap" {
            let of_map = reader.base(&of_root, &it);
            reader.map(&it, children, &of_map)?;
            n_maps += 1;
        } else {
            children.rest(&mut it)?;
        }
    }
    if n_maps == 0 {
        return Err(place(base, &root).fault(format!("the root {} holds no topicMap", root.name)));
    }
    Ok(())
}

/// Returns the local name of an element of XTM 1.0; the namespace may be missing.
fn name(element: &Element) -> &str {
    if &*element.namespace == NAMESPACE_1 || element.namespace.is_empty() { &element.name } else { "" }
}

impl Reader<'_, '_> {
    /// Returns the base of an element: its `xml:base`, or that of its parent.
    fn base(&self, outer: &str, it: &Element) -> String {
        match it.attribute_in(xml::XML, "base") {
            Some(stated) => iri::resolve(outer, stated.trim()),
            None => outer.to_owned(),
        }
    }

    fn unexpected(&mut self, parent: &Element, it: &Element) -> Result<(), Error> {
        self.session.complain(
            &place(self.document, it),
            format!("the element {} may not stand here in {}; left out", it.name, parent.name),
        )
    }

    fn map(&mut self, map: &Element, children: &mut Children<'_>, base: &str) -> Result<(), Error> {
        if let Some(id) = map.attribute("id") {
            self.session.builder.identify_map(own(base, id));
        }
        while let Some(it) = children.next()? {
            self.session.count_statement(&place(self.document, &it))?;
            match name(&it) {
                "topic" => self.topic(&it, base)?,
                "association" => self.association(&it, base)?,
                "mergeMap" => {
                    let inner = self.base(base, &it);
                    let mut themes = self.themes.clone();
                    for child in it.elements() {
                        match self.reference(child, &inner)? {
                            Some(theme) => themes.push(theme),
                            None => self.unexpected(&it, child)?,
                        }
                    }
                    let href = self.href(&it, &inner)?;
                    let at = place(self.document, &it);
                    self.session.merge_as(Format::Xtm, iri::document(&href), &themes, &at)?;
                }
                _ => self.unexpected(map, &it)?,
            }
        }
        Ok(())
    }

    fn href(&mut self, it: &Element, outer: &str) -> Result<String, Error> {
        let href = it.attribute_in(XLINK, "href").ok_or_else(|| {
            place(self.document, it).fault(format!("the element {} has no xlink:href", it.name))
        })?;
        let base = self.base(outer, it);
        Ok(iri::locator(&base, href))
    }

    /// Returns the topic that a reference element means; `None` for other elements.
    fn reference(&mut self, it: &Element, base: &str) -> Result<Option<TopicId>, Error> {
        let kind = match name(it) {
            "topicRef" => ItemIdentifier,
            "subjectIndicatorRef" => SubjectIdentifier,
            "resourceRef" => SubjectLocator,
            _ => return Ok(None),
        };
        let href = self.href(it, base)?;
        Ok(Some(self.session.builder.topic(kind, &href)))
    }

    fn references(&mut self, it: &Element, outer: &str) -> Result<Vec<TopicId>, Error> {
        let base = self.base(outer, it);
        let mut out = Vec::new();
        for child in it.elements() {
            match self.reference(child, &base)? {
                Some(topic) => out.push(topic),
                None => self.unexpected(it, child)?,
            }
        }
        Ok(out)
    }

    fn one_reference(&mut self, it: &Element, outer: &str) -> Result<TopicId, Error> {
        match self.references(it, outer)?.as_slice() {
            [one] => Ok(*one),
            all => Err(place(self.document, it).fault(format!(
                "{} refers to {} topics; expected one",
                it.name,
                all.len()
            ))),
        }
    }

    /// Returns the scope that an element states, with the themes of the whole document.
    fn scope(&mut self, stated: Option<&Element>, base: &str) -> Result<Vec<TopicId>, Error> {
        let mut out = match stated {
            Some(it) => self.references(it, base)?,
            None => Vec::new(),
        };
        out.extend_from_slice(&self.themes);
        Ok(out)
    }

    fn item(it: &Element, base: &str) -> Item {
        Item {
            reifier: None,
            item_identifiers: it.attribute("id").map(|id| own(base, id)).into_iter().collect(),
        }
    }

    fn topic(&mut self, it: &Element, outer: &str) -> Result<(), Error> {
        let base = self.base(outer, it);
        let topic = self.session.builder.add_topic();
        match it.attribute("id") {
            Some(id) => self.session.builder.identify(topic, ItemIdentifier, &own(&base, id)),
            None => return Err(place(self.document, it).fault("a topic has no id")),
        }
        for child in it.elements().filter(|it| name(it) == "subjectIdentity") {
            let inner = self.base(&base, child);
            for reference in child.elements() {
                let kind = match name(reference) {
                    "topicRef" => ItemIdentifier,
                    "subjectIndicatorRef" => SubjectIdentifier,
                    "resourceRef" => SubjectLocator,
                    _ => {
                        self.unexpected(child, reference)?;
                        continue;
                    }
                };
                let href = self.href(reference, &inner)?;
                self.session.builder.identify(topic, kind, &href);
            }
        }
        for child in it.elements() {
            match name(child) {
                "subjectIdentity" => {}
                "instanceOf" => {
                    let kind = self.one_reference(child, &base)?;
                    self.session.builder.add_instance(topic, kind);
                }
                "baseName" => {
                    let name = self.name(child, &base)?;
                    self.session.builder.add_name(topic, name);
                }
                "occurrence" => {
                    let occurrence = self.occurrence(child, &base)?;
                    self.session.builder.add_occurrence(topic, occurrence);
                }
                _ => self.unexpected(it, child)?,
            }
        }
        Ok(())
    }

    fn name(&mut self, it: &Element, outer: &str) -> Result<Name, Error> {
        let base = self.base(outer, it);
        let (mut kind, mut scope, mut value, mut variants) = (None, None, None, Vec::new());
        for child in it.elements() {
            match name(child) {
                "instanceOf" => {
                    // Ontopia's editor writes this to mean the type.
                    self.session.complain(
                        &place(self.document, child),
                        "XTM 1.0 has no instanceOf in baseName; taken for the type of the name",
                    )?;
                    kind = Some(self.one_reference(child, &base)?);
                }
                "scope" => scope = Some(child),
                "baseNameString" if value.is_none() => value = Some(child.text()),
                "variant" => variants.push(child),
                _ => self.unexpected(it, child)?,
            }
        }
        let value =
            value.ok_or_else(|| place(self.document, it).fault("a baseName has no baseNameString"))?;
        let scope = self.scope(scope, &base)?;
        let kind = kind.unwrap_or_else(|| self.session.builder.subject(model::TOPIC_NAME));
        let mut name = Name { value, kind, scope, variants: Vec::new(), item: Self::item(it, &base) };
        for variant in variants {
            let around = name.scope.clone();
            self.variant(variant, &base, &around, &mut name)?;
        }
        Ok(name)
    }

    /// Reads a variant, and those within it, which become its siblings.
    fn variant(&mut self, it: &Element, outer: &str, around: &[TopicId], of: &mut Name) -> Result<(), Error> {
        let base = self.base(outer, it);
        let parameters = it
            .elements()
            .find(|it| name(it) == "parameters")
            .ok_or_else(|| place(self.document, it).fault("a variant has no parameters"))?;
        let mut scope = self.references(parameters, &base)?;
        scope.extend_from_slice(around);
        for child in it.elements() {
            match name(child) {
                "parameters" => {}
                "variantName" => {
                    let inner = self.base(&base, child);
                    let mut values =
                        child.elements().filter(|it| matches!(name(it), "resourceRef" | "resourceData"));
                    let value = values
                        .next()
                        .ok_or_else(|| place(self.document, child).fault("a variantName has no value"))?;
                    let (value, datatype) = self.value(value, &inner)?;
                    let item = Self::item(it, &base);
                    of.variants.push(Variant { value, datatype, scope: scope.clone(), item });
                }
                "variant" => self.variant(child, &base, &scope, of)?,
                _ => self.unexpected(it, child)?,
            }
        }
        Ok(())
    }

    fn value(&mut self, it: &Element, base: &str) -> Result<(String, String), Error> {
        Ok(match name(it) {
            "resourceRef" => (self.href(it, base)?, datatype::ANY_URI.to_owned()),
            _ => (it.text(), datatype::STRING.to_owned()),
        })
    }

    fn occurrence(&mut self, it: &Element, outer: &str) -> Result<Occurrence, Error> {
        let base = self.base(outer, it);
        let (mut kind, mut scope, mut value) = (None, None, None);
        for child in it.elements() {
            match name(child) {
                "instanceOf" => kind = Some(self.one_reference(child, &base)?),
                "scope" => scope = Some(child),
                "resourceRef" | "resourceData" if value.is_none() => value = Some(self.value(child, &base)?),
                _ => self.unexpected(it, child)?,
            }
        }
        let (value, datatype) = value.ok_or_else(|| {
            place(self.document, it).fault("an occurrence has neither resourceRef nor resourceData")
        })?;
        let scope = self.scope(scope, &base)?;
        let kind = kind.unwrap_or_else(|| self.session.builder.subject(&format!("{CORE}occurrence")));
        Ok(Occurrence { value, datatype, kind, scope, item: Self::item(it, &base) })
    }

    fn association(&mut self, it: &Element, outer: &str) -> Result<(), Error> {
        let base = self.base(outer, it);
        let (mut kind, mut scope, mut roles) = (None, None, Vec::new());
        for child in it.elements() {
            match name(child) {
                "instanceOf" => kind = Some(self.one_reference(child, &base)?),
                "scope" => scope = Some(child),
                "member" => self.member(child, &base, &mut roles)?,
                _ => self.unexpected(it, child)?,
            }
        }
        if roles.is_empty() {
            return Err(place(self.document, it).fault("an association has no member with a player"));
        }
        let scope = self.scope(scope, &base)?;
        let kind = kind.unwrap_or_else(|| self.session.builder.subject(&format!("{CORE}association")));
        let item = Self::item(it, &base);
        self.session.builder.add_association(Association { kind, scope, roles, item });
        Ok(())
    }

    /// Reads a member: each of its players plays a role of its own.
    fn member(&mut self, it: &Element, outer: &str, roles: &mut Vec<Role>) -> Result<(), Error> {
        let base = self.base(outer, it);
        let (mut kind, mut players) = (None, Vec::new());
        for child in it.elements() {
            match self.reference(child, &base)? {
                Some(player) => players.push(player),
                None if name(child) == "roleSpec" => kind = Some(self.one_reference(child, &base)?),
                None => self.unexpected(it, child)?,
            }
        }
        let kind = kind.unwrap_or_else(|| self.session.builder.subject(model::SUBJECT));
        roles.extend(players.into_iter().map(|player| Role { kind, player, item: Item::default() }));
        Ok(())
    }
}

/// Returns the identifier of an element that has an `id`.
fn own(base: &str, id: &str) -> String {
    format!("{}#{id}", iri::document(&iri::decode(base)))
}

/// Replaces the published subjects of XTM 1.0 by those of the data model. Topics that reify another item by
/// having its identifier as subject identifier become its reifiers.
pub(super) fn to_data_model(builder: &mut Builder) {
    for (old, new) in [
        ("class-instance", model::TYPE_INSTANCE),
        ("class", model::TYPE),
        ("instance", model::INSTANCE),
        ("superclass-subclass", model::SUPERTYPE_SUBTYPE),
        ("superclass", model::SUPERTYPE),
        ("subclass", model::SUBTYPE),
        ("sort", model::SORT),
    ] {
        let old = format!("{CORE}{old}");
        if let Some(topic) = builder.with_subject_identifier(&old) {
            builder.forget_subject_identifier(topic, &old);
            builder.identify(topic, IdentityKind::SubjectIdentifier, new);
        }
    }
    let mut identifiers = Vec::new();
    each_item(&mut builder.map, &mut |it| identifiers.extend(it.item_identifiers.iter().cloned()));
    let reifiers: HashMap<String, TopicId> = identifiers
        .into_iter()
        .filter_map(|iri| builder.with_subject_identifier(&iri).map(|topic| (iri, topic)))
        .collect();
    if reifiers.is_empty() {
        return;
    }
    let mut same = Vec::new();
    let mut used = Vec::new();
    each_item(&mut builder.map, &mut |item| {
        item.item_identifiers.retain(|iri| {
            let Some(&topic) = reifiers.get(iri) else { return true };
            used.push((topic, iri.clone()));
            match item.reifier {
                Some(other) => same.push((topic, other)),
                None => item.reifier = Some(topic),
            }
            false
        });
    });
    for (topic, iri) in used {
        builder.forget_subject_identifier(topic, &iri);
    }
    for (one, other) in same {
        builder.merge(one, other);
    }
}

fn each_item(map: &mut crate::model::TopicMap, visit: &mut dyn FnMut(&mut Item)) {
    visit(&mut map.item);
    for topic in &mut map.topics {
        for name in &mut topic.names {
            visit(&mut name.item);
            name.variants.iter_mut().for_each(|it| visit(&mut it.item));
        }
        topic.occurrences.iter_mut().for_each(|it| visit(&mut it.item));
    }
    for association in &mut map.associations {
        visit(&mut association.item);
        association.roles.iter_mut().for_each(|it| visit(&mut it.item));
    }
}
