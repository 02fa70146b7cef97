//! The fuzz targets of this crate on mutated inputs with a fixed seed; `just fuzz` runs them for longer.

#[path = "../../fuzz/fuzz_targets/circulation_rules.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod circulation_rules;
#[path = "../../fuzz/fuzz_targets/cql.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod cql;
#[path = "../../fuzz/fuzz_targets/mapping_rules.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod mapping_rules;
#[path = "../../fuzz/fuzz_targets/marc_expressions.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod marc_expressions;

#[test]
fn circulation_rules_survives() {
    let policy = "l 4 r 5 n 6 o 7 i 8";
    let rules = format!(
        "priority: t, s, c, b, a, m, g\nfallback-policy: {policy}\nm book: {policy}\ng all + t !x: {policy}\n"
    );
    circulation_rules::survives([
        rules.as_str(),
        "priority: number-of-criteria, last-line\nfallback-policy: l 1 r 2 n 3 o 4 i 5\n# a comment\n    m a b\n",
    ]);
}

#[test]
fn cql_survives() {
    let body = r#"{"id":"1","title":"A book of dogs","languages":["eng"],"identifiers":[{"value":"9783161484100","identifierTypeId":"x"}]}"#;
    cql::survives([
        ("title=\"a book*\" and (languages==eng or not source<>marc) sortby title/sort.descending", body),
        ("identifiers =/@value/@identifierTypeId=x \"978*\" prox/distance<3 b", body),
        ("cql.allRecords=1 sortBy metadata.createdDate", body),
    ]);
}

#[test]
fn mapping_rules_survives() {
    let rules = r#"{"245":[{"target":"title","description":"t","subfield":["a","b"],"rules":[{"conditions":[{"type":"trim_period, trim"}]}]}],
        "020":[{"entity":[{"target":"identifiers.value","subfield":["a"],"rules":[]},{"target":"identifiers.identifierTypeId",
        "rules":[{"conditions":[{"type":"set_identifier_type_id_by_name","parameter":{"name":"ISBN"}}]}]}]}]}"#;
    let record = "00072nam a2200049 a 4500001000200000245001000002\u{1e}1\u{1e}10\u{1f}aTitle.\u{1e}\u{1d}";
    mapping_rules::survives([(rules, record)]);
}

#[test]
fn marc_expressions_survives() {
    let record = r#"{"leader":"00714cam a2200205 a 4500","fields":[{"001":"n1"},{"005":"20141107001016.0"},{"035":{"ind1":" ",
        "ind2":"0","subfields":[{"a":"(OCoLC)1"},{"é":"x"}]}}]}"#;
    marc_expressions::survives([
        ("p_05 = 'c' and (p_06 not= 'a' or p_23 is 'absent')", record),
        ("035.a ^= '(OCoLC)' and 005.03_02='41' or 005.date in '20200101-20200131'", record),
        ("(001.value = 'n1') and 999.ind1 = 'f' or 245.\u{e9} from 'a'", record),
    ]);
}
