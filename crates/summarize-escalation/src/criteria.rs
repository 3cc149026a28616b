//! The criteria of the gate, and the scores of a summary by them: plain data.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::share::Share;

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
    /// rounded down, but is at least one term. 0 disables the check, and the one for [`Fault::FewNames`]. Default 0.1.
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
        let asks = self.min_retained > Share::new(0.0);
        let is_asked = |fault: &&Fault| asks || !matches!(fault, Fault::FewNames { .. });
        let faults = scores.faults.iter().filter(|_| self.floor);
        let faults = faults.filter(is_asked).copied();
        failures.extend(faults.map(|fault| GateFailure::Floor { fault }));
        failures
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

/// A fault of a summary that shows that it is none: it breaks the floor of the [`Gate`](crate::Gate).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// No line beside headings and the lines of the form is long enough for a sentence.
    NoSentence,
    /// The text talks to its reader instead of telling what was said.
    Remark,
    /// The text is far below its target length.
    Short {
        /// Cost of the text without the lines of the form, in tokens.
        tokens: u64,
        /// Minimum cost, in tokens.
        least: u64,
    },
    /// A sentence occurs more than twice, or the text goes round in circles.
    Repetition,
    /// Reasoning or marks of a chat's template are left in the text.
    Reasoning,
    /// The text ends in the middle of a sentence, a list, or a block of code.
    Unfinished,
    /// Many names in the text are nowhere in the source.
    Invented {
        /// Number of names that the source does not have.
        unknown: u32,
        /// Number of names in the text.
        names: u32,
    },
    /// The text is about something else than the source.
    Unrelated {
        /// Number of telling words that the source has.
        known: u32,
        /// Number of telling words in the text.
        words: u32,
    },
    /// The text has hardly any of the many names in the source.
    FewNames {
        /// Number of names of the source that the text has.
        found: u32,
        /// Minimum number of these names.
        least: u32,
    },
    /// The text is a passage of the source, or more than half of it was copied from there.
    Copied,
    /// The line of files names none, although files were changed.
    NoFiles {
        /// Number of files that were changed.
        changed: u32,
    },
}

impl Fault {
    /// Returns the name of the rule that the text breaks, such as `no_sentence`.
    pub fn rule(self) -> &'static str {
        match self {
            Fault::NoSentence => "no_sentence",
            Fault::Remark => "remark",
            Fault::Short { .. } => "short",
            Fault::Repetition => "repetition",
            Fault::Reasoning => "reasoning",
            Fault::Unfinished => "unfinished",
            Fault::Invented { .. } => "invented",
            Fault::Unrelated { .. } => "unrelated",
            Fault::FewNames { .. } => "few_names",
            Fault::Copied => "copied",
            Fault::NoFiles { .. } => "no_files",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoSentence => {
                f.write_str("the summary has no sentence beside the lines of its form")
            }
            Fault::Remark => f.write_str("the summary is a remark to its reader"),
            Fault::Short { tokens, least } => {
                write!(
                    f,
                    "the summary has {tokens} tokens, far below its target (at least {least})"
                )
            }
            Fault::Repetition => f.write_str("the summary repeats itself"),
            Fault::Reasoning => f.write_str("the summary has reasoning or marks of a chat in it"),
            Fault::Unfinished => f.write_str("the summary ends in the middle"),
            Fault::Invented { unknown, names } => {
                write!(
                    f,
                    "{unknown} of {names} names in the summary are nowhere in the conversation"
                )
            }
            Fault::Unrelated { known, words } => write!(
                f,
                "the summary is about something else: the conversation has {known} of its {words} telling words"
            ),
            Fault::FewNames { found, least } => write!(
                f,
                "the summary has {found} of the names in the conversation, such as files and functions (at least {least})"
            ),
            Fault::Copied => f.write_str("the summary is a copy of the conversation"),
            Fault::NoFiles { changed } => {
                let plural = if *changed == 1 { "" } else { "s" };
                write!(
                    f,
                    "the summary names no file, but {changed} file{plural} changed"
                )
            }
        }
    }
}

/// Class of terms that a summary should repeat verbatim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Term {
    /// Names in code, and commit ids.
    Identifiers,
    /// Numbers with two or more digits.
    Numbers,
    /// Paths of files.
    Paths,
    /// Addresses (URLs).
    Urls,
    /// Codes, such as error codes and ticket numbers.
    Codes,
}

impl Term {
    /// All classes of terms.
    pub const ALL: [Self; 5] = [
        Self::Identifiers,
        Self::Numbers,
        Self::Paths,
        Self::Urls,
        Self::Codes,
    ];

    /// Returns the name of the class in the plural, such as `identifiers`.
    pub fn as_str(self) -> &'static str {
        match self {
            Term::Identifiers => "identifiers",
            Term::Numbers => "numbers",
            Term::Paths => "paths",
            Term::Urls => "addresses",
            Term::Codes => "codes",
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
