//! Blocks that staff at the desk may override: which ones a request overrides, and which ones the caller may.

use serde_json::{Map, Value, json};

use super::moment;
use crate::platform::app::Call;
use crate::platform::error::{Fault, FolioError};
use crate::platform::permissions;
use jiff::Timestamp;

/// A block that can be overridden.
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

    /// Returns its name in requests and answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Patron => "patronBlock",
            Self::ItemLimit => "itemLimitBlock",
            Self::NotLoanable => "itemNotLoanableBlock",
            Self::Renewal => "renewalBlock",
            Self::RenewalDueDate => "renewalDueDateRequiredBlock",
        }
    }

    /// Returns the permission that overriding it requires.
    pub(crate) fn permission(self) -> &'static str {
        match self {
            Self::Patron => "circulation.override-patron-block.post",
            Self::ItemLimit => "circulation.override-item-limit-block.post",
            Self::NotLoanable => "circulation.override-item-not-loanable-block.post",
            Self::Renewal | Self::RenewalDueDate => "circulation.override-renewal-block.post",
        }
    }

    /// Describes the block for a refusal: its name, and the permissions that the caller lacks.
    pub(crate) fn described(self, may: &[Self]) -> Value {
        let missing: Vec<&str> = if may.contains(&self) { Vec::new() } else { vec![self.permission()] };
        json!({"name": self.name(), "missingPermissions": missing})
    }
}

/// The overrides of a request, and the blocks that its caller may override.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    asked: Map<String, Value>,
    may: Vec<Block>,
}

impl Overrides {
    /// Reads `overrideBlocks` of a request.
    ///
    /// Errors: 422 for a block that the caller may not override, or without a comment.
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

    /// Checks whether a block is overridden.
    pub(crate) fn passes(&self, block: Block) -> bool {
        self.asked.get(block.name()).is_some_and(|it| !it.is_null())
    }

    /// Returns the reason given for the override.
    pub(crate) fn comment(&self) -> Option<&str> {
        self.asked.get("comment").and_then(Value::as_str).filter(|it| !it.trim().is_empty())
    }

    /// Returns the due date that the override gives in place of the policy's.
    pub(crate) fn due_date(&self, block: Block) -> Option<Timestamp> {
        self.asked.get(block.name())?.get("dueDate")?.as_str().and_then(moment::parse)
    }

    /// Marks a fault as one that the block's override would avoid.
    pub(crate) fn refusal(&self, fault: Fault, block: Block) -> Fault {
        fault.overridable(block.described(&self.may))
    }
}
