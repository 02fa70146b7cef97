//! Runs the actions of jobs: those that validate run before a job is stored, inside one read; those that call other
//! servers run after that, outside of any transaction, each within the timeout of the settings.

use std::sync::LazyLock;
use std::time::Duration;

use http::StatusCode;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport as _};
use pinakes_store::View;
use serde_json::{Map, Value, json};

use super::actions::{self, Action, Case, Email, Phase, Url, Validate};
use super::broker;
use super::template::{self, Escape};
use crate::error::ScicatError;
use crate::kinds::DATASET;
use crate::outgoing::Outgoing;
use crate::published_data::schema::{self, Schema};
use crate::settings::Settings;

/// Maximum number of datasets that templates and switches can access.
const SEEN_DATASETS: usize = 100;

/// The server's environment, for templates.
static ENVIRONMENT: LazyLock<Value> = LazyLock::new(|| {
    let variables = std::env::vars_os();
    let texts =
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Value::Object(texts.map(|(name, value)| (name, Value::String(value))).collect())
});

/// The data that actions can access: `request`, `datasets`, `env`, and `job` once it exists.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    context: Value,
    pids: Vec<String>,
}

impl Scene {
    /// Creates the scene of a request, in the form of v4, about a job's datasets.
    pub(super) fn new(request: &Map<String, Value>, pids: Vec<String>) -> Self {
        Self { context: json!({"request": request, "env": *ENVIRONMENT}), pids }
    }

    /// Adds a job as it is stored.
    pub(super) fn with_job(mut self, job: &Map<String, Value>) -> Self {
        self.context["job"] = Value::Object(job.clone());
        self
    }

    /// Returns what the scene was made from: the request, the datasets' pids, the job.
    pub(super) fn parts(&self) -> (Map<String, Value>, Vec<String>, Map<String, Value>) {
        let object = |name: &str| self.context[name].as_object().cloned().unwrap_or_default();
        (object("request"), self.pids.clone(), object("job"))
    }

    /// Returns the job's id, for the log.
    pub(super) fn job_id(&self) -> &str {
        self.context["job"]["id"].as_str().unwrap_or_default()
    }

    /// Reads the datasets if templates or switches of the actions access them.
    pub(super) fn see_datasets(
        &mut self,
        view: &mut View<'_>,
        actions: &[Action],
    ) -> Result<(), ScicatError> {
        if !format!("{actions:?}").contains("datasets") {
            return Ok(());
        }
        let first = &self.pids[..self.pids.len().min(SEEN_DATASETS)];
        let mut datasets = Vec::new();
        for record in view.get_many(&DATASET, first)?.into_iter().flatten() {
            datasets.push(record.json()?);
        }
        self.context["datasets"] = Value::Array(datasets);
        Ok(())
    }

    fn url(&self, template: &str) -> Result<String, String> {
        template::render(template, &self.context, Escape::Url)
    }

    fn text(&self, template: &str) -> Result<String, String> {
        template::render(template, &self.context, Escape::No)
    }
}

/// Validates a request before anything is stored. Errors: what an action refuses, in shape E2.
pub(super) fn validate(
    view: &mut View<'_>,
    actions: &[Action],
    scene: &mut Scene,
) -> Result<(), ScicatError> {
    scene.see_datasets(view, actions)?;
    judge(view, actions, scene)
}

fn judge(view: &mut View<'_>, actions: &[Action], scene: &Scene) -> Result<(), ScicatError> {
    for action in actions {
        match action {
            Action::Validate(it) => {
                require_request(it, scene)?;
                require_datasets(view, it, scene)?;
            }
            Action::Switch(it) if it.phase != Phase::Perform => {
                if let Some(case) = chosen(&it.property, &it.cases, scene) {
                    judge(view, &case.actions, scene)?;
                }
            }
            Action::Error(it) => return Err(refusal(it, scene)),
            Action::Log(it) => log(it.validate.as_deref(), scene),
            _ => {}
        }
    }
    Ok(())
}

fn require_request(validate: &Validate, scene: &Scene) -> Result<(), ScicatError> {
    for (path, wanted) in &validate.request {
        let found = values_at(&scene.context["request"], path);
        if found.is_empty() {
            return Err(invalid(format!("Invalid request. Requires '{path}'")));
        }
        if found.iter().any(|it| !schema::check(wanted, it).is_empty()) {
            return Err(invalid(format!("Invalid request. Invalid value for '{path}'")));
        }
    }
    Ok(())
}

fn require_datasets(view: &mut View<'_>, validate: &Validate, scene: &Scene) -> Result<(), ScicatError> {
    if validate.datasets.is_empty() {
        return Ok(());
    }
    if scene.pids.is_empty() {
        return Err(invalid("'jobParams.datasetList' is required.".to_owned()));
    }
    let schemas: Result<Vec<(&String, Schema)>, String> =
        validate.datasets.iter().map(|(path, wanted)| Ok((path, Schema::compile(wanted)?))).collect();
    let schemas = schemas.map_err(invalid)?;
    for pid in &scene.pids {
        let Some(record) = view.get(&DATASET, pid)? else { continue };
        let dataset = record.json()?;
        for (path, wanted) in &schemas {
            let found = values_at(&dataset, path);
            if found.is_empty() || found.iter().any(|it| !wanted.faults(it).is_empty()) {
                return Err(invalid(format!("Invalid request. Invalid value for '{path}'")));
            }
        }
    }
    Ok(())
}

fn invalid(message: String) -> ScicatError {
    ScicatError::short(StatusCode::BAD_REQUEST, message)
}

fn refusal(it: &actions::Refusal, scene: &Scene) -> ScicatError {
    let status = match &it.status {
        Some(Value::Number(status)) => status.as_u64().and_then(|it| u16::try_from(it).ok()),
        Some(Value::String(template)) => scene.text(template).ok().and_then(|it| it.trim().parse().ok()),
        _ => None,
    };
    let status = status.and_then(|it| StatusCode::from_u16(it).ok()).unwrap_or(StatusCode::BAD_REQUEST);
    ScicatError::short(status, scene.text(&it.message).unwrap_or_else(|error| error))
}

fn log(template: Option<&str>, scene: &Scene) {
    match template.map(|it| scene.text(it)) {
        Some(Ok(line)) => tracing::info!(message = line, "job action"),
        Some(Err(error)) => tracing::warn!(error, "job action: log"),
        None => {}
    }
}

/// Returns the first case that matches the value at `property`.
fn chosen<'a>(property: &str, cases: &'a [Case], scene: &Scene) -> Option<&'a Case> {
    let found = values_at(&scene.context, property).into_iter().next().cloned().unwrap_or_default();
    let text = match &found {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    cases.iter().find(|case| match (&case.equals, &case.regex, &case.schema) {
        (Some(wanted), _, _) => *wanted == found || wanted.as_str() == Some(&text),
        (_, Some(expression), _) => actions::pattern(expression).is_ok_and(|it| it.is_match(&text)),
        (_, _, Some(wanted)) => schema::check(wanted, &found).is_empty(),
        _ => true,
    })
}

/// Returns the values at a path: `a.b`, `a[0].b`, `a[*].b`, `a['b.c']`, with or without a leading `$.`.
fn values_at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in steps(path.strip_prefix('$').unwrap_or(path)) {
        found = found.into_iter().flat_map(|it| below(it, &step)).collect();
    }
    found
}

fn below<'a>(value: &'a Value, step: &str) -> Vec<&'a Value> {
    match value {
        Value::Object(map) if step == "*" => map.values().collect(),
        Value::Array(list) if step == "*" => list.iter().collect(),
        Value::Object(map) => map.get(step).into_iter().collect(),
        Value::Array(list) => step.parse::<usize>().ok().and_then(|it| list.get(it)).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn steps(path: &str) -> Vec<String> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        if let Some((inside, after)) = rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
            steps.push(inside.trim_matches(['\'', '"']).to_owned());
            rest = after;
            continue;
        }
        let named = rest.strip_prefix('.').unwrap_or(rest);
        let end = named.find(['.', '[']).unwrap_or(named.len());
        if 0 < end {
            steps.push(named[..end].to_owned());
        } else if named.len() == rest.len() {
            // An unclosed bracket matches nothing.
            steps.push(named.to_owned());
            break;
        }
        rest = &named[end..];
    }
    steps
}

/// Reason why an action failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The action refuses the job.
    Refused(ScicatError),
    /// Another attempt would fail in the same way.
    Lasting(String),
    /// Another server did not accept it, but may do so later.
    Passing(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Lasting(reason)
    }
}

/// Runs one action of a stored job, other than a switch. A failure that the action ignores is only logged.
pub(super) async fn take(settings: &Settings, action: &Action, scene: &Scene) -> Result<(), Failure> {
    let (done, is_ignored) = match action {
        Action::Log(it) => {
            log(it.perform_job.as_deref(), scene);
            return Ok(());
        }
        Action::Error(it) => return Err(Failure::Refused(refusal(it, scene))),
        Action::Url(it) => (call(settings, it, scene).await, it.ignore_errors),
        Action::Email(it) => (mail(settings, it, scene).await, it.ignore_errors),
        Action::RabbitMq(it) if settings.rabbitmq_enabled => {
            let job = scene.context["job"].to_string();
            let sent = broker::publish(settings, it, job.as_bytes(), timeout(settings)).await;
            (sent.map_err(Failure::Passing), it.ignore_errors)
        }
        Action::RabbitMq(_) | Action::Validate(_) | Action::Switch(_) => return Ok(()),
    };
    match done {
        Err(Failure::Lasting(error) | Failure::Passing(error)) if is_ignored => {
            tracing::warn!(
                job = scene.job_id(),
                error,
                "job action: failed; the job's configuration says to ignore this"
            );
            Ok(())
        }
        done => done,
    }
}

/// Returns the actions to run, with switches resolved.
pub(super) fn taken<'a>(actions: &'a [Action], scene: &Scene) -> Vec<&'a Action> {
    let mut list = Vec::new();
    for action in actions {
        match action {
            Action::Switch(it) if it.phase == Phase::Validate => {}
            Action::Switch(it) => {
                if let Some(case) = chosen(&it.property, &it.cases, scene) {
                    list.extend(taken(&case.actions, scene));
                }
            }
            other => list.push(other),
        }
    }
    list
}

async fn call(settings: &Settings, url: &Url, scene: &Scene) -> Result<(), Failure> {
    let mut headers = Vec::with_capacity(url.headers.len() + 1);
    for (name, template) in &url.headers {
        headers.push((name.clone(), scene.text(template)?));
    }
    let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let body = match &url.body {
        None => String::new(),
        Some(Value::String(template)) => scene.text(template)?,
        Some(body) => {
            if !has_type {
                headers.push(("content-type".to_owned(), "application/json".to_owned()));
            }
            filled(body, scene)?.to_string()
        }
    };
    let request = Outgoing { method: actions::method(url)?, url: scene.url(&url.url)?, headers, body };
    request.send(timeout(settings)).await.map_err(|error| {
        let reason = format!("url: {error}");
        if error.is_passing() { Failure::Passing(reason) } else { Failure::Lasting(reason) }
    })
}

fn timeout(settings: &Settings) -> Duration {
    Duration::from_millis(settings.outgoing_timeout_ms)
}

/// Renders a body whose texts are templates.
fn filled(body: &Value, scene: &Scene) -> Result<Value, String> {
    Ok(match body {
        Value::String(template) => Value::String(scene.text(template)?),
        Value::Array(list) => list.iter().map(|it| filled(it, scene)).collect::<Result<_, _>>()?,
        Value::Object(map) => {
            let member = |(name, value): (&String, &Value)| Ok((name.clone(), filled(value, scene)?));
            Value::Object(map.iter().map(member).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

async fn mail(settings: &Settings, email: &Email, scene: &Scene) -> Result<(), Failure> {
    let from = email.from.as_deref().unwrap_or(&settings.email_from);
    let mailbox = |text: &str| {
        text.trim()
            .parse::<Mailbox>()
            .map_err(|error| format!("email: {:?} is no address: {error}", text.trim()))
    };
    let mut message = Message::builder().from(mailbox(&scene.text(from)?)?);
    for to in scene.text(&email.to)?.split([',', ';']).filter(|it| !it.trim().is_empty()) {
        message = message.to(mailbox(to)?);
    }
    let subject = scene.text(&email.subject)?;
    let body = template::render(&email.body, &scene.context, Escape::Html)?;
    let message = message.subject(subject).header(ContentType::TEXT_HTML).body(body);
    let message = message.map_err(|error| format!("email: {error}"))?;
    let transport = transport(settings)?;
    let host = settings.smtp_host.clone();
    let sent = tokio::task::spawn_blocking(move || transport.send(&message)).await;
    match sent {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => {
            let reason = format!("email: {host} did not take it: {error}");
            Err(if error.is_permanent() { Failure::Lasting(reason) } else { Failure::Passing(reason) })
        }
        Err(error) => Err(Failure::Passing(format!("email: {error}"))),
    }
}

fn transport(settings: &Settings) -> Result<SmtpTransport, String> {
    let host = settings.smtp_host.as_str();
    if host.is_empty() {
        return Err("email: no server for mail is configured (smtp_host)".to_owned());
    }
    let parameters = TlsParameters::new(host.to_owned()).map_err(|error| format!("email: {error}"))?;
    let tls = if settings.smtp_secure { Tls::Wrapper(parameters) } else { Tls::Opportunistic(parameters) };
    let transport = SmtpTransport::builder_dangerous(host).port(settings.smtp_port).tls(tls);
    Ok(transport.timeout(Some(timeout(settings))).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_inside() {
        let value = json!({"a": {"b.c": 1, "l": [{"x": 1}, {"x": 2}, {}]}});
        for (path, expected) in [
            ("a.l[*].x", json!([1, 2])),
            ("$.a.l[1].x", json!([2])),
            ("a['b.c']", json!([1])),
            ("a.nothing", json!([])),
            ("a.l.*.x", json!([1, 2])),
            ("a[", json!([])),
            ("..", json!([value])),
        ] {
            assert_eq!(json!(values_at(&value, path)), expected, "{path}");
        }
    }
}
