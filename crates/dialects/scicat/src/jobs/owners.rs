//! Who owns a new job, and whose rights apply to its datasets. Admins and the groups that may create any job can name
//! any owner, or none; other callers own their jobs themselves, with one of their groups.

use std::collections::HashSet;
use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_accounts::{Caller, user};
use pinakes_store::{Expr, MemberFilter, Query, Record, Value as Condition, View};
use serde_json::{Map, Value};

use super::rules::{self, Dataset};
use crate::app::Asker;
use crate::datasets::forms::Api;
use crate::documents::text;
use crate::error::ScicatError;
use crate::jobs::actions::JobType;
use crate::kinds::ORIG_DATABLOCK;
use crate::rights::Rights;
use crate::settings::Settings;

/// The owner of a new job.
#[derive(Debug, Clone, Default)]
pub(super) struct Owner {
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    pub(super) email: Option<String>,
}

/// The caller who asks for a job.
#[derive(Clone)]
pub(super) struct Applicant {
    rights: Rights,
    /// May create jobs for anyone, with the rights of the owner that the job names.
    is_privileged: bool,
    everyone: Vec<String>,
}

impl Applicant {
    pub(super) fn of(settings: &Settings, asker: &Asker, everyone: &[String]) -> Self {
        let is_privileged = asker.caller().is_in_any(&settings.create_job_privileged_groups);
        Self { rights: asker.rights.clone(), is_privileged, everyone: everyone.to_vec() }
    }

    fn caller(&self) -> &Caller {
        self.rights.caller()
    }

    /// Returns the user of that name, with the groups that count.
    fn user(&self, view: &mut View<'_>, name: &str) -> Result<Option<Caller>, ScicatError> {
        if self.caller().username() == Some(name) {
            return Ok(Some(self.caller().clone()));
        }
        let named = Query::filter(Expr::Is("username".into(), Condition::Text(name.to_owned()))).window(0, 1);
        let found = user::find(view, &named)?.into_iter().next();
        Ok(found.map(|it| Caller::of(it, &self.everyone)))
    }

    /// Determines the owner of the job, and whether the applicant may create it. In v3 the owner's group may be derived
    /// from the datasets.
    ///
    /// Errors: 403 and 422 in shape E2.
    pub(super) fn admit(
        &self,
        view: &mut View<'_>,
        job_type: &JobType,
        job: &Map<String, Value>,
        datasets: &[Dataset],
        api: Api,
    ) -> Result<Owner, ScicatError> {
        let given = |name: &str| Some(text(job, name)).filter(|it| !it.is_empty()).map(str::to_owned);
        let mut wished =
            Owner { user: given("ownerUser"), group: given("ownerGroup"), email: given("contactEmail") };
        if api == Api::V3 {
            wished.user = username_of_v3(job).or_else(|| self.caller().username().map(str::to_owned));
        }
        let named = match &wished.user {
            Some(name) => self.user(view, name)?,
            None => None,
        };
        if api == Api::V3 && !self.caller().is_anonymous() && wished.group.is_none() {
            wished.group = self.group_of_v3(job_type, named.as_ref(), datasets);
        }
        let owner = self.owner(wished, named.as_ref())?;
        let judge = self.judge(&owner, named);
        self.require_type(job_type, judge.as_ref(), datasets)?;
        Ok(owner)
    }

    fn owner(&self, wished: Owner, named: Option<&Caller>) -> Result<Owner, ScicatError> {
        let refused = |message: &str| Err(ScicatError::short(StatusCode::FORBIDDEN, message));
        let email_of = |caller: &Caller| caller.user.as_deref().and_then(|it| it.email.clone());
        let caller = self.caller();
        if caller.is_anonymous() {
            if wished.user.is_some() || wished.group.is_some() {
                return refused(
                    "Invalid new job. Unauthenticated user cannot initiate a job owned by another user.",
                );
            }
            return Ok(wished);
        }
        if self.rights.is_admin || self.is_privileged {
            let email = match (&wished.email, &wished.user, &wished.group) {
                (Some(given), _, _) => Some(given.clone()),
                (None, Some(_), _) => named.and_then(email_of),
                (None, None, Some(_)) => email_of(caller),
                (None, None, None) => {
                    return Err(ScicatError::short(
                        StatusCode::UNPROCESSABLE_ENTITY,
                        "Contact email should be specified for an anonymous job.",
                    ));
                }
            };
            return Ok(Owner { email, ..wished });
        }
        let Some(group) = wished.group else {
            return refused("Invalid new job. Owner group should be specified.");
        };
        if wished.user.as_deref().is_some_and(|it| caller.username() != Some(it)) {
            return refused("Invalid new job. User owning the job should match user logged in.");
        }
        if !caller.is_in(&group) {
            return refused("Invalid new job. User needs to belong to job owner group.");
        }
        let user = caller.username().map(str::to_owned);
        Ok(Owner { user, group: Some(group), email: wished.email.or_else(|| email_of(caller)) })
    }

    /// Returns whose rights apply to the datasets; with `None`, only public ones are accessible.
    fn judge(&self, owner: &Owner, named: Option<Caller>) -> Option<Judge> {
        if self.rights.is_admin {
            return Some(Judge::Anything);
        }
        if !self.is_privileged {
            return (!self.caller().is_anonymous()).then(|| Judge::Rights(self.rights.clone()));
        }
        match (&owner.user, &owner.group) {
            (Some(_), _) => named.map(|it| Judge::Groups(it.groups.to_vec())),
            (None, Some(group)) => Some(Judge::Groups(vec![group.clone()])),
            (None, None) => None,
        }
    }

    fn require_type(
        &self,
        job_type: &JobType,
        judge: Option<&Judge>,
        datasets: &[Dataset],
    ) -> Result<(), ScicatError> {
        let sees = |it: &Dataset| it.is_published() || judge.is_some_and(|judge| judge.sees(it));
        let owns = |it: &Dataset| judge.is_some_and(|judge| judge.owns(it));
        let is_public = |it: &Dataset| it.is_published() || matches!(judge, Some(Judge::Anything));
        let are_accessible = match job_type.create_auth.as_str() {
            "#datasetPublic" => datasets.iter().all(is_public),
            "#datasetAccess" => datasets.iter().all(sees),
            "#datasetOwner" => datasets.iter().all(owns),
            _ => true,
        };
        if !are_accessible {
            let message = "User does not have access to all datasets, cannot create job.";
            return Err(ScicatError::short(StatusCode::FORBIDDEN, message));
        }
        let is_allowed = self.rights.is_admin
            || self.is_privileged
            || match job_type.create_auth.as_str() {
                "#all" | "#datasetPublic" | "#datasetAccess" => true,
                "#datasetOwner" | "#authenticated" => !self.caller().is_anonymous(),
                other => rules::is_named(other, &self.rights),
            };
        if is_allowed { Ok(()) } else { Err(ScicatError::forbidden("Unauthorized to create this job.")) }
    }

    /// Returns the group of a job created through v3: a group of its datasets to which the owner belongs.
    fn group_of_v3(
        &self,
        job_type: &JobType,
        named: Option<&Caller>,
        datasets: &[Dataset],
    ) -> Option<String> {
        let own: &[String] = named.map_or(&[], |it| &it.groups);
        let is_own = |it: &&String| self.rights.is_admin || own.contains(it);
        match job_type.create_auth.as_str() {
            "#datasetOwner" => {
                let first = datasets.first()?.owner_group()?;
                let is_common = datasets.iter().all(|it| it.owner_group() == Some(first));
                Some(first.to_owned()).filter(|it| is_common && is_own(&it))
            }
            "#datasetAccess" => {
                let mut private = datasets.iter().filter(|it| !it.is_published());
                let Some(first) = private.next() else { return own.first().cloned() };
                let mut common = first.groups();
                private.for_each(|it| {
                    let groups = it.groups();
                    common.retain(|group| groups.contains(group));
                });
                common.iter().find(is_own).cloned()
            }
            _ if self.rights.is_admin || self.is_privileged => None,
            _ => {
                let of_datasets = datasets.iter().filter_map(|it| it.owner_group().map(str::to_owned));
                of_datasets.into_iter().find(|it| own.contains(it)).or_else(|| own.first().cloned())
            }
        }
    }
}

/// Returns `jobParams.username` of v3.
fn username_of_v3(job: &Map<String, Value>) -> Option<String> {
    let name = job.get("jobParams")?.get("username")?.as_str()?;
    Some(name.to_owned()).filter(|it| !it.is_empty())
}

/// Whose access rights to datasets apply.
enum Judge {
    Anything,
    Rights(Rights),
    Groups(Vec<String>),
}

impl Judge {
    fn sees(&self, dataset: &Dataset) -> bool {
        match self {
            Self::Anything => true,
            Self::Rights(rights) => rights.may_read(&dataset.class),
            Self::Groups(groups) => dataset.groups().iter().any(|it| groups.contains(it)),
        }
    }

    fn owns(&self, dataset: &Dataset) -> bool {
        match self {
            Self::Anything => true,
            Self::Rights(rights) => rights.owns(&dataset.class),
            Self::Groups(groups) => {
                dataset.owner_group().is_some_and(|it| groups.iter().any(|group| group == it))
            }
        }
    }
}

/// Refuses a job for files that its datasets do not contain.
///
/// Errors: 422 in shape E1.
pub(super) fn require_files(
    view: &mut View<'_>,
    wanted: &[(String, Vec<String>)],
) -> Result<(), ScicatError> {
    for (pid, files) in wanted.iter().filter(|it| !it.1.is_empty()) {
        let mut missing: HashSet<&str> = files.iter().map(String::as_str).collect();
        for block in view.find(&ORIG_DATABLOCK, &crate::datasets::include::of_dataset(pid))? {
            cross_off(view, &block, &mut missing)?;
            if missing.is_empty() {
                break;
            }
        }
        if !missing.is_empty() {
            let message = "At least one requested file could not be found.";
            return Err(ScicatError::with(StatusCode::UNPROCESSABLE_ENTITY, message));
        }
    }
    Ok(())
}

/// The path of a file.
const PATH: &str = "path";

/// Removes the paths of a block's files from the missing ones.
fn cross_off(view: &mut View<'_>, block: &Record, missing: &mut HashSet<&str>) -> Result<(), ScicatError> {
    let files = MemberFilter::new(Expr::All, &[PATH.into()]);
    let crossed = view.each_member(&ORIG_DATABLOCK, block, &files, |_, file| {
        missing.remove(file.get(PATH).and_then(Value::as_str).unwrap_or_default());
        if missing.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Ok(crossed.map(|_| ())?)
}
