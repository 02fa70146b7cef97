//! The machine of a run, for the heading of its report.

use std::fs;
use std::process::Command;

use crate::ceiling::n_cores;
use crate::result::Machine;

/// Returns what is known of this machine; empty fields if it does not tell.
pub fn this_machine() -> Machine {
    let line = |file: &str| fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default();
    let field = |file: &str, name: &str| {
        let text = line(file);
        let found = text.lines().find(|line| line.starts_with(name));
        found.and_then(|line| line.split_once(':')).map(|it| it.1.trim().to_owned()).unwrap_or_default()
    };
    let memory = field("/proc/meminfo", "MemTotal");
    let memory_kib: u64 = memory.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
    Machine {
        name: line("/proc/sys/kernel/hostname"),
        cpu: field("/proc/cpuinfo", "model name"),
        cores: n_cores(),
        memory_bytes: memory_kib * 1024,
        kernel: line("/proc/sys/kernel/osrelease"),
    }
}

/// Returns the commit of the working directory, if it is a repository: most likely the measured one.
pub fn commit_of_working_directory() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}
