//! `/oai/records`: OAI-PMH 2.0 over instances, in Dublin Core and MARCXML (mod-oai-pmh). The protocol itself is
//! `pinakes_oai_pmh`'s.
//!
//! Lists are paged in the order in which records were created; a resumption token says where the next page begins, so
//! that a harvest never misses a record that existed when it began. Suppressed records and those marked as deleted are
//! listed as a header that says so; instances that were deleted leave such a header behind
//! ([`crate::inventory::harvested::GONE`]), listed at the end.

pub(crate) mod config;
mod described;
mod instances;
mod listed;
mod marc;
pub(crate) mod sets;

use http::header::HOST;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use pinakes_oai_pmh::{Granularity, Site, TokenForm};
use pinakes_store::{View, Weight};

use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use config::Config;
use described::Manner;
use instances::Instances;

const XML: HeaderValue = HeaderValue::from_static("text/xml;charset=UTF-8");

/// Adds the route.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.get("/oai/records", Access::to("oai-pmh.records.collection.get"), serve).with(sets::routes)
}

async fn serve(call: Call) -> Answer {
    let host = call.headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or("localhost").to_owned();
    let host = host.split(':').next().unwrap_or_default();
    let config = call.db().read(Weight::Scan, Config::of).await?;
    if !config.is_enabled {
        let message = "OAI-PMH service is disabled";
        return Err(FolioError::text(StatusCode::SERVICE_UNAVAILABLE, message));
    }
    let n_max = config.page_records.unwrap_or(call.app.settings.oai_page_records);
    let site = Site {
        base_url: config.base_url.clone().unwrap_or_else(|| format!("{}/oai/records", call.origin)),
        now_ms: call.app.now_ms(),
        granularity: if config.has_days_only { Granularity::Day } else { Granularity::Second },
        declaration: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        tokens: TokenForm::Plain,
        n_records: n_max,
        n_headers: n_max,
    };
    let name = call.asker.tenant().to_owned();
    let manner = Manner { prefix: format!("oai:{host}:{name}/"), config };
    let (query, mail) = (call.query.clone(), call.app.settings.oai_admin_email.clone());
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let now_ms = site.now_ms;
        let mut instances = Instances { view, manner: &manner, name: &name, mail: &mail, now_ms };
        let given: Vec<(&str, &str)> = query.pairs().collect();
        let answer = pinakes_oai_pmh::answer(&site, &mut instances, &given)?;
        Ok((manner.config.status(answer.code), answer.xml))
    };
    let (status, xml) = call.db().read(Weight::Scan, read).await?;
    Ok(answer::bytes(status, XML, xml))
}
