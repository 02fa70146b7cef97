//! Files: upload, access, search.

use std::io::Write as _;
use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

fn id_of(json: &Value) -> i64 {
    json["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_added_published_and_downloaded() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let described =
        json!({"description": "Readings", "directoryLabel": "/raw/2026/", "categories": ["Data"]});
    let got = server.upload(&fiona, &add, "tides.txt", b"high low", &described).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let file = &got.json()["data"]["files"][0];
    assert_eq!(file["directoryLabel"], "raw/2026");
    assert_eq!(file["dataFile"]["contentType"], "text/plain");
    assert_eq!(
        file["dataFile"]["checksum"],
        json!({"type": "MD5", "value": "941736ca0054e9ac7cb156604e202062"})
    );
    let id = id_of(&got.json());
    let again = server.upload(&fiona, &add, "tides.txt", b"high low", &described).await?.json();
    assert_eq!(again["data"]["files"][0]["label"], "tides-1.txt");
    assert_eq!(again["message"], "This file has the same content as tides.txt that is in the dataset. ");
    let get = format!("/api/access/datafile/{id}");
    assert_eq!(server.get(&stranger, &get).await?.status, StatusCode::FORBIDDEN);
    assert_eq!(server.get(&fiona, &get).await?.text(), "high low");
    let refused = server.upload(&stranger, &add, "x", b"x", &json!({})).await?;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    server.publish(&fiona, "tides", dataset).await?;
    let got = server.get("", &get).await?;
    assert_eq!((got.status, got.text().as_str()), (StatusCode::OK, "high low"));
    assert_eq!(got.headers["content-disposition"], "attachment; filename=\"tides.txt\"");
    let range = server.get("", "/api/search?q=tides").await?.json();
    assert_eq!(range["data"]["total_count"], 4, "{range}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_share_rows_until_one_is_changed() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let id = id_of(&server.upload(&fiona, &add, "a.txt", b"a", &json!({})).await?.json());
    server.publish(&fiona, "tides", dataset).await?;
    let change = format!("/api/files/{id}/metadata");
    let changed = server.json(&fiona, "POST", &change, &json!({"label": "b.txt"})).await?;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text());
    server.upload(&fiona, &add, "c.txt", b"c", &json!({})).await?;
    let labels = |json: &Value| -> Vec<String> {
        let files = json["data"].as_array().cloned().unwrap_or_default();
        files.iter().map(|it| it["label"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let list = |version: &str| format!("/api/datasets/{dataset}/versions/{version}/files");
    assert_eq!(labels(&server.get(&fiona, &list("1.0")).await?.json()), ["a.txt"]);
    assert_eq!(labels(&server.get(&fiona, &list(":draft")).await?.json()), ["b.txt", "c.txt"]);
    assert_eq!(labels(&server.get("", &list(":latest")).await?.json()), ["a.txt"]);
    let drop = format!("/api/datasets/{dataset}/versions/:draft");
    let dropped = server.send(&fiona, "DELETE", &drop, "", Body::empty()).await?;
    assert_eq!(dropped.status, StatusCode::OK, "{}", dropped.text());
    assert_eq!(labels(&server.get(&fiona, &list(":latest")).await?.json()), ["a.txt"]);
    let found = server.get(&fiona, "/api/search?q=*&type=file").await?.json();
    assert_eq!(found["data"]["total_count"], 1, "{found}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_read_when_the_upload_is_answered() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "pets").await?;
    let csv = b"name,pounds\nMidnight,15\nTiger,17\n";
    let got = server
        .upload(&fiona, &format!("/api/datasets/{dataset}/add"), "data.csv", csv, &json!({}))
        .await?
        .json();
    assert_eq!(got["data"]["files"][0]["label"], "data.csv", "{got}");
    let id = id_of(&got);
    let file = server.get(&fiona, &format!("/api/files/{id}")).await?.json();
    assert_eq!(file["data"]["label"], "data.tab", "{file}");
    assert_eq!(file["data"]["dataFile"]["originalFileName"], "data.csv");
    let tab = server.get(&fiona, &format!("/api/access/datafile/{id}")).await?.text();
    assert_eq!(tab, "name\tpounds\n\"Midnight\"\t15\n\"Tiger\"\t17\n");
    let original = server.get(&fiona, &format!("/api/access/datafile/{id}?format=original")).await?;
    assert_eq!(original.body, csv);
    let tables = server.get(&fiona, &format!("/api/files/{id}/dataTables")).await?.json();
    assert_eq!(tables["data"][0]["varQuantity"], 2);
    let locks = server.get(&fiona, &format!("/api/datasets/{dataset}/locks")).await?.json();
    assert_eq!(locks["data"], json!([]));
    // Scripts that always name a width of a thumbnail get the format that they name.
    let asked = format!("/api/access/datafile/{id}?format=original&imageThumb=null");
    assert_eq!(server.get(&fiona, &asked).await?.text(), original.text());
    let ddi = server.get(&fiona, &format!("/api/access/datafile/{id}/metadata/ddi")).await?;
    assert!(ddi.text().contains("name=\"pounds\""), "{}", ddi.text());
    for (query, n) in [("variableName:pounds", 1), ("variableLabel:pounds", 1), ("variableName:Tiger", 0)] {
        let found = server.get(&fiona, &format!("/api/search?q={query}&type=file")).await?.json();
        assert_eq!(found["data"]["total_count"], n, "{query}: {found}");
    }
    let page = server.get(&fiona, &format!("/file.xhtml?fileId={id}")).await?;
    assert!(page.text().contains("<h1>data.tab</h1>"), "{}", page.text());
    assert!(page.text().contains(&format!("/api/access/datafile/{id}\">Download</a>")), "{}", page.text());
    let hidden = server.get("", &format!("/file.xhtml?fileId={id}")).await?;
    assert_eq!(hidden.status, StatusCode::UNAUTHORIZED, "{}", hidden.text());
    assert!(!hidden.text().contains("data.tab"), "{}", hidden.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_locked_while_its_tables_are_read() -> Result<(), Failure> {
    let server = Server::start_without_patience()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let csv = format!("height,place\n{}", "1.25,Bonn\n".repeat(200_000));
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "tides.csv", csv.as_bytes(), &json!({})).await?.json();
    let file = format!("/api/files/{}", id_of(&got));
    let locks = format!("/api/datasets/{dataset}/locks");
    let lock = server.get(&fiona, &locks).await?.json()["data"][0].clone();
    let said = [&lock["lockType"], &lock["user"], &lock["message"]];
    assert_eq!(said, ["Ingest", "fiona", "Attempting to ingest 1 tabular file(s)"], "{lock}");
    let deleted =
        server.send(&fiona, "DELETE", &format!("/api/datasets/{dataset}"), "", Body::empty()).await?;
    assert_eq!(deleted.status, StatusCode::FORBIDDEN, "{}", deleted.text());
    let read = async {
        while server.get(&fiona, &locks).await?.json()["data"] != json!([]) {
            tokio::task::yield_now().await;
        }
        server.get(&fiona, &file).await
    };
    let shown = tokio::time::timeout(Duration::from_secs(120), read).await??.json();
    assert_eq!(shown["data"]["label"], "tides.tab", "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn workbooks_are_tables_and_other_office_files_are_not() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "books").await?;
    let relation = |ty: &str, target: &str| {
        format!(
            "<Relationships><Relationship Id=\"r\" Type=\"http://x/{ty}\" Target=\"{target}\"/></Relationships>"
        )
    };
    let sheet = "<worksheet><row><c t=\"str\"><v>name</v></c><c t=\"str\"><v>pounds</v></c></row>\
                 <row><c t=\"str\"><v>Midnight</v></c><c><v>15</v></c></row></worksheet>";
    let parts = [
        ("_rels/.rels", relation("officeDocument", "xl/b.xml")),
        ("xl/_rels/b.xml.rels", relation("worksheet", "s.xml")),
        ("xl/b.xml", "<workbook><sheet id=\"r\"/></workbook>".to_owned()),
        ("xl/s.xml", sheet.to_owned()),
    ];
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in &parts {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())?;
        zip.write_all(text.as_bytes())?;
    }
    let workbook = zip.finish()?.into_inner();
    for (name, label, bytes) in [
        ("pets.xlsx", "pets.tab", "name\tpounds\n\"Midnight\"\t15.0\n".as_bytes()),
        ("pets.docx", "pets.docx", workbook.as_slice()),
    ] {
        let add = format!("/api/datasets/{dataset}/add");
        let got =
            server.upload(&fiona, &add, name, &workbook, &json!({"directoryLabel": name})).await?.json();
        let id = id_of(&got);
        let file = server.get(&fiona, &format!("/api/files/{id}")).await?.json();
        assert_eq!(file["data"]["label"], label, "{got} {file}");
        let shown = server.get(&fiona, &format!("/api/access/datafile/{id}")).await?;
        assert_eq!(shown.body, bytes, "{name}");
        let original = server.get(&fiona, &format!("/api/access/datafile/{id}?format=original")).await?;
        assert_eq!(original.body, workbook, "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_are_unpacked_within_bounds() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "zips").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let archive = |entries: &[(&str, usize)]| -> Result<Vec<u8>, Failure> {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, length) in entries {
            zip.start_file(*name, zip::write::SimpleFileOptions::default())?;
            zip.write_all(&vec![b'x'; *length])?;
        }
        Ok(zip.finish()?.into_inner())
    };
    let ok = archive(&[("a/b.txt", 1), ("c.txt", 2), ("../../evil.txt", 3), ("__MACOSX/x", 4)])?;
    let got = server.upload(&fiona, &add, "some.zip", &ok, &json!({})).await?.json();
    let files = got["data"]["files"].as_array().cloned().unwrap_or_default();
    let paths: Vec<String> =
        files.iter().map(|it| format!("{}|{}", it["directoryLabel"], it["label"])).collect();
    assert_eq!(paths, ["\"a\"|\"b.txt\"", "null|\"c.txt\""], "{got}");
    let bomb = archive(&[("zeros", 100 << 20)])?;
    let got = server.upload(&fiona, &add, "bomb.zip", &bomb, &json!({})).await?;
    assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.text());
    let cut = server
        .send(
            &fiona,
            "POST",
            &add,
            "multipart/form-data; boundary=xyz",
            "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nab",
        )
        .await?;
    assert_eq!(cut.status, StatusCode::BAD_REQUEST, "{}", cut.text());
    let list = server.get(&fiona, &format!("/api/datasets/{dataset}/versions/:draft/files")).await?.json();
    assert_eq!(list["totalCount"], 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_restricted_leaks_nowhere() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (dataset, pid) = server.dataset(&fiona, "secrets").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let id =
        id_of(&server.upload(&fiona, &add, "s.txt", b"hush", &json!({"restrict": "true"})).await?.json());
    let hidden = server.get(&stranger, "/api/search?q=tide&show_facets=true").await?.json();
    assert_eq!(hidden["data"]["total_count"], 0, "{hidden}");
    assert_eq!(hidden["data"]["facets"], json!([{}]));
    let export = server.get("", &format!("/api/datasets/export?exporter=ddi&persistentId={pid}")).await?;
    assert_eq!(export.status, StatusCode::FORBIDDEN);
    let harvested = server.get("", "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc").await?.text();
    assert!(harvested.contains("noRecordsMatch"), "{harvested}");
    server.publish(&fiona, "secrets", dataset).await?;
    for path in [
        format!("/api/access/datafile/{id}"),
        format!("/api/access/datafile/{id}?format=original"),
        format!("/api/access/datafiles/{id}"),
        format!("/api/access/dataset/{dataset}"),
    ] {
        let got = server.get(&stranger, &path).await?;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{path}: {}", got.text());
    }
    let harvested = server.get("", "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc").await?.text();
    assert!(harvested.contains(&pid), "{harvested}");
    let ask = format!("/api/access/datafile/{id}/requestAccess");
    let asked = server.send(&stranger, "PUT", &ask, "", Body::empty()).await?;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.text());
    let grant = format!("/api/access/datafile/{id}/grantAccess/@stranger");
    let granted = server.send(&fiona, "PUT", &grant, "", Body::empty()).await?;
    assert_eq!(granted.status, StatusCode::OK, "{}", granted.text());
    assert_eq!(server.get(&stranger, &format!("/api/access/datafile/{id}")).await?.text(), "hush");
    Ok(())
}
