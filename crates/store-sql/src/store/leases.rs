//! Giving leases (exclusive claims on jobs, such as summaries to write).

use std::collections::BTreeMap;
use std::time::Duration;

use memory_model::ConversationId;
use memory_store::implementors::no_conversation;
use memory_store::{Claim, Fence, JobKey, Owner, Result};

use super::pages::batched;
use super::{ROWS, SqlStore};
use crate::batch::Batch;
use crate::convert::to_count;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::row::Columns;
use crate::work::{self as sql, Job};

impl<D: Database> SqlStore<D> {
    pub(super) async fn claim_jobs(
        &self,
        id: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>> {
        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, id).await?;
        let on = &mut tx;
        let asked: Vec<&str> = keys.iter().map(|key| key.0.as_str()).collect();
        // Rolled back if every job is held by another owner. A fence that was reserved and not used is not used later
        // either.
        let mut batch = Batch::default();
        batch.push(sql::next_fences(family, id, keys.len())?);
        for keys in batched(&asked) {
            batch.push(sql::find_jobs(family, id, &keys));
        }
        let answers = on.all_of_batch(batch).await?;
        let now = on.now().await?;
        let [fences, jobs @ ..] = answers.as_slice() else {
            return Err(no_conversation(id));
        };
        let last_fence = fences.first().ok_or_else(|| no_conversation(id))?;
        if to_count("erasures", last_fence.int(1)?)? != erasures {
            return Ok(vec![Claim::Outdated; keys.len()]);
        }
        let last_fence = to_count("fence", last_fence.int(0)?)?;
        let mut known: BTreeMap<String, Job> = BTreeMap::new();
        for row in jobs.iter().flatten() {
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
            let expires = now.saturating_add(ttl);
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
            let mut batch = Batch::default();
            for jobs in jobs.chunks(ROWS) {
                batch.push(sql::put_jobs(family, id, jobs)?);
            }
            on.run_batch(batch).await?;
            self.database.commit(tx).await?;
        }
        Ok(claims)
    }
}

/// Reads the fencing tokens of the jobs with these keys, in one round trip. Jobs without a lease are left out. The
/// answer is by key.
pub(super) async fn granted_fences(
    on: &mut impl Executor,
    family: Family,
    id: ConversationId,
    keys: &[&str],
) -> Result<BTreeMap<String, u64>> {
    let mut batch = Batch::default();
    push_granted_fences(&mut batch, family, id, keys);
    let answers = on.all_of_batch(batch).await?;
    fences_of(answers.iter().flatten())
}

/// Adds SQL statements to a batch that read the fencing tokens of the leased jobs among those with these keys.
/// [`fences_of`] reads the rows of the answers. Returns the number of statements.
pub(super) fn push_granted_fences(
    batch: &mut Batch,
    family: Family,
    id: ConversationId,
    keys: &[&str],
) -> usize {
    let batches = batched(keys);
    for keys in &batches {
        batch.push(sql::granted_jobs(family, id, keys));
    }
    batches.len()
}

/// Reads the rows of the statements of [`push_granted_fences`]. Returns the fencing tokens by the keys of their jobs.
pub(super) fn fences_of<'r, R: Columns + 'r>(
    rows: impl Iterator<Item = &'r R>,
) -> Result<BTreeMap<String, u64>> {
    rows.map(|row| Ok((row.text(0)?, to_count("fence", row.int(1)?)?)))
        .collect()
}
