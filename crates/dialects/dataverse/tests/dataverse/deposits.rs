//! Requirements on the body of a new dataset, and datasets from other sites.

use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

/// Returns a body that conforms to `GET datasetSchema`.
fn body() -> Value {
    let part = |name: &str, value: &str| json!({"typeName": name, "multiple": false, "typeClass": "primitive", "value": value});
    json!({"datasetVersion": {"metadataBlocks": {"citation": {"displayName": "Citation Metadata", "fields": [
        part("title", "Tides"),
        {"typeName": "author", "multiple": true, "typeClass": "compound", "value": [{"authorName": part("authorName", "Gull, Ada")}]},
        {"typeName": "datasetContact", "multiple": true, "typeClass": "compound", "value": [{
            "datasetContactEmail": part("datasetContactEmail", "a@example.org"),
            "datasetContactName": part("datasetContactName", "Gull, Ada"),
        }]},
        {"typeName": "dsDescription", "multiple": true, "typeClass": "compound", "value": [{"dsDescriptionValue": part("dsDescriptionValue", "Hourly.")}]},
        {"typeName": "subject", "multiple": true, "typeClass": "controlledVocabulary", "value": ["Other"]},
        {"typeName": "language", "multiple": true, "typeClass": "controlledVocabulary", "value": ["English", "aar"]},
    ]}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_could_not_become_a_dataset_is_told_why() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    server.dataset(&fiona, "tides").await?;
    let validated = async |body: String| -> Result<String, Failure> {
        let path = "/api/dataverses/tides/validateDatasetJson";
        let got = server.send(&fiona, "POST", path, "application/json", body).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        Ok(got.json()["data"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let sound = body().to_string();
    assert_eq!(
        validated(sound.clone()).await?,
        "The Dataset JSON provided is valid for this Dataverse Collection."
    );
    let email = r#""datasetContactEmail":{"typeName":"datasetContactEmail","#;
    for (from, to, wanted) in [
        (
            r#""aar""#,
            r#""badlang""#,
            "Controlled vocabulary for key:fields typeName:language value:'badlang' is not valid.",
        ),
        (
            r#""title","multiple":false"#,
            r#""title","multiple":true"#,
            "Invalid data for key:fields typeName:title. Fields with 'multiple' set to true must be a list.",
        ),
        (
            r#""language","multiple":true"#,
            r#""language","multiple":false"#,
            "Invalid data for key:fields typeName:language. Found value as list but 'multiple' is set to false.",
        ),
        (
            r#""typeName":"datasetContactName""#,
            r#""typeName":"datasetContactNme""#,
            "Compound value datasetContactName must match typeName of the object. Found datasetContactNme",
        ),
        (
            email,
            r#""other":{"typeName":"other","#,
            "Invalid data for key:datasetContact typeName:other. Only datasetContactName, datasetContactAffiliation, datasetContactEmail allowed.",
        ),
        (
            email,
            r#""datasetContactAffiliation":{"typeName":"datasetContactAffiliation","#,
            "Invalid data for key:datasetContact. datasetContactEmail is(are) required if field type is datasetContact.",
        ),
        (
            r#""value":"Tides""#,
            r#""was":"Tides""#,
            "Invalid data for key:fields typeName:title. 'value' missing.",
        ),
        (
            r#""value":["Other"]"#,
            r#""value":["Others"]"#,
            "Controlled vocabulary for key:fields typeName:subject value:'Others' is not valid.",
        ),
        (
            r#"[{"authorName""#,
            r#"["Gull",{"authorName""#,
            "Compound data type must be accompanied by a value that is either an object",
        ),
    ] {
        assert!(sound.contains(from), "{from} is not in {sound}");
        let found = validated(sound.replacen(from, to, 1)).await?;
        let begins = "The Dataset JSON provided failed validation with the following error: ";
        assert!(found.starts_with(&format!("{begins}{wanted}")), "{to}: {found}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_that_was_published_elsewhere_keeps_identifier_version_and_date() -> Result<(), Failure> {
    let server = Server::start()?;
    let (boss, fiona) = (server.superuser("boss").await?, server.user("fiona").await?);
    let (other, pid) = server.dataset(&boss, "tides").await?;
    server.publish(&boss, "tides", other).await?;
    let (prefix, _) = pid.rsplit_once('/').ok_or("no identifier")?;
    let new = format!("{prefix}/MIGRATED");
    let document = |pid: &str, version: &str| {
        let citation = "https://dataverse.org/schema/citation/";
        json!({
            "@context": {"citation": citation, "schema": "http://schema.org/", "dcterms": "http://purl.org/dc/terms/"},
            "@id": pid, "schema:version": version, "dcterms:title": "Old tides", "dcterms:subject": ["Other"],
            "dcterms:creator": [{"citation:authorName": "Gull, Ada"}],
            "citation:datasetContact": [{"citation:datasetContactEmail": "a@example.org"}],
            "citation:dsDescription": [{"citation:dsDescriptionValue": "Hourly."}],
        })
    };
    let path = "/api/dataverses/tides/datasets/:startmigration";
    let start = async |key: &str, body: &Value| {
        server.send(key, "POST", path, "application/ld+json", body.to_string()).await
    };
    for (key, body, status, wanted) in [
        (&fiona, document(&new, "2.1"), StatusCode::FORBIDDEN, "Not a superuser"),
        (
            &boss,
            document("doi:10.9999/other/A", "2.1"),
            StatusCode::BAD_REQUEST,
            "doesn't match the server's settings",
        ),
        (
            &boss,
            document(&pid, "2.1"),
            StatusCode::BAD_REQUEST,
            "Cannot recreate a dataset whose PID is already in use",
        ),
        (&boss, document(&new, "DRAFT"), StatusCode::BAD_REQUEST, "hasn't been published"),
        (&boss, json!({"schema:version": "2.1"}), StatusCode::BAD_REQUEST, "has no @id"),
        (&boss, document(&new, "2.1"), StatusCode::CREATED, new.as_str()),
    ] {
        let got = start(key, &body).await?;
        assert!(got.status == status && got.text().contains(wanted), "{body}: {}", got.text());
    }
    // It is a draft until it is released.
    let by_pid = format!("/api/datasets/:persistentId?persistentId={new}");
    assert_eq!(server.get("", &by_pid).await?.status, StatusCode::UNAUTHORIZED);
    let release = format!("/api/datasets/:persistentId/actions/:releasemigrated?persistentId={new}");
    let context = json!({"schema": "http://schema.org/"});
    for (key, body, status) in [
        (&fiona, json!({"schema:datePublished": "2020-10-21", "@context": context}), StatusCode::FORBIDDEN),
        (&boss, json!({"@context": context}), StatusCode::BAD_REQUEST),
        (&boss, json!({"schema:datePublished": "2999-10-21", "@context": context}), StatusCode::BAD_REQUEST),
        (&boss, json!({"schema:datePublished": "2020-10-21", "@context": context}), StatusCode::OK),
    ] {
        let got = server.send(key, "POST", &release, "application/ld+json", body.to_string()).await?;
        assert_eq!(got.status, status, "{body}: {}", got.text());
    }
    let shown = server.get("", &by_pid).await?.json();
    let version = &shown["data"]["latestVersion"];
    assert_eq!(shown["data"]["publicationDate"], "2020-10-21", "{shown}");
    assert_eq!(
        (&version["versionNumber"], &version["versionMinorNumber"]),
        (&json!(2), &json!(1)),
        "{shown}"
    );
    let numbered = format!("/api/datasets/:persistentId/versions/2.1?persistentId={new}");
    assert_eq!(server.get("", &numbered).await?.status, StatusCode::OK);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_binds_a_collection_to_its_place_is_told_before_it_is_given_up() -> Result<(), Failure> {
    let server = Server::start()?;
    let boss = server.superuser("boss").await?;
    let done = async |method: &str, path: &str, body: Value| -> Result<Value, Failure> {
        let got = server.json(&boss, method, path, &body).await?;
        assert!(got.status.is_success(), "{method} {path}: {} {}", got.status, got.text());
        Ok(got.json())
    };
    let contact = json!([{"contactEmail": "a@example.org"}]);
    for (parent, alias) in [("root", "old"), ("root", "new"), ("old", "inner")] {
        let body = json!({"name": alias, "alias": alias, "dataverseContacts": contact});
        done("POST", &format!("/api/dataverses/{parent}"), body).await?;
    }
    let (dataset, pid) = server.dataset(&boss, "tides").await?;
    done("POST", &format!("/api/datasets/{dataset}/move/inner"), json!({})).await?;
    let guestbook = json!({"name": "Visitors", "enabled": true, "nameRequired": false, "emailRequired": false,
        "institutionRequired": false, "positionRequired": false, "customQuestions": []});
    let made = done("POST", "/api/guestbooks/old", guestbook).await?;
    let path = format!("/api/datasets/{dataset}/guestbook");
    let got = server.send(&boss, "PUT", &path, "application/json", made["data"]["id"].to_string()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    for alias in ["old", "new", "inner"] {
        done("POST", &format!("/api/dataverses/{alias}/actions/:publish"), json!({})).await?;
    }
    done("POST", "/api/dataverses/old/featured", json!(["inner"])).await?;
    done("PUT", "/api/dataverses/inner/link/new", json!({})).await?;
    done("PUT", &format!("/api/datasets/{dataset}/link/new"), json!({})).await?;
    let relocate = async |query: &str| {
        let path = format!("/api/dataverses/inner/move/new{query}");
        server.send(&boss, "POST", &path, "", axum::body::Body::empty()).await
    };
    let got = relocate("").await?;
    let wanted = "Dataset guestbook is not in target dataverse. Dataverse is featured in current dataverse. \
                  Dataverse is linked to target dataverse or one of its parents. \
                  Dataset is linked to target dataverse or one of its parents. Please use the API";
    assert_eq!(got.status, StatusCode::FORBIDDEN, "{}", got.text());
    let message = got.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with(wanted), "{message}");
    let got = relocate("?forceMove=true").await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let shown = server.get(&boss, &format!("/api/datasets/:persistentId?persistentId={pid}")).await?.json();
    assert_eq!(shown["data"]["guestbookId"], Value::Null, "{shown}");
    let links = server.get(&boss, "/api/dataverses/new/links").await?.json();
    assert_eq!(links["data"]["linkedDataverses"], json!([]), "{links}");
    assert_eq!(links["data"]["linkedDatasets"], json!([]), "{links}");
    let featured = server.get(&boss, "/api/dataverses/old/featured").await?.text();
    assert!(!featured.contains("inner"), "{featured}");
    // Nothing prevents moving it back.
    let path = "/api/dataverses/inner/move/old";
    let got = server.send(&boss, "POST", path, "", axum::body::Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn months_and_addresses_are_what_the_original_takes() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    for (month, wanted) in [
        ("2026-01", "\"count\":"),
        ("2025-13", "The expected format is YYYY-MM but an exception was thrown"),
        ("2025-1", "The expected format is YYYY-MM"),
        ("abc", "Text 'abc' could not be parsed"),
        ("2026-03", "The requested date is set past the current month."),
    ] {
        let got = server.get("", &format!("/api/info/metrics/datasets/toMonth/{month}")).await?;
        let is_month = month == "2026-01";
        assert_eq!(got.status.is_success(), is_month, "{month}: {}", got.text());
        assert!(got.text().contains(wanted), "{month}: {}", got.text());
    }
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    server.publish(&fiona, "tides", dataset).await?;
    let withdraw = format!("/api/datasets/{dataset}/versions/1.0/deaccession");
    let long = format!("https://example.org/{}", "x".repeat(1241));
    for (link, status) in [
        ("not a url", StatusCode::BAD_REQUEST),
        (&long, StatusCode::BAD_REQUEST),
        (&long[..1260], StatusCode::OK),
    ] {
        let body = json!({"deaccessionReason": "Wrong gauge.", "deaccessionForwardURL": link});
        let got = server.json(&fiona, "POST", &withdraw, &body).await?;
        assert_eq!(got.status, status, "{}", got.text());
    }
    Ok(())
}
