//! Laws about losing nothing: all messages are in the log, in order, and every view leads to all of them.

use agent_memory::{
    Message, Session,
    model::{Child, SummaryId},
};

use super::world::Chat;
use super::{Checked, Law, Tally};
use crate::support::Inspect as _;

/// Returns the messages of a session.
pub(crate) async fn log(session: &Session) -> Vec<Message> {
    let entries = session.entries().await.unwrap();
    entries.into_iter().map(|entry| entry.message).collect()
}

/// (d) The log contains all appended messages.
pub(crate) async fn check_log(chat: &Chat, tally: &mut Tally) -> Checked<()> {
    let Chat { session, said, .. } = chat;
    tally.checked(Law::Order, said.len());
    let entries = session.entries().await.unwrap();
    Law::Order.holds(entries.len() == said.len(), || {
        format!(
            "{}: {} messages were said, {} are there",
            session.key(),
            said.len(),
            entries.len()
        )
    })?;
    for (entry, expected) in entries.iter().zip(said) {
        Law::Order.holds(entry.message == *expected, || {
            format!(
                "{}: {} is {entry:?}, not {expected:?}",
                session.key(),
                entry.seq
            )
        })?;
    }
    Ok(())
}

/// Checks (d) the log, (a) the views, (h) the summaries, and the result of `verify`.
pub(crate) async fn check(chat: &Chat, tally: &mut Tally) -> Checked<()> {
    check_log(chat, tally).await?;
    let Chat { session, said, .. } = chat;
    let now = session.current_view().await.unwrap();
    let spans = now.spans().await.unwrap();
    let costs: Vec<u64> = spans.iter().map(|span| span.tokens).collect();
    let mut reached = Vec::new();
    for span in spans {
        match span.body.summary() {
            Some(id) => reach(session, id, &mut reached, 0).await?,
            None => {
                let last = span.range.last.map_or(said.len() as u32, |last| last.0);
                reached.extend(span.range.first.0..=last.min(said.len() as u32));
            }
        }
    }
    tally.checked(Law::Reachable, reached.len());
    let all: Vec<u32> = (1..=said.len() as u32).collect();
    Law::Reachable.holds(reached == all, || {
        format!(
            "{}: the view leads to {reached:?}, not to all",
            session.key()
        )
    })?;

    let cost: u64 = costs.iter().sum();
    Law::Limits.holds(cost == now.tokens(), || {
        format!(
            "{}: the spans cost {cost}, the view {}",
            session.key(),
            now.tokens()
        )
    })?;

    let store = session.memory().store();
    let summaries = store
        .summary_log(session.id(), None, 9_999)
        .await
        .unwrap()
        .items;
    tally.checked(Law::Expansion, summaries.len());
    for summary in summaries {
        let mut reached = Vec::new();
        reach(session, &summary.id, &mut reached, 0).await?;
        let (first, last) = (summary.range.first, summary.range.last);
        let all: Vec<u32> = (first.0..=last.0).collect();
        Law::Expansion.holds(reached == all, || {
            format!(
                "{} covers {}, but leads to {reached:?}",
                summary.id, summary.range
            )
        })?;
    }

    let report = session.verify().await.unwrap();
    tally.checked(Law::Verified, 1);
    let first = report.violations.first();
    Law::Verified.holds(first.is_none(), || format!("{first:?}"))
}

/// Returns the messages to which a summary leads, through its children.
async fn reach(
    session: &Session,
    id: &SummaryId,
    reached: &mut Vec<u32>,
    level: usize,
) -> Checked<()> {
    let found = session.summaries(std::slice::from_ref(id)).await.unwrap();
    let Some(summary) = found.into_iter().flatten().next() else {
        return Err(Law::Expansion.broken(format!("{}: there is no {id}", session.key())));
    };
    Law::Expansion.holds(level < 40, || format!("{id} leads to itself"))?;
    for child in &summary.children {
        match child {
            Child::Messages { range } => reached.extend(range.first.0..=range.last.0),
            Child::Summary { id, .. } => {
                Box::pin(reach(session, id, reached, level + 1)).await?;
            }
        }
    }
    Ok(())
}
