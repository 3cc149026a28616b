//! Detection of contradicting statements, tested with labelled tables.

use memory_search::{Changes, Said};

/// A row of a table: an earlier and a later text.
struct Pair {
    /// Whether the pair was not used to develop the rules.
    is_held: bool,
    language: &'static str,
    says_otherwise: bool,
    earlier: &'static str,
    later: &'static str,
}

/// Returns whether a later text is detected as a contradiction of an earlier one.
fn contradicts(earlier: &str, later: &str) -> bool {
    let said = vec![Said::of(earlier), Said::of(later)];
    !Changes::new(said, "").of(0).is_empty()
}

fn pairs() -> Vec<Pair> {
    read(include_str!("contradictions.tsv"))
}

fn read(table: &'static str) -> Vec<Pair> {
    let lines = table.lines();
    let pair = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [part, language, label, _, earlier, later] => Pair {
            is_held: matches!(part, "held" | "unseen"),
            language,
            says_otherwise: label == "yes",
            earlier,
            later,
        },
        _ => panic!("{line}"),
    };
    lines
        .filter(|line| !line.starts_with('#'))
        .map(pair)
        .collect()
}

/// Returns the numbers of correct, wrong and missed detections in some pairs.
fn judge<'p>(pairs: impl Iterator<Item = &'p Pair>) -> (usize, usize, usize) {
    let (mut right, mut wrong, mut missed) = (0, 0, 0);
    for pair in pairs {
        match (contradicts(pair.earlier, pair.later), pair.says_otherwise) {
            (true, true) => right += 1,
            (true, false) => {
                wrong += 1;
                shown("wrong", pair);
            }
            (false, true) => {
                missed += 1;
                shown("missed", pair);
            }
            (false, false) => {}
        }
    }
    (right, wrong, missed)
}

#[allow(clippy::print_stdout, reason = "the test says what it counts")]
fn shown(what: &str, pair: &Pair) {
    // The texts of these pairs are counted but not printed.
    if !pair.is_held {
        println!("{what}: {} | {}", pair.earlier, pair.later);
    }
}

#[test]
fn later_statements_that_say_otherwise_are_told() {
    let pairs = pairs();
    for (part, is_held) in [("tuned on", false), ("held out", true)] {
        let of = || pairs.iter().filter(move |pair| pair.is_held == is_held);
        let labels = of().filter(|pair| pair.says_otherwise).count();
        assert!(labels >= 20 && of().count() - labels >= 20, "{part}");
        let (right, wrong, missed) = judge(of());
        let precision = right as f64 / (right + wrong).max(1) as f64;
        let recall = right as f64 / (right + missed).max(1) as f64;
        println!(
            "{part}: {} pairs, precision {precision:.2}, recall {recall:.2}",
            of().count()
        );
        assert!(precision >= 0.9, "{part}: precision {precision:.2}");
        assert!(recall >= 0.7, "{part}: recall {recall:.2}");
    }
    let languages: std::collections::BTreeSet<&str> =
        pairs.iter().map(|pair| pair.language).collect();
    assert!(languages.len() >= 5);
}

/// Combines the earlier texts with the later texts of other rows in the same language. Returns the number of these
/// pairs, and the number detected as corrections.
fn of_other_subjects(pairs: &[Pair]) -> (usize, usize) {
    let (mut asked, mut wrong) = (0, 0);
    let said: Vec<(Said, Said)> = pairs
        .iter()
        .map(|pair| (Said::of(pair.earlier), Said::of(pair.later)))
        .collect();
    for (one, (earlier, _)) in pairs.iter().zip(&said) {
        for (other, (_, later)) in pairs.iter().zip(&said) {
            if one.language == other.language && one.earlier != other.earlier {
                asked += 1;
                let changes = Changes::new(vec![earlier.clone(), later.clone()], "");
                wrong += usize::from(!changes.of(0).is_empty());
            }
        }
    }
    (asked, wrong)
}

/// Comparing words detects only a few of the corrections in messages that people write. Few other messages may be
/// detected.
#[test]
fn few_messages_by_another_hand_are_taken_for_corrections() {
    let pairs = read(include_str!("contradictions_by_another.tsv"));
    let mut found = 0;
    for (part, is_held) in [("seen", false), ("unseen", true)] {
        let of = || pairs.iter().filter(move |pair| pair.is_held == is_held);
        let others = of().filter(|pair| !pair.says_otherwise).count();
        let (right, wrong, missed) = judge(of());
        println!(
            "by another hand, {part}: {right} found, {missed} missed, {wrong} of {others} taken for one"
        );
        assert!(wrong * 10 <= others, "{part}: {wrong} of {others}");
        found += right;
    }
    assert!(found >= 2, "{found}");
    let (asked, wrong) = of_other_subjects(&pairs);
    println!("by another hand, other subjects: {wrong} of {asked}");
    assert!(wrong * 500 <= asked, "{wrong} of {asked}");
}

/// Texts from different rows are about different subjects.
#[test]
fn statements_about_other_things_are_not_taken_for_corrections() {
    let (asked, wrong) = of_other_subjects(&pairs());
    println!("{wrong} of {asked}");
    assert!(wrong * 100 <= asked, "{wrong} of {asked}");
    assert!(asked > 1_000);
}

/// Returns, for each text, the indexes of the texts that change it.
fn changed_by(texts: &[&str], question: &str) -> Vec<Vec<usize>> {
    let said = texts.iter().map(|text| Said::of(text)).collect();
    let changes = Changes::new(said, question);
    let of = |text| changes.of(text).iter().map(|change| change.by).collect();
    (0..texts.len()).map(of).collect()
}

#[test]
fn the_same_words_with_another_value_change_a_rule() {
    let texts = [
        "From now on, I want you to end table names with '_t'. This helps the export.",
        "Sure, I'll start view names with 'v_' and end trigger names with '_trg'.",
        "Also, going forward, please start table names with 't_'.",
        "Likewise, for trigger names, I'd like you to use '_tr' as the suffix.",
        "From now on, end table names with '_tab', because the tool asks for it.",
        "Should I end table names with '_x'?",
    ];
    let found = changed_by(&texts, "What should table names end with?");
    let expected: [&[usize]; 6] = [&[4], &[3], &[], &[], &[], &[]];
    assert_eq!(found, expected);
}

#[test]
fn letter_cases_replace_each_other_however_they_are_written() {
    let texts = [
        "When naming tables in the schema, always use snake_case.",
        "One more thing. From now on, we will be using all uppercase letters for table names.",
        "Another thing to keep in mind is to use CamelCase for table names.",
        "From now on, I want you to pay close attention to using lower case for table names.",
        "Always start table names with 't_'.",
    ];
    let found = changed_by(&texts, "Which case do we use for table names?");
    let expected: [&[usize]; 5] = [&[3], &[3], &[3], &[], &[]];
    assert_eq!(found, expected);
}

#[test]
fn a_shortened_part_is_about_the_same_end_as_the_part_before_it() {
    let texts = [
        "Noted, I'll end view names with '_v'.",
        "I want you to start table names with 't_' and view names with 'v_'.",
        "From now on, start table names with 'tab_', and end them with '_t'.",
    ];
    assert_eq!(changed_by(&texts, ""), [vec![], vec![2], vec![]]);
    let texts = [
        "From now on, end table names with '_t'.",
        "I'd like you to start your table names with 'tab_', and end them with '_tab'.",
    ];
    assert_eq!(changed_by(&texts, ""), [vec![1], vec![]]);
}

#[test]
fn a_value_said_again_is_of_the_end_that_it_was_said_of() {
    let texts = [
        "I'll start table names with 't_'.",
        "Going forward, end your table names with '_tab' instead.",
        "Okay, I'll remember to use '_tab' from now on for table names.",
        "We want to ensure that all table names are ended with '_x'. So, from now on, please use '_x' for table names.",
    ];
    assert_eq!(
        changed_by(&texts, "What should table names start with?"),
        [vec![], vec![3], vec![3], vec![]]
    );
}

#[test]
fn a_compound_is_not_the_word_in_it() {
    let texts = [
        "Always end table names with '_t'.",
        "Always end table alias names with '_a'.",
        "From now on, table alias names end with '_b'.",
    ];
    assert_eq!(changed_by(&texts, "table names"), [vec![], vec![2], vec![]]);
    let asked = Changes::new(
        [
            "The port is 80, the host is 'a.example'.",
            "The host is now 'b.example'.",
        ]
        .map(Said::of)
        .into(),
        "Which port is it?",
    );
    let changes = asked.of(0);
    assert!(changes.len() == 1 && !changes[0].is_asked, "{changes:?}");
    assert!(changes[0].statement.text().contains("b.example"));
}

#[test]
fn what_only_sounds_like_a_correction_is_none() {
    for (earlier, later) in [
        ("Understood, Mara Lind.", "Don't worry, Mara Lind."),
        (
            "Always import 'json' in scripts.",
            "Always import 'math' in scripts.",
        ),
        (
            "Please end job names with '_j'.",
            "If job names end with '_k', please tell me.",
        ),
        (
            "Keep the input limit at 20 MB.",
            "From now on, keep the output limit at 50 MB.",
        ),
    ] {
        assert!(!contradicts(earlier, later), "{earlier} | {later}");
    }
}
