//! Reads XTM 2.0 and 2.1 (ISO/IEC 13250-3).

use crate::builder::IdentityKind::{ItemIdentifier, SubjectIdentifier, SubjectLocator};
use crate::error::Error;
use crate::format::Format;
use crate::iri::{self, datatype, model};
use crate::model::{Association, Item, Name, Occurrence, Role, TopicId, Variant};
use crate::session::Session;
use crate::xml::{Children, Element};
use crate::xtm::names::{NAMESPACE_2, is_nc_name, place};

struct Reader<'s, 'l> {
    session: &'s mut Session<'l>,
    base: &'s str,
    /// 2.1 rather than 2.0.
    is_2_1: bool,
}

/// Reads the content of the root, already entered.
pub(super) fn read(
    root: &Element,
    children: &mut Children<'_>,
    base: &str,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let at = place(base, root);
    if root.name != "topicMap" {
        return Err(at.fault(format!("the root is {}; expected topicMap", root.name)));
    }
    let is_2_1 = match root.attribute("version") {
        Some("2.0") => false,
        Some("2.1") => true,
        Some(other) => {
            return Err(at.fault(format!("topicMap has the version {other:?}; expected 2.0 or 2.1")));
        }
        None => return Err(at.fault("topicMap has no version; expected 2.0 or 2.1")),
    };
    // A merged map's identifiers are taken over, its reifier is not.
    let is_outermost = session.is_outermost();
    let mut reader = Reader { session, base, is_2_1 };
    let mut reifier = reader.reifier_attribute(root)?;
    let mut n_seen = 0;
    while let Some(it) = children.next()? {
        reader.session.count_statement(&place(base, &it))?;
        match name(&it) {
            "reifier" => {
                if n_seen > 0 || reifier.is_some() {
                    return Err(place(base, &it).fault("topicMap has more than one reifier"));
                }
                reifier = Some(reader.reifier_element(&it)?);
            }
            "itemIdentity" => {
                let identifier = reader.href(&it)?;
                reader.session.builder.identify_map(identifier);
            }
            "mergeMap" => {
                let href = reader.href(&it)?;
                reader.session.merge_as(Format::Xtm, iri::document(&href), &[], &place(base, &it))?;
            }
            "topic" => reader.topic(&it)?,
            "association" => reader.association(&it)?,
            _ => reader.unexpected(root, &it)?,
        }
        n_seen += 1;
    }
    if let Some(topic) = reifier.filter(|_| is_outermost) {
        reader.session.builder.reify_map(topic);
    }
    Ok(())
}

/// Returns the local name of an element of XTM 2; empty for others.
fn name(element: &Element) -> &str {
    if &*element.namespace == NAMESPACE_2 { &element.name } else { "" }
}

/// A value with its datatype.
type Value = (String, String);

impl Reader<'_, '_> {
    fn unexpected(&mut self, parent: &Element, it: &Element) -> Result<(), Error> {
        self.session.complain(
            &place(self.base, it),
            format!("the element {} may not stand here in {}; left out", it.name, parent.name),
        )
    }

    fn href(&mut self, it: &Element) -> Result<String, Error> {
        let href = it
            .attribute("href")
            .ok_or_else(|| place(self.base, it).fault(format!("the element {} has no href", it.name)))?;
        Ok(iri::locator(self.base, href))
    }

    /// Returns the topic that a reference element means; `None` for other elements.
    fn reference(&mut self, it: &Element) -> Result<Option<TopicId>, Error> {
        let kind = match name(it) {
            "topicRef" => ItemIdentifier,
            "subjectIdentifierRef" => SubjectIdentifier,
            "subjectLocatorRef" => SubjectLocator,
            _ => return Ok(None),
        };
        if kind != ItemIdentifier && !self.is_2_1 {
            self.session
                .complain(&place(self.base, it), format!("{} is of version 2.1, not of 2.0", it.name))?;
        }
        if kind == ItemIdentifier && !self.is_2_1 && !it.attribute("href").is_some_and(|it| it.contains('#'))
        {
            self.session.complain(
                &place(self.base, it),
                "the href of topicRef has no fragment (#), which 2.0 asks for",
            )?;
        }
        let href = self.href(it)?;
        Ok(Some(self.session.builder.topic(kind, &href)))
    }

    /// Returns the topics that an element refers to, at least one.
    fn references(&mut self, it: &Element) -> Result<Vec<TopicId>, Error> {
        let mut out = Vec::new();
        for child in it.elements() {
            match self.reference(child)? {
                Some(topic) => out.push(topic),
                None => self.unexpected(it, child)?,
            }
        }
        if out.is_empty() {
            return Err(place(self.base, it).fault(format!("{} refers to no topic", it.name)));
        }
        Ok(out)
    }

    /// Returns the single topic that an element refers to.
    fn one_reference(&mut self, it: &Element) -> Result<TopicId, Error> {
        let all = self.references(it)?;
        if all.len() > 1 {
            self.session.complain(
                &place(self.base, it),
                format!("{} refers to {} topics; expected one", it.name, all.len()),
            )?;
        }
        Ok(all[0])
    }

    fn reifier_attribute(&mut self, it: &Element) -> Result<Option<TopicId>, Error> {
        let Some(href) = it.attribute("reifier") else { return Ok(None) };
        let href = iri::locator(self.base, href);
        Ok(Some(self.session.builder.topic(ItemIdentifier, &href)))
    }

    fn reifier_element(&mut self, it: &Element) -> Result<TopicId, Error> {
        if !self.is_2_1 {
            self.session
                .complain(&place(self.base, it), "the element reifier is of version 2.1, not of 2.0")?;
        }
        self.one_reference(it)
    }

    /// Reads reifier and identifiers; children that are neither are added to `rest`.
    fn item<'e>(&mut self, it: &'e Element, rest: &mut Vec<&'e Element>) -> Result<Item, Error> {
        let mut item = Item { reifier: self.reifier_attribute(it)?, item_identifiers: Vec::new() };
        for child in it.elements() {
            match name(child) {
                "itemIdentity" => item.item_identifiers.push(self.href(child)?),
                "reifier" if item.reifier.is_some() => {
                    return Err(
                        place(self.base, child).fault(format!("{} has more than one reifier", it.name))
                    );
                }
                "reifier" => item.reifier = Some(self.reifier_element(child)?),
                _ => rest.push(child),
            }
        }
        Ok(item)
    }

    fn topic(&mut self, it: &Element) -> Result<(), Error> {
        let at = place(self.base, it);
        let topic = self.session.builder.add_topic();
        let mut has_identity = false;
        match it.attribute("id") {
            Some(id) if is_nc_name(id) => {
                let iri = format!("{}#{id}", iri::document(&iri::decode(self.base)));
                self.session.builder.identify(topic, ItemIdentifier, &iri);
                has_identity = true;
            }
            Some(id) => return Err(at.fault(format!("the id {id:?} is no name (NCName)"))),
            None if !self.is_2_1 => return Err(at.fault("a topic has no id, which 2.0 asks for")),
            None => {}
        }
        for child in it.elements() {
            let kind = match name(child) {
                "itemIdentity" => ItemIdentifier,
                "subjectIdentifier" => SubjectIdentifier,
                "subjectLocator" => SubjectLocator,
                _ => continue,
            };
            let href = self.href(child)?;
            self.session.builder.identify(topic, kind, &href);
            has_identity = true;
        }
        if !has_identity {
            return Err(at.fault(
                "a topic has neither id nor itemIdentity, subjectIdentifier or subjectLocator; it needs one of them",
            ));
        }
        for child in it.elements() {
            match name(child) {
                "itemIdentity" | "subjectIdentifier" | "subjectLocator" => {}
                "instanceOf" => {
                    for kind in self.references(child)? {
                        self.session.builder.add_instance(topic, kind);
                    }
                }
                "name" => {
                    let name = self.name(child)?;
                    self.session.builder.add_name(topic, name);
                }
                "occurrence" => {
                    let occurrence = self.occurrence(child)?;
                    self.session.builder.add_occurrence(topic, occurrence);
                }
                _ => self.unexpected(it, child)?,
            }
        }
        Ok(())
    }

    fn name(&mut self, it: &Element) -> Result<Name, Error> {
        let (mut kind, mut scope, mut value, mut variants) = (None, Vec::new(), None, Vec::new());
        let mut rest = Vec::new();
        let item = self.item(it, &mut rest)?;
        for child in rest {
            match name(child) {
                "type" => kind = Some(self.one_reference(child)?),
                "scope" => scope = self.references(child)?,
                "value" if value.is_none() => value = Some(child.text()),
                "variant" => variants.push(child),
                _ => self.unexpected(it, child)?,
            }
        }
        let value = value.ok_or_else(|| place(self.base, it).fault("a name has no value"))?;
        let kind = kind.unwrap_or_else(|| self.session.builder.subject(model::TOPIC_NAME));
        let mut name = Name { value, kind, scope, variants: Vec::new(), item };
        for variant in variants {
            let variant = self.variant(variant, &name)?;
            name.variants.push(variant);
        }
        Ok(name)
    }

    fn variant(&mut self, it: &Element, of: &Name) -> Result<Variant, Error> {
        let (mut scope, mut value) = (Vec::new(), None);
        let mut rest = Vec::new();
        let item = self.item(it, &mut rest)?;
        for child in rest {
            match name(child) {
                "scope" => scope = self.references(child)?,
                "resourceRef" | "resourceData" if value.is_none() => value = Some(self.value(child)?),
                _ => self.unexpected(it, child)?,
            }
        }
        let at = place(self.base, it);
        let (value, datatype) =
            value.ok_or_else(|| at.fault("a variant has neither resourceRef nor resourceData"))?;
        if !self.session.is_wider(&scope, &of.scope) {
            self.session.complain(&at, "a variant has no theme of its own, beside those of its name")?;
        }
        scope.extend_from_slice(&of.scope);
        Ok(Variant { value, datatype, scope, item })
    }

    fn value(&mut self, it: &Element) -> Result<Value, Error> {
        if name(it) == "resourceRef" {
            return Ok((self.href(it)?, datatype::ANY_URI.to_owned()));
        }
        let datatype = match it.attribute("datatype") {
            Some(stated) => iri::locator(self.base, stated),
            None => datatype::STRING.to_owned(),
        };
        let value = match datatype.as_str() {
            datatype::ANY_URI => iri::locator(self.base, &it.text()),
            datatype::ANY_TYPE => it.canonical_content(),
            _ => {
                if let Some(child) = it.elements().next() {
                    self.unexpected(it, child)?;
                }
                it.text()
            }
        };
        Ok((value, datatype))
    }

    fn occurrence(&mut self, it: &Element) -> Result<Occurrence, Error> {
        let (mut kind, mut scope, mut value) = (None, Vec::new(), None);
        let mut rest = Vec::new();
        let item = self.item(it, &mut rest)?;
        for child in rest {
            match name(child) {
                "type" => kind = Some(self.one_reference(child)?),
                "scope" => scope = self.references(child)?,
                "resourceRef" | "resourceData" if value.is_none() => value = Some(self.value(child)?),
                _ => self.unexpected(it, child)?,
            }
        }
        let at = place(self.base, it);
        let kind = kind.ok_or_else(|| at.fault("an occurrence has no type"))?;
        let (value, datatype) =
            value.ok_or_else(|| at.fault("an occurrence has neither resourceRef nor resourceData"))?;
        Ok(Occurrence { value, datatype, kind, scope, item })
    }

    fn association(&mut self, it: &Element) -> Result<(), Error> {
        let (mut kind, mut scope, mut roles) = (None, Vec::new(), Vec::new());
        let mut rest = Vec::new();
        let item = self.item(it, &mut rest)?;
        for child in rest {
            match name(child) {
                "type" => kind = Some(self.one_reference(child)?),
                "scope" => scope = self.references(child)?,
                "role" => roles.push(self.role(child)?),
                _ => self.unexpected(it, child)?,
            }
        }
        let at = place(self.base, it);
        let kind = kind.ok_or_else(|| at.fault("an association has no type"))?;
        if roles.is_empty() {
            return Err(at.fault("an association has no role"));
        }
        self.session.builder.add_association(Association { kind, scope, roles, item });
        Ok(())
    }

    fn role(&mut self, it: &Element) -> Result<Role, Error> {
        let (mut kind, mut player) = (None, None);
        let mut rest = Vec::new();
        let item = self.item(it, &mut rest)?;
        for child in rest {
            match self.reference(child)? {
                Some(_) if player.is_some() => {
                    return Err(place(self.base, child).fault("a role has more than one player"));
                }
                Some(topic) => player = Some(topic),
                None if name(child) == "type" => kind = Some(self.one_reference(child)?),
                None => self.unexpected(it, child)?,
            }
        }
        let at = place(self.base, it);
        let kind = kind.ok_or_else(|| at.fault("a role has no type"))?;
        let player = player.ok_or_else(|| at.fault("a role has no player"))?;
        Ok(Role { kind, player, item })
    }
}
