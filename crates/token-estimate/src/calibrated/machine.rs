//! The state machine that follows a tokenizer's pre-splitting of text into words, numbers and punctuation. A state
//! describes the text being read, such as a word of some length after a space, a group of digits, or a run of marks.
//! For each character the machine gives the next state and the counter that the character raises.

use super::class as c;

/// Maximum number of states.
pub(crate) const STATES: usize = 448;
/// Number of entries of a table over state and coarse class. It is rounded up to a power of two so that a mask bounds
/// the index.
pub(crate) const ENTRIES: usize = 16_384;
/// Maximum number of counters of the machine.
pub(crate) const COUNTERS: usize = 480;

// Kinds of context before a word.
const NOTHING: u16 = 0;
const AFTER_SPACE: u16 = 1;
const AFTER_MARK: u16 = 2;
const CAMEL: u16 = 3;

// States within words. For each of the four kinds of context: lower case (16 lengths), capitalised (16), upper case
// (8).
const WORD: u16 = 16;
/// Any state within a word. The weight of a mark is the same after each of them.
pub(crate) const A_WORD: u16 = WORD;
const WORD_ROW: u16 = 40;
const LOWER_MAX: u16 = 16;
const CAPITAL: u16 = 16;
const UPPER: u16 = 32;
const UPPER_MAX: u16 = 8;
const CONTRACTION: u16 = WORD + 4 * WORD_ROW;
const CONTRACTION_MAX: u16 = 4;
// States within Latin words with letters beyond ASCII, then within words of other scripts. Each exists for words with
// and without a space before them.
const SCRIPT: u16 = CONTRACTION + CONTRACTION_MAX;
const SCRIPT_MAX: u16 = 10;
const SCRIPTS: u16 = 9;
// States within Chinese, Japanese and Korean text.
const HAN: u16 = SCRIPT + SCRIPTS * 2 * SCRIPT_MAX;
const HAN_MAX: u16 = 4;
const HIRAGANA: u16 = HAN + HAN_MAX;
const HIRAGANA_MAX: u16 = 6;
const KATAKANA: u16 = HIRAGANA + HIRAGANA_MAX;
const KATAKANA_MAX: u16 = 8;
const HANGUL: u16 = KATAKANA + KATAKANA_MAX;
const HANGUL_MAX: u16 = 8;
const USED: u16 = HANGUL + 2 * HANGUL_MAX;

/// State at the beginning of a text.
pub(crate) const START: u16 = 0;
/// State after one space.
pub(crate) const SPACE1: u16 = 1;
const SPACES: u16 = 2;
const TAB1: u16 = 3;
const TABS: u16 = 4;
/// State after a newline with no white space before it.
pub(crate) const NEWLINE1: u16 = 5;
const NEWLINES: u16 = 6;
const DIGIT1: u16 = 7;
const DIGIT2: u16 = 8;
const DIGIT3: u16 = 9;
const MARK1: u16 = 10;
const SPACED_MARK: u16 = 11;
const MARK2: u16 = 12;
const MARK3: u16 = 13;
const MARKS: u16 = 14;
const APOSTROPHE: u16 = 15;
const SYMBOL1: u16 = USED;
const SYMBOLS: u16 = USED + 1;
const EMOJI1: u16 = USED + 2;
const EMOJIS: u16 = USED + 3;
const JOINED: u16 = USED + 4;
const OTHER: u16 = USED + 5;
const WIDE_SPACE: u16 = USED + 6;
const WIDE_DIGIT: u16 = USED + 7;
const STATE_END: u16 = USED + 8;

// Counters that depend on the previous state. All other counters have the number of the next state.
const EXTRA: u16 = STATE_END;
const DIGIT_AFTER_SPACE: u16 = EXTRA;
const DIGIT_AFTER_SPACES: u16 = EXTRA + 1;
const DIGIT_AFTER_WORD: u16 = EXTRA + 2;
const NEWLINE_AFTER_MARK: u16 = EXTRA + 3;
const NEWLINE_AFTER_SPACE: u16 = EXTRA + 4;
const NEWLINE_AFTER_SPACES: u16 = EXTRA + 5;
const SPACES_AFTER_NEWLINE: u16 = EXTRA + 6;
const MARK_AFTER_WORD: u16 = EXTRA + 7;
const NEXT_DIGITS: u16 = EXTRA + 8;
const OTHER4: u16 = EXTRA + 9;
const TAB_AFTER_NEWLINE: u16 = EXTRA + 10;
const COUNTER_END: u16 = EXTRA + 11;

const _: () = assert!(STATE_END as usize <= STATES);
const _: () = assert!(COUNTER_END as usize <= COUNTERS);
const _: () = assert!(STATES * c::COARSE <= ENTRIES);

const fn at_most(n: u16, most: u16) -> u16 {
    if n < most { n } else { most }
}

const fn is_word(state: u16) -> bool {
    state >= WORD && state < USED
}

const fn is_mark(state: u16) -> bool {
    (state >= MARK1 && state <= APOSTROPHE) || state == SYMBOL1 || state == SYMBOLS
}

/// Returns the kind of context before a word that begins in this state.
const fn before(state: u16) -> u16 {
    match state {
        SPACE1 | SPACES => AFTER_SPACE,
        MARK1 | TAB1 | TABS | SYMBOL1 | WIDE_SPACE | APOSTROPHE => AFTER_MARK,
        _ => NOTHING,
    }
}

const fn lower(state: u16) -> u16 {
    if state >= WORD && state < CONTRACTION {
        let kind = (state - WORD) / WORD_ROW;
        let place = (state - WORD) % WORD_ROW;
        let row = WORD + kind * WORD_ROW;
        let (first, length) = if place < CAPITAL {
            (row, place)
        } else if place < UPPER {
            (row + CAPITAL, place - CAPITAL)
        } else {
            (row + CAPITAL, place - UPPER)
        };
        // Long words share one state, whatever their beginning.
        return if length + 1 >= LOWER_MAX - 1 {
            WORD + LOWER_MAX - 1
        } else {
            first + length + 1
        };
    }
    if state >= CONTRACTION && state < SCRIPT {
        // No contraction has this length: the word is in quotes.
        return if state + 1 < SCRIPT {
            state + 1
        } else {
            WORD + CONTRACTION_MAX
        };
    }
    if state == APOSTROPHE {
        return CONTRACTION;
    }
    if state >= SCRIPT && state < SCRIPT + 2 * SCRIPT_MAX {
        return script(state, 0);
    }
    WORD + before(state) * WORD_ROW
}

const fn upper(state: u16) -> u16 {
    if state >= WORD && state < CONTRACTION {
        let place = (state - WORD) % WORD_ROW;
        return if place >= UPPER {
            if place - UPPER + 1 >= UPPER_MAX - 1 {
                WORD + UPPER + UPPER_MAX - 1
            } else {
                state + 1
            }
        } else {
            WORD + CAMEL * WORD_ROW + UPPER
        };
    }
    WORD + before(state) * WORD_ROW + UPPER
}

/// Returns the next state after a letter of the n-th script.
const fn script(state: u16, n: u16) -> u16 {
    let first = SCRIPT + n * 2 * SCRIPT_MAX;
    if state >= first && state < first + 2 * SCRIPT_MAX {
        let length = (state - first) % SCRIPT_MAX;
        return if length + 1 >= SCRIPT_MAX - 1 {
            first + SCRIPT_MAX - 1
        } else {
            state + 1
        };
    }
    // A letter beyond ASCII inside a Latin word continues the word.
    if n == 0 && state >= WORD && state < CONTRACTION {
        let kind = (state - WORD) / WORD_ROW;
        let place = (state - WORD) % WORD_ROW;
        let length = if place < CAPITAL {
            place
        } else if place < UPPER {
            place - CAPITAL
        } else {
            place - UPPER
        };
        let row = if kind == AFTER_SPACE {
            first + SCRIPT_MAX
        } else {
            first
        };
        return if length + 1 >= SCRIPT_MAX - 1 {
            first + SCRIPT_MAX - 1
        } else {
            row + length + 1
        };
    }
    if before(state) == AFTER_SPACE {
        first + SCRIPT_MAX
    } else {
        first
    }
}

const fn run(state: u16, first: u16, length: u16) -> u16 {
    if state >= first && state < first + length {
        first + at_most(state - first + 1, length - 1)
    } else {
        first
    }
}

const fn mark(state: u16) -> u16 {
    match state {
        SPACE1 | SPACES => SPACED_MARK,
        MARK1 | SPACED_MARK | APOSTROPHE | SYMBOL1 | SYMBOLS => MARK2,
        MARK2 => MARK3,
        MARK3 | MARKS => MARKS,
        _ => MARK1,
    }
}

/// Returns the next state after a character of this coarse class, and the counter that the character raises.
pub(crate) const fn step(state: u16, class: u8) -> (u16, u16) {
    match class {
        c::LOWER => same(lower(state)),
        c::UPPER => same(upper(state)),
        c::DIGIT => match state {
            DIGIT1 => same(DIGIT2),
            DIGIT2 => same(DIGIT3),
            DIGIT3 => (DIGIT1, NEXT_DIGITS),
            SPACE1 | TAB1 => (DIGIT1, DIGIT_AFTER_SPACE),
            SPACES | TABS => (DIGIT1, DIGIT_AFTER_SPACES),
            _ if is_word(state) => (DIGIT1, DIGIT_AFTER_WORD),
            _ => same(DIGIT1),
        },
        c::SPACE => match state {
            SPACE1 | TAB1 => same(SPACES),
            SPACES | TABS => same(SPACES),
            NEWLINE1 | NEWLINES => (SPACE1, SPACES_AFTER_NEWLINE),
            _ => same(SPACE1),
        },
        c::TAB => match state {
            SPACE1 | SPACES | TAB1 | TABS => same(TABS),
            NEWLINE1 | NEWLINES => (TAB1, TAB_AFTER_NEWLINE),
            _ => same(TAB1),
        },
        c::NEWLINE => match state {
            NEWLINE1 | NEWLINES => same(NEWLINES),
            SPACE1 | TAB1 => (NEWLINES, NEWLINE_AFTER_SPACE),
            SPACES | TABS => (NEWLINES, NEWLINE_AFTER_SPACES),
            _ if is_mark(state) => (NEWLINE1, NEWLINE_AFTER_MARK),
            _ => same(NEWLINE1),
        },
        c::QUOTE if is_word(state) => same(APOSTROPHE),
        c::PUNCT | c::QUOTE | c::CONTROL => {
            if is_word(state) {
                (MARK1, MARK_AFTER_WORD)
            } else {
                same(mark(state))
            }
        }
        c::LATIN => same(script(state, 0)),
        c::GREEK => same(script(state, 1)),
        c::CYRILLIC => same(script(state, 2)),
        c::HEBREW => same(script(state, 3)),
        c::ARABIC => same(script(state, 4)),
        c::NAGARI | c::NAGARI_MARK => same(script(state, 5)),
        c::INDIC => same(script(state, 6)),
        c::THAI => same(script(state, 7)),
        c::ALPHABET => same(script(state, 8)),
        c::HAN => same(run(state, HAN, HAN_MAX)),
        c::HIRAGANA => same(run(state, HIRAGANA, HIRAGANA_MAX)),
        c::KATAKANA => same(run(state, KATAKANA, KATAKANA_MAX)),
        c::HANGUL => {
            let spaced = HANGUL + HANGUL_MAX;
            if state >= HANGUL && state < USED {
                let length = (state - HANGUL) % HANGUL_MAX;
                same(if length + 1 >= HANGUL_MAX - 1 {
                    HANGUL + HANGUL_MAX - 1
                } else {
                    state + 1
                })
            } else {
                same(if before(state) == AFTER_SPACE {
                    spaced
                } else {
                    HANGUL
                })
            }
        }
        c::CJK_PUNCT | c::SYMBOL => {
            if is_mark(state) {
                same(SYMBOLS)
            } else {
                same(SYMBOL1)
            }
        }
        c::EMOJI => match state {
            EMOJI1 | EMOJIS | JOINED => same(EMOJIS),
            _ => same(EMOJI1),
        },
        c::JOINER => same(JOINED),
        // A combining mark belongs to the word around it.
        c::MARK if is_word(state) => (state, OTHER),
        c::WIDE_SPACE => same(WIDE_SPACE),
        c::WIDE_DIGIT => same(WIDE_DIGIT),
        c::OTHER4 => (OTHER, OTHER4),
        _ => same(OTHER),
    }
}

const fn same(state: u16) -> (u16, u16) {
    (state, state)
}

/// Returns the group of similar counters that the counter belongs to. The fit of the coefficients uses the numbers of
/// the whole group for a counter that is rarely raised.
#[cfg(feature = "fit")]
pub(crate) fn group(counter: u16) -> u16 {
    if (WORD..CONTRACTION).contains(&counter) {
        WORD + (counter - WORD) % WORD_ROW
    } else if (SCRIPT..HAN).contains(&counter) {
        SCRIPT + (counter - SCRIPT) % (2 * SCRIPT_MAX)
    } else {
        counter
    }
}
