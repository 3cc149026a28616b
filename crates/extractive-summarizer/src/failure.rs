//! Failures in outputs: the lines that name an error, and the tests that failed or passed.

use std::collections::BTreeSet;

use crate::text::squeeze;

/// Maximum number of test names that are read from an output.
const NAMES: usize = 64;

/// Returns how precisely a line names an error: from 0 (not at all) to 4.
pub(crate) fn tells(line: &str) -> u8 {
    let line = line.trim();
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    if letters < 5 || is_exit_code(line) {
        return 0;
    }
    if is_echo(line) {
        return 1;
    }
    match is_error_line(line) {
        true if says_no_more(line) || is_log(line) => 2,
        true => 4,
        false if names_place(line) => 3,
        false if is_log(line) || is_progress(line) => 1,
        false => 2,
    }
}

/// Returns whether a line repeats a command, as script runners print it.
fn is_echo(line: &str) -> bool {
    let line = match line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    {
        Some((name, rest)) if !name.contains(' ') => rest,
        _ => line,
    };
    ["$ ", "> ", "+ "].iter().any(|mark| line.starts_with(mark))
}

/// Returns whether a line only says that something failed.
fn says_no_more(line: &str) -> bool {
    let low = line.to_lowercase();
    let letters = low.chars().filter(|c| c.is_alphabetic()).count();
    letters < 7
        || low.contains("exited with")
        || low.contains("task failed")
        || low.contains("command failed")
        || line.starts_with("FAIL\t")
        || line.starts_with("FAIL ") && !line.contains(" > ")
        || low.starts_with("traceback")
        || low.starts_with("exit status")
        || low.starts_with("npm err")
        || low.contains("test result: failed")
        || low.contains("could not compile")
        || low.contains("aborting due to")
}

/// Returns whether a line names a place in a file: `a.rs:3:5: …`, `a.ts(3,5): …`.
fn names_place(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or("");
    let Some(at) = word.find([':', '(']) else {
        return false;
    };
    let (file, place) = word.split_at(at);
    let number = place
        .get(1..)
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    number && file.contains('.') && line.len() > word.len() + 4
}

/// Returns whether a line begins with a time, as lines of a log do.
fn is_log(line: &str) -> bool {
    let digits = line.bytes().take(19).filter(u8::is_ascii_digit).count();
    line.starts_with(|c: char| c.is_ascii_digit() || c == '[')
        && digits >= 6
        && line
            .bytes()
            .take(19)
            .filter(|b| matches!(b, b':' | b'-'))
            .count()
            >= 2
}

/// Returns whether a line only reports progress.
fn is_progress(line: &str) -> bool {
    [
        "===",
        "---",
        "ok ",
        "? ",
        "Auto-merging",
        "From ",
        "Rebasing",
        "warning:",
        "hint:",
        "Debugger",
        "• ",
        "npm warn",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// Keeps the most telling lines of a failure's output, at most `most`, in order.
pub(crate) fn truncate(lines: &mut Vec<String>, most: usize) {
    if lines.len() <= most {
        return;
    }
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // Of equal lines, the last ones come first.
    let told = |n: &usize| {
        lines
            .get(*n)
            .map_or((false, 0), |line| (!tests(line).is_empty(), tells(line)))
    };
    order.sort_by_cached_key(|n| std::cmp::Reverse((told(n), *n)));
    order.truncate(most);
    let kept: BTreeSet<usize> = order.into_iter().collect();
    let mut n = 0..;
    lines.retain(|_| n.next().is_some_and(|n| kept.contains(&n)));
}

/// Returns the lines of an error without repetitions. Lines that differ only in times count as repetitions. Lines in
/// `usual`, which also occur in outputs of successful calls, are left out unless no other lines remain.
pub(crate) fn lines(mut all: Vec<String>, usual: &BTreeSet<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    all.retain(|line| {
        // A progress text such as `Rebasing (1/4)` and the text that overwrote it are on one line.
        let plain = without_times(&squeeze(line));
        plain.len() < 4 || seen.insert(plain)
    });
    let is_usual = |line: &String| usual.contains(&squeeze(line)) || tells(line) == 0;
    if all.iter().any(|line| !is_usual(line)) {
        all.retain(|line| !is_exit_code(line) && (tells(line) == 0 || !is_usual(line)));
    }
    all
}

/// Returns a text without times and durations: `1.15s`, `22:02:21.647`.
pub(crate) fn without_times(text: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | ':' | '-' | '_' | '/');
    let is_time = |word: &str| {
        let word = word.trim_end_matches(['.', ':']);
        word.contains(['.', ':'])
            && word.starts_with(|c: char| c.is_ascii_digit())
            && word
                .chars()
                .all(|c| c.is_ascii_digit() || ".:-TZms".contains(c))
    };
    let words = text.split_inclusive(|c: char| !part(c));
    let words = words.filter(|word| !is_time(word.trim_end_matches(|c: char| !part(c))));
    words.collect()
}

/// Returns whether a line of a command's output reports an error, and does not only mention one.
pub(crate) fn is_error_line(line: &str) -> bool {
    let line = line.trim_start();
    if line.is_empty() {
        return false;
    }
    let starts = [
        "error",
        "Error",
        "ERROR",
        "fatal",
        "FATAL",
        "panic",
        "panicked",
        "FAIL",
        "--- FAIL",
        "Traceback",
        "Exception",
        "thread '",
        "ERR!",
        "npm ERR",
        "npm error",
        "E   ",
        "✗",
        "✖",
        "❌",
        "Exit code",
        "exit code",
        "exit status",
        "Command failed",
        "Segmentation",
    ];
    let holds = [
        "panicked at",
        ": error:",
        "error[E",
        "Error:",
        "Exception:",
        "exit status ",
        "exit code ",
        "command not found",
        "No such file",
        "Permission denied",
        "permission denied",
        "CONFLICT (",
        "FAILED",
        "cannot find",
        "undefined:",
        "timed out",
    ];
    let begins = |mark: &str| {
        let rest = line.strip_prefix(mark);
        // In prose, such as `Errors are logged`, the word reports no error.
        rest.is_some_and(|rest| !mark.ends_with(char::is_alphabetic) || !rest.starts_with(is_small))
    };
    let reports = starts.iter().any(|mark| begins(mark))
        || holds.iter().any(|mark| line.contains(mark))
        || is_numbered_error(line);
    let harmless = [
        "0 failed",
        "0 errors",
        "no error",
        "No error",
        "exit code 0",
        "exit status 0",
        "Exit code 0",
        "0 error",
        "errors.New",
        "Error: 0",
        "errors: 0",
    ];
    reports && !harmless.iter().any(|mark| line.contains(mark))
}

fn is_small(c: char) -> bool {
    c.is_lowercase()
}

/// Returns whether a line only gives the exit code of a command.
pub(crate) fn is_exit_code(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let words: Vec<&str> = line.split(' ').collect();
    let [said @ .., "code" | "status", code] = words.as_slice() else {
        return false;
    };
    let exits = said.len() < 4 && said.iter().any(|word| word.starts_with("exit"));
    exits && code.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a line contains a compiler's number of an error, such as `error TS2739:`.
fn is_numbered_error(line: &str) -> bool {
    let Some((_, after)) = line.split_once("error ") else {
        return false;
    };
    let code = after.split([':', ' ']).next().unwrap_or("");
    let digits = code.trim_start_matches(|c: char| c.is_ascii_uppercase());
    digits.len() < code.len()
        && digits.len() > 2
        && digits.bytes().all(|b| b.is_ascii_digit())
        && after
            .get(code.len()..)
            .is_some_and(|rest| rest.starts_with(':'))
}

/// Returns the names of the tests in an output, each with whether the test passed.
pub(crate) fn tests(text: &str) -> Vec<(&str, bool)> {
    text.lines().filter_map(test).take(NAMES).collect()
}

/// Returns the name of the test in a line, and whether the test passed.
fn test(line: &str) -> Option<(&str, bool)> {
    let line = line.trim();
    for (mark, passed) in [
        ("--- PASS: ", true),
        ("--- FAIL: ", false),
        ("PASS ", true),
        ("FAIL ", false),
        ("FAILED ", false),
        ("✓ ", true),
        ("✗ ", false),
        ("× ", false),
    ] {
        if let Some(rest) = line.strip_prefix(mark) {
            return Some((rest.trim_start().split(' ').next()?, passed)).filter(is_name);
        }
    }
    for (mark, passed) in [
        (" ... ok", true),
        (" ... FAILED", false),
        (" PASSED", true),
        (" FAILED", false),
    ] {
        if let Some((name, _)) = line.split_once(mark) {
            let name = name.strip_prefix("test ").unwrap_or(name);
            return Some((name, passed)).filter(is_name);
        }
    }
    None
}

fn is_name((name, _): &(&str, bool)) -> bool {
    name.len() > 3 && !name.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_what_is_wrong_tells_most() {
        for (more, less) in [
            (
                "a.go:131:16: Error return value is not checked",
                "[lint] ERROR task failed",
            ),
            (
                "[lint] ERROR task failed",
                "[lint] $ golangci-lint run ./...",
            ),
            (
                "CONFLICT (content): Merge conflict in a.go",
                "From github.com:x/y",
            ),
            (
                "error: Missing URL",
                "error: script \"build\" exited with code 126",
            ),
            ("a.ts(1,2): error TS2305: none", "> tsc --noEmit"),
            (
                "ls: a: No such file or directory",
                "2026-02-24T23:05:27Z ERROR loader: failed to stat a",
            ),
            (
                "ValueError: no such key",
                "Traceback (most recent call last):",
            ),
            (
                "thread 'main' panicked at src/a.rs:3:5:",
                "test result: FAILED. 1 failed",
            ),
            ("src/a.go:3:2: missing return", "=== RUN TestA"),
            ("it is not there", "Exit code 1"),
        ] {
            assert!(tells(more) > tells(less), "{more}: {less}");
        }
    }

    #[test]
    fn a_line_of_an_error_comes_once_and_what_every_output_has_not_at_all() {
        let all = [
            "12:01:02.5 ERROR loader: failed to stat a",
            "12:01:03.1 ERROR loader: failed to stat a",
            "a shell says this each time",
            "lint: 3 errors",
            "lint: 3 errors",
        ];
        let all = || all.map(str::to_owned).to_vec();
        let usual = BTreeSet::from(["a shell says this each time".to_owned()]);
        assert_eq!(
            lines(all(), &usual),
            [
                "12:01:02.5 ERROR loader: failed to stat a",
                "lint: 3 errors"
            ]
        );
        // If all lines are usual, they are kept.
        let usual: BTreeSet<String> = all().into_iter().collect();
        assert_eq!(lines(all(), &usual).len(), 3);
    }

    #[test]
    fn tests_are_named_by_several_runners() {
        let output = "--- FAIL: TestA (0.9s)\n--- PASS: TestB/sub (0.1s)\ntest parse::quotes ... FAILED\n\
                      test parse::words ... ok\nPASS src/a.test.ts\ntests/a.py::test_b PASSED [ 50%]\n\
                      FAILED tests/a.py::test_c - assert 1\nFAIL\nall good";
        let all = tests(output);
        let of = |passed: bool| {
            all.iter()
                .filter(move |one| one.1 == passed)
                .map(|one| one.0)
        };
        assert_eq!(
            of(false).collect::<Vec<_>>(),
            ["TestA", "parse::quotes", "tests/a.py::test_c"]
        );
        assert_eq!(
            of(true).collect::<Vec<_>>(),
            [
                "TestB/sub",
                "parse::words",
                "src/a.test.ts",
                "tests/a.py::test_b"
            ]
        );
    }
}
