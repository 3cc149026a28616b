//! `store-sqlite`: stores messages in an append-only log, in a file or in memory.

use memory_model::{Clock as _, Message, Seq, SeqRange, SystemClock};
use memory_store::{Append, LogRead, NewConversation, Store as _};
use store_sqlite::SqliteOptions;
use token_estimate::TokenEstimator as _;

pub(crate) async fn run() -> crate::Result<String> {
    let store = SqliteOptions::new().in_memory().await?;
    let (estimator, clock) = (token_estimate::default_estimator(), SystemClock);
    let new = NewConversation::root("telegram:42", estimator.id(), clock.now());
    let conversation = store.open(&new).await?;
    let text = "Deploy only after the tests are green.";
    let append = Append::messages([Message::user(text)], &estimator, clock.now());
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
