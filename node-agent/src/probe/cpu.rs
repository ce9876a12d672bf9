//! Cores and memory: what the machine has, and what the control groups (v1 and v2) leave of it to this process.
//!
//! Owns: reading `/proc` and `/sys/fs/cgroup` below a root, so that a test can bring its own. Invariants: what cannot
//! be read does not limit; the result is never below one hundredth of a core and one MiB.

use std::{
    fs,
    path::{Path, PathBuf},
};

const MILLI_MIN: i64 = 10;

/// The cores that this process may use, in thousandths.
pub fn milli_cores(root: &Path) -> i64 {
    let allowed = read(root, "proc/self/status").and_then(|status| allowed_cpus(&status));
    let all = || std::thread::available_parallelism().map_or(1, |count| i64::try_from(count.get()).unwrap_or(1));
    let machine = allowed.unwrap_or_else(all).saturating_mul(1000);
    let groups = folders(root, "cpu");
    let quotas = groups.iter().filter_map(|folder| {
        let v2 = fs::read_to_string(folder.join("cpu.max")).ok().and_then(|text| quota(&text));
        let v1 = || {
            let part = |name: &str| fs::read_to_string(folder.join(name)).ok();
            quota(&format!("{} {}", part("cpu.cfs_quota_us")?, part("cpu.cfs_period_us")?))
        };
        v2.or_else(v1)
    });
    quotas.fold(machine, i64::min).max(MILLI_MIN)
}

/// The memory that this process may use, in MiB.
pub fn memory_mib(root: &Path) -> i64 {
    let machine = read(root, "proc/meminfo").and_then(|text| memory_total_kib(&text)).unwrap_or(1024) / 1024;
    let groups = folders(root, "memory");
    let limits = groups.iter().filter_map(|folder| {
        let part = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let text = part("memory.max").or_else(|| part("memory.limit_in_bytes"))?;
        text.trim().parse::<u64>().ok().and_then(|bytes| i64::try_from(bytes / (1024 * 1024)).ok())
    });
    limits.fold(machine, i64::min).max(1)
}

/// Where the limits of this process may stand: its group and all above it, of v2 and of a v1 controller.
fn folders(root: &Path, controller: &str) -> Vec<PathBuf> {
    let groups = read(root, "proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let base = match controllers {
            "" => root.join("sys/fs/cgroup"),
            many if many.split(',').any(|one| one == controller) => root.join("sys/fs/cgroup").join(controller),
            _ => continue,
        };
        // In a container the path is often that of the host and not to be found; the base then holds the limits.
        let inner = Path::new(group.trim_start_matches('/'));
        found.extend(inner.ancestors().map(|above| base.join(above)));
    }
    found
}

fn read(root: &Path, file: &str) -> Option<String> {
    fs::read_to_string(root.join(file)).ok()
}

/// `QUOTA PERIOD` in microseconds as thousandths of a core; `max` and -1 are no limit.
fn quota(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace();
    let quota: i64 = words.next()?.parse().ok()?;
    let period: i64 = words.next()?.parse().ok()?;
    if quota > 0 && period > 0 { quota.checked_mul(1000).map(|milli| milli / period) } else { None }
}

/// How many processors `Cpus_allowed_list` names, such as `0-3,8`.
fn allowed_cpus(status: &str) -> Option<i64> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<i64>().ok()? - first.parse::<i64>().ok()? + 1)
    };
    list.trim().split(',').map(count).sum::<Option<i64>>().filter(|&count| count > 0)
}

fn memory_total_kib(meminfo: &str) -> Option<i64> {
    meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let base = [("proc/self/status", "Cpus_allowed_list:\t0-7,16\n"), ("proc/meminfo", "MemTotal: 2097152 kB\n")];
        for (path, text) in base.iter().chain(files) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn offered(files: &[(&str, &str)]) -> (i64, i64) {
        let root = machine(files);
        (milli_cores(root.path()), memory_mib(root.path()))
    }

    #[test]
    fn without_limits_it_is_the_machine() {
        assert_eq!(offered(&[]), (9000, 2048));
        let unlimited = [
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
        ];
        assert_eq!(offered(&unlimited), (9000, 2048));
    }

    #[test]
    fn a_group_and_those_above_it_limit() {
        let limited = [
            ("proc/self/cgroup", "0::/box/agent\n"),
            ("sys/fs/cgroup/box/agent/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/box/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/box/agent/memory.max", "1073741824\n"),
        ];
        assert_eq!(offered(&limited), (1500, 1024));
    }

    #[test]
    fn the_older_groups_limit_too_also_where_the_path_is_the_hosts() {
        let limited = [
            ("proc/self/cgroup", "4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n1:cpuset:/docker/x\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
        ];
        assert_eq!(offered(&limited), (500, 512));
    }

    #[test]
    fn nonsense_does_not_limit() {
        let odd = [
            ("proc/self/cgroup", "nonsense\n0::/\n"),
            ("sys/fs/cgroup/cpu.max", "-1 0\n"),
            ("sys/fs/cgroup/memory.max", "9223372036854771712\n"),
        ];
        assert_eq!(offered(&odd), (9000, 2048));
        assert_eq!(allowed_cpus("Cpus_allowed_list:\tx-y\n"), None);
    }
}
