//! Rules about what may be featured, deleted and published, and what a dataset's JSON must look like.

use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use http::StatusCode;
use serde_json::{Value, json};

use crate::answers::check;
use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn published_collections_below_are_featured() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    for (parent, alias) in [("root", "coast"), ("coast", "tides"), ("tides", "gauges"), ("root", "birds")] {
        let body =
            json!({"alias": alias, "name": alias, "dataverseContacts": [{"contactEmail": "a@example.org"}]});
        let got = server.json(&fiona, "POST", &format!("/api/dataverses/{parent}"), &body).await?;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
    }
    let path = || "/api/dataverses/coast/featured".to_owned();
    let publish = |alias: &str| format!("/api/dataverses/{alias}/actions/:publish");
    let may_not = |alias: &str| {
        format!("Dataverse collection '{alias}' may not be featured in Dataverse collection 'coast'.")
    };
    check(
        &server,
        &fiona,
        &[
            ("POST", publish("coast"), Value::Null, 200, "\"isReleased\":true"),
            ("POST", publish("birds"), Value::Null, 200, "\"isReleased\":true"),
            ("POST", path(), json!([]), 400, "Please provide a valid Json array"),
            ("POST", path(), json!(["nowhere"]), 400, "Can't find dataverse collection with alias 'nowhere'"),
            ("POST", path(), json!(["tides"]), 400, &may_not("tides")),
            ("POST", publish("tides"), Value::Null, 200, "\"isReleased\":true"),
            ("POST", publish("gauges"), Value::Null, 200, "\"isReleased\":true"),
            ("POST", path(), json!(["tides"]), 200, "Featured Dataverses of dataverse coast updated."),
            ("POST", path(), json!(["tides"]), 400, "'tides' is already featured in"),
            ("POST", path(), json!(["gauges"]), 400, &may_not("gauges")),
            ("POST", path(), json!(["birds"]), 400, &may_not("birds")),
            ("PUT", "/api/dataverses/birds/link/coast".to_owned(), Value::Null, 200, "linked successfully"),
            ("POST", path(), json!(["birds"]), 200, "updated."),
            ("GET", path(), Value::Null, 200, "[\"tides\",\"birds\"]"),
            ("DELETE", path(), Value::Null, 200, "Featured dataverses have been removed"),
            ("GET", path(), Value::Null, 200, "\"data\":[]"),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn types_of_datasets_are_named_in_json_ld_and_kept_while_used() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    server.dataset(&fiona, "tides").await?;
    let types = "/api/datasets/datasetTypes";
    let made =
        server.json(&boss, "POST", types, &json!({"name": "software", "displayName": "Software"})).await?;
    let number = made.json()["data"]["id"].as_i64().ok_or("no number of a type")?;
    let allowed = "/api/dataverses/tides/attribute/allowedDatasetTypes?value=dataset,software".to_owned();
    let core = "https://dataverse.org/schema/core#";
    let body = |ty: &str| {
        json!({
            "@context": {"citation": "https://dataverse.org/schema/citation/", "dcterms": "http://purl.org/dc/terms/"},
            format!("{core}datasetType"): ty,
            "dcterms:title": "Tide gauge reader",
            "dcterms:creator": {"citation:authorName": "Finch, Fiona"},
            "citation:datasetContact": {"citation:datasetContactEmail": "a@example.org"},
            "citation:dsDescription": {"citation:dsDescriptionValue": "Reads."},
            "dcterms:subject": "Other",
        })
        .to_string()
    };
    check(&server, &boss, &[("PUT", allowed, Value::Null, 200, "\"software\"")]).await?;
    let path = "/api/dataverses/tides/datasets";
    let got = server.send(&fiona, "POST", path, "application/ld+json", body("spell")).await?;
    assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.text());
    assert!(got.text().contains("Invalid dataset type: spell"), "{}", got.text());
    let got = server.send(&fiona, "POST", path, "application/ld+json", body("software")).await?;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
    let dataset = format!("/api/datasets/{}", got.json()["data"]["id"]);
    check(
        &server,
        &boss,
        &[
            ("GET", dataset.clone(), Value::Null, 200, "\"datasetType\":\"software\""),
            (
                "DELETE",
                format!("{types}/{number}"),
                Value::Null,
                400,
                "The dataset type software cannot be deleted, because datasets have it.",
            ),
            ("DELETE", dataset, Value::Null, 200, "deleted"),
            ("DELETE", format!("{types}/{number}"), Value::Null, 200, "deleted"),
            (
                "DELETE",
                format!("{types}/1"),
                Value::Null,
                403,
                "You cannot delete the default dataset type: dataset",
            ),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_binds_the_author_and_missing_files_bind_all_but_superusers() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, gast) = (server.user("fiona").await?, server.user("gast").await?);
    let boss = server.superuser("boss").await?;
    server.dataset(&fiona, "tides").await?;
    let role = json!({"assignee": "@gast", "role": "dsContributor"});
    let got = server.json(&fiona, "POST", "/api/dataverses/tides/assignments", &role).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let copy = server.get(&fiona, "/api/search?q=*&type=dataset&show_entity_ids=true").await?.json();
    let shown = format!("/api/datasets/{}/versions/:draft", copy["data"]["items"][0]["entity_id"]);
    let blocks = server.get(&fiona, &shown).await?.json()["data"]["metadataBlocks"].clone();
    let body = json!({"datasetVersion": {"metadataBlocks": blocks}});
    let made = server.json(&gast, "POST", "/api/dataverses/tides/datasets", &body).await?;
    let of = |rest: &str| format!("/api/datasets/{}{rest}", made.json()["data"]["id"]);
    let refusal = "Dataset cannot be edited due to In Review dataset lock.";
    check(
        &server,
        &gast,
        &[
            ("POST", of("/submitForReview"), Value::Null, 200, "\"inReview\":true"),
            ("DELETE", of(""), Value::Null, 403, refusal),
            ("DELETE", of("/versions/:draft"), Value::Null, 403, refusal),
        ],
    )
    .await?;
    let setting = "/api/dataverses/tides/attribute/requireFilesToPublishDataset?value=true".to_owned();
    let publish = || of("/actions/:publish?type=major");
    let lacking = "Published datasets should contain at least one data file.";
    let open = "/api/dataverses/tides/actions/:publish".to_owned();
    check(&server, &boss, &[("PUT", setting, Value::Null, 200, "Update successful")]).await?;
    check(
        &server,
        &fiona,
        &[("POST", open, Value::Null, 200, ""), ("POST", publish(), Value::Null, 403, lacking)],
    )
    .await?;
    check(&server, &boss, &[("POST", publish(), Value::Null, 200, "publicationDate")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_checked_against_the_schema() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    server.dataset(&fiona, "tides").await?;
    let body = |license: Value, fields: Value| json!({"datasetVersion": {"license": license, "metadataBlocks": {"citation": {"fields": fields}}}});
    let (license, none) = (json!({"name": "CC0 1.0", "uri": "https://example.org"}), json!([]));
    let field = |key: &str, value: Value| {
        let mut field =
            json!({"typeName": "title", "typeClass": "primitive", "multiple": false, "value": "Tides"});
        field[key] = value;
        json!([field])
    };
    let path = || "/api/dataverses/tides/validateDatasetJson".to_owned();
    let at = "#/datasetVersion";
    let cases = [
        (json!({}), "#: required key [datasetVersion] not found".to_owned()),
        (json!({"datasetVersion": 1}), format!("{at}: expected type: JSONObject, found: Integer")),
        (json!({"datasetVersion": {}}), format!("{at}: required key [metadataBlocks] not found")),
        (
            json!({"datasetVersion": {"metadataBlocks": {}}}),
            format!("{at}/metadataBlocks: required key [citation] not found"),
        ),
        (
            body(json!({"name": "CC0 1.0"}), none.clone()),
            format!("{at}/license: required key [uri] not found"),
        ),
        (
            body(license.clone(), json!({})),
            format!("{at}/metadataBlocks/citation/fields: expected type: JSONArray, found: JSONObject"),
        ),
        (
            body(license.clone(), field("multiple", json!("false"))),
            format!("{at}/metadataBlocks/citation/fields/0/multiple: expected type: Boolean, found: String"),
        ),
        (
            body(license, field("typeName", Value::Null)),
            format!("{at}/metadataBlocks/citation/fields/0/typeName: expected type: String, found: Null"),
        ),
    ];
    for (body, fault) in cases {
        check(&server, &fiona, &[("POST", path(), body, 200, &fault)]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_tells_what_it_would_remove() -> Result<(), Failure> {
    let server = Server::start()?;
    let boss = server.superuser("boss").await?;
    let (dataset, _) = server.dataset(&boss, "tides").await?;
    server.dataset(&boss, "coast").await?;
    let of = |rest: &str| format!("/api/datasets/{dataset}{rest}");
    let advice = "\"Use the query parameter forceMove=true to complete the move. This dataset is linked to the new host \
                  dataverse or one of its parents. This move would remove the link to this dataset. \"";
    check(
        &server,
        &boss,
        &[
            ("PUT", of("/link/coast"), Value::Null, 200, "linked successfully"),
            ("POST", of("/move/coast"), Value::Null, 403, advice),
            ("POST", of("/move/coast?forceMove=true"), Value::Null, 200, "Dataset moved successfully."),
        ],
    )
    .await?;
    // The registration is renewed of published datasets, by superusers.
    let fiona = server.user("fiona").await?;
    let renew = || of("/modifyRegistrationMetadata");
    let lacking = "Modify Registration Metadata must be run on a published dataset.";
    check(&server, &boss, &[("POST", renew(), Value::Null, 400, lacking)]).await?;
    server.publish(&boss, "coast", dataset).await?;
    check(&server, &fiona, &[("POST", renew(), Value::Null, 401, "is not permitted")]).await?;
    check(&server, &boss, &[("POST", renew(), Value::Null, 200, "updated successfully.")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_may_allow_licences_only() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let of = |rest: &str| format!("/api/datasets/{dataset}{rest}");
    let setting = || "/api/admin/settings/:AllowCustomTermsOfUse".to_owned();
    let custom = || json!({"customTerms": {"termsOfUse": "Ask first."}});
    let blocks = server.get(&fiona, &of("/versions/:draft")).await?.json()["data"]["metadataBlocks"].clone();
    let draft = json!({"metadataBlocks": blocks, "termsOfUse": "Ask first."});
    let path = of("/versions/:draft");
    check(
        &server,
        &fiona,
        &[
            ("PUT", path.clone(), draft.clone(), 200, "\"termsOfUse\":\"Ask first.\""),
            ("PUT", setting(), Value::String("false".to_owned()), 200, ""),
            ("PUT", path, draft, 200, "\"license\":{\"name\":\"CC0 1.0\""),
            ("PUT", of("/license"), custom(), 400, "Custom terms of use are not allowed on this server."),
        ],
    )
    .await?;
    let entry = "<entry xmlns='http://www.w3.org/2005/Atom' xmlns:dcterms='http://purl.org/dc/terms/'>\
                 <dcterms:title>Tides</dcterms:title><dcterms:creator>Finch, Fiona</dcterms:creator>\
                 <dcterms:description>Hourly.</dcterms:description><dcterms:rights>Ask first.</dcterms:rights></entry>";
    let deposit = async || {
        let basic = base64::engine::general_purpose::STANDARD.encode(format!("{fiona}:"));
        let request = Request::builder()
            .method("POST")
            .uri("/dvn/api/data-deposit/v1.1/swordv2/collection/dataverse/tides")
            .header("host", "data.example.org")
            .header("authorization", format!("Basic {basic}"))
            .header("content-type", "application/atom+xml");
        server.answered(request.body(Body::from(entry))?).await
    };
    let got = deposit().await?;
    assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.text());
    assert!(got.text().contains("Custom Terms of Use (dc:rights) are not allowed."), "{}", got.text());
    check(&server, &fiona, &[("DELETE", setting(), Value::Null, 200, "")]).await?;
    let got = deposit().await?;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
    check(&server, &fiona, &[("PUT", of("/license"), custom(), 200, "Dataset license updated.")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_featured_items_names_existing_ones() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    server.dataset(&fiona, "tides").await?;
    let put = async |id: &str, content: &str| {
        let mut form = String::new();
        for (name, value) in
            [("id", id), ("content", content), ("displayOrder", "0"), ("keepFile", "false"), ("fileName", "")]
        {
            form.push_str(&format!(
                "--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            ));
        }
        form.push_str("--xyz--\r\n");
        let path = "/api/dataverses/tides/featuredItems";
        server.send(&fiona, "PUT", path, "multipart/form-data; boundary=xyz", form).await
    };
    let made = put("0", "Tides").await?;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text());
    let number = made.json()["data"][0]["id"].to_string();
    let got = put("4711", "Waves").await?;
    assert_eq!(got.status, StatusCode::NOT_FOUND, "{}", got.text());
    assert!(
        got.text().contains("Could not find dataverse featured item with identifier 4,711"),
        "{}",
        got.text()
    );
    let kept = put(&number, "Waves").await?.json();
    assert_eq!(kept["data"][0]["id"].to_string(), number, "{kept}");
    assert_eq!(kept["data"][0]["content"], "Waves", "{kept}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn compared_values_are_shown_as_to_readers() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    server.publish(&fiona, "tides", dataset).await?;
    let part = |name: &str, value: &str| json!({"typeName": name, "value": value});
    let fields = json!({"fields": [
        {"typeName": "author", "value": [{
            "authorName": part("authorName", "Poe, Edgar"),
            "authorAffiliation": part("authorAffiliation", "Baltimore Poets"),
            "authorIdentifierScheme": part("authorIdentifierScheme", "ORCID"),
        }]},
        {"typeName": "datasetContact", "value": [{
            "datasetContactName": part("datasetContactName", "Poe"),
            "datasetContactEmail": part("datasetContactEmail", "poe@example.org"),
        }]},
    ]});
    let path = format!("/api/datasets/{dataset}/editMetadata");
    let compared = format!("/api/datasets/{dataset}/versions/1.0/compare/:draft");
    check(
        &server,
        &fiona,
        &[
            ("PUT", path, fields, 200, "Baltimore Poets"),
            (
                "GET",
                compared.clone(),
                Value::Null,
                200,
                "\"oldValue\":\"Finch, Fiona\",\"newValue\":\"Finch, Fiona; Poe, Edgar; (Baltimore Poets); ORCID\"",
            ),
            ("GET", compared.clone(), Value::Null, 200, "\"oldValue\":\"\",\"newValue\":\"Poe\""),
        ],
    )
    .await?;
    let told = server.get(&fiona, &compared).await?.text();
    assert!(!told.contains("example.org"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_tell_which_files_differ() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let mut ids = Vec::new();
    for name in ["kept.txt", "described.txt", "removed.txt", "replaced.txt"] {
        let got = server.upload(&fiona, &add, name, name.as_bytes(), &json!({})).await?.json();
        ids.push(got["data"]["files"][0]["dataFile"]["id"].clone());
    }
    server.publish(&fiona, "tides", dataset).await?;
    let new = json!({"description": "hourly", "categories": ["Data"]});
    let path = format!("/api/files/{}/metadata", ids[1]);
    let got = server.form(&fiona, "POST", &path, "none", b"", &new).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let got = server.send(&fiona, "DELETE", &format!("/api/files/{}", ids[2]), "", "").await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let path = format!("/api/files/{}/replace", ids[3]);
    let got = server.upload(&fiona, &path, "new.txt", b"new", &json!({"forceReplace": true})).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let got = server.upload(&fiona, &add, "added.txt", b"added", &json!({})).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());

    let compared = format!("/api/datasets/{dataset}/versions/1.0/compare/:draft");
    let told = server.get(&fiona, &compared).await?.json()["data"].clone();
    let names = |list: &Value, key: &str| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|it| it.pointer(key)?.as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names(&told["filesAdded"], "/fileName"), ["added.txt"], "{told}");
    assert_eq!(names(&told["filesRemoved"], "/fileName"), ["removed.txt"], "{told}");
    assert_eq!(names(&told["filesReplaced"], "/oldFile/fileName"), ["replaced.txt"], "{told}");
    assert_eq!(names(&told["filesReplaced"], "/newFile/fileName"), ["new.txt"], "{told}");
    assert_eq!(names(&told["fileChanges"], "/fileName"), ["described.txt"], "{told}");
    let changed = &told["fileChanges"][0]["changed"];
    assert_eq!(changed["Description"]["newValue"], "hourly", "{told}");
    assert_eq!(changed["Categories"]["newValue"], json!(["Data"]), "{told}");
    assert_eq!(changed.as_object().map(serde_json::Map::len), Some(2), "{told}");

    let summary = format!("/api/datasets/{dataset}/versions/compareSummary");
    let told = server.get(&fiona, &summary).await?.json()["data"].clone();
    let expected = json!({
        "added": 1, "removed": 1, "replaced": 1, "changedFileMetaData": 2, "changedVariableMetadata": 0,
    });
    assert_eq!(told[0]["summary"]["files"], expected, "{told}");
    // After the publication the same versions differ in the same way.
    server.publish(&fiona, "tides", dataset).await?;
    let told = server.get(&fiona, &compared.replace(":draft", "2.0")).await?.json()["data"].clone();
    assert_eq!(names(&told["filesReplaced"], "/newFile/fileName"), ["new.txt"], "{told}");
    assert_eq!(names(&told["filesRemoved"], "/fileName"), ["removed.txt"], "{told}");
    Ok(())
}
