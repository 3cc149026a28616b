//! Erases words from any store, and shows raw messages in place of erased summaries.

use std::collections::BTreeSet;

use memory_model::{ConversationId, Seq, SeqRange, Span, SpanBody, SummaryId, Timestamp, ViewName};

use crate::erasure::{Erase, Erased};
use crate::error::{Error, ErrorKind, Result};
use crate::read::read_spans;
use crate::store::Store;
use crate::types::{ConversationRef, Publish, Published};

/// Replaces erased summaries by their raw messages in all views that show the erased words. Contexts then contain the
/// remaining messages, and the next compaction summarizes them again.
async fn open_erased_spans<S: Store + ?Sized>(
    store: &S,
    erased: &Erased,
    now: Timestamp,
) -> Result<()> {
    for seen in &erased.seen_by {
        let id = seen.conversation;
        let gone = store.erasures(id).await?.summaries;
        for view in store.views(id).await? {
            // Another publisher may change the view first: then the view is read again.
            while !open_in_view(store, id, &view.name, &gone, now).await? {}
        }
    }
    Ok(())
}

/// Replaces the summaries `gone` in a view by their raw messages. Returns `false` if another publisher changed a span
/// first or words were erased meanwhile.
async fn open_in_view<S: Store + ?Sized>(
    store: &S,
    conversation: ConversationId,
    view: &ViewName,
    gone: &BTreeSet<SummaryId>,
    now: Timestamp,
) -> Result<bool> {
    let snapshot = store.snapshot(conversation, view).await?;
    let all = SeqRange::new(Seq::FIRST, snapshot.head);
    let mut publishes = Vec::new();
    for span in read_spans(store, &snapshot, all).await? {
        let SpanBody::Summary { id, .. } = &span.body else {
            continue;
        };
        if let Some(at) = span.range.up_to(snapshot.head)
            && gone.contains(id)
        {
            let raw = Span {
                body: SpanBody::Raw,
                tokens: 0,
                ..span.clone()
            };
            publishes.push(Publish {
                view: view.clone(),
                at,
                expect: vec![span],
                spans: vec![raw],
                summaries: Vec::new(),
                fence: None,
                erasures: snapshot.erasures,
                now,
            });
        }
    }
    let mut all_open = true;
    for outcome in store.publish_all(conversation, &publishes).await? {
        all_open &= !matches!(outcome?, Published::Lost { .. } | Published::Outdated);
    }
    Ok(all_open)
}

/// Erases words with [`Store::erase`], and then replaces erased summaries by their raw messages in the views that show
/// them. Contexts then contain the remaining messages, and the next compaction summarizes them again.
///
/// # Errors
/// The errors of [`Store::erase`] and, if a view changes, of [`Store::publish`].
pub async fn erase<S: Store + ?Sized>(
    store: &S,
    which: &ConversationRef,
    erase: &Erase,
) -> Result<Erased> {
    let found = store.conversation(which).await?;
    let found = found.ok_or_else(|| {
        let message = format!("there is no conversation {which:?}: list them to find its name");
        Error::new(ErrorKind::NotFound, message)
    })?;
    if erase.dry_run {
        return store.erase(found.id, erase).await;
    }
    let outcome = store.erase(found.id, erase).await;
    let concerned = match &outcome {
        Ok(erased) => erased.clone(),
        // The erasure is recorded. Views do not wait until the bytes are gone.
        Err(error) if error.kind() == ErrorKind::NotGone => {
            let dry = erase.clone().with_dry_run(true);
            store.erase(found.id, &dry).await?
        }
        Err(_) => return outcome,
    };
    open_erased_spans(store, &concerned, erase.now).await?;
    outcome
}
