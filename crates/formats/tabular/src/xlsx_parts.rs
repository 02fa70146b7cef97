//! The parts of an Excel workbook other than its sheets: which sheet is the first, and the shared strings.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::rc::Rc;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use crate::sink::at_most;
use crate::table::Limits;
use crate::{Result, TabularError};

/// Memory that a string takes besides its bytes.
const STRING_BYTES: u64 = size_of::<String>() as u64;

/// See the module.
pub(crate) struct Workbook {
    /// Path of the first sheet in the archive.
    pub(crate) sheet: String,
    /// Texts that cells refer to by number.
    pub(crate) shared: Vec<String>,
}

impl Workbook {
    pub(crate) fn of<R: Read + Seek>(archive: &mut ZipArchive<R>, limits: &Limits) -> Result<Self> {
        let root = relations(archive, "", limits)?;
        let path = target(&root, "/officeDocument").unwrap_or_else(|| "xl/workbook.xml".to_owned());
        let relations = relations(archive, &path, limits)?;
        let sheet_ids = sheets(archive, &path, limits)?;
        let is_sheet = |it: &&Relation| it.ty.ends_with("/worksheet");
        let found = sheet_ids.iter().find_map(|id| relations.iter().filter(is_sheet).find(|it| it.id == *id));
        let sheet = found
            .ok_or_else(|| TabularError::Unsupported("the workbook has no sheet of cells".to_owned()))?;
        let sheet = sheet.path.clone();
        let shared = match target(&relations, "/sharedStrings") {
            Some(path) => shared_strings(Part::open(archive, &path, limits)?, limits)?,
            None => Vec::new(),
        };
        Ok(Self { sheet, shared })
    }
}

/// A part that another one refers to.
struct Relation {
    id: String,
    ty: String,
    path: String,
}

fn target(relations: &[Relation], ty: &str) -> Option<String> {
    relations.iter().find(|it| it.ty.ends_with(ty)).map(|it| it.path.clone())
}

/// Returns the relations of a part, from the part beside it; those of the archive itself for an empty path.
fn relations<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    path: &str,
    limits: &Limits,
) -> Result<Vec<Relation>> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let beside = format!("{folder}/_rels/{name}.rels");
    let mut part = Part::open(archive, beside.trim_start_matches('/'), limits)?;
    let mut found = Vec::new();
    while let Some(piece) = part.next()? {
        let Piece::Open(start) = piece else { continue };
        if start.local_name().into_inner() != "Relationship" {
            continue;
        }
        let text = |name| attribute(&start, name).unwrap_or_default();
        let target = text("Target");
        let path = match target.strip_prefix('/') {
            Some(whole) => whole.to_owned(),
            None => format!("{folder}/{target}").trim_start_matches('/').to_owned(),
        };
        found.push(Relation { id: text("Id"), ty: text("Type"), path });
        at_most("relations of a part", found.len() as u64, limits.variables as u64)?;
    }
    Ok(found)
}

/// Returns the ids of the sheets in order.
fn sheets<R: Read + Seek>(archive: &mut ZipArchive<R>, path: &str, limits: &Limits) -> Result<Vec<String>> {
    let mut part = Part::open(archive, path, limits)?;
    let mut ids = Vec::new();
    while let Some(piece) = part.next()? {
        let Piece::Open(start) = piece else { continue };
        if start.local_name().into_inner() == "sheet" {
            ids.extend(attribute(&start, "id"));
        }
        at_most("sheets", ids.len() as u64, limits.variables as u64)?;
    }
    Ok(ids)
}

/// Reads the shared strings: `<si>` holds a text, or runs of it; the content of `<rPh>` is the pronunciation.
fn shared_strings<R: Read>(mut part: Part<R>, limits: &Limits) -> Result<Vec<String>> {
    let (mut all, mut n_bytes) = (Vec::new(), 0);
    let (mut text, mut is_text, mut n_phonetic) = (String::new(), false, 0_usize);
    while let Some(piece) = part.next()? {
        match piece {
            Piece::Open(start) => match start.local_name().into_inner() {
                "si" => text.clear(),
                "t" => is_text = n_phonetic == 0,
                "rPh" => n_phonetic += 1,
                _ => {}
            },
            Piece::Close(name) => match name.as_str() {
                "si" => {
                    n_bytes += text.len() as u64 + STRING_BYTES;
                    all.push(std::mem::take(&mut text));
                }
                "t" => is_text = false,
                "rPh" => n_phonetic = n_phonetic.saturating_sub(1),
                _ => {}
            },
            Piece::Text(piece) if is_text => text.push_str(&piece),
            Piece::Text(_) => {}
        }
        at_most("bytes of a text", text.len() as u64, limits.text_bytes as u64)?;
        at_most("bytes of shared strings", n_bytes, limits.long_string_bytes)?;
    }
    Ok(all)
}

/// An element or a text of a part.
pub(crate) enum Piece {
    Open(BytesStart<'static>),
    /// Its name without the prefix.
    Close(String),
    Text(String),
}

/// A part of the archive, as XML.
pub(crate) struct Part<R> {
    reader: quick_xml::Reader<Bounded<R>>,
    buffer: Vec<u8>,
    name: String,
    n_of_event: Rc<Cell<u64>>,
}

impl<'a, R: Read + Seek> Part<ZipFile<'a, R>> {
    pub(crate) fn open(archive: &'a mut ZipArchive<R>, name: &str, limits: &Limits) -> Result<Self> {
        let file = archive.by_name(name).map_err(|error| match error {
            ZipError::Io(error) => TabularError::Io(error),
            error => TabularError::Unsupported(format!("the workbook's part {name} cannot be read: {error}")),
        })?;
        Ok(Self::new(file, name, limits))
    }
}

impl<R: Read> Part<R> {
    fn new(source: R, name: &str, limits: &Limits) -> Self {
        let n_of_event = Rc::new(Cell::new(0));
        let source = Bounded {
            source: BufReader::with_capacity(64 << 10, source),
            left: limits.part_bytes,
            n_of_event: Rc::clone(&n_of_event),
            most_of_event: limits.text_bytes as u64,
        };
        let mut reader = quick_xml::Reader::from_reader(source);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, buffer: Vec::new(), name: name.to_owned(), n_of_event }
    }

    /// Returns the next piece; `None` at the end.
    ///
    /// Errors: not well-formed, with declarations of its own, or too large.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>> {
        loop {
            self.buffer.clear();
            self.n_of_event.set(0);
            let event = self.reader.read_event_into(&mut self.buffer);
            let fault = |what: &str| fault_in(&self.name, self.reader.buffer_position(), what);
            let event = event.map_err(|error| fault(&error.to_string()))?;
            let text = match event {
                Event::Start(start) => return Ok(Some(Piece::Open(start.into_owned()))),
                Event::End(end) => return Ok(Some(Piece::Close(end.local_name().into_inner().to_owned()))),
                Event::Text(text) => text.xml10_content().into_owned(),
                Event::CData(text) => text.xml10_content().into_owned(),
                Event::GeneralRef(entity) => match entity.resolve_char_ref() {
                    Ok(Some(char)) => char.to_string(),
                    _ => quick_xml::escape::resolve_predefined_entity(&entity.xml10_content())
                        .map(str::to_owned)
                        .ok_or_else(|| fault("an entity that XML does not have"))?,
                },
                Event::DocType(_) => return Err(fault("a document type; workbooks have none")),
                Event::Eof => return Ok(None),
                _ => continue,
            };
            return Ok(Some(Piece::Text(text)));
        }
    }

    /// Makes an error with the part and the place in it.
    pub(crate) fn fault(&self, what: &str) -> TabularError {
        fault_in(&self.name, self.reader.buffer_position(), what)
    }
}

fn fault_in(name: &str, at: u64, what: &str) -> TabularError {
    TabularError::Unsupported(format!("{name}, byte {at}: {what}"))
}

/// Returns an attribute's value, by its name without the prefix.
pub(crate) fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = start.attributes();
    attributes.with_checks(false);
    let found = attributes.flatten().find(|it| it.key.local_name().into_inner() == name)?;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}

/// A source with limits on a part and on each piece of it: a small archive may hold a large one.
struct Bounded<R> {
    source: BufReader<R>,
    left: u64,
    n_of_event: Rc<Cell<u64>>,
    most_of_event: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let held = self.fill_buf()?;
        let n = held.len().min(bytes.len());
        bytes[..n].copy_from_slice(&held[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 || self.most_of_event < self.n_of_event.get() {
            return Err(io::Error::other("larger than is read"));
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n as u64);
        self.n_of_event.set(self.n_of_event.get() + n as u64);
        self.source.consume(n);
    }
}
