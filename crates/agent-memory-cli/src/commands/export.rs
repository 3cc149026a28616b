//! `export`: prints a log as JSON lines, or exports sessions as a plain database.

use std::path::Path;

use agent_memory::Session;
use serde_json::json;

use crate::app::App;
use crate::args::Export;
use crate::error::{Failure, Kind};
use crate::kept::KeptTranscripts;
use crate::output::{count, note};
use crate::redact::{self, Redactor};

pub(crate) async fn run(app: &mut App, args: &Export) -> anyhow::Result<()> {
    if let Some(path) = &args.sqlite {
        if args.redact {
            let failure = Failure::new(Kind::Usage, "an export to SQLite cannot be redacted");
            return Err(failure.hint("leave out `--sqlite`: JSON lines can").into());
        }
        return plain(app, args, path).await;
    }
    let [session] = args.sessions.as_slice() else {
        let text = format!(
            "export writes one session's lines, not those of {}",
            args.sessions.len()
        );
        return Err(Failure::new(Kind::Usage, text)
            .hint("name one session, or write a database with `--sqlite FILE`")
            .into());
    };
    let redactor = args.redact.then(Redactor::new).transpose()?;
    let memory = app.open().await?;
    let session = app.session(&memory, session).await?;
    if args.transcript {
        return transcript(app, &session);
    }
    if let Some(redactor) = &redactor {
        redactor.learn_session(&session).await?;
    }
    if args.session_file {
        let file = session.session_file().await?;
        for line in file.lines() {
            redactor.iter().for_each(|redactor| redactor.learn(line));
        }
        for line in file.split_inclusive('\n') {
            app.out.text(&redact::shown(redactor.as_ref(), line))?;
        }
    } else {
        let mut rest = session.info().await?.conversation.range();
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            for entry in &page.items {
                match &redactor {
                    None => app.out.json_line(&entry.to_export())?,
                    Some(redactor) => {
                        let line = serde_json::to_string(&entry.to_export())? + "\n";
                        app.out.json_text(&redactor.text(&line))?;
                    }
                }
            }
            rest = page.next;
        }
    }
    if let Some(redactor) = redactor {
        note(&redactor.report());
    }
    Ok(())
}

/// Prints the kept transcript of a session. If there are several files, all but the last that was written are only named.
fn transcript(app: &mut App, session: &Session) -> anyhow::Result<()> {
    let copies = KeptTranscripts::of(app)?.of_session(session.key())?;
    let Some(last) = copies.last() else {
        let text = format!("no transcript of the session {} is kept", session.key());
        return Err(Failure::new(Kind::NotFound, text)
            .hint("transcripts are kept by `agent-memory hook` and `agent-memory import --keep-transcripts`")
            .into());
    };
    for copy in copies.iter().rev().skip(1) {
        note(&format!("another transcript: {}", copy.path.display()));
    }
    let mut file = crate::files::open(&last.path)?;
    let mut bytes = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut file, &mut bytes)? {
            0 => return Ok(()),
            read => app.out.raw(bytes.get(..read).unwrap_or_default())?,
        }
    }
}

async fn plain(app: &mut App, args: &Export, path: &Path) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let mut keys = Vec::new();
    for session in &args.sessions {
        keys.push(app.session(&memory, session).await?.key().clone());
    }
    let written = memory.export_sqlite(&keys, path).await?;
    memory.close().await?;
    if app.json {
        app.out.json(&json!({
            "file": path.display().to_string(),
            "sessions": written.conversations,
            "messages": written.messages,
            "summaries": written.summaries,
        }))?;
        return Ok(());
    }
    app.out.line(&format!(
        "{}: {}, {}, {}",
        path.display(),
        count(written.conversations, "session", "sessions"),
        count(written.messages, "row of messages", "rows of messages"),
        count(written.summaries, "summary", "summaries"),
    ))?;
    Ok(())
}
