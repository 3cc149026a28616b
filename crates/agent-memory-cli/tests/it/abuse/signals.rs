//! Ctrl-C on a terminal and SIGTERM. The program ends with the shell's exit code for the signal, and the next run
//! completes the work.

use std::io::{Read as _, Write as _};

use rustix::process::{Pid, Signal, kill_process};

use super::tools::{
    SESSION, assert_same_log, cases, command, completes, end, home_with, start, transcript,
    undisturbed,
};
use crate::endpoint::{Answer, Endpoint};

enum Stop {
    /// Ctrl-C, typed on the terminal of the program.
    Typed,
    Sent(Signal),
}

fn stopped(rng: &mut fastrand::Rng, stop: &Stop, code: i32) {
    let lines = transcript(rng, 300);
    let expected = undisturbed(&lines);
    let (home, file) = home_with(&lines);
    let last = rng.usize(1..3);
    let endpoint = Endpoint::start(move |request| match request.number < last {
        true => Answer::Summary,
        false => Answer::Silence,
    });
    let compact = command(&home, &endpoint.asked_by(&["compact", &file]));
    let (ended, said) = match stop {
        Stop::Typed => {
            let (pty, pts) = pty_process::blocking::open().unwrap();
            pty.resize(pty_process::Size::new(24, 80)).unwrap();
            let child = pty_process::blocking::Command::from(compact).spawn(pts);
            let child = child.unwrap();
            endpoint.wait_for(last);
            std::thread::scope(|scope| {
                let screen = scope.spawn(|| {
                    let mut all = Vec::new();
                    // The terminal reports an error when the program's side is closed.
                    let _ = (&pty).read_to_end(&mut all);
                    String::from_utf8_lossy(&all).into_owned()
                });
                (&pty).write_all(b"\x03").unwrap();
                let ended = end(child);
                (ended, screen.join().unwrap())
            })
        }
        Stop::Sent(signal) => {
            let child = start(compact);
            endpoint.wait_for(last);
            kill_process(Pid::from_child(&child), *signal).unwrap();
            let ended = end(child);
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            (ended, said)
        }
    };
    assert_eq!(
        ended.status.code(),
        Some(code),
        "{:?}: {said}",
        ended.status
    );
    let what = format!("a signal at request {last}");
    assert_same_log(&home, &expected, &what);
    let well = Endpoint::well();
    let answer = completes(&home, &well.asked_by(&["compact", SESSION]), &what);
    assert_eq!(answer["provisional"], 0, "{answer}");
    let left = home.json(&["redo", SESSION, "--dry-run"]);
    assert_eq!(left["provisional"]["found"], 0, "{left}");
    assert_same_log(&home, &expected, &what);
}

#[test]
fn ctrl_c_on_a_terminal() {
    cases(|rng| stopped(rng, &Stop::Typed, 130));
}

#[test]
fn sigint() {
    cases(|rng| stopped(rng, &Stop::Sent(Signal::INT), 130));
}

#[test]
fn sigterm() {
    cases(|rng| stopped(rng, &Stop::Sent(Signal::TERM), 143));
}
