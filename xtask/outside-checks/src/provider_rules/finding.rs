//! Rules, and what breaks them.

use std::fmt;

/// A place of a request that breaks a rule of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// JSON pointer to the value, from the object that was checked; `/` and `~` are not escaped.
    pub path: String,
    /// Name of the rule, as the provider's list of rules has it.
    pub rule: &'static str,
    /// What is wrong with the value.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]: {}", self.path, self.rule, self.detail)
    }
}

/// A rule that a request may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Name of the rule.
    pub name: &'static str,
    /// What the rule demands, and what says so.
    pub meaning: &'static str,
}

pub(super) const fn rule(name: &'static str, meaning: &'static str) -> Rule {
    Rule { name, meaning }
}
