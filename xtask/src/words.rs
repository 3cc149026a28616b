//! Habits of prose: words and phrases that this repository's comments and pages repeat more often than those of others do.
//!
//! The rates to compare with were counted by this task on the doc comments of jj-lib 0.46.0 (the library of jj). More than
//! twice jj's rate of a phrase fails, but [`LEAST_LIMIT`] per 1,000 words and one use are allowed of each. Code is not
//! counted: neither code blocks nor spans between backticks, so that `WHERE` of SQL is no habit.
//!
//! Doc comments are counted for each crate, with the crate's README, which is its front page. The pages in `docs` and the
//! README of the repository are counted together, and their semicolons as well. Generated pages are left out, since their
//! words come from sources that are counted or are SQL comments, and so are the measurements, which are tables with their
//! dates and commands.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::mode::root;

/// A phrase, or several forms of one, with its uses per 1,000 words in the doc comments of jj.
struct Habit {
    forms: &'static [&'static str],
    jj: f64,
}

const fn habit(forms: &'static [&'static str], jj: f64) -> Habit {
    Habit { forms, jj }
}

const HABITS: &[Habit] = &[
    habit(&["what"], 0.43),
    habit(&["where"], 0.90),
    habit(&["whose"], 0.10),
    habit(&["stand", "stands", "stood", "standing"], 0.0),
    habit(&["the newest"], 0.0),
    habit(&["those of", "that of"], 0.0),
    habit(&["beside"], 0.0),
    habit(&["somebody", "somebody's"], 0.0),
    habit(&["whatever", "whoever"], 0.0),
    habit(&["nothing"], 0.20),
    habit(&["tells", "told"], 0.0),
    habit(&["so many"], 0.07),
    habit(&["goes on", "go on", "going on", "went on"], 0.0),
    habit(&["comes to", "come to", "came to"], 0.0),
    habit(&["put away", "puts away"], 0.0),
    habit(&["of its own", "of their own"], 0.03),
    habit(&["anew"], 0.03),
];

/// Uses per 1,000 words that are allowed of each habit.
const LEAST_LIMIT: f64 = 0.5;

/// Semicolons in 100 sentences of the pages that are allowed: twice as many as in jj's.
const SEMICOLON_LIMIT: f64 = 6.0;

/// Crates that are not rewritten yet. They are printed and do not fail.
const PENDING: &[&str] = &[
    "agent-memory",
    "block-overlay",
    "compaction-plan",
    "compaction-runner",
    "dag-compactor",
    "extractive-summarizer",
    "handoff-compactor",
    "memory-search",
    // Its reader of transcripts is about to change as a whole.
    "message-formats",
];

/// Pages that are not counted.
const LEFT_OUT: &[&str] = &[
    // Generated from the schema.
    "schema.md",
    // Tables of test names.
    "parity.md",
    "measurements",
];

/// Prints the habits of each crate and of the pages, and fails if one is above its limit. With folders, prints their
/// rates and fails for no reason: this is how another project's rates are counted.
pub(crate) fn run(folders: &[&str]) -> anyhow::Result<()> {
    if !folders.is_empty() {
        for folder in folders {
            let prose = crate_prose(Path::new(folder))?;
            println!("{folder}: {} words", prose.words());
            for (habit, uses) in prose.uses() {
                println!("  {:6.2} {}", prose.rate(uses), habit.forms.join(", "));
            }
        }
        return Ok(());
    }
    let mut problems = Vec::new();
    for folder in crates(&root())? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let excesses = crate_prose(&folder)?.report(&name);
        if !PENDING.contains(&&*name) {
            problems.extend(excesses);
        }
    }
    let pages = pages(&root())?;
    problems.extend(pages.report("pages"));
    let semicolons = pages.semicolons_per_hundred_sentences();
    println!("  {semicolons:.1} semicolons in 100 sentences");
    if semicolons > SEMICOLON_LIMIT {
        problems.push(format!(
            "pages: {semicolons:.1} semicolons in 100 sentences, more than {SEMICOLON_LIMIT}"
        ));
    }
    ensure!(
        problems.is_empty(),
        "say these in plain words, subject first:\n  {}",
        problems.join("\n  ")
    );
    Ok(())
}

/// The folders of all crates and of these tasks, by name.
fn crates(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("xtask")];
    for entry in std::fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    folders.sort();
    Ok(folders)
}

/// The prose of a crate: its doc comments and its README.
fn crate_prose(folder: &Path) -> anyhow::Result<Prose> {
    let mut prose = Prose::default();
    for file in files(&folder.join("src"), "rs")? {
        prose.add(doc_comments(&read(&file)?));
    }
    let readme = folder.join("README.md");
    if readme.exists() {
        prose.add(read(&readme)?.lines());
    }
    Ok(prose)
}

/// The prose of the pages of a repository.
fn pages(root: &Path) -> anyhow::Result<Prose> {
    let mut prose = Prose::default();
    prose.add(read(&root.join("README.md"))?.lines());
    let docs = root.join("docs");
    for file in files(&docs, "md")? {
        let is_left_out = LEFT_OUT
            .iter()
            .any(|name| file.starts_with(docs.join(name)));
        if !is_left_out {
            prose.add(read(&file)?.lines());
        }
    }
    Ok(prose)
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))
}

/// The files with an extension at any depth of a folder, by name.
fn files(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The lines of the doc comments of a source file, without their marks. Comments are separated by an empty line.
fn doc_comments(source: &str) -> impl Iterator<Item = &str> {
    source.lines().map(|line| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or(line.strip_prefix("//!"));
        text.filter(|text| !text.starts_with('/')).unwrap_or("")
    })
}

/// Sentences of comments or pages, as lower-case words.
#[derive(Default)]
struct Prose {
    clauses: Vec<Vec<String>>,
    sentences: usize,
    semicolons: usize,
}

impl Prose {
    /// Adds Markdown lines without code blocks and the targets of links. A span of code counts as one word.
    fn add<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        let mut paragraph = String::new();
        let mut in_code_block = false;
        for line in lines {
            let line = line.trim();
            if line.starts_with("```") {
                in_code_block = !in_code_block;
                continue;
            }
            let begins_paragraph = line.is_empty() || line.starts_with(['#', '-', '*', '|']);
            if in_code_block || begins_paragraph {
                self.add_paragraph(&std::mem::take(&mut paragraph));
            }
            if !in_code_block {
                paragraph.push_str(line);
                paragraph.push('\n');
            }
        }
        self.add_paragraph(&paragraph);
    }

    fn add_paragraph(&mut self, paragraph: &str) {
        let without_code: String = paragraph
            .split('`')
            .step_by(2)
            .collect::<Vec<_>>()
            .join("X");
        for cell in without_code.split('|') {
            for sentence in cell.split_inclusive(['.', '!', '?']) {
                self.add_sentence(sentence);
            }
        }
    }

    fn add_sentence(&mut self, sentence: &str) {
        let count = self.clauses.len();
        // The target of a link has no words.
        let text: String =
            sentence
                .split("](")
                .enumerate()
                .fold(String::new(), |text, (at, part)| {
                    let rest = if at == 0 {
                        part
                    } else {
                        part.split_once(')').map_or("", |(_, rest)| rest)
                    };
                    text + rest
                });
        for clause in text.split([',', ';', ':', '(', ')']) {
            let words = clause.split(|c: char| !(c.is_alphanumeric() || c == '\''));
            let words: Vec<String> = words
                .filter(|word| word.chars().any(char::is_alphabetic))
                .map(str::to_lowercase)
                .collect();
            if !words.is_empty() {
                self.clauses.push(words);
            }
        }
        if self.clauses.len() > count {
            self.sentences += 1;
            self.semicolons += text.matches(';').count();
        }
    }

    fn words(&self) -> usize {
        self.clauses.iter().map(Vec::len).sum()
    }

    /// The number of uses of each habit.
    fn uses(&self) -> impl Iterator<Item = (&'static Habit, usize)> {
        HABITS.iter().map(|habit| {
            let uses = habit.forms.iter().map(|form| self.uses_of(form)).sum();
            (habit, uses)
        })
    }

    fn uses_of(&self, phrase: &str) -> usize {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let windows = self
            .clauses
            .iter()
            .flat_map(|clause| clause.windows(phrase.len()));
        windows.filter(|window| *window == phrase).count()
    }

    /// A number of uses per 1,000 words.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn rate(&self, uses: usize) -> f64 {
        uses as f64 * 1000.0 / self.words().max(1) as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn semicolons_per_hundred_sentences(&self) -> f64 {
        self.semicolons as f64 * 100.0 / self.sentences.max(1) as f64
    }

    /// Prints the habits that are used, those above their limit marked with `!`, and returns these.
    fn report(&self, name: &str) -> Vec<String> {
        println!("{name}: {} words", self.words());
        let mut excesses = Vec::new();
        for (habit, uses) in self.uses().filter(|(_, uses)| *uses > 0) {
            let rate = self.rate(uses);
            let limit = (2.0 * habit.jj).max(LEAST_LIMIT);
            let is_excess = uses > 1 && rate > limit;
            let mark = if is_excess { '!' } else { ' ' };
            let forms = habit.forms.join(", ");
            println!("{mark} {rate:6.2} (limit {limit:.2}, {uses} uses) {forms}");
            if is_excess {
                excesses.push(format!(
                    "{name}: {forms}: {rate:.2} in 1,000 words, more than {limit:.2}"
                ));
            }
        }
        excesses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(prose: &Prose, form: &str) -> usize {
        let mut uses = prose.uses();
        uses.find(|(habit, _)| habit.forms.contains(&form))
            .unwrap()
            .1
    }

    #[test]
    fn doc_comments_are_counted_and_code_is_not() {
        let source = "\
//! What it does, and what\n//! it `what` not.\n//! ```\n//! let what = what();\n//! ```\n
// What a plain comment says.\n//// What a rule of slashes says.\nfn what() {}\n
    /// The newest, somebody's: so\n    /// many. [What](what.md), Whatever\n    fn f() {}\n";
        let mut prose = Prose::default();
        prose.add(doc_comments(source));
        assert_eq!(uses(&prose, "what"), 3);
        assert_eq!(uses(&prose, "the newest"), 1);
        assert_eq!(uses(&prose, "somebody"), 1);
        assert_eq!(uses(&prose, "so many"), 1);
        assert_eq!(uses(&prose, "whatever"), 1);
        assert_eq!(uses(&prose, "where"), 0);
        assert_eq!(prose.words(), 16);
    }

    #[test]
    fn a_phrase_does_not_cross_the_end_of_a_clause() {
        let mut prose = Prose::default();
        prose.add(["It comes. To", "| it comes | to |", "it comes, to"]);
        assert_eq!(uses(&prose, "comes to"), 0);
        prose.add(["it comes", "to this"]);
        assert_eq!(uses(&prose, "comes to"), 1);
    }

    #[test]
    fn a_rate_above_the_limit_is_an_excess_and_a_single_use_is_not() {
        let mut prose = Prose::default();
        prose.add(["One stands."]);
        assert!(prose.report("x").is_empty());
        prose.add(["Two stand."]);
        assert_eq!(prose.report("x").len(), 1);
        prose.add(std::iter::repeat_n("Plain words.", 2000));
        assert!(prose.report("x").is_empty());
    }

    #[test]
    fn semicolons_are_counted_in_a_hundred_sentences() {
        let mut prose = Prose::default();
        prose.add([
            "One; two.",
            "",
            "Three",
            "- four",
            "```",
            "a; b;",
            "```",
            "| five; | six |",
        ]);
        assert_eq!(prose.sentences, 5);
        assert_eq!(prose.semicolons, 2);
        assert_eq!(prose.semicolons_per_hundred_sentences(), 40.0);
    }
}
