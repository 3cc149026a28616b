//! The fitted weights of each family.

pub(super) mod cl100k;
pub(super) mod o200k;
