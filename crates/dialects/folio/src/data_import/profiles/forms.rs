//! `/converter-storage/forms/configs`: the layout of a client's forms, one record per form.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, View, Weight};

use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Kinds, Lock, Missing, Page, Schema, Unique, Writer};
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Path of the configurations.
const PATH: &str = "/converter-storage/forms/configs";

/// `/converter-storage/forms/configs`.
pub(crate) static FORMS: Collection = Collection {
    permission: "converter-storage.forms-configs",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("formName", Type::Text)],
        indexes: &[Index::unique(&["formName"])],
        ..Kind::named("folio_form_config")
    },
    schema: Schema { required: &["formName", "config"], types: &[("formName", Kinds::Text)], ..Schema::OPEN },
    unique: &[Unique { column: "formName", message: "Form config with this formName already exists" }],
    is_served: false,
    ..Collection::named(PATH, "formConfigs", "forms_configs")
};

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let form = format!("{PATH}/{{formName}}");
    routes
        .get(PATH, to("converter-storage.forms-configs.collection.get"), |call| async move {
            let page = Page::of(&call)?;
            collection::answer_list(&call, &FORMS, page).await
        })
        .post(PATH, to("converter-storage.forms-configs.post"), |call| collection::create(call, &FORMS))
        .get(&form, to("converter-storage.forms-configs.item.get"), show)
        .put(&form, to("converter-storage.forms-configs.put"), replace)
        .delete(&form, to("converter-storage.forms-configs.delete"), remove)
}

/// Returns the id of the record of a form. Errors: 404.
fn id_of(view: &mut View<'_>, name: &str) -> Result<String, FolioError> {
    let found = view.first(&FORMS.kind, Expr::Is("formName".into(), name.into()))?;
    let missing = || FolioError::not_found(format!("Form config with formName '{name}' was not found"));
    found.map(|it| it.id).ok_or_else(missing)
}

async fn show(call: Call) -> Answer {
    let name = call.param("formName").to_owned();
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let id = id_of(view, &name)?;
        Ok(view.get(&FORMS.kind, &id)?.map(|it| it.json()).transpose()?)
    };
    let found = call.db().read(Weight::Point, read).await?;
    Ok(json_answer(StatusCode::OK, &found.unwrap_or_default()))
}

async fn replace(mut call: Call) -> Answer {
    let name = call.param("formName").to_owned();
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<_, FolioError> {
        let id = id_of(txn, &name)?;
        let mut body = body.clone();
        body.insert("formName".into(), name.as_str().into());
        Ok(collection::put(txn, &writer(), &FORMS, &id, body, Missing::Refuse, Lock::Ignored)?.body)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

async fn remove(call: Call) -> Answer {
    let name = call.param("formName").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let id = id_of(txn, &name)?;
        txn.delete(&FORMS.kind, &id)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
