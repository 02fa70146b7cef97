//! The files of a version: pages of them, counts, sizes, folders (section 4.3 of the contract).

use std::collections::{BTreeMap, BTreeSet};

use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use super::kinds::{DataFile, Row};
use super::selection::{Bytes, Filter, Order, Selection};
use super::{Around, Found, downloadable, file_json};
use crate::app::Call;
use crate::asker::Asker;
use crate::datasets::show::{require_files, text_answer, window, with_version};
use crate::datasets::wanted::Wanted;
use crate::datasets::{Dataset, Version, version};
use crate::error::{Answer, ApiError};
use crate::exports::xml::Xml;
use crate::routing::Routes;
use crate::{amounts, clock, envelope};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/versions/{version}/files", list)
        .get("/datasets/{id}/versions/{version}/files/counts", counts)
        .get("/datasets/{id}/versions/{version}/downloadsize", download_size)
        .get("/datasets/{id}/versions/{version}/canDownloadAtLeastOneFile", can_download)
        .get("/datasets/{id}/availableFileCategories", categories)
        .get("/datasets/{id}/download/count", download_count)
        .get("/datasets/{id}/dirindex", folders)
}

async fn list(call: Call) -> Answer {
    let (filter, order) = (Filter::of(&call)?, Order::of(&call)?);
    let (limit, offset) = window(&call)?;
    let (skip, limit) = (offset.unsigned_abs(), limit.map(i64::unsigned_abs));
    let read = move |view: &mut View<'_>, asker: &Asker, dataset: &Dataset, version: &Version| {
        require_files(view, asker, dataset, version)?;
        let around = Around::with(view, dataset, version.clone())?;
        let files = Selection::of(view, version, &filter)?;
        let n_all = files.count(view)?;
        let page = files.page(view, order, skip, limit)?;
        let page = page.iter().map(|(row, file)| file_json(row, file, &around)).collect();
        Ok((n_all, page))
    };
    let (n_all, page): (u64, Vec<Value>) = with_version(&call, Weight::Scan, read).await?;
    envelope::page(n_all, page)
}

async fn counts(call: Call) -> Answer {
    let filter = Filter::of(&call)?;
    let read = move |view: &mut View<'_>, _: &Asker, _: &Dataset, version: &Version| {
        let files = Selection::of(view, version, &filter)?;
        let mut by_access = BTreeMap::new();
        for (access, filter) in filter.by_access() {
            let n = Selection::of(view, version, &filter)?.count(view)?;
            by_access.extend((n != 0).then(|| (access.name(), n)));
        }
        let shown = |counts: BTreeMap<String, u64>, name: &str| -> Vec<Value> {
            counts.into_iter().map(|(value, n)| json!({name: value, "count": n})).collect()
        };
        Ok(json!({
            "total": files.count(view)?,
            "perContentType": shown(files.content_types(view)?, "contentType"),
            "perCategoryName": shown(files.categories(view)?, "categoryName"),
            "perTabularTagName": shown(files.tags(view)?, "tabularTagName"),
            "perAccessStatus": shown(by_access, "accessStatus"),
        }))
    };
    envelope::ok(with_version(&call, Weight::Scan, read).await?)
}

async fn download_size(call: Call) -> Answer {
    let (filter, of) = (Filter::of(&call)?, Bytes::of(&call)?);
    let read = move |view: &mut View<'_>, _: &Asker, _: &Dataset, version: &Version| {
        Selection::of(view, version, &filter)?.bytes(view, of)
    };
    let sum = with_version(&call, Weight::Scan, read).await?;
    let text = format!(
        "Total size of the files available for download in this version of the dataset: {} bytes",
        amounts::with_commas(sum)
    );
    envelope::ok(json!({"message": text, "storageSize": sum}))
}

async fn can_download(call: Call) -> Answer {
    let today = clock::date(call.app.now_ms());
    let read = move |view: &mut View<'_>, asker: &Asker, dataset: &Dataset, version: &Version| {
        if let Some(may) = downloadable::any_of_newest(view, asker, dataset, version, &today)? {
            return Ok(may);
        }
        for (_, file) in super::all_of(view, version)? {
            if Found::of(view, file)?.may_download(view, asker, &today)? {
                return Ok(true);
            }
        }
        Ok::<_, ApiError>(false)
    };
    envelope::ok(with_version(&call, Weight::Scan, read).await?)
}

async fn categories(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        crate::datasets::wanted::require_not_kept(view, &asker, &dataset)?;
        let mut names: Vec<String> = ["Documentation", "Data", "Code"].map(str::to_owned).to_vec();
        // As in the original, whose tests require it, everybody gets these names: they are suggestions and disclose
        // nothing about files.
        let newest = dataset.draft.as_ref().map(|it| it.version);
        let newest = newest.or_else(|| dataset.last.as_ref().map(|it| it.version)).unwrap_or_default();
        let version = version::of_dataset(view, &dataset, newest)?;
        let files = Selection::of(view, &version, &Filter::default())?;
        for name in files.categories(view)?.into_keys() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok::<_, ApiError>(names)
    };
    envelope::ok(call.db().read(Weight::Scan, read).await?)
}

async fn download_count(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        let version = version::find(view, &asker, &dataset, ":latest", version::Withdrawn::Hidden)?;
        let sum = Selection::of(view, &version, &Filter::default())?.downloads(view)?;
        Ok::<_, ApiError>((dataset.id, sum))
    };
    let (id, sum) = call.db().read(Weight::Scan, read).await?;
    Ok(envelope::raw_json(http::StatusCode::OK, &json!({"id": id, "downloadCount": sum})))
}

/// Answers with a folder of a version as an HTML page of links, for crawlers.
async fn folders(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let version_text = call.query.filled("version").unwrap_or(":latest-published").to_owned();
    let folder = call.query.filled("folder").unwrap_or_default().trim_matches('/').to_owned();
    let original = call.query.is_true("original");
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        let version = version::find(view, &asker, &dataset, &version_text, version::Withdrawn::Hidden)?;
        let files = Selection::of(view, &version, &Filter::default())?;
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below: BTreeSet<String> = files
            .directories(view)?
            .keys()
            .filter_map(|it| it.strip_prefix(&prefix)?.split('/').next().map(str::to_owned))
            .collect();
        let here = files.in_directory(view, &folder)?;
        if below.is_empty() && here.is_empty() {
            return Err(ApiError::not_found(format!("No such folder: {folder}")));
        }
        Ok(page(dataset.id, &version_text, &folder, &below, &here, original))
    };
    text_answer("text/html", call.db().read(Weight::Scan, read).await?)
}

fn page(
    dataset: i64,
    version: &str,
    folder: &str,
    below: &BTreeSet<String>,
    here: &[(Row, DataFile)],
    original: bool,
) -> String {
    let mut xml = Xml::fragment();
    let title = format!("Index of folder /{folder}");
    xml.raw("<!DOCTYPE html>").open("html", &[]).open("head", &[]).leaf("title", &title).close();
    xml.open("body", &[]).leaf("h1", &title).open("table", &[]);
    xml.open("tr", &[]);
    for name in ["Name", "Last Modified", "Size", "Description"] {
        xml.leaf("th", name);
    }
    xml.close();
    xml.open("tr", &[]).open("th", &[("colspan", "4")]).empty("hr", &[]).close().close();
    let mut line = |link: &str, name: &str, cells: [&str; 3]| {
        xml.open("tr", &[]).open("td", &[]).leaf_with("a", &[("href", link)], name).close();
        for cell in cells {
            xml.open("td", &[]).text(cell).close();
        }
        xml.close();
    };
    for name in below {
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let link = format!("/api/datasets/{dataset}/dirindex/?version={version}&folder={path}");
        line(&link, &format!("{name}/"), [" - ", " - ", " "]);
    }
    for (row, file) in here {
        let format = if original && file.original.is_some() { "?format=original" } else { "" };
        let path = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let link = format!("/api/access/datafile/{path}{}{format}", file.id);
        let size = amounts::size_text(file.size);
        line(&link, &row.label, [&clock::date(file.created_ms), &size, &row.description]);
    }
    xml.finish()
}
