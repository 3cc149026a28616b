//! Shortening of texts. Every function is pure and cuts only between characters. A function returns `None` if the
//! shortened text would not be both shorter in bytes and cheaper in tokens.

use token_estimate::TokenEstimator;

/// Minimum length of the text that an excerpt shows, in bytes.
const LEAST_SHOWN: usize = 24;
/// Maximum number of interpolated guesses in the search for the longest excerpt that fits. After them the search halves
/// the interval.
const GUESSES: u32 = 12;
/// Maximum length of the pointer in a marker for which the marker is recognised, in bytes.
const LONGEST_POINTER: usize = 96;
/// Maximum length of a recognised marker, in bytes.
const LONGEST_MARKER: usize = LONGEST_POINTER + 96;
/// Beginning of the marker between the two shown parts of a text. [`CLOSES`] is its end.
const OPENS: &str = "\n[… of ";
const CLOSES: &str = " …]\n";

/// Returns the marker that replaces an omitted text of `tokens` tokens: `[… 900 tokens left out; expand message:7 …]`.
///
/// `pointer` is the argument with which a tool can show the text, such as `message:7`. If it is empty, the marker has
/// no `expand` clause.
pub fn left_out(tokens: u64, pointer: &str) -> String {
    format!("[… {tokens} tokens left out{} …]", expand(pointer))
}

/// Returns whether `text` is a marker written by [`left_out`] with a pointer of at most 96 bytes. Callers do not
/// shorten a marker again, because a second marker would lose the number of tokens.
pub fn is_left_out(text: &str) -> bool {
    text.strip_prefix("[… ")
        .and_then(|rest| rest.strip_suffix(" …]"))
        .and_then(|rest| rest.split_once(" tokens left out"))
        .is_some_and(|(tokens, pointer)| {
            let pointer = match pointer.strip_prefix("; expand ") {
                Some(pointer) => pointer,
                None if pointer.is_empty() => pointer,
                None => return false,
            };
            tokens
                .parse()
                .is_ok_and(|tokens| left_out(tokens, pointer) == text)
                && pointer.len() <= LONGEST_POINTER
                && !pointer.contains('\n')
        })
}

fn expand(pointer: &str) -> String {
    match pointer {
        "" => String::new(),
        _ => format!("; expand {pointer}"),
    }
}

/// Returns the [`left_out`] marker for the whole text. `None` if the marker is not shorter than the text.
pub(crate) fn stub_text(
    text: &str,
    pointer: &str,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    if is_left_out(text) {
        return None;
    }
    let tokens = estimator.text(text);
    shorter(left_out(tokens, pointer), text, tokens, estimator)
}

/// Returns the first and the last lines of a text with more than `lines` lines. A line between them counts the omitted
/// lines. Half of `lines`, rounded down, is shown from the beginning.
pub(crate) fn clip_lines(
    text: &str,
    lines: usize,
    pointer: &str,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    let count = text.lines().count();
    if count <= lines {
        return None;
    }
    let (head, tail) = (lines / 2, lines - lines / 2);
    let marked = |line: &str| {
        line.len() <= LONGEST_MARKER && line.starts_with("[… ") && line.ends_with(" …]")
    };
    if count == lines + 1 && text.lines().nth(head).is_some_and(marked) {
        return None;
    }
    // Byte offsets at which the first lines end and the last lines begin.
    let after = |line: usize| {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        line.checked_sub(1)
            .map_or(0, |line| ends.clone().nth(line).unwrap_or(text.len()))
    };
    let (head, tail) = (after(head), after(count - tail));
    let clipped = format!(
        "{}[… {} lines left out{} …]\n{}",
        text.get(..head).unwrap_or(""),
        count - lines,
        expand(pointer),
        text.get(tail..).unwrap_or("")
    );
    shorter(clipped, text, estimator.text(text), estimator)
}

/// Shortens a text like [`clip_counted`], but computes the cost of the text itself.
pub(crate) fn clip_tokens(
    text: &str,
    tokens: u64,
    pointer: &str,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    clip_counted(text, estimator.text(text), tokens, pointer, estimator)
}

/// Returns the beginning and the end of a text with a marker between them. Two thirds of the shown text are from the
/// beginning, one third from the end. The result costs at most `tokens` tokens. `whole` is the cost of the whole text,
/// in tokens.
///
/// If the limit is too small for any excerpt, returns only the [`left_out`] marker, which may cost more. Returns `None`
/// if the result would not be shorter than the text.
pub fn clip_counted(
    text: &str,
    whole: u64,
    tokens: u64,
    pointer: &str,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    if whole <= tokens || is_left_out(text) {
        return None;
    }
    let clipped = |bytes: usize| ends(text, bytes - bytes / 3, bytes / 3, whole, pointer);
    let low = longest(text.len(), whole, tokens, |bytes| {
        estimator.text(&clipped(bytes))
    });
    if low >= LEAST_SHOWN
        && let Some(clipped) = shorter(clipped(low), text, whole, estimator)
    {
        return Some(clipped);
    }
    shorter(left_out(whole, pointer), text, whole, estimator)
}

/// Returns the first `head` and the last `tail` characters of a text with a marker between them.
pub(crate) fn clip_chars(
    text: &str,
    head: usize,
    tail: usize,
    pointer: &str,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    let (head, tail) = first_and_last(text, head, tail)?;
    let whole = estimator.text(text);
    shorter(
        ends(text, head, tail, whole, pointer),
        text,
        whole,
        estimator,
    )
}

/// Returns whether the text was made by [`clip_chars`] with `shown` characters on each side.
pub(crate) fn is_clipped(text: &str, shown: usize) -> bool {
    first_and_last(text, shown, shown).is_some_and(|(head, tail)| {
        let between = text.get(head..text.len() - tail).unwrap_or("");
        between.len() <= LONGEST_MARKER
            && between.starts_with(OPENS)
            && between.ends_with(CLOSES)
            && between.lines().count() == 2
    })
}

/// Returns the lengths of the first `head` and the last `tail` characters of a text, in bytes. `None` if they are the
/// whole text.
fn first_and_last(text: &str, head: usize, tail: usize) -> Option<(usize, usize)> {
    let starts = || text.char_indices().map(|(at, _)| at);
    let head = starts().nth(head)?;
    let tail = match tail.checked_sub(1) {
        Some(last) => text.len() - starts().rev().nth(last)?,
        None => 0,
    };
    (head + tail < text.len()).then_some((head, tail))
}

/// Returns the largest number of bytes, at most `all`, for which `count` returns at most `tokens`. `all` bytes cost
/// `whole` tokens. Costs are nearly proportional to bytes, so interpolation gives the next guess. Halving searches the
/// rest.
fn longest(all: usize, whole: u64, tokens: u64, count: impl Fn(usize) -> u64) -> usize {
    let bytes_of = |tokens: u64| {
        let bytes = u128::from(tokens) * all as u128 / u128::from(whole.max(1));
        usize::try_from(bytes).unwrap_or(all).min(all)
    };
    let (mut low, mut high) = (0, all);
    let (mut guess, mut step) = (bytes_of(tokens), 1);
    for round in 0.. {
        if low >= high {
            break;
        }
        let probe = match round {
            0..GUESSES => guess.clamp(low + 1, high),
            _ => low + (high - low).div_ceil(2),
        };
        let cost = count(probe);
        if cost <= tokens {
            low = probe;
            guess = probe + bytes_of(tokens - cost).max(step);
        } else {
            high = probe - 1;
            guess = probe.saturating_sub(bytes_of(cost - tokens).max(step));
        }
        step *= 2;
    }
    low
}

/// Returns at most `head` bytes of the beginning and `tail` bytes of the end of a text, with the marker between them.
fn ends(text: &str, head: usize, tail: usize, whole: u64, pointer: &str) -> String {
    let head = text.floor_char_boundary(head);
    let tail = text.ceil_char_boundary(text.len() - tail.min(text.len() - head));
    format!(
        "{}{OPENS}{whole} tokens, the middle is left out{}{CLOSES}{}",
        text.get(..head).unwrap_or(""),
        expand(pointer),
        text.get(tail..).unwrap_or("")
    )
}

/// Returns `new` if it is shorter than `old` in bytes and in tokens, otherwise `None`.
fn shorter(
    new: String,
    old: &str,
    old_tokens: u64,
    estimator: &dyn TokenEstimator,
) -> Option<String> {
    (new.len() < old.len() && estimator.text(&new) < old_tokens).then_some(new)
}
