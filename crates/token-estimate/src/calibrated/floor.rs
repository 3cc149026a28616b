//! Lower bounds on the number of tokens of characters beyond ASCII.
//!
//! A tokenizer joins neighbouring characters to tokens. The bound is the number of tokens if every possible join is
//! used. The weights of the model are averages over ordinary text. Random letters, bars and spinners have fewer joins
//! and cost several times as much.
//!
//! This module contains all joins of a vocabulary: pairs of characters that are a token, or all characters of a token
//! beyond ASCII, and triples of neighbours within a token. Characters without joins cost as much as each of them alone,
//! so the estimate of a run of them is raised to its bound. An ordinary run costs more than its bound and keeps its
//! estimate.

/// Weight of one token in fixed-point numbers: 2^12.
pub(crate) const ONE: u64 = 4_096;

/// Facts about the characters and joins of a vocabulary. `coefficients/README.md` describes the format.
#[derive(Debug)]
pub(crate) struct Joins {
    data: &'static [u8],
    /// Byte offset and number of the entries with the longest rows of repeated characters.
    repeats: (usize, usize),
    pairs: Set,
    triples: Set,
}

/// A Bloom filter: the byte offset of its bits, and the logarithm (base 2) of their number. It reports a few percent of
/// the absent entries as present, which makes a bound lower.
#[derive(Debug, Clone, Copy)]
struct Set {
    at: usize,
    bits: u32,
}

/// Number of bytes with the facts of the code points below 65,536, two code points in each byte. [`BLOCKS`] is the
/// number for the blocks of 64 code points after them.
const PLANE: usize = 0x8000;
const BLOCKS: usize = 0x200;

/// Facts about a character in a vocabulary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact {
    /// Number of tokens of the character alone.
    pub(super) alone: i64,
    /// Whether some token contains the character together with another one.
    pub(super) joins: bool,
}

/// Number of tokens for an impossible case.
const NEVER: i64 = i64::MAX / 4;

/// Minimum number of tokens of the part of a run that was read. Each field is the minimum for one role of the last
/// character in its token.
#[derive(Debug, Clone, Copy)]
struct Least {
    /// The last character is a token alone.
    alone: i64,
    /// The last character is the first of a token that continues.
    first: i64,
    /// The last character is the second of a token that must continue, because the pair is not a token.
    second: i64,
    /// The last character ends a token of several characters.
    end: i64,
}

impl Least {
    fn done(self) -> i64 {
        self.alone.min(self.end)
    }

    /// Returns the minimum over all roles of the last character.
    fn at_least(self) -> i64 {
        self.done().min(self.first).min(self.second)
    }

    fn add(&mut self, tokens: i64) {
        for sum in [
            &mut self.alone,
            &mut self.first,
            &mut self.second,
            &mut self.end,
        ] {
            *sum += tokens;
        }
    }
}

/// State of the current run of characters beyond ASCII.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    least: Least,
    /// Number of tokens of the part that was read, if no characters are joined.
    alone: i64,
    /// The last character, or 0 at the beginning of the run. `before` is the character before it, and `joins` is
    /// whether the last one is part of a join.
    last: u32,
    before: u32,
    joins: bool,
    /// Number of repetitions of the last character. `same_in_token` is the number of characters in the current token.
    same: u32,
    same_in_token: u32,
    /// Whether all characters are symbols of bars or spinners. `unseen` is whether all of them are invisible.
    drawn: bool,
    unseen: bool,
    /// Weight of the run in the model. `added` is the weight that was added to reach the bound.
    weight: u64,
    added: u64,
    /// Weight to add for the last character if no other line end follows. `None` if this character is not a carriage
    /// return, or follows a line end.
    carriage_return: Option<u64>,
    /// ASCII character before the run; 0 if there is none. `after_weight` is its weight.
    after: u8,
    after_weight: u64,
    /// Weight of a space after the run. If the character after the space is not ASCII, the run continues.
    space: Option<u64>,
    row: Row,
}

impl Run {
    /// State at the beginning of a text.
    pub(crate) const START: Self = Self {
        least: Least {
            alone: 0,
            first: NEVER,
            second: NEVER,
            end: NEVER,
        },
        alone: 0,
        last: 0,
        before: 0,
        joins: false,
        same: 0,
        same_in_token: 0,
        drawn: true,
        unseen: true,
        weight: 0,
        added: 0,
        carriage_return: None,
        after: 0,
        after_weight: 0,
        space: None,
        row: Row::START,
    };

    /// Returns whether a carriage return began the current line.
    pub(crate) fn is_redrawn(&self) -> bool {
        self.row.redrawn || self.carriage_return.is_some()
    }

    /// If the last character is a carriage return, starts a line that is drawn over another, and returns the weight to
    /// add. Returns 0 otherwise.
    fn redraw(&mut self) -> u64 {
        self.row.redrawn |= self.carriage_return.is_some();
        self.carriage_return.take().unwrap_or(0)
    }

    /// Marks the reading position as inside of a line, with no known character before it.
    pub(crate) fn within_a_line(&mut self) {
        (self.carriage_return, self.after) = (None, 0);
    }

    /// Raises the added weight so that the run costs at least `tokens`, if this is clearly more than the weight of the
    /// run in the model. Returns the weight that was added now.
    fn raise(&mut self, tokens: i64) -> u64 {
        let least = u64::try_from(tokens).unwrap_or(0).saturating_mul(ONE);
        let (enough, cost) = match (self.unseen, self.drawn) {
            (true, _) => (self.weight, least),
            (_, true) => (self.weight + ONE, least),
            // Words have a bound too, but their estimates deviate around their real cost. A tokenizer does not use
            // every join: about three in four of the counted joins of random letters, and fewer of rare letters.
            _ => {
                let (short, long) = (self.weight / 2 + 3 * ONE, self.weight / 10 + 6 * ONE);
                let saved = u64::try_from(self.alone - tokens).unwrap_or(0);
                let unused = least / 16 + saved.saturating_mul(ONE) / 4;
                (self.weight + short.min(long), least + unused)
            }
        };
        let added = match least > enough {
            true => (cost - self.weight).max(self.added),
            false => self.added,
        };
        let more = added - self.added;
        self.added = added;
        more
    }
}

/// Returns whether the code point is an arrow, heavy line, block, shape, Braille pattern or other symbol, or a mark
/// above or below a letter. False for the lines of trees and tables, which are ordinary text.
fn is_drawn(point: u32) -> bool {
    matches!(
        point,
        0x2190..0x2300
            | 0x2400..=0x24ff
            | 0x2501
            | 0x2578..0x25fb
            | 0x2605..0x2607
            | 0x2701..0x2705
            | 0x2715..=0x2727
            | 0x2729..=0x274b
            | 0x27c0..0x2b05
            | 0x300..0x370
    )
}

/// Returns whether the code point is invisible: a space without width, a joiner or a similar character. No word
/// consists of several of them alone.
fn is_unseen(point: u32) -> bool {
    matches!(point, 0x200b..0x2010 | 0x2060..0x2070 | 0xfeff)
}

/// A repetition of one ASCII mark or of spaces, in a line that is drawn over another after a carriage return. A long
/// repetition is at least one token, and a mark after it is another.
#[derive(Debug, Clone, Copy)]
struct Row {
    redrawn: bool,
    last: u8,
    same: u32,
    weight: u64,
}

impl Row {
    const START: Self = Self {
        redrawn: false,
        last: 0,
        same: 0,
        weight: 0,
    };

    /// Minimum length of a repetition of marks that is counted as two tokens, in characters. Some repetitions of this
    /// length are one token.
    const LONGER: u32 = 17;

    /// Returns the minimum length of a repetition that is a token, in characters. 0 for a character without such
    /// repetitions.
    fn long(byte: u8) -> u32 {
        match byte {
            b' ' => 3,
            _ if byte.is_ascii_punctuation() => 4,
            _ => 0,
        }
    }

    /// Reads a character. `weight` is its weight in the model. Returns the weight to add.
    fn read(&mut self, byte: u8, weight: u64) -> u64 {
        if !self.redrawn {
            return 0;
        }
        let mut least = 0;
        if byte == self.last {
            self.same = self.same.saturating_add(1);
            self.weight += weight;
            least = match self.same {
                same if same == Self::long(byte) => ONE,
                Self::LONGER if byte.is_ascii_punctuation() => 2 * ONE - ONE / 4,
                _ => 0,
            };
        } else {
            let long = Self::long(self.last);
            if long > 0 && self.same >= long && byte.is_ascii_punctuation() {
                least = ONE;
            }
            (self.last, self.same, self.weight) = (byte, 1, weight);
        }
        let more = least.saturating_sub(self.weight);
        self.weight += more;
        more
    }
}

impl Joins {
    pub(crate) const fn new(data: &'static [u8]) -> Self {
        let at = PLANE + BLOCKS;
        let count = u16::from_le_bytes([data[at], data[at + 1]]) as usize;
        let pairs = Set {
            at: at + 2 + 3 * count + 1,
            bits: data[at + 2 + 3 * count] as u32,
        };
        let end = pairs.at + (1 << pairs.bits) / 8;
        let triples = Set {
            at: end + 1,
            bits: data[end] as u32,
        };
        assert!(
            data.len() == triples.at + (1 << triples.bits) / 8,
            "the joins do not end where the triples do"
        );
        Self {
            data,
            repeats: (at + 2, count),
            pairs,
            triples,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.data.get(at).copied().unwrap_or(0)
    }

    pub(super) fn fact(&self, point: u32) -> Fact {
        let place = match point {
            0..0x1_0000 => point,
            0x1_0000..0x2_0000 => 0x1_0000 + (point - 0x1_0000) / 64,
            // Rare ideographs and unassigned characters.
            _ => {
                return Fact {
                    alone: 3,
                    joins: false,
                };
            }
        };
        let bits = self.byte(place as usize / 2) >> (4 * (place % 2));
        Fact {
            alone: i64::from(bits & 3) + 1,
            joins: bits & 4 != 0,
        }
    }

    fn has(&self, set: Set, characters: [u32; 3]) -> bool {
        places(characters, set.bits)
            .into_iter()
            .all(|place| self.byte(set.at + (place / 8) as usize) >> (place % 8) & 1 == 1)
    }

    pub(super) fn pair(&self, a: u32, b: u32) -> bool {
        self.has(self.pairs, [0, a, b])
    }

    /// Returns whether a token contains these two neighbours, one of which is ASCII.
    pub(super) fn mixed(&self, a: u32, b: u32) -> bool {
        self.has(self.pairs, [1, a, b])
    }

    pub(super) fn triple(&self, a: u32, b: u32, c: u32) -> bool {
        self.has(self.triples, [a, b, c])
    }

    /// Returns the length of the longest token that repeats this character, in characters.
    fn repeats(&self, point: u32) -> u32 {
        let (mut low, mut high) = (0, self.repeats.1);
        while low < high {
            let middle = usize::midpoint(low, high);
            let at = self.repeats.0 + 3 * middle;
            let found = u32::from(u16::from_le_bytes([self.byte(at), self.byte(at + 1)]));
            match found.cmp(&point) {
                std::cmp::Ordering::Equal => return u32::from(self.byte(at + 2)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        1
    }

    /// Reads a character. `weight` is its weight in the model. Returns the weight to add.
    #[inline]
    pub(crate) fn read(&self, run: &mut Run, character: char, weight: u64) -> u64 {
        if character.is_ascii() {
            self.read_ascii(run, character as u8, weight)
        } else {
            let returned = run.redraw();
            run.row.last = 0;
            returned + self.read_wide(run, u32::from(character), weight)
        }
    }

    /// Reads an ASCII character. It ends the run, unless it is a single space between two words. Returns the weight to
    /// add.
    #[inline]
    pub(crate) fn read_ascii(&self, run: &mut Run, byte: u8, weight: u64) -> u64 {
        let mut more = run.row.read(byte, weight);
        if run.last != 0 && byte == b' ' && run.space.is_none() {
            run.space = Some(weight);
            return more;
        }
        let line_end = byte == b'\n' || byte == b'\r';
        if run.last != 0 {
            more += self.end(run, byte, weight);
        }
        if !line_end {
            more += run.redraw();
        } else if byte == b'\n' {
            run.row = Row::START;
        }
        // In a token, only line ends can precede a carriage return.
        run.carriage_return = match byte == b'\r' && run.after != b'\n' {
            // After a mark, the model's weight is for the mark and the carriage return together.
            true if run.after.is_ascii_punctuation() => Some(ONE),
            true => Some(ONE.saturating_sub(weight)),
            false => None,
        };
        run.after = if line_end { b'\n' } else { byte };
        run.after_weight = weight;
        more
    }

    /// Ends the run before the ASCII character `byte`. Returns the weight to add.
    fn end(&self, run: &mut Run, byte: u8, weight: u64) -> u64 {
        self.end_row(run);
        let after = run.space.map_or(byte, |_| b' ');
        if self.mixed(run.last, u32::from(after)) {
            run.least.add(-1);
        } else if run.drawn && after.is_ascii_punctuation() {
            run.least.add(1);
            run.weight += weight;
        }
        let more = run.raise(run.least.done());
        *run = Run {
            after,
            row: run.row,
            ..Run::START
        };
        more
    }

    /// Adds the tokens that a repetition of one drawn character costs above the minimum. Its tokens mostly have 2, 4, 8
    /// or 16 characters.
    fn end_row(&self, run: &mut Run) {
        if run.same > 1 && is_drawn(run.last) {
            let longest = self.repeats(run.last);
            let rest = run.same % longest;
            run.least
                .add(i64::from(rest.count_ones()) - i64::from(rest.min(1)));
        }
    }

    fn read_wide(&self, run: &mut Run, point: u32, weight: u64) -> u64 {
        let fact = self.fact(point);
        let space = run.space.take();
        run.weight += weight + space.unwrap_or(0);
        run.drawn &= is_drawn(point) || (run.row.redrawn && matches!(point, 0x2190..0x2c00));
        run.unseen &= is_unseen(point);
        let begins = run.last == 0 || space.is_some();
        let same = run.last == point && !begins;
        if !same {
            self.end_row(run);
            run.same = 0;
        }
        run.same += 1;
        let mut done = run.least.done();
        let (mut second, mut end) = (NEVER, NEVER);
        if begins {
            let after = space.map_or(run.after, |_| b' ');
            // No token reaches across the beginning of a text, even if the filter reports one.
            let mixed = after != 0 && self.mixed(u32::from(after), point);
            // A space before the run is a token, or part of the run's first token. Another character before the run was
            // already counted.
            let before = match space {
                Some(_) => i64::from(!mixed),
                None => -i64::from(mixed),
            };
            done += before;
            run.alone += before;
            if run.drawn && !mixed && run.after.is_ascii_punctuation() && run.last == 0 {
                done += 1;
                run.weight += run.after_weight;
            }
            run.last = 0;
        } else if fact.joins && run.joins {
            let (before, last, least) = (run.before, run.last, run.least);
            match self.pair(last, point) {
                true => end = least.first,
                false => second = least.first,
            }
            let mut in_token = 2;
            if before != 0 && self.triple(before, last, point) {
                let longest = if same { self.repeats(point) } else { u32::MAX };
                if run.same_in_token < longest && least.end < end {
                    end = least.end;
                    in_token = run.same_in_token + 1;
                }
                end = end.min(least.second);
            }
            run.same_in_token = in_token;
        }
        run.alone += fact.alone;
        run.least = Least {
            alone: done + fact.alone,
            first: if fact.joins { done + 1 } else { NEVER },
            second,
            end,
        };
        (run.before, run.last, run.joins) = (run.last, point, fact.joins);
        run.raise(run.least.at_least())
    }
}

/// Returns the two bit positions of a pair or triple of characters in a filter of `1 << bits` bits.
pub(crate) const fn places([a, b, c]: [u32; 3], bits: u32) -> [u32; 2] {
    let key = (a as u64) << 42 ^ (b as u64) << 21 ^ c as u64;
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    [
        (hash >> (64 - bits)) as u32,
        (hash >> 8) as u32 & ((1 << bits) - 1),
    ]
}
