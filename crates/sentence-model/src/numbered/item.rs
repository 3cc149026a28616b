//! Numbers with the words that belong to them.

use std::ops::Range;

use super::sentence::{CLOCK, CODE, PLAIN};
use super::spelling::{amount_of, written};

/// A number with the words that belong to it.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Tokens that belong to the number.
    pub(super) tokens: Range<usize>,
    pub(super) range: Range<usize>,
    pub(super) form: Form,
    /// The number as it is written.
    pub(super) number: String,
    pub(super) is_former: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// The number names by its form: `#17`, `the first draft`.
    Name {
        key: String,
    },
    /// The number has a label, and its place decides: `tier 2`, `port 8080`.
    Label {
        key: String,
    },
    /// A word with digits, such as `worker-3` or `CA12`, whose place decides.
    Code {
        key: String,
        text: String,
    },
    /// A point in time, which may name.
    Date {
        dimension: &'static str,
        amount: String,
    },
    Value {
        dimension: String,
        amount: String,
    },
}

pub(super) fn point(dimension: &'static str, amount: String) -> Form {
    Form::Date { dimension, amount }
}

pub(super) fn value(dimension: &str, amount: &str) -> Form {
    let (dimension, amount) = (dimension.to_owned(), amount.to_owned());
    Form::Value { dimension, amount }
}

pub(super) fn clock(hour: u32, minute: u32) -> Form {
    value(CLOCK, &format!("{hour:02}:{minute:02}"))
}

pub(super) fn plain(number: &str) -> Form {
    value(
        PLAIN,
        &amount_of(number).map_or_else(|| number.to_owned(), written),
    )
}

/// Returns the dimension of a number that may be a value.
pub(super) fn dimension(item: &Item) -> Option<&str> {
    match &item.form {
        Form::Name { .. } => None,
        Form::Label { key } => Some(key),
        Form::Code { .. } => Some(CODE),
        Form::Date { dimension, .. } => Some(dimension),
        Form::Value { dimension, .. } => Some(dimension),
    }
}
