//! The parts of the rest of the dialect that circulation uses.

pub(crate) use crate::configuration::records::locale_of;
pub(crate) use crate::inventory::holdings::HOLDINGS;
pub(crate) use crate::inventory::instances::INSTANCES;
pub(crate) use crate::inventory::items::ITEMS;
pub(crate) use crate::places::{CAMPUSES, INSTITUTIONS, LIBRARIES, LOCATIONS, SERVICE_POINTS};
pub(crate) use crate::users::user::{DEPARTMENTS, GROUPS, PROXIES_FOR, USERS};
pub(crate) use crate::vocabularies::{LOAN_TYPES, MATERIAL_TYPES};
