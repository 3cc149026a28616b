//! Reads a sentence.

use super::item::{Form, Item};
use super::lexicon::LEXICON;
use super::reader::Reader;
use super::sentence::{Clause, NumberedSentence, Value};
use super::shape::Shape;
use super::token::{Kind, Token, is_number_word, tokens};

impl NumberedSentence {
    /// Reads a sentence.
    ///
    /// In a sentence in Japanese or Korean only digits are numbers.
    pub fn read(sentence: &str) -> Self {
        let is_other = |c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{ac00}'..='\u{d7af}');
        if sentence.contains(is_other) {
            return Self::read_form(sentence);
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
        let mut out = Reader::new(sentence, tokens).read();
        if out.has_numbers() {
            out.shape = Some(Box::new(Shape::read(sentence, true).0));
        }
        out
    }

    /// Reads a sentence in Japanese or Korean. Its numbers and terms have the form of other languages, too, by which
    /// sentences are found.
    fn read_form(sentence: &str) -> Self {
        let (shape, words) = Shape::read(sentence, false);
        if words.numbers.is_empty() {
            return Self::default();
        }
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
        Self {
            clauses: vec![clause],
            shape: Some(Box::new(shape)),
            ..Self::default()
        }
    }
}

impl Reader<'_> {
    fn read(&self) -> NumberedSentence {
        let mut items = self.items();
        let mut cues = self.cues();
        for item in &items {
            cues |= self.time_cues(item);
        }
        // Since when a sentence holds is not what it sets.
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
            shape: None,
        }
    }
}
