//! Instances of FOLIO's inventory as JSON: many distinct people and subjects, few distinct words.

use serde_json::{Value, json};

use super::random::{Random, hash};
use super::words::{FAMILY_NAMES, GIVEN_NAMES, WORDS, sentence};

/// Reference records that every FOLIO has: the type "text", personal names, ISBNs, FOLIO's holdings, "can circulate".
const TEXT: &str = "6312d172-f0cf-40f6-b27d-9fa8feaf332f";
const PERSONAL_NAME: &str = "2b94c631-fca9-4892-a730-03ee529ffe2a";
const ISBN: &str = "8261054f-be78-422d-bd51-4ed9f33c3422";
const HOLDINGS_SOURCE: &str = "f32d531e-df79-46b3-8932-cdd35f7a2264";
const LOAN_TYPE: &str = "2b94c631-fca9-4892-a730-03ee529ffe27";
/// Books, texts, DVDs, sound recordings.
const MATERIAL_TYPES: [&str; 4] = [
    "1a54b431-2e4f-452d-9cae-9cee66c9a892",
    "d9acad2f-2aac-4b48-9097-e6ab85906b25",
    "5ee11d91-f7e8-481d-b079-65d708582ccc",
    "dd0bf600-dbd9-44ab-9ff2-e2a61a6539f1",
];
/// FOLIO's sample locations, the first with far more holdings than the last.
pub const LOCATIONS: [&str; 5] = [
    "fcd64ce1-6995-48f0-840e-89ffa2288371",
    "f34d27c6-a8eb-461b-acd6-5dea81771e70",
    "53cf956f-c1df-410b-8bea-27f712cca7c0",
    "184aae84-a5bf-4c6a-85ba-4a7c73026cd5",
    "b241764c-1466-4e1d-a028-1a3684a5da87",
];
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

/// Generates the holdings record of [`instance`] `n`, at one of FOLIO's sample locations, the first of which have most.
pub fn holdings(tag: &str, seed: u64, n: u64) -> Value {
    let mut random = Random::new(seed ^ 0xb0, n);
    json!({
        "id": uuid(&format!("{tag}-h"), seed, n),
        "hrid": format!("{tag}-h{n}"),
        "instanceId": uuid(tag, seed, n),
        "permanentLocationId": LOCATIONS[random.skewed_below(LOCATIONS.len() as u64) as usize],
        "sourceId": HOLDINGS_SOURCE,
    })
}

/// Generates the item of [`holdings`] `n`; one in ten is lent.
pub fn item(tag: &str, seed: u64, n: u64) -> Value {
    let mut random = Random::new(seed ^ 0x17e, n);
    json!({
        "id": uuid(&format!("{tag}-i"), seed, n),
        "hrid": format!("{tag}-i{n}"),
        "barcode": format!("{tag}-{n}"),
        "holdingsRecordId": uuid(&format!("{tag}-h"), seed, n),
        "materialTypeId": MATERIAL_TYPES[random.skewed_below(MATERIAL_TYPES.len() as u64) as usize],
        "permanentLoanTypeId": LOAN_TYPE,
        "status": {"name": if random.below(10) == 0 { "Checked out" } else { "Available" }},
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
