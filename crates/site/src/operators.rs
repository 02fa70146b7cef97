//! The operators' page: whether the server works, its tenants, and the settings in force. No page shows secrets.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use pinakes_http::SlowRequest;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::Fields;
use crate::record::bytes_shown;

/// A tenant, as operators see it.
#[derive(Serialize)]
struct Tenant {
    name: String,
    description: String,
    /// Number of waiting writes; `None` if the tenant is not open.
    n_waiting: Option<u64>,
    n_writes: Option<u64>,
    log: Option<String>,
}

/// A slow request, as operators see it.
#[derive(Serialize)]
struct Slow {
    at: String,
    what: String,
    status: u16,
    took_ms: u128,
    stages: String,
    tenant: Option<String>,
    id: String,
}

impl Slow {
    fn of(it: &SlowRequest) -> Self {
        let mut stages = it.stages.clone();
        stages.sort_by_key(|it| std::cmp::Reverse(it.1));
        let stages = stages.iter().map(|(name, spent)| format!("{name} {} ms", spent.as_millis()));
        Self {
            at: instant(it.at_ms.div_euclid(1000) * 1000),
            what: format!("{} {}", it.method, it.route),
            status: it.status,
            took_ms: it.took.as_millis(),
            stages: stages.collect::<Vec<_>>().join(", "),
            tenant: it.tenant.clone(),
            id: it.request_id.clone(),
        }
    }
}

impl Site {
    /// Says whether the visitor is an operator of the server: a member of the configured groups, in the default tenant.
    /// Groups of the same name in other tenants do not count.
    pub(crate) fn is_operator(&self, visitor: &Visitor) -> bool {
        visitor.db.tenant().name() == self.context.tenants().default
            && !visitor.caller.is_anonymous()
            && visitor.caller.is_in_any(&self.settings.operator_groups)
    }
}

/// `GET /site/operators?level=`
pub(crate) async fn page(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let page = operators(&site, &visitor, fields.text("level")).await;
    site.shown(&visitor, page)
}

/// Formats a time for operators.
fn instant(at_ms: i64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_ms) * 1_000_000).ok();
    at.and_then(|it| it.format(&time::format_description::well_known::Rfc3339).ok()).unwrap_or_default()
}

async fn operators(site: &Site, visitor: &Visitor, level: &str) -> Result<Response> {
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
    let slow = site.context.slow_requests();
    let slow_from = slow.from().map(|it| it.as_millis());
    let slow: Vec<Slow> = slow.latest().iter().map(Slow::of).collect();
    let levels: &[&str] = match level {
        "ERROR" => &["ERROR"],
        "WARN" => &["ERROR", "WARN"],
        _ => &["ERROR", "WARN", "INFO"],
    };
    let log: Vec<Value> = site
        .settings
        .log
        .latest(|it| levels.contains(&it))
        .iter()
        .map(|it| json!({"at": instant(it.at_ms), "level": it.level, "target": it.target, "text": it.text}))
        .collect();
    let page = json!({
        "lines": log, "level": levels.last(), "slow": slow, "slow_from": slow_from,
        "title_key": "operators", "tenants": tenants, "failure": failure,
        "files_failure": probe.err().map(|it| it.to_string()), "version": env!("CARGO_PKG_VERSION"),
        "dialects": dialects, "settings": &site.settings.effective,
    });
    site.page(visitor, StatusCode::OK, "operators.html", page)
}
