//! Pages for search engines: `/sitemap.xml` (sitemaps.org, protocol 0.9), generated on request.

use std::ops::ControlFlow;

use http::{HeaderValue, Method, StatusCode};
use pinakes_store::{Expr, Query, View, Weight};

use crate::app::Call;
use crate::asker::Asker;
use crate::error::{Answer, ApiError};
use crate::exports::xml::escaped;
use crate::routing::Routes;
use crate::search::document::DOCUMENT;
use crate::search::visible::visible;

/// Maximum number of addresses in one file (sitemaps.org).
const ADDRESSES: u64 = 50_000;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.elsewhere(Method::GET, "/sitemap.xml", whole).elsewhere(Method::GET, "/sitemap/{file}", part)
}

/// Returns the condition for listed objects: public, and not harvested.
fn listed(view: &mut View<'_>) -> Result<Expr, ApiError> {
    let kinds = ["datasets", "dataverses"].map(Into::into).to_vec();
    let local = crate::search::parse("isHarvested:false", 0).map_err(ApiError::internal)?.filter;
    Ok(visible(view, &Asker::default())?.and(Expr::In("type".into(), kinds)).and(local))
}

fn xml(body: String) -> Answer {
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}");
    Ok(pinakes_http::answer::bytes(StatusCode::OK, HeaderValue::from_static("text/xml;charset=UTF-8"), text))
}

const SCHEMA: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// `/sitemap.xml`: all addresses, or an index of sitemap files if there are too many for one.
async fn whole(call: Call) -> Answer {
    let count = |view: &mut View<'_>| -> Result<u64, ApiError> {
        let listed = listed(view)?;
        Ok(view.count(&DOCUMENT, &listed)?)
    };
    let n_all = call.db().read(Weight::Scan, count).await?;
    if n_all <= ADDRESSES {
        return page(&call, 0).await;
    }
    let site_url = call.site_url();
    let files = (1..=n_all.div_ceil(ADDRESSES))
        .map(|it| format!("<sitemap><loc>{}/sitemap/{it}.xml</loc></sitemap>\n", escaped(&site_url)));
    xml(format!("<sitemapindex xmlns=\"{SCHEMA}\">\n{}</sitemapindex>\n", files.collect::<String>()))
}

async fn part(call: Call) -> Answer {
    let number = call.param("file").strip_suffix(".xml").and_then(|it| it.parse::<u64>().ok());
    let missing = || ApiError::not_found(format!("There is no sitemap {}", call.param("file")));
    let number = number.filter(|it| *it != 0).ok_or_else(missing)?;
    page(&call, number - 1).await
}

async fn page(call: &Call, number: u64) -> Answer {
    let site_url = call.site_url();
    let read = move |view: &mut View<'_>| -> Result<String, ApiError> {
        let query = Query::filter(listed(view)?).window(number.saturating_mul(ADDRESSES), ADDRESSES);
        let mut documents = Vec::new();
        view.for_each(&DOCUMENT, &query, |record| {
            documents.extend(record.json().ok());
            ControlFlow::Continue(())
        })?;
        let mut body = String::new();
        for document in documents {
            let changed = document["changed"].as_str().or(document["date"].as_str());
            let date = changed.and_then(|it| it.get(..10));
            let date = date.map(|it| format!("<lastmod>{it}</lastmod>")).unwrap_or_default();
            let address = match (document["pid"].as_str(), document["identifier"].as_str()) {
                (Some(pid), _) => format!("{site_url}/dataset.xhtml?persistentId={pid}"),
                (None, alias) => format!("{site_url}/dataverse/{}", alias.unwrap_or_default()),
            };
            body.push_str(&format!("<url><loc>{}</loc>{date}</url>\n", escaped(&address)));
        }
        Ok(body)
    };
    let body = call.db().read(Weight::Scan, read).await?;
    xml(format!("<urlset xmlns=\"{SCHEMA}\">\n{body}</urlset>\n"))
}
