//! How much memory this process may use.

use std::path::Path;
use std::sync::OnceLock;

/// Returns the memory of the machine or of the process's control group, whichever is less, in bytes; `None` where the
/// system does not tell. It is read once.
pub(crate) fn limit_bytes() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| limit_below(Path::new("/")))
}

fn limit_below(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| limit_of_group(root, line));
    let machine = std::fs::read_to_string(root.join("proc/meminfo")).ok();
    of_groups.chain(machine.as_deref().and_then(total_bytes)).min()
}

/// Returns the least limit of a control group and those that it is in, by its line in `/proc/self/cgroup` (see
/// `cgroups(7)`): `0::/path` of version 2, `4:memory:/path` of version 1. A container may see a path that leads nowhere;
/// the groups above it still count.
fn limit_of_group(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        it if it.split(',').any(|it| it == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let group = Path::new(path.trim_start_matches('/'));
    let limits = group.ancestors().filter_map(|group| {
        // "max" is no limit.
        std::fs::read_to_string(root.join(mount).join(group).join(file)).ok()?.trim().parse().ok()
    });
    limits.min()
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths and contents.
    type Files<'a> = &'a [(&'a str, &'a str)];

    #[test]
    fn the_least_limit_counts() {
        const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       24000000 kB\nMemFree: 1 kB\n");
        const NO_LIMIT: &str = "9223372036854771712\n";
        let cases: [(Files<'_>, Option<u64>); 7] = [
            (&[], None),
            (&[MACHINE], Some(24_576_000_000)),
            (&[MACHINE, ("proc/self/cgroup", "0::/\n")], Some(24_576_000_000)),
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "0::/system.slice/pinakes.service\n"),
                    ("sys/fs/cgroup/system.slice/pinakes.service/memory.max", "max\n"),
                    ("sys/fs/cgroup/system.slice/memory.max", "1073741824\n"),
                ],
                Some(1 << 30),
            ),
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "5:cpu:/a\n4:memory:/a\n0::/\n"),
                    ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", NO_LIMIT),
                ],
                Some(2 << 30),
            ),
            (
                &[
                    MACHINE,
                    ("proc/self/cgroup", "4:hugetlb,memory:/docker/not-here\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n"),
                ],
                Some(1 << 20),
            ),
            (&[("proc/self/cgroup", "nonsense\n\n1:\n"), ("proc/meminfo", "MemTotal: much\n")], None),
        ];
        for (files, expected) in cases {
            let root = tempfile::tempdir().expect("a folder");
            for (path, text) in files {
                let file = root.path().join(path);
                std::fs::create_dir_all(file.parent().expect("a folder above")).expect("a folder");
                std::fs::write(file, text).expect("a file");
            }
            assert_eq!(limit_below(root.path()), expected, "{files:?}");
        }
    }
}
