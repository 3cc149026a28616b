//! Refused publishes, which leave everything as it was.

use memory_model::{ConversationId, Span, Summary, ViewName, ViewVersion};
use memory_store::{ErrorKind, Publish, Store};

use crate::builders::{info, spans_of_view};

/// All that a refused publish must leave as it was.
pub(super) async fn state<S: Store>(
    store: &S,
    chat: ConversationId,
) -> (
    memory_store::Conversation,
    Vec<memory_store::ViewInfo>,
    Vec<Span>,
    Vec<Summary>,
    Vec<memory_store::Publication>,
) {
    let view = ViewName::from("dag");
    let history = store.publications(chat, &view, ViewVersion(0), 1_000).await;
    (
        info(store, chat).await,
        store.views(chat).await.unwrap(),
        spans_of_view(store, chat, "dag").await,
        store.summary_log(chat, None, 1_000).await.unwrap().items,
        history.unwrap().items,
    )
}

/// Asserts that the store refuses a publish as invalid and that nothing changes; `what` names the case.
pub(super) async fn refused<S: Store>(
    store: &S,
    chat: ConversationId,
    what: &str,
    publish: &Publish,
) {
    let before = state(store, chat).await;
    let error = match store.publish(chat, publish).await {
        Err(error) => error,
        Ok(published) => panic!("{what}: was not refused but {published:?}"),
    };
    assert_eq!(error.kind(), ErrorKind::Invalid, "{what}: {error}");
    assert_eq!(state(store, chat).await, before, "{what}");
}
