//! Amounts with their units in Japanese and Korean.

use super::lexicon::LEXICON;
use super::scripts::{Script, Token};
use super::spelling::amount_of;

/// An amount with its dimension, in thousandths.
pub(super) type Quantity = (&'static str, i64);

/// Dimension of words that begin like units.
const NO_UNIT: &str = "none";

/// Returns whether a word in Latin letters or Katakana goes on at a place.
fn goes_on(chars: &[char], at: usize) -> bool {
    let script = |at: usize| chars.get(at).map_or(Script::Other, |c| Script::of(*c));
    let own = script(at);
    matches!(own, Script::Latin | Script::Katakana)
        && at
            .checked_sub(1)
            .is_some_and(|before| script(before) == own)
}

/// Returns the amounts of a text with their dimensions, in thousandths: a number with its unit, or several as in `1時間30分` and
/// `1만 2천 원`.
pub(super) fn quantities(chars: &[char], tokens: &[Token]) -> Vec<Quantity> {
    let mut out: Vec<(&'static str, f64)> = Vec::new();
    // The amount so far without a unit, and where the last number with its unit or scale ended.
    let (mut sum, mut end) = (0.0, usize::MAX);
    for token in tokens.iter().filter(|token| token.script == Script::Digit) {
        let spaces = |from: usize| chars.iter().skip(from).take_while(|c| **c == ' ').count();
        let follows = end <= token.chars.start && end + spaces(end) == token.chars.start;
        let Some(mut amount) = amount_of(&token.text) else {
            end = usize::MAX;
            continue;
        };
        let rest = |from: usize| -> String { chars.iter().skip(from).take(8).collect() };
        end = token.chars.end;
        end += spaces(end);
        let mut is_scaled = false;
        while let Some((word, size)) = LEXICON.scales_behind.longest(&rest(end)) {
            amount *= size;
            end += word.chars().count();
            end += spaces(end);
            is_scaled = true;
        }
        sum = if follows { sum + amount } else { amount };
        let unit = LEXICON.units_behind.longest(&rest(end));
        let unit = unit.filter(|(word, (dimension, _))| {
            *dimension != NO_UNIT && !goes_on(chars, end + word.chars().count())
        });
        let Some((word, (dimension, size))) = unit else {
            if !is_scaled {
                end = usize::MAX;
            }
            continue;
        };
        end += word.chars().count();
        let half = matches!(chars.get(end), Some('半' | '반'));
        let amount = (sum + if half { 0.5 } else { 0.0 }) * size;
        sum = 0.0;
        match out.last_mut() {
            Some((last, before))
                if follows && (*last == dimension || (*last, dimension) == ("clock", "time")) =>
            {
                *before += amount
            }
            _ => out.push((dimension, amount)),
        }
    }
    #[allow(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    let thousandths = |amount: f64| (amount * 1000.0).round() as i64;
    out.into_iter()
        .map(|(dimension, amount)| (dimension, thousandths(amount)))
        .collect()
}
