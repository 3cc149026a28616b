//! The options of `compact`: their effect on a session, its threshold, and the request for a compaction.

use agent_memory::compaction::{CancellationToken, WindowUse};
use agent_memory::{CompactRequest, Session, Strategy};

use crate::args::Compact;
use crate::config::Config;
use crate::error::Failure;

/// Returns an error for an option that has no effect with the requested strategy, or else with the session's own.
/// `None` is a strategy that is not known yet.
pub(super) fn check(args: &Compact, config: &Config, own: Option<Strategy>) -> Result<(), Failure> {
    let Some(strategy) = args.strategy.or(own) else {
        return Ok(());
    };
    args.policy.check(strategy)?;
    match args.config {
        Some(_) => config.check(strategy),
        None => Ok(()),
    }
}

/// Returns whether the session crosses the threshold. The number of the configuration file is compared with the lines of
/// the session's file, and the share of a window with the cost of its contexts.
pub(super) async fn is_due(
    args: &Compact,
    config: &Config,
    session: &Session,
) -> anyhow::Result<bool> {
    let lines = match config.tables().handoff {
        Some(_) => session.session_file().await?,
        None => String::new(),
    };
    let usage = WindowUse {
        tokens: session.usage().await?.context.tokens(),
        window: args.window.unwrap_or(0),
        stored_tokens: lines.lines().map(|line| line.len() as u64).sum::<u64>() / 4,
        ..WindowUse::default()
    };
    Ok(args.policy.is_due(&usage, config))
}

/// Returns the request for a compaction.
pub(super) fn request(args: &Compact, cancel: CancellationToken) -> CompactRequest {
    CompactRequest {
        mode: args.mode,
        instructions: args.writing.instructions.clone(),
        cancel,
        fits: Some(args.budget),
        ..CompactRequest::default()
    }
}
