//! The dictionary of DOIs, and the mapping of DOIs to OMIDs and `PubMed` numbers and back.

use std::io;

use super::pairs::{Pair, PairRuns, PairSorter};
use super::scan::{DOIS, OTHER_DOI_MARK, OTHER_DOIS};
use super::section::{PackedWriter, Sequence, close, create, elias_fano_of, section_path};
use super::texts::TextRuns;
use super::workspace::Workspace;
use crate::bits::width_of;
use crate::build::error::BuildError;
use crate::build::progress::{Observer, Progress, Step};
use crate::build::section::Sections;
use crate::build::used::Used;
use crate::container::Section;
use crate::dictionary::DictionaryWriter;
use crate::summary::Summary;

const PROGRESS_STEP: u64 = 1 << 16;
const BLOCK_STARTS: &str = "doi-blocks";
const OTHER_BLOCK_STARTS: &str = "other-doi-block-starts";

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
    let n_other_dois = usize::try_from(work.plan.n_other_dois).map_err(|_| BuildError::TooMany)?;
    let mut firsts = vec![NO_FIRST; n_other_dois];
    write_dictionary(work, used, observer, &mut |doi, omid, pmid| {
        if pmid & OTHER_DOI_MARK != 0 {
            if let Some(first) = firsts.get_mut((pmid & !OTHER_DOI_MARK) as usize) {
                *first = doi;
            }
            return Ok(());
        }
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
    summary.n_other_dois = write_other_dois(work, used, &firsts, &mut sections)?;
    Ok(sections)
}

/// Marks that no work in use has that further DOI.
const NO_FIRST: u32 = u32::MAX;

/// Writes the further DOIs in order, and the first DOI of each; returns their number. Takes twelve bytes of memory for
/// each.
fn write_other_dois(
    work: &Workspace,
    used: &Used,
    firsts: &[u32],
    sections: &mut Sections,
) -> Result<u64, BuildError> {
    if firsts.iter().all(|it| *it == NO_FIRST) {
        return Ok(0);
    }
    let runs = TextRuns::open(&work.path(OTHER_DOIS), work.plan.other_doi_runs.clone())?;
    let path = work.path(OTHER_BLOCK_STARTS);
    let mut dictionary =
        DictionaryWriter::new(create(&section_path(work, Section::OtherDois))?, create(&path)?);
    let width = width_of(used.n_used().saturating_sub(1));
    let mut numbers = PackedWriter::create(&section_path(work, Section::OtherDoiFirsts), width)?;
    let mut texts = runs.merge();
    let mut last: Option<Vec<u8>> = None;
    let mut of_places = Vec::new();
    while let Some(text) = texts.next()? {
        let first = usize::try_from(text.first).ok().and_then(|it| firsts.get(it)).copied();
        let Some(first) = first.filter(|it| *it != NO_FIRST) else { continue };
        // A DOI shared by several works belongs to the first of them.
        if last.as_deref() == Some(text.bytes) {
            continue;
        }
        dictionary.push(text.bytes)?;
        numbers.push(u64::from(first))?;
        of_places.push(first);
        last = Some(text.bytes.to_vec());
    }
    numbers.finish()?;
    let (blocks, starts, size) = dictionary.finish();
    close(blocks)?;
    close(starts)?;
    elias_fano_of(&path, size.n_blocks, size.n_bytes, &section_path(work, Section::OtherDoiBlocks))?;
    let mut order: Vec<u32> = (0..u32::try_from(of_places.len()).map_err(|_| BuildError::TooMany)?).collect();
    order.sort_by_key(|place| of_places[*place as usize]);
    let width = width_of(size.n_texts.saturating_sub(1));
    let mut places = PackedWriter::create(&section_path(work, Section::DoiOtherDois), width)?;
    order.into_iter().try_for_each(|place| places.push(u64::from(place)))?;
    places.finish()?;
    let own = [Section::DoiOtherDois, Section::OtherDois, Section::OtherDoiBlocks, Section::OtherDoiFirsts];
    sections.extend(own.map(|section| (section, section_path(work, section))));
    Ok(size.n_texts)
}

/// Writes the DOIs in use and passes on the other numbers of each, in order.
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

/// Writes the numbers in order, the DOI of each, and the place of each DOI's least; returns their number.
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
