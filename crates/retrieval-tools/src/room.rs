//! The remaining tokens of an answer in progress.

use memory_model::Accounting;

/// Number of tokens that may still be added to the text of an answer. `u64::MAX` is no limit: tokens are then not
/// counted.
#[derive(Debug, Clone)]
pub(crate) struct Room<'a> {
    pub(crate) accounting: &'a dyn Accounting,
    pub(crate) text: u64,
}

impl Room<'_> {
    /// Returns whether a text fits in the remaining tokens.
    pub(crate) fn holds(&self, text: &str) -> bool {
        self.text == u64::MAX || self.accounting.text(text) <= self.text
    }

    /// Subtracts the tokens of a text if it fits. Returns whether it fits.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let holds = self.holds(text);
        if holds {
            self.spend(text);
        }
        holds
    }

    /// Subtracts the tokens of a text that is included even if it does not fit.
    pub(crate) fn spend(&mut self, text: &str) {
        if self.text != u64::MAX {
            self.text = self.text.saturating_sub(self.accounting.text(text));
        }
    }

    /// Returns the remaining tokens without one of `parts` equal parts: `without(2)` is one half, `without(8)` is 7/8.
    pub(crate) fn without(&self, parts: u64) -> Self {
        let text = match self.text {
            u64::MAX => u64::MAX,
            text => text - text / parts,
        };
        Self { text, ..*self }
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
