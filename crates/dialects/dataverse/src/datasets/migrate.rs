//! Migration of datasets that were published elsewhere: `…/datasets/:startmigration` creates a draft with their
//! identifier and metadata (JSON-LD), files are added to it, and `…/actions/:releasemigrated` publishes it with its
//! former version number and publication date.

use pinakes_store::Txn;
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::datasets::create::{New, own_pid, store};
use crate::datasets::publish::{NOTICES, Release, release_in};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, jsonld, show, version};
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{changes, clock, envelope};

/// Setting of a dataset: its former version number, `[2, 1]`.
const VERSION: &str = "migratedVersion";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/dataverses/{id}/datasets/:startmigration", start)
        .post("/datasets/{id}/actions/:releasemigrated", release)
}

/// Creates the draft of a migrated dataset. Errors: 403 for callers who are not superusers; 400 for an identifier of
/// another site or one in use, and without a published version.
async fn start(mut call: Call) -> Answer {
    call.asker.superuser("Not a superuser")?;
    let body = call.object().await?;
    let registry = call.app.registry(call.db()).await?;
    let pid = body.get("@id").and_then(Value::as_str);
    let pid = pid.ok_or_else(|| ApiError::bad_request("The JSON-LD has no @id, which names the dataset."))?;
    let foreign = "Cannot recreate a dataset that has a PID that doesn't match the server's settings";
    let pid = own_pid(&call.app, pid).map_err(|_| ApiError::bad_request(foreign))?;
    let number = jsonld::of_schema(&body, "version").as_deref().and_then(numbers);
    let unpublished = "Cannot recreate a dataset that hasn't been published.";
    let number = number.ok_or_else(|| ApiError::bad_request(unpublished))?;
    let wanted = pid.clone();
    let is_taken = call
        .db()
        .read(pinakes_store::Weight::Point, move |view| {
            Ok::<_, ApiError>(datasets::by_pid(view, &wanted)?.is_some())
        })
        .await?;
    if is_taken {
        return Err(ApiError::bad_request("Cannot recreate a dataset whose PID is already in use"));
    }
    let mut new = New::read(&registry, &jsonld::new_body(&registry, &body)?)?;
    new.pid = Some(pid);
    let id = store(&call, registry, new).await?.id;
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut dataset = Wanted::number(id).find(txn)?;
        dataset.more.insert(VERSION.to_owned(), json!([number.0, number.1]));
        datasets::put(txn, &dataset)?;
        Ok(dataset.pid)
    };
    let pid = call.db().write(write).await?;
    envelope::created(
        &format!("{}/api/datasets/{id}", call.site_url()),
        json!({"id": id, "persistentId": pid}),
    )
}

/// Parses `2.1` into numbers; `None` for `DRAFT`.
fn numbers(text: &str) -> Option<(i64, i64)> {
    let (number, minor) = text.split_once('.')?;
    let part = |it: &str| it.parse::<u32>().ok().map(i64::from);
    part(number).zip(part(minor)).filter(|it| 1 <= it.0)
}

/// Publishes a migrated dataset. Errors: 403 for callers who are not superusers; 400 without a publication date.
async fn release(mut call: Call) -> Answer {
    call.asker.superuser("Only superusers can release migrated datasets")?;
    let body: Map<String, Value> = call.object().await.unwrap_or_default();
    let text = body.iter().find(|(name, _)| name.ends_with("datePublished")).map(|it| it.1.clone());
    let date = text.and_then(|it| it.as_str().and_then(|it| it.get(..10)).map(str::to_owned));
    let date = date.ok_or_else(|| ApiError::bad_request("Supplied date: datePublished is missing"))?;
    if !clock::is_day(&date) || clock::date(call.app.now_ms()) < date {
        return Err(ApiError::bad_request(format!("Supplied date: {date} is no day, or lies in the future")));
    }
    let (app, asker, wanted, ids) =
        (call.app.clone(), call.asker.clone(), Wanted::of(&call)?, call.ids(NOTICES).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(txn)?;
        let mut dataset = release_in(txn, &app, &asker, dataset, Release::Major, ids)?;
        dataset.publication_date = Some(date.clone());
        if let Some(had) = dataset.more.remove(VERSION) {
            let (number, minor) = (had[0].as_i64().unwrap_or(1), had[1].as_i64().unwrap_or_default());
            for known in dataset.released.iter_mut().chain(&mut dataset.last) {
                (known.number, known.minor) = (number, minor);
            }
            if let Some(known) = dataset.released.clone() {
                let mut released = version::of_dataset(txn, &dataset, known.version)?;
                (released.number, released.minor) = (Some(number), Some(minor));
                version::put(txn, &released)?;
            }
        }
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)?;
        Ok(Value::Object(show::dataset_map(txn, &app, &dataset)?))
    };
    envelope::ok(call.db().write(write).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let found = ["1.0", "2.11", "DRAFT", "0.1", "1", "1.x", "-1.0"].map(numbers);
        assert_eq!(found, [Some((1, 0)), Some((2, 11)), None, None, None, None, None]);
    }
}
