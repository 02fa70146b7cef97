//! The law of queries: what the store finds, counts and groups equals the result of evaluating the condition on every
//! body and sorting, whichever index leads.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use pinakes_store::{
    Direction, End, Expr, FacetCount, Kind, Limits, Order, Pattern, Query, Tenant, TextPart, Value, Word,
    fold, matches,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value as Json, json};

use crate::engines::{Place, engines, read, told_with, write};
use crate::kinds::{ALL, COMPARED, ITEM};

/// Above the number of records up to which the engine's own choice of index is used.
const N_RECORDS: u64 = 2_600;
const VALUES: [&str; 6] = ["id", "name", "size", "mass", "open", "title"];
const FACETS: [&str; 8] = ["name", "size", "mass", "keywords", "made", "keys", "group", "free"];

/// Returns the body of a generated record: its id is its position in the list.
fn body(n: u64) -> Json {
    // A small random number generator, so that every run has the same records.
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut map = Map::new();
    map.insert("pid".into(), json!(id(n)));
    let mut maybe = |draw: &mut dyn FnMut(u64) -> u64, name: &str, value: Json| match draw(8) {
        0 => {}
        1 => {
            map.insert(name.into(), Json::Null);
        }
        _ => {
            map.insert(name.into(), value);
        }
    };
    let value = json!(format!("n{}", draw(40)));
    maybe(&mut draw, "name", value);
    let value = json!(draw(300));
    maybe(&mut draw, "size", value);
    let value = json!(draw(40) as f64 / 4.0 - 3.0);
    maybe(&mut draw, "mass", value);
    let value = json!(draw(2) == 0);
    maybe(&mut draw, "open", value);
    let value = json!(format!("2020-01-{:02}T{:02}:00:00.000Z", 1 + draw(5), draw(24)));
    maybe(&mut draw, "made", value);
    let value = json!(["Élan", "elan", "ELAN vital", "Zoë", "zoe", "a"][draw(6) as usize]);
    maybe(&mut draw, "title", value);
    let value = json!({"depth": draw(9)});
    maybe(&mut draw, "place", value);
    let value = Json::from((0..draw(4)).map(|_| json!(format!("k{}", draw(30)))).collect::<Vec<_>>());
    maybe(&mut draw, "keywords", value);
    let value =
        Json::from((0..draw(3)).map(|_| json!({"number": draw(50), "x": draw(3)})).collect::<Vec<_>>());
    maybe(&mut draw, "runs", value);
    let value = json!(format!("g{}", draw(12)));
    maybe(&mut draw, "group", value);
    let value = Json::from((0..draw(3)).map(|_| json!(format!("g{}", draw(4)))).collect::<Vec<_>>());
    maybe(&mut draw, "shared", value);
    let value = json!({format!("m{}", draw(4)): draw(3), "common": 1});
    maybe(&mut draw, "meta", value);
    let value = match draw(6) {
        4 => json!({}),
        5 => {
            let list = json!([draw(3), format!("f{}", draw(4)), {"a": draw(3)}]);
            let number = draw(3);
            json!([list, {}, {"0": number, "02": number, "7": [number]}])
        }
        0 => json!(draw(4)),
        1 => json!(format!("f{}", draw(4))),
        2 => json!([draw(4), format!("f{}", draw(4)), null]),
        _ => json!({"a": draw(3), "b": [draw(3)]}),
    };
    maybe(&mut draw, "free", value);
    let notes = notes();
    let value = json!(notes[draw(notes.len() as u64) as usize]);
    maybe(&mut draw, "note", value);
    let value = steps(&mut draw);
    maybe(&mut draw, "steps", value);
    Json::Object(map)
}

/// Returns a list of objects with values of any type, and with such objects in them.
fn steps(draw: &mut impl FnMut(u64) -> u64) -> Json {
    let notes = notes();
    let mut step = |inner: Json| {
        let first = [json!("s1"), Json::Null, json!(true), json!([1]), json!({}), json!(notes[7])];
        let value = match draw(12) {
            0 | 1 => json!(draw(5)),
            2 => json!(0.5),
            3 | 4 => json!(format!("s{}", draw(6))),
            5 => json!(notes[draw(notes.len() as u64) as usize]),
            6 => json!(draw(2) == 0),
            7 => json!({"a": 1}),
            8 => json!([draw(4), "s1"]),
            9 => json!([first[draw(6) as usize]]),
            10 => Json::Null,
            _ => return json!({"in": inner}),
        };
        json!({"at": value, "in": inner})
    };
    let mut inner = || step(Json::Null);
    let inners = [json!([inner(), inner()]), json!([inner()]), inner(), json!([])];
    let list: Vec<Json> = inners.into_iter().map(&mut step).collect();
    let begin = draw(4) as usize;
    match draw(5) {
        0 => list[begin].clone(),
        1 => json!([list[begin]]),
        2 => json!([[list[0]], list[1]]),
        _ => list[begin..].into(),
    }
}

/// Texts on both sides of the lengths up to which an index holds a whole text (160 bytes) and of the beginnings that it
/// holds of longer ones (32 bytes), some alike up to there.
fn notes() -> Vec<String> {
    let x = |n: usize| "x".repeat(n);
    vec![
        "x".into(),
        x(32),
        x(160),
        x(161),
        x(300),
        format!("{}y", x(31)),
        format!("{}y", x(160)),
        format!("{}Y{}", x(31), x(200)),
        format!("{}z", x(200)),
        format!("{}{}", x(32), "y".repeat(200)),
        // The 32nd byte is within a character.
        format!("a{}", "é".repeat(100)),
        format!("a{}b", "é".repeat(100)),
        format!("a{}", "é".repeat(10)),
    ]
}

fn note_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => prop::sample::select(notes()).prop_map(Value::from),
        1 => prop::sample::select(notes()).prop_map(|it| Value::from(format!("{it}\u{0}"))),
        1 => prop::sample::select(notes()).prop_map(Value::Folded),
    ]
}

/// Generates a beginning of a note.
fn note_prefix() -> impl Strategy<Value = String> {
    (prop::sample::select(notes()), 1..210_usize).prop_map(|(note, n)| note.chars().take(n).collect())
}

/// Ids are not in insertion order.
fn id(n: u64) -> String {
    format!("i{:04}", (n * 7919) % N_RECORDS)
}

const WAIT: std::time::Duration = std::time::Duration::from_secs(120);

pub(crate) struct World {
    pub(crate) tenants: Vec<(Place, Tenant)>,
    pub(crate) kinds: &'static [&'static Kind],
    pub(crate) bodies: Vec<Json>,
}

impl World {
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&(Place, Tenant), &'static Kind)> {
        self.tenants.iter().flat_map(|tenant| self.kinds.iter().map(move |kind| (tenant, *kind)))
    }
}

pub(crate) fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let tenants: Vec<_> = engines().into_iter().map(|place| (place.tenant(COMPARED), place)).collect();
        for (tenant, _) in &tenants {
            // Every record is written twice and some are deleted, so that counts have increased and decreased.
            write(tenant, |txn| {
                for (kind, n) in COMPARED.iter().flat_map(|kind| (0..N_RECORDS).map(move |n| (kind, n))) {
                    txn.insert(kind, &id(n), &body(n + 17))?;
                }
                Ok(())
            });
            assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
            write(tenant, |txn| {
                for kind in COMPARED {
                    for n in 0..N_RECORDS {
                        txn.update(kind, &id(n), &body(n))?;
                    }
                    txn.insert(kind, "gone", &body(3))?;
                    txn.delete(kind, "gone")?;
                }
                Ok(())
            });
            assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        }
        let tenants = tenants.into_iter().map(|(tenant, place)| (place, tenant)).collect();
        World { tenants, kinds: COMPARED, bodies: (0..N_RECORDS).map(body).collect() }
    })
}

fn text_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..42_u8).prop_map(|n| format!("n{n}").into()),
        (0..32_u8).prop_map(|n| format!("k{n}").into()),
        (0..14_u8).prop_map(|n| format!("g{n}").into()),
        (0..5_u8).prop_map(|n| format!("f{n}").into()),
    ]
}

fn number_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-5..320_i64).prop_map(Value::from),
        (-20..60_i64).prop_map(|n| Value::from(n as f64 / 4.0)),
        (0..6_i64).prop_map(Value::from),
    ]
}

fn instant_value() -> impl Strategy<Value = Value> {
    (0..150_i64).prop_map(|hours| Value::Instant(1_577_836_800_000 + hours * 3_600_000))
}

fn folded_value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["ELAN", "élan", "Elan Vital", "ZOE", "b", "N7", "K3"])
        .prop_map(|text| Value::Folded(text.to_owned()))
}

/// Generates a path and a value that may occur there.
fn place_and_value() -> impl Strategy<Value = (&'static str, Value)> {
    let texts = prop::sample::select(vec!["name", "keywords", "group", "shared", "free", "size", "free.b"]);
    let numbers = prop::sample::select(vec![
        "size",
        "mass",
        "place.depth",
        "runs.number",
        "runs.x",
        "free",
        "free.a",
        "free.b",
        "meta.common",
        "name",
    ]);
    prop_oneof![
        4 => (texts, text_value()),
        4 => (numbers, number_value()),
        1 => (Just("made"), instant_value()),
        2 => (prop::sample::select(vec!["title", "name", "keywords", "made", "size"]), folded_value()),
        1 => (Just("title"), prop::sample::select(vec!["elan", "Élan", "zoe"]).prop_map(Value::from)),
        2 => (Just("note"), note_value()),
        1 => (Just("open"), any::<bool>().prop_map(Value::from)),
        1 => (prop::sample::select(vec![
            "name", "group", "free", "meta.m1", "keywords", "runs.number", "mass", "open", "place", "note",
        ]), Just(Value::Null)),
        1 => (prop::sample::select(vec!["shared", "keywords"]), Just(Value::Json(json!(["g1"])))),
    ]
}

fn leaf() -> impl Strategy<Value = Expr> {
    let pair = place_and_value;
    prop_oneof![
        6 => pair().prop_map(|(path, value)| Expr::Is(path.into(), value)),
        2 => (pair(), prop::collection::vec(pair(), 0..4)).prop_map(|((path, value), more)| {
            let values = more.into_iter().filter(|it| it.0 == path).map(|it| it.1);
            Expr::In(path.into(), std::iter::once(value).chain(values).collect())
        }),
        4 => (pair(), pair(), 0..4_u8).prop_map(|((path, low), (_, high), ends)| {
            let end = |value: Value, bit: u8| if ends & bit == 0 { End::Included(value) } else { End::Excluded(value) };
            let same = std::mem::discriminant(&low) == std::mem::discriminant(&high);
            let high = if same { end(high, 2) } else { End::Open };
            Expr::Range(path.into(), end(low, 1), high)
        }),
        1 => prop::sample::select(vec![
            "name", "free.a", "group", "runs.x", "meta.m2", "open", "mass", "place", "place.depth", "runs", "keywords",
            "free", "free.b", "note",
        ])
        .prop_map(|it| Expr::Exists(it.into())),
        1 => note_prefix().prop_map(|it| Expr::Prefix("note".into(), it)),
        1 => note_prefix().prop_map(|it| Expr::Regex("note".into(), Pattern::new(&format!("^{it}$"), "i").expect("a pattern"))),
        1 => prop::sample::select(vec![("name", "n1"), ("keywords", "k2"), ("group", "g1"), ("free", "f"), ("title", "el")])
            .prop_map(|(path, prefix)| Expr::Prefix(path.into(), prefix.into())),
        1 => (prop::sample::select(vec!["name", "title", "free", "keywords", "note"]), prop::sample::select(vec!["^1", "2$", "e1", "^$", "nv"]), prop::sample::select(vec![TextPart::Digits, TextPart::Alphanumerics]))
            .prop_map(|(path, text, part)| Expr::Regex(path.into(), Pattern::new(text, "").expect("a pattern").on(part))),
        1 => prop::sample::select(vec![("name", "1$"), ("name", "n1[0-9]"), ("title", "an v"), ("title", "^zo"), ("keywords", "[12]$"), ("group", "1"), ("free", "^F")])
            .prop_map(|(path, text)| Expr::Regex(path.into(), Pattern::new(text, "i").expect("a pattern"))),
        1 => prop::sample::select(vec![("title", "^elan"), ("title", "É"), ("title", "lan vi"), ("name", "n1")])
            .prop_map(|(path, text)| Expr::Regex(path.into(), Pattern::new(text, "f").expect("a pattern"))),
        1 => prop::sample::select(vec![("title", "ELAN"), ("title", "vital"), ("keywords", "k3"), ("free", "F1")])
            .prop_map(|(path, text)| Expr::Word(path.into(), Word::whole(text).expect("a word"))),
        1 => prop::sample::select(vec![("title", "v"), ("keywords", "k1"), ("name", "N")])
            .prop_map(|(path, text)| Expr::Word(path.into(), Word::prefix(text).expect("a word"))),
        1 => prop::sample::select(vec![("title", "*it*"), ("title", "el?n"), ("keywords", "?1*"), ("name", "*3"), ("free", "f?")])
            .prop_map(|(path, text)| Expr::Word(path.into(), Word::wild(text).expect("a word"))),
        1 => (prop::sample::select(vec![("title", "vitl"), ("title", "zeo"), ("keywords", "1k"), ("name", "n12")]), 0..3_u8)
            .prop_map(|((path, text), edits)| Expr::Word(path.into(), Word::near(text, edits).expect("a word"))),
        1 => (prop::sample::select(vec!["runs", "keywords", "free"]), 0..4_u64).prop_map(|(path, n)| Expr::Size(path.into(), n)),
        1 => (0..50_i64, 0..3_i64).prop_map(|(number, x)| {
            let both = Expr::And(vec![Expr::Is("number".into(), number.into()), Expr::Is("x".into(), x.into())]);
            Expr::Element("runs".into(), Box::new(both))
        }),
        1 => prop::collection::vec(0..N_RECORDS, 0..5).prop_map(|list| Expr::Ids(list.into_iter().map(id).collect())),
        1 => prop_oneof![
            prop::collection::vec(0..2 * N_RECORDS, 65..200)
                .prop_map(|list| Expr::Ids(list.into_iter().map(|n| format!("i{n:04}")).collect())),
            many_values(),
        ],
        1 => whole_value(),
        1 => at_position(),
        1 => (pair(), prop::option::of(pair())).prop_map(|((path, low), high)| {
            // The ends may be of different types.
            Expr::Range(path.into(), End::Excluded(low), high.map_or(End::Open, |it| End::Included(it.1)))
        }),
    ]
}

/// Generates equality with objects and lists.
fn whole_value() -> impl Strategy<Value = Expr> {
    let paths = prop::sample::select(vec!["free", "free.b", "runs", "meta", "shared", "place", "name"]);
    let wholes = prop_oneof![
        prop::sample::select(vec![
            json!({}),
            json!([]),
            json!(["g1"]),
            json!(["g1", "g2"]),
            json!([1]),
            json!([[]]),
            json!([2, "f1", null]),
            json!({"0": 1}),
            json!({"regexp": "n1"}),
            json!({"a": 1, "b": null}),
        ]),
        (0..4_u8, 0..3_u8).prop_map(|(a, b)| json!({"a": a, "b": [b]})),
        (0..4_u8, 0..3_u8).prop_map(|(n, value)| json!({"common": 1, format!("m{n}"): value})),
        (0..50_u8, 0..3_u8).prop_map(|(number, x)| json!({"number": number, "x": x})),
        (0..50_u8, 0..3_u8).prop_map(|(number, x)| json!([{"number": number, "x": x}])),
    ];
    (paths, prop::collection::vec(wholes, 1..3)).prop_map(|(path, wholes)| {
        let mut values: Vec<Value> = wholes.into_iter().map(Value::Json).collect();
        match values.pop() {
            Some(one) if values.is_empty() => Expr::Is(path.into(), one),
            last => Expr::In(path.into(), values.into_iter().chain(last).collect()),
        }
    })
}

/// Generates conditions on paths with positions in lists.
fn at_position() -> impl Strategy<Value = Expr> {
    let paths = prop::sample::select(vec![
        "shared.0",
        "keywords.1",
        "runs.0.number",
        "runs.1",
        "free.0",
        "free.1",
        "free.0.0",
        "free.0.1",
        "free.2.0",
        "free.02",
        "free.7",
        "free.7.0",
        "free.0.2.a",
        "free.b.0",
        "name.0",
        "0.name",
    ]);
    let values = prop_oneof![text_value(), number_value(), Just(Value::Null), Just(Value::Json(json!({})))];
    (paths, values, 0..6_u8).prop_map(|(path, value, what)| match what {
        0 => Expr::Exists(path.into()),
        1 => Expr::Size(path.into(), 3),
        2 => Expr::Range(path.into(), End::Included(value), End::Open),
        3 => Expr::Prefix(path.into(), "f".into()),
        4 => Expr::In(path.into(), vec![value, 1_i64.into()]),
        _ => Expr::Is(path.into(), value),
    })
}

/// Generates so many values that the dictionary of a path is read in order.
fn many_values() -> impl Strategy<Value = Expr> {
    let paths = prop::sample::select(vec!["name", "keywords", "group", "free", "size"]);
    (paths, 0..40_usize, 65..150_usize, any::<bool>()).prop_map(|(path, from, n, is_folded)| {
        let text = |n: usize| format!("{}{}", ["N", "k", "g", "f", "n"][n % 5], from + n / 5);
        let value = |n| if is_folded { Value::Folded(text(n)) } else { Value::Text(text(n)) };
        Expr::In(path.into(), (0..n).rev().map(value).chain([Value::from(from as i64)]).collect())
    })
}

fn expr() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::And),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Or),
            1 => inner.prop_map(|it| Expr::Not(Box::new(it))),
        ]
    })
}

fn query() -> impl Strategy<Value = Query> {
    prop_oneof![3 => any_query(), 1 => first_page()]
}

fn any_query() -> impl Strategy<Value = Query> {
    let paths = prop::sample::select(vec![
        "name",
        "size",
        "mass",
        "made",
        "open",
        "pid",
        "place.depth",
        "title",
        "meta.m1",
        "meta.common",
        "group",
        "place",
        "note",
        "keywords",
        "shared",
        "runs",
        "free",
        "free.b",
        "runs.x",
        "steps",
        "steps.at",
        "steps.in",
        "steps.in.at",
    ]);
    let direction = prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)];
    let order = prop::collection::vec(
        (paths, direction).prop_map(|(path, direction)| Order { path: path.into(), direction }),
        0..3,
    );
    let filter = prop_oneof![6 => expr(), 1 => Just(Expr::All)];
    (
        filter,
        order,
        prop_oneof![3 => Just(0_u64), 2 => 0..80_u64, 2 => 400..2_600_u64],
        prop::option::of(0..60_u64),
    )
        .prop_map(|(filter, order, skip, limit)| Query { filter, order, skip, limit, after: None })
}

/// Generates the first page of records in an order by time or number, in periods perhaps.
fn first_page() -> impl Strategy<Value = Query> {
    let period = (instant_value(), instant_value(), 0..4_u8).prop_map(|(low, high, ends)| {
        let end =
            |value: Value, bit: u8| if ends & bit == 0 { End::Included(value) } else { End::Excluded(value) };
        Expr::Range("made".into(), end(low, 1), if ends == 3 { End::Open } else { end(high, 2) })
    });
    let common = prop::sample::select(vec![
        Expr::All,
        Expr::Is("open".into(), true.into()),
        Expr::Exists("name".into()),
        Expr::Not(Box::new(Expr::Is("group".into(), "g3".into()))),
    ]);
    let conditions = (prop::collection::vec(period, 0..3), common, prop::collection::vec(leaf(), 0..2));
    let order = (
        prop::sample::select(vec!["made", "made", "size", "open"]),
        prop::sample::select(vec![Direction::Ascending, Direction::Descending]),
    );
    (conditions, order, 0..4_u64, 0..8_u64).prop_map(
        |((periods, common, others), (path, direction), skip, n)| {
            let filter = Expr::And(periods.into_iter().chain([common]).chain(others).collect());
            Query::filter(filter).sorted(path, direction).window(skip, n)
        },
    )
}

/// Evaluates the condition on one record; ids are not part of the body.
fn holds(expr: &Expr, id: &str, body: &Json) -> bool {
    match expr {
        Expr::Ids(ids) => ids.iter().any(|it| it == id),
        Expr::And(list) => list.iter().all(|it| holds(it, id, body)),
        Expr::Or(list) => list.iter().any(|it| holds(it, id, body)),
        Expr::Not(it) => !holds(it, id, body),
        other => matches(other, body),
    }
}

/// Returns the value that a sort compares, taking the first element of each list on the way.
fn sort_key<'a>(body: &'a Json, order: &Order) -> Option<&'a Json> {
    order.path.as_steps().iter().try_fold(body, |mut at, step| {
        while let Json::Array(list) = at {
            at = list.first()?;
        }
        at.get(step)
    })
}

fn compare(a: Option<&Json>, b: Option<&Json>) -> Ordering {
    let rank = |it: Option<&Json>| match it {
        None | Some(Json::Null) => 0,
        Some(Json::Number(_)) => 1,
        Some(Json::String(_)) => 2,
        Some(Json::Object(_)) => 3,
        Some(Json::Array(_)) => 4,
        Some(Json::Bool(_)) => 5,
    };
    match (a, b) {
        (Some(Json::String(a)), Some(Json::String(b))) => a.cmp(b),
        (Some(Json::Number(a)), Some(Json::Number(b))) => {
            a.as_f64().partial_cmp(&b.as_f64()).expect("no NaN in JSON")
        }
        (Some(Json::Bool(a)), Some(Json::Bool(b))) => a.cmp(b),
        (Some(Json::Array(a)), Some(Json::Array(b))) => compare(a.first(), b.first()),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Compares as a folded column sorts: without case and accents.
fn compare_folded(a: Option<&Json>, b: Option<&Json>) -> Ordering {
    let folded = |it: Option<&Json>| it.and_then(Json::as_str).map(fold);
    folded(a).cmp(&folded(b))
}

fn expected_page(world: &World, query: &Query) -> Vec<String> {
    let mut rows: Vec<(usize, &Json)> = world
        .bodies
        .iter()
        .enumerate()
        .filter(|(n, body)| holds(&query.filter, &id(*n as u64), body))
        .collect();
    rows.sort_by(|(a_n, a), (b_n, b)| {
        let mut last = Direction::Ascending;
        for order in &query.order {
            last = order.direction;
            let by_value = match order.path.is_dotted("title") {
                true => compare_folded(sort_key(a, order), sort_key(b, order)),
                false => compare(sort_key(a, order), sort_key(b, order)),
            };
            let by_value = if last == Direction::Descending { by_value.reverse() } else { by_value };
            if by_value.is_ne() {
                return by_value;
            }
        }
        if last == Direction::Descending { b_n.cmp(a_n) } else { a_n.cmp(b_n) }
    });
    let limit = query.limit.map_or(usize::MAX, |it| usize::try_from(it).expect("small"));
    let skip = usize::try_from(query.skip).expect("small");
    rows.into_iter().skip(skip).take(limit).map(|(n, _)| id(n as u64)).collect()
}

/// Returns the values of a facet in a body, as the documentation defines them.
fn facet_values(facet: &str, body: &Json) -> Vec<String> {
    let text = |it: &Json| match it {
        Json::String(it) => Some(it.clone()),
        Json::Number(it) => it.as_f64().map(|it| it.to_string()),
        _ => None,
    };
    let mut values: Vec<String> = match (facet, body.get(if facet == "keys" { "meta" } else { facet })) {
        ("keys", Some(Json::Object(map))) => map.keys().cloned().collect(),
        ("made", Some(Json::String(it))) => vec![it[..10].to_owned()],
        (_, Some(Json::Array(list))) => list.iter().filter_map(text).collect(),
        (_, Some(one)) => text(one).into_iter().collect(),
        (_, None) => Vec::new(),
    };
    values.sort();
    values.dedup();
    values
}

fn expected_facet(world: &World, filter: &Expr, facet: &str) -> Vec<FacetCount> {
    let mut counts = BTreeMap::new();
    for (n, body) in world.bodies.iter().enumerate() {
        if holds(filter, &id(n as u64), body) {
            facet_values(facet, body).into_iter().for_each(|it| *counts.entry(it).or_insert(0) += 1);
        }
    }
    counts.into_iter().rev().map(|(value, n_records)| FacetCount { value, n_records }).collect()
}

/// Returns the id and the values of [`VALUES`] of each record that satisfies a condition, sorted.
fn expected_values(world: &World, filter: &Expr) -> Vec<Vec<Option<String>>> {
    let value = |body: &Json, name: &str| match body.get(name)? {
        Json::String(it) if name == "title" => Some(fold(it)),
        Json::Bool(it) => Some(it.to_string()),
        _ => facet_values(name, body).pop(),
    };
    let found = world.bodies.iter().enumerate().filter(|(n, body)| holds(filter, &id(*n as u64), body));
    let row = |(n, body): (usize, &Json)| {
        std::iter::once(Some(id(n as u64))).chain(VALUES[1..].iter().map(|it| value(body, it))).collect()
    };
    let mut rows: Vec<Vec<Option<String>>> = found.map(row).collect();
    rows.sort();
    rows
}

fn check(query: &Query) -> Result<(), TestCaseError> {
    check_in(world(), query)
}

fn check_in(world: &World, query: &Query) -> Result<(), TestCaseError> {
    let expected = expected_page(world, query);
    let whole = Query { skip: 0, limit: None, order: Vec::new(), ..query.clone() };
    let n_expected = expected_page(world, &whole).len() as u64;
    for ((place, tenant), kind) in world.pairs() {
        let page = tenant.read_blocking(|view| view.find(kind, query));
        let page =
            page.map_err(|error| TestCaseError::fail(format!("{}, {}: {error}", place.engine, kind.name)))?;
        let page: Vec<String> = page.into_iter().map(|it| it.id).collect();
        prop_assert_eq!(&page, &expected, "{}, {}", place.engine, kind.name);
        let n = tenant.read_blocking(|view| view.count(kind, &query.filter));
        prop_assert_eq!(n.ok(), Some(n_expected), "{}, {}: count", place.engine, kind.name);
        let facets = tenant.read_blocking(|view| view.facets(kind, &query.filter, &FACETS));
        let facets = facets
            .map_err(|error| TestCaseError::fail(format!("{}, {}: {error}", place.engine, kind.name)))?;
        for (facet, found) in FACETS.iter().zip(facets) {
            prop_assert_eq!(
                found,
                expected_facet(world, &query.filter, facet),
                "{}, {}: {}",
                place.engine,
                kind.name,
                facet
            );
        }
        let values = tenant.read_blocking(|view| -> pinakes_store::Result<Vec<Vec<Option<String>>>> {
            let mut rows = Vec::new();
            view.for_each_values(kind, &query.filter, &VALUES, |row| rows.push(row))?;
            rows.sort();
            Ok(rows)
        });
        let values = values
            .map_err(|error| TestCaseError::fail(format!("{}, {}: {error}", place.engine, kind.name)))?;
        let expected = expected_values(world, &query.filter);
        prop_assert_eq!(values, expected, "{}, {}: values", place.engine, kind.name);
    }
    Ok(())
}

#[test]
fn the_store_finds_what_evaluation_finds() {
    let mut runner = TestRunner::new(Config { cases: 128, failure_persistence: None, ..Config::default() });
    runner.run(&query(), |query| check(&query)).expect("the law holds");
    for (_, tenant) in &world().tenants {
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

/// A column decides that no value is within ends of two types; the first end is then no value of the statement.
#[test]
fn nothing_is_within_ends_of_two_types() {
    let range = |low: Value, high: Value| Expr::Range("open".into(), End::Excluded(low), End::Included(high));
    for range in
        [range(false.into(), "n0".into()), range(false.into(), Value::Null), range(1_i64.into(), true.into())]
    {
        check(&Query::filter(range.clone())).expect("the law holds");
        let made = Expr::Range("made".into(), End::Included(Value::Instant(1_577_836_800_000)), End::Open);
        check(&Query::filter(Expr::And(vec![made, range]))).expect("the law holds");
    }
}

/// A column of instants does not tell how dates compare, as texts, with a text that is none.
#[test]
fn a_text_that_is_no_instant_is_compared_with_texts() {
    let late = || Value::Instant(1_577_836_800_000);
    let range = |low: End, high: End| Expr::Range("made".into(), low, high);
    let conditions = [
        range(End::Excluded(late()), End::Included("elan".into())),
        range(End::Open, End::Included("elan".into())),
        range(End::Included("1".into()), End::Excluded(late())),
        range(End::Excluded("elan".into()), End::Open),
        Expr::Is("made".into(), "elan".into()),
        Expr::In("made".into(), vec!["elan".into(), late()]),
    ];
    for condition in conditions {
        for condition in [condition.clone(), Expr::Not(Box::new(condition))] {
            check(&Query::filter(condition.clone())).expect("the law holds");
            let newest = Query::filter(condition).sorted("made", Direction::Descending).window(0, 10);
            check(&newest).expect("the law holds");
        }
    }
}

/// Returns what is told of how a page was found.
fn told_of(tenant: &Tenant, query: &Query) -> String {
    told_with(|| read(tenant, |view| view.find(&ITEM, query))).1
}

/// Returns the number before some words of what is told.
pub(crate) fn number_before(told: &str, words: &str) -> Option<u64> {
    let before = told.split_once(words)?.0;
    before.rsplit(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

/// Where the index has only beginnings of texts, or does not know some values, it leaves the records among which a page
/// is; where only bodies decide a condition, they are read along the order until the page is full.
#[test]
fn a_page_reads_few_bodies() {
    use Direction::{Ascending, Descending};
    let all = || Query::filter(Expr::All);
    let is_vague = || Expr::Regex("note".into(), Pattern::new("x.*|.*y|z", "i").expect("a pattern"));
    let (sorted, decided) = (" bodies read and sorted", " bodies read to decide");
    for (query, words, most) in [
        (all().sorted("note", Ascending).window(0, 5), sorted, 1_000),
        (all().sorted("note", Ascending).window(300, 5), sorted, 1_000),
        (all().sorted("note", Descending).window(0, 5), sorted, 1_000),
        (all().sorted("group", Ascending).sorted("note", Descending).window(20, 5), sorted, 1_000),
        (all().sorted("note", Descending).sorted("made", Ascending).window(0, 5), sorted, 1_000),
        (all().sorted("free", Ascending).window(0, 5), sorted, 500),
        (all().sorted("free", Descending).sorted("size", Ascending).window(2_000, 40), sorted, 700),
        (all().sorted("free.b", Descending).window(0, 5), sorted, 1_000),
        (all().sorted("steps.at", Descending).window(100, 5), sorted, 1_000),
        (Query::filter(is_vague()).window(0, 5), decided, 64),
        (Query::filter(is_vague()).sorted("made", Descending).window(10, 5), decided, 64),
        (Query::filter(is_vague()).sorted("name", Ascending).window(0, 50), decided, 400),
        (Query::filter(is_vague()).sorted("meta.m1", Descending).window(0, 50), decided, 400),
    ] {
        check(&query).expect("the law holds");
        for (place, tenant) in &world().tenants {
            let told = told_of(tenant, &query);
            let n = number_before(&told, words);
            assert!(n.is_some_and(|n| 0 < n && n <= most), "{}: {query:?}: {told}", place.engine);
        }
    }
    // None for what the first elements of lists have.
    let query = all().sorted("runs.x", Descending).window(1_000, 5);
    check(&query).expect("the law holds");
    for (place, tenant) in &world().tenants {
        let told = told_of(tenant, &query);
        assert!(told.contains("search index") && !told.contains(sorted), "{}: {told}", place.engine);
    }
}

/// A value that few records or none have leads to them, also where the rest of the condition is decided on bodies.
#[test]
fn a_rare_value_leads_whatever_else_is_asked() {
    let vague = || Expr::Regex("note".into(), Pattern::new("x.*|.*y|z", "i").expect("a pattern"));
    for (path, value, told_by) in [("name", "nobody", "there are none"), ("name", "n7", "search index")] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let query = Query::filter(Expr::And(vec![Expr::Is(path.into(), value.into()), vague()]));
            let query = query.sorted("made", direction).window(0, 5);
            check(&query).expect("the law holds");
            for (place, tenant) in &world().tenants {
                // A database has no counts at hand.
                let told_by = if place.engine == "sqlite" { told_by } else { "search index" };
                let told = told_of(tenant, &query);
                assert!(told.contains(told_by), "{}: {query:?}: {told}", place.engine);
            }
        }
    }
}

/// A page of the newest in a period does not pass over all records of a type; the first ones of a rare type are listed.
#[test]
fn a_first_page_is_found_along_its_order() {
    let period = |from_ms| Expr::Range("made".into(), End::Included(Value::Instant(from_ms)), End::Open);
    // No column has it, so the engine cannot lead.
    let is_common = || Expr::Exists("meta.common".into());
    let newest = |filter: Vec<Expr>| {
        Query::filter(Expr::And(filter)).sorted("made", Direction::Descending).window(0, 5)
    };
    let (day_2_ms, day_4_ms) = (1_577_923_200_000, 1_578_096_000_000);
    for (query, is_walked) in [
        (newest(vec![is_common(), period(day_2_ms)]), true),
        (newest(vec![is_common(), period(day_4_ms)]), true),
        (newest(vec![is_common(), Expr::Is("free".into(), "f1".into()), period(day_2_ms)]), true),
        // What reads more than the period goes last.
        (
            newest(vec![Expr::Element("runs".into(), Box::new(Expr::Exists("x".into()))), period(day_2_ms)]),
            false,
        ),
        (newest(vec![is_common(), period(day_2_ms)]).window(0, 501), false),
    ] {
        check(&query).expect("the law holds");
        for (place, tenant) in &world().tenants {
            let told = told_of(tenant, &query);
            assert_eq!(
                told.contains("walked along the order"),
                is_walked,
                "{}: {query:?}: {told}",
                place.engine
            );
        }
    }
}

/// Each search examines the records changed since the index's commit: every third record has changed, some are deleted
/// and some recreated, and the index is kept from following.
#[test]
fn what_the_index_does_not_have_yet_overrides_it() {
    let limits = || Limits { index_pause_ms: 3_600_000, ..Limits::default() };
    let mut bodies: Vec<Json> = (0..N_RECORDS).map(|n| with_content(n, n + 31)).collect();
    let mut tenants = Vec::new();
    for place in engines() {
        let tenant = place.tenant(ALL);
        write(&tenant, |txn| {
            (0..N_RECORDS).try_for_each(|n| txn.insert(&ITEM, &id(n), &with_content(n, n + 31)).map(|_| ()))
        });
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index follows");
        drop(tenant);
        let tenant = place.open(ALL, limits()).tenant("t").expect("the tenant");
        assert!(tenant.wait_for_indexes(WAIT).expect("an answer"), "the index is there");
        write(&tenant, |txn| {
            for n in (0..N_RECORDS).filter(|n| n % 3 == 0) {
                txn.update(&ITEM, &id(n), &with_content(n, n + 5))?;
            }
            // The last ones are deleted, and recreated in the same order with other bodies.
            for n in N_RECORDS - 40..N_RECORDS {
                txn.delete(&ITEM, &id(n))?;
            }
            (N_RECORDS - 40..N_RECORDS)
                .try_for_each(|n| txn.insert(&ITEM, &id(n), &with_content(n, n + 7)).map(|_| ()))
        });
        tenants.push((place, tenant));
    }
    for n in 0..N_RECORDS {
        if n % 3 == 0 {
            bodies[n as usize] = with_content(n, n + 5);
        }
        if N_RECORDS - 40 <= n {
            bodies[n as usize] = with_content(n, n + 7);
        }
    }
    let world = World { tenants, kinds: &COMPARED[..1], bodies };
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    runner.run(&query(), |query| check_in(&world, &query)).expect("the law holds");
    for (place, tenant) in &world.tenants {
        let is_current = tenant.wait_for_indexes(std::time::Duration::ZERO).expect("an answer");
        assert!(!is_current, "{}: the index has not followed", place.engine);
        assert_eq!(tenant.check().expect("a check"), Vec::<String>::new());
    }
}

/// Returns the record `n` with the content of another.
fn with_content(n: u64, content: u64) -> Json {
    let mut body = body(content);
    body["pid"] = json!(id(n));
    body
}

/// Forces each kind of lead in turn.
#[test]
fn every_lead_gives_the_same() {
    let by = |path: &str, direction| vec![Order { path: path.into(), direction }];
    let group = |n: u8| Expr::Is("group".into(), format!("g{n}").into());
    let some_classes = Expr::And(vec![group(1), Expr::Is("shared".into(), Value::Json(json!(["g1"])))]);
    let filters = [
        group(3),
        Expr::And(vec![group(3), Expr::Is("shared".into(), Value::Null)]),
        some_classes,
        Expr::Is("name".into(), "n7".into()),
        Expr::And(vec![Expr::Is("name".into(), "n7".into()), group(2)]),
        Expr::Is("keywords".into(), "k3".into()),
        Expr::And(vec![
            Expr::Is("keywords".into(), "k3".into()),
            group(2),
            Expr::Is("open".into(), true.into()),
        ]),
        Expr::Range("size".into(), End::Included(10_i64.into()), End::Open),
        Expr::In("size".into(), vec![1_i64.into(), 2_i64.into(), 3_i64.into()]),
        Expr::Is("mass".into(), 2_i64.into()),
        Expr::Is("name".into(), "nobody".into()),
        Expr::Is("size".into(), 7.0.into()),
        Expr::In("name".into(), vec![Value::Null, "nobody".into()]),
        Expr::And(vec![group(3), Expr::Is("keywords".into(), "nowhere".into())]),
        Expr::And(vec![
            Expr::Is("open".into(), true.into()),
            Expr::Range("made".into(), End::Included(Value::Instant(1_577_900_000_000)), End::Open),
        ]),
        Expr::And(vec![
            group(1),
            Expr::Range("size".into(), End::Included(5_i64.into()), End::Excluded(7_i64.into())),
        ]),
    ];
    for filter in filters {
        for order in [
            Vec::new(),
            by("made", Direction::Descending),
            by("size", Direction::Ascending),
            by("name", Direction::Descending),
            by("mass", Direction::Ascending),
        ] {
            for (skip, limit) in [(0, Some(5)), (7, Some(20)), (0, None), (3, None)] {
                let query = Query { filter: filter.clone(), order: order.clone(), skip, limit, after: None };
                check(&query).expect("the law holds");
            }
        }
    }
}
