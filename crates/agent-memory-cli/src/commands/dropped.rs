//! What new summaries tell nothing of, and how to get it back.

use agent_memory::handoff::left_out;
use agent_memory::{Role, Seq, Session, SummaryId};
use serde::Serialize;

use crate::app::App;
use crate::output::{count, number, one_line, table};

/// A message of which the summary that covers it tells nothing.
#[derive(Debug, Serialize)]
pub(super) struct Dropped {
    seq: Seq,
    role: Role,
    tokens: u64,
    start: String,
    /// What to expand to read it.
    expand: String,
}

/// Returns the messages of which summaries tell nothing, oldest first.
pub(super) async fn find(session: &Session, ids: &[SummaryId]) -> anyhow::Result<Vec<Dropped>> {
    let shown = session.spans().await?;
    let shown: Vec<&SummaryId> = shown
        .iter()
        .filter_map(|span| span.body.summary())
        .collect();
    let mut dropped = Vec::new();
    for summary in session.summaries(ids).await?.into_iter().flatten() {
        // Of summaries that a later one of the same run has folded, that one tells.
        if !shown.contains(&&summary.id) {
            continue;
        }
        let mut rest = Some(summary.range);
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            let left_out = left_out(summary.text(), &page.items);
            dropped.extend(left_out.into_iter().map(|message| Dropped {
                seq: message.seq,
                role: message.role,
                tokens: message.tokens,
                start: message.start,
                expand: format!("message:{}", message.seq),
            }));
            rest = page.next;
        }
    }
    Ok(dropped)
}

/// Prints the messages of which summaries tell nothing, and how to get them back.
pub(super) fn print(app: &mut App, key: &str, dropped: &[Dropped]) -> anyhow::Result<()> {
    const LISTED: usize = 20;
    let tokens = dropped.iter().map(|message| message.tokens).sum();
    app.out.line(&format!(
        "The new summaries tell nothing of {}, {}:",
        count(dropped.len() as u64, "message", "messages"),
        count(tokens, "token", "tokens"),
    ))?;
    let rows: Vec<Vec<String>> = dropped
        .iter()
        .take(LISTED)
        .map(|message| {
            vec![
                message.expand.clone(),
                message.role.to_string(),
                number(message.tokens),
                one_line(&message.start).into_owned(),
            ]
        })
        .collect();
    app.out.text(&table(&rows))?;
    if dropped.len() > LISTED {
        let more = count((dropped.len() - LISTED) as u64, "more", "more");
        app.out.line(&format!("  and {more}; --json lists all"))?;
    }
    if let Some(first) = dropped.first() {
        let command = app.command(&["expand"], &[key, &first.expand]);
        app.out.line(&format!("To read one: {command}"))?;
    }
    Ok(())
}
