//! Processes that are killed at random moments. The stored data stays intact, and the next run completes the work.

use super::faults::{Call, calls, run_traced};
use super::tools::{
    SESSION, assert_same_log, assert_sound, cases, command, completes, has_strace, home_with, kill,
    start, stored, transcript, undisturbed, until,
};
use crate::endpoint::{Answer, Endpoint};

#[test]
fn import_killed_while_it_writes() {
    cases(|rng| {
        let lines = transcript(rng, 800);
        let expected = undisturbed(&lines);
        let (home, file) = home_with(&lines);
        let size = {
            let (other, file) = home_with(&lines);
            other.ok(&["import", &file]);
            stored(&other.database())
        };
        for _ in 0..3 {
            let bytes = rng.u64(1..=size);
            let mut import = start(command(&home, &["import", &file]));
            let database = home.database();
            until(&mut import, || stored(&database) >= bytes);
            kill(import);
            assert_sound(&home, "kill -9 of an import");
        }
        home.ok(&["import", &file]);
        assert_same_log(&home, &expected, "kill -9 of imports");
    });
}

/// Returns the command that is killed and then run again.
fn target(redo: bool, file: &str) -> [&str; 2] {
    match redo {
        true => ["redo", SESSION],
        false => ["compact", file],
    }
}

/// Kills the program while it waits for a model, then completes the work in a second run with a model that answers.
fn killed_at_a_request(rng: &mut fastrand::Rng, redo: bool) {
    let lines = transcript(rng, 300);
    let expected = undisturbed(&lines);
    let run = |home: &crate::support::Home, file: &str, endpoint: &Endpoint| {
        if redo {
            home.ok(&["compact", file]);
        }
        endpoint.asked_by(&target(redo, file))
    };
    let needed = {
        let (home, file) = home_with(&lines);
        let endpoint = Endpoint::well();
        let arguments = run(&home, &file, &endpoint);
        completes(&home, &arguments, "nothing");
        endpoint.count()
    };
    assert!(
        needed > 2,
        "{needed} requests are too few to be killed between"
    );
    let (home, file) = home_with(&lines);
    let last = rng.usize(1..=needed);
    let endpoint = Endpoint::start(move |request| match request.number < last {
        true => Answer::Summary,
        false => Answer::Silence,
    });
    let arguments = run(&home, &file, &endpoint);
    let killed = start(command(&home, &arguments));
    endpoint.wait_for(last);
    kill(killed);
    let what = format!("kill -9 at request {last} of {needed}");
    assert_same_log(&home, &expected, &what);

    let well = Endpoint::well();
    let answer = completes(&home, &well.asked_by(&target(redo, &file)), &what);
    let left = match redo {
        true => &answer["provisional"]["left"],
        false => &answer["provisional"],
    };
    assert_eq!(left, 0, "{what}: {answer}");
    assert!(
        well.count() <= needed,
        "{what}: {} requests afterwards",
        well.count()
    );
    assert_same_log(&home, &expected, &what);
}

#[test]
fn compact_killed_while_a_model_writes() {
    cases(|rng| killed_at_a_request(rng, false));
}

#[test]
fn redo_killed_while_a_model_writes() {
    cases(|rng| killed_at_a_request(rng, true));
}

#[test]
fn killed_at_a_system_call() {
    if !has_strace() {
        return;
    }
    cases(|rng| {
        let lines = transcript(rng, 300);
        let expected = undisturbed(&lines);
        for verb in ["import", "compact"] {
            let (other, file) = home_with(&lines);
            let all = calls(&other, &[verb, &file], Call::KILLED);
            let (home, file) = home_with(&lines);
            for _ in 0..3 {
                let call = &all[rng.usize(..all.len())];
                let inject = format!("inject={}:signal=KILL:when={}", call.name, call.number);
                run_traced(&home, &[verb, &file], Call::KILLED, Some(&inject));
                let what = format!("kill -9 of {verb} at {} number {}", call.name, call.number);
                assert_sound(&home, &what);
            }
            home.ok(&["import", &file]);
            assert_same_log(&home, &expected, "kills at system calls");
            completes(&home, &["compact", SESSION], "kills at system calls");
        }
    });
}

#[test]
fn restore_killed_at_a_system_call() {
    if !has_strace() {
        return;
    }
    cases(|rng| {
        let lines = transcript(rng, 300);
        let (old, new) = (undisturbed(&lines[..200]), undisturbed(&lines));
        let prepared = || {
            let (home, file) = home_with(&lines[..200]);
            home.ok(&["import", &file]);
            home.ok(&["backup", "old.db"]);
            home.file("session.jsonl", lines.concat());
            home.ok(&["import", &file]);
            home
        };
        let restore = ["restore", "old.db", "--replace"];
        let all = calls(&prepared(), &restore, Call::KILLED);
        for _ in 0..5 {
            let home = prepared();
            // Most calls are of the last third, which changes the database.
            let first = if rng.bool() { 0 } else { all.len() * 2 / 3 };
            let call = &all[rng.usize(first..all.len())];
            let inject = format!("inject={}:signal=KILL:when={}", call.name, call.number);
            run_traced(&home, &restore, Call::KILLED, Some(&inject));
            let what = format!("kill -9 of restore at {} number {}", call.name, call.number);
            assert_sound(&home, &what);
            let log = home.ok(&["export", SESSION]).out;
            assert!(
                log == old || log == new,
                "{what}: {} lines",
                log.lines().count()
            );
            home.ok(&restore);
            assert_same_log(&home, &old, &what);
            let names = std::fs::read_dir(home.database().parent().unwrap()).unwrap();
            let left = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let left: Vec<String> = left.filter(|name| name.contains("-restore")).collect();
            assert!(left.is_empty(), "{what}: {left:?}");
        }
    });
}
