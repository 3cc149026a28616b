//! Replays of real transcripts, message by message, as a live agent would process them.

use std::sync::Arc;

use agent_memory::replay::{Replay, ReplayReport, Reuse};
use agent_memory::testing::memory;
use agent_memory::{DagPolicy, HandoffPolicy, Memory, Strategy, Window, store::SqliteStore};
use message_formats::Transcript;

use crate::corpus::{corpus, is_deep, parse, transcripts};
use crate::support::Inspect as _;

/// Maximum number of statements in a step, including publishing: about 120, and the statements for merging segments of
/// the search index.
const MOST_STATEMENTS: u64 = 180;

/// Replays all sessions of a transcript. A branch is replayed after its parent.
async fn replay(strategy: Strategy, transcript: &Transcript, window: u64) -> Vec<ReplayReport> {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("memory.db")).await;
    let store = Arc::new(store.unwrap());
    let memory: Memory = memory()
        .dag(DagPolicy::for_window(window))
        .handoff(HandoffPolicy::for_window(
            Window::new(window).budget().get(),
        ))
        .strategy(strategy)
        .store(store.clone())
        .open()
        .await
        .unwrap();
    let statements = || store.statements();
    let mut all = Vec::new();
    for log in &transcript.sessions {
        let session = memory.open_log(log).await.unwrap();
        let session = session.in_window(Window::new(window)).await;
        let mut replay = Replay::new(&session);
        replay.statements = Some(&statements);
        replay.most_statements = Some(MOST_STATEMENTS);
        all.push(replay.run(&log.messages).await.unwrap());
    }
    memory.close().await.unwrap();
    all
}

#[tokio::test]
async fn every_transcript_at_a_window_of_8k() {
    every_transcript(8_000).await;
}

#[tokio::test]
async fn every_transcript_at_a_window_of_32k() {
    every_transcript(32_000).await;
}

#[tokio::test]
async fn every_transcript_at_a_window_of_128k() {
    every_transcript(128_000).await;
}

#[tokio::test]
async fn every_transcript_by_handoff() {
    every_transcript_by(Strategy::Handoff).await;
}

#[tokio::test]
async fn every_transcript_by_blocks() {
    every_transcript_by(Strategy::Blocks).await;
}

/// Checks the laws with this strategy, in a window that requires many compactions.
async fn every_transcript_by(strategy: Strategy) {
    let Some(corpus) = corpus() else { return };
    let (mut published, mut broken) = (0, Vec::new());
    for path in transcripts(&corpus) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let transcript = parse(&std::fs::read(&path).unwrap());
        for report in replay(strategy, &transcript, 16_000).await {
            published += report.published.total();
            let laws = report.broken.iter();
            broken.extend(laws.map(|law| format!("{name}: {law:?}")));
        }
    }
    let least = if is_deep() { 100 } else { 30 };
    assert!(published > least, "{published}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

async fn every_transcript(window: u64) {
    let Some(corpus) = corpus() else { return };
    let mut reuse = Reuse::default();
    let mut broken = Vec::new();
    for path in transcripts(&corpus) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let transcript = parse(&std::fs::read(&path).unwrap());
        let replays = replay(Strategy::Dag, &transcript, window).await;
        for (replayed, log) in replays.iter().zip(&transcript.sessions) {
            if replayed.steps < log.messages.len() as u64 {
                broken.push(format!("{name}: {} steps", replayed.steps));
            }
            reuse.add(replayed.reuse);
            broken.extend(replayed.broken.iter().map(|b| format!("{name}: {b}")));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(reuse.share() >= 0.9, "only {} stay", reuse.share());
}
