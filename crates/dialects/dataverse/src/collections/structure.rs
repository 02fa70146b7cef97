//! Metadata blocks, field levels and facets of collections (section 2 of the contract).

use std::collections::HashMap;
use std::sync::Arc;

use http::StatusCode;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::blocks::show::{self as show_blocks, Showing};
use crate::blocks::validate::{Level, Levels};
use crate::blocks::{Block, Registry};
use crate::collections::{self, Collection, InputLevel, visibility};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::vocabulary::described;
use crate::{changes, dataset_types, envelope, permissions};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}/metadatablocks", list_blocks)
        .post("/dataverses/{id}/metadatablocks", set_blocks)
        .get("/dataverses/{id}/metadatablocks/:isRoot", show_is_root)
        .put("/dataverses/{id}/metadatablocks/:isRoot", set_is_root)
        .get("/dataverses/{id}/metadatablocks/isRoot", show_is_root)
        .put("/dataverses/{id}/metadatablocks/isRoot", set_is_root)
        .get("/dataverses/{id}/inputLevels", list_levels)
        .put("/dataverses/{id}/inputLevels", set_levels)
        .get("/dataverses/{id}/facets", list_facets)
        .post("/dataverses/{id}/facets", set_facets)
        .get("/dataverses/{id}/allowedMetadataLanguages", list_languages)
        .put("/dataverses/{id}/allowedMetadataLanguages/{language}", set_language)
        .get("/dataverses/{id}/metadatablockfacets", list_block_facets)
        .post("/dataverses/{id}/metadatablockfacets", set_block_facets)
        .post("/dataverses/{id}/metadatablockfacets/isRoot", set_block_facets_root)
}

/// The changes that a body's `metadataBlocks` asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    blocks: Option<Vec<String>>,
    inherits_blocks: bool,
    levels: Option<Vec<InputLevel>>,
    facets: Option<Vec<String>>,
    inherits_facets: bool,
}

impl Plan {
    /// Parses and checks it.
    ///
    /// Errors: 400 for unknown names, and for lists given together with the flag to inherit.
    pub(crate) fn read(registry: &Registry, body: Option<&Value>) -> Result<Self, ApiError> {
        let Some(body) = body.and_then(Value::as_object) else { return Ok(Self::default()) };
        let flag = |name: &str| body.get(name).and_then(Value::as_bool).unwrap_or(false);
        let (inherits_blocks, inherits_facets) =
            (flag("inheritMetadataBlocksFromParent"), flag("inheritFacetsFromParent"));
        let both = |list: &str, flag: &str| {
            ApiError::bad_request(format!("Metadata block can not contain both {list} and {flag}: true"))
        };
        if inherits_blocks && body.contains_key("metadataBlockNames") {
            return Err(both("metadataBlockNames", "inheritMetadataBlocksFromParent"));
        }
        if inherits_facets && body.contains_key("facetIds") {
            return Err(both("facetIds", "inheritFacetsFromParent"));
        }
        let list = |name: &str| body.get(name).and_then(Value::as_array);
        let blocks = list("metadataBlockNames").map(|it| block_names(registry, it)).transpose()?;
        let levels = list("inputLevels").map(|it| read_levels(registry, it)).transpose()?;
        let facets = list("facetIds").map(|it| facet_names(registry, it)).transpose()?;
        Ok(Self { blocks, inherits_blocks, levels, facets, inherits_facets })
    }

    /// Applies the plan to the collection. Whatever it does not state stays as it is, except that inherited blocks
    /// clear the levels.
    pub(crate) fn put_into(
        &self,
        view: &mut View<'_>,
        registry: &Registry,
        collection: &mut Collection,
    ) -> Result<(), ApiError> {
        if self.inherits_blocks {
            collection.metadata_blocks = None;
        } else if let Some(blocks) = &self.blocks {
            collection.metadata_blocks = Some(blocks.clone());
        }
        if let Some(levels) = &self.levels {
            collection.input_levels.clone_from(levels);
            include_blocks(view, registry, collection)?;
        } else if self.inherits_blocks {
            collection.input_levels.clear();
        }
        if self.inherits_facets {
            collection.facets = None;
        } else if let Some(facets) = &self.facets {
            collection.facets = Some(facets.clone());
        }
        Ok(())
    }
}

fn block_names(registry: &Registry, list: &[Value]) -> Result<Vec<String>, ApiError> {
    let name = |it: &Value| {
        let text = it.as_str().map_or_else(|| it.to_string(), str::to_owned);
        let block = registry.block(&text);
        let unknown = || ApiError::bad_request(format!("Invalid metadata block name: \"{text}\""));
        block.map(|it| it.name.clone()).ok_or_else(unknown)
    };
    list.iter().map(name).collect()
}

fn facet_names(registry: &Registry, list: &[Value]) -> Result<Vec<String>, ApiError> {
    let name = |it: &Value| {
        let text = it.as_str().map_or_else(|| it.to_string(), str::to_owned);
        match registry.field(&text) {
            None => Err(ApiError::bad_request(format!("Can't find dataset field type '{text}'"))),
            Some(field) if !field.is_facetable => {
                Err(ApiError::bad_request(format!("Dataset field type '{text}' is not facetable")))
            }
            Some(field) => Ok(field.name.clone()),
        }
    };
    list.iter().map(name).collect()
}

fn read_levels(registry: &Registry, list: &[Value]) -> Result<Vec<InputLevel>, ApiError> {
    let mut levels = Vec::new();
    for it in list {
        let name = it["datasetFieldTypeName"].as_str().unwrap_or_default();
        let Some(field) = registry.field(name) else {
            return Err(ApiError::bad_request(format!("Invalid dataset field type name: {name}")));
        };
        let flag = |name: &str| it[name].as_bool().unwrap_or(false);
        let (required, include) = (flag("required"), flag("include"));
        if required && !include {
            return Err(ApiError::bad_request(format!(
                "The input level for the dataset field type {name} cannot be required if it is not included"
            )));
        }
        levels.push(InputLevel {
            id: 0,
            dataset_field_type_name: field.name.clone(),
            required,
            include,
            display_on_create: it.get("displayOnCreate").and_then(Value::as_bool),
        });
    }
    numbered(&mut levels);
    Ok(levels)
}

/// Adds the blocks that the fields in the collection's levels belong to.
fn include_blocks(
    view: &mut View<'_>,
    registry: &Registry,
    collection: &mut Collection,
) -> Result<(), ApiError> {
    let mut blocks: Vec<String> = match &collection.metadata_blocks {
        Some(own) => own.clone(),
        None => block_names_of(view, collection)?,
    };
    let before = blocks.len();
    for level in &collection.input_levels {
        if let Some(field) = registry.field(&level.dataset_field_type_name) {
            let name = &registry.block_of(field).name;
            if !blocks.contains(name) {
                blocks.push(name.clone());
            }
        }
    }
    if blocks.len() != before {
        collection.metadata_blocks = Some(blocks);
    }
    Ok(())
}

/// Returns the names of the blocks that a collection uses: its own, or those of the nearest ancestor with blocks of its
/// own.
pub(crate) fn block_names_of(view: &mut View<'_>, collection: &Collection) -> Result<Vec<String>, ApiError> {
    let root = nearest(view, collection, |it| it.metadata_blocks.is_some())?;
    Ok(root.metadata_blocks.unwrap_or_else(|| vec!["citation".to_owned()]))
}

/// Returns the nearest collection, from this one upward, that satisfies `is_it`; the root if none does.
fn nearest(
    view: &mut View<'_>,
    collection: &Collection,
    is_it: impl Fn(&Collection) -> bool,
) -> Result<Collection, ApiError> {
    let mut at = collection.clone();
    for _ in 0..collections::DEPTH {
        let Some(parent) = at.parent.filter(|_| !is_it(&at)) else { break };
        at = collections::named_by_record(view, parent)?;
    }
    Ok(at)
}

/// Returns a collection's requirements on fields.
pub(crate) fn levels_of(collection: &Collection) -> Levels {
    let level = |it: &InputLevel| Level {
        is_required: it.required,
        is_included: it.include,
        is_on_create: it.display_on_create,
    };
    let all = collection.input_levels.iter();
    Levels(all.map(|it| (it.dataset_field_type_name.clone(), level(it))).collect::<HashMap<_, _>>())
}

/// Returns what the metadata of a collection's datasets is validated against: the indices of its blocks, and the
/// levels.
pub(crate) fn rules_of(
    view: &mut View<'_>,
    registry: &Registry,
    collection: &Collection,
) -> Result<(Vec<usize>, Levels), ApiError> {
    let names = block_names_of(view, collection)?;
    let is_used = |it: &&Block| names.contains(&it.name);
    let places = registry.blocks().iter().enumerate().filter(|it| is_used(&it.1)).map(|it| it.0).collect();
    Ok((places, levels_of(collection)))
}

/// Returns a collection after checking that the caller may see it.
fn seen(view: &mut View<'_>, asker: &Asker, id: &str) -> Result<Collection, ApiError> {
    let collection = collections::find(view, id)?;
    visibility::require_visible(view, asker, &collection)?;
    Ok(collection)
}

async fn list_blocks(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let with_fields = call.query.is_true("returnDatasetFieldTypes");
    let only_on_create = call.query.is_true("onlyDisplayedOnCreate");
    let dataset_type = call.query.filled("datasetType").map(str::to_owned);
    let find = move |view: &mut View<'_>| -> Result<(Vec<String>, Collection), ApiError> {
        let collection = seen(view, &asker, &id)?;
        let mut names = block_names_of(view, &collection)?;
        if let Some(wanted) = &dataset_type {
            names.extend(dataset_types::named(view, wanted)?.linked_metadata_blocks);
        }
        Ok((names, collection))
    };
    let (names, collection) = call.db().read(Weight::Point, find).await?;
    let depends = (&names, &collection.input_levels, with_fields, only_on_create);
    described(&call, &registry, &depends, || {
        let levels = levels_of(&collection);
        let showing = Showing { with_fields, only_on_create, levels: Some(&levels) };
        let used = registry.blocks().iter().filter(|it| names.contains(&it.name));
        let shown =
            used.filter(|it| !only_on_create || show_blocks::is_on_create(&registry, it, Some(&levels)));
        shown.map(|it| show_blocks::block_json(&registry, it, showing)).collect::<Vec<Value>>().into()
    })
}

/// Changes a collection after checking that the caller may edit it.
async fn changed<R: Send + 'static>(
    call: &Call,
    mut change: impl FnMut(&mut Txn<'_>, &mut Collection) -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError> {
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<R, ApiError> {
        let mut collection = collections::find(txn, &id)?;
        permissions::require(txn, &asker, collection.place(), Permission::EditDataverse)?;
        let result = change(txn, &mut collection)?;
        collections::put(txn, &collection)?;
        changes::collection(txn, &app, collection.id)?;
        Ok(result)
    };
    call.db().write(write).await
}

async fn set_blocks(mut call: Call) -> Answer {
    let body = call.json().await?;
    let registry = call.app.registry(call.db()).await?;
    let list = body.as_array().ok_or_else(|| ApiError::bad_request("Error parsing Json: expected a list"))?;
    let names = block_names(&registry, list)?;
    let id = changed(&call, move |_, collection| {
        collection.metadata_blocks = Some(names.clone());
        Ok(collection.alias.clone())
    });
    envelope::message(format!("Metadata Blocks of dataverse {} updated", id.await?))
}

async fn show_is_root(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find =
        move |view: &mut View<'_>| Ok::<_, ApiError>(seen(view, &asker, &id)?.metadata_blocks.is_some());
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn set_is_root(mut call: Call) -> Answer {
    let text = call.text().await?;
    let is_root = text.eq_ignore_ascii_case("true");
    let alias = changed(&call, move |txn, collection| {
        collection.metadata_blocks = match (is_root, collection.metadata_blocks.take()) {
            (false, _) => None,
            (true, Some(own)) => Some(own),
            (true, None) => Some(block_names_of(txn, collection)?),
        };
        Ok(collection.alias.clone())
    });
    let alias = alias.await?;
    envelope::message(format!(
        "Dataverse {alias} is now {}a metadata root",
        if is_root { "" } else { "not " }
    ))
}

async fn list_levels(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| {
        Ok::<_, ApiError>(collections::json::levels_json(&seen(view, &asker, &id)?))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn set_levels(mut call: Call) -> Answer {
    let body = call.json().await?;
    let registry = call.app.registry(call.db()).await?;
    let list = body.as_array().cloned().unwrap_or_default();
    if list.is_empty() {
        return Err(ApiError::internal(
            "Error while updating dataverse input levels: Input level list cannot be null or empty",
        ));
    }
    let levels = read_levels(&registry, &list)?;
    let json = changed(&call, move |txn, collection| {
        collection.input_levels.clone_from(&levels);
        include_blocks(txn, &registry, collection)?;
        collections::json::json(txn, collection, &collections::json::Showing::default())
    });
    envelope::ok(json.await?)
}

/// Returns the facets of a collection, by field name: its own, or inherited ones.
pub(crate) fn facets_of(view: &mut View<'_>, collection: &Collection) -> Result<Vec<String>, ApiError> {
    Ok(nearest(view, collection, |it| it.facets.is_some())?.facets.unwrap_or_default())
}

async fn list_facets(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let with_details = call.query.is_true("returnDetails");
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = seen(view, &asker, &id)?;
        let names = facets_of(view, &collection)?;
        let shown = names.iter().map(|name| match registry.field(name).filter(|_| with_details) {
            Some(field) => json!({"id": field.id, "name": name, "displayName": registry.display_name(field)}),
            None => json!(name),
        });
        Ok(shown.collect())
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn set_facets(mut call: Call) -> Answer {
    let body = call.json().await?;
    let registry: Arc<Registry> = call.app.registry(call.db()).await?;
    let list = body.as_array().ok_or_else(|| ApiError::bad_request("Error parsing Json: expected a list"))?;
    let facets = facet_names(&registry, list)?;
    let alias = changed(&call, move |_, collection| {
        collection.facets = Some(facets.clone());
        Ok(collection.alias.clone())
    });
    envelope::message(format!("Facets of dataverse {} updated", alias.await?))
}

/// Name of a setting of collections; a collection without it inherits it.
const BLOCK_FACETS: &str = "metadataBlockFacets";

/// Returns the names of the blocks whose fields a collection offers as facets: its own, or inherited ones.
fn block_facets_of(view: &mut View<'_>, collection: &Collection) -> Result<Vec<Value>, ApiError> {
    let root = nearest(view, collection, |it| it.more.contains_key(BLOCK_FACETS))?;
    Ok(root.more.get(BLOCK_FACETS).and_then(Value::as_array).cloned().unwrap_or_default())
}

/// Answers with id and alias of the collection, and the blocks whose fields it offers as facets; without the envelope.
async fn list_block_facets(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let collection = seen(view, &asker, &id)?;
        let names = block_facets_of(view, &collection)?;
        let shown = names
            .iter()
            .filter_map(Value::as_str)
            .filter_map(|it| registry.block(it))
            .map(|it| json!({"metadataBlockId": it.id, "metadataBlockName": it.name}));
        Ok(json!({
            "dataverseId": collection.id,
            "dataverseAlias": collection.alias,
            "isMetadataBlockFacetRoot": collection.more.contains_key(BLOCK_FACETS),
            "metadataBlockFacets": shown.collect::<Vec<Value>>(),
        }))
    };
    Ok(envelope::raw_json(StatusCode::OK, &call.db().read(Weight::Point, find).await?))
}

async fn set_block_facets(mut call: Call) -> Answer {
    let body = call.json().await?;
    let registry = call.app.registry(call.db()).await?;
    let list = body.as_array().ok_or_else(|| ApiError::bad_request("Error parsing Json: expected a list"))?;
    let names = block_names(&registry, list)?;
    let alias = changed(&call, move |_, collection| {
        if !collection.more.contains_key(BLOCK_FACETS) {
            return Err(ApiError::bad_request(format!(
                "Dataverse {} inherits its metadata block facets; make it the root of its own first \
                 (metadatablockfacets/isRoot)",
                collection.alias
            )));
        }
        collection.more.insert(BLOCK_FACETS.to_owned(), names.clone().into());
        Ok(collection.alias.clone())
    });
    envelope::message(format!("Metadata block facets of dataverse {} updated", alias.await?))
}

/// Gives a collection facets of its own, at first those that it inherited, or lets it inherit them again.
async fn set_block_facets_root(mut call: Call) -> Answer {
    let is_root = match call.text().await?.as_str() {
        "true" => true,
        "false" => false,
        other => {
            return Err(ApiError::bad_request(format!("The body is {other:?}; expected true or false.")));
        }
    };
    let told = changed(&call, move |txn, collection| {
        let id = collection.id;
        if collection.more.contains_key(BLOCK_FACETS) == is_root {
            return Ok(format!(
                "No update needed, dataverse already consistent with new value. DataverseId: {id} \
                 blockFacetsRoot: {is_root}"
            ));
        }
        if is_root {
            let inherited = block_facets_of(txn, collection)?;
            collection.more.insert(BLOCK_FACETS.to_owned(), inherited.into());
        } else {
            collection.more.remove(BLOCK_FACETS);
        }
        Ok(format!("Metadata block facets root updated. DataverseId: {id} blockFacetsRoot: {is_root}"))
    });
    envelope::message(told.await?)
}

/// Returns the metadata languages that a collection allows: its own, or those of the site.
fn languages_of(view: &mut View<'_>, collection: &Collection) -> Result<Vec<Value>, ApiError> {
    let listed = crate::site_settings::get(view, ":MetadataLanguages")?.unwrap_or_default();
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap_or_default();
    let own = nearest(view, collection, |it| it.metadata_language.is_some())?.metadata_language;
    Ok(match own.filter(|it| it != "undefined") {
        Some(own) => listed.into_iter().filter(|it| it["locale"] == own.as_str()).collect(),
        None => listed,
    })
}

async fn list_languages(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = seen(view, &asker, &id)?;
        languages_of(view, &collection)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn set_language(call: Call) -> Answer {
    let language = call.param("language").to_owned();
    let languages = changed(&call, move |txn, collection| {
        collection.metadata_language = Some(language.clone());
        let languages = languages_of(txn, collection)?;
        if languages.is_empty() {
            return Err(ApiError::bad_request(format!("{language} is not one of the languages listed")));
        }
        Ok(languages)
    });
    envelope::ok(languages.await?)
}

/// Numbers the field levels by their position.
pub(crate) fn numbered(levels: &mut [InputLevel]) {
    for (place, level) in levels.iter_mut().enumerate() {
        level.id = i64::try_from(place + 1).unwrap_or(i64::MAX);
    }
}
