//! Leases (exclusive claims on jobs, such as summaries to write) in the reference store.

use memory_model::Timestamp;

use super::Record;
use crate::checks::lease_lost;
use crate::error::Result;
use crate::types::{Claim, Fence, JobKey, LeaseUpdate, Owner};

impl Record {
    pub(super) fn claim(
        &mut self,
        key: &JobKey,
        owner: &Owner,
        now: Timestamp,
        until: Timestamp,
    ) -> Claim {
        let job = self.jobs.entry(key.clone()).or_default();
        if let Some((holder, until)) = &job.holder
            && *until > now
            && holder != owner
        {
            return Claim::Held {
                owner: holder.clone(),
                until: *until,
            };
        }
        self.fences += 1;
        job.token = self.fences;
        job.holder = Some((owner.clone(), until));
        let fence = Fence {
            conversation: self.info.id,
            key: key.clone(),
            token: job.token,
        };
        match &job.draft {
            Some(draft) => Claim::Ready(fence, draft.clone()),
            None => Claim::Granted(fence),
        }
    }

    pub(super) fn settle(
        &mut self,
        fence: &Fence,
        outcome: &LeaseUpdate,
        now: Timestamp,
    ) -> Result<()> {
        check_fence(self, fence)?;
        let Some(job) = self.jobs.get_mut(&fence.key) else {
            return Err(lease_lost(&fence.key));
        };
        match outcome {
            LeaseUpdate::Renew { ttl } => {
                if let Some((_, until)) = &mut job.holder {
                    *until = now.saturating_add(*ttl);
                }
            }
            LeaseUpdate::Prepared(draft) => job.draft = Some(draft.clone()),
            LeaseUpdate::Failed => {
                job.tries = job.tries.saturating_add(1);
                job.holder = None;
            }
            LeaseUpdate::Release => {
                self.jobs.remove(&fence.key);
            }
        }
        Ok(())
    }
}

pub(super) fn check_fence(record: &Record, fence: &Fence) -> Result<()> {
    match record.jobs.get(&fence.key) {
        Some(job)
            if record.info.id == fence.conversation
                && job.token == fence.token
                && job.holder.is_some() =>
        {
            Ok(())
        }
        _ => Err(lease_lost(&fence.key)),
    }
}
