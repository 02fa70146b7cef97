//! Linux' figures of processes and the machine, from `/proc` (proc(5)). Elsewhere there are no samples of
//! this kind, and the report says so.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// Clock ticks per second in `/proc/*/stat`: fixed at 100 in Linux' interface to programs.
const TICKS_PER_S: f64 = 100.0;

/// Usage of one process since it started, except the memory, which is the current one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUsage {
    /// User and system time, in seconds.
    pub cpu_s: f64,
    /// Resident memory, in bytes.
    pub memory_bytes: u64,
    /// Read from storage, in bytes; `None` if we may not read it.
    pub disk_read_bytes: Option<u64>,
    /// Written to storage, in bytes.
    pub disk_write_bytes: Option<u64>,
}

/// Usage of the whole machine since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineUsage {
    /// Time of all cores that was not idle, in seconds.
    pub busy_s: f64,
    /// Time of all cores that waited for storage, in seconds.
    pub io_wait_s: f64,
    /// Time of all cores that the hypervisor gave to other guests, in seconds.
    pub stolen_s: f64,
    /// Bytes received on all interfaces, loopback included.
    pub network_bytes: u64,
}

/// Returns the CPU time in a `stat` file of a process or thread, in seconds.
pub fn cpu_s(stat: &Path) -> Option<f64> {
    parse_cpu_s(&fs::read_to_string(stat).ok()?)
}

/// Returns the CPU time of the calling thread, in seconds: from the scheduler's own count in nanoseconds if
/// the kernel has one, otherwise in clock ticks.
pub fn this_thread_cpu_s() -> Option<f64> {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran_ns = schedstat.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    ran_ns.map(|ns| ns / 1e9).filter(|s| *s > 0.0).or_else(|| cpu_s(Path::new("/proc/thread-self/stat")))
}

/// Parses a `stat` line. The program's name in parentheses may contain blanks and parentheses: fields count from
/// the last one.
fn parse_cpu_s(stat: &str) -> Option<f64> {
    const USER_TIME: usize = 11;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let user: f64 = fields.get(USER_TIME)?.parse().ok()?;
    let system: f64 = fields.get(USER_TIME + 1)?.parse().ok()?;
    Some((user + system) / TICKS_PER_S)
}

/// Returns the usage of the process `pid`; `None` if there is none.
pub fn usage(pid: u32) -> Option<ProcessUsage> {
    let folder = format!("/proc/{pid}");
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let io = fs::read_to_string(format!("{folder}/io")).ok();
    let from_io = |name| io.as_deref().and_then(|text| field(text, name));
    Some(ProcessUsage {
        cpu_s: cpu_s(Path::new(&format!("{folder}/stat")))?,
        memory_bytes: field(&status, "VmRSS").unwrap_or(0) * 1024,
        disk_read_bytes: from_io("read_bytes"),
        disk_write_bytes: from_io("write_bytes"),
    })
}

/// Returns the number after `name:` in a file of lines `name: number …`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the usage of the machine; `None` if `/proc` does not tell.
pub fn machine() -> Option<MachineUsage> {
    let mut usage = parse_machine(&fs::read_to_string("/proc/stat").ok()?)?;
    usage.network_bytes = fs::read_to_string("/proc/net/dev").map(|text| received_bytes(&text)).unwrap_or(0);
    Some(usage)
}

fn parse_machine(stat: &str) -> Option<MachineUsage> {
    let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = cpu.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, io_wait, interrupt, soft, stolen, ..] = ticks[..] else { return None };
    Some(MachineUsage {
        busy_s: (user + nice + system + interrupt + soft + stolen) / TICKS_PER_S,
        io_wait_s: io_wait / TICKS_PER_S,
        stolen_s: stolen / TICKS_PER_S,
        network_bytes: 0,
    })
}

fn received_bytes(dev: &str) -> u64 {
    dev.lines()
        .filter_map(|line| line.split_once(':')?.1.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

/// Returns the process on this machine that listens at `address`, if this user may see it.
pub fn listener(address: SocketAddr) -> Option<u32> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|table| listening_inodes(&table, address.port()))
        .collect();
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").ok()?;
    processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()).find(|pid| {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        files
            .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
            .any(|link| links.iter().any(|it| link.as_os_str() == it.as_str()))
    })
}

/// Returns the inodes of sockets that listen on `port`, from the text of `/proc/net/tcp`.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    const LISTENING: &str = "0A";
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let listens = fields.get(1)?.ends_with(&suffix) && *fields.get(3)? == LISTENING;
            listens.then(|| fields.get(9).map(|inode| (*inode).to_owned())).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_counts_from_the_last_parenthesis() {
        let stat = "7 (a) b (c)) R 1 7 7 0 -1 4194304 2853 6550 0 0 106 44 3 2 20 0 1 0 166867";
        assert_eq!(parse_cpu_s(stat), Some(1.5));
        assert_eq!(parse_cpu_s("7 (cut"), None);
    }

    #[test]
    fn machine_counts_all_but_idle_and_waiting() {
        let usage = parse_machine("cpu  100 50 30 9000 900 10 5 5 0 0\ncpu0 1 1 1\n").unwrap();
        assert!((usage.busy_s - 2.0).abs() < 1e-9);
        assert!((usage.io_wait_s - 9.0).abs() < 1e-9);
    }

    #[test]
    fn listening_sockets_are_found_by_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0\n   \
             1: 0100007F:0BB8 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0\n";
        assert_eq!(listening_inodes(table, 3000), ["4242"]);
        assert!(listening_inodes(table, 3001).is_empty());
    }

    #[test]
    fn this_process_is_found_by_its_socket() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        if Path::new("/proc/net/tcp").exists() {
            assert_eq!(listener(socket.local_addr().unwrap()), Some(std::process::id()));
            assert!(usage(std::process::id()).unwrap().memory_bytes > 0);
        }
    }
}
