//! The description of a table: its variables as DDI.

use pinakes_store::{View, Weight};
use serde_json::{Map, Value};

use crate::app::Call;
use crate::clock;
use crate::datasets::show::{native_json, publisher, text_answer};
use crate::datasets::version;
use crate::error::{Answer, ApiError};
use crate::exports::ddi as codebook;
use crate::exports::source::Source;
use crate::files::{Around, Found, Wanted, file_json, variables};
use crate::routing::Routes;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/access/datafile/{id}/metadata", of_table)
        .get("/access/datafile/{id}/metadata/{format}", of_table)
        .get("/access/variable/{id}/metadata/ddi", no_variable)
        .get("/meta/datafile/{id}", of_table)
        .get("/meta/variable/{id}", no_variable)
}

async fn no_variable(_: Call) -> Answer {
    Err(ApiError::not_found(
        "Variables are described with their file: /api/access/datafile/{id}/metadata/ddi.",
    ))
}

async fn of_table(call: Call) -> Answer {
    if !matches!(call.param("format"), "" | "ddi") {
        return Err(ApiError::not_found("This kind of metadata is not available for this file."));
    }
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let today = clock::date(call.app.now_ms());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        if !found.may_download(view, &asker, &today)? {
            let text = "You do not have permission to download this file.";
            return Err(ApiError::bad_request(text).with("code", 400));
        }
        if found.file.original.is_none() {
            let text = "This type of metadata is only available for tabular files.";
            return Err(ApiError::bad_request(text).with("code", 400));
        }
        Ok(found)
    };
    let found = call.db().read(Weight::Point, read).await?;
    let metadata = call.query.filled("fileMetadataId").map(str::to_owned);
    text_answer("application/xml", ddi(&call, &found, metadata).await?)
}

/// Returns the codebook of one table.
pub(super) async fn ddi(call: &Call, found: &Found, row: Option<String>) -> Result<String, ApiError> {
    let registry = call.app.registry(call.db()).await?;
    let (app, asker, found, site_url) =
        (call.app.clone(), call.asker.clone(), found.clone(), call.site_url());
    let read = move |view: &mut View<'_>| {
        let version = version::find(view, &asker, &found.dataset, ":latest", version::Withdrawn::Shown)?;
        // The caller must not see rows that are newer than the version they see.
        let mut seen = found.rows.iter().rev().filter(|it| it.since <= version.ordinal);
        let by_row = row.as_ref().and_then(|id| seen.clone().find(|it| it.id.to_string() == *id));
        let row = by_row.or_else(|| seen.next());
        let row = row.ok_or_else(|| ApiError::not_found("File could not be found."))?;
        let dataset = native_json(view, &app, &found.dataset, &version)?;
        let publisher = publisher(view)?;
        let tables = variables::tables_in(view, found.file.id, version.ordinal)?.unwrap_or_default();
        let around = Around::with(view, &found.dataset, version)?;
        let file: Value = file_json(row, &found.file, &around);
        let none = Map::new();
        let source = Source {
            dataset: &dataset,
            registry: &registry,
            site_url: &site_url,
            publisher: &publisher,
            owners: &[],
            license_text: "",
            tables: &none,
            today: &clock::date(app.now_ms()),
        };
        Ok::<_, ApiError>(codebook::of_file(&source, &file, &tables))
    };
    call.db().read(Weight::Scan, read).await
}
