//! Lower priority for threads whose work may wait.

/// The nice value of such a thread, from 0 to 19: it gets a tenth of the processor time of the others.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of this thread, and of those that it starts from now on, below the threads that answer requests.
/// On systems other than Linux, threads have no priority of their own.
pub fn step_back() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let own = Some(rustix::thread::gettid());
        let stepped_back = getpriority_process(own).and_then(|it| setpriority_process(own, it + NICENESS));
        if let Err(error) = stepped_back {
            tracing::debug!(%error, "a thread that may wait runs with the priority of requests");
        }
    }
}
