//! Owners of leases: the holder of a job, and whether an owner is gone.

use std::fmt;

use memory_model::Timestamp;
use memory_store::Owner;
use serde::Serialize;

/// Decides whether an owner of leases is gone.
pub trait Liveness: Send + Sync + fmt::Debug {
    /// Returns whether this owner has certainly ended. Its leases are then taken over at once. Otherwise they last
    /// until they expire.
    fn is_gone(&self, owner: &Owner) -> bool;
}

/// Treats no owner as gone: leases last until they expire.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverGone;

impl Liveness for NeverGone {
    fn is_gone(&self, _: &Owner) -> bool {
        false
    }
}

/// The owner of a held job, and the end of its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaseHolder {
    /// Name of the owner.
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
