//! Every real transcript, from the import to a context, and back to the original words.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use agent_memory::{
    Budget, Memory, Mode, Session, SessionKey,
    compaction::StopReason,
    context::{AssemblyPolicy, Form},
};
use message_formats::{ReadOptions, Transcript, read};
use outside_checks::raw_check;

use crate::contexts::{blocks, check, check_order, check_use};
use crate::laws::random::Random;
use crate::support::Inspect as _;
use crate::support::exports;

/// Returns the folder of real transcripts; `None` if it does not exist.
pub(crate) fn corpus() -> Option<PathBuf> {
    match std::env::var_os("AGENT_MEMORY_CORPUS") {
        Some(path) => Some(PathBuf::from(path)),
        None => {
            assert!(
                std::env::var_os("AGENT_MEMORY_REQUIRE_CORPUS").is_none_or(|v| v != "1"),
                "AGENT_MEMORY_REQUIRE_CORPUS=1, but AGENT_MEMORY_CORPUS is not set"
            );
            println!("left out: AGENT_MEMORY_CORPUS is not set");
            None
        }
    }
}

/// Bytes of the largest transcript that the tests read in their short form.
const SHORT: u64 = 1_200_000;

/// Returns whether the tests take their long form: more cases, and the largest transcripts too.
pub(crate) fn is_deep() -> bool {
    std::env::var_os("AGENT_MEMORY_DEEP").is_some()
}

/// Returns the transcripts that a test reads: all of them, or in the short form those that are not the largest.
pub(crate) fn transcripts(corpus: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["claude-code", "pi"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(corpus.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    files.sort();
    assert!(
        files.len() >= 15,
        "the corpus has {} transcripts",
        files.len()
    );
    if !is_deep() {
        files.retain(|path| path.metadata().unwrap().len() <= SHORT);
    }
    files
}

pub(crate) fn parse(bytes: &[u8]) -> Transcript {
    read(bytes, &ReadOptions::default()).unwrap()
}

async fn open(folder: &Path) -> Memory {
    Memory::open(folder.join("memory.db")).await.unwrap()
}

#[tokio::test]
async fn every_transcript_goes_in_and_comes_out() {
    let Some(corpus) = corpus() else { return };
    let mut failures = Vec::new();
    for path in transcripts(&corpus) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Err(failure) = one(&path).await {
            failures.push(format!("{name}: {failure}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

async fn one(path: &Path) -> Result<(), String> {
    let bytes = std::fs::read(path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path()).await;
    let transcript = parse(&bytes);
    let imported = memory.import(&transcript).await.unwrap();
    let keys: Vec<SessionKey> = imported
        .sessions
        .iter()
        .map(|s| s.session.clone())
        .collect();

    // Every text, argument, call id and result of the raw file, byte for byte.
    let exported = exports(&memory, &keys).await;
    let source = raw_check::Source::parse(&bytes);
    raw_check::check(&source, &exported)?;

    // Again inserts nothing.
    let again = memory.import(&transcript).await.unwrap();
    let inserted: u64 = again
        .sessions
        .iter()
        .map(|s| s.inserted + s.conflicts)
        .sum();
    if inserted != 0 {
        return Err(format!("importing again stored {inserted} entries"));
    }

    for key in &keys {
        let session = memory.get_session(key.clone()).await.unwrap();
        let log = session.entries().await.unwrap();
        contexts(&session, &log)
            .await
            .map_err(|error| format!("{key}, as it is: {error}"))?;
        let outcome = session.compact(Mode::Full).await.unwrap();
        let finished = matches!(
            outcome.stop_reason,
            StopReason::NothingEligible | StopReason::Exhausted
        );
        if !finished {
            return Err(format!(
                "{key}: the compaction stopped for {:?}",
                outcome.stop_reason
            ));
        }
        let plan = session.plan().await.unwrap();
        if !plan.jobs.is_empty() && outcome.stop_reason != StopReason::Exhausted {
            return Err(format!("{key}: {} jobs are left", plan.jobs.len()));
        }
        if outcome.before.tokens > 20_000 && outcome.after.tokens * 10 > outcome.before.tokens * 6 {
            return Err(format!(
                "{key}: {} tokens are left of {}",
                outcome.after.tokens, outcome.before.tokens
            ));
        }
        contexts(&session, &log)
            .await
            .map_err(|error| format!("{key}: {error}"))?;
    }
    let verified = memory.verify().await.unwrap();
    if !verified.is_ok() {
        return Err(format!("verify: {:?}", verified.violations));
    }

    // Cut anywhere, then grown, it gives the same log.
    let lines: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(index, _)| index + 1)
        .collect();
    let mut sorted = exported.clone();
    sorted.sort();
    let mut random = Random(bytes.len() as u64);
    for _ in 0..10 {
        let cut = random.pick(&lines);
        let grown = Memory::in_memory().await.unwrap();
        let beginning = read(&bytes[..cut], &ReadOptions::default());
        // A beginning without any message is not a transcript yet.
        if let Ok(beginning) = beginning {
            grown.import(&beginning).await.unwrap();
        }
        let imported = grown.import(&transcript).await.unwrap();
        let keys = imported.sessions.iter().map(|one| one.session.clone());
        let keys: Vec<SessionKey> = keys.collect();
        // Which branch has the session's own key depends on which one was there first.
        let mut logs = exports(&grown, &keys).await;
        logs.sort();
        if logs != sorted {
            return Err(format!("cut at byte {cut} and grown, the log differs"));
        }
    }
    Ok(())
}

fn whole_tail() -> AssemblyPolicy {
    AssemblyPolicy {
        whole_tail: Some(20),
        ..AssemblyPolicy::default()
    }
}

async fn contexts(session: &Session, log: &[memory_model::LogEntry]) -> Result<(), String> {
    let blocks = blocks(log, &session.spans().await.unwrap());
    let whole_tail = whole_tail();
    for budget in [1_000, 4_000, 16_000, 64_000, 200_000] {
        let context = session
            .assemble(Budget::tokens(budget))
            .await
            .map_err(|error| format!("at {budget}: {error}"))?;
        check(&context, budget, &blocks, session.accounting())
            .and_then(|()| check_use(&context, &blocks))
            .map_err(|error| format!("at {budget}: {error}"))?;

        for steps in [1, 9] {
            let steps = NonZeroU64::new(steps).unwrap();
            let policy = AssemblyPolicy {
                form: Form::Live { steps },
                ..AssemblyPolicy::default()
            };
            let context = session
                .assemble(agent_memory::context::AssembleRequest::new(
                    Budget::tokens(budget),
                    policy,
                ))
                .await;
            check(&context.unwrap(), budget, &blocks, session.accounting())
                .map_err(|error| format!("at {budget}, {steps} steps: {error}"))?;
        }
        // A policy whose contexts may exceed the budget.
        let context = session
            .assemble(agent_memory::context::AssembleRequest::new(
                Budget::tokens(budget),
                whole_tail.clone(),
            ))
            .await
            .unwrap();
        check_order(&context)
            .map_err(|error| format!("at {budget}, with a whole tail: {error}"))?;
        if let Some(misfit) = &context.receipt.boundary
            && context.tokens + misfit.tokens + 64 <= context.receipt.limit
        {
            return Err(format!(
                "at {budget}: {misfit:?} would have fitted beside {}",
                context.tokens
            ));
        }
    }
    Ok(())
}
