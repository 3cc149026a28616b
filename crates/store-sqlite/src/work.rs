//! Leases and small values.

use memory_model::{ConversationId, RawJson, Timestamp};
use memory_store::{Claim, Error, ErrorKind, Fence, JobKey, JobOutcome, Owner, Result, State};
use sea_query::SqliteQueryBuilder;
use store_sql::work::{self as sql, Job, JobState};
use store_sql::{Columns as _, Script, to_count};

use crate::{SqliteStore, no_conversation};

/// The lease on a job is lost.
pub(crate) fn lost(key: &JobKey) -> Error {
    Error::new(
        ErrorKind::Stale,
        format!("the lease on job {:?} is lost: claim it again", key.0),
    )
}

impl SqliteStore {
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
        // Undone when the job is another's.
        let mut script = Script::default();
        script.push(&sql::next_fence(id), SqliteQueryBuilder);
        script.push(&sql::find_job(id, key), SqliteQueryBuilder);
        let rows = on.all_of_script(script).await?;
        let [fence, job @ ..] = rows.as_slice() else {
            return Err(no_conversation(id));
        };
        let token = to_count("fence", fence.int(0)?)?;
        let found = job.first().map(sql::job).transpose()?;
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
        let mut on = writer.on();
        let changed = match sql::settle_job(fence, outcome, now) {
            sql::Settle::Update(update) => on.run(&update).await?,
            sql::Settle::Delete(delete) => on.run(&delete).await?,
        };
        if changed > 0 {
            return Ok(());
        }
        self.lineage(&mut on, fence.conversation).await?;
        Err(lost(&fence.key))
    }

    pub(crate) async fn get_state(&self, id: ConversationId, key: &str) -> Result<Option<State>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        self.lineage(&mut on, id).await?;
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
        self.lineage(&mut on, id).await?;
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
