//! Updates of leased jobs: renewing a lease, storing a draft, recording a failure, and releasing. A job is one summary
//! to write. A lease reserves it for one owner.

use std::collections::BTreeMap;

use memory_model::{ConversationId, Timestamp};
use memory_store::implementors::lease_lost;
use memory_store::{Draft, Error, ErrorKind, Fence, LeaseUpdate, Result};

use super::SqlStore;
use super::leases::granted_fences;
use super::pages::batched;
use crate::batch::Batch;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::work as sql;

/// Fencing tokens of leased jobs, by conversation and key. Each lease has a new token.
type Granted = BTreeMap<ConversationId, BTreeMap<String, u64>>;

impl<D: Database> SqlStore<D> {
    pub(super) async fn settle_jobs(
        &self,
        settled: &[(Fence, LeaseUpdate)],
    ) -> Result<Vec<Result<()>>> {
        let mut writer = self.database.write().await?;
        if let [(fence, update)] = settled {
            // A single statement is a transaction by itself.
            let now = writer.now().await?;
            return Ok(vec![self.settle_one(&mut writer, fence, update, now).await]);
        }
        // One transaction for each family, because a transaction locks one.
        let mut families: Vec<(Family, Vec<usize>)> = Vec::new();
        let mut answers: Vec<Result<()>> = Vec::with_capacity(settled.len());
        for (at, (fence, _)) in settled.iter().enumerate() {
            answers.push(Ok(()));
            match self.family(&mut writer, fence.conversation).await {
                Ok(family) => match families.iter_mut().find(|(known, _)| *known == family) {
                    Some((_, of_family)) => of_family.push(at),
                    None => families.push((family, vec![at])),
                },
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    answers.splice(at.., [Err(error)]);
                }
                Err(error) => return Err(error),
            }
        }
        for (family, of_family) in families {
            let part: Vec<&(Fence, LeaseUpdate)> =
                of_family.iter().filter_map(|at| settled.get(*at)).collect();
            let settled = self.settle_family(&mut writer, family, &part).await?;
            for (at, answer) in of_family.into_iter().zip(settled) {
                answers.splice(at..=at, [answer]);
            }
        }
        Ok(answers)
    }

    /// Updates jobs of one family, in one transaction.
    async fn settle_family(
        &self,
        writer: &mut D::Writer<'_>,
        family: Family,
        settled: &[&(Fence, LeaseUpdate)],
    ) -> Result<Vec<Result<()>>> {
        let mut tx = self.database.begin(writer, family).await?;
        let on = &mut tx;
        let now = on.now().await?;
        let mut granted = granted(on, family, settled).await?;
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
                changes.write(&mut batch, family, id);
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
        let family = self.family(on, fence.conversation).await?;
        let changed = match sql::settle_job(family, fence, update, now) {
            sql::JobChange::Update(update) => on.run(&update).await?,
            sql::JobChange::Delete(delete) => on.run(&delete).await?,
        };
        match changed {
            0 => Err(self.why_lost(on, fence).await?),
            _ => Ok(()),
        }
    }

    /// Returns the error for a fence that is no longer valid: `NotFound` if the conversation does not exist, else
    /// `Stale`.
    async fn why_lost(&self, on: &mut impl Executor, fence: &Fence) -> Result<Error> {
        match self.lineage(on, fence.conversation).await {
            Ok(_) => Ok(lease_lost(&fence.key)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(error),
            Err(error) => Err(error),
        }
    }
}

/// Reads the current fencing tokens of the jobs in `settled`. Jobs without a lease are left out.
async fn granted(
    on: &mut impl Executor,
    family: Family,
    settled: &[&(Fence, LeaseUpdate)],
) -> Result<Granted> {
    let mut keys: BTreeMap<ConversationId, Vec<&str>> = BTreeMap::new();
    for (fence, _) in settled {
        let keys = keys.entry(fence.conversation).or_default();
        keys.push(fence.key.0.as_str());
    }
    let mut granted = Granted::new();
    for (id, keys) in keys {
        granted.insert(id, granted_fences(on, family, id, &keys).await?);
    }
    Ok(granted)
}

/// Updates to the jobs of one conversation, grouped by kind.
#[derive(Debug, Default)]
struct Changes<'a> {
    /// New ends of leases, by key.
    renewed: BTreeMap<&'a str, Timestamp>,
    prepared: BTreeMap<&'a str, &'a Draft>,
    failed: Vec<&'a str>,
    released: Vec<&'a str>,
}

impl<'a> Changes<'a> {
    /// Adds an update of the job `key`, which the caller has leased: a renewal of the lease, a draft, a failure or a
    /// release. A renewed lease ends its `ttl` after `now`.
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

    /// Adds the SQL statements for all updates to a batch: one for each kind of update, and for renewals one for each
    /// new end of a lease.
    fn write(self, batch: &mut Batch, family: Family, id: ConversationId) {
        let mut ends: BTreeMap<Timestamp, Vec<&str>> = BTreeMap::new();
        for (key, until) in self.renewed {
            ends.entry(until).or_default().push(key);
        }
        for (until, keys) in ends {
            for keys in batched(&keys) {
                batch.push(sql::renew_jobs(family, id, &keys, until));
            }
        }
        let prepared: Vec<(&str, &Draft)> = self.prepared.into_iter().collect();
        for prepared in batched(&prepared) {
            batch.push(sql::prepare_jobs(family, id, &prepared));
        }
        // Failures and releases come last, because they end the lease, and the other updates need a lease.
        for keys in batched(&self.failed) {
            batch.push(sql::fail_jobs(family, id, &keys));
        }
        for keys in batched(&self.released) {
            batch.push(sql::delete_jobs(family, id, &keys));
        }
    }
}
