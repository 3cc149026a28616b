//! The remaining tokens of an answer in progress.

use memory_model::Accounting;
use serde::Serialize;

/// Number of tokens that may still be added to an answer.
#[derive(Debug, Clone)]
pub(crate) struct Room<'a> {
    pub(crate) accounting: &'a dyn Accounting,
    /// Remaining tokens for the text of the answer.
    pub(crate) text: u64,
    /// Remaining tokens for the text and the JSON of the answer together. `None` if only one of them is sent.
    pub(crate) reply: Option<u64>,
}

impl Room<'_> {
    /// Returns the number of tokens of an item: of its text, and of its text and JSON together.
    fn costs<T: Serialize>(&self, text: &str, json: &T) -> (u64, u64) {
        let text = self.accounting.text(text);
        let json = self.reply.and_then(|_| serde_json::to_string(json).ok());
        // One more token for the comma between two items.
        let json = json.map_or(0, |json| self.accounting.text(&json) + 1);
        (text, text + json)
    }

    /// Returns whether an item fits in the remaining tokens.
    pub(crate) fn holds<T: Serialize>(&self, text: &str, json: &T) -> bool {
        // Without a limit, tokens are not counted.
        self.text == u64::MAX && self.reply.is_none() || {
            let (text, both) = self.costs(text, json);
            text <= self.text && self.reply.is_none_or(|left| both <= left)
        }
    }

    /// Subtracts the tokens of an item if it fits. Returns whether it fits.
    pub(crate) fn take<T: Serialize>(&mut self, text: &str, json: &T) -> bool {
        let holds = self.holds(text, json);
        if holds {
            self.spend(text, json);
        }
        holds
    }

    /// Subtracts the tokens of an item that is included even if it does not fit.
    pub(crate) fn spend<T: Serialize>(&mut self, text: &str, json: &T) {
        if self.text == u64::MAX && self.reply.is_none() {
            return;
        }
        let (text, both) = self.costs(text, json);
        self.text = self.text.saturating_sub(text);
        self.reply = self.reply.map(|left| left.saturating_sub(both));
    }

    /// Returns the remaining tokens without one of `parts` equal parts: `without(2)` is one half, `without(8)` is 7/8.
    pub(crate) fn without(&self, parts: u64) -> Self {
        Self {
            accounting: self.accounting,
            text: self.text - self.text / parts,
            reply: self.reply.map(|left| left - left / parts),
        }
    }
}

/// Returns the length in bytes of the longest beginning of a text that fits; 0 if none fits. Tries short beginnings
/// first, because a text can be very long.
pub(crate) fn longest(text: &str, mut fits: impl FnMut(&str) -> bool) -> usize {
    let mut fits_to = |end: usize| text.get(..end).is_some_and(&mut fits);
    let (mut good, mut bad) = (0, text.len() + 1);
    let mut width = 256;
    while good < text.len() && bad > text.len() {
        let end = text.floor_char_boundary(width);
        match fits_to(end) {
            true => good = end,
            false => bad = end,
        }
        width = width.saturating_mul(2);
    }
    loop {
        let mut end = text.floor_char_boundary(good + (bad - good) / 2);
        if end <= good {
            end = text.ceil_char_boundary(good + 1);
        }
        if end >= bad || end <= good {
            return good;
        }
        match fits_to(end) {
            true => good = end,
            false => bad = end,
        }
    }
}
