//! Simple matchers that try all possibilities, and share no code with the library.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use rust_stemmers::{Algorithm, Stemmer};

const SPACED: &str = r"[[\p{Alphabetic}\p{N}\p{M}]&&[^\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\p{Extended_Pictographic}\x{FE00}-\x{FE0F}]--[\p{Extended_Pictographic}&&[^0-9]]]";

static WORD: LazyLock<Regex> = LazyLock::new(|| {
    let unspaced = r"[[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー]&&[\p{Alphabetic}\p{N}\p{M}]]";
    let symbol = r"[\x{2600}-\x{27BF}\x{1F000}-\x{1FAFF}]";
    Regex::new(&format!("(?<u>{unspaced}+)|(?<y>{symbol})|(?<s>{SPACED}+)")).unwrap()
});

/// Returns a word list of the library, which is data, for English and Russian.
fn list(name: &str) -> BTreeSet<&'static str> {
    let files = [
        include_str!("../../../../sentence-model/src/words/lists/english.txt"),
        include_str!("../../../../sentence-model/src/words/lists/russian.txt"),
    ];
    let lines = files.iter().flat_map(|file| file.lines());
    let words = lines.filter_map(|line| line.strip_prefix(name));
    words.flat_map(str::split_whitespace).collect()
}

static STOP: LazyLock<BTreeSet<&str>> = LazyLock::new(|| list("stop:"));
static FORMS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let pairs = list("forms:").into_iter();
    pairs.map(|pair| pair.split_once('=').unwrap()).collect()
});

/// Returns the lower-case form of a text, character by character.
pub(crate) fn lower(text: &str) -> Vec<char> {
    let mut out = Vec::new();
    for c in text.chars() {
        for c in c.to_lowercase() {
            out.push(match c {
                '\u{3c2}' => '\u{3c3}',
                c => c,
            });
        }
    }
    out
}

/// For each mark, letters of the tested scripts, alternately without and with the mark.
const LETTERS: [(char, &str); 12] = [
    ('\u{300}', "aàAÀ"),
    ('\u{301}', "eéEÉaáAÁâấÂẤêếÊẾơớƠỚαάΑΆωώΩΏ"),
    ('\u{302}', "aâAÂeêEÊẹệẸỆoôOÔọộỌỘ"),
    ('\u{303}', "nñNÑêễÊỄyỹYỸưữƯỮ"),
    ('\u{306}', "aăAĂийИЙ"),
    ('\u{307}', "Iİ"),
    ('\u{308}', "uüUÜеёЕЁ"),
    ('\u{30a}', "aåAÅ"),
    ('\u{31b}', "oơOƠuưUƯ"),
    ('\u{323}', "eẹEẸoọOỌiịIỊ"),
    ('\u{3099}', "かがきぎはばカガハバウヴゝゞ"),
    ('\u{309a}', "はぱハパ"),
];

/// Letters without and with a nukta. Only the last two letters with a nukta are composed forms.
const NUKTAS: &str = "क\u{958}ख\u{959}ग\u{95a}ज\u{95b}फ\u{95e}नऩरऱ";

/// Letters that consist of two characters, with these characters.
static PAIRS: LazyLock<Vec<(char, [char; 2])>> = LazyLock::new(|| {
    let marks = LETTERS.into_iter().chain([('\u{93c}', NUKTAS)]);
    let pairs = marks.flat_map(|(mark, letters)| {
        let letters: Vec<char> = letters.chars().collect();
        let pairs = letters.chunks(2).map(|pair| (pair[1], [pair[0], mark]));
        pairs.collect::<Vec<_>>()
    });
    pairs.collect()
});

/// Signs and their equivalent letters.
const SIGNS: [(char, char); 3] = [('\u{212b}', 'Å'), ('\u{212a}', 'K'), ('\u{2126}', 'Ω')];

/// Returns the combining class of a mark, which determines the order of a letter's marks. Returns 0 for other
/// characters.
fn class(c: char) -> u8 {
    match c {
        '\u{93c}' => 7,
        '\u{3099}' | '\u{309a}' => 8,
        '्' => 9,
        '\u{5b8}' => 18,
        '\u{5bc}' => 21,
        '\u{5c1}' => 24,
        '\u{64e}' => 30,
        '\u{64f}' => 31,
        '\u{650}' => 32,
        '\u{651}' => 33,
        'ุ' | 'ู' => 103,
        '\u{e48}' | '\u{e49}' => 107,
        '\u{31b}' => 216,
        '\u{323}' => 220,
        '\u{300}'..='\u{30c}' => 230,
        _ => 0,
    }
}

/// Decomposes a character. Marks come last.
pub(crate) fn apart(c: char) -> Vec<char> {
    if let Some((_, letter)) = SIGNS.iter().find(|(sign, _)| *sign == c) {
        return apart(*letter);
    }
    if let Some((_, [letter, mark])) = PAIRS.iter().find(|(one, _)| *one == c) {
        let mut all = apart(*letter);
        all.push(*mark);
        return all;
    }
    match u32::from(c)
        .checked_sub(0xac00)
        .filter(|at| *at < 19 * 21 * 28)
    {
        Some(at) => [0x1100 + at / 588, 0x1161 + at % 588 / 28, 0x11a7 + at % 28]
            .into_iter()
            .filter(|part| *part != 0x11a7)
            .map(|part| char::from_u32(part).unwrap())
            .collect(),
        None => vec![c],
    }
}

/// Composes two characters into one; `None` if they do not compose.
fn joined(one: char, other: char) -> Option<char> {
    let composes = |letter: char| !('\u{958}'..='\u{95e}').contains(&letter);
    let mut pairs = PAIRS.iter().filter(|(letter, _)| composes(*letter));
    if let Some((letter, _)) = pairs.find(|(_, pair)| *pair == [one, other]) {
        return Some(*letter);
    }
    let (one, other) = (u32::from(one), u32::from(other));
    let joined = match (one, other) {
        (0x1100..=0x1112, 0x1161..=0x1175) => 0xac00 + (one - 0x1100) * 588 + (other - 0x1161) * 28,
        (0xac00..=0xd7a3, 0x11a8..=0x11c2) if (one - 0xac00).is_multiple_of(28) => {
            one + other - 0x11a7
        }
        _ => return None,
    };
    char::from_u32(joined)
}

/// Returns a text in composed form.
pub(crate) fn composed(text: &str) -> String {
    let mut chars: Vec<char> = text.chars().flat_map(apart).collect();
    // Sorts the marks by exchanging neighbours.
    for _ in 0..chars.len() {
        for at in 1..chars.len() {
            let (before, here) = (class(chars[at - 1]), class(chars[at]));
            if here > 0 && before > here {
                chars.swap(at - 1, at);
            }
        }
    }
    let mut out: Vec<char> = Vec::new();
    let mut letter = None;
    for c in chars {
        let last = out.last().map_or(0, |last| class(*last));
        if let Some(at) = letter {
            // No character between them prevents the composition.
            let is_free = out.len() == at + 1 || (last > 0 && last < class(c));
            if is_free && let Some(one) = joined(out[at], c) {
                out[at] = one;
                continue;
            }
        }
        if class(c) == 0 {
            letter = Some(out.len());
        }
        out.push(c);
    }
    out.into_iter().collect()
}

/// Returns whether a text contains a pattern, ignoring case: both as written, or both in composed form.
pub(crate) fn literal(pattern: &str, text: &str) -> bool {
    let occurs =
        |pattern: &[char], text: &[char]| (0..text.len()).any(|at| text[at..].starts_with(pattern));
    let written = [pattern, text].map(lower);
    let composed = written.each_ref().map(|chars| {
        let text: String = chars.iter().collect();
        composed(&text).chars().collect::<Vec<char>>()
    });
    occurs(&written[0], &written[1]) || occurs(&composed[0], &composed[1])
}

/// A word with its terms in a text, and the terms that a query requires for it.
struct Terms {
    in_text: Vec<String>,
    in_query: Vec<String>,
    word: String,
}

fn words(text: &str, forms: bool) -> Vec<Terms> {
    let (mut out, text) = (Vec::new(), composed(text));
    let text = text.as_str();
    let mut last_spaced_end = None;
    for found in WORD.captures_iter(text) {
        let range = found.get(0).unwrap().range();
        let word: String = lower(&text[range.clone()]).into_iter().collect();
        let word = composed(&word);
        if found.name("u").is_some() {
            // Splits the word by characters of the text. In these scripts, lower case does not change their number.
            let chars: Vec<String> = text[range].chars().map(String::from).collect();
            let pairs: Vec<String> = chars.windows(2).map(<[String]>::concat).collect();
            out.push(Terms {
                in_query: if pairs.is_empty() {
                    chars.clone()
                } else {
                    pairs.clone()
                },
                in_text: [chars, pairs].concat(),
                word,
            });
            continue;
        }
        let mut ending = false;
        if found.name("s").is_some() {
            let before = last_spaced_end.map(|end: usize| &text[end..range.start]);
            ending = matches!(before, Some("'" | "’"))
                && ["s", "t", "d", "m", "ll", "re", "ve"]
                    .contains(&text[range.clone()].to_ascii_lowercase().as_str());
            last_spaced_end = Some(range.end);
        }
        if !ending {
            let term = stem(&word, forms);
            out.push(Terms {
                in_text: vec![term.clone()],
                in_query: vec![term],
                word,
            });
        }
    }
    out
}

static SCRIPT_OF: LazyLock<BTreeMap<&str, Regex>> = LazyLock::new(|| {
    let scripts = ["Latin", "Cyrillic", "Greek", "Arabic"];
    let pattern = |script| format!(r"^[\P{{Alphabetic}}\p{{M}}]*\p{{{script}}}");
    scripts
        .map(|script| (script, Regex::new(&pattern(script)).unwrap()))
        .into()
});

fn stem(word: &str, forms: bool) -> String {
    let is = |script: &str| SCRIPT_OF[script].is_match(word);
    let usual = if forms {
        FORMS.get(word).copied().unwrap_or(word)
    } else {
        word
    };
    let (language, word) = if is("Latin") {
        (Algorithm::English, usual)
    } else if is("Cyrillic") {
        (Algorithm::Russian, word)
    } else if is("Greek") {
        (Algorithm::Greek, word)
    } else if is("Arabic") {
        (Algorithm::Arabic, word)
    } else {
        return word.to_owned();
    };
    if word.chars().any(char::is_numeric) || word.len() > 64 {
        return word.to_owned();
    }
    let stem = Stemmer::create(language).stem(word).into_owned();
    if stem.is_empty() {
        word.to_owned()
    } else {
        stem
    }
}

fn in_text(text: &str, forms: bool) -> BTreeSet<String> {
    words(text, forms)
        .into_iter()
        .flat_map(|word| word.in_text)
        .collect()
}

/// Returns whether each text contains all words of a pattern. `None` if the pattern has no words.
pub(crate) fn all_words(pattern: &str, texts: &[String]) -> Option<Vec<bool>> {
    let wanted: BTreeSet<String> = words(pattern, false)
        .into_iter()
        .flat_map(|word| word.in_query)
        .collect();
    let found = texts
        .iter()
        .map(|text| wanted.is_subset(&in_text(text, false)));
    (!wanted.is_empty()).then(|| found.collect())
}

/// Returns whether each text contains a word of a pattern that is not a stop word, or is one or two places after or one
/// place before such a text in the same episode. `None` if the pattern has no words.
pub(crate) fn any_word(pattern: &str, texts: &[String], episodes: &[usize]) -> Option<Vec<bool>> {
    let all = words(pattern, true);
    let is_telling = |word: &&Terms| !STOP.contains(word.word.as_str());
    let mut wanted: BTreeSet<&String> = all
        .iter()
        .filter(is_telling)
        .flat_map(|word| &word.in_query)
        .collect();
    if wanted.is_empty() {
        wanted = all.iter().flat_map(|word| &word.in_query).collect();
    }
    let own: Vec<bool> = texts
        .iter()
        .map(|text| {
            let terms = in_text(text, true);
            wanted.iter().any(|term| terms.contains(*term))
        })
        .collect();
    let near = |at: usize, offset: isize| {
        let other = at.checked_add_signed(offset);
        other.is_some_and(|other| own.get(other) == Some(&true) && episodes[other] == episodes[at])
    };
    let found = (0..own.len()).map(|at| own[at] || near(at, -1) || near(at, -2) || near(at, 1));
    (!wanted.is_empty()).then(|| found.collect())
}

/// A regular expression as a tree.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    Char(char),
    Any,
    Class(Vec<char>, bool),
    Repeat(Box<Tree>, usize, usize),
    Sequence(Vec<Tree>),
    Either(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// Returns the expression in the usual syntax.
    pub(crate) fn written(&self) -> String {
        let escaped = |c: &char| match c.is_ascii_punctuation() || c.is_whitespace() {
            true => format!("\\x{{{:x}}}", u32::from(*c)),
            false => c.to_string(),
        };
        match self {
            Tree::Char(c) => escaped(c),
            Tree::Any => ".".to_owned(),
            Tree::Class(chars, negated) => {
                let inside: String = chars.iter().map(escaped).collect();
                format!("[{}{inside}]", if *negated { "^" } else { "" })
            }
            Tree::Repeat(tree, low, high) => format!("(?:{}){{{low},{high}}}", tree.written()),
            Tree::Sequence(trees) => trees.iter().map(Tree::written).collect(),
            Tree::Either(one, other) => format!("(?:{}|{})", one.written(), other.written()),
        }
    }

    /// Returns the possible ends of matches that begin at `at`.
    fn ends(&self, text: &[char], at: usize) -> BTreeSet<usize> {
        let one = |matches: bool| {
            if matches {
                [at + 1].into()
            } else {
                BTreeSet::new()
            }
        };
        let same = |a: char, b: char| {
            a == b || a.to_uppercase().eq(b.to_uppercase()) || a.to_lowercase().eq(b.to_lowercase())
        };
        let then = |from: BTreeSet<usize>, tree: &Tree| -> BTreeSet<usize> {
            from.into_iter()
                .flat_map(|at| tree.ends(text, at))
                .collect()
        };
        match self {
            Tree::Char(c) => one(text.get(at).is_some_and(|t| same(*t, *c))),
            Tree::Any => one(text.get(at).is_some_and(|t| *t != '\n')),
            Tree::Class(chars, negated) => one(text
                .get(at)
                .is_some_and(|t| chars.iter().any(|c| same(*t, *c)) != *negated)),
            Tree::Repeat(tree, low, high) => {
                let (mut ends, mut from) = (BTreeSet::new(), BTreeSet::from([at]));
                for count in 0..=*high {
                    if count >= *low {
                        ends.extend(&from);
                    }
                    from = then(from, tree);
                }
                ends
            }
            Tree::Sequence(trees) => trees.iter().fold([at].into(), then),
            Tree::Either(one, other) => &one.ends(text, at) | &other.ends(text, at),
        }
    }

    /// Returns whether the expression matches anywhere in a text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        (0..=text.len()).any(|at| !self.ends(&text, at).is_empty())
    }

    /// Creates a random expression of some characters.
    pub(crate) fn random(rng: &mut fastrand::Rng, chars: &[char], depth: usize) -> Tree {
        let c = |rng: &mut fastrand::Rng| chars[rng.usize(..chars.len())];
        match rng.u8(0..if depth == 0 { 4 } else { 8 }) {
            0..=1 => Tree::Char(c(rng)),
            2 => Tree::Any,
            3 => Tree::Class((0..rng.usize(1..4)).map(|_| c(rng)).collect(), rng.bool()),
            4 => {
                let low = rng.usize(0..2);
                let tree = Tree::random(rng, chars, depth - 1);
                Tree::Repeat(Box::new(tree), low, low + rng.usize(0..3))
            }
            5..=6 => Tree::Sequence(
                (0..rng.usize(2..5))
                    .map(|_| Tree::random(rng, chars, depth - 1))
                    .collect(),
            ),
            _ => Tree::Either(
                Box::new(Tree::random(rng, chars, depth - 1)),
                Box::new(Tree::random(rng, chars, depth - 1)),
            ),
        }
    }
}
