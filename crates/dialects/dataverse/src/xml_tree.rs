//! XML documents as trees, for what is read whole.
//!
//! No entity but the five of XML itself is resolved, and nothing is fetched.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

/// How deeply elements may lie in each other.
const DEPTH: usize = 64;
/// Most elements of a document.
const ELEMENTS: usize = 200_000;

/// An element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Element {
    /// Its name without a prefix.
    pub name: String,
    /// Its attributes by names without a prefix.
    pub attributes: Vec<(String, String)>,
    /// All text in it, that of the elements below it too, in the order of the document.
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// The root of a document.
    ///
    /// Errors: why the document cannot be read.
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
                Some(parent) => {
                    parent.text.push_str(&closed.text);
                    parent.children.push(closed);
                }
                None => return Ok(closed),
            }
        }
    }

    fn begin(start: &BytesStart<'_>) -> Result<Self, String> {
        let mut attributes = Vec::new();
        for it in start.attributes() {
            let it = it.map_err(|error| error.to_string())?;
            let value = it.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
            attributes.push((it.key.local_name().as_ref().to_owned(), value.into_owned()));
        }
        Ok(Self { name: start.local_name().as_ref().to_owned(), attributes, ..Self::default() })
    }

    /// An attribute's value; empty when it is not there.
    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|it| it.0 == name).map_or("", |it| it.1.trim())
    }

    /// The elements of a path below this one: `citation/titlStmt/titl`.
    pub(crate) fn all<'a>(&'a self, path: &str) -> Vec<&'a Self> {
        path.split('/').fold(vec![self], |found, name| {
            found.into_iter().flat_map(|it| &it.children).filter(|it| it.name == name).collect()
        })
    }

    /// Its text with single blanks.
    pub(crate) fn plain(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// This element and all below it, in the order of the document.
    pub(crate) fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        for it in &self.children {
            it.walk(visit);
        }
    }
}

fn note(open: &mut [Element], text: &str) {
    if let Some(it) = open.last_mut() {
        it.text.push_str(text);
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
        let mut names = Vec::new();
        root.walk(&mut |it| names.push(it.name.as_str()));
        assert_eq!(names, ["a", "b", "i", "b"]);
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
        ] {
            let fault = Element::read(text.as_bytes()).unwrap_err();
            assert!(fault.contains(part), "{text:.40}: {fault}");
        }
    }
}
