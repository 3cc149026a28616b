//! A command that ran.

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    /// `cd` command before the command; empty if there is none, or if its folder is unknown.
    pub(crate) cd: String,
    /// Beginning of the command.
    pub(crate) head: String,
    pub(crate) times: u32,
}
