//! Publication of datasets, with the workflows before and after it.
//!
//! A workflow runs in the transaction that publishes or resumes it, up to the next step that waits. Requests of steps
//! are sent after the transaction; if that fails, a second transaction ends the workflow. So every stored state is a
//! waiting one.

use std::sync::Arc;

use http::StatusCode;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use super::remote::{self, Sending};
use super::step::{StepType, Variables};
use super::{INVOCATION, Invocation, Trigger, Workflow, admin, by_id, of_trigger};
use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::citation::Cited;
use crate::datasets::publish::{self, Release};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, Lock, show, version};
use crate::error::{Answer, ApiError};
use crate::ids::Ids;
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::users::{self, User};
use crate::{changes, envelope, stored};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/datasets/{id}/actions/:publish", publish_dataset)
        .get("/datasets/{id}/actions/:publish", publish_dataset)
        .post("/workflows/{id}", resume)
}

/// The lock of a dataset with a workflow in progress.
const LOCK: &str = "Workflow";
/// Maximum number of steps that are rolled back by a request.
const UNDONE: usize = 100;

/// What is left to do after a transaction.
#[derive(Debug, Default)]
struct Progress {
    /// The request to send now, with the id of its invocation.
    send: Option<(String, Sending)>,
    /// The requests that roll back the steps of a failed workflow.
    undo: Vec<Sending>,
}

/// The context of one transaction.
struct Context<'a> {
    app: &'a Dataverse,
    asker: &'a Asker,
    /// Numbers for notifications of the publication.
    numbers: Ids,
    /// Numbers for notifications of workflows.
    notices: Ids,
    /// Ids for new invocations.
    names: [String; 2],
}

/// Numbers that one request reserves for notifications of workflows.
const NOTICES: i64 = 4;

/// What a transaction needs; copied for each run, so that it can be repeated.
#[derive(Clone)]
struct Prepared {
    app: Dataverse,
    numbers: Ids,
    notices: Ids,
    names: [String; 2],
}

impl Prepared {
    async fn of(call: &Call) -> Result<Self, ApiError> {
        let name = || uuid::Uuid::new_v4().to_string();
        Ok(Self {
            app: call.app.clone(),
            numbers: call.ids(publish::NOTICES).await?,
            notices: call.ids(NOTICES).await?,
            names: [name(), name()],
        })
    }

    fn context<'a>(&'a self, asker: &'a Asker) -> Context<'a> {
        let Self { app, numbers, notices, names } = self;
        Context { app, asker, numbers: *numbers, notices: *notices, names: names.clone() }
    }
}

/// Result of a request to publish.
pub(crate) struct Published {
    /// The dataset.
    pub(crate) dataset: Dataset,
    /// Whether a workflow runs before the publication, which may still be in progress.
    pub(crate) has_workflow: bool,
}

/// Publishes a dataset for the caller, or starts the workflow that runs before that.
pub(crate) async fn publish(call: &Call, wanted: Wanted, kind: Release) -> Result<Published, ApiError> {
    let (asker, prepared) = (call.asker.clone(), Prepared::of(call).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<(Published, Progress), ApiError> {
        let dataset = wanted.find(txn)?;
        let mut context = prepared.context(&asker);
        // A correction of the published version starts no workflow.
        let before = match kind {
            Release::UpdateCurrent => None,
            _ => of_trigger(txn, Trigger::PrePublishDataset)?,
        };
        let has_workflow = before.is_some();
        let (dataset, progress) = match before {
            Some(workflow) => {
                publish::check(txn, &asker, &dataset, kind)?;
                let id = dataset.id;
                let is_minor = kind == Release::Minor;
                let trigger = Trigger::PrePublishDataset;
                let progress = begin(txn, &mut context, dataset, &workflow, trigger, is_minor)?;
                (Wanted::number(id).find(txn)?, progress)
            }
            None => released(txn, &mut context, dataset, kind)?,
        };
        Ok((Published { dataset, has_workflow }, progress))
    };
    let (published, progress) = call.db().write(write).await?;
    if let Some(ended) = carry_out(call, progress).await? {
        return Ok(Published { dataset: ended, ..published });
    }
    Ok(published)
}

/// Releases a draft, and starts the workflow that follows.
fn released(
    txn: &mut Txn<'_>,
    context: &mut Context<'_>,
    dataset: Dataset,
    kind: Release,
) -> Result<(Dataset, Progress), ApiError> {
    let dataset = publish::release_in(txn, context.app, context.asker, dataset, kind, context.numbers)?;
    let after = match kind {
        Release::UpdateCurrent => None,
        _ => of_trigger(txn, Trigger::PostPublishDataset)?,
    };
    let Some(workflow) = after else { return Ok((dataset, Progress::default())) };
    let (id, is_minor) = (dataset.id, kind == Release::Minor);
    let progress = begin(txn, context, dataset, &workflow, Trigger::PostPublishDataset, is_minor)?;
    Ok((Wanted::number(id).find(txn)?, progress))
}

/// Locks a dataset and runs the first steps of a workflow.
fn begin(
    txn: &mut Txn<'_>,
    context: &mut Context<'_>,
    mut dataset: Dataset,
    workflow: &Workflow,
    trigger: Trigger,
    is_minor: bool,
) -> Result<Progress, ApiError> {
    let user = context.asker.user()?;
    dataset.locks.push(Lock::new(LOCK, &user.name, context.app.now_ms()));
    datasets::put(txn, &dataset)?;
    changes::dataset(txn, context.app, dataset.id)?;
    let place = usize::from(trigger == Trigger::PostPublishDataset);
    let invocation = Invocation {
        id: context.names[place].clone(),
        workflow: workflow.id,
        trigger,
        step: 0,
        dataset: dataset.id,
        is_minor,
        user: user.id,
    };
    go_on(txn, context, workflow, invocation)
}

/// Runs the steps of a workflow until one waits, or all are done.
fn go_on(
    txn: &mut Txn<'_>,
    context: &mut Context<'_>,
    workflow: &Workflow,
    mut invocation: Invocation,
) -> Result<Progress, ApiError> {
    while let Some(step) = workflow.steps.get(invocation.step) {
        if step.step_type == StepType::Log {
            tracing::info!(
                workflow = workflow.name,
                dataset = invocation.dataset,
                parameters = ?step.parameters,
                "a step of a workflow"
            );
            invocation.step += 1;
            continue;
        }
        stored::put(txn, &INVOCATION, &invocation.id, &invocation)?;
        tracing::info!(
            invocation = invocation.id,
            workflow = workflow.name,
            dataset = invocation.dataset,
            "a workflow waits"
        );
        let variables = variables(txn, &invocation)?;
        let send = step.sending(&variables, false).map(|it| (invocation.id, it));
        return Ok(Progress { send, ..Progress::default() });
    }
    let dataset = unlocked(txn, context.app, &invocation)?;
    tell(txn, context, &invocation, &dataset, "WORKFLOW_SUCCESS")?;
    if invocation.trigger == Trigger::PostPublishDataset {
        return Ok(Progress::default());
    }
    let kind = if invocation.is_minor { Release::Minor } else { Release::Major };
    Ok(released(txn, context, dataset, kind)?.1)
}

/// Ends an invocation. Returns its dataset, unlocked.
fn unlocked(txn: &mut Txn<'_>, app: &Dataverse, invocation: &Invocation) -> Result<Dataset, ApiError> {
    txn.delete(&INVOCATION, &invocation.id)?;
    let mut dataset = Wanted::number(invocation.dataset).find(txn)?;
    if let Some(at) = dataset.locks.iter().position(|it| it.lock_type == LOCK) {
        dataset.locks.remove(at);
    }
    datasets::put(txn, &dataset)?;
    changes::dataset(txn, app, dataset.id)?;
    Ok(dataset)
}

/// Notifies the publishing user how a workflow ended.
fn tell(
    txn: &mut Txn<'_>,
    context: &mut Context<'_>,
    invocation: &Invocation,
    dataset: &Dataset,
    kind: &'static str,
) -> Result<(), ApiError> {
    let notice = Notice::of(kind).with("datasetPersistentIdentifier", dataset.pid.as_str());
    notifications::send(txn, context.notices.next()?, &context.app.now(), invocation.user, notice)
}

/// Ends a failed workflow; its completed steps are to be rolled back, the last one first.
fn fail(
    txn: &mut Txn<'_>,
    context: &mut Context<'_>,
    invocation: &Invocation,
    reason: &str,
) -> Result<Progress, ApiError> {
    tracing::warn!(workflow = invocation.workflow, dataset = invocation.dataset, reason, "a workflow failed");
    let variables = variables(txn, invocation)?;
    let workflow = by_id(txn, invocation.workflow)?;
    let taken = workflow.as_ref().map(|it| it.steps.as_slice()).unwrap_or_default();
    let taken = taken.iter().take(invocation.step).rev();
    let undo = taken.filter_map(|it| it.sending(&variables, true)).take(UNDONE).collect();
    let dataset = unlocked(txn, context.app, invocation)?;
    tell(txn, context, invocation, &dataset, "WORKFLOW_FAILURE")?;
    Ok(Progress { undo, ..Progress::default() })
}

/// Returns the variables of steps, about the dataset and the version being published.
fn variables(view: &mut View<'_>, invocation: &Invocation) -> Result<Variables, ApiError> {
    let dataset = Wanted::number(invocation.dataset).find(view)?;
    let last = dataset.last.as_ref();
    let (major, minor) = match (invocation.trigger, last) {
        (Trigger::PostPublishDataset, Some(it)) => (it.number, it.minor),
        (_, Some(it)) if invocation.is_minor => (it.number, it.minor + 1),
        (_, it) => (it.map_or(0, |it| it.number) + 1, 0),
    };
    let newest =
        dataset.draft.as_ref().map(|it| it.version).or(last.map(|it| it.version)).unwrap_or_default();
    let version = version::of_dataset(view, &dataset, newest)?;
    let publisher = show::publisher(view)?;
    Ok(vec![
        ("invocationId", invocation.id.clone()),
        ("dataset.id", dataset.id.to_string()),
        ("dataset.identifier", dataset.identifier.clone()),
        ("dataset.globalId", dataset.pid.clone()),
        ("dataset.displayName", version::title_of(&version)),
        ("dataset.citation", Cited::of(&dataset, &version, &publisher).text()),
        ("majorVersion", major.to_string()),
        ("minorVersion", minor.to_string()),
        ("releaseStatus", "false".to_owned()),
    ])
}

/// Sends the requests that a transaction left. If the request of a waiting step fails, ends the workflow, and returns
/// the dataset in its state after that.
async fn carry_out(call: &Call, progress: Progress) -> Result<Option<Dataset>, ApiError> {
    take_back(&progress.undo).await;
    let Some((id, sending)) = progress.send else { return Ok(None) };
    let Err(reason) = remote::send(&sending).await else { return Ok(None) };
    let prepared = Prepared::of(call).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Option<(Dataset, Progress)>, ApiError> {
        let Some(invocation) = stored::get::<Invocation>(txn, &INVOCATION, &id)? else { return Ok(None) };
        let asker = Asker::default();
        let progress = fail(txn, &mut prepared.context(&asker), &invocation, &reason)?;
        Ok(Some((Wanted::number(invocation.dataset).find(txn)?, progress)))
    };
    let Some((dataset, progress)) = call.db().write(write).await? else { return Ok(None) };
    take_back(&progress.undo).await;
    Ok(Some(dataset))
}

async fn take_back(undo: &[Sending]) {
    for it in undo {
        if let Err(reason) = remote::send(it).await {
            tracing::warn!(reason, "a step of a workflow was not rolled back");
        }
    }
}

/// `POST …/actions/:publish?type=`: 200 if the dataset is published, 202 if a workflow runs before the publication.
async fn publish_dataset(call: Call) -> Answer {
    let kind = publish::kind_of(&call)?;
    let Published { dataset, has_workflow } = publish(&call, Wanted::of(&call)?, kind).await?;
    let app = call.app.clone();
    let read = move |view: &mut View<'_>| show::dataset_map(view, &app, &dataset);
    let json = Value::Object(call.db().read(Weight::Point, read).await?);
    if has_workflow {
        let answer = json!({"status": "WORKFLOW_IN_PROGRESS", "data": json});
        return Ok(envelope::raw_json(StatusCode::ACCEPTED, &answer));
    }
    if kind == Release::UpdateCurrent {
        let details = "The published version of your Dataset has been updated.";
        let answer = json!({"status": "OK", "status_details": details, "data": json});
        return Ok(envelope::raw_json(StatusCode::OK, &answer));
    }
    envelope::ok(json)
}

/// Checks that the caller may resume workflows: from a listed address, or as a superuser. A loopback address only
/// covers programs on this machine, not clients of a proxy that runs on it. Errors: 401.
async fn check_address(call: &Call) -> Result<(), ApiError> {
    if call.asker.is_superuser() {
        return Ok(());
    }
    let listed = call.db().read(Weight::Point, admin::addresses).await?;
    let is_listed = call.asker.peer.is_some_and(|peer| {
        let is_near =
            !peer.is_loopback() || pinakes_http::is_of_this_machine(Some(peer), call.version, &call.headers);
        is_near && listed.split(';').any(|it| it.trim().parse() == Ok(peer))
    });
    if is_listed {
        return Ok(());
    }
    Err(ApiError::unauthorized(
        "Sorry, your IP address is not authorized to send resume requests. Please contact an admin.",
    ))
}

/// Returns the publishing user, unless they were deactivated.
fn publisher(view: &mut View<'_>, invocation: &Invocation) -> Result<Option<User>, ApiError> {
    Ok(users::by_id(view, invocation.user)?.filter(|it| !it.deactivated))
}

/// `POST /workflows/{invocation}`: the message that a step waits for. Answers 202, whatever becomes of the workflow.
async fn resume(mut call: Call) -> Answer {
    check_address(&call).await?;
    let word = call.text().await?;
    let (id, prepared) = (call.param("id").to_owned(), Prepared::of(&call).await?);
    let missing =
        ApiError::not_found(format!("Cannot find workflow invocation with id {}", call.param("id")));
    let wanted = id.clone();
    let read = move |view: &mut View<'_>| stored::get::<Invocation>(view, &INVOCATION, &wanted);
    let invocation = call.db().read(Weight::Point, read).await?.ok_or(missing)?;
    let dataset = invocation.dataset;
    let (heard, again) = (id.clone(), prepared.clone());
    let write = move |txn: &mut Txn<'_>| -> Result<Progress, ApiError> {
        let Some(mut invocation) = stored::get::<Invocation>(txn, &INVOCATION, &heard)? else {
            return Ok(Progress::default());
        };
        if datasets::by_id(txn, invocation.dataset)?.is_none() {
            txn.delete(&INVOCATION, &heard)?;
            return Ok(Progress::default());
        }
        let workflow = by_id(txn, invocation.workflow)?;
        let step = workflow.as_ref().and_then(|it| it.steps.get(invocation.step));
        let verdict = step.map_or_else(|| Err("The workflow is gone.".to_owned()), |it| it.resumed(&word));
        let user = publisher(txn, &invocation)?;
        let asker = Asker { user: user.map(Arc::new), ..Asker::default() };
        let mut context = prepared.context(&asker);
        match (verdict, workflow) {
            (Ok(()), Some(workflow)) => {
                invocation.step += 1;
                go_on(txn, &mut context, &workflow, invocation)
            }
            (verdict, _) => fail(txn, &mut context, &invocation, &verdict.err().unwrap_or_default()),
        }
    };
    let progress = match call.db().write(write).await {
        Err(error) if !error.status.is_server_error() => {
            // The dataset can no longer be published: the workflow fails.
            let reason = error.message;
            let write = move |txn: &mut Txn<'_>| -> Result<Progress, ApiError> {
                let Some(invocation) = stored::get::<Invocation>(txn, &INVOCATION, &id)? else {
                    return Ok(Progress::default());
                };
                let asker = Asker::default();
                fail(txn, &mut again.context(&asker), &invocation, &reason)
            };
            call.db().write(write).await?
        }
        other => other?,
    };
    carry_out(&call, progress).await?;
    let place = format!("/api/datasets/{dataset}");
    Ok(pinakes_http::answer::bytes(StatusCode::ACCEPTED, envelope::TEXT, place))
}
