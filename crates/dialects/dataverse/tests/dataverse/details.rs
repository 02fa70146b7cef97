//! Answers that programs written for the original rely on: links, versions of a file, names of files, signed URLs.

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::answers::check;
use crate::server::{Failure, Server};

/// Creates a collection without anything in it, and returns its number.
async fn collection(server: &Server, key: &str, alias: &str) -> Result<i64, Failure> {
    let body =
        json!({"alias": alias, "name": alias, "dataverseContacts": [{"contactEmail": "a@example.org"}]});
    let got = server.json(key, "POST", "/api/dataverses/root", &body).await?;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
    Ok(got.json()["data"]["id"].as_i64().unwrap_or_default())
}

/// Uploads a file, and returns its number and name.
async fn uploaded(
    server: &Server,
    key: &str,
    dataset: i64,
    name: &str,
    bytes: &str,
) -> Result<(i64, String), Failure> {
    let path = format!("/api/datasets/{dataset}/add");
    let got = server.upload(key, &path, name, bytes.as_bytes(), &json!({})).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let file = &got.json()["data"]["files"][0];
    let label = file["label"].as_str().unwrap_or_default().to_owned();
    Ok((file["dataFile"]["id"].as_i64().unwrap_or_default(), label))
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_removed_once() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let shown = server.get(&fiona, "/api/dataverses/tides").await?.json();
    let tides = shown["data"]["id"].as_i64().unwrap_or_default();
    let coast = collection(&server, &fiona, "coast").await?;
    let (of_dataset, of_collection) = (format!("/api/datasets/{dataset}"), "/api/dataverses/tides");
    check(
        &server,
        &boss,
        &[
            ("PUT", format!("{of_dataset}/link/coast"), Value::Null, 200, "linked successfully to coast"),
            (
                "DELETE",
                format!("{of_dataset}/deleteLink/coast"),
                Value::Null,
                200,
                &format!("Link from Dataset {dataset} to linked Dataverse coast deleted"),
            ),
            (
                "DELETE",
                format!("{of_dataset}/deleteLink/coast"),
                Value::Null,
                404,
                &format!(
                    "Dataset linking dataverse with dataset ID {dataset} and dataset linking dataverse ID {coast} not \
                     found."
                ),
            ),
            (
                "PUT",
                format!("{of_collection}/link/coast"),
                Value::Null,
                200,
                "Dataverse tides linked successfully to coast",
            ),
            (
                "DELETE",
                format!("{of_collection}/deleteLink/coast"),
                Value::Null,
                200,
                "Link from Dataverse tides to linked Dataverse coast deleted",
            ),
            (
                "DELETE",
                format!("{of_collection}/deleteLink/coast"),
                Value::Null,
                404,
                &format!(
                    "Dataverse linking dataverse with dataverse ID {tides} and dataverse linking dataverse ID {coast} \
                     not found."
                ),
            ),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_url_ends_with_its_role() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let path = format!("/api/datasets/{dataset}/privateUrl");
    let made = server.send(&fiona, "POST", &path, "", Body::empty()).await?.json();
    let token = made["data"]["token"].as_str().unwrap_or_default().to_owned();
    let role = made["data"]["roleAssignment"]["id"].as_i64().unwrap_or_default();
    let of = |rest: &str| format!("/api/datasets/{dataset}/{rest}");
    let shown = server.get(&token, &of("versions/:draft")).await?;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text());
    check(
        &server,
        &fiona,
        &[
            ("DELETE", of(&format!("assignments/{role}")), Value::Null, 200, "Role Member revoked"),
            ("GET", path.clone(), Value::Null, 404, "Private URL not found."),
            ("GET", of("assignments"), Value::Null, 200, "@fiona"),
            ("POST", path, Value::Null, 200, "\"token\""),
        ],
    )
    .await?;
    let shown = server.get(&token, &of("versions/:draft")).await?;
    assert_eq!(shown.status, StatusCode::UNAUTHORIZED, "{}", shown.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn superusers_choose_among_all_roles() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    collection(&server, &fiona, "tides").await?;
    let role = json!({"alias": "reader", "name": "Reader", "permissions": ["DownloadFile"]});
    let got = server.json(&fiona, "POST", "/api/roles?dvo=tides", &role).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let aliases = async |key: &str| -> Result<Vec<String>, Failure> {
        let got = server.get(key, "/api/roles/userSelectable").await?.json();
        let list = got["data"].as_array().cloned().unwrap_or_default();
        Ok(list.iter().filter_map(|it| it["alias"].as_str().map(str::to_owned)).collect())
    };
    assert_eq!(aliases(&fiona).await?, ["admin"]);
    let expected = [
        "admin",
        "fileDownloader",
        "fullContributor",
        "dvContributor",
        "dsContributor",
        "contributor",
        "curator",
        "member",
        "reader",
    ];
    assert_eq!(aliases(&boss).await?, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_of_a_file_come_in_pages() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let (file, _) = uploaded(&server, &fiona, dataset, "a.txt", "high").await?;
    server.publish(&fiona, "tides", dataset).await?;
    let restrict = format!("/api/files/{file}/restrict");
    let got = server.send(&fiona, "PUT", &restrict, "", "true").await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let path = format!("/api/files/{file}/versionDifferences");
    for (query, expected) in [
        ("", vec!["DRAFT", "1.0"]),
        ("?limit=1", vec!["DRAFT"]),
        ("?limit=1&offset=1", vec!["1.0"]),
        ("?offset=2", vec![]),
        ("?limit=0", vec![]),
    ] {
        let got = server.get(&fiona, &format!("{path}{query}")).await?.json();
        let list = got["data"].as_array().cloned().unwrap_or_default();
        let versions: Vec<&str> = list.iter().filter_map(|it| it["datasetVersion"].as_str()).collect();
        assert_eq!(versions, expected, "{query}: {got}");
        assert_eq!(got["totalCount"], 2, "{query}: {got}");
    }
    // Strangers neither see the draft nor count it.
    assert_eq!(server.get("", &path).await?.json()["totalCount"], 1);
    let limit = "The limit parameter cannot be negative.";
    let offset = "The offset parameter cannot be negative.";
    check(
        &server,
        &fiona,
        &[
            ("GET", format!("{path}?limit=-1"), Value::Null, 400, limit),
            ("GET", format!("{path}?offset=-1"), Value::Null, 400, offset),
            ("GET", "/api/notifications/all?limit=-1".to_owned(), Value::Null, 400, limit),
            ("GET", "/api/notifications/all?limit=1".to_owned(), Value::Null, 200, "\"totalCount\":"),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_files_of_the_newest_version_are_described_anew() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let (other, _) = server.dataset(&fiona, "coast").await?;
    let (file, _) = uploaded(&server, &fiona, dataset, "a.txt", "high").await?;
    let (elsewhere, _) = uploaded(&server, &fiona, other, "b.txt", "low").await?;
    let (removed, _) = uploaded(&server, &fiona, dataset, "c.txt", "ebb").await?;
    server.publish(&fiona, "tides", dataset).await?;
    let got = server.send(&fiona, "DELETE", &format!("/api/files/{removed}"), "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let path = format!("/api/datasets/{dataset}/files/metadata");
    let of = |id: i64| json!({"dataFileId": id, "description": "Hourly"});
    let begin = "The following dataFileIds are not part of the current version of the Dataset: ";
    check(
        &server,
        &fiona,
        &[
            ("POST", path.clone(), json!([of(file), of(999_999)]), 400, &format!("{begin}[999999]")),
            (
                "POST",
                path.clone(),
                json!([of(elsewhere), of(removed)]),
                400,
                &format!("{begin}[{elsewhere}, {removed}]"),
            ),
            ("GET", format!("/api/files/{file}"), Value::Null, 200, "\"description\":\"\""),
            ("POST", path, json!([of(file)]), 200, "File metadata updates have been completed."),
            ("GET", format!("/api/files/{file}"), Value::Null, 200, "\"description\":\"Hourly\""),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_taken_are_counted_on() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let mut n = 0;
    let mut add = async |name: &str| {
        n += 1;
        uploaded(&server, &fiona, dataset, name, &format!("reading {n}")).await
    };
    let mut last = 0;
    for at in 0..22 {
        let (file, label) = add("a.txt").await?;
        let expected = if at == 0 { "a.txt".to_owned() } else { format!("a-{at}.txt") };
        assert_eq!(label, expected);
        if at == 19 {
            last = file;
        }
    }
    // What another extension has is free, and so is what was removed.
    assert_eq!(add("a-19.md").await?.1, "a-19.md");
    let got = server.send(&fiona, "DELETE", &format!("/api/files/{last}"), "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    for (name, expected) in [
        ("a.txt", "a-19.txt"),
        ("a.txt", "a-22.txt"),
        ("a-22.txt", "a-23.txt"),
        ("a-4.txt", "a-24.txt"),
        ("a-19.md", "a-20.md"),
        ("b-0x1.txt", "b-0x1.txt"),
        ("b-0x1.txt", "b-0x1-1.txt"),
        ("-1", "-1"),
        ("-1", "-1-1"),
        ("c-4294967296", "c-4294967296"),
        ("c-4294967296", "c-4294967296-1"),
    ] {
        assert_eq!(add(name).await?.1, expected, "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_url_may_end_in_a_slash() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    for path in [
        format!("/api/datasets/{dataset}/versions/"),
        format!("/api//datasets/{dataset}"),
        format!("/api/datasets/:persistentId/?persistentId={pid}"),
    ] {
        let body = json!({"url": format!("http://localhost{path}"), "user": "fiona", "timeOut": 10, "method": "GET"});
        let got = server.json(&boss, "POST", "/api/admin/requestSignedUrl", &body).await?;
        let signed = got.json()["data"]["signedUrl"].as_str().unwrap_or_default().to_owned();
        let local = signed.strip_prefix("http://localhost").unwrap_or_default();
        // The shell drops the slashes before the dialect sees them.
        let seen = local.replacen("//", "/", 1).replacen("/?", "?", 1);
        assert_eq!(server.get("", &seen).await?.status, StatusCode::OK, "{seen}");
        let other = seen.replacen("user=fiona", "user=boss", 1);
        assert_eq!(server.get("", &other).await?.status, StatusCode::UNAUTHORIZED, "{other}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn boxes_may_lie_across_the_180th_meridian() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let area = |west: &str, east: &str| {
        let degrees = |name: &str, value: &str| json!({"typeName": name, "value": value});
        json!({"fields": [{"typeName": "geographicBoundingBox", "value": [{
            "westLongitude": degrees("westLongitude", west), "eastLongitude": degrees("eastLongitude", east),
            "southLatitude": degrees("southLatitude", "-20"), "northLatitude": degrees("northLatitude", "-15"),
        }]}]})
    };
    let edit = format!("/api/datasets/{dataset}/editMetadata?replace=true");
    let near = |longitude: &str| format!("/api/search?q=*&geo_point=-17,{longitude}&geo_radius=10");
    check(
        &server,
        &fiona,
        &[
            ("PUT", edit.clone(), area("10", "-10"), 403, "East must be greater than West"),
            ("PUT", edit, area("177", "-178"), 200, "\"177\""),
            ("GET", near("180"), Value::Null, 200, "\"total_count\":1"),
            ("GET", near("-179"), Value::Null, 200, "\"total_count\":1"),
            ("GET", near("0"), Value::Null, 200, "\"total_count\":0"),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn short_tables_of_blocks_name_the_column_that_is_missing() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let table =
        "#metadataBlock\tname\tdataverseAlias\tdisplayName\n\tgauges\t\tGauges\n#datasetField\tname\n\t";
    let load = || "/api/admin/datasetfield/load".to_owned();
    let line = "Error parsing metadata block in DATASETFIELD part, line #4: missing";
    let case = |cells: &str| Value::String(format!("{table}{cells}\n"));
    check(
        &server,
        &boss,
        &[
            ("POST", load(), case("gaugeType"), 500, &format!("{line} 'title' column (#3)")),
            (
                "POST",
                load(),
                case("gaugeType\tType\tIts type"),
                500,
                &format!("{line} 'watermark' column (#5)"),
            ),
        ],
    )
    .await?;
    check(
        &server,
        &fiona,
        &[(
            "GET",
            "/api/admin/list-users".to_owned(),
            Value::Null,
            403,
            "Forbidden. You must be a superuser.",
        )],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_as_a_table_name_dataset_and_file() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, gustav) = (server.user("fiona").await?, server.user("gustav").await?);
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let (file, _) = uploaded(&server, &fiona, dataset, "a.txt", "high").await?;
    let guestbook = json!({"name": "Visitors", "enabled": true, "institutionRequired": true});
    let made = server.json(&fiona, "POST", "/api/guestbooks/tides", &guestbook).await?.json();
    let guestbook = made["data"]["id"].as_i64().unwrap_or_default();
    let set = format!("/api/datasets/{dataset}/guestbook");
    let got = server.send(&fiona, "PUT", &set, "", guestbook.to_string()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    server.publish(&fiona, "tides", dataset).await?;
    let answered = json!({"guestbookResponse": {"institution": "Harbour, west", "answers": []}});
    let got =
        server.json(&gustav, "POST", &format!("/api/access/datafile/{file}?signed=true"), &answered).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let got = server.get(&fiona, "/api/dataverses/tides/guestbookResponses").await?;
    let table = got.text();
    let lines: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(lines.len(), 1, "{table}");
    let line = lines[0];
    let begin = format!("Visitors,Tide gauge readings,{pid},");
    assert!(line.starts_with(&begin), "{line}");
    assert!(line.contains(&format!(",Download,a.txt,{file},,")), "{line}");
    assert!(line.contains(",\"Harbour, west\","), "{line}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptions_of_blocks_are_told_again_only_when_they_change() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    collection(&server, &fiona, "tides").await?;
    let ask = async |path: &str, known: Option<&HeaderValue>| {
        let mut request = Request::builder().uri(path).header("x-dataverse-key", fiona.as_str());
        if let Some(known) = known {
            request = request.header("if-none-match", known);
        }
        server.answered(request.body(Body::empty())?).await
    };
    let paths = [
        "/api/metadatablocks",
        "/api/metadatablocks/citation",
        "/api/dataverses/tides/metadatablocks?returnDatasetFieldTypes=true",
    ];
    let mut tags = Vec::new();
    for path in paths {
        let got = ask(path, None).await?;
        let tag = got.headers.get("etag").cloned().ok_or(path)?;
        let again = ask(path, Some(&tag)).await?;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
        tags.push(tag);
    }
    // What requires a field in a collection changes that collection's description, what loads a table changes all.
    let levels = json!([{"datasetFieldTypeName": "subtitle", "required": true, "include": true}]);
    server.json(&fiona, "PUT", "/api/dataverses/tides/inputLevels", &levels).await?;
    let changed =
        async |at: usize| Ok::<_, Failure>(ask(paths[at], Some(&tags[at])).await?.status == StatusCode::OK);
    assert_eq!((changed(1).await?, changed(2).await?), (false, true));
    let table = "#metadataBlock\tname\tdataverseAlias\tdisplayName\n\tgauges\t\tGauges\n";
    let loaded = server.send(&boss, "POST", "/api/admin/datasetfield/load", "text/plain", table).await?;
    assert_eq!(loaded.status, StatusCode::OK, "{}", loaded.text());
    assert_eq!((changed(0).await?, changed(1).await?), (true, true));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn block_facets_are_inherited_until_a_collection_has_its_own() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    collection(&server, &fiona, "tides").await?;
    let below =
        json!({"name": "Waves", "alias": "waves", "dataverseContacts": [{"contactEmail": "a@example.org"}]});
    server.json(&fiona, "POST", "/api/dataverses/tides", &below).await?;
    let at = |alias: &str, rest: &str| format!("/api/dataverses/{alias}/metadatablockfacets{rest}");
    let text = |value: &str| Value::String(value.to_owned());
    let (own, none) =
        ("[{\"metadataBlockId\":3,\"metadataBlockName\":\"socialscience\"}]", "\"metadataBlockFacets\":[]");
    check(
        &server,
        &fiona,
        &[
            ("POST", at("tides", ""), json!(["socialscience"]), 400, "inherits its metadata block facets"),
            ("POST", at("tides", "/isRoot"), text("perhaps"), 400, "expected true or false"),
            ("POST", at("tides", "/isRoot"), text("true"), 200, "Metadata block facets root updated."),
            ("POST", at("tides", "/isRoot"), text("true"), 200, "No update needed"),
            ("POST", at("tides", ""), json!(["nope"]), 400, "Invalid metadata block name"),
            ("POST", at("tides", ""), json!(["socialscience"]), 200, "updated"),
            ("GET", at("tides", ""), Value::Null, 200, own),
            ("GET", at("waves", ""), Value::Null, 200, own),
            ("GET", at("waves", ""), Value::Null, 200, "\"isMetadataBlockFacetRoot\":false"),
            ("POST", at("waves", "/isRoot"), text("true"), 200, "blockFacetsRoot: true"),
            ("POST", at("tides", "/isRoot"), text("false"), 200, "blockFacetsRoot: false"),
            ("GET", at("tides", ""), Value::Null, 200, none),
            ("GET", at("waves", ""), Value::Null, 200, own),
        ],
    )
    .await
}
