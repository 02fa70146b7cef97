//! The graph file as a whole: a header, a table of sections, the sections, each with its checksum.
//!
//! ```text
//!  0  magic "pncites\n"         8 bytes
//!  8  format version            u32
//! 12  number of sections        u32
//! 16  length of the file        u64
//! 24  sections: kind u32, zero u32, offset u64, length u64, xxh3-64 u64
//!  …  xxh3-64 of all before     u64
//!  …  sections, each at a multiple of 64 bytes, padded with zeros
//! ```
//!
//! All numbers are little-endian. Opening checks the header's checksum and the file's length, at the same cost for
//! any size; [`Container::verify`] reads everything.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

const MAGIC: [u8; 8] = *b"pncites\n";
/// Version of the layout of the file and of every section. A reader accepts only its own version.
pub(crate) const FORMAT_VERSION: u32 = 1;
const FIXED_BYTES: usize = 24;
const ENTRY_BYTES: usize = 32;
const ALIGNMENT_BYTES: u64 = 64;
const SECTIONS_MAX: u32 = 64;
const COPY_BYTES: usize = 1 << 20;

/// Why a graph file was refused.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The system could not open, read or map it.
    #[error("{path}: {error}; is the path right and the file readable?")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Not a graph file.
    #[error(
        "{path}: not a citation graph (it begins with {found:02x?}); build one with `pinakes citations build`"
    )]
    NotAGraph {
        /// The file.
        path: PathBuf,
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// Built by another version of this program.
    #[error(
        "{path}: graph format {found}, this program reads {FORMAT_VERSION}; build it anew with `pinakes citations build`"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
    },
    /// Shorter or longer than its header says.
    #[error(
        "{path}: {found} bytes, its header says {expected}; the copy is incomplete: copy it again from where it \
         was built, or build it anew"
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Actual number of bytes.
        found: u64,
        /// Expected number of bytes.
        expected: u64,
    },
    /// A checksum differs.
    #[error("{path}: {part} is damaged (its checksum differs); copy the file again, or build it anew")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The header or a section.
        part: &'static str,
    },
    /// A section is missing or contradicts another.
    #[error("{path}: {part} is missing or does not fit the rest of the file; build it anew")]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// The section.
        part: &'static str,
    },
}

/// The content of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) enum Section {
    /// Counts and the palette, JSON.
    Summary = 1,
    /// Front-coded DOIs.
    Dois = 2,
    /// Starts of the blocks of `Dois`.
    DoiBlocks = 3,
    /// Lists of cited DOIs.
    References = 4,
    /// Starts of the lists of `References`, in bits.
    ReferenceStarts = 5,
    /// Lists of citing DOIs.
    Citations = 6,
    /// Starts of the lists of `Citations`, in bits.
    CitationStarts = 7,
    /// Publication dates by DOI number.
    Dates = 8,
    /// Statements of citations that contradict the dates.
    Exceptions = 9,
    /// All OMIDs, rising.
    Omids = 10,
    /// DOI numbers in the order of `Omids`.
    OmidDois = 11,
    /// Place in `Omids`, plus one, by DOI number; 0 for none.
    DoiOmids = 12,
    /// All `PubMed` numbers, rising.
    Pmids = 13,
    /// DOI numbers in the order of `Pmids`.
    PmidDois = 21,
    /// Place in `Pmids`, plus one, by DOI number; 0 for none.
    DoiPmids = 22,
    /// Front-coded local ids.
    LocalIds = 14,
    /// Starts of the blocks of `LocalIds`.
    LocalIdBlocks = 15,
    /// DOI numbers by local id number.
    LocalIdDois = 16,
    /// Local id numbers, those of one DOI together, in the order of the DOIs.
    DoiLocalIds = 17,
    /// Starts of the local ids of a DOI in `DoiLocalIds`.
    DoiLocalIdStarts = 18,
    /// The catalogue's spellings of DOIs that differ from the normal form, concatenated.
    Spellings = 19,
    /// Starts of the texts of `Spellings`.
    SpellingStarts = 20,
    /// Local id numbers in the order of `Spellings`.
    SpellingIds = 23,
    /// Front-coded further DOIs of works.
    OtherDois = 24,
    /// Starts of the blocks of `OtherDois`.
    OtherDoiBlocks = 25,
    /// The number of the work's first DOI, in the order of `OtherDois`.
    OtherDoiFirsts = 26,
    /// Places in `OtherDois`, those of one work together, in the order of the works.
    DoiOtherDois = 27,
}

impl Section {
    pub(crate) const ALL: [Self; 27] = [
        Self::Summary,
        Self::Dois,
        Self::DoiBlocks,
        Self::References,
        Self::ReferenceStarts,
        Self::Citations,
        Self::CitationStarts,
        Self::Dates,
        Self::Exceptions,
        Self::Omids,
        Self::OmidDois,
        Self::DoiOmids,
        Self::Pmids,
        Self::PmidDois,
        Self::DoiPmids,
        Self::LocalIds,
        Self::LocalIdBlocks,
        Self::LocalIdDois,
        Self::DoiLocalIds,
        Self::DoiLocalIdStarts,
        Self::Spellings,
        Self::SpellingStarts,
        Self::SpellingIds,
        Self::OtherDois,
        Self::OtherDoiBlocks,
        Self::OtherDoiFirsts,
        Self::DoiOtherDois,
    ];

    /// Returns the section's name, in errors and in statistics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Dois => "dois",
            Self::DoiBlocks => "doi-blocks",
            Self::References => "references",
            Self::ReferenceStarts => "reference-starts",
            Self::Citations => "citations",
            Self::CitationStarts => "citation-starts",
            Self::Dates => "dates",
            Self::Exceptions => "exceptions",
            Self::Omids => "omids",
            Self::OmidDois => "omid-dois",
            Self::DoiOmids => "doi-omids",
            Self::Pmids => "pmids",
            Self::PmidDois => "pmid-dois",
            Self::DoiPmids => "doi-pmids",
            Self::LocalIds => "local-ids",
            Self::LocalIdBlocks => "local-id-blocks",
            Self::LocalIdDois => "local-id-dois",
            Self::DoiLocalIds => "doi-local-ids",
            Self::DoiLocalIdStarts => "doi-local-id-starts",
            Self::Spellings => "spellings",
            Self::SpellingStarts => "spelling-starts",
            Self::SpellingIds => "spelling-ids",
            Self::OtherDois => "other-dois",
            Self::OtherDoiBlocks => "other-doi-blocks",
            Self::OtherDoiFirsts => "other-doi-firsts",
            Self::DoiOtherDois => "doi-other-dois",
        }
    }

    fn of_kind(kind: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|section| *section as u32 == kind)
    }
}

#[derive(Debug, Clone)]
struct Entry {
    section: Section,
    bytes: Range<usize>,
    checksum: u64,
}

/// An open graph file.
#[derive(Debug)]
pub(crate) struct Container {
    path: PathBuf,
    map: Mmap,
    entries: Vec<Entry>,
}

impl Container {
    /// Returns the header's checksum, which covers those of all sections: equal for equal files.
    pub(crate) fn identity(&self) -> u64 {
        let table_end = FIXED_BYTES + self.entries.len() * ENTRY_BYTES;
        u64_at(&self.map, table_end).unwrap_or(0)
    }

    /// Copies the file into an unnamed one in `folder`, maps that, and checks all of it: whatever happens to the
    /// original, the copy does not change.
    pub(crate) fn open_copy(path: &Path, folder: &Path) -> Result<Self, GraphError> {
        let failed = |error| GraphError::Io { path: path.to_owned(), error };
        let mut file = File::open(path).map_err(failed)?;
        check_length(path, &mut file)?;
        let mut copy = tempfile::tempfile_in(folder)
            .map_err(|error| GraphError::Io { path: folder.to_owned(), error })?;
        io::copy(&mut file, &mut copy).map_err(failed)?;
        let map = map_file(&copy).map_err(failed)?;
        let entries = read_header(path, &map)?;
        let container = Self { path: path.to_owned(), map, entries };
        container.verify()?;
        Ok(container)
    }

    /// Maps the file and checks its header.
    pub(crate) fn open(path: &Path) -> Result<Self, GraphError> {
        let failed = |error| GraphError::Io { path: path.to_owned(), error };
        let file = File::open(path).map_err(failed)?;
        let map = map_file(&file).map_err(failed)?;
        let entries = read_header(path, &map)?;
        Ok(Self { path: path.to_owned(), map, entries })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the whole file, in bytes.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns the sections with their lengths in bytes.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (Section, u64)> {
        self.entries.iter().map(|entry| (entry.section, entry.bytes.len() as u64))
    }

    /// Returns the range of a section.
    pub(crate) fn range(&self, section: Section) -> Option<Range<usize>> {
        self.entries.iter().find(|entry| entry.section == section).map(|entry| entry.bytes.clone())
    }

    /// Returns bytes of the file; the ranges come from [`Container::range`].
    pub(crate) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.map.get(range.clone()).unwrap_or_default()
    }

    /// Reads every section and compares its checksum.
    pub(crate) fn verify(&self) -> Result<(), GraphError> {
        for entry in &self.entries {
            if xxh3_64(self.bytes(&entry.bytes)) != entry.checksum {
                return Err(GraphError::Damaged { path: self.path.clone(), part: entry.section.name() });
            }
        }
        Ok(())
    }
}

/// Checks that the file is as long as its header says, by reading rather than mapping: it may still be being
/// written.
fn check_length(path: &Path, file: &mut File) -> Result<(), GraphError> {
    let failed = |error| GraphError::Io { path: path.to_owned(), error };
    let mut head = Vec::new();
    Read::by_ref(file).take(FIXED_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    let found = file.metadata().map_err(failed)?.len();
    file.rewind().map_err(failed)?;
    match u64_at(&head, 16) {
        Some(expected) if head.starts_with(&MAGIC) && expected != found => {
            Err(GraphError::Length { path: path.to_owned(), found, expected })
        }
        _ if !head.starts_with(&MAGIC) => {
            head.truncate(MAGIC.len());
            Err(GraphError::NotAGraph { path: path.to_owned(), found: head })
        }
        _ => Ok(()),
    }
}

#[allow(unsafe_code, reason = "a memory map is what lets a file of any size open in milliseconds")]
fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: a map is sound as long as nobody changes the file. Graph files are immutable: they are written under
    // another name, renamed into place when complete and never written again; a new release replaces the name, not the
    // bytes; callers that cannot rely on this make a copy. Every reader of this crate also tolerates arbitrary bytes
    // without undefined behaviour.
    unsafe { Mmap::map(file) }
}

fn read_header(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, GraphError> {
    let damaged = || GraphError::Damaged { path: path.to_owned(), part: "the header" };
    if !bytes.starts_with(&MAGIC) {
        let found = bytes[..bytes.len().min(MAGIC.len())].to_vec();
        return Err(GraphError::NotAGraph { path: path.to_owned(), found });
    }
    let version = u32_at(bytes, 8).ok_or_else(damaged)?;
    if version != FORMAT_VERSION {
        return Err(GraphError::Version { path: path.to_owned(), found: version });
    }
    let n_sections = u32_at(bytes, 12).filter(|n| *n <= SECTIONS_MAX).ok_or_else(damaged)?;
    let table_end = FIXED_BYTES + n_sections as usize * ENTRY_BYTES;
    let table = bytes.get(..table_end).ok_or_else(damaged)?;
    if u64_at(bytes, table_end) != Some(xxh3_64(table)) {
        return Err(damaged());
    }
    let expected = u64_at(bytes, 16).ok_or_else(damaged)?;
    if expected != bytes.len() as u64 {
        let found = bytes.len() as u64;
        return Err(GraphError::Length { path: path.to_owned(), found, expected });
    }
    table[FIXED_BYTES..]
        .chunks_exact(ENTRY_BYTES)
        .map(|entry| read_entry(entry, bytes).ok_or_else(damaged))
        .collect()
}

fn read_entry(entry: &[u8], file: &[u8]) -> Option<Entry> {
    let start = usize::try_from(u64_at(entry, 8)?).ok()?;
    let end = start.checked_add(usize::try_from(u64_at(entry, 16)?).ok()?)?;
    file.get(start..end)?;
    Some(Entry {
        section: Section::of_kind(u32_at(entry, 0)?)?,
        bytes: start..end,
        checksum: u64_at(entry, 24)?,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// Joins section files into a graph file at `path`, which is on disk when this returns.
pub(crate) fn write_container(path: &Path, sections: &[(Section, PathBuf)]) -> io::Result<()> {
    let header_len = FIXED_BYTES + sections.len() * ENTRY_BYTES + 8;
    let mut file = File::create(path)?;
    let mut at = aligned(header_len as u64);
    file.seek(SeekFrom::Start(at))?;
    let mut table = Vec::new();
    for (section, source) in sections {
        let (len, checksum) = copy_section(&mut file, source)?;
        table.extend_from_slice(&(*section as u32).to_le_bytes());
        table.extend_from_slice(&0_u32.to_le_bytes());
        for word in [at, len, checksum] {
            table.extend_from_slice(&word.to_le_bytes());
        }
        at = aligned(at + len);
        file.seek(SeekFrom::Start(at))?;
    }
    file.set_len(at)?;
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    header.extend_from_slice(&u32::try_from(sections.len()).map_err(io::Error::other)?.to_le_bytes());
    header.extend_from_slice(&at.to_le_bytes());
    header.extend_from_slice(&table);
    let checksum = xxh3_64(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)?;
    crate::build::sync(&file)
}

fn copy_section(file: &mut File, source: &Path) -> io::Result<(u64, u64)> {
    let mut source = File::open(source)?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut digest = Xxh3Default::new();
    let mut len = 0;
    loop {
        let n_read = source.read(&mut buffer)?;
        if n_read == 0 {
            return Ok((len, digest.digest()));
        }
        digest.update(&buffer[..n_read]);
        file.write_all(&buffer[..n_read])?;
        len += n_read as u64;
    }
}

fn aligned(at: u64) -> u64 {
    at.next_multiple_of(ALIGNMENT_BYTES)
}
