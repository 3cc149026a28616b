//! Handoffs of real transcripts as they grow, compared with an independent reader of the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use agent_memory::compaction::FileLedger;
use agent_memory::testing::Scripted;
use agent_memory::{
    HandoffPolicy, Mode, Seq, Session, Strategy, Window,
    context::MessageOrigin,
    model::{LogEntry, Span, SpanBody, Summary},
};
use serde_json::Value;

use crate::contexts::{blocks, check};
use crate::corpus::{corpus, is_deep, parse, transcripts};
use crate::support::Inspect as _;
use crate::support::export;

/// Number of messages between two handoffs.
const STEP: usize = 20;
/// Size of the window, in tokens. With this size, each transcript needs many handoffs.
const WINDOW: u64 = 16_000;

#[tokio::test]
async fn every_transcript_grows_by_handoffs() {
    let Some(corpus) = corpus() else { return };
    let mut handoffs = 0;
    for path in transcripts(&corpus) {
        for scripted in [false, true] {
            handoffs += grow(&path, scripted).await;
        }
    }
    let least = if is_deep() { 500 } else { 200 };
    assert!(handoffs > least, "{handoffs}");
}

/// Appends a transcript, hands over every few messages, and checks the laws in each state. Returns the number of
/// published summaries.
async fn grow(path: &Path, scripted: bool) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let transcript = parse(&bytes);
    let Some(main) = transcript.sessions.iter().max_by_key(|s| s.messages.len()) else {
        return 0;
    };
    let window = Window::new(WINDOW);
    let mut builder =
        agent_memory::testing::memory().handoff(HandoffPolicy::for_window(window.budget().get()));
    if scripted {
        builder = builder.summarizer(Arc::new(Scripted::head_cut()));
    }
    let memory = builder.open().await.unwrap();
    let session = memory.session("growing").await.unwrap();
    assert_eq!(session.strategy(), Some(Strategy::Handoff));
    let mut published = 0;
    let mut known: BTreeMap<Seq, Vec<u8>> = BTreeMap::new();
    for batch in main.messages.chunks(STEP) {
        let _ = session.ingest_batch(batch.to_vec()).await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        published += outcome.published.total() as usize;
        let state = State::read(&session).await;
        state.check(&name, window.budget().get()).unwrap();
        let budget = window.budget();
        let context = session.assemble(budget).await.unwrap();
        let blocks = blocks(&state.log, &state.spans);
        check(&context, budget.get(), &blocks, session.accounting())
            .unwrap_or_else(|broken| panic!("{name}: {broken}"));
        summaries_come_first(&context.messages, &name);
        for entry in &state.log {
            let bytes = serde_json::to_vec(&entry.to_export()).unwrap();
            let before = known.entry(entry.seq).or_insert_with(|| bytes.clone());
            assert_eq!(*before, bytes, "{name}: message {} changed", entry.seq);
        }
    }
    let state = State::read(&session).await;
    state.check_files(&bytes, &name);
    let report = session.verify().await.unwrap();
    assert!(report.is_ok(), "{name}: {:?}", report.violations);
    switch(&session, &name).await;
    published
}

/// Changes the strategy and changes it back. The log and the other view stay unchanged.
async fn switch(session: &Session, name: &str) {
    let (log, before) = (export(session).await, State::read(session).await);
    let dag = session.use_strategy(Strategy::Dag).await.unwrap();
    dag.compact(Mode::Full).await.unwrap();
    assert!(dag.verify().await.unwrap().is_ok(), "{name}");
    let again = dag.memory().session("growing").await.unwrap();
    assert_eq!(
        again.strategy(),
        Some(Strategy::Dag),
        "the choice is stored"
    );
    let back = again.use_strategy(Strategy::Handoff).await.unwrap();
    assert_eq!(export(&back).await, log, "{name}");
    assert_eq!(State::read(&back).await.spans, before.spans, "{name}");
}

/// Stored and shown data of a session.
struct State {
    log: Vec<LogEntry>,
    spans: Vec<Span>,
    summaries: Vec<Summary>,
}

impl State {
    async fn read(session: &Session) -> Self {
        let log = session.entries().await.unwrap();
        let spans = session.spans().await.unwrap();
        let ids: Vec<_> = spans
            .iter()
            .filter_map(|s| s.body.summary().cloned())
            .collect();
        let summaries = session.summaries(&ids).await.unwrap();
        Self {
            log,
            spans,
            summaries: summaries.into_iter().flatten().collect(),
        }
    }

    /// Checks that every position is shown once, by at most two summaries and then by the messages. A summary must
    /// expand to exactly its messages, and no cut may separate a call from its result.
    fn check(&self, name: &str, budget: u64) -> Result<(), String> {
        let mut next = Seq::FIRST;
        let mut raw = false;
        for span in &self.spans {
            if span.range.first != next {
                return Err(format!("{name}: a hole before {}", span.range.first));
            }
            match &span.body {
                SpanBody::Summary { depth, .. } if !raw && *depth == 0 => {}
                SpanBody::Raw => raw = true,
                other => return Err(format!("{name}: {other:?} at {next}")),
            }
            next = span.range.last.map_or(Seq(u32::MAX), Seq::next);
        }
        if self.summaries.len() > 2 {
            return Err(format!("{name}: {} summaries", self.summaries.len()));
        }
        for summary in &self.summaries {
            let cost = summary.tokens;
            if cost > budget / 2 {
                return Err(format!("{name}: a summary of {cost} tokens"));
            }
            split_calls(&self.log, summary.range.last, name)?;
        }
        Ok(())
    }

    /// Checks that the ledgers of the summaries agree with the same lines of the raw file.
    fn check_files(&self, bytes: &[u8], name: &str) {
        let Some(last) = self.summaries.last().map(|summary| summary.range.last) else {
            return;
        };
        let folded = self.log.iter().filter(|entry| entry.seq <= last);
        let ids: BTreeSet<String> = folded
            .filter_map(|entry| Some(entry.external_id.as_ref()?.to_string()))
            .collect();
        let messages = self.log.iter().filter(|entry| entry.seq <= last);
        let messages =
            messages.filter(|entry| entry.kind == agent_memory::model::EntryKind::Message);
        let (mut read, mut modified) = raw_files(bytes, &ids, messages.count());
        read.retain(|path| !modified.contains(path));
        let mut ledger = FileLedger::default();
        for summary in &self.summaries {
            ledger.add_ledger(&FileLedger::of(summary).unwrap());
        }
        let deleted: BTreeSet<&str> = ledger.deleted().into_iter().collect();
        let of = |paths: Vec<&str>| -> BTreeSet<String> {
            paths.into_iter().map(str::to_owned).collect()
        };
        // Which files shell commands delete or write is not read here. Those that they write are in their text.
        modified.extend(deleted.iter().map(|path| (*path).to_owned()));
        let text = String::from_utf8_lossy(bytes);
        let is_written = |path: &str| {
            let mut lines = text.lines().filter(|line| line.contains(path));
            lines.any(|line| {
                ["cp ", "mv ", "sed ", "tee "]
                    .iter()
                    .any(|program| line.contains(program))
            })
        };
        let written = ledger
            .modified()
            .into_iter()
            .filter(|path| is_written(path));
        modified.extend(written.map(str::to_owned));
        read.retain(|path| !deleted.contains(path.as_str()) && !modified.contains(path));
        assert_eq!(of(ledger.modified()), modified, "{name}");
        assert_eq!(of(ledger.read()), read, "{name}");
    }
}

/// Returns an error if a cut after `last` separates a call from a result that came before the next answer.
fn split_calls(log: &[LogEntry], last: Seq, name: &str) -> Result<(), String> {
    use agent_memory::Part;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for entry in log.iter().filter(|entry| entry.seq <= last) {
        for part in &entry.parts {
            match part {
                Part::ToolCall { id, .. } => {
                    open.insert(id);
                }
                Part::ToolResult { call_id, .. } => {
                    open.remove(call_id.as_str());
                }
                _ => {}
            }
        }
    }
    // Results that follow at once belong to the calls before the cut.
    let behind = log.iter().filter(|entry| entry.seq > last);
    let behind = behind.take_while(|entry| entry.role != agent_memory::Role::Assistant);
    for part in behind.flat_map(|entry| &entry.parts) {
        if let Part::ToolResult { call_id, .. } = part
            && open.contains(call_id.as_str())
        {
            return Err(format!(
                "{name}: the cut behind {last} splits the call {call_id}"
            ));
        }
    }
    Ok(())
}

/// Checks that summaries come before all messages.
fn summaries_come_first(messages: &[agent_memory::context::ContextMessage], name: &str) {
    let is_summary = |source: &MessageOrigin| matches!(source, MessageOrigin::Summary { .. });
    let last = messages.iter().rposition(|m| is_summary(&m.source));
    let is_message = |source: &MessageOrigin| matches!(source, MessageOrigin::Message { .. });
    let first = messages.iter().position(|m| is_message(&m.source));
    if let (Some(last), Some(first)) = (last, first) {
        assert!(last < first, "{name}: a summary behind a message");
    }
}

/// Returns the files that the lines with these ids read and modified, from the raw JSON of the file. In a file without
/// ids, uses the first `messages` lines.
fn raw_files(
    bytes: &[u8],
    ids: &BTreeSet<String>,
    messages: usize,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = String::from_utf8_lossy(bytes);
    let mut before = messages;
    let mut calls: BTreeMap<String, (bool, String)> = BTreeMap::new();
    let (mut read, mut modified) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let id = line["uuid"].as_str().or(line["id"].as_str());
        let wanted = match id {
            Some(id) => ids.contains(id),
            None if line["type"] == "message" && before > 0 => {
                before -= 1;
                true
            }
            None => false,
        };
        if !wanted {
            continue;
        }
        let message = &line["message"];
        // pi writes a result as a message of its own.
        if message["role"] == "toolResult" {
            let call = message["toolCallId"].as_str().unwrap_or_default();
            finish(
                &mut calls,
                call,
                message["isError"] == true,
                &mut read,
                &mut modified,
            );
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let input = [&block["input"], &block["arguments"]];
            let keys = ["file_path", "notebook_path", "path"];
            let path = input
                .into_iter()
                .flat_map(|input| keys.iter().filter_map(|key| input[*key].as_str()))
                .next();
            let name = block["name"].as_str().unwrap_or_default();
            match (block["type"].as_str(), path) {
                (Some("tool_use" | "toolCall"), Some(path)) => {
                    let writes = match name {
                        "Read" | "read" | "NotebookRead" => false,
                        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "write" | "edit" => true,
                        _ => continue,
                    };
                    let id = block["id"].as_str().unwrap_or_default();
                    calls.insert(id.to_owned(), (writes, path.to_owned()));
                }
                (Some("tool_result"), _) => {
                    let call = block["tool_use_id"].as_str().unwrap_or_default();
                    finish(
                        &mut calls,
                        call,
                        block["is_error"] == true,
                        &mut read,
                        &mut modified,
                    );
                }
                _ => {}
            }
        }
    }
    (read, modified)
}

fn finish(
    calls: &mut BTreeMap<String, (bool, String)>,
    call: &str,
    is_error: bool,
    read: &mut BTreeSet<String>,
    modified: &mut BTreeSet<String>,
) {
    match calls.remove(call) {
        Some((true, path)) if !is_error => modified.insert(path),
        Some((false, path)) if !is_error => read.insert(path),
        _ => false,
    };
}
