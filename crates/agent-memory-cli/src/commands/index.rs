//! `index`: makes the search index of a session.

use serde::Serialize;

use crate::app::App;
use crate::args::Index;
use crate::output::count;

#[derive(Debug, Serialize)]
struct Answer {
    session: String,
    messages: u64,
    summaries: u64,
    segments: u64,
    indexed: u64,
}

pub(crate) async fn run(app: &mut App, args: &Index) -> anyhow::Result<()> {
    let memory = app.open_to_change().await?;
    let session = app.session(&memory, &args.session).await?;
    let progress = match args.rebuild {
        true => session.rebuild_index().await?,
        false => session.index().await?,
    };
    let (segments, indexed) = session.index_size().await?;
    let answer = Answer {
        session: session.key().to_string(),
        messages: progress.messages,
        summaries: progress.summaries,
        segments,
        indexed,
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
    Ok(app.out.line(&line)?)
}
