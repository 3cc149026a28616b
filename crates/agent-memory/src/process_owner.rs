//! Owners of leases that are processes, and checks whether they still run.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};

use compaction_runner::Liveness;
use memory_store::Owner;

/// Placeholder of a field that could not be determined.
const UNKNOWN: &str = "-";

/// Returns the owner of the leases of one memory of this process: `process/BOOT/NAMESPACE/PID/STARTED/RANDOM/HOST`.
///
/// The boot of their machine, their namespace of process numbers (each container has its own), their start times, and a
/// random number distinguish two processes with the same number. Without `/proc` some fields are unknown, and the owner
/// is never recognized as gone.
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

/// A process that owns leases, as recorded in the name of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessOwner<'a> {
    /// Id of the process.
    pub pid: u32,
    /// Name of the process's machine or container; `None` if it is not known.
    pub host: Option<&'a str>,
    /// Boot of its machine and namespace of process numbers, which are the same for processes that can see it.
    place: Option<(&'a str, &'a str)>,
    started: Option<u64>,
}

impl<'a> ProcessOwner<'a> {
    /// Parses the name of a lease's owner; `None` if the owner is not a process.
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

/// Recognizes owners with an ended process, by `/proc`. Processes of other machines, containers or boots count as
/// running.
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

/// State of a process by `/proc`.
enum Process {
    /// Runs, started at this time in ticks since the boot.
    Runs {
        started: u64,
    },
    /// Does not exist, or has ended and was not waited for.
    Ended,
    Unknown,
}

fn look(pid: &str) -> Process {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        // Where even the first process is not to be seen, others may be hidden too.
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound
                && fs::exists("/proc/1").is_ok_and(|is| is) =>
        {
            return Process::Ended;
        }
        Err(_) => return Process::Unknown,
    };
    // The name of the program stands in brackets and may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = fields.split_ascii_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return Process::Ended;
    }
    // The twenty-second field of all; the state is the third.
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
        // The number was given to another process since.
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
