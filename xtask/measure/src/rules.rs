//! `cargo xtask bench-rules --data DIR [--each] [--check | --dry-run]`: whether contexts and recalls tell the rules that
//! hold now, and not those that were replaced; writes docs/measurements/rules.md.

mod dialogues;
mod fit;
mod sentences;

use std::fmt::Write as _;

use agent_memory::Strategy;

use crate::density::ours::Ours;
use crate::flags::{Flags, last_characters};
use dialogues::{Dialogue, Meant, NEAR, Rule};
use sentences::{SET_APART, Told};

const PAGE: &str = "docs/measurements/rules.md";
const COMMAND: &str = "cargo xtask bench-rules";
/// Budgets of contexts, in tokens.
const SIZES: [u64; 2] = [2_000, 4_000];
/// Budget of a recall, in tokens.
const RECALL: u64 = 1_000;
/// How a line says that something later replaces it.
const MARK: &str = "(later:";

/// The columns of contexts: for rules that were never replaced, and for the others.
const SHOWN: [&str; 5] = [
    "unchanged: shown",
    "changed: current shown",
    "only stale",
    "only stale, unmarked",
    "stale unmarked beside current",
];
/// The columns of recalls.
const RECALLED: [&str; 5] = [
    "unchanged: there",
    "changed: current there",
    "above every stale",
    "stale above it",
    "only stale",
];
const TEXTS: [&str; 2] = ["dag", "tail"];
const QUESTIONS: [&str; 2] = ["the subject", "the very rule"];

/// How often each column holds, of how many.
type Counts = [(usize, usize); 5];

#[derive(Default)]
struct Measured {
    rules: usize,
    changed: usize,
    asked: usize,
    shown: [[Counts; TEXTS.len()]; SIZES.len()],
    recalled: [Counts; QUESTIONS.len()],
}

pub(crate) fn fit(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    fit::run(&Flags::of(flags, words, fit::COMMAND)?)
}

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let flags = Flags::of(flags, words, COMMAND)?;
    let sentences = sentences::sentences(&flags.data)?;
    let (apart, others): (Vec<_>, Vec<_>) = sentences
        .iter()
        .partition(|one| SET_APART.contains(&one.source));
    let told = [apart, others].map(|set| Told::of(set.into_iter(), flags.each));
    if flags.each {
        println!("{}", sentences_table(&told));
    }
    let dialogues = dialogues::dialogues(&flags.data.join("memorycode"))?;
    let mut sum = Measured::default();
    for (at, dialogue) in dialogues.iter().enumerate() {
        let one = Measured::of(dialogue)?;
        if flags.each {
            println!("dialogue {}\n{}", at + 1, tables(&one));
        }
        sum.merge(&one);
    }
    flags
        .mode
        .apply(PAGE, &page(&sum, dialogues.len(), &told), COMMAND)
}

impl Measured {
    fn of(dialogue: &Dialogue) -> anyhow::Result<Self> {
        let ours = Ours::by_program(&dialogue.lines, Strategy::Dag)?;
        let changed = dialogue.rules.iter().filter(|rule| !rule.stale.is_empty());
        let mut out = Self {
            rules: dialogue.rules.len(),
            changed: changed.count(),
            ..Self::default()
        };
        for (size, counts) in SIZES.iter().zip(&mut out.shown) {
            let context = ours.context(*size)?;
            let text = context.map(|(_, text)| text).unwrap_or_default();
            let tail = last_characters(&dialogue.plain, text.chars().count());
            for (text, counts) in [&text, tail].into_iter().zip(counts) {
                dialogue
                    .rules
                    .iter()
                    .for_each(|rule| count(counts, shown(rule, text)));
            }
        }
        for rule in &dialogue.rules {
            let Some(questions) = &rule.questions else {
                continue;
            };
            out.asked += 1;
            for (question, counts) in questions.iter().zip(&mut out.recalled) {
                let passages = ours.recall(question, RECALL)?.passages;
                let texts: Vec<&str> = passages.iter().map(|p| p.text.as_str()).collect();
                count(counts, recalled(rule, &texts));
            }
        }
        Ok(out)
    }

    fn merge(&mut self, other: &Self) {
        self.rules += other.rules;
        self.changed += other.changed;
        self.asked += other.asked;
        let sums = self
            .shown
            .as_flattened_mut()
            .iter_mut()
            .chain(&mut self.recalled);
        let parts = other.shown.as_flattened().iter().chain(&other.recalled);
        for (sum, part) in sums
            .zip(parts)
            .flat_map(|(sum, part)| sum.iter_mut().zip(part))
        {
            *sum = (sum.0 + part.0, sum.1 + part.1);
        }
    }
}

/// Whether each column holds; `None` if it does not apply to the rule.
type Judged = [Option<bool>; 5];

fn count(counts: &mut Counts, judged: Judged) {
    for (sum, holds) in counts.iter_mut().zip(judged) {
        if let Some(holds) = holds {
            *sum = (sum.0 + usize::from(holds), sum.1 + 1);
        }
    }
}

/// The columns of [`SHOWN`].
fn shown(rule: &Rule, text: &str) -> Judged {
    let current = rule.current.is_in(text);
    if rule.stale.is_empty() {
        return [Some(current), None, None, None, None];
    }
    let lines = || rule.stale.iter().flat_map(|value| value.lines(text));
    let stale = lines().next().is_some();
    let unmarked = lines().any(|line| !line.contains(MARK));
    [
        None,
        Some(current),
        Some(stale && !current),
        Some(unmarked && !current),
        Some(unmarked && current),
    ]
}

/// The columns of [`RECALLED`].
fn recalled(rule: &Rule, passages: &[&str]) -> Judged {
    let place = |value: &Meant| passages.iter().position(|text| value.is_in(text));
    let current = place(&rule.current);
    if rule.stale.is_empty() {
        return [Some(current.is_some()), None, None, None, None];
    }
    let stale = rule.stale.iter().filter_map(place).min();
    let (first, both) = match (current, stale) {
        (Some(current), Some(stale)) => (current <= stale, true),
        (current, _) => (current.is_some(), false),
    };
    [
        None,
        Some(current.is_some()),
        Some(first),
        Some(both && !first),
        Some(stale.is_some() && current.is_none()),
    ]
}

fn row(counts: &Counts) -> String {
    let cell = |(holds, all): &(usize, usize)| match all {
        0 => " – |".to_owned(),
        _ => format!(" {:.1} |", *holds as f64 / *all as f64 * 100.0),
    };
    counts.iter().map(cell).collect()
}

fn tables(measured: &Measured) -> String {
    let mut out = format!("| tokens | text | {} |\n", SHOWN.join(" | "));
    let _ = writeln!(out, "|--:|---|{}", "--:|".repeat(SHOWN.len()));
    for (size, texts) in SIZES.iter().zip(&measured.shown) {
        for (text, counts) in TEXTS.iter().zip(texts) {
            let _ = writeln!(out, "| {size} | {text} |{}", row(counts));
        }
    }
    let _ = writeln!(out, "\nOne recall of {RECALL} tokens:\n");
    let _ = writeln!(out, "| asked for | {} |", RECALLED.join(" | "));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(RECALLED.len()));
    for (question, counts) in QUESTIONS.iter().zip(&measured.recalled) {
        let _ = writeln!(out, "| {question} |{}", row(counts));
    }
    out
}

/// The table of sentences: those of the sources that are set apart, and the others.
fn sentences_table([apart, others]: &[Told; 2]) -> String {
    let mut out = String::from(
        "| sources | sentences | rules | told as rules | of them rules | rules that are told |\n|---|--:|--:|--:|--:|--:|\n",
    );
    for (name, one) in [("set apart", apart), ("the others", others)] {
        let Told {
            all,
            rules,
            told,
            both,
        } = one;
        let _ = writeln!(
            out,
            "| {name} | {all} | {rules} | {told} | {both} of {told} | {both} of {rules} |"
        );
    }
    out
}

fn page(sum: &Measured, dialogues: usize, told: &[Told; 2]) -> String {
    format!(
        "\
<!-- generated by `{COMMAND}` -->

# Rules that change

A rule that was replaced is worse than none: an agent follows it. In MemoryCode's dialogues a mentor gives rules for
names in code over many sessions, between other talk, and replaces some of them. This page measures whether a context
shows the rule that holds now, and whether a recall finds it before those that held once: `{COMMAND} --data DIR`, over
the {dialogues} dialogues in the folder `memorycode` of the corpus.

- A dialogue is one session, a day for each of its sessions, the mentor with the role user. It is imported, compacted and
  assembled as the program's `compact --mode full` and `context --budget N` do it, with extracts and without a model.
- Which values belong to one rule says the data set by numbers. The **current** value is the last, **stale** are earlier
  ones. Values are quoted in the data set's own list of rules, or are UPPERCASE, CamelCase or snake_case. Rules without
  one are left out, and those that their own session does not show by the test below. There are {} rules, {} of
  which were changed; {} are asked for.
- A value is **shown** by a text if it is a word of its own there, and the rule's subject (function, class, argument …)
  is within {NEAR} characters of it in the same line.
- A stale value is **marked** where its line has `{MARK}`.
- **tail** is the end of the messages, without names, of as many characters as the context has.
- Recalls are asked for the rule's subject (\"What is the rule for naming functions?\") and for the very rule (\"What should
  function names end with?\"). A value is **above** another if a passage with it comes first, or if one passage has both.

Figures are parts of the rules, in per cent.

{}
## Sentences that are rules

A rule is the line that a model obeys first, so none is better than a false one. {} sentences of users in the corpus were
read by two readers who saw nothing of ours: is the sentence a rule, written by a person for the work to come? Not a task, a question, a
report, a description, pasted text. Those on which they differed are left out. Each is judged with its message, and is **told**
if the state of a conversation that has only this message lists it among its rules. No weight is fitted to any of these sentences
(`cargo xtask fit-rules`), though to others of some of their messages, and none at all to the sources that are **set apart**: {}.

{}
## What this does not see

A value in a text may be told in passing, or by the mentee who repeats it, and a stale one may be told as such in words
that have no mark: both count as shown. Rules without a value of their own (docstrings, annotations) are left out, and
so are those that are taken back without another in their place. All rules are about names in code, and all dialogues
English. Whether an agent follows what it reads is not measured.
",
        sum.rules,
        sum.changed,
        sum.asked,
        tables(sum),
        told.iter().map(|one| one.all).sum::<usize>(),
        SET_APART.map(|source| format!("`{source}`")).join(", "),
        sentences_table(told)
    )
}
