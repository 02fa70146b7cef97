//! Meaning of the query syntax.

use http::StatusCode;
use serde_json::json;

use crate::server::{Failure, Server};

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
