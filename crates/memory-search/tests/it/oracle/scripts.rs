//! Random texts and queries in many scripts.

use fastrand::Rng;

use super::brute;

/// All punctuation marks of ASCII.
pub(crate) const MARKS: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// A script: its name and some of its characters.
pub(crate) const SCRIPTS: [(&str, &str); 17] = [
    ("Latin", "aabcdeeghiilmnoprsstuAEISTéÉßüÜİſñ'’"),
    ("Cyrillic", "абвгдеийклмноПРСТуыьяЁёѣ"),
    ("Greek", "αβγδεηικλμνοπρστςυωΣΑΛάώ"),
    ("Arabic", "ابتثجحدرسشعفكلمنهويةءَُِّ"),
    ("Hebrew", "אבגדהוזחילמנסעפצקרשתךםָּׁ"),
    ("Devanagari", "अआकखगचजटतदनपबमयरलवसहािीुेो्ंँ"),
    ("Thai", "กขคงจชดตทนบปพมยรลวสหอะาิีุเแโ่้"),
    ("Han", "数据库搜索的是不了在人有我他这中大来"),
    ("Kana", "あいうかきくさしすたなはまアイウカキーッンがゞ"),
    ("Hangul", "가나다라마바사아자하한국어은는을를이"),
    ("Emoji", "🎉🚀😀👩💻❤\u{fe0f}\u{200d}✅🏽"),
    ("Digits", "0123456789aAbB٣५๗"),
    ("Vietnamese", "aeiouđnthcgáàăâêôơưếệễộớữịỹẤỆ"),
    ("Signs", "aAkKoÅå\u{212b}\u{212a}Ωω\u{2126}é"),
    ("Nukta", "कखगजनरफ\u{958}\u{959}\u{95b}\u{95e}ऩऱािी"),
    ("Voiced Kana", "かがきぎはばぱカガハバパゞヴン"),
    ("Mixed", "aBé9жΣبשकก数あ한🎉_'"),
];

/// Creates texts in one script from a few words, so that queries match some of them.
pub(crate) fn texts(rng: &mut Rng, letters: &str, count: usize) -> Vec<String> {
    let letters: Vec<char> = letters.chars().collect();
    let mut word = || -> String {
        let length = rng.usize(1..6);
        (0..length)
            .map(|_| letters[rng.usize(..letters.len())])
            .collect()
    };
    let mut words: Vec<String> = (0..25).map(|_| word()).collect();
    words.extend(["the", "running", "when", "kids"].map(str::to_owned));
    let text = |rng: &mut Rng| {
        let mut text = String::new();
        for _ in 0..rng.usize(0..12) {
            let word = &words[rng.usize(..words.len())];
            text.push_str(&changed_case(rng, word));
            match rng.u8(0..4) {
                0 => text.push(mark(rng)),
                1 => text.push('\n'),
                _ => text.push(' '),
            }
        }
        text
    };
    (0..count)
        .map(|_| {
            let text = text(rng);
            written(rng, &text)
        })
        .collect()
}

/// Returns a text in one Unicode normal form, in the other, or in both alternately.
fn written(rng: &mut Rng, text: &str) -> String {
    let form = rng.u8(0..6);
    let mut out = String::new();
    for c in text.chars() {
        match form {
            0 => out.extend(brute::apart(c)),
            1 if rng.bool() => out.extend(brute::apart(c)),
            _ => out.push(c),
        }
    }
    match form {
        2 => brute::composed(&out),
        _ => out,
    }
}

/// Creates a query of 1 to 40 characters: often a piece of a text, often with punctuation marks.
pub(crate) fn query(rng: &mut Rng, texts: &[String], letters: &str, mark: char) -> String {
    let text: Vec<char> = texts[rng.usize(..texts.len())].chars().collect();
    let letters: Vec<char> = letters.chars().collect();
    let length = rng.usize(1..=40).min(rng.usize(1..=40));
    let mut query: Vec<char> = if text.is_empty() || rng.u8(0..4) == 0 {
        (0..length)
            .map(|_| letters[rng.usize(..letters.len())])
            .collect()
    } else {
        let from = rng.usize(..text.len());
        text[from..text.len().min(from + length)].to_vec()
    };
    if rng.bool() {
        query.insert(rng.usize(..=query.len()), mark);
    }
    query.truncate(40);
    let query: String = query.into_iter().collect();
    let query = written(rng, &query);
    changed_case(rng, &query)
}

fn mark(rng: &mut Rng) -> char {
    let marks: Vec<char> = MARKS.chars().collect();
    marks[rng.usize(..marks.len())]
}

fn changed_case(rng: &mut Rng, text: &str) -> String {
    match rng.u8(0..4) {
        0 => text.to_uppercase(),
        1 => text.to_lowercase(),
        _ => text.to_owned(),
    }
}
