//! Versions of a deposit, and the differences between two of them: fields, files, terms.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::deposit::path_of;
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::{Link, items, text};

/// Maximum number of versions that a page lists.
const VERSIONS_MAX: u32 = 100;
/// Maximum number of differences of one kind that a page lists.
const DIFFERENCES_MAX: usize = 1000;

/// A version in a list.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Version {
    /// Its name in addresses: `1.0`, or `:draft`.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// The day on which it was published; empty for a draft.
    pub(crate) date: String,
    pub(crate) note: String,
}

impl Version {
    fn of(it: &Value) -> Self {
        let is_draft = text(it, "versionState") == "DRAFT";
        let name = version_name(it);
        let date = text(it, "releaseTime");
        Self {
            id: if is_draft { ":draft".to_owned() } else { name.clone() },
            name,
            date: date.get(..10).unwrap_or_default().to_owned(),
            note: [text(it, "versionNote"), text(it, "deaccessionNote")]
                .into_iter()
                .find(|it| !it.is_empty())
                .unwrap_or_default(),
        }
    }
}

impl Site {
    /// Returns the versions of a deposit that the visitor may see, newest first.
    pub(crate) async fn versions(&self, visitor: &Visitor, pid: &str) -> Result<Vec<Version>> {
        let path = path_of(pid, "/versions");
        let path = format!("{path}&excludeFiles=true&excludeMetadataBlocks=true&limit={VERSIONS_MAX}");
        let said = self.read(visitor, "dataverse", &path).await?;
        Ok(items(&said, "data").iter().map(Version::of).collect())
    }

    /// Returns the first files of a version, and the number of all. The visitor sees no file of a version whose files
    /// Dataverse does not list for them.
    pub(crate) async fn first_files(
        &self,
        visitor: &Visitor,
        pid: &str,
        version: &Value,
        n_max: usize,
    ) -> Result<(Vec<Value>, u64)> {
        let path = path_of(pid, &format!("/versions/{}/files", Version::of(version).id));
        let path = format!("{path}&limit={n_max}&includeDeaccessioned=true");
        match self.read(visitor, "dataverse", &path).await {
            Ok(mut said) => {
                let n_all = said["totalCount"].as_u64().unwrap_or(0);
                Ok((said["data"].as_array_mut().map(std::mem::take).unwrap_or_default(), n_all))
            }
            Err(SiteError::NotFound | SiteError::SignIn) => Ok((Vec::new(), 0)),
            Err(error) => Err(error),
        }
    }
}

/// Returns rows of the table of versions on a deposit's page.
pub(crate) fn rows(pid: &str, versions: &[Version], differences: &str) -> Vec<Vec<Link>> {
    let rest = encoded_rest(pid);
    let row = |(at, it): (usize, &Version)| {
        let before = versions.get(at + 1).map(|before| {
            let (from, to) = (encoded(&before.id), encoded(&it.id));
            Link::to(differences, format!("/site/differences/{rest}?from={from}&to={to}"))
        });
        vec![
            Link::to(it.name.clone(), format!("/site/deposit/{rest}?version={}", encoded(&it.id))),
            Link::plain(it.date.clone()),
            Link::plain(it.note.clone()),
            before.unwrap_or_default(),
        ]
    };
    versions.iter().enumerate().map(row).collect()
}

/// A difference: its name, and the values before and after.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Difference {
    what: String,
    before: String,
    after: String,
}

/// Differences of one kind.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Group {
    key: &'static str,
    /// Whether there are two values to compare; otherwise only names are listed.
    is_pairs: bool,
    list: Vec<Difference>,
}

/// `GET /site/differences/{pid}?from=&to=`
pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
    fields: Fields,
) -> Result<Response> {
    let page = compared(&site, &visitor, &pid, &fields).await;
    site.shown(&visitor, page)
}

async fn compared(site: &Site, visitor: &Visitor, pid: &str, fields: &Fields) -> Result<Response> {
    let versions = site.versions(visitor, pid).await?;
    // By default the newest two are compared. The older one comes first, whatever their order in the request.
    let place = |name: &str| versions.iter().position(|it| it.id == name);
    let (a, b) = (place(fields.text("from")).unwrap_or(1), place(fields.text("to")).unwrap_or(0));
    let (older, newer) = (versions.get(a.max(b)), versions.get(a.min(b)));
    let (mut groups, mut from, mut to) = (Vec::new(), "", "");
    if let (Some(older), Some(newer)) = (older, newer) {
        (from, to) = (&older.id, &newer.id);
        if older.id != newer.id {
            let rest = format!("/versions/{}/compare/{}", encoded(&older.id), encoded(&newer.id));
            let path = path_of(pid, &rest).replace("%3A", ":");
            let path = format!("{path}&includeDeaccessioned=true");
            let said = site.read(visitor, "dataverse", &path).await?;
            groups = differences(&said["data"]);
        }
    }
    let page = json!({
        "title_key": "differences_of", "pid": pid, "versions": versions, "from": from, "to": to, "groups": groups,
        "here": format!("/site/differences/{}", encoded_rest(pid)),
        "deposit": format!("/site/deposit/{}", encoded_rest(pid)),
    });
    site.page(visitor, StatusCode::OK, "differences.html", page)
}

/// Formats a value of a comparison as text.
fn said(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(said).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// Returns the differences in Dataverse's comparison, in the order of the page.
fn differences(it: &Value) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut add = |key: &'static str, is_pairs: bool, mut list: Vec<Difference>| {
        list.truncate(DIFFERENCES_MAX);
        if !list.is_empty() {
            groups.push(Group { key, is_pairs, list });
        }
    };
    let pair = |what: String, it: &Value| Difference {
        what,
        before: said(&it["oldValue"]),
        after: said(&it["newValue"]),
    };
    let changed = items(it, "metadataChanges").iter().flat_map(|block| items(block, "changed"));
    add("metadata_changes", true, changed.map(|it| pair(text(it, "fieldName"), it)).collect());
    let name = |it: &Value| {
        let (folder, name) = (text(it, "filePath"), text(it, "fileName"));
        if folder.is_empty() { name } else { format!("{folder}/{name}") }
    };
    let alone = |it: &Value| Difference { what: name(it), before: String::new(), after: String::new() };
    add("files_added", false, items(it, "filesAdded").iter().map(alone).collect());
    add("files_removed", false, items(it, "filesRemoved").iter().map(alone).collect());
    let replaced = items(it, "filesReplaced").iter().map(|it| Difference {
        what: name(&it["newFile"]),
        before: format!("{} ({})", name(&it["oldFile"]), text(it, "oldFile/MD5")),
        after: format!("{} ({})", name(&it["newFile"]), text(it, "newFile/MD5")),
    });
    add("files_replaced", true, replaced.collect());
    let described = items(it, "fileChanges").iter().flat_map(|file| {
        let of = text(file, "fileName");
        let parts = file["changed"].as_object().into_iter().flatten();
        parts.map(move |(part, it)| pair(format!("{of}: {part}"), it)).collect::<Vec<_>>()
    });
    add("files_changed", true, described.collect());
    let terms = it["TermsOfAccess"]["changed"].as_object().into_iter().flatten();
    add("terms_changes", true, terms.map(|(what, it)| pair(what.clone(), it)).collect());
    groups
}

/// Returns `2.1`, or the state of a version without numbers.
pub(crate) fn version_name(version: &Value) -> String {
    match (version["versionNumber"].as_u64(), version["versionMinorNumber"].as_u64()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => text(version, "versionState"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_grouped_as_the_page_shows_them() {
        let said = json!({
            "metadataChanges": [{"blockName": "Citation", "changed": [{"fieldName": "Title", "oldValue": "a", "newValue": "b"}]}],
            "filesAdded": [{"fileName": "x.csv", "filePath": "data"}],
            "fileChanges": [{"fileName": "y", "changed": {"IsRestricted": {"oldValue": false, "newValue": true}}}],
            "TermsOfAccess": {"changed": {"license": {"oldValue": 1, "newValue": null}}},
        });
        let found = differences(&said);
        let keys: Vec<_> = found.iter().map(|it| it.key).collect();
        assert_eq!(keys, ["metadata_changes", "files_added", "files_changed", "terms_changes"]);
        assert_eq!(found[1].list[0].what, "data/x.csv");
        assert_eq!(
            (found[2].list[0].what.as_str(), found[2].list[0].after.as_str()),
            ("y: IsRestricted", "true")
        );
    }

    #[test]
    fn each_version_leads_to_its_differences_from_the_one_before() {
        let of =
            |id: &str| Version { id: id.into(), name: id.into(), date: String::new(), note: String::new() };
        let rows = rows("doi:10.1/x", &[of(":draft"), of("1.0")], "Differences");
        assert_eq!(rows[0][3].href.as_deref(), Some("/site/differences/doi%3A10.1/x?from=1.0&to=%3Adraft"));
        assert_eq!(rows[1][3], Link::default());
    }
}
