//! A command that ran.

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    /// The `cd` before it; empty if there is none.
    pub(crate) cd: String,
    /// Its beginning.
    pub(crate) head: String,
    pub(crate) times: u32,
}
