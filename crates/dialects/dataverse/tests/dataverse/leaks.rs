//! Hidden data: collections for named users only, deaccessioned versions, authors of an anonymous preview.

use axum::body::Body;
use http::StatusCode;
use serde_json::json;

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_collection_is_there_for_nobody_else() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, named) = (server.user("fiona").await?, server.user("named").await?);
    let (stranger, boss) = (server.user("stranger").await?, server.user("boss").await?);
    let made = server.send("", "PUT", "/api/admin/superuser/boss", "", "true").await?;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text());
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "tides.txt", b"high low", &json!({})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    server.publish(&fiona, "tides", dataset).await?;
    let paths = [
        "/api/dataverses/tides".to_owned(),
        format!("/api/datasets/{dataset}"),
        format!("/api/datasets/:persistentId?persistentId={pid}"),
        format!("/api/datasets/{dataset}/versions/1.0"),
        format!("/api/datasets/{dataset}/versions/1.0/files"),
        format!("/api/datasets/export?exporter=ddi&persistentId={pid}"),
        format!("/api/files/{file}"),
        format!("/api/access/datafile/{file}"),
    ];
    for path in &paths {
        assert_eq!(server.get(&stranger, path).await?.status, StatusCode::OK, "{path}");
    }
    let keep =
        server.send(&boss, "PUT", "/api/dataverses/tides/locallyFairRoleAssignees/@named", "", Body::empty());
    assert_eq!(keep.await?.status, StatusCode::OK);
    for path in &paths {
        assert_eq!(server.get(&named, path).await?.status, StatusCode::OK, "{path}");
        for (who, key) in [("a guest", ""), ("a stranger", stranger.as_str())] {
            assert_eq!(server.get(key, path).await?.status, StatusCode::NOT_FOUND, "{who}: {path}");
        }
    }
    let count = async |key: &str| -> Result<i64, Failure> {
        let search = "/api/search?q=*&show_facets=true&show_type_counts=true";
        let json = server.get(key, search).await?.json();
        let facets = json["data"]["facets"][0].as_object().map_or(0, serde_json::Map::len);
        let n = json["data"]["total_count"].as_i64().unwrap_or(-1);
        assert_eq!(facets == 0, n == 0, "{json}");
        Ok(n)
    };
    assert_eq!((count("").await?, count(&stranger).await?, count(&named).await?), (0, 0, 3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_version_is_for_editors() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    server.upload(&fiona, &add, "tides.txt", b"high low", &json!({})).await?;
    server.publish(&fiona, "tides", dataset).await?;
    let withdraw = format!("/api/datasets/{dataset}/versions/1.0/deaccession");
    let body = json!({"deaccessionReason": "Wrong gauge."});
    let got = server.json(&fiona, "POST", &withdraw, &body).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    for version in ["1.0", ":latest", ":latest-published"] {
        let path = format!("/api/datasets/{dataset}/versions/{version}/files?includeDeaccessioned=true");
        assert_eq!(server.get(&fiona, &path).await?.status, StatusCode::OK, "{version}");
        for key in ["", stranger.as_str()] {
            assert_eq!(server.get(key, &path).await?.status, StatusCode::NOT_FOUND, "{version}");
        }
    }
    let shown = server.get(&stranger, &format!("/api/datasets/{dataset}")).await?.json();
    assert!(shown["data"]["latestVersion"].is_null(), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anonymous_preview_names_no_author() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "tides.csv", b"day,height\nMonday,2\n", &json!({})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    let path = format!("/api/datasets/{dataset}/previewUrl?anonymizedAccess=true");
    let refused = server.send(&fiona, "POST", &path, "", Body::empty()).await?;
    assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE, "no field is withheld yet: {}", refused.text());
    let setting = "/api/admin/settings/:AnonymizedFieldTypeNames";
    server.send("", "PUT", setting, "", "author, datasetContact").await?;
    let got = server.send(&fiona, "POST", &path, "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let token = got.json()["data"]["token"].as_str().unwrap_or_default().to_owned();
    let preview = format!("/api/datasets/privateUrlDatasetVersion/{token}");
    for path in [preview.clone(), format!("{preview}/citation")] {
        let got = server.get("", &path).await?;
        assert_eq!(got.status, StatusCode::OK, "{path}: {}", got.text());
        assert!(!got.text().contains("Finch"), "{path}: {}", got.text());
    }
    let closed = [
        format!("/api/datasets/{dataset}"),
        format!("/api/datasets/{dataset}/locks"),
        format!("/api/datasets/{dataset}/metadata"),
        format!("/api/datasets/{dataset}/versions"),
        format!("/api/datasets/{dataset}/versions/:draft"),
        format!("/api/datasets/{dataset}/versions/:draft/citation"),
        format!("/api/datasets/{dataset}/versions/:draft/citation/BibTeX"),
        format!("/api/datasets/{dataset}/versions/:draft/compare/:latest"),
        format!("/api/datasets/{dataset}/versions/:draft/linkset"),
        format!("/api/datasets/{dataset}/versions/:draft/metadata"),
        format!("/api/datasets/{dataset}/versions/compareSummary"),
        format!("/api/datasets/export?exporter=schema.org&version=:draft&persistentId={pid}"),
        format!("/api/datasets/export?exporter=ddi&version=:latest&persistentId={pid}"),
        format!("/api/files/{file}"),
        format!("/api/files/{file}/versionDifferences"),
        format!("/api/files/{file}/versions/:draft/citation"),
        format!("/api/access/datafile/{file}/metadata/ddi"),
        format!("/api/access/datafile/bundle/{file}"),
        format!("/api/v1/access/datafile/{file}/metadata"),
        format!("/dataset.xhtml?persistentId={pid}"),
        format!("/file.xhtml?fileId={file}"),
        "/api/search?q=*".to_owned(),
        "/api/mydata/retrieve?role_ids=1".to_owned(),
    ];
    for path in &closed {
        let got = server.get(&token, path).await?;
        assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{path}: {}", got.text());
        assert!(!got.text().contains("Finch"), "{path}: {}", got.text());
        let separator = if path.contains('?') { '&' } else { '?' };
        let by_query = server.get("", &format!("{path}{separator}key={token}")).await?;
        assert_eq!(by_query.status, StatusCode::UNAUTHORIZED, "{path}: {}", by_query.text());
    }
    for path in [format!("/api/access/datafile/{file}"), format!("/api/v1/access/datafile/{file}")] {
        let got = server.get(&token, &path).await?;
        assert_eq!(got.status, StatusCode::OK, "{path}: {}", got.text());
        assert_eq!(server.get("", &path).await?.status, StatusCode::FORBIDDEN, "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_with_names_shows_its_dataset_alone() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let (other, _) = server.dataset(&fiona, "winds").await?;
    let path = format!("/api/datasets/{dataset}/previewUrl");
    let got = server.send(&fiona, "POST", &path, "", Body::empty()).await?;
    let token = got.json()["data"]["token"].as_str().unwrap_or_default().to_owned();
    let shown = server.get(&token, &format!("/api/datasets/{dataset}/versions/:draft")).await?;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text());
    assert!(shown.text().contains("Finch"), "{}", shown.text());
    let hidden = server.get(&token, &format!("/api/datasets/{other}/versions/:draft")).await?;
    assert_eq!(hidden.status, StatusCode::UNAUTHORIZED, "{}", hidden.text());
    let found = server.get(&token, "/api/search?q=*&type=dataset").await?.json();
    assert_eq!(found["data"]["total_count"], 1, "{found}");
    Ok(())
}

/// Creates a published dataset of two files that require a guestbook entry. Returns (dataset, files).
async fn guarded(server: &Server, owner: &str) -> Result<(i64, [i64; 2]), Failure> {
    let (dataset, _) = server.dataset(owner, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let mut files = [0, 0];
    for (id, name) in files.iter_mut().zip(["a.txt", "b.csv"]) {
        let got = server.upload(owner, &add, name, b"day,height\nMonday,2\n", &json!({})).await?.json();
        *id = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    }
    let body = json!({"name": "Who reads", "enabled": true, "emailRequired": false, "nameRequired": true});
    let got = server.json(owner, "POST", "/api/guestbooks/tides", &body).await?;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
    let guestbook = got.json()["data"]["id"].as_i64().unwrap_or_default();
    let set = format!("/api/datasets/{dataset}/guestbook");
    let got = server.send(owner, "PUT", &set, "", guestbook.to_string()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    server.publish(owner, "tides", dataset).await?;
    Ok((dataset, files))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_guestbook_is_signed_by_everybody_but_editors() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (reader, boss) = (server.user("reader").await?, server.user("boss").await?);
    server.send("", "PUT", "/api/admin/superuser/boss", "", "true").await?;
    let (dataset, [a, b]) = guarded(&server, &fiona).await?;
    let (open, _) = server.dataset(&fiona, "winds").await?;
    let add = format!("/api/datasets/{open}/add");
    let got = server.upload(&fiona, &add, "c.txt", b"calm", &json!({})).await?.json();
    let unasked = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    server.publish(&fiona, "winds", open).await?;
    let grant = json!({"assignee": "@reader", "role": "fileDownloader"});
    let assign = format!("/api/datasets/{dataset}/assignments");
    let got = server.json(&fiona, "POST", &assign, &grant).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let ways = [
        format!("/api/access/datafile/{a}?x=1"),
        format!("/api/access/datafile/{b}?format=original"),
        format!("/api/access/datafile/bundle/{b}?x=1"),
        format!("/api/access/datafiles/{a},{b}?x=1"),
        format!("/api/access/datafiles/{unasked},{a}?x=1"),
        format!("/api/access/dataset/{dataset}?x=1"),
        format!("/api/access/dataset/{dataset}/versions/1.0?x=1"),
    ];
    for way in &ways {
        for path in [way.clone(), format!("{way}&gbrecs=true"), format!("{way}&signed=true&gbrecs=true")] {
            for (who, key) in
                [("a guest", ""), ("a stranger", stranger.as_str()), ("a reader", reader.as_str())]
            {
                let got = server.get(key, &path).await?;
                assert_eq!(got.status, StatusCode::BAD_REQUEST, "{who}: {path}: {}", got.text());
            }
            for (who, key) in [("an editor", fiona.as_str()), ("a superuser", boss.as_str())] {
                let got = server.get(key, &path).await?;
                assert_eq!(got.status, StatusCode::OK, "{who}: {path}: {}", got.text());
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signed_a_guestbook_downloads_once_more_and_is_entered_once() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (_, [a, b]) = guarded(&server, &fiona).await?;
    let count = async || -> Result<i64, Failure> {
        let list = server.get(&fiona, "/api/guestbooks/tides/list?includeStats=true").await?.json();
        Ok(list["data"][0]["responseCount"].as_i64().unwrap_or(-1))
    };
    let path = format!("/api/access/datafile/{a}");
    let answer = json!({"guestbookResponse": {"answers": []}});
    let refused = server.json("", "POST", &path, &answer).await?;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "a guest has no name: {}", refused.text());
    for (who, key, answer) in [
        ("a guest", "", json!({"guestbookResponse": {"name": "Guest, Gerda", "answers": []}})),
        ("a stranger", stranger.as_str(), answer),
    ] {
        let before = count().await?;
        let got = server.json(key, "POST", &path, &answer).await?;
        assert_eq!(got.status, StatusCode::OK, "{who}: {}", got.text());
        let url = got.json()["data"]["signedUrl"].as_str().unwrap_or_default().to_owned();
        let signed = url.split_once("://").and_then(|it| it.1.find('/').map(|at| it.1[at..].to_owned()));
        let signed = signed.unwrap_or_default();
        let got = server.get("", &signed).await?;
        assert_eq!(got.status, StatusCode::OK, "{who}: {signed}: {}", got.text());
        // The signature is only valid for that file.
        let other = signed.replace(&format!("datafile/{a}"), &format!("datafile/{b}"));
        assert_eq!(server.get("", &other).await?.status, StatusCode::UNAUTHORIZED, "{who}: {other}");
        assert_eq!(count().await?, before + 1, "{who}: one entry for one download");
    }
    assert_eq!(count().await?, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_restricted_table_holds_is_told_by_no_export() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    server.upload(&fiona, &add, "open.csv", b"openday\n1\n2\n", &json!({})).await?;
    let described = json!({"restrict": "true"});
    server.upload(&fiona, &add, "closed.csv", b"diagnosis\n7\n9\n", &described).await?;
    server.publish(&fiona, "tides", dataset).await?;
    for format in ["ddi", "oai_ddi", "html", "croissant", "dataverse_json", "schema.org", "OAI_ORE"] {
        let path = format!("/api/datasets/export?exporter={format}&persistentId={pid}");
        let got = server.get("", &path).await?;
        assert_eq!(got.status, StatusCode::OK, "{format}: {}", got.text());
        assert!(!got.text().contains("diagnosis"), "{format}: {}", got.text());
        if format == "ddi" {
            assert!(got.text().contains("openday"), "{format}: {}", got.text());
        }
    }
    let found = server.get("", "/api/search?q=diagnosis").await?.json();
    assert_eq!(found["data"]["total_count"], 0, "{found}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_by_place_finds_what_the_caller_may_see() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("gustav").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let degrees = |name: &str, value: &str| json!({"typeName": name, "value": value});
    let area = json!({
        "westLongitude": degrees("westLongitude", "10"), "eastLongitude": degrees("eastLongitude", "20"),
        "southLatitude": degrees("southLatitude", "30"), "northLatitude": degrees("northLatitude", "40"),
    });
    let body = json!({"fields": [{"typeName": "geographicBoundingBox", "value": [area]}]});
    let edit = format!("/api/datasets/{dataset}/editMetadata");
    let got = server.json(&fiona, "PUT", &edit, &body).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let search = |at: &str, radius: &str| format!("/api/search?q=*&geo_point={at}&geo_radius={radius}");
    let check = async |expected: [(&str, &str, &str, u64); 5]| -> Result<(), Failure> {
        for (key, at, radius, n) in expected {
            let got = server.get(key, &search(at, radius)).await?;
            assert_eq!(got.json()["data"]["total_count"], n, "{at} {radius}: {}", got.text());
        }
        Ok(())
    };
    let (near, far) = ("35,15", "0,0");
    check([
        (&fiona, near, "5", 1),
        (&fiona, far, "5", 0),
        (&fiona, far, "inf", 1),
        (&stranger, near, "5", 0),
        ("", near, "5", 0),
    ])
    .await?;
    server.publish(&fiona, "tides", dataset).await?;
    check([
        (&fiona, near, "5", 1),
        (&stranger, near, "5", 1),
        ("", near, "5", 1),
        ("", far, "5", 0),
        ("", "41,15", "112", 1),
    ])
    .await?;
    for (at, radius) in [("91,0", "5"), ("35", "5"), ("35,15", "0"), ("35,15", "NaN"), ("NaN,15", "5")] {
        let got = server.get("", &search(at, radius)).await?;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{at} {radius}: {}", got.text());
    }
    Ok(())
}

/// Lists of downloads and the tree of collections show only public objects.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_name_nothing_that_is_hidden() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let boss = server.user("boss").await?;
    server.send("", "PUT", "/api/admin/superuser/boss", "", "true").await?;
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let added = async |name: &str| {
        let got = server.upload(&fiona, &add, name, name.as_bytes(), &json!({})).await?.json();
        Ok::<_, Failure>(got["data"]["files"][0]["dataFile"]["id"].clone())
    };
    let published = added("high.txt").await?;
    server.publish(&fiona, "tides", dataset).await?;
    let draft = added("low.txt").await?;
    for (key, file) in
        [("", &published), (fiona.as_str(), &published), ("", &published), (fiona.as_str(), &draft)]
    {
        let path = format!("/api/access/datafile/{file}");
        let got = server.send(key, "HEAD", &path, "", Body::empty()).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        let got = server.get(key, &path).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    }
    let metrics = async |name: &str| {
        Ok::<_, Failure>(server.get("", &format!("/api/info/metrics/{name}")).await?.json()["data"].clone())
    };
    assert_eq!(metrics("filedownloads").await?, json!([{"id": published, "pid": "", "count": 3}]));
    assert_eq!(metrics("uniquefiledownloads").await?, json!([{"id": published, "pid": "", "count": 2}]));
    let by_month = json!([{"date": "2026-02", "pid": pid, "count": 2}]);
    assert_eq!(metrics("uniquedownloads/monthly").await?, by_month);
    assert_eq!(metrics("uniquedownloads/toMonth/2026-01").await?, json!([]));
    assert!(metrics("tree").await?.to_string().contains("tides"));
    assert!(!metrics("tree/toMonth/2026-01").await?.to_string().contains("tides"));
    let fair = "/api/dataverses/tides/locallyFairRoleAssignees/@fiona";
    let got = server.send(&boss, "PUT", fair, "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    for name in ["filedownloads", "uniquefiledownloads", "uniquedownloads", "uniquedownloads/monthly"] {
        assert_eq!(metrics(name).await?, json!([]), "{name}");
    }
    assert!(!metrics("tree").await?.to_string().contains("tides"));
    assert!(!server.get("", "/sitemap.xml").await?.text().contains("tides"));
    Ok(())
}

/// A site that hides mail addresses shows them only to users who may edit the dataset, by every route.
#[tokio::test(flavor = "multi_thread")]
async fn mail_addresses_that_the_site_hides_are_for_editors() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    server.publish(&fiona, "tides", dataset).await?;
    server.send("", "PUT", "/api/admin/settings/:ExcludeEmailFromExport", "", "true").await?;
    let by_pid = format!("persistentId={pid}");
    let url = format!("/api/datasets/{dataset}/previewUrl");
    let edited = format!("/api/datasets/{dataset}/editMetadata?replace=true");
    let fields = json!({"fields": [{"typeName": "title", "value": "Other readings"}]});
    server.json(&fiona, "PUT", &edited, &fields).await?;
    let got = server.send(&fiona, "POST", &url, "", Body::empty()).await?;
    let token = got.json()["data"]["token"].as_str().unwrap_or_default().to_owned();
    for (path, is_for_editors) in [
        (format!("/api/datasets/{dataset}?"), true),
        (format!("/api/datasets/:persistentId?{by_pid}&"), true),
        (format!("/api/datasets/{dataset}/versions?"), true),
        (format!("/api/datasets/{dataset}/versions/1.0?"), true),
        (format!("/api/datasets/{dataset}/versions/1.0/metadata?"), true),
        (format!("/api/datasets/{dataset}/versions/1.0/metadata/citation?"), true),
        (format!("/api/datasets/privateUrlDatasetVersion/{token}?"), false),
        (format!("/api/datasets/export?exporter=dataverse_json&{by_pid}&"), false),
    ] {
        let path = format!("{path}ignoreSettingExcludeEmailFromExport=true");
        for key in ["", stranger.as_str(), token.as_str()] {
            let got = server.get(key, &path).await?;
            assert_eq!(got.status, StatusCode::OK, "{path}: {}", got.text());
            assert!(!got.text().contains("a@example.org"), "{path}: {}", got.text());
        }
        let got = server.get(&fiona, &path).await?;
        assert_eq!(got.text().contains("a@example.org"), is_for_editors, "{path}: {}", got.text());
    }
    let shown = "show_relevance=true&show_facets=true&metadata_fields=citation:*";
    for q in ["*", "datasetContactEmail:*", "\"a@example.org\"", "example.org"] {
        let q = q.replace('"', "%22");
        let got = server.get("", &format!("/api/search?type=dataset&{shown}&q={q}")).await?;
        assert_eq!(got.status, StatusCode::OK, "{q}: {}", got.text());
        assert_eq!(got.json()["data"]["total_count"], u64::from(q == "*"), "{q}: {}", got.text());
        let items = got.json()["data"]["items"].to_string();
        assert!(!items.contains("a@example.org"), "{q}: {items}");
    }
    Ok(())
}

/// Thumbnails of datasets are public, so restricted images and images in the draft are never used.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_a_dataset_shows_no_restricted_image() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let added = async |name: &str, described: &serde_json::Value| {
        let got = server.upload(&fiona, &add, name, crate::outside::PNG, described).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        Ok::<_, Failure>(got.json()["data"]["files"][0]["dataFile"]["id"].to_string())
    };
    let choose = async |file: &str| {
        let path = format!("/api/datasets/{dataset}/thumbnail/{file}");
        let got = server.send(&fiona, "POST", &path, "", Body::empty()).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        Ok::<_, Failure>(())
    };
    let shown = async || {
        let mut seen = Vec::new();
        for key in ["", stranger.as_str()] {
            for path in ["thumbnail", "logo"] {
                seen.push(server.get(key, &format!("/api/datasets/{dataset}/{path}")).await?.status);
            }
        }
        Ok::<_, Failure>(seen)
    };
    let closed = added("closed.png", &json!({"restrict": "true"})).await?;
    choose(&closed).await?;
    server.publish(&fiona, "tides", dataset).await?;
    assert_eq!(shown().await?, [StatusCode::NOT_FOUND; 4], "it is restricted");
    let late = added("late.png", &json!({})).await?;
    choose(&late).await?;
    assert_eq!(shown().await?, [StatusCode::NOT_FOUND; 4], "the draft alone has it");
    server.publish(&fiona, "tides", dataset).await?;
    assert_eq!(shown().await?, [StatusCode::OK; 4]);
    Ok(())
}
