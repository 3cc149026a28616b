//! Replays messages into a session as a live agent would, and checks laws at each step.
//!
//! A step ingests one message, does the compaction of the memory's [`TurnPolicy`](crate::TurnPolicy) before and after
//! it, and assembles the context for the next model call. The laws are checked from the log, the view and the context
//! alone.

mod laws;
mod reuse;
mod step;

use std::fmt;

use compaction_plan::LabelCounts;
use memory_model::{Accounting as _, EntryKind, Message, Role};
use serde::Serialize;

pub use laws::{Broken, Law};
pub use reuse::{Breaks, Reuse};

use crate::error::Result;
use crate::session::Session;
use crate::turns::TurnReport;
use laws::Laws;
use reuse::{NewestFirst, Previous};
use step::Step;

/// Number of steps between verifications of the session. It is also verified after each step that published.
const VERIFY_EVERY: usize = 64;

/// A replay of messages into a session.
pub struct Replay<'a> {
    session: &'a Session,
    /// Returns the number of statements so far.
    pub statements: Option<&'a (dyn Fn() -> u64 + Sync)>,
    /// Maximum number of statements of a step; a step with more violates a law.
    pub most_statements: Option<u64>,
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("session", &self.session.key())
            .finish_non_exhaustive()
    }
}

/// Report of a replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Key of the session.
    pub session: String,
    /// The model's window, in tokens.
    pub window: u64,
    /// Budget of each context, in tokens.
    pub budget: u64,
    /// Number of steps: one for each entry, notes included.
    pub steps: u64,
    /// Number of steps that published.
    pub publishing_steps: u64,
    /// Number of published jobs, by the planner's label.
    pub published: LabelCounts,
    /// Number of calls of the summarizer, failed ones included.
    pub calls: u64,
    /// Number of turn steps in which the summarizer or the store failed.
    pub failures: u64,
    /// Cost of the log, in tokens.
    pub log_tokens: u64,
    /// Cost of the view at the end, in tokens.
    pub view_tokens: u64,
    /// Cost of all contexts together, in tokens.
    pub context_tokens: u64,
    /// Cost of the largest context, in tokens.
    pub largest_context: u64,
    /// Reuse of contexts over the steps that published no summary: the share of each context that was the beginning of
    /// the next.
    pub reuse: Reuse,
    /// Reuse over all steps.
    pub reuse_all: Reuse,
    /// Reuse over all steps of the baseline: no compaction, and the budget filled with messages, newest first.
    pub reuse_newest_first: Reuse,
    /// Tokens that were not reused over the steps that published no summary, by cause.
    pub breaks: Breaks,
    /// Number of statements of all steps, if they are counted.
    pub statements: Option<u64>,
    /// Largest number of statements of a step that published no summary.
    pub most_statements: Option<u64>,
    /// Largest number of statements of a step that published.
    pub most_statements_publishing: Option<u64>,
    /// Violations of laws.
    pub broken: Vec<Broken>,
}

impl<'a> Replay<'a> {
    /// Creates a replay into a session, which must have a window and may already have messages.
    pub fn new(session: &'a Session) -> Self {
        Self {
            session,
            statements: None,
            most_statements: None,
        }
    }

    /// Replays messages, and reports violations of laws.
    ///
    /// # Errors
    /// `Invalid` when the session has no window; or when the store fails, or a context cannot be assembled.
    pub async fn run(&self, messages: &[Message]) -> Result<ReplayReport> {
        let window = self.session.window()?;
        let mut report = ReplayReport {
            session: self.session.key().as_str().to_owned(),
            window: window.tokens,
            budget: window.budget().get(),
            ..ReplayReport::default()
        };
        let mut laws = Laws::open(self.session).await?;
        let (mut previous, mut newest_first) = (Previous::default(), NewestFirst::default());
        let limit = self.session.scaled(window.budget()).await?.limit();
        for (index, message) in messages.iter().enumerate() {
            let next = messages.get(index + 1);
            let step = self.step(message, next, &mut report).await?;
            let published = step.published > 0;
            laws.after_step(self.session, message, &step, window.budget())
                .await?;
            let verify = published || (index + 1) % VERIFY_EVERY == 0;
            if verify || next.is_none() {
                laws.verify(self.session).await?;
            }
            let reused = previous.next(&step.context);
            report.reuse_all.add(reused.reuse);
            if !published {
                report.reuse.add(reused.reuse);
                reused.blame(&mut report.breaks);
            }
            let tokens = self.session.accounting().message(message);
            report
                .reuse_newest_first
                .add(newest_first.next(tokens, limit));
        }
        let snapshot = self.session.snapshot().await?;
        report.view_tokens = snapshot.tokens();
        report.log_tokens = laws.log_tokens();
        report.broken = laws.into_broken();
        Ok(report)
    }

    /// Ingests a message, and calls the session's turn methods as an agent does.
    async fn step(
        &self,
        message: &Message,
        next: Option<&Message>,
        report: &mut ReplayReport,
    ) -> Result<Step> {
        let before = self.statements();
        let mut turn_reports = Vec::new();
        if speaks(message) {
            turn_reports.push(self.session.before_turn().await?);
        }
        let ingested = self.session.ingest(message.clone()).await?;
        let call = self.session.context().await?;
        turn_reports.push(call.report.clone());
        if next.is_none_or(speaks) {
            turn_reports.push(self.session.after_turn().await?);
        }
        let statements = self.statements().zip(before).map(|(now, then)| now - then);

        report.steps += 1;
        report.context_tokens += call.context.tokens;
        report.largest_context = report.largest_context.max(call.context.tokens);
        let published: u64 = turn_reports.iter().map(TurnReport::published).sum();
        for turn in &turn_reports {
            for outcome in &turn.compactions {
                report.published.merge(&outcome.published);
                report.calls += outcome.calls;
            }
            report.calls += turn
                .prefetched
                .as_ref()
                .map_or(0, |prefetch| prefetch.calls);
            report.failures += u64::from(turn.failure.is_some());
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
            compactions: turn_reports
                .into_iter()
                .flat_map(|turn| turn.compactions)
                .collect(),
            context: call.context,
            published,
            statements,
            most_statements: self.most_statements,
        })
    }

    fn statements(&self) -> Option<u64> {
        self.statements.map(|so_far| so_far())
    }
}

/// Whether a user's turn begins with this message.
fn speaks(message: &Message) -> bool {
    message.kind == EntryKind::Message && message.role == Role::User
}
