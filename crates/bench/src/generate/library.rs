//! A library's catalogue and the citations around it: local ids, their DOIs, index documents, and a citation
//! graph with the shape of the real one.
//!
//! Shape, after a survey of the whole COCI release of early 2022: works that cite have a median of 16 references
//! and a mean of 24, works that are cited a median of 7 citations and a mean of 22, both log-normal; the
//! most cited have up to 200,934 citations, whatever the size of the excerpt, the longest lists of references 10,557 entries.
//! Three in four works cite, four in five are cited; who cites whom is independent of the DOIs' order. Three in five
//! local ids belong to works of the graph; the DOIs of the others have no citations.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::citations::{HEADER, oci_part};
use super::random::{Random, hash};
use super::words::{person, sentence};

/// Number of ids out of a hundred whose work is in the graph.
const HELD_PER_CENT: u64 = 60;
const CITING_SHARE: f64 = 0.75;
const CITED_SHARE: f64 = 0.81;
const REFERENCES_MEDIAN: f64 = 16.0;
/// `exp(sigma² / 2)` is mean over median.
const REFERENCES_SIGMA: f64 = 0.89;
const REFERENCES_MAX: f64 = 10_557.0;
const CITATIONS_MEDIAN: f64 = 7.0;
const CITATIONS_SIGMA: f64 = 1.51;
const CITATIONS_MAX: f64 = 200_934.0;
/// Number of works with counts beyond the log-normal body; that of rank r has the largest count over r^0.7.
const N_HUBS: u64 = 60;
const HUB_DECAY: f64 = 0.7;
/// Maximum share of all works that a work cites or is cited by, so that small graphs work too.
const HUB_SHARE_MAX: f64 = 0.2;
/// Number of different lists of institutions.
const N_HOLDER_LISTS: u64 = 400;
/// Institutions besides `DE-14`.
const N_ISILS: u64 = 90;

/// The size of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryShape {
    /// Local ids, each with a DOI and a document.
    pub n_ids: u64,
    /// Works of the graph.
    pub n_works: u64,
    /// Citations; a few repeat others.
    pub n_citations: u64,
}

/// A library to be written, and queried. The same seed and shape give the same bytes.
#[derive(Debug)]
pub struct Library {
    seed: u64,
    shape: LibraryShape,
    n_references: Vec<u32>,
    n_citations: Vec<u32>,
}

impl Library {
    /// Draws how many works each work cites and is cited by.
    pub fn new(seed: u64, shape: LibraryShape) -> Self {
        let most = shape.n_works as f64 * HUB_SHARE_MAX;
        let references = Degrees {
            share: CITING_SHARE,
            median: REFERENCES_MEDIAN,
            sigma: REFERENCES_SIGMA,
            max: REFERENCES_MAX.min(most),
        };
        let citations = Degrees {
            share: CITED_SHARE,
            median: CITATIONS_MEDIAN,
            sigma: CITATIONS_SIGMA,
            max: CITATIONS_MAX.min(most),
        };
        Self {
            seed,
            shape,
            n_references: references.draw(seed ^ 0x0ec5, shape),
            n_citations: citations.draw(seed ^ 0x0c17, shape),
        }
    }

    /// Returns the number of ids whose work is in the graph: those with smaller numbers.
    pub fn n_held(&self) -> u64 {
        (self.shape.n_ids * HELD_PER_CENT / 100).min(self.shape.n_works)
    }

    /// Returns the DOI of the `n`-th id, and, below `n_works`, of the `n`-th work. Ids from [`Library::n_held`] on have
    /// one that is in no graph.
    pub fn doi_of_id(&self, n: u64) -> String {
        if n < self.n_held() { self.doi(n) } else { format!("{}.u", self.doi(n + self.shape.n_works)) }
    }

    fn doi(&self, n: u64) -> String {
        let bits = hash(self.seed, n);
        let registrant = 1000 + (bits & 0xff) * (bits >> 8 & 0x1f);
        let letters: String =
            (0..4).map(|place| char::from(b'a' + (bits >> (13 + 4 * place) & 15) as u8)).collect();
        let year = 1960 + (bits >> 30) % 64;
        match bits >> 40 & 3 {
            0 => format!("10.{registrant}/j.{letters}.{year}.{n:07}"),
            1 => format!("10.{registrant}/s{:04}-{n:07}-{}", bits >> 42 & 0xfff, n % 10),
            2 => format!("10.{registrant}/978-3-{:06}-{n:07}", bits >> 42 & 0xf_ffff),
            _ => format!("10.{registrant}/{letters}{n:08}"),
        }
    }

    /// Returns the `n`-th local id. Most contain their DOI, as ids of article indexes do.
    pub fn local_id(&self, n: u64) -> String {
        let bits = hash(self.seed ^ 0x1d, n);
        match bits % 20 {
            0..=15 => {
                let url = format!("http://dx.doi.org/{}", self.doi_of_id(n));
                format!("ai-49-{}", URL_SAFE_NO_PAD.encode(url))
            }
            16 | 17 => format!("ai-85-{}", URL_SAFE_NO_PAD.encode(self.doi_of_id(n))),
            18 => format!("ai-28-{:016x}{:016x}", mixed(bits), mixed(n ^ bits)),
            _ => format!("0-{n:09}"),
        }
    }

    /// Returns a line of the table of ids: one DOI in ten is spelt in capitals there.
    pub fn id_row(&self, n: u64) -> String {
        let doi = self.doi_of_id(n);
        let spelled = if n % 10 == 3 { doi.to_uppercase() } else { doi };
        format!("{}\t{spelled}", self.local_id(n))
    }

    /// Returns the index document of the `n`-th id, similar to an article index: about 450 bytes.
    pub fn document(&self, n: u64) -> String {
        let mut random = Random::new(self.seed ^ 0xd0c, n);
        let doi = self.doi_of_id(n);
        let n_words = 6 + random.below(14);
        let title = sentence(&mut random, n_words as usize);
        let authors: Vec<String> = (0..1 + random.below(3)).map(|_| person(&mut random)).collect();
        let list = random.skewed_below(N_HOLDER_LISTS);
        serde_json::json!({
            "id": self.local_id(n),
            "title": title,
            "author": authors,
            "format": ["ElectronicArticle"],
            "url": [format!("http://dx.doi.org/{doi}")],
            "doi_str_mv": [doi],
            "institution": self.holders(list),
        })
        .to_string()
    }

    /// One of the different lists of institutions; `DE-14` is in every second.
    fn holders(&self, list: u64) -> Vec<String> {
        let mut random = Random::new(self.seed ^ 0x151, list);
        let n_others = random.below(14);
        let mut holders: Vec<String> =
            (0..n_others).map(|_| format!("DE-{}", 100 + random.below(N_ISILS))).collect();
        if list.is_multiple_of(2) || holders.is_empty() {
            holders.push("DE-14".to_owned());
        }
        holders.sort();
        holders.dedup();
        holders
    }

    /// Returns the `n` held ids with the most citations and references together, most expensive first.
    pub fn dearest(&self, n: usize) -> Vec<u64> {
        let mut ids: Vec<u64> = (0..self.n_held()).collect();
        ids.sort_by_key(|id| std::cmp::Reverse((self.n_neighbours(*id), *id)));
        ids.truncate(n);
        ids
    }

    /// Citations and references of a work.
    pub fn n_neighbours(&self, n: u64) -> u64 {
        let at = |counts: &[u32]| counts.get(n as usize).map_or(0, |count| u64::from(*count));
        at(&self.n_references) + at(&self.n_citations)
    }

    /// Writes the citations in the form of the COCI dumps, ordered by citing work.
    pub fn write_citations(&self, out: &mut impl Write) -> io::Result<()> {
        let n_works = self.n_citations.len();
        let mut cited = Vec::new();
        for (work, count) in (0_u32..).zip(&self.n_citations) {
            cited.resize(cited.len() + *count as usize, work);
        }
        shuffle(&mut cited, &mut Random::new(self.seed, 0x5eed));
        let dois: Vec<String> = (0..n_works as u64).map(|n| self.doi(n)).collect();
        let parts: Vec<String> = dois.iter().map(|doi| oci_part(doi)).collect();
        let mut random = Random::new(self.seed, 0xf1a9);
        writeln!(out, "{HEADER}")?;
        let mut cited = cited.into_iter();
        for (citing, count) in self.n_references.iter().enumerate() {
            let date = self.date(citing);
            let creation = date.in_words();
            for target in cited.by_ref().take(*count as usize) {
                // A work that would cite itself cites the next one.
                let target = if target as usize == citing { (citing + 1) % n_works } else { target as usize };
                let span = date.minus(self.date(target));
                let mut flag = |one_in| if random.below(one_in) == 0 { "yes" } else { "no" };
                let (journal_sc, author_sc) = (flag(12), flag(10));
                writeln!(
                    out,
                    "{}-{},{},{},{creation},{span},{journal_sc},{author_sc}",
                    parts[citing], parts[target], dois[citing], dois[target]
                )?;
            }
        }
        Ok(())
    }

    fn date(&self, work: usize) -> Date {
        let bits = hash(self.seed ^ 0xda7e, work as u64);
        let year = 1960 + (bits % 64) as i64;
        let month = (!bits.is_multiple_of(3)).then_some((bits >> 8) as i64 % 12 + 1);
        Date { year, month }
    }
}

fn mixed(bits: u64) -> u64 {
    hash(bits, 1)
}

/// Publication date, to the month at most.
#[derive(Debug, Clone, Copy)]
struct Date {
    year: i64,
    month: Option<i64>,
}

impl Date {
    fn in_words(self) -> String {
        self.month.map_or_else(|| format!("{}", self.year), |month| format!("{}-{month:02}", self.year))
    }

    /// Returns the time from `earlier` to this, as the dumps write it: with the parts that both dates have.
    fn minus(self, earlier: Self) -> String {
        let months_of = |date: Self| date.year * 12 + date.month.unwrap_or(1);
        let months = months_of(self) - months_of(earlier);
        let (n_years, n_months) = (months.abs() / 12, months.abs() % 12);
        match self.month.zip(earlier.month) {
            // The sign is that of the parts shown.
            None => format!("{}P{n_years}Y", if months < 0 && n_years > 0 { "-" } else { "" }),
            Some(_) => format!("{}P{n_years}Y{n_months}M", if months < 0 { "-" } else { "" }),
        }
    }
}

/// The distribution of counts over works.
struct Degrees {
    /// Works with a count above 0.
    share: f64,
    median: f64,
    sigma: f64,
    max: f64,
}

impl Degrees {
    /// Draws a count for each work, in sum [`LibraryShape::n_citations`].
    fn draw(&self, seed: u64, shape: LibraryShape) -> Vec<u32> {
        let mut random = Random::new(seed, 0);
        let body = |random: &mut Random| {
            let is_some = random.unit() < self.share;
            let weight = self.median * (self.sigma * normal(random)).exp();
            if is_some { weight.min(self.max) } else { 0.0 }
        };
        let mut weights: Vec<f64> = (0..shape.n_works).map(|_| body(&mut random)).collect();
        let hubs: BTreeMap<u64, f64> = (0..N_HUBS.min(shape.n_works / 1000))
            .map(|rank| (random.below(shape.n_works), self.max * (rank as f64 + 1.0).powf(-HUB_DECAY)))
            .collect();
        let in_hubs: f64 = hubs.values().sum();
        let factor = (shape.n_citations as f64 - in_hubs).max(0.0) / weights.iter().sum::<f64>().max(1.0);
        weights.iter_mut().for_each(|weight| *weight *= factor);
        hubs.iter().for_each(|(work, count)| weights[*work as usize] = *count);
        whole(&weights, shape.n_citations, &mut random)
    }
}

/// Returns integers near the weights that add up to `total`.
fn whole(weights: &[f64], total: u64, random: &mut Random) -> Vec<u32> {
    let mut counts: Vec<u32> = weights.iter().map(|weight| (weight + random.unit()) as u32).collect();
    let mut sum: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    while sum != total && !counts.is_empty() {
        let count = &mut counts[random.below(weights.len() as u64) as usize];
        if sum < total && *count > 0 {
            *count += 1;
            sum += 1;
        } else if total < sum && *count > 1 {
            *count -= 1;
            sum -= 1;
        }
    }
    counts
}

/// Draws from the standard normal distribution (Box and Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

fn shuffle(list: &mut [u32], random: &mut Random) {
    for last in (1..list.len()).rev() {
        list.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashMap};

    const SMALL: LibraryShape = LibraryShape { n_ids: 5_000, n_works: 5_000, n_citations: 60_000 };

    #[test]
    fn the_graph_has_the_counts_that_were_drawn() {
        let library = Library::new(1, SMALL);
        let mut csv = Vec::new();
        library.write_citations(&mut csv).unwrap();
        let text = String::from_utf8(csv).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(HEADER));
        let mut n_lines = 0;
        let mut degrees: HashMap<&str, u64> = HashMap::new();
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), 7, "{line}");
            assert_ne!(fields[1], fields[2], "{line}");
            *degrees.entry(fields[1]).or_default() += 1;
            *degrees.entry(fields[2]).or_default() += 1;
            n_lines += 1;
        }
        assert_eq!(n_lines, SMALL.n_citations);
        let dearest = library.dearest(20);
        let degree = |id: u64| degrees.get(library.doi_of_id(id).as_str()).copied().unwrap_or(0);
        assert!(degree(dearest[0]) >= 500, "the dearest has {}", degree(dearest[0]));
        // A redirected self-citation moves a count by one.
        assert!(dearest.iter().all(|id| degree(*id).abs_diff(library.n_neighbours(*id)) <= 3));
        assert_eq!(degree(library.n_held()), 0);
    }

    #[test]
    fn ids_are_unique_and_documents_are_theirs() {
        let library = Library::new(1, SMALL);
        let ids: BTreeSet<String> = (0..SMALL.n_ids).map(|n| library.local_id(n)).collect();
        assert_eq!(ids.len() as u64, SMALL.n_ids);
        let document: serde_json::Value = serde_json::from_str(&library.document(7)).unwrap();
        assert_eq!(document["id"], library.local_id(7));
        assert_eq!(document["doi_str_mv"][0], library.doi_of_id(7));
        let lens: Vec<usize> = (0..1000).map(|n| library.document(n).len()).collect();
        let mean = lens.iter().sum::<usize>() / lens.len();
        assert!((350..600).contains(&mean), "{mean}");
        assert!(library.id_row(3).ends_with(&library.doi_of_id(3).to_uppercase()));
    }

    #[test]
    fn times_have_the_parts_that_both_dates_have() {
        let date = |year, month| Date { year, month };
        assert_eq!(date(2020, Some(1)).minus(date(2020, Some(5))), "-P0Y4M");
        assert_eq!(date(2013, None).minus(date(2020, Some(2))), "-P7Y");
        assert_eq!(date(2020, None).minus(date(2013, Some(8))), "P6Y");
        assert_eq!(date(2020, None).minus(date(2020, Some(8))), "P0Y");
        assert_eq!(date(2016, Some(3)).minus(date(2013, Some(8))), "P2Y7M");
    }
}
