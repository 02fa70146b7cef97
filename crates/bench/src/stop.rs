//! Ctrl-C as a value: everything that may take long watches a [`Stop`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Tells whether the run was asked to stop. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// Asks all holders of a clone to stop.
    pub fn ask(&self) {
        self.state.asked.store(true, Ordering::SeqCst);
        self.state.notify.notify_waiters();
    }

    /// Returns true once a stop was requested.
    pub fn is_asked(&self) -> bool {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// Waits until a stop is requested.
    pub async fn asked(&self) {
        loop {
            let notified = self.state.notify.notified();
            if self.is_asked() {
                return;
            }
            notified.await;
        }
    }

    /// Makes Ctrl-C request a stop. A second Ctrl-C ends the process at once, without a report.
    pub fn on_ctrl_c(&self) {
        /// The exit code that shells report for a process ended by SIGINT.
        const INTERRUPTED_EXIT_CODE: i32 = 130;
        let stop = self.clone();
        drop(tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if stop.is_asked() {
                    std::process::exit(INTERRUPTED_EXIT_CODE);
                }
                eprintln!("interrupted: writing the report of what ran (Ctrl-C again ends at once)");
                stop.ask();
            }
        }));
    }
}
