//! The tokens of a sentence, with the phrases that say how it relates to other sentences.

use std::ops::Range;

use super::lexicon::{LEXICON, cue, is_han};
use super::sentence::Cues;
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
        for n in 0..tokens.len() {
            let rest = tokens.get(n..).unwrap_or_default().iter();
            for (length, cue) in LEXICON.phrases(rest.map(|token| token.text.as_str())) {
                all_cues |= cue;
                let own = cues.get_mut(n..n + length).unwrap_or_default();
                own.iter_mut().for_each(|of| *of |= cue);
            }
        }
        if text.contains(is_han) {
            for (at, _) in text.char_indices() {
                for (length, cue) in LEXICON.han_phrases(text.get(at..).unwrap_or("")) {
                    all_cues |= cue;
                    if cue & cue::EMPTY != 0 {
                        han_cues.push(at..at + length);
                    }
                }
            }
        }
        let is_german = text.contains(['ä', 'ö', 'ü', 'ß'])
            || tokens
                .iter()
                .any(|token| LEXICON.german.contains(token.text.as_str()));
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

    pub(super) fn cues(&self) -> Cues {
        let end = self.text.trim_end();
        let asks = end.ends_with(['?', '？']) || end.trim_end_matches('。').ends_with('吗');
        let has = |cue: u16| self.all_cues & cue != 0;
        Cues {
            moves: has(cue::MOVES),
            now: has(cue::NOW),
            rule: has(cue::RULE),
            same: has(cue::SAME),
            past: has(cue::PAST),
            open: asks || has(cue::OPEN),
            drops: has(cue::DROPS),
            assigns: has(cue::ASSIGNS),
        }
    }
}
