//! Acceptance gate: checks of a summary's content, apart from its length.

mod changed;
mod echo;
mod fault;
mod form;
mod known;
mod language;
mod terms;
mod words;

use extractive_summarizer::Source;
use extractive_summarizer::text::{head, tail};
use memory_model::{EntryKind, Part, ResultContent, Role};

pub use form::is_cut;

use crate::criteria::{Gate, GateFailure, Scores, Term, TermCounts};
use crate::refusal::Reason;
use crate::request::SummaryRequest;

/// Returns the reason for which a text is no summary of a request's source; `None` if it passes all checks.
pub(crate) fn refuses(gate: &Gate, text: &str, request: &SummaryRequest<'_>) -> Option<Reason> {
    let scores = measure(text, request);
    if scores.refusal {
        return Some(Reason::Refused);
    }
    let failures = gate.failures(&scores);
    (!failures.is_empty()).then(|| Reason::Gate {
        missing: missing(text, request, gate, &failures),
        failures,
        scores: Box::new(scores),
    })
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
    let all: Vec<Source<'_>> = request
        .before
        .iter()
        .chain(request.source)
        .copied()
        .collect();
    let mut said = conversation_sample(&all);
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
