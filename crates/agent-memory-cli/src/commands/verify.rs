//! `verify`: checks that the stored data is complete and unchanged, also against files outside of the database.

use agent_memory::{
    VerifyReport,
    store::{Violation, ViolationKind},
};
use serde::Serialize;

use super::proof::{Anchors, Compared, check_signer};
use crate::app::App;
use crate::args::Verify;
use crate::error::{Failure, Kind};
use crate::output::count;

/// Result of a verification, as part of the output of commands that write.
#[derive(Debug, Serialize)]
pub(super) struct Verified {
    pub(super) ok: bool,
    pub(super) violations: Vec<Violation>,
}

impl From<VerifyReport> for Verified {
    fn from(report: VerifyReport) -> Self {
        Self {
            ok: report.is_ok(),
            violations: report.violations,
        }
    }
}

impl Verified {
    /// Prints the report.
    pub(super) fn print(&self, app: &mut App) -> anyhow::Result<()> {
        if self.ok {
            app.out.line("verified: every word is there")?;
        }
        for violation in &self.violations {
            app.out.line(&format!("wrong: {violation}"))?;
        }
        Ok(())
    }

    /// Returns an error if there are violations.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.violations.len() as u64 {
            0 => Ok(()),
            wrong => Err(failed(wrong)),
        }
    }
}

#[derive(Debug, Serialize)]
struct DatabaseReport {
    ok: bool,
    #[serde(flatten)]
    report: VerifyReport,
    /// Start time of an erasure that was interrupted, so that erased words may still be in the database's files. `None`
    /// if no erasure was interrupted.
    pending_wipe: Option<String>,
    /// Files that were compared with the database.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    against: Vec<Compared>,
}

pub(crate) async fn run(app: &mut App, args: &Verify) -> anyhow::Result<()> {
    if let Some(signer) = &args.signer {
        check_signer(signer)?;
    }
    let memory = app.open().await?;
    let pending_wipe = memory.store().pending_wipe().await?;
    let session = match &args.session {
        None => None,
        Some(name) => Some(app.session(&memory, name).await?),
    };
    // The files may name other sessions.
    let mut report = match &session {
        Some(session) if args.against.is_empty() => session.verify().await?,
        _ => memory.verify().await?,
    };
    let anchors = Anchors {
        memory: &memory,
        session: session.map(|session| session.key().to_string()),
        signer: args.signer.as_deref(),
    };
    let (mut against, mut not_compared) = (Vec::new(), Vec::new());
    for path in &args.against {
        match anchors.compare(path).await {
            Ok(mut compared) => {
                report.violations.append(&mut compared.violations);
                against.push(compared);
            }
            Err(error) => not_compared.push(Failure::from_any(error)),
        }
    }
    if let (Some(signer), []) = (&args.signer, not_compared.as_slice())
        && against.iter().all(|compared| compared.certificates == 0)
    {
        let message = format!("no file holds a certificate that {signer} has signed");
        let violation = Violation::new(ViolationKind::CertificateDiffers, message);
        report.violations.push(violation);
    }
    let wrong = report.violations.len() as u64;
    for failure in &not_compared {
        let message = format!("not compared: {}", failure.message);
        let violation = Violation::new(ViolationKind::Other, message);
        report.violations.push(violation);
    }
    let answer = DatabaseReport {
        ok: report.is_ok(),
        report,
        pending_wipe: pending_wipe.map(|at| at.to_string()),
        against,
    };
    if app.json {
        app.out.json(&answer)?;
    } else {
        print(app, &answer)?;
    }
    match not_compared.into_iter().next() {
        Some(failure) if wrong == 0 => Err(failure.into()),
        None if wrong == 0 => Ok(()),
        _ => Err(failed(answer.report.violations.len() as u64).into()),
    }
}

fn print(app: &mut App, answer: &DatabaseReport) -> anyhow::Result<()> {
    let checked = format!(
        "{}, {}, {}, {}",
        count(answer.report.conversations, "session", "sessions"),
        count(answer.report.messages, "log entry", "log entries"),
        count(answer.report.summaries, "summary", "summaries"),
        count(answer.report.views, "view", "views"),
    );
    if answer.ok {
        app.out.line(&format!("no violations: {checked}"))?;
    } else {
        for violation in &answer.report.violations {
            app.out.line(&format!("wrong: {violation}"))?;
        }
        app.out.line(&format!("checked: {checked}"))?;
    }
    for compared in &answer.against {
        app.out.line(&compared.line())?;
    }
    if let Some(since) = &answer.pending_wipe {
        app.out.line(&unwiped(since))?;
    }
    Ok(())
}

/// Returns the text about an erasure at the time `since` that was interrupted.
pub(crate) fn unwiped(since: &str) -> String {
    format!(
        "not wiped: words that were erased at {since} may still be in the database's files; the next command that writes \
         removes them"
    )
}

/// Returns the error for a verification that found violations.
fn failed(violations: u64) -> Failure {
    let text = format!(
        "verification found {}",
        count(violations, "thing wrong", "things wrong")
    );
    Failure::new(Kind::VerificationFailed, text)
        .hint("stop writing to this database and restore a backup; `export` saves what can be read")
}
