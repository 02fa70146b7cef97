//! The labe dialect: citations joined with the library's own catalogue.
