//! The tenants of a run: their files and profiles, and the clean-up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::pass::{File, Imports, Profile, Upload};
use crate::client::{Answer, Request};
use crate::error::BenchError;
use crate::generate::marc::{MarcKind, record};
use crate::load::{Flow, Group, Load, Loops, Step, Work};
use crate::runner::{COUNTED_WORK_MAX, Runner};
use crate::scenario::folio::{FolioArgs, Session};
use crate::scenario::folio_import::arguments::FolioImportArgs;

/// Number of log entries that are read at once when cleaning up.
const LOG_PAGE: usize = 10_000;
/// The action of the matching profile for records that are not found.
const CREATE_ACTION: &str = "Default - Create MARC Authority";

/// The tenants of a run.
pub(super) struct Site {
    pub(super) tenants: Vec<Tenant>,
    /// Prefix of the names of the run's files and profiles.
    pub(super) tag: String,
    seed: u64,
    next_record: u64,
    n_files: u64,
    /// (tenant, job, upload definition) of all imports.
    imports: Vec<(usize, String, String)>,
    /// Paths of profiles that were created in the first tenant, in that order.
    made: Vec<String>,
}

/// One tenant: the session of its account, and the profile for imports.
pub(super) struct Tenant {
    pub(super) session: Session,
    profile: Profile,
}

impl Site {
    /// Logs in to every tenant and finds the profile.
    pub(super) async fn begin(runner: &Runner, args: &FolioImportArgs) -> Result<Self, BenchError> {
        let mut tenants = Vec::new();
        for name in std::iter::once(&args.folio.tenant).chain(&args.more_tenants) {
            let account = FolioArgs { tenant: name.clone(), ..args.folio.clone() };
            let session = Session::begin(&runner.target, &account).await?;
            let found = by_name(&session, "jobProfiles", &args.profile).await?;
            let profile = found.ok_or_else(|| BenchError::BadOption {
                option: "--profile",
                value: args.profile.clone(),
                reason: format!("tenant {name:?} has no job profile of this name"),
            })?;
            tenants.push(Tenant { session, profile: profile_of(&profile) });
        }
        let started = time::OffsetDateTime::now_utc().unix_timestamp();
        Ok(Self {
            tenants,
            tag: format!("pinakes-bench-{started:x}"),
            seed: args.common.seed,
            next_record: args.first_record,
            n_files: 0,
            imports: Vec::new(),
            made: Vec::new(),
        })
    }

    /// Returns a file of records that no import of this run has used yet, for the tenant at `at`.
    pub(super) fn upload(&mut self, at: usize, n_records: u64, profile: Option<&Profile>) -> Upload {
        let mut bytes = Vec::new();
        for n in self.next_record..self.next_record + n_records {
            bytes.extend_from_slice(&record(MarcKind::Authority, self.seed, n));
        }
        self.next_record += n_records;
        self.n_files += 1;
        let name = format!("{}-{}.mrc", self.tag, self.n_files);
        let tenant = &self.tenants[at];
        Upload {
            session: tenant.session.clone(),
            profile: profile.unwrap_or(&tenant.profile).clone(),
            file: File { name, bytes: bytes.into(), n_records },
        }
    }

    /// Creates the profile of the published report in the first tenant: records without a match in 010 $a are
    /// created.
    pub(super) async fn matching_profile(&mut self) -> Result<Profile, BenchError> {
        let session = self.tenants[0].session.clone();
        let found = by_name(&session, "actionProfiles", CREATE_ACTION).await?;
        let action = found.ok_or_else(|| missing(format!("the action profile {CREATE_ACTION:?}")))?;
        let part = |label: &str, value: &str| json!({"label": label, "value": value});
        let expression = json!({"dataValueType": "VALUE_FROM_RECORD", "fields": [
            part("field", "010"), part("indicator1", " "), part("indicator2", " "), part("recordSubfield", "a"),
        ]});
        let types = ("MARC_AUTHORITY", "MARC_AUTHORITY");
        let body = json!({"profile": {
            "name": format!("{} 010 $a", self.tag), "incomingRecordType": types.0, "existingRecordType": types.1,
            "matchDetails": [{
                "incomingRecordType": types.0, "existingRecordType": types.1, "matchCriterion": "EXACTLY_MATCHES",
                "incomingMatchExpression": expression, "existingMatchExpression": expression,
            }],
        }, "addedRelations": [], "deletedRelations": []});
        let matching = self.make(&session, "matchProfiles", &body).await?;
        let name = format!("{} new authorities", self.tag);
        let body = json!({"profile": {"name": name, "dataType": "MARC"}, "addedRelations": [
            {"masterProfileId": null, "masterProfileType": "JOB_PROFILE",
             "detailProfileId": matching, "detailProfileType": "MATCH_PROFILE", "order": 0},
            {"masterProfileId": matching, "masterProfileType": "MATCH_PROFILE",
             "detailProfileId": action["id"], "detailProfileType": "ACTION_PROFILE", "order": 0, "reactTo": "NON_MATCH"},
        ], "deletedRelations": []});
        let id = self.make(&session, "jobProfiles", &body).await?;
        Ok(Profile(json!({"id": id, "name": name, "dataType": "MARC"})))
    }

    async fn make(&mut self, session: &Session, list: &str, body: &Value) -> Result<String, BenchError> {
        let base = format!("/data-import-profiles/{list}");
        let id = session.create(&base, body).await?;
        self.made.push(format!("{base}/{id}"));
        Ok(id)
    }

    /// Remembers imports for cleaning up, whether or not they were seen to end.
    pub(super) fn remember(&mut self, imports: &Imports) {
        self.imports.extend(imports.begun());
    }

    /// Returns the number of authorities that the job at `tenant` says it has created.
    pub(super) async fn n_created(&self, tenant: usize, job: &str) -> Result<u64, BenchError> {
        let path = format!("/metadata-provider/jobSummary/{job}");
        let summary = self.tenants[tenant].session.get(&path).await?;
        Ok(summary["authoritySummary"]["totalCreatedEntities"].as_u64().unwrap_or(0))
    }

    /// Removes authorities, source records, jobs, upload definitions and profiles of the run; returns how many
    /// remain.
    pub(super) async fn clean(&self, runner: &mut Runner, connections: usize) -> Result<u64, BenchError> {
        let mut n_left = 0;
        for (tenant, job, definition) in &self.imports {
            let session = &self.tenants[*tenant].session;
            n_left += remove_authorities(runner, session, job, connections).await?;
            // Its source records go with it. A job that never ran has none.
            session.try_delete(&format!("/source-storage/snapshots/{job}")).await?;
            n_left += session.delete(&format!("/data-import/uploadDefinitions/{definition}")).await?;
            let body = json!({"ids": [job]});
            let answer = session.send(Method::DELETE, "/change-manager/jobExecutions", Some(&body)).await?;
            n_left += u64::from(!answer.is_success());
        }
        for path in self.made.iter().rev() {
            n_left += self.tenants[0].session.delete(path).await?;
        }
        Ok(n_left)
    }
}

fn missing(what: String) -> BenchError {
    let reason = "the tenant has none; was its reference data loaded?".to_owned();
    BenchError::Preparation { what, done: 0, wanted: 1, reason }
}

fn profile_of(found: &Value) -> Profile {
    Profile(json!({"id": found["id"], "name": found["name"], "dataType": found["dataType"]}))
}

/// Returns a profile by its name. All are listed, as the published script does.
async fn by_name(session: &Session, list: &str, name: &str) -> Result<Option<Value>, BenchError> {
    let page = session.get(&format!("/data-import-profiles/{list}?limit=5000")).await?;
    Ok(page[list].as_array().into_iter().flatten().find(|it| it["name"] == name).cloned())
}

/// Deletes the authorities that the log of `job` names; returns how many remain.
async fn remove_authorities(
    runner: &mut Runner,
    session: &Session,
    job: &str,
    connections: usize,
) -> Result<u64, BenchError> {
    let mut paths = Vec::new();
    loop {
        let page = format!("/metadata-provider/jobLogEntries/{job}?limit={LOG_PAGE}&offset={}", paths.len());
        let page = session.get(&page).await?;
        let entries = page["entries"].as_array().map_or(&[][..], Vec::as_slice);
        let ids = entries.iter().flat_map(|it| it["relatedAuthorityInfo"]["idList"].as_array());
        let before = paths.len();
        paths.extend(
            ids.flatten()
                .filter_map(Value::as_str)
                .map(|id| session.path(&format!("/authority-storage/authorities/{id}"))),
        );
        if entries.len() < LOG_PAGE || paths.len() == before {
            break;
        }
    }
    let wanted = paths.len() as u64;
    if wanted == 0 {
        return Ok(0);
    }
    let (headers, n_gone) = (session.headers(), Arc::new(AtomicU64::new(0)));
    let mut flow = Flow::only(
        "delete authority",
        Arc::new(move |n| {
            let path = paths[usize::try_from(n).unwrap_or(0) % paths.len()].clone();
            Request { method: Method::DELETE, also_fine: Some(404), ..Request::get(path, &headers) }
        }),
    );
    let gone = Arc::clone(&n_gone);
    flow.sink = Some(Arc::new(move |_, answer: &Answer| {
        gone.fetch_add(u64::from(answer.is_success()), Ordering::Relaxed);
    }));
    let step = Step {
        name: format!("deleting {wanted} authorities"),
        labels: BTreeMap::new(),
        warmup: Duration::ZERO,
        measured: COUNTED_WORK_MAX,
        groups: vec![Group {
            name: String::new(),
            load: Load::closed(Loops::Together(wanted)),
            connections: connections.max(1),
            work: Work::Mix(vec![flow]),
        }],
    };
    runner.work(&step, wanted).await?;
    Ok(wanted - n_gone.load(Ordering::Relaxed).min(wanted))
}
