//! `index`: updates or rebuilds the search index of a session.

use serde::Serialize;

use crate::app::App;
use crate::args::Index;
use crate::output::count;

#[derive(Debug, Serialize)]
struct IndexReport {
    session: String,
    messages: u64,
    summaries: u64,
    segments: u64,
    indexed: u64,
    /// Number of messages that got a vector; `None` if no table was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<u64>,
}

pub(crate) async fn run(app: &mut App, args: &Index) -> anyhow::Result<()> {
    let memory = app.open_to_index(&args.vectors.read()?).await?;
    let session = app.session(&memory, &args.session).await?;
    let progress = match args.rebuild {
        true => session.index().rebuild().await?,
        false => session.index().update().await?,
    };
    let vectors = match args.vectors.table {
        Some(_) => Some(session.index().embed().await?.messages),
        None => None,
    };
    let size = session.index().size().await?;
    let answer = IndexReport {
        session: session.key().to_string(),
        messages: progress.messages,
        summaries: progress.summaries,
        segments: size.segments,
        indexed: size.documents,
        vectors,
    };
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    let line = format!(
        "indexed {} and {}: {} in {}",
        count(answer.messages, "message", "messages"),
        count(answer.summaries, "summary", "summaries"),
        count(answer.indexed, "text", "texts"),
        count(answer.segments, "segment", "segments"),
    );
    app.out.line(&line)?;
    if let Some(vectors) = answer.vectors {
        let messages = count(vectors, "message", "messages");
        app.out.line(&format!("made vectors of {messages}"))?;
    }
    Ok(())
}
