//! Locally FAIR collections: their contents are visible only to named assignees, whether published or not.

use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::assignments::find_assignee;
use crate::collections;
use crate::collections::visibility::{self, NAMED};
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let path = "/dataverses/{id}/locallyFairRoleAssignees";
    let one = "/dataverses/{id}/locallyFairRoleAssignees/{assignee}";
    routes.get(path, list).put(path, replace).put(one, add).delete(one, remove)
}

async fn list(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let id = call.param("id").to_owned();
    let find =
        move |view: &mut View<'_>| Ok::<_, ApiError>(visibility::named_in(&collections::find(view, &id)?));
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Changes the named assignees, and answers with the new list.
async fn changed(
    call: &Call,
    mut change: impl FnMut(&mut Txn<'_>, &mut Vec<String>) -> Result<(), ApiError> + Send + 'static,
) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<Vec<String>, ApiError> {
        let mut collection = collections::find(txn, &id)?;
        let mut named = visibility::named_in(&collection);
        change(txn, &mut named)?;
        match named.is_empty() {
            true => drop(collection.more.remove(NAMED)),
            false => drop(collection.more.insert(NAMED.to_owned(), json!(named))),
        }
        collection.is_locally_fair = (!named.is_empty()).then_some(true);
        collections::put(txn, &collection)?;
        Ok(named)
    };
    let named = call.db().write(write).await?;
    envelope::ok(json!({ NAMED: named }))
}

async fn replace(mut call: Call) -> Answer {
    let body = call.json().await?;
    let wanted: Vec<String> =
        body.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let change = move |txn: &mut Txn<'_>, named: &mut Vec<String>| {
        named.clear();
        for it in &wanted {
            named.push(find_assignee(txn, it, "named here")?);
        }
        Ok(())
    };
    changed(&call, change).await
}

async fn add(call: Call) -> Answer {
    let wanted = call.param("assignee").to_owned();
    let change = move |txn: &mut Txn<'_>, named: &mut Vec<String>| {
        let assignee = find_assignee(txn, &wanted, "named here")?;
        if !named.contains(&assignee) {
            named.push(assignee);
        }
        Ok(())
    };
    changed(&call, change).await
}

async fn remove(call: Call) -> Answer {
    let wanted = call.param("assignee").to_owned();
    let change = move |_: &mut Txn<'_>, named: &mut Vec<String>| {
        named.retain(|it| *it != wanted);
        Ok(())
    };
    changed(&call, change).await
}
