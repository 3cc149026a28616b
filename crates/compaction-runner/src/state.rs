//! Values of the runner in the store: JSON under a key. A write succeeds only over the revision that was read.

use memory_model::RawJson;
use memory_store::ErrorKind;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::environment::Compaction;
use crate::error::Result;

/// A stored value with its revision.
#[derive(Debug)]
pub(crate) struct Stored<T> {
    /// The value. `None` if there is no value, or if it cannot be parsed.
    pub(crate) value: Option<T>,
    /// Revision that the next write must replace. 0 if there is no stored value.
    pub(crate) revision: u64,
}

/// Reads the value under a key.
pub(crate) async fn load<T: DeserializeOwned>(
    env: &Compaction<'_>,
    key: &str,
) -> Result<Stored<T>> {
    let state = env.store.state(env.conversation, key).await?;
    Ok(Stored {
        value: state
            .as_ref()
            .and_then(|state| serde_json::from_str(state.value.as_str()).ok()),
        revision: state.map_or(0, |state| state.revision),
    })
}

/// Sets or removes the value under a key, and returns the new revision. If another writer changed the value since
/// `revision` was read, returns `None` without a write.
pub(crate) async fn save<T: Serialize + Sync>(
    env: &Compaction<'_>,
    key: &str,
    revision: u64,
    value: Option<&T>,
) -> Result<Option<u64>> {
    let value = match value.map(RawJson::from_value) {
        None => None,
        Some(Ok(value)) => Some(value),
        Some(Err(_)) => return Ok(None),
    };
    let put = env
        .store
        .put_state(env.conversation, key, revision, value.as_ref());
    match put.await {
        Ok(revision) => Ok(Some(revision)),
        Err(error) if error.kind() == ErrorKind::Stale => Ok(None),
        Err(error) => Err(error.into()),
    }
}
