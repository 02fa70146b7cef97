//! Sending a notice: its recipient, its policy, its text.

use pinakes_store::{Expr, Query, StoreError, Txn, View};
use serde_json::Value;

use crate::circulation::book::Book;
use crate::circulation::neighbours::{ITEMS, USERS};
use crate::circulation::notices::{context, mail, mustache};
use crate::circulation::policies::NOTICE_POLICIES;
use crate::circulation::records::{Records, text};
use crate::circulation::rules::PolicyKind;
use crate::circulation::terms;
use crate::configuration::records::TEMPLATES;
use crate::platform::collection::Writer;
use crate::platform::error::FolioError;
use crate::platform::limits::NOTICE_BYTES;

/// An event of a loan, in the terms of notice policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoanEvent {
    CheckOut,
    CheckIn,
    Renewed,
    Recalled,
    DueDateChanged,
    AgedToLost,
}

impl LoanEvent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CheckOut => "Check out",
            Self::CheckIn => "Check in",
            Self::Renewed => "Renewed",
            Self::Recalled => "Item recalled",
            Self::DueDateChanged => "Manual due date change",
            Self::AgedToLost => "Aged to lost",
        }
    }

    /// Checks whether the event sets a new due date.
    pub(crate) fn moves_due_date(self) -> bool {
        matches!(self, Self::CheckOut | Self::Renewed | Self::Recalled | Self::DueDateChanged)
    }
}

/// An event of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEvent {
    Paged,
    Held,
    Recalled,
    Cancelled,
    Available,
    Expired,
    HoldExpired,
}

impl RequestEvent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Paged => "Paging request",
            Self::Held => "Hold request",
            Self::Recalled => "Recall request",
            Self::Cancelled => "Request cancellation",
            Self::Available => "Available",
            Self::Expired => "Request expiration",
            Self::HoldExpired => "Hold expiration",
        }
    }

    /// Returns the template that the site's setting has for title requests without an item.
    pub(crate) fn title_template(self) -> &'static str {
        match self {
            Self::Cancelled => "cancellationPatronNoticeTemplateId",
            Self::Expired | Self::HoldExpired => "expirationPatronNoticeTemplateId",
            _ => "confirmationPatronNoticeTemplateId",
        }
    }
}

/// An event of a fee that circulation charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeeEvent {
    OverdueFineReturned,
    OverdueFineRenewed,
    AgedToLostFineCharged,
}

impl FeeEvent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OverdueFineReturned => "Overdue fine returned",
            Self::OverdueFineRenewed => "Overdue fine renewed",
            Self::AgedToLostFineCharged => "Aged to lost - fine charged",
        }
    }
}

/// Returns the notices of a policy for an event, from its list `loanNotices`, `requestNotices` or `feeFineNotices`.
pub(crate) fn notices_of(policy: &Value, list: &str, event: &str) -> Vec<Value> {
    let all = policy[list].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(|it| text(it, "sendOptions.sendWhen") == event).cloned().collect()
}

/// Returns the notice policy that the rules choose; `None` if it is missing, has no notices, or is switched off.
pub(crate) fn policy(
    view: &mut View<'_>,
    known: &mut Records,
    book: &Book,
    group: &str,
) -> Result<Option<std::sync::Arc<Value>>, FolioError> {
    let chosen = terms::choose(view, book, group)?;
    let policy = known.get(view, &NOTICE_POLICIES, chosen.policies.id(PolicyKind::Notice))?;
    Ok(policy.filter(|it| it["active"].as_bool() != Some(false)))
}

/// Returns the item and the borrower of a loan, if both exist.
pub(crate) fn parties(
    view: &mut View<'_>,
    known: &mut Records,
    loan: &Value,
) -> Result<Option<(Book, std::sync::Arc<Value>)>, StoreError> {
    let Some(user) = known.at(view, &USERS, loan, "userId")? else { return Ok(None) };
    let Some(item) = known.at(view, &ITEMS, loan, "itemId")? else { return Ok(None) };
    Ok(Some((Book::of(view, known, item)?, user)))
}

/// Creates the message of a template for a person. Without an address or a template nothing is created.
pub(crate) fn send(
    txn: &mut Txn<'_>,
    writer: &Writer,
    user: &Value,
    template: &str,
    context: Value,
) -> Result<(), FolioError> {
    let to = text(user, "personal.email");
    if to.is_empty() {
        return Ok(());
    }
    let Some(record) = txn.get(&TEMPLATES.kind, template)? else {
        tracing::warn!(template, "a notice policy names a template that is not there; nothing is sent");
        return Ok(());
    };
    let context = context::localised(txn, context)?;
    match rendered(&record.json()?, "en", &context) {
        Ok((header, body)) => mail::queue(txn, writer, to, &header, &body),
        Err(message) => {
            tracing::warn!(template, message, "a notice cannot be rendered; nothing is sent");
            Ok(())
        }
    }
}

/// Renders subject and body of a template in a language, or in the first one that it has.
pub(crate) fn rendered(
    template: &Value,
    language: &str,
    context: &Value,
) -> Result<(String, String), String> {
    let all = template["localizedTemplates"].as_object();
    let own = all.and_then(|it| it.get(language).or_else(|| it.values().next())).ok_or("it has no text")?;
    let render = |name: &str| {
        mustache::render(text(own, name), context, NOTICE_BYTES).map_err(|it| format!("{name}: {it}"))
    };
    Ok((render("header")?, render("body")?))
}

/// Returns the records of a kind with a value at a path.
pub(crate) fn all_with(
    view: &mut View<'_>,
    kind: &'static pinakes_store::Kind,
    path: &str,
    value: &str,
) -> Result<Vec<Value>, StoreError> {
    view.find(kind, &Query::filter(Expr::Is(path.into(), value.into())))?
        .iter()
        .map(pinakes_store::Record::json)
        .collect()
}
