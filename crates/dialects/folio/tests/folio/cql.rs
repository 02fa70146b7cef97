//! CQL: golden tests, and the store's conditions compared with a simple evaluation of the same tree.

use pinakes_folio::platform::cql::{Bounds, Clause, Names, Node, Relation, Term, meaning, parse};
use pinakes_store::{Column, Kind, Type, fold, matches};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::Failure;

const BOUNDS: Bounds = Bounds { length_bytes: 10_000, depth: 8, clauses: 50, words: 200 };

static KIND: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("name", Type::Folded),
        Column::one("ref", Type::Text),
        Column::one("n", Type::Integer),
        Column::one("active", Type::Boolean),
        Column::at("made", "metadata.createdDate", Type::Instant),
    ],
    ..Kind::named("cql_test")
};
static NAMES: Names = Names {
    fields: &[],
    elements: &[("identifiers", "value")],
    aliases: &[("made", "metadata.createdDate")],
    whole: &["barcode"],
    anywhere: &["name", "title"],
};

fn fits(query: &str, body: &Value) -> Result<bool, String> {
    let cql = parse(query, BOUNDS).map_err(|error| error.to_string())?;
    let expr = meaning(&cql.condition, &KIND, &NAMES, &mut |_| {
        Ok::<_, pinakes_folio::platform::cql::CqlError>(None)
    })
    .map_err(|error| error.to_string())?;
    Ok(matches(&expr, body))
}

fn body() -> Value {
    json!({
        "id": "3a40852d-49fd-4df2-a1f9-6e2641a6e91f", "name": "Élan vital", "ref": "fcd64ce1-6995-48f0-840e-89ffa2288371",
        "n": 7, "active": true, "title": "The Dogs, the Cats and 3 more", "barcode": "A-1 2", "empty": "", "price": 2.5,
        "status": {"name": "Checked out", "date": "2026-01-31T10:20:30.123+00:00"},
        "identifiers": [{"value": "978 0", "identifierTypeId": "t1"}, {"value": "X(1)", "identifierTypeId": "t2"}],
        "tags": ["urgent", "Süß"], "metadata": {"createdDate": "2026-01-31T10:20:30.123+00:00"},
    })
}

#[test]
fn queries_of_clients_mean_what_they_say() -> Result<(), Failure> {
    for (query, expected) in [
        ("", true),
        ("cql.allRecords=1", true),
        ("cql.allRecords=1 sortby name/sort.descending id", true),
        ("cql.allRecords=1 NOT tags=\"\"", false),
        ("NOT nothing=\"\"", true),
        ("id==3A40852D-49FD-4DF2-A1F9-6E2641A6E91F", true),
        ("id==NOT_FOUND", false),
        ("id>\"00000000-0000-0000-0000-000000000000\" and (cql.allRecords=1) sortBy id", true),
        ("name==\"elan VITAL\"", true),
        ("name==\"élan\"", false),
        ("name==\"ÉLAN*\"", true),
        ("name=elan", true),
        ("name=\"vital elan\"", true),
        ("name adj \"elan vital\"", true),
        ("name adj \"vital elan\"", false),
        ("name any \"nothing vital\"", true),
        ("name all \"nothing vital\"", false),
        ("name<>\"elan vital\"", false),
        ("nothing<>\"x\"", false),
        ("ref==fcd64ce1-6995-48f0-840e-89ffa2288371", true),
        ("ref=(\"x\" or \"fcd64ce1-6995-48f0-840e-89ffa2288371\")", true),
        ("n==7", true),
        ("n>6 and n<=7 and n<>8", true),
        ("n==seven", false),
        ("active==true", true),
        ("active=false", false),
        ("title=\"cats dogs\"", true),
        ("title=cat", false),
        ("title=ca*", true),
        ("title=c?ts", true),
        ("title==\"*cats*\"", true),
        ("title=3", true),
        ("barcode=\"A-1 2\"", true),
        ("barcode=A", false),
        ("empty==\"\"", true),
        ("empty=\"\"", true),
        ("nothing==\"\"", false),
        ("price>2", true),
        ("price==2.5", true),
        ("status.name<>Closed", true),
        ("status.name==(\"Available\" OR \"checked out\")", true),
        ("status.name==(\"Available\" OR name==\"elan vital\")", true),
        ("query=(n==7)", true),
        ("made>2026-01-31", true),
        ("metadata.createdDate<\"2026-01-31T10:20:31Z\"", true),
        ("status.date>=\"2026-01-31T11:20:30.123+01:00\"", true),
        ("identifiers=\"978\"", true),
        ("identifiers==\"978 0\"", true),
        ("identifiers =/@identifierTypeId=t1 \"978\"", true),
        ("identifiers =/@identifierTypeId=t2 \"978\"", false),
        ("identifiers =/@value/@identifierTypeId=t2 \"X\"", true),
        ("identifiers == \"X\\(1\\)\"", true),
        ("tags=suß", true),
        ("tags==urgent", true),
        ("elan", true),
        ("dogs and vital", true),
        ("name==elan* and not n==8", true),
        ("(n==7 or n==8) not name=vital", false),
    ] {
        assert_eq!(fits(query, &body())?, expected, "{query}");
    }
    Ok(())
}

#[test]
fn what_is_no_query_says_where() {
    for (query, expected) in [
        ("name==", "CQLParseException: expected a term, found the end at character 6"),
        ("(name==a", "CQLParseException: expected ), found the end at character 8"),
        ("name==\"a", "CQLParseException: a quote that is not closed at character 6"),
        ("name==a )", "CQLParseException: expected the end, AND, OR, NOT or sortBy, found ) at character 8"),
        ("name==a and", "CQLParseException: expected a condition, found the end at character 11"),
        ("==a", "CQLParseException: expected an index, a term or (, found a relation at character 0"),
        (
            "((((((((((a))))))))))",
            "CQLParseException: brackets are nested deeper than 8 levels at character 9",
        ),
        ("a prox b", "CQLParseException: PROX is not understood at character 2"),
        ("a sortby", "CQLParseException: expected a field behind sortBy at character 8"),
    ] {
        assert_eq!(fits(query, &body()), Err(expected.to_owned()), "{query}");
    }
    let long = vec!["a"; 60].join(" or ");
    assert!(fits(&long, &body()).is_err_and(|it| it.contains("more than 50 conditions")));
    assert!(fits(&"a".repeat(10_001), &body()).is_err_and(|it| it.contains("at most 10000 are read")));
    // Words are counted over all terms, because each becomes a regular expression.
    let words = |n: usize| format!("title any \"{}\"", "w ".repeat(n));
    assert_eq!(fits(&words(200), &body()), Ok(false));
    for query in [words(201), format!("{} or {}", words(100), words(101))] {
        assert!(fits(&query, &body()).is_err_and(|it| it.contains("more than 200 words")));
    }
}

/// Evaluates a tree over texts in a simple way, word by word.
fn plain(node: &Node, body: &Value) -> bool {
    match node {
        Node::And(a, b) => plain(a, body) && plain(b, body),
        Node::Or(a, b) => plain(a, body) || plain(b, body),
        Node::Not(a, b) => plain(a, body) && !plain(b, body),
        Node::Negation(it) => !plain(it, body),
        Node::Clause(clause) => plain_clause(clause, body),
    }
}

fn plain_clause(clause: &Clause, body: &Value) -> bool {
    let Some(found) = body.get(&clause.index).and_then(Value::as_str).map(fold) else { return false };
    let term = clause.term.literal().map(|it| fold(&it)).unwrap_or_default();
    let words = |text: &str| -> Vec<String> {
        text.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()).map(str::to_owned).collect()
    };
    let (have, want) = (words(&found), words(&term));
    if term.is_empty() {
        return match clause.relation {
            Relation::Exact => found.is_empty(),
            Relation::Different => !found.is_empty(),
            _ => true,
        };
    }
    match clause.relation {
        Relation::Words | Relation::All => want.iter().all(|it| have.contains(it)),
        Relation::Any => want.is_empty() || want.iter().any(|it| have.contains(it)),
        Relation::Adjacent => want.is_empty() || have.windows(want.len()).any(|it| it == want),
        Relation::Exact => found == term,
        Relation::Different => found != term,
        Relation::Less => found < term,
        Relation::LessOrEqual => found <= term,
        Relation::Greater => term < found,
        Relation::GreaterOrEqual => term <= found,
    }
}

fn clauses() -> impl Strategy<Value = Node> {
    let relations = prop::sample::select(vec![
        Relation::Words,
        Relation::Exact,
        Relation::Different,
        Relation::Less,
        Relation::LessOrEqual,
        Relation::Greater,
        Relation::GreaterOrEqual,
        Relation::Adjacent,
        Relation::All,
        Relation::Any,
    ]);
    let index = prop::sample::select(vec!["name", "title", "other"]);
    let clause = (index, relations, "[abcÄ ,-]{0,6}").prop_map(|(index, relation, term)| {
        Node::Clause(Clause {
            index: index.to_owned(),
            relation,
            modifiers: Vec::new(),
            term: Term::new(term),
        })
    });
    clause.prop_recursive(4, 12, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| Node::And(Box::new(a), Box::new(b))),
            two.clone().prop_map(|(a, b)| Node::Or(Box::new(a), Box::new(b))),
            two.prop_map(|(a, b)| Node::Not(Box::new(a), Box::new(b))),
            inner.prop_map(|it| Node::Negation(Box::new(it))),
        ]
    })
}

proptest! {
    #[test]
    fn conditions_mean_what_the_tree_says(
        node in clauses(),
        name in proptest::option::of("[abcAÄ ,-]{0,8}"),
        title in proptest::option::of("[abcä ]{0,8}"),
    ) {
        let body = json!({"name": name, "title": title});
        let expr = meaning(&node, &KIND, &Names::PLAIN, &mut |_| Ok::<_, pinakes_folio::platform::cql::CqlError>(None));
        prop_assert_eq!(expr.map(|it| matches(&it, &body)), Ok(plain(&node, &body)));
    }

    #[test]
    fn arbitrary_text_does_not_panic(query in "[a-c=<>/@()\"\\\\* ?^.]{0,40}") {
        let _ = fits(&query, &body());
    }

    #[test]
    fn arbitrary_characters_do_not_panic(query in ".{0,60}") {
        let _ = fits(&query, &body());
    }
}

/// Queries with very many conditions become trees of low height; those that cannot are refused.
#[test]
fn long_queries_become_low_trees() -> Result<(), Failure> {
    fn height(node: &Node) -> usize {
        1 + match node {
            Node::Clause(_) => 0,
            Node::Negation(it) => height(it),
            Node::And(a, b) | Node::Or(a, b) | Node::Not(a, b) => height(a).max(height(b)),
        }
    }
    let bounds = Bounds { length_bytes: 100_000, depth: 32, clauses: 1_000, words: 1_000 };
    for joint in ["and", "or", "not"] {
        let parts: Vec<String> = (0..990).map(|n| format!("title=\"w{n}\"")).collect();
        let text = parts.join(&format!(" {joint} "));
        let parsed = parse(&text, bounds)?;
        assert!(height(&parsed.condition) < 24, "{joint}: {}", height(&parsed.condition));
        for (title, expected) in [("w3", [false, true, false]), ("w0", [false, true, true])] {
            let must = expected[["and", "or", "not"].iter().position(|it| *it == joint).unwrap_or(0)];
            assert_eq!(plain(&parsed.condition, &json!({"title": title})), must, "{joint} {title}");
        }
    }
    let alternating: String = (0..400).map(|n| format!("a=x{n} {} ", ["and", "or"][n % 2])).collect();
    let error = parse(&format!("{alternating} a=y"), bounds).expect_err("a refusal");
    assert!(error.to_string().contains("alternate more than 100 deep"), "{error}");
    Ok(())
}
