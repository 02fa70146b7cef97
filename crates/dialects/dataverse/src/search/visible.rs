//! Visibility of search results.

use std::collections::BTreeSet;

use pinakes_store::{Expr, View};

use crate::asker::{self, Asker};
use crate::collections::visibility;
use crate::error::ApiError;
use crate::grants::{self, Permission};
use crate::groups::membership;
use crate::roles;
use crate::search::document;

/// Returns the condition that the caller may see a document.
pub(crate) fn visible(view: &mut View<'_>, asker: &Asker) -> Result<Expr, ApiError> {
    if asker.is_superuser() {
        return Ok(Expr::All);
    }
    let public = Expr::Is("public".into(), true.into());
    let kept = visibility::kept_from(view, asker)?;
    let is_not_kept = match kept.is_empty() {
        true => Expr::All,
        false => Expr::Not(Box::new(Expr::In("above".into(), kept.into_iter().map(Into::into).collect()))),
    };
    let mut names = asker::own_names(asker);
    names.extend(membership::of(view, asker)?);
    let mut objects = BTreeSet::new();
    for grant in grants::grants_to(view, &names)? {
        for assigned in &grant.roles {
            let held = roles::permissions_of(view, assigned.role)?;
            let sees = [Permission::ViewUnpublishedDataset, Permission::ViewUnpublishedDataverse];
            if held.iter().any(|it| sees.contains(it)) {
                objects.insert(document::seen_by(grant.object));
            }
        }
    }
    if objects.is_empty() {
        return Ok(public.and(is_not_kept));
    }
    let own = Expr::In("seenBy".into(), objects.into_iter().map(Into::into).collect());
    Ok(Expr::Or(vec![public, own]).and(is_not_kept))
}
