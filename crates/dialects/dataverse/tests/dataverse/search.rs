//! Meaning of the query syntax, the order of results, and who finds what.

use http::StatusCode;
use serde_json::json;

use crate::server::{Described, Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn ranges_compare_numbers_as_numbers_and_dates_as_dates() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let size = json!({"typeName": "targetSampleActualSize", "multiple": false, "typeClass": "primitive", "value": "100"});
    let fields = json!({"fields": [
        {"typeName": "targetSampleSize", "multiple": false, "typeClass": "compound", "value": {"targetSampleActualSize": size}},
        {"typeName": "productionDate", "multiple": false, "typeClass": "primitive", "value": "2019-05-01"},
        {"typeName": "distributionDate", "multiple": false, "typeClass": "primitive", "value": "2014-05"},
    ]});
    let got = server
        .json(&fiona, "PUT", &format!("/api/datasets/{dataset}/editMetadata?replace=true"), &fields)
        .await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    for (query, n) in [
        ("targetSampleActualSize:[90 TO 110]", 1),
        ("targetSampleActualSize:[90 TO *]", 1),
        ("targetSampleActualSize:[1000 TO 2000]", 0),
        ("targetSampleActualSize:[10 TO 20]", 0),
        ("targetSampleActualSize:{100 TO 110]", 0),
        ("targetSampleActualSize:100", 1),
        ("productionDate:[2019 TO 2019]", 1),
        ("productionDate:[2018-12-01 TO 2019-05]", 1),
        ("productionDate:[2020 TO *]", 0),
        ("distributionDate:[2014-05-10 TO 2014-06]", 1),
        ("distributionDate:[2014-06-10 TO *]", 0),
        ("distributionDate:[* TO 2014-04-30]", 0),
        ("g?uge", 1),
        ("title:ga*e", 1),
        ("title:g?ge", 0),
        ("gauge?", 1),
        ("dateSort:[NOW-1DAY TO NOW]", 1),
        ("dateSort:[* TO NOW/DAY]", 0),
        ("isHarvested:false", 1),
        ("isHarvested:true", 0),
    ] {
        let q: String = query.bytes().map(|it| format!("%{it:02X}")).collect();
        let found = server.get(&fiona, &format!("/api/search?type=dataset&q={q}")).await?.json();
        assert_eq!(found["data"]["total_count"], n, "{query}: {found}");
    }
    let wrong = server.get(&fiona, "/api/search?q=dateSort:%5BNOW-1WEEK%20TO%20NOW%5D").await?;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{}", wrong.text());
    Ok(())
}

/// Returns the titles of a search, in order.
async fn titles(server: &Server, key: &str, query: &str) -> Result<Vec<String>, Failure> {
    let found =
        server.get(key, &format!("/api/search?type=dataset&show_relevance=true&{query}")).await?.json();
    let items = found["data"]["items"].as_array().ok_or_else(|| found.to_string())?;
    let name = |it: &serde_json::Value| it["name"].as_str().map(str::to_owned);
    items.iter().map(|it| name(it).ok_or_else(|| format!("no name: {it}").into())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_ordered_by_the_fields_that_contain_the_words() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    server.dataset(&fiona, "tides").await?;
    for (title, author, description) in [
        ("Of a harbour", "Finch, Fiona", "No other place."),
        ("One", "Finch, Fiona", "Currents of the harbour."),
        ("Two", "Harbour, Ann", "Nothing."),
        ("Harbours of the north", "Harbour, Ann", "Each harbour."),
        ("Four", "Finch, Fiona", "The harbourmaster."),
    ] {
        server.described(&fiona, "tides", &Described { title, author, description }).await?;
    }
    let by_weight = ["Harbours of the north", "Two", "Of a harbour", "One"];
    assert_eq!(titles(&server, &fiona, "q=harbour").await?, by_weight);
    assert_eq!(titles(&server, &fiona, "q=HARBOURS").await?, by_weight);
    assert_eq!(titles(&server, &fiona, "q=harbour&start=1&per_page=2").await?, by_weight[1..3]);
    assert_eq!(titles(&server, &fiona, "q=harbour+currents").await?[0], "Harbours of the north");
    let found = server.get(&fiona, "/api/search?q=harbour&type=dataset&show_relevance=true").await?.json();
    let scores: Vec<f64> = found["data"]["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["score"].as_f64())
        .collect();
    assert_eq!(scores, [401.0, 181.0, 131.0, 91.0], "{found}");
    Ok(())
}

/// Above the number of grants that are read one by one.
const MANY: usize = 205;

#[tokio::test(flavor = "multi_thread")]
async fn a_depositor_of_many_datasets_finds_them() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, rob) = (server.user("fiona").await?, server.user("rob").await?);
    let (first, _) = server.dataset(&fiona, "tides").await?;
    for n in 1..MANY {
        let title = format!("Reading {n}");
        server.described(&fiona, "tides", &Described { title: &title, ..Described::default() }).await?;
    }
    // How many a search finds, and the collection lists.
    let count = async |key: &str| -> Result<(usize, usize), Failure> {
        let found = server.get(key, "/api/search?q=*&type=dataset").await?.json();
        let listed = server.get(key, "/api/dataverses/tides/contents").await?.json();
        let n_found = found["data"]["total_count"].as_u64().ok_or_else(|| found.to_string())?;
        let listed = listed["data"].as_array().ok_or_else(|| listed.to_string())?;
        Ok((usize::try_from(n_found)?, listed.len()))
    };
    let published = server.json(&fiona, "POST", "/api/dataverses/tides/actions/:publish", &json!({})).await?;
    assert_eq!(published.status, StatusCode::OK, "{}", published.text());
    assert_eq!((count(&fiona).await?, count(&rob).await?), ((MANY, MANY), (0, 0)));
    let path = format!("/api/datasets/{first}/assignments");
    let assigned = server.json(&fiona, "POST", &path, &json!({"assignee": "@rob", "role": "member"})).await?;
    assert_eq!(assigned.status, StatusCode::OK, "{}", assigned.text());
    assert_eq!((count(&fiona).await?, count(&rob).await?), ((MANY, MANY), (1, 1)));
    // Without the grant, neither dataset nor list is shown any more.
    let assignment = assigned.json()["data"]["id"].clone();
    let removed = server.send(&fiona, "DELETE", &format!("{path}/{assignment}"), "", "").await?;
    assert_eq!(removed.status, StatusCode::OK, "{}", removed.text());
    assert_eq!((count(&fiona).await?, count(&rob).await?), ((MANY, MANY), (0, 0)));
    Ok(())
}
