//! Names of passes (planning rounds) and kinds of jobs (changes of a view), chosen by planners.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Name of a pass (planning round of a planner), or of a kind of job (change of a view), such as `leaf`. A planner
/// chooses the name, and events and reports show it. The name has no effect on the execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Label(Cow<'static, str>);

impl Label {
    /// Creates a label from a static name.
    pub const fn from_static(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Creates a label from any name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PartialEq<str> for Label {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Label {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// Number of occurrences of each label, such as the number of published jobs (changes of a view) of each kind.
/// Serializes as a map from label to number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelCounts(BTreeMap<Label, u64>);

impl LabelCounts {
    /// Returns the number of occurrences of a label. 0 for a label that did not occur.
    pub fn get(&self, label: &str) -> u64 {
        let found = self.0.iter().find(|(known, _)| *known == label);
        found.map_or(0, |(_, count)| *count)
    }

    /// Returns the number of occurrences of all labels together.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds `count` occurrences of a label.
    pub fn add(&mut self, label: &Label, count: u64) {
        if count > 0 {
            *self.0.entry(label.clone()).or_default() += count;
        }
    }

    /// Adds the counts of `other` to these counts.
    pub fn merge(&mut self, other: &Self) {
        for (label, count) in &other.0 {
            self.add(label, *count);
        }
    }

    /// Returns an iterator over the labels that occurred, in alphabetical order, with their numbers of occurrences.
    pub fn iter(&self) -> impl Iterator<Item = (&Label, u64)> {
        self.0.iter().map(|(label, count)| (label, *count))
    }
}
