//! Featured items of a collection: a text with an image, or a collection, dataset or file.
//! `/api/dataverses/{id}/featuredItems`, `/api/dataverseFeaturedItems/{id}`.

pub(crate) mod dataverses;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use pinakes_blobs::Blob;
use pinakes_store::{Column, Expr, Identifier, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::collections::{self, Collection, visibility};
use crate::datasets;
use crate::datasets::version::{self, title_of};
use crate::datasets::wanted::Wanted;
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{amounts, envelope, files, ids, permissions, stored};

/// Items by number: body is an [`Item`].
pub(crate) static FEATURED: Kind = Kind {
    columns: &[
        Column::one("collection", Type::Integer),
        Column::one("object", Type::Integer),
        Column::one("type", Type::Text),
    ],
    indexes: &[Index::on(&["collection"]), Index::on(&["object"]), Index::on(&["type"])],
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "image" }],
    ..Kind::named("dataverse_featured_item")
};

/// Maximum size of an image, in bytes (1 MB).
const IMAGE_BYTES: usize = 1_000_000;
/// Items have a number sequence of their own.
const NUMBERS: &str = "featured";
/// Maximum number of items of one collection.
const ITEMS: usize = 50;

/// An item.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Item {
    /// Number.
    pub id: i64,
    /// The collection that features it.
    pub collection: i64,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Position among the items.
    pub display_order: i64,
    /// `custom`, `dataverse`, `dataset` or `datafile`.
    #[serde(rename = "type")]
    pub ty: String,
    /// The collection, dataset or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<i64>,
    /// Identifier of the object in answers: alias, persistent identifier or number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_identifier: Option<String>,
    /// The object's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_name: Option<String>,
    /// Name of the image file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// The image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Blob>,
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/dataverses/{id}/featuredItems", list)
        .post("/dataverses/{id}/featuredItems", create)
        .put("/dataverses/{id}/featuredItems", replace_all)
        .delete("/dataverses/{id}/featuredItems", delete_all)
        .put("/dataverseFeaturedItems/{item}", update)
        .delete("/dataverseFeaturedItems/{item}", delete)
        .get("/access/dataverseFeaturedItemImage/{item}", show_image)
}

/// Removes the items of a collection that is being deleted.
pub(crate) fn remove_of_collection(txn: &mut Txn<'_>, collection: i64) -> Result<(), ApiError> {
    remove_where(txn, "collection", collection)
}

/// Removes the items for files of a dataset that its published version no longer contains, or restricts.
pub(crate) fn remove_of_lost_files(txn: &mut Txn<'_>, dataset: i64) -> Result<(), ApiError> {
    for record in txn.find(&FEATURED, &Query::filter(Expr::Is("type".into(), "datafile".into())))? {
        let item: Item = stored::parsed(&record)?;
        let file = match item.object {
            Some(id) => files::rows::data_file(txn, id)?,
            None => None,
        };
        let Some(file) = file.filter(|it| it.dataset == dataset) else { continue };
        let found = files::Found::of(txn, file)?;
        let newest = found.released.first().copied().unwrap_or_default();
        if !found.rows.iter().any(|it| it.is_in(newest) && !it.restricted) {
            txn.delete(&FEATURED, &record.id)?;
        }
    }
    Ok(())
}

/// Removes the items for an object that is being deleted.
pub(crate) fn remove_of_object(txn: &mut Txn<'_>, object: i64) -> Result<(), ApiError> {
    remove_where(txn, "object", object)
}

fn remove_where(txn: &mut Txn<'_>, path: &str, id: i64) -> Result<(), ApiError> {
    for record in txn.find(&FEATURED, &Query::filter(Expr::Is(path.into(), id.into())))? {
        txn.delete(&FEATURED, &record.id)?;
    }
    Ok(())
}

/// A form: its fields in order, and its files, each with the index of the last field named `content` before it.
#[derive(Default)]
struct Form {
    fields: Vec<(String, String)>,
    files: Vec<(usize, String, Bytes)>,
}

impl Form {
    async fn read(call: &mut Call) -> Result<Self, ApiError> {
        let content_type = call.header("content-type").unwrap_or_default().to_owned();
        let refuse =
            |error: multer::Error| ApiError::bad_request(format!("The form cannot be read: {error}"));
        let boundary = multer::parse_boundary(content_type).map_err(refuse)?;
        let body = call.bytes().await?;
        let stream = futures_util::stream::iter([Ok::<_, std::io::Error>(body)]);
        let mut parts = multer::Multipart::new(stream, boundary);
        let mut form = Self::default();
        while let Some(field) = parts.next_field().await.map_err(refuse)? {
            let name = field.name().unwrap_or_default().to_owned();
            let file_name = field.file_name().map(str::to_owned);
            let bytes = field.bytes().await.map_err(refuse)?;
            if name == "file" {
                if IMAGE_BYTES < bytes.len() {
                    return Err(ApiError::bad_request(format!(
                        "File exceeds the maximum size of {IMAGE_BYTES}"
                    )));
                }
                let place = form.all("content").len().saturating_sub(1);
                form.files.push((place, file_name.unwrap_or_default(), bytes));
            } else {
                form.fields.push((name, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        Ok(form)
    }

    fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|it| it.0 == name).map(|it| it.1.as_str()).collect()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied().filter(|it| !it.is_empty())
    }
}

/// Sanitises HTML: keeps text, links and simple markup, and removes everything that could run scripts or change the
/// page.
fn clean(html: &str) -> String {
    ammonia::Builder::default()
        .add_generic_attributes(["class"])
        .add_tag_attributes("a", ["target"])
        .link_rel(Some("noopener noreferrer nofollow"))
        .clean(html)
        .to_string()
}

/// Maximum length of an item's text, in characters, after sanitising.
const CONTENT_CHARACTERS: usize = 15_000;

/// Returns the text of an item of that type; items for an object have none.
///
/// Errors: 400 for an item without object that has no text, or too long a text.
fn content_of(ty: &str, given: Option<&str>) -> Result<Option<String>, ApiError> {
    if ty != "custom" {
        return Ok(None);
    }
    let Some(given) = given.filter(|it| !it.trim().is_empty()) else {
        return Err(ApiError::bad_request(
            "Featured item 'content' property should be provided and not empty.",
        ));
    };
    let cleaned = clean(given);
    if CONTENT_CHARACTERS < cleaned.chars().count() {
        return Err(ApiError::bad_request(format!(
            "Featured item content exceeds the maximum allowed length of {CONTENT_CHARACTERS} characters."
        )));
    }
    Ok(Some(cleaned))
}

/// Returns whether bytes begin with the signature of an image format.
fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff") || bytes.starts_with(b"GIF8")
}

/// Message for a file that is not an image, when one item is written.
const NO_PICTURE: &str = "Invalid image file type";
/// The same message when all items are written at once.
const NO_PICTURE_OF_LIST: &str = "Invalid file type. Only image files are allowed.";

/// Stores an image. Errors: 400 for other files.
async fn store_image(call: &Call, bytes: Bytes, refusal: &str) -> Result<Blob, ApiError> {
    if !is_image(&bytes) {
        return Err(ApiError::bad_request(refusal));
    }
    let failed = |error: pinakes_blobs::BlobError| {
        tracing::error!(%error, "a picture cannot be stored");
        ApiError::internal("The picture cannot be stored.")
    };
    let mut upload = call.app.context.blobs().begin(call.tenant()).map_err(failed)?;
    upload.write(bytes).await.map_err(failed)?;
    upload.finish().await.map_err(failed)
}

/// Sets type and object of an item as a form names them.
fn put_object(
    view: &mut View<'_>,
    item: &mut Item,
    ty: Option<&str>,
    object: Option<&str>,
) -> Result<(), ApiError> {
    let ty = ty.unwrap_or("custom");
    let mismatch = || ApiError::bad_request("The 'type' passed does not match the dvObject type.");
    let unpublished = |what: &str| ApiError::bad_request(format!("{what} must be published to be featured."));
    item.ty = ty.to_owned();
    (item.object, item.object_identifier, item.object_name) = (None, None, None);
    if ty == "custom" {
        return Ok(());
    }
    let named = object.ok_or_else(|| ApiError::bad_request("Invalid type and DvObject. "))?;
    match ty {
        "dataverse" => {
            let found = collections::find(view, named).map_err(|_| mismatch())?;
            if !found.is_released() {
                return Err(unpublished("Dataverse"));
            }
            item.object = Some(found.id);
            (item.object_identifier, item.object_name) = (Some(found.alias), Some(found.name));
        }
        "dataset" => {
            let wanted = match named.parse() {
                Ok(id) => Wanted::number(id),
                Err(_) => Wanted::pid(named),
            };
            let found = wanted.find(view).map_err(|_| mismatch())?;
            let Some(released) = &found.released else { return Err(unpublished("Dataset")) };
            let title = title_of(&version::of_dataset(view, &found, released.version)?);
            item.object = Some(found.id);
            (item.object_identifier, item.object_name) = (Some(found.pid), Some(title));
        }
        "datafile" => {
            let id: i64 = named.parse().map_err(|_| mismatch())?;
            let file = files::rows::data_file(view, id)?.ok_or_else(mismatch)?;
            let found = files::Found::of(view, file)?;
            let Some(row) = found.published_row() else { return Err(unpublished("Datafile")) };
            if row.restricted {
                return Err(ApiError::bad_request("Datafile must not be restricted to be featured."));
            }
            item.object = Some(id);
            (item.object_identifier, item.object_name) = (Some(named.to_owned()), Some(row.label.clone()));
        }
        _ => {
            return Err(ApiError::bad_request(
                "Unknown 'type' must be one of [custom, dataverse, dataset, datafile]",
            ));
        }
    }
    Ok(())
}

impl Item {
    fn json(&self, site_url: &str) -> Value {
        let url = self
            .image
            .as_ref()
            .map(|_| format!("{site_url}/api/access/dataverseFeaturedItemImage/{}", self.id));
        Value::Object(envelope::object(json!({
            "id": self.id,
            "content": self.content,
            "imageFileName": self.image_name,
            "imageFileUrl": url,
            "displayOrder": self.display_order,
            "type": self.ty,
            "dvObjectIdentifier": self.object_identifier,
            "dvObjectDisplayName": self.object_name,
        })))
    }
}

fn items_of(view: &mut View<'_>, collection: i64) -> Result<Vec<Item>, ApiError> {
    let mut all: Vec<Item> = stored::find_by(view, &FEATURED, "collection", collection)?;
    all.sort_by_key(|it| (it.display_order, it.id));
    Ok(all)
}

/// Returns whether the caller may see the object of an item.
fn is_shown(view: &mut View<'_>, asker: &Asker, item: &Item) -> Result<bool, ApiError> {
    let Some(object) = item.object else { return Ok(true) };
    Ok(match item.ty.as_str() {
        "dataverse" => match collections::by_id(view, object)? {
            Some(it) => visibility::is_visible(view, asker, &it)?,
            None => false,
        },
        "dataset" => datasets::by_id(view, object)?.is_some_and(|it| it.released.is_some()),
        _ => match files::rows::data_file(view, object)? {
            Some(file) => {
                let found = files::Found::of(view, file)?;
                found.published_row().is_some_and(|it| !it.restricted)
            }
            None => false,
        },
    })
}

async fn list(call: Call) -> Answer {
    let (asker, id, site_url) = (call.asker.clone(), call.param("id").to_owned(), call.site_url());
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = collections::find(view, &id)?;
        visibility::require_visible(view, &asker, &collection)?;
        let mut shown = Vec::new();
        for item in items_of(view, collection.id)? {
            if is_shown(view, &asker, &item)? {
                shown.push(item.json(&site_url));
            }
        }
        Ok(shown)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

fn editable(view: &mut View<'_>, asker: &Asker, id: &str) -> Result<Collection, ApiError> {
    let collection = collections::find(view, id)?;
    permissions::require(view, asker, collection.place(), Permission::EditDataverse)?;
    Ok(collection)
}

fn order(text: Option<&str>) -> i64 {
    text.and_then(|it| it.trim().parse().ok()).unwrap_or(0)
}

async fn create(mut call: Call) -> Answer {
    let mut form = Form::read(&mut call).await?;
    let picture = match form.files.pop() {
        Some((_, name, bytes)) if form.get("type").is_none_or(|it| it == "custom") => {
            Some((name, store_image(&call, bytes, NO_PICTURE).await?))
        }
        _ => None,
    };
    let (asker, id, site_url) = (call.asker.clone(), call.param("id").to_owned(), call.site_url());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let collection = editable(txn, &asker, &id)?;
        if ITEMS <= items_of(txn, collection.id)?.len() {
            return Err(ApiError::bad_request(format!("A dataverse features at most {ITEMS} items.")));
        }
        let mut item = Item {
            id: ids::next_of(txn, NUMBERS)?,
            collection: collection.id,
            display_order: order(form.get("displayOrder")),
            image_name: picture.as_ref().map(|it| it.0.clone()),
            image: picture.as_ref().map(|it| it.1.clone()),
            ..Item::default()
        };
        put_object(txn, &mut item, form.get("type"), form.get("dvObjectIdentifier"))?;
        item.content = content_of(&item.ty, form.get("content"))?;
        stored::put(txn, &FEATURED, &item.id.to_string(), &item)?;
        Ok(item.json(&site_url))
    };
    envelope::ok(call.db().write(write).await?)
}

/// Returns the error for an item that does not exist.
fn missing(id: &str) -> ApiError {
    let shown = id.parse().map_or_else(|_| id.to_owned(), amounts::with_commas);
    ApiError::not_found(format!("Could not find dataverse featured item with identifier {shown}"))
}

/// Returns the item of a path, after checking that the caller may edit its collection.
fn named(view: &mut View<'_>, asker: &Asker, text: &str) -> Result<Item, ApiError> {
    let item: Item = stored::get(view, &FEATURED, text)?.ok_or_else(|| missing(text))?;
    editable(view, asker, &item.collection.to_string())?;
    Ok(item)
}

async fn update(mut call: Call) -> Answer {
    let mut form = Form::read(&mut call).await?;
    let picture = match form.files.pop() {
        Some((_, name, bytes)) => Some((name, store_image(&call, bytes, NO_PICTURE).await?)),
        None => None,
    };
    let (asker, id, site_url) = (call.asker.clone(), call.param("item").to_owned(), call.site_url());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut item = named(txn, &asker, &id)?;
        put_object(txn, &mut item, form.get("type"), form.get("dvObjectIdentifier"))?;
        item.content = content_of(&item.ty, form.get("content"))?;
        item.display_order = order(form.get("displayOrder"));
        let keeps = form.get("keepFile").is_some_and(|it| it == "true");
        if let Some((name, image)) = &picture {
            (item.image_name, item.image) = (Some(name.clone()), Some(image.clone()));
        } else if !keeps || item.ty != "custom" {
            (item.image_name, item.image) = (None, None);
        }
        stored::put(txn, &FEATURED, &id, &item)?;
        Ok(item.json(&site_url))
    };
    envelope::ok(call.db().write(write).await?)
}

async fn delete(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("item").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        named(txn, &asker, &id)?;
        txn.delete(&FEATURED, &id)?;
        Ok(())
    };
    call.db().write(write).await?;
    let id = call.param("item");
    envelope::message(format!("Successfully deleted dataverse featured item with identifier {id}"))
}

async fn delete_all(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let collection = editable(txn, &asker, &id)?;
        remove_of_collection(txn, collection.id)
    };
    call.db().write(write).await?;
    envelope::message("All featured items of this Dataverse have been successfully deleted.")
}

/// Replaces all items by those in the form's lists: each list has one entry per item, with id 0 for new ones.
async fn replace_all(mut call: Call) -> Answer {
    let mut form = Form::read(&mut call).await?;
    let n_items = form.all("content").len();
    let lists = ["displayOrder", "keepFile", "id", "fileName"];
    if n_items == 0 || lists.iter().any(|it| form.all(it).is_empty()) {
        return Err(ApiError::bad_request(
            "All input parameters (id, content, displayOrder, keepFile, fileName) are required.",
        ));
    }
    if ITEMS < n_items || lists.iter().any(|it| form.all(it).len() != n_items) {
        return Err(ApiError::bad_request(
            "All input lists (id, content, displayOrder, keepFile, fileName, type, dvObject) must have the same size.",
        ));
    }
    let mut pictures = Vec::new();
    for (place, name, bytes) in std::mem::take(&mut form.files) {
        pictures.push((place, name, store_image(&call, bytes, NO_PICTURE_OF_LIST).await?));
    }
    let (asker, id, site_url) = (call.asker.clone(), call.param("id").to_owned(), call.site_url());
    let write = move |txn: &mut Txn<'_>| -> Result<Vec<Value>, ApiError> {
        let collection = editable(txn, &asker, &id)?;
        let before = items_of(txn, collection.id)?;
        remove_of_collection(txn, collection.id)?;
        let at = |name: &str, place: usize| form.all(name).get(place).copied().filter(|it| !it.is_empty());
        for place in 0..n_items {
            let number = order(at("id", place));
            let mut item = match number {
                0 => Item { id: ids::next_of(txn, NUMBERS)?, ..Item::default() },
                number => {
                    let known = before.iter().find(|it| it.id == number);
                    known.cloned().ok_or_else(|| missing(&number.to_string()))?
                }
            };
            item.collection = collection.id;
            item.display_order = order(at("displayOrder", place));
            put_object(txn, &mut item, at("type", place), at("dvObjectIdentifier", place))?;
            item.content = content_of(&item.ty, at("content", place))?;
            if let Some((_, name, image)) = pictures.iter().find(|it| it.0 == place) {
                (item.image_name, item.image) = (Some(name.clone()), Some(image.clone()));
            } else if at("keepFile", place) != Some("true") {
                (item.image_name, item.image) = (None, None);
            }
            stored::put(txn, &FEATURED, &item.id.to_string(), &item)?;
        }
        Ok(items_of(txn, collection.id)?.iter().map(|it| it.json(&site_url)).collect())
    };
    envelope::ok(call.db().write(write).await?)
}

/// Answers with the image of an item.
async fn show_image(call: Call) -> Answer {
    let (asker, id) = (call.asker.clone(), call.param("item").to_owned());
    let find = move |view: &mut View<'_>| -> Result<Blob, ApiError> {
        let missing = || ApiError::not_found("Could not find an image of that featured item.");
        let item: Item = stored::get(view, &FEATURED, &id)?.ok_or_else(missing)?;
        let collection = collections::named_by_record(view, item.collection)?;
        visibility::require_visible(view, &asker, &collection)?;
        item.image.ok_or_else(missing)
    };
    let blob = call.db().read(Weight::Point, find).await?;
    let failed = |_| ApiError::not_found("Could not find an image of that featured item.");
    let reading = call.app.context.blobs().get(call.tenant(), &blob, None).await.map_err(failed)?;
    let body = axum::body::Body::from_stream(reading);
    Ok(pinakes_http::answer::with_body(StatusCode::OK, HeaderValue::from_static("image/png"), body))
}
