//! Visibility of search results.

use pinakes_store::{Expr, View};

use crate::asker::Asker;
use crate::collections::visibility;
use crate::error::ApiError;
use crate::grants::{self, Permission};
use crate::groups::membership;
use crate::search::document;
use crate::{permissions, roles};

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
    let names = membership::names_of(view, asker)?;
    let own = match seen_by(view, &names)? {
        Expr::Nothing => public,
        own => Expr::Or(vec![public, own]),
    };
    Ok(own.and(is_not_kept))
}

/// Permissions to see what is not published.
const SEES: [Permission; 2] = [Permission::ViewUnpublishedDataset, Permission::ViewUnpublishedDataverse];

/// Returns the condition that any of these assignees may see a document that is not public.
fn seen_by(view: &mut View<'_>, names: &[String]) -> Result<Expr, ApiError> {
    let Some(objects) = permissions::few_objects_with(view, names, &SEES)? else {
        let roles = roles::with_any_of(view, &SEES)?;
        return Ok(Expr::Joined("seenBy".into(), grants::objects_of(view, names, &roles)?));
    };
    Ok(match objects.is_empty() {
        true => Expr::Nothing,
        false => {
            let values = objects.into_iter().map(|it| document::seen_by(it).into()).collect();
            Expr::In("seenBy".into(), values)
        }
    })
}
