//! Full disks, limits on file sizes, and read-only places.

use std::collections::BTreeMap;
use std::path::Path;

use super::tools::{
    SESSION, assert_same_log, assert_sound, cases, command, end, has_unshare, home_with, kill, run,
    start, stored, transcript, under, undisturbed, until,
};
use crate::support::{Home, Ran};

/// Runs a shell script in a separate mount namespace. Its mounts disappear when it ends.
fn script(home: &Home, text: &str, arguments: &[&str]) -> Ran {
    let wrapper = ["unshare", "--mount", "sh", "-euc", text, "sh"];
    run(under(home, &wrapper, arguments))
}

/// Returns the value in the line `NAME VALUE` of a script's output.
fn value(ran: &Ran, name: &str) -> i32 {
    let prefix = format!("{name} ");
    let line = ran.out.lines().find_map(|line| line.strip_prefix(&prefix));
    let line = line.unwrap_or_else(|| panic!("no {name}: {}\n{}", ran.out, ran.err));
    line.parse().unwrap()
}

#[test]
fn a_full_disk() {
    if !has_unshare(&["--mount"]) {
        return;
    }
    cases(|rng| {
        let lines = transcript(rng, 300);
        let expected = undisturbed(&lines);
        let (home, file) = home_with(&lines);
        let size = {
            let (other, file) = home_with(&lines);
            other.ok(&["compact", &file]);
            stored(&other.database())
        };
        let place = home.path().join("full");
        std::fs::create_dir(&place).unwrap();
        let log = home.path().join("log");
        let kilobytes = rng.u64(16..=size / 1024);
        let ran = script(
            &home,
            "export XDG_DATA_HOME=$3
            mount -t tmpfs -o size=${2}k none $3
            code=0; $1 compact $4 >/dev/null || code=$?
            echo compact $code
            code=0; $1 verify >&2 || code=$?
            echo verify $code
            mount -o remount,size=64m $3
            code=0; $1 compact $4 >/dev/null || code=$?
            echo again $code
            code=0; $1 verify >&2 || code=$?
            echo whole $code
            $1 export abuse >$5",
            &[
                &kilobytes.to_string(),
                place.to_str().unwrap(),
                &file,
                log.to_str().unwrap(),
            ],
        );
        let what = format!("a disk of {kilobytes} KiB where {} are needed", size / 1024);
        assert_ne!(value(&ran, "compact"), 0, "{what}: {}", ran.err);
        // There may be no database yet, or no room to open it.
        assert!(
            [0, 3, 5].contains(&value(&ran, "verify")),
            "{what}: {}",
            ran.err
        );
        assert_eq!(value(&ran, "again"), 0, "{what}: {}", ran.err);
        assert_eq!(value(&ran, "whole"), 0, "{what}: {}", ran.err);
        assert_eq!(std::fs::read_to_string(log).unwrap(), expected, "{what}");
    });
}

#[test]
fn a_limit_on_file_sizes() {
    cases(|rng| {
        let lines = transcript(rng, 300);
        let expected = undisturbed(&lines);
        let (home, file) = home_with(&lines);
        let bytes = format!("--fsize={}", rng.u64(4_096..200_000));
        let ended = end(start(under(
            &home,
            &["prlimit", &bytes],
            &["import", &file],
        )));
        assert!(!ended.status.success(), "{ended:?}");
        assert_sound(&home, "a limit on file sizes");
        home.ok(&["import", &file]);
        assert_same_log(&home, &expected, "a limit on file sizes");
    });
}

/// Returns all files below a folder with their contents.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.insert(path.to_str().unwrap().to_owned(), bytes);
        }
    }
    all
}

const READ_ONLY: &str = "mount --bind $2 $2
    mount -o remount,ro,bind $2
    program=$1; shift 2
    exec $program \"$@\"";

#[test]
fn a_write_ahead_log_on_a_read_only_file_system_is_never_skipped() {
    if !has_unshare(&["--mount"]) {
        return;
    }
    cases(|rng| {
        let lines = transcript(rng, 1_000);
        let (home, file) = home_with(&lines);
        let mut import = start(command(&home, &["import", &file]));
        let mut wal = home.database().into_os_string();
        wal.push("-wal");
        // Past the tables: some messages are committed.
        let bytes = rng.u64(300_000..600_000);
        until(&mut import, || {
            std::fs::metadata(&wal).map_or(0, |meta| meta.len()) > bytes
        });
        kill(import);
        let folder = home.path().join("agent-memory");
        let before = files(&folder);
        let ran = script(
            &home,
            READ_ONLY,
            &[folder.to_str().unwrap(), "export", SESSION],
        );
        assert!(files(&folder) == before, "a file changed");
        let all = home.run(&["export", SESSION]);
        if ran.code == 0 {
            assert_eq!(
                (all.code, all.out.lines().count()),
                (0, ran.out.lines().count())
            );
            assert!(all.out == ran.out);
        } else {
            ran.says("error: ");
        }
    });
}
