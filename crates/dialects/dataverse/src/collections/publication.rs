//! Publishing and deleting collections.

use pinakes_store::Txn;
use serde_json::Value;

use crate::app::Call;
use crate::collections::json::{self, Showing};
use crate::collections::{self, COLLECTION, ROOT};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{assignments, changes, envelope, featured, groups, guestbooks, links, permissions, templates};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/dataverses/{id}/actions/:publish", |call: Call| async move { publish(&call, "id").await })
        .delete("/dataverses/{id}", delete)
}

/// Publishes a collection.
pub(crate) async fn publish(call: &Call, param: &str) -> Answer {
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param(param).to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut collection = collections::find(txn, &id)?;
        permissions::require(txn, &asker, collection.place(), Permission::PublishDataverse)?;
        if collection.is_released() {
            return Err(ApiError::forbidden(format!(
                "Dataverse {} has already been published.",
                collection.alias
            )));
        }
        if let Some(parent) = collection.parent {
            let parent = collections::named_by_record(txn, parent)?;
            if !parent.is_released() {
                return Err(ApiError::forbidden(format!(
                    "Dataverse {} may not be published because its host dataverse ({}) has not been published.",
                    collection.alias, parent.alias
                )));
            }
        }
        collection.publication_date = Some(app.now());
        collection.publisher = asker.user.as_ref().map(|it| it.id);
        collections::put(txn, &collection)?;
        changes::collection(txn, &app, collection.id)?;
        json::json(txn, &collection, &Showing::default())
    };
    envelope::ok(call.db().write(write).await?)
}

async fn delete(call: Call) -> Answer {
    let (app, asker, id) = (call.app.clone(), call.asker.clone(), call.param("id").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let collection = collections::find(txn, &id)?;
        permissions::require(txn, &asker, collection.place(), Permission::DeleteDataverse)?;
        if collection.id == ROOT {
            return Err(ApiError::forbidden("Cannot delete the root dataverse"));
        }
        if json::n_children(txn, collection.id)? != 0 {
            return Err(ApiError::forbidden("Cannot delete non-empty dataverses"));
        }
        assignments::remove_all(txn, collection.id)?;
        groups::remove_of_collection(txn, collection.id)?;
        featured::remove_of_collection(txn, collection.id)?;
        featured::remove_of_object(txn, collection.id)?;
        templates::remove_of_collection(txn, collection.id)?;
        guestbooks::remove_of_collection(txn, collection.id)?;
        links::remove_of(txn, collection.id)?;
        crate::roles::remove_of_collection(txn, collection.id)?;
        crate::saved_searches::remove_of_collection(txn, collection.id)?;
        collections::logo::forget(txn, collection.id)?;
        txn.delete(&COLLECTION, &collection.id.to_string())?;
        changes::removed(txn, &app, collection.id)
    };
    call.db().write(write).await?;
    envelope::message(format!("Dataverse {} deleted", call.param("id")))
}
