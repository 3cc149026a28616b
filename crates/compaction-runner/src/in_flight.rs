//! Jobs (summaries to write) that the compactions of one process are working on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memory_model::{ConversationId, Timestamp};
use memory_store::JobKey;

/// The jobs (summaries to write) that all compactions of one lease owner are working on. Clones share the same list.
///
/// The store grants a lease (an exclusive claim on a job) again to an owner of the same name, so that a process can
/// take back the leases of a dropped run at once. So leases do not prevent two runs of one owner from paying for the
/// same summary. This list prevents it: a second run treats the job as held by another owner for the duration of the
/// lease.
#[derive(Debug, Clone, Default)]
pub struct InFlight {
    jobs: Arc<Mutex<BTreeMap<Key, Timestamp>>>,
}

type Key = (ConversationId, String);

impl InFlight {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Claims a job (a summary to write) until the guard is dropped or the time `until` is reached. If another run has
    /// claimed the job, returns the time at which this claim ends.
    pub(crate) fn take(
        &self,
        conversation: ConversationId,
        job: &JobKey,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Taken, Timestamp> {
        let key = (conversation, job.0.clone());
        let mut jobs = self.lock();
        if let Some(theirs) = jobs.get(&key).filter(|theirs| **theirs > now) {
            return Err(*theirs);
        }
        jobs.insert(key.clone(), until);
        let jobs = self.clone();
        Ok(Taken { jobs, key, until })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Timestamp>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim on a job (a summary to write). Dropping the guard ends the claim.
#[derive(Debug)]
pub(crate) struct Taken {
    jobs: InFlight,
    key: Key,
    until: Timestamp,
}

impl Taken {
    /// Extends the claim until the time `until`, unless another run has claimed the job in the meantime.
    pub(crate) fn renew(&mut self, until: Timestamp) {
        let mut jobs = self.jobs.lock();
        if let Some(end) = jobs.get_mut(&self.key).filter(|end| **end == self.until) {
            *end = until;
            self.until = until;
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut jobs = self.jobs.lock();
        // Another run may have claimed the job in the meantime.
        if jobs.get(&self.key) == Some(&self.until) {
            jobs.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_taken_once_until_it_is_given_back_or_its_time_is_over() {
        let (in_flight, job) = (InFlight::new(), JobKey("a".to_owned()));
        let take = |now, until| {
            in_flight
                .clone()
                .take(ConversationId(1), &job, Timestamp(now), Timestamp(until))
        };
        let first = take(0, 10);
        assert!(first.is_ok());
        assert_eq!(take(9, 19).err(), Some(Timestamp(10)));
        let second = take(10, 20);
        assert!(second.is_ok());
        // The claim has ended, so dropping it must not end the claim of another run.
        drop(first);
        assert!(take(11, 21).is_err());
        let mut second = second.unwrap();
        second.renew(Timestamp(30));
        assert_eq!(take(25, 35).err(), Some(Timestamp(30)));
        drop(second);
        assert!(take(11, 21).is_ok());
    }
}
