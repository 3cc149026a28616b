//! Acceptance gate: checks of a summary's content, apart from its length.

mod changed;
mod echo;
mod fault;
mod form;
mod known;
mod language;
mod share;
mod terms;
mod words;

use std::collections::BTreeSet;
use std::fmt;

use extractive_summarizer::Source;
use extractive_summarizer::text::{head, tail};
use memory_model::{EntryKind, Part, ResultContent, Role};
use serde::{Deserialize, Serialize};

use crate::refusal::Reason;
use crate::request::SummaryRequest;

pub use fault::Fault;
pub use share::Share;
pub use terms::Term;

/// Checks by which a [`Ladder`](crate::Ladder) accepts or refuses a summary, in addition to its length. Terms are words
/// such as identifiers, paths and error codes.
///
/// The summary should contain the most important terms of each class: those that a reader would miss, because the user
/// or the assistant named them, or because they occur in several messages. Terms of a template or a document that a
/// user pasted count only if they occur elsewhere too. A term is more important the more often it occurs, and it counts
/// most in messages of users. The number of these terms is limited: at four tokens for each term, the terms of a class
/// take at most a quarter of the target length.
///
/// Beneath that is a floor. A text with a [`Fault`] is no summary of its source, whatever terms it has.
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
    /// Minimum share of the important terms of each class that the summary must contain. The resulting number is
    /// rounded down, but is at least one term. 0 disables the check. Default 0.1.
    pub min_retained: Share,
    /// Classes of terms that are checked. Default: all except numbers.
    pub terms: BTreeSet<Term>,
    /// Minimum number of terms of a class in the source for the class to be checked alone. Classes with fewer terms are
    /// checked together if they have at least as many. Default 8.
    pub at_least: u32,
    /// Whether a summary that repeats the prompt is refused. Default true.
    pub echo: bool,
    /// Whether a summary in another language than the conversation is refused. The check applies only if both languages
    /// are clear and the request has no instructions. Default true.
    pub language: bool,
    /// Whether a summary with a [`Fault`] is refused. Default true.
    pub floor: bool,
}

impl Default for Gate {
    /// Returns thresholds that an ordinary summary of the source passes easily.
    fn default() -> Self {
        let all = Term::ALL.into_iter();
        Self {
            min_retained: Share::new(0.1),
            terms: all.filter(|term| *term != Term::Numbers).collect(),
            at_least: 8,
            echo: true,
            language: true,
            floor: true,
        }
    }
}

impl Gate {
    /// Returns the checks that a summary with these scores fails; empty if it passes all.
    pub fn failures(&self, scores: &Scores) -> Vec<GateFailure> {
        let mut failures = Vec::new();
        let mut few = TermCounts::default();
        let is_lost = |counts: TermCounts| {
            counts.total > 0
                && counts.total >= self.at_least
                && counts.found < self.min_retained.of(counts.total).max(1)
        };
        if self.min_retained > Share::new(0.0) {
            let min_retained = self.min_retained;
            for term in self.terms.iter().copied() {
                let retention = scores.retention(term);
                if retention.total < self.at_least {
                    few.found = few.found.saturating_add(retention.found);
                    few.total = few.total.saturating_add(retention.total);
                } else if is_lost(retention) {
                    failures.push(GateFailure::Lost {
                        term,
                        retention,
                        min_retained,
                    });
                }
            }
            if is_lost(few) {
                let retention = few;
                failures.push(GateFailure::LostTogether {
                    retention,
                    min_retained,
                });
            }
        }
        let others = [
            (self.echo && scores.echo, GateFailure::Echo),
            (
                self.language && scores.other_language,
                GateFailure::Language,
            ),
        ];
        let others = others.into_iter().filter(|(failed, _)| *failed);
        failures.extend(others.map(|(_, failure)| failure));
        let faults = scores.faults.iter().filter(|_| self.floor).copied();
        failures.extend(faults.map(|fault| GateFailure::Floor { fault }));
        failures
    }

    /// Returns the reason for which a text is no summary of a request's source; `None` if it passes all checks.
    pub(crate) fn refuses(&self, text: &str, request: &SummaryRequest<'_>) -> Option<Reason> {
        let scores = measure(text, request);
        if scores.refusal {
            return Some(Reason::Refused);
        }
        let failures = self.failures(&scores);
        (!failures.is_empty()).then(|| Reason::Gate {
            missing: missing(text, request, self, &failures),
            failures,
            scores: Box::new(scores),
        })
    }

    /// Returns the gate for summaries of parts of a source. How many terms must be retained is known only of the whole.
    pub(crate) fn of_parts(&self) -> Self {
        Self {
            min_retained: Share::new(0.0),
            ..self.clone()
        }
    }
}

/// Number of important terms in the source, and how many of them the summary contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermCounts {
    /// Number of these terms that the summary contains.
    pub found: u32,
    /// Number of the source's important terms that were looked up in the summary.
    pub total: u32,
}

/// Measurements of a summary in comparison with its source. They are stored with the summary.
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
    /// Counts of codes, such as error codes and ticket numbers.
    pub codes: TermCounts,
    /// Whether the model refused to write a summary.
    pub refusal: bool,
    /// Whether the summary repeats the prompt.
    pub echo: bool,
    /// Whether the summary is clearly in another language than the conversation.
    pub other_language: bool,
    /// Faults that show that the text is no summary of the source. Not looked for in texts written without a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
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
    /// The summary contains too few important terms of a class.
    Lost {
        /// Class of the terms.
        term: Term,
        /// Counts of the important terms of the class in the source and in the summary.
        retention: TermCounts,
        /// Minimum share of the terms that the gate requires in the summary.
        min_retained: Share,
    },
    /// The summary contains too few important terms of the classes that have only a few each.
    LostTogether {
        /// Counts of the important terms of these classes in the source and in the summary.
        retention: TermCounts,
        /// Minimum share of the terms that the gate requires in the summary.
        min_retained: Share,
    },
    /// The summary repeats the prompt.
    Echo,
    /// The summary is in another language than the conversation.
    Language,
    /// The text has a fault that shows that it is no summary of the source.
    Floor {
        /// The fault.
        fault: Fault,
    },
}

impl GateFailure {
    /// Returns the name of the failed check, such as `identifiers` or `language`.
    pub fn rule(&self) -> &'static str {
        match self {
            GateFailure::Lost { term, .. } => term.as_str(),
            GateFailure::LostTogether { .. } => "terms",
            GateFailure::Floor { fault } => fault.rule(),
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
            GateFailure::LostTogether {
                retention,
                min_retained,
            } => write!(
                f,
                "the summary retains {} of {} terms (minimum share {min_retained})",
                retention.found, retention.total
            ),
            GateFailure::Floor { fault } => fault.fmt(f),
            GateFailure::Echo => f.write_str("the summary repeats the prompt"),
            GateFailure::Language => {
                f.write_str("the summary is in another language than the conversation")
            }
        }
    }
}

/// Compares a summary with the texts that it summarizes. Counts the important identifiers, numbers, paths, URLs and
/// codes of these texts that the summary contains, and checks whether it is a refusal, a repetition of its prompt, or
/// in another language, and which [`Fault`]s it has. Takes time linear in the length of the texts. Only the start and
/// the end of long texts are read.
pub fn measure(text: &str, request: &SummaryRequest<'_>) -> Scores {
    Scores {
        faults: fault::faults(text, request, &conversation_sample(request.source)),
        ..measure_terms(text, request)
    }
}

/// Measures a text like [`measure`], without looking for faults.
pub(crate) fn measure_terms(text: &str, request: &SummaryRequest<'_>) -> Scores {
    let texts = terms::weighted(request);
    let salient = terms::salient(&texts, most_terms(request));
    let held = terms::held(text, &salient);
    let retention = |term: Term| {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let held = held
            .get(term as usize)
            .map(Vec::as_slice)
            .unwrap_or_default();
        TermCounts {
            found: number(held.iter().filter(|held| **held).count()),
            total: number(held.len()),
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
        other_language: request.instructions.is_none() && other_language(text, request),
        faults: Vec::new(),
    }
}

/// Returns the number of important terms of each class that are looked up in a summary.
fn most_terms(request: &SummaryRequest<'_>) -> usize {
    let most = usize::try_from(request.target_tokens / 16).unwrap_or(usize::MAX);
    most.clamp(1, 64)
}

/// Maximum number of terms of a class that are named to the writer of a refused summary.
const MISSING_TERMS: usize = 12;

/// Returns the most important terms that a refused text lacks, of the classes for which it was refused.
pub(crate) fn missing(
    text: &str,
    request: &SummaryRequest<'_>,
    gate: &Gate,
    failures: &[GateFailure],
) -> Vec<String> {
    let texts = terms::weighted(request);
    let salient = terms::salient(&texts, most_terms(request));
    let held = terms::held(text, &salient);
    let is_asked = |class: Term, total: usize| {
        failures.iter().any(|failure| match failure {
            GateFailure::Lost { term, .. } => *term == class,
            GateFailure::LostTogether { .. } => {
                gate.terms.contains(&class) && (total as u64) < u64::from(gate.at_least)
            }
            _ => false,
        })
    };
    let classes = Term::ALL.into_iter().zip(salient.iter().zip(&held));
    let lacking = classes.filter(|(class, (terms, _))| is_asked(*class, terms.len()));
    let terms = lacking.flat_map(|(_, (terms, held))| {
        let missing = terms.iter().zip(held).filter(|(_, held)| !**held);
        missing
            .map(|(term, _)| (*term).to_owned())
            .take(MISSING_TERMS)
    });
    terms.collect()
}

/// Number of bytes of the latest texts that are read to identify the language of a conversation.
const NEWEST_BYTES: usize = 12 * 1024;
/// Number of bytes of the oldest texts that are read to identify the language.
const OLDEST_BYTES: usize = NEWEST_BYTES / 2;
/// Maximum number of bytes that are read of one text: at its start, and at its end, where a user's words follow what a
/// command adds.
const TEXT_BYTES: (usize, usize) = (3_000, 1_000);
/// Minimum number of bytes of users' and assistants' texts. Below this number, tool texts are also read.
const LEAST_SPOKEN: usize = 64;
/// Number of latest messages and summaries from which tool texts are read.
const TOOL_PIECES: usize = 20;
/// Number of bytes that are read of a summary: at its start, and at its end.
const SUMMARY_BYTES: (usize, usize) = (8 * 1024, 4 * 1024);

/// Returns whether a text is clearly in another language than the conversation.
fn other_language(text: &str, request: &SummaryRequest<'_>) -> bool {
    let written = match text.len() > SUMMARY_BYTES.0 + SUMMARY_BYTES.1 {
        true => [head(text, SUMMARY_BYTES.0), tail(text, SUMMARY_BYTES.1)],
        false => [text, ""],
    };
    let mut said = conversation_sample(request.source);
    said.extend(request.previous.map(|text| head(text, TEXT_BYTES.0)));
    language::differs(&said, &written)
}

/// Returns the oldest and the latest texts of a conversation. If users and assistants wrote almost no text, the result
/// also has the input and output of the latest tool calls.
fn conversation_sample<'a>(source: &[Source<'a>]) -> Vec<&'a str> {
    let (start, end) = TEXT_BYTES;
    let ends = move |text: &'a str| match text.len() > start + end {
        true => [head(text, start), tail(text, end)],
        false => [text, ""],
    };
    let mut texts: Vec<&str> = source.iter().flat_map(spoken).flat_map(ends).collect();
    texts.retain(|text| !text.is_empty());
    let newest = reaching(texts.iter().rev(), NEWEST_BYTES);
    let first = texts.len() - newest;
    let oldest = reaching(texts.iter().take(first), OLDEST_BYTES);
    texts.drain(oldest..first);
    if texts.iter().map(|text| text.len()).sum::<usize>() < LEAST_SPOKEN {
        let pieces = source.iter().rev().take(TOOL_PIECES);
        texts.extend(pieces.flat_map(any_text).flat_map(ends));
    }
    texts
}

/// Returns how many of the first texts together reach `bytes` bytes, or the number of all texts if they do not.
fn reaching<'a>(texts: impl Iterator<Item = &'a &'a str>, bytes: usize) -> usize {
    let before = texts.scan(0, |sum, text| {
        let before = *sum;
        *sum += text.len();
        Some(before)
    });
    before.take_while(|before| *before < bytes).count()
}

/// Returns the texts of users, assistants and summaries in one piece of a source.
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

/// Returns the texts of a message, including the texts of tool calls and results. Empty for a summary.
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
