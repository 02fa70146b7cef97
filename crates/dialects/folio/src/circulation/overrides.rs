//! Blocks that a person at the desk may pass over: what the request asks for, and who may.

use serde_json::{Map, Value, json};

use super::moment;
use crate::platform::app::Call;
use crate::platform::error::{Fault, FolioError};
use crate::platform::permissions;
use jiff::Timestamp;

/// A block that can be passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    Patron,
    ItemLimit,
    NotLoanable,
    Renewal,
    RenewalDueDate,
}

impl Block {
    const ALL: [Self; 5] =
        [Self::Patron, Self::ItemLimit, Self::NotLoanable, Self::Renewal, Self::RenewalDueDate];

    /// Its name in requests and answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Patron => "patronBlock",
            Self::ItemLimit => "itemLimitBlock",
            Self::NotLoanable => "itemNotLoanableBlock",
            Self::Renewal => "renewalBlock",
            Self::RenewalDueDate => "renewalDueDateRequiredBlock",
        }
    }

    /// What passing over it needs.
    pub(crate) fn permission(self) -> &'static str {
        match self {
            Self::Patron => "circulation.override-patron-block.post",
            Self::ItemLimit => "circulation.override-item-limit-block.post",
            Self::NotLoanable => "circulation.override-item-not-loanable-block.post",
            Self::Renewal | Self::RenewalDueDate => "circulation.override-renewal-block.post",
        }
    }

    /// What a refusal says of it: its name, and the permissions that the caller lacks.
    pub(crate) fn described(self, may: &[Self]) -> Value {
        let missing: Vec<&str> = if may.contains(&self) { Vec::new() } else { vec![self.permission()] };
        json!({"name": self.name(), "missingPermissions": missing})
    }
}

/// What a request passes over, and what its caller may.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    asked: Map<String, Value>,
    may: Vec<Block>,
}

impl Overrides {
    /// From `overrideBlocks` of a request.
    ///
    /// Errors: 422 for what the caller may not, or without a comment.
    pub(crate) fn of(call: &Call, body: &Map<String, Value>) -> Result<Self, FolioError> {
        let asked = body.get("overrideBlocks").and_then(Value::as_object).cloned().unwrap_or_default();
        let holds = |it: &Block| permissions::holds(&call.app.settings, &call.asker.caller, it.permission());
        let may: Vec<Block> = Block::ALL.into_iter().filter(holds).collect();
        let overrides = Self { asked, may };
        if overrides.asked.is_empty() {
            return Ok(overrides);
        }
        let missing: Vec<&str> = Block::ALL
            .iter()
            .filter(|it| overrides.passes(**it) && !overrides.may.contains(it))
            .map(|it| it.permission())
            .collect();
        if !missing.is_empty() {
            let fault = Fault::new("Missing override permissions");
            return Err(FolioError::unprocessable(fault.with("missingPermissions", missing.join(", "))));
        }
        if overrides.comment().is_none() {
            let fault = Fault::new("Override should be performed with the comment specified");
            return Err(FolioError::unprocessable(fault.with("comment", "null")));
        }
        Ok(overrides)
    }

    /// Whether a block is passed over.
    pub(crate) fn passes(&self, block: Block) -> bool {
        self.asked.get(block.name()).is_some_and(|it| !it.is_null())
    }

    /// Why.
    pub(crate) fn comment(&self) -> Option<&str> {
        self.asked.get("comment").and_then(Value::as_str).filter(|it| !it.trim().is_empty())
    }

    /// The due date that stands for the one which the policy does not give.
    pub(crate) fn due_date(&self, block: Block) -> Option<Timestamp> {
        self.asked.get(block.name())?.get("dueDate")?.as_str().and_then(moment::parse)
    }

    /// A fault that names the block to pass over.
    pub(crate) fn refusal(&self, fault: Fault, block: Block) -> Fault {
        fault.overridable(block.described(&self.may))
    }
}
