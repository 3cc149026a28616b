//! The process that does the work of an event.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_memory::{CompactRequest, Memory, Mode, SessionKey};

use tokio::time::Instant;

use super::answer;
use super::door::Door;
use super::event::Event;
use super::log::{Log, Outcome};
use super::{appended, claude, opencode, pi};
use crate::app::App;
use crate::args::Hook;
use crate::commands::import;
use crate::files;
use crate::kept::KeptTranscripts;
use crate::progress::Progress;

/// Maximum wait for the worker of another event, before an event is answered and after it.
const SHORT_WAIT: Duration = Duration::from_secs(1);
const LONG_WAIT: Duration = Duration::from_secs(60);

/// Does the work of the event on stdin, and logs the outcome.
pub(super) async fn run(app: &mut App, args: &Hook) {
    let mut text = Vec::new();
    if std::io::stdin().lock().read_to_end(&mut text).is_err() {
        return;
    }
    let began = Instant::now();
    let event = Event::parse(&text, args.agent.as_deref());
    let outcome = match &event {
        None => Outcome::Failed("the event is no JSON object with hook_event_name".to_owned()),
        Some(event) => match work(app, args, event, began).await {
            Ok(detail) => Outcome::Done(detail),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        },
    };
    if let Some(log) = Log::of(app) {
        log.add(event.as_ref(), began.elapsed(), &outcome);
    }
}

/// Answers an event and does the rest. Returns details for the log.
async fn work(app: &mut App, args: &Hook, event: &Event, began: Instant) -> anyhow::Result<String> {
    let place = app.place()?;
    place.prepare()?;
    // The lock only saves work, so an event goes on without it.
    let (lock, no_lock) = match files::open_private(&place.beside("-hook.lock")) {
        Ok(lock) => (Some(lock), None),
        Err(error) => (None, Some(error)),
    };
    let is_locked = locked(lock.as_ref(), SHORT_WAIT).await;
    let progress = Arc::new(Progress::new(true));
    let memory = app.open_for_writing(&progress, |builder| builder).await?;
    let answered = match event.name.as_str() {
        "session.compact" => claude::compact(app, &memory, event, args.budget).await,
        "session_before_compact" => pi::compact(app, &memory, event, args.budget).await,
        "chat.messages.transform" => opencode::rewrite(app, &memory, event, args.budget).await,
        _ => {
            let key = import_transcript(app, &memory, event).await;
            match key {
                Ok(Some(key)) if event.compacts() => {
                    let session = memory.get_session(key).await?;
                    Door::of(&session).await?.lose_card(&session).await?;
                    Ok(None)
                }
                Ok(Some(key)) if event.wants_card() => card(app, &memory, key, event).await,
                Ok(_) => Ok(None),
                Err(error) => Err(error),
            }
        }
    };
    let took = began.elapsed().as_millis();
    // The answer is one line. Nobody may be there to read it any more.
    let text = match &answered {
        Ok(Some(answer)) => serde_json::to_string(answer)?,
        _ => String::new(),
    };
    let _ = app.out.raw(format!("{text}\n").as_bytes());
    let _ = app.out.flush();
    answered?;
    if !is_locked {
        locked(lock.as_ref(), LONG_WAIT).await;
    }
    // The last answer of a turn is in no request until the next turn.
    if matches!(
        event.name.as_str(),
        "chat.messages.transform" | "session.idle"
    ) {
        opencode::store(app, &memory, event).await?;
    }
    let sub_agents = import_sub_agents(app, &memory, event).await;
    let kept = keep(app, &memory, event, args).await?;
    // Compactions of several processes share their work without this lock.
    if let Some(lock) = lock {
        lock.unlock()?;
    }
    let mut detail = format!("answered in {took} ms with {} bytes", text.len());
    if let Some(error) = no_lock {
        detail.push_str(&format!("; without a lock: {error}"));
    }
    if let Some(kept) = kept {
        detail.push_str(&format!("; {kept}"));
    }
    if let Some(session) = memory.find_session(event.session_id.as_str()).await? {
        let session = session.in_use().await?;
        let done = session.compact(CompactRequest::from(Mode::Full)).await?;
        if let made @ 1.. = done.published.total() {
            detail.push_str(&format!("; {made} summaries made"));
        }
    }
    sub_agents?;
    Ok(detail)
}

/// Keeps an event's transcript, and removes old ones at the end of a session. Returns details for the log.
async fn keep(
    app: &App,
    memory: &Memory,
    event: &Event,
    args: &Hook,
) -> anyhow::Result<Option<String>> {
    let transcripts = KeptTranscripts::of(app)?;
    let path = event.transcript();
    let session = memory.find_session(event.session_id.as_str()).await?;
    if let (Some(path), Some(session)) = (path, session) {
        transcripts.keep(&session, path).await?;
    }
    if event.name != "SessionEnd" || (args.transcript_days, args.transcript_mib) == (None, None) {
        return Ok(None);
    }
    let day = Duration::from_secs(24 * 60 * 60);
    let age = args.transcript_days.map(|days| day.saturating_mul(days));
    let bytes = args.transcript_mib.map(|mib| u64::from(mib) << 20);
    let removed = transcripts.limit(age, bytes)?;
    let names = removed
        .iter()
        .map(|copy| format!("{} ({} bytes)", copy.path.display(), copy.bytes));
    let names: Vec<String> = names.collect();
    Ok((!names.is_empty()).then(|| format!("removed kept transcripts: {}", names.join(", "))))
}

/// Waits for the lock, up to a limit. The lock only saves work: without it, two imports store the same entries once.
async fn locked(file: Option<&File>, limit: Duration) -> bool {
    let Some(file) = file else {
        return true;
    };
    let until = Instant::now() + limit;
    loop {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::Error(_)) => return false,
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return false,
            Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Imports the new records of an event's transcript. Returns the key of its main session.
async fn import_transcript(
    app: &App,
    memory: &Memory,
    event: &Event,
) -> anyhow::Result<Option<SessionKey>> {
    match event.transcript() {
        Some(path) => appended::import(app, memory, event, path).await,
        None => {
            let session = memory.find_session(event.session_id.as_str()).await?;
            match session {
                Some(session) => Ok(Some(session.in_use().await?.key().clone())),
                None => Ok(None),
            }
        }
    }
}

/// Imports the transcripts of the sub-agents of a session that ends. One that cannot be imported leaves the others.
async fn import_sub_agents(app: &App, memory: &Memory, event: &Event) -> anyhow::Result<()> {
    let is_ending = matches!(event.name.as_str(), "SessionEnd" | "SubagentStop");
    let mut done = Ok(());
    let path = event.transcript_path.as_deref().filter(|_| is_ending);
    for path in path.into_iter().flat_map(sub_agents) {
        let imported = async {
            let transcript = import::read(&path, &import::options(app, None))?;
            memory.import(&transcript).await?;
            anyhow::Ok(())
        };
        done = done.and(imported.await);
    }
    done
}

/// Returns the transcripts of a session's sub-agents, which Claude Code keeps in a folder next to the session's own.
/// Links and pipes, of which nobody may ever write to the other end, are left out.
fn sub_agents(path: &Path) -> Vec<PathBuf> {
    let folder = path.with_extension("").join("subagents");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .filter(|path| files::is_regular(path))
        .collect()
}

/// Returns the outline of a session after a compaction or a resumption.
async fn card(
    app: &App,
    memory: &Memory,
    key: SessionKey,
    event: &Event,
) -> anyhow::Result<Option<serde_json::Value>> {
    let session = memory.get_session(key).await?;
    let mut door = Door::of(&session).await?;
    if door.has_card(&session, event).await? {
        return Ok(None);
    }
    let Some(text) = answer::card(app, &session).await? else {
        return Ok(None);
    };
    door.give_card(&session).await?;
    Ok(Some(serde_json::json!({
        "hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}
    })))
}
