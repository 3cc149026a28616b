//! Statements about things that a number names: the table `numbered.tsv`, and files of pairs.

use memory_search::{Changes, Said};

/// A row of a table: an earlier and a later text.
struct Pair<'t> {
    name: String,
    is_change: bool,
    earlier: &'t str,
    later: &'t str,
}

/// Reads the rows of a part of the table, or of a file with the columns id, language, kind, label, earlier, later.
fn pairs<'t>(table: &'t str, part: Option<&str>) -> Vec<Pair<'t>> {
    let rows = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let pair = |(n, line): (usize, &'t str)| {
        let [first, second, third, fourth, earlier, later] =
            line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let (name, label) = match part {
            Some(_) => (format!("{first} {n} {second} {fourth}"), third),
            None => (first.to_owned(), fourth),
        };
        let is_change = match label {
            "yes" | "change" => true,
            "no" | "none" => false,
            _ => return None,
        };
        let pair = Pair {
            name,
            is_change,
            earlier,
            later,
        };
        part.is_none_or(|part| part == first).then_some(pair)
    };
    rows.enumerate().filter_map(pair).collect()
}

fn changes(earlier: &str, later: &str) -> bool {
    let said = vec![Said::of(earlier), Said::of(later)];
    !Changes::new(said, "").of(0).is_empty()
}

/// Returns the names of the pairs that are falsely told as changes, and of the changes that are missed.
fn judge(pairs: &[Pair<'_>]) -> (Vec<String>, Vec<String>) {
    let (mut wrong, mut missed) = (Vec::new(), Vec::new());
    for pair in pairs {
        match (changes(pair.earlier, pair.later), pair.is_change) {
            (true, false) => wrong.push(pair.name.clone()),
            (false, true) => missed.push(pair.name.clone()),
            _ => {}
        }
    }
    (wrong, missed)
}

#[test]
fn a_number_that_names_a_thing_is_no_value() {
    let table = include_str!("numbered.tsv");
    for part in ["tune", "held", "more"] {
        let pairs = pairs(table, Some(part));
        let all = pairs.iter().filter(|pair| pair.is_change).count();
        assert!(all >= 30 && pairs.len() - all >= 30, "{part}");
        let (wrong, missed) = judge(&pairs);
        assert!(wrong.is_empty(), "{part}: false changes {wrong:?}");
        assert!(missed.len() * 25 <= all, "{part}: missed {missed:?}");
    }
}

/// Each thing of a table has its own line, so no line of it changes another one.
#[test]
fn the_lines_of_a_table_of_things_do_not_change_each_other() {
    let tables: [fn(u32) -> String; 8] = [
        |n| format!("Port of service {n} is {}.", 8000 + n),
        |n| format!("The budget for {} is {}00 euros.", 2000 + n, n),
        |n| format!("Flight {n} leaves at {}:30.", n % 24),
        |n| format!("From now on, limit tier {n} to {n}00 requests."),
        |n| format!("Always set the timeout of worker {n} to {n}0 seconds."),
        |n| format!("From now on, keep {} backups of database {n}.", n + 2),
        |n| format!("Der Port von Dienst {n} ist {}.", 9000 + n),
        |n| format!("从现在起，等级{n}限制为{n}00次请求。"),
    ];
    for line in tables {
        let texts: Vec<String> = (1..=20).map(line).collect();
        let said = texts.iter().map(|text| Said::of(text)).collect();
        let changes = Changes::new(said, "Which limit, port or time is it?");
        for (n, text) in texts.iter().enumerate() {
            assert!(changes.of(n).is_empty(), "{text}");
        }
    }
}

#[test]
fn a_short_correction_changes_the_text_before_it() {
    let texts = [
        "Keep 20 log files.",
        "Tier 2 gets 200 requests.",
        "Make that 300.",
    ];
    let changes = Changes::new(texts.map(Said::of).into(), "");
    let by = |text| {
        changes
            .of(text)
            .iter()
            .map(|change| change.by)
            .collect::<Vec<_>>()
    };
    assert_eq!([by(0), by(1), by(2)], [vec![], vec![2], vec![]]);
}

/// Prints how the pairs of a file are judged, if `AGENT_MEMORY_PAIRS` names one.
#[test]
#[allow(clippy::print_stdout, reason = "the test says what it counts")]
fn pairs_of_a_file() {
    let Ok(path) = std::env::var("AGENT_MEMORY_PAIRS") else {
        return;
    };
    let table = std::fs::read_to_string(path).unwrap();
    let pairs = pairs(&table, None);
    let all = pairs.iter().filter(|pair| pair.is_change).count();
    let (wrong, missed) = judge(&pairs);
    let none = pairs.len() - all;
    println!(
        "memory-search: false changes {} of {none}: {wrong:?}",
        wrong.len()
    );
    println!(
        "memory-search: missed changes {} of {all}: {missed:?}",
        missed.len()
    );
}
