//! Workflows: steps that are taken before a dataset is published, or after that (`/api/admin/workflows`).
//!
//! There are steps that are logged, steps that wait until somebody says how to go on, and steps that send a request to another
//! program and wait for its word (`POST /api/workflows/{invocation}`). The dataset is locked as long as a workflow is under way.

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
/// Workflows under way that wait, by an id that cannot be guessed: body is a [`Invocation`].
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
    /// What is done, in this order.
    pub steps: Vec<Step>,
}

/// When workflows begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Trigger {
    /// Somebody publishes a dataset: it is published when the workflow has ended.
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

    /// Errors: 400, which says which triggers there are.
    fn parse(text: &str) -> Result<Self, ApiError> {
        Self::ALL.into_iter().find(|it| it.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            ApiError::bad_request(format!("Unknown trigger type '{text}'. Valid triggers are: [{names}]"))
        })
    }
}

/// A workflow that waits at one of its steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Invocation {
    /// Id.
    pub id: String,
    /// Number of the workflow.
    pub workflow: i64,
    /// What began it.
    pub trigger: Trigger,
    /// Which step it is at, from 0.
    pub step: usize,
    /// The dataset.
    pub dataset: i64,
    /// Whether a minor version is released.
    pub is_minor: bool,
    /// Who published it.
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

/// Returns the workflow of that number.
fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Workflow>, ApiError> {
    stored::get(view, &WORKFLOW, &id.to_string())
}

/// Returns the workflow that a trigger begins.
fn of_trigger(view: &mut View<'_>, trigger: Trigger) -> Result<Option<Workflow>, ApiError> {
    let Some(record) = view.get(&TRIGGERED, trigger.name())? else { return Ok(None) };
    match record.json()?["workflow"].as_i64() {
        Some(id) => by_id(view, id),
        None => Ok(None),
    }
}
