//! The floor of the gate: faults that no summary of its source has, in any style.

use super::changed;
use super::form::{self, Form};
use super::known::{Known, Shared, telling_words};
use super::language;
use crate::criteria::Fault;
use crate::request::SummaryRequest;

/// Minimum cost of a source with which a summary is compared by its words, in tokens, and minimum number of distinct words.
/// A shorter or poorer source says too little: its summary is held to its form and its names alone.
const LEAST_SOURCE: (u64, usize) = (256, 64);
/// A summary is too short below a tenth of its target length. Summaries by strong models are at least a sixth.
const SHORT: u64 = 10;
/// Length from which a summary of any source is long enough, in tokens: the source may be one file that was read.
const LONG_ENOUGH: u64 = 40;
/// Number of names that a good summary may have although its source does not: names that its writer put together, or
/// knew from elsewhere.
const FREE_NAMES: u32 = 2;
/// A summary may have a third of its names from elsewhere. Summaries by strong models have at most a fifth.
const NAMES_SHARE: u32 = 3;
/// A summary has a tenth of the names in its source, but more than a few are never needed. Summaries by strong models have at
/// least an eighth, if of a list of files only some count.
const OWN_NAMES: (u32, u32) = (10, 4);
/// Share of the telling words of a summary that its source must have, of many words and of a few, in hundredths.
/// Summaries by strong models have at least 31 of 100, and summaries of other conversations 10 to 60, so that their
/// names are looked at as well.
const TELLING_SHARE: (u32, u32) = (30, 20);
/// Number of words from which they are many, and minimum number of words that are compared at all.
const TELLING_WORDS: (u32, u32) = (12, 4);
/// Share of the pairs of characters of a summary that its source must have, in hundredths. Summaries by strong models
/// have at least 52 of 100 where the source has much text in the same script.
const PAIRS_SHARE: u32 = 15;
/// Minimum number of pairs of characters that are compared.
const LEAST_PAIRS: u32 = 12;

/// Returns the faults of a text.
pub(super) fn faults(
    text: &str,
    request: &SummaryRequest<'_>,
    conversation: &[&str],
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let known = Known::of(request);
    let (tokens, words) = LEAST_SOURCE;
    let is_rich = request.source_tokens() >= tokens && known.vocabulary() >= words;
    let form = Form::of(text);
    let body = form.body();
    if !form.has_text() || is_rich && !form.has_sentence() {
        faults.push(Fault::NoSentence);
    }
    let tokens = request.estimator.text(&body);
    let least = (request.target_tokens / SHORT).min(LONG_ENOUGH);
    if is_rich && tokens < least {
        faults.push(Fault::Short { tokens, least });
    }
    if is_rich && form.repeats() {
        faults.push(Fault::Repetition);
    }
    if form::has_reasoning(text, |tag| known.says(tag)) {
        faults.push(Fault::Reasoning);
    }
    if form.is_unfinished(|word| known.is_cut_name(word)) {
        faults.push(Fault::Unfinished);
    }
    let names = known.names(text);
    let unknown = names.total - names.found;
    if form.is_remark(names.found > 0) {
        faults.push(Fault::Remark);
    }
    if unknown > FREE_NAMES && unknown * NAMES_SHARE > names.total {
        faults.push(Fault::Invented {
            unknown,
            names: names.total,
        });
    }
    if !is_rich {
        return faults;
    }
    let (share, most) = OWN_NAMES;
    let own_names = known.own_names();
    let least = (own_names / share).min(most);
    if names.found < least {
        let found = names.found;
        faults.push(Fault::FewNames { found, least });
    }
    faults.extend(unrelated(&body, &known, own_names, conversation));
    if known.is_copied(&body) {
        faults.push(Fault::Copied);
    }
    let changed = changed::names(request);
    if changed::denies(&form, &changed) {
        let changed = u32::try_from(changed.len()).unwrap_or(u32::MAX);
        faults.push(Fault::NoFiles { changed });
    }
    faults
}

/// Returns the fault of a text that shares hardly any telling words with its source.
fn unrelated(
    body: &str,
    known: &Known<'_>,
    own_names: u32,
    conversation: &[&str],
) -> Option<Fault> {
    let fault = |shared: Shared| {
        let (known, words) = (shared.found, shared.total);
        Fault::Unrelated { known, words }
    };
    let lacks = |shared: &Shared, percent: u32| shared.found * 100 < shared.total * percent;
    if let Some(pairs) = known.pairs(body)
        && pairs.total >= LEAST_PAIRS
        && lacks(&pairs, PAIRS_SHARE)
    {
        return Some(fault(pairs));
    }
    let Some(telling) = known.telling(body) else {
        // In another script, names and numbers are what both have.
        let words = telling_words(body);
        return known
            .has_no_term(body, own_names)
            .then_some(Fault::Unrelated { known: 0, words });
    };
    let (many, least) = TELLING_WORDS;
    let percent = match telling.total >= many {
        true => TELLING_SHARE.0,
        false => TELLING_SHARE.1,
    };
    // Code and commands are English in every conversation, so a summary in another language of Latin letters shares few
    // words with a source that is mostly code.
    (telling.total >= least
        && lacks(&telling, percent)
        && language::shares_words(body, conversation))
    .then(|| fault(telling))
}
