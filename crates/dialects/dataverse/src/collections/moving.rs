//! Moving a collection into another one: `POST /api/dataverses/{id}/move/{target}`.
//!
//! Whatever depends on its former place (guestbooks and templates of collections above, links, metadata blocks) is
//! reported; with `forceMove` it is dropped.

use pinakes_store::{Txn, View};
use serde_json::Value;

use crate::app::Call;
use crate::blocks::Registry;
use crate::collections::{self, Collection, ROOT};
use crate::datasets::{self, DATASET, Dataset};
use crate::error::{Answer, ApiError};
use crate::guestbooks::{GUESTBOOK, Guestbook};
use crate::routing::Routes;
use crate::templates::{TEMPLATE, Template};
use crate::{changes, envelope, featured, links, stored};

const ADVICE: &str = "Please use the API and see \"Move a Dataverse Collection\" with the parameter ?forceMove=true to complete the move. This will remove anything from the dataverse that is not compatible with the target dataverse.";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/dataverses/{id}/move/{target}", relocate)
}

/// Moves a collection; superusers only. Errors: 403 for an invalid target, and for dependencies that would have to be
/// dropped.
async fn relocate(call: Call) -> Answer {
    call.asker.superuser("Move Dataverse can only be called by superusers.")?;
    let (app, id, target) = (call.app.clone(), call.param("id").to_owned(), call.param("target").to_owned());
    let (force, registry) = (call.query.is_true("forceMove"), call.app.registry(call.db()).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let collection = collections::find(txn, &id)?;
        let target = collections::find(txn, &target)?;
        check_move(txn, &collection, &target)?;
        let mut moved = Moved::of(txn, &collection, &target)?;
        let bound = moved.bound(txn, &registry)?;
        if !bound.is_empty() && !force {
            return Err(ApiError::forbidden(format!("{} {ADVICE}", bound.join(" "))));
        }
        if !bound.is_empty() {
            moved.give_up(txn, &registry)?;
        }
        let mut collection = collections::named_by_record(txn, collection.id)?;
        collection.parent = Some(target.id);
        collections::put(txn, &collection)?;
        changes::collection(txn, &app, collection.id)?;
        changes::below(txn, &app, collection.id)
    };
    call.db().write(write).await?;
    envelope::message("Dataverse moved successfully")
}

fn check_move(view: &mut View<'_>, collection: &Collection, target: &Collection) -> Result<(), ApiError> {
    if collection.id == ROOT {
        return Err(ApiError::forbidden("The root dataverse cannot be moved."));
    }
    if collection.id == target.id {
        return Err(ApiError::forbidden("Cannot move a dataverse into itself"));
    }
    if collection.parent == Some(target.id) {
        return Err(ApiError::forbidden("Dataverse already in this dataverse"));
    }
    let above = collections::with_owners(view, target.clone())?;
    if above.iter().any(|it| it.id == collection.id) {
        return Err(ApiError::forbidden("Can't move a dataverse to its descendant"));
    }
    if collection.is_released() && !target.is_released() {
        return Err(ApiError::forbidden(format!(
            "Published dataverse may not be moved to unpublished dataverse. You may publish {} and re-try the move.",
            target.name
        )));
    }
    Ok(())
}

/// A collection that is moved, with all its contents.
struct Moved<'m> {
    target: &'m Collection,
    /// Its former parent, and those former ancestors that are no longer above it.
    left: Vec<Collection>,
    /// The collection and all its descendants.
    collections: Vec<Collection>,
    datasets: Vec<Dataset>,
    /// Numbers of the moved collections and of all those above their new place.
    around: Vec<i64>,
}

impl<'m> Moved<'m> {
    fn of(view: &mut View<'_>, top: &Collection, target: &'m Collection) -> Result<Self, ApiError> {
        let all = collections::below(view, top.clone())?;
        let mut datasets = Vec::new();
        for it in &all {
            datasets.extend(stored::find_by::<Dataset>(view, &DATASET, "owner", it.id)?);
        }
        let above = collections::with_owners(view, target.clone())?;
        let around: Vec<i64> = all.iter().chain(&above).map(|it| it.id).collect();
        let old = collections::with_owners(view, top.clone())?;
        let left = old.into_iter().skip(1);
        let left = left.enumerate().filter(|(place, it)| *place == 0 || !around.contains(&it.id));
        let left = left.map(|it| it.1).collect();
        Ok(Self { target, left, collections: all, datasets, around })
    }

    /// Returns what cannot be moved along, in the words of the original.
    fn bound(&self, view: &mut View<'_>, registry: &Registry) -> Result<Vec<&'static str>, ApiError> {
        let mut bound = Vec::new();
        let mut tell = |is_so: bool, what: &'static str| {
            if is_so {
                bound.push(what);
            }
        };
        let any = |of: &mut dyn FnMut(&Dataset) -> Result<bool, ApiError>| -> Result<bool, ApiError> {
            for it in &self.datasets {
                if of(it)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        tell(any(&mut |it| self.lacks_guestbook(view, it))?, "Dataset guestbook is not in target dataverse.");
        let mut lacks_template = false;
        for it in &self.collections {
            lacks_template |= self.lacks_template(view, it)?;
        }
        tell(lacks_template, "Dataverse template is not in target dataverse.");
        tell(self.is_featured(), "Dataverse is featured in current dataverse.");
        let lacks_block =
            self.collections.iter().any(|it| self.foreign_blocks(registry, it).next().is_some());
        tell(lacks_block, "Dataverse metadata block is not in target dataverse.");
        let mut is_linked = false;
        for it in &self.collections {
            is_linked |= links::of_collection_into(view, it.id, self.target)?;
        }
        tell(is_linked, "Dataverse is linked to target dataverse or one of its parents.");
        let is_linked = any(&mut |it| links::of_collection_into(view, it.id, self.target))?;
        tell(is_linked, "Dataset is linked to target dataverse or one of its parents.");
        Ok(bound)
    }

    fn lacks_guestbook(&self, view: &mut View<'_>, dataset: &Dataset) -> Result<bool, ApiError> {
        let Some(id) = dataset.guestbook else { return Ok(false) };
        let found: Option<Guestbook> = stored::get(view, &GUESTBOOK, &id.to_string())?;
        Ok(found.is_some_and(|it| !self.around.contains(&it.collection)))
    }

    fn lacks_template(&self, view: &mut View<'_>, collection: &Collection) -> Result<bool, ApiError> {
        let Some(id) = collection.default_template else { return Ok(false) };
        let found: Option<Template> = stored::get(view, &TEMPLATE, &id.to_string())?;
        Ok(found.is_some_and(|it| !self.around.contains(&it.collection)))
    }

    fn is_featured(&self) -> bool {
        let names = self.left.first().and_then(|it| it.more.get(featured::dataverses::ALIASES));
        let names = names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        self.collections.first().is_some_and(|top| names.into_iter().any(|it| it == top.alias))
    }

    /// Returns the blocks of a collection that belong to one of its former ancestors.
    fn foreign_blocks<'n>(
        &'n self,
        registry: &'n Registry,
        collection: &'n Collection,
    ) -> impl Iterator<Item = &'n String> {
        let names = collection.metadata_blocks.iter().flatten();
        names.filter(|name| {
            let owner = registry.block(name).map(|it| it.owner.as_str()).filter(|it| !it.is_empty());
            owner.is_some_and(|owner| self.is_away(owner))
        })
    }

    /// Returns whether it lay below a collection that is no longer above it.
    fn is_away(&self, alias: &str) -> bool {
        self.left.iter().any(|it| it.alias == alias && !self.around.contains(&it.id))
    }

    /// Drops what cannot be moved along.
    fn give_up(&mut self, txn: &mut Txn<'_>, registry: &Registry) -> Result<(), ApiError> {
        for mut dataset in self.datasets.clone() {
            if self.lacks_guestbook(txn, &dataset)? {
                dataset.guestbook = None;
                datasets::put(txn, &dataset)?;
            }
            links::unlink_collection_from(txn, dataset.id, self.target)?;
        }
        for collection in &self.collections {
            links::unlink_collection_from(txn, collection.id, self.target)?;
            let mut kept = collection.clone();
            if self.lacks_template(txn, collection)? {
                kept.default_template = None;
            }
            let foreign: Vec<String> = self.foreign_blocks(registry, collection).cloned().collect();
            if let Some(names) = &mut kept.metadata_blocks {
                names.retain(|it| !foreign.contains(it));
            }
            collections::put(txn, &kept)?;
        }
        if self.is_featured()
            && let (Some(old), Some(top)) = (self.left.first_mut(), self.collections.first())
        {
            if let Some(names) = old.more.get_mut(featured::dataverses::ALIASES).and_then(Value::as_array_mut)
            {
                names.retain(|it| *it != top.alias);
            }
            collections::put(txn, old)?;
        }
        Ok(())
    }
}
