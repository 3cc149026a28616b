//! Helpers of the tests: messages, loops and contexts.

use std::sync::Arc;

use block_overlay::{
    CompactionConfig, CompactionScope, DefaultBlockCompaction, LoopContext, LoopRecord,
    LoopSession, Shown, build_context_from_session, compact_session_loops,
};
use memory_model::{Message, RawJson, StepClock, Timestamp};
use token_estimate::HeuristicEstimator;
use turn_map::{MessageView as _, PartView};

/// Runs a future to completion.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(future)
}

pub(crate) const PLENTY: u64 = 1_000_000;
pub(crate) const NOW: Timestamp = Timestamp(1_770_000_000_000_000);
pub(crate) const COUNTER: HeuristicEstimator = HeuristicEstimator::Bytes4PerPart;

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::assistant(text)
}

pub(crate) fn call(id: &str) -> Message {
    Message::tool_call(id, "read", RawJson::parse("{}").unwrap())
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    Message::tool_result(id, text)
}

/// Returns all texts of a message, and the ids of its calls.
pub(crate) fn text(message: &Message) -> String {
    let mut texts = Vec::new();
    message.parts(&mut |part| {
        texts.push(match part {
            PartView::ToolCall { id, .. } => format!("<{id}>"),
            part => part.text().into_owned(),
        });
    });
    texts.join("\n")
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(text).collect()
}

/// Returns the output of a tool, with this number of lines.
pub(crate) fn output(lines: usize) -> String {
    (1..=lines)
        .map(|n| format!("line {n} of the output\n"))
        .collect()
}

pub(crate) fn record(id: &str, messages: Vec<Message>) -> LoopRecord {
    LoopRecord {
        loop_id: id.to_owned(),
        messages,
        ..LoopRecord::default()
    }
}

pub(crate) fn child(parent: &str, record: LoopRecord) -> LoopRecord {
    LoopRecord {
        parent_loop_id: Some(parent.to_owned()),
        ..record
    }
}

/// Returns a loop of turns. Every third turn calls a tool with `lines` lines of output, the others only answer.
pub(crate) fn turns(id: &str, count: u32, lines: usize) -> LoopRecord {
    let mut messages = Vec::new();
    for turn in 0..count {
        let asks = user(&format!("{id}: question {turn}, please look at it closely"));
        let mut of_turn = vec![asks];
        if turn % 3 == 2 {
            let tool = format!("{id}-{turn}");
            of_turn.extend([
                call(&tool),
                result(&tool, &format!("{tool}\n{}", output(lines))),
            ]);
        } else {
            of_turn.push(assistant(&format!(
                "{id}: answer {turn}, which is quite a bit longer than the question was. {}",
                "It goes on and on. ".repeat(12)
            )));
        }
        messages.extend(
            of_turn
                .into_iter()
                .map(|message| message.with_turn(id, turn)),
        );
    }
    record(id, messages)
}

/// Returns a session with a chain of loops, each the parent of the next.
pub(crate) fn chain(loops: Vec<LoopRecord>) -> LoopSession {
    let mut session = LoopSession {
        session_id: "s".to_owned(),
        loops: Vec::new(),
    };
    for mut record in loops {
        record.parent_loop_id = session.loops.last().map(|parent| parent.loop_id.clone());
        session.loops.push(record);
    }
    session
}

pub(crate) fn config() -> CompactionConfig {
    CompactionConfig {
        estimator: Arc::new(COUNTER),
        clock: Arc::new(StepClock::new(NOW, 0)),
        ..CompactionConfig::default()
    }
}

pub(crate) fn fixed(count: usize) -> CompactionConfig {
    CompactionConfig {
        compaction_scope: CompactionScope::FixedCount(count),
        ..config()
    }
}

pub(crate) fn kept(first: usize, recent: usize) -> CompactionConfig {
    CompactionConfig {
        keep_first_turns: first,
        keep_recent_turns: recent,
        ..config()
    }
}

pub(crate) fn summary_tokens(tokens: u64) -> CompactionConfig {
    CompactionConfig {
        max_summary_tokens: tokens,
        ..config()
    }
}

/// Makes the blocks with the default strategy, and returns the ids of the loops that got one.
pub(crate) fn compact(
    session: &mut LoopSession,
    current: &str,
    config: &CompactionConfig,
    budget: u64,
) -> Vec<String> {
    let strategy = &DefaultBlockCompaction;
    block_on(compact_session_loops(
        session, current, strategy, config, budget,
    ))
    .unwrap()
}

pub(crate) fn context(
    session: &LoopSession,
    current: &str,
    config: &CompactionConfig,
    budget: u64,
) -> LoopContext {
    build_context_from_session(session, current, config, budget).unwrap()
}

/// Returns the form of each turn of a loop in the context, one letter for a turn.
pub(crate) fn letters(context: &LoopContext, loop_id: &str) -> String {
    let of_loop = context.turns.iter().filter(|turn| turn.loop_id == loop_id);
    let letter = |shown: Shown| match shown {
        Shown::Raw => 'r',
        Shown::Trimmed => 't',
        Shown::Summarized => 's',
        Shown::Omitted => '-',
    };
    of_loop.map(|turn| letter(turn.shown)).collect()
}
