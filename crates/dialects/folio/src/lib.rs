//! The FOLIO dialect: MARC import, inventory and circulation.
