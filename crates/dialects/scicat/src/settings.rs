//! The site's settings: the `[scicat]` table of `pinakes.toml`, and SciCat's own environment variables.
//!
//! Each key is SciCat's variable in lower case, so that a site can convert its file line by line. Environment variables
//! take precedence. Source: sections 2, 3, 4 and 8 of the contract.

use pinakes_accounts::Hidden;
use serde::Deserialize;

use crate::jobs::actions::{self, job_admin};
use crate::published_data::schema::Schema;
use crate::tracking::Subsystem;

pub use crate::jobs::actions::JobType;

/// Settings of the dialect. Lists contain exact group names; `#all` stands for every logged-in user.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Prefix of new pids (`PID_PREFIX`); a trailing `/` is ignored.
    pub pid_prefix: String,
    /// Prefix of new DOIs (`DOI_PREFIX`).
    pub doi_prefix: String,
    /// Name of the site (`SITE`).
    pub site: String,
    /// Lifetime of a token, in seconds (`JWT_EXPIRES_IN`, 3600).
    pub jwt_expires_in: i64,
    /// May do everything except delete (`ADMIN_GROUPS`).
    pub admin_groups: Vec<String>,
    /// May delete (`DELETE_GROUPS`).
    pub delete_groups: Vec<String>,
    /// May create datasets of own groups without a pid (`CREATE_DATASET_GROUPS`).
    pub create_dataset_groups: Vec<String>,
    /// May do the same with a chosen pid (`CREATE_DATASET_WITH_PID_GROUPS`).
    pub create_dataset_with_pid_groups: Vec<String>,
    /// May create datasets of any group (`CREATE_DATASET_PRIVILEGED_GROUPS`).
    pub create_dataset_privileged_groups: Vec<String>,
    /// May read everything and patch any lifecycle (`UPDATE_DATASET_LIFECYCLE_GROUPS`).
    pub update_dataset_lifecycle_groups: Vec<String>,
    /// Whether a given pid must match the expression (`DATASET_CREATION_VALIDATION_ENABLED`).
    pub dataset_creation_validation_enabled: bool,
    /// The expression (`DATASET_CREATION_VALIDATION_REGEX`).
    pub dataset_creation_validation_regex: String,
    /// Types in addition to `raw` and `derived` (values of `DATASET_TYPES_FILE`); empty means any.
    pub dataset_types: Vec<String>,
    /// Types of proposals in addition to the default (values of `PROPOSAL_TYPES_FILE`).
    pub proposal_types: Vec<String>,
    /// Types of jobs, see [`JobType`] (`JOB_CONFIGURATION_FILE`).
    pub job_types: Vec<JobType>,
    /// Status of a new job (`JOB_DEFAULT_STATUS_CODE`).
    pub job_default_status_code: String,
    /// Message of a new job (`JOB_DEFAULT_STATUS_MESSAGE`).
    pub job_default_status_message: String,
    /// The `configVersion` of jobs (`configVersion` of `JOB_CONFIGURATION_FILE`).
    pub job_config_version: String,
    /// Timeout of a request to another server, or of sending a mail, in milliseconds.
    pub outgoing_timeout_ms: u64,
    /// Sender of mails (`EMAIL_FROM`).
    pub email_from: String,
    /// Server for outgoing mail (`SMTP_HOST`); if empty, none is sent.
    pub smtp_host: String,
    /// Its port (`SMTP_PORT`).
    pub smtp_port: u16,
    /// Whether the connection starts with TLS (`SMTP_SECURE`); otherwise TLS is used if the server offers it.
    pub smtp_secure: bool,
    /// Whether jobs' actions publish to a RabbitMQ broker (`RABBITMQ_ENABLED`); otherwise such actions are skipped.
    pub rabbitmq_enabled: bool,
    /// The broker's host (`RABBITMQ_HOSTNAME`).
    pub rabbitmq_hostname: String,
    /// Its port for AMQP (`RABBITMQ_PORT`).
    pub rabbitmq_port: u16,
    /// Account at the broker (`RABBITMQ_USERNAME`).
    pub rabbitmq_username: String,
    /// Its password (`RABBITMQ_PASSWORD`).
    pub rabbitmq_password: Hidden,
    /// Whether the connection to the broker is encrypted.
    pub rabbitmq_tls: bool,
    /// PEM file of authorities that may have signed the broker's certificate, in addition to those of the system.
    pub rabbitmq_ca_file: String,
    /// The content of that file, read at start.
    #[serde(skip)]
    pub rabbitmq_authorities: String,
    /// How many times an action of a job that calls another server is attempted before it is given up; at least once.
    pub job_action_attempts: u32,
    /// The wait after the first attempt, in milliseconds. Each further wait is twice as long, up to an hour.
    pub job_action_wait_ms: u64,
    /// Whether logbooks are read from a `SciChat` service (`LOGBOOK_ENABLED`); otherwise there are none.
    pub logbook_enabled: bool,
    /// The service's address (`LOGBOOK_BASE_URL`), e.g. `http://localhost:3030/scichatapi`.
    pub logbook_base_url: String,
    /// Account at the service (`LOGBOOK_USERNAME`).
    pub logbook_username: String,
    /// Its password (`LOGBOOK_PASSWORD`).
    pub logbook_password: Hidden,
    /// DataCite's REST API for DOIs (`REGISTER_DOI_URI`), e.g. `https://api.datacite.org/dois`; if empty, none is
    /// registered.
    pub register_doi_uri: String,
    /// Account at DataCite (`DOI_USERNAME`).
    pub doi_username: String,
    /// Its password (`DOI_PASSWORD`).
    pub doi_password: Hidden,
    /// Prefix of the pages of DOIs (`PUBLIC_URL_PREFIX`).
    pub public_url_prefix: String,
    /// May write proposals (`PROPOSAL_GROUPS`).
    pub proposal_groups: Vec<String>,
    /// May write samples of own groups (`SAMPLE_GROUPS`).
    pub sample_groups: Vec<String>,
    /// May write any sample (`SAMPLE_PRIVILEGED_GROUPS`).
    pub sample_privileged_groups: Vec<String>,
    /// May write attachments of own groups (`ATTACHMENT_GROUPS`).
    pub attachment_groups: Vec<String>,
    /// May create any attachment (`ATTACHMENT_PRIVILEGED_GROUPS`).
    pub attachment_privileged_groups: Vec<String>,
    /// May read and write policies (`POLICY_GROUPS`).
    pub policy_groups: Vec<String>,
    /// May create any job (`CREATE_JOB_PRIVILEGED_GROUPS`).
    pub create_job_privileged_groups: Vec<String>,
    /// May update any job (`UPDATE_JOB_PRIVILEGED_GROUPS`).
    pub update_job_privileged_groups: Vec<String>,
    /// May delete jobs (`DELETE_JOB_GROUPS`).
    pub delete_job_groups: Vec<String>,
    /// May read the history of all datasets (`HISTORY_ACCESS_DATASET_GROUPS`).
    pub history_access_dataset_groups: Vec<String>,
    /// May read the history of all proposals (`HISTORY_ACCESS_PROPOSAL_GROUPS`).
    pub history_access_proposal_groups: Vec<String>,
    /// May read the history of all samples (`HISTORY_ACCESS_SAMPLE_GROUPS`).
    pub history_access_sample_groups: Vec<String>,
    /// May read the history of all instruments (`HISTORY_ACCESS_INSTRUMENT_GROUPS`).
    pub history_access_instrument_groups: Vec<String>,
    /// May read the history of all published data (`HISTORY_ACCESS_PUBLISHED_DATA_GROUPS`).
    pub history_access_published_data_groups: Vec<String>,
    /// May read the history of all policies (`HISTORY_ACCESS_POLICIES_GROUPS`).
    pub history_access_policies_groups: Vec<String>,
    /// May read the history of all attachments (`HISTORY_ACCESS_ATTACHMENT_GROUPS`).
    pub history_access_attachment_groups: Vec<String>,
    /// May read the history of all origdatablocks (`HISTORY_ACCESS_ORIGDATABLOCK_GROUPS`).
    pub history_access_origdatablock_groups: Vec<String>,
    /// May read the history of all datablocks (`HISTORY_ACCESS_DATABLOCK_GROUPS`).
    pub history_access_datablock_groups: Vec<String>,
    /// Types of records whose changes are kept as history: `Dataset`, `Proposal`, `Sample`, `Instrument`,
    /// `PublishedData`, `Policy`, `Attachment`, `OrigDatablock`, `Datablock` (`TRACKABLES`).
    pub trackables: Vec<String>,
    /// `document` keeps the old and new values, `delta` only those that changed (`TRACKABLE_STRATEGY`).
    pub trackable_strategy: String,
    /// Maximum number of metadata keys in one answer (`METADATA_KEYS_RETURN_LIMIT`).
    pub metadata_keys_return_limit: usize,
    /// Maximum number of records read for metadata keys under a condition (`METADATA_PARENT_INSTANCES_RETURN_LIMIT`).
    pub metadata_parent_instances_return_limit: u64,
    /// Years until archived data may be deleted (`POLICY_RETENTION_SHIFT`).
    pub policy_retention_shift: i64,
    /// Years until data is to be published (`POLICY_PUBLICATION_SHIFT`).
    pub policy_publication_shift: i64,
    /// The configuration that the frontend reads (`FRONTEND_CONFIG_FILE`, as JSON text).
    pub frontend_config: String,
    /// The theme that the frontend reads (`FRONTEND_THEME_FILE`, as JSON text).
    pub frontend_theme: String,
    /// Schema of published data's metadata (`PUBLISHED_DATA_CONFIG_FILE`, as JSON text).
    pub published_data_config: String,
    /// Hosts from which a dataset's `scientificMetadataSchema` is fetched (`SCIENTIFIC_METADATA_SCHEMA_HOSTS`):
    /// `schemas.example.org`, `localhost:8080`. Schemas on other hosts are not fetched, and the metadata counts as
    /// invalid.
    pub scientific_metadata_schema_hosts: Vec<String>,
    /// JSON schema for the metadata of files in blocks, as JSON text (`DATAFILES_METADATA_SCHEMA`, the text or the name
    /// of a file with it). If empty, such metadata is refused.
    pub datafiles_metadata_schema: String,
}

impl Default for Settings {
    fn default() -> Self {
        let job = |name: &str, field: &str, create: &str| JobType {
            name: name.to_owned(),
            create_auth: create.to_owned(),
            update_auth: job_admin(),
            require: [(field.to_owned(), serde_json::Value::Bool(true))].into(),
            create_actions: Vec::new(),
            update_actions: Vec::new(),
        };
        Self {
            pid_prefix: "PID.SAMPLE.PREFIX".to_owned(),
            doi_prefix: "DOI.SAMPLE.PREFIX".to_owned(),
            site: "SAMPLE-SITE".to_owned(),
            jwt_expires_in: 3_600,
            admin_groups: vec!["admin".to_owned()],
            delete_groups: Vec::new(),
            create_dataset_groups: vec!["#all".to_owned()],
            create_dataset_with_pid_groups: Vec::new(),
            create_dataset_privileged_groups: Vec::new(),
            update_dataset_lifecycle_groups: Vec::new(),
            dataset_creation_validation_enabled: false,
            dataset_creation_validation_regex: String::new(),
            dataset_types: Vec::new(),
            proposal_types: Vec::new(),
            job_types: vec![
                job("archive", "datasetlifecycle.archivable", "#datasetOwner"),
                job("retrieve", "datasetlifecycle.retrievable", "#datasetAccess"),
                job("public", "isPublished", "#datasetPublic"),
            ],
            job_default_status_code: "jobSubmitted".to_owned(),
            job_default_status_message: "Job submitted.".to_owned(),
            job_config_version: "1.0".to_owned(),
            outgoing_timeout_ms: 10_000,
            email_from: String::new(),
            smtp_host: String::new(),
            smtp_port: 587,
            smtp_secure: false,
            rabbitmq_enabled: false,
            rabbitmq_hostname: "localhost".to_owned(),
            rabbitmq_port: 5672,
            rabbitmq_username: "guest".to_owned(),
            rabbitmq_password: Hidden::from("guest"),
            rabbitmq_tls: false,
            rabbitmq_ca_file: String::new(),
            rabbitmq_authorities: String::new(),
            job_action_attempts: 32,
            job_action_wait_ms: 10_000,
            logbook_enabled: false,
            logbook_base_url: "http://localhost:3030/scichatapi".to_owned(),
            logbook_username: "logbookReader".to_owned(),
            logbook_password: Hidden::from(""),
            register_doi_uri: String::new(),
            doi_username: String::new(),
            doi_password: Hidden::default(),
            public_url_prefix: String::new(),
            proposal_groups: Vec::new(),
            sample_groups: vec!["#all".to_owned()],
            sample_privileged_groups: Vec::new(),
            attachment_groups: vec!["#all".to_owned()],
            attachment_privileged_groups: Vec::new(),
            policy_groups: Vec::new(),
            create_job_privileged_groups: Vec::new(),
            update_job_privileged_groups: Vec::new(),
            delete_job_groups: Vec::new(),
            history_access_dataset_groups: Vec::new(),
            history_access_proposal_groups: Vec::new(),
            history_access_sample_groups: Vec::new(),
            history_access_instrument_groups: Vec::new(),
            history_access_published_data_groups: Vec::new(),
            history_access_policies_groups: Vec::new(),
            history_access_attachment_groups: Vec::new(),
            history_access_origdatablock_groups: Vec::new(),
            history_access_datablock_groups: Vec::new(),
            trackables: Vec::new(),
            trackable_strategy: "document".to_owned(),
            metadata_keys_return_limit: 100,
            metadata_parent_instances_return_limit: 100,
            policy_retention_shift: 10,
            policy_publication_shift: 3,
            frontend_config: "{}".to_owned(),
            frontend_theme: "{}".to_owned(),
            published_data_config: r#"{"metadataSchema":{},"uiSchema":{}}"#.to_owned(),
            scientific_metadata_schema_hosts: Vec::new(),
            datafiles_metadata_schema: String::new(),
        }
    }
}

/// Reason why a setting cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// An environment variable has a value that its setting does not allow.
    #[error("{name}={found:?}: expected {expected}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// A file that a variable names cannot be read.
    #[error("{name}: {path}: {reason}")]
    File {
        /// The variable.
        name: &'static str,
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The pid pattern is not a supported regular expression.
    #[error("dataset_creation_validation_regex: {0}")]
    Pattern(String),
    /// The schema of files' metadata is not a JSON object or not a valid schema.
    #[error("datafiles_metadata_schema: expected a JSON object: {0}")]
    Schema(String),
    /// The schema of published data's metadata cannot be used.
    #[error("published_data_config: expected {{\"metadataSchema\":{{…}},\"uiSchema\":{{…}}}}: {0}")]
    PublishedData(String),
    /// A configuration for the frontend is not a JSON object.
    #[error("{name}: expected a JSON object: {reason}")]
    Frontend {
        /// The setting.
        name: &'static str,
        /// The reason.
        reason: String,
    },
    /// The broker's authorities cannot be used.
    #[error("rabbitmq_ca_file: {0}")]
    Authorities(String),
    /// An action of a job type cannot be executed.
    #[error("job type {name}: {reason}")]
    Action {
        /// The type.
        name: String,
        /// The reason.
        reason: String,
    },
    /// `trackables` names something that is not tracked.
    #[error("trackables: {found:?} is none of {known}")]
    Trackable {
        /// The name.
        found: String,
        /// The names that are allowed.
        known: String,
    },
}

impl Settings {
    /// Overrides settings with environment variables, under SciCat's names. `variable` looks one up.
    ///
    /// Errors: a variable with an invalid value, or one that names a file that cannot be used.
    pub fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let text = |name: &str| variable(name).filter(|it| !it.trim().is_empty());
        for (name, field) in self.texts() {
            if let Some(value) = text(name) {
                *field = value;
            }
        }
        for (name, field) in self.lists() {
            if let Some(value) = text(name) {
                *field =
                    value.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect();
            }
        }
        for (name, field) in self.numbers() {
            if let Some(value) = text(name) {
                let failed =
                    || SettingsError::Variable { name, found: value.clone(), expected: "a whole number" };
                *field = value.trim().parse().map_err(|_| failed())?;
            }
        }
        if let Some(value) = text("METADATA_KEYS_RETURN_LIMIT").and_then(|it| it.parse().ok()) {
            self.metadata_keys_return_limit = value;
        }
        if let Some(value) = text("METADATA_PARENT_INSTANCES_RETURN_LIMIT").and_then(|it| it.parse().ok()) {
            self.metadata_parent_instances_return_limit = value;
        }
        for (name, field) in [
            ("DATASET_CREATION_VALIDATION_ENABLED", &mut self.dataset_creation_validation_enabled),
            ("SMTP_SECURE", &mut self.smtp_secure),
            ("RABBITMQ_ENABLED", &mut self.rabbitmq_enabled),
            ("LOGBOOK_ENABLED", &mut self.logbook_enabled),
        ] {
            if let Some(value) = text(name) {
                *field = ["true", "yes"].contains(&value.trim());
            }
        }
        for (name, field) in [("SMTP_PORT", &mut self.smtp_port), ("RABBITMQ_PORT", &mut self.rabbitmq_port)]
        {
            if let Some(value) = text(name) {
                let failed = || SettingsError::Variable { name, found: value.clone(), expected: "a port" };
                *field = value.trim().parse().map_err(|_| failed())?;
            }
        }
        if let Some(value) = text("RABBITMQ_PASSWORD") {
            self.rabbitmq_password = Hidden::from(value.as_str());
        }
        if let Some(value) = text("DOI_PASSWORD") {
            self.doi_password = Hidden::from(value.as_str());
        }
        if let Some(value) = text("LOGBOOK_PASSWORD") {
            self.logbook_password = Hidden::from(value.as_str());
        }
        if let Some(path) = text("JOB_CONFIGURATION_FILE") {
            let name = "JOB_CONFIGURATION_FILE";
            let failed = |reason: String| SettingsError::File { name, path: path.clone(), reason };
            let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
            let (version, job_types) = actions::read_file(&text).map_err(failed)?;
            self.job_types = job_types;
            self.job_config_version = version.unwrap_or(self.job_config_version);
        }
        for (name, field) in [
            ("DATASET_TYPES_FILE", &mut self.dataset_types),
            ("PROPOSAL_TYPES_FILE", &mut self.proposal_types),
        ] {
            if let Some(path) = text(name) {
                *field = values_of_file(name, &path)?;
            }
        }
        for (name, field) in [
            ("FRONTEND_CONFIG_FILE", &mut self.frontend_config),
            ("FRONTEND_THEME_FILE", &mut self.frontend_theme),
            ("PUBLISHED_DATA_CONFIG_FILE", &mut self.published_data_config),
        ] {
            if let Some(path) = text(name) {
                let value: serde_json::Value = json_file(name, &path)?;
                *field = value.to_string();
            }
        }
        if let Some(value) = text("DATAFILES_METADATA_SCHEMA") {
            self.datafiles_metadata_schema = if value.trim_start().starts_with('{') {
                value
            } else {
                json_file::<serde_json::Value>("DATAFILES_METADATA_SCHEMA", &value)?.to_string()
            };
        }
        self.checked()
    }

    /// Validates the settings and reads the files that they name.
    pub fn checked(mut self) -> Result<Self, SettingsError> {
        for job_type in &mut self.job_types {
            for list in [&mut job_type.create_actions, &mut job_type.update_actions] {
                actions::prepare(list)
                    .map_err(|reason| SettingsError::Action { name: job_type.name.clone(), reason })?;
                if !self.rabbitmq_enabled && actions::has_publish(list) {
                    tracing::warn!(
                        job_type = job_type.name,
                        "job action: rabbitmq is skipped, because rabbitmq_enabled (RABBITMQ_ENABLED) is not set"
                    );
                }
            }
        }
        if !self.rabbitmq_ca_file.is_empty() {
            let file = std::path::Path::new(&self.rabbitmq_ca_file);
            pinakes_tls::authorities(file).map_err(|error| SettingsError::Authorities(error.to_string()))?;
            let text = std::fs::read_to_string(file);
            self.rabbitmq_authorities =
                text.map_err(|error| SettingsError::Authorities(format!("{}: {error}", file.display())))?;
        }
        let schema = self.datafiles_metadata_schema.trim();
        if !schema.is_empty() {
            let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(schema);
            let parsed = parsed.map_err(|error| SettingsError::Schema(error.to_string()))?;
            Schema::compile(&serde_json::Value::Object(parsed)).map_err(SettingsError::Schema)?;
        }
        self.check_published_data_config().map_err(SettingsError::PublishedData)?;
        for (name, text) in
            [("frontend_config", &self.frontend_config), ("frontend_theme", &self.frontend_theme)]
        {
            let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
            parsed.map_err(|error| SettingsError::Frontend { name, reason: error.to_string() })?;
        }
        let known = Subsystem::names();
        if let Some(found) = self.trackables.iter().find(|it| !known.contains(&it.as_str())) {
            return Err(SettingsError::Trackable { found: found.clone(), known: known.join(", ") });
        }
        if self.dataset_creation_validation_enabled {
            let pattern = pinakes_store::Pattern::new(&self.dataset_creation_validation_regex, "");
            pattern.map_err(|error| SettingsError::Pattern(error.to_string()))?;
        }
        Ok(self)
    }

    /// Checks the configuration of published data: if it could not be read, any metadata would be accepted.
    fn check_published_data_config(&self) -> Result<(), String> {
        let config: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&self.published_data_config).map_err(|error| error.to_string())?;
        let schema = config.get("metadataSchema").ok_or("it has no metadataSchema")?;
        Schema::compile(schema).map(|_| ()).map_err(|error| format!("metadataSchema: {error}"))
    }

    fn texts(&mut self) -> [(&'static str, &mut String); 16] {
        [
            ("PID_PREFIX", &mut self.pid_prefix),
            ("DOI_PREFIX", &mut self.doi_prefix),
            ("SITE", &mut self.site),
            ("DATASET_CREATION_VALIDATION_REGEX", &mut self.dataset_creation_validation_regex),
            ("JOB_DEFAULT_STATUS_CODE", &mut self.job_default_status_code),
            ("JOB_DEFAULT_STATUS_MESSAGE", &mut self.job_default_status_message),
            ("TRACKABLE_STRATEGY", &mut self.trackable_strategy),
            ("EMAIL_FROM", &mut self.email_from),
            ("SMTP_HOST", &mut self.smtp_host),
            ("RABBITMQ_HOSTNAME", &mut self.rabbitmq_hostname),
            ("RABBITMQ_USERNAME", &mut self.rabbitmq_username),
            ("LOGBOOK_BASE_URL", &mut self.logbook_base_url),
            ("LOGBOOK_USERNAME", &mut self.logbook_username),
            ("REGISTER_DOI_URI", &mut self.register_doi_uri),
            ("DOI_USERNAME", &mut self.doi_username),
            ("PUBLIC_URL_PREFIX", &mut self.public_url_prefix),
        ]
    }

    fn lists(&mut self) -> [(&'static str, &mut Vec<String>); 26] {
        [
            ("ADMIN_GROUPS", &mut self.admin_groups),
            ("DELETE_GROUPS", &mut self.delete_groups),
            ("CREATE_DATASET_GROUPS", &mut self.create_dataset_groups),
            ("CREATE_DATASET_WITH_PID_GROUPS", &mut self.create_dataset_with_pid_groups),
            ("CREATE_DATASET_PRIVILEGED_GROUPS", &mut self.create_dataset_privileged_groups),
            ("UPDATE_DATASET_LIFECYCLE_GROUPS", &mut self.update_dataset_lifecycle_groups),
            ("PROPOSAL_GROUPS", &mut self.proposal_groups),
            ("SAMPLE_GROUPS", &mut self.sample_groups),
            ("SAMPLE_PRIVILEGED_GROUPS", &mut self.sample_privileged_groups),
            ("ATTACHMENT_GROUPS", &mut self.attachment_groups),
            ("ATTACHMENT_PRIVILEGED_GROUPS", &mut self.attachment_privileged_groups),
            ("POLICY_GROUPS", &mut self.policy_groups),
            ("CREATE_JOB_PRIVILEGED_GROUPS", &mut self.create_job_privileged_groups),
            ("UPDATE_JOB_PRIVILEGED_GROUPS", &mut self.update_job_privileged_groups),
            ("DELETE_JOB_GROUPS", &mut self.delete_job_groups),
            ("HISTORY_ACCESS_DATASET_GROUPS", &mut self.history_access_dataset_groups),
            ("HISTORY_ACCESS_PROPOSAL_GROUPS", &mut self.history_access_proposal_groups),
            ("HISTORY_ACCESS_SAMPLE_GROUPS", &mut self.history_access_sample_groups),
            ("HISTORY_ACCESS_INSTRUMENT_GROUPS", &mut self.history_access_instrument_groups),
            ("HISTORY_ACCESS_PUBLISHED_DATA_GROUPS", &mut self.history_access_published_data_groups),
            ("HISTORY_ACCESS_POLICIES_GROUPS", &mut self.history_access_policies_groups),
            ("HISTORY_ACCESS_ATTACHMENT_GROUPS", &mut self.history_access_attachment_groups),
            ("HISTORY_ACCESS_ORIGDATABLOCK_GROUPS", &mut self.history_access_origdatablock_groups),
            ("HISTORY_ACCESS_DATABLOCK_GROUPS", &mut self.history_access_datablock_groups),
            ("SCIENTIFIC_METADATA_SCHEMA_HOSTS", &mut self.scientific_metadata_schema_hosts),
            ("TRACKABLES", &mut self.trackables),
        ]
    }

    fn numbers(&mut self) -> [(&'static str, &mut i64); 3] {
        [
            ("JWT_EXPIRES_IN", &mut self.jwt_expires_in),
            ("POLICY_RETENTION_SHIFT", &mut self.policy_retention_shift),
            ("POLICY_PUBLICATION_SHIFT", &mut self.policy_publication_shift),
        ]
    }
}

/// Variables of a SciCat site that have no effect or a different meaning here, with advice.
const NOT_HONOURED: [(&str, &str); 18] = [
    (
        "OIDC_USERQUERY_",
        "users are found by the provider's subject, then by a name that no other account has",
    ),
    ("OIDC_ACCESS_GROUPS", "groups come from the claim that OIDC_ACCESS_GROUPS_PROPERTY names"),
    ("ACCESS_GROUPS_GRAPHQL_", "groups come from the directory, the provider, or the accounts kept here"),
    ("ACCESS_GROUPS_REST_", "groups come from the directory, the provider, or the accounts kept here"),
    ("ACCESS_GROUP_SERVICE_", "groups come from the directory, the provider, or the accounts kept here"),
    ("FUNCTIONAL_ACCOUNTS_FILE", "accounts are read once: `pinakes user import FILE`"),
    ("OPENSEARCH_", "text search is built in"),
    ("ELASTICSEARCH_", "text search is built in"),
    ("ES_", "text search is built in"),
    ("METRICS_", "metrics are at /metrics"),
    ("MONGODB_URI", "records are kept in the folder or the database of `pinakes serve`"),
    ("MS365_", "mail goes by SMTP alone"),
    ("EMAIL_TYPE", "mail goes by SMTP alone"),
    ("SMTP_USERNAME", "mail is sent without a login"),
    ("REGISTER_DOI_URI_V3", "DOIs of v3 are registered by DataCite's REST API too (REGISTER_DOI_URI)"),
    ("REGISTER_METADATA_URI", "DataCite's older MDS API is not spoken"),
    ("MAX_FILE_UPLOAD_SIZE", "the bound of a body is `limits.body_bytes`"),
    ("LOGGERS_CONFIG_FILE", "logging is configured by `server.log`"),
];

/// Returns those of the set variables that have no effect here, each with advice. `names` are those of the environment.
pub fn not_honoured(names: impl Iterator<Item = String>) -> Vec<(String, &'static str)> {
    let advice = |name: &String| {
        let fits =
            |it: &&(&str, &str)| if it.0.ends_with('_') { name.starts_with(it.0) } else { name == it.0 };
        NOT_HONOURED.iter().find(fits).map(|it| it.1)
    };
    let mut found: Vec<_> =
        names.filter_map(|name| Some((advice(&name)?, name))).map(|(a, b)| (b, a)).collect();
    found.sort();
    found
}

/// Returns the values of a JSON object in a file: `{"Custom":"custom"}`.
fn values_of_file(name: &'static str, path: &str) -> Result<Vec<String>, SettingsError> {
    let map: std::collections::BTreeMap<String, String> = json_file(name, path)?;
    Ok(map.into_values().collect())
}

fn json_file<T: serde::de::DeserializeOwned>(name: &'static str, path: &str) -> Result<T, SettingsError> {
    let failed = |reason: String| SettingsError::File { name, path: path.to_owned(), reason };
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_here_is_told() {
        let names =
            ["PATH", "LDAP_URL", "OIDC_USERQUERY_FILTER", "PID_PREFIX", "MONGODB_URI", "REGISTER_DOI_URI"];
        let told = not_honoured(names.into_iter().map(str::to_owned));
        let told: Vec<&str> = told.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(told, ["MONGODB_URI", "OIDC_USERQUERY_FILTER"]);
    }

    #[test]
    fn a_mistyped_schema_of_published_data_is_refused() {
        for (config, expected) in [
            (r#"{"metadataSchema":{"type":"object"},"uiSchema":{}}"#, None),
            (r#"{"metadataSchema":{"type":"objekt"}}"#, Some("metadataSchema")),
            (r#"{"metadataschema":{}}"#, Some("no metadataSchema")),
            (r#"{"metadataSchema":"#, Some("published_data_config")),
        ] {
            let settings = Settings { published_data_config: config.to_owned(), ..Settings::default() };
            let refused = settings.checked().err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), expected.is_some(), "{config}: {refused:?}");
            let (refused, expected) = (refused.unwrap_or_default(), expected.unwrap_or_default());
            assert!(refused.contains(expected), "{config}: {refused}");
        }
    }
}
