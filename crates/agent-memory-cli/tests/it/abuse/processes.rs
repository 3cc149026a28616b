//! Many processes on one database. No message is lost or stored twice, and no model call is made twice.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};

use super::tools::{
    SESSION, assert_same_log, assert_sound, cases, command, completes, end, has_unshare, home_with,
    start, transcript, under, undisturbed,
};
use crate::endpoint::{Answer, Endpoint, question};
use crate::support::{Home, PATIENCE, Ran};

/// Asserts that a run is done, or that another process was doing the same work.
fn done_or_held(ran: &Ran) {
    let held = ran.err.contains("works on the same summaries") || ran.err.contains("held");
    assert!(
        ran.code == 0 || held,
        "exit code {}: {}{}",
        ran.code,
        ran.out,
        ran.err
    );
}

#[test]
fn many_imports_of_one_file() {
    cases(|rng| {
        let lines = transcript(rng, 600);
        let expected = undisturbed(&lines);
        let (home, file) = home_with(&lines);
        // The first of them makes the database.
        let children: Vec<_> = (0..4)
            .map(|_| start(command(&home, &["import", &file])))
            .collect();
        for child in children {
            Ran::from(end(child)).ended(0);
        }
        assert_same_log(&home, &expected, "four imports of one file at once");
    });
}

#[test]
fn imports_compactions_and_readers() {
    cases(|rng| {
        let lines = transcript(rng, 400);
        let expected = undisturbed(&lines);
        let (home, file) = home_with(&lines);
        let half = home.file("half.jsonl", lines[..200].concat());
        home.ok(&["import", half.to_str().unwrap()]);
        let mut children = Vec::new();
        for _ in 0..2 {
            children.push(start(command(&home, &["import", &file])));
            children.push(start(command(&home, &["compact", SESSION])));
            children.push(start(command(&home, &["context", SESSION])));
            children.push(start(command(&home, &["verify"])));
        }
        for child in children {
            done_or_held(&Ran::from(end(child)));
        }
        assert_same_log(&home, &expected, "imports, compactions and readers at once");
        completes(&home, &["compact", SESSION], "eight processes at once");
        assert_same_log(&home, &expected, "a compaction after them");
    });
}

/// Runs several compactions of one session at once. The first waits for its model until the others have ended, so that
/// it holds its leases while the others look for work.
fn compacting_together(rng: &mut fastrand::Rng, process: &dyn Fn(&Home, &[String]) -> Command) {
    let lines = transcript(rng, 300);
    let expected = undisturbed(&lines);
    let (home, file) = home_with(&lines);
    home.ok(&["import", &file]);
    let released = Arc::new((Mutex::new(false), Condvar::new()));
    let gate = Arc::clone(&released);
    let endpoint = Endpoint::start(move |request| {
        if request.number == 1 {
            let (open, opened) = &*gate;
            let open = open.lock().unwrap();
            drop(
                opened
                    .wait_timeout_while(open, PATIENCE, |open| !*open)
                    .unwrap(),
            );
        }
        Answer::Summary
    });
    let arguments = endpoint.asked_by(&["compact", SESSION]);
    let first = start(process(&home, &arguments));
    endpoint.wait_for(1);
    let others: Vec<_> = (0..2).map(|_| start(process(&home, &arguments))).collect();
    for other in others {
        done_or_held(&Ran::from(end(other)));
    }
    *released.0.lock().unwrap() = true;
    released.1.notify_all();
    let ran = Ran::from(end(first));
    done_or_held(&ran);
    assert_sound(&home, "three compactions at once");
    let answer = completes(&home, &arguments, "three compactions at once");
    assert_eq!(answer["provisional"], 0);
    let questions: Vec<String> = endpoint.requests().iter().map(question).collect();
    let different: BTreeSet<&String> = questions.iter().collect();
    assert_eq!(
        questions.len(),
        different.len(),
        "(requests, different ones): some were paid twice"
    );
    assert_same_log(&home, &expected, "three compactions at once");
}

#[test]
fn many_compactions_pay_each_call_once() {
    cases(|rng| compacting_together(rng, &command));
}

#[test]
fn processes_with_equal_ids_in_namespaces_of_their_own_pay_each_call_once() {
    let namespace = ["unshare", "--pid", "--fork", "--kill-child"];
    if !has_unshare(&namespace[1..]) {
        return;
    }
    cases(|rng| {
        compacting_together(rng, &|home, arguments| under(home, &namespace, arguments));
    });
}
