//! One line on a terminal that says what is running; nothing if standard error is not a terminal.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;

use crate::load::run::Live;
use crate::verdict::thousands;

/// Interval between two updates of the line.
const EVERY: Duration = Duration::from_millis(500);

/// The line.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Default for Progress {
    fn default() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }
}

impl Progress {
    /// Follows `live` under the title `what` until the handle is aborted. `wanted` answers complete it; with
    /// 0, time does.
    pub fn follow(&self, what: String, wanted: u64, live: Arc<Live>) -> JoinHandle<()> {
        let bar = self.bar.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            let mut before = 0;
            loop {
                tokio::time::sleep(EVERY).await;
                let n = live.n_answers.load(Ordering::Relaxed);
                let per_s = (n - before) as f64 / EVERY.as_secs_f64();
                before = n;
                let of = if wanted > 0 { format!(" of {}", thousands(wanted)) } else { String::new() };
                bar.set_message(format!(
                    "{what}: {:.0} s, {}{of} answers, {}/s, {} errors",
                    began.elapsed().as_secs_f64(),
                    thousands(n),
                    thousands(per_s as u64),
                    thousands(live.n_errors.load(Ordering::Relaxed)),
                ));
                bar.tick();
            }
        })
    }

    /// Prints a line that stays.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
