//! The session that `compact` works on: of a file, or by its name.

use std::path::Path;
use std::sync::Arc;

use agent_memory::store::InMemoryStore;
use agent_memory::transcripts::Transcript;
use agent_memory::{Builder, Memory, Session};

use crate::app::App;
use crate::args::Compact;
use crate::error::{Failure, Kind};
use crate::output::{count, note};
use crate::progress::Progress;
use crate::writer::Writers;

/// Opens an existing database: for reading in a dry run, otherwise for writing.
pub(super) async fn open(
    app: &App,
    args: &Compact,
    writers: &Writers,
    progress: &Arc<Progress>,
) -> anyhow::Result<Memory> {
    if args.dry_run || !app.place()?.exists() {
        let opened = app.open_to_read(writers.apply(Memory::builder(), progress));
        return opened
            .await
            .map_err(|error| neither(app, error, &args.target));
    }
    app.open_for_writing(progress, |builder| writers.apply(builder, progress))
        .await
}

/// Returns the error for a target that is neither a file nor a session.
pub(super) fn neither(app: &App, error: anyhow::Error, target: &str) -> anyhow::Error {
    let mut failure = match error.downcast::<Failure>() {
        Ok(failure) => failure,
        Err(error) => return error,
    };
    if matches!(failure.kind, Kind::NotFound | Kind::NoDatabase) {
        if Path::new(target).is_dir() {
            let command = app.command(&["import"], &[target]);
            let text = format!("{target} is a directory");
            return Failure::new(Kind::Unreadable, text)
                .hint(format!("import it first: {command}"))
                .into();
        }
        failure.message = format!("there is no file {target}, and {}", failure.message);
        let looks_like_path =
            target.contains(std::path::MAIN_SEPARATOR) || Path::new(target).extension().is_some();
        if looks_like_path {
            failure = failure.hint("check the path");
        }
    }
    failure.into()
}

/// Returns a handle on the session with the requested strategy. Does not store the strategy.
pub(super) async fn planned(session: Session, args: &Compact) -> agent_memory::Result<Session> {
    let Some(strategy) = args.strategy else {
        return Ok(session);
    };
    let key = session.key().clone();
    session.memory().get_session(key).strategy(strategy).await
}

/// Opens the session of a file for a dry run: the stored session, or a session that is imported into RAM only.
pub(super) async fn open_for_dry_run(
    app: &App,
    builder: impl Fn() -> Builder,
    transcript: &Transcript,
    file: &str,
) -> anyhow::Result<Session> {
    if app.place()?.exists() {
        let memory = app.open_to_read(builder()).await?;
        if let Some(stored) = memory.session_of(transcript).await? {
            let (session, new) = (stored.session, stored.new_entries);
            if new > 0 {
                note(&format!(
                    "the plan leaves out {} of the file: import it to plan with them",
                    count(new, "new entry", "new entries")
                ));
            }
            return Ok(session);
        }
    }
    let memory = builder().store(InMemoryStore::new()).open().await?;
    let main = memory.import(transcript).await?.main;
    let main = main.ok_or_else(|| empty(file))?;
    Ok(memory.get_session(main).await?)
}

/// Returns the error for a file that contains no session.
pub(super) fn empty(file: &str) -> Failure {
    Failure::new(Kind::Empty, format!("{file} is empty"))
}
