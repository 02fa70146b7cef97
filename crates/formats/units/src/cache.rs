//! The parsed units of unit texts, cached per thread.
//!
//! One table per thread needs no lock. It is emptied when full: a site uses the same few dozen units for years, and a
//! client that keeps sending new ones gains nothing by filling it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::parse;
use crate::unit::Unit;

/// Maximum number of texts cached per thread. With texts of at most 256 bytes that is about half a megabyte.
const MAX_ENTRIES: usize = 1024;

/// Unknown texts are cached too, as `None`.
type Units = HashMap<Box<str>, Option<Arc<Unit>>>;

thread_local! {
    static UNITS: RefCell<Units> = RefCell::default();
}

/// Returns the unit of `text`, parsed now or from the cache.
pub(crate) fn unit(text: &str) -> Option<Arc<Unit>> {
    UNITS.with_borrow_mut(|units| {
        if let Some(known) = units.get(text) {
            return known.clone();
        }
        let unit = parse::parse(text).map(|it| Arc::new(Unit::new(&it)));
        if MAX_ENTRIES <= units.len() {
            units.clear();
        }
        units.insert(text.into(), unit.clone());
        unit
    })
}
