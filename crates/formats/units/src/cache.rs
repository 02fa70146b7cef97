//! What unit texts mean, remembered per thread.
//!
//! One table per thread needs no lock. It is emptied when full: a site writes the same few dozen units for years, and
//! a client that sends ever new ones gains nothing by filling it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::parse;
use crate::unit::Unit;

/// Most texts remembered per thread. With texts of at most 256 bytes that is about half a megabyte.
const MAX_ENTRIES: usize = 1024;

/// Unknown texts are remembered too, as `None`.
type Units = HashMap<Box<str>, Option<Arc<Unit>>>;

thread_local! {
    static UNITS: RefCell<Units> = RefCell::default();
}

/// The meaning of `text`, read now or remembered.
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
