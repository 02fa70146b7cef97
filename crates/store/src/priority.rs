//! What may wait leaves the processor to those who answer.

/// How much a thread steps back, from 0 to 19: to a tenth of what others get.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Gives this thread, and those that it starts from now on, less of the processor than those that answer requests. On
/// other systems than Linux a thread has no priority of its own.
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
