//! Asserts that a refused publish has no effect.

use memory_model::{Span, Summary};
use memory_store::{Conversation, ErrorKind, Publication, Publish, Store, ViewInfo};

use crate::chat::Chat;

/// All data that a refused publish must not change.
#[derive(Debug, PartialEq)]
pub(super) struct Everything {
    info: Conversation,
    views: Vec<ViewInfo>,
    spans: Vec<Span>,
    summaries: Vec<Summary>,
    publications: Vec<Publication>,
}

impl<S: Store + ?Sized> Chat<'_, S> {
    pub(super) async fn everything(&self) -> Everything {
        Everything {
            info: self.info().await,
            views: self.views().await,
            spans: self.spans("dag").await,
            summaries: self.summary_log().await,
            publications: self.publications("dag").await,
        }
    }

    /// Asserts that the store refuses a publish as invalid and that no data change. `what` names the case in a failure.
    pub(super) async fn refuses(&self, what: &str, publish: &Publish) {
        let before = self.everything().await;
        let error = match self.store.publish(self.id, publish).await {
            Err(error) => error,
            Ok(published) => panic!("{what}: was not refused but {published:?}"),
        };
        assert_eq!(error.kind(), ErrorKind::Invalid, "{what}: {error}");
        assert_eq!(self.everything().await, before, "{what}");
    }
}
