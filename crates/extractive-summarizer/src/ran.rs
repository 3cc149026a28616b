//! A command that ran.

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    /// The `cd` before it; empty where there is none.
    pub(crate) cd: String,
    /// Its beginning.
    pub(crate) head: String,
    pub(crate) times: u32,
}
