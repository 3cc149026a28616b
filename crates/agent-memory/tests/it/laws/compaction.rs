//! Laws of compactions: they make the view cheaper, keep the tail, and reach a state without work.

use agent_memory::{
    DagPolicy, Mode,
    compaction::StopReason,
    model::{SpanBody, ViewVersion},
};
use memory_model::SpanStart;

use super::ops::Behaviour;
use super::stage::Sabotage;
use super::world::{Chat, World};
use super::{Checked, Law, Tally};
use crate::support::Inspect as _;

/// State of a session before a compaction.
pub(crate) struct Before {
    pub(crate) version: ViewVersion,
}

impl Before {
    pub(crate) async fn of(chat: &Chat) -> Before {
        let now = chat.session.snapshot().await.unwrap();
        Before {
            version: now.version,
        }
    }
}

/// (e) A summary costs less than its source.
pub(crate) async fn check_shrinking(chat: &Chat, tally: &mut Tally) -> Checked<()> {
    let store = chat.session.memory().store();
    let summaries = store
        .summary_log(chat.session.id(), None, 9_999)
        .await
        .unwrap()
        .items;
    tally.checked(Law::Shrinking, summaries.len());
    for summary in summaries {
        Law::Shrinking.holds(summary.tokens < summary.source_tokens, || {
            let (tokens, source) = (summary.tokens, summary.source_tokens);
            format!(
                "{} costs {tokens} tokens, and its source {source}",
                summary.id
            )
        })?;
    }
    Ok(())
}

/// (g) The last messages are not compacted, even if there are fewer than the policy keeps.
pub(crate) async fn check_tail(
    chat: &Chat,
    before: &Before,
    policy: &DagPolicy,
    tally: &mut Tally,
) -> Checked<()> {
    let tail = policy.fresh_tail;
    if tail.max_tokens.is_some() || tail.max_part.is_some() {
        // The limits may leave less; but the newest message always stays.
        return within(chat, before, 1, tally).await;
    }
    within(chat, before, tail.messages.max(1), tally).await
}

async fn within(chat: &Chat, before: &Before, tail: usize, tally: &mut Tally) -> Checked<()> {
    let tail = u32::try_from(tail).unwrap();
    let head = chat.session.snapshot().await.unwrap().head;
    let free = head.0.saturating_sub(tail);
    let made = chat
        .session
        .publications(before.version, 9_999)
        .await
        .unwrap()
        .items;
    tally.checked(Law::Tail, made.len());
    // A fork may inherit summaries of what is now its tail, and condense those.
    let leaf = |row: &SpanStart| matches!(row.body, SpanBody::Summary { depth: 0, .. });
    for publication in made.into_iter().filter(|made| made.added.iter().any(leaf)) {
        Law::Tail.holds(publication.at.last.0 <= free, || {
            format!(
                "{}: {} was compacted, but of {} messages the newest {tail} stay",
                chat.session.key(),
                publication.at,
                head
            )
        })?;
    }
    Ok(())
}

/// (i) A compaction without work changes nothing.
pub(crate) async fn check_idempotence(world: &mut World) -> Checked<()> {
    world.model.behave(&[Behaviour::Good], None);
    for chat in &world.chats {
        let session = &chat.session;
        let first = session.compact(Mode::Full).await.unwrap();
        if !matches!(
            first.stop_reason,
            StopReason::NothingEligible | StopReason::Exhausted
        ) {
            continue;
        }
        let before = state(chat).await;
        if world.sabotage == Some(Sabotage::Restless) {
            session.revert_to(ViewVersion(0)).await.unwrap();
        }
        let again = session.compact(Mode::Full).await.unwrap();
        world.tally.checked(Law::Idempotence, 1);
        let after = state(chat).await;
        Law::Idempotence.holds(before == after && again.published.total() == 0, || {
            format!(
                "{}: {before:?} became {after:?} by {again:?}",
                session.key()
            )
        })?;
    }
    Ok(())
}

/// Returns the data that a compaction may change: spans, version, cost, and number of summaries.
async fn state(chat: &Chat) -> (Vec<agent_memory::model::Span>, u64, u64, usize) {
    let now = chat.session.current_view().await.unwrap();
    let store = chat.session.memory().store();
    let summaries = store
        .summary_log(chat.session.id(), None, 9_999)
        .await
        .unwrap();
    let spans = now.spans().await.unwrap();
    (spans, now.version().0, now.tokens(), summaries.items.len())
}
