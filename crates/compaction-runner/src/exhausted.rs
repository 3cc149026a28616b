//! Remembers states of a view that could not be shortened.

use memory_model::Seq;
use memory_store::Snapshot;
use serde::{Deserialize, Serialize};

use crate::environment::{Compaction, Stage};
use crate::error::Result;
use crate::state::{load, save};

/// A state of a view, with policy and summarizer, that could not be shortened.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exhausted {
    head: Seq,
    version: u64,
    policy: String,
}

impl Exhausted {
    fn of(env: &Compaction<'_>, snapshot: &Snapshot) -> Self {
        Self {
            head: snapshot.head,
            version: snapshot.version.0,
            policy: format!(
                "{} {:?} {} {} {} {}",
                env.planner.fingerprint(),
                env.room,
                env.ladder.id(),
                env.summarizer.id(),
                env.accounting.estimator_id(),
                env.instructions.as_deref().unwrap_or_default()
            ),
        }
    }
}

/// Returns whether an earlier run could not shorten exactly this state.
pub(crate) async fn is_exhausted(env: &Compaction<'_>, snapshot: &Snapshot) -> Result<bool> {
    let stored = load::<Exhausted>(env, &key(env)).await?;
    let tried = stored.value;
    Ok(tried.is_some_and(|tried| tried == Exhausted::of(env, snapshot)))
}

/// Stores that this state could not be shortened. If another run stored a value in the meantime, that value is equally
/// valid and is kept.
pub(crate) async fn remember_exhausted(env: &Compaction<'_>, snapshot: &Snapshot) -> Result<()> {
    let key = key(env);
    let stored = load::<Exhausted>(env, &key).await?;
    let tried = Exhausted::of(env, snapshot);
    save(env, &key, stored.revision, Some(&tried)).await?;
    Ok(())
}

fn key(env: &Compaction<'_>) -> String {
    let view = env.view();
    match env.stage {
        Stage::Fit => format!("exhausted/{view}/fit"),
        _ => format!("exhausted/{view}"),
    }
}
