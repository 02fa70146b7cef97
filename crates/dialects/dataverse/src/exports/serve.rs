//! `GET /api/datasets/export` and related routes (section 10 of the contract).

use pinakes_store::{View, Weight};
use serde_json::{Map, Value};

use super::{Exporter, exporter, formats_json};
use crate::app::{Call, Dataverse};
use crate::blocks::Registry;
use crate::datasets::show::{native_json, publisher, text_answer};
use crate::datasets::{self, Dataset, Version, version, wanted};
use crate::error::{Answer, ApiError};
use crate::exports::source::{Owner, Source};
use crate::files::variables;
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{clock, collections, envelope, licenses, permissions};

const NO_VERSION: &str = "Unable to look up dataset based on version. Try :latest-published or :draft.";

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/export", export)
        .get("/info/exportFormats", formats)
        .get("/admin/metadata/exportAll", done)
        .get("/admin/metadata/reExportAll", done)
        .get("/admin/metadata/{id}/reExportDataset", done)
        .get("/admin/metadata/:persistentId/reExportDataset", done)
        .get("/admin/metadata/clearExportTimestamps", done)
}

async fn formats(_: Call) -> Answer {
    envelope::ok(formats_json())
}

/// Does nothing: exports are generated on request, so there is nothing to regenerate.
async fn done(_: Call) -> Answer {
    envelope::message("Exports are made when they are asked for; there is none to make anew.")
}

/// Returns a version in a format.
pub(crate) fn written(
    view: &mut View<'_>,
    app: &Dataverse,
    registry: &Registry,
    site_url: &str,
    dataset: &Dataset,
    version: &Version,
    format: &Exporter,
) -> Result<String, ApiError> {
    with_source(view, app, registry, site_url, (dataset, version), format.name, |source| {
        (format.write)(source)
    })
}

/// Returns the OAI-ORE map of a version.
pub(crate) fn ore_map(
    view: &mut View<'_>,
    app: &Dataverse,
    registry: &Registry,
    site_url: &str,
    dataset: &Dataset,
    version: &Version,
) -> Result<Value, ApiError> {
    with_source(view, app, registry, site_url, (dataset, version), "OAI_ORE", super::ore::json)
}

/// Runs `write` on the source of a version's export; `name` is that of the format.
fn with_source<R>(
    view: &mut View<'_>,
    app: &Dataverse,
    registry: &Registry,
    site_url: &str,
    (dataset, version): (&Dataset, &Version),
    name: &str,
    write: impl FnOnce(&Source<'_>) -> R,
) -> Result<R, ApiError> {
    let json = native_json(view, app, dataset, version)?;
    let publisher = publisher(view)?;
    let nearest = collections::named_by_record(view, dataset.owner)?;
    let owners: Vec<Owner> = collections::with_owners(view, nearest)?
        .into_iter()
        .map(|it| Owner { alias: it.alias, name: it.name, description: it.description.unwrap_or_default() })
        .collect();
    let license = version.license.map(|id| licenses::by_id(view, id)).transpose()?.flatten();
    let license_text = license.map(|it| it.short_description).unwrap_or_default();
    let mut tables = Map::new();
    if matches!(name, "ddi" | "oai_ddi" | "html" | "croissant") {
        for file in json["datasetVersion"]["files"].as_array().into_iter().flatten() {
            let is_table = file["dataFile"]["tabularData"] == Value::Bool(true);
            let id = file["dataFile"]["id"].as_i64().filter(|_| is_table);
            if let Some((id, table)) = id
                .map(|id| Ok::<_, ApiError>((id, variables::tables_in(view, id, version.ordinal)?)))
                .transpose()?
            {
                tables.insert(id.to_string(), table.unwrap_or_default());
            }
        }
    }
    let source = Source {
        dataset: &json,
        registry,
        site_url,
        publisher: &publisher,
        owners: &owners,
        license_text: &license_text,
        tables: &tables,
        today: &clock::date(app.now_ms()),
    };
    Ok(write(&source))
}

async fn export(call: Call) -> Answer {
    let pid = call.query.get("persistentId").unwrap_or_default().to_owned();
    let name = call.query.get("exporter").unwrap_or_default().to_owned();
    let wanted = call.query.filled("version").unwrap_or(":latest-published").to_owned();
    let registry = call.app.registry(call.db()).await?;
    let (app, asker, site_url) = (call.app.clone(), call.asker.clone(), call.site_url());
    let read = move |view: &mut View<'_>| {
        let dataset = datasets::by_pid(view, &pid)?.ok_or_else(|| {
            ApiError::not_found(format!("A dataset with the persistentId {pid} could not be found."))
        })?;
        wanted::require_not_kept(view, &asker, &dataset)?;
        let failed = || ApiError::forbidden("Export Failed");
        let format = exporter(&name).ok_or_else(failed)?;
        let released = dataset.released.as_ref();
        let no_version = || ApiError::bad_request(NO_VERSION);
        let id = match wanted.as_str() {
            ":draft" => {
                let may =
                    permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
                if !may {
                    return Err(no_version());
                }
                dataset.draft.as_ref().map(|it| it.version).ok_or_else(no_version)?
            }
            ":latest-published" => match released {
                Some(it) => it.version,
                None if dataset.was_released() => return Err(no_version()),
                None => return Err(failed()),
            },
            text => {
                let found = version::find(view, &asker, &dataset, text, version::Withdrawn::Hidden);
                let found = found.map_err(|_| no_version())?;
                if Some(found.id) != released.map(|it| it.version) && found.state != datasets::State::Draft {
                    return Err(ApiError::bad_request(format!(
                        "Non-draft version requested ({text}) but for published versions only the latest \
                         (:latest-published) is supported."
                    )));
                }
                found.id
            }
        };
        let version = version::of_dataset(view, &dataset, id)?;
        let text = written(view, &app, &registry, &site_url, &dataset, &version, format)?;
        Ok::<_, ApiError>((format.media_type, text))
    };
    let (media_type, text) = call.db().read(Weight::Scan, read).await?;
    text_answer(media_type, text)
}
