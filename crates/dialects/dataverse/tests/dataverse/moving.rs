//! Export of collections with datasets and files to a folder, and import into another server.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use axum::body::Body;
use http::StatusCode;
use pinakes_dataverse::moving::{Counts, Exporting, Importing, LeftOut, Moved, MovingError, export, import};
use serde_json::{Value, json};

use crate::server::{Failure, Server};

/// The files with JSON lines.
const LINES: [&str; 4] = ["site.jsonl", "users.jsonl", "collections.jsonl", "datasets.jsonl"];

fn exported(server: &Server, folder: &Path, asked: &Exporting) -> Result<(Counts, Vec<LeftOut>), Failure> {
    let (parts, tenant) = server.parts()?;
    Ok(tokio::task::block_in_place(|| export(&parts, &tenant, folder, asked, &mut |_| {}))?)
}

fn imported(server: &Server, folder: &Path, asked: &Importing) -> Result<Moved, Failure> {
    let (parts, tenant) = server.parts()?;
    Ok(tokio::task::block_in_place(|| import(&parts, &tenant, folder, asked, &mut |_| {}))?)
}

/// Returns what was left out, as `FILE:LINE NAME: REASON`.
fn left_out(moved: &Moved) -> Vec<String> {
    let line = |it: &LeftOut| format!("{}:{} {}: {}", it.file, it.line, it.name, it.reason);
    moved.left_out.iter().map(line).collect()
}

async fn done(server: &Server, key: &str, method: &str, path: &str, body: Value) -> Result<Value, Failure> {
    let got = match &body {
        Value::Null => server.send(key, method, path, "", Body::empty()).await?,
        body => server.json(key, method, path, body).await?,
    };
    assert!(got.status.is_success(), "{method} {path}: {} {}", got.status, got.text());
    Ok(got.json())
}

/// Creates a realistic repository: a collection with settings of its own, a role, nested groups, a guestbook, a
/// template and a logo; a dataset of two versions and a draft with a table, a restricted, an embargoed and a replaced
/// file; a deaccessioned dataset.
async fn furnished() -> Result<(Server, String, Vec<String>), Failure> {
    let server = Server::start()?;
    let (fiona, _gast) = (server.superuser("fiona").await?, server.user("gast").await?);
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let (withdrawn, withdrawn_pid) = server.dataset(&fiona, "waves").await?;
    let below = json!({"name": "Harbours", "alias": "harbours", "dataverseContacts": [{"contactEmail": "a@example.org"}]});
    done(&server, &fiona, "POST", "/api/dataverses/tides", below).await?;
    let tides = "/api/dataverses/tides";
    let role = json!({"alias": "gaugers", "name": "Gaugers", "permissions": ["ViewUnpublishedDataset", "DownloadFile"]});
    done(&server, &fiona, "POST", &format!("{tides}/roles"), role).await?;
    for (alias, members) in [("readers", json!(["@gast"])), ("all", json!([]))] {
        let group = json!({"displayName": alias, "description": "", "aliasInOwner": alias});
        done(&server, &fiona, "POST", &format!("{tides}/groups"), group).await?;
        if members != json!([]) {
            done(&server, &fiona, "POST", &format!("{tides}/groups/{alias}/roleAssignees"), members).await?;
        }
    }
    let groups = done(&server, &fiona, "GET", &format!("{tides}/groups"), Value::Null).await?;
    let readers = groups["data"].as_array().into_iter().flatten();
    let readers =
        readers.filter(|it| it["groupAliasInOwner"] == "readers").map(|it| it["identifier"].clone());
    let readers = readers.collect::<Vec<_>>();
    done(&server, &fiona, "POST", &format!("{tides}/groups/all/roleAssignees"), json!(readers)).await?;
    let assign = json!({"assignee": readers[0], "role": "gaugers"});
    done(&server, &fiona, "POST", &format!("{tides}/assignments"), assign).await?;
    done(&server, &fiona, "POST", &format!("{tides}/facets"), json!(["authorName"])).await?;
    done(&server, &fiona, "PUT", "/api/dataverses/tides/link/waves", Value::Null).await?;
    let add = format!("/api/datasets/{dataset}/add");
    let mut files = Vec::new();
    for (name, bytes, described) in [
        (
            "levels.csv",
            "hour,level\n1,2.5\n2,3.5\n".as_bytes(),
            json!({"directoryLabel": "a/b", "categories": ["Data"]}),
        ),
        ("secret.txt", b"not for everybody", json!({"restrict": true})),
        ("late.txt", b"later", json!({"description": "under embargo"})),
        ("old.txt", b"old", json!({})),
    ] {
        let got = server.upload(&fiona, &add, name, bytes, &described).await?.json();
        let id = got["data"]["files"][0]["dataFile"]["id"].as_i64().ok_or_else(|| got.to_string())?;
        files.push(id);
    }
    let embargo = json!({"dateAvailable": "2026-06-01", "reason": "first paper", "fileIds": [files[2]]});
    done(&server, "", "PUT", "/api/admin/settings/:MaxEmbargoDurationInMonths", json!(-1)).await?;
    done(&server, &fiona, "POST", &format!("/api/datasets/{dataset}/files/actions/:set-embargo"), embargo)
        .await?;
    let assign = json!({"assignee": "@gast", "role": "fileDownloader"});
    done(&server, &fiona, "POST", &format!("/api/datasets/{dataset}/assignments"), assign).await?;
    server.publish(&fiona, "tides", dataset).await?;
    let replace = format!("/api/files/{}/replace", files[3]);
    let got =
        server.form(&fiona, "POST", &replace, "new.txt", b"new", &json!({"forceReplace": true})).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    server.publish(&fiona, "tides", dataset).await?;
    let got = server.upload(&fiona, &add, "draft.txt", b"of the draft", &json!({})).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    done(&server, &fiona, "POST", &format!("/api/datasets/{dataset}/privateUrl"), Value::Null).await?;
    server.publish(&fiona, "waves", withdrawn).await?;
    let withdraw = format!("/api/datasets/{withdrawn}/versions/1.0/deaccession");
    done(&server, &fiona, "POST", &withdraw, json!({"deaccessionReason": "Wrong gauge."})).await?;
    Ok((server, fiona, vec![pid, withdrawn_pid]))
}

fn assert_equal_exports(a: &Path, b: &Path) -> Result<(), Failure> {
    for name in LINES {
        let (a, b) = (fs::read_to_string(a.join(name))?, fs::read_to_string(b.join(name))?);
        assert_eq!(a, b, "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_comes_whole_into_a_new_tenant() -> Result<(), Failure> {
    let (one, fiona, pids) = furnished().await?;
    let place = tempfile::tempdir()?;
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    let (counts, missing) = exported(&one, &first, &Exporting::default())?;
    let wanted = Counts { site: 2, users: 2, collections: 4, datasets: 2, versions: 4, files: 6 };
    assert_eq!((counts, missing), (wanted, Vec::new()));
    let two = Server::start()?;
    let moved = imported(&two, &first, &Importing::default())?;
    assert_eq!((left_out(&moved), moved.notes.as_slice()), (Vec::new(), [].as_slice()));
    assert_eq!((moved.stored, moved.n_there), (Counts { site: 0, ..wanted }, 0));
    exported(&two, &second, &Exporting::default())?;
    assert_equal_exports(&first, &second)?;
    // Importing again duplicates nothing.
    let again = imported(&two, &first, &Importing::default())?;
    assert_eq!((again.stored, again.n_there, left_out(&again)), (Counts::default(), 6, Vec::new()));
    exported(&two, &second, &Exporting::default())?;
    assert_equal_exports(&first, &second)?;
    // Clients see the same.
    for pid in &pids {
        for path in [
            format!("/api/datasets/:persistentId/versions/:latest-published?persistentId={pid}"),
            format!("/api/datasets/:persistentId/versions?persistentId={pid}"),
            format!("/api/datasets/export?exporter=ddi&persistentId={pid}"),
        ] {
            let (a, b) = (one.get("", &path).await?, two.get("", &path).await?);
            assert_eq!((a.status, a.text()), (b.status, b.text()), "{path}");
        }
    }
    let dataset =
        done(&two, "", "GET", &format!("/api/datasets/:persistentId?persistentId={}", pids[0]), Value::Null)
            .await?;
    let files = dataset["data"]["latestVersion"]["files"].as_array().cloned().unwrap_or_default();
    assert_eq!(files.len(), 4, "{dataset}");
    for file in &files {
        for suffix in ["", "?format=original"] {
            let path = format!("/api/access/datafile/{}{suffix}", file["dataFile"]["id"]);
            let (a, b) = (one.get("", &path).await?, two.get("", &path).await?);
            assert_eq!((a.status, a.text()), (b.status, b.text()), "{path}");
        }
    }
    for path in
        ["/api/search?q=*&type=dataset", "/api/search?q=*&type=file", "/api/search?q=*&type=dataverse"]
    {
        let (a, b) = (one.get("", path).await?.json(), two.get("", path).await?.json());
        assert_eq!(a["data"]["total_count"], b["data"]["total_count"], "{path}");
    }
    assert_eq!(one.get("", "/api/search?q=*&type=file").await?.json()["data"]["total_count"], 4);
    // New objects do not get the numbers of imported ones.
    let boss = two.superuser("boss").await?;
    let (new, _) = two.dataset(&boss, "new").await?;
    let old = files[0]["dataFile"]["id"].as_i64().unwrap_or_default();
    assert!(old < new, "{new} was given before {old}");
    for path in [
        "/api/dataverses/tides/roles",
        "/api/dataverses/tides/groups",
        "/api/dataverses/tides/assignments",
        "/api/dataverses/tides/facets",
        "/api/dataverses/tides/links",
    ] {
        let (a, b) = (one.get(&fiona, path).await?.text(), two.get(&boss, path).await?.text());
        assert_eq!(a, b, "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_move_behind_those_of_a_tenant_in_use() -> Result<(), Failure> {
    let (one, _, pids) = furnished().await?;
    let place = tempfile::tempdir()?;
    let folder = place.path().join("tides");
    let asked = Exporting { collection: Some("tides".to_owned()), without_files: false };
    let (counts, _) = exported(&one, &folder, &asked)?;
    assert_eq!((counts.collections, counts.datasets, counts.files), (2, 1, 6));
    let two = Server::start()?;
    let boss = two.superuser("boss").await?;
    let science = json!({"name": "Science", "alias": "science", "dataverseContacts": [{"contactEmail": "a@example.org"}]});
    done(&two, &boss, "POST", "/api/dataverses/root", science).await?;
    let into = Importing { into: Some("science".to_owned()) };
    let moved = imported(&two, &folder, &into)?;
    assert_eq!(left_out(&moved), Vec::<String>::new());
    // The collection to which this one is linked was not exported.
    let notes: Vec<&str> = moved.notes.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(notes, ["is not linked to the collection waves, which is not here"]);
    let above = done(&two, &boss, "GET", "/api/dataverses/tides", Value::Null).await?;
    let science = done(&two, &boss, "GET", "/api/dataverses/science", Value::Null).await?;
    assert_eq!(above["data"]["ownerId"], science["data"]["id"], "{above}");
    let path = format!("/api/datasets/:persistentId/versions/:draft?persistentId={}", pids[0]);
    let dataset = done(&two, &boss, "GET", &path, Value::Null).await?;
    let files = dataset["data"]["files"].as_array().cloned().unwrap_or_default();
    assert_eq!(files.len(), 5, "{dataset}");
    for file in &files {
        let got = two.get(&boss, &format!("/api/access/datafile/{}", file["dataFile"]["id"])).await?;
        assert_eq!(got.status, StatusCode::OK, "{}: {}", file["label"], got.text());
    }
    // Members of a nested group may see the draft on both servers.
    let groups = done(&two, &boss, "GET", "/api/dataverses/tides/groups", Value::Null).await?;
    let identifier = |alias: &str| {
        let mut all = groups["data"].as_array().into_iter().flatten();
        all.find(|it| it["groupAliasInOwner"] == alias).map(|it| it["identifier"].clone()).unwrap_or_default()
    };
    let all = groups["data"].as_array().into_iter().flatten().find(|it| it["groupAliasInOwner"] == "all");
    assert_eq!(
        all.map(|it| &it["containedRoleAssignees"]),
        Some(&json!([identifier("readers")])),
        "{groups}"
    );
    let assignments = done(&two, &boss, "GET", "/api/dataverses/tides/assignments", Value::Null).await?;
    let readers = assignments["data"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|it| it["assignee"] == identifier("readers"));
    assert_eq!(readers.map(|it| &it["_roleAlias"]), Some(&json!("gaugers")), "{assignments}");
    // Importing again, also from another export of the same data, duplicates nothing and reports what exists.
    let again = imported(&two, &folder, &into)?;
    assert_eq!((again.stored, again.n_there, again.notes.len()), (Counts::default(), 3, 0));
    exported(&one, &folder, &asked)?;
    let other = imported(&two, &folder, &into)?;
    assert_eq!((other.stored, other.n_there, left_out(&other)), (Counts::default(), 3, Vec::new()));
    assert!(
        other.notes.iter().any(|it| it.name == pids[0] && it.reason == "is there already and stays as it is")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_is_killed_anywhere_goes_on() -> Result<(), Failure> {
    let (one, ..) = furnished().await?;
    let place = tempfile::tempdir()?;
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    exported(&one, &first, &Exporting::default())?;
    let two = Server::start()?;
    let (parts, tenant) = two.parts()?;
    let mut n_kills = 0;
    loop {
        let mut n_calls = 0;
        let run = || {
            import(&parts, &tenant, &first, &Importing::default(), &mut |_| {
                n_calls += 1;
                if n_kills < n_calls {
                    resume_unwind(Box::new("killed"));
                }
            })
        };
        match tokio::task::block_in_place(|| catch_unwind(AssertUnwindSafe(run))) {
            Ok(moved) => {
                assert_eq!(left_out(&moved?), Vec::<String>::new());
                break;
            }
            Err(_) => n_kills += 1,
        }
    }
    assert!(20 < n_kills, "it was killed only {n_kills} times");
    exported(&two, &second, &Exporting::default())?;
    assert_equal_exports(&first, &second)
}

/// Faults of a folder are reported with their place, and nothing of the affected dataset is stored; after they are
/// repaired, the import does the rest.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_folder_are_told_with_their_place() -> Result<(), Failure> {
    let (one, _, pids) = furnished().await?;
    let place = tempfile::tempdir()?;
    let (folder, second) = (place.path().join("first"), place.path().join("second"));
    exported(&one, &folder, &Exporting::default())?;
    let datasets = fs::read_to_string(folder.join("datasets.jsonl"))?;
    let two = Server::start()?;
    let (parts, tenant) = two.parts()?;
    let refusal = |folder: &Path| -> Result<String, Failure> {
        match tokio::task::block_in_place(|| {
            import(&parts, &tenant, folder, &Importing::default(), &mut |_| {})
        }) {
            Err(MovingError::Refused(what)) => Ok(what),
            other => Err(format!("{other:?}").into()),
        }
    };
    let manifest = fs::read_to_string(folder.join("export.json"))?;
    for (text, wanted) in [
        ("{\"form\": 2, \"version\": \"9\"}", "is of form 2"),
        ("{\"form\": 1", "is no JSON"),
        ("{\"form\": 1, \"id\": \"x\"}", "missing field"),
    ] {
        fs::write(folder.join("export.json"), text)?;
        let found = refusal(&folder)?;
        assert!(found.contains("export.json") && found.contains(wanted), "{found}");
    }
    fs::remove_file(folder.join("export.json"))?;
    assert!(refusal(&folder)?.contains("it is written last"));
    fs::write(folder.join("export.json"), &manifest)?;

    let lines: Vec<&str> = datasets.lines().collect();
    let first_file = lines.iter().position(|it| it.starts_with("{\"file\"")).ok_or("no file")?;
    // A truncated line; the other dataset is imported.
    let mut cut = lines.clone();
    cut[first_file] = &lines[first_file][..40];
    fs::write(folder.join("datasets.jsonl"), cut.join("\n"))?;
    let moved = imported(&two, &folder, &Importing::default())?;
    let found = left_out(&moved);
    let wanted =
        format!("datasets.jsonl:1 {}: line {}, one of its lines, cannot be read", pids[0], first_file + 1);
    assert!(found.len() == 1 && found[0].starts_with(&wanted), "{found:?}");
    assert_eq!((moved.stored.datasets, moved.stored.collections), (1, 4));
    // A file that ends between two lines of a dataset, and one that ends between two datasets.
    fs::write(folder.join("datasets.jsonl"), lines[..first_file].join("\n"))?;
    let found = left_out(&imported(&two, &folder, &Importing::default())?);
    let wanted = [
        format!("datasets.jsonl:1 {}: 0 of its 6 files follow: the file was cut; export again", pids[0]),
        "datasets.jsonl:0 datasets: 1 were read, export.json says 2: the file was cut; export again"
            .to_owned(),
    ];
    assert_eq!(found, wanted);
    fs::write(folder.join("datasets.jsonl"), &datasets)?;

    // Bytes that differ, are truncated, or are missing.
    let line: Value = serde_json::from_str(lines[first_file])?;
    let blob = line["file"]["original"]["blob"].as_str().ok_or("no bytes")?;
    let sha256 = blob.split_once('-').ok_or("no checksum")?.1;
    let shown = format!("files/{}/{sha256}", &sha256[..2]);
    let (path, file) = (folder.join(&shown), line["file"]["id"].clone());
    let bytes = fs::read(&path)?;
    let mut other = bytes.clone();
    other[0] ^= 1;
    for (written, wanted) in [
        (Some(&other[..]), "its checksum is"),
        (Some(&bytes[1..]), "1 bytes less than its record says"),
        (Some([&bytes[..], b"x"].concat().as_slice()), "more bytes than its record says"),
        (None, "No such file"),
    ] {
        match written {
            Some(written) => fs::write(&path, written)?,
            None => fs::remove_file(&path)?,
        }
        let found = left_out(&imported(&two, &folder, &Importing::default())?);
        let begins = format!("datasets.jsonl:1 {}: file {file}: {shown}: {wanted}", pids[0]);
        assert!(found.len() == 1 && found[0].starts_with(&begins), "{found:?}");
        let got = two.get("", &format!("/api/datasets/:persistentId?persistentId={}", pids[0])).await?;
        assert_eq!(got.status, StatusCode::NOT_FOUND, "{}", got.text());
    }
    fs::write(&path, &bytes)?;
    // A checksum that does not match the bytes.
    let md5 = line["file"]["checksum"].as_str().ok_or("no checksum")?;
    fs::write(folder.join("datasets.jsonl"), datasets.replace(md5, &"0".repeat(32)))?;
    let found = left_out(&imported(&two, &folder, &Importing::default())?);
    assert!(found.len() == 1 && found[0].contains("its record says 00000000"), "{found:?}");
    // Numbers and names that are not in the export.
    for (from, to, wanted) in [
        (r#""creator":"fiona""#, r#""creator":"nobody""#, "the user nobody is not here"),
        (r#""license":"CC0 1.0""#, r#""license":"CC9""#, "the licence CC9 is not here"),
        (r#""owner":"tides""#, r#""owner":"nowhere""#, "the collection nowhere is not here"),
        (r#""ordinal":1,"#, r#""ordinal":9,"#, "a version has the ordinal 9"),
        (r#"{"version":{"id":"#, r#"{"version":{"id":99999"#, "is none of this export"),
    ] {
        assert!(datasets.contains(from), "{from}");
        fs::write(folder.join("datasets.jsonl"), datasets.replace(from, to))?;
        let found = left_out(&imported(&two, &folder, &Importing::default())?);
        assert!(found.iter().any(|it| it.contains(wanted)), "{found:?}");
    }
    fs::write(folder.join("datasets.jsonl"), &datasets)?;
    let moved = imported(&two, &folder, &Importing::default())?;
    assert_eq!((left_out(&moved), moved.stored.datasets, moved.stored.files), (Vec::new(), 1, 6));
    exported(&two, &second, &Exporting::default())?;
    assert_equal_exports(&folder, &second)?;
    // A folder that is not an export is not overwritten.
    fs::write(second.join("thesis.txt"), "mine")?;
    let found = exported(&two, &second, &Exporting::default()).map(drop).map_err(|it| it.to_string());
    assert!(found.is_err_and(|it| it.contains("holds thesis.txt, which is no part of an export")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_may_be_left_behind() -> Result<(), Failure> {
    let (one, _, pids) = furnished().await?;
    let place = tempfile::tempdir()?;
    let folder = place.path().join("described");
    exported(&one, &folder, &Exporting { collection: None, without_files: true })?;
    assert!(!folder.join("files").exists(), "bytes were written");
    let two = Server::start()?;
    let moved = imported(&two, &folder, &Importing::default())?;
    assert_eq!((left_out(&moved), moved.stored.files), (Vec::new(), 6));
    let path = format!("/api/datasets/:persistentId/versions/1.0?persistentId={}", pids[0]);
    let (a, b) = (one.get("", &path).await?.json(), two.get("", &path).await?.json());
    assert_eq!(a, b);
    let levels = a["data"]["files"].as_array().into_iter().flatten().find(|it| it["label"] == "levels.tab");
    let id = levels.map(|it| it["dataFile"]["id"].clone()).unwrap_or_default();
    for suffix in ["", "?format=original"] {
        let got = two.get("", &format!("/api/access/datafile/{id}{suffix}")).await?;
        assert_eq!(got.status, StatusCode::NOT_FOUND, "{}", got.text());
    }
    Ok(())
}
