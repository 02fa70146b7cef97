//! XML documents as trees, for documents that are processed as a whole.
//!
//! Resolves only the five predefined entities of XML, and fetches nothing.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

/// Maximum nesting of elements.
const DEPTH: usize = 64;
/// Maximum number of elements in a document.
const ELEMENTS: usize = 200_000;

/// Maximum number of attributes of an element: each is compared with the previous ones.
const ATTRIBUTES: usize = 100;

/// An element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Element {
    /// Its name without a prefix.
    pub name: String,
    /// Its attributes by names without a prefix.
    pub attributes: Vec<(String, String)>,
    content: Vec<Content>,
}

/// Content of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Text(String),
    Element(Element),
}

impl Element {
    /// Parses a document. Returns its root.
    ///
    /// Errors: why the document is invalid.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = quick_xml::Reader::from_reader(bytes);
        let (mut open, mut n_elements): (Vec<Self>, usize) = (Vec::new(), 0);
        loop {
            let event = reader.read_event();
            let event = event.map_err(|error| format!("at byte {}: {error}", reader.error_position()))?;
            let closed = match event {
                Event::Start(start) => {
                    n_elements += 1;
                    if DEPTH <= open.len() || ELEMENTS < n_elements {
                        return Err(format!(
                            "it has more than {ELEMENTS} elements, or more than {DEPTH} lie in each other"
                        ));
                    }
                    open.push(Self::begin(&start)?);
                    continue;
                }
                Event::Empty(start) => {
                    n_elements += 1;
                    Self::begin(&start)?
                }
                Event::End(_) => match open.pop() {
                    Some(it) => it,
                    None => continue,
                },
                Event::Text(text) => {
                    note(&mut open, &text);
                    continue;
                }
                Event::CData(text) => {
                    note(&mut open, &text);
                    continue;
                }
                Event::GeneralRef(reference) => {
                    let number = reference.resolve_char_ref().map_err(|error| error.to_string())?;
                    let number = number.map(String::from);
                    let text =
                        number.as_deref().or_else(|| quick_xml::escape::resolve_xml_entity(&reference));
                    let unknown = || format!("the entity &{};", &*reference);
                    note(&mut open, text.ok_or_else(unknown)?);
                    continue;
                }
                Event::Eof => return Err("it ends before its root does".to_owned()),
                _ => continue,
            };
            match open.last_mut() {
                Some(parent) => parent.content.push(Content::Element(closed)),
                None => return Ok(closed),
            }
        }
    }

    fn begin(start: &BytesStart<'_>) -> Result<Self, String> {
        let mut attributes = Vec::new();
        for it in start.attributes() {
            if ATTRIBUTES <= attributes.len() {
                return Err(format!("an element has more than {ATTRIBUTES} attributes"));
            }
            let it = it.map_err(|error| error.to_string())?;
            let value = it.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
            attributes.push((it.key.local_name().as_ref().to_owned(), value.into_owned()));
        }
        Ok(Self { name: start.local_name().as_ref().to_owned(), attributes, ..Self::default() })
    }

    /// Returns an attribute's value; empty if there is none.
    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|it| it.0 == name).map_or("", |it| it.1.trim())
    }

    /// Returns the elements of a path below this one: `citation/titlStmt/titl`.
    pub(crate) fn all<'a>(&'a self, path: &str) -> Vec<&'a Self> {
        path.split('/').fold(vec![self], |found, name| {
            found.into_iter().flat_map(Self::children).filter(|it| it.name == name).collect()
        })
    }

    /// Returns the child elements.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Self> {
        self.content.iter().filter_map(|it| match it {
            Content::Element(element) => Some(element),
            Content::Text(_) => None,
        })
    }

    /// Returns all text in it, including that of its descendants, in document order.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.add_text(&mut text);
        text
    }

    fn add_text(&self, text: &mut String) {
        for it in &self.content {
            match it {
                Content::Text(own) => text.push_str(own),
                Content::Element(element) => element.add_text(text),
            }
        }
    }

    /// Returns its text with white space collapsed.
    pub(crate) fn plain(&self) -> String {
        self.text().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Collects the elements without child elements, in document order.
    pub(crate) fn leaves<'a>(&'a self, found: &mut Vec<&'a Self>) {
        if self.children().next().is_none() {
            found.push(self);
        }
        self.children().for_each(|it| it.leaves(found));
    }
}

fn note(open: &mut [Element], text: &str) {
    let Some(it) = open.last_mut() else { return };
    match it.content.last_mut() {
        Some(Content::Text(before)) => before.push_str(text),
        _ => it.content.push(Content::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_becomes_a_tree() {
        let root = Element::read(
            br#"<?xml version="1.0"?><!-- c --><a xmlns:x="u" x:k=" v&amp;w "><x:b>1 &lt; <i>two</i><![CDATA[<3>]]> &#233;</x:b><b/></a>"#,
        )
        .unwrap();
        assert_eq!((root.name.as_str(), root.attribute("k"), root.attribute("none")), ("a", "v&w", ""));
        let found: Vec<String> = root.all("b").into_iter().map(Element::plain).collect();
        assert_eq!(found, ["1 < two<3> \u{e9}", ""]);
        let mut leaves = Vec::new();
        root.leaves(&mut leaves);
        let leaves: Vec<(&str, String)> = leaves.iter().map(|it| (it.name.as_str(), it.text())).collect();
        assert_eq!(leaves, [("i", "two".to_owned()), ("b", String::new())]);
    }

    #[test]
    fn what_is_no_document_is_told() {
        for (text, part) in [
            ("", "ends before its root"),
            ("no xml", "ends before its root"),
            ("<a><b></b>", "ends before its root"),
            ("<a></b>", "at byte"),
            ("<a b='1' b='2'/>", "duplicat"),
            ("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "the entity &e;"),
            (&"<a>".repeat(DEPTH + 1), "lie in each other"),
            (
                &format!("<a {}/>", (0..=ATTRIBUTES).map(|n| format!("b{n}='' ")).collect::<String>()),
                "attributes",
            ),
        ] {
            let fault = Element::read(text.as_bytes()).unwrap_err();
            assert!(fault.contains(part), "{text:.40}: {fault}");
        }
    }
}
