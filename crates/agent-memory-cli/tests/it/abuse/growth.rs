//! Transcripts that grow while they are imported. In the end, the log has the order of the file.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::tools::{
    assert_same_log, cases, command, end, has_strace, run, start, transcript, under, undisturbed,
    until,
};
use crate::support::{Home, Ran};

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

/// Checks one import of the file as it is so far. A file without a complete line is reported as no transcript.
fn import(ran: &Ran, whole_lines: usize) {
    let allowed: &[i32] = match whole_lines {
        0 => &[0, 4],
        _ => &[0],
    };
    assert!(
        allowed.contains(&ran.code),
        "with {whole_lines} whole lines: exit code {}: {}",
        ran.code,
        ran.err
    );
}

#[test]
fn a_file_that_grows_between_imports() {
    cases(|rng| {
        let lines = transcript(rng, 200);
        let expected = undisturbed(&lines);
        let whole = lines.concat().into_bytes();
        let mut cuts: Vec<usize> = (0..8).map(|_| rng.usize(..whole.len())).collect();
        cuts.sort_unstable();
        cuts.push(whole.len());
        let home = Home::new();
        let path = home.path().join("session.jsonl");
        let mut from = 0;
        for cut in cuts {
            append(&path, &whole[from..cut]);
            from = cut;
            let whole_lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            let ran = run(command(&home, &["import", path.to_str().unwrap()]));
            import(&ran, whole_lines);
        }
        assert_same_log(&home, &expected, "imports of a growing file");
    });
}

/// Returns the number of complete lines in a file.
fn lines_of(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn a_file_that_grows_while_it_is_read() {
    if !has_strace() {
        return;
    }
    cases(|rng| {
        let lines = transcript(rng, 120);
        let expected = undisturbed(&lines);
        let whole = lines.concat().into_bytes();
        let home = Home::new();
        let path = home.path().join("session.jsonl");
        let trace = home.path().join("reads");
        let mut from = lines[0].len();
        append(&path, &whole[..from]);
        // Each read of the file waits a little, so that a piece written after the read before it is seen.
        let wrapper = [
            "strace",
            "-f",
            "-qq",
            "-o",
            trace.to_str().unwrap(),
            "-P",
            path.to_str().unwrap(),
            "-e",
            "trace=read,pread64",
            "-e",
            "inject=read,pread64:delay_enter=10000",
        ];
        while from < whole.len() {
            append(&path, &whole[from..from + 1]);
            from += 1;
            std::fs::write(&trace, "").unwrap();
            let mut child = start(under(&home, &wrapper, &["import", path.to_str().unwrap()]));
            let mut reads = 0;
            // About two thirds of the reads, those at the end of the file among them, are answered with a piece more.
            while from < whole.len() && until(&mut child, || lines_of(&trace) > reads) {
                reads = lines_of(&trace);
                if rng.u8(..3) > 0 {
                    let to = (from + rng.usize(1..6_000)).min(whole.len());
                    append(&path, &whole[from..to]);
                    from = to;
                }
            }
            import(&Ran::from(end(child)), 1);
        }
        home.ok(&["import", path.to_str().unwrap()]);
        assert_same_log(
            &home,
            &expected,
            "imports of a file that grew while it was read",
        );
    });
}
