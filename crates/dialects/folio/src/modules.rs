//! Every collection of the dialect, in the order in which their reference data can be loaded.

use std::sync::LazyLock;

use pinakes_store::Kind;

use crate::authorities::authority::{self, ARCHIVES, AUTHORITIES, SOURCE_FILES};
use crate::circulation::fees::action_records::FEE_FINE_ACTIONS;
use crate::circulation::fees::actual_cost_records::ACTUAL_COSTS;
use crate::circulation::notices::planned::SCHEDULED;
use crate::circulation::{self, fees, notices, patron_blocks};
use crate::configuration::{acquisitions, notes, records};
use crate::inventory::{holdings, instances, items, relations};
use crate::platform::collection::Collection;
use crate::users::{login, perms, profile_pictures, user, user_settings};
use crate::{data_export, links, places, timers, vocabularies};

/// Every collection.
pub(crate) static COLLECTIONS: &[&Collection] = &[
    &user::GROUPS,
    &user::ADDRESS_TYPES,
    &user::DEPARTMENTS,
    &user::USERS,
    &user::PROXIES_FOR,
    &user::REQUEST_PREFERENCES,
    &crate::users::staging::STAGING_USERS,
    &crate::users::user_tenants::USER_TENANTS,
    &places::SERVICE_POINTS,
    &places::INSTITUTIONS,
    &places::CAMPUSES,
    &places::LIBRARIES,
    &places::LOCATIONS,
    &user::SERVICE_POINTS_USERS,
    &vocabularies::IDENTIFIER_TYPES,
    &vocabularies::CONTRIBUTOR_TYPES,
    &vocabularies::CONTRIBUTOR_NAME_TYPES,
    &vocabularies::INSTANCE_TYPES,
    &vocabularies::INSTANCE_FORMATS,
    &vocabularies::ALTERNATIVE_TITLE_TYPES,
    &vocabularies::INSTANCE_NOTE_TYPES,
    &vocabularies::CLASSIFICATION_TYPES,
    &vocabularies::SUBJECT_TYPES,
    &vocabularies::SUBJECT_SOURCES,
    &vocabularies::MODES_OF_ISSUANCE,
    &vocabularies::INSTANCE_STATUSES,
    &vocabularies::INSTANCE_DATE_TYPES,
    &vocabularies::NATURE_OF_CONTENT_TERMS,
    &vocabularies::ELECTRONIC_ACCESS_RELATIONSHIPS,
    &vocabularies::INSTANCE_RELATIONSHIP_TYPES,
    &vocabularies::STATISTICAL_CODE_TYPES,
    &vocabularies::STATISTICAL_CODES,
    &vocabularies::HOLDINGS_TYPES,
    &vocabularies::HOLDINGS_NOTE_TYPES,
    &vocabularies::HOLDINGS_SOURCES,
    &vocabularies::CALL_NUMBER_TYPES,
    &vocabularies::ILL_POLICIES,
    &vocabularies::ITEM_NOTE_TYPES,
    &vocabularies::ITEM_DAMAGED_STATUSES,
    &vocabularies::MATERIAL_TYPES,
    &vocabularies::LOAN_TYPES,
    &instances::INSTANCES,
    &holdings::HOLDINGS,
    &items::ITEMS,
    &relations::PRECEDING_SUCCEEDING_TITLES,
    &relations::INSTANCE_RELATIONSHIPS,
    &relations::BOUND_WITH_PARTS,
    &SOURCE_FILES,
    &authority::NOTE_TYPES,
    &AUTHORITIES,
    &ARCHIVES,
    &records::CONFIGURATIONS,
    &crate::oai::config::SETTINGS,
    &crate::oai::sets::SETS,
    &crate::configuration::setting_entries::SETTINGS,
    &records::TAGS,
    &notes::NOTE_TYPES,
    &notes::NOTES,
    &user_settings::USER_SETTINGS,
    &records::CUSTOM_FIELDS,
    &records::ORGANIZATIONS,
    &records::TEMPLATES,
    &crate::users::password_rules::RULES,
    &crate::data_import::profiles::forms::FORMS,
    &records::COMPOSITE_ORDERS,
    &acquisitions::CATEGORIES,
    &acquisitions::ORGANIZATION_TYPES,
    &acquisitions::CONTACTS,
    &acquisitions::INTERFACES,
    &acquisitions::CREDENTIALS,
    &acquisitions::BANKING,
    &acquisitions::ACQUISITION_METHODS,
    &acquisitions::FUNDS,
    &circulation::courses::ROLES,
    &circulation::courses::TYPES,
    &circulation::courses::DEPARTMENTS,
    &circulation::courses::PROCESSING,
    &circulation::courses::COPYRIGHT,
    &circulation::courses::TERMS,
    &circulation::courses::LISTINGS,
    &circulation::courses::COURSES,
    &circulation::courses::INSTRUCTORS,
    &circulation::courses::RESERVES,
    &crate::data_import::copycat::PROFILES,
    &circulation::policies::SCHEDULES,
    &circulation::policies::LOAN_POLICIES,
    &circulation::policies::REQUEST_POLICIES,
    &circulation::policies::NOTICE_POLICIES,
    &circulation::policies::OVERDUE_POLICIES,
    &circulation::policies::LOST_ITEM_POLICIES,
    &circulation::policies::STAFF_SLIPS,
    &circulation::policies::CANCELLATION_REASONS,
    &circulation::policies::SETTINGS,
    &circulation::policies::CALENDARS,
    &circulation::loans::LOANS,
    &circulation::loans::HISTORY,
    &circulation::requests::REQUESTS,
    &circulation::check_in::CHECK_INS,
    &circulation::print_events::PRINT_EVENTS,
    &circulation::LOCKS,
    &circulation::FEATURE_JOBS,
    &fees::OWNERS,
    &fees::FEE_FINES,
    &fees::ACCOUNTS,
    &FEE_FINE_ACTIONS,
    &fees::PAYMENTS,
    &fees::WAIVES,
    &fees::TRANSFERS,
    &fees::TRANSFER_CRITERIA,
    &fees::REFUNDS,
    &fees::COMMENTS,
    &ACTUAL_COSTS,
    &patron_blocks::MANUAL_BLOCKS,
    &patron_blocks::MANUAL_BLOCK_TEMPLATES,
    &patron_blocks::BLOCK_CONDITIONS,
    &patron_blocks::BLOCK_LIMITS,
    &patron_blocks::SYNC_JOBS,
    &notices::mail::SMTP,
    &notices::mail::EMAILS,
    &SCHEDULED,
    &notices::sessions::SESSIONS,
    &timers::TIMERS,
    &data_export::MAPPING_PROFILES,
    &data_export::JOB_PROFILES,
    &crate::data_export::jobs::JOBS,
    &crate::data_export::jobs::LOGS,
    &crate::bulk_edit::operations::OPERATIONS,
];

/// Kinds that are not collections.
static OTHERS: [&Kind; 28] = [
    &crate::queries::QUERY,
    &login::events::ATTEMPTS,
    &login::events::EVENT,
    &crate::inventory::upkeep::MIGRATION,
    &crate::inventory::upkeep::SETTING,
    &crate::source_records::source_storage::migrations::MIGRATION,
    &crate::bulk_edit::operations::ROW,
    &authority::SETTING,
    &crate::users::user::PIN,
    &crate::inventory::reindex::JOB,
    &crate::inventory::harvested::CHANGED,
    &crate::inventory::harvested::GONE,
    &crate::search::RESOURCE_JOB,
    &crate::search::browse::CONFIG,
    &data_export::FILE_DEFINITION,
    &login::REFRESH_TOKEN,
    &login::reset::RESET_ACTION,
    &perms::PERMISSION,
    &crate::users::perms::sets::PERMISSION_USER,
    &profile_pictures::PICTURE,
    &crate::platform::meta::META,
    &crate::platform::collection::numbers::HRID_SETTINGS,
    &records::LOCALE,
    &crate::source_records::specifications::CHANGES,
    &crate::links::linked::LINKS,
    &links::LINKING_RULE,
    &crate::links::noted::HEADING_CHANGE,
    &circulation::RULES,
];

static KINDS: LazyLock<Vec<&'static Kind>> =
    LazyLock::new(|| COLLECTIONS.iter().map(|it| &it.kind).chain(OTHERS).chain(import_kinds()).collect());

/// Returns all kinds of the dialect.
pub fn kinds() -> &'static [&'static Kind] {
    &KINDS
}

/// Returns the kinds of source records, profiles, uploads and jobs.
fn import_kinds() -> impl Iterator<Item = &'static Kind> {
    let lists: [&'static [&'static Kind]; 5] = [
        &crate::source_records::source_storage::KINDS,
        &crate::data_import::profiles::KINDS,
        &crate::data_import::uploads::KINDS,
        &crate::data_import::KINDS,
        &crate::data_import::mapping::KINDS,
    ];
    lists.into_iter().flatten().copied()
}
