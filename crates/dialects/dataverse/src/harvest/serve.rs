//! `/api/harvest/clients`.

use http::StatusCode;
use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::{Call, Dataverse};
use crate::datasets::{self, DATASET};
use crate::error::{Answer, ApiError};
use crate::harvest::run::{self, QUEUE};
use crate::harvest::{self, CLIENT, Client};
use crate::routing::Routes;
use crate::{envelope, stored};

/// Maximum length of a nickname, in letters.
const NAME_LETTERS: usize = 30;

/// Datasets removed per transaction.
const REMOVED_AT_ONCE: u64 = 50;

const REFUSAL: &str = "Only superusers can administer harvesting clients.";

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/harvest/clients", list)
        .get("/harvest/clients/{name}", show)
        .post("/harvest/clients/{name}", create)
        .put("/harvest/clients/{name}", change)
        .delete("/harvest/clients/{name}", delete)
        .post("/harvest/clients/{name}/run", run_now)
        .get("/harvest/clients/{name}/run", run_now)
}

async fn list(call: Call) -> Answer {
    let to_superuser = call.asker.superuser(REFUSAL).is_ok();
    let all = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let all: Vec<Client> = stored::find(view, &CLIENT, &Query::filter(Expr::All))?;
        all.iter().map(|it| it.json(view, to_superuser)).collect()
    };
    envelope::ok(json!({"harvestingClients": call.db().read(Weight::Scan, all).await?}))
}

async fn show(call: Call) -> Answer {
    let name = call.param("name").to_owned();
    let to_superuser = call.asker.superuser(REFUSAL).is_ok();
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let missing = || ApiError::not_found(format!("Harvesting client {name} not found."));
        let client: Client = stored::get(view, &CLIENT, &name)?.ok_or_else(missing)?;
        client.json(view, to_superuser)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn create(mut call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let creator = call.asker.user()?.id;
    let body = call.object().await?;
    let name = call.param("name").to_owned();
    let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if NAME_LETTERS < name.len() || !name.chars().all(is_letter) {
        return Err(ApiError::bad_request(
            "Client nickname can contain only letters, digits, underscores (_) and dashes (-); and must be at most 30 \
             characters.",
        ));
    }
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        if txn.has(&CLIENT, &name)? {
            return Err(ApiError::bad_request(format!("Harvesting client {name} already exists.")));
        }
        let mut client =
            Client { nick_name: name.clone(), creator, style: "default".to_owned(), ..Client::default() };
        client.put(txn, &body)?;
        stored::insert(txn, &CLIENT, &name, &client)?;
        client.json(txn, true)
    };
    let json = call.db().write(write).await?;
    envelope::created(&format!("/harvest/clients/{}", call.param("name")), json)
}

async fn change(mut call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let body = call.object().await?;
    let name = call.param("name").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut client = harvest::named(txn, &name)?;
        client.put(txn, &body)?;
        stored::put(txn, &CLIENT, &name, &client)?;
        client.json(txn, true)
    };
    envelope::ok(call.db().write(write).await?)
}

/// Removes a client and the datasets that it harvested.
async fn delete(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let name = call.param("name").to_owned();
    let wanted = name.clone();
    let begin = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        harvest::named(txn, &wanted)?;
        txn.cancel_job(QUEUE, &wanted)?;
        txn.delete(&CLIENT, &wanted)?;
        Ok(())
    };
    call.db().write(begin).await?;
    loop {
        let (app, wanted) = (call.app.clone(), name.clone());
        let n_removed = call.db().write(move |txn: &mut Txn<'_>| remove_some(txn, &app, &wanted)).await?;
        if n_removed == 0 {
            break;
        }
    }
    envelope::message(format!("Harvesting Client {name} deleted"))
}

/// Removes some of a client's datasets. Returns how many.
fn remove_some(txn: &mut Txn<'_>, app: &Dataverse, name: &str) -> Result<usize, ApiError> {
    let query = Query::filter(Expr::Is("harvestedBy".into(), name.into())).window(0, REMOVED_AT_ONCE);
    let some: Vec<datasets::Dataset> = stored::find(txn, &DATASET, &query)?;
    for dataset in &some {
        datasets::remove::remove(txn, app, dataset)?;
    }
    Ok(some.len())
}

/// Starts a run, which continues after the answer. Errors: 409 if one is in progress.
async fn run_now(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let name = call.param("name").to_owned();
    let queue = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut client = harvest::named(txn, &name)?;
        if !txn.queue_job(QUEUE, &name)? {
            return Err(ApiError::conflict(format!("Harvesting client {name} is already being harvested.")));
        }
        client.in_progress = true;
        stored::put(txn, &CLIENT, &name, &client)
    };
    call.db().write(queue).await?;
    run::begin(&call.app, call.db(), call.param("name"));
    Ok(envelope::raw_json(StatusCode::ACCEPTED, &json!({"status": "WORKFLOW_IN_PROGRESS"})))
}
