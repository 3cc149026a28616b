//! Leases and small values.

use memory_model::{ConversationId, RawJson, Timestamp};
use memory_store::{Claim, Error, ErrorKind, Fence, JobKey, JobOutcome, Owner, Result, State};
use store_sql::work::{self as sql, Job, JobState};
use store_sql::{Columns as _, to_count};

use crate::db::On;
use crate::{SqliteStore, no_conversation};

impl SqliteStore {
    async fn job(&self, on: &mut On<'_>, id: ConversationId, key: &JobKey) -> Result<Option<Job>> {
        self.segments(on, id).await?;
        let row = on.first(&sql::find_job(id, key)).await?;
        row.map(|row| sql::job(&row)).transpose()
    }

    /// The job of `id` under a fence that still holds.
    pub(crate) async fn check_fence(
        &self,
        on: &mut On<'_>,
        id: ConversationId,
        fence: &Fence,
    ) -> Result<Job> {
        match self.job(on, id, &fence.key).await? {
            Some(job)
                if fence.conversation == id
                    && job.fence == fence.token
                    && job.state != JobState::Free =>
            {
                Ok(job)
            }
            _ => Err(Error::new(
                ErrorKind::Stale,
                format!("the lease on job {:?} is lost: claim it again", fence.key.0),
            )),
        }
    }

    pub(crate) async fn claim_job(
        &self,
        id: ConversationId,
        key: &JobKey,
        owner: &Owner,
        now: Timestamp,
        ttl_micros: i64,
    ) -> Result<Claim> {
        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        let found = self.job(&mut on, id, key).await?;
        if let Some(job) = &found
            && job.state != JobState::Free
            && job.expires > now
            && job.owner != *owner
        {
            return Ok(Claim::Held {
                owner: job.owner.clone(),
                until: job.expires,
            });
        }
        let row = on
            .first(&sql::next_fence(id))
            .await?
            .ok_or_else(|| no_conversation(id))?;
        let token = to_count("fence", row.int(0)?)?;
        let (tries, draft) = found.map_or((0, None), |job| (job.tries, job.draft));
        let job = Job {
            state: if draft.is_some() {
                JobState::Ready
            } else {
                JobState::Held
            },
            owner: owner.clone(),
            fence: token,
            expires: Timestamp(now.0.saturating_add(ttl_micros)),
            tries,
            draft,
        };
        on.run(&sql::put_job(id, key, &job)?).await?;
        tx.commit().await?;
        let fence = Fence {
            conversation: id,
            key: key.clone(),
            token,
        };
        Ok(match job.draft {
            Some(draft) => Claim::Ready(fence, draft),
            None => Claim::Granted(fence),
        })
    }

    pub(crate) async fn settle_job(
        &self,
        fence: &Fence,
        outcome: &JobOutcome,
        now: Timestamp,
    ) -> Result<()> {
        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        let mut job = self.check_fence(&mut on, fence.conversation, fence).await?;
        match outcome {
            JobOutcome::Renew { ttl_micros } => {
                job.expires = Timestamp(now.0.saturating_add(*ttl_micros));
            }
            JobOutcome::Prepared(draft) => {
                job.state = JobState::Ready;
                job.draft = Some(draft.clone());
            }
            JobOutcome::Failed => {
                job.state = JobState::Free;
                job.tries = job.tries.saturating_add(1);
            }
            JobOutcome::Release => {
                on.run(&sql::delete_job(fence.conversation, &fence.key))
                    .await?;
                return tx.commit().await;
            }
        }
        on.run(&sql::put_job(fence.conversation, &fence.key, &job)?)
            .await?;
        tx.commit().await
    }

    pub(crate) async fn get_state(&self, id: ConversationId, key: &str) -> Result<Option<State>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        self.segments(&mut on, id).await?;
        let row = on.first(&sql::find_state(id, key)).await?;
        row.map(|row| sql::state(&row)).transpose()
    }

    pub(crate) async fn set_state(
        &self,
        id: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        self.segments(&mut on, id).await?;
        let found = match on.first(&sql::find_state(id, key)).await? {
            Some(row) => sql::state(&row)?.revision,
            None => 0,
        };
        if found != revision {
            return Err(Error::new(
                ErrorKind::Stale,
                format!("{key} has revision {found}, not {revision}: read it again"),
            ));
        }
        let next = match value {
            Some(value) => {
                on.run(&sql::put_state(id, key, value, revision + 1)?)
                    .await?;
                revision + 1
            }
            None => {
                on.run(&sql::delete_state(id, key)).await?;
                0
            }
        };
        tx.commit().await?;
        Ok(next)
    }
}
