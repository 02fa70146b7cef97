//! What happens at a site when jobs are created and changed: the action lists of the job configuration, with
//! SciCat's keywords, so that a site can keep its YAML file. Checked as a whole when the server starts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::template::{self, Escape};
use crate::published_data::schema::Schema;

/// An action.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "actionType", rename_all = "lowercase")]
pub enum Action {
    /// Refuses jobs whose request or datasets do not match.
    Validate(Validate),
    /// Runs other actions depending on a value.
    Switch(Switch),
    /// Refuses the job.
    Error(Refusal),
    /// Writes to the server's log.
    Log(Log),
    /// Sends a request to another server.
    Url(Url),
    /// Sends an e-mail.
    Email(Email),
    /// Publishes to a message broker.
    RabbitMq(Publish),
}

/// Paths, and the JSON schemas that the values there must satisfy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Validate {
    /// Paths in the request.
    pub request: Map<String, Value>,
    /// Paths in each of the job's datasets.
    pub datasets: Map<String, Value>,
}

/// Runs the actions of the first case that matches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// When the switch is evaluated.
    pub phase: Phase,
    /// A path in `request`, `job` or `datasets`, e.g. `request.type`.
    pub property: String,
    /// The cases.
    pub cases: Vec<Case>,
}

/// When an action runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Before the job is stored.
    Validate,
    /// After the job is stored.
    Perform,
    /// Both.
    All,
}

/// A case with `match`, `regex` or `schema`; a case with none of them always matches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The exact value.
    #[serde(default, rename = "match")]
    pub equals: Option<Value>,
    /// An expression between slashes, with flags: `/^raw/i`.
    #[serde(default)]
    pub regex: Option<String>,
    /// A JSON schema.
    #[serde(default)]
    pub schema: Option<Value>,
    /// The actions of this case.
    pub actions: Vec<Action>,
}

/// The error with which a job is refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Template of the message.
    pub message: String,
    /// The status; 400 if not given.
    #[serde(default)]
    pub status: Option<Value>,
}

/// Templates of log lines.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// At the start of the server.
    pub init: Option<String>,
    /// Before a job is stored.
    pub validate: Option<String>,
    /// After the job is stored.
    #[serde(rename = "performJob", alias = "perform")]
    pub perform_job: Option<String>,
}

/// A request to another server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Url {
    /// Template of the URL.
    pub url: String,
    /// The method; `GET` if not given.
    #[serde(default)]
    pub method: Option<String>,
    /// Templates of header values.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Template of the body; an object is sent as JSON, and its texts are templates.
    #[serde(default)]
    pub body: Option<Value>,
    /// Whether a failure is only logged.
    #[serde(default)]
    pub ignore_errors: bool,
}

/// An e-mail.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Email {
    /// Template of the recipients, separated by commas.
    pub to: String,
    /// The sender, if not the site's.
    #[serde(default)]
    pub from: Option<String>,
    /// Template of the subject.
    pub subject: String,
    /// File with the HTML template of the body.
    pub body_template_file: String,
    /// The template, read when the server starts.
    #[serde(skip)]
    pub body: String,
    /// Whether a failure is only logged.
    #[serde(default)]
    pub ignore_errors: bool,
}

/// Text of a mail whose template file is missing.
const PLAIN_MAIL: &str =
    "<p>Job {{job.id}} of type {{job.type}}: {{job.statusCode}}, {{job.statusMessage}}</p>";

/// SciCat's job configuration file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigurationFile {
    #[serde(default)]
    config_version: Option<String>,
    #[serde(default)]
    jobs: Vec<TypeInFile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeInFile {
    job_type: String,
    create: OperationInFile,
    update: OperationInFile,
}

#[derive(Debug, Deserialize)]
struct OperationInFile {
    auth: String,
    #[serde(default)]
    actions: Vec<Action>,
}

/// Reads SciCat's YAML file of job types; returns its version, if given, and the types.
///
/// Errors: a description for the operator of what is invalid.
pub fn read_file(text: &str) -> Result<(Option<String>, Vec<JobType>), String> {
    let value: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let file: ConfigurationFile = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let job_type = |it: TypeInFile| JobType {
        name: it.job_type,
        create_auth: it.create.auth,
        update_auth: it.update.auth,
        require: BTreeMap::new(),
        create_actions: it.create.actions,
        update_actions: it.update.actions,
    };
    Ok((file.config_version, file.jobs.into_iter().map(job_type).collect()))
}

/// Prepares actions: reads the templates of mails, and refuses actions that cannot be executed.
///
/// Errors: which action cannot be executed and why.
pub(crate) fn prepare(actions: &mut [Action]) -> Result<(), String> {
    for action in actions {
        match action {
            Action::Validate(validate) => {
                for (path, schema) in validate.request.iter().chain(&validate.datasets) {
                    Schema::compile(schema).map_err(|error| format!("validate {path:?}: {error}"))?;
                }
            }
            Action::Switch(switch) => {
                for case in &mut switch.cases {
                    if let Some(expression) = &case.regex {
                        pattern(expression)?;
                    }
                    if let Some(schema) = &case.schema {
                        Schema::compile(schema).map_err(|error| format!("switch: {error}"))?;
                    }
                    prepare(&mut case.actions)?;
                }
            }
            Action::Error(refusal) => template::check(&refusal.message)?,
            Action::Log(log) => {
                [&log.init, &log.validate, &log.perform_job]
                    .into_iter()
                    .flatten()
                    .try_for_each(|it| template::check(it))?;
                if let Some(init) = &log.init {
                    let line = template::render(init, &Value::Null, Escape::No)?;
                    tracing::info!(message = line, "job action");
                }
            }
            Action::Url(url) => {
                template::check(&url.url)?;
                url.headers.values().try_for_each(|it| template::check(it))?;
                url.body.iter().try_for_each(check_body)?;
                method(url)?;
            }
            Action::Email(email) => {
                let path = &email.body_template_file;
                email.body = std::fs::read_to_string(path).unwrap_or_else(|error| {
                    tracing::warn!(path, %error, "job action: the template of a mail cannot be read; a plain one is sent");
                    PLAIN_MAIL.to_owned()
                });
                [&email.to, &email.subject, &email.body]
                    .into_iter()
                    .chain(&email.from)
                    .try_for_each(|it| template::check(it))?;
            }
            Action::RabbitMq(it) => {
                for (name, value) in [("exchange", &it.exchange), ("queue", &it.queue), ("key", &it.key)] {
                    if value.is_empty() || LONGEST_NAME < value.len() {
                        let found = value.len();
                        return Err(format!(
                            "rabbitmq: {name} must have 1 to {LONGEST_NAME} bytes, it has {found}"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Says whether any action publishes to a message broker.
pub(crate) fn has_publish(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::RabbitMq(_) => true,
        Action::Switch(switch) => switch.cases.iter().any(|it| has_publish(&it.actions)),
        _ => false,
    })
}

/// Maximum length of the name of an exchange, a queue or a routing key in AMQP 0-9-1, in bytes.
const LONGEST_NAME: usize = 255;

/// Refuses a body with a text that is not a valid template.
fn check_body(body: &Value) -> Result<(), String> {
    match body {
        Value::String(text) => template::check(text),
        Value::Array(list) => list.iter().try_for_each(check_body),
        Value::Object(map) => map.values().try_for_each(check_body),
        _ => Ok(()),
    }
}

/// Returns the method of a request.
pub(crate) fn method(url: &Url) -> Result<http::Method, String> {
    let name = url.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
    name.parse().map_err(|_| format!("{name:?} is no method of HTTP"))
}

/// Compiles an expression such as `/^raw/i`; one without slashes is taken as it is.
pub(crate) fn pattern(text: &str) -> Result<pinakes_store::Pattern, String> {
    let inside = text.strip_prefix('/').and_then(|it| it.rsplit_once('/'));
    let (expression, flags) = inside.unwrap_or((text, ""));
    pinakes_store::Pattern::new(expression, flags).map_err(|error| format!("regex {text:?}: {error}"))
}

/// A type of job and who may create and change such jobs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobType {
    /// Its name, e.g. `archive`.
    pub name: String,
    /// Who may create one: `#all`, `#authenticated`, `#datasetPublic`, `#datasetAccess`, `#datasetOwner`,
    /// `#jobAdmin`, `@group` or a username.
    #[serde(default = "authenticated")]
    pub create_auth: String,
    /// Who may change one: also `#jobOwnerUser`, `#jobOwnerGroup`.
    #[serde(default = "job_admin")]
    pub update_auth: String,
    /// Conditions that every dataset of the job must meet, e.g. `datasetlifecycle.archivable = true`.
    #[serde(default)]
    pub require: std::collections::BTreeMap<String, serde_json::Value>,
    /// What happens when a job is created.
    #[serde(default)]
    pub create_actions: Vec<Action>,
    /// What happens when a job is changed.
    #[serde(default)]
    pub update_actions: Vec<Action>,
}

/// A message with the job as JSON.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Publish {
    /// A topic exchange; declared as durable if it does not exist.
    pub exchange: String,
    /// A queue that is bound to it; declared as durable if it does not exist.
    pub queue: String,
    /// The routing key of the message, and of the binding.
    pub key: String,
    /// Whether a failure is only logged.
    #[serde(default)]
    pub ignore_errors: bool,
}

pub(crate) fn authenticated() -> String {
    "#authenticated".to_owned()
}

pub(crate) fn job_admin() -> String {
    "#jobAdmin".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r##"
configVersion: v1.1
jobs:
  - jobType: archive
    create:
      auth: "#datasetOwner"
      actions:
        - actionType: validate
          datasets:
            "datasetlifecycle.archivable": { const: true }
        - actionType: switch
          phase: validate
          property: request.jobParams.copies
          cases:
            - match: two
              actions:
                - actionType: error
                  message: "no {{request.jobParams.copies}} copies"
            - regex: "/^o/i"
              actions: []
    update:
      auth: "#jobOwnerGroup"
"##;

    #[test]
    fn the_file_of_a_site_is_read() -> Result<(), String> {
        let (version, mut types) = read_file(FILE)?;
        assert_eq!(version.as_deref(), Some("v1.1"));
        let [archive] = types.as_mut_slice() else { return Err(format!("{types:?}")) };
        assert_eq!(
            (archive.create_auth.as_str(), archive.update_auth.as_str()),
            ("#datasetOwner", "#jobOwnerGroup")
        );
        assert!(matches!(archive.create_actions.as_slice(), [Action::Validate(_), Action::Switch(_)]));
        prepare(&mut archive.create_actions)
    }

    /// What site files contain beyond the test above: aliases, defaults, messages, mails whose template is
    /// stored elsewhere, a `log` without messages.
    #[test]
    fn a_file_of_many_actions_loads() -> Result<(), String> {
        const FILE: &str = r##"
jobs:
  - jobType: demo
    create:
      auth: admin
      actions:
        - actionType: log
        - &mail
          actionType: email
          ignoreErrors: true
          to: "{{{ job.contactEmail }}}"
          subject: '[site] {{ default job.jobParams.subject "Job has been updated"}}'
          bodyTemplateFile: no/such/template.html
        - actionType: rabbitmq
          exchange: e
          queue: q
          key: k
    update:
      auth: "#jobOwnerUser"
      actions:
        - actionType: switch
          phase: perform
          property: job.statusCode
          cases:
            - regex: "/^finished/"
              actions: [*mail]
            - actions:
                - actionType: log
                  perform: "(Job {{job.id}}: nothing for {{job.statusCode}})"
"##;
        let (_, mut types) = read_file(FILE)?;
        let [demo] = types.as_mut_slice() else { return Err(format!("{types:?}")) };
        prepare(&mut demo.create_actions)?;
        prepare(&mut demo.update_actions)
    }

    #[test]
    fn what_cannot_be_done_is_refused_at_start() {
        for (action, expected) in [
            ("{actionType: log, validate: '{{#if}'}", "template"),
            ("{actionType: url, url: 'http://x', method: 'G T'}", "no method"),
            ("{actionType: log, validate: '{{shout request.type}}'}", "shout"),
            ("{actionType: url, url: 'http://x/{{#with (shout job)}}{{/with}}'}", "shout"),
            ("{actionType: url, url: 'http://x', colour: red}", "colour"),
            ("{actionType: rabbitmq, exchange: e, queue: q}", "key"),
            (
                "{actionType: rabbitmq, exchange: '', queue: q, key: k}",
                "exchange must have 1 to 255 bytes, it has 0",
            ),
            ("{actionType: paint}", "paint"),
        ] {
            let text = format!(
                "jobs: [{{jobType: x, create: {{auth: '#all', actions: [{action}]}}, update: {{auth: '#all'}}}}]"
            );
            let outcome = read_file(&text).and_then(|(_, mut types)| match types.first_mut() {
                Some(first) => prepare(&mut first.create_actions),
                None => Ok(()),
            });
            let error = outcome.expect_err(action);
            assert!(error.contains(expected), "{action}: {error}");
        }
    }
}
