//! The files of a version: pages of them, counts, sizes, folders (section 4.3 of the contract).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pinakes_store::{View, Weight};
use serde_json::{Value, json};

use super::kinds::{DataFile, Row};
use super::{Around, Found, file_json, rows};
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

/// Filter of files.
#[derive(Debug, Clone, Default)]
struct Filter {
    content_type: Option<String>,
    access: Option<String>,
    category: Option<String>,
    tag: Option<String>,
    text: Option<String>,
    today: String,
}

const ACCESSES: [&str; 5] =
    ["Public", "Restricted", "EmbargoedThenRestricted", "EmbargoedThenPublic", "RetentionPeriodExpired"];

impl Filter {
    fn of(call: &Call) -> Result<Self, ApiError> {
        let text = |name: &str| call.query.filled(name).map(str::to_owned);
        let access = text("accessStatus");
        if let Some(access) = access.as_ref().filter(|it| !ACCESSES.contains(&it.as_str())) {
            return Err(ApiError::bad_request(format!("Invalid access status: {access}")));
        }
        Ok(Self {
            content_type: text("contentType"),
            access,
            category: text("categoryName"),
            tag: text("tabularTagName"),
            text: text("searchText").map(|it| it.to_lowercase()),
            today: clock::date(call.app.now_ms()),
        })
    }

    fn is_empty(&self) -> bool {
        self.content_type.is_none()
            && self.access.is_none()
            && self.category.is_none()
            && self.tag.is_none()
            && self.text.is_none()
    }

    fn takes(&self, row: &Row, file: &DataFile) -> bool {
        self.content_type.as_ref().is_none_or(|it| *it == file.content_type)
            && self.access.as_ref().is_none_or(|it| *it == access_of(row, file, &self.today))
            && self.category.as_ref().is_none_or(|it| row.categories.contains(it))
            && self.tag.as_ref().is_none_or(|it| file.tags.contains(it))
            && self.text.as_ref().is_none_or(|it| {
                row.label.to_lowercase().contains(it) || row.description.to_lowercase().contains(it)
            })
    }
}

fn access_of(row: &Row, file: &DataFile, today: &str) -> &'static str {
    if file.retention.as_ref().is_some_and(|it| it.date.as_str() < today) {
        return "RetentionPeriodExpired";
    }
    let is_embargoed = file.embargo.as_ref().is_some_and(|it| today < it.date.as_str());
    match (is_embargoed, row.restricted) {
        (true, true) => "EmbargoedThenRestricted",
        (true, false) => "EmbargoedThenPublic",
        (false, true) => "Restricted",
        (false, false) => "Public",
    }
}

fn sort(files: &mut [(Row, DataFile)], order: &str) -> Result<(), ApiError> {
    match order {
        "NameAZ" => files.sort_by(|a, b| a.0.label.cmp(&b.0.label)),
        "NameZA" => files.sort_by(|a, b| b.0.label.cmp(&a.0.label)),
        "Newest" => files.sort_by_key(|it| (Reverse(it.1.created_ms), Reverse(it.1.id))),
        "Oldest" => files.sort_by_key(|it| (it.1.created_ms, it.1.id)),
        "Size" => files.sort_by_key(|it| it.1.size),
        "Type" => files.sort_by(|a, b| (&a.1.content_type, &a.0.label).cmp(&(&b.1.content_type, &b.0.label))),
        other => return Err(ApiError::bad_request(format!("Invalid order criteria: {other}"))),
    }
    Ok(())
}

async fn list(call: Call) -> Answer {
    let filter = Filter::of(&call)?;
    let order = call.query.filled("orderCriteria").unwrap_or("NameAZ").to_owned();
    sort(&mut [], &order)?;
    let (limit, offset) = window(&call)?;
    let (skip, limit) = (offset.unsigned_abs(), limit.map_or(u64::MAX, i64::unsigned_abs));
    let read = move |view: &mut View<'_>, asker: &Asker, dataset: &Dataset, version: &Version| {
        require_files(view, asker, dataset, version)?;
        let around = Around::with(view, dataset, version.clone())?;
        let (n_all, page) = match filter.is_empty() && order == "NameAZ" && limit != u64::MAX {
            // Only the page is read.
            true => {
                let n_all = super::n_files(view, dataset.id, version.ordinal)?;
                let page = rows::page_of_version(view, dataset.id, version.ordinal, skip, limit)?;
                (n_all, rows::with_files(view, page)?)
            }
            false => {
                let mut all = super::all_of(view, version)?;
                all.retain(|(row, file)| filter.takes(row, file));
                sort(&mut all, &order)?;
                let n_all = all.len() as u64;
                let skip = usize::try_from(skip).unwrap_or(usize::MAX);
                let take = usize::try_from(limit).unwrap_or(usize::MAX);
                (n_all, all.into_iter().skip(skip).take(take).collect())
            }
        };
        let page = page.iter().map(|(row, file)| file_json(row, file, &around)).collect();
        Ok((n_all, page))
    };
    let (n_all, page): (u64, Vec<Value>) = with_version(&call, Weight::Scan, read).await?;
    envelope::page(n_all, page)
}

async fn counts(call: Call) -> Answer {
    let filter = Filter::of(&call)?;
    let read = move |view: &mut View<'_>, _: &Asker, _: &Dataset, version: &Version| {
        let mut all = super::all_of(view, version)?;
        all.retain(|(row, file)| filter.takes(row, file));
        let mut counts: [BTreeMap<String, u64>; 4] = Default::default();
        for (row, file) in &all {
            let mut count =
                |index: usize, value: &str| *counts[index].entry(value.to_owned()).or_default() += 1;
            count(0, &file.content_type);
            row.categories.iter().for_each(|it| count(1, it));
            file.tags.iter().for_each(|it| count(2, it));
            count(3, access_of(row, file, &filter.today));
        }
        let shown = |index: usize, name: &str| -> Vec<Value> {
            counts[index].iter().map(|(value, n)| json!({name: value, "count": n})).collect()
        };
        Ok(json!({
            "total": all.len(),
            "perContentType": shown(0, "contentType"),
            "perCategoryName": shown(1, "categoryName"),
            "perTabularTagName": shown(2, "tabularTagName"),
            "perAccessStatus": shown(3, "accessStatus"),
        }))
    };
    envelope::ok(with_version(&call, Weight::Scan, read).await?)
}

async fn download_size(call: Call) -> Answer {
    let filter = Filter::of(&call)?;
    let mode = call.query.filled("mode").unwrap_or("All").to_owned();
    if !["All", "Original", "Archival"].contains(&mode.as_str()) {
        return Err(ApiError::bad_request(format!("Invalid mode: {mode}")));
    }
    let read = move |view: &mut View<'_>, _: &Asker, _: &Dataset, version: &Version| {
        let mut sum = 0;
        for (row, file) in super::all_of(view, version)? {
            if !filter.takes(&row, &file) {
                continue;
            }
            let original = file.original.as_ref().map(|it| it.size);
            sum += match (mode.as_str(), original) {
                ("All", Some(original)) => file.size + original,
                ("Original", Some(original)) => original,
                _ => file.size,
            };
        }
        Ok::<u64, ApiError>(sum)
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
    let read = move |view: &mut View<'_>, asker: &Asker, _: &Dataset, version: &Version| {
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
        rows::each_of_version(view, dataset.id, version.ordinal, |row| {
            for name in row.categories {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        })?;
        Ok::<_, ApiError>(names)
    };
    envelope::ok(call.db().read(Weight::Scan, read).await?)
}

async fn download_count(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        let version = version::find(view, &asker, &dataset, ":latest", version::Withdrawn::Hidden)?;
        let sum: u64 = super::all_of(view, &version)?.iter().map(|it| it.1.downloads).sum();
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
        let files = super::all_of(view, &version)?;
        let within = |row: &Row| match folder.as_str() {
            "" => Some(row.directory.clone()),
            folder => {
                let rest = row.directory.strip_prefix(folder)?;
                if rest.is_empty() { Some(String::new()) } else { rest.strip_prefix('/').map(str::to_owned) }
            }
        };
        let mut below = BTreeMap::new();
        let mut here = Vec::new();
        for (row, file) in files {
            match within(&row) {
                Some(rest) if rest.is_empty() => here.push((row, file)),
                Some(rest) => {
                    *below.entry(rest.split('/').next().unwrap_or_default().to_owned()).or_insert(0_u64) += 1
                }
                None => {}
            }
        }
        if below.is_empty() && here.is_empty() {
            return Err(ApiError::not_found(format!("No such folder: {folder}")));
        }
        Ok(page(dataset.id, &version_text, &folder, below, &here, original))
    };
    text_answer("text/html", call.db().read(Weight::Scan, read).await?)
}

fn page(
    dataset: i64,
    version: &str,
    folder: &str,
    below: BTreeMap<String, u64>,
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
    for name in below.keys() {
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
