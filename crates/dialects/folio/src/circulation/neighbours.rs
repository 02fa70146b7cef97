//! What circulation takes from the rest of the dialect.

pub(super) use crate::inventory::holdings::HOLDINGS;
pub(super) use crate::inventory::instances::INSTANCES;
pub(super) use crate::inventory::items::ITEMS;
pub(super) use crate::places::{CAMPUSES, INSTITUTIONS, LIBRARIES, LOCATIONS, SERVICE_POINTS};
pub(super) use crate::records::locale_of;
pub(super) use crate::users::{GROUPS, PROXIES_FOR, USERS};
pub(super) use crate::vocabularies::{LOAN_TYPES, MATERIAL_TYPES};
