//! Export.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use pinakes_blobs::Blob;
use pinakes_store::{Direction, Expr, Kind, Query, Tenant, View};
use serde_json::{Map, Value, json};

use super::collections::MARK;
use super::shape::{self, Leaf, Shape};
use super::{
    COLLECTIONS, Counts, DATASETS, FILES, FORM, LeftOut, MANIFEST, Manifest, MoveParts, MovingError, SITE,
    USERS, bytes,
};
use crate::collections::logo::COLLECTION_LOGO;
use crate::collections::{self, COLLECTION, ROOT};
use crate::dataset_types::DATASET_TYPE;
use crate::datasets::{self, DATASET, Dataset, VERSION};
use crate::error::ApiError;
use crate::files::kinds::{AUXILIARY, DATA_FILE, LOGO, PROVENANCE, REQUEST, ROW, TABLE};
use crate::groups::GROUP;
use crate::guestbooks::GUESTBOOK;
use crate::ids::FIRST;
use crate::licenses::{self, LICENSE};
use crate::links::LINK;
use crate::registry::BLOCK_SOURCE;
use crate::roles::{self, ROLE};
use crate::templates::TEMPLATE;
use crate::users::{self, USER};
use crate::{grants, stored};

/// Members of users that are not exported.
const OF_USERS_STAYING: [&str; 8] = [
    "account",
    "superuser",
    "lastLoginTime",
    "lastApiUseTime",
    "confirmationAsked",
    "rateLimitTier",
    "mutedNotifications",
    "mutedEmails",
];

/// Options of an export.
#[derive(Debug, Clone, Default)]
pub struct Exporting {
    /// The collection, with all below it; `None` for all.
    pub collection: Option<String>,
    /// Leaves out the bytes of files.
    pub without_files: bool,
}

/// Writes collections, datasets and files into a folder, from one consistent state. The folder must be new, empty, or
/// hold an earlier export, of which blobs that exist already are kept. Calls `note` with the numbers of bytes written.
/// Returns the number of each sort of object, and which blobs are missing.
///
/// Errors: the store, the folder; a collection that does not exist.
pub fn export(
    parts: &MoveParts,
    tenant: &Tenant,
    folder: &Path,
    asked: &Exporting,
    note: &mut dyn FnMut(u64),
) -> Result<(Counts, Vec<LeftOut>), MovingError> {
    claim(folder)?;
    let (manifest, blobs) = tenant.read_blocking(|view| -> Result<_, MovingError> {
        let mut out = Out {
            names: HashMap::new(),
            users: BTreeSet::new(),
            numbers: None,
            blobs: Vec::new(),
            counts: Counts::default(),
            folder,
            note: &mut *note,
        };
        let root = collections::by_id(view, ROOT)?.ok_or_else(|| {
            let advice = "nothing of Dataverse's dialect was ever asked of it";
            MovingError::Refused(format!(
                "the tenant has no collections: {advice}; name another one with --tenant"
            ))
        })?;
        let root = root.alias;
        let top = match &asked.collection {
            None => ROOT,
            Some(alias) => {
                let found = collections::find(view, alias);
                found.map_err(|error| MovingError::Refused(error.message))?.id
            }
        };
        out.site(view)?;
        let all = out.collections(view, top)?;
        out.datasets(view, &all)?;
        out.users(view, asked.collection.is_none())?;
        let id = parts.context.entropy().uuid().to_string();
        let manifest = Manifest {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            id,
            root,
            collection: asked.collection.clone(),
            files: !asked.without_files,
            numbers: out.numbers,
            counts: out.counts,
        };
        Ok((manifest, out.blobs))
    })?;
    let mut missing = Vec::new();
    if !asked.without_files {
        for (blob, name) in &blobs {
            if let Err(reason) = bytes::copy_out(parts.context.blobs(), tenant.name(), blob, folder, note)? {
                let file = format!("{FILES}/{}", bytes::name(blob));
                missing.push(LeftOut { file, line: 0, name: name.clone(), reason });
            }
        }
    }
    let path = folder.join(MANIFEST);
    let text = serde_json::to_vec_pretty(&manifest).map_err(|it| MovingError::Refused(it.to_string()))?;
    bytes::write_durably(&path, &text).map_err(MovingError::file(&path))?;
    Ok((manifest.counts, missing))
}

/// Makes sure that the folder may be written to: overwrites nothing but an export.
fn claim(folder: &Path) -> Result<(), MovingError> {
    // Only for its owner: it contains drafts, restricted files and mail addresses.
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(MovingError::file(folder))?;
    for entry in fs::read_dir(folder).map_err(MovingError::file(folder))? {
        let name = entry.map_err(MovingError::file(folder))?.file_name();
        let known = [MANIFEST, SITE, USERS, COLLECTIONS, DATASETS, FILES];
        if !known.iter().any(|it| name == *it) {
            let (folder, name) = (folder.display(), name.display());
            return Err(MovingError::Refused(format!(
                "{folder} holds {name}, which is no part of an export; name a folder that is new or empty"
            )));
        }
    }
    // Without this file, the folder is not a valid export until this one is complete.
    let path = folder.join(MANIFEST);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(MovingError::File { path, error }),
        _ => Ok(()),
    }
}

/// An export in progress.
struct Out<'e> {
    /// Cache of names.
    names: HashMap<(&'static str, i64), Option<String>>,
    /// Numbers of the users who were referred to.
    users: BTreeSet<i64>,
    numbers: Option<(i64, i64)>,
    /// Blobs, each with the object that refers to it.
    blobs: Vec<(Blob, String)>,
    counts: Counts,
    folder: &'e Path,
    note: &'e mut dyn FnMut(u64),
}

/// A file of JSON lines.
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Lines {
    fn begin(folder: &Path, name: &str) -> Result<Self, MovingError> {
        let path = folder.join(name);
        let file = File::create(&path).map_err(MovingError::file(&path))?;
        Ok(Self { path, file: BufWriter::new(file) })
    }

    fn end(self) -> Result<(), MovingError> {
        let Self { path, file } = self;
        let ended = file.into_inner().map_err(|it| it.into_error()).and_then(|it| it.sync_all());
        ended.map_err(MovingError::file(&path))
    }
}

impl Out<'_> {
    fn line(&mut self, lines: &mut Lines, line: &Value) -> Result<(), MovingError> {
        let text = format!("{line}\n");
        lines.file.write_all(text.as_bytes()).map_err(MovingError::file(&lines.path))?;
        (self.note)(text.len() as u64);
        Ok(())
    }

    /// Replaces the tenant's numbers in a record by names; `of` says what the record belongs to.
    fn named(
        &mut self,
        view: &mut View<'_>,
        mut value: Value,
        shape: Shape,
        of: &str,
    ) -> Result<Value, MovingError> {
        shape::each(&mut value, shape, &mut |leaf, it| self.leaf(view, leaf, it, of))?;
        Ok(value)
    }

    fn leaf(
        &mut self,
        view: &mut View<'_>,
        leaf: Leaf,
        value: &mut Value,
        of: &str,
    ) -> Result<(), MovingError> {
        match leaf {
            Leaf::Number => self.number(value.as_i64()),
            Leaf::Blob => {
                let text = value.as_str().unwrap_or_default();
                let blob: Blob = text.parse()?;
                *value = format!("{}-{}", blob.length, blob.sha256).into();
                self.blobs.push((blob, of.to_owned()));
            }
            Leaf::Assignee => {
                let text = value.as_str().unwrap_or_default();
                let group = text.strip_prefix("&explicit/").and_then(|it| it.split_once('-'));
                if let Some((owner, alias)) = group
                    && let Some(owner) =
                        owner.parse().ok().and_then(|it| self.name(view, "collection", it).transpose())
                {
                    *value = format!("&explicit/{}/{alias}", owner?).into();
                } else if let Some(name) = text.strip_prefix('@')
                    && let Some(user) = users::by_name(view, name)?
                {
                    self.users.insert(user.id);
                }
            }
            Leaf::User | Leaf::Collection | Leaf::Role | Leaf::License => {
                let sort = match leaf {
                    Leaf::User => "user",
                    Leaf::Collection => "collection",
                    Leaf::Role => "role",
                    _ => "license",
                };
                let id = value.as_i64().unwrap_or_default();
                if let Some(name) = self.name(view, sort, id)? {
                    *value = name.into();
                    if leaf == Leaf::User {
                        self.users.insert(id);
                    }
                } else {
                    // A user who was removed since, or the 0 that stands for no role.
                    *value = 0.into();
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, number: Option<i64>) {
        if let Some(number) = number.filter(|it| FIRST <= *it) {
            let (low, high) = self.numbers.unwrap_or((number, number));
            self.numbers = Some((low.min(number), high.max(number)));
        }
    }

    fn name(
        &mut self,
        view: &mut View<'_>,
        sort: &'static str,
        id: i64,
    ) -> Result<Option<String>, MovingError> {
        if let Some(known) = self.names.get(&(sort, id)) {
            return Ok(known.clone());
        }
        let name = match sort {
            "user" => users::by_id(view, id)?.map(|it| it.name),
            "collection" => collections::by_id(view, id)?.map(|it| it.alias),
            "role" => roles::by_id(view, id)?.map(|it| it.alias),
            _ => licenses::by_id(view, id)?.map(|it| it.name),
        };
        self.names.insert((sort, id), name.clone());
        Ok(name)
    }

    /// Returns the records of a kind for which `column` is `number`, ordered by number, with names.
    fn of(
        &mut self,
        view: &mut View<'_>,
        (kind, column, number): (&'static Kind, &str, i64),
        shape: Shape,
        of: &str,
    ) -> Result<Vec<Value>, MovingError> {
        let mut found = Vec::new();
        let query = Query::filter(Expr::Is(column.into(), number.into()));
        view.try_for_each(kind, &query, |record| {
            found.push((number_of(&record.id), record.id.clone(), record.json()?));
            Ok::<_, MovingError>(())
        })?;
        found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        found.into_iter().map(|it| self.named(view, it.2, shape, of)).collect()
    }

    /// Returns the role assignments on an object.
    fn assignments(&mut self, view: &mut View<'_>, object: i64, of: &str) -> Result<Vec<Value>, MovingError> {
        let mut all = Vec::new();
        for grant in grants::grants_on(view, object)? {
            // Holders of a private URL: private URLs are not exported.
            if grant.assignee.starts_with('!') {
                continue;
            }
            for it in &grant.roles {
                all.push(json!({"id": it.id, "assignee": grant.assignee, "role": it.role}));
            }
        }
        all.sort_by_key(|it| it["id"].as_i64());
        all.into_iter().map(|it| self.named(view, it, shape::ASSIGNMENT, of)).collect()
    }

    fn links(&mut self, view: &mut View<'_>, object: i64, of: &str) -> Result<Vec<Value>, MovingError> {
        let mut links = self.of(view, (&LINK, "linked", object), shape::LINK, of)?;
        for link in &mut links {
            without(link, &["search", "linked", "isDataset"]);
        }
        links.sort_by(|a, b| a["collection"].as_str().cmp(&b["collection"].as_str()));
        Ok(links)
    }

    fn site(&mut self, view: &mut View<'_>) -> Result<(), MovingError> {
        let mut lines = Lines::begin(self.folder, SITE)?;
        let sorts: [(&str, &'static Kind, Shape); 4] = [
            ("block", &BLOCK_SOURCE, shape::BLOCK),
            ("license", &LICENSE, shape::LICENSE),
            ("type", &DATASET_TYPE, shape::TYPE),
            ("role", &ROLE, shape::ROLE),
        ];
        for (sort, kind, shape) in sorts {
            let mut all = Vec::new();
            for record in view.find(kind, &Query::filter(Expr::All))? {
                all.push((number_of(&record.id), record.json()?));
            }
            all.sort_by_key(|it| it.0);
            // The roles of collections are in their own lines.
            for (_, value) in all.into_iter().filter(|it| sort != "role" || it.1["ownerId"].is_null()) {
                let named = self.named(view, value, shape, sort)?;
                self.line(&mut lines, &json!({sort: named}))?;
                self.counts.site += 1;
            }
        }
        lines.end()
    }

    /// Returns the numbers of a collection and all below it, parents first.
    fn collections(&mut self, view: &mut View<'_>, top: i64) -> Result<Vec<i64>, MovingError> {
        let mut lines = Lines::begin(self.folder, COLLECTIONS)?;
        let (mut all, mut next) = (vec![top], 0);
        while let Some(&id) = all.get(next) {
            next += 1;
            let record = view.get(&COLLECTION, &id.to_string())?;
            let Some(record) = record else { continue };
            let mut body = record.json()?;
            if let Some(more) = body.get_mut("more") {
                without(more, &[MARK]);
            }
            let of = body["alias"].as_str().unwrap_or_default().to_owned();
            let mut line = Map::new();
            line.insert("collection".into(), self.named(view, body, shape::COLLECTION, &of)?);
            let mut put = |name: &str, found: Vec<Value>| {
                if !found.is_empty() {
                    line.insert(name.into(), found.into());
                }
            };
            put("roles", self.of(view, (&ROLE, "ownerId", id), shape::ROLE, &of)?);
            let mut groups = self.of(view, (&GROUP, "owner", id), shape::GROUP, &of)?;
            groups.iter_mut().for_each(|it| without(it, &["identifier"]));
            put("groups", groups);
            put("guestbooks", self.of(view, (&GUESTBOOK, "collection", id), shape::GUESTBOOK, &of)?);
            put("templates", self.of(view, (&TEMPLATE, "collection", id), shape::TEMPLATE, &of)?);
            put("assignments", self.assignments(view, id, &of)?);
            put("links", self.links(view, id, &of)?);
            if let Some(logo) = view.get(&COLLECTION_LOGO, &id.to_string())? {
                line.insert("logo".into(), self.named(view, logo.json()?, shape::LOGO, &of)?);
            }
            self.line(&mut lines, &Value::Object(line))?;
            self.counts.collections += 1;
            let mut below: Vec<i64> = collections::children(view, id)?.iter().map(|it| it.id).collect();
            below.sort_unstable();
            all.extend(below);
        }
        lines.end()?;
        Ok(all)
    }

    fn datasets(&mut self, view: &mut View<'_>, collections: &[i64]) -> Result<(), MovingError> {
        let mut lines = Lines::begin(self.folder, DATASETS)?;
        for owner in collections {
            let ids = crate::files::rows::ids_of(view, &DATASET, Expr::Is("owner".into(), (*owner).into()))?;
            let mut ids: Vec<i64> = ids.iter().filter_map(|it| it.parse().ok()).collect();
            ids.sort_unstable();
            for id in ids {
                // Harvested datasets are harvested again.
                if let Some(dataset) = datasets::by_id(view, id)?.filter(|it| it.harvested_by.is_none()) {
                    self.dataset(view, &mut lines, &dataset)?;
                }
            }
        }
        lines.end()
    }

    fn dataset(
        &mut self,
        view: &mut View<'_>,
        lines: &mut Lines,
        dataset: &Dataset,
    ) -> Result<(), MovingError> {
        let (id, of) = (dataset.id, dataset.pid.as_str());
        let head = stays_at_home(dataset.clone());
        let body = serde_json::to_value(&head).map_err(|it| ApiError::internal(it.to_string()))?;
        let versions = {
            let of_it = Query::filter(Expr::Is("dataset".into(), id.into()));
            view.find(&VERSION, &of_it.sorted("ordinal", Direction::Ascending))?
        };
        let file_ids = crate::files::rows::ids_of(view, &DATA_FILE, Expr::Is("dataset".into(), id.into()))?;
        let mut file_ids: Vec<i64> = file_ids.iter().filter_map(|it| it.parse().ok()).collect();
        file_ids.sort_unstable();
        let mut line = Map::new();
        line.insert("dataset".into(), self.named(view, body, shape::DATASET, of)?);
        line.insert("versions".into(), versions.len().into());
        line.insert("files".into(), file_ids.len().into());
        for (name, found) in
            [("assignments", self.assignments(view, id, of)?), ("links", self.links(view, id, of)?)]
        {
            if !found.is_empty() {
                line.insert(name.into(), found.into());
            }
        }
        if let Some(logo) = view.get(&LOGO, &id.to_string())? {
            line.insert("logo".into(), self.named(view, logo.json()?, shape::LOGO, of)?);
        }
        self.line(lines, &Value::Object(line))?;
        self.counts.datasets += 1;
        for version in versions {
            let named = self.named(view, version.json()?, shape::VERSION, of)?;
            self.line(lines, &json!({"version": named}))?;
            self.counts.versions += 1;
        }
        for file in file_ids {
            if let Some(line) = self.file(view, file, of)? {
                self.line(lines, &line)?;
                self.counts.files += 1;
            }
        }
        Ok(())
    }

    fn file(&mut self, view: &mut View<'_>, id: i64, pid: &str) -> Result<Option<Value>, MovingError> {
        let key = id.to_string();
        let Some(record) = view.get(&DATA_FILE, &key)? else { return Ok(None) };
        let of = format!("file {id} of {pid}");
        let mut line = Map::new();
        line.insert("file".into(), self.named(view, record.json()?, shape::DATA_FILE, &of)?);
        let mut rows = self.of(view, (&ROW, "file", id), shape::ROW, &of)?;
        for row in &mut rows {
            without(row, &["openPath", "openSum"]);
        }
        line.insert("rows".into(), rows.into());
        for (name, kind, shape) in
            [("table", &TABLE, shape::TABLE), ("provenance", &PROVENANCE, &[] as Shape)]
        {
            if let Some(found) = view.get(kind, &key)? {
                line.insert(name.into(), self.named(view, found.json()?, shape, &of)?);
            }
        }
        for (name, found) in [
            ("auxiliaries", self.of(view, (&AUXILIARY, "file", id), shape::AUXILIARY, &of)?),
            ("requests", self.of(view, (&REQUEST, "file", id), shape::REQUEST, &of)?),
            ("assignments", self.assignments(view, id, &of)?),
        ] {
            if !found.is_empty() {
                line.insert(name.into(), found.into());
            }
        }
        Ok(Some(Value::Object(line)))
    }

    /// Writes the users who were referred to; all users if the whole tenant is exported.
    fn users(&mut self, view: &mut View<'_>, all: bool) -> Result<(), MovingError> {
        let mut lines = Lines::begin(self.folder, USERS)?;
        let mut ids: Vec<i64> = self.users.iter().copied().collect();
        if all {
            let found = crate::files::rows::ids_of(view, &USER, Expr::All)?;
            ids = found.iter().filter_map(|it| it.parse().ok()).collect();
        }
        let mut found = Vec::new();
        for id in ids {
            let record: Option<Value> = stored::get(view, &USER, &id.to_string())?;
            found.extend(record);
        }
        // By name: numbers of users who existed before an import differ.
        found.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        for mut user in found {
            without(&mut user, &OF_USERS_STAYING);
            let named = self.named(view, user, shape::USER, "user")?;
            self.line(&mut lines, &named)?;
            self.counts.users += 1;
        }
        lines.end()
    }
}

/// Returns a dataset without what is only valid in this tenant: private URLs and temporary locks.
fn stays_at_home(dataset: Dataset) -> Dataset {
    let locks = dataset.locks.iter().filter(|it| it.lock_type == "InReview").cloned().collect::<Vec<_>>();
    let is_locked = (!locks.is_empty()).then_some(true);
    Dataset { locks, is_locked, preview_anonymized: None, ..dataset }
}

/// Returns an id as a number.
fn number_of(id: &str) -> i64 {
    id.parse().unwrap_or(i64::MAX)
}

fn without(value: &mut Value, names: &[&str]) {
    if let Value::Object(map) = value {
        map.retain(|name, _| !names.contains(&name.as_str()));
    }
}
