//! Conditions that very many holdings or items satisfy, and facets of these: counted as the instances are, however the
//! records are joined.

use std::collections::BTreeMap;
use std::time::Duration;

use pinakes_folio::Settings;
use pinakes_store::Limits;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

/// More than are named by their ids.
const N_INSTANCES: usize = 1_500;
const BATCH: usize = 500;
const MAIN: &str = "fcd64ce1-6995-48f0-840e-89ffa2288371";
const ANNEX: &str = "53cf956f-c1df-410b-8bea-27f712cca7c0";

fn id(kind: usize, n: usize) -> String {
    format!("00000000-0000-4000-8{kind:03}-{n:012}")
}

fn is_in_annex(n: usize) -> bool {
    n % 4 == 1
}

fn is_missing(n: usize) -> bool {
    n % 5 == 2
}

fn instance(n: usize) -> Value {
    let title = format!("Volume {} of {}", n % 10, ["tides", "winds"][n % 2]);
    json!({"id": id(1, n), "source": "FOLIO", "title": title, "instanceTypeId": "30fffe0e-e985-4144-b2e2-1e8179bdb41f"})
}

fn holdings(n: usize) -> Value {
    json!({
        "id": id(2, n), "instanceId": id(1, n), "callNumber": format!("QA {n}"),
        "permanentLocationId": if is_in_annex(n) { ANNEX } else { MAIN },
        "sourceId": "f32d531e-df79-46b3-8932-cdd35f7a2264",
    })
}

fn item(n: usize) -> Value {
    json!({
        "id": id(3, n), "holdingsRecordId": id(2, n), "barcode": format!("b{n}"),
        "materialTypeId": "1a54b431-2e4f-452d-9cae-9cee66c9a892",
        "permanentLoanTypeId": "2b94c631-fca9-4892-a730-03ee529ffe27",
        "status": {"name": if is_missing(n) { "Missing" } else { "Available" }},
    })
}

/// Checks the number of records that a query on `path` finds.
async fn check(server: &Server, path: &str, query: &str, expected: usize) -> Result<(), Failure> {
    let found = server.asked(&format!("admin GET {path}?query={query}&limit=0"), 200).await?;
    assert_eq!(found["totalRecords"], expected, "{path} {query}");
    Ok(())
}

/// Checks facets of items and holdings of the instances that a query finds.
async fn check_facets(server: &Server, query: &str, holds: impl Fn(usize) -> bool) -> Result<(), Failure> {
    const ASKED: &str =
        "facet=items.status.name&facet=items.effectiveLocationId&facet=holdings.permanentLocationId";
    let found =
        server.asked(&format!("admin GET /search/instances/facets?query={query}&{ASKED}"), 200).await?;
    let counts = |value: fn(usize) -> &'static str| -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        (0..N_INSTANCES).filter(|n| holds(*n)).for_each(|n| *counts.entry(value(n)).or_default() += 1);
        counts
    };
    let place: fn(usize) -> &'static str = |n| if is_in_annex(n) { ANNEX } else { MAIN };
    for (facet, value) in [
        ("items.status.name", (|n| if is_missing(n) { "Missing" } else { "Available" }) as fn(usize) -> _),
        ("items.effectiveLocationId", place),
        ("holdings.permanentLocationId", place),
    ] {
        let shown: BTreeMap<&str, u64> = found["facets"][facet]["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| Some((it["id"].as_str()?, it["totalRecords"].as_u64()?)))
            .collect();
        assert_eq!(shown, counts(value), "{facet} {query}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_records_are_joined() -> Result<(), Failure> {
    for engine in Engine::all() {
        let settings = Settings { batch_records: BATCH, ..site() };
        let server = Server::start_with(engine, Limits::default(), settings).await?;
        for (path, list, make) in [
            ("/instance-storage", "instances", instance as fn(usize) -> Value),
            ("/holdings-storage", "holdingsRecords", holdings),
            ("/item-storage", "items", item),
        ] {
            for begin in (0..N_INSTANCES).step_by(BATCH) {
                let records: Vec<Value> = (begin..begin + BATCH).map(make).collect();
                let body = json!({ list: records });
                server.asked(&format!("admin POST {path}/batch/synchronous\n{body}"), 201).await?;
            }
        }
        let count = |holds: &dyn Fn(usize) -> bool| (0..N_INSTANCES).filter(|n| holds(*n)).count();
        for is_indexed in [false, true] {
            if is_indexed {
                let tenant = server.tenant("diku")?;
                assert!(tenant.wait_for_indexes(Duration::from_secs(120))?, "the index follows");
            }
            let instances = "/search/instances";
            for (path, query, expected) in [
                (instances, "items.status.name==Available".to_owned(), count(&|n| !is_missing(n))),
                (
                    instances,
                    format!("items.effectiveLocationId=={MAIN} and title all \"tides\""),
                    count(&|n| !is_in_annex(n) && n % 2 == 0),
                ),
                (instances, format!("holdings.permanentLocationId=={ANNEX}"), count(&is_in_annex)),
                (
                    instances,
                    format!("cql.allRecords=1 not holdings.permanentLocationId=={MAIN}"),
                    count(&is_in_annex),
                ),
                (instances, "items.barcode==b77".to_owned(), 1),
                (
                    instances,
                    "holdings.normalizedCallNumbers==\"qa 1*\"".to_owned(),
                    count(&|n| n.to_string().starts_with('1')),
                ),
                ("/item-storage/items", "instance.title all \"volume\"".to_owned(), N_INSTANCES),
                (
                    "/item-storage/items",
                    "instance.title all \"winds\" and status.name==Missing".to_owned(),
                    count(&|n| n % 2 == 1 && is_missing(n)),
                ),
                (
                    "/holdings-storage/holdings",
                    "item.status.name==Available".to_owned(),
                    count(&|n| !is_missing(n)),
                ),
            ] {
                check(&server, path, &query, expected).await?;
            }
            check_facets(&server, "cql.allRecords=1", |_| true).await?;
            check_facets(&server, "title all \"winds\"", |n| n % 2 == 1).await?;
            check_facets(&server, "items.status.name==Missing", is_missing).await?;
        }
    }
    Ok(())
}

/// Instances that are read together get their own holdings and items, however many one of them has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn harvesters_get_what_belongs_to_each_instance() -> Result<(), Failure> {
    const N: usize = 70;
    const N_ITEMS_OF_ONE: usize = 1_050;
    for engine in Engine::all() {
        let settings = Settings { batch_records: 2 * N_ITEMS_OF_ONE, ..site() };
        let server = Server::start_with(engine, Limits::default(), settings).await?;
        let of_one = (0..N_ITEMS_OF_ONE).map(|n| {
            let mut item = item(N + n);
            item["holdingsRecordId"] = id(2, 5).into();
            item
        });
        let mut hidden = item(N + N_ITEMS_OF_ONE);
        hidden["holdingsRecordId"] = id(2, 6).into();
        hidden["discoverySuppress"] = true.into();
        for (path, list, records) in [
            ("/instance-storage", "instances", (0..N).map(instance).collect::<Vec<Value>>()),
            ("/holdings-storage", "holdingsRecords", (0..N - 1).map(holdings).collect()),
            ("/item-storage", "items", (0..N - 2).map(item).chain(of_one).chain([hidden]).collect()),
        ] {
            let body = json!({ list: records });
            server.asked(&format!("admin POST {path}/batch/synchronous\n{body}"), 201).await?;
        }
        let n_items = |n: usize, shows_hidden: bool| match n {
            5 => 1 + N_ITEMS_OF_ONE,
            6 => 1 + usize::from(shows_hidden),
            n => usize::from(n < N - 2),
        };
        let check = |instance: &Value, list: &Value, items: &Value, n: usize, shows_hidden: bool| {
            assert_eq!(*instance, id(1, n));
            let ids = |list: &Value, name: &str| -> Vec<String> {
                let texts = list.as_array().into_iter().flatten().filter_map(|it| it[name].as_str());
                texts.map(str::to_owned).collect()
            };
            assert_eq!(ids(list, "id"), (0..usize::from(n < N - 1)).map(|_| id(2, n)).collect::<Vec<_>>());
            assert_eq!(ids(items, "holdingsRecordId"), vec![id(2, n); n_items(n, shows_hidden)], "{n}");
        };
        let ids: Vec<String> = (0..N).rev().chain([3, 5]).map(|n| id(1, n)).collect();
        let (_, _, lines) = server
            .ask(&format!(
                "admin POST /inventory-hierarchy/items-and-holdings\n{}",
                json!({"instanceIds": ids, "skipSuppressedFromDiscoveryRecords": true})
            ))
            .await?;
        let lines = String::from_utf8(lines)?;
        assert_eq!(lines.lines().count(), N);
        for (n, line) in (0..N).rev().zip(lines.lines()) {
            let it: Value = serde_json::from_str(line)?;
            check(&it["instanceId"], &it["holdings"], &it["items"], n, false);
        }
        let (_, _, lines) = server.ask("admin GET /oai-pmh-view/instances").await?;
        let lines = String::from_utf8(lines)?;
        assert_eq!(lines.lines().count(), N);
        for (n, line) in lines.lines().enumerate() {
            let it: Value = serde_json::from_str(line)?;
            let parts = &it["itemsandholdingsfields"];
            check(&it["instanceid"], &parts["holdings"], &parts["items"], n, true);
        }
        let view = server.asked("admin GET /inventory-view/instances?limit=100", 200).await?;
        assert_eq!(view["totalRecords"], N);
        for (n, it) in view["instances"].as_array().into_iter().flatten().enumerate() {
            check(&it["instanceId"], &it["holdingsRecords"], &it["items"], n, true);
        }
    }
    Ok(())
}
