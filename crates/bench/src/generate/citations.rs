//! A citation graph as the OpenCitations index is distributed: one line per citation, with a few works cited
//! very often and most rarely, as in the real index (in-degree: median 7, mean 22, maximum 200,000).

use super::random::Random;

/// Header of the CSV.
pub const HEADER: &str = "oci,citing,cited,creation,timespan,journal_sc,author_sc";

/// Returns the DOI of the `n`-th work.
pub fn doi(n: u64) -> String {
    format!("10.{}/bench.{}-{n}", 1000 + n % 97, 1990 + n % 33)
}

/// Returns the `n`-th line (without line end) of a graph over `n_works` works (at least two). The citing works
/// are uniform, the cited ones skewed to the first numbers; no work cites itself.
pub fn citation(seed: u64, n: u64, n_works: u64) -> String {
    let mut random = Random::new(seed, n);
    let n_works = n_works.max(2);
    let citing = random.below(n_works);
    let cited = match random.skewed_below(n_works) {
        same if same == citing => (citing + 1) % n_works,
        other => other,
    };
    let year = 1990 + random.below(33);
    let span = random.below(20);
    let (citing, cited) = (doi(citing), doi(cited));
    format!("{}-{},{citing},{cited},{year},P{span}Y,no,no", oci_part(&citing), oci_part(&cited))
}

/// One half of an Open Citation Identifier: the prefix for DOIs, then two digits per character after
/// `10.` by the OpenCitations look-up table (here the part for the characters that [`doi`] uses).
pub(super) fn oci_part(doi: &str) -> String {
    let code = |c: char| match c {
        '0'..='9' => c as u32 - '0' as u32,
        'a'..='z' => c as u32 - 'a' as u32 + 10,
        '/' => 36,
        '.' => 37,
        _ => 63, // '-'
    };
    let name = doi.strip_prefix("10.").unwrap_or(doi);
    name.chars().fold("020".to_owned(), |oci, c| oci + &format!("{:02}", code(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_follow_the_table() {
        assert_eq!(oci_part("10.1128/cmr.00102-14"), "0200101020836122227370000010002630104");
    }

    #[test]
    fn few_works_are_cited_by_many() {
        let n_works = 10_000;
        let mut cited = vec![0_u32; 10];
        for n in 0..20_000 {
            let line = citation(1, n, n_works);
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), 7, "{line}");
            assert_ne!(fields[1], fields[2], "{line}");
            if let Some(index) = (0..10).find(|index| doi(*index) == fields[2]) {
                cited[index as usize] += 1;
            }
        }
        assert!(cited[0] > 10 * 2, "the first work is cited {} times", cited[0]);
        assert!(cited[0] > cited[9], "{cited:?}");
    }
}
