//! Workflows: steps before or after the publication of a dataset (`/api/admin/workflows`).
//!
//! A step writes to the log, waits for a message to resume, or sends a request to another program and waits for its
//! response (`POST /api/workflows/{invocation}`). The dataset is locked while a workflow is in progress.

pub(crate) mod admin;
pub(crate) mod remote;
pub(crate) mod run;
pub(crate) mod step;

use pinakes_store::{Column, Index, Kind, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::stored;
use step::Step;

/// Workflows by number: body is a [`Workflow`].
pub(crate) static WORKFLOW: Kind = Kind::named("dataverse_workflow");
/// The workflow of each trigger, by the trigger's name: body `{"workflow": 7}`.
pub(crate) static TRIGGERED: Kind = Kind::named("dataverse_workflow_trigger");
/// Workflows that are waiting, by an id that cannot be guessed: body is an [`Invocation`].
pub(crate) static INVOCATION: Kind = Kind {
    columns: &[Column::one("dataset", Type::Integer)],
    indexes: &[Index::on(&["dataset"])],
    ..Kind::named("dataverse_workflow_invocation")
};

/// A workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Workflow {
    /// Number.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

/// When a workflow starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Trigger {
    /// A user publishes a dataset: it is published when the workflow has ended.
    PrePublishDataset,
    /// A dataset was published.
    PostPublishDataset,
}

impl Trigger {
    const ALL: [Self; 2] = [Self::PrePublishDataset, Self::PostPublishDataset];

    fn name(self) -> &'static str {
        match self {
            Self::PrePublishDataset => "PrePublishDataset",
            Self::PostPublishDataset => "PostPublishDataset",
        }
    }

    /// Parses a trigger. Errors: 400 that lists the triggers.
    fn parse(text: &str) -> Result<Self, ApiError> {
        Self::ALL.into_iter().find(|it| it.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            ApiError::bad_request(format!("Unknown trigger type '{text}'. Valid triggers are: [{names}]"))
        })
    }
}

/// A workflow that is waiting at one of its steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Invocation {
    /// Id.
    pub id: String,
    /// Number of the workflow.
    pub workflow: i64,
    /// The trigger that started it.
    pub trigger: Trigger,
    /// Index of the current step, from 0.
    pub step: usize,
    /// The dataset.
    pub dataset: i64,
    /// Whether it is about a minor version.
    pub is_minor: bool,
    /// The user who published.
    pub user: i64,
}

impl Workflow {
    fn json(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "steps": self.steps.iter().map(Step::json).collect::<Vec<_>>(),
        })
    }

    fn brief(&self) -> Value {
        json!({"id": self.id, "name": self.name})
    }
}

/// Returns the workflow with that number.
fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Workflow>, ApiError> {
    stored::get(view, &WORKFLOW, &id.to_string())
}

/// Returns the workflow that a trigger starts.
fn of_trigger(view: &mut View<'_>, trigger: Trigger) -> Result<Option<Workflow>, ApiError> {
    let Some(record) = view.get(&TRIGGERED, trigger.name())? else { return Ok(None) };
    match record.json()?["workflow"].as_i64() {
        Some(id) => by_id(view, id),
        None => Ok(None),
    }
}
