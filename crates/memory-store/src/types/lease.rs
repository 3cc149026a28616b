//! Leases on jobs, so that each piece of work is done once.

use std::time::Duration;

use memory_model::{ConversationId, RawJson, Timestamp};

/// Name of a job, unique in a conversation. A job is one piece of work to do once, for example one summary to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub String);

/// Name of the owner of a lease: a process or a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner(pub String);

/// Proof that an owner got the lease on a job. An update of the lease needs the fence. After a later lease on the same
/// job the fence is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Number of the conversation to which the job belongs.
    pub conversation: ConversationId,
    /// Name of the job in the conversation.
    pub key: JobKey,
    /// Number of the lease. It rises with every lease on any job of the conversation.
    pub token: u64,
}

/// Prepared work of a job that is not published yet, such as a written summary. The JSON has the format of the program
/// that prepared the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft(pub RawJson);

/// Answer to a claim of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The caller has the lease on the job, with this fence. If the owner does not renew the lease, it ends after its
    /// time-to-live.
    Granted(Fence),
    /// Another owner has an active lease on the job.
    Held {
        /// Owner of the active lease.
        owner: Owner,
        /// End of the active lease by the store's clock, unless the owner renews it.
        until: Timestamp,
    },
    /// The caller has the lease on the job, with this fence. The draft is the work that was prepared earlier: publish
    /// it.
    Ready(Fence, Draft),
    /// The caller does not get the lease, because words of the conversation were erased after the words for the job
    /// were read. Read them again.
    Outdated,
}

/// Update to an active lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseUpdate {
    /// Sets the end of the lease to `ttl` from now, by the store's clock.
    Renew {
        /// New time-to-live of the lease. Zero ends the lease at once: any owner may then claim the job with its
        /// prepared work.
        ttl: Duration,
    },
    /// Records that the work of the job is prepared. The store keeps the draft until the job is published or released.
    Prepared(Draft),
    /// Records that the work failed. The job becomes free, and its number of failures rises by one. Prepared work is
    /// kept.
    Failed,
    /// Records that the job is done or given up. The store removes the job's data.
    Release,
}
