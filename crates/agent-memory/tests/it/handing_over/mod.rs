//! Handoffs by the rules of anna, pi and koda, and checks that they lose nothing.

mod anna;
mod forms;
mod hooks;
mod koda;
mod many;
mod pi;
mod reasons;
mod settings;
mod strategies;
mod without_store;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use agent_memory::compaction::{CutPolicy, FileLedger, LiveHandoffPolicy};
use agent_memory::models::{Failure, FailureKind, is_context_overflow};
use agent_memory::retrieval::ExpandedChild;
use agent_memory::summaries::{OnError, Tier};
use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Budget, Builder, Context, ErrorKind, HandoffPolicy, Memory, Message, Mode, Part, RawJson, Role,
    Seq, Session, Strategy, Summarizer, TurnPolicy, Window,
    compaction::{
        Action, AutoHandoff, CancellationToken, CompactionDecision, CompactionReason,
        CompactionResult, Event, HandOver, HandOverOutcome, HandOverSkip, Handoff, HookList, Hooks,
        JobDecision, LiveTurnPolicy, PlannedJob, Recorder, Recovery, Runner, Trigger,
    },
    context::{AssemblyPolicy, IdentityFiles, MessageOrigin},
    models::{BreakerPolicy, GuardPolicy},
    retrieval::ExpandArgs,
    summaries::{Gate, Ladder, Share, SummarizerResponse, SummaryRequest},
};

use summarize_escalation::testing::FakeTimer;

use crate::support::{export, said, say, talk};

/// Returns a policy by which a handoff needs only a few messages.
fn keeping(messages: usize) -> HandoffPolicy {
    HandoffPolicy {
        keep: CutPolicy::LastMessages { messages },
        min_tokens: 0,
        split_turns: false,
        ..HandoffPolicy::default()
    }
}

fn above(max_tokens: i64, keep_tail: usize) -> AutoHandoff {
    AutoHandoff {
        max_tokens,
        keep_tail,
    }
}

fn writing(answer: &str) -> Builder {
    memory().summarizer(Arc::new(Scripted::fixed(Ok(answer))))
}

async fn open(builder: Builder) -> Session {
    let memory: Memory = builder.open().await.unwrap();
    memory.session("chat").await.unwrap()
}

async fn done(session: &Session) -> Handoff {
    match session.hand_over(&HandOver::default()).await.unwrap() {
        HandOverOutcome::Done(handoff) => *handoff,
        HandOverOutcome::Skipped(skip) => panic!("{skip:?}"),
    }
}

async fn skipped(session: &Session, request: &HandOver) -> HandOverSkip {
    match session.hand_over(request).await.unwrap() {
        HandOverOutcome::Done(handoff) => panic!("{handoff:?}"),
        HandOverOutcome::Skipped(skip) => skip,
    }
}

/// Returns the content of a large context: the text before its messages, and the positions of the messages.
async fn shown(session: &Session) -> (String, Vec<u32>) {
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    let (mut summary, mut messages) = (String::new(), Vec::new());
    for message in &context.messages {
        match (&message.source, message.parts.first()) {
            (MessageOrigin::Summary { .. }, Some(Part::Text { text })) => {
                assert!(messages.is_empty(), "a summary behind a message");
                summary.push_str(text);
            }
            (MessageOrigin::Message { first, .. }, _) => messages.push(first.0),
            // What the user asked for last.
            (MessageOrigin::Quoted { .. }, _) => {}
            other => panic!("{other:?}"),
        }
    }
    (summary, messages)
}

fn call(id: &str, tool: &str, arguments: &str) -> Message {
    Message::tool_call(id, tool, RawJson::parse(arguments).unwrap())
}

async fn talk_on(session: &Session, from: usize, count: usize) {
    let more: Vec<Message> = (from..from + count).map(said).collect();
    let _ = session.ingest_batch(more).await.unwrap();
}
