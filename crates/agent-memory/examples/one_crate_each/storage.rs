//! `store-sqlite`: an append-only log of messages in a file, or in memory.

use memory_model::{Message, Seq, SeqRange, Timestamp};
use memory_store::{Append, AppendAt, LogRead, NewConversation, NewEntry, Store as _};
use store_sqlite::SqliteOptions;
use token_estimate::TokenEstimator as _;

pub(crate) async fn run() -> crate::Result<String> {
    let store = SqliteOptions::new().in_memory().await?;
    let estimator = token_estimate::default_estimator();
    let new = NewConversation::root("telegram:42", estimator.id(), Timestamp(0));
    let conversation = store.open(&new).await?;
    let text = "Deploy only after the tests are green.";
    let entries = vec![NewEntry::new(Message::user(text), estimator.text(text))];
    let append = Append {
        at: AppendAt::Any,
        estimator: estimator.id(),
        entries,
        now: Timestamp(0),
    };
    store.append(conversation.id, &append).await?;
    let all = LogRead::new(SeqRange::single(Seq::FIRST));
    let page = store.read(conversation.id, &all).await?;
    let [entry] = page.items.as_slice() else {
        return Err("the log has one entry".into());
    };
    assert_eq!(entry.text(), text);
    Ok(format!(
        "message {} of {} tokens, hash {}",
        entry.seq, entry.tokens, entry.hash
    ))
}
