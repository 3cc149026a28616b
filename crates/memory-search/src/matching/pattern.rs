//! Search patterns in each mode, and the search for them in the texts of a message.

use std::collections::BTreeSet;
use std::ops::Range;

use super::literal::Literal;
use super::regex::RegexPattern;
use super::snippet::Snippet;
use super::terms::Terms;
use crate::fallback::Fallback;
use crate::query::{Query, SearchMode};
use crate::segment::{Need, variants};
use sentence_model::fold::{Image, composed};
use sentence_model::words::{Tokenizer, is_stop_word, pieces};

/// Number of bytes of a text after which the search for words ends, if the required words were found.
const ENOUGH_BYTES: usize = 1 << 19;

/// A pattern that is ready to be compared with texts.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Matches texts that contain the literal text.
    Literal(Literal),
    /// Matches texts in which the regular expression matches.
    Regex(RegexPattern),
    /// Matches messages that contain all terms, or any of them.
    Terms { terms: Terms, all: bool },
}

impl Pattern {
    /// Interprets the pattern of a query in the mode of the query. If the pattern is not valid in this mode, interprets
    /// it literally, and also returns the [`Fallback`] with the reason.
    pub(super) fn new(query: &Query) -> (Self, Option<Fallback>) {
        let exact = query.smart_case && has_upper_case(query);
        match query.mode {
            SearchMode::Regex => match RegexPattern::new(&query.pattern, exact) {
                Ok(regex) => (Pattern::Regex(regex), None),
                Err(reason) => {
                    let fallback = Fallback::InvalidRegex { reason };
                    (Self::literal(&query.pattern, exact), Some(fallback))
                }
            },
            SearchMode::Words => {
                let tokenizer = Tokenizer::WORDS;
                Self::terms(query, terms(&query.pattern, tokenizer), true, tokenizer)
            }
            SearchMode::Prose => {
                let terms = telling_terms(&query.pattern);
                Self::terms(query, terms, false, Tokenizer::RANKING)
            }
            _ => (Self::literal(&query.pattern, exact), None),
        }
    }

    fn literal(pattern: &str, exact: bool) -> Self {
        Pattern::Literal(Literal::new(pattern, exact))
    }

    fn terms(
        query: &Query,
        terms: Vec<String>,
        all: bool,
        tokenizer: Tokenizer,
    ) -> (Self, Option<Fallback>) {
        if terms.is_empty() {
            return (
                Self::literal(&query.pattern, false),
                Some(Fallback::NoWords),
            );
        }
        let pattern = Pattern::Terms {
            terms: Terms::new(terms, tokenizer),
            all,
        };
        (pattern, None)
    }

    /// Returns the condition for the index ([`Need`]) that every matching message satisfies.
    pub(super) fn need(&self) -> Need {
        match self {
            Pattern::Literal(literal) => literal.need(),
            Pattern::Regex(regex) => regex.need().clone(),
            Pattern::Terms { terms, all, .. } => {
                let variants = terms.iter().map(|term| variants(term));
                match all {
                    true => Need::of_terms(variants),
                    false => Need::of_terms([variants.flatten().collect()]),
                }
            }
        }
    }

    /// Creates a finder, which searches for the pattern in the texts of one message. `chars` is the maximum length of a
    /// snippet.
    pub(super) fn finder(&self, chars: usize) -> Finder<'_> {
        Finder {
            pattern: self,
            chars,
            snippet: None,
            snippet_terms: 0,
            seen: BTreeSet::new(),
        }
    }
}

/// Returns the distinct terms of a pattern.
fn terms(pattern: &str, tokenizer: Tokenizer) -> Vec<String> {
    let mut terms = BTreeSet::new();
    tokenizer.visit_query(&composed(pattern), &mut |_, term| {
        terms.insert(term);
    });
    terms.into_iter().collect()
}

/// Returns the distinct terms of a pattern without stop words. Returns all terms if there are only stop words.
fn telling_terms(pattern: &str) -> Vec<String> {
    let (mut telling, pattern) = (BTreeSet::new(), &*composed(pattern));
    Tokenizer::RANKING.visit_query(pattern, &mut |range, term| {
        if !is_stop_word(pattern.get(range).unwrap_or_default()) {
            telling.insert(term);
        }
    });
    match telling.is_empty() {
        true => terms(pattern, Tokenizer::RANKING),
        false => telling.into_iter().collect(),
    }
}

/// Returns whether a pattern contains an upper-case letter. In a regular expression, the letter after a backslash and
/// the class name in `\p{…}` do not count.
fn has_upper_case(query: &Query) -> bool {
    let mut chars = query.pattern.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && query.mode == SearchMode::Regex {
            let class = chars.next();
            if matches!(class, Some('p' | 'P')) && chars.clone().next() == Some('{') {
                chars.by_ref().find(|c| *c == '}');
            }
        } else if c.is_uppercase() {
            return true;
        }
    }
    false
}

/// Searches for a pattern in the texts of one message, and keeps the best snippet.
#[derive(Debug)]
pub(super) struct Finder<'p> {
    pattern: &'p Pattern,
    chars: usize,
    snippet: Option<Snippet>,
    /// Number of different terms in the text of the snippet.
    snippet_terms: usize,
    /// Indexes, in the pattern, of the terms that were found.
    seen: BTreeSet<usize>,
}

impl Finder<'_> {
    /// Searches for the pattern in one text of the message.
    pub(super) fn see(&mut self, text: &str) {
        match self.pattern {
            Pattern::Terms { terms, .. } => self.see_terms(text, terms),
            _ if self.snippet.is_some() => {}
            Pattern::Literal(literal) => {
                let spans = literal.spans(text, self.chars);
                self.cut(text, &spans, 0);
            }
            Pattern::Regex(regex) => {
                let spans = regex.spans(text, self.chars);
                self.cut(text, &spans, 0);
            }
        }
    }

    fn cut(&mut self, text: &str, spans: &[Range<usize>], focus: usize) {
        if let Some(snippet) = Snippet::cut(text, spans, focus, self.chars) {
            self.snippet = Some(snippet);
        }
    }

    fn see_terms(&mut self, text: &str, terms: &Terms) {
        let mut found = Vec::new();
        for (begin, piece) in pieces(text) {
            let image = Image::composed(piece, false);
            let places = terms.places(image.text());
            self.seen.extend(places.iter().map(|(place, _)| *place));
            let in_text = |range: Range<usize>| {
                let range = image.source(range);
                begin + range.start..begin + range.end
            };
            let places = places.into_iter();
            found.extend(places.map(|(place, range)| (place, in_text(range))));
            // The rest of a long text can only give a better snippet.
            if begin >= ENOUGH_BYTES && self.has_all() {
                break;
            }
        }
        // Single characters come before the pairs that begin with them.
        found.sort_by_key(|(_, range)| (range.start, range.end));
        let (focus, distinct) = densest(&found, self.chars);
        if distinct > self.snippet_terms {
            self.snippet_terms = distinct;
            let spans: Vec<Range<usize>> = found.into_iter().map(|(_, range)| range).collect();
            self.cut(text, &spans, focus);
        }
    }

    /// Returns whether all required terms were found.
    fn has_all(&self) -> bool {
        match self.pattern {
            Pattern::Terms { terms, all: true } => self.seen.len() >= terms.len(),
            _ => !self.seen.is_empty(),
        }
    }

    /// Returns the snippet if the message matches the pattern.
    pub(super) fn finish(self) -> Option<Snippet> {
        match self.pattern {
            Pattern::Terms { all: true, .. } if !self.has_all() => None,
            _ => self.snippet,
        }
    }
}

/// Finds the match from which on the most different terms occur within `bytes / 2` bytes. Returns the index of this
/// match and the number of these terms.
fn densest(found: &[(usize, Range<usize>)], bytes: usize) -> (usize, usize) {
    let mut counts = std::collections::BTreeMap::new();
    let (mut best, mut end) = ((0, 0), 0);
    for (first, (place, range)) in found.iter().enumerate() {
        while let Some((next, inside)) = found.get(end)
            && (end == first || inside.end <= range.start.saturating_add(bytes / 2))
        {
            *counts.entry(*next).or_insert(0_usize) += 1;
            end += 1;
        }
        if counts.len() > best.1 {
            best = (first, counts.len());
        }
        if let Some(count) = counts.get_mut(place) {
            *count -= 1;
            if *count == 0 {
                counts.remove(place);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_densest_place_is_found() {
        let found = [(0, 0..1), (0, 15..16), (1, 18..19), (2, 30..31)];
        assert_eq!(densest(&found, 20), (1, 2));
        assert_eq!(densest(&[], 20), (0, 0));
        assert_eq!(densest(&[(3, 4..9)], 1), (0, 1));
    }

    /// The end of a text of megabytes is read only for words that were not found before.
    #[test]
    fn a_long_text_is_read_until_all_is_found() {
        let text = format!("the red {} pump red pump", "filler ".repeat(ENOUGH_BYTES));
        let find = |pattern: &str, mode| {
            let query = Query::new(pattern).with_mode(mode);
            let (pattern, _) = Pattern::new(&query);
            let mut finder = pattern.finder(20);
            finder.see(&text);
            finder.finish().map(|snippet| snippet.text)
        };
        assert_eq!(
            find("red pump", SearchMode::Prose).unwrap(),
            "the red filler fille…"
        );
        assert!(
            find("red pump", SearchMode::Words)
                .unwrap()
                .contains("pump red")
        );
        assert!(
            find("pump", SearchMode::Prose)
                .unwrap()
                .contains("pump red")
        );
        assert_eq!(find("red hose", SearchMode::Words), None);
    }

    #[test]
    fn upper_case_is_seen_outside_of_classes() {
        let upper = |pattern: &str, mode| has_upper_case(&Query::new(pattern).with_mode(mode));
        assert!(upper("Abc", SearchMode::Literal) && upper(r"\W", SearchMode::Literal));
        assert!(!upper(r"\W\p{Lu}x", SearchMode::Regex) && upper(r"\WX", SearchMode::Regex));
    }
}
