//! The addresses of Conclave's own pages: `/conclave.cms/public/topic/view.aspx[/view]?id=` (section 6 of the contract).
//!
//! The page itself lives under `/t/`; the views `json` and `xml` give the view state.

use axum::extract::{Path, State};
use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use pinakes_store::Weight;
use serde_json::{Map, Value, json};

use crate::api::navigation_view;
use crate::app::{Asker, Conclave, Params};
use crate::document;
use crate::edit::find;
use crate::error::{ConclaveError, Result};
use crate::markup::Resolver;
use crate::text::topic_href_raw;

pub(super) async fn get(
    State(_): State<Conclave>,
    asker: Asker,
    Path(path): Path<String>,
    params: Params,
) -> Result<Response> {
    asker.may_read()?;
    let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let file = segments.iter().position(|it| it.contains('.'));
    let file = file.ok_or_else(|| ConclaveError::not_found("the address names no page such as view.aspx"))?;
    let action = segments[file].split('.').next().unwrap_or_default().to_lowercase();
    let concern = file.checked_sub(1).map_or(String::new(), |at| segments[at].to_lowercase());
    if (concern.as_str(), action.as_str()) != ("topic", "view") {
        return Err(ConclaveError::not_found(format!(
            "{concern}/{action} is not served at the old address; pages live under /t/ and /conclave/"
        )));
    }
    let id = params.required("id")?.to_owned();
    let view_as = segments.get(file + 1).copied().unwrap_or("html");
    if matches!(view_as, "html" | "xsl" | "st" | "rzr") {
        let href = topic_href_raw("/t/default/", &id);
        return Ok(answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, &href));
    }
    let found = {
        let id = id.clone();
        asker.db.read(Weight::Point, move |view| find(view, "default", &id)).await?
    };
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let topic = found.map(|it| asker.filtered(it).topic);
    let resolver = Resolver { link_base: "/t/default/" };
    if matches!(view_as, "xml" | "xslt") {
        let topic =
            topic.as_ref().ok_or_else(|| ConclaveError::not_found(format!("there is no topic {id:?}")))?;
        let xml = document::topic_xml(topic, Some(&resolver));
        let declaration_end = xml.find("?>").map_or(0, |it| it + 2);
        let body = match params.0.get("model-item") {
            Some("topic") => xml,
            _ => format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<records><item name=\"topic\">{}</item></records>\n",
                xml[declaration_end..].trim()
            ),
        };
        return Ok(answer::bytes(status, HeaderValue::from_static("text/xml; charset=utf-8"), body));
    }
    if view_as != "json" {
        return Err(ConclaveError::not_found(format!(
            "the view {view_as:?} is not known; known are html, json, xml"
        )));
    }
    let mut shown = Map::new();
    let named = params.0.0.iter().filter(|it| !it.0.starts_with('_') && !it.1.is_empty());
    let flags: Vec<&String> =
        params.0.0.iter().filter(|it| it.1.is_empty() && !it.0.starts_with('_')).map(|it| &it.0).collect();
    let values: Map<String, Value> = named.map(|it| (it.0.clone(), json!(it.1))).collect();
    let errors: Vec<String> = match &topic {
        Some(_) => Vec::new(),
        None => vec![format!("there is no topic {id:?}")],
    };
    shown.insert("messages".to_owned(), json!([]));
    shown.insert("errors".to_owned(), json!(errors));
    shown.insert("flags".to_owned(), json!(flags));
    shown.insert("params".to_owned(), Value::Object(values));
    let name = asker.caller.username().unwrap_or("anon");
    shown.insert("user".to_owned(), json!({"id": name, "name": name}));
    if let Some(topic) = &topic {
        shown.insert("topic".to_owned(), document::topic(topic, Some(&resolver)));
        shown.insert("navigation-view".to_owned(), navigation_view(topic));
    }
    let body = match params.0.get("model-item") {
        Some(item) => shown.shift_remove(item).unwrap_or(Value::Null),
        None => Value::Object(shown),
    };
    Ok(answer::json(status, &body))
}
