//! Reads the dumps of the Open Directory (DMOZ): `structure.rdf.u8` with the categories, `content.rdf.u8` with the
//! links. They look like RDF but are not; files from before 2003 contain bytes that are not UTF-8, which are
//! replaced.
//!
//! [`Reader`] is a stream: memory is bounded by the largest category, whatever the size of the dump.

use std::io::{self, BufRead};

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

use crate::builder::IdentityKind::ItemIdentifier;
use crate::error::{Error, Place};
use crate::iri::{self, datatype, model};
use crate::model::{Association, Name, Occurrence, TopicId};
use crate::session::Session;

/// Maximum size of one category or page in bytes; larger ones are refused.
const ENTRY_LEN_MAX_BYTES: usize = 64 << 20;

/// One entry of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A category, with its properties in the file.
    Category(Category),
    /// A category shown under another name in a third category.
    Alias(Alias),
    /// A page that categories link to.
    Page(Page),
}

/// A category: title and arcs in the structure file, links in the content file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Category {
    /// Path, as `Top/Arts`; empty for the root of the content file.
    pub id: String,
    /// Number in the directory.
    pub catid: Option<String>,
    /// Title, as in the file: often with underscores.
    pub title: Option<String>,
    /// Text, perhaps with HTML in it.
    pub description: Option<String>,
    /// `YYYY-MM-DD hh:mm:ss`.
    pub last_update: Option<String>,
    /// Name to display.
    pub display_name: Option<String>,
    /// Relations to other categories.
    pub arcs: Vec<Arc>,
    /// Addresses, such as `news:alt.x`.
    pub newsgroups: Vec<String>,
    /// Pages, by kind of link (`link`, `pdf`, `rss`, `atom`).
    pub links: Vec<(String, String)>,
}

/// A relation of a category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arc {
    /// Kind, which says how `target` is to be read.
    pub kind: ArcKind,
    /// Group in which it is displayed: the digit at the end of the element's name.
    pub group: Option<u8>,
    /// The part before the colon of `symbolic` and `altlang`: a label or language.
    pub label: Option<String>,
    /// Path of the other category.
    pub target: String,
}

/// Kinds of relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArcKind {
    /// A subcategory.
    Narrow,
    /// One on a neighbouring subject.
    Related,
    /// A category from elsewhere that is shown here too, under a label.
    Symbolic,
    /// The same in another language.
    Language,
}

/// `Label:Top/Path` stands for the category `target`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alias {
    /// Label and path of the category that shows it.
    pub id: String,
    /// Title.
    pub title: Option<String>,
    /// Path of the target category.
    pub target: String,
}

/// A page that the directory knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Address.
    pub url: String,
    /// Title.
    pub title: String,
    /// What it is about.
    pub description: String,
    /// 1 for prominent pages.
    pub priority: Option<String>,
    /// Path of the category.
    pub category: String,
}

/// Which of the two dumps is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dump {
    /// Categories and their relations: `structure.rdf.u8`.
    Structure,
    /// Links of categories: `content.rdf.u8`.
    Content,
}

/// Reads the entries of a dump, one after the other.
pub struct Reader<R> {
    dump: Dump,
    reader: quick_xml::Reader<Lossy<R>>,
    document: String,
    buffer: Vec<u8>,
    is_open: bool,
}

/// An element directly within an entry.
struct Child {
    name: String,
    resource: Option<String>,
    text: String,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`; `document` names it in errors.
    pub fn new(input: R, document: &str, dump: Dump) -> Reader<R> {
        let mut reader = quick_xml::Reader::from_reader(Lossy::new(input));
        reader.config_mut().expand_empty_elements = true;
        reader.config_mut().allow_dangling_amp = true;
        Reader { dump, reader, document: document.to_owned(), buffer: Vec::new(), is_open: false }
    }

    /// Returns the line that has been read up to.
    pub fn line(&self) -> u64 {
        self.reader.get_ref().line
    }

    /// Returns the next entry; `None` at the end. Errors: the dump ends within an entry, or it is the other one, of which
    /// a part would be left out.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let Some((name, id)) = self.entry_start()? else { return Ok(None) };
            let mut children = Vec::new();
            while let Some(child) = self.child()? {
                children.push(child);
            }
            let entry = match name.as_str() {
                "Topic" => Entry::Category(category(id, children)),
                "Alias" => Entry::Alias(alias(id, children)),
                "ExternalPage" => Entry::Page(page(id, children)),
                _ => continue,
            };
            return match (&entry, self.dump) {
                (Entry::Page(_), Dump::Structure) => {
                    Err(self.fault("has pages, not only categories: read it as dmoz-content"))
                }
                (Entry::Category(it), Dump::Content) if !it.arcs.is_empty() => {
                    Err(self.fault("has relations of categories, not only links: read it as dmoz-structure"))
                }
                _ => Ok(Some(entry)),
            };
        }
    }

    fn fault(&self, reason: impl Into<String>) -> Error {
        Place::new(&self.document, self.line()).fault(reason)
    }

    fn event(&mut self) -> Result<Event<'static>, Error> {
        self.buffer.clear();
        match self.reader.read_event_into(&mut self.buffer) {
            Ok(Event::DocType(it)) if it.contains('[') => Err(Place::new(&self.document, 1)
                .fault("brings declarations of its own (DOCTYPE with [ ]): refused, no entity is expanded")),
            Ok(event) => Ok(event.into_owned()),
            Err(error) => {
                let line = self.line();
                Err(Place::new(&self.document, line).fault(format!("is no well-formed XML: {error}")))
            }
        }
    }

    fn entry_start(&mut self) -> Result<Option<(String, String)>, Error> {
        loop {
            match self.event()? {
                Event::Start(start) if !self.is_open => {
                    if start.local_name().into_inner() != "RDF" {
                        return Err(self.fault("the root is not RDF; is this a dump of the Open Directory?"));
                    }
                    self.is_open = true;
                }
                Event::Start(start) => {
                    let name = start.local_name().into_inner().to_owned();
                    let id = attribute(&start, &["id", "about"]).unwrap_or_default();
                    return Ok(Some((name, id)));
                }
                Event::Eof if self.is_open => {
                    return Err(self.fault("the dump ends before its root is closed; is the file cut off?"));
                }
                Event::Eof => return Ok(None),
                Event::End(_) => self.is_open = false,
                _ => {}
            }
        }
    }

    /// Returns the next element within an entry; `None` at its end.
    fn child(&mut self) -> Result<Option<Child>, Error> {
        let mut child: Option<Child> = None;
        let mut n_open = 0_u32;
        loop {
            match self.event()? {
                Event::Start(start) => {
                    n_open += 1;
                    if child.is_none() {
                        let name = start.local_name().into_inner().to_owned();
                        let resource = attribute(&start, &["resource", "catid"]);
                        child = Some(Child { name, resource, text: String::new() });
                    }
                }
                Event::End(_) if n_open == 0 => return Ok(None),
                Event::End(_) => {
                    n_open -= 1;
                    if n_open == 0 {
                        return Ok(child);
                    }
                }
                Event::Text(text) => append(&mut child, &text.xml10_content()),
                Event::CData(text) => append(&mut child, &text.xml10_content()),
                Event::GeneralRef(entity) => {
                    let resolved = match &*entity.xml10_content() {
                        "lt" => Some('<'),
                        "gt" => Some('>'),
                        "amp" => Some('&'),
                        "apos" => Some('\''),
                        "quot" => Some('"'),
                        _ => entity.resolve_char_ref().ok().flatten(),
                    };
                    match resolved {
                        Some(it) => append(&mut child, it.encode_utf8(&mut [0; 4])),
                        None => append(&mut child, &format!("&{};", entity.xml10_content())),
                    }
                }
                Event::Eof => return Err(self.fault("the dump ends within an entry; is the file cut off?")),
                _ => {}
            }
            if child.as_ref().is_some_and(|it| it.text.len() > ENTRY_LEN_MAX_BYTES) {
                return Err(self.fault(format!("an element is longer than {ENTRY_LEN_MAX_BYTES} bytes")));
            }
        }
    }
}

fn append(child: &mut Option<Child>, text: &str) {
    if let Some(child) = child {
        child.text.push_str(text);
    }
}

fn attribute(start: &BytesStart<'_>, names: &[&str]) -> Option<String> {
    let mut attributes = start.attributes();
    attributes.with_checks(false);
    attributes.flatten().find(|it| names.contains(&it.key.local_name().into_inner())).map(|it| {
        it.normalized_value(XmlVersion::Implicit1_0)
            .map_or_else(|_| it.value.to_string(), |it| it.into_owned())
    })
}

fn category(id: String, children: Vec<Child>) -> Category {
    let mut out = Category { id, ..Category::default() };
    for Child { name, resource, text } in children {
        let text = text.trim();
        let filled = || Some(text.to_owned()).filter(|it| !it.is_empty());
        let (stem, group) = match name.as_bytes().last() {
            Some(digit @ b'0'..=b'9') => (&name[..name.len() - 1], Some(digit - b'0')),
            _ => (name.as_str(), None),
        };
        match (stem, resource) {
            ("catid", _) => out.catid = filled(),
            ("tag", Some(catid)) => out.catid = Some(catid),
            ("Title", _) => out.title = filled(),
            ("Description", _) => out.description = filled(),
            ("lastUpdate", _) => out.last_update = filled(),
            ("dispname", _) => out.display_name = filled(),
            ("newsgroup" | "newsGroup", Some(resource)) => out.newsgroups.push(resource),
            ("link" | "pdf" | "rss" | "atom", Some(resource)) => out.links.push((stem.to_owned(), resource)),
            ("narrow", Some(target)) => {
                out.arcs.push(Arc { kind: ArcKind::Narrow, group, label: None, target })
            }
            ("related", Some(target)) => {
                out.arcs.push(Arc { kind: ArcKind::Related, group, label: None, target })
            }
            ("symbolic", Some(resource)) => out.arcs.push(labelled(ArcKind::Symbolic, group, &resource)),
            ("altlang", Some(resource)) => out.arcs.push(labelled(ArcKind::Language, group, &resource)),
            _ => {}
        }
    }
    out
}

fn labelled(kind: ArcKind, group: Option<u8>, resource: &str) -> Arc {
    let (label, target) = match resource.split_once(':') {
        Some((label, target)) => (Some(label.to_owned()), target),
        None => (None, resource),
    };
    Arc { kind, group, label, target: target.to_owned() }
}

fn alias(id: String, children: Vec<Child>) -> Alias {
    let mut out = Alias { id, ..Alias::default() };
    for Child { name, resource, text } in children {
        match (name.as_str(), resource) {
            ("Title", _) => out.title = Some(text.trim().to_owned()).filter(|it| !it.is_empty()),
            ("Target", Some(target)) => out.target = target,
            _ => {}
        }
    }
    out
}

fn page(url: String, children: Vec<Child>) -> Page {
    let mut out = Page { url, ..Page::default() };
    for Child { name, text, .. } in children {
        let text = text.trim().to_owned();
        match name.as_str() {
            "Title" => out.title = text,
            "Description" => out.description = text,
            "priority" => out.priority = Some(text),
            "topic" => out.category = text,
            _ => {}
        }
    }
    out
}

/// Returns the last segment of a path, with spaces for underscores: the label of a category where it is
/// shown.
pub fn label_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).replace('_', " ")
}

/// Reads the categories into a topic map: topics, and binary associations for their relations.
pub(crate) fn read_structure(bytes: &[u8], base: &str, session: &mut Session<'_>) -> Result<(), Error> {
    let mut reader = Reader::new(bytes, base, Dump::Structure);
    while let Some(entry) = reader.next_entry()? {
        session.count_statement(&Place::new(base, reader.line()))?;
        if let Entry::Category(it) = entry {
            add_category(&it, base, session);
        }
    }
    Ok(())
}

/// Reads the links into a topic map: occurrences of their categories.
pub(crate) fn read_content(bytes: &[u8], base: &str, session: &mut Session<'_>) -> Result<(), Error> {
    let mut reader = Reader::new(bytes, base, Dump::Content);
    while let Some(entry) = reader.next_entry()? {
        session.count_statement(&Place::new(base, reader.line()))?;
        match entry {
            Entry::Category(it) if !it.id.is_empty() => add_category(&it, base, session),
            Entry::Page(it) if !it.category.is_empty() => {
                let page = session
                    .builder
                    .topic(crate::builder::IdentityKind::SubjectLocator, &iri::decode(&it.url));
                let topic_name = session.builder.subject(model::TOPIC_NAME);
                session.builder.add_name(page, Name::new(it.title, topic_name));
                if !it.description.is_empty() {
                    let kind = named("description", base, session);
                    session
                        .builder
                        .add_occurrence(page, Occurrence::new(kind, it.description, datatype::STRING));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn named(name: &str, base: &str, session: &mut Session<'_>) -> TopicId {
    session.builder.topic(ItemIdentifier, &format!("{}#{name}", iri::document(base)))
}

fn add_category(it: &Category, base: &str, session: &mut Session<'_>) {
    let topic = named(&it.id, base, session);
    let topic_name = session.builder.subject(model::TOPIC_NAME);
    if let Some(title) = &it.title {
        session.builder.add_name(topic, Name::new(title.replace('_', " "), topic_name));
    }
    let texts = [
        ("catid", &it.catid),
        ("description", &it.description),
        ("last-update", &it.last_update),
        ("dispname", &it.display_name),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            let kind = named(name, base, session);
            session.builder.add_occurrence(topic, Occurrence::new(kind, text, datatype::STRING));
        }
    }
    let newsgroups = it.newsgroups.iter().map(|address| ("newsgroup", address));
    let links = it.links.iter().map(|(kind, address)| (kind.as_str(), address));
    for (kind, address) in newsgroups.chain(links) {
        let kind = named(kind, base, session);
        session.builder.add_occurrence(topic, Occurrence::new(kind, iri::decode(address), datatype::ANY_URI));
    }
    for arc in &it.arcs {
        let (kind, role) = match arc.kind {
            ArcKind::Narrow => ("category", "narrow"),
            ArcKind::Related => ("navigation", "related"),
            ArcKind::Symbolic => ("similar", arc.label.as_deref().unwrap_or("symbolic")),
            ArcKind::Language => ("language", arc.label.as_deref().unwrap_or("language")),
        };
        let [kind, role, source, target] =
            [kind, role, "source", &arc.target].map(|it| named(it, base, session));
        session.builder.add_association(Association::new(kind, [(source, topic), (role, target)]));
    }
}

/// Passes on its input as UTF-8 that XML allows: other bytes and control characters are replaced.
struct Lossy<R> {
    input: R,
    ready: Vec<u8>,
    at: usize,
    /// The beginning of a character whose end has not been read.
    held: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Lossy<R> {
    fn new(input: R) -> Lossy<R> {
        Lossy { input, ready: Vec::new(), at: 0, held: Vec::new(), line: 1 }
    }

    fn refill(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.at = 0;
        while self.ready.is_empty() {
            let chunk = self.input.fill_buf()?;
            let len = chunk.len();
            self.held.extend_from_slice(chunk);
            self.input.consume(len);
            if len == 0 && self.held.is_empty() {
                return Ok(());
            }
            let bytes = std::mem::take(&mut self.held);
            let mut chunks = bytes.utf8_chunks().peekable();
            while let Some(it) = chunks.next() {
                self.ready.extend(
                    it.valid()
                        .bytes()
                        .map(|it| if it < b' ' && !matches!(it, b'\t' | b'\n' | b'\r') { b' ' } else { it }),
                );
                let bad = it.invalid();
                let may_go_on = chunks.peek().is_none() && bad.len() < 4 && len > 0;
                if may_go_on && std::str::from_utf8(bad).is_err_and(|it| it.error_len().is_none()) {
                    self.held = bad.to_vec();
                } else if !bad.is_empty() {
                    self.ready.extend_from_slice("\u{FFFD}".as_bytes());
                }
            }
        }
        Ok(())
    }
}

impl<R: BufRead> io::Read for Lossy<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let len = ready.len().min(out.len());
        out[..len].copy_from_slice(&ready[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl<R: BufRead> BufRead for Lossy<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.ready.len() {
            self.refill()?;
        }
        Ok(&self.ready[self.at..])
    }

    fn consume(&mut self, len: usize) {
        let end = (self.at + len).min(self.ready.len());
        self.line += self.ready[self.at..end].iter().filter(|&&it| it == b'\n').count() as u64;
        self.at = end;
    }
}
