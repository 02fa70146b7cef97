//! A clock that a test sets. A test binary that invokes `set_clock!` replaces the system's `gettimeofday`, from which
//! SQLite gets the time; Rust's own clocks are not affected.

use std::sync::atomic::{AtomicI64, Ordering};

/// Replaces the clock that SQLite uses in a test binary. To be invoked once, in the crate root.
#[macro_export]
macro_rules! set_clock {
    () => {
        #[expect(unsafe_code, reason = "a function of the system, which writes where its caller says")]
        mod set_clock {
            #[unsafe(no_mangle)]
            extern "C" fn gettimeofday(to: *mut [i64; 2], _zone: *mut u8) -> i32 {
                let now_ms = $crate::clock::now_ms();
                // SAFETY: callers of the system's function provide room for seconds and microseconds.
                unsafe { to.write([now_ms.div_euclid(1_000), now_ms.rem_euclid(1_000) * 1_000]) };
                0
            }
        }
    };
}

/// 2026-01-01, in milliseconds since 1970.
static NOW_MS: AtomicI64 = AtomicI64::new(1_767_225_600_000);

/// Returns the time, in milliseconds since 1970.
pub fn now_ms() -> i64 {
    NOW_MS.load(Ordering::SeqCst)
}

/// Moves the clock forward, or back.
pub fn pass(ms: i64) {
    NOW_MS.fetch_add(ms, Ordering::SeqCst);
}
