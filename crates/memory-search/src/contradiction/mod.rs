//! Whether a later statement says otherwise than an earlier one about the same thing.
//!
//! There is no model: two sentences must share most of their content words, and the later one must have
//! another value in the same place, or a phrase by which people correct themselves, decide otherwise or drop
//! a plan. Two later sentences are taken together where one has such a phrase. The phrases are data
//! (`cues.txt`), in English, German, French, Spanish, Russian and Chinese. Precision counts more than recall:
//! what is shown beside a hit and is no correction costs trust.

mod statement;

use statement::{Statement, statements};

/// Share of the content words of the shorter of two sentences that both must have, in percent.
const SAME_SUBJECT: usize = 50;

/// The same share where the later one is two sentences.
const SAME_SUBJECT_IN_TWO: usize = 40;

/// The same share where nothing but a negation or a value tells that one corrects the other.
const SAME_STATEMENT: usize = 75;

/// Returns whether `later` says otherwise than `earlier` about the same thing: a value changed, a decision
/// reversed, something corrected, a plan dropped. Questions say nothing.
///
/// ```
/// use memory_search::contradicts;
///
/// let earlier = "The staging database listens on port 5432.";
/// assert!(contradicts(earlier, "Correction: the staging database is on port 5433."));
/// assert!(!contradicts(earlier, "Is the staging database really on port 5433?"));
/// assert!(!contradicts(earlier, "As I said, the staging database listens on port 5432."));
/// ```
pub fn contradicts(earlier: &str, later: &str) -> bool {
    Said::of(earlier).is_contradicted_by(&Said::of(later))
}

/// What a text says, read once to be held against many others.
#[derive(Debug)]
pub struct Said(Vec<Sentence>);

#[derive(Debug)]
struct Sentence {
    alone: Statement,
    /// This sentence and the next as one, where one of them has a phrase of replacing.
    with_next: Option<Statement>,
}

impl Said {
    /// Reads a text.
    pub fn of(text: &str) -> Self {
        let statements = statements(text);
        let with_next = |two: &[Statement]| {
            let replaces = two.iter().any(|one| one.strong);
            let says_nothing_new = two.iter().any(|one| one.asks || one.same);
            (replaces && !says_nothing_new).then(|| Statement::joined(two))
        };
        let mut pairs: Vec<_> = statements.windows(2).map(with_next).collect();
        pairs.push(None);
        let sentences = statements.into_iter().zip(pairs);
        let sentences = sentences.map(|(alone, with_next)| Sentence { alone, with_next });
        Self(sentences.collect())
    }

    /// Whether a later text says otherwise about the same thing: see [`contradicts`].
    pub fn is_contradicted_by(&self, later: &Self) -> bool {
        let said = self.0.iter().map(|sentence| &sentence.alone);
        said.filter(|earlier| !earlier.asks).any(|earlier| {
            let mut sentences = later.0.iter();
            sentences.any(|sentence| corrects(earlier, &sentence.alone)) || later.replaces(earlier)
        })
    }

    /// Whether two sentences that follow each other replace what an earlier one says: one names the thing, the
    /// other says what became of it.
    fn replaces(&self, earlier: &Statement) -> bool {
        self.0.windows(2).any(|two| {
            let Some(later) = two.first().and_then(|first| first.with_next.as_ref()) else {
                return false;
            };
            let mut replacing = two.iter().map(|one| &one.alone).filter(|one| one.strong);
            let (shared, shorter) = share(earlier, later);
            let repeats_value = !earlier.values.is_empty() && earlier.values == later.values;
            shared >= 2
                && shared * 100 / shorter >= SAME_SUBJECT_IN_TWO
                // The sentence with the phrase speaks of the thing too.
                && replacing.any(|one| share(earlier, one).0 > 0)
                && !repeats_value
                && !later.terms.is_subset(&earlier.terms)
                && !earlier.terms.is_subset(&later.terms)
        })
    }
}

/// Number of content words that two sentences share, and of those of the shorter one.
fn share(earlier: &Statement, later: &Statement) -> (usize, usize) {
    let shared = earlier.terms.intersection(&later.terms).count();
    (shared, earlier.terms.len().min(later.terms.len()).max(1))
}

fn corrects(earlier: &Statement, later: &Statement) -> bool {
    if later.asks || later.same && !later.strong && !later.drop {
        return false;
    }
    let (shared, shorter) = share(earlier, later);
    let percent = shared * 100 / shorter;
    let same_subject = percent >= SAME_SUBJECT && (shared >= 2 || shorter <= 2);
    if shared == 0 || !same_subject {
        return false;
    }
    let same_statement = percent >= SAME_STATEMENT && shared >= 2;
    // Another value of a kind that the earlier sentence has one of.
    let changed = earlier.values.iter().any(|(kind, before)| {
        let after = later.values.get(kind);
        after.is_some_and(|after| !after.is_subset(before))
    });
    if changed && (later.weak || later.strong || later.drop) {
        return true;
    }
    // Without a word for it, the same must be said of the same thing: one more word may name another.
    if changed
        && same_statement
        && later.terms.is_subset(&earlier.terms)
        && earlier.sets.iter().any(|(subject, value)| {
            let other = later.sets.iter().find(|(of, _)| of == subject);
            other.is_some_and(|(_, other)| other != value)
        })
    {
        return true;
    }
    let says_other = !later.terms.is_subset(&earlier.terms);
    let repeats_value = !earlier.values.is_empty() && earlier.values == later.values;
    if later.strong && says_other && !repeats_value && !earlier.terms.is_subset(&later.terms) {
        return true;
    }
    if later.drop && !earlier.drop && !earlier.negated {
        return true;
    }
    same_statement && !changed && later.negated != earlier.negated && !earlier.drop
}
