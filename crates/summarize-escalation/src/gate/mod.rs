//! The acceptance gate: what is asked of a summary besides being short.

mod claims;
mod language;
mod terms;

use std::fmt;

use extractive_summarizer::Source;
use extractive_summarizer::text::{head, tail};
use memory_model::{EntryKind, Part, ResultContent, Role};
use serde::{Deserialize, Serialize};

use crate::request::SummaryRequest;
use terms::Class;

/// What is asked of a summary besides being short: a policy value of a
/// [`Ladder`](crate::Ladder).
///
/// Of each class the terms that matter most are looked for: those that users and errors name
/// first. No more are asked for than a quarter of the target could hold, at four tokens each.
///
/// ```
/// use summarize_escalation::Gate;
///
/// let strict = Gate::default().with_keep_permille(500);
/// assert_eq!(strict.identifiers, Some(500));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Gate {
    /// How many of a thousand identifiers must be kept, rounded down but at least one; 0 and `None`
    /// ask for none.
    pub identifiers: Option<u32>,
    /// How many of a thousand numbers.
    pub numbers: Option<u32>,
    /// How many of a thousand paths.
    pub paths: Option<u32>,
    /// How many of a thousand addresses.
    pub urls: Option<u32>,
    /// How many of a thousand error codes and the like.
    pub codes: Option<u32>,
    /// A class with fewer terms than this in the source is not judged.
    pub at_least: u32,
    /// Whether a text that repeats the prompt is refused.
    pub echo: bool,
    /// Whether the summary must be in the language of the conversation, where both are clear and
    /// no instructions were given.
    pub language: bool,
    /// Whether a wish of the user's that nothing in the source supports is a reason to refuse. Off
    /// by default: the check knows words, not meanings, and a paraphrase looks like an invention to
    /// it. What it finds is recorded in [`Scores::unsupported`] all the same.
    pub directives: bool,
}

impl Default for Gate {
    /// A tenth of each class, once there are eight of it: what a summary that speaks of its source
    /// keeps in passing. Echo and language are judged, wishes are recorded.
    fn default() -> Self {
        Self {
            identifiers: Some(100),
            numbers: None,
            paths: Some(100),
            urls: Some(100),
            codes: Some(100),
            at_least: 8,
            echo: true,
            language: true,
            directives: false,
        }
    }
}

impl Gate {
    /// Nothing is asked; scores are measured all the same.
    pub fn open() -> Self {
        Self {
            identifiers: None,
            numbers: None,
            paths: None,
            urls: None,
            codes: None,
            at_least: 0,
            echo: false,
            language: false,
            directives: false,
        }
    }

    /// Sets how many of a thousand must be kept, for every class.
    pub fn with_keep_permille(mut self, permille: u32) -> Self {
        let share = Some(permille);
        self.identifiers = share;
        self.numbers = share;
        self.paths = share;
        self.urls = share;
        self.codes = share;
        self
    }

    /// Sets whether a wish of the user's that nothing in the source supports is refused.
    pub fn with_directives(mut self, refused: bool) -> Self {
        self.directives = refused;
        self
    }

    /// Sets how many terms of a class there must be for it to be judged.
    pub fn with_at_least(mut self, terms: u32) -> Self {
        self.at_least = terms;
        self
    }

    /// What these scores fail; empty when the summary passes.
    pub fn failures(&self, scores: &Scores) -> Vec<GateFailure> {
        let mut failed = Vec::new();
        for (term, retention, asked) in [
            (Term::Identifiers, scores.identifiers, self.identifiers),
            (Term::Numbers, scores.numbers, self.numbers),
            (Term::Paths, scores.paths, self.paths),
            (Term::Urls, scores.urls, self.urls),
            (Term::Codes, scores.codes, self.codes),
        ] {
            let Some(asked) = asked else { continue };
            let judged = retention.total > 0 && retention.total >= self.at_least && asked > 0;
            let needed = u64::from(retention.total) * u64::from(asked) / 1000;
            if judged && u64::from(retention.found) < needed.max(1) {
                failed.push(GateFailure::Lost {
                    term,
                    retention,
                    asked,
                });
            }
        }
        if self.echo && scores.echo {
            failed.push(GateFailure::Echo);
        }
        if self.language && scores.other_language {
            failed.push(GateFailure::Language);
        }
        if self.directives && !scores.unsupported.is_empty() {
            failed.push(GateFailure::Unsupported);
        }
        failed
    }
}

/// Terms of the source that a summary retains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Number of terms found in the summary.
    pub found: u32,
    /// Number of terms looked for.
    pub total: u32,
}

/// What was measured of a summary: kept with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Scores {
    /// Names in code, commit ids.
    pub identifiers: Retention,
    /// Numbers of two digits or more.
    pub numbers: Retention,
    /// Paths.
    pub paths: Retention,
    /// Addresses.
    pub urls: Retention,
    /// Error codes, ticket numbers and the like.
    pub codes: Retention,
    /// It declines to summarise.
    pub refusal: bool,
    /// It repeats the prompt.
    pub echo: bool,
    /// It is clearly in another language than the conversation.
    pub other_language: bool,
    /// What it says the user wants and no passage of the source says in such words, paraphrases
    /// among them; at most three sentences.
    pub unsupported: Vec<String>,
}

/// A class of terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Term {
    /// Names in code, commit ids.
    Identifiers,
    /// Numbers of two digits or more.
    Numbers,
    /// Paths.
    Paths,
    /// Addresses.
    Urls,
    /// Error codes, ticket numbers and the like.
    Codes,
}

impl Term {
    /// The name, in the plural.
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

/// One thing that a summary fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GateFailure {
    /// Too few terms of a class are left.
    Lost {
        /// The class.
        term: Term,
        /// Terms that the summary retains.
        retention: Retention,
        /// Terms of a thousand that the gate asks for.
        asked: u32,
    },
    /// It repeats the prompt.
    Echo,
    /// It is in another language than the conversation.
    Language,
    /// It names a wish of the user's that nothing in the source supports.
    Unsupported,
}

impl GateFailure {
    /// The name of the rule that was failed, such as `identifiers` or `language`.
    pub fn rule(&self) -> &'static str {
        match self {
            GateFailure::Lost { term, .. } => term.as_str(),
            GateFailure::Echo => "echo",
            GateFailure::Language => "language",
            GateFailure::Unsupported => "unsupported",
        }
    }
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateFailure::Lost {
                term,
                retention,
                asked,
            } => write!(
                f,
                "{} of {} {term} are left where {asked} of 1000 are asked for",
                retention.found, retention.total
            ),
            GateFailure::Echo => f.write_str("it repeats the prompt"),
            GateFailure::Language => f.write_str("it is in another language than the conversation"),
            GateFailure::Unsupported => {
                f.write_str("it names a wish of the user's that nothing in the source supports")
            }
        }
    }
}

/// Measures a summary of the request's source. Takes time linear in the source; long texts are
/// looked through at their start and their end.
pub fn measure(text: &str, request: &SummaryRequest<'_>) -> Scores {
    let most = usize::try_from(request.target_tokens / 16).unwrap_or(usize::MAX);
    let texts = terms::weighted(request.source);
    let salient = terms::salient(&texts, most.clamp(1, 64));
    let held = terms::held(text, &salient);
    let retention = |class: Class| {
        let number = |n: Option<usize>| u32::try_from(n.unwrap_or(0)).unwrap_or(u32::MAX);
        Retention {
            found: number(held.get(class as usize).copied()),
            total: number(salient.get(class as usize).map(Vec::len)),
        }
    };
    let other_language = other_language(text, request);
    let mut unsupported = match other_language && request.instructions.is_some() {
        // The user may have asked for the language: its words cannot be those of the source.
        true => Vec::new(),
        false => claims::unsupported(text, request),
    };
    unsupported.truncate(3);
    Scores {
        identifiers: retention(Class::Identifier),
        numbers: retention(Class::Number),
        paths: retention(Class::Path),
        urls: retention(Class::Url),
        codes: retention(Class::Code),
        refusal: claims::is_refusal(text),
        echo: claims::is_echo(text, request.source),
        other_language: request.instructions.is_none() && other_language,
        unsupported,
    }
}

/// How much of what was said is read to tell its language, in bytes; the newest of it, and half as
/// much of the oldest.
const SAID_BYTES: usize = 12 * 1024;
/// How much of one text, at its start.
const SAID_BYTES_A_TEXT: usize = 4_000;
/// How much of a summary: of its start and of its end.
const WRITTEN_BYTES: (usize, usize) = (8 * 1024, 4 * 1024);

/// Whether a text is clearly in another language than what was said in the source.
fn other_language(text: &str, request: &SummaryRequest<'_>) -> bool {
    let mut said: Vec<&str> = Vec::new();
    let mut bytes = 0;
    // The newest is the language that is being spoken; more than this tells nothing new.
    for text in request.source.iter().rev().flat_map(spoken) {
        let text = head(text, SAID_BYTES_A_TEXT);
        bytes += text.len();
        said.push(text);
        if bytes >= SAID_BYTES {
            break;
        }
    }
    said.reverse();
    let newest = said.len();
    let count: usize = request
        .source
        .iter()
        .map(|piece| spoken(piece).count())
        .sum();
    let mut oldest: Vec<&str> = Vec::new();
    let mut old_bytes = 0;
    // And what it began in.
    for text in request
        .source
        .iter()
        .flat_map(spoken)
        .take(count.saturating_sub(newest))
    {
        let text = head(text, SAID_BYTES_A_TEXT);
        old_bytes += text.len();
        oldest.push(text);
        if old_bytes >= SAID_BYTES / 2 {
            break;
        }
    }
    oldest.append(&mut said);
    let mut said = oldest;
    if bytes < 64 {
        // Nobody said anything: what the tools said has to do.
        for piece in request.source.iter().rev().take(20) {
            if let Source::Message(entry) = piece {
                said.extend(entry.parts.iter().filter_map(|part| match part {
                    Part::Text { text } => Some(head(text, SAID_BYTES_A_TEXT)),
                    Part::ToolCall { arguments, .. } => {
                        Some(head(arguments.as_str(), SAID_BYTES_A_TEXT))
                    }
                    Part::ToolResult {
                        content: ResultContent::Text(text),
                        ..
                    } => Some(head(text, SAID_BYTES_A_TEXT)),
                    _ => None,
                }));
            }
        }
    }
    let written = match text.len() > WRITTEN_BYTES.0 + WRITTEN_BYTES.1 {
        true => [head(text, WRITTEN_BYTES.0), tail(text, WRITTEN_BYTES.1)],
        false => [text, ""],
    };
    language::differs(&said, &written)
}

/// What somebody said in a piece; what tools said is left out.
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
