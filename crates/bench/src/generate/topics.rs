//! Topic trees in the two files of a DMOZ dump: categories with their narrower, related and symbolic
//! links (`structure.rdf.u8`), and the pages filed under them (`content.rdf.u8`).

use std::fmt::Write;

use super::random::Random;
use super::words::{WORDS, sentence};

/// Children of a category on average (the dump of 2013 has 780,000 categories in 16 top branches).
const FAN_OUT: u64 = 12;

/// First and last lines of both files.
pub const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<RDF xmlns:r=\"http://www.w3.org/TR/RDF/\" \
                        xmlns:d=\"http://purl.org/dc/elements/1.0/\" xmlns=\"http://dmoz.org/rdf/\">\n";
/// Last line of both files.
pub const FOOT: &str = "</RDF>\n";

/// Returns the id of the `n`-th category: a path in a tree where the parent of `n` is `(n - 1) / 12`.
pub fn topic_id(n: u64) -> String {
    let mut segments = Vec::new();
    let mut at = n;
    while at > 0 {
        segments.push(format!("{}_{at}", capitalised(WORDS[(at % WORDS.len() as u64) as usize])));
        at = (at - 1) / FAN_OUT;
    }
    segments.push("Top".to_owned());
    segments.reverse();
    segments.join("/")
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Returns the `n`-th category of a tree of `n_topics`, as an element of the structure file.
pub fn structure(seed: u64, n: u64, n_topics: u64) -> String {
    let mut random = Random::new(seed, n);
    let id = topic_id(n);
    let title = id.rsplit('/').next().unwrap_or_default();
    let mut text = format!(
        "  <Topic r:id=\"{id}\">\n    <catid>{}</catid>\n    <d:Title>{title}</d:Title>\n    \
         <lastUpdate>2013-01-{:02} 06:05:15</lastUpdate>\n    <d:Description>&lt;p&gt;{}&lt;/p&gt;</d:Description>\n",
        n + 1,
        1 + random.below(28),
        sentence(&mut random, 30),
    );
    let mut link = |element: &str, target: &str| {
        writeln!(text, "    <{element} r:resource=\"{target}\"></{element}>")
            .expect("writing to a string cannot fail");
    };
    for child in (n * FAN_OUT + 1)..=(n * FAN_OUT + FAN_OUT) {
        if child < n_topics {
            link(if child % 5 == 0 { "narrow2" } else { "narrow" }, &topic_id(child));
        }
    }
    for _ in 0..random.below(4) {
        link("related", &topic_id(random.skewed_below(n_topics)));
    }
    for _ in 0..random.below(2) {
        let target = topic_id(random.below(n_topics));
        link("symbolic", &format!("{}:{target}", target.rsplit('/').next().unwrap_or_default()));
    }
    text.push_str("  </Topic>\n");
    text
}

/// Returns the pages of the `n`-th category, about four, as elements of the content file.
pub fn content(seed: u64, n: u64) -> String {
    let mut random = Random::new(seed ^ 1, n);
    let id = topic_id(n);
    let n_links = random.below(9);
    let urls: Vec<String> = (0..n_links).map(|k| format!("http://www.example.org/{n}/{k}/")).collect();
    let mut text = format!("  <Topic r:id=\"{id}\">\n    <catid>{}</catid>\n", n + 1);
    for url in &urls {
        text += &format!("    <link r:resource=\"{url}\"></link>\n");
    }
    text.push_str("  </Topic>\n");
    for url in &urls {
        text += &format!(
            "  <ExternalPage about=\"{url}\">\n    <d:Title>{}</d:Title>\n    \
             <d:Description>{}.</d:Description>\n    <topic>{id}</topic>\n  </ExternalPage>\n",
            sentence(&mut random, 3),
            sentence(&mut random, 12),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_but_the_root_is_narrower_than_its_parent() {
        let n_topics = 500;
        let all: String = (0..n_topics).map(|n| structure(1, n, n_topics)).collect();
        for n in 1..n_topics {
            let id = topic_id(n);
            let parent = id.rsplit_once('/').unwrap().0;
            assert_eq!(parent, topic_id((n - 1) / FAN_OUT));
            assert!(all.contains(&format!("r:resource=\"{id}\"")), "{id}");
        }
    }

    #[test]
    fn pages_name_their_category() {
        let pages: String = (0..50).map(|n| content(1, n)).collect();
        let n_pages = pages.matches("<ExternalPage ").count();
        assert_eq!(n_pages, pages.matches("<topic>Top").count());
        assert!((100..300).contains(&n_pages), "{n_pages}");
    }
}
