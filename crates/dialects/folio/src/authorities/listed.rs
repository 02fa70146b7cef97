//! The entries of authorities in the browse list of headings.

use pinakes_store::{Listing, fold};
use serde_json::Value;

use super::headings;
use crate::platform::json::text_at;
use crate::platform::listed::{Row, Shape, picked};

pub(crate) const HEADINGS: Shape = Shape {
    anchor: "headingRef",
    traits: &["authRefType", "headingType", "isTitleHeadingRef", "sourceFileId"],
    others: &["naturalId"],
    key: fold,
};

/// The browse lists of the kind of authorities.
pub(crate) const OF_AUTHORITIES: &[Listing] =
    &[Listing { name: "headings", entries: |body, visit| HEADINGS.hand_out(authorities(body), visit) }];

/// Returns the browse entries for the headings of an authority.
pub(crate) fn authorities(body: &Value) -> Vec<Row> {
    let rows = headings::rows(body).into_iter();
    rows.map(|row| {
        let authority = headings::shown(body, &row);
        let mut shown = picked(
            &authority,
            &["authRefType", "headingType", "isTitleHeadingRef", "sourceFileId", "naturalId"],
        );
        shown["headingRef"] = row.heading.as_str().into();
        shown["authority"] = authority;
        shown["isAnchor"] = false.into();
        shown["shared"] = false.into();
        let id = text_at(body, "id").unwrap_or_default();
        let apart = format!("{}/{id}", row.field);
        Row { text: row.heading, apart, shown, gathered: None, is_counted: false }
    })
    .collect()
}
