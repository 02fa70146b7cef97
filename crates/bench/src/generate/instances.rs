//! Instances of FOLIO's inventory as JSON: many distinct people and subjects, few distinct words.

use serde_json::{Value, json};

use super::random::{Random, hash};
use super::words::{FAMILY_NAMES, GIVEN_NAMES, WORDS, sentence};

/// Reference records that every FOLIO has: the type "text", personal names, ISBNs.
const TEXT: &str = "6312d172-f0cf-40f6-b27d-9fa8feaf332f";
const PERSONAL_NAME: &str = "2b94c631-fca9-4892-a730-03ee529ffe2a";
const ISBN: &str = "8261054f-be78-422d-bd51-4ed9f33c3422";
/// Languages, the first far more frequent than the last.
const LANGUAGES: [&str; 12] =
    ["eng", "ger", "fre", "spa", "ita", "chi", "rus", "jpn", "por", "pol", "swe", "lat"];

/// Returns the `n`-th instance of `seed`; its human-readable id is `<tag>-<n>`.
pub fn instance(tag: &str, seed: u64, n: u64) -> Value {
    let mut random = Random::new(seed, n);
    let contributors: Vec<Value> = (0..1 + random.below(3))
        .map(|place| {
            json!({"name": person(&mut random), "contributorNameTypeId": PERSONAL_NAME, "primary": place == 0})
        })
        .collect();
    let subjects: Vec<Value> =
        (0..1 + random.below(4)).map(|_| json!({"value": subject(&mut random)})).collect();
    let year = 1900 + random.below(125);
    json!({
        "id": uuid(tag, seed, n),
        "hrid": format!("{tag}-{n}"),
        "source": if random.below(10) == 0 { "FOLIO" } else { "MARC" },
        "title": format!("{} : {}", sentence(&mut random, 4), sentence(&mut random, 6)),
        "instanceTypeId": TEXT,
        "contributors": contributors,
        "subjects": subjects,
        "identifiers": [{"value": format!("978{n:010}"), "identifierTypeId": ISBN}],
        "languages": [LANGUAGES[random.skewed_below(LANGUAGES.len() as u64) as usize]],
        "publication": [{"publisher": "Example Press", "place": "Boston", "dateOfPublication": year.to_string()}],
        "notes": [],
    })
}

/// Generates a person with dates of life: some ten million different ones.
pub fn person(random: &mut Random) -> String {
    let birth = 1700 + random.below(280);
    let death = birth + 30 + random.below(60);
    format!("{}, {}, {birth}-{death}", random.pick(&FAMILY_NAMES), random.pick(&GIVEN_NAMES))
}

/// Generates a subject heading of three words: 262,144 different ones.
pub fn subject(random: &mut Random) -> String {
    format!("{}--{}", sentence(random, 2), random.pick(&WORDS))
}

fn uuid(tag: &str, seed: u64, n: u64) -> String {
    let of_tag = tag.bytes().fold(seed, |sum, byte| hash(sum, u64::from(byte)));
    let (high, low) = (hash(of_tag, n), hash(of_tag ^ 0x1d, n));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn people_are_many_and_ids_are_their_own() {
        let list: Vec<Value> = (0..2_000).map(|n| instance("bench-a", 1, n)).collect();
        let ids: BTreeSet<&str> = list.iter().filter_map(|it| it["id"].as_str()).collect();
        assert_eq!(ids.len(), list.len());
        assert!(ids.iter().all(|it| it.len() == 36), "{:?}", ids.first());
        let people: BTreeSet<&str> =
            list.iter().filter_map(|it| it["contributors"][0]["name"].as_str()).collect();
        assert!(1_900 < people.len(), "{}", people.len());
        assert_eq!(instance("bench-a", 1, 7), list[7]);
        assert_ne!(instance("bench-b", 1, 7)["id"], list[7]["id"]);
    }
}
