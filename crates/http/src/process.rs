//! Figures of the process itself, from `/proc/self` (Linux; zero elsewhere).

use std::fs;

/// Ticks of processor time per second, as the kernel reports them to programs (`USER_HZ`, 100 on every
/// architecture that Linux servers run on).
const TICKS_PER_S: f64 = 100.0;

/// Returns the processor time used so far, in seconds.
pub(crate) fn cpu_s() -> f64 {
    fs::read_to_string("/proc/self/stat").ok().and_then(|it| cpu_ticks(&it)).unwrap_or(0.0) / TICKS_PER_S
}

/// Returns the resident memory, mapped files included, in bytes.
pub(crate) fn resident_bytes() -> f64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|it| resident_kib(&it)).unwrap_or(0.0) * 1024.0
}

/// File descriptors of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptors {
    pub(crate) n_open: u64,
    pub(crate) most: u64,
}

/// Returns how many file descriptors are in use and allowed; `None` if the system does not tell, and if there are none
/// left.
pub(crate) fn descriptors() -> Option<Descriptors> {
    let most = most_descriptors(&fs::read_to_string("/proc/self/limits").ok()?)?;
    let n_open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some(Descriptors { n_open, most })
}

fn most_descriptors(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|it| it.strip_prefix("Max open files"))?;
    let soft = line.split_ascii_whitespace().next()?;
    if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
}

/// Returns the sum of fields 14 and 15 of proc(5)'s stat, counted after the name, which may contain anything.
fn cpu_ticks(stat: &str) -> Option<f64> {
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn resident_kib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_odd_names() {
        let stat = "12 (a) b) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1 1 1";
        assert_eq!(cpu_ticks(stat), Some(300.0));
        assert_eq!(cpu_ticks(""), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096                 files\n";
        assert_eq!(most_descriptors(limits), Some(1024));
        assert_eq!(resident_kib("Name:\tx\nVmRSS:\t   1024 kB\n"), Some(1024.0));
    }
}
