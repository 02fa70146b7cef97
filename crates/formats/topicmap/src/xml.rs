//! XML, one child of the root at a time: memory is bounded by the largest of them.
//!
//! No document type is read: internal declarations are refused, external ones never fetched, so the only
//! entities are the five of XML itself.

use std::rc::Rc;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use crate::error::{Error, Place};
use crate::text;

/// Namespace of `xml:base` and `xml:lang`.
pub(crate) const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// An element with all its content.
#[derive(Debug)]
pub(crate) struct Element {
    /// Empty for none.
    pub(crate) namespace: Rc<str>,
    pub(crate) name: String,
    /// Namespace, local name, value.
    attributes: Vec<(Rc<str>, String, String)>,
    pub(crate) children: Vec<Node>,
    pub(crate) line: u64,
}

#[derive(Debug)]
pub(crate) enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    /// Returns the attribute with this local name that is in no namespace.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attribute_in("", name)
    }

    pub(crate) fn attribute_in(&self, namespace: &str, name: &str) -> Option<&str> {
        let it = self.attributes.iter().find(|it| it.1 == name && &*it.0 == namespace)?;
        Some(&it.2)
    }

    pub(crate) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|it| match it {
            Node::Element(it) => Some(it),
            Node::Text(_) => None,
        })
    }

    /// Returns all text within, including that of elements.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.collect_text(&mut out);
        out
    }

    fn collect_text(&self, out: &mut String) {
        for it in &self.children {
            match it {
                Node::Element(it) => it.collect_text(out),
                Node::Text(it) => out.push_str(it),
            }
        }
    }

    /// Returns the content as canonical XML: every namespace is declared where it is used.
    pub(crate) fn canonical_content(&self) -> String {
        let mut out = String::new();
        for it in &self.children {
            it.canonical(&mut out, "");
        }
        out
    }
}

impl Node {
    fn canonical(&self, out: &mut String, around: &str) {
        match self {
            Node::Text(text) => escape(text, out),
            Node::Element(it) => {
                out.push('<');
                out.push_str(&it.name);
                if &*it.namespace != around {
                    out.push_str(" xmlns=\"");
                    escape_attribute(&it.namespace, out);
                    out.push('"');
                }
                let mut attributes: Vec<_> = it.attributes.iter().collect();
                attributes.sort();
                let mut n_spaces = 0;
                for (namespace, name, value) in attributes {
                    if &**namespace == XML {
                        out.push_str(&format!(" xml:{name}=\""));
                    } else if namespace.is_empty() {
                        out.push_str(&format!(" {name}=\""));
                    } else {
                        out.push_str(&format!(" xmlns:n{n_spaces}=\""));
                        escape_attribute(namespace, out);
                        out.push_str(&format!("\" n{n_spaces}:{name}=\""));
                        n_spaces += 1;
                    }
                    escape_attribute(value, out);
                    out.push('"');
                }
                out.push('>');
                for child in &it.children {
                    child.canonical(out, &it.namespace);
                }
                out.push_str("</");
                out.push_str(&it.name);
                out.push('>');
            }
        }
    }
}

/// Escapes text as element content (canonical XML).
pub(crate) fn escape(text: &str, out: &mut String) {
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#xD;"),
            it => out.push(it),
        }
    }
}

/// Escapes text as the value of an attribute between double quotes.
pub(crate) fn escape_attribute(text: &str, out: &mut String) {
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            it => out.push(it),
        }
    }
}

/// Decodes the text of an XML document, in the encoding of its declaration.
pub(crate) fn decode<'b>(
    bytes: &'b [u8],
    is_strict: bool,
    place: &Place,
) -> Result<std::borrow::Cow<'b, str>, Error> {
    let head: String = bytes.iter().take(200).filter(|&&it| it != 0).map(|&it| char::from(it)).collect();
    let declared = head.find("<?xml").and_then(|at| {
        let declaration = &head[at..at + head[at..].find("?>")?];
        let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next()?;
        Some(value[1..].split(quote).next()?.to_owned())
    });
    text::decode(bytes, declared.as_deref(), encoding_rs::UTF_8, is_strict, place)
}

/// Reads the children of elements, one at a time.
pub(crate) struct Children<'t> {
    reader: NsReader<&'t [u8]>,
    text: &'t str,
    document: String,
    depth_max: usize,
    /// Number of open elements entered by [`Children::enter`].
    n_open: usize,
    counted_to: usize,
    line: u64,
    none: Rc<str>,
    last: Rc<str>,
}

impl<'t> Children<'t> {
    pub(crate) fn new(text: &'t str, document: &str, depth_max: usize) -> Children<'t> {
        let mut reader = NsReader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Children {
            reader,
            text,
            document: document.to_owned(),
            depth_max,
            n_open: 0,
            counted_to: 0,
            line: 1,
            none: Rc::from(""),
            last: Rc::from(""),
        }
    }

    /// Returns the current place.
    pub(crate) fn place(&mut self) -> Place {
        let to = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX).min(self.text.len());
        if to > self.counted_to {
            let passed = &self.text.as_bytes()[self.counted_to..to];
            self.line += passed.iter().filter(|&&it| it == b'\n').count() as u64;
            self.counted_to = to;
        }
        Place::new(&self.document, self.line)
    }

    fn fault(&mut self, reason: impl Into<String>) -> Error {
        self.place().fault(reason)
    }

    /// Returns the start of the next element, without its content; `None` at the end of the entered element.
    pub(crate) fn enter(&mut self) -> Result<Option<Element>, Error> {
        loop {
            match self.event()? {
                Event::Start(start) => {
                    let element = self.element(&start)?;
                    self.n_open += 1;
                    if self.n_open > self.depth_max {
                        return Err(self.fault(format!("elements lie more than {} deep", self.depth_max)));
                    }
                    return Ok(Some(element));
                }
                Event::End(_) => {
                    self.n_open -= 1;
                    return Ok(None);
                }
                Event::Eof if self.n_open > 0 => {
                    return Err(self.fault("the document ends within an element; is the file cut off?"));
                }
                Event::Eof => return Ok(None),
                Event::Text(text) if !text.trim().is_empty() => {
                    return Err(self.fault("text where only elements may stand"));
                }
                Event::GeneralRef(_) | Event::CData(_) => {
                    return Err(self.fault("text where only elements may stand"));
                }
                _ => {}
            }
        }
    }

    /// Reads the rest of an entered element.
    pub(crate) fn rest(&mut self, element: &mut Element) -> Result<(), Error> {
        let depth = self.n_open;
        self.fill(element)?;
        debug_assert_eq!(self.n_open + 1, depth);
        Ok(())
    }

    /// Returns the next child, complete; `None` at the end of the entered element.
    pub(crate) fn next(&mut self) -> Result<Option<Element>, Error> {
        let Some(mut element) = self.enter()? else { return Ok(None) };
        self.rest(&mut element)?;
        Ok(Some(element))
    }

    fn fill(&mut self, element: &mut Element) -> Result<(), Error> {
        loop {
            match self.event()? {
                Event::Start(start) => {
                    let mut child = self.element(&start)?;
                    self.n_open += 1;
                    if self.n_open > self.depth_max {
                        return Err(self.fault(format!("elements lie more than {} deep", self.depth_max)));
                    }
                    self.fill(&mut child)?;
                    element.children.push(Node::Element(child));
                }
                Event::End(_) => {
                    self.n_open -= 1;
                    return Ok(());
                }
                Event::Eof => {
                    return Err(self.fault("the document ends within an element; is the file cut off?"));
                }
                Event::Text(text) => push_text(element, &text.xml10_content()),
                Event::CData(text) => push_text(element, &text.xml10_content()),
                Event::GeneralRef(entity) => {
                    let resolved = if entity.is_char_ref() {
                        entity.resolve_char_ref().map_err(|error| self.fault(error.to_string()))?
                    } else {
                        match &*entity.xml10_content() {
                            "lt" => Some('<'),
                            "gt" => Some('>'),
                            "amp" => Some('&'),
                            "apos" => Some('\''),
                            "quot" => Some('"'),
                            _ => None,
                        }
                    };
                    match resolved {
                        Some(it) => push_text(element, it.encode_utf8(&mut [0; 4])),
                        None => {
                            let name = entity.xml10_content().into_owned();
                            return Err(self.fault(format!(
                                "uses the entity {name}; only the five of XML itself are known, as no document type is read"
                            )));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn event(&mut self) -> Result<Event<'t>, Error> {
        match self.reader.read_event() {
            Ok(Event::DocType(it)) if it.contains('[') || it.contains("ENTITY") => Err(self
                .fault("brings declarations of its own (DOCTYPE with [ ]): refused, no entity is expanded")),
            Ok(event) => Ok(event),
            Err(error) => Err(self.fault(format!("is no well-formed XML: {error}"))),
        }
    }

    fn element(&mut self, start: &BytesStart<'_>) -> Result<Element, Error> {
        let (resolved, local) = self.reader.resolver().resolve_element(start.name());
        let (namespace, name) = (owned(&resolved), local.into_inner().to_owned());
        let namespace = namespace.map_err(|prefix| self.unbound(&prefix))?;
        let namespace = self.shared(namespace);
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| self.fault(error.to_string()))?;
            if attribute.key.as_namespace_binding().is_some() {
                continue;
            }
            let (resolved, local) = self.reader.resolver().resolve_attribute(attribute.key);
            let (namespace, name) = (owned(&resolved), local.into_inner().to_owned());
            let namespace = namespace.map_err(|prefix| self.unbound(&prefix))?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| self.fault(format!("attribute {name}: {error}")))?
                .into_owned();
            attributes.push((self.shared(namespace), name, value));
        }
        Ok(Element { namespace, name, attributes, children: Vec::new(), line: self.place().line })
    }

    fn unbound(&mut self, prefix: &str) -> Error {
        self.fault(format!("uses the prefix {prefix}, which is bound to no namespace"))
    }

    /// Returns one shared copy of a namespace for consecutive elements in it.
    fn shared(&mut self, namespace: String) -> Rc<str> {
        if namespace.is_empty() {
            return Rc::clone(&self.none);
        }
        if *self.last != *namespace {
            self.last = Rc::from(namespace);
        }
        Rc::clone(&self.last)
    }
}

fn owned(resolved: &ResolveResult<'_>) -> Result<String, String> {
    match resolved {
        ResolveResult::Bound(namespace) => Ok(namespace.0.to_owned()),
        ResolveResult::Unbound => Ok(String::new()),
        ResolveResult::Unknown(prefix) => Err(prefix.clone()),
    }
}

fn push_text(element: &mut Element, text: &str) {
    match element.children.last_mut() {
        Some(Node::Text(last)) => last.push_str(text),
        _ => element.children.push(Node::Text(text.to_owned())),
    }
}
