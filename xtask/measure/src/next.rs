//! `cargo xtask bench-next --data DIR [--each] [--check | --dry-run]`: what of the things that the next steps of real
//! sessions used a context shows; writes docs/measurements/next.md.

mod cases;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use agent_memory::Strategy;
use anyhow::Context as _;
use message_formats::{CalledName, NAME_KINDS, NamePatterns};
use token_estimate::TokenEstimator as _;

use crate::density::ours::{Ours, TOKENS};
use crate::flags::{Flags, last_characters};
use cases::{Cut, EVERY, LONGEST, NEXT};

const PAGE: &str = "docs/measurements/next.md";
const COMMAND: &str = "cargo xtask bench-next";
/// Budgets of contexts, in tokens.
const SIZES: [u64; 4] = [2_000, 4_000, 8_000, 16_000];
/// The newest requests that are looked for.
const NEWEST: usize = 5;

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let flags = Flags::of(flags, words, COMMAND)?;
    let patterns = NamePatterns::new().context("the patterns of names")?;
    let cuts = cases::cuts(&flags.data, &patterns)?;
    let mut rows = Rows::default();
    let mut files: BTreeMap<&str, Rows> = BTreeMap::new();
    for cut in &cuts {
        let one = rows_of(cut, &patterns)?;
        if flags.each {
            println!("{}, line {}\n{}", cut.file, cut.line, table(&one));
        }
        for sums in [&mut rows, files.entry(&cut.file).or_default()] {
            for (key, row) in &one {
                sums.entry(*key).or_default().merge(row);
            }
        }
    }
    let page = page(&rows, &files, cuts.len());
    flags.mode.apply(PAGE, &page, COMMAND)
}

/// A text: its size in tokens, none for that of the agent's own summary; and the number of its method.
type Key = (Option<u64>, usize);
type Rows = BTreeMap<Key, Row>;

/// The methods, in the order of the rows.
const METHODS: [&str; 5] = ["agents' own summaries", "dag", "handoff", "blocks", "tail"];
const OWN: usize = 0;
const DAG: usize = 1;
const TAIL: usize = 4;

/// Sums over the texts of one size.
#[derive(Default)]
struct Row {
    texts: usize,
    shown: [usize; NAME_KINDS.len()],
    needed: [usize; NAME_KINDS.len()],
    /// Texts with the newest request whole, of those with a request.
    newest: (usize, usize),
    /// How many of the newest requests are there whole.
    requests: (usize, usize),
    /// The shares of lists of names.
    lists: f64,
    /// Tokens of contexts and their budgets, for logs that are larger.
    room: (u64, u64),
}

impl Row {
    fn of(cut: &Cut, text: &str, patterns: &NamePatterns) -> Self {
        let (shown, lists) = patterns.shown(&cut.needed, text);
        let mut needed = [0; NAME_KINDS.len()];
        for CalledName { kind, .. } in &cut.needed {
            needed[*kind] += 1;
        }
        let flat = flat(text);
        let newest = cut.typed.iter().rev().take(NEWEST);
        let whole: Vec<bool> = newest
            .map(|typed| flat.contains(&self::flat(typed)))
            .collect();
        let count = |whole: &[bool]| (whole.iter().filter(|is| **is).count(), whole.len());
        Self {
            texts: 1,
            shown,
            needed,
            newest: count(&whole[..whole.len().min(1)]),
            requests: count(&whole),
            lists,
            room: (0, 0),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.texts += other.texts;
        for kind in 0..NAME_KINDS.len() {
            self.shown[kind] += other.shown[kind];
            self.needed[kind] += other.needed[kind];
        }
        for (sum, part) in [
            (&mut self.newest, other.newest),
            (&mut self.requests, other.requests),
        ] {
            *sum = (sum.0 + part.0, sum.1 + part.1);
        }
        self.lists += other.lists;
        self.room = (self.room.0 + other.room.0, self.room.1 + other.room.1);
    }

    fn all_shown(&self) -> usize {
        self.shown.iter().sum()
    }
}

fn rows_of(cut: &Cut, patterns: &NamePatterns) -> anyhow::Result<Rows> {
    let mut rows = Rows::new();
    let row = |text: &str| Row::of(cut, text, patterns);
    let own = cut.theirs.as_deref().map(|theirs| TOKENS.text(theirs));
    if let Some(theirs) = &cut.theirs {
        rows.insert((None, OWN), row(theirs));
    }
    let end = last_characters(&cut.past, 80_000);
    let per_token = end.chars().count() as f64 / TOKENS.text(end).max(1) as f64;
    for (method, strategy) in (DAG..).zip([Strategy::Dag, Strategy::Handoff, Strategy::Blocks]) {
        let ours = Ours::by_program(&cut.before, strategy)?;
        let log = ours.log_tokens()?;
        let own = own.map(|tokens| (None, tokens.max(300)));
        for (size, budget) in SIZES.map(|n| (Some(n), n)).into_iter().chain(own) {
            let (tokens, text) = match ours.context(budget)? {
                Some((context, text)) => (context.tokens, unescaped(&text)),
                None => (0, String::new()),
            };
            let mut row = row(&text);
            if log > budget {
                row.room = (tokens, budget);
            }
            rows.insert((size, method), row);
        }
    }
    for size in SIZES {
        let tail = last_characters(&cut.past, (size as f64 * per_token) as usize);
        rows.insert((Some(size), TAIL), row(tail));
    }
    Ok(rows)
}

/// A text with single spaces.
fn flat(text: &str) -> String {
    crate::retention::gold::spaced(text)
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&gt;", ">").replace("&lt;", "<");
    text.replace("&amp;", "&")
}

fn percent(part: usize, all: usize) -> String {
    match all {
        0 => "–".to_owned(),
        _ => format!("{:.1}", part as f64 / all as f64 * 100.0),
    }
}

fn table(rows: &Rows) -> String {
    let mut out = String::from("| tokens | text | needed next |");
    for kind in NAME_KINDS {
        let _ = write!(out, " {kind} |");
    }
    out.push_str(" newest request whole | newest five whole | lists of names | room used |\n");
    let _ = writeln!(out, "|--:|---|{}", "--:|".repeat(5 + NAME_KINDS.len()));
    for ((size, method), row) in rows {
        let size = size.map_or_else(|| "theirs".to_owned(), |size| size.to_string());
        let _ = write!(out, "| {size} | {} |", METHODS[*method]);
        let needed = row.needed.iter().sum();
        let _ = write!(out, " {} |", percent(row.all_shown(), needed));
        for (shown, needed) in row.shown.iter().zip(row.needed) {
            let _ = write!(out, " {} |", percent(*shown, needed));
        }
        let (newest, requests) = (row.newest, row.requests);
        let _ = write!(out, " {} of {} |", newest.0, newest.1);
        let _ = write!(out, " {} |", percent(requests.0, requests.1));
        let _ = write!(out, " {:.1} |", row.lists / row.texts as f64 * 100.0);
        let _ = writeln!(
            out,
            " {} |",
            percent(row.room.0 as usize, row.room.1 as usize)
        );
    }
    out
}

fn page(rows: &Rows, files: &BTreeMap<&str, Rows>, cuts: usize) -> String {
    let needed = rows.get(&(Some(SIZES[0]), DAG)).map(|row| row.needed);
    let needed = needed.unwrap_or_default();
    let kinds = needed
        .iter()
        .zip(NAME_KINDS)
        .map(|(n, kind)| format!("{kind} {n}"));
    let kinds: Vec<String> = kinds.collect();
    let mut out = format!(
        "\
<!-- generated by `{COMMAND}` -->

# What the next steps need

An agent that goes on from a context names files, functions, commits and ports that it knows from before. This page
measures what of these a context shows, in {cuts} cuts through {} real sessions: `{COMMAND} --data DIR`, over the
transcripts of Claude Code and pi in the folders `claude-code` and `pi` of the corpus. Everything before a cut is
imported, compacted and assembled as the program's `compact --mode full` and `context --budget N` do it, with
extracts and without a model.

- **Cuts** are made where an agent compacted, and at every {EVERY}th message, with at least 60 messages before them and
  10 behind them, of which at most {NEXT} count. Sub-agents are left out, and so are agents' summaries before a cut.
- **Needed next** is what arguments of the tool calls behind a cut name and a text before it has: files (the last two
  components of a path), identifiers (a hump or an underscore), hashes of 7 to 40 digits, numbers of three digits and
  more. What a call writes, has just read or asks another agent does not count (`content`, `old_string`, `prompt` and
  their like). A figure is the share that is in the text to the letter, added up over all cuts: {}.
- **Lists of names** are lines of six and more words of which seven tenths are identifiers or paths. Identifiers in
  them count for no text; the column says what share of the text they are, as the mean over texts.
- **Newest request whole**: the last text that the user typed is there word for word, white space aside. Texts that begin
  with a tag or that programs write, and those over {LONGEST} characters, are no requests. The next column is the same of
  the last {NEWEST}.
- **Room used**: tokens of the context of its budget, by the session's own estimator, where the log is larger.
- **tail** is the end of the plain transcript, with all that tools returned: as many characters as N tokens are there
  on average, by o200k over the last 80,000 characters. **theirs** is the size of the agent's own summary.

{}
",
        files.len(),
        kinds.join(", "),
        table(rows)
    );
    for size in SIZES {
        let shown = |rows: &Rows, method| rows.get(&(Some(size), method)).map(Row::all_shown);
        let is_below = |rows: &Rows| {
            let cuts = rows.get(&(Some(size), DAG)).map_or(0, |row| row.texts);
            cuts >= 3 && shown(rows, DAG) < shown(rows, TAIL)
        };
        let below = files.iter().filter(|(_, rows)| is_below(rows));
        let below: Vec<String> = below.map(|(file, _)| format!("`{file}`")).collect();
        if !below.is_empty() {
            let below = below.join(", ");
            let _ = writeln!(
                out,
                "At {size} tokens dag shows less than the tail in {below}.\n"
            );
        }
    }
    out.push_str(POSTFACE);
    out
}

const POSTFACE: &str = "\
## What this does not see

A name that is there may stand in a wrong or an old statement, and a reader may not find it; why something was decided,
what failed and what is still open have no name and are not measured at all. What an agent used is not all that would
have helped it, and it finds many names again with one search. Names that a later call has from a result behind the cut
count as needed too, if the past has them. Short sessions and those without tools are left out, so conversations that
are not about code are not seen.
";
