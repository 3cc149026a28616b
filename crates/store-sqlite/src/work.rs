//! Leases and small values.

use std::collections::BTreeMap;

use memory_model::{ConversationId, RawJson, Timestamp};
use memory_store::{Claim, Error, ErrorKind, Fence, JobKey, LeaseUpdate, Owner, Result, State};
use sea_query::SqliteQueryBuilder;
use store_sql::work::{self as sql, Job};
use store_sql::{Columns as _, Script, to_count};

use crate::db::On;
use crate::{ROWS, SqliteStore, batched, no_conversation};

/// Whether an error is about one job, and not about the database.
fn is_about_job(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Stale | ErrorKind::NotFound)
}

/// The lease on a job is lost.
pub(crate) fn lost(key: &JobKey) -> Error {
    Error::new(
        ErrorKind::Stale,
        format!("the lease on job {:?} is lost: claim it again", key.0),
    )
}

impl SqliteStore {
    pub(crate) async fn claim_jobs(
        &self,
        id: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        now: Timestamp,
        ttl_micros: i64,
    ) -> Result<Vec<Claim>> {
        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        let asked: Vec<&str> = keys.iter().map(|key| key.0.as_str()).collect();
        // Undone when all jobs are another's. A number that is not given is not given later either.
        let mut script = Script::default();
        script.push(&sql::next_fences(id, keys.len())?, SqliteQueryBuilder);
        for batch in batched(&asked) {
            script.push(&sql::find_jobs(id, &batch), SqliteQueryBuilder);
        }
        let rows = on.all_of_script(script).await?;
        let [last_fence, jobs @ ..] = rows.as_slice() else {
            return Err(no_conversation(id));
        };
        let last_fence = to_count("fence", last_fence.int(0)?)?;
        let mut known: BTreeMap<String, Job> = BTreeMap::new();
        for row in jobs {
            known.insert(row.text(0)?, sql::job(row, 1)?);
        }
        let mut token = last_fence.saturating_sub(keys.len() as u64);
        let mut claims = Vec::with_capacity(keys.len());
        let mut granted: BTreeMap<&JobKey, Job> = BTreeMap::new();
        for key in keys {
            token += 1;
            let job = known.get(&key.0);
            if let Some(job) = job.filter(|job| job.is_held_from(owner, now)) {
                claims.push(Claim::Held {
                    owner: job.owner.clone(),
                    until: job.expires,
                });
                continue;
            }
            let expires = Timestamp(now.0.saturating_add(ttl_micros));
            let job = Job::granted(job, owner, token, expires);
            let fence = Fence {
                conversation: id,
                key: key.clone(),
                token,
            };
            claims.push(match &job.draft {
                Some(draft) => Claim::Ready(fence, draft.clone()),
                None => Claim::Granted(fence),
            });
            granted.insert(key, job);
        }
        if !granted.is_empty() {
            let jobs: Vec<(&JobKey, Job)> = granted.into_iter().collect();
            let mut script = Script::default();
            for jobs in jobs.chunks(ROWS) {
                script.push(&sql::put_jobs(id, jobs)?, SqliteQueryBuilder);
            }
            on.run_script(script).await?;
            tx.commit().await?;
        }
        Ok(claims)
    }

    pub(crate) async fn settle_jobs(
        &self,
        settled: &[(Fence, LeaseUpdate)],
        now: Timestamp,
    ) -> Result<Vec<Result<()>>> {
        let mut writer = self.db.write().await?;
        if let [(fence, outcome)] = settled {
            // One statement is a transaction by itself.
            return Ok(vec![
                self.settle(&mut writer.on(), fence, outcome, now).await,
            ]);
        }
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        let mut answers = Vec::with_capacity(settled.len());
        for (fence, outcome) in settled {
            let answer = self.settle(&mut on, fence, outcome, now).await;
            match answer {
                Err(error) if !is_about_job(&error) => return Err(error),
                answer => answers.push(answer),
            }
        }
        tx.commit().await?;
        Ok(answers)
    }

    async fn settle(
        &self,
        on: &mut On<'_>,
        fence: &Fence,
        outcome: &LeaseUpdate,
        now: Timestamp,
    ) -> Result<()> {
        let changed = match sql::settle_job(fence, outcome, now) {
            sql::Settle::Update(update) => on.run(&update).await?,
            sql::Settle::Delete(delete) => on.run(&delete).await?,
        };
        if changed > 0 {
            return Ok(());
        }
        self.lineage(on, fence.conversation).await?;
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
