//! Local ids: their dictionary, the DOI of each, and the ids of each DOI in the order of the table.

use std::io::{self, Write};

use super::keys::{KeyTable, PartWriter, half_of, read_part, remove_parts, word_of};
use super::pairs::{Pair, PairRuns, PairSorter};
use super::scan::{IDS, SPELLING_MARK};
use super::section::{PackedWriter, Sequence, close, create, elias_fano_of, section_path};
use super::texts::TextRuns;
use super::workspace::Workspace;
use crate::bits::width_of;
use crate::build::error::BuildError;
use crate::build::section::Sections;
use crate::build::used::Used;
use crate::container::Section;
use crate::dictionary::DictionaryWriter;

/// A DOI key, a row, a local id number.
const KEYED_BYTES: usize = 16;
const KEYED: &str = "id-keys";
const BLOCK_STARTS: &str = "id-blocks";
/// DOI numbers by local id, and local ids by DOI, in runs.
const ID_DOIS: &str = "id-dois";
const DOI_IDS: &str = "doi-ids";

/// Numbers the local ids, writes their dictionary and the catalogue's spellings, and partitions the DOIs' keys for the
/// join.
pub(crate) fn number(work: &mut Workspace) -> Result<(), BuildError> {
    if work.plan.id_runs.is_empty() || work.plan.counts.n_id_rows == 0 {
        return Ok(());
    }
    let runs = TextRuns::open(&work.path(IDS), work.plan.id_runs.clone())?;
    let mut texts = runs.merge();
    let mut writer = Writer::create(work)?;
    while let Some(text) = texts.next()? {
        let mark = memchr::memchr(SPELLING_MARK, text.bytes).unwrap_or(text.bytes.len());
        let (id, spelling) = (&text.bytes[..mark], text.bytes.get(mark + 1..).unwrap_or_default());
        writer.push(id, spelling, text.first, text.second)?;
    }
    let (n_duplicates, n_spellings) = writer.finish(work)?;
    work.plan.counts.n_id_duplicates = n_duplicates;
    work.plan.n_spellings = n_spellings;
    Ok(())
}

/// The best row so far of the current id: ids come sorted, their rows by spelling.
struct Candidate {
    id: Vec<u8>,
    spelling: Vec<u8>,
    n_row: u64,
    key: u64,
}

struct Writer {
    dictionary: DictionaryWriter<io::BufWriter<std::fs::File>>,
    keyed: PartWriter<KEYED_BYTES>,
    spellings: io::BufWriter<std::fs::File>,
    spelling_starts: Sequence,
    spelling_ids: Sequence,
    n_spelling_bytes: u64,
    n_spellings: u64,
    n_ids: u64,
    n_duplicates: u64,
    candidate: Option<Candidate>,
}

impl Writer {
    fn create(work: &Workspace) -> io::Result<Self> {
        let mut spelling_starts = Sequence::create(work.path("spelling-starts"))?;
        spelling_starts.push(0)?;
        Ok(Self {
            dictionary: DictionaryWriter::new(
                create(&section_path(work, Section::LocalIds))?,
                create(&work.path(BLOCK_STARTS))?,
            ),
            keyed: PartWriter::open(work, KEYED, &[])?,
            spellings: create(&section_path(work, Section::Spellings))?,
            spelling_starts,
            spelling_ids: Sequence::create(work.path("spelling-ids"))?,
            n_spelling_bytes: 0,
            n_spellings: 0,
            n_ids: 0,
            n_duplicates: 0,
            candidate: None,
        })
    }

    fn push(&mut self, id: &[u8], spelling: &[u8], n_row: u64, key: u64) -> Result<(), BuildError> {
        match &mut self.candidate {
            Some(candidate) if candidate.id == id => {
                self.n_duplicates += 1;
                if n_row < candidate.n_row {
                    (candidate.n_row, candidate.key) = (n_row, key);
                    candidate.spelling = spelling.to_vec();
                }
            }
            _ => {
                self.settle()?;
                self.candidate = Some(Candidate { id: id.to_vec(), spelling: spelling.to_vec(), n_row, key });
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), BuildError> {
        let Some(candidate) = self.candidate.take() else { return Ok(()) };
        let number = u32::try_from(self.n_ids).map_err(|_| BuildError::TooMany)?;
        let n_row = u32::try_from(candidate.n_row).map_err(|_| BuildError::TooMany)?;
        self.n_ids += 1;
        self.dictionary.push(&candidate.id)?;
        let mut record = [0; KEYED_BYTES];
        record[..8].copy_from_slice(&candidate.key.to_le_bytes());
        record[8..12].copy_from_slice(&n_row.to_le_bytes());
        record[12..].copy_from_slice(&number.to_le_bytes());
        self.keyed.push(candidate.key, &record)?;
        if !candidate.spelling.is_empty() {
            self.spellings.write_all(&candidate.spelling)?;
            self.n_spelling_bytes += candidate.spelling.len() as u64;
            self.spelling_starts.push(self.n_spelling_bytes)?;
            self.spelling_ids.push(u64::from(number))?;
            self.n_spellings += 1;
        }
        Ok(())
    }

    /// Returns the numbers of duplicates and spellings.
    fn finish(mut self, work: &mut Workspace) -> Result<(u64, u64), BuildError> {
        self.settle()?;
        self.keyed.checkpoint()?;
        close(self.spellings)?;
        self.spelling_starts.finish(&section_path(work, Section::SpellingStarts))?;
        self.spelling_ids.finish(&section_path(work, Section::SpellingIds))?;
        let (blocks, starts, size) = self.dictionary.finish();
        close(blocks)?;
        close(starts)?;
        let path = work.path(BLOCK_STARTS);
        elias_fano_of(&path, size.n_blocks, size.n_bytes, &section_path(work, Section::LocalIdBlocks))?;
        work.plan.n_local_ids = size.n_texts;
        work.plan.local_ids = Some(size);
        Ok((self.n_duplicates, self.n_spellings))
    }
}

/// Joins the local ids with the numbers of their DOIs, share by share.
pub(crate) struct IdJoin {
    id_dois: PairSorter,
    doi_ids: PairSorter,
}

impl IdJoin {
    pub(crate) fn create(work: &Workspace) -> io::Result<Self> {
        let id_dois = PairSorter::create(&work.path(ID_DOIS))?;
        Ok(Self { id_dois, doi_ids: PairSorter::create(&work.path(DOI_IDS))? })
    }

    /// Looks up the ids of the parts that `table` was loaded from.
    pub(crate) fn take(
        &mut self,
        work: &Workspace,
        group: std::ops::Range<usize>,
        table: &KeyTable,
        used: &mut Used,
    ) -> Result<(), BuildError> {
        if work.plan.n_local_ids == 0 {
            return Ok(());
        }
        for part in group {
            let mut records = read_part::<KEYED_BYTES>(work, KEYED, part)?;
            while let Some(record) = records.next()? {
                let doi = table.get(word_of(&record, 0)).ok_or_else(crate::build::error::torn_run)?;
                let (n_row, id) = (half_of(&record, 8), half_of(&record, 12));
                used.set(doi);
                self.id_dois.push(Pair::new(0, id, u64::from(doi)))?;
                self.doi_ids.push(Pair::new(doi, n_row, u64::from(id)))?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self, work: &mut Workspace) -> io::Result<()> {
        work.plan.id_doi_runs = self.id_dois.finish()?.list().to_vec();
        work.plan.doi_id_runs = self.doi_ids.finish()?.list().to_vec();
        Ok(())
    }
}

/// Removes the input of the join.
pub(crate) fn remove_keyed(work: &Workspace) -> io::Result<()> {
    remove_parts(work, KEYED)
}

/// Writes the sections that map ids to DOIs and back, and lists all sections of local ids.
pub(crate) fn write_sections(work: &Workspace, used: &Used) -> Result<Sections, BuildError> {
    if work.plan.n_local_ids == 0 {
        return Ok(Vec::new());
    }
    let doi_width = width_of(used.n_used().saturating_sub(1));
    let mut id_dois = PackedWriter::create(&section_path(work, Section::LocalIdDois), doi_width)?;
    let mut pairs = PairRuns::open(&work.path(ID_DOIS), work.plan.id_doi_runs.clone())?.merge();
    while let Some(pair) = pairs.next()? {
        id_dois.push(u64::from(used.rank(pair.value as u32)))?;
    }
    id_dois.finish()?;
    write_ids_of_dois(work, used)?;
    let sections = [
        Section::LocalIds,
        Section::LocalIdBlocks,
        Section::LocalIdDois,
        Section::DoiLocalIds,
        Section::DoiLocalIdStarts,
        Section::Spellings,
        Section::SpellingStarts,
        Section::SpellingIds,
    ];
    Ok(sections.into_iter().map(|section| (section, section_path(work, section))).collect())
}

fn write_ids_of_dois(work: &Workspace, used: &Used) -> io::Result<()> {
    let id_width = width_of(work.plan.n_local_ids - 1);
    let mut ids = PackedWriter::create(&section_path(work, Section::DoiLocalIds), id_width)?;
    let mut starts = Sequence::create(work.path("doi-id-starts"))?;
    let mut pairs = PairRuns::open(&work.path(DOI_IDS), work.plan.doi_id_runs.clone())?.merge();
    let (mut n_ids, mut next_doi) = (0, 0);
    while let Some(pair) = pairs.next()? {
        let doi = u64::from(used.rank(pair.major()));
        while next_doi <= doi {
            starts.push(n_ids)?;
            next_doi += 1;
        }
        ids.push(pair.value)?;
        n_ids += 1;
    }
    while next_doi <= used.n_used() {
        starts.push(n_ids)?;
        next_doi += 1;
    }
    ids.finish()?;
    starts.finish(&section_path(work, Section::DoiLocalIdStarts))
}
