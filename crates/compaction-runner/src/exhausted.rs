//! Remembering states in which nothing could be made shorter.

use memory_model::{RawJson, Seq};
use memory_store::Snapshot;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::run::{Compaction, Stage};

/// A state in which nothing could be made shorter.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exhausted {
    head: Seq,
    version: u64,
    policy: String,
}

impl Compaction<'_> {
    fn exhausted_key(&self) -> String {
        let view = self.planner.view();
        match self.stage {
            Stage::Fit => format!("exhausted/{view}/fit"),
            _ => format!("exhausted/{view}"),
        }
    }

    fn exhausted_at(&self, snapshot: &Snapshot) -> Exhausted {
        Exhausted {
            head: snapshot.head,
            version: snapshot.version.0,
            policy: format!(
                "{} {:?} {} {} {} {}",
                self.planner.fingerprint(),
                self.room,
                self.ladder.id(),
                self.summarizer.id(),
                self.accounting.estimator_id(),
                self.instructions.as_deref().unwrap_or_default()
            ),
        }
    }

    /// Whether this very state was tried before and nothing could be made shorter.
    pub(crate) async fn exhausted(&self, snapshot: &Snapshot) -> Result<bool> {
        let state = self
            .store
            .state(self.conversation, &self.exhausted_key())
            .await?;
        let found = state.and_then(|s| serde_json::from_str::<Exhausted>(s.value.as_str()).ok());
        Ok(found.is_some_and(|found| found == self.exhausted_at(snapshot)))
    }

    pub(crate) async fn remember_exhausted(&self, snapshot: &Snapshot) -> Result<()> {
        let key = self.exhausted_key();
        let state = self.store.state(self.conversation, &key).await?;
        let revision = state.map_or(0, |state| state.revision);
        let Ok(value) = RawJson::from_value(&self.exhausted_at(snapshot)) else {
            return Ok(());
        };
        match self
            .store
            .put_state(self.conversation, &key, revision, Some(&value))
            .await
        {
            // Somebody else remembered something meanwhile: theirs is as good.
            Err(error) if error.kind() == memory_store::ErrorKind::Stale => Ok(()),
            result => result.map(|_| ()).map_err(Into::into),
        }
    }
}
