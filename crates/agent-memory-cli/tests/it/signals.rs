//! SIGINT, SIGTERM and SIGKILL during a command, and the state that the next run finds.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};

use crate::endpoint::{Answer, Endpoint};
use crate::support::{Home, Ran, fixture, program, sql};

/// Returns a home with a session that needs several summaries.
fn home() -> (Home, String) {
    let home = Home::new();
    home.ok(&["import", &fixture("claude-code/release-week")]);
    let key = home.session();
    (home, key)
}

fn compact(home: &Home, key: &str, endpoint: &Endpoint) -> Command {
    let mut command = home.process(program());
    command.args(endpoint.asked_by(&["--json", "compact", key]));
    command
}

/// Starts a compaction, and returns when it waits for the model.
fn waiting(home: &Home, key: &str, endpoint: &Endpoint) -> Child {
    let child = compact(home, key, endpoint).spawn().unwrap();
    endpoint.wait_for(1);
    child
}

/// Sends a signal, such as `INT`.
fn signal(child: &Child, name: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn end(child: Child) -> Ran {
    Ran::from(child.wait_with_output().unwrap())
}

/// Compacts again, with a model that answers. Asserts that no lease prevents it.
fn completes(home: &Home, key: &str) {
    let endpoint = Endpoint::well();
    let ran = end(compact(home, key, &endpoint).spawn().unwrap()).ended(0);
    let answer = ran.json();
    assert_ne!(answer["stop_reason"], "held", "{answer}");
    assert!(
        answer["summaries"]["leaf"].as_u64().unwrap() > 0,
        "{answer}"
    );
}

#[test]
fn a_signal_gives_the_leases_back() {
    for (number, code) in [("INT", 130), ("TERM", 143)] {
        let (home, key) = home();
        let endpoint = Endpoint::start(move |_| match code {
            130 => Answer::Begins,
            _ => Answer::Silence,
        });
        let child = waiting(&home, &key, &endpoint);
        signal(&child, number);
        let ran = end(child).ended(code);
        assert_eq!(ran.error()["kind"], "stopped", "{}", ran.err);
        assert!(
            !home.path().join("agent-memory/memory.db-wal").exists(),
            "the store was closed"
        );
        completes(&home, &key);
    }
}

#[test]
fn a_concurrent_run_names_the_owner_and_the_end_of_its_lease() {
    let (home, key) = home();
    let endpoint = Endpoint::start(|_| Answer::Silence);
    let first = waiting(&home, &key, &endpoint);
    let second = Endpoint::well();
    let ran = end(compact(&home, &key, &second).spawn().unwrap());
    // Four summaries are asked for at the same time: the others are made.
    let answer = ran.json();
    let made = answer["summaries"]["leaf"].as_u64().unwrap();
    let third = end(compact(&home, &key, &second).spawn().unwrap());
    assert_eq!(third.code, 10, "{made}: {}", third.err);
    let error = third.error();
    assert_eq!(error["kind"], "held", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("process {}", first.id())),
        "{message}"
    );
    // A time, to the second, in UTC.
    assert!(
        message.contains("until 20") && message.contains('Z'),
        "{message}"
    );
    assert!(second.count() > 0 || made == 0);
    signal(&first, "INT");
    assert_eq!(end(first).code, 130);
    completes(&home, &key);
}

#[test]
fn a_second_redo_names_the_first_and_calls_no_model() {
    let (home, key) = home();
    home.ok(&["compact", &key]);
    let redo = |endpoint: &Endpoint| {
        let mut command = home.process(program());
        command.args(endpoint.asked_by(&["--json", "redo", &key]));
        command.spawn().unwrap()
    };
    let (silent, well) = (Endpoint::start(|_| Answer::Silence), Endpoint::well());
    let first = redo(&silent);
    silent.wait_for(1);
    let second = end(redo(&well)).ended(10);
    let error = second.error();
    assert_eq!(error["kind"], "held", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("process {}", first.id())),
        "{message}"
    );
    assert_eq!(
        (well.count(), &second.json()["stop_reason"]),
        (0, &"held".into())
    );
    signal(&first, "INT");
    assert_eq!(end(first).code, 130);
    // The first one has given its lease back.
    assert_ne!(end(redo(&well)).json()["stop_reason"], "held");
    assert!(well.count() > 0);
}

#[test]
fn a_second_signal_ends_at_once() {
    let (home, key) = home();
    let endpoint = Endpoint::start(|_| Answer::Silence);
    let mut command = compact(&home, &key, &endpoint);
    let child = command.args(["--lock-timeout", "3600"]).spawn().unwrap();
    endpoint.wait_for(1);
    // Nothing can be given back while somebody else writes.
    let held = sql(&home.database(), "begin immediate");
    signal(&child, "INT");
    // It says that it heard; the second one comes after that.
    let mut child = child;
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains("again") {
        assert_ne!(err.read_line(&mut heard).unwrap(), 0, "{heard}");
    }
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    held.close();
    completes(&home, &key);
}

#[test]
fn a_command_without_leases_ends_at_the_first_signal() {
    // The reader of its output has gone to sleep.
    let (home, key) = home();
    let mut export = home.process(program());
    let mut child = export.args(["export", &key]).spawn().unwrap();
    let mut some = [0; 100];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut some)
        .unwrap();
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
