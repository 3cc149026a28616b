//! Backups and restores with system calls that fail: the test runs itself under `strace`, and is left out without it.

use std::path::Path;
use std::process::Command;

use store_conformance::Chat;
use store_sqlite::SqliteOptions;

use crate::backup::{restore, with_backup, words};

/// Environment variables that give the child process its folder and what it does.
const FOLDER: &str = "STORE_SQLITE_TEST_FOLDER";
const CALL: &str = "STORE_SQLITE_TEST_CALL";

/// Runs in the child process. It is not a test by itself, and ends at once if the variables are not set.
#[tokio::test]
async fn child_that_is_traced() {
    let (Some(folder), Ok(call)) = (std::env::var_os(FOLDER), std::env::var(CALL)) else {
        return;
    };
    let file = |name| Path::new(&folder).join(name);
    let done = match call.as_str() {
        "restore" => restore(&file("old.db"), &file("memory.db")).await.err(),
        _ => {
            let options = SqliteOptions::new();
            let done = options.backup(file("memory.db"), file("copy.db")).await;
            done.err()
        }
    };
    let error = done.map_or(String::new(), |error| error.to_string());
    std::fs::write(file("error"), error).unwrap();
}

/// Runs the child process with a failure of the system calls for one path, or all paths. Returns its error; `None` if
/// there is no `strace`.
fn traced(folder: &Path, call: &str, failure: &str, path: Option<&Path>) -> Option<String> {
    if Command::new("strace").arg("-V").output().is_err() {
        let required = std::env::var_os("AGENT_MEMORY_REQUIRE_ABUSE");
        assert!(required.is_none(), "strace is missing");
        return None;
    }
    let trace = folder.join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=pwrite64,fsync,linkat", "-e"]);
    strace
        .arg(format!("inject={failure}"))
        .arg("-o")
        .arg(&trace);
    if let Some(path) = path {
        strace.arg("-P").arg(path);
    }
    strace.arg(std::env::current_exe().unwrap());
    strace.args(["--exact", "failing_calls::child_that_is_traced"]);
    let output = strace.env(FOLDER, folder).env(CALL, call).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("(INJECTED)"), "{trace}");
    Some(std::fs::read_to_string(folder.join("error")).unwrap())
}

#[tokio::test]
async fn a_restore_that_cannot_remove_the_old_words_says_so() {
    let (folder, store, [path, old]) = with_backup().await;
    Chat::root(&store, "new").await.fill(200).await;
    memory_store::Maintain::close(&store).await.unwrap();
    // Writes to the database fail, and those to its write-ahead log do not.
    let failure = "pwrite64:error=ENOSPC";
    let Some(error) = traced(folder.path(), "restore", failure, Some(&path)) else {
        return;
    };
    assert!(error.contains("has the content of the backup"), "{error}");
    assert_eq!(words(&path, "a").await, words(&old, "a").await);
    assert!(words(&path, "new").await.is_empty());
    assert!(!folder.path().join("memory.db-restore").exists());
    restore(&old, &path).await.unwrap();
}

#[tokio::test]
async fn a_backup_has_its_name_at_the_end_or_not_at_all() {
    let (folder, store, [path, _]) = with_backup().await;
    memory_store::Maintain::close(&store).await.unwrap();
    let [copy, part] = ["copy.db", "copy.db.part"].map(|name| folder.path().join(name));
    let failure = "fsync:error=EIO";
    let Some(error) = traced(folder.path(), "backup", failure, Some(folder.path())) else {
        return;
    };
    assert!(error.contains("cannot be written"), "{error}");
    assert!(!copy.exists() && !part.exists());
    // Not every file system has hard links.
    let error = traced(folder.path(), "backup", "linkat:error=EPERM", None).unwrap();
    assert_eq!(error, "");
    assert!(!part.exists());
    assert_eq!(words(&copy, "a").await, words(&path, "a").await);
}
