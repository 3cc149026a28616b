//! Location of the database: its permissions, places that cannot be written, locks, and the files on the disk.
#![cfg(unix)]
#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Home, Ran, fixture, program, sql, tells};

/// Id of a user that owns no files.
const NOBODY: &str = "65534";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

/// Returns all visible properties of a folder's files: names, modes, modification times and contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (u32, std::time::SystemTime, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let look = |path: PathBuf| {
        let meta = std::fs::metadata(&path).unwrap();
        let content = std::fs::read(&path).unwrap();
        let seen = (meta.permissions().mode(), meta.modified().unwrap(), content);
        (path, seen)
    };
    paths.map(look).collect()
}

/// A database with one compacted session, and all commands that only read it.
struct Reading {
    home: Home,
    key: String,
    summary: String,
}

impl Reading {
    fn new() -> Self {
        let home = Home::new();
        let compacted = home.json(&["compact", &fixture("claude-code/bugfix")]);
        Self {
            key: compacted["session"].as_str().unwrap().to_owned(),
            summary: compacted["summary"].as_str().unwrap().to_owned(),
            home,
        }
    }

    fn commands(&self) -> Vec<Vec<&str>> {
        let (key, summary) = (self.key.as_str(), self.summary.as_str());
        // As JSON, which names no program.
        vec![
            vec!["--json", "sessions"],
            vec!["--json", "stats"],
            vec!["--json", "verify"],
            vec!["--json", "verify", key],
            vec!["--json", "export", key],
            vec!["--json", "grep", key, "test"],
            vec!["--json", "describe", key, summary],
            vec!["--json", "expand", key, summary],
            vec!["--json", "context", key],
            vec!["--json", "view", key],
            vec!["--json", "compact", key, "--dry-run"],
        ]
    }

    fn folder(&self) -> PathBuf {
        self.home.database().parent().unwrap().to_owned()
    }

    /// Runs every reading command through `run`. Asserts that it succeeds, prints the same as in a writable place
    /// (`before`), and leaves the folder unchanged.
    fn change_nothing(&self, before: &[String], run: &dyn Fn(&[&str]) -> Ran) {
        let seen = contents(&self.folder());
        for (arguments, before) in self.commands().iter().zip(before) {
            let ran = run(arguments);
            assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
            assert_eq!(&ran.out, before, "{arguments:?}");
            let now = contents(&self.folder());
            assert!(
                now == seen,
                "{arguments:?} changed the folder: {:?}",
                now.keys().collect::<Vec<_>>()
            );
        }
    }

    /// Returns the output of the commands.
    fn answers(&self) -> Vec<String> {
        let commands = self.commands();
        let answers = commands.iter().map(|arguments| self.home.ok(arguments).out);
        answers.collect()
    }

    /// Leaves a change in the write-ahead log, as a killed process does.
    fn leave_a_log(&self) {
        let database = self.home.database();
        // Whoever reads an older state keeps newer ones in the log.
        let reader = sql(&database, "begin; select count(*) from message");
        self.home
            .ok(&["set", &self.key, "--title", "left in the log"]);
        let copies = ["", "-wal", "-shm"].map(|suffix| {
            let path = beside(&database, suffix);
            let content = std::fs::read(&path).unwrap();
            (path, content)
        });
        reader.close();
        for (path, content) in copies {
            std::fs::write(path, content).unwrap();
        }
        assert!(std::fs::metadata(beside(&database, "-wal")).unwrap().len() > 0);
    }

    /// Makes the folder and its files readable by everybody, and writable by nobody.
    fn close_to_writers(&self) {
        for entry in std::fs::read_dir(self.folder()).unwrap() {
            set_mode(&entry.unwrap().path(), 0o444);
        }
        set_mode(&self.folder(), 0o555);
        set_mode(self.home.path(), 0o755);
    }

    /// Runs the program as a user for whom permissions apply: the current user, or `nobody` if the current user is
    /// root.
    fn run_without_privileges(&self, arguments: &[&str]) -> Ran {
        if !is_root() {
            return self.home.run(arguments);
        }
        // Nobody may not look into root's folders.
        let copy = self.home.path().join("program");
        if !copy.exists() {
            std::fs::copy(program(), &copy).unwrap();
            set_mode(&copy, 0o755);
        }
        let mut command = self.home.process("setpriv");
        command
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"])
            .arg(&copy)
            .args(arguments);
        Ran::from(command.output().unwrap())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // So that whoever is not root can delete it.
        let folder = self.home.path().join("agent-memory");
        if folder.is_dir() {
            set_mode(&folder, 0o700);
        }
    }
}

#[test]
fn a_new_database_is_private_for_any_umask() {
    for umask in ["000", "022", "777"] {
        let home = Home::new();
        let ran = home
            .process("sh")
            .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
            .arg(program())
            .args(["import", &fixture("jsonl/tiny")])
            .env("XDG_DATA_HOME", home.path().join("data/of the user"))
            .output()
            .unwrap();
        let ran = Ran::from(ran);
        assert_eq!(ran.code, 0, "umask {umask}: {}", ran.err);
        let made = ["data", "data/of the user", "data/of the user/agent-memory"];
        let folders = made.map(|folder| format!("{:o}", mode(&home.path().join(folder))));
        assert_eq!(folders, ["700", "700", "700"], "umask {umask}");
        let database = home.path().join(made[2]).join("memory.db");
        assert_eq!(format!("{:o}", mode(&database)), "600", "umask {umask}");
    }
}

#[test]
fn a_database_that_others_may_read_is_reported_once_and_left_unchanged() {
    let home = Home::new();
    home.ok(&["import", &fixture("jsonl/tiny")]);
    let ran = home.ok(&["sessions"]);
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    set_mode(&home.database(), 0o644);
    for arguments in [&["sessions"][..], &["import", &fixture("jsonl/tiny")]] {
        let ran = home.ok(arguments);
        let warnings: Vec<&str> = ran.err.lines().filter(|l| l.contains("warning")).collect();
        let [warning] = warnings.as_slice() else {
            panic!("one warning: {}", ran.err)
        };
        assert!(
            warning.contains("memory.db") && warning.contains("chmod 600"),
            "{warning}"
        );
        assert_eq!(mode(&home.database()), 0o644);
    }
}

/// The program must not remove permissions from a folder, a device or the file of another program.
#[test]
fn only_a_database_is_reported_as_open_to_others() {
    let home = Home::new();
    let page = home.file(
        "page.txt",
        "Not a database, but something that others read.".repeat(99),
    );
    set_mode(&page, 0o644);
    for place in ["/", ".", "/dev/null", "/tmp", "page.txt", "missing.db"] {
        for command in [
            &["sessions"][..],
            &["set", "x", "--title", "y"],
            &["import", &fixture("jsonl/tiny")],
        ] {
            // SQLite would leave a journal beside the device.
            if ["missing.db", "/dev/null"].contains(&place) && command[0] != "sessions" {
                continue;
            }
            let ran = home.run(&[&["--store", place][..], command].concat());
            assert_ne!(ran.code, 0, "{place}: {}", ran.err);
            assert!(!ran.err.contains("chmod"), "{place}: {}", ran.err);
        }
    }
}

#[test]
fn reading_without_write_permission_changes_no_file() {
    let reading = Reading::new();
    let before = reading.answers();
    reading.close_to_writers();
    reading.change_nothing(&before, &|arguments| {
        reading.run_without_privileges(arguments)
    });
    // The folder may be written, the database may not.
    set_mode(&reading.folder(), 0o777);
    reading.change_nothing(&before, &|arguments| {
        reading.run_without_privileges(arguments)
    });
}

#[test]
fn the_rest_of_the_log_is_read_without_write_permission() {
    for shared_memory in [true, false] {
        let reading = Reading::new();
        reading.leave_a_log();
        if !shared_memory {
            std::fs::remove_file(beside(&reading.home.database(), "-shm")).unwrap();
        }
        for folder in [0o555, 0o777] {
            reading.close_to_writers();
            set_mode(&reading.folder(), folder);
            let seen = contents(&reading.folder());
            let ran = reading
                .run_without_privileges(&["--json", "sessions"])
                .ended(0);
            let answer = ran.json();
            assert_eq!(answer["sessions"][0]["title"], "left in the log");
            let ran = reading.run_without_privileges(&["verify"]);
            assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
            assert!(contents(&reading.folder()) == seen, "the folder changed");
        }
    }
}

#[test]
fn a_log_that_cannot_be_read_is_an_error() {
    let reading = Reading::new();
    reading.leave_a_log();
    reading.close_to_writers();
    set_mode(&beside(&reading.home.database(), "-wal"), 0);
    let ran = reading.run_without_privileges(&["--json", "sessions"]);
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    let error = ran.error();
    tells(&error["message"], "memory.db-wal");
    assert_eq!(ran.out, "");
}

#[test]
fn reading_from_read_only_media_changes_no_file() {
    let reading = Reading::new();
    let before = reading.answers();
    let folder = reading.folder();
    // A mount of its own, for root; a user gets one in a namespace of their own, where the system allows it.
    let mount = |arguments: &[&str]| {
        let mut command = reading.home.process("unshare");
        command
            .args(["--mount", "--map-root-user"])
            .args(["sh", "-c"])
            .arg("mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"")
            .arg(&folder)
            .args(arguments);
        Ran::from(command.output().unwrap())
    };
    let tried = mount(&["true"]);
    if tried.code != 0 {
        assert!(
            std::env::var_os("AGENT_MEMORY_REQUIRE_MOUNTS").is_none(),
            "{}",
            tried.err
        );
        eprintln!("left out, for nothing can be mounted here: {}", tried.err);
        return;
    }
    let run = |arguments: &[&str]| mount(&[&[program().to_str().unwrap()], arguments].concat());
    reading.change_nothing(&before, &run);
    let ran = run(&["--json", "import", &fixture("jsonl/tiny")]);
    assert_eq!(
        (ran.code, &ran.error()["kind"]),
        (5, &"read_only".into()),
        "{}",
        ran.err
    );

    reading.leave_a_log();
    let seen = contents(&folder);
    let ran = run(&["--json", "sessions"]);
    let answer = ran.json();
    assert_eq!(answer["sessions"][0]["title"], "left in the log");
    assert!(contents(&folder) == seen, "the folder changed");
}

#[test]
fn no_writing_command_leaves_anything_in_the_log() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let log = beside(&home.database(), "-wal");
    home.ok(&["import", &file]);
    let key = &home.session();
    assert!(!log.exists(), "import");
    home.ok(&["compact", key]);
    assert!(!log.exists(), "compact");
    home.ok(&["fork", key, "--at", "3"]);
    assert!(!log.exists(), "fork");
    home.ok(&["view", key, "--revert-to", "0"]);
    assert!(!log.exists(), "view --revert-to");
    // Nor does one that fails half-way.
    home.file("binary.jsonl", [0x7f, b'E', b'L', b'F', 0, 0xff]);
    let ran = home.run(&["fork", key, "--at", "999999"]);
    assert_ne!(ran.code, 0);
    assert!(!log.exists(), "a fork that fails");
}

#[test]
fn a_database_that_stays_locked_ends_every_command_with_a_separate_code() {
    let home = Home::new();
    let file = fixture("jsonl/tiny");
    home.ok(&["import", &file]);
    let patience = ["--json", "--lock-timeout", "0.1"];
    // Nobody else may even read.
    let held = sql(
        &home.database(),
        "pragma locking_mode = exclusive; begin exclusive; update conversation set title = 'x'",
    );
    for arguments in [
        &["sessions"][..],
        &["verify"],
        &["import", &file],
        &["compact", &file],
    ] {
        let ran = home.run(&[&patience[..], arguments].concat());
        assert_eq!(ran.code, 9, "{arguments:?}: {}", ran.err);
        let error = ran.error();
        assert_eq!(error["kind"], "database_busy", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("memory.db") && message.contains("0.1 s"),
            "{message}"
        );
        tells(&error["hint"], "--lock-timeout");
    }
    held.close();
    // Somebody else writes: reading goes on.
    let held = sql(&home.database(), "begin immediate");
    home.ok(&[&patience[..], &["sessions"]].concat());
    let other = fixture("claude-code/bugfix");
    let ran = home.run(&[&patience[..], &["import", &other]].concat());
    assert_eq!(
        (ran.code, &ran.error()["kind"]),
        (9, &"database_busy".into()),
        "{}",
        ran.err
    );
    held.close();
    home.ok(&["import", &other]);
}

/// Runs the program under strace. Returns `None` if strace is not installed and not required.
fn traced(home: &Home, options: &[&str], arguments: &[&str]) -> Option<(Ran, String)> {
    let log = home.path().join("strace.log");
    let mut command = home.process("strace");
    command
        .args(["-f", "-y", "-qq", "-o", log.to_str().unwrap()])
        .args(options)
        .arg(program())
        .args(arguments);
    match command.output() {
        Ok(output) => Some((Ran::from(output), std::fs::read_to_string(log).unwrap())),
        Err(error) => {
            assert!(
                std::env::var_os("AGENT_MEMORY_REQUIRE_STRACE").is_none(),
                "strace: {error}"
            );
            eprintln!("left out, for there is no strace: {error}");
            None
        }
    }
}

/// Returns the commands that write, in an order in which each finds the data that it needs.
fn writing<'a>(file: &'a str, key: &'a str) -> [Vec<&'a str>; 4] {
    [
        vec!["import", file],
        vec!["compact", key],
        vec!["fork", key, "--at", "3"],
        vec!["view", key, "--revert-to", "0"],
    ]
}

#[test]
fn written_data_is_synced_before_the_last_line_is_printed() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let imported = home.json(&["import", &file, "--store", "other.db"]);
    let key = imported["sessions"][0]["session"].as_str().unwrap();
    for arguments in writing(&file, key) {
        let options = ["-e", "trace=write,pwrite64,fsync,fdatasync"];
        let Some((ran, log)) = traced(&home, &options, &arguments) else {
            return;
        };
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
        let calls: Vec<&str> = log.lines().collect();
        let last =
            |calls: &[&str], what: &dyn Fn(&str) -> bool| calls.iter().rposition(|call| what(call));
        let printed = last(&calls, &|call| call.contains(" write(1<")).unwrap();
        for suffix in ["memory.db>", "memory.db-wal>"] {
            let written = last(&calls, &|call| {
                call.contains("pwrite64(") && call.contains(suffix)
            });
            let synced = last(&calls, &|call| {
                call.contains("sync(") && call.contains(suffix)
            });
            let (Some(written), Some(synced)) = (written, synced) else {
                panic!("{arguments:?}: {suffix} was not written, or not synced");
            };
            // A log begins anew with what was moved from it: only its last content counts.
            assert!(
                synced < printed && (written < synced || suffix == "memory.db-wal>"),
                "{arguments:?}: {suffix} written in line {written}, synced in {synced}, printed in {printed}"
            );
        }
    }
}

#[test]
fn a_sync_that_fails_is_an_error() {
    let file = fixture("claude-code/release-week");
    let home = Home::new();
    let imported = home.json(&["import", &file, "--store", "other.db"]);
    let key = imported["sessions"][0]["session"].as_str().unwrap();
    for arguments in writing(&file, key) {
        let failing = [
            "-e",
            "trace=fsync,fdatasync",
            "-e",
            "inject=fsync,fdatasync:error=EIO",
        ];
        let Some((ran, log)) = traced(&home, &failing, &arguments) else {
            return;
        };
        assert!(
            log.contains("INJECTED"),
            "{arguments:?}: nothing was synced"
        );
        assert_eq!(ran.code, 5, "{arguments:?}: {}{}", ran.out, ran.err);
        home.ok(&arguments);
    }
}
