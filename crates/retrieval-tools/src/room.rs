//! The room of an answer in progress.

use memory_model::Accounting;
use serde::Serialize;

/// Tokens that an answer may still hold.
#[derive(Debug, Clone)]
pub(crate) struct Room<'a> {
    pub(crate) accounting: &'a dyn Accounting,
    /// For its text.
    pub(crate) text: u64,
    /// For its text and its JSON together, if both are sent.
    pub(crate) reply: Option<u64>,
}

impl Room<'_> {
    /// Cost of an item that is written as text and as JSON: its text, and both together.
    fn costs<T: Serialize>(&self, text: &str, json: &T) -> (u64, u64) {
        let text = self.accounting.text(text);
        let json = self.reply.and_then(|_| serde_json::to_string(json).ok());
        // A comma parts it from the next.
        let json = json.map_or(0, |json| self.accounting.text(&json) + 1);
        (text, text + json)
    }

    /// Whether an item fits.
    pub(crate) fn holds<T: Serialize>(&self, text: &str, json: &T) -> bool {
        // Without a limit, tokens are not counted.
        self.text == u64::MAX && self.reply.is_none() || {
            let (text, both) = self.costs(text, json);
            text <= self.text && self.reply.is_none_or(|left| both <= left)
        }
    }

    /// Takes the room of an item if it fits.
    pub(crate) fn take<T: Serialize>(&mut self, text: &str, json: &T) -> bool {
        let holds = self.holds(text, json);
        if holds {
            self.spend(text, json);
        }
        holds
    }

    /// Takes the room of an item that is always included.
    pub(crate) fn spend<T: Serialize>(&mut self, text: &str, json: &T) {
        if self.text == u64::MAX && self.reply.is_none() {
            return;
        }
        let (text, both) = self.costs(text, json);
        self.text = self.text.saturating_sub(text);
        self.reply = self.reply.map(|left| left.saturating_sub(both));
    }

    /// The room without one of `parts` equal parts.
    pub(crate) fn without(&self, parts: u64) -> Self {
        Self {
            accounting: self.accounting,
            text: self.text - self.text / parts,
            reply: self.reply.map(|left| left - left / parts),
        }
    }
}

/// Returns the length of the longest beginning of a text that fits, in bytes; 0 if none does. Tries short ones first: a
/// text can be huge.
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
