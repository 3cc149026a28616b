//! The tokens of a sentence, with the phrases that say how it relates to other sentences.

use std::ops::Range;

use super::item::{Form, Item};
use super::lexicon::{LEXICON, cue, is_han};
use super::token::{Kind, Token};

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<Token>,
    /// For each token of a script with spaces, the meanings of the phrases to which it belongs.
    pub(super) cues: Vec<u16>,
    /// The meanings of all phrases.
    pub(super) all_cues: u16,
    /// Byte ranges of the phrases in scripts without spaces that do not describe a subject.
    pub(super) han_cues: Vec<Range<usize>>,
    pub(super) is_german: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, tokens: Vec<Token>) -> Self {
        let mut cues = vec![0; tokens.len()];
        let (mut all_cues, mut han_cues) = (0, Vec::new());
        // Of phrases inside each other, the longest one counts: `no longer`, and not `no`.
        let mut n = 0;
        while n < tokens.len() {
            let rest = tokens.get(n..).unwrap_or_default().iter();
            let found = LEXICON.phrase(rest.map(|token| token.text.as_str()));
            let (length, cue) = found.unwrap_or((1, 0));
            all_cues |= cue;
            let own = cues.get_mut(n..n + length).unwrap_or_default();
            own.iter_mut().for_each(|of| *of |= cue);
            n += length;
        }
        let mut end = 0;
        for (at, _) in text.char_indices().filter(|(_, c)| is_han(*c)) {
            let rest = text.get(at..).unwrap_or("");
            if at >= end
                && let Some((length, cue)) = LEXICON.han_phrase(rest)
            {
                all_cues |= cue;
                end = at + length;
                if cue & cue::EMPTY != 0 {
                    han_cues.push(at..end);
                }
            }
        }
        // `2 am` is no German.
        let is_german = |(n, token): (usize, &Token)| {
            let clock = token.text == "am"
                && n > 0
                && tokens
                    .get(n - 1)
                    .is_some_and(|one| one.kind == Kind::Number);
            !clock && LEXICON.has("german", &token.text)
        };
        let is_german =
            text.contains(['ä', 'ö', 'ü', 'ß']) || tokens.iter().enumerate().any(is_german);
        Self {
            text,
            tokens,
            cues,
            all_cues,
            han_cues,
            is_german,
        }
    }

    pub(super) fn at(&self, n: usize) -> &str {
        self.tokens.get(n).map_or("", |token| token.text.as_str())
    }

    /// Returns the text of a token before another.
    pub(super) fn before(&self, n: usize, places: usize) -> &str {
        n.checked_sub(places).map_or("", |n| self.at(n))
    }

    pub(super) fn kind(&self, n: usize) -> Option<Kind> {
        self.tokens.get(n).map(|token| token.kind)
    }

    /// Returns whether a token directly precedes the next one.
    pub(super) fn touches(&self, n: usize) -> bool {
        let end = self.tokens.get(n).map(|token| token.range.end);
        end.is_some() && end == self.tokens.get(n + 1).map(|token| token.range.start)
    }

    pub(super) fn is_content(&self, n: usize) -> bool {
        self.kind(n) == Some(Kind::Word) && !LEXICON.empty.contains(self.at(n))
    }

    /// Returns whether a word belongs to a phrase that says how the sentence relates to others.
    pub(super) fn is_cue(&self, n: usize) -> bool {
        self.has_cue(n, cue::EMPTY & !cue::NEGATES)
    }

    pub(super) fn has_cue(&self, n: usize, cue: u16) -> bool {
        self.cues.get(n).is_some_and(|own| own & cue != 0)
    }

    /// Returns the meanings of the phrases of the sentence. A question is open.
    pub(super) fn cues(&self) -> u16 {
        let end = self.text.trim_end();
        let asks = end.ends_with(['?', '？']) || end.trim_end_matches('。').ends_with('吗');
        let is_foreign = |c: char| c.is_alphabetic() && c > '\u{24f}' && !is_han(c);
        let mut words = self.tokens.iter();
        let is_foreign =
            self.text.contains(is_foreign) || words.any(|word| LEXICON.has("foreign", &word.text));
        let foreign = if is_foreign { cue::FOREIGN } else { 0 };
        self.all_cues | foreign | if asks { cue::OPEN } else { 0 }
    }

    /// Returns the meaning of a point or span of time in the sentence: `two years ago`, `starting Monday`.
    pub(super) fn time_cues(&self, item: &Item) -> u16 {
        let is_span = matches!(&item.form, Form::Value { dimension, .. } if dimension == "time");
        let (before, after) = (self.before(item.tokens.start, 1), self.at(item.tokens.end));
        let unit = after.find('前').is_some_and(|at| at < '前'.len_utf8() * 3);
        match () {
            () if is_span && (before == "vor" || after == "ago" || unit) => cue::PAST,
            () if self.is_since(item) => cue::NOW,
            () => 0,
        }
    }
}
