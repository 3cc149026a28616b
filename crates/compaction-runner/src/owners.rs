//! Owners of leases: the holder of a job, and whether an owner is gone.

use std::fmt;

use memory_model::Timestamp;
use memory_store::Owner;
use serde::Serialize;

/// Decides whether an owner of leases has ended.
pub trait Liveness: Send + Sync + fmt::Debug {
    /// Returns true if `owner` has certainly ended; its leases are then taken over at once. If it returns false, the
    /// leases last until they expire.
    fn is_gone(&self, owner: &Owner) -> bool;
}

/// A [`Liveness`] for which no owner has ever ended: leases last until they expire.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverGone;

impl Liveness for NeverGone {
    fn is_gone(&self, _: &Owner) -> bool {
        false
    }
}

/// Owner of a lease on a job, and the time at which the lease ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaseHolder {
    /// Name of the owner that holds the lease.
    pub owner: String,
    /// Time at which the lease ends unless it is renewed, by the store's clock, in microseconds since 1970.
    pub until: Timestamp,
}

impl LeaseHolder {
    pub(crate) fn new(owner: &Owner, until: Timestamp) -> Self {
        Self {
            owner: owner.0.clone(),
            until,
        }
    }
}
