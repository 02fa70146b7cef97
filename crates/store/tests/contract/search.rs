//! Text search.

use pinakes_store::{Expr, Query, Tenant, TextQuery};
use serde_json::json;

use crate::engines::{on_each, read, write};
use crate::kinds::{ALL, ITEM, PLAIN};

fn words(text: &[&str]) -> TextQuery {
    TextQuery { words: text.iter().map(|it| (*it).to_owned()).collect(), ..TextQuery::default() }
}

fn found(tenant: &Tenant, text: TextQuery) -> Vec<String> {
    let query = Query::filter(Expr::Text(text));
    read(tenant, |view| view.find(&ITEM, &query)).into_iter().map(|it| it.id).collect()
}

fn fill(tenant: &Tenant) {
    write(tenant, |txn| {
        txn.insert(&ITEM, "a", &json!({"name": "Röntgen diffraction of crystals", "size": 1}))?;
        txn.insert(&ITEM, "b", &json!({"name": "crystal growing", "deep": {"list": [{"x": "neutron"}]}}))?;
        txn.insert(&ITEM, "c", &json!({"name": "x-ray of a growing crystal lattice", "neutron": "key"}))?;
        txn.insert(&ITEM, "d", &json!({"name": "nothing \"quoted\" here: AND OR NOT ( * ^"})).map(|_| ())
    });
}

#[test]
fn endings_case_and_accents_do_not_count() {
    on_each(ALL, |tenant| {
        fill(tenant);
        assert_eq!(found(tenant, words(&["crystal"])), ["a", "b", "c"]);
        assert_eq!(found(tenant, words(&["CRYSTALS"])), ["a", "b", "c"]);
        assert_eq!(found(tenant, words(&["rontgen"])), ["a"]);
        assert_eq!(found(tenant, words(&["RÖNTGEN"])), ["a"]);
        assert_eq!(found(tenant, words(&["neutron"])), ["b"]);
        assert_eq!(found(tenant, words(&["diffraction", "neutron"])), ["a", "b"]);
        assert!(found(tenant, words(&["absent"])).is_empty());
        assert!(found(tenant, words(&[])).is_empty());
    });
}

#[test]
fn phrases_and_exclusions() {
    on_each(ALL, |tenant| {
        fill(tenant);
        let phrase = |it: &str| TextQuery { phrases: vec![it.to_owned()], ..TextQuery::default() };
        assert_eq!(found(tenant, phrase("growing crystal")), ["c"]);
        assert_eq!(found(tenant, phrase("crystal growing")), ["b"]);
        assert_eq!(
            found(tenant, TextQuery { without: vec!["growing".into()], ..words(&["crystal"]) }),
            ["a"]
        );
        let both = TextQuery { phrases: vec!["x-ray".into(), "lattice".into()], ..TextQuery::default() };
        assert_eq!(found(tenant, both), ["c"]);
        let mixed = TextQuery { without: vec!["lattice".into()], ..phrase("growing") };
        assert_eq!(found(tenant, mixed), ["b"]);
    });
}

#[test]
fn nothing_in_a_word_is_an_operator() {
    on_each(ALL, |tenant| {
        fill(tenant);
        for word in
            ["\"", "(", "*", "a AND", "NOT", "'", ":", "\0", "a\0b", "\\", "&", "|", "!", "<->", "%", ""]
        {
            found(tenant, words(&[word]));
            found(
                tenant,
                TextQuery { phrases: vec![word.into()], without: vec![word.into()], ..words(&["x"]) },
            );
        }
        assert_eq!(found(tenant, words(&["\"quoted\""])), ["d"]);
    });
}

#[test]
fn a_search_sees_the_write_before_it() {
    on_each(ALL, |tenant| {
        for n in 0..5 {
            let id = n.to_string();
            write(tenant, move |txn| txn.insert(&ITEM, &id, &json!({"name": "beam"})));
            assert_eq!(found(tenant, words(&["beam"])).len(), n + 1);
        }
        write(tenant, |txn| txn.update(&ITEM, "0", &json!({"name": "ring"})));
        assert_eq!(found(tenant, words(&["beam"])).len(), 4);
        assert_eq!(found(tenant, words(&["ring"])), ["0"]);
        write(tenant, |txn| txn.delete(&ITEM, "0"));
        assert!(found(tenant, words(&["ring"])).is_empty());
    });
}

#[test]
fn text_combines_with_other_conditions() {
    on_each(ALL, |tenant| {
        fill(tenant);
        let text = || Expr::Text(words(&["neutron"]));
        let ids = |filter: Expr| {
            let query = Query::filter(filter);
            read(tenant, |view| view.find(&ITEM, &query)).into_iter().map(|it| it.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(Expr::Or(vec![text(), Expr::Is("size".into(), 1_i64.into())])), ["a", "b"]);
        assert_eq!(ids(Expr::Not(Box::new(text()))), ["a", "c", "d"]);
        // Combined with a condition that the engine cannot decide.
        let by_body = || Expr::Exists("neutron".into());
        assert_eq!(ids(Expr::Or(vec![text(), by_body()])), ["b", "c"]);
        assert_eq!(ids(Expr::And(vec![Expr::Not(Box::new(text())), by_body()])), ["c"]);
        let either = Expr::Or(vec![Expr::Ids(vec!["d".into()]), by_body()]);
        assert_eq!(ids(either.clone()), ["c", "d"]);
        assert_eq!(read(tenant, |view| view.count(&ITEM, &either)), 2);
    });
}

#[test]
fn a_kind_without_text_finds_nothing() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| txn.insert(&PLAIN, "a", &json!({"name": "beam"})));
        let query = Query::filter(Expr::Text(words(&["beam"])));
        assert!(read(tenant, |view| view.find(&PLAIN, &query)).is_empty());
    });
}

#[test]
fn more_than_one_step_of_the_index() {
    on_each(ALL, |tenant| {
        write(tenant, |txn| {
            (0..2_500).try_for_each(|n| {
                txn.insert(&ITEM, &n.to_string(), &json!({"name": format!("beam w{n}")})).map(|_| ())
            })
        });
        assert_eq!(read(tenant, |view| view.count(&ITEM, &Expr::Text(words(&["beam"])))), 2_500);
        assert_eq!(found(tenant, words(&["w2499"])), ["2499"]);
    });
}
