//! The fourth stage: sorted pairs become the sections of the graph file.
//!
//! A first pass, by citing number, writes what each DOI cites and determines each DOI's date: the one that most of its
//! rows state. A second, by cited number, writes what cites each DOI. DOIs that cite nothing have no date in the dumps,
//! but it can be derived from the timespans of those that cite them: the date that fits most of them is kept, marked as
//! inferred. A row that contradicts the dates of its two works is stored as an exception, so every row can be returned
//! unchanged.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::identifiers;
use super::join::{BY_CITED, BY_CITING};
use super::local_ids;
use super::pairs::{Pair, PairRuns, PairSorter, SortedPairs};
use super::section::{PackedWriter, Sequence, close, create, section_path};
use super::spool::Records;
use super::workspace::Workspace;
use crate::adjacency::{Direction, write_list};
use crate::bits::{BitWriter, width_of};
use crate::build::error::BuildError;
use crate::build::progress::{Observer, Progress, Step};
use crate::build::section::Sections;
use crate::build::used::Used;
use crate::container::Section;
use crate::date::{PartialDate, Timespan};
use crate::statement::{Exception, Statements};
use crate::summary::{Extreme, PaletteEntry, Summary};

const PROGRESS_STEP: u64 = 1 << 12;
const OWN_DATES: &str = "own-dates";
const ALL_DATES: &str = "all-dates";
const EXCEPTIONS: &str = "exceptions";
/// Number of citations whose timespans are compared with a guess at a date, and of guesses tried.
const SAMPLED_SPANS: usize = 64;
const GUESSES_MAX: usize = 6;

/// Writes all sections; returns where they are.
pub(crate) fn encode(work: &Workspace, observer: &mut dyn Observer) -> Result<Sections, BuildError> {
    let used = Used::read(work)?;
    let mut exceptions = PairSorter::create(&work.path(EXCEPTIONS))?;
    let mut summary =
        Summary { counts: work.plan.counts.clone(), n_dois: used.n_used(), ..Summary::default() };
    let identifier_sections = identifiers::write_sections(work, &used, &mut summary, observer)?;
    let symbols = rank_symbols(&work.plan.palette);
    summary.palette = symbols.palette;
    let mut pass = Pass { work, used: &used, exceptions: &mut exceptions, summary: &mut summary, observer };
    pass.references(&symbols.places)?;
    pass.citations()?;
    write_dates(work, &mut summary)?;
    write_exceptions(work, exceptions, &mut summary)?;
    summary.n_local_ids = work.plan.n_local_ids;
    summary.n_spellings = work.plan.n_spellings;
    std::fs::write(
        section_path(work, Section::Summary),
        serde_json::to_vec_pretty(&summary).map_err(io::Error::from)?,
    )?;
    let own = [
        Section::Summary,
        Section::References,
        Section::ReferenceStarts,
        Section::Citations,
        Section::CitationStarts,
        Section::Dates,
        Section::Exceptions,
    ];
    let mut sections: Sections =
        own.into_iter().map(|section| (section, section_path(work, section))).collect();
    sections.extend(identifier_sections);
    sections.extend(local_ids::write_sections(work, &used)?);
    Ok(sections)
}

/// The palette with the most frequent entry first, and the new place of each symbol.
struct RankedSymbols {
    palette: Vec<PaletteEntry>,
    places: Vec<u32>,
}

fn rank_symbols(met: &[(PaletteEntry, u64)]) -> RankedSymbols {
    let mut order: Vec<usize> = (0..met.len()).collect();
    order.sort_by_key(|&symbol| std::cmp::Reverse(met[symbol].1));
    let mut places = vec![0; met.len()];
    for (place, &symbol) in order.iter().enumerate() {
        places[symbol] = place as u32;
    }
    RankedSymbols { palette: order.into_iter().map(|symbol| met[symbol].0).collect(), places }
}

/// A list being collected: the neighbours of one DOI and what each citation says.
#[derive(Default)]
struct Group {
    neighbours: Vec<u32>,
    statements: Vec<Statements>,
}

impl Group {
    fn clear(&mut self) {
        self.neighbours.clear();
        self.statements.clear();
    }
}

/// Reads sorted pairs DOI by DOI, with final numbers and without duplicates.
struct Groups<'a> {
    pairs: SortedPairs,
    next: Option<Pair>,
    used: &'a Used,
    n_duplicates: u64,
}

impl<'a> Groups<'a> {
    fn open(mut pairs: SortedPairs, used: &'a Used) -> io::Result<Self> {
        let next = pairs.next()?;
        Ok(Self { pairs, next, used, n_duplicates: 0 })
    }

    /// Fills `group` with the pairs of `node`; it stays empty if there are none.
    fn read(&mut self, node: u32, group: &mut Group) -> io::Result<()> {
        group.clear();
        let Some(first) = self.next.filter(|pair| self.used.rank(pair.major()) == node) else {
            return Ok(());
        };
        let mut last_key = None;
        while let Some(pair) = self.next.filter(|pair| pair.major() == first.major()) {
            if last_key == Some(pair.key) {
                self.n_duplicates += 1;
            } else {
                group.neighbours.push(self.used.rank(pair.minor()));
                group.statements.push(Statements::from_word(pair.value));
            }
            last_key = Some(pair.key);
            self.next = self.pairs.next()?;
        }
        Ok(())
    }
}

/// Lists being written.
struct ListWriter {
    bits: BitWriter<BufWriter<File>>,
    starts: Sequence,
    direction: Direction,
    n_nodes: u64,
}

impl ListWriter {
    fn create(work: &Workspace, direction: Direction, n_nodes: u64) -> io::Result<Self> {
        let (section, starts) = match direction {
            Direction::References => (Section::References, "reference-starts"),
            Direction::Citations => (Section::Citations, "citation-starts"),
        };
        let bits = BitWriter::new(create(&section_path(work, section))?);
        let mut starts = Sequence::create(work.path(starts))?;
        starts.push(0)?;
        Ok(Self { bits, starts, direction, n_nodes })
    }

    fn push(&mut self, neighbours: &[u32], symbols: &[u32]) -> io::Result<()> {
        write_list(&mut self.bits, self.direction, self.n_nodes, neighbours, symbols)?;
        self.starts.push(self.bits.n_bits())
    }

    fn finish(self, work: &Workspace) -> io::Result<()> {
        let section = match self.direction {
            Direction::References => Section::ReferenceStarts,
            Direction::Citations => Section::CitationStarts,
        };
        close(self.bits.finish()?)?;
        self.starts.finish(&section_path(work, section))
    }
}

struct Pass<'a> {
    work: &'a Workspace,
    used: &'a Used,
    exceptions: &'a mut PairSorter,
    summary: &'a mut Summary,
    observer: &'a mut dyn Observer,
}

impl Pass<'_> {
    fn references(&mut self, symbol_places: &[u32]) -> Result<(), BuildError> {
        let runs = PairRuns::open(&self.work.path(BY_CITING), self.work.plan.reference_runs.clone())?;
        let mut groups = Groups::open(runs.merge(), self.used)?;
        let mut lists = ListWriter::create(self.work, Direction::References, self.summary.n_dois)?;
        let mut dates = create(&self.work.path(OWN_DATES))?;
        let (mut group, mut symbols) = (Group::default(), Vec::new());
        for node in 0..self.n_nodes() {
            groups.read(node, &mut group)?;
            symbols.clear();
            symbols.extend(group.statements.iter().map(|it| symbol_places[it.symbol() as usize]));
            lists.push(&group.neighbours, &symbols)?;
            let date = most_frequent(&group.statements);
            dates.write_all(&date.to_le_bytes())?;
            self.note_creations(node, date, &group)?;
            self.count_references(node, &group);
            self.tell(Step::References, node, self.summary.n_citations);
        }
        self.summary.counts.n_duplicates = groups.n_duplicates;
        close(dates)?;
        Ok(lists.finish(self.work)?)
    }

    fn citations(&mut self) -> Result<(), BuildError> {
        let runs = PairRuns::open(&self.work.path(BY_CITED), self.work.plan.citation_runs.clone())?;
        let mut groups = Groups::open(runs.merge(), self.used)?;
        let mut lists = ListWriter::create(self.work, Direction::Citations, self.summary.n_dois)?;
        let mut own_dates = Records::<4>::open(&self.work.path(OWN_DATES))?;
        let mut all_dates = create(&self.work.path(ALL_DATES))?;
        let mut group = Group::default();
        let mut n_done = 0;
        for node in 0..self.n_nodes() {
            groups.read(node, &mut group)?;
            lists.push(&group.neighbours, &[])?;
            let own = u32::from_le_bytes(own_dates.next()?.ok_or_else(crate::build::error::torn_run)?);
            let date = WorkDate::of(own, &group);
            all_dates.write_all(&date.word().to_le_bytes())?;
            self.note_timespans(node, date, &group)?;
            self.count_citations(node, date, &group);
            n_done += group.neighbours.len() as u64;
            self.tell(Step::Citations, node, n_done);
        }
        close(all_dates)?;
        Ok(lists.finish(self.work)?)
    }

    fn n_nodes(&self) -> u32 {
        // Candidates were numbered with 32 bits.
        self.summary.n_dois as u32
    }

    /// Records rows whose creation is not the date of the citing work.
    fn note_creations(&mut self, citing: u32, date: u32, group: &Group) -> io::Result<()> {
        for (&cited, statements) in group.neighbours.iter().zip(&group.statements) {
            if statements.is_stated() && statements.creation_code() != date {
                let exception = Exception::Creation(statements.creation_code());
                self.exceptions.push(Pair::new(citing, cited, exception.word()))?;
            }
        }
        Ok(())
    }

    /// Records rows whose timespan is not the one between their creation and the date of the cited work.
    fn note_timespans(&mut self, cited: u32, date: WorkDate, group: &Group) -> io::Result<()> {
        for (&citing, statements) in group.neighbours.iter().zip(&group.statements) {
            let derived = statements
                .creation()
                .zip(date.date)
                .map(|(creation, date)| Timespan::between(creation, date));
            if statements.is_stated() && statements.timespan() != derived {
                let exception = Exception::Timespan(statements.timespan_code());
                self.exceptions.push(Pair::new(citing, cited, exception.word()))?;
            }
        }
        Ok(())
    }

    fn count_references(&mut self, node: u32, group: &Group) {
        let n = group.neighbours.len() as u64;
        self.summary.n_citations += n;
        self.summary.n_citing += u64::from(0 < n);
        self.summary.n_self_loops += u64::from(group.neighbours.binary_search(&node).is_ok());
        if self.summary.max_references.n < n {
            self.summary.max_references = Extreme { number: node, n };
        }
    }

    fn count_citations(&mut self, node: u32, date: WorkDate, group: &Group) {
        let n = group.neighbours.len() as u64;
        self.summary.n_cited += u64::from(0 < n);
        if self.summary.max_citations.n < n {
            self.summary.max_citations = Extreme { number: node, n };
        }
        self.summary.n_dated += u64::from(date.date.is_some() && !date.is_inferred);
        self.summary.n_inferred += u64::from(date.is_inferred);
    }

    fn tell(&mut self, step: Step, node: u32, n_done: u64) {
        if u64::from(node) % PROGRESS_STEP == 0 {
            let counts = &self.summary.counts;
            let n_total = Some(counts.n_rows_kept - counts.n_without_doi);
            self.observer.progress(Progress { step, n_done, n_total, n_rows: counts.n_rows });
        }
    }
}

/// Returns the creation that most rows state, by majority vote (Boyer, Moore 1981): exact if more than half agree,
/// which all do except in broken dumps; 0 for none.
fn most_frequent(statements: &[Statements]) -> u32 {
    let (mut code, mut lead) = (0, 0_usize);
    for statement in statements.iter().filter(|it| it.is_stated()) {
        if lead == 0 {
            (code, lead) = (statement.creation_code(), 1);
        } else if statement.creation_code() == code {
            lead += 1;
        } else {
            lead -= 1;
        }
    }
    code
}

/// The date of a work, stated or inferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WorkDate {
    date: Option<PartialDate>,
    is_inferred: bool,
}

impl WorkDate {
    /// Returns the work's own date, otherwise the one derived from the timespans of `citing`.
    fn of(own_code: u32, citing: &Group) -> Self {
        if own_code != 0 {
            return Self { date: PartialDate::from_code(own_code), is_inferred: false };
        }
        let date = inferred(&citing.statements);
        Self { date, is_inferred: date.is_some() }
    }

    fn word(self) -> u32 {
        self.date.map_or(0, |date| date.code() << 1 | u32::from(self.is_inferred))
    }
}

/// Returns the date that agrees with the most of (a sample of) the timespans.
fn inferred(statements: &[Statements]) -> Option<PartialDate> {
    let spans = || {
        statements.iter().filter(|it| it.is_stated()).filter_map(|it| Some((it.creation()?, it.timespan()?)))
    };
    let most_parts = spans().map(|(_, timespan)| timespan.n_parts()).max()?;
    let guesses = spans()
        .filter(|(_, timespan)| timespan.n_parts() == most_parts)
        .take(GUESSES_MAX)
        .flat_map(|(creation, timespan)| timespan.cited_dates(creation).take(2));
    let n_agreeing = |date: &PartialDate| {
        spans()
            .take(SAMPLED_SPANS)
            .filter(|(creation, span)| Timespan::between(*creation, *date) == *span)
            .count()
    };
    // Takes the first of equals: `max_by_key` would take the last.
    guesses
        .take(GUESSES_MAX)
        .map(|date| (n_agreeing(&date), date))
        .reduce(|a, b| if a.0 < b.0 { b } else { a })
        .map(|it| it.1)
}

/// Packs the dates relative to the earliest.
fn write_dates(work: &Workspace, summary: &mut Summary) -> io::Result<()> {
    let (mut least, mut greatest) = (u32::MAX, 0);
    let mut words = Records::<4>::open(&work.path(ALL_DATES))?;
    while let Some(word) = words.next()? {
        let code = u32::from_le_bytes(word) >> 1;
        if code != 0 {
            least = least.min(code);
            greatest = greatest.max(code);
        }
    }
    summary.date_base = least.min(greatest);
    summary.date_width = if greatest == 0 { 0 } else { width_of(u64::from((greatest - least) << 1 | 1) + 1) };
    let mut packed = PackedWriter::create(&section_path(work, Section::Dates), summary.date_width)?;
    let mut words = Records::<4>::open(&work.path(ALL_DATES))?;
    while let Some(word) = words.next()? {
        let word = u32::from_le_bytes(word);
        let relative = if word == 0 { 0 } else { u64::from(word - (least << 1)) + 1 };
        packed.push(relative)?;
    }
    packed.finish()
}

/// Exceptions as records of citing, cited (4 bytes each) and word (8 bytes), sorted.
fn write_exceptions(work: &Workspace, sorter: PairSorter, summary: &mut Summary) -> io::Result<()> {
    let mut file = create(&section_path(work, Section::Exceptions))?;
    let runs = sorter.finish()?;
    let mut pairs = runs.merge();
    while let Some(pair) = pairs.next()? {
        file.write_all(&pair.major().to_le_bytes())?;
        file.write_all(&pair.minor().to_le_bytes())?;
        file.write_all(&pair.value.to_le_bytes())?;
        summary.n_exceptions += 1;
    }
    close(file)
}
