//! The content of a record's page, and its citation: text, schema.org, and citation meta tags.

use serde::Serialize;
use serde_json::{Value, json};

/// A text, and optionally the address that it links to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Link {
    /// The text.
    pub(crate) text: String,
    /// The address; `None` for plain text.
    pub(crate) href: Option<String>,
}

impl Link {
    /// Creates plain text.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), href: None }
    }

    /// Creates a link. An address that is neither a path nor a web address is dropped, as many people can write
    /// records.
    pub(crate) fn to(text: impl Into<String>, href: impl Into<String>) -> Self {
        let href = href.into();
        let is_safe = href.starts_with('/') || href.starts_with("https://") || href.starts_with("http://");
        Self { text: text.into(), href: is_safe.then_some(href) }
    }
}

/// A property of a record: key of its name, and the values.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Fact {
    pub(crate) key: &'static str,
    pub(crate) values: Vec<Link>,
}

/// A metadata block of a deposit on its page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ShownBlock {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) fields: Vec<ShownField>,
}

/// A field of a block: the values are lines of parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ShownField {
    pub(crate) title: String,
    pub(crate) lines: Vec<Vec<ShownPart>>,
}

/// A part of a compound value, or a whole value, whose title is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ShownPart {
    pub(crate) title: String,
    pub(crate) value: Link,
}

/// An action that the visitor may take on the record: key of its name, and its address.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Action {
    pub(crate) key: &'static str,
    pub(crate) href: String,
}

/// A table on a record's page.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Table {
    /// Key of its caption.
    pub(crate) key: &'static str,
    /// Keys of its columns.
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Link>>,
    /// The total number of rows if not all are shown.
    pub(crate) n_all: Option<u64>,
}

/// The content of a record's page.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Record {
    /// Key of its type.
    pub(crate) kind_key: &'static str,
    pub(crate) title: String,
    pub(crate) lead: String,
    pub(crate) facts: Vec<Fact>,
    /// Metadata blocks of a deposit.
    pub(crate) blocks: Vec<ShownBlock>,
    pub(crate) tables: Vec<Table>,
    pub(crate) exports: Vec<Link>,
    pub(crate) actions: Vec<Action>,
    /// A picture as a `data:` URL.
    pub(crate) image: Option<String>,
    /// A drawing, as escaped SVG.
    pub(crate) drawing: Option<String>,
    pub(crate) citation: Option<String>,
    /// schema.org's description, safe for use in a script element.
    pub(crate) json_ld: Option<String>,
    /// Names and contents of meta tags.
    pub(crate) metas: Vec<(&'static str, String)>,
}

impl Record {
    /// Adds a fact, unless there are no values.
    pub(crate) fn fact(&mut self, key: &'static str, values: impl IntoIterator<Item = Link>) {
        let values: Vec<Link> = values.into_iter().filter(|it| !it.text.trim().is_empty()).collect();
        if !values.is_empty() {
            self.facts.push(Fact { key, values });
        }
    }

    /// Adds a fact with plain texts.
    pub(crate) fn plain(&mut self, key: &'static str, values: impl IntoIterator<Item = String>) {
        self.fact(key, values.into_iter().map(Link::plain));
    }

    /// Adds a table, unless it is empty.
    pub(crate) fn table(
        &mut self,
        key: &'static str,
        heads: &[&'static str],
        rows: Vec<Vec<Link>>,
        n_all: Option<u64>,
    ) {
        if !rows.is_empty() {
            let n_all = n_all.filter(|it| *it > rows.len() as u64);
            self.tables.push(Table { key, heads: heads.to_vec(), rows, n_all });
        }
    }

    /// Sets the citation of the record.
    pub(crate) fn cited_as(&mut self, it: &Citable) {
        self.citation = Some(it.text());
        self.json_ld = Some(it.json_ld());
        self.metas = it.metas();
    }
}

/// The parts of a citation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Citable {
    pub(crate) title: String,
    pub(crate) creators: Vec<String>,
    /// `2026` or `2026-11-23`.
    pub(crate) date: String,
    pub(crate) publisher: String,
    /// Without `https://doi.org/`; empty if there is none.
    pub(crate) doi: String,
    /// Address of the page.
    pub(crate) url: String,
    pub(crate) description: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) license: String,
}

/// Maximum number of creators that a citation names; further ones are abbreviated.
const CREATORS_MAX: usize = 10;

impl Citable {
    fn address(&self) -> String {
        if self.doi.is_empty() { self.url.clone() } else { format!("https://doi.org/{}", self.doi) }
    }

    /// Returns `Creators (year): Title. Publisher. Address`, as DataCite recommends.
    pub(crate) fn text(&self) -> String {
        let mut names = self.creators.iter().take(CREATORS_MAX).cloned().collect::<Vec<_>>().join("; ");
        if self.creators.len() > CREATORS_MAX {
            names.push_str(" et al.");
        }
        let year = self.date.get(..4).map(|it| format!(" ({it})")).unwrap_or_default();
        let head = format!("{names}{year}");
        let head = if head.trim().is_empty() { String::new() } else { format!("{}: ", head.trim()) };
        let parts = [self.title.as_str(), &self.publisher].map(|it| it.trim().trim_end_matches('.'));
        let middle: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        format!("{head}{}. {}", middle.join(". "), self.address())
    }

    /// Returns a `Dataset` of schema.org. Characters that could end a script are escaped.
    pub(crate) fn json_ld(&self) -> String {
        let creators: Vec<Value> =
            self.creators.iter().map(|it| json!({"@type": "Person", "name": it})).collect();
        let mut said = json!({
            "@context": "https://schema.org", "@type": "Dataset", "name": self.title, "url": self.url,
            "identifier": self.address(), "creator": creators,
        });
        let optional =
            [("description", &self.description), ("datePublished", &self.date), ("license", &self.license)];
        for (name, value) in optional {
            if !value.is_empty() {
                said[name] = json!(value);
            }
        }
        if !self.publisher.is_empty() {
            said["publisher"] = json!({"@type": "Organization", "name": self.publisher});
        }
        if !self.keywords.is_empty() {
            said["keywords"] = json!(self.keywords);
        }
        said.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    }

    /// Returns the meta tags for reference managers and search engines.
    pub(crate) fn metas(&self) -> Vec<(&'static str, String)> {
        let mut out = vec![("citation_title", self.title.clone())];
        out.extend(self.creators.iter().map(|it| ("citation_author", it.clone())));
        let optional = [
            ("citation_publication_date", &self.date),
            ("citation_publisher", &self.publisher),
            ("citation_doi", &self.doi),
            ("description", &self.description),
        ];
        out.extend(optional.into_iter().filter(|it| !it.1.is_empty()).map(|it| (it.0, it.1.clone())));
        out
    }
}

/// Returns a text or number at a path; empty if there is none.
pub(crate) fn text(value: &Value, path: &str) -> String {
    let found = path.split('/').try_fold(value, |it, name| it.get(name));
    found.map(shown).unwrap_or_default()
}

/// Returns the texts of a list, or a single text; for objects, their member `name`.
pub(crate) fn texts(value: &Value, path: &str, name: &str) -> Vec<String> {
    let found = path.split('/').try_fold(value, |it, part| it.get(part));
    let of = |it: &Value| if it.is_object() { text(it, name) } else { shown(it) };
    match found {
        Some(Value::Array(list)) => list.iter().map(of).filter(|it| !it.is_empty()).collect(),
        Some(one) => Some(of(one)).filter(|it| !it.is_empty()).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Returns the items of a list; empty if there is no list.
pub(crate) fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    let found = path.split('/').try_fold(value, |it, name| it.get(name));
    found.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => String::new(),
    }
}

/// Formats a number of bytes for people, in powers of 1,000.
pub(crate) fn bytes_shown(n_bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (n_bytes.max(0.0), 0);
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// Returns the DOI in an identifier such as `doi:10.1/x` or `https://doi.org/10.1/x`; empty if there is none.
pub(crate) fn doi_of(identifier: &str) -> String {
    let lower = identifier.to_ascii_lowercase();
    let prefixes =
        ["https://doi.org/", "http://doi.org/", "https://dx.doi.org/", "http://dx.doi.org/", "doi:"];
    let bare =
        prefixes.iter().find(|it| lower.starts_with(**it)).map_or(identifier, |it| &identifier[it.len()..]);
    let bare = bare.trim();
    let is_doi = bare.strip_prefix("10.").is_some_and(|it| {
        it.split_once('/').is_some_and(|(registrant, suffix)| {
            registrant.starts_with(|it: char| it.is_ascii_digit()) && !suffix.is_empty()
        })
    });
    if is_doi && !bare.contains(char::is_whitespace) { bare.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_written_with_what_there_is() {
        let mut it = Citable { title: "Silica.".into(), url: "http://a/b".into(), ..Citable::default() };
        assert_eq!(it.text(), "Silica. http://a/b");
        it.creators = vec!["Sample, Ada".into(), "Sample, Bo".into()];
        (it.date, it.publisher, it.doi) = ("2026-11-23".into(), "Demo".into(), "10.1/x".into());
        assert_eq!(it.text(), "Sample, Ada; Sample, Bo (2026): Silica. Demo. https://doi.org/10.1/x");
    }

    #[test]
    fn a_title_cannot_end_the_script_it_stands_in() {
        let it = Citable { title: "</script><script>alert(1)</script>&".into(), ..Citable::default() };
        let said = it.json_ld();
        assert!(!said.contains(['<', '>', '&']), "{said}");
        let read: serde_json::Result<Value> = serde_json::from_str(&said);
        assert!(read.is_ok_and(|read| read["name"] == it.title.as_str()));
    }

    #[test]
    fn addresses_of_records_are_paths_or_of_the_web() {
        for (href, is_kept) in [
            ("/site", true),
            ("https://a", true),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
        ] {
            assert_eq!(Link::to("x", href).href.is_some(), is_kept, "{href}");
        }
    }

    #[test]
    fn dois_are_found_in_identifiers() {
        for (identifier, expected) in [
            ("doi:10.5072/FK2/A", "10.5072/FK2/A"),
            ("https://doi.org/10.1/x", "10.1/x"),
            ("10.1/x", "10.1/x"),
            ("20.500.demo/saxs", ""),
            ("10.1", ""),
            ("10./x y", ""),
        ] {
            assert_eq!(doi_of(identifier), expected, "{identifier}");
        }
    }

    #[test]
    fn sizes_are_said_in_powers_of_a_thousand() {
        for (n_bytes, expected) in [(0.0, "0 B"), (999.0, "999 B"), (54_003.0, "54.0 kB"), (6e11, "600.0 GB")]
        {
            assert_eq!(bytes_shown(n_bytes), expected);
        }
    }
}
