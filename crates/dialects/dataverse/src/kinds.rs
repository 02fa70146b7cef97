//! All kinds of records of the dialect. Ids are numbers as text unless the kind says otherwise.

use std::sync::LazyLock;

use pinakes_store::Kind;

use crate::grants::GRANT;
use crate::search::document::DOCUMENT;
use crate::{
    admin, assignments, collections, dataset_types, datasets, files, groups, guestbooks, ids, licenses,
    links, notifications, oai, registry, roles, site_settings, templates, tokens, usage, users,
};

/// The list of kinds.
static KINDS: LazyLock<Vec<&'static Kind>> = LazyLock::new(|| {
    vec![
        &ids::SEQUENCE,
        &registry::BLOCK_SOURCE,
        &users::USER,
        &tokens::TOKEN,
        &roles::ROLE,
        &groups::GROUP,
        &groups::addresses::ADDRESS_GROUP,
        &groups::domains::DOMAIN_GROUP,
        &assignments::HISTORY,
        &notifications::NOTIFICATION,
        &links::LINK,
        &dataset_types::DATASET_TYPE,
        &admin::misc::BANNER,
        &admin::storage_sites::STORAGE_SITE,
        &guestbooks::GUESTBOOK,
        &crate::featured::FEATURED,
        &guestbooks::ENTRY,
        &templates::TEMPLATE,
        &crate::saved_searches::SAVED_SEARCH,
        &collections::logo::COLLECTION_LOGO,
        &usage::USAGE_REPORT,
        &usage::USAGE,
        &GRANT,
        &site_settings::SETTING,
        &licenses::LICENSE,
        &collections::COLLECTION,
        &datasets::DATASET,
        &datasets::VERSION,
        &files::kinds::DATA_FILE,
        &files::kinds::ROW,
        &files::kinds::TABLE,
        &files::kinds::PENDING,
        &files::kinds::PROVENANCE,
        &files::kinds::REQUEST,
        &files::kinds::AUXILIARY,
        &files::kinds::BEGUN,
        &files::kinds::LOGO,
        &crate::tools::TOOL,
        &DOCUMENT,
        &crate::workflows::WORKFLOW,
        &crate::workflows::TRIGGERED,
        &crate::workflows::INVOCATION,
        &crate::harvest::CLIENT,
        &oai::members::SET,
        &oai::members::MEMBER,
    ]
});

/// Returns every kind of the dialect.
pub fn kinds() -> &'static [&'static Kind] {
    KINDS.as_slice()
}
