//! The default rules applied to real records: `tests/data/mapping/<case>.mrk` holds records in mnemonic text,
//! `<case>.out` the results. `BLESS=1` rewrites the answers: read the diff before the commit.

use std::fs;
use std::path::Path;

use pinakes_marc::{Encoding, Format, Record, RecordKind, parse, records};
use serde_json::{Value, json};

use super::{Reference, RuleSet, Rules, TABLES, authority, holdings, instance};

/// Builds a reference in which every name exists; the id contains the table and the name.
fn reference() -> Reference {
    let mut reference = Reference::default();
    let entries: [(&str, &[(&str, &str)]); 14] = [
        (
            "identifierTypes",
            &[
                ("ISBN", ""),
                ("Invalid ISBN", ""),
                ("ISSN", ""),
                ("LCCN", ""),
                ("Canceled LCCN", ""),
                ("OCLC", ""),
                ("System control number", ""),
                ("Control number", ""),
                ("Other standard identifier", ""),
                ("UPC", ""),
            ],
        ),
        ("contributorTypes", &[("Author", "aut"), ("Editor", "edt")]),
        ("contributorNameTypes", &[("Personal name", ""), ("Corporate name", ""), ("Meeting name", "")]),
        ("instanceTypes", &[("text", "txt"), ("unspecified", "zzz")]),
        ("instanceFormats", &[("unmediated -- volume", "nc")]),
        ("alternativeTitleTypes", &[("Uniform title", ""), ("Variant title", "")]),
        ("instanceNoteTypes", &[("General note", ""), ("Summary", ""), ("Action note", "")]),
        ("classificationTypes", &[("LC", ""), ("Dewey", "")]),
        ("subjectTypes", &[("Topical term", ""), ("Personal name", "")]),
        ("subjectSources", &[("Library of Congress Subject Headings", "lcsh"), ("Source not specified", "")]),
        ("issuanceModes", &[("single unit", ""), ("serial", "")]),
        ("instanceDateTypes", &[("Single", "s"), ("No attempt to code", "|")]),
        ("electronicAccessRelationships", &[("Resource", ""), ("No information provided", "")]),
        ("locations", &[("Main", "KU/CC/DI/M")]),
    ];
    for (table, list) in entries {
        assert!(TABLES.contains(&table), "{table} is no table");
        for (name, code) in list {
            reference.add(table, json!({"id": format!("{table}:{name}"), "name": name, "code": code}));
        }
    }
    for (table, name) in
        [("holdingsTypes", "Monograph"), ("callNumberTypes", "Library of Congress classification")]
    {
        reference.add(table, json!({"id": format!("{table}:{name}"), "name": name}));
    }
    reference
}

fn mapped(record: &Record) -> Value {
    let reference = reference();
    let rules = |set: RuleSet| {
        Rules::parse(set.default_text()).unwrap_or_else(|error| panic!("{}: {error}", set.name()))
    };
    let files = [
        ("lcnaf".to_owned(), vec!["n".to_owned(), "nr".to_owned()]),
        ("lcsh".to_owned(), vec!["sh".to_owned()]),
    ];
    match record.leader.kind() {
        RecordKind::Authority => authority(&rules(RuleSet::Authority), record, &reference, &files).into(),
        RecordKind::Holdings => match holdings(&rules(RuleSet::Holdings), record, &reference) {
            Ok(map) => map.into(),
            Err(error) => error.to_string().into(),
        },
        _ => instance(&rules(RuleSet::Bib), record, &reference).into(),
    }
}

fn check(case: &Path) {
    let text = fs::read(case).unwrap_or_default();
    let mut out = String::new();
    for raw in records(Format::Mnemonic, &text) {
        let parsed = parse(Format::Mnemonic, Encoding::Leader, raw);
        assert_eq!(parsed.problems, [], "{}", case.display());
        let value = parsed.record.map(|it| mapped(&it)).unwrap_or_default();
        out.push_str(&format!("{value:#}\n"));
    }
    let expected = case.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        return fs::write(expected, out).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(fs::read_to_string(expected).unwrap_or_default(), out, "{}", case.display());
}

#[test]
fn default_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mapping");
    let mut n_cases = 0;
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}")).flatten() {
        if entry.path().extension().is_some_and(|it| it == "mrk") {
            check(&entry.path());
            n_cases += 1;
        }
    }
    assert_eq!(n_cases, 3);
}

#[test]
fn documents_that_are_no_rules_say_why() {
    for (text, reason) in [
        ("[", "not JSON"),
        ("[]", "expected an object of rules by field tag"),
        (r#"{"12": []}"#, "no field tag"),
        (r#"{"245": {}}"#, "field 245: expected a list"),
        (r#"{"245": [{}]}"#, "field 245: a rule has no \"target\""),
        (
            r#"{"245": [{"target": "title", "rules": [{"conditions": [{"type": "shout"}]}]}]}"#,
            "no function named \"shout\"",
        ),
    ] {
        let error = Rules::parse(text).err().unwrap_or_default();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
