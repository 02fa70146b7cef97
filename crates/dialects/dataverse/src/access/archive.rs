//! Archives of several files, bundles of a table, and subsets of a table's columns.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read, Seek as _, Write as _};

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH};
use http::{HeaderValue, StatusCode};
use pinakes_blobs::{Blob, Blobs};
use pinakes_http::answer;
use pinakes_store::{View, Weight};
use serde_json::Value;
use zip::write::SimpleFileOptions;

use super::{Content, check_guestbook, count_all, is_published, not_authorized, quoted};
use crate::app::Call;
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, version};
use crate::downloads::{self, Occasion};
use crate::error::{Answer, ApiError};
use crate::files::receive::store_fault;
use crate::files::{self, Found, rows};
use crate::routing::Routes;
use crate::{clock, envelope, signing, site_settings};

/// Maximum size of the files in one archive, in bytes, unless the setting `:ZipDownloadLimit` overrides it.
const ZIP_BYTES: u64 = 104_857_600;
/// Maximum number of files in one request.
const FILES: usize = 10_000;
/// Validity, in minutes, of a URL that is signed after a guestbook entry.
const MINUTES: i64 = 60;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/access/datafile/bundle/{id}", bundle)
        .post("/access/datafile/{id}", signed_file)
        .get("/access/datafiles/{ids}", some)
        .post("/access/datafiles/{ids}", signed_files)
        .post("/access/datafiles", some_posted)
        .get("/access/dataset/{id}", of_dataset)
        .post("/access/dataset/{id}", signed_dataset)
        .get("/access/dataset/{id}/versions/{version}", of_dataset)
        .post("/access/dataset/{id}/versions/{version}", signed_dataset)
}

/// A file of an archive: its path in it, and its content.
struct Entry {
    path: String,
    content: Content,
}

/// Returns the error for a failure to write an archive.
fn disk_fault(error: impl std::fmt::Display) -> ApiError {
    tracing::error!(%error, "an archive cannot be made");
    ApiError::internal("The archive cannot be made. More details available at the server logs.")
}

/// Writes an archive with a manifest; files beyond the size limit are left out and listed in the manifest.
fn written(
    blobs: &Blobs,
    tenant: &str,
    entries: Vec<Entry>,
    skipped: Vec<String>,
    most_bytes: u64,
) -> Result<std::fs::File, ApiError> {
    let local = tempfile::tempfile().map_err(disk_fault)?;
    let mut zip = zip::ZipWriter::new(local);
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .compression_level(Some(1))
        .large_file(false);
    let mut manifest = String::new();
    let mut sum = 0;
    let mut names = std::collections::HashSet::new();
    for entry in entries {
        let length = entry.content.length();
        let kind = &entry.content.content_type;
        if most_bytes < sum + length {
            manifest.push_str(&format!(
                "{} ({kind}) skipped because the total size of the download bundle exceeded the limit of {most_bytes} bytes.\r\n",
                entry.path
            ));
            continue;
        }
        sum += length;
        let mut path = entry.path.clone();
        let mut n = 0;
        while !names.insert(path.clone()) {
            n += 1;
            path = format!("{n}_{}", entry.path);
        }
        manifest.push_str(&format!("{path} ({kind}) {length} bytes.\r\n"));
        zip.start_file(&path, options.large_file(u64::from(u32::MAX) <= length)).map_err(disk_fault)?;
        zip.write_all(&entry.content.head).map_err(disk_fault)?;
        let mut reader = blobs.reader(tenant, &entry.content.blob, None).map_err(store_fault)?;
        std::io::copy(&mut reader, &mut zip).map_err(disk_fault)?;
    }
    for line in skipped {
        manifest.push_str(&line);
        manifest.push_str("\r\n");
    }
    zip.start_file("MANIFEST.TXT", options).map_err(disk_fault)?;
    zip.write_all(manifest.as_bytes()).map_err(disk_fault)?;
    let mut local = zip.finish().map_err(disk_fault)?;
    local.rewind().map_err(disk_fault)?;
    Ok(local)
}

async fn local_file(
    file: std::fs::File,
    content_type: &'static str,
    name: &str,
) -> Result<Response, ApiError> {
    let length = file.metadata().map_err(disk_fault)?.len();
    let reader = tokio_util::io::ReaderStream::with_capacity(tokio::fs::File::from_std(file), 64 << 10);
    let body = Body::from_stream(reader);
    let mut response = answer::with_body(StatusCode::OK, HeaderValue::from_static(content_type), body);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    let disposition = format!("attachment; filename=\"{}\"", quoted(name));
    Ok(answer::with_header(response, CONTENT_DISPOSITION, &disposition))
}

async fn archive(call: &Call, entries: Vec<Entry>, skipped: Vec<String>, name: &str) -> Answer {
    let read = |view: &mut View<'_>| site_settings::get(view, ":ZipDownloadLimit");
    let setting = call.db().read(Weight::Point, read).await?;
    let most_bytes = setting.and_then(|it| it.trim().parse().ok()).unwrap_or(ZIP_BYTES);
    let (blobs, tenant) = (call.app.context.blobs().clone(), call.tenant().to_owned());
    let work = move || written(&blobs, &tenant, entries, skipped, most_bytes);
    let file = tokio::task::spawn_blocking(work).await.map_err(disk_fault)??;
    local_file(file, "application/zip", name).await
}

/// Returns the name of a dataset's archive: `doi-10.5072-fk2-ab12cd`.
fn archive_name(pid: &str) -> String {
    pid.replace([':', '/'], "-").to_lowercase()
}

fn with_names(call: &Call) -> bool {
    !call.query.is_true("noVarHeader")
}

fn original(call: &Call) -> bool {
    call.query.get("format") == Some("original") || call.query.get("original").is_some()
}

/// Parses numbers separated by commas. Errors: 400.
fn numbers(text: &str) -> Result<Vec<i64>, ApiError> {
    let parts = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let ids: Option<Vec<i64>> = parts.map(|it| it.parse().ok()).collect();
    let ids = ids.filter(|it| !it.is_empty() && it.len() <= FILES);
    ids.ok_or_else(|| ApiError::bad_request("Bad file ids: expected numbers separated by commas."))
}

/// Returns the files with these numbers, split into those that the caller may download and those that they may not.
async fn admitted(call: &Call, ids: Vec<i64>) -> Result<(Vec<Found>, Vec<String>), ApiError> {
    let (asker, today) = (call.asker.clone(), clock::date(call.app.now_ms()));
    let read = move |view: &mut View<'_>| {
        let (mut may, mut refused, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for id in &ids {
            let Some(file) = rows::data_file(view, *id)? else {
                missing.push(format!("File with id={id}: NO SUCH OBJECT AVAILABLE"));
                continue;
            };
            let found = Found::of(view, file)?;
            if found.may_download(view, &asker, &today)? {
                may.push(found);
            } else if found.published_row().is_some() || found.may_see(view, &asker)? {
                let label = found.published_row().map(|it| it.label.clone()).unwrap_or_default();
                refused.push(format!("{label} IS RESTRICTED AND CANNOT BE DOWNLOADED"));
            } else {
                missing.push(format!("File with id={id}: NO SUCH OBJECT AVAILABLE"));
            }
        }
        if may.is_empty() {
            return Err(not_authorized());
        }
        refused.extend(missing);
        Ok((may, refused))
    };
    call.db().read(Weight::Scan, read).await
}

/// Checks the guestbooks of the files' datasets. Errors: 400 if one must be signed first.
async fn check_guestbooks(call: &Call, files: &[Found]) -> Result<(), ApiError> {
    let mut checked = BTreeSet::new();
    for found in files {
        if checked.insert(found.dataset.id) {
            check_guestbook(call, found).await?;
        }
    }
    Ok(())
}

async fn many(call: &Call, may: Vec<Found>, skipped: Vec<String>) -> Answer {
    let mut entries = Vec::new();
    for found in &may {
        let content = Content::of(found, original(call), with_names(call))?;
        let row = found.published_row().or_else(|| found.newest_row());
        let directory = row.map(|it| it.directory.clone()).unwrap_or_default();
        let path =
            if directory.is_empty() { content.name.clone() } else { format!("{directory}/{}", content.name) };
        entries.push(Entry { path, content });
    }
    count_all(call, may.iter().filter(|it| is_published(it)).map(|it| it.file.id).collect()).await;
    let pid = may.first().map(|it| it.dataset.pid.clone()).unwrap_or_default();
    let is_one_dataset = may.iter().all(|it| it.dataset.pid == pid);
    let name =
        if is_one_dataset { format!("{}.zip", archive_name(&pid)) } else { "dataverse_files.zip".to_owned() };
    archive(call, entries, skipped, &name).await
}

async fn some(call: Call) -> Answer {
    let (may, skipped) = admitted(&call, numbers(call.param("ids"))?).await?;
    check_guestbooks(&call, &may).await?;
    many(&call, may, skipped).await
}

async fn some_posted(mut call: Call) -> Answer {
    let text = call.text().await?;
    let parsed: Option<Value> = serde_json::from_str(&text).ok().filter(Value::is_object);
    let ids = match &parsed {
        Some(body) => {
            let list =
                body["fileIds"].as_array().map(|it| it.iter().map(ToString::to_string).collect::<Vec<_>>());
            numbers(&list.unwrap_or_default().join(","))?
        }
        None => numbers(text.strip_prefix("fileIds=").unwrap_or(&text))?,
    };
    let (may, skipped) = admitted(&call, ids).await?;
    match parsed.filter(|it| it["guestbookResponse"].is_object()) {
        Some(body) => sign_guestbook(&call, &may, &body).await?,
        None => check_guestbooks(&call, &may).await?,
    }
    many(&call, may, skipped).await
}

/// Returns the files of a version that the caller may download.
async fn version_files(call: &Call) -> Result<(datasets::Dataset, String, Vec<(String, Found)>), ApiError> {
    let (wanted, asker) = (Wanted::of(call)?, call.asker.clone());
    let text = call.param("version").to_owned();
    let today = clock::date(call.app.now_ms());
    let read = move |view: &mut View<'_>| {
        let dataset =
            wanted.find(view).map_err(|_| ApiError::bad_request("Could not find requested dataset."))?;
        let text = if text.is_empty() { ":latest" } else { &text };
        let version = version::find(view, &asker, &dataset, text, version::Withdrawn::Hidden);
        let version = version.map_err(|error| match error.status {
            StatusCode::UNAUTHORIZED if text == ":latest" => {
                ApiError::bad_request("Could not find requested dataset version.")
            }
            StatusCode::NOT_FOUND => ApiError::not_found("Could not find requested dataset version."),
            _ => error,
        })?;
        let mut files = Vec::new();
        for (row, file) in files::all_of(view, &version)? {
            let found = Found::of(view, file)?;
            if found.may_download(view, &asker, &today)? {
                files.push((row.path(), found));
            }
        }
        let number = match version.state {
            datasets::State::Draft => "draft".to_owned(),
            _ => version.friendly_number(),
        };
        Ok::<_, ApiError>((dataset, number, files))
    };
    call.db().read(Weight::Scan, read).await
}

async fn of_dataset(call: Call) -> Answer {
    let (dataset, number, files) = version_files(&call).await?;
    let Some(first) = files.first() else { return Err(not_authorized()) };
    check_guestbook(&call, &first.1).await?;
    let mut entries = Vec::new();
    for (path, found) in &files {
        let mut content = Content::of(found, original(&call), with_names(&call))?;
        let folder = path.rsplit_once('/').map_or(String::new(), |it| format!("{}/", it.0));
        let is_original = original(&call) && found.file.original.is_some();
        let path = if is_original { format!("{folder}{}", content.name) } else { path.clone() };
        content.name.clone_from(&path);
        entries.push(Entry { path, content });
    }
    count_all(&call, files.iter().filter(|it| is_published(&it.1)).map(|it| it.1.file.id).collect()).await;
    let name = format!("{}_{number}.zip", archive_name(&dataset.pid));
    archive(&call, entries, Vec::new(), &name).await
}

/// Answers with a table in all its forms: as deposited, as tab-separated text, with its description and citation.
async fn bundle(call: Call) -> Answer {
    let found = super::admitted(&call).await?;
    check_guestbook(&call, &found).await?;
    if found.file.original.is_none() {
        return Err(super::no_service());
    }
    let tab = Content::of(&found, false, with_names(&call))?;
    let deposited = Content::of(&found, true, true)?;
    let stem = tab.name.rsplit_once('.').map_or(tab.name.as_str(), |it| it.0).to_owned();
    let ddi = super::metadata::ddi(&call, &found, None).await?;
    let blob = call
        .app
        .context
        .blobs()
        .put(call.tenant(), futures_util::stream::iter([Ok::<_, std::io::Error>(ddi.into())]));
    let described = Content {
        head: bytes::Bytes::new(),
        blob: blob.await.map_err(store_fault)?,
        content_type: "application/xml".to_owned(),
        name: format!("{stem}-ddi.xml"),
    };
    let entries = [deposited, tab, described].map(|it| Entry { path: it.name.clone(), content: it });
    super::count(&call, &found).await;
    archive(&call, entries.into(), Vec::new(), &format!("{stem}-bundle.zip")).await
}

/// Answers with some columns of a table, selected by the numbers of its variables.
pub(super) async fn subset(call: &Call, found: &Found) -> Answer {
    let wanted = numbers(&call.query.get("variables").unwrap_or_default().replace('v', ""))?;
    let id = found.file.id;
    let tables = call.db().read(Weight::Point, move |view| rows::tables(view, id)).await?;
    let tables = tables.ok_or_else(super::no_service)?;
    let empty = Vec::new();
    let variables = tables[0]["dataVariables"].as_array().unwrap_or(&empty);
    let place = |wanted: &i64| variables.iter().position(|it| it["id"].as_i64() == Some(*wanted));
    let places: Option<Vec<usize>> = wanted.iter().map(place).collect();
    let places = places.ok_or_else(|| ApiError::bad_request("The table has no such variable."))?;
    let names: Vec<&str> =
        places.iter().map(|at| variables[*at]["name"].as_str().unwrap_or_default()).collect();
    let head = format!("{}\n", names.join("\t"));
    let content = Content::of(found, false, false)?;
    let has_names = found.file.header.is_none();
    let (blobs, tenant, blob) =
        (call.app.context.blobs().clone(), call.tenant().to_owned(), content.blob.clone());
    let work = move || columns(&blobs, &tenant, &blob, &places, has_names, &head);
    let file = tokio::task::spawn_blocking(work).await.map_err(disk_fault)??;
    local_file(file, "text/tab-separated-values", &content.name).await
}

fn columns(
    blobs: &Blobs,
    tenant: &str,
    blob: &Blob,
    places: &[usize],
    has_names: bool,
    head: &str,
) -> Result<std::fs::File, ApiError> {
    let mut local = std::io::BufWriter::new(tempfile::tempfile().map_err(disk_fault)?);
    local.write_all(head.as_bytes()).map_err(disk_fault)?;
    let reader = blobs.reader(tenant, blob, None).map_err(store_fault)?;
    let mut lines = BufReader::new(reader.take(blob.length));
    let mut line = String::new();
    let mut is_first = true;
    while 0 < lines.read_line(&mut line).map_err(disk_fault)? {
        if !(is_first && has_names) {
            let cells: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
            let kept: Vec<&str> =
                places.iter().map(|at| cells.get(*at).copied().unwrap_or_default()).collect();
            writeln!(local, "{}", kept.join("\t")).map_err(disk_fault)?;
        }
        is_first = false;
        line.clear();
    }
    let mut local = local.into_inner().map_err(disk_fault)?;
    local.rewind().map_err(disk_fault)?;
    Ok(local)
}

/// Makes a guestbook entry for files of one dataset. Errors: 400.
async fn sign_guestbook(call: &Call, files: &[Found], body: &Value) -> Result<(), ApiError> {
    let ids: Vec<i64> = files.iter().map(|it| it.file.id).collect();
    let (asker, now) = (call.asker.clone(), call.app.now());
    let numbers = call.ids(i64::try_from(ids.len()).unwrap_or(1)).await?;
    let given = body["guestbookResponse"].clone();
    let write = move |txn: &mut pinakes_store::Txn<'_>| {
        let mut numbers = numbers;
        let mut dataset: Option<i64> = None;
        for id in &ids {
            let file = files::Wanted::number(*id).find(txn)?;
            if dataset.is_some_and(|it| it != file.dataset) {
                return Err(ApiError::bad_request(
                    "All files being downloaded must be from the same Dataset.",
                ));
            }
            dataset = Some(file.dataset);
            let answers = (Occasion::Download, &given);
            downloads::sign(txn, numbers.next()?, &now, &asker, &file, answers)?;
        }
        Ok(())
    };
    call.db().write(write).await
}

/// Answers with a signed URL for the same files, which needs no guestbook entry.
async fn signed(mut call: Call, ids: Vec<i64>, path: String) -> Answer {
    let text = call.text().await?;
    let body: Value =
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or_default() };
    let (may, _) = admitted(&call, ids).await?;
    let is_entered = body["guestbookResponse"].is_object();
    match is_entered {
        true => sign_guestbook(&call, &may, &body).await?,
        false => check_guestbooks(&call, &may).await?,
    }
    let user = call.asker.user.as_ref().map_or_else(|| ":guest".to_owned(), |it| it.name.clone());
    let mut kept: Vec<String> = ["format", "noVarHeader", "imageThumb"]
        .into_iter()
        .filter_map(|name| Some(format!("{name}={}", call.query.filled(name)?)))
        .collect();
    // The guestbook entry recorded the download.
    if is_entered {
        kept.push("gbrecs=true".to_owned());
    }
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    let url = format!("{}{path}{query}", call.site_url());
    let url = signing::sign(&call, &url, "GET", &user, MINUTES);
    envelope::ok(serde_json::json!({"signedUrl": url}))
}

async fn signed_file(call: Call) -> Answer {
    let wanted = files::Wanted::of(&call)?;
    let file = call.db().read(Weight::Point, move |view| wanted.find(view)).await?;
    signed(call, vec![file.id], format!("/api/access/datafile/{}", file.id)).await
}

async fn signed_files(call: Call) -> Answer {
    let ids = numbers(call.param("ids"))?;
    let list = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    signed(call, ids, format!("/api/access/datafiles/{list}")).await
}

async fn signed_dataset(call: Call) -> Answer {
    let (dataset, _, files) = version_files(&call).await?;
    let ids: Vec<i64> = files.iter().map(|it| it.1.file.id).collect();
    if ids.is_empty() {
        return Err(not_authorized());
    }
    let version = call.param("version");
    let path = match version {
        "" => format!("/api/access/dataset/{}", dataset.id),
        version => format!("/api/access/dataset/{}/versions/{version}", dataset.id),
    };
    signed(call, ids, path).await
}
