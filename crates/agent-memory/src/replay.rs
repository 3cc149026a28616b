//! Driving a session message by message, as a live agent would, and checking the laws at each step.
//!
//! A step stores one message, lets the moments of its turn do what the memory's
//! [`TurnPolicy`](crate::TurnPolicy) says, and assembles the context that a model would be sent.
//! What must hold of it is checked from outside: from the log, the view and the context alone.

mod laws;
mod reuse;

use std::fmt;

use compaction_plan::LabelCounts;
use context_assembler::{AssemblyPolicy, Context, Eviction};
use memory_model::{EntryKind, Message, Role};
use serde::Serialize;

pub use laws::{Broken, Law};
pub use reuse::Reuse;

use crate::error::Result;
use crate::history::SnapshotView;
use crate::session::Session;
use crate::turns::{TurnReport, Window};
use laws::Laws;
use reuse::Previous;

/// A replay of messages into a session.
pub struct Replay<'a> {
    session: &'a Session,
    window: Window,
    statements: Option<&'a (dyn Fn() -> u64 + Sync)>,
    most_statements: Option<u64>,
    newest_first: bool,
    verify_every: usize,
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("session", &self.session.key())
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

/// What a replay did and found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Replayed {
    /// The session.
    pub session: String,
    /// The model's window, in tokens.
    pub window: u64,
    /// What a context may cost, in tokens.
    pub budget: u64,
    /// Messages that were stored, one a step; notes among them.
    pub steps: u64,
    /// Steps in which something was published.
    pub publishing_steps: u64,
    /// Number of published jobs, by the planner's label.
    pub published: LabelCounts,
    /// Calls of the summarizer, failed ones too.
    pub calls: u64,
    /// Compactions, or preparations, in which a summarizer failed.
    pub failures: u64,
    /// What the messages cost, in tokens.
    pub log_tokens: u64,
    /// What the view costs at the end, in tokens.
    pub view_tokens: u64,
    /// What all contexts cost together, in tokens.
    pub context_tokens: u64,
    /// What the largest context cost, in tokens.
    pub largest_context: u64,
    /// How much of each context was the beginning of the next, over steps that published nothing.
    pub reuse: Reuse,
    /// The same over all steps.
    pub reuse_all: Reuse,
    /// The same over all steps, had nothing been compacted and the budget been filled with
    /// messages, newest first.
    pub reuse_newest_first: Reuse,
    /// Steps that published nothing and kept less than nine tenths, by what changed.
    pub breaks: Breaks,
    /// Statements of all steps, if they are counted.
    pub statements: Option<u64>,
    /// Statements of the costliest step that published nothing.
    pub most_statements: Option<u64>,
    /// Statements of the costliest step that published.
    pub most_statements_publishing: Option<u64>,
    /// What did not hold.
    pub broken: Vec<Broken>,
}

/// Why the beginning of a context did not stay, by the tokens that were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Breaks {
    /// The oldest part was given up for the budget.
    pub stepped: u64,
    /// A group was shortened for the budget, or shortened differently.
    pub shortened: u64,
    /// A group at the end changed: it was still going on.
    pub growing: u64,
}

impl<'a> Replay<'a> {
    /// A replay into a session, which may have messages already.
    pub fn new(session: &'a Session, window: Window) -> Self {
        Self {
            session,
            window,
            statements: None,
            most_statements: None,
            newest_first: true,
            verify_every: 64,
        }
    }

    /// Counts statements with this: the figure so far.
    pub fn with_statements(mut self, so_far: &'a (dyn Fn() -> u64 + Sync)) -> Self {
        self.statements = Some(so_far);
        self
    }

    /// Sets how many statements a step may take; more is a broken law.
    pub fn with_most_statements(mut self, most: Option<u64>) -> Self {
        self.most_statements = most;
        self
    }

    /// Sets whether newest-first filling is measured beside; on.
    pub fn with_newest_first(mut self, on: bool) -> Self {
        self.newest_first = on;
        self
    }

    /// Sets after how many steps the whole session is verified, apart from each step that published
    /// and the last. 64.
    pub fn with_verify_every(mut self, steps: usize) -> Self {
        self.verify_every = steps;
        self
    }

    /// Replays messages. What is broken is in the report.
    ///
    /// # Errors
    /// When the store fails, or a context cannot be assembled at all.
    pub async fn run(&self, messages: &[Message]) -> Result<Replayed> {
        let mut report = Replayed {
            session: self.session.key().as_str().to_owned(),
            window: self.window.tokens,
            budget: self.window.budget().get(),
            ..Replayed::default()
        };
        let mut laws = Laws::open(self.session).await?;
        let (mut previous, mut newest_first) = (Previous::default(), Previous::default());
        for (index, message) in messages.iter().enumerate() {
            let next = messages.get(index + 1);
            let step = self.step(message, next, &mut report).await?;
            let published = step.published > 0;
            laws.after_step(self.session, message, &step, self.window.budget())
                .await?;
            let verify = published || (index + 1) % self.verify_every.max(1) == 0;
            if verify || next.is_none() {
                laws.verify(self.session).await?;
            }
            let reused = previous.next(&step.context);
            report.reuse_all.add(reused.reuse);
            if !published {
                report.reuse.add(reused.reuse);
                reused.blame(&mut report.breaks);
            }
            if self.newest_first {
                let policy = AssemblyPolicy::default().with_eviction(Eviction::StopAtMisfit);
                let budget = self.window.budget();
                let raw = self.messages_alone().await?;
                let context = raw.assemble_with(budget, &policy).await?;
                let reuse = newest_first.next(&context).reuse;
                report.reuse_newest_first.add(reuse);
            }
        }
        let snapshot = self.session.snapshot().await?;
        report.view_tokens = snapshot.tokens();
        report.log_tokens = laws.log_tokens();
        report.broken = laws.into_broken();
        Ok(report)
    }

    /// Stores a message and does what an agent does around it.
    async fn step(
        &self,
        message: &Message,
        next: Option<&Message>,
        report: &mut Replayed,
    ) -> Result<Step> {
        let before = self.statements();
        let mut upkeep = Vec::new();
        if speaks(message) {
            upkeep.push(self.session.before_turn(&self.window).await?);
        }
        let ingested = self.session.ingest(message.clone()).await?;
        let call = self.session.before_call(&self.window).await?;
        upkeep.push(call.upkeep);
        if next.is_none_or(speaks) {
            upkeep.push(self.session.after_turn(&self.window).await?);
        }
        let statements = self.statements().zip(before).map(|(now, then)| now - then);

        report.steps += 1;
        report.context_tokens += call.context.tokens;
        report.largest_context = report.largest_context.max(call.context.tokens);
        let published: u64 = upkeep.iter().map(TurnReport::published).sum();
        for moment in &upkeep {
            for outcome in &moment.compactions {
                report.published.merge(&outcome.published);
                report.calls += outcome.calls;
            }
            report.calls += moment.prepared.as_ref().map_or(0, |ahead| ahead.calls);
            report.failures += u64::from(moment.failure.is_some());
        }
        report.publishing_steps += u64::from(published > 0);
        if let Some(statements) = statements {
            *report.statements.get_or_insert(0) += statements;
            let most = match published {
                0 => &mut report.most_statements,
                _ => &mut report.most_statements_publishing,
            };
            *most = Some(most.unwrap_or(0).max(statements));
        }
        Ok(Step {
            ingested,
            compactions: upkeep.into_iter().flat_map(|u| u.compactions).collect(),
            context: call.context,
            published,
            statements,
            most_statements: self.most_statements,
        })
    }

    /// The session as if nothing had ever been compacted: a view that nobody publishes.
    async fn messages_alone(&self) -> Result<SnapshotView> {
        let store = &self.session.memory().inner.store;
        let view = memory_model::ViewName::new("messages-alone");
        let snapshot = store.snapshot(self.session.id(), &view).await?;
        Ok(SnapshotView::new(self.session.clone(), snapshot))
    }

    fn statements(&self) -> Option<u64> {
        self.statements.map(|so_far| so_far())
    }
}

/// What a step did.
#[derive(Debug)]
struct Step {
    ingested: memory_store::EntryOutcome,
    compactions: Vec<compaction_runner::Outcome>,
    context: Context,
    published: u64,
    statements: Option<u64>,
    most_statements: Option<u64>,
}

/// Whether a user's turn begins with a message.
fn speaks(message: &Message) -> bool {
    message.kind == EntryKind::Message && message.role == Role::User
}
