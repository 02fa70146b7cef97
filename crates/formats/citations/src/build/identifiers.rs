//! The dictionary of DOIs, and the OMIDs and `PubMed` numbers of DOIs both ways.

use std::io;

use super::join::Used;
use super::pairs::{Pair, PairRuns, PairSorter};
use super::scan::DOIS;
use super::section::{PackedWriter, Sequence, close, create, elias_fano_of, section_path};
use super::texts::TextRuns;
use super::workspace::Workspace;
use super::{BuildError, Observer, Progress, Sections, Step};
use crate::bits::width_of;
use crate::container::Section;
use crate::dictionary::DictionaryWriter;
use crate::summary::Summary;

const PROGRESS_STEP: u64 = 1 << 16;
const BLOCK_STARTS: &str = "doi-blocks";

/// The three sections of one kind of number.
struct NumberSections {
    numbers: Section,
    dois: Section,
    by_doi: Section,
}

const OMIDS: NumberSections =
    NumberSections { numbers: Section::Omids, dois: Section::OmidDois, by_doi: Section::DoiOmids };
const PMIDS: NumberSections =
    NumberSections { numbers: Section::Pmids, dois: Section::PmidDois, by_doi: Section::DoiPmids };

/// Writes the dictionary and the numbers.
pub(crate) fn write_sections(
    work: &Workspace,
    used: &Used,
    summary: &mut Summary,
    observer: &mut dyn Observer,
) -> Result<Sections, BuildError> {
    let mut omids = PairSorter::create(&work.path("omid-pairs"))?;
    let mut pmids = PairSorter::create(&work.path("pmid-pairs"))?;
    write_dictionary(work, used, observer, &mut |doi, omid, pmid| {
        if omid != 0 {
            omids.push(Pair { key: omid, value: u64::from(doi) })?;
        }
        if pmid != 0 {
            pmids.push(Pair { key: pmid, value: u64::from(doi) })?;
        }
        Ok(())
    })?;
    let mut sections: Sections =
        [Section::Dois, Section::DoiBlocks].map(|section| (section, section_path(work, section))).into();
    summary.n_omids = write_numbers(work, used.n_used(), &OMIDS, &omids.finish()?, &mut sections)?;
    summary.n_pmids = write_numbers(work, used.n_used(), &PMIDS, &pmids.finish()?, &mut sections)?;
    Ok(sections)
}

/// Writes the DOIs in use and tells the other numbers of each, in order.
fn write_dictionary(
    work: &Workspace,
    used: &Used,
    observer: &mut dyn Observer,
    tell: &mut dyn FnMut(u32, u64, u64) -> io::Result<()>,
) -> Result<(), BuildError> {
    let runs = TextRuns::open(&work.path(DOIS), work.plan.doi_runs.clone())?;
    let starts = create(&work.path(BLOCK_STARTS))?;
    let mut dictionary = DictionaryWriter::new(create(&section_path(work, Section::Dois))?, starts);
    let mut texts = runs.merge();
    let mut doi = Vec::new();
    let (mut n_candidates, mut n_used) = (0_u64, 0_u32);
    while let Some(text) = texts.next()? {
        if n_candidates == 0 || doi != text.bytes {
            doi.clear();
            doi.extend_from_slice(text.bytes);
            n_candidates += 1;
            if used.contains(n_candidates - 1) {
                n_used += 1;
                dictionary.push(&doi)?;
            }
            if n_candidates % PROGRESS_STEP == 0 {
                let (n_done, n_total) = (n_candidates, Some(work.plan.n_candidates));
                let n_rows = work.plan.counts.n_rows;
                observer.progress(Progress { step: Step::Finish, n_done, n_total, n_rows });
            }
        }
        if used.contains(n_candidates - 1) {
            tell(n_used - 1, text.first, text.second)?;
        }
    }
    let (blocks, starts, size) = dictionary.finish();
    close(blocks)?;
    close(starts)?;
    let path = work.path(BLOCK_STARTS);
    Ok(elias_fano_of(&path, size.n_blocks, size.n_bytes, &section_path(work, Section::DoiBlocks))?)
}

/// Writes the numbers in order, the DOI of each, and the place of each DOI's least; how many there are.
fn write_numbers(
    work: &Workspace,
    n_dois: u64,
    target: &NumberSections,
    runs: &PairRuns,
    sections: &mut Sections,
) -> Result<u64, BuildError> {
    let mut numbers = Sequence::create(work.path("numbers"))?;
    let doi_width = width_of(n_dois.saturating_sub(1));
    let mut dois = PackedWriter::create(&section_path(work, target.dois), doi_width)?;
    let mut by_doi = PairSorter::create(&work.path("places"))?;
    let (mut n_numbers, mut last) = (0_u64, None);
    let mut pairs = runs.merge();
    while let Some(pair) = pairs.next()? {
        if last == Some(pair.key) {
            continue; // The number of a DOI again, or of a second DOI: the first one stays.
        }
        last = Some(pair.key);
        numbers.push(pair.key)?;
        dois.push(pair.value)?;
        by_doi.push(Pair { key: pair.value, value: n_numbers })?;
        n_numbers += 1;
    }
    numbers.finish(&section_path(work, target.numbers))?;
    dois.finish()?;
    write_places(work, n_dois, n_numbers, target, &by_doi.finish()?)?;
    if 0 < n_numbers {
        sections.extend([target.numbers, target.dois, target.by_doi].map(|it| (it, section_path(work, it))));
    }
    Ok(n_numbers)
}

fn write_places(
    work: &Workspace,
    n_dois: u64,
    n_numbers: u64,
    target: &NumberSections,
    runs: &PairRuns,
) -> io::Result<()> {
    let mut places = PackedWriter::create(&section_path(work, target.by_doi), width_of(n_numbers))?;
    let mut pairs = runs.merge();
    let mut next = pairs.next()?;
    for doi in 0..n_dois {
        let first = next.filter(|pair| pair.key == doi);
        places.push(first.map_or(0, |pair| pair.value + 1))?;
        while next.is_some_and(|pair| pair.key == doi) {
            next = pairs.next()?;
        }
    }
    places.finish()
}
