//! Who holds a job, and what becomes of the jobs of a process that is gone.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use memory_model::Timestamp;
use memory_store::{Claim, ErrorKind, Fence, JobKey, LeaseUpdate, Owner};
use serde::Serialize;

use crate::error::Result;
use crate::run::Compaction;

/// How often a job is taken over from owners that are gone, one after the other.
const TAKE_OVERS: usize = 4;

/// Decides whether an owner of leases is gone.
pub trait Liveness: Send + Sync + fmt::Debug {
    /// Returns whether this owner has ended for certain. Its leases are then taken over at once;
    /// otherwise they last until their time is over.
    fn is_gone(&self, owner: &Owner) -> bool;
}

/// Knows nothing: leases last until their time is over.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownLiveness;

impl Liveness for UnknownLiveness {
    fn is_gone(&self, _: &Owner) -> bool {
        false
    }
}

/// The owner of a job that another run was kept from, and the end of its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HeldBy {
    /// The owner's name.
    pub owner: String,
    /// When the lease ends unless it is renewed, by the store's own time, in microseconds since 1970.
    pub until: Timestamp,
}

impl HeldBy {
    pub(crate) fn new(owner: &Owner, until: Timestamp) -> Self {
        Self {
            owner: owner.0.clone(),
            until,
        }
    }
}

/// Ends a lease and keeps what was prepared under it.
pub(crate) fn handed_back() -> LeaseUpdate {
    LeaseUpdate::Renew {
        ttl: Duration::ZERO,
    }
}

impl Compaction<'_> {
    /// Claims jobs in one call, also from owners that are gone.
    pub(crate) async fn claim_all(&self, keys: &[JobKey]) -> Result<Vec<Claim>> {
        let mut claims = self.claim_as(&self.owner, keys).await?;
        for _ in 0..TAKE_OVERS {
            let gone = self.held_by_gone(keys, &claims);
            if gone.is_empty() {
                break;
            }
            for (holder, keys) in &gone {
                tracing::info!(holder = %holder, "leases are taken over from a process that is gone");
                self.give_back(&Owner(holder.clone()), keys).await?;
            }
            let freed: Vec<JobKey> = gone.into_values().flatten().collect();
            let mut again = self.claim_as(&self.owner, &freed).await?.into_iter();
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

    /// The jobs that owners hold which are gone, by owner.
    fn held_by_gone(&self, keys: &[JobKey], claims: &[Claim]) -> BTreeMap<String, Vec<JobKey>> {
        let mut gone: BTreeMap<String, Vec<JobKey>> = BTreeMap::new();
        for (key, claim) in keys.iter().zip(claims) {
            if let Claim::Held { owner, .. } = claim
                && self.liveness.is_gone(owner)
            {
                gone.entry(owner.0.clone()).or_default().push(key.clone());
            }
        }
        gone
    }

    /// Gives back the jobs of an owner that is gone. An owner that asks again is granted its job;
    /// what it has prepared is kept.
    async fn give_back(&self, holder: &Owner, keys: &[JobKey]) -> Result<()> {
        let claims = self.claim_as(holder, keys).await?;
        let fences = claims.into_iter().filter_map(|claim| match claim {
            Claim::Granted(fence) | Claim::Ready(fence, _) => Some(fence),
            Claim::Held { .. } => None,
        });
        self.hand_back(fences).await
    }

    async fn claim_as(&self, owner: &Owner, keys: &[JobKey]) -> Result<Vec<Claim>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let ttl = self.policy.lease();
        let claims = self.store.claim_all(self.conversation, keys, owner, ttl);
        Ok(claims.await?)
    }

    /// Gives jobs back whose work is done but not published: whoever claims them next has it.
    pub(crate) async fn hand_back(&self, fences: impl IntoIterator<Item = Fence>) -> Result<()> {
        self.settle_all(fences.into_iter().map(|fence| (fence, handed_back())))
            .await
    }

    /// Gives jobs back that nobody wants any more, with what was prepared for them.
    pub(crate) async fn release(&self, fences: impl IntoIterator<Item = Fence>) -> Result<()> {
        let released = fences
            .into_iter()
            .map(|fence| (fence, LeaseUpdate::Release));
        self.settle_all(released).await
    }

    /// Settles jobs in one call. One that somebody else has by now is theirs to settle.
    pub(crate) async fn settle_all(
        &self,
        settled: impl Iterator<Item = (Fence, LeaseUpdate)>,
    ) -> Result<()> {
        let settled: Vec<(Fence, LeaseUpdate)> = settled.collect();
        if settled.is_empty() {
            return Ok(());
        }
        for answer in self.store.settle_all(&settled).await? {
            match answer {
                Err(error) if error.kind() != ErrorKind::Stale => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }
}
