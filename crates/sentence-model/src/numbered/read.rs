//! Reads a sentence.

use super::fitted::{Fitted, grams_of};
use super::item::{Form, Item};
use super::lexicon::LEXICON;
use super::reader::Reader;
use super::sentence::{Clause, NumberedSentence, Value};
use super::token::{Kind, Token, is_number_word, tokens};

impl NumberedSentence {
    /// Reads a sentence.
    ///
    /// In a sentence in Japanese or Korean only digits are numbers.
    pub fn read(sentence: &str) -> Self {
        if sentence.contains(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{ac00}'..='\u{d7af}')) {
            return Self::read_fitted(sentence).unwrap_or_default();
        }
        let tokens = tokens(sentence);
        let is_number = |token: &Token| token.kind == Kind::Number || is_number_word(token);
        let is_one = |pair: &[Token]| match pair {
            [one, unit] => {
                LEXICON.has("one", &one.text) && LEXICON.units.contains_key(unit.text.as_str())
            }
            _ => false,
        };
        if !tokens.iter().any(is_number) && !tokens.windows(2).any(is_one) {
            return Self::default();
        }
        Reader::new(sentence, tokens).read()
    }

    /// Reads a sentence in Japanese or Korean. `None` if it has no digit. Its numbers and terms have the form of other
    /// languages, too, by which sentences are found.
    fn read_fitted(sentence: &str) -> Option<Self> {
        let (fitted, words) = Fitted::read(sentence)?;
        let value = |(amount, unit, range): (String, String, _)| Value {
            dimension: unit,
            number: amount.clone(),
            amount,
            is_former: false,
            may_name: false,
            range,
        };
        let clause = Clause {
            values: words.numbers.into_iter().map(value).collect(),
            terms: words.terms,
            ..Clause::default()
        };
        Some(Self {
            clauses: vec![clause],
            fitted: Some(Box::new(fitted)),
            ..Self::default()
        })
    }

    /// Returns the features by which fitted weights judge whether a later text changes an earlier one, each with its name: those
    /// of both texts, and for each gram that only the later text has `+GRAM`, for each that only the earlier one has `-GRAM`.
    /// `None` unless both are in Japanese or Korean, with digits.
    pub fn features(earlier: &str, later: &str) -> Option<Vec<(String, f64)>> {
        let (before, after) = (Fitted::read(earlier)?.0, Fitted::read(later)?.0);
        let features = after.features(&before).into_iter();
        let mut out: Vec<(String, f64)> = features
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let [before, after] = [earlier, later].map(grams_of);
        for (sign, one, other) in [('+', &after, &before), ('-', &before, &after)] {
            out.extend(
                one.difference(other)
                    .map(|gram| (format!("{sign}{gram}"), 1.0)),
            );
        }
        Some(out)
    }
}

impl Reader<'_> {
    fn read(&self) -> NumberedSentence {
        let mut items = self.items();
        let mut cues = self.cues();
        for item in &items {
            cues |= self.time_cues(item);
        }
        // Since when a sentence holds is not its value.
        if items
            .iter()
            .any(|item| matches!(item.form, Form::Value { .. }))
        {
            items.retain(|item| !self.is_since(item));
        }
        let mut clauses: Vec<Clause> = Vec::new();
        for part in self.parts(&items) {
            let own: Vec<&Item> = items
                .iter()
                .filter(|item| part.contains(&item.tokens.start))
                .collect();
            let mut clause = self.clause(&part, &own, &items);
            if clause.names.is_empty()
                && let Some(before) = clauses.last()
            {
                clause.names.clone_from(&before.names);
                if clause.terms.is_empty() {
                    clause.terms.clone_from(&before.terms);
                }
            }
            clauses.push(clause);
        }
        NumberedSentence {
            clauses,
            cues,
            fitted: None,
        }
    }
}
