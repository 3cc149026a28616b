//! Invalid input. The program prints a clear error, ends with a specific exit code, and changes nothing.

use crate::support::{Home, fixture, sql};

/// Runs a command that must fail. Checks the exit code, the texts and the JSON.
fn fails(home: &Home, arguments: &[&str], code: i32, kind: &str) -> String {
    let plain = home.fails(arguments, code);
    plain.says("error: ");
    assert!(
        plain.out.is_empty() || code > 6,
        "{arguments:?}: {}",
        plain.out
    );
    let error = home.fails(&[&["--json"], arguments].concat(), code).error();
    assert_eq!(error["kind"], kind, "{arguments:?}: {error}");
    for said in ["message", "hint"] {
        assert_ne!(error[said].as_str().unwrap(), "", "{arguments:?}: {error}");
    }
    plain.err
}

#[test]
fn files_that_are_not_transcripts() {
    let home = Home::new();
    home.file("empty.jsonl", "");
    home.file("blank.jsonl", "\n  \n");
    home.file(
        "binary.jsonl",
        [0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe, b'\n', 0x80],
    );
    home.file("prose.txt", "Dear diary,\nnothing happened.\n");
    for (file, kind) in [
        ("empty.jsonl", "empty"),
        ("blank.jsonl", "empty"),
        ("binary.jsonl", "not_text"),
        ("prose.txt", "unknown_format"),
    ] {
        for command in ["compact", "import"] {
            let err = fails(&home, &[command, file], 4, kind);
            assert!(err.contains(file), "{err}");
            assert!(err.contains("hint: "), "{err}");
        }
        fails(&home, &["compact", file, "--dry-run"], 4, kind);
    }
    fails(&home, &["import", "missing.jsonl"], 4, "unreadable");
    fails(&home, &["tokens", "missing.txt"], 4, "unreadable");
    std::fs::create_dir(home.path().join("nothing")).unwrap();
    fails(&home, &["import", "nothing"], 4, "empty");
    let err = fails(&home, &["compact", "nothing"], 4, "unreadable");
    assert!(
        err.contains("is a directory") && err.contains("import"),
        "{err}"
    );
    assert!(!home.database().exists(), "no database was made");
    assert!(!home.path().join("agent-memory").exists());
}

#[cfg(unix)]
#[test]
fn a_dangling_link_is_a_file_that_cannot_be_read() {
    let home = Home::new();
    std::os::unix::fs::symlink("gone", home.path().join("link.jsonl")).unwrap();
    for command in ["compact", "import"] {
        fails(&home, &[command, "link.jsonl"], 4, "unreadable");
    }
    assert!(!home.database().exists());
}

#[test]
fn one_bad_file_among_those_named_imports_none() {
    let home = Home::new();
    home.file("binary.jsonl", [0, 0xff, 0xfe]);
    fails(
        &home,
        &["import", &fixture("jsonl/tiny"), "binary.jsonl"],
        4,
        "not_text",
    );
    assert!(!home.database().exists());
}

#[test]
fn reading_makes_no_database() {
    let home = Home::new();
    for arguments in [
        &["context", "x"][..],
        &["grep", "x", "y"],
        &["describe", "x", "sum_1"],
        &["expand", "x", "sum_1"],
        &["sessions"],
        &["stats"],
        &["verify"],
        &["export", "x"],
        &["compact", "x"],
        &["compact", "x", "--dry-run"],
        &["sessions", "--store", "elsewhere.db"],
    ] {
        let err = fails(&home, arguments, 3, "no_database");
        assert!(err.contains("import something first"), "{err}");
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    // A file without a byte is no database either, and stays as it is.
    home.file("zero.db", "");
    fails(&home, &["sessions", "--store", "zero.db"], 3, "no_database");
    assert_eq!(
        std::fs::metadata(home.path().join("zero.db"))
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn what_does_not_exist() {
    let home = Home::new();
    home.ok(&["import", &fixture("jsonl/tiny"), "--session", "chess"]);
    home.ok(&["import", &fixture("jsonl/tiny"), "--session", "cheese"]);
    for arguments in [
        &["context", "nobody"][..],
        &["grep", "nobody", "y"],
        &["describe", "nobody", "sum_1"],
        &["expand", "nobody", "sum_1"],
        &["export", "nobody"],
        &["verify", "nobody"],
        &["compact", "nobody"],
        &["describe", "chess", "sum_0000000000000000"],
        &["expand", "chess", "sum_0000000000000000"],
        &["expand", "chess", "message:77"],
        &["export", ""],
    ] {
        fails(&home, arguments, 3, "not_found");
    }
    let err = fails(&home, &["export", "che"], 3, "ambiguous");
    assert!(err.contains("chess, cheese"), "{err}");
    assert_eq!(
        home.json(&["sessions"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    home.ok(&["export", "ches"]);
}

#[test]
fn values_that_cannot_be_right() {
    let home = Home::new();
    home.ok(&["import", &fixture("jsonl/tiny"), "--session", "chess"]);
    fails(&home, &["grep", "chess", ""], 4, "invalid");
    fails(
        &home,
        &["grep", "chess", "x", "--cursor", "bogus"],
        4,
        "invalid",
    );
    // A cursor of another session, or of another search.
    home.ok(&["import", &fixture("jsonl/tiny"), "--session", "other"]);
    let found = home.json(&["grep", "chess", "e", "--limit", "1"]);
    let cursor = found["cursor"].as_str().unwrap();
    home.ok(&["grep", "chess", "e", "--cursor", cursor]);
    for [session, pattern] in [["other", "e"], ["chess", "a"]] {
        let arguments = ["grep", session, pattern, "--cursor", cursor];
        fails(&home, &arguments, 4, "invalid");
    }
    fails(&home, &["expand", "chess", "message:0"], 4, "invalid");
    fails(
        &home,
        &["expand", "chess", "message:1", "--cursor", "bogus"],
        4,
        "invalid",
    );
    for arguments in [
        &["nonsense"][..],
        &["grep", "chess", "x", "--limit", "0"],
        &["context"],
        &["context", "chess", "--budget", "many"],
        &["compact", "chess", "--strategy", "magic"],
        &["compact", "chess", "--summarizer", "openai:gpt"],
        &["sessions", "--store", "mysql://host/db"],
        &["sessions", "--store", "sqlite:"],
    ] {
        fails(&home, arguments, 2, "usage");
    }
}

#[test]
fn budgets_that_are_too_small() {
    let home = Home::new();
    let file = fixture("jsonl/tiny");
    fails(
        &home,
        &["compact", &file, "--budget", "0"],
        6,
        "budget_too_small",
    );
    assert!(!home.database().exists());
    home.ok(&["import", &file, "--session", "chess"]);
    for budget in ["0", "1"] {
        let arguments = ["context", "chess", "--budget", budget];
        let err = fails(&home, &arguments, 6, "budget_too_small");
        assert!(err.contains("hint: give --budget "), "{err}");
    }
    // What the hint says is enough.
    let err = home.run(&["context", "chess", "--budget", "0"]).err;
    let (_, hint) = err.split_once("--budget ").unwrap();
    let needed = hint.split_whitespace().next().unwrap();
    home.ok(&["context", "chess", "--budget", needed]);
}

#[test]
fn databases_that_are_not_ours() {
    let home = Home::new();
    let file = fixture("jsonl/tiny");
    home.file(
        "text.db",
        "This is no database at all, but long enough to look at.".repeat(40),
    );
    sql(&home.path().join("stranger.db"), "create table theirs (x)").close();
    home.ok(&["import", &file, "--store", "newer.db"]);
    sql(&home.path().join("newer.db"), "pragma user_version = 9999").close();
    std::fs::create_dir(home.path().join("directory.db")).unwrap();
    for (store, kind) in [
        ("text.db", "foreign_database"),
        ("stranger.db", "foreign_database"),
        ("newer.db", "newer_schema"),
        ("directory.db", "database"),
    ] {
        let path = home.path().join(store);
        let before = std::fs::read(&path).ok();
        for arguments in [&["sessions"][..], &["import", &file], &["compact", &file]] {
            let mut arguments = arguments.to_vec();
            arguments.extend(["--store", store]);
            let err = fails(&home, &arguments, 5, kind);
            assert!(err.contains(store), "{err}");
        }
        assert_eq!(std::fs::read(&path).ok(), before, "{store} was changed");
    }
    fails(
        &home,
        &["import", &file, "--store", "no/such/dir/a.db"],
        5,
        "database",
    );
}

#[test]
fn a_damaged_database_is_found_out() {
    let home = Home::new();
    home.ok(&["compact", &fixture("claude-code/bugfix")]);
    let damage = "update conversation set tokens = tokens + 1";
    sql(&home.database(), damage).close();
    let err = fails(&home, &["verify"], 7, "verification_failed");
    assert!(
        err.contains("1 thing wrong") || err.contains("things wrong"),
        "{err}"
    );
    let ran = home.run(&["--json", "verify"]);
    let answer = ran.json();
    assert_eq!(answer["ok"], false);
    assert!(answer["violations"][0]["message"].is_string());
}

#[test]
fn errors_do_not_repeat_themselves() {
    let home = Home::new();
    let err = home.run(&["export", "x"]).err;
    assert_eq!(err.lines().count(), 2, "{err}");
}
