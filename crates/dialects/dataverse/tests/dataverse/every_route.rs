//! Calls every route of the table as callers without rights: nothing hidden may be disclosed, and nothing may change.

use std::collections::BTreeSet;

use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Failure, Server};

/// Contained in everything hidden, and in no requested URL.
const HUSH: &str = "hushhush";

/// Paths that are used as they are, not below `/api`.
const ELSEWHERE: [&str; 9] = [
    "/api",
    "/oai",
    "/dvn",
    "/confirmemail.xhtml",
    "/dataset.xhtml",
    "/dataverse/",
    "/file.xhtml",
    "/sitemap",
    "/openapi",
];

/// As in the original, names of a draft's file categories are public.
const TOLD: &str = "/datasets/{id}/availableFileCategories";

/// Routes on which the original refuses with 500, and so does Pinakes.
const ANSWERS_500: [&str; 2] = ["/logout", "/users/register"];

/// Test data: an unpublished collection with a draft, and a published dataset with a draft.
struct World {
    server: Server,
    owner: String,
    stranger: String,
    /// Numbers and names of objects for paths.
    objects: Vec<String>,
    pids: Vec<String>,
    /// Paths whose answers to the owner are compared.
    watched: Vec<String>,
}

async fn hushed_dataset(server: &Server, owner: &str, dataset: i64) -> Result<(), Failure> {
    let fields = json!({"fields": [{"typeName": "title", "value": format!("Title {HUSH}")}]});
    let path = format!("/api/datasets/{dataset}/editMetadata?replace=true");
    let got = server.json(owner, "PUT", &path, &fields).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    Ok(())
}

async fn add_file(
    server: &Server,
    owner: &str,
    dataset: i64,
    name: &str,
    described: &Value,
) -> Result<String, Failure> {
    let path = format!("/api/datasets/{dataset}/add");
    let table = format!("{HUSH}column,height\n{HUSH}cell,2\nother,3\n");
    let got = server.upload(owner, &path, name, table.as_bytes(), described).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    Ok(got.json()["data"]["files"][0]["dataFile"]["id"].to_string())
}

impl World {
    async fn new() -> Result<Self, Failure> {
        let server = Server::start()?;
        let (owner, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
        let (hidden, hidden_pid) = server.dataset(&owner, "closed").await?;
        let (open, open_pid) = server.dataset(&owner, "tides").await?;
        let restricted = json!({"restrict": "true", "description": "Readings"});
        let closed_file = add_file(&server, &owner, open, "closed.csv", &restricted).await?;
        server.publish(&owner, "tides", open).await?;
        let described = json!({
            "description": format!("File {HUSH}"), "categories": [format!("Category {HUSH}")],
            "directoryLabel": format!("folder-{HUSH}"),
        });
        let mut files = vec![closed_file];
        for dataset in [hidden, open] {
            hushed_dataset(&server, &owner, dataset).await?;
            files.push(add_file(&server, &owner, dataset, &format!("{HUSH}.csv"), &described).await?);
            let question = json!({
                "name": format!("Guestbook {HUSH}"), "enabled": true, "emailRequired": false, "nameRequired": false,
            });
            let alias = if dataset == hidden { "closed" } else { "tides" };
            if dataset == hidden {
                let got = server.json(&owner, "POST", &format!("/api/guestbooks/{alias}"), &question).await?;
                assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
            }
            let template = json!({"name": format!("Template {HUSH}"), "isDefault": false});
            let got =
                server.json(&owner, "POST", &format!("/api/dataverses/{alias}/templates"), &template).await?;
            assert!(got.status.is_success(), "{}", got.text());
            let group = json!({"displayName": format!("Group {HUSH}"), "aliasInOwner": "some"});
            let got = server.json(&owner, "POST", &format!("/api/dataverses/{alias}/groups"), &group).await?;
            assert!(got.status.is_success(), "{}", got.text());
        }
        let edited = json!({
            "name": format!("Closed {HUSH}"), "alias": "closed", "description": format!("About {HUSH}"),
            "dataverseContacts": [{"contactEmail": "a@example.org"}],
        });
        let got = server.json(&owner, "PUT", "/api/dataverses/closed", &edited).await?;
        assert!(got.status.is_success(), "{}", got.text());
        let note = format!("/api/datasets/{hidden}/versions/:draft/versionNote");
        server.send(&owner, "PUT", &note, "", HUSH).await?;
        let mut objects: Vec<String> = vec![hidden.to_string(), open.to_string()];
        objects.extend(files.iter().cloned());
        objects.extend(["closed", "tides", "fiona"].map(str::to_owned));
        let mut watched = vec![
            "/api/dataverses/closed".to_owned(),
            "/api/dataverses/tides".to_owned(),
            "/api/dataverses/closed/templates".to_owned(),
            "/api/dataverses/tides/templates".to_owned(),
            "/api/guestbooks/closed/list".to_owned(),
        ];
        for alias in ["closed", "tides"] {
            for list in ["assignments", "groups", "roles", "contents", "facets", "metadatablocks"] {
                watched.push(format!("/api/dataverses/{alias}/{list}"));
            }
        }
        for dataset in [hidden, open] {
            watched.push(format!("/api/datasets/{dataset}/versions"));
            watched.push(format!("/api/datasets/{dataset}/assignments"));
            watched.push(format!("/api/datasets/{dataset}/locks"));
        }
        watched.push("/api/users/:me".to_owned());
        Ok(Self { server, owner, stranger, objects, pids: vec![hidden_pid, open_pid], watched })
    }

    /// Returns the answers to the owner.
    async fn snapshot(&self) -> Result<Vec<(String, Value)>, Failure> {
        let mut all = Vec::new();
        for path in &self.watched {
            let got = self.server.get(&self.owner, path).await?;
            assert_eq!(got.status, StatusCode::OK, "{path}: {}", got.text());
            all.push((path.clone(), got.json()));
        }
        Ok(all)
    }

    /// Returns the requests for a path of the table, with its parameters replaced by values.
    fn ways(&self, path: &str) -> Vec<String> {
        let base = if ELSEWHERE.iter().any(|it| path.starts_with(it)) { "" } else { "/api" };
        let mut ways = vec![format!("{base}{path}")];
        let mut is_first = true;
        while let Some(start) = ways[0].find('{') {
            let end = ways[0][start..].find('}').map_or(ways[0].len(), |it| start + it + 1);
            let name = ways[0][start..end].to_owned();
            let values = self.values(name.trim_matches(['{', '}', '*']), is_first);
            ways = ways.iter().flat_map(|way| values.iter().map(|it| way.replacen(&name, it, 1))).collect();
            is_first = false;
        }
        let with_pid = |way: &String| -> Vec<String> {
            match way.contains(":persistentId") {
                true => {
                    self.pids.iter().map(|it| format!("{way}?persistentId={it}&version=:draft")).collect()
                }
                false => vec![way.clone()],
            }
        };
        ways.iter().flat_map(with_pid).collect()
    }

    /// Returns values for a parameter. The first parameter usually names an object; for the others fewer values are
    /// tried.
    fn values(&self, name: &str, is_first: bool) -> Vec<String> {
        let fixed: &[&str] = match name {
            "version" | "version1" | "version2" => &[":draft", ":latest", "1.0"],
            "format" | "exporter" => &["ddi", "schema.org", "BibTeX", "json"],
            "block" => &["citation"],
            _ => &[],
        };
        if !fixed.is_empty() {
            return fixed.iter().map(|it| (*it).to_owned()).collect();
        }
        if !is_first {
            return ["1", "some", "@fiona"]
                .map(str::to_owned)
                .into_iter()
                .chain(self.objects.get(2).cloned())
                .collect();
        }
        let mut values = self.objects.clone();
        values.extend([":persistentId", "1", "some", "root"].map(str::to_owned));
        values
    }
}

/// Returns whether a route is not reserved for operators: those have a gate with tests of its own.
fn is_open(path: &str) -> bool {
    !path.starts_with("/admin") && !path.starts_with("/builtin-users")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_tells_strangers_what_is_hidden() -> Result<(), Failure> {
    let world = World::new().await?;
    let (mut leaks, mut n_asked) = (BTreeSet::new(), 0);
    for (method, path) in pinakes_dataverse::table() {
        if method != Method::GET || !is_open(&path) || path == TOLD {
            continue;
        }
        for way in world.ways(&path) {
            for (who, key) in [("a guest", ""), ("a stranger", world.stranger.as_str())] {
                let got = world.server.get(key, &way).await?;
                n_asked += 1;
                assert_ne!(got.status, StatusCode::INTERNAL_SERVER_ERROR, "{who}: {way}: {}", got.text());
                let text = got.text().to_lowercase();
                if let Some(at) = text.find(HUSH) {
                    let from =
                        (0..=at.saturating_sub(80)).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0);
                    leaks.insert(format!("{who}: {path}: {way}: {}", &text[from..at + HUSH.len()]));
                }
            }
        }
    }
    assert!(1_000 < n_asked, "{n_asked} requests were made");
    assert!(
        leaks.is_empty(),
        "{} leaks of {n_asked}:\n{}",
        leaks.len(),
        leaks.into_iter().collect::<Vec<_>>().join("\n")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_lets_strangers_change_what_is_not_theirs() -> Result<(), Failure> {
    let world = World::new().await?;
    let mut before = world.snapshot().await?;
    let taken = json!({
        "name": "taken", "alias": "taken", "role": "admin", "assignee": "@stranger", "restrict": false,
        "fields": [{"typeName": "title", "value": "taken"}],
    });
    let bodies = ["".to_owned(), "true".to_owned(), taken.to_string()];
    let (mut changes, mut n_asked) = (Vec::new(), 0);
    for (method, path) in pinakes_dataverse::table() {
        if method == Method::GET || method == Method::HEAD || !is_open(&path) {
            continue;
        }
        for way in world.ways(&path) {
            for (who, key) in [("a guest", ""), ("a stranger", world.stranger.as_str())] {
                // Guests have fewer rights, so one body is enough.
                let n_bodies = if key.is_empty() { 1 } else { bodies.len() };
                for body in bodies.iter().take(n_bodies) {
                    let is_json = body.starts_with(['{', '[']);
                    let content_type = if is_json { "application/json" } else { "" };
                    let got = world
                        .server
                        .send(key, method.as_str(), &way, content_type, Body::from(body.clone()))
                        .await?;
                    n_asked += 1;
                    assert!(
                        got.status != StatusCode::INTERNAL_SERVER_ERROR
                            || ANSWERS_500.contains(&path.as_str()),
                        "{who}: {method} {way} {body}: {}",
                        got.text()
                    );
                    if !got.status.is_success() {
                        continue;
                    }
                    let after = world.snapshot().await?;
                    for (old, new) in before.iter().zip(&after).filter(|(old, new)| old != new) {
                        changes
                            .push(format!("{who}: {method} {way} {body}: {}: {} -> {}", old.0, old.1, new.1));
                    }
                    before = after;
                }
            }
        }
    }
    assert!(1_000 < n_asked, "{n_asked} requests were made");
    assert!(changes.is_empty(), "{} changes of {n_asked}:\n{}", changes.len(), changes.join("\n"));
    Ok(())
}
