//! In which language a text is, as far as its letters and commonest words tell.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What a text seems to be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Japanese,
    Korean,
    Chinese,
    Cyrillic,
    Arabic,
    Hebrew,
    Devanagari,
    Thai,
    Greek,
    /// A language in Latin letters, where its commonest words tell which.
    Latin(&'static str),
}

impl Language {
    /// The scripts that it is written in, by their places in [`Counts`]; none for Latin ones.
    fn scripts(self) -> &'static [usize] {
        match self {
            Self::Japanese => &[0, 2],
            Self::Korean => &[1],
            Self::Chinese => &[2],
            Self::Cyrillic => &[3],
            Self::Arabic => &[4],
            Self::Hebrew => &[5],
            Self::Devanagari => &[6],
            Self::Thai => &[7],
            Self::Greek => &[8],
            Self::Latin(_) => &[],
        }
    }
}

/// Fewer letters than this tell nothing.
const FEWEST: usize = 40;

const COMMON: [(&str, &[&str]); 6] = [
    (
        "en",
        &[
            "the", "and", "is", "to", "of", "was", "that", "with", "for", "this", "it",
        ],
    ),
    (
        "de",
        &[
            "der", "die", "und", "das", "ist", "nicht", "mit", "ein", "wurde", "für", "zu",
        ],
    ),
    (
        "fr",
        &[
            "le", "les", "des", "est", "une", "dans", "pour", "que", "pas", "avec", "du",
        ],
    ),
    (
        "es",
        &[
            "el", "los", "las", "una", "para", "con", "que", "por", "del", "está", "se",
        ],
    ),
    (
        "pt",
        &[
            "não", "uma", "para", "com", "que", "os", "foi", "em", "do", "da", "são",
        ],
    ),
    (
        "it",
        &[
            "il", "che", "non", "una", "per", "con", "gli", "della", "sono", "è", "di",
        ],
    ),
];

/// The longest word of [`COMMON`], in bytes.
const LONGEST: usize = 5;

/// A word of [`COMMON`] as a number: its bytes, the first highest.
const fn packed(word: &[u8]) -> u64 {
    let (mut key, mut rest) = (0, word);
    while let [byte, after @ ..] = rest {
        key = key << 8 | *byte as u64;
        rest = after;
    }
    key
}

/// The words of [`COMMON`].
#[derive(Debug)]
struct Common {
    /// In order, with a bit for each language that has the word.
    words: Vec<(u64, u8)>,
    /// A bit for each of their hashes: most words of a text are none of them.
    filter: [u64; 16],
}

impl Common {
    fn get() -> &'static Self {
        static COMMON_WORDS: OnceLock<Common> = OnceLock::new();
        COMMON_WORDS.get_or_init(|| {
            let mut words: BTreeMap<u64, u8> = BTreeMap::new();
            let mut filter = [0; 16];
            for (n, (_, common)) in COMMON.iter().enumerate() {
                for word in *common {
                    let key = packed(word.as_bytes());
                    *words.entry(key).or_default() |= 1 << n;
                    let (at, bit) = Self::place(key);
                    if let Some(bits) = filter.get_mut(at) {
                        *bits |= bit;
                    }
                }
            }
            let words = words.into_iter().collect();
            Self { words, filter }
        })
    }

    fn place(key: u64) -> (usize, u64) {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }

    /// A bit for each language that has the word.
    fn languages(&self, key: u64) -> u8 {
        let (at, bit) = Self::place(key);
        if self.filter.get(at).is_none_or(|bits| bits & bit == 0) {
            return 0;
        }
        let found = self.words.binary_search_by_key(&key, |(word, _)| *word);
        found
            .ok()
            .and_then(|at| self.words.get(at))
            .map_or(0, |word| word.1)
    }
}

/// What was counted in some texts.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Letters: Kana, Hangul, Han, Cyrillic, Arabic, Hebrew, Devanagari, Thai, Greek.
    scripts: [usize; 9],
    latin: usize,
    /// Words of each language of [`COMMON`].
    words: [usize; COMMON.len()],
}

impl Counts {
    fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = Self::default();
        texts.for_each(|text| counts.read(text));
        counts
    }

    fn read(&mut self, text: &str) {
        let common = Common::get();
        // The word that is being read: its bytes as a number, and how many they are.
        let (mut key, mut length) = (0_u64, 0_usize);
        for c in text.chars() {
            if c.is_ascii() {
                let letter = (c as u32 | 0x20) as u8;
                if letter.is_ascii_lowercase() {
                    self.latin += 1;
                    key = key << 8 | u64::from(letter);
                    length += 1;
                } else if length > 0 {
                    self.word(common, key, length);
                    (key, length) = (0, 0);
                }
                continue;
            }
            self.letter(c);
            if c.is_alphabetic() {
                let mut bytes = [0; 4];
                for c in c.to_lowercase() {
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        key = key << 8 | u64::from(byte);
                        length += 1;
                    }
                }
            } else if length > 0 {
                self.word(common, key, length);
                (key, length) = (0, 0);
            }
        }
        self.word(common, key, length);
    }

    fn letter(&mut self, c: char) {
        let n = match c {
            '\u{c0}'..='\u{24f}' => {
                self.latin += 1;
                return;
            }
            '\u{3040}'..='\u{30ff}' => 0,
            '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' => 1,
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' => 2,
            '\u{400}'..='\u{4ff}' => 3,
            '\u{600}'..='\u{6ff}' => 4,
            '\u{590}'..='\u{5ff}' => 5,
            '\u{900}'..='\u{97f}' => 6,
            '\u{e00}'..='\u{e7f}' => 7,
            '\u{370}'..='\u{3ff}' => 8,
            _ => return,
        };
        if let Some(count) = self.scripts.get_mut(n) {
            *count += 1;
        }
    }

    fn word(&mut self, common: &Common, key: u64, length: usize) {
        if !(1..=LONGEST).contains(&length) {
            return;
        }
        let languages = common.languages(key);
        if languages != 0 {
            for (n, hits) in self.words.iter_mut().enumerate() {
                *hits += usize::from(languages >> n & 1);
            }
        }
    }

    fn of_scripts(&self, places: &[usize]) -> usize {
        places.iter().filter_map(|n| self.scripts.get(*n)).sum()
    }

    /// The language; `None` where it is not clear.
    fn language(&self) -> Option<Language> {
        let [
            kana,
            hangul,
            han,
            cyrillic,
            arabic,
            hebrew,
            devanagari,
            thai,
            greek,
        ] = self.scripts;
        // Names, code and commands are Latin in every language: a sixth of another script decides.
        let other = self.scripts.iter().sum::<usize>();
        if other * 6 >= self.latin && other >= FEWEST / 2 {
            // Kana decide for Japanese even among more Han.
            let japanese = if kana * 8 >= han { kana + han } else { 0 };
            return [
                (japanese, Language::Japanese),
                (hangul, Language::Korean),
                (han, Language::Chinese),
                (cyrillic, Language::Cyrillic),
                (arabic, Language::Arabic),
                (hebrew, Language::Hebrew),
                (devanagari, Language::Devanagari),
                (thai, Language::Thai),
                (greek, Language::Greek),
            ]
            .into_iter()
            .rev()
            .max_by_key(|(count, _)| *count)
            .map(|(_, language)| language);
        }
        if self.latin < FEWEST || other * 20 > self.latin {
            return None;
        }
        let hits = &self.words;
        let (best, most) = hits
            .iter()
            .enumerate()
            .max_by_key(|(n, hits)| (**hits, COMMON.len() - n))?;
        let next = hits
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != best)
            .map(|(_, hits)| *hits)
            .max()?;
        // Languages share words: only a clear lead counts.
        (*most >= 6 && *most >= next * 2)
            .then(|| Language::Latin(COMMON.get(best).map_or("en", |(name, _)| name)))
    }
}

/// Whether a text is in a language that what was said is not in, where both are clear; a text in
/// a script of which what was said has next to nothing is, too. Reads each text once.
pub(super) fn differs<'a>(said: impl Iterator<Item = &'a str>, text: &[&str]) -> bool {
    let text = Counts::of(text.iter().copied());
    let Some(written) = text.language() else {
        return false;
    };
    let said = Counts::of(said);
    if let Some(spoken) = said.language() {
        // Much code makes a text look Latin; what is said in it may be in the right script.
        let there = matches!(written, Language::Latin(_))
            && text.of_scripts(spoken.scripts()) >= FEWEST / 2;
        return spoken != written && !there;
    }
    let all = said.latin + said.scripts.iter().sum::<usize>();
    !matches!(written, Language::Latin(_))
        && all >= FEWEST
        && said.of_scripts(written.scripts()) * 100 < all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Language> {
        Counts::of([text].into_iter()).language()
    }

    #[test]
    fn languages_are_told_apart() {
        assert_eq!(
            of(
                "The parser was fixed and the tests are green; it is the only thing that was left to do with this."
            ),
            Some(Language::Latin("en"))
        );
        assert_eq!(
            of(
                "Der Fehler wurde behoben und die Tests sind grün, das ist nicht alles, was mit der Datei zu tun ist."
            ),
            Some(Language::Latin("de"))
        );
        assert_eq!(
            of(
                "`next_token` を直しました。テストはすべて通りました。次は `parse_block` の課題です。"
            ),
            Some(Language::Japanese)
        );
        assert_eq!(
            of("파서를 고쳤습니다. 모든 테스트가 통과했고 다음은 문서입니다."),
            Some(Language::Korean)
        );
        assert_eq!(
            of("解析器已经修复，所有测试都通过了，下一步是更新文档并发布新版本。"),
            Some(Language::Chinese)
        );
        assert_eq!(
            of("Парсер исправлен, все тесты проходят, дальше документация."),
            Some(Language::Cyrillic)
        );
        assert_eq!(of("ok"), None);
        assert_eq!(of(""), None);
        assert_eq!(
            of("src/lexer.rs src/parser.rs cargo test --workspace cargo build"),
            None
        );
    }
}
