//! Import of collections: first all of them with what they own, then whatever refers to other objects.
//!
//! A collection that was created has a mark until the second step has processed it, so that a repeated import completes
//! it and does not restore what was removed in the meantime.

use std::sync::Arc;

use pinakes_store::{Txn, View};
use serde::Deserialize;
use serde_json::{Value, json};

use super::import::{In, Line};
use super::numbers::Inward;
use super::site::{fresh, read};
use super::{COLLECTIONS, MovingError, shape};
use crate::app::Dataverse;
use crate::collections::logo::COLLECTION_LOGO;
use crate::collections::{self, COLLECTION, Collection, DEPTH, ROOT};
use crate::error::ApiError;
use crate::grants::{Assigned, GRANT, Grant, grant_id};
use crate::groups::{GROUP, Group, explicit};
use crate::guestbooks::{GUESTBOOK, Guestbook};
use crate::links::{self, Link};
use crate::roles::{self, ROLE, Role};
use crate::templates::{TEMPLATE, Template};
use crate::{changes, stored, users};

/// The mark of an incomplete collection, one of its settings.
pub(super) const MARK: &str = "arriving";

/// A line of `collections.jsonl`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Said {
    collection: Value,
    roles: Vec<Value>,
    groups: Vec<Value>,
    guestbooks: Vec<Value>,
    templates: Vec<Value>,
    assignments: Vec<Value>,
    links: Vec<Value>,
    logo: Option<Value>,
}

/// How a collection of the export is represented here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// It was created now.
    Made(i64),
    /// It was imported before.
    Before(i64),
    /// Another collection has its name.
    Other(i64),
}

impl Came {
    fn id(self) -> i64 {
        let (Self::Made(id) | Self::Before(id) | Self::Other(id)) = self;
        id
    }
}

impl In<'_> {
    pub(super) fn collections(&mut self) -> Result<(), MovingError> {
        let n = self.each_line(COLLECTIONS, Self::begin)?;
        self.compare(COLLECTIONS, "collections", n, self.manifest.counts.collections);
        self.each_line(COLLECTIONS, Self::complete)?;
        Ok(())
    }

    fn begin(&mut self, line: Line) -> Result<(), MovingError> {
        let mut said: Said = match line.parsed() {
            Ok(said) => said,
            Err(reason) => {
                self.leave_out(COLLECTIONS, line.number, "", reason);
                return Ok(());
            }
        };
        let alias = said.collection["alias"].as_str().unwrap_or_default().to_owned();
        if line.number == 1
            && let Some(into) = &self.into
        {
            said.collection["parent"] = into.as_str().into();
        }
        let blobs = self.app.context.blobs().clone();
        let mut taking = self.taking(&blobs);
        let (inward, wanted) = (self.inward.clone(), said.collection.clone());
        let there = self.tenant.read_blocking(|view| found(view, &inward, &wanted));
        if matches!(there, Ok(None))
            && let Some(logo) = &mut said.logo
            && let Err(reason) = taking.take(logo, shape::LOGO, None, self.note)
        {
            self.leave_out(COLLECTIONS, line.number, &alias, format!("its picture: {reason}"));
            said.logo = None;
        }
        let inward = self.inward.clone();
        let (write, is_kept) = (said.clone(), said.logo.is_some());
        let written = self.tenant.write_blocking(move |txn: &mut Txn<'_>| begin(txn, &inward, &write));
        if !(is_kept && matches!(written, Ok((Came::Made(_), _)))) {
            taking.give_up();
        }
        let (came, notes) = match written {
            Ok(done) => done,
            Err(error) => return self.blame(COLLECTIONS, line.number, &alias, error),
        };
        for what in notes {
            self.tell(COLLECTIONS, line.number, &alias, what);
        }
        Arc::make_mut(&mut self.inward.collections).insert(alias.clone(), came.id());
        match came {
            Came::Made(_) => self.moved.stored.collections += 1,
            Came::Before(_) => self.moved.n_there += 1,
            Came::Other(_) => {
                self.moved.n_there += 1;
                self.tell(
                    COLLECTIONS,
                    line.number,
                    &alias,
                    "is there already and stays as it is; what lies in it is put there",
                );
            }
        }
        Ok(())
    }

    /// Lines that could not be parsed were reported by [`Self::begin`].
    fn complete(&mut self, line: Line) -> Result<(), MovingError> {
        let Ok(said) = line.parsed::<Said>() else { return Ok(()) };
        let alias = said.collection["alias"].as_str().unwrap_or_default().to_owned();
        let Some(&id) = self.inward.collections.get(&alias) else { return Ok(()) };
        let (app, inward) = (self.app.clone(), self.inward.clone());
        let write = move |txn: &mut Txn<'_>| complete(txn, &app, &inward, id, &said);
        match self.tenant.write_blocking(write) {
            Ok(notes) => notes.into_iter().for_each(|what| self.tell(COLLECTIONS, line.number, &alias, what)),
            Err(error) => self.blame(COLLECTIONS, line.number, &alias, error)?,
        }
        Ok(())
    }
}

/// Returns the collection if it exists here already.
fn found(view: &mut View<'_>, inward: &Inward, said: &Value) -> Result<Option<Came>, ApiError> {
    let id = said["id"].as_i64().ok_or_else(|| ApiError::bad_request("the collection has no id"))?;
    if said["parent"].is_null() {
        // The root collection of a new tenant takes the contents of the exported root.
        return Ok(match (inward.is_new, inward.has_root(view)?) {
            (true, false) => None,
            (true, true) => Some(Came::Before(ROOT)),
            (false, _) => Some(Came::Other(ROOT)),
        });
    }
    let id = inward.own(id)?;
    if collections::by_id(view, id)?.is_some() {
        return Ok(Some(Came::Before(id)));
    }
    let alias = said["alias"].as_str().unwrap_or_default();
    Ok(collections::by_alias(view, alias)?.map(|it| Came::Other(it.id)))
}

fn begin(txn: &mut Txn<'_>, inward: &Inward, said: &Said) -> Result<(Came, Vec<String>), ApiError> {
    if let Some(came) = found(txn, inward, &said.collection)? {
        return Ok((came, Vec::new()));
    }
    let mut body = said.collection.clone();
    // The collection's own roles are created after it.
    let contributor_role = body["defaultContributorRole"].as_str().map(str::to_owned);
    if let Value::Object(map) = &mut body {
        map.retain(|name, value| !(name == "defaultContributorRole" && value.is_string()));
    }
    let is_fair = !body["isLocallyFair"].is_null();
    let mut collection: Collection = read(inward.numbered(txn, body, shape::COLLECTION)?)?;
    // The API expects a 500 for an invalid collection; here only the line is left out.
    collections::write::check(&collection).map_err(|error| {
        let shown = error.message.trim_start_matches("Error creating dataverse: Command failed: ");
        ApiError::bad_request(shown)
    })?;
    let is_root = collection.parent.is_none();
    if is_root {
        collection.id = ROOT;
    } else {
        let above = collections::named_by_record(txn, collection.parent.unwrap_or(ROOT))?;
        if DEPTH <= collections::with_owners(txn, above)?.len() {
            return Err(ApiError::bad_request(format!("lies below more than {DEPTH} collections")));
        }
    }
    if is_fair {
        collection.is_locally_fair = Some(true);
    }
    collection.more.insert(MARK.to_owned(), true.into());
    let (id, mut notes) = (collection.id, Vec::new());
    // Objects that it owns refer to it by name.
    let mut inward = inward.clone();
    Arc::make_mut(&mut inward.collections).insert(collection.alias.clone(), id);
    for role in &said.roles {
        let mut role: Role = read(inward.numbered(txn, role.clone(), shape::ROLE)?)?;
        role.owner_id = Some(id);
        if roles::by_alias(txn, &role.alias)?.is_some() {
            notes.push(format!("the role {} is there already and stays as it is", role.alias));
            continue;
        }
        fresh(txn, &ROLE, &role.id.to_string(), &role)?;
    }
    for group in &said.groups {
        let mut group = group.clone();
        let alias = group["alias"].as_str().unwrap_or_default().to_owned();
        if alias.is_empty() || alias.contains('/') {
            return Err(ApiError::bad_request(format!("the group {alias:?} cannot have that name")));
        }
        group["members"] = json!([]);
        group["identifier"] = explicit::identifier(id, &alias).into();
        let group: Group = read(inward.numbered(txn, group, shape::GROUP)?)?;
        fresh(txn, &GROUP, &group.id.to_string(), &Group { owner: id, ..group })?;
    }
    for guestbook in &said.guestbooks {
        let found: Guestbook = read(inward.numbered(txn, guestbook.clone(), shape::GUESTBOOK)?)?;
        fresh(txn, &GUESTBOOK, &found.id.to_string(), &Guestbook { collection: id, ..found })?;
    }
    for template in &said.templates {
        let found: Template = read(inward.numbered(txn, template.clone(), shape::TEMPLATE)?)?;
        fresh(txn, &TEMPLATE, &found.id.to_string(), &Template { collection: id, ..found })?;
    }
    if let Some(logo) = said.logo.as_ref().filter(|it| !it["blob"].is_null()) {
        stored::put(txn, &COLLECTION_LOGO, &id.to_string(), logo)?;
    }
    if let Some(template) = collection.default_template
        && !txn.has(&TEMPLATE, &template.to_string())?
    {
        collection.default_template = None;
        notes.push("the template that its datasets begin with is not here".to_owned());
    }
    if let Some(alias) = contributor_role {
        match roles::by_alias(txn, &alias)? {
            Some(role) => collection.default_contributor_role = Some(role.id),
            None => notes.push(format!("the role {alias}, its default, is not here")),
        }
    }
    match is_root {
        true => {
            collections::put(txn, &collection)?;
            inward.root_came(txn)?;
        }
        false => fresh(txn, &COLLECTION, &id.to_string(), &collection)?,
    }
    Ok((Came::Made(id), notes))
}

fn complete(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    inward: &Inward,
    id: i64,
    said: &Said,
) -> Result<Vec<String>, ApiError> {
    let Some(mut collection) = collections::by_id(txn, id)?.filter(|it| it.more.contains_key(MARK)) else {
        return Ok(Vec::new());
    };
    let mut notes = Vec::new();
    for group in &said.groups {
        let identifier = explicit::identifier(id, group["alias"].as_str().unwrap_or_default());
        let Some(mut known) = crate::groups::by_identifier(txn, &identifier)? else { continue };
        for member in group["members"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let member = inward.assignee(txn, member)?;
            if !is_here(txn, &member)? {
                notes.push(format!("{member}, who is not here, is not in the group {}", known.alias));
            } else if !known.members.contains(&member) {
                known.members.push(member);
            }
        }
        stored::put(txn, &GROUP, &known.id.to_string(), &known)?;
    }
    grant(txn, inward, id, &said.assignments, &mut notes)?;
    let show = Shown { linked: id, is_dataset: false };
    link(txn, inward, show, &said.links, &mut notes)?;
    // Visibility can be set now: the groups that came after the collection exist.
    let named = said.collection["more"]["locallyFairRoleAssignees"].as_array().cloned().unwrap_or_default();
    let mut here = Vec::new();
    for name in named.iter().filter_map(Value::as_str) {
        let name = inward.assignee(txn, name)?;
        // A name that nobody has, so that the collection stays hidden rather than open to everybody.
        here.push(if is_here(txn, &name)? { name } else { format!("!{name}") });
    }
    if !here.is_empty() {
        collection.more.insert("locallyFairRoleAssignees".to_owned(), json!(here));
    }
    collection.more.remove(MARK);
    collections::put(txn, &collection)?;
    changes::collection(txn, app, id)?;
    Ok(notes)
}

/// Assigns roles on an object, except those that are assigned already.
pub(super) fn grant(
    txn: &mut Txn<'_>,
    inward: &Inward,
    object: i64,
    assignments: &[Value],
    notes: &mut Vec<String>,
) -> Result<(), ApiError> {
    for it in assignments {
        let (assignee, alias) =
            (it["assignee"].as_str().unwrap_or_default(), it["role"].as_str().unwrap_or_default());
        let assignee = inward.assignee(txn, assignee)?;
        let id = it["id"].as_i64().ok_or_else(|| ApiError::bad_request("an assignment has no id"))?;
        let Some(role) = roles::by_alias(txn, alias)? else {
            notes.push(format!("{assignee} does not get the role {alias}, which is not here"));
            continue;
        };
        if !is_here(txn, &assignee)? {
            notes.push(format!("{assignee}, who is not here, does not get the role {alias}"));
            continue;
        }
        let key = grant_id(object, &assignee);
        let held: Option<Grant> = stored::get(txn, &GRANT, &key)?;
        let mut held = held.unwrap_or(Grant { object, assignee, roles: Vec::new() });
        if held.roles.iter().all(|it| it.role != role.id) {
            held.roles.push(Assigned { id: inward.number(id)?, role: role.id });
            stored::put(txn, &GRANT, &key, &held)?;
        }
    }
    Ok(())
}

/// Returns whether an assignee exists here.
fn is_here(view: &mut View<'_>, assignee: &str) -> Result<bool, ApiError> {
    match assignee.strip_prefix('@') {
        Some(name) => Ok(users::by_name(view, name)?.is_some()),
        None if assignee.starts_with('&') => {
            Ok(crate::groups::membership::name_of(view, assignee)?.is_some())
        }
        None => Ok([":guest", ":authenticated-users", ":AllUsers"].contains(&assignee)),
    }
}

/// An object that is linked elsewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) linked: i64,
    pub(super) is_dataset: bool,
}

/// Links an object to other collections.
pub(super) fn link(
    txn: &mut Txn<'_>,
    inward: &Inward,
    shown: Shown,
    all: &[Value],
    notes: &mut Vec<String>,
) -> Result<(), ApiError> {
    for it in all {
        let alias = it["collection"].as_str().unwrap_or_default();
        let Ok(collection) = inward.collection(txn, alias) else {
            notes.push(format!("is not linked to the collection {alias}, which is not here"));
            continue;
        };
        let created = it["created"].as_str().unwrap_or_default().to_owned();
        let Shown { linked, is_dataset } = shown;
        links::insert(txn, &Link { linked, is_dataset, collection, created, search: None })?;
    }
    Ok(())
}
