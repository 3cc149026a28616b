//! Orders texts so that each text adds as much as possible to the texts before it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use sentence_model::is_unspaced;

/// Minimum length of an informative word, in bytes. Numbers may be shorter.
const WORD: usize = 4;

/// Parts of a text's value: for each word that no earlier text has, and for each other word.
const NEW: u64 = 4;
const KNOWN: u64 = 1;

/// A queue of texts. The text that adds most to the texts before comes first.
pub(crate) struct News {
    /// Numbers of the different words in each text.
    words: Vec<Vec<u32>>,
    /// Waiting texts with their values. A value may be too high, because it was computed before other texts were taken.
    waiting: BinaryHeap<(u64, Reverse<usize>)>,
    /// Whether each word is in one of the texts taken so far.
    told: Vec<bool>,
}

impl News {
    /// Creates a queue of texts. A name of letters and digits, such as a colour code or a version, counts for `name`
    /// words.
    pub(crate) fn of<'a>(
        texts: impl Iterator<Item = &'a str>,
        name: u64,
        worth: &dyn Fn(usize) -> u64,
    ) -> Self {
        let mut ids: HashMap<u64, u32> = HashMap::new();
        let mut words = Vec::new();
        for text in texts {
            let mut own = Vec::new();
            visit_words(text, name, &mut |word| {
                let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                own.push(*ids.entry(word).or_insert(next));
            });
            own.sort_unstable();
            own.dedup();
            words.push(own);
        }
        let mut news = Self {
            waiting: BinaryHeap::new(),
            told: vec![false; ids.len()],
            words,
        };
        let all = (0..news.words.len()).map(|at| (news.value(at, worth), Reverse(at)));
        news.waiting = all.collect();
        news
    }

    /// Removes the text from the queue that adds most to the texts taken so far, and returns its index. `worth` is the
    /// value of a word in the text of an index.
    pub(crate) fn next(&mut self, worth: &dyn Fn(usize) -> u64) -> Option<usize> {
        while let Some((before, Reverse(at))) = self.waiting.pop() {
            // The value may have fallen since it was computed.
            let value = self.value(at, worth);
            if value == before
                || self
                    .waiting
                    .peek()
                    .is_none_or(|next| (value, Reverse(at)) >= *next)
            {
                return Some(at);
            }
            self.waiting.push((value, Reverse(at)));
        }
        None
    }

    /// Records that the text at `at` was taken.
    pub(crate) fn tell(&mut self, at: usize) {
        for word in self.words.get(at).into_iter().flatten() {
            if let Some(told) = self.told.get_mut(*word as usize) {
                *told = true;
            }
        }
    }

    fn value(&self, at: usize, worth: &dyn Fn(usize) -> u64) -> u64 {
        let words = self.words.get(at).map_or(&[][..], Vec::as_slice);
        let is_new = |word: &&u32| self.told.get(**word as usize) == Some(&false);
        let new = words.iter().filter(is_new).count() as u64;
        let all = words.len() as u64;
        worth(at).saturating_mul(1 + NEW * new + KNOWN * (all - new))
    }
}

/// Calls `f` with a hash of each informative word or number, in lower case, and of each pair of characters in scripts
/// with short words.
fn visit_words(text: &str, name: u64, f: &mut dyn FnMut(u64)) {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let add = |hash: u64, c: char| (hash ^ u64::from(u32::from(c))).wrapping_mul(PRIME);
    let (mut hash, mut length, mut number, mut letter) = (BASIS, 0, false, false);
    let mut wide: Option<char> = None;
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() && !is_unspaced(c) {
            number |= c.is_numeric();
            letter |= c.is_alphabetic();
            length += c.len_utf8();
            match c.is_ascii() {
                true => hash = add(hash, c.to_ascii_lowercase()),
                false => hash = c.to_lowercase().fold(hash, add),
            }
            wide = None;
            continue;
        }
        if length >= WORD || number {
            f(hash);
        }
        if number && letter {
            (1..name).for_each(|n| f(hash ^ n));
        }
        (hash, length, number, letter) = (BASIS, 0, false, false);
        let is_letter = is_unspaced(c) && c.is_alphanumeric();
        if let Some(before) = wide.filter(|_| is_letter) {
            f(add(add(BASIS, before), c));
        }
        wide = is_letter.then_some(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(texts: &[&str]) -> Vec<usize> {
        let worth = |_: usize| 1;
        let mut news = News::of(texts.iter().copied(), 1, &worth);
        let mut order = Vec::new();
        while let Some(at) = news.next(&worth) {
            news.tell(at);
            order.push(at);
        }
        order
    }

    #[test]
    fn what_was_told_comes_after_what_is_new() {
        let texts = [
            "The harbour opens on Monday morning.",
            "The HARBOUR opens, on Monday morning!",
            "Anna paints.",
        ];
        assert_eq!(order(&texts), [0, 2, 1]);
    }

    #[test]
    fn numbers_and_scripts_without_spaces_have_words() {
        assert_eq!(order(&["so do I", "so is it 7"]), [1, 0]);
        assert_eq!(order(&["港は月曜", "港は月曜に", "絵を描く"]), [1, 2, 0]);
    }
}
