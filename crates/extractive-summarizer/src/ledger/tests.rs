use memory_model::SeqRange;
use token_estimate::HeuristicEstimator;

use super::*;

fn all(lines: &[&str]) -> Vec<Ran> {
    lines.iter().copied().filter_map(Ran::of).collect()
}

fn texts(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.text.as_str()).collect()
}

const BYTES: &HeuristicEstimator = &HeuristicEstimator::Bytes4;

#[test]
fn commands_are_listed_once_below_the_folder_in_which_they_ran() {
    let commands = [
        "make lint",
        "cd /srv/crumb && cargo test",
        "cd /srv/crumb && cargo fmt",
        "git status",
        "cd /srv/crumb && cargo test",
        "cd /srv/crumb && cargo build",
        "cd /srv/crumb && cargo doc",
        "cd /srv/crumb && cargo run --example a_long_name_of_an_example -- --all --verbose",
        "cd /srv/crumb && cargo run --example another_long_name_of_an_example -- --all",
        "cd /srv/crumb && cargo run --example the_third_long_name_of_an_example -- --all",
        "make lint",
        "cd /tmp && tar xf crumb.tar",
    ];
    let entries = ran(&all(&commands), 1_000, BYTES);
    assert_eq!(
        texts(&entries),
        [
            "Ran after cd /srv/crumb:",
            "Ran there: cargo run --example a_long_name_of_an_example -- --all --ver… · cargo run --example another_long_name_of_an_example -- --all",
            "Ran there: cargo fmt · cargo test ×2 · cargo build · cargo doc · cargo run --example the_third_long_name_of_an_example -- --a…",
            "Ran: git status · make lint ×2",
            "Ran after cd /tmp: tar xf crumb.tar",
        ]
    );
    assert_eq!(entries[2].head, Some(0));
    // A line is read as it was written.
    let mut cd = String::new();
    let read = texts(&entries);
    let read = read.iter().filter_map(|line| read_ran(line, &mut cd));
    let read: Vec<Ran> = read.flatten().collect();
    assert_eq!(texts(&ran(&read, 1_000, BYTES)), texts(&entries));
}

#[test]
fn where_not_all_commands_fit_the_newest_are_listed_and_looks_come_last() {
    let commands: Vec<String> = (0..40).map(|n| format!("make part-{n}")).collect();
    let mut commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    commands.push("ls -l");
    let entries = ran(&all(&commands), 32, BYTES);
    assert_eq!(
        texts(&entries),
        [
            "Ran: make part-33 · make part-34 · make part-35 · make part-36 · make part-37 · make part-38 · make part-39"
        ]
    );
    // Short and frequent ones come before long ones.
    let long = "cargo run --release --example the_long_one -- --all --verbose";
    let commands = ["make", long, "git push", "make"];
    let entries = ran(&all(&commands), 12, BYTES);
    assert_eq!(texts(&entries), ["Ran: git push · make ×2"]);
}

#[test]
fn a_command_whose_output_goes_elsewhere_is_the_same() {
    let commands = [
        "make lint",
        "make lint 2>&1 | tail -5",
        "make lint || exit",
        "make lint",
    ];
    let entries = ran(&all(&commands), 100, BYTES);
    assert_eq!(texts(&entries), ["Ran: make lint || exit · make lint ×3"]);
}

#[test]
fn errors_that_differ_in_times_are_the_same() {
    let said = |text: &str| without_times(text);
    assert_eq!(
        said("--- FAIL: TestA (1.15s)"),
        said("--- FAIL: TestA (0.9s)")
    );
    assert_eq!(said("12:01:02.5 ERROR x"), said("12:01:03 ERROR x"));
    assert_ne!(said("case 6 failed"), said("case 12 failed"));
    assert_ne!(said("a.ts:6:1: error"), said("a.ts:7:1: error"));
}

#[test]
fn a_failed_command_is_named_by_its_first_words() {
    let named = |line: &str| first_words(line);
    assert_eq!(named("go test -tags=x ./...").as_deref(), Some("go test"));
    assert_eq!(
        named("mise run test:ci 2>&1 | tail").as_deref(),
        Some("mise run test:ci")
    );
    assert_eq!(named("x=\"a b\" && make"), None);
}

fn error(seq: u32, call: &str, outcome: &[&str]) -> Item {
    let range = SeqRange::single(Seq(seq));
    let mut item = Item::new(range, Kind::Error, "Error", 40).with_lines(vec![call.to_owned()]);
    item.outcome = outcome.iter().map(|&line| line.to_owned()).collect();
    item
}

#[test]
fn an_error_is_listed_once_with_its_call_and_what_it_says_first() {
    let missing = ["<tool_error>File does not exist.</tool_error>"];
    let mut mended = error(
        7,
        "$ cd /srv && make lint",
        &["Exit code 2", "lint: 3 errors"],
    );
    mended.later = Some(Seq(9));
    let items = [
        error(3, "Read: a.rs", &missing),
        error(5, "Read: /srv/crumb/src/lexer/b.rs", &missing),
        mended,
        error(
            8,
            "$ git merge topic",
            &["Merging a.rs", "error: conflict in a.rs"],
        ),
    ];
    let entries = failed(&items, 1_000, BYTES);
    assert_eq!(
        texts(&entries),
        [
            "Failed: [5] Read: …/lexer/b.rs: File does not exist. ×2",
            "Failed: [8] git merge topic: error: conflict in a.rs",
        ]
    );
    // Errors that were made good are not listed, and newer ones come first.
    assert!(entries[1].worth > entries[0].worth);
    let (seq, call, says) = read_failed(&entries[1].text).unwrap();
    assert_eq!(
        (seq, call, says),
        (Seq(8), "git merge topic", "error: conflict in a.rs")
    );
}

#[test]
fn a_call_that_tells_nothing_is_not_listed() {
    let mut miss = error(3, "$ grep x", &["Exit code 1"]);
    assert_eq!(failed(&[miss.clone()], 1_000, BYTES), []);
    (miss.outcome, miss.weight) = (vec!["refused".to_owned()], 5);
    assert_eq!(failed(&[miss], 1_000, BYTES), []);
}
