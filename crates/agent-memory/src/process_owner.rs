//! Processes as owners of leases. A lease reserves a compaction job for one owner. This module checks whether an owner
//! still runs.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};

use compaction_runner::Liveness;
use memory_store::Owner;

/// Text for a field that could not be determined.
const UNKNOWN: &str = "-";

/// Returns the name under which a memory of this process leases compaction jobs:
/// `process/BOOT/NAMESPACE/PID/STARTED/RANDOM/HOST`. Each call returns another name.
///
/// Two processes with the same number differ in the boot of their machine, their namespace of process numbers (each
/// container has its own), their start time, or the random number. Without `/proc` some fields are unknown, and the
/// owner always counts as running.
pub(crate) fn current() -> String {
    let known = |text: Option<String>| {
        let text = text.map(|text| text.trim().to_owned());
        text.filter(|text| !text.is_empty())
            .unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let read = |path| known(fs::read_to_string(path).ok());
    let namespace = fs::read_link("/proc/self/ns/pid").ok();
    let started = match look("self") {
        Process::Runs { started } => Some(started.to_string()),
        _ => None,
    };
    format!(
        "process/{}/{}/{}/{}/{:016x}/{}",
        read("/proc/sys/kernel/random/boot_id"),
        known(namespace.map(|link| link.to_string_lossy().into_owned())),
        std::process::id(),
        known(started),
        RandomState::new().hash_one("process"),
        read("/proc/sys/kernel/hostname"),
    )
}

/// A process that holds leases on compaction jobs, parsed from the name of the leases' owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessOwner<'a> {
    /// Id of the process.
    pub pid: u32,
    /// Name of the machine or container in which the process runs; `None` if it is not known.
    pub host: Option<&'a str>,
    /// Boot id of the machine, and namespace of process numbers. They are equal for processes that can see each other.
    place: Option<(&'a str, &'a str)>,
    started: Option<u64>,
}

impl<'a> ProcessOwner<'a> {
    /// Parses the owner's name of a lease; `None` if the owner is not a process.
    pub fn parse(owner: &'a str) -> Option<Self> {
        let fields: Vec<&str> = owner.splitn(7, '/').collect();
        let ["process", boot, namespace, pid, started, _, host] = fields[..] else {
            return None;
        };
        Some(Self {
            pid: pid.parse().ok()?,
            host: Some(host).filter(|host| *host != UNKNOWN),
            place: Some((boot, namespace))
                .filter(|(boot, namespace)| *boot != UNKNOWN && *namespace != UNKNOWN),
            started: started.parse().ok(),
        })
    }
}

/// Recognizes owners whose process has ended, by `/proc`. Processes of other machines, containers or boots count
/// as running.
#[derive(Debug)]
pub(crate) struct SystemProcesses {
    here: String,
}

impl SystemProcesses {
    pub(crate) fn new() -> Self {
        Self { here: current() }
    }
}

impl Liveness for SystemProcesses {
    fn is_gone(&self, owner: &Owner) -> bool {
        let place = |owner| ProcessOwner::parse(owner)?.place;
        let here = place(&self.here);
        let Some(owner) = ProcessOwner::parse(&owner.0).filter(|owner| owner.place == here) else {
            return false;
        };
        here.is_some()
            && match look(&owner.pid.to_string()) {
                Process::Ended => true,
                Process::Runs { started } => owner.started.is_some_and(|then| then != started),
                Process::Unknown => false,
            }
    }
}

/// State of a process according to `/proc`.
enum Process {
    /// The process runs. `started` is its start time, in clock ticks since the boot.
    Runs {
        started: u64,
    },
    /// The process does not exist, or it has ended and its parent has not waited for it yet.
    Ended,
    Unknown,
}

fn look(pid: &str) -> Process {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        // If even process 1 is not visible, other processes may be hidden too.
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound
                && fs::exists("/proc/1").is_ok_and(|is| is) =>
        {
            return Process::Ended;
        }
        Err(_) => return Process::Unknown,
    };
    // The program's name is in brackets and may contain any characters.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return Process::Ended;
    }
    // The start time is field 22 of the line. The state, which was already taken, is field 3.
    match fields.nth(18).and_then(|started| started.parse().ok()) {
        Some(started) => Process::Runs { started },
        None => Process::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_from_its_text() {
        let (one, other) = (current(), current());
        assert_ne!(one, other, "two memories of one process are two owners");
        let read = ProcessOwner::parse(&one);
        assert_eq!(read, ProcessOwner::parse(&other));
        assert_eq!(read.map(|owner| owner.pid), Some(std::process::id()));
        for text in ["", "process-7", "process/a/b/c/d/e/f"] {
            assert_eq!(ProcessOwner::parse(text), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_process_that_has_ended_for_certain_is_gone() {
        let here = current();
        let fields: Vec<&str> = here.splitn(7, '/').collect();
        let gone = |changes: &[(usize, &str)]| {
            let mut fields = fields.clone();
            for (field, text) in changes {
                fields[*field] = text;
            }
            SystemProcesses::new().is_gone(&Owner(fields.join("/")))
        };
        assert!(!gone(&[]));
        // The same process number with another start time belongs to another process.
        assert!(gone(&[(4, "1")]));
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        let Process::Runs { started } = look(&pid) else {
            panic!("the child runs");
        };
        let (pid, started) = ((3, pid.as_str()), started.to_string());
        let started = (4, started.as_str());
        assert!(!gone(&[pid, started]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(gone(&[pid, started]));
        // The same number in another container, on another machine, or of an unknown place.
        for elsewhere in [(2, "pid:[1]"), (1, "another"), (1, UNKNOWN), (2, UNKNOWN)] {
            assert!(!gone(&[pid, started, elsewhere]), "{elsewhere:?}");
        }
        assert!(!SystemProcesses::new().is_gone(&Owner("somebody".to_owned())));
    }
}
