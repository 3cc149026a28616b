//! Replays messages into a session as a live agent would, and checks laws (invariants) at each step.
//!
//! A step ingests one message, runs the compactions of the memory's [`TurnPolicy`](crate::TurnPolicy) before and after
//! it, and assembles the context for the next model call. The checks use only the log, the view and the context.

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

/// Number of replayed messages between two verifications of the session. The session is also verified after each
/// message that leads to a new summary.
const VERIFY_EVERY: usize = 64;

/// Replays messages into a session as an agent would, and checks after each message that the [laws](Law) hold. The
/// costly law [`Law::Verified`] is checked only after messages that lead to a new summary, after every 64 messages, and
/// at the end.
pub struct Replay<'a> {
    session: &'a Session,
    /// Function that returns the number of database statements executed so far; `None` to count no statements.
    pub statements: Option<&'a (dyn Fn() -> u64 + Sync)>,
    /// Maximum number of database statements for one replayed message. A message with more statements violates
    /// [`Law::Statements`]. `None` sets no maximum.
    pub most_statements: Option<u64>,
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("session", &self.session.key())
            .finish_non_exhaustive()
    }
}

/// Report of a replay: the costs of the log, the view (the compacted log) and the contexts, and the violations that
/// were found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Key of the session into which the messages were replayed.
    pub session: String,
    /// Size of the model's window, in tokens.
    pub window: u64,
    /// Budget of each context, in tokens.
    pub budget: u64,
    /// Number of steps of the replay. Each replayed message is one step, and each note too.
    pub steps: u64,
    /// Number of steps in which a compaction changed the view (the compacted log), for example published a summary.
    pub publishing_steps: u64,
    /// Number of published jobs (changes to the view), by the planner's label for each kind of job.
    pub published: LabelCounts,
    /// Number of calls of the summarizer, including failed ones.
    pub calls: u64,
    /// Number of calls to turn methods, such as [`Session::after_turn`], that reported a failed compaction. The
    /// summarizer or the store failed.
    pub failures: u64,
    /// Cost of all messages in the log, in tokens.
    pub log_tokens: u64,
    /// Cost of the view (the compacted log) after the last step, in tokens.
    pub view_tokens: u64,
    /// Sum of the costs of the contexts of all steps, in tokens.
    pub context_tokens: u64,
    /// Cost of the largest context of a step, in tokens.
    pub largest_context: u64,
    /// Tokens at the beginning of a context that the next context repeats, so that a provider's prompt cache can reuse
    /// them. Counts only steps in which no compaction changed the view (the compacted log).
    pub reuse: Reuse,
    /// Like [`reuse`](Self::reuse), over all steps.
    pub reuse_all: Reuse,
    /// Like [`reuse_all`](Self::reuse_all), for a baseline without compaction that sends the last messages that fit the
    /// budget.
    pub reuse_newest_first: Reuse,
    /// Tokens that the next context did not repeat, by cause. Counts only steps in which no compaction changed the view
    /// (the compacted log).
    pub breaks: Breaks,
    /// Number of database statements of all steps; `None` if statements are not counted.
    pub statements: Option<u64>,
    /// Largest number of database statements in a step in which no compaction changed the view (the compacted log);
    /// `None` if statements are not counted.
    pub most_statements: Option<u64>,
    /// Largest number of database statements in a step in which a compaction changed the view (the compacted log);
    /// `None` if statements are not counted.
    pub most_statements_publishing: Option<u64>,
    /// Violations of the laws, the invariants of a session: see [`Law`].
    pub broken: Vec<Broken>,
}

impl<'a> Replay<'a> {
    /// Creates a replay into `session`. The session must have a window, and may already have messages.
    pub fn new(session: &'a Session) -> Self {
        Self {
            session,
            statements: None,
            most_statements: None,
        }
    }

    /// Appends the messages one by one, calls the session's turn methods as an agent does, and checks after each
    /// message that the [laws](Law) hold. [`Law::Verified`] is checked less often. A violation is not an error: it is
    /// listed in [`ReplayReport::broken`].
    ///
    /// # Errors
    /// `Invalid` if the session has no window. `BudgetTooSmall` or `TooFewBytes` if a context cannot be assembled
    /// within the window. `Conflict` if a different message is stored with a message's external id. `Store` if the
    /// store fails.
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

/// Returns whether this message is from the user, and so begins a turn.
fn speaks(message: &Message) -> bool {
    message.kind == EntryKind::Message && message.role == Role::User
}
