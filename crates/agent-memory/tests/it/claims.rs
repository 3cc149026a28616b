//! What summaries say that the user wants, on real transcripts: how often the check finds an
//! invented wish, and how often it takes an honest one for invented. By default it refuses none.

use agent_memory::testing::Scripted;
use agent_memory::{
    EntryKind, ExtractiveSummarizer, Gate, LogEntry, Part, Role, Summarizer, SummaryRequest,
};
use message_formats::Transcript;
use summarize_escalation::{GateFailure, Scores, Source, measure, testing};
use token_estimate::HeuristicEstimator;

use crate::corpus::{corpus, parse, transcripts};

/// What one summary is made of, in tokens, about.
const CHUNK: u64 = 6_000;
struct Chunk {
    session: String,
    entries: Vec<LogEntry>,
}

impl Chunk {
    fn source(&self) -> Vec<Source<'_>> {
        self.entries.iter().map(Source::from).collect()
    }

    fn scores(&self, text: &str) -> Scores {
        let source = self.source();
        measure(
            text,
            &SummaryRequest::new(&source, &HeuristicEstimator::Bytes4),
        )
    }

    fn unsupported(&self, text: &str) -> Vec<String> {
        self.scores(text).unsupported
    }

    /// What the user typed, sentence by sentence.
    fn typed(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.role == Role::User) {
            for part in &entry.parts {
                let Part::Text { text } = part else { continue };
                if text.len() > 3_000 || text.contains('<') {
                    continue;
                }
                for sentence in text.split(['.', '\n', '!', '?']) {
                    let long = |word: &&str| word.chars().count() > 3;
                    let words = sentence.split_whitespace().filter(long).count();
                    let sentence = sentence.trim();
                    let prose = sentence.starts_with(char::is_alphabetic);
                    if prose && words >= 5 && sentence.len() < 300 && !sentence.contains(" - ") {
                        found.push(sentence.to_owned());
                    }
                }
            }
        }
        found
    }
}

/// The project that a transcript's file is named after.
fn project(file: &str) -> &str {
    file.split(['-', '_']).next().unwrap()
}

fn chunks() -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for (name, transcript) in files() {
        for log in &transcript.sessions {
            let mut messages = log.messages.clone();
            messages.retain(|message| message.kind == EntryKind::Message);
            let mut entries: Vec<LogEntry> = Vec::new();
            for entry in testing::log(messages, &HeuristicEstimator::Bytes4) {
                let tokens: u64 = entries.iter().map(|entry| entry.tokens).sum();
                if tokens > CHUNK {
                    let entries = std::mem::take(&mut entries);
                    let session = name.clone();
                    chunks.push(Chunk { session, entries });
                }
                entries.push(entry);
            }
        }
    }
    chunks
}

fn files() -> Vec<(String, Transcript)> {
    let Some(corpus) = corpus() else {
        return Vec::new();
    };
    let paths = transcripts(&corpus);
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let read = |path: &std::path::PathBuf| (name(path), parse(&std::fs::read(path).unwrap()));
    paths.iter().map(read).collect()
}

/// Whether a gate refuses a summary for what it says that the user wants.
fn refuses(gate: &Gate, scores: &Scores) -> bool {
    gate.failures(scores).contains(&GateFailure::Unsupported)
}

#[tokio::test]
async fn invented_wishes_are_found_and_copies_are_not_taken_for_them() {
    let chunks = chunks();
    if chunks.is_empty() {
        return;
    }
    let (mut copies, mut refused, mut foreign) = (0, Vec::new(), 0_usize);
    for chunk in &chunks {
        let source = chunk.source();
        let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
        for share in [3, 10] {
            let request = request.with_target_tokens(request.source_tokens() / share);
            let head: &dyn Summarizer = &Scripted::head_cut();
            for summarizer in [head, &ExtractiveSummarizer::new()] {
                let text = summarizer.summarize(&request).await.unwrap().text;
                copies += 1;
                let scores = chunk.scores(&text);
                foreign += usize::from(scores.other_language);
                refused.extend(scores.unsupported);
            }
        }
    }
    // Wishes of one session as a summary of another would tell them.
    let wishes: Vec<(&str, String)> = chunks
        .iter()
        .flat_map(|chunk| {
            let typed = chunk.typed().into_iter();
            typed.map(|sentence| (chunk.session.as_str(), sentence))
        })
        .collect();
    let (mut invented, mut passed, mut true_ones, mut denied) = (0, 0, 0, 0);
    for (n, chunk) in chunks.iter().enumerate() {
        for own in chunk.typed() {
            true_ones += 1;
            denied += chunk.unsupported(&format!("The user asked: {own}.")).len();
        }
        let others = wishes
            .iter()
            .filter(|(of, _)| project(of) != project(&chunk.session));
        for (_, wish) in others.skip(n % 37).step_by(37) {
            invented += 1;
            if chunk
                .unsupported(&format!("The user asked: {wish}."))
                .is_empty()
            {
                passed += 1;
            }
        }
    }
    println!(
        "{} passages, {} wishes: {passed} of {invented} invented ones pass, {denied} of {true_ones} \
         true ones do not; of {copies} extracts and cuts {} seem invented, {foreign} foreign",
        chunks.len(),
        wishes.len(),
        refused.len(),
    );
    assert!(chunks.len() >= 100 && invented >= 400 && true_ones >= 100);
    assert!(passed * 8 <= invented, "{passed} of {invented}");
    assert_eq!(denied, 0);
    assert!(refused.len() * 200 <= copies, "{refused:?}");
    // Copies of short passages that are mostly code may look like another language.
    assert!(
        foreign * 50 <= copies,
        "{foreign} of {copies} seem to be in another language"
    );
}

/// How a real model told, in its own words, what it had been asked for: the beginnings of answers,
/// held against what was said before them.
#[test]
fn honest_wishes_in_other_words_are_recorded_and_not_refused() {
    let chunks = chunks();
    if chunks.is_empty() {
        return;
    }
    let (by_default, strict) = (Gate::default(), Gate::default().with_directives(true));
    let (mut told, mut recorded) = (0, 0);
    for chunk in &chunks {
        for (at, entry) in chunk.entries.iter().enumerate() {
            let after =
                |entry: &&LogEntry| entry.role == Role::Assistant && !entry.text().is_empty();
            let Some(answer) = chunk.entries.iter().skip(at + 1).find(after) else {
                continue;
            };
            if entry.role != Role::User || entry.text().trim().is_empty() {
                continue;
            }
            let answer = answer.text();
            let Some(wish) = retold(&answer) else {
                continue;
            };
            let before = &chunk.entries[..=at];
            let source: Vec<Source<'_>> = before.iter().map(Source::from).collect();
            let text = format!("The user asked to {wish}.");
            let scores = measure(
                &text,
                &SummaryRequest::new(&source, &HeuristicEstimator::Bytes4),
            );
            told += 1;
            assert!(!refuses(&by_default, &scores), "{text}");
            assert_eq!(refuses(&strict, &scores), !scores.unsupported.is_empty());
            recorded += u32::from(!scores.unsupported.is_empty());
        }
    }
    println!("{told} wishes in a model's words, {recorded} of them recorded as unsupported");
    // What the check is worth: it takes many an honest paraphrase for an invention.
    assert!(told >= 30 && recorded > 0, "{recorded} of {told}");
}

/// What an answer that begins with `I'll …` says that it was asked for.
fn retold(answer: &str) -> Option<&str> {
    let openings = [
        "I'll ",
        "I’ll ",
        "I will ",
        "Let me ",
        "I'm going to ",
        "I need to ",
    ];
    let first = answer.trim_start();
    let rest = openings
        .iter()
        .find_map(|opening| first.strip_prefix(opening))?;
    let wish = rest.split(['.', '\n', '!', '?', ':']).next()?.trim();
    (wish.split_whitespace().count() >= 4).then_some(wish)
}

/// The summaries that a model wrote in the transcripts, of all that came before.
#[test]
fn summaries_of_a_real_model_pass() {
    let (mut summaries, mut sentences, mut denied, mut foreign) = (0, 0, Vec::new(), 0);
    for (_, transcript) in files() {
        for log in &transcript.sessions {
            for (at, message) in log.messages.iter().enumerate() {
                let Some(text) = compact_summary(message) else {
                    continue;
                };
                let entries =
                    testing::log(log.messages[..at].to_vec(), &HeuristicEstimator::Bytes4);
                let source: Vec<Source<'_>> = entries.iter().map(Source::from).collect();
                let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
                summaries += 1;
                foreign += u32::from(measure(&text, &request).other_language);
                let users = |line: &&str| line.to_lowercase().contains("user");
                for line in text.lines().filter(users) {
                    sentences += 1;
                    denied.extend(measure(line, &request).unsupported);
                }
            }
        }
    }
    println!(
        "{summaries} summaries, {sentences} lines on the user, seem invented: {}, foreign: {foreign}",
        denied.len()
    );
    assert_eq!(
        foreign, 0,
        "of {summaries} are not in the language of their source"
    );
    assert!(denied.len() * 20 <= sentences, "{denied:?}");
}

fn compact_summary(message: &agent_memory::Message) -> Option<String> {
    let raw = message.parts.iter().find_map(|part| match part {
        Part::Unknown { raw } => Some(raw.as_str()),
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    })?;
    let line: serde_json::Value = serde_json::from_str(raw).ok()?;
    line.get("isCompactSummary")?.as_bool().filter(|is| *is)?;
    let content = line.get("message")?.get("content")?;
    match content.as_str() {
        Some(text) => Some(text.to_owned()),
        None => Some(content.get(0)?.get("text")?.as_str()?.to_owned()),
    }
}
