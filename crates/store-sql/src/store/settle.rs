//! Renewing, releasing and completing granted jobs.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Timestamp};
use memory_store::implementors::lease_lost;
use memory_store::{Draft, Error, ErrorKind, Fence, LeaseUpdate, Result};

use super::SqlStore;
use super::leases::granted_fences;
use super::pages::batched;
use crate::batch::Batch;
use crate::executor::{Database, Executor};
use crate::work as sql;

/// Fences of jobs that are granted, by conversation and key.
type Granted = BTreeMap<ConversationId, BTreeMap<String, u64>>;

impl<D: Database> SqlStore<D> {
    pub(super) async fn settle_jobs(
        &self,
        settled: &[(Fence, LeaseUpdate)],
    ) -> Result<Vec<Result<()>>> {
        let mut writer = self.database.write().await?;
        if let [(fence, update)] = settled {
            // One statement is a transaction by itself.
            let now = writer.now().await?;
            return Ok(vec![self.settle_one(&mut writer, fence, update, now).await]);
        }
        let mut tx = self.database.begin(&mut writer).await?;
        let on = &mut tx;
        let now = on.now().await?;
        let mut granted = granted(on, settled).await?;
        let mut changes: BTreeMap<ConversationId, Changes<'_>> = BTreeMap::new();
        let mut answers = Vec::with_capacity(settled.len());
        for (fence, update) in settled {
            let key = fence.key.0.as_str();
            let granted = granted.entry(fence.conversation).or_default();
            if granted.get(key) != Some(&fence.token) {
                answers.push(Err(self.why_lost(on, fence).await?));
                continue;
            }
            if matches!(update, LeaseUpdate::Failed | LeaseUpdate::Release) {
                granted.remove(key);
            }
            let changes = changes.entry(fence.conversation).or_default();
            changes.add(key, update, now);
            answers.push(Ok(()));
        }
        if !changes.is_empty() {
            let mut batch = Batch::default();
            for (id, changes) in changes {
                changes.write(&mut batch, id);
            }
            on.run_batch(batch).await?;
            self.database.commit(tx).await?;
        }
        Ok(answers)
    }

    async fn settle_one(
        &self,
        on: &mut impl Executor,
        fence: &Fence,
        update: &LeaseUpdate,
        now: Timestamp,
    ) -> Result<()> {
        let changed = match sql::settle_job(fence, update, now) {
            sql::JobChange::Update(update) => on.run(&update).await?,
            sql::JobChange::Delete(delete) => on.run(&delete).await?,
        };
        match changed {
            0 => Err(self.why_lost(on, fence).await?),
            _ => Ok(()),
        }
    }

    /// Reason why a fence is lost: another owner has the job, or there is no such conversation.
    async fn why_lost(&self, on: &mut impl Executor, fence: &Fence) -> Result<Error> {
        match self.lineage(on, fence.conversation).await {
            Ok(_) => Ok(lease_lost(&fence.key)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(error),
            Err(error) => Err(error),
        }
    }
}

/// Looks up the fences of jobs that are granted.
async fn granted(on: &mut impl Executor, settled: &[(Fence, LeaseUpdate)]) -> Result<Granted> {
    let mut keys: BTreeMap<ConversationId, Vec<&str>> = BTreeMap::new();
    for (fence, _) in settled {
        let keys = keys.entry(fence.conversation).or_default();
        keys.push(fence.key.0.as_str());
    }
    let mut granted = Granted::new();
    for (id, keys) in keys {
        granted.insert(id, granted_fences(on, id, &keys).await?);
    }
    Ok(granted)
}

/// Changes to the jobs of one conversation.
#[derive(Debug, Default)]
struct Changes<'a> {
    /// New ends of leases.
    renewed: BTreeMap<&'a str, Timestamp>,
    prepared: BTreeMap<&'a str, &'a Draft>,
    failed: Vec<&'a str>,
    released: Vec<&'a str>,
}

impl<'a> Changes<'a> {
    /// Adds an update of a granted job.
    fn add(&mut self, key: &'a str, update: &'a LeaseUpdate, now: Timestamp) {
        match update {
            LeaseUpdate::Renew { ttl } => {
                self.renewed.insert(key, now.saturating_add(*ttl));
            }
            LeaseUpdate::Prepared(draft) => {
                self.prepared.insert(key, draft);
            }
            LeaseUpdate::Failed => self.failed.push(key),
            LeaseUpdate::Release => self.released.push(key),
        }
    }

    /// Adds the statements: one for each kind of update, and for each end of a lease.
    fn write(self, batch: &mut Batch, id: ConversationId) {
        let mut ends: BTreeMap<Timestamp, Vec<&str>> = BTreeMap::new();
        for (key, until) in self.renewed {
            ends.entry(until).or_default().push(key);
        }
        for (until, keys) in ends {
            for keys in batched(&keys) {
                batch.push(sql::renew_jobs(id, &keys, until));
            }
        }
        let prepared: Vec<(&str, &Draft)> = self.prepared.into_iter().collect();
        for prepared in batched(&prepared) {
            batch.push(sql::prepare_jobs(id, &prepared));
        }
        // A job fails or is released last: it is not granted after that.
        for keys in batched(&self.failed) {
            batch.push(sql::fail_jobs(id, &keys));
        }
        for keys in batched(&self.released) {
            batch.push(sql::delete_jobs(id, &keys));
        }
    }
}
