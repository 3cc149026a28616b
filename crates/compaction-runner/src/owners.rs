//! Owners of leases: who holds a job, and whether they are gone.

use std::fmt;

use memory_model::Timestamp;
use memory_store::Owner;
use serde::Serialize;

/// Decides whether an owner of leases is gone.
pub trait Liveness: Send + Sync + fmt::Debug {
    /// Returns whether this owner has ended for certain. Its leases are then taken over at once;
    /// otherwise they last until their time is over.
    fn is_gone(&self, owner: &Owner) -> bool;
}

/// Knows nothing: leases last until their time is over.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverGone;

impl Liveness for NeverGone {
    fn is_gone(&self, _: &Owner) -> bool {
        false
    }
}

/// The owner of a job that another run was kept from, and the end of its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaseHolder {
    /// The owner's name.
    pub owner: String,
    /// When the lease ends unless it is renewed, by the store's own time, in microseconds since 1970.
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
