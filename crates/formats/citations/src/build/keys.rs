//! Keys of works: 63 bits that stand for a DOI or an OMID until all DOIs are known and numbered.
//!
//! Files of keyed records are partitioned into [`N_PARTS`] by the key's high bits, so that any share of the keys can be
//! processed separately with all records that refer to it.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::disk;
use super::spool::Records;
use super::workspace::Workspace;
use crate::omid::Omid;

/// Number of files that keyed records are partitioned into.
pub(crate) const N_PARTS: usize = 64;
const PART_BITS: u32 = N_PARTS.ilog2();
const PART_BUFFER_BYTES: usize = 64 << 10;
/// Odd, so that multiplying by it is reversible; its high bits are well mixed (2^64 / golden ratio).
const OMID_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
pub(crate) const KEY_RECORD_BYTES: usize = 12;

/// Returns the key of a normalised DOI: even.
pub(crate) fn doi_key(doi: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(doi, seed) & !1
}

/// Returns the key of an OMID: odd and unique.
pub(crate) fn omid_key(omid: Omid) -> u64 {
    omid.number().wrapping_mul(OMID_FACTOR) << 1 | 1
}

/// Returns the file of a key.
pub(crate) fn part_of(key: u64) -> usize {
    (key >> (u64::BITS - PART_BITS)) as usize
}

/// Writes records to the file of their key.
pub(crate) struct PartWriter<const N: usize> {
    files: Vec<BufWriter<File>>,
    lens: Vec<u64>,
    /// The lengths that are known to be on disk.
    synced_lens: Vec<u64>,
}

impl<const N: usize> PartWriter<N> {
    /// Opens the files to continue after `lens` bytes of each; none means from the start.
    pub(crate) fn open(work: &Workspace, name: &str, lens: &[u64]) -> io::Result<Self> {
        let lens: Vec<u64> = (0..N_PARTS).map(|part| lens.get(part).copied().unwrap_or(0)).collect();
        let open = |(part, len): (usize, &u64)| {
            let path = work.path(&part_name(name, part));
            let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
            file.set_len(*len)?;
            file.seek(SeekFrom::Start(*len))?;
            Ok(BufWriter::with_capacity(PART_BUFFER_BYTES, file))
        };
        let files = lens.iter().enumerate().map(open).collect::<io::Result<_>>()?;
        Ok(Self { files, synced_lens: lens.clone(), lens })
    }

    pub(crate) fn push(&mut self, key: u64, record: &[u8; N]) -> io::Result<()> {
        let part = part_of(key);
        self.lens[part] += N as u64;
        self.files[part].write_all(record)
    }

    /// Syncs everything to disk; returns the length of each file.
    pub(crate) fn checkpoint(&mut self) -> io::Result<&[u64]> {
        for (part, file) in self.files.iter_mut().enumerate() {
            if self.synced_lens[part] != self.lens[part] {
                file.flush()?;
                disk::sync(file.get_ref())?;
                self.synced_lens[part] = self.lens[part];
            }
        }
        Ok(&self.lens)
    }
}

/// Reads the records of one part.
pub(crate) fn read_part<const N: usize>(work: &Workspace, name: &str, part: usize) -> io::Result<Records<N>> {
    Records::open(&work.path(&part_name(name, part)))
}

/// Removes the files of a name; missing files are ignored.
pub(crate) fn remove_parts(work: &Workspace, name: &str) -> io::Result<()> {
    for part in 0..N_PARTS {
        match std::fs::remove_file(work.path(&part_name(name, part))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn part_name(name: &str, part: usize) -> String {
    format!("{name}-{part:02}")
}

/// Returns the parts whose keys are processed together: at least one part, more as long as there are no more than
/// `keys_at_once`.
pub(crate) fn groups(
    work: &Workspace,
    name: &str,
    keys_at_once: u64,
) -> io::Result<Vec<std::ops::Range<usize>>> {
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    let mut n_in_group = 0;
    for part in 0..N_PARTS {
        let len = std::fs::metadata(work.path(&part_name(name, part)))?.len();
        let n_keys = len / KEY_RECORD_BYTES as u64;
        match groups.last_mut() {
            Some(group) if n_in_group + n_keys <= keys_at_once => {
                group.end = part + 1;
                n_in_group += n_keys;
            }
            _ => {
                groups.push(part..part + 1);
                n_in_group = n_keys;
            }
        }
    }
    Ok(groups)
}

/// Numbers by key, of some parts: open addressing, with the slot taken from the key's bits below the part.
pub(crate) struct KeyTable {
    slots: Vec<u64>,
    numbers: Vec<u32>,
}

/// The result of inserting a key into a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    New,
    Again,
    /// The key has another number, which stays.
    Conflict,
}

/// No DOI has it: keys of DOIs are even, and as an OMID's key it would be number 0.
const EMPTY: u64 = 1;

impl KeyTable {
    pub(crate) fn with_capacity(n_keys: usize) -> Self {
        let n_slots = (n_keys + n_keys / 2).max(8);
        Self { slots: vec![EMPTY; n_slots], numbers: vec![0; n_slots] }
    }

    /// Loads the table of the parts in `group`; returns the number of conflicts between OMIDs, and whether
    /// DOIs collide.
    pub(crate) fn load(
        work: &Workspace,
        name: &str,
        group: std::ops::Range<usize>,
    ) -> io::Result<(Self, Conflicts)> {
        let mut n_keys = 0;
        for part in group.clone() {
            n_keys += std::fs::metadata(work.path(&part_name(name, part)))?.len() / KEY_RECORD_BYTES as u64;
        }
        let mut table = Self::with_capacity(usize::try_from(n_keys).map_err(io::Error::other)?);
        let mut conflicts = Conflicts::default();
        for part in group {
            let mut records = read_part::<KEY_RECORD_BYTES>(work, name, part)?;
            while let Some(record) = records.next()? {
                let (key, number) = split_key_record(&record);
                if table.insert(key, number) == Inserted::Conflict {
                    conflicts.note(key);
                }
            }
        }
        Ok((table, conflicts))
    }

    pub(crate) fn insert(&mut self, key: u64, number: u32) -> Inserted {
        let slot = self.slot_of(key);
        if self.slots[slot] == key {
            return if self.numbers[slot] == number { Inserted::Again } else { Inserted::Conflict };
        }
        self.slots[slot] = key;
        self.numbers[slot] = number;
        Inserted::New
    }

    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        let slot = self.slot_of(key);
        (self.slots[slot] == key).then(|| self.numbers[slot])
    }

    /// Returns the slot of the key, or the empty slot where it would be.
    fn slot_of(&self, key: u64) -> usize {
        let mixed = u128::from(key.wrapping_mul(OMID_FACTOR).rotate_left(32).wrapping_mul(OMID_FACTOR));
        let mut slot = ((mixed * self.slots.len() as u128) >> 64) as usize;
        while self.slots[slot] != key && self.slots[slot] != EMPTY {
            slot += 1;
            if slot == self.slots.len() {
                slot = 0;
            }
        }
        slot
    }
}

/// Keys that were given two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Conflicts {
    /// Two DOIs of one hash.
    pub(crate) n_dois: u64,
    /// One OMID of two DOIs.
    pub(crate) n_omids: u64,
}

impl Conflicts {
    pub(crate) fn note(&mut self, key: u64) {
        if key & 1 == 0 { self.n_dois += 1 } else { self.n_omids += 1 }
    }
}

pub(crate) fn key_record(key: u64, number: u32) -> [u8; KEY_RECORD_BYTES] {
    let mut record = [0; KEY_RECORD_BYTES];
    record[..8].copy_from_slice(&key.to_le_bytes());
    record[8..].copy_from_slice(&number.to_le_bytes());
    record
}

fn split_key_record(record: &[u8; KEY_RECORD_BYTES]) -> (u64, u32) {
    (word_of(record, 0), half_of(record, 8))
}

/// The 8-byte number at `at` of a record.
pub(crate) fn word_of<const N: usize>(record: &[u8; N], at: usize) -> u64 {
    record[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// The 4-byte number at `at` of a record.
pub(crate) fn half_of<const N: usize>(record: &[u8; N], at: usize) -> u32 {
    record[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}
