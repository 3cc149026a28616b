//! pi's compactions, answered to its extension: a text in place of all entries before the first that stays.

use agent_memory::{CompactRequest, Memory};
use serde_json::{Value, json};

use super::event::Event;
use super::{answer, appended, rendering};
use crate::app::App;

/// Returns the compaction. `None` leaves it to pi.
pub(super) async fn compact(
    app: &App,
    memory: &Memory,
    event: &Event,
    budget: u64,
) -> anyhow::Result<Option<Value>> {
    let Some(path) = event.transcript() else {
        return Ok(None);
    };
    let Some(key) = appended::import(app, memory, event, path).await? else {
        return Ok(None);
    };
    let session = memory.get_session(key).await?;
    let first = event.first_kept_entry_id.clone().unwrap_or_default();
    let kept = session
        .memory()
        .store()
        .find(session.id(), std::slice::from_ref(&first))
        .await?;
    let Some(kept) = kept.into_iter().flatten().next() else {
        anyhow::bail!("the log does not have the entry {first}, which the compaction keeps first");
    };
    session.compact(CompactRequest::to_fit(budget)).await?;
    let view = session.current_view().await?;
    let Some(text) = rendering::before(app, &view, kept, budget).await? else {
        return Ok(None);
    };
    Ok(Some(json!({
        "summary": answer::marked(&text),
        "firstKeptEntryId": first,
        "tokensBefore": event.tokens_before,
        "details": {"session": session.key().as_str()},
    })))
}
