//! The open graph: DOIs and numbers, neighbours, what a citation says, identifiers, local ids.

use std::ops::Range;
use std::path::Path;

use crate::adjacency::{Direction, Lists, Neighbours};
use crate::bits::{PackedInts, width_of};
use crate::container::{Container, GraphError, Section};
use crate::date::{PartialDate, Timespan};
use crate::dictionary::Dictionary;
use crate::elias_fano::EliasFano;
use crate::oci::{self, Supplier};
use crate::omid::Omid;
use crate::rows::Statement;
use crate::statement::Exception;
use crate::summary::{PaletteEntry, Summary};

/// A citation graph in a memory-mapped file.
///
/// Immutable and `Sync`: share one between threads in an `Arc`, and swap the `Arc` for that of a newly opened file
/// when a new release is published under the same name. The old file's bytes stay readable until the
/// last holder drops it.
///
/// DOIs are numbered from 0 in the order of their normalised text. Methods accept any number: one that is not in the
/// graph has no neighbours and no text.
#[derive(Debug)]
pub struct Graph {
    file: Container,
    summary: Summary,
    places: Places,
}

/// Where sections are in the file.
#[derive(Debug)]
struct Places {
    dois: Range<usize>,
    doi_blocks: Range<usize>,
    references: Range<usize>,
    reference_starts: Range<usize>,
    citations: Range<usize>,
    citation_starts: Range<usize>,
    dates: Range<usize>,
    exceptions: Range<usize>,
    omids: Option<NumberPlaces>,
    pmids: Option<NumberPlaces>,
    local_ids: Option<LocalIdPlaces>,
    other_dois: Option<OtherDoiPlaces>,
}

#[derive(Debug)]
struct OtherDoiPlaces {
    dois: Range<usize>,
    blocks: Range<usize>,
    firsts: Range<usize>,
    of_dois: Range<usize>,
}

#[derive(Debug)]
struct NumberPlaces {
    numbers: Range<usize>,
    dois: Range<usize>,
    by_doi: Range<usize>,
    n: u64,
}

#[derive(Debug)]
struct LocalIdPlaces {
    ids: Range<usize>,
    blocks: Range<usize>,
    dois: Range<usize>,
    of_dois: Range<usize>,
    of_doi_starts: Range<usize>,
    spellings: Range<usize>,
    spelling_starts: Range<usize>,
    spelling_ids: Range<usize>,
}

/// The statements of a citation, as in the row of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Citation {
    /// Publication date of the citing work.
    pub creation: Option<PartialDate>,
    /// Citing date minus cited date.
    pub timespan: Option<Timespan>,
    /// Whether both works appeared in one journal.
    pub journal_sc: Statement,
    /// Whether they have an author in common.
    pub author_sc: Statement,
    /// Prefixes of the OCI, if it spells DOIs.
    pub suppliers: Option<(Supplier, Supplier)>,
}

/// Bytes of one section of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionSize {
    /// The section's name.
    pub name: &'static str,
    /// Its length.
    pub len_bytes: u64,
}

const EXCEPTION_BYTES: usize = 16;

impl Graph {
    /// Opens a graph file. Takes milliseconds at any size: the header is checked, not the sections;
    /// [`Graph::verify`] reads everything.
    ///
    /// # Errors
    /// [`GraphError`] if the file cannot be read, is not a graph file, is truncated, or its header is damaged; each
    /// says what to do.
    pub fn open(path: &Path) -> Result<Self, GraphError> {
        Self::of_file(Container::open(path)?)
    }

    fn of_file(file: Container) -> Result<Self, GraphError> {
        let summary_range = range(&file, Section::Summary)?;
        let summary: Summary = serde_json::from_slice(file.bytes(&summary_range))
            .map_err(|_| inconsistent(&file, Section::Summary))?;
        let places = Places::find(&file, &summary)?;
        let graph = Self { file, summary, places };
        graph.check_sizes()?;
        Ok(graph)
    }

    /// Opens an unnamed copy of a graph file, made in `folder`: it costs the space and time of a copy, and all of it is
    /// checked. Later changes to the file, even overwriting it, do not affect the copy. If the file system shares
    /// blocks between copies, it costs neither.
    ///
    /// # Errors
    /// As [`Graph::open`] and [`Graph::verify`]; the copy cannot be written.
    pub fn open_copy(path: &Path, folder: &Path) -> Result<Self, GraphError> {
        Self::of_file(Container::open_copy(path, folder)?)
    }

    /// Returns a number that is equal for equal files.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.file.identity()
    }

    /// Reads the whole file and compares the checksum of every section.
    ///
    /// # Errors
    /// [`GraphError::Damaged`] with the first section that differs.
    pub fn verify(&self) -> Result<(), GraphError> {
        self.file.verify()
    }

    /// Returns counts of the graph and of its build.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Bytes of the whole file.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.file.len_bytes()
    }

    /// Returns the sections with their sizes.
    #[must_use]
    pub fn sections(&self) -> Vec<SectionSize> {
        self.file
            .sections()
            .map(|(section, len_bytes)| SectionSize { name: section.name(), len_bytes })
            .collect()
    }

    /// Returns the number of DOIs in the graph; numbers are below it.
    #[must_use]
    pub fn n_dois(&self) -> u64 {
        self.summary.n_dois
    }

    /// Returns the number of different citations.
    #[must_use]
    pub fn n_citations(&self) -> u64 {
        self.summary.n_citations
    }

    /// Returns the number of a normalised DOI ([`crate::Doi`]); some microseconds, a binary search. A further DOI of a
    /// work leads to the work's number, unless the dumps contain citations of that DOI itself.
    #[must_use]
    pub fn number_of(&self, doi: &str) -> Option<u32> {
        let own = self.own_number_of(doi);
        if self.places.other_dois.is_none() {
            return own;
        }
        match own.filter(|it| self.has_neighbours(*it)) {
            None => self.number_of_other(doi).or(own),
            own => own,
        }
    }

    /// Returns the number to query for a DOI: its own, unless it has no citations and is a further DOI of another
    /// work.
    #[must_use]
    pub fn work_of(&self, number: u32) -> u32 {
        if self.places.other_dois.is_none() || self.has_neighbours(number) {
            return number;
        }
        self.doi(number).and_then(|doi| self.number_of_other(&doi)).unwrap_or(number)
    }

    /// Returns whether a DOI cites or is cited.
    #[must_use]
    pub fn has_neighbours(&self, number: u32) -> bool {
        0 < self.references(number).len() || 0 < self.citations(number).len()
    }

    /// Returns the further DOIs of a work, in order: those without citations of their own in the dumps.
    #[must_use]
    pub fn other_dois(&self, number: u32) -> Vec<String> {
        self.other_dois_of(number).unwrap_or_default()
    }

    fn other_dois_of(&self, number: u32) -> Option<Vec<String>> {
        let places = self.places.other_dois.as_ref()?;
        let n = self.summary.n_other_dois;
        let firsts =
            PackedInts::new(self.file.bytes(&places.firsts), width_of(self.n_dois().saturating_sub(1)));
        let order = PackedInts::new(self.file.bytes(&places.of_dois), width_of(n.saturating_sub(1)));
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low.midpoint(high);
            if firsts.get(order.get(middle)) < u64::from(number) { low = middle + 1 } else { high = middle }
        }
        let starts = EliasFano::open(self.file.bytes(&places.blocks))?;
        let others = Dictionary::new(self.file.bytes(&places.dois), starts, n);
        let mut found = Vec::new();
        while low < n && firsts.get(order.get(low)) == u64::from(number) {
            let mut text = Vec::new();
            others.text_into(order.get(low), &mut text)?;
            let doi = String::from_utf8(text).ok()?;
            if self.number_of(&doi) == Some(number) {
                found.push(doi);
            }
            low += 1;
        }
        Some(found)
    }

    /// Returns a DOI's own number, regardless of its work.
    #[must_use]
    pub fn own_number_of(&self, doi: &str) -> Option<u32> {
        u32::try_from(self.dictionary()?.number_of(doi.as_bytes())?).ok()
    }

    fn number_of_other(&self, doi: &str) -> Option<u32> {
        let places = self.places.other_dois.as_ref()?;
        let starts = EliasFano::open(self.file.bytes(&places.blocks))?;
        let others = Dictionary::new(self.file.bytes(&places.dois), starts, self.summary.n_other_dois);
        let place = others.number_of(doi.as_bytes())?;
        let width = width_of(self.n_dois().saturating_sub(1));
        let first = PackedInts::new(self.file.bytes(&places.firsts), width).get(place);
        u32::try_from(first).ok().filter(|it| u64::from(*it) < self.n_dois())
    }

    /// Returns the DOI of a number.
    #[must_use]
    pub fn doi(&self, number: u32) -> Option<String> {
        let mut text = Vec::new();
        self.doi_into(number, &mut text)?;
        String::from_utf8(text).ok()
    }

    /// Appends the DOI of a number to `text`, without a new allocation per DOI; `None`, and nothing appended, if there is
    /// none. The bytes are UTF-8 unless the file is damaged.
    pub fn doi_into(&self, number: u32, text: &mut Vec<u8>) -> Option<()> {
        self.dictionary()?.text_into(u64::from(number), text)
    }

    /// Returns what a DOI cites, rising, itself included if it cites itself; `len()` is the count.
    #[must_use]
    pub fn references(&self, number: u32) -> Neighbours<'_> {
        self.lists(Direction::References).map_or_else(Neighbours::empty, |lists| lists.list(number))
    }

    /// Returns what cites a DOI, rising, itself included if it cites itself; `len()` is the count.
    #[must_use]
    pub fn citations(&self, number: u32) -> Neighbours<'_> {
        self.lists(Direction::Citations).map_or_else(Neighbours::empty, |lists| lists.list(number))
    }

    /// Returns what a DOI cites, and the statements of each citation.
    pub fn reference_rows(&self, number: u32) -> impl Iterator<Item = (u32, Citation)> + '_ {
        let list = self.lists(Direction::References).and_then(|lists| lists.list_with_symbols(number));
        let exceptions = self.exceptions_of(number);
        list.into_iter()
            .flatten()
            .map(move |(cited, symbol)| (cited, self.citation_with(number, cited, symbol, exceptions)))
    }

    /// Returns what cites a DOI, and the statements of each citation. It looks into each citing DOI's list: below
    /// a microsecond each in memory, so use [`Graph::citations`] if the plain list is enough.
    pub fn citation_rows(&self, number: u32) -> impl Iterator<Item = (u32, Citation)> + '_ {
        self.citations(number).filter_map(move |citing| Some((citing, self.citation(citing, number)?)))
    }

    /// Returns the statements of the citation of `cited` by `citing`; `None` if there is none.
    #[must_use]
    pub fn citation(&self, citing: u32, cited: u32) -> Option<Citation> {
        let list = self.lists(Direction::References)?.list_with_symbols(citing)?;
        let (_, symbol) = list.take_while(|(it, _)| *it <= cited).find(|(it, _)| *it == cited)?;
        Some(self.citation_with(citing, cited, symbol, self.exceptions_of(citing)))
    }

    /// Returns the OCI of a citation, without `oci:`. It is spelt from the DOIs if the citation's row did so, else from
    /// the OMIDs if both are known, else from the DOIs with Crossref's prefix. `None` if a DOI has a character without
    /// code.
    #[must_use]
    pub fn oci(&self, citing: u32, cited: u32, citation: &Citation) -> Option<String> {
        if citation.suppliers.is_none()
            && let (Some(citing), Some(cited)) = (self.omid(citing), self.omid(cited))
        {
            return Some(format!("{}-{}", citing.digits(), cited.digits()));
        }
        let suppliers = citation.suppliers.unwrap_or((Supplier::CROSSREF, Supplier::CROSSREF));
        oci::encode(suppliers, &self.doi(citing)?, &self.doi(cited)?)
    }

    /// Returns the publication date that the dumps give for a citing DOI.
    #[must_use]
    pub fn date(&self, number: u32) -> Option<PartialDate> {
        self.work_date(number).filter(|(_, is_inferred)| !is_inferred).map(|(date, _)| date)
    }

    /// Returns the least OMID of a DOI.
    #[must_use]
    pub fn omid(&self, number: u32) -> Option<Omid> {
        self.number_at(self.places.omids.as_ref()?, number).map(Omid::from_number)
    }

    /// Returns the DOI of an OMID.
    #[must_use]
    pub fn number_of_omid(&self, omid: Omid) -> Option<u32> {
        self.doi_of_number(self.places.omids.as_ref()?, omid.number())
    }

    /// Returns the least `PubMed` number of a DOI.
    #[must_use]
    pub fn pmid(&self, number: u32) -> Option<u64> {
        self.number_at(self.places.pmids.as_ref()?, number)
    }

    /// Returns the DOI of a `PubMed` number.
    #[must_use]
    pub fn number_of_pmid(&self, pmid: u64) -> Option<u32> {
        self.doi_of_number(self.places.pmids.as_ref()?, pmid)
    }

    /// Returns the number of a local id, which is matched byte for byte.
    #[must_use]
    pub fn local_id_number(&self, id: &[u8]) -> Option<u32> {
        u32::try_from(self.local_id_dictionary()?.number_of(id)?).ok()
    }

    /// Appends a local id to `text`; `None`, and nothing appended, if there is none of that number.
    pub fn local_id_into(&self, id: u32, text: &mut Vec<u8>) -> Option<()> {
        self.local_id_dictionary()?.text_into(u64::from(id), text)
    }

    /// Returns the DOI of a local id.
    #[must_use]
    pub fn doi_of_local_id(&self, id: u32) -> Option<u32> {
        let places = self.places.local_ids.as_ref()?;
        if self.summary.n_local_ids <= u64::from(id) {
            return None;
        }
        let dois = PackedInts::new(self.file.bytes(&places.dois), width_of(self.n_dois().saturating_sub(1)));
        u32::try_from(dois.get(u64::from(id))).ok().filter(|doi| u64::from(*doi) < self.n_dois())
    }

    /// Returns the numbers of a DOI's local ids in the order of the table.
    pub fn local_ids(&self, number: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        let found = self.places.local_ids.as_ref().and_then(|places| {
            let starts = EliasFano::open(self.file.bytes(&places.of_doi_starts))?;
            let (start, end) = starts.pair(u64::from(number))?;
            let width = width_of(self.summary.n_local_ids.saturating_sub(1));
            let end = end.min(self.summary.n_local_ids).max(start);
            Some((PackedInts::new(self.file.bytes(&places.of_dois), width), start, end))
        });
        let (ids, start, end) = found.unwrap_or((PackedInts::new(&[], 0), 0, 0));
        let n_ids = usize::try_from(end - start).unwrap_or(0);
        (0..n_ids).map(move |place| u32::try_from(ids.get(start + place as u64)).unwrap_or(u32::MAX))
    }

    /// Returns a DOI as the table of local ids spells it for `id`; `None` if that is the normal form.
    #[must_use]
    pub fn spelling(&self, id: u32) -> Option<&str> {
        let places = self.places.local_ids.as_ref()?;
        let ids = EliasFano::open(self.file.bytes(&places.spelling_ids))?;
        let place = find(&ids, u64::from(id))?;
        let (start, end) = EliasFano::open(self.file.bytes(&places.spelling_starts))?.pair(place)?;
        let text = self
            .file
            .bytes(&places.spellings)
            .get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        str::from_utf8(text).ok()
    }

    fn dictionary(&self) -> Option<Dictionary<'_>> {
        let starts = EliasFano::open(self.file.bytes(&self.places.doi_blocks))?;
        Some(Dictionary::new(self.file.bytes(&self.places.dois), starts, self.summary.n_dois))
    }

    fn local_id_dictionary(&self) -> Option<Dictionary<'_>> {
        let places = self.places.local_ids.as_ref()?;
        let starts = EliasFano::open(self.file.bytes(&places.blocks))?;
        Some(Dictionary::new(self.file.bytes(&places.ids), starts, self.summary.n_local_ids))
    }

    fn lists(&self, direction: Direction) -> Option<Lists<'_>> {
        let (bytes, starts) = match direction {
            Direction::References => (&self.places.references, &self.places.reference_starts),
            Direction::Citations => (&self.places.citations, &self.places.citation_starts),
        };
        let starts = EliasFano::open(self.file.bytes(starts))?;
        Some(Lists { bytes: self.file.bytes(bytes), starts, direction, n_nodes: self.summary.n_dois })
    }

    /// Returns the date of a work, and whether it is inferred.
    fn work_date(&self, number: u32) -> Option<(PartialDate, bool)> {
        let dates = PackedInts::new(self.file.bytes(&self.places.dates), self.summary.date_width);
        let word = u32::try_from(dates.get(u64::from(number)).checked_sub(1)?).ok()?;
        let date = PartialDate::from_code(self.summary.date_base.checked_add(word >> 1)?)?;
        Some((date, word & 1 == 1))
    }

    /// Returns the exceptions of a citing DOI: a range of the sorted records.
    fn exceptions_of(&self, citing: u32) -> &[u8] {
        let all = self.file.bytes(&self.places.exceptions);
        let end = partition(all, |record| record_half(record, 0) <= citing);
        let start = partition(&all[..end], |record| record_half(record, 0) < citing);
        &all[start..end]
    }

    fn citation_with(&self, citing: u32, cited: u32, symbol: u32, exceptions: &[u8]) -> Citation {
        let entry = self.summary.palette.get(symbol as usize).copied().unwrap_or_default();
        let PaletteEntry { journal_sc, author_sc, suppliers } = entry;
        let mut creation = self.date(citing);
        let mut stated_span = None;
        let start = partition(exceptions, |record| record_half(record, 4) < cited);
        for record in exceptions[start..].chunks_exact(EXCEPTION_BYTES) {
            if record_half(record, 4) != cited {
                break;
            }
            match Exception::from_word(record_word(record, 8)) {
                Some(Exception::Creation(code)) => creation = PartialDate::from_code(code),
                Some(Exception::Timespan(code)) => stated_span = Some(Timespan::from_code(code)),
                None => {}
            }
        }
        let derived = || Some(Timespan::between(creation?, self.work_date(cited)?.0));
        let timespan = stated_span.unwrap_or_else(derived);
        Citation { creation, timespan, journal_sc, author_sc, suppliers }
    }

    fn number_at(&self, places: &NumberPlaces, doi: u32) -> Option<u64> {
        let by_doi = PackedInts::new(self.file.bytes(&places.by_doi), width_of(places.n));
        let place = by_doi.get(u64::from(doi)).checked_sub(1)?;
        EliasFano::open(self.file.bytes(&places.numbers))?.get(place)
    }

    fn doi_of_number(&self, places: &NumberPlaces, number: u64) -> Option<u32> {
        let place = find(&EliasFano::open(self.file.bytes(&places.numbers))?, number)?;
        let dois = PackedInts::new(self.file.bytes(&places.dois), width_of(self.n_dois().saturating_sub(1)));
        u32::try_from(dois.get(place)).ok()
    }

    /// Checks that the sequences have the lengths given by the summary, so that later reads can rely on it.
    fn check_sizes(&self) -> Result<(), GraphError> {
        let len_is = |range: &Range<usize>, n: u64| {
            EliasFano::open(self.file.bytes(range)).is_some_and(|sequence| sequence.len() == n)
        };
        let n_dois = self.summary.n_dois;
        let n_blocks = n_dois.div_ceil(crate::dictionary::BLOCK);
        let checks = [
            (Section::DoiBlocks, len_is(&self.places.doi_blocks, n_blocks)),
            (Section::ReferenceStarts, len_is(&self.places.reference_starts, n_dois + 1)),
            (Section::CitationStarts, len_is(&self.places.citation_starts, n_dois + 1)),
            (Section::Exceptions, self.places.exceptions.len().is_multiple_of(EXCEPTION_BYTES)),
        ];
        match checks.into_iter().find(|(_, fits)| !fits) {
            Some((section, _)) => Err(inconsistent(&self.file, section)),
            None => Ok(()),
        }
    }
}

impl Places {
    fn find(file: &Container, summary: &Summary) -> Result<Self, GraphError> {
        let numbers = |n, [numbers, dois, by_doi]: [Section; 3]| -> Result<_, GraphError> {
            if n == 0 {
                return Ok(None);
            }
            let (numbers, dois, by_doi) = (range(file, numbers)?, range(file, dois)?, range(file, by_doi)?);
            Ok(Some(NumberPlaces { numbers, dois, by_doi, n }))
        };
        let has_ids = 0 < summary.n_local_ids;
        Ok(Self {
            dois: range(file, Section::Dois)?,
            doi_blocks: range(file, Section::DoiBlocks)?,
            references: range(file, Section::References)?,
            reference_starts: range(file, Section::ReferenceStarts)?,
            citations: range(file, Section::Citations)?,
            citation_starts: range(file, Section::CitationStarts)?,
            dates: range(file, Section::Dates)?,
            exceptions: range(file, Section::Exceptions)?,
            omids: numbers(summary.n_omids, [Section::Omids, Section::OmidDois, Section::DoiOmids])?,
            pmids: numbers(summary.n_pmids, [Section::Pmids, Section::PmidDois, Section::DoiPmids])?,
            local_ids: has_ids.then(|| LocalIdPlaces::find(file)).transpose()?,
            other_dois: match summary.n_other_dois {
                0 => None,
                _ => Some(OtherDoiPlaces {
                    dois: range(file, Section::OtherDois)?,
                    blocks: range(file, Section::OtherDoiBlocks)?,
                    firsts: range(file, Section::OtherDoiFirsts)?,
                    of_dois: range(file, Section::DoiOtherDois)?,
                }),
            },
        })
    }
}

impl LocalIdPlaces {
    fn find(file: &Container) -> Result<Self, GraphError> {
        Ok(Self {
            ids: range(file, Section::LocalIds)?,
            blocks: range(file, Section::LocalIdBlocks)?,
            dois: range(file, Section::LocalIdDois)?,
            of_dois: range(file, Section::DoiLocalIds)?,
            of_doi_starts: range(file, Section::DoiLocalIdStarts)?,
            spellings: range(file, Section::Spellings)?,
            spelling_starts: range(file, Section::SpellingStarts)?,
            spelling_ids: range(file, Section::SpellingIds)?,
        })
    }
}

fn range(file: &Container, section: Section) -> Result<Range<usize>, GraphError> {
    file.range(section).ok_or_else(|| inconsistent(file, section))
}

fn inconsistent(file: &Container, section: Section) -> GraphError {
    GraphError::Inconsistent { path: file.path().to_owned(), part: section.name() }
}

/// Returns the place of `value` in a rising sequence.
fn find(sequence: &EliasFano<'_>, value: u64) -> Option<u64> {
    let (mut low, mut high) = (0, sequence.len());
    while low < high {
        let middle = low.midpoint(high);
        if sequence.get(middle)? < value { low = middle + 1 } else { high = middle }
    }
    (sequence.get(low)? == value).then_some(low)
}

/// Returns where in the records `is_before` ceases to hold, in bytes.
fn partition(records: &[u8], is_before: impl Fn(&[u8]) -> bool) -> usize {
    let (mut low, mut high) = (0, records.len() / EXCEPTION_BYTES);
    while low < high {
        let middle = low.midpoint(high);
        let record = &records[middle * EXCEPTION_BYTES..(middle + 1) * EXCEPTION_BYTES];
        if is_before(record) { low = middle + 1 } else { high = middle }
    }
    low * EXCEPTION_BYTES
}

fn record_half(record: &[u8], at: usize) -> u32 {
    record.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

fn record_word(record: &[u8], at: usize) -> u64 {
    record.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}
