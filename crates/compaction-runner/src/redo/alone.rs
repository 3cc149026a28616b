//! The lease of a redo on its view. No two redos of a view run at the same time: the second would pay a model for
//! summaries that the first replaces.

use memory_model::Timestamp;
use memory_store::{Claim, Fence, JobKey};

use crate::environment::Compaction;
use crate::error::Result;
use crate::in_flight::Taken;
use crate::leases::{claim_all, release};
use crate::watch::Watch;

/// The lease of a redo on its view.
#[derive(Debug)]
pub(super) struct Alone {
    fence: Fence,
    taken: Taken,
}

impl Alone {
    /// Takes the lease. If another redo of the view has it, records that redo's owner in `watch` and returns `None`.
    pub(super) async fn take(env: &Compaction<'_>, watch: &Watch) -> Result<Option<Self>> {
        let key = key(env);
        let now = env.clock.now();
        let taken = match env.in_flight.take(env.conversation, &key, now, end(env)) {
            Ok(taken) => taken,
            Err(until) => {
                watch.record_holder(&env.owner(), until);
                return Ok(None);
            }
        };
        loop {
            match claim(env, &key, watch).await? {
                Some(Claim::Granted(fence) | Claim::Ready(fence, _)) => {
                    return Ok(Some(Self { fence, taken }));
                }
                // Words were erased in the meantime.
                Some(Claim::Outdated) => watch.reads(&env.read_snapshot().await?),
                Some(Claim::Held { .. }) | None => return Ok(None),
            }
        }
    }

    /// Extends the lease. Returns false if another redo has it, because it had ended.
    pub(super) async fn renew(&mut self, env: &Compaction<'_>, watch: &Watch) -> Result<bool> {
        match claim(env, &self.fence.key, watch).await? {
            Some(Claim::Granted(fence) | Claim::Ready(fence, _)) => {
                self.taken.renew(end(env));
                self.fence = fence;
                Ok(true)
            }
            // Words were erased: the run reads the view again, and takes the lease then.
            Some(Claim::Outdated) => Ok(true),
            Some(Claim::Held { .. }) | None => Ok(false),
        }
    }

    /// Gives the lease back.
    pub(super) async fn end(self, env: &Compaction<'_>) -> Result<()> {
        release(env, [self.fence]).await
    }
}

fn key(env: &Compaction<'_>) -> JobKey {
    JobKey(format!("{}/redo", env.view()))
}

/// Returns the time at which a lease that begins now ends.
fn end(env: &Compaction<'_>) -> Timestamp {
    env.clock.now().saturating_add(env.policy.lease())
}

/// Asks the store for the lease. Records the owner that has it in `watch`.
async fn claim(env: &Compaction<'_>, key: &JobKey, watch: &Watch) -> Result<Option<Claim>> {
    let claims = claim_all(env, std::slice::from_ref(key), watch.erasures()).await?;
    let claim = claims.into_iter().next();
    if let Some(Claim::Held { owner, until }) = &claim {
        watch.record_holder(owner, *until);
    }
    Ok(claim)
}
