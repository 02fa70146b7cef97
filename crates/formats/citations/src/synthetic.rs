//! Generates dumps of any size with the shape of the real citation graph, from a seed.
//!
//! Shape: the results of a survey of the whole COCI release of early 2022. Among DOIs that cite, references are
//! log-normal with median 16 and mean 23.8 (so 95 % have at most 68, 99 % at most 133), at most 10,557. Among DOIs that
//! are cited, citations are log-normal with median 7 and mean 21.9 (95 %: 81, 99 %: 220, 99.9 %: 802), and a few hubs
//! reach 200,934. Three in four DOIs cite, four in five are cited. Who cites whom is otherwise independent of the DOIs'
//! order: no locality, the worst case for compression. Hubs have their real size even in a small graph.

use std::io::{self, Write};

use crate::date::{PartialDate, Timespan};
use crate::oci::{Supplier, encode};

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// DOIs.
    pub n_dois: u32,
    /// Rows, of which a few repeat others.
    pub n_citations: u64,
    /// Seed of the random numbers: the same seed gives the same bytes.
    pub seed: u64,
}

impl Shape {
    /// The size at which the service that this replaces was measured: 1.09 million ids, 29.6 million citations.
    pub const MEASURED: Self = Self { n_dois: 1_090_000, n_citations: 29_600_000, seed: 7 };
}

/// How to write the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `citing<TAB>cited`, no header.
    Pairs,
    /// The seven columns of COCI.
    Coci,
}

const CITING_SHARE: f64 = 0.75;
const CITED_SHARE: f64 = 0.81;
const REFERENCES_MEDIAN: f64 = 16.0;
const REFERENCES_SIGMA: f64 = 0.89; // exp(sigma^2 / 2) is mean over median.
const REFERENCES_MAX: f64 = 10_557.0;
const CITATIONS_MEDIAN: f64 = 7.0;
const CITATIONS_SIGMA: f64 = 1.51;
const HUB_CITATIONS_MAX: f64 = 200_934.0;
const HUB_REFERENCES_MAX: f64 = 10_557.0;
/// Number of hubs, the r-th with the largest count over r^0.7.
const N_HUBS: u32 = 60;
const HUB_DECAY: f64 = 0.7;

/// A graph to be written.
#[derive(Debug)]
pub struct Synthetic {
    shape: Shape,
    n_references: Vec<u32>,
    cited: AliasTable,
}

impl Synthetic {
    /// Draws how many each DOI cites and how likely it is cited.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let mut random = Random::new(shape.seed);
        let n_hubs = N_HUBS.min(shape.n_dois / 1000);
        let hub = |random: &mut Random| random.below(u64::from(shape.n_dois)) as usize;
        let mut references: Vec<f64> = (0..shape.n_dois).map(|_| reference_weight(&mut random)).collect();
        let mut citations: Vec<f64> = (0..shape.n_dois).map(|_| citation_weight(&mut random)).collect();
        let hub_share = |rank: u32| f64::from(rank + 1).powf(-HUB_DECAY);
        scale(&mut citations, shape.n_citations as f64 * 0.95);
        for rank in 0..n_hubs {
            citations[hub(&mut random)] = HUB_CITATIONS_MAX * hub_share(rank);
        }
        scale(&mut references, shape.n_citations as f64);
        for rank in 0..n_hubs {
            references[hub(&mut random)] = HUB_REFERENCES_MAX * hub_share(rank);
        }
        let n_references = counts(&references, shape.n_citations, &mut random);
        Self { shape, n_references, cited: AliasTable::new(&citations) }
    }

    /// Writes the rows, citing DOI by citing DOI.
    ///
    /// # Errors
    /// Errors of `sink`.
    pub fn write_edges(&self, format: Format, sink: &mut dyn Write) -> io::Result<()> {
        let mut random = Random::new(self.shape.seed ^ 0x00ed_6e50);
        if format == Format::Coci {
            sink.write_all(b"oci,citing,cited,creation,timespan,journal_sc,author_sc\n")?;
        }
        for (citing, n_references) in (0..).zip(&self.n_references) {
            let citing_doi = self.doi(citing);
            for _ in 0..*n_references {
                let cited = self.cited.draw(&mut random);
                let cited_doi = self.doi(cited);
                match format {
                    Format::Pairs => writeln!(sink, "{citing_doi}\t{cited_doi}")?,
                    Format::Coci => {
                        let row = self.coci_row((citing, &citing_doi), (cited, &cited_doi), &mut random);
                        sink.write_all(row.as_bytes())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a table of local ids, one per DOI, with the DOI in upper case now and then.
    ///
    /// # Errors
    /// Errors of `sink`.
    pub fn write_ids(&self, sink: &mut dyn Write) -> io::Result<()> {
        for number in 0..self.shape.n_dois {
            let doi = self.doi(number);
            let spelled = if number % 10 == 0 { doi.to_uppercase() } else { doi };
            writeln!(sink, "ai-49-{:016x}\t{spelled}", mix(u64::from(number)))?;
        }
        Ok(())
    }

    /// Returns the DOI of a number: a registrant, a journal, a year and a running number, like most real
    /// ones.
    #[must_use]
    pub fn doi(&self, number: u32) -> String {
        let bits = mix(u64::from(number) ^ self.shape.seed << 32);
        let registrant = 1000 + (bits & 0xff) * (bits >> 8 & 0x1f);
        let journal = journal_name(bits >> 13 & 0xfff);
        let year = 1960 + (bits >> 25) % 64;
        match bits >> 40 & 3 {
            0 => format!("10.{registrant}/{journal}.{year}.{number:07}"),
            1 => format!(
                "10.{registrant}/s{:04}-{:04}({:02})0{number:07}-{}",
                bits >> 42 & 0xfff,
                bits >> 54,
                year % 100,
                number % 10
            ),
            2 => format!("10.{registrant}/978-3-{:06}-{number:07}_{}", bits >> 42 & 0xf_ffff, bits >> 62),
            _ => format!("10.{registrant}/{journal}{number:08}"),
        }
    }

    /// Returns the publication date of a number; some have only the year, some none.
    #[must_use]
    pub fn date(&self, number: u32) -> Option<PartialDate> {
        let bits = mix(u64::from(number) ^ 0x00da_7e00);
        let year = 1960 + (bits % 64) as u16;
        let (month, day) = ((bits >> 8) as u8 % 12 + 1, (bits >> 16) as u8 % 28 + 1);
        match bits >> 24 & 15 {
            0 => None,
            1..=3 => PartialDate::new(year, None, None),
            4..=7 => PartialDate::new(year, Some(month), None),
            _ => PartialDate::new(year, Some(month), Some(day)),
        }
    }

    fn coci_row(&self, citing: (u32, &str), cited: (u32, &str), random: &mut Random) -> String {
        let (creation, cited_date) = (self.date(citing.0), self.date(cited.0));
        let timespan = creation.zip(cited_date).map(|(citing, cited)| Timespan::between(citing, cited));
        let oci = encode((Supplier::CROSSREF, Supplier::CROSSREF), citing.1, cited.1).unwrap_or_default();
        let creation = creation.map(|it| it.to_string()).unwrap_or_default();
        let timespan = timespan.map(|it| it.to_string()).unwrap_or_default();
        let mut flag = |one_in| if random.below(one_in) == 0 { "yes" } else { "no" };
        let (journal_sc, author_sc) = (flag(12), flag(10));
        format!("{oci},{},{},{creation},{timespan},{journal_sc},{author_sc}\n", citing.1, cited.1)
    }
}

fn journal_name(bits: u64) -> String {
    let letter = |shift: u64| char::from(b'a' + (bits >> shift & 15) as u8);
    ['j', '.', letter(0), letter(4), letter(8), letter(2), letter(6)].into_iter().collect()
}

fn reference_weight(random: &mut Random) -> f64 {
    let is_citing = random.unit() < CITING_SHARE;
    let weight = REFERENCES_MEDIAN * (REFERENCES_SIGMA * random.normal()).exp();
    if is_citing { weight.min(REFERENCES_MAX) } else { 0.0 }
}

fn citation_weight(random: &mut Random) -> f64 {
    let is_cited = random.unit() < CITED_SHARE;
    let weight = CITATIONS_MEDIAN * (CITATIONS_SIGMA * random.normal()).exp();
    if is_cited { weight } else { 0.0 }
}

fn scale(weights: &mut [f64], total: f64) {
    let factor = total / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    weights.iter_mut().for_each(|weight| *weight *= factor);
}

/// Returns integers near the weights that add up to `total`.
fn counts(weights: &[f64], total: u64, random: &mut Random) -> Vec<u32> {
    let factor = total as f64 / weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut counts: Vec<u32> =
        weights.iter().map(|weight| (weight * factor + random.unit()) as u32).collect();
    let mut n_all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    while n_all != total && !counts.is_empty() {
        let count = &mut counts[random.below(weights.len() as u64) as usize];
        if n_all < total {
            *count += 1;
            n_all += 1;
        } else if 1 < *count {
            *count -= 1;
            n_all -= 1;
        }
    }
    counts
}

/// Draws numbers with given weights in constant time (Walker 1974, Vose 1991).
#[derive(Debug)]
struct AliasTable {
    slots: Vec<(f64, u32)>,
}

impl AliasTable {
    fn new(weights: &[f64]) -> Self {
        let mut scaled = weights.to_vec();
        scale(&mut scaled, weights.len() as f64);
        let mut slots: Vec<(f64, u32)> = (0..).zip(&scaled).map(|(number, _)| (1.0, number)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..scaled.len()).partition(|&slot| scaled[slot] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            slots[less] = (scaled[less], more as u32);
            scaled[more] -= 1.0 - scaled[less];
            if scaled[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        Self { slots }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let slot = random.below(self.slots.len() as u64);
        let (share, other) = self.slots[slot as usize];
        if random.unit() < share { slot as u32 } else { other }
    }
}

/// The splitmix64 generator (Steele, Lea, Flood 2014): tiny, fast, and the same everywhere.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Draws from [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws from the standard normal distribution (Box, Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
