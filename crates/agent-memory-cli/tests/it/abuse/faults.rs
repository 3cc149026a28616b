//! System calls that fail. The program reports the failure by its exit code, and the stored data stays intact.

use std::collections::HashMap;

use super::tools::{
    SESSION, assert_same_log, assert_sound, cases, completes, end, has_strace, home_with, start,
    transcript, under, undisturbed,
};
use crate::support::{Home, Ran};

/// A system call in a trace of the program.
pub struct Call {
    pub name: String,
    /// Whether the call is for the database or its logs, and not for a folder. SQLite ignores a failed sync of a log's
    /// folder. No data is lost, because the log is empty when a command ends.
    pub of_database: bool,
    /// Number of the call among the calls of this name in its thread, from 1. `strace` names it `when`.
    pub number: usize,
}

impl Call {
    /// Calls at which a process is killed: all calls that change files or their locks.
    pub const KILLED: &'static str =
        "pwrite64,fdatasync,fsync,ftruncate,unlink,openat,fcntl,mkdir,chmod";
    /// Calls that fail on a full or damaged disk.
    pub const FAILING: &'static str = "pwrite64,fdatasync,fsync,ftruncate";
}

/// Runs the program under `strace`. Returns its result and the trace.
pub fn run_traced(
    home: &Home,
    arguments: &[&str],
    traced: &str,
    inject: Option<&str>,
) -> (std::process::Output, String) {
    let log = home.path().join("trace");
    let trace = format!("trace={traced}");
    let mut wrapper = vec![
        "strace",
        "-f",
        "-y",
        "-qq",
        "-o",
        log.to_str().unwrap(),
        "-e",
        &trace,
    ];
    if let Some(inject) = inject {
        wrapper.extend(["-e", inject]);
    }
    let output = end(start(under(home, &wrapper, arguments)));
    let log = std::fs::read_to_string(log).unwrap();
    (output, log)
}

/// Returns the system calls of a run without failures.
pub fn calls(home: &Home, arguments: &[&str], traced: &str) -> Vec<Call> {
    let (output, log) = run_traced(home, arguments, traced, None);
    let ran = Ran::from(output);
    assert_eq!(ran.code, 0, "{arguments:?} under strace: {}", ran.err);
    let mut numbers: HashMap<(&str, &str), usize> = HashMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, arguments)) = rest.trim_start().split_once('(') else {
            continue;
        };
        if !traced.split(',').any(|traced| traced == name) {
            continue;
        }
        let number = numbers.entry((thread, name)).or_default();
        *number += 1;
        calls.push(Call {
            name: name.to_owned(),
            of_database: arguments.contains("/memory.db"),
            number: *number,
        });
    }
    assert!(calls.len() > 10, "{} calls traced:\n{log}", calls.len());
    calls
}

#[test]
fn a_failing_write_or_sync_is_never_exit_code_0() {
    if !has_strace() {
        return;
    }
    cases(|rng| {
        let lines = transcript(rng, 300);
        let expected = undisturbed(&lines);
        for verb in ["import", "compact"] {
            let (other, file) = home_with(&lines);
            let all = calls(&other, &[verb, &file], Call::FAILING);
            // Syncs are few beside writes: both have to be met.
            let (mut syncs, mut writes): (Vec<&Call>, Vec<&Call>) = all
                .iter()
                .filter(|call| call.of_database)
                .partition(|call| call.name.ends_with("sync"));
            rng.shuffle(&mut syncs);
            rng.shuffle(&mut writes);
            for call in syncs.into_iter().take(5).chain(writes.into_iter().take(2)) {
                let error = match call.name.as_str() {
                    "pwrite64" => rng.choice(["EIO", "ENOSPC"]).unwrap(),
                    _ => "EIO",
                };
                let (home, file) = home_with(&lines);
                let inject = format!("inject={}:error={error}:when={}", call.name, call.number);
                let (output, log) = run_traced(&home, &[verb, &file], Call::FAILING, Some(&inject));
                let ran = Ran::from(output);
                let what = format!("{error} of {} number {} in {verb}", call.name, call.number);
                if log.contains("(INJECTED)") {
                    assert_ne!(ran.code, 0, "{what}: {}{}", ran.out, ran.err);
                    assert!(ran.err.contains("error: "), "{what}: {}", ran.err);
                }
                assert_sound(&home, &what);
                home.ok(&["import", &file]);
                assert_same_log(&home, &expected, &what);
                completes(&home, &["compact", SESSION], &what);
            }
        }
    });
}
