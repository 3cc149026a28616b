//! Sums the weights of the counters that a text raises, in one pass over the text.

use super::class::{self, Classes};
use super::floor::{Joins, ONE, Run};
use super::machine;

/// Returns the index of a pair of classes in the table of pairs.
const fn pair(before: usize, fine: usize) -> usize {
    (before * class::FINE + fine) & (PAIRS - 1)
}

/// Number of entries of the table of pairs.
pub(crate) const PAIRS: usize = class::FINE * class::FINE;

/// Weights and transitions for a family of tokenizers.
#[derive(Debug)]
pub(crate) struct Model {
    /// Steps by row of the state and coarse class. The upper 16 bits are the weight, the lower 16 bits the row of the
    /// next state.
    steps: [u32; machine::ENTRIES],
    pairs: [u16; PAIRS],
    /// Additional weight of a mark at the beginning of a text, by fine class, compared with the beginning of a line.
    first: [u16; class::FINE],
    classes: Classes,
}

/// State of the machine and class of the last character at a reading position.
#[derive(Clone, Copy)]
struct Position {
    row: usize,
    fine: usize,
}

/// Returns the little-endian number at a byte offset.
const fn number(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

const fn row(state: u16) -> usize {
    state as usize * class::COARSE
}

/// Position at the beginning of a text, which is treated as the beginning of a line.
const BEGIN: Position = Position {
    row: row(machine::START),
    fine: class::F_NEWLINE as usize,
};

/// Returns the additional weight of each mark at the beginning of a text.
///
/// A mark weighs more after a word than at the beginning of a line, sometimes by more than a token. A text that begins
/// with a mark is counted as if it followed the word after which the mark is most expensive, less one token. So joining
/// the text to any word costs at most one token more, and the weights within a text are not affected.
const fn first(steps: &[u32; machine::ENTRIES], pairs: &[u16; PAIRS]) -> [u16; class::FINE] {
    let mut first = [0; class::FINE];
    let mut mark = class::F_MARKS.0;
    while mark <= class::F_MARKS.1 {
        let coarse = (class::packed(mark) & 0xff) as usize;
        let own = steps[BEGIN.row + coarse] >> 16;
        let own = own + pairs[pair(BEGIN.fine, mark as usize)] as u32;
        let mut before = class::F_LETTERS.0;
        while before <= class::F_LETTERS.1 {
            let after = steps[row(machine::A_WORD) + coarse] >> 16;
            let after = after + pairs[pair(before as usize, mark as usize)] as u32;
            let more = after.saturating_sub(own + ONE as u32) as u16;
            if more > first[mark as usize] {
                first[mark as usize] = more;
            }
            before += 1;
        }
        mark += 1;
    }
    first
}

/// Minimum length of an ASCII stretch that is read at four places at once, in bytes.
const LONG: usize = 512;
/// Number of bytes after which a limit is checked.
const STRETCH: usize = 16_384;

impl Model {
    /// Reads the coefficients of a tokenizer. `coefficients/README.md` describes the format. The compiler evaluates
    /// this function, so malformed data does not compile.
    pub(crate) const fn new(data: &[u8]) -> Self {
        let mut steps = [0; machine::ENTRIES];
        let mut state = 0;
        while state < machine::STATES as u16 {
            let mut coarse = 0;
            while coarse < class::COARSE as u8 {
                let (next, counter) = machine::step(state, coarse);
                let weight = number(data, 2 * counter as usize) as u32;
                steps[row(state) + coarse as usize] = weight << 16 | row(next) as u32;
                coarse += 1;
            }
            state += 1;
        }
        let mut at = 2 * machine::COUNTERS;
        let count = number(data, at) as usize;
        at += 2;
        let mut pairs = [0; PAIRS];
        let mut n = 0;
        while n < count {
            pairs[number(data, at) as usize] = number(data, at + 2);
            at += 4;
            n += 1;
        }
        Self {
            steps,
            first: first(&steps, &pairs),
            pairs,
            classes: Classes::read(data, at),
        }
    }

    /// Returns the weight of the text in parts of a token. If it exceeds `stop`, returns the weight of some prefix that
    /// exceeds `stop`. Runs beyond ASCII that weigh clearly less than their lower bound by `joins` are raised.
    pub(crate) fn weigh(&self, joins: &Joins, text: &str, stop: u64) -> u64 {
        let bytes = text.as_bytes();
        let (mut place, mut run) = (BEGIN, Run::START);
        let mut sum = self.beginning(text);
        let mut at = 0;
        while at < bytes.len() && sum <= stop {
            let rest = &bytes[at..];
            let ascii = ascii_prefix(&rest[..rest.len().min(STRETCH)]);
            let ascii = &rest[..ascii];
            match ascii {
                [first, between @ .., last] if !run.is_redrawn() && !has_carriage_return(ascii) => {
                    let weight = self.step(class::ASCII[usize::from(*first)], &mut place);
                    sum += weight + joins.read_ascii(&mut run, *first, weight);
                    run.within_a_line();
                    let (weight, next) = self.stretch(between, place);
                    sum += weight;
                    place = next;
                    let weight = self.step(class::ASCII[usize::from(*last)], &mut place);
                    sum += weight + joins.read_ascii(&mut run, *last, weight);
                    at += ascii.len();
                }
                _ => {
                    // Text beyond ASCII is read character by character, at least 32 at a time.
                    for char in text[at..].chars().take(ascii.len().max(32)) {
                        let weight = self.step(self.classes.of_char(char), &mut place);
                        sum += weight + joins.read(&mut run, char, weight);
                        at += char.len_utf8();
                    }
                }
            }
        }
        sum
    }

    /// Returns the weight of the first character in addition to its step.
    fn beginning(&self, text: &str) -> u64 {
        let first = text.as_bytes().first().filter(|byte| byte.is_ascii());
        let fine = first.map(|byte| class::ASCII[usize::from(*byte)] >> 8);
        fine.map_or(0, |fine| u64::from(self.first[usize::from(fine)]))
    }

    #[inline(always)]
    fn step(&self, packed: u16, place: &mut Position) -> u64 {
        let fine = usize::from(packed >> 8);
        let entry = self.steps[(place.row + usize::from(packed & 0xff)) & (machine::ENTRIES - 1)];
        let pair = self.pairs[pair(place.fine, fine)];
        *place = Position {
            row: (entry & 0xffff) as usize,
            fine,
        };
        u64::from(entry >> 16) + u64::from(pair)
    }

    /// Returns the weight of the text without raised runs, computed character by character.
    #[cfg(test)]
    pub(crate) fn weigh_plainly(&self, text: &str) -> u64 {
        let mut place = BEGIN;
        let rest: u64 = text
            .chars()
            .map(|char| self.step(self.classes.of_char(char), &mut place))
            .sum();
        self.beginning(text) + rest
    }

    /// Returns the weight of a step of the machine, without the weight of the pair.
    #[cfg(test)]
    pub(crate) fn counter_weight(&self, state: u16, coarse: u8) -> u32 {
        self.steps[row(state) + usize::from(coarse)] >> 16
    }

    /// Reads ASCII text. A long stretch is read at four places at once, so that the processor does not wait for one
    /// table look-up before the next. Each place except the first is after a character with a known state.
    fn stretch(&self, bytes: &[u8], place: Position) -> (u64, Position) {
        if bytes.len() >= LONG {
            let quarter = bytes.len() / 4;
            let cuts = [1, 2, 3].map(|n| sure(bytes, n * quarter));
            if let [Some(a), Some(b), Some(c)] = cuts {
                return self.four(
                    [
                        &bytes[..a.0],
                        &bytes[a.0..b.0],
                        &bytes[b.0..c.0],
                        &bytes[c.0..],
                    ],
                    [place, a.1, b.1, c.1],
                );
            }
        }
        let mut place = place;
        let mut sum = 0;
        for &byte in bytes {
            sum += self.step(class::ASCII[usize::from(byte)], &mut place);
        }
        (sum, place)
    }

    fn four(&self, parts: [&[u8]; 4], places: [Position; 4]) -> (u64, Position) {
        let [a, b, c, d] = parts;
        let [mut p, mut q, mut r, mut s] = places;
        let (mut w, mut x, mut y, mut z) = (0, 0, 0, 0);
        for (((&a, &b), &c), &d) in a.iter().zip(b).zip(c).zip(d) {
            w += self.step(class::ASCII[usize::from(a)], &mut p);
            x += self.step(class::ASCII[usize::from(b)], &mut q);
            y += self.step(class::ASCII[usize::from(c)], &mut r);
            z += self.step(class::ASCII[usize::from(d)], &mut s);
        }
        let done = a.len().min(b.len()).min(c.len()).min(d.len());
        let mut sum = w + x + y + z;
        for (part, place) in [(a, &mut p), (b, &mut q), (c, &mut r), (d, &mut s)] {
            for &byte in &part[done..] {
                sum += self.step(class::ASCII[usize::from(byte)], place);
            }
        }
        (sum, s)
    }
}

/// Returns whether the bytes may contain a line that ends with a carriage return alone.
fn has_carriage_return(bytes: &[u8]) -> bool {
    let mut rest = match bytes.contains(&b'\r') {
        true => bytes,
        false => return false,
    };
    while let Some(at) = rest.iter().position(|byte| *byte == b'\r') {
        match rest.get(at + 1) {
            Some(b'\n') => rest = &rest[at + 2..],
            _ => return true,
        }
    }
    false
}

/// Returns the number of ASCII bytes at the beginning.
fn ascii_prefix(bytes: &[u8]) -> usize {
    let blocks = bytes
        .chunks_exact(32)
        .take_while(|block| block.is_ascii())
        .count()
        * 32;
    let rest = bytes[blocks..]
        .iter()
        .take_while(|byte| byte.is_ascii())
        .count();
    blocks + rest
}

/// Returns the first position at or after `from`, within 256 bytes, at which the state does not depend on earlier text:
/// after a letter or digit and one space or newline.
fn sure(bytes: &[u8], from: usize) -> Option<(usize, Position)> {
    let window = bytes.get(from..)?;
    let found = window
        .windows(2)
        .take(256)
        .position(|w| w[0].is_ascii_alphanumeric() && (w[1] == b' ' || w[1] == b'\n'))?;
    let (state, fine) = if window[found + 1] == b' ' {
        (machine::SPACE1, class::F_SPACE)
    } else {
        (machine::NEWLINE1, class::F_NEWLINE)
    };
    let place = Position {
        row: row(state),
        fine: usize::from(fine),
    };
    Some((from + found + 2, place))
}

/// For the fit: calls `counter` with each counter that the text raises. The counters of pairs follow those of the
/// machine.
#[cfg(feature = "fit")]
pub(crate) fn raise(classes: &Classes, text: &str, counter: &mut dyn FnMut(usize)) {
    let (mut state, mut before) = (machine::START, BEGIN.fine);
    for char in text.chars() {
        let packed = classes.of_char(char);
        let fine = usize::from(packed >> 8);
        let (next, raised) = machine::step(state, (packed & 0xff) as u8);
        counter(usize::from(raised));
        counter(machine::COUNTERS + pair(before, fine));
        (state, before) = (next, fine);
    }
}
