//! Reads SKOS vocabularies in RDF/XML: concepts and schemes become topics, their labels names, their notes
//! occurrences, their relations associations.
//!
//! It reads the typed form (`<skos:Concept rdf:about="...">` with properties in it, nested or by `rdf:resource`),
//! and `rdf:Description` with `rdf:type`; other statements of RDF are left out.

use crate::builder::IdentityKind::SubjectIdentifier;
use crate::error::{Error, Place};
use crate::iri::{self, datatype, model};
use crate::model::{Association, Item, Name, Occurrence, TopicId, Variant};
use crate::session::Session;
use crate::xml::{self, Children, Element};

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";
const DC: [&str; 2] = ["http://purl.org/dc/terms/", "http://purl.org/dc/elements/1.1/"];

pub(crate) fn read(bytes: &[u8], base: &str, session: &mut Session<'_>) -> Result<(), Error> {
    let text = xml::decode(bytes, session.is_strict, &Place::new(base, 1))?;
    let mut children = Children::new(&text, base, session.limits.depth_max);
    let root =
        children.enter()?.ok_or_else(|| Place::new(base, 1).fault("holds no element; expected rdf:RDF"))?;
    if &*root.namespace != RDF || root.name != "RDF" {
        return Err(children.place().fault(format!("the root is {}; expected rdf:RDF", root.name)));
    }
    let base = root.attribute_in(xml::XML, "base").map_or(base.to_owned(), |it| iri::resolve(base, it));
    while let Some(it) = children.next()? {
        subject(&it, &base, session, 0)?;
    }
    match children.enter()? {
        None => Ok(()),
        Some(it) => Err(children.place().fault(format!("the element {} follows the root", it.name))),
    }
}

/// Reads a described resource; its element or `rdf:type` determines what it is.
fn subject(it: &Element, base: &str, session: &mut Session<'_>, depth: usize) -> Result<TopicId, Error> {
    let place = Place::new(base, it.line);
    session.count_statement(&place)?;
    if depth > session.limits.depth_max {
        return Err(place.fault("resources are nested too deeply"));
    }
    let topic = match (it.attribute_in(RDF, "about"), it.attribute_in(RDF, "ID")) {
        (Some(about), _) => session.builder.topic(SubjectIdentifier, &iri::locator(base, about)),
        (None, Some(id)) => session.builder.topic(SubjectIdentifier, &iri::locator(base, &format!("#{id}"))),
        (None, None) => {
            let number = session.next_anonymous();
            let iri = format!("{}#_:{number}", iri::document(base));
            session.builder.topic(crate::builder::IdentityKind::ItemIdentifier, &iri)
        }
    };
    if !(&*it.namespace == RDF && it.name == "Description") {
        let kind = session.builder.subject(&format!("{}{}", it.namespace, it.name));
        session.builder.add_instance(topic, kind);
    }
    for property in it.elements() {
        property_of(topic, property, base, session, depth)?;
    }
    Ok(topic)
}

fn property_of(
    topic: TopicId,
    it: &Element,
    base: &str,
    session: &mut Session<'_>,
    depth: usize,
) -> Result<(), Error> {
    let iri = format!("{}{}", it.namespace, it.name);
    if &*it.namespace == RDF && it.name == "type" {
        if let Some(kind) = object(it, base, session, depth)? {
            session.builder.add_instance(topic, kind);
        }
        return Ok(());
    }
    let local = iri.strip_prefix(SKOS);
    match local {
        Some("prefLabel" | "altLabel" | "hiddenLabel") => {
            let kind = if local == Some("prefLabel") { model::TOPIC_NAME.to_owned() } else { iri };
            let kind = session.builder.subject(&kind);
            let scope = language(it, session).into_iter().collect();
            let name = Name { value: it.text(), kind, scope, variants: Vec::new(), item: Item::default() };
            session.builder.add_name(topic, name);
        }
        Some("notation") => {
            let kind = session.builder.subject(&iri);
            let sort = session.builder.subject(model::SORT);
            let value = it.text().trim().to_owned();
            let mut name = Name::new(value.clone(), kind);
            let datatype = datatype::STRING.to_owned();
            name.variants.push(Variant { value, datatype, scope: vec![sort], item: Item::default() });
            session.builder.add_name(topic, name);
        }
        Some(
            "broader" | "broaderTransitive" | "narrower" | "narrowerTransitive" | "broadMatch"
            | "narrowMatch",
        ) => {
            if let Some(other) = object(it, base, session, depth)? {
                let is_up = it.name.starts_with("broad");
                let (narrow, broad) = if is_up { (topic, other) } else { (other, topic) };
                associate(session, "broader", [("narrower", narrow), ("broader", broad)]);
            }
        }
        Some("related" | "relatedMatch") => {
            if let Some(other) = object(it, base, session, depth)? {
                associate(session, "related", [("related", topic), ("related", other)]);
            }
        }
        Some("inScheme" | "topConceptOf" | "hasTopConcept" | "member") => {
            if let Some(other) = object(it, base, session, depth)? {
                let is_whole = matches!(it.name.as_str(), "hasTopConcept" | "member");
                let (concept, scheme) = if is_whole { (other, topic) } else { (topic, other) };
                let kind = if it.name == "member" { "member" } else { "inScheme" };
                let whole = if kind == "member" { "Collection" } else { "ConceptScheme" };
                associate(session, kind, [("Concept", concept), (whole, scheme)]);
            }
        }
        _ if DC.contains(&&*it.namespace) && it.name == "title" => {
            let kind = session.builder.subject(model::TOPIC_NAME);
            let scope = language(it, session).into_iter().collect();
            let name = Name { value: it.text(), kind, scope, variants: Vec::new(), item: Item::default() };
            session.builder.add_name(topic, name);
        }
        _ => occurrence(topic, &iri, it, base, session),
    }
    Ok(())
}

/// Adds notes and other statements: text, or where to find it.
fn occurrence(topic: TopicId, iri: &str, it: &Element, base: &str, session: &mut Session<'_>) {
    let kind = session.builder.subject(iri);
    let (value, datatype) = match it.attribute_in(RDF, "resource") {
        Some(resource) => (iri::locator(base, resource), datatype::ANY_URI.to_owned()),
        None => {
            let stated = it.attribute_in(RDF, "datatype").map(|stated| iri::locator(base, stated));
            (it.text(), stated.unwrap_or_else(|| datatype::STRING.to_owned()))
        }
    };
    if value.trim().is_empty() {
        return;
    }
    let scope = language(it, session).into_iter().collect();
    session.builder.add_occurrence(topic, Occurrence { value, datatype, kind, scope, item: Item::default() });
}

fn object(
    it: &Element,
    base: &str,
    session: &mut Session<'_>,
    depth: usize,
) -> Result<Option<TopicId>, Error> {
    if let Some(resource) = it.attribute_in(RDF, "resource") {
        return Ok(Some(session.builder.topic(SubjectIdentifier, &iri::locator(base, resource))));
    }
    match it.elements().next() {
        Some(nested) => subject(nested, base, session, depth + 1).map(Some),
        None => {
            let place = Place::new(base, it.line);
            session.complain(&place, format!("{} names no resource; left out", it.name))?;
            Ok(None)
        }
    }
}

fn associate(session: &mut Session<'_>, kind: &str, roles: [(&str, TopicId); 2]) {
    let kind = session.builder.subject(&format!("{SKOS}{kind}"));
    let roles = roles.map(|(role, player)| (session.builder.subject(&format!("{SKOS}{role}")), player));
    session.builder.add_association(Association::new(kind, roles));
}

/// Returns the topic of `xml:lang`: the Library of Congress publishes identifiers of languages of two and three
/// letters.
fn language(it: &Element, session: &mut Session<'_>) -> Option<TopicId> {
    let tag = it.attribute_in(xml::XML, "lang").filter(|it| !it.is_empty())?.to_ascii_lowercase();
    let iri = match tag.len() {
        2 => format!("http://id.loc.gov/vocabulary/iso639-1/{tag}"),
        3 => format!("http://id.loc.gov/vocabulary/iso639-2/{tag}"),
        _ => format!("urn:ietf:bcp:47:{tag}"),
    };
    Some(session.builder.subject(&iri))
}
