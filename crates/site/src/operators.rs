//! The page of operators: whether the server works, its tenants, and the settings in force. Secrets are on no page.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;

use serde_json::json;

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::record::bytes_shown;

/// A tenant, as operators see it.
#[derive(Serialize)]
struct Tenant {
    name: String,
    description: String,
    /// Writes that wait; none where the tenant is not open.
    n_waiting: Option<u64>,
    n_writes: Option<u64>,
    log: Option<String>,
}

impl Site {
    /// Whether the visitor is one of those who run the server: a member of their groups, in the default tenant. What other
    /// tenants call their groups says nothing.
    pub(crate) fn is_operator(&self, visitor: &Visitor) -> bool {
        visitor.db.tenant().name() == self.context.tenants().default
            && !visitor.caller.is_anonymous()
            && visitor.caller.is_in_any(&self.settings.operator_groups)
    }
}

pub(crate) async fn page(State(site): State<Site>, visitor: Visitor) -> Result<Response> {
    let page = operators(&site, &visitor).await;
    site.shown(&visitor, page)
}

async fn operators(site: &Site, visitor: &Visitor) -> Result<Response> {
    if visitor.caller.is_anonymous() {
        return Err(SiteError::SignIn);
    }
    if !site.is_operator(visitor) {
        return Err(SiteError::Forbidden);
    }
    let catalogue = site.context.catalogue().clone();
    let known = tokio::task::spawn_blocking(move || catalogue.tenants()).await;
    let known = known.map_err(|error| SiteError::Damaged(error.to_string()))??;
    let open = site.context.catalogue().statistics();
    let tenants: Vec<Tenant> = known
        .into_iter()
        .map(|it| {
            let stats = open.iter().find(|open| open.name == it.name);
            Tenant {
                n_waiting: stats.map(|it| it.queue_depth),
                n_writes: stats.map(|it| it.n_writes),
                log: stats.map(|it| bytes_shown(it.log_bytes as f64)),
                name: it.name,
                description: it.description,
            }
        })
        .collect();
    let probe = site.context.blobs().probe().await;
    let failure = site.context.catalogue().failure();
    let dialects: Vec<&str> = site.neighbours.iter().map(|it| it.dialect()).collect();
    let page = json!({
        "title_key": "operators", "tenants": tenants, "failure": failure,
        "files_failure": probe.err().map(|it| it.to_string()), "version": env!("CARGO_PKG_VERSION"),
        "dialects": dialects, "settings": &site.settings.effective,
    });
    site.page(visitor, StatusCode::OK, "operators.html", page)
}
