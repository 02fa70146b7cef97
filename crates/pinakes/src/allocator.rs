//! The memory allocator: JSON is many small allocations, made on one thread and freed on another.

#![allow(unsafe_code, reason = "the allocator's options can only be set through its C interface")]

use std::ffi::{c_int, c_long};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of the option that says after how many milliseconds freed memory is given back to the system, as in
/// `mimalloc.h`.
const PURGE_DELAY: c_int = 15;

unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

/// Keeps freed memory for the next allocations of this process instead of giving it back to the system after a second,
/// for commands that end when their work is done: an index is built in large pieces of memory, which the system would
/// take and clear again for each part.
pub(crate) fn keep_freed_memory() {
    // SAFETY: this is the library's declaration; the function checks that there is such an option, and stores the number.
    unsafe { mi_option_set(PURGE_DELAY, -1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn mi_option_get(option: c_int) -> c_long;
    }

    #[test]
    fn the_number_is_that_of_the_option() {
        // SAFETY: this is the library's declaration; the function only reads the number.
        let value = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(value(), 1_000, "milliseconds until freed memory is given back");
        keep_freed_memory();
        assert_eq!(value(), -1);
    }
}
