//! The order of results by relevance: which fields contain the words (weights in section 7 of the contract).

use pinakes_store::{Expr, Path, Value, Weighted, Word};

/// Maximum number of words that are ranked by; further ones only have to be found.
const WORDS: usize = 20;
/// Weights of the fields of datasets and files.
const FIELDS: [(&str, u32); 5] = [
    ("authorName", 180),
    ("subject", 120),
    ("keywordValue", 110),
    ("dsDescriptionValue", 90),
    ("fileDescription", 90),
];
/// What a collection adds for each word, and what it adds in all if it is named so.
const COLLECTION: u32 = 180;
const NAMED_COLLECTION: u32 = 400;
const NAMED_DATASET: u32 = 130;
const NAMED_FILE: u32 = 30;

/// Returns what words add to the ranks of documents.
pub(super) fn weighted(words: &[String]) -> Vec<Weighted> {
    words.iter().take(WORDS).flat_map(|it| of_word(it)).collect()
}

/// Returns the score of a result: each word counts, wherever it stands.
pub(super) fn score(rank: u64, words: &[String]) -> f64 {
    (rank + words.len() as u64) as f64
}

fn of_word(word: &str) -> Vec<Weighted> {
    let is_type = |name: &str| Expr::Is("type".into(), name.into());
    let named = contains(&"name".into(), word);
    let is_alias = Expr::Is("identifier".into(), Value::Folded(word.to_owned()));
    let is_collection_named = is_type("dataverses").and(Expr::Or(vec![named.clone(), is_alias]));
    let of_types = [
        (is_type("dataverses"), COLLECTION),
        (is_collection_named, NAMED_COLLECTION - COLLECTION),
        (is_type("datasets").and(named.clone()), NAMED_DATASET),
        (is_type("files").and(named), NAMED_FILE),
    ];
    let of_fields = FIELDS.map(|(field, weight)| (contains(&Path::steps(["fields", field]), word), weight));
    of_types.into_iter().chain(of_fields).map(|(expr, weight)| Weighted { expr, weight }).collect()
}

/// Returns the condition that a path contains each part of a word, in the singular or plural; with `*` and `?` in it, a
/// word like it.
fn contains(path: &Path, word: &str) -> Expr {
    let parts = word.split(|it: char| !it.is_alphanumeric() && !matches!(it, '*' | '?'));
    let conditions: Vec<Expr> = parts.filter(|it| !it.is_empty()).map(|it| is_there(path, it)).collect();
    if conditions.is_empty() { Expr::Nothing } else { Expr::And(conditions) }
}

fn is_there(path: &Path, part: &str) -> Expr {
    let mut forms = vec![part.to_owned()];
    if part.chars().all(char::is_alphanumeric) {
        forms.push(format!("{part}s"));
        forms.extend(part.strip_suffix(['s', 'S']).map(str::to_owned));
    }
    let words = forms.iter().filter_map(|it| Word::wild(it.trim_start_matches(['*', '?'])));
    Expr::Or(words.map(|it| Expr::Word(path.clone(), it)).collect())
}
