//! Authorities (section 7.2 of the contract): applies the rules, and sets what they cannot express: source file and
//! natural id.

use pinakes_marc::Record;
use serde_json::{Map, Value, json};

use super::fields::AUTHORITY;
use super::reference::Reference;
use super::rules::Rules;

/// Maps a record to the properties of an authority, without its id.
///
/// `source_files` are (id, codes). Without a 001 and a suitable 010 there is no `naturalId`.
pub(crate) fn authority(
    rules: &Rules,
    record: &Record,
    reference: &Reference,
    source_files: &[(String, Vec<String>)],
) -> Map<String, Value> {
    let mapped = super::map(rules, record, reference, &AUTHORITY);
    let mut authority = Map::new();
    authority.insert("source".to_owned(), "MARC".into());
    let by_lccn = record.subfield("010", 'a').and_then(|it| source_file(it, source_files));
    let control = record.control("001");
    let by_control = || control.and_then(|it| source_file(it, source_files));
    match by_lccn.or_else(by_control) {
        Some((file, natural)) => {
            authority.insert("sourceFileId".to_owned(), file.into());
            authority.insert("naturalId".to_owned(), natural.into());
        }
        None => {
            let natural = control.map(sanitised).filter(|it| !it.is_empty());
            authority.extend(natural.map(|it| ("naturalId".to_owned(), it.into())));
        }
    }
    authority.extend(mapped.into_iter().filter(|(name, _)| name != "id"));
    authority
}

/// Codes in `$w` of a 5xx field, and the property for such headings in the extended mode.
const RELATIONS: [(char, &str); 4] = [
    ('g', "saftBroaderTerm"),
    ('h', "saftNarrowerTerm"),
    ('a', "saftEarlierHeading"),
    ('b', "saftLaterHeading"),
];

/// Adds broader and narrower terms, earlier and later headings (the extended mode).
pub(crate) fn add_related(
    rules: &Rules,
    record: &Record,
    reference: &Reference,
    authority: &mut Map<String, Value>,
) {
    for field in &record.fields {
        let Some(data) = field.as_data().filter(|it| it.tag.as_str().starts_with('5')) else { continue };
        let codes: String = data.values('w').collect();
        let names: Vec<&str> =
            RELATIONS.iter().filter(|(code, _)| codes.contains(*code)).map(|(_, name)| *name).collect();
        if names.is_empty() {
            continue;
        }
        let alone = Record { leader: record.leader, fields: vec![field.clone()] };
        for (target, headings) in super::map(rules, &alone, reference, &AUTHORITY) {
            let Some(kind) = target.strip_prefix("saft").filter(|it| it.is_char_boundary(1)) else {
                continue;
            };
            let kind = format!("{}{}", kind[..1].to_ascii_lowercase(), &kind[1..]);
            for heading in headings.as_array().into_iter().flatten() {
                let related = json!({"headingRef": heading, "headingType": kind});
                for name in &names {
                    let list = authority.entry(*name).or_insert_with(|| json!([]));
                    if let Value::Array(list) = list {
                        list.push(related.clone());
                    }
                }
            }
        }
    }
}

/// Returns the source file whose code is the leading letters, and the natural id.
fn source_file(text: &str, files: &[(String, Vec<String>)]) -> Option<(String, String)> {
    let natural = sanitised(text);
    let n_letters = natural.chars().take_while(char::is_ascii_alphabetic).count();
    let prefix = &natural[..n_letters];
    let is_it = |codes: &[String]| n_letters != 0 && codes.iter().any(|it| it == prefix);
    let (id, _) = files.iter().find(|(_, codes)| is_it(codes))?;
    Some((id.clone(), natural))
}

/// Keeps only ASCII letters and digits.
fn sanitised(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}
