//! Acceptance gate: checks of a summary apart from its length.

mod echo;
mod language;
mod share;
mod terms;

use std::collections::BTreeSet;
use std::fmt;

use extractive_summarizer::Source;
use extractive_summarizer::text::{head, tail};
use memory_model::{EntryKind, Part, ResultContent, Role};
use serde::{Deserialize, Serialize};

use crate::request::SummaryRequest;

pub use share::Share;
pub use terms::Term;

/// Checks by which a [`Ladder`](crate::Ladder) accepts or refuses a summary, in addition to its length. Terms are words
/// such as identifiers, paths and error codes.
///
/// The summary should retain the most important terms of each class. Terms that users and errors name are the most
/// important. The number of these terms is limited: at four tokens each, they take at most a quarter of the target
/// length.
///
/// ```
/// use summarize_escalation::{Gate, Share};
///
/// let strict = Gate {
///     min_retained: Share::new(0.5),
///     ..Gate::default()
/// };
/// assert_eq!(strict.min_retained.get(), 0.5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
pub struct Gate {
    /// Minimum share of the important terms of each class that the summary must retain, rounded down but at least one
    /// term. 0 disables the check. Default 0.1.
    pub min_retained: Share,
    /// Classes of terms that are checked. Default: all except numbers.
    pub terms: BTreeSet<Term>,
    /// Minimum number of terms of a class in the source; a class with fewer is not checked. Default 8.
    pub at_least: u32,
    /// Whether a summary that repeats the prompt is refused. Default true.
    pub echo: bool,
    /// Whether a summary in another language than the conversation is refused. The check applies only if both languages
    /// are clear and the request has no instructions. Default true.
    pub language: bool,
}

impl Default for Gate {
    /// Thresholds that a summary about its source passes easily.
    fn default() -> Self {
        let all = Term::ALL.into_iter();
        Self {
            min_retained: Share::new(0.1),
            terms: all.filter(|term| *term != Term::Numbers).collect(),
            at_least: 8,
            echo: true,
            language: true,
        }
    }
}

impl Gate {
    /// Returns the checks that a summary with these scores fails; empty if it passes all.
    pub fn failures(&self, scores: &Scores) -> Vec<GateFailure> {
        let lost = self.terms.iter().filter_map(|term| {
            let retention = scores.retention(*term);
            let checked = self.min_retained > Share::new(0.0)
                && retention.total > 0
                && retention.total >= self.at_least;
            let needed = self.min_retained.of(retention.total).max(1);
            (checked && retention.found < needed).then_some(GateFailure::Lost {
                term: *term,
                retention,
                min_retained: self.min_retained,
            })
        });
        let others = [
            (self.echo && scores.echo, GateFailure::Echo),
            (
                self.language && scores.other_language,
                GateFailure::Language,
            ),
        ];
        let others = others.into_iter().filter(|(failed, _)| *failed);
        lost.chain(others.map(|(_, failure)| failure)).collect()
    }
}

/// Number of important terms of the source, and number of these in the summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermCounts {
    /// Number of the source's terms that the summary contains.
    pub found: u32,
    /// Number of the source's terms that the summary was searched for.
    pub total: u32,
}

/// Measurements of a summary against its source. They are stored with the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Scores {
    /// Counts of identifiers: names in code and commit ids.
    pub identifiers: TermCounts,
    /// Counts of numbers with two or more digits.
    pub numbers: TermCounts,
    /// Counts of paths of files.
    pub paths: TermCounts,
    /// Counts of addresses (URLs).
    pub urls: TermCounts,
    /// Counts of codes: error codes, ticket numbers and the like.
    pub codes: TermCounts,
    /// Whether the model refused to write a summary.
    pub refusal: bool,
    /// Whether the summary repeats the prompt.
    pub echo: bool,
    /// Whether the summary is clearly in another language than the conversation.
    pub other_language: bool,
}

impl Scores {
    /// Returns the counts of terms of one class.
    pub fn retention(&self, term: Term) -> TermCounts {
        match term {
            Term::Identifiers => self.identifiers,
            Term::Numbers => self.numbers,
            Term::Paths => self.paths,
            Term::Urls => self.urls,
            Term::Codes => self.codes,
        }
    }
}

/// A check of the [`Gate`] that a summary fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GateFailure {
    /// The summary retains too few terms of a class.
    Lost {
        /// Class of the terms that are missing.
        term: Term,
        /// Number of terms that the summary contains, and number that it was searched for.
        retention: TermCounts,
        /// Minimum share of the terms that the gate requires.
        min_retained: Share,
    },
    /// The summary repeats the prompt.
    Echo,
    /// The summary is in another language than the conversation.
    Language,
}

impl GateFailure {
    /// Returns the name of the failed check, such as `identifiers` or `language`.
    pub fn rule(&self) -> &'static str {
        match self {
            GateFailure::Lost { term, .. } => term.as_str(),
            GateFailure::Echo => "echo",
            GateFailure::Language => "language",
        }
    }
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateFailure::Lost {
                term,
                retention,
                min_retained,
            } => write!(
                f,
                "the summary retains {} of {} {term} (minimum share {min_retained})",
                retention.found, retention.total
            ),
            GateFailure::Echo => f.write_str("the summary repeats the prompt"),
            GateFailure::Language => {
                f.write_str("the summary is in another language than the conversation")
            }
        }
    }
}

/// Measures a summary against the source of its request. Takes time linear in the length of the source. Of long texts
/// it reads only the start and the end.
pub fn measure(text: &str, request: &SummaryRequest<'_>) -> Scores {
    let most = usize::try_from(request.target_tokens / 16).unwrap_or(usize::MAX);
    let texts = terms::weighted(request.source);
    let salient = terms::salient(&texts, most.clamp(1, 64));
    let held = terms::held(text, &salient);
    let retention = |term: Term| {
        let number = |n: Option<usize>| u32::try_from(n.unwrap_or(0)).unwrap_or(u32::MAX);
        TermCounts {
            found: number(held.get(term as usize).copied()),
            total: number(salient.get(term as usize).map(Vec::len)),
        }
    };
    Scores {
        identifiers: retention(Term::Identifiers),
        numbers: retention(Term::Numbers),
        paths: retention(Term::Paths),
        urls: retention(Term::Urls),
        codes: retention(Term::Codes),
        refusal: echo::is_refusal(text),
        echo: echo::is_echo(text, request.source),
        other_language: request.instructions.is_none() && other_language(text, request.source),
    }
}

/// Bytes of the latest texts that identify the language of a conversation.
const NEWEST_BYTES: usize = 12 * 1024;
/// Bytes of the oldest texts that identify it.
const OLDEST_BYTES: usize = NEWEST_BYTES / 2;
/// Bytes that are read of one text, at its start.
const TEXT_BYTES: usize = 4_000;
/// Minimum bytes of spoken texts that identify a language.
const LEAST_SPOKEN: usize = 64;
/// Number of latest pieces with tool texts that are read if there are few spoken texts.
const TOOL_PIECES: usize = 20;
/// Bytes that are read of a summary, of its start and of its end.
const SUMMARY_BYTES: (usize, usize) = (8 * 1024, 4 * 1024);

/// Whether a text is clearly in another language than the conversation.
fn other_language(text: &str, source: &[Source<'_>]) -> bool {
    let written = match text.len() > SUMMARY_BYTES.0 + SUMMARY_BYTES.1 {
        true => [head(text, SUMMARY_BYTES.0), tail(text, SUMMARY_BYTES.1)],
        false => [text, ""],
    };
    language::differs(&conversation_sample(source), &written)
}

/// The oldest and the latest texts of a conversation. If users and assistants wrote almost no text, also the input and
/// output of the latest tools.
fn conversation_sample<'a>(source: &[Source<'a>]) -> Vec<&'a str> {
    let start = |text: &'a str| head(text, TEXT_BYTES);
    let mut texts: Vec<&str> = source.iter().flat_map(spoken).map(start).collect();
    let newest = reaching(texts.iter().rev(), NEWEST_BYTES);
    let first = texts.len() - newest;
    let oldest = reaching(texts.iter().take(first), OLDEST_BYTES);
    texts.drain(oldest..first);
    if texts.iter().map(|text| text.len()).sum::<usize>() < LEAST_SPOKEN {
        let pieces = source.iter().rev().take(TOOL_PIECES);
        texts.extend(pieces.flat_map(any_text).map(start));
    }
    texts
}

/// Number of texts that together reach a number of bytes, or of all texts.
fn reaching<'a>(texts: impl Iterator<Item = &'a &'a str>, bytes: usize) -> usize {
    let before = texts.scan(0, |sum, text| {
        let before = *sum;
        *sum += text.len();
        Some(before)
    });
    before.take_while(|before| *before < bytes).count()
}

/// The texts of a piece that a user, an assistant or a summary says.
fn spoken<'a>(piece: &Source<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let (summary, parts): (_, &[Part]) = match *piece {
        Source::Summary(summary) => (Some(summary.text), &[]),
        Source::Message(entry)
            if entry.kind == EntryKind::Message
                && matches!(entry.role, Role::User | Role::Assistant) =>
        {
            (None, &entry.parts)
        }
        Source::Message(_) => (None, &[]),
    };
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    summary.into_iter().chain(texts)
}

/// The texts of a message, including its calls and results.
fn any_text<'a>(piece: &Source<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let parts: &[Part] = match *piece {
        Source::Message(entry) => &entry.parts,
        Source::Summary(_) => &[],
    };
    parts.iter().filter_map(|part| match part {
        Part::Text { text }
        | Part::ToolResult {
            content: ResultContent::Text(text),
            ..
        } => Some(text.as_str()),
        Part::ToolCall { arguments, .. } => Some(arguments.as_str()),
        _ => None,
    })
}
