//! `verify`: checks that nothing was lost or changed.

use agent_memory::Violation;
use serde::Serialize;

use crate::app::App;
use crate::args::Verify;
use crate::error::{Failure, Kind};
use crate::output::count;

#[derive(Debug, Serialize)]
struct Answer {
    ok: bool,
    conversations: u64,
    messages: u64,
    summaries: u64,
    views: u64,
    violations: Vec<Violation>,
    /// Since when erased words may still be in the database's files.
    pending_wipe: Option<String>,
}

pub(crate) async fn run(app: &mut App, args: &Verify) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let pending_wipe = memory.store().pending_wipe().await?;
    let pending_wipe = pending_wipe.map(|at| at.to_string());
    let answer = match &args.session {
        None => {
            let verified = memory.verify().await?;
            Answer {
                ok: verified.is_ok(),
                conversations: verified.conversations,
                messages: verified.messages,
                summaries: verified.summaries,
                views: verified.views,
                violations: verified.violations,
                pending_wipe,
            }
        }
        Some(name) => {
            let session = app.session(&memory, name).await?;
            let report = session.verify().await?;
            Answer {
                ok: report.is_ok(),
                conversations: 1,
                messages: report.messages,
                summaries: report.summaries,
                views: report.views,
                violations: report.violations,
                pending_wipe,
            }
        }
    };
    if app.json {
        app.out.json(&answer)?;
    } else {
        let checked = format!(
            "{}, {}, {}, {}",
            count(answer.conversations, "session", "sessions"),
            count(answer.messages, "log entry", "log entries"),
            count(answer.summaries, "summary", "summaries"),
            count(answer.views, "view", "views"),
        );
        if answer.ok {
            app.out.line(&format!("all is right: {checked}"))?;
        } else {
            for violation in &answer.violations {
                app.out.line(&format!("wrong: {violation}"))?;
            }
            app.out.line(&format!("checked: {checked}"))?;
        }
    }
    if let Some(since) = &answer.pending_wipe
        && !app.json
    {
        app.out.line(&unwiped(since))?;
    }
    match answer.violations.len() as u64 {
        0 => Ok(()),
        wrong => Err(failed(wrong).into()),
    }
}

/// Says that an erasure was cut short.
pub(crate) fn unwiped(since: &str) -> String {
    format!(
        "not wiped: words that were erased at {since} may still be in the database's files; the next command that writes \
         removes them"
    )
}

/// Returns the error for a verification that found violations.
pub(crate) fn failed(violations: u64) -> Failure {
    let text = format!(
        "verification found {}",
        count(violations, "thing wrong", "things wrong")
    );
    Failure::new(Kind::VerificationFailed, text)
        .hint("stop writing to this database and restore a backup; `export` saves what can be read")
}
