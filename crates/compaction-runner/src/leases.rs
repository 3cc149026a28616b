//! Leases: exclusive claims on jobs (summaries to write). Takes them, also from owners that have ended, and gives them
//! back.

use std::collections::BTreeMap;
use std::time::Duration;

use memory_store::{Claim, ErrorKind, Fence, JobKey, LeaseUpdate, Owner};

use crate::environment::Compaction;
use crate::error::Result;

/// Maximum number of times in succession that one call takes over a lease from an owner that has ended.
const TAKE_OVERS: usize = 4;

/// Update that ends a lease and keeps the draft.
pub(crate) const HAND_BACK: LeaseUpdate = LeaseUpdate::Renew {
    ttl: Duration::ZERO,
};

/// Takes leases (exclusive claims) on jobs in one call, also from owners that have ended.
pub(crate) async fn claim_all(
    env: &Compaction<'_>,
    keys: &[JobKey],
    erasures: u64,
) -> Result<Vec<Claim>> {
    let mut claims = claim_as(env, &env.owner(), keys, erasures).await?;
    for _ in 0..TAKE_OVERS {
        let gone = held_by_gone(env, keys, &claims);
        if gone.is_empty() {
            break;
        }
        for (holder, keys) in &gone {
            tracing::info!(holder = %holder, "leases are taken over from a process that is gone");
            give_back(env, &Owner(holder.clone()), keys, erasures).await?;
        }
        let freed: Vec<JobKey> = gone.into_values().flatten().collect();
        let mut again = claim_as(env, &env.owner(), &freed, erasures)
            .await?
            .into_iter();
        for key in freed {
            let place = keys.iter().position(|known| *known == key);
            let place = place.and_then(|index| claims.get_mut(index));
            if let (Some(place), Some(claim)) = (place, again.next()) {
                *place = claim;
            }
        }
    }
    Ok(claims)
}

/// Returns the jobs that are leased by owners that have ended, by owner.
fn held_by_gone(
    env: &Compaction<'_>,
    keys: &[JobKey],
    claims: &[Claim],
) -> BTreeMap<String, Vec<JobKey>> {
    let mut gone: BTreeMap<String, Vec<JobKey>> = BTreeMap::new();
    for (key, claim) in keys.iter().zip(claims) {
        if let Claim::Held { owner, .. } = claim
            && env.liveness.is_gone(owner)
        {
            gone.entry(owner.0.clone()).or_default().push(key.clone());
        }
    }
    gone
}

/// Ends the leases of an owner that has ended. Takes the leases under the name of this owner, which the store grants,
/// and gives them back. Keeps the drafts.
async fn give_back(
    env: &Compaction<'_>,
    holder: &Owner,
    keys: &[JobKey],
    erasures: u64,
) -> Result<()> {
    let claims = claim_as(env, holder, keys, erasures).await?;
    let fences = claims.into_iter().filter_map(|claim| match claim {
        Claim::Granted(fence) | Claim::Ready(fence, _) => Some(fence),
        Claim::Held { .. } | Claim::Outdated => None,
    });
    hand_back(env, fences).await
}

async fn claim_as(
    env: &Compaction<'_>,
    owner: &Owner,
    keys: &[JobKey],
    erasures: u64,
) -> Result<Vec<Claim>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let ttl = env.policy.lease();
    let claims = env
        .store
        .claim_all(env.conversation, keys, owner, ttl, erasures);
    Ok(claims.await?)
}

/// Gives back the leases on finished jobs that were not published. The next owner gets their drafts (summaries that are
/// not published yet).
pub(crate) async fn hand_back(
    env: &Compaction<'_>,
    fences: impl IntoIterator<Item = Fence>,
) -> Result<()> {
    let settled = fences.into_iter().map(|fence| (fence, HAND_BACK));
    settle_all(env, settled.collect()).await
}

/// Gives back the leases on jobs that are no longer needed, and deletes their drafts (summaries that are not published
/// yet).
pub(crate) async fn release(
    env: &Compaction<'_>,
    fences: impl IntoIterator<Item = Fence>,
) -> Result<()> {
    let settled = fences
        .into_iter()
        .map(|fence| (fence, LeaseUpdate::Release));
    settle_all(env, settled.collect()).await
}

/// Updates leases (exclusive claims on jobs) in one call. Skips jobs that another owner has taken in the meantime.
pub(crate) async fn settle_all(
    env: &Compaction<'_>,
    settled: Vec<(Fence, LeaseUpdate)>,
) -> Result<()> {
    if settled.is_empty() {
        return Ok(());
    }
    for answer in env.store.settle_all(&settled).await? {
        match answer {
            Err(error) if error.kind() != ErrorKind::Stale => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}
