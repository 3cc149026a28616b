use std::fmt;
use std::sync::Arc;

use token_estimate::Role;

use crate::GroupingPolicy;

/// Choices of [`trim_to_budget`](crate::trim_to_budget).
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct Trim {
    /// Maximum cost of the result by the counter, in tokens.
    pub max_tokens: u64,
    /// Side of the list that is kept. Default [`TrimStrategy::Last`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub strategy: TrimStrategy,
    /// Whether the first message that does not fit is kept in part: without its parts farthest from what is
    /// kept, or, where not even one part fits, with pieces of its text. Calls stay. Of a group that does
    /// not fit all messages stay if it is enough to shorten the last one, or the first one under
    /// [`TrimStrategy::Last`]. Default `false`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub allow_partial: bool,
    /// Roles of the message that the result starts with, behind an included system message; messages
    /// before the first of these roles are left out. A user's message with results counts as a tool's.
    /// Empty, the default, is any role.
    #[cfg_attr(feature = "serde", serde(default))]
    pub start_on: Vec<Role>,
    /// Roles of the message that the result ends with; messages behind the last of these roles are left
    /// out. Empty, the default, is any role.
    #[cfg_attr(feature = "serde", serde(default))]
    pub end_on: Vec<Role>,
    /// Whether a system message at position 0 is always kept. Default `false`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub include_system: bool,
    /// Rule that splits a text that is kept in part. Default [`TextSplitter::Lines`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub text_splitter: TextSplitter,
    /// Rule that groups calls with their results. `None` keeps or leaves out each message by itself, so
    /// that results may lose their calls. Default `GroupingPolicy::default()`.
    #[cfg_attr(feature = "serde", serde(default = "grouped"))]
    pub grouping: Option<GroupingPolicy>,
}

#[cfg(feature = "serde")]
fn grouped() -> Option<GroupingPolicy> {
    Some(GroupingPolicy::default())
}

impl Trim {
    /// Creates the default choices for a budget in tokens.
    pub const fn new(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            strategy: TrimStrategy::Last,
            allow_partial: false,
            start_on: Vec::new(),
            end_on: Vec::new(),
            include_system: false,
            text_splitter: TextSplitter::Lines,
            grouping: Some(GroupingPolicy { responses: 0 }),
        }
    }

    /// Sets the side of the list that is kept.
    #[must_use]
    pub const fn with_strategy(mut self, strategy: TrimStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets whether a message may be kept in part.
    #[must_use]
    pub const fn with_allow_partial(mut self, allow_partial: bool) -> Self {
        self.allow_partial = allow_partial;
        self
    }

    /// Sets the roles that the result may start with.
    #[must_use]
    pub fn with_start_on(mut self, roles: impl Into<Vec<Role>>) -> Self {
        self.start_on = roles.into();
        self
    }

    /// Sets the roles that the result may end with.
    #[must_use]
    pub fn with_end_on(mut self, roles: impl Into<Vec<Role>>) -> Self {
        self.end_on = roles.into();
        self
    }

    /// Sets whether a system message at position 0 is always kept.
    #[must_use]
    pub const fn with_include_system(mut self, include_system: bool) -> Self {
        self.include_system = include_system;
        self
    }

    /// Sets the rule that splits a text that is kept in part.
    #[must_use]
    pub fn with_text_splitter(mut self, splitter: TextSplitter) -> Self {
        self.text_splitter = splitter;
        self
    }

    /// Sets the rule that groups calls with their results; `None` does not group.
    #[must_use]
    pub const fn with_grouping(mut self, grouping: Option<GroupingPolicy>) -> Self {
        self.grouping = grouping;
        self
    }
}

/// Side of a list that [`trim_to_budget`](crate::trim_to_budget) keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TrimStrategy {
    /// The newest messages.
    #[default]
    Last,
    /// The oldest messages.
    First,
}

/// Rule that splits a text into pieces, which are the text again when they are joined.
#[derive(Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TextSplitter {
    /// Lines, each with its end.
    #[default]
    Lines,
    /// Words, each with the white space behind it.
    Words,
    /// Characters.
    Characters,
    /// A function of the caller's: see [`TextSplitter::new`].
    #[cfg_attr(feature = "serde", serde(skip))]
    Custom(Arc<SplitFn>),
}

/// Function of a [`TextSplitter::Custom`].
pub type SplitFn = dyn for<'t> Fn(&'t str) -> Vec<&'t str> + Send + Sync;

impl TextSplitter {
    /// Creates a rule from a function that splits a text.
    ///
    /// ```
    /// let sentences = turn_map::TextSplitter::new(|text| text.split_inclusive(". ").collect());
    /// assert_eq!(sentences.split("One. Two."), ["One. ", "Two."]);
    /// ```
    pub fn new(split: impl for<'t> Fn(&'t str) -> Vec<&'t str> + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(split))
    }

    /// Splits a text.
    pub fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        match self {
            Self::Lines => text.split_inclusive('\n').collect(),
            Self::Words => words(text),
            Self::Characters => text.split_inclusive(|_: char| true).collect(),
            Self::Custom(split) => split(text),
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut in_space) = (0, false);
    for (at, letter) in text.char_indices() {
        let space = letter.is_whitespace();
        if in_space && !space {
            words.extend(text.get(start..at));
            start = at;
        }
        in_space = space;
    }
    words.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    words
}

impl fmt::Debug for TextSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "Lines",
            Self::Words => "Words",
            Self::Characters => "Characters",
            Self::Custom(_) => "Custom(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_again() {
        let text = " two  words\nand ünï\n\n日本 \n";
        for splitter in [
            TextSplitter::Lines,
            TextSplitter::Words,
            TextSplitter::Characters,
        ] {
            let pieces = splitter.split(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
            assert_eq!(splitter.split(""), Vec::<&str>::new());
        }
        assert_eq!(
            TextSplitter::Words.split(text),
            [" ", "two  ", "words\n", "and ", "ünï\n\n", "日本 \n"]
        );
        assert_eq!(TextSplitter::Lines.split("a\n\nb"), ["a\n", "\n", "b"]);
    }
}
