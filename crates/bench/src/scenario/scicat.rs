//! Shared by the SciCat scenarios: login, creating and deleting datasets. Only the public interface v3 is
//! used, so the same scenario runs against the original server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::client::{Answer, AnswerBody, Connection, Request};
use crate::error::BenchError;
use crate::generate::datasets::{DatasetShape, dataset};
use crate::load::{Flow, Group, Load, Loops, RequestSource, Step, Work};
use crate::runner::{COUNTED_WORK_MAX, Runner};
use crate::target::Target;

/// Environment variables of the passwords.
const PASSWORD_VARIABLE: &str = "PINAKES_BENCH_PASSWORD";
const DELETE_PASSWORD_VARIABLE: &str = "PINAKES_BENCH_DELETE_PASSWORD";

/// Limit for logins and single requests outside the measurement.
const SINGLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of datasets listed at once when cleaning up.
const CLEAN_PAGE: usize = 1000;

/// Rounds without progress after which preparing or cleaning is abandoned.
const ROUNDS_MAX: u32 = 3;

/// Characters escaped in a path segment or query value.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Accounts and data of the SciCat scenarios.
#[derive(Clone, Args)]
pub struct ScicatArgs {
    /// Functional account that may create datasets. Its password comes from `PINAKES_BENCH_PASSWORD`.
    #[arg(long)]
    pub username: String,
    /// Its password; visible to other users of this machine, so better in the environment.
    #[arg(long)]
    pub password: Option<String>,
    /// Account that may delete datasets, if the first may not. Password from `PINAKES_BENCH_DELETE_PASSWORD`.
    #[arg(long)]
    pub delete_username: Option<String>,
    /// Its password; better in the environment.
    #[arg(long)]
    pub delete_password: Option<String>,
    /// Group that owns the datasets. Default: the first group of the account.
    #[arg(long)]
    pub owner_group: Option<String>,
    /// Connections for preparing and cleaning up.
    #[arg(long, default_value_t = 32)]
    pub prepare_connections: usize,
    /// Leave the data in the server afterwards.
    #[arg(long)]
    pub keep_data: bool,
}

/// Omits the password.
impl fmt::Debug for ScicatArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScicatArgs").field("username", &self.username).finish_non_exhaustive()
    }
}

/// An account that is logged in. Its token is renewed with [`Session::refresh`].
pub struct Session {
    target: Arc<Target>,
    account: Account,
    headers: Arc<HeaderMap>,
    renew_at: Instant,
}

struct Account {
    username: String,
    password: String,
    variable: &'static str,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("username", &self.account.username).finish_non_exhaustive()
    }
}

impl Session {
    async fn begin(target: &Arc<Target>, account: Account) -> Result<Self, BenchError> {
        let mut session = Self {
            target: Arc::clone(target),
            account,
            headers: Arc::new(HeaderMap::new()),
            renew_at: Instant::now(),
        };
        session.log_in().await?;
        Ok(session)
    }

    /// Headers with the token, for requests of load.
    pub fn headers(&self) -> Arc<HeaderMap> {
        Arc::clone(&self.headers)
    }

    /// Returns the request target of `path` at this server.
    pub fn path(&self, path: &str) -> String {
        self.target.path(path)
    }

    /// Logs in again if the token is past half of its lifetime. To be called before each step.
    pub async fn refresh(&mut self) -> Result<(), BenchError> {
        if Instant::now() >= self.renew_at { self.log_in().await } else { Ok(()) }
    }

    async fn log_in(&mut self) -> Result<(), BenchError> {
        const PATH: &str = "/api/v3/auth/login";
        let body = json!({"username": self.account.username, "password": self.account.password}).to_string();
        let request = Request::post(self.target.path(PATH), &json_headers(None), body.into());
        let answer = single(&self.target, &request).await?;
        let parsed: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let token = parsed.as_ref().and_then(|it| it["access_token"].as_str());
        let header = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        let Some(mut header) = header else {
            return Err(self.login_error(&answer, parsed.as_ref(), PATH));
        };
        header.set_sensitive(true);
        self.headers = json_headers(Some(header));
        const LIFE_S: u64 = 3600;
        let life_s = parsed.as_ref().and_then(|it| it["expires_in"].as_u64()).unwrap_or(LIFE_S);
        self.renew_at = Instant::now() + Duration::from_secs((life_s / 2).min(LIFE_S));
        Ok(())
    }

    fn login_error(&self, answer: &Answer, parsed: Option<&Value>, path: &str) -> BenchError {
        let message = parsed.and_then(|it| it["message"].as_str());
        match (answer.status, message) {
            (400 | 401 | 403, Some(message)) => BenchError::LoginRefused {
                url: self.target.url(path),
                username: self.account.username.clone(),
                status: answer.status,
                message: message.to_owned(),
                variable: self.account.variable,
            },
            _ => BenchError::OtherDialect {
                url: self.target.url(path),
                expected: "SciCat (201 with an access_token)".to_owned(),
                found: answer.excerpt(),
            },
        }
    }

    /// Sends one request outside the measurement and returns the answer, whatever its status.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, BenchError> {
        let request = Request {
            method,
            path: self.target.path(path),
            headers: self.headers(),
            body: body.map(|it| Bytes::from(it.to_string())).unwrap_or_default(),
            also_fine: None,
        };
        single(&self.target, &request).await
    }

    /// Returns the first group of the account, according to its identity.
    async fn first_group(&self) -> Option<String> {
        let answer = self.send(Method::GET, "/api/v3/users/my/identity", None).await.ok()?;
        let identity: Value = serde_json::from_slice(&answer.body).ok()?;
        Some(identity["profile"]["accessGroups"][0].as_str()?.to_owned())
    }
}

fn json_headers(authorization: Option<HeaderValue>) -> Arc<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(value) = authorization {
        headers.insert(AUTHORIZATION, value);
    }
    Arc::new(headers)
}

pub(super) async fn single(target: &Arc<Target>, request: &Request) -> Result<Answer, BenchError> {
    let mut connection = Connection::new(Arc::clone(target), SINGLE_TIMEOUT);
    connection.exchange(request, AnswerBody::Keep).await.map_err(|failure| BenchError::CannotConnect {
        address: target.authority.clone(),
        reason: failure.to_string(),
    })
}

/// Escapes `value` for a path segment or a query value.
pub fn escaped(value: &str) -> String {
    utf8_percent_encode(value, ESCAPED).to_string()
}

/// A site under measurement: the accounts, and the datasets of this run.
#[derive(Debug)]
pub struct Site {
    /// The account that creates and reads.
    pub session: Session,
    /// Properties shared by the run's datasets; its tag finds them.
    pub shape: DatasetShape,
    /// Seed of the data.
    pub seed: u64,
    /// Paths of the created datasets, in order of creation: `/api/v3/datasets/{pid}`.
    pub paths: Vec<String>,
    args: ScicatArgs,
    deleter: Option<Session>,
}

impl Site {
    /// Logs in and finds the group that will own the data.
    pub async fn begin(runner: &mut Runner, args: &ScicatArgs, n_fields: usize) -> Result<Self, BenchError> {
        let account = Account {
            username: args.username.clone(),
            password: password(&args.username, args.password.clone(), PASSWORD_VARIABLE, "--password")?,
            variable: PASSWORD_VARIABLE,
        };
        let session = Session::begin(&runner.target, account).await?;
        let deleter = match &args.delete_username {
            None => None,
            Some(username) => {
                let account = Account {
                    username: username.clone(),
                    password: password(
                        username,
                        args.delete_password.clone(),
                        DELETE_PASSWORD_VARIABLE,
                        "--delete-password",
                    )?,
                    variable: DELETE_PASSWORD_VARIABLE,
                };
                Some(Session::begin(&runner.target, account).await?)
            }
        };
        let owner_group = match &args.owner_group {
            Some(group) => group.clone(),
            None => session.first_group().await.unwrap_or_else(|| args.username.clone()),
        };
        let tag = format!("pinakes-bench-{:x}", time::OffsetDateTime::now_utc().unix_timestamp());
        runner.result.settings.insert("account".to_owned(), args.username.clone());
        runner.result.settings.insert("owner group".to_owned(), owner_group.clone());
        runner.result.settings.insert("keyword of the data".to_owned(), tag.clone());
        let shape = DatasetShape { owner_group, tag, n_fields };
        let seed = runner.settings.seed;
        Ok(Self { session, shape, seed, paths: Vec::new(), args: args.clone(), deleter })
    }

    /// Creates datasets through the public interface until there are `wanted`.
    pub async fn grow(&mut self, runner: &mut Runner, wanted: u64) -> Result<(), BenchError> {
        if self.paths.is_empty() && wanted > 0 {
            // One as a trial: a refusal is reported before a million requests meet it.
            let pid = self.create_one(0).await?;
            self.paths.push(self.session.path(&dataset_path(&pid)));
        }
        let mut rounds = 0;
        while (self.paths.len() as u64) < wanted {
            self.session.refresh().await?;
            let before = self.paths.len() as u64;
            let reason = self.grow_once(runner, wanted).await?;
            rounds = if self.paths.len() as u64 == before { rounds + 1 } else { 0 };
            if rounds == ROUNDS_MAX {
                let done = self.paths.len() as u64;
                return Err(BenchError::Preparation { what: "datasets".to_owned(), done, wanted, reason });
            }
        }
        Ok(())
    }

    /// Runs one round over the missing datasets; returns the most frequent failure.
    async fn grow_once(&mut self, runner: &mut Runner, wanted: u64) -> Result<String, BenchError> {
        /// Limits a round so that a token does not expire in the middle: a round takes minutes on the slowest
        /// server.
        const ROUND: u64 = 100_000;
        let first = self.paths.len() as u64;
        let missing = (wanted - first).min(ROUND);
        let made = Arc::new(Mutex::new(Vec::new()));
        let flow = Flow {
            sink: Some({
                let made = Arc::clone(&made);
                Arc::new(move |_n, answer: &Answer| {
                    if let Some(path) = path_of_created(answer) {
                        made.lock().unwrap_or_else(PoisonError::into_inner).push(path);
                    }
                })
            }),
            ..Flow::only("create dataset", self.creations(first))
        };
        let step = counted_step(
            &format!("preparing {wanted} datasets"),
            flow,
            self.args.prepare_connections,
            missing,
        );
        let outcome = runner.work(&step, missing).await;
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        self.paths.extend(made.drain(..).map(|path| runner.target.path(&path)));
        let record = outcome?;
        Ok(most_frequent(&record.flows[0].messages))
    }

    /// Returns create requests for the datasets from `first` on.
    fn creations(&self, first: u64) -> RequestSource {
        let (shape, seed, headers) = (self.shape.clone(), self.seed, self.session.headers());
        let path = self.session.target.path("/api/v3/datasets");
        Arc::new(move |n| {
            Request::post(path.clone(), &headers, dataset(&shape, seed, first + n).to_string().into())
        })
    }

    /// Creates one dataset outside the measurement and returns its pid.
    pub async fn create_one(&mut self, n: u64) -> Result<String, BenchError> {
        self.session.refresh().await?;
        let body = dataset(&self.shape, self.seed, n);
        let answer = self.session.send(Method::POST, "/api/v3/datasets", Some(&body)).await?;
        let created: Option<Value> = serde_json::from_slice(&answer.body).ok();
        match created.as_ref().and_then(|it| it["pid"].as_str()) {
            Some(pid) if answer.is_success() => Ok(pid.to_owned()),
            _ => Err(BenchError::Preparation {
                what: "a dataset".to_owned(),
                done: 0,
                wanted: 1,
                reason: answer.excerpt(),
            }),
        }
    }

    /// Adds a note to the report if the queries of this account cannot find the run's own datasets.
    pub async fn check_queries(&self, runner: &mut Runner) -> Result<(), BenchError> {
        let fields = json!({"mode": {}, "keywords": [self.shape.tag]}).to_string();
        let limits = json!({"skip": 0, "limit": 1}).to_string();
        let path =
            format!("/api/v3/datasets/fullquery?fields={}&limits={}", escaped(&fields), escaped(&limits));
        let answer = self.session.send(Method::GET, &path, None).await?;
        let rows: Option<Vec<Value>> = serde_json::from_slice(&answer.body).ok();
        if rows.is_none_or(|rows| rows.is_empty()) {
            runner.note(format!(
                "fullquery does not find the run's datasets ({}): its times are those of empty answers; is {} a group \
                 of {}?",
                answer.excerpt(),
                self.shape.owner_group,
                self.args.username
            ));
        }
        Ok(())
    }

    /// Deletes the run's data: the datasets it knows, then others with its keyword (creations whose answer
    /// was lost, ingested data). A refusal becomes a remark in the report.
    pub async fn clean(&mut self, runner: &mut Runner) -> Result<(), BenchError> {
        let tag = self.shape.tag.clone();
        if self.args.keep_data {
            runner.note(format!("the data was left in the server, as asked; it carries the keyword {tag}"));
            return Ok(());
        }
        let mut reason = String::new();
        let mut idle_rounds = 0;
        let mut paths = std::mem::take(&mut self.paths);
        loop {
            if !paths.is_empty() {
                let (n_deleted, failure) = self.delete(runner, paths).await?;
                idle_rounds = if n_deleted == 0 { idle_rounds + 1 } else { 0 };
                reason = failure;
            }
            if idle_rounds == ROUNDS_MAX {
                runner.note(format!(
                    "the data was not removed ({reason}): delete the datasets with the keyword {tag}, or give \
                     --delete-username an account that may"
                ));
                return Ok(());
            }
            paths = self.listed().await?;
            if paths.is_empty() {
                return Ok(());
            }
        }
    }

    async fn delete(&mut self, runner: &mut Runner, paths: Vec<String>) -> Result<(u64, String), BenchError> {
        if let Some(deleter) = &mut self.deleter {
            deleter.refresh().await?;
        }
        self.session.refresh().await?;
        let headers = self.deleter.as_ref().unwrap_or(&self.session).headers();
        let wanted = paths.len() as u64;
        let deleted = Arc::new(AtomicU64::new(0));
        let source: RequestSource = Arc::new(move |n| Request {
            method: Method::DELETE,
            ..Request::get(paths[n as usize % paths.len()].clone(), &headers)
        });
        let flow = Flow {
            sink: Some({
                let deleted = Arc::clone(&deleted);
                Arc::new(move |_n, answer: &Answer| {
                    deleted.fetch_add(u64::from(answer.is_success()), Ordering::Relaxed);
                })
            }),
            ..Flow::only("delete dataset", source)
        };
        let step =
            counted_step(&format!("deleting {wanted} datasets"), flow, self.args.prepare_connections, wanted);
        let record = runner.work(&step, wanted).await?;
        Ok((deleted.load(Ordering::Relaxed), most_frequent(&record.flows[0].messages)))
    }

    /// Paths of datasets that carry the run's keyword.
    async fn listed(&mut self) -> Result<Vec<String>, BenchError> {
        self.session.refresh().await?;
        let filter = json!({
            "where": {"keywords": self.shape.tag},
            "fields": ["pid"],
            "limits": {"limit": CLEAN_PAGE, "skip": 0},
        });
        let path = format!("/api/v3/datasets?filter={}", escaped(&filter.to_string()));
        let answer = self.session.send(Method::GET, &path, None).await?;
        let rows: Vec<Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
        let pids = rows.iter().filter_map(|row| row["pid"].as_str());
        Ok(pids.map(|pid| self.session.target.path(&dataset_path(pid))).collect())
    }
}

/// Returns the path of a dataset.
pub fn dataset_path(pid: &str) -> String {
    format!("/api/v3/datasets/{}", escaped(pid))
}

/// Returns the path of the dataset that an answer says was created.
fn path_of_created(answer: &Answer) -> Option<String> {
    if !answer.is_success() {
        return None;
    }
    let created: Value = serde_json::from_slice(&answer.body).ok()?;
    created["pid"].as_str().map(dataset_path)
}

/// Work that ends when `n` requests are done.
pub(super) fn counted_step(name: &str, flow: Flow, connections: usize, n: u64) -> Step {
    Step {
        name: name.to_owned(),
        labels: BTreeMap::new(),
        warmup: Duration::ZERO,
        measured: COUNTED_WORK_MAX,
        groups: vec![Group {
            name: String::new(),
            load: Load::closed(Loops::Together(n)),
            connections: connections.clamp(1, usize::try_from(n).unwrap_or(1).max(1)),
            work: Work::Mix(vec![flow]),
        }],
    }
}

/// Returns the failure that was reported most often.
pub(super) fn most_frequent(messages: &BTreeMap<String, u64>) -> String {
    messages.iter().max_by_key(|it| it.1).map_or("no failure was reported".to_owned(), |it| it.0.clone())
}

/// Returns the password from an option or from the environment.
fn password(
    username: &str,
    given: Option<String>,
    variable: &'static str,
    option: &'static str,
) -> Result<String, BenchError> {
    given.or_else(|| std::env::var(variable).ok()).ok_or_else(|| BenchError::NoPassword {
        username: username.to_owned(),
        variable,
        option,
    })
}

/// Cleans up after `outcome`, unless the server is gone. The first error is the one reported; cleaning is
/// done even after an interruption, and Ctrl-C can interrupt it again.
pub async fn clean_after(
    runner: &mut Runner,
    site: &mut Site,
    outcome: Result<(), BenchError>,
) -> Result<(), BenchError> {
    match outcome {
        Err(BenchError::ServerGone { .. } | BenchError::CannotConnect { .. }) => {
            runner.note(format!("the data was not removed; it carries the keyword {}", site.shape.tag));
            outcome
        }
        Err(BenchError::Interrupted) => {
            runner.note(format!(
                "interrupted before cleaning up: delete the datasets with the keyword {}",
                site.shape.tag
            ));
            outcome
        }
        other => {
            let cleaned = site.clean(runner).await;
            other.and(cleaned)
        }
    }
}
