//! Messages from other services: the inbox for linked data notifications, and projects of Local Contexts.

use http::StatusCode;
use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::datasets::wanted::Wanted;
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::users::{USER, User};
use crate::{datasets, envelope, permissions, stored};

/// Maximum number of superusers who are notified of one message.
const TOLD: u64 = 100;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/inbox", take)
        .get("/localcontexts/datasets/{id}", search_projects)
        .get("/localcontexts/datasets/{id}/{project}", show_project)
}

/// Accepts an announcement that an external resource relates to a dataset here, and notifies superusers.
///
/// Errors: 403 for a sender whose address is not among `inbox_allowed_hosts`; 400 for a message that announces no relationship; 404
/// for one that names no published dataset.
async fn take(mut call: Call) -> Answer {
    let allowed = &call.app.settings.inbox_allowed_hosts;
    let from = call.asker.peer.map(|it| it.to_string()).unwrap_or_default();
    if !allowed.iter().any(|it| it == "*" || *it == from) {
        let url = call.uri.to_string();
        let refused = ApiError::forbidden("The LDN Inbox does not accept messages from this address");
        return Err(refused.routed(&url, call.method.as_str()));
    }
    let message = call.object().await?;
    let unusable = |why: &str| ApiError::bad_request(format!("Unable to process message: {why}"));
    let types = match message.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => return Err(unusable("it has no type")),
    };
    if !types.iter().any(|it| it.ends_with("Announce")) {
        return Err(unusable("only the type Announce is taken"));
    }
    let text_of = |value: &Value, names: &[&str]| {
        names
            .iter()
            .find_map(|it| value[*it].as_str().or_else(|| value[*it]["id"].as_str()))
            .map(str::to_owned)
    };
    let object = message.get("object").cloned().unwrap_or_default();
    let subject = text_of(&object, &["as:subject", "subject", "id"]);
    let subject = subject.ok_or_else(|| unusable("its object names no subject"))?;
    let target = text_of(&object, &["as:object", "object", "ietf:cite-as", "sameAs"])
        .or_else(|| message.get("context").and_then(|it| text_of(it, &["ietf:cite-as", "id"])));
    let target = target.ok_or_else(|| unusable("its object names nothing that it relates to"))?;
    let relationship = text_of(&object, &["as:relationship", "relationship"]).unwrap_or_default();
    let (now, ids) = (call.app.now(), call.ids(TOLD.cast_signed()).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<u64, ApiError> {
        let mut ids = ids;
        let dataset = datasets::by_pid(txn, &target)?.filter(|it| it.released.is_some());
        let dataset =
            dataset.ok_or_else(|| ApiError::not_found(format!("No dataset {target} is published here.")))?;
        let query = Query::filter(Expr::Is("superuser".into(), true.into())).window(0, TOLD);
        let mut n_told = 0;
        for user in superusers(txn, &query)? {
            let notice = Notice::of("DATASETMENTIONED")
                .with("datasetPersistentIdentifier", dataset.pid.clone())
                .with("additionalInfo", json!({"@id": subject, "relationship": relationship}));
            notifications::send(txn, ids.next()?, &now, user.id, notice)?;
            n_told += 1;
        }
        Ok(n_told)
    };
    call.db().write(write).await?;
    envelope::message("Message Received")
}

fn superusers(view: &mut View<'_>, query: &Query) -> Result<Vec<User>, ApiError> {
    let found: Vec<User> = stored::find(view, &USER, query)?;
    Ok(found.into_iter().filter(|it| it.superuser && !it.deactivated).collect())
}

const NOT_CONFIGURED: &str = "LocalContexts API configuration is not available.";

/// Refuses to list the projects of a dataset at the Local Contexts Hub, which this server does not query.
async fn search_projects(call: Call) -> Answer {
    call.asker.user()?;
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let check = move |view: &mut View<'_>| -> Result<(), ApiError> {
        let dataset = wanted.find(view)?;
        match permissions::may(view, &asker, dataset.place(), Permission::EditDataset)? {
            true => Ok(()),
            false => Err(ApiError::forbidden(
                "You do not have permission to query LocalContexts about this dataset.",
            )),
        }
    };
    call.db().read(Weight::Point, check).await?;
    Err(ApiError::new(StatusCode::NOT_FOUND, NOT_CONFIGURED))
}

async fn show_project(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    call.db().read(Weight::Point, move |view| wanted.find(view)).await?;
    Err(ApiError::new(StatusCode::NOT_FOUND, NOT_CONFIGURED))
}
