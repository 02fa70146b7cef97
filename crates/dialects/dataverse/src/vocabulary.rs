//! Metadata blocks and fields of the installation (section 9 of the contract), and loading of further ones by
//! administrators.

use std::fmt;

use http::StatusCode;
use pinakes_http::etag::Tag;
use pinakes_store::{Expr, Txn};
use serde_json::{Value, json};

use crate::app::Call;
use crate::blocks::show::{Showing, block_json, field_type_json, is_on_create};
use crate::blocks::{FieldKind, FieldType, Registry, tsv};
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::registry::BLOCK_SOURCE;
use crate::routing::Routes;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/metadatablocks", list_blocks)
        .get("/metadatablocks/{block}", show_block)
        .get("/datasetfields/facetables", list_facetable)
        .get("/admin/datasetfield", list_names)
        .get("/admin/datasetfield/controlledVocabulary/subject", list_subjects)
        .get("/admin/datasetfield/{name}", show_field)
        .get("/admin/index/solr/schema", list_index_names)
        .post("/admin/datasetfield/load", load)
        .post("/admin/datasetfield/setDisplayOnCreate", set_on_create)
}

/// Answers with descriptions of blocks, or with 304 if the client has them already. They are long (a vocabulary has up to
/// 8,000 values) and seldom change. `depends` names what they depend on besides the registry.
pub(crate) fn described(
    call: &Call,
    registry: &Registry,
    depends: &impl fmt::Debug,
    describe: impl FnOnce() -> Value,
) -> Answer {
    let tag = Tag::of_bytes(format!("{:x} {depends:?}", registry.revision()).as_bytes());
    if tag.is_known_to(&call.headers) {
        return Ok(tag.not_modified());
    }
    let mut answer = envelope::ok(describe())?;
    tag.put(answer.headers_mut());
    Ok(answer)
}

async fn list_blocks(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let only_on_create = call.query.is_true("onlyDisplayedOnCreate");
    let with_fields = call.query.is_true("returnDatasetFieldTypes");
    let showing = Showing { with_fields, only_on_create, levels: None };
    described(&call, &registry, &showing, || {
        let shown =
            registry.blocks().iter().filter(|it| !only_on_create || is_on_create(&registry, it, None));
        shown.map(|it| block_json(&registry, it, showing)).collect::<Vec<Value>>().into()
    })
}

async fn show_block(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let name = call.param("block");
    let missing = || ApiError::not_found(format!("Can't find metadata block '{name}'"));
    let block = registry.block(name).ok_or_else(missing)?;
    let showing = Showing { with_fields: true, ..Showing::default() };
    described(&call, &registry, &(&block.name, showing), || block_json(&registry, block, showing))
}

async fn list_facetable(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let mut fields: Vec<_> = registry.fields().iter().filter(|it| it.is_facetable).collect();
    fields.sort_by_key(|it| (it.block, it.order));
    envelope::ok(fields.into_iter().map(|it| field_type_json(&registry, it, None)).collect::<Vec<Value>>())
}

async fn show_field(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let name = call.param("name");
    let missing = || ApiError::not_found(format!("Can't find dataset field type '{name}'"));
    let field = registry.field(name).ok_or_else(missing)?;
    let parent = field.parent.map(|at| registry.at(at));
    let mut json = field_type_json(&registry, field, None);
    json["id"] = field.id.into();
    json["metadataBlock"] = registry.block_of(field).name.as_str().into();
    json["fieldType"] = field.kind.name().into();
    json["allowsMultiples"] = field.is_multiple.into();
    json["hasParent"] = parent.is_some().into();
    json["parentAllowsMultiples"] = match parent {
        Some(parent) => parent.is_multiple.to_string().into(),
        None => "N/A (no parent)".into(),
    };
    json["solrFieldSearchable"] = field.name.as_str().into();
    json["solrFieldFacetable"] = index_facet_name(&registry, field).into();
    json["uri"] = field.uri.as_str().into();
    envelope::ok(json)
}

/// Returns whether a field may have more than one value in a dataset.
fn may_repeat(registry: &Registry, field: &FieldType) -> bool {
    field.is_multiple || field.parent.is_some_and(|at| registry.at(at).is_multiple)
}

/// Returns the name of a field's facet in `fq`.
fn index_facet_name(registry: &Registry, field: &FieldType) -> String {
    let end = if may_repeat(registry, field) { "_ss" } else { "_s" };
    format!("{}{end}", field.name)
}

/// Answers with the names of all fields: children of compound fields, and stand-alone ones.
async fn list_names(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let names = |is_wanted: &dyn Fn(&FieldType) -> bool| -> Vec<Value> {
        registry.fields().iter().filter(|it| is_wanted(it)).map(|it| it.name.as_str().into()).collect()
    };
    envelope::ok(json!({
        "haveParents": names(&|it| it.parent.is_some()),
        "haveNoParents": names(&|it| it.parent.is_none()),
        "allowsMultiples": names(&|it| it.is_multiple),
        "doesNotAllowMultiples": names(&|it| !it.is_multiple),
    }))
}

/// Answers with the allowed subjects of datasets.
async fn list_subjects(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let terms = registry.field("subject").map(|it| it.vocabulary.as_slice()).unwrap_or_default();
    envelope::ok(terms.iter().map(|it| it.value.as_str().into()).collect::<Vec<Value>>())
}

/// `GET /admin/index/solr/schema`: the names of fields in searches, as lines of a Solr schema.
async fn list_index_names(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let mut fields: Vec<&FieldType> = registry.fields().iter().collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::new();
    for field in &fields {
        let (name, may_repeat) = (&field.name, may_repeat(&registry, field));
        let ty = match field.kind {
            FieldKind::Int => "plong",
            FieldKind::Float => "pdouble",
            FieldKind::Date => "date_range",
            _ => "text_en",
        };
        text.push_str(&format!(
            "    <field name=\"{name}\" type=\"{ty}\" multiValued=\"{may_repeat}\" stored=\"true\" indexed=\"true\"/>\n"
        ));
    }
    text.push_str("---\n");
    for field in fields {
        let name = &field.name;
        text.push_str(&format!("    <copyField source=\"{name}\" dest=\"_text_\" maxChars=\"3000\"/>\n"));
    }
    Ok(pinakes_http::answer::bytes(StatusCode::OK, envelope::TEXT, text))
}

/// `POST /admin/datasetfield/load`: the body is the table of a metadata block. It is loaded entirely, or not at all.
///
/// Errors: 500 for an invalid table, with the line and what is wrong there, as clients of the original expect.
async fn load(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    if tsv::MAX_BYTES < bytes.len() {
        let most = tsv::MAX_BYTES;
        return Err(ApiError::bad_request(format!(
            "The table has {} bytes, at most {most} are read.",
            bytes.len()
        )));
    }
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|error| ApiError::internal(format!("The table is not UTF-8: {}", error.utf8_error())))?;
    let mut registry = Registry::clone(&*call.app.registry(call.db()).await?);
    let loaded = registry.load(&text).map_err(|error| ApiError::internal(error.to_string()))?;
    keep(&call, move |order| json!({"order": order, "tsv": text})).await?;
    let added: Vec<Value> = loaded.iter().map(|(name, ty)| json!({"name": name, "type": ty})).collect();
    envelope::ok(json!({"added": added}))
}

/// `POST /admin/datasetfield/setDisplayOnCreate?datasetFieldType=&setDisplayOnCreate=`
async fn set_on_create(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let name = call.query.get("datasetFieldType").unwrap_or_default().to_owned();
    let value = call.query.is_true("setDisplayOnCreate");
    if registry.field(&name).is_none() {
        let message = format!("Can't find dataset field type '{name}'");
        return Err(ApiError::new(StatusCode::NOT_FOUND, message));
    }
    let field = name.clone();
    keep(&call, move |order| json!({"order": order, "field": field, "displayOnCreate": value})).await?;
    let registry = call.app.registry(call.db()).await?;
    let missing = || ApiError::not_found(format!("Can't find dataset field type '{name}'"));
    envelope::ok(field_type_json(&registry, registry.field(&name).ok_or_else(missing)?, None))
}

/// Stores a change of the metadata blocks after all previous ones.
async fn keep(call: &Call, body: impl Fn(i64) -> Value + Send + 'static) -> Result<(), ApiError> {
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut ids = ids;
        let order = ids.next()?;
        let change = body(order);
        if let Some(field) = change["field"].as_str() {
            // Only the last such change of a field is kept.
            for record in txn.find(&BLOCK_SOURCE, &pinakes_store::Query::filter(Expr::All))? {
                if record.json()?["field"] == field {
                    txn.delete(&BLOCK_SOURCE, &record.id)?;
                }
            }
        }
        txn.insert(&BLOCK_SOURCE, &order.to_string(), &change)?;
        Ok(())
    };
    call.db().write(write).await
}
