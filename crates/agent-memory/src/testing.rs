//! Testing helpers: fake clocks, scripted summarizers, and stable text for snapshots.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_memory::testing::{memory, render_context};
//! use agent_memory::{Budget, Message, Mode};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_memory::Result<()> {
//! let memory = memory().open().await?;
//! let session = memory.session("demo").await?;
//! for n in 1..=40 {
//!     session.ingest(Message::user(format!("Step {n}: rename module number {n}. ").repeat(8))).await?;
//! }
//! session.compact(Mode::Full).await?;
//! let context = session.assemble(Budget::tokens(2_000)).await?;
//! // Equal on every machine and in every run: `insta::assert_snapshot!(render_context(&context))`.
//! assert!(render_context(&context).starts_with("budget 2000"));
//! # Ok(())
//! # }
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use compaction_runner::RunnerPolicy;
use memory_model::{StepClock, Timestamp};
use memory_store::InMemoryStore;

use crate::Context;
use crate::builder::Builder;
use crate::compaction::Outcome;
use crate::memory::Memory;
use crate::spawner::Background;

pub use memory_model::StepClock as FakeClock;
pub use store_conformance::{Generated, needle};
pub use summarize_escalation::testing::{Answer, Scripted};

/// First time that the clock of [`memory`] returns: 2026-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp(1_767_225_600_000_000);

/// Returns a builder of a memory that gives the same results in every run. The memory has an in-memory store with
/// leases that never end, a clock that starts at [`START`] and advances by one second at each reading, and no
/// background tasks.
pub fn memory() -> Builder {
    let stopped = Arc::new(StepClock::new(START, 0));
    Memory::builder()
        .store(InMemoryStore::new().with_clock(stopped))
        .clock(StepClock::new(START, 1_000_000))
        .runner(RunnerPolicy {
            owner: Some("test".to_owned()),
            ..RunnerPolicy::default()
        })
        .background(Background::off())
}

/// Renders a context as text for snapshot tests: the budget, the receipt (report of the assembly), and the messages.
/// Token counts are in the first line and in the receipt, but not next to each message.
pub fn render_context(context: &Context) -> String {
    let receipt = &context.receipt;
    let mut out = format!(
        "budget {} · limit {} · used {} · view {} · stepped {}\n",
        context.budget, receipt.limit, context.tokens, receipt.view_tokens, receipt.stepped_tokens
    );
    // Writing to a string cannot fail.
    for dropped in &receipt.dropped {
        let _ = writeln!(
            out,
            "left out: messages {}-{} ({} tokens)",
            dropped.first, dropped.last, dropped.tokens
        );
    }
    for form in &receipt.shortened {
        let _ = writeln!(
            out,
            "summary of {}-{}: {} of {} lines, {} of {} tokens",
            form.first, form.last, form.lines, form.of_lines, form.to_tokens, form.from_tokens
        );
    }
    for degraded in &receipt.degraded {
        let _ = writeln!(
            out,
            "shortened: messages {}-{} from {} to {} tokens ({:?})",
            degraded.first, degraded.last, degraded.from_tokens, degraded.to_tokens, degraded.step
        );
    }
    if !receipt.stubbed_calls.is_empty() {
        let _ = writeln!(
            out,
            "calls without a result: {}",
            receipt.stubbed_calls.join(", ")
        );
    }
    for moved in &receipt.moved_results {
        let (from, behind, id) = (moved.from, moved.after, moved.call_id.escape_debug());
        let _ = writeln!(out, "moved: the result of {id} from {from} behind {behind}");
    }
    for call in &receipt.renamed_calls {
        let (id, new_id) = (call.id.escape_debug(), call.new_id.escape_debug());
        let _ = writeln!(
            out,
            "renamed: the call {id} in {} to {new_id}",
            call.message
        );
    }
    out.push('\n');
    out.push_str(&context_assembler::render_text_without_tokens(
        &context.messages,
    ));
    out
}

/// Renders the outcome of a compaction as text for snapshot tests: sizes, published summaries by label, the stop
/// reason, and failures with their reasons.
pub fn render_outcome(outcome: &Outcome) -> String {
    let published: String = outcome
        .published
        .iter()
        .map(|(label, count)| format!("{count} {label}, "))
        .collect();
    let mut out = format!(
        "{} messages, {} tokens in {} spans → {} tokens in {} spans\n{published}{} calls, {:?}\n",
        outcome.before.messages,
        outcome.before.tokens,
        outcome.before.spans,
        outcome.after.tokens,
        outcome.after.spans,
        outcome.calls,
        outcome.stop_reason,
    );
    // Writing to a string cannot fail.
    if let Some(failure) = &outcome.failure {
        let _ = writeln!(out, "failed: {failure}");
    }
    let model = &outcome.model;
    if model.without_model + model.not_made > 0 {
        let (asked, without, not_made) = (model.asked, model.without_model, model.not_made);
        let _ = writeln!(
            out,
            "of {asked} summaries asked for, {without} without the model, {not_made} not made"
        );
    }
    for count in &model.causes {
        let _ = writeln!(out, "  {} × {}", count.summaries, count.cause);
    }
    if let Some(holder) = &outcome.held {
        let _ = writeln!(out, "passed over, because {} was at work", holder.owner);
    }
    out
}
