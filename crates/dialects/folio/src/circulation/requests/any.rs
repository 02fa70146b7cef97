//! Requests for which circulation chooses the type, or the item of a title.

use http::StatusCode;
use pinakes_store::Txn;
use serde_json::{Map, Value};

use super::{are_titles_requested, create};
use crate::circulation::neighbours::ITEMS;
use crate::circulation::overrides::Overrides;
use crate::circulation::records::{Records, text};
use crate::platform::collection::Writer;
use crate::platform::error::{Fault, FolioError};

fn given<'a>(wish: &'a Map<String, Value>, name: &str) -> &'a str {
    wish.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Creates the first of several drafts that is not refused.
///
/// Errors: those of the last draft; `otherwise` if there are no drafts.
fn first_allowed(
    txn: &mut Txn<'_>,
    writer: &Writer,
    overrides: &Overrides,
    drafts: impl IntoIterator<Item = Map<String, Value>>,
    otherwise: Fault,
) -> Result<Value, FolioError> {
    let mut refusal = FolioError::unprocessable(otherwise);
    for body in drafts {
        match create::create(txn, writer, &create::RequestDraft { body: &body, overrides }) {
            Ok(request) => return Ok(request),
            Err(error) if error.status == StatusCode::UNPROCESSABLE_ENTITY => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

fn with(wish: &Map<String, Value>, more: &[(&str, &str)]) -> Map<String, Value> {
    let mut draft = wish.clone();
    draft.extend(more.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
    draft
}

/// Requests any item of an instance (`instanceId`): the first that can be paged, else recalled, else held; items near
/// `pickupServicePointId` come first.
///
/// Errors: 422 with the reasons against the last item that was tried.
pub(crate) fn create_for_any(
    txn: &mut Txn<'_>,
    writer: &Writer,
    wish: &Map<String, Value>,
    overrides: &Overrides,
) -> Result<Value, FolioError> {
    let (instance, pickup) = (given(wish, "instanceId"), given(wish, "pickupServicePointId"));
    let mut books = create::books_of(txn, &mut Records::default(), instance)?;
    books.sort_by_key(|it| text(&it.location, "primaryServicePoint") != pickup);
    let mut drafts = Vec::new();
    for kind in ["Page", "Recall", "Hold"] {
        for book in books.iter().filter(|it| create::allowed_types(it.status()).contains(&kind)) {
            drafts.push(with(
                wish,
                &[
                    ("requestLevel", "Item"),
                    ("requestType", kind),
                    ("itemId", book.id()),
                    ("fulfillmentPreference", "Hold Shelf"),
                ],
            ));
        }
    }
    let fault = Fault::new("There are no items for this instance").with("instanceId", instance);
    first_allowed(txn, writer, overrides, drafts, fault)
}

/// Requests an item (`itemId`), with the first type of page, hold and recall that its status and the rules allow.
///
/// Errors: 422 as for any request.
pub(crate) fn create_for_item(
    txn: &mut Txn<'_>,
    writer: &Writer,
    wish: &Map<String, Value>,
    overrides: &Overrides,
) -> Result<Value, FolioError> {
    let id = given(wish, "itemId");
    let Some(item) = txn.get(&ITEMS.kind, id)? else {
        return Err(FolioError::unprocessable(Fault::new("Item does not exist").with("itemId", id)));
    };
    let item = item.json()?;
    let status = text(&item, "status.name");
    let allowed = create::allowed_types(status);
    let drafts = ["Page", "Hold", "Recall"]
        .into_iter()
        .filter(|it| allowed.contains(it))
        .map(|kind| with(wish, &[("requestLevel", "Item"), ("requestType", kind)]));
    let fault = Fault::new(format!("An item of the status {status} cannot be requested")).with("itemId", id);
    first_allowed(txn, writer, overrides, drafts, fault)
}

/// Requests a title (`instanceId`): the title itself if the site accepts such requests, otherwise any of its items.
///
/// Errors: 422 as for any request.
pub(crate) fn create_for_title(
    txn: &mut Txn<'_>,
    writer: &Writer,
    wish: &Map<String, Value>,
    overrides: &Overrides,
) -> Result<Value, FolioError> {
    if !are_titles_requested(txn)? {
        return create_for_any(txn, writer, wish, overrides);
    }
    let drafts = ["Page", "Hold", "Recall"]
        .map(|kind| with(wish, &[("requestLevel", "Title"), ("requestType", kind)]));
    let fault = Fault::new("The title cannot be requested").with("instanceId", given(wish, "instanceId"));
    first_allowed(txn, writer, overrides, drafts, fault)
}
