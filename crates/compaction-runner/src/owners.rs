//! Owners of leases (exclusive claims on summaries to write), and whether they have ended.

use std::fmt;

use memory_model::Timestamp;
use memory_store::Owner;
use serde::Serialize;

/// Decides whether the owner of a lease has ended, for example because its process exited.
pub trait Liveness: Send + Sync + fmt::Debug {
    /// Returns true if `owner` has certainly ended. Its leases are then taken over at once. With false, the leases last
    /// until they expire.
    fn is_gone(&self, owner: &Owner) -> bool;
}

/// A [`Liveness`] that considers no owner as ended. All leases last until they expire.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverGone;

impl Liveness for NeverGone {
    fn is_gone(&self, _: &Owner) -> bool {
        false
    }
}

/// Owner of a lease (an exclusive claim on a job), and the time at which the lease ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaseHolder {
    /// Name of the lease's owner.
    pub owner: String,
    /// Time at which the lease ends if it is not renewed, by the store's clock, in microseconds since 1970.
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
