//! Messages about things that a number names: the table that memory-search shares, and files of pairs.

use extractive_summarizer::{ExtractiveSummarizer, Source};
use memory_model::Message;
use token_estimate::HeuristicEstimator::Bytes4;

use crate::log;

/// Returns the label, the earlier and the later message of the rows of a part of the table.
fn table(part: &str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let rows = include_str!("../../../memory-search/tests/it/numbered.tsv").lines();
    rows.filter_map(move |line| match line.split('\t').collect::<Vec<_>>()[..] {
        [of, _, label, _, earlier, later] if of == part => Some((label, earlier, later)),
        _ => None,
    })
}

/// Returns the extract of a conversation in which a user says some texts.
fn extract(texts: &[&str]) -> String {
    let messages = texts
        .iter()
        .flat_map(|text| [Message::user(*text), Message::assistant("All right.")]);
    let tail = (0..8).flat_map(|_| [Message::user("Go on."), Message::assistant("Done.")]);
    let log = log(messages.chain(tail).collect(), &Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    ExtractiveSummarizer::new().extract(&source, 4_000, &Bytes4)
}

/// Returns whether an extract leaves out or marks the first of two messages.
fn changes(earlier: &str, later: &str) -> bool {
    let text = extract(&[earlier, later]);
    let first = text.split("[3]").next().unwrap_or(&text);
    !first.contains(earlier.trim_end()) || text.contains("(later:")
}

fn judge(earlier: &str, later: &str, is_change: bool) -> Option<bool> {
    let found = changes(earlier, later);
    (found != is_change).then_some(found)
}

#[test]
fn a_number_that_names_a_thing_is_no_value() {
    for part in ["tune", "held", "more"] {
        let (mut wrong, mut missed, mut all) = (Vec::new(), Vec::new(), 0);
        for (n, (label, earlier, later)) in table(part).enumerate() {
            all += usize::from(label == "yes");
            match judge(earlier, later, label == "yes") {
                Some(true) => wrong.push(n),
                Some(false) => missed.push(n),
                None => {}
            }
        }
        assert!(all >= 30, "{part}");
        assert!(wrong.is_empty(), "{part}: false changes {wrong:?}");
        assert!(missed.len() * 25 <= all, "{part}: missed {missed:?}");
    }
}

#[test]
fn forty_rules_for_numbered_things_stay_without_a_mark() {
    let rules: [fn(u32) -> String; 5] = [
        |n| format!("From now on, limit tier {n} to {n}00 requests."),
        |n| format!("From now on, keep {} backups of database {n}.", n + 2),
        |n| format!("Always set the timeout of worker {n} to {n}0 seconds."),
        |n| format!("今後、ティア{n}の要求は{n}00件までにしてください。"),
        |n| format!("앞으로 데이터베이스 {n}의 백업은 {}개를 유지하세요.", n + 2),
    ];
    for rule in rules {
        let mut messages = Vec::new();
        for n in 1..=40 {
            messages.push(Message::user(rule(n)));
            messages.push(Message::assistant("I will."));
            messages.push(Message::user(format!("Look at module {n}, please.")));
            messages.push(Message::assistant(format!("Module {n} is in order.")));
        }
        let log = log(messages, &Bytes4);
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        let text = ExtractiveSummarizer::new().extract(&source, 1_500, &Bytes4);
        let missing = (1..=40)
            .map(rule)
            .filter(|rule| !text.contains(rule.as_str()));
        assert_eq!(missing.count(), 0, "{text}");
        assert!(!text.contains("(later:"), "{text}");
    }
}

#[test]
fn a_changed_value_of_a_numbered_thing_is_noted_with_it() {
    let text = extract(&[
        "From now on, limit tier 2 to 300 requests.",
        "From now on, limit tier 12 to 800 requests.",
        "From now on, limit tier 2 to 400 requests.",
    ]);
    assert!(
        text.contains("[5] User: From now on, limit tier 2 to 400 requests."),
        "{text}"
    );
    assert!(
        text.contains("[3] User: From now on, limit tier 12 to 800 requests."),
        "{text}"
    );
    let old = text.lines().find(|line| line.contains("to 300 requests"));
    assert!(
        old.is_none_or(|line| line.contains("(later: [5]: 400")),
        "{text}"
    );
}

#[test]
fn an_answer_without_a_full_stop_changes_a_value() {
    for (earlier, later) in [
        ("The dev site runs on 4000.", "now 4001 instead"),
        (
            "Set the retry limit of job 12 to 3.",
            "job 12: retry limit 8",
        ),
    ] {
        let text = extract(&[earlier, later]);
        assert!(text.contains("(to [2] All right.)"), "{text}");
        assert!(text.contains("(later: [3]"), "{text}");
    }
    assert!(!changes(
        "The retry limit of job 12 is 3.",
        "job 13: retry limit 8"
    ));
}

/// Prints how the pairs of a file are judged, if `AGENT_MEMORY_PAIRS` names one: the columns are id, language, kind,
/// label (`change` or `none`), earlier, later.
#[test]
#[allow(clippy::print_stdout, reason = "the test says what it counts")]
fn pairs_of_a_file() {
    let Ok(path) = std::env::var("AGENT_MEMORY_PAIRS") else {
        return;
    };
    let table = std::fs::read_to_string(path).unwrap();
    let (mut wrong, mut missed, mut counts) = (Vec::new(), Vec::new(), [0, 0]);
    for line in table.lines() {
        let [id, _, _, label, earlier, later] = line.split('\t').collect::<Vec<_>>()[..] else {
            continue;
        };
        let is_change = match label {
            "change" => true,
            "none" => false,
            _ => continue,
        };
        counts[usize::from(is_change)] += 1;
        match judge(earlier, later, is_change) {
            Some(true) => wrong.push(id),
            Some(false) => missed.push(id),
            None => {}
        }
    }
    let [none, all] = counts;
    println!(
        "extractive-summarizer: false changes {} of {none}: {wrong:?}",
        wrong.len()
    );
    println!(
        "extractive-summarizer: missed changes {} of {all}: {missed:?}",
        missed.len()
    );
}
