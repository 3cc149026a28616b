//! Who holds a job, and what becomes of the jobs of a process that is gone.

use std::fmt;

use memory_model::Timestamp;
use memory_store::{Claim, JobKey, Owner};
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
    /// When the lease ends unless it is renewed, in microseconds since 1970.
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

impl Compaction<'_> {
    /// Claims a job, also from an owner that is gone.
    pub(crate) async fn claim(&self, key: &JobKey, now: Timestamp) -> Result<Claim> {
        let mut claimed = self.claim_as(&self.owner, key, now).await?;
        for _ in 0..TAKE_OVERS {
            let holder = match &claimed {
                Claim::Held { owner, .. } if self.liveness.is_gone(owner) => owner.clone(),
                _ => break,
            };
            tracing::info!(holder = %holder.0, "a lease is taken over from a process that is gone");
            // An owner that asks again is granted its job. What it has prepared is kept.
            match self.claim_as(&holder, key, now).await? {
                Claim::Granted(fence) | Claim::Ready(fence, _) => {
                    self.hand_back(Some(fence)).await?;
                }
                Claim::Held { .. } => {}
            }
            // Later than the end of the lease that was just handed back.
            let now = self.clock.now();
            claimed = self.claim_as(&self.owner, key, now).await?;
        }
        Ok(claimed)
    }

    async fn claim_as(&self, owner: &Owner, key: &JobKey, now: Timestamp) -> Result<Claim> {
        let ttl_micros = self.policy.lease_micros;
        let claim = self
            .store
            .claim(self.conversation, key, owner, now, ttl_micros);
        Ok(claim.await?)
    }
}
