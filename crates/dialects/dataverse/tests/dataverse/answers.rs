//! Answers of single calls, especially errors: tables of calls and of expected parts of their answers.

use axum::body::Body;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::server::{Failure, Server};

/// A call: method, path, body, and the expected status and part of the answer.
pub(crate) type Case<'a> = (&'a str, String, Value, u16, &'a str);

/// Makes the calls of one caller, one after another. A body that is not a text is sent as JSON.
pub(crate) async fn check(server: &Server, key: &str, cases: &[Case<'_>]) -> Result<(), Failure> {
    for (method, path, body, status, told) in cases {
        let got = match body {
            Value::Null => server.send(key, method, path, "", Body::empty()).await?,
            Value::String(text) => server.send(key, method, path, "", text.clone()).await?,
            body => server.json(key, method, path, body).await?,
        };
        assert_eq!(got.status.as_u16(), *status, "{method} {path}: {}", got.text());
        assert!(got.text().contains(told), "{method} {path}: {}", got.text());
    }
    Ok(())
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_must_have_a_value_are_not_emptied() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let path = |query: &str| format!("/api/datasets/{dataset}/editMetadata{query}");
    let emptied = |name: &str, value: Value| json!({"fields": [{"typeName": name, "value": value}]});
    let subtitle = |value: &str| emptied("subtitle", json!(value));
    let shown = format!("/api/datasets/{dataset}/versions/:draft");
    let begin = "Error parsing dataset update: Empty";
    check(
        &server,
        &fiona,
        &[
            (
                "PUT",
                path("?replace=true"),
                emptied("title", json!("")),
                400,
                &format!("{begin} required value for field: Title "),
            ),
            ("PUT", path(""), emptied("title", json!("")), 400, begin),
            (
                "PUT",
                path("?replace=true"),
                emptied("subject", json!([])),
                400,
                &format!("{begin} multiple required value for field: Subject "),
            ),
            (
                "PUT",
                path("?replace=true"),
                emptied("author", json!([])),
                400,
                &format!("{begin} multiple required value for field: Author "),
            ),
            ("PUT", path("?replace=true"), subtitle("of the coast"), 200, "of the coast"),
            ("PUT", path("?replace=true"), subtitle(""), 200, "versionState"),
            ("GET", shown, Value::Null, 200, "Tide gauge readings"),
        ],
    )
    .await?;
    let got = server.get(&fiona, &format!("/api/datasets/{dataset}/versions/:draft")).await?;
    assert!(!got.text().contains("subtitle"), "{}", got.text());
    // With JSON-LD, a value is added to fields that take several, and to empty ones.
    let semantic = format!("/api/datasets/{dataset}/metadata");
    let title = json!({"http://purl.org/dc/terms/title": "Other"});
    check(
        &server,
        &fiona,
        &[
            (
                "PUT",
                semantic.clone(),
                title.clone(),
                400,
                "Can't append to single-value field that already has a value: title",
            ),
            ("PUT", format!("{semantic}?replace=true"), title, 200, "Other"),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn featured_items_have_a_text_or_an_object() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    server.dataset(&fiona, "tides").await?;
    let path = "/api/dataverses/tides/featuredItems";
    let long = "a".repeat(15_001);
    for (fields, file, status, told) in [
        (vec![("content", "<b>Tides</b>")], None, 200, "<b>Tides</b>"),
        (
            vec![("content", " ")],
            None,
            400,
            "Featured item 'content' property should be provided and not empty.",
        ),
        (vec![("displayOrder", "1")], None, 400, "should be provided"),
        (
            vec![("content", long.as_str())],
            None,
            400,
            "exceeds the maximum allowed length of 15000 characters.",
        ),
        (vec![("content", "x")], Some("no picture"), 400, "Invalid image file type"),
        (
            vec![("type", "dataverse"), ("dvObjectIdentifier", "root")],
            None,
            200,
            "\"dvObjectIdentifier\":\"root\"",
        ),
    ] {
        let mut form = String::new();
        for (name, value) in fields {
            form.push_str(&format!(
                "--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            ));
        }
        if let Some(file) = file {
            form.push_str(&format!(
                "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n{file}\r\n"
            ));
        }
        form.push_str("--xyz--\r\n");
        let got = server.send(&fiona, "POST", path, "multipart/form-data; boundary=xyz", form).await?;
        assert_eq!(got.status.as_u16(), status, "{told}: {}", got.text());
        assert!(got.text().contains(told), "{told}: {}", got.text());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_ask_for_names_templates_and_registrations() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let template = json!({"name": "Gauges", "isDefault": true});
    let made = server.json(&fiona, "POST", "/api/dataverses/tides/templates", &template).await?.json();
    let id = made["data"]["id"].as_i64().unwrap_or_default();
    let at = |path: &str| format!("/api/admin/{path}");
    let of = |path: &str| format!("/api/datasets/{path}");
    check(
        &server,
        &boss,
        &[
            ("GET", at("datasetfield"), Value::Null, 200, "\"haveNoParents\":[\"title\""),
            (
                "GET",
                at("datasetfield/controlledVocabulary/subject"),
                Value::Null,
                200,
                "[\"Agricultural Sciences\"",
            ),
            ("GET", at("datasetfield/authorName"), Value::Null, 200, "\"parentAllowsMultiples\":\"true\""),
            (
                "GET",
                at("datasetfield/title"),
                Value::Null,
                200,
                "\"parentAllowsMultiples\":\"N/A (no parent)\"",
            ),
            ("GET", at("datasetfield/nothing"), Value::Null, 404, "nothing"),
            (
                "GET",
                at("index/solr/schema"),
                Value::Null,
                200,
                "<field name=\"authorName\" type=\"text_en\" multiValued=\"true\"",
            ),
            ("GET", at("templates"), Value::Null, 200, "\"templateName\":\"Gauges\""),
            ("GET", at("templates/tides"), Value::Null, 200, "\"templateName\":\"Gauges\""),
            ("GET", at("templates/root"), Value::Null, 200, "\"data\":[]"),
            ("GET", at("templates/none"), Value::Null, 404, "none"),
            ("GET", at(&format!("template/{id}")), Value::Null, 200, "\"isDefault\":true"),
            ("DELETE", at(&format!("template/{id}")), Value::Null, 200, "Template Gauges deleted."),
            ("DELETE", at(&format!("template/{id}")), Value::Null, 404, "not found"),
            ("POST", of(&format!("{dataset}/modifyRegistration")), Value::Null, 200, "target url updated."),
            (
                "POST",
                of("modifyRegistrationAll"),
                Value::Null,
                200,
                "Update All Dataset target url completed.",
            ),
            (
                "POST",
                of("modifyRegistrationPIDMetadataAll"),
                Value::Null,
                200,
                "All Dataset PID Metadata update completed.",
            ),
            ("POST", of("999999/modifyRegistration"), Value::Null, 404, "Dataset with ID 999999 not found."),
        ],
    )
    .await?;
    let refused = "Forbidden. You must be a superuser.";
    check(
        &server,
        &fiona,
        &[
            ("POST", of(&format!("{dataset}/modifyRegistration")), Value::Null, 403, refused),
            ("POST", of("modifyRegistrationPIDMetadataAll"), Value::Null, 403, refused),
            ("POST", of(&format!("{dataset}/submitForReview")), Value::Null, 200, "has been submitted"),
        ],
    )
    .await?;
    let nothing = json!({"reasonForReturn": ""});
    let back = of(&format!("{dataset}/returnToAuthor"));
    check(
        &server,
        &boss,
        &[("POST", back, nothing, 400, "You must enter a reason for returning a dataset to the author(s).")],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn checksums_of_many_files_are_renewed() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let mut files = Vec::new();
    for (name, bytes) in [("a.txt", b"high"), ("b.txt", b"ebb ")] {
        let got = server.upload(&fiona, &add, name, bytes, &json!({})).await?.json();
        files.push(got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default());
    }
    let path = |rest: &str| format!("/api/admin/updateHashValues/{rest}");
    check(&server, &fiona, &[("POST", path("SHA-256?num=10"), Value::Null, 401, "must be superuser")])
        .await?;
    check(
        &server,
        &boss,
        &[
            ("POST", path("CRC?num=10"), Value::Null, 400, "Unknown algorithm"),
            ("POST", path("SHA-256"), Value::Null, 200, "0 of  0 files"),
            ("POST", path("SHA-256?num=1"), Value::Null, 200, "1 of  1 files successfully rehashed."),
            ("POST", path("SHA-256?num=10"), Value::Null, 200, "1 of  1 files"),
            ("POST", path("SHA-256?num=10"), Value::Null, 200, "0 of  0 files"),
        ],
    )
    .await?;
    for file in files {
        let shown = server.get(&fiona, &format!("/api/files/{file}")).await?.json();
        assert_eq!(shown["data"]["dataFile"]["checksum"]["type"], "SHA-256", "{shown}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_are_changed_by_editors_alone() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, mike) = (server.user("fiona").await?, server.user("mike").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "a.txt", b"high", &json!({})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    let path = |name: &str| format!("/api/files/{file}/metadata/{name}");
    let (categories, tags) = (json!({"categories": ["Raw"]}), json!({"tabularTags": ["Survey"]}));
    let refused = "is not permitted to perform requested action.";
    check(
        &server,
        &mike,
        &[
            ("POST", path("categories"), categories.clone(), 401, refused),
            ("POST", path("tabularTags"), tags.clone(), 401, refused),
        ],
    )
    .await?;
    check(
        &server,
        &fiona,
        &[
            ("POST", path("categories"), categories, 200, "updated"),
            ("POST", path("tabularTags"), tags, 400, "only available for tabular files"),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guestbook_may_be_answered_when_access_is_asked_for() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, mike) = (server.user("fiona").await?, server.user("mike").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "a.txt", b"high", &json!({"restrict": true})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    let guestbook = json!({"name": "Visitors", "enabled": true, "institutionRequired": true});
    let made = server.json(&fiona, "POST", "/api/guestbooks/tides", &guestbook).await?.json();
    let guestbook = made["data"]["id"].as_i64().unwrap_or_default();
    let at_request = format!("/api/datasets/{dataset}/guestbookEntryAtRequest");
    check(
        &server,
        &fiona,
        &[
            ("PUT", format!("/api/datasets/{dataset}/guestbook"), text(&guestbook.to_string()), 200, "set"),
            ("GET", at_request.clone(), Value::Null, 200, "Not set on dataset, using the default: false"),
            ("PUT", at_request.clone(), text("perhaps"), 400, "expected true or false"),
            ("PUT", at_request.clone(), text("true"), 200, "Guestbook Entry At Request set to: true"),
            ("GET", at_request.clone(), Value::Null, 200, "\"message\":\"true\""),
            (
                "PUT",
                format!("/api/guestbooks/{guestbook}"),
                json!({"name": "Guests"}),
                200,
                "\"name\":\"Guests\"",
            ),
            (
                "PUT",
                format!("/api/guestbooks/{guestbook}"),
                json!({"name": "Visitors"}),
                200,
                &format!("Guestbook {guestbook} updated"),
            ),
        ],
    )
    .await?;
    server.publish(&fiona, "tides", dataset).await?;
    let ask = format!("/api/access/datafile/{file}/requestAccess");
    let answered =
        |institution: &str| json!({"guestbookResponse": {"institution": institution, "answers": []}});
    let lacking = format!("without the required Guestbook response for guestbookID {guestbook}.");
    check(
        &server,
        &mike,
        &[
            ("PUT", at_request.clone(), text("false"), 401, "is not permitted"),
            ("PUT", ask.clone(), Value::Null, 400, &lacking),
            ("PUT", ask.clone(), text("{"), 400, "Error parsing Json"),
            (
                "PUT",
                ask.clone(),
                answered(""),
                400,
                "Guestbook Response entry is required but not present (Institution).",
            ),
            ("PUT", ask.clone(), answered("Harbour Office"), 200, "requested"),
            ("PUT", ask, answered("Harbour Office"), 400, "already exists"),
            ("GET", format!("/api/access/datafile/{file}"), Value::Null, 403, "Not authorized"),
        ],
    )
    .await?;
    let responses = format!("/api/guestbooks/{guestbook}/responses");
    let grant = format!("/api/access/datafile/{file}/grantAccess/@mike");
    check(
        &server,
        &fiona,
        &[
            ("GET", responses.clone(), Value::Null, 200, "\"type\":\"AccessRequest\""),
            ("GET", "/api/info/metrics/downloads".to_owned(), Value::Null, 200, "\"count\":0"),
            ("PUT", grant, Value::Null, 200, "granted"),
        ],
    )
    .await?;
    let metrics = |name: &str, wanted: &'static str| {
        ("GET", format!("/api/info/metrics/{name}"), Value::Null, 200, wanted)
    };
    // Whoever has answered is not asked again.
    check(&server, &mike, &[("GET", format!("/api/access/datafile/{file}"), Value::Null, 200, "high")])
        .await?;
    check(
        &server,
        &fiona,
        &[
            ("GET", responses, Value::Null, 200, "\"type\":\"Download\""),
            metrics("downloads", "\"count\":1"),
            metrics("downloads?parentAlias=tides", "\"count\":1"),
            metrics("downloads/pastDays/30", "\"count\":1"),
            metrics("downloads/toMonth/2026-01", "\"count\":0"),
            metrics("downloads/monthly", "[{\"date\":\"2026-02\",\"count\":1}]"),
            metrics("datasets?parentAlias=tides", "\"count\":1"),
            metrics(
                "datasets/monthly?parentAlias=tides&dataLocation=all",
                "[{\"date\":\"2026-02\",\"count\":1}]",
            ),
            metrics("datasets?dataLocation=remote", "\"count\":0"),
            metrics("files", "\"count\":1"),
            metrics("accounts/pastDays/30", "\"count\":2"),
            ("DELETE", at_request, Value::Null, 200, "Guestbook Entry At Request reset to default: false"),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_listed_with_their_history() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let labels = json!({"Process": ["Read", "Checked"]}).to_string();
    server.send("", "PUT", "/api/admin/settings/:AllowedCurationLabels", "", labels).await?;
    let set = "/api/admin/dataverse/tides/curationLabelSet?name=Process".to_owned();
    let label = |name: &str| format!("/api/datasets/{dataset}/curationStatus?label={name}");
    check(
        &server,
        &boss,
        &[
            ("PUT", set, Value::Null, 200, "Process"),
            ("PUT", label("Read"), Value::Null, 200, "updated"),
            ("PUT", label("Checked"), Value::Null, 200, "updated"),
        ],
    )
    .await?;
    for (query, expected) in [("", vec!["Checked"]), ("?includeHistory=true", vec!["Checked", "Read"])] {
        let got = server.get(&boss, &format!("/api/datasets/listCurationStates{query}")).await?.text();
        let lines = got.lines().filter(|it| it.starts_with(&pid));
        let labels: Vec<&str> = lines.filter_map(|it| it.split(',').nth(3)).collect();
        assert_eq!(labels, expected, "{got}");
    }
    Ok(())
}

/// Returns the CORS headers of an answer.
fn told(headers: &HeaderMap) -> Vec<String> {
    let names = ["allow-origin", "allow-methods", "allow-headers", "expose-headers", "allow-credentials"];
    let value = |name: &str| headers.get(format!("access-control-{name}")).and_then(|it| it.to_str().ok());
    names.into_iter().map(|it| value(it).unwrap_or("-").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_says_what_pages_of_other_sites_may_do() -> Result<(), Failure> {
    let server = Server::start()?;
    let expected = [
        "*",
        "GET,POST,PUT,DELETE,OPTIONS",
        "range,content-type,x-dataverse-key,accept",
        "content-encoding,content-range,accept-ranges",
        "-",
    ];
    for (method, path, status) in [
        ("GET", "/api/info/version", StatusCode::OK),
        ("GET", "/api/dataverses/nothing", StatusCode::NOT_FOUND),
        ("GET", "/api/nothing", StatusCode::NOT_FOUND),
        ("PUT", "/api/info/version", StatusCode::METHOD_NOT_ALLOWED),
        ("OPTIONS", "/api/info/version", StatusCode::OK),
    ] {
        let got = server.send("", method, path, "", Body::empty()).await?;
        assert_eq!(got.status, status, "{method} {path}");
        assert_eq!(told(&got.headers), expected, "{method} {path}");
    }
    Ok(())
}

/// A PNG of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";

#[tokio::test(flavor = "multi_thread")]
async fn cards_show_pictures_to_those_who_may_see_them() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let mut files = Vec::new();
    for (name, bytes) in [("gauge.png", PNG), ("a.txt", b"high")] {
        let got = server.upload(&fiona, &add, name, bytes, &json!({})).await?.json();
        files.push(got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default());
    }
    let shown = server.get(&fiona, &format!("/api/datasets/{dataset}/versions/:draft")).await?.json();
    let version = shown["data"]["id"].as_i64().unwrap_or_default();
    let file = |id: i64| format!("/api/access/fileCardImage/{id}");
    let of_version = format!("/api/access/dsCardImage/{version}");
    let (of_image, of_text) = (file(files[0]), file(files[1]));
    let before = [
        (fiona.as_str(), of_image.as_str(), 200),
        ("", &of_image, 404),
        (&fiona, &of_text, 404),
        (&fiona, &of_version, 200),
        ("", &of_version, 404),
        (&fiona, "/api/access/fileCardImage/999999", 404),
        (&fiona, "/api/access/dsCardImage/999999", 404),
    ];
    let after = [("", of_image.as_str(), 200), ("", &of_version, 200)];
    for (cases, publishes) in [(before.as_slice(), true), (after.as_slice(), false)] {
        for (key, path, status) in cases {
            let got = server.get(key, path).await?;
            assert_eq!(got.status.as_u16(), *status, "{path}: {}", got.text());
            let is_png = got.body.starts_with(b"\x89PNG");
            assert_eq!(is_png, *status == 200, "{path}");
        }
        if publishes {
            server.publish(&fiona, "tides", dataset).await?;
        }
    }
    Ok(())
}
