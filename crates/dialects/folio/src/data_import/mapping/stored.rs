//! The mapping rules stored in a tenant.

use pinakes_store::{Kind, StoreError, View};

use crate::data_import::mapping::RuleSet;

/// Rules that replace FOLIO's, by the name of the rule set.
pub(crate) static MAPPING_RULES: Kind = Kind::named("folio_mapping_rules");

/// Returns the rules of a tenant as text.
pub(crate) fn stored_rules(view: &mut View<'_>, set: RuleSet) -> Result<String, StoreError> {
    let stored = view.get(&MAPPING_RULES, set.name())?.map(|it| it.json()).transpose()?;
    Ok(stored.map_or_else(|| set.default_text().to_owned(), |it| it.to_string()))
}
