//! Owners of leases that are processes, and whether they still run.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

use compaction_runner::Liveness;
use memory_store::Owner;

/// Prefix of the text form of an owner that is a process.
const SCHEME: &str = "process";
/// Stands for a field that could not be determined.
const UNKNOWN: &str = "-";

/// An owner of leases: one memory of one process.
///
/// Two processes with the same number are told apart by the boot of their machine, their namespace
/// of process numbers (each container has its own), the time they were started, and a random
/// number. The text form is `process/BOOT/NAMESPACE/PID/STARTED/RANDOM/HOST`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessOwner {
    boot: Option<String>,
    namespace: Option<String>,
    pid: u32,
    started: Option<u64>,
    random: u64,
    host: Option<String>,
}

impl ProcessOwner {
    /// Returns an owner for the current process, with a new random number. On systems without
    /// `/proc` some fields are unknown, and the owner is never recognised as gone.
    pub fn current() -> Self {
        let read = |path| {
            let text = std::fs::read_to_string(path).ok()?;
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        Self {
            boot: read("/proc/sys/kernel/random/boot_id"),
            namespace: std::fs::read_link("/proc/self/ns/pid")
                .ok()
                .map(|link| link.to_string_lossy().into_owned()),
            pid: std::process::id(),
            started: match look("self") {
                Process::Runs { started } => Some(started),
                _ => None,
            },
            random: RandomState::new().hash_one(SCHEME),
            host: read("/proc/sys/kernel/hostname"),
        }
    }

    /// Returns the id of the process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the name of its machine or container.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether this process can see `other` in `/proc`: same boot of the same machine, and same
    /// namespace of process numbers.
    fn sees(&self, other: &Self) -> bool {
        self.boot.is_some()
            && self.boot == other.boot
            && self.namespace.is_some()
            && self.namespace == other.namespace
    }
}

impl fmt::Display for ProcessOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or(UNKNOWN.to_owned());
        write!(
            f,
            "{SCHEME}/{}/{}/{}/{}/{:016x}/{}",
            or_unknown(&self.boot),
            or_unknown(&self.namespace),
            self.pid,
            or_unknown(&self.started.map(|started| started.to_string())),
            self.random,
            or_unknown(&self.host),
        )
    }
}

/// Error returned when a text is not the text form of a [`ProcessOwner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseProcessOwnerError;

impl fmt::Display for ParseProcessOwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the owner is not a process: expected process/BOOT/NAMESPACE/PID/STARTED/RANDOM/HOST",
        )
    }
}

impl std::error::Error for ParseProcessOwnerError {}

impl FromStr for ProcessOwner {
    type Err = ParseProcessOwnerError;

    fn from_str(text: &str) -> Result<Self, ParseProcessOwnerError> {
        let fields: Vec<&str> = text.splitn(7, '/').collect();
        let [SCHEME, boot, namespace, pid, started, random, host] = fields.as_slice() else {
            return Err(ParseProcessOwnerError);
        };
        let known = |field: &str| (field != UNKNOWN).then(|| field.to_owned());
        let started = known(started).map(|started| started.parse()).transpose();
        Ok(Self {
            boot: known(boot),
            namespace: known(namespace),
            pid: pid.parse().map_err(|_| ParseProcessOwnerError)?,
            started: started.map_err(|_| ParseProcessOwnerError)?,
            random: u64::from_str_radix(random, 16).map_err(|_| ParseProcessOwnerError)?,
            host: known(host),
        })
    }
}

/// Recognises owners whose process has ended, by `/proc`. Processes of other machines, containers or
/// boots count as running.
#[derive(Debug, Clone)]
pub struct SystemProcesses {
    here: ProcessOwner,
}

impl SystemProcesses {
    /// Creates a check that runs from the current process.
    pub fn new() -> Self {
        Self {
            here: ProcessOwner::current(),
        }
    }
}

impl Default for SystemProcesses {
    fn default() -> Self {
        Self::new()
    }
}

impl Liveness for SystemProcesses {
    fn is_gone(&self, owner: &Owner) -> bool {
        let Ok(owner) = owner.0.parse::<ProcessOwner>() else {
            return false;
        };
        if !self.here.sees(&owner) {
            return false;
        }
        match look(&owner.pid.to_string()) {
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
    let stat = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        // Where even the first process is not to be seen, others may be hidden too.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return match std::path::Path::new("/proc/1").exists() {
                true => Process::Ended,
                false => Process::Unknown,
            };
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

    fn gone(owner: &ProcessOwner) -> bool {
        SystemProcesses::new().is_gone(&Owner(owner.to_string()))
    }

    #[test]
    fn an_owner_is_read_back_from_its_text() {
        let here = ProcessOwner::current();
        assert_eq!(here.to_string().parse(), Ok(here.clone()));
        let nowhere = ProcessOwner {
            boot: None,
            namespace: None,
            started: None,
            host: None,
            ..here
        };
        assert_eq!(nowhere.to_string().parse(), Ok(nowhere));
        for text in ["", "process-7", "process/a/b/c/d/e/f"] {
            assert_eq!(
                text.parse::<ProcessOwner>(),
                Err(ParseProcessOwnerError),
                "{text}"
            );
        }
    }

    #[test]
    fn two_memories_of_one_process_are_two_owners() {
        assert_ne!(
            ProcessOwner::current().to_string(),
            ProcessOwner::current().to_string()
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_process_that_has_ended_for_certain_is_gone() {
        let here = ProcessOwner::current();
        assert!(!gone(&here));
        // The number was given to another process since.
        let before = ProcessOwner {
            started: here.started.map(|started| started - 1),
            ..here.clone()
        };
        assert!(gone(&before));
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let Process::Runs { started } = look(&child.id().to_string()) else {
            panic!("the child runs");
        };
        let other = ProcessOwner {
            pid: child.id(),
            started: Some(started),
            ..here.clone()
        };
        assert!(!gone(&other));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(gone(&other));
        // The same number in another container, on another machine, or of an unknown place.
        for elsewhere in [
            ProcessOwner {
                namespace: Some("pid:[1]".to_owned()),
                ..other.clone()
            },
            ProcessOwner {
                boot: Some("another".to_owned()),
                ..other.clone()
            },
            ProcessOwner {
                boot: None,
                namespace: None,
                ..other
            },
        ] {
            assert!(!gone(&elsewhere), "{elsewhere}");
        }
        assert!(!SystemProcesses::new().is_gone(&Owner("somebody".to_owned())));
    }
}
