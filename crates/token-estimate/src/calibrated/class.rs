//! Classes of characters. The fine class (a letter, a punctuation mark, the frequency of an ideograph) is for the table
//! of pairs. The coarse class (letter, digit, space, script) is for the state machine.
#![allow(
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "the names are for the fit"
)]

/// Number of fine classes. The classes from [`FIRST_WIDE`] on are for characters beyond ASCII.
pub(crate) const FINE: usize = 128;
/// First fine class beyond ASCII. The coefficients store the classes from here on as numbers from 0 to 63.
pub const FIRST_WIDE: u8 = 64;
/// First and last fine class of the letters. [`F_MARKS`] has those of ASCII's punctuation marks, in ASCII's order.
pub(crate) const F_LETTERS: (u8, u8) = (1, 26);
pub(crate) const F_MARKS: (u8, u8) = (27, 58);
/// Number of coarse classes, which is the length of the row of a state.
pub(crate) const COARSE: usize = 36;

macro_rules! names {
    ($type:ty: $($name:ident = $value:expr),* $(,)?) => {
        $(pub const $name: $type = $value;)*
    };
}

names!(u8: LOWER = 0, UPPER = 1, DIGIT = 2, SPACE = 3, TAB = 4, NEWLINE = 5, PUNCT = 6, QUOTE = 7, CONTROL = 8,
    LATIN = 9, GREEK = 10, CYRILLIC = 11, HEBREW = 12, ARABIC = 13, NAGARI = 14, NAGARI_MARK = 15, INDIC = 16,
    THAI = 17, ALPHABET = 18, HAN = 19, HIRAGANA = 20, KATAKANA = 21, HANGUL = 22, CJK_PUNCT = 23, SYMBOL = 24,
    EMOJI = 25, JOINER = 26, WIDE_SPACE = 27, MARK = 28, OTHER3 = 29, OTHER4 = 30, WIDE_DIGIT = 31);

// The remaining fine classes below 64.
names!(u8: F_DIGIT = 59, F_SPACE = 60, F_TAB = 61, F_NEWLINE = 62, F_CONTROL = 63);

// Fine classes from 64 on. Each name is the first class of a run of classes. The generator assigns characters to the
// classes of a run.
names!(u8: F_LATIN = 64, F_GREEK = 66, F_CYRILLIC = 67, F_HEBREW = 69, F_ARABIC = 70, F_NAGARI = 72,
    F_NAGARI_MARK = 73, F_INDIC = 74, F_THAI = 75, F_ALPHABET = 76, F_CJK_PUNCT = 77, F_SYMBOL = 80,
    F_EMOJI = 83, F_JOINER = 86, F_WIDE_SPACE = 87, F_MARK = 88, F_OTHER3 = 89, F_OTHER4 = 90, F_WIDE_DIGIT = 91,
    F_HAN = 92, F_HIRAGANA = 110, F_KATAKANA = 116, F_HANGUL = 119);

/// Returns the coarse class of a fine class.
const fn coarse(fine: u8) -> u8 {
    match fine {
        1..=26 => LOWER,
        27..=58 => {
            if fine == 27 + 6 {
                QUOTE
            } else {
                PUNCT
            }
        }
        F_DIGIT => DIGIT,
        F_SPACE => SPACE,
        F_TAB => TAB,
        F_NEWLINE => NEWLINE,
        F_LATIN..F_GREEK => LATIN,
        F_GREEK..F_CYRILLIC => GREEK,
        F_CYRILLIC..F_HEBREW => CYRILLIC,
        F_HEBREW..F_ARABIC => HEBREW,
        F_ARABIC..F_NAGARI => ARABIC,
        F_NAGARI..F_NAGARI_MARK => NAGARI,
        F_NAGARI_MARK..F_INDIC => NAGARI_MARK,
        F_INDIC..F_THAI => INDIC,
        F_THAI..F_ALPHABET => THAI,
        F_ALPHABET..F_CJK_PUNCT => ALPHABET,
        F_CJK_PUNCT..F_SYMBOL => CJK_PUNCT,
        F_SYMBOL..F_EMOJI => SYMBOL,
        F_EMOJI..F_JOINER => EMOJI,
        F_JOINER => JOINER,
        F_WIDE_SPACE => WIDE_SPACE,
        F_MARK => MARK,
        F_OTHER3 => OTHER3,
        F_OTHER4 => OTHER4,
        F_WIDE_DIGIT => WIDE_DIGIT,
        F_HAN..F_HIRAGANA => HAN,
        F_HIRAGANA..F_KATAKANA => HIRAGANA,
        F_KATAKANA..F_HANGUL => KATAKANA,
        F_HANGUL.. => HANGUL,
        _ => CONTROL,
    }
}

/// Returns both classes of a fine class: the coarse class in the low byte, the fine class in the high byte.
pub(crate) const fn packed(fine: u8) -> u16 {
    (fine as u16) << 8 | coarse(fine) as u16
}

const fn ascii(byte: u8) -> u16 {
    match byte {
        b'a'..=b'z' => packed(byte - b'a' + 1),
        b'A'..=b'Z' => packed(byte - b'A' + 1) & 0xff00 | UPPER as u16,
        b'0'..=b'9' => packed(F_DIGIT),
        b' ' => packed(F_SPACE),
        b'\t' => packed(F_TAB),
        b'\n' | b'\r' => packed(F_NEWLINE),
        b'!'..=b'/' => packed(byte - b'!' + 27),
        b':'..=b'@' => packed(byte - b':' + 27 + 15),
        b'['..=b'`' => packed(byte - b'[' + 27 + 22),
        b'{'..=b'~' => packed(byte - b'{' + 27 + 28),
        _ => packed(F_CONTROL),
    }
}

/// Packed classes of the first 256 code points. Entries above ASCII are never read.
pub(crate) static ASCII: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = ascii(byte as u8);
        byte += 1;
    }
    table
};

static WIDE: [u16; 64] = {
    let mut table = [0; 64];
    let mut n = 0;
    while n < 64 {
        table[n] = packed(FIRST_WIDE + n as u8);
        n += 1;
    }
    table
};

/// Ranges of the code points that have a class in the coefficients, as `(start, end)` with `end` excluded.
pub const RANGES: [(u32, u32); 5] = [
    (0x80, 0x3400),
    (0x4e00, 0xa000),
    (0xac00, 0xd7a4),
    (0xfe00, 0x1_0000),
    (0x1_f000, 0x1_fb00),
];

const fn length(n: usize) -> usize {
    (RANGES[n].1 - RANGES[n].0) as usize
}

/// Classes of the characters beyond ASCII in a family of tokenizers, one byte for each code point of [`RANGES`].
#[derive(Debug)]
pub(crate) struct Classes {
    low: [u8; length(0)],
    han: [u8; length(1)],
    hangul: [u8; length(2)],
    full: [u8; length(3)],
    emoji: [u8; length(4)],
}

impl Classes {
    /// Reads one byte for each code point of [`RANGES`], from the byte `at` to the end of the data.
    pub(crate) const fn read(data: &[u8], at: usize) -> Self {
        let [low, han, hangul, full] = [length(0), length(1), length(2), length(3)];
        assert!(
            data.len() == at + low + han + hangul + full + length(4),
            "the coefficients do not end where the classes do"
        );
        Self {
            low: bytes(data, at),
            han: bytes(data, at + low),
            hangul: bytes(data, at + low + han),
            full: bytes(data, at + low + han + hangul),
            emoji: bytes(data, at + low + han + hangul + full),
        }
    }

    /// Returns the packed classes of any character.
    #[inline]
    pub(crate) fn of_char(&self, char: char) -> u16 {
        match u8::try_from(char) {
            Ok(byte) if byte.is_ascii() => ASCII[usize::from(byte)],
            _ => self.of(u32::from(char)),
        }
    }

    /// Returns the packed classes of a code point beyond ASCII: the coarse class in the low byte, the fine class in the
    /// high byte.
    #[inline]
    fn of(&self, point: u32) -> u16 {
        let at =
            |first: u32, table: &[u8]| table.get((point.wrapping_sub(first)) as usize).copied();
        let n = if point < 0x3400 {
            at(RANGES[0].0, &self.low)
        } else if point < 0xa000 {
            at(RANGES[1].0, &self.han)
        } else if point < 0xd7a4 {
            at(RANGES[2].0, &self.hangul)
        } else if point < 0x1_0000 {
            at(RANGES[3].0, &self.full)
        } else {
            at(RANGES[4].0, &self.emoji)
        };
        let rare = if point < 0x1_0000 { F_OTHER3 } else { F_OTHER4 };
        WIDE[usize::from(n.unwrap_or(rare - FIRST_WIDE) & 63)]
    }
}

const fn bytes<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    let mut n = 0;
    while n < N {
        out[n] = data[at + n];
        n += 1;
    }
    out
}
