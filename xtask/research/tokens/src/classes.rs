//! The fine class of each character beyond ASCII, from its block and from a tokenizer's vocabulary: how many tokens it
//! costs alone, and for the scripts without spaces how often the vocabulary merges it with what follows or precedes.

use std::collections::BTreeMap;

use bpe_openai::Tokenizer;
use token_estimate::fit::{RANGES, fine as f};

/// The share of a character's merges, by rank: common tokens have low ranks.
#[derive(Clone, Copy, Default)]
struct Merges {
    alone: f64,
    begins: f64,
    goes_on: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Script {
    Han,
    Hiragana,
    Katakana,
    Hangul,
}

fn script(point: u32) -> Option<Script> {
    Some(match point {
        0x4e00..0xa000 | 0x3005 => Script::Han,
        0x3041..=0x309f => Script::Hiragana,
        0x30a1..=0x30fa | 0x30fc..0x3100 => Script::Katakana,
        0xac00..0xd7a4 => Script::Hangul,
        _ => return None,
    })
}

/// The class of each code point of [`RANGES`], less [`f::FIRST_WIDE`].
pub(super) fn table(tokenizer: &Tokenizer) -> Vec<u8> {
    let merges = merges(tokenizer);
    let levels = levels(tokenizer, &merges);
    RANGES
        .iter()
        .flat_map(|&(first, end)| first..end)
        .map(|point| class(point, tokenizer, &merges, &levels) - f::FIRST_WIDE)
        .collect()
}

fn alone(tokenizer: &Tokenizer, point: u32) -> u8 {
    char::from_u32(point).map_or(3, |c| {
        tokenizer.bpe.count(c.to_string().as_bytes()).min(3) as u8
    })
}

fn merges(tokenizer: &Tokenizer) -> BTreeMap<u32, Merges> {
    let mut out: BTreeMap<u32, Merges> = BTreeMap::new();
    for id in 0..tokenizer.bpe.num_tokens() as u32 {
        let Ok(text) = std::str::from_utf8(tokenizer.bpe.token_bytes(id)) else {
            continue;
        };
        let chars: Vec<u32> = text
            .trim_start_matches(' ')
            .chars()
            .map(u32::from)
            .collect();
        let weight = 1.0 / f64::from(id + 1);
        if chars.is_empty() || !chars.iter().all(|&c| script(c).is_some()) {
            continue;
        }
        if chars.len() == 1 {
            out.entry(chars[0]).or_default().alone += weight;
            continue;
        }
        out.entry(chars[0]).or_default().begins += weight;
        for &c in &chars[1..] {
            out.entry(c).or_default().goes_on += weight;
        }
    }
    out
}

/// For each script the bounds between levels: of beginning, of going on.
type Levels = BTreeMap<Script, [Vec<f64>; 2]>;

fn ratios(m: &Merges) -> [f64; 2] {
    [m.begins / m.alone.max(1e-6), m.goes_on / m.alone.max(1e-6)]
}

fn levels(tokenizer: &Tokenizer, merges: &BTreeMap<u32, Merges>) -> Levels {
    let mut out = Levels::new();
    for (which, begin, go) in [
        (Script::Han, 4, 4),
        (Script::Hiragana, 2, 3),
        (Script::Katakana, 1, 2),
        (Script::Hangul, 2, 4),
    ] {
        let bounds = |n: usize, parts: usize| {
            let mut found: Vec<f64> = merges
                .iter()
                .filter(|(c, _)| script(**c) == Some(which) && alone(tokenizer, **c) == 1)
                .map(|(_, m)| ratios(m)[n])
                .collect();
            found.sort_by(f64::total_cmp);
            (1..parts)
                .map(|p| found[(found.len() * p / parts).min(found.len() - 1)])
                .collect::<Vec<f64>>()
        };
        out.insert(which, [bounds(0, begin), bounds(1, go)]);
    }
    out
}

/// Beginning and going on, each as a level from 0.
fn level(which: Script, point: u32, merges: &BTreeMap<u32, Merges>, levels: &Levels) -> [u8; 2] {
    let ratios = ratios(&merges.get(&point).copied().unwrap_or_default());
    [0, 1].map(|n| {
        levels[&which][n]
            .iter()
            .filter(|bound| ratios[n] >= **bound)
            .count() as u8
    })
}

fn class(point: u32, tokenizer: &Tokenizer, merges: &BTreeMap<u32, Merges>, levels: &Levels) -> u8 {
    let cost = alone(tokenizer, point);
    if let Some(which) = script(point) {
        let [begins, goes_on] = level(which, point, merges, levels);
        return match which {
            Script::Han if cost > 1 => f::F_HAN + 14 + cost,
            Script::Han => f::F_HAN + begins * 4 + goes_on,
            Script::Hiragana => f::F_HIRAGANA + if cost > 1 { 0 } else { begins * 3 + goes_on },
            Script::Katakana if cost > 1 => f::F_KATAKANA + 2,
            Script::Katakana => f::F_KATAKANA + goes_on,
            Script::Hangul if cost > 1 => f::F_HANGUL + 8,
            Script::Hangul => f::F_HANGUL + begins * 4 + goes_on,
        };
    }
    let by_cost = |first: u8| first + cost.clamp(1, 3) - 1;
    let two = |first: u8, common: bool| first + u8::from(!common);
    let one_of = |set: &str| char::from_u32(point).is_some_and(|c| set.contains(c));
    match point {
        0x85 | 0xa0 | 0x1680 | 0x2000..=0x200a | 0x2028 | 0x2029 | 0x202f | 0x205f | 0x3000 => {
            f::F_WIDE_SPACE
        }
        0x80..0xa0 => f::F_OTHER3,
        0xb2 | 0xb3 | 0xb9 | 0xbc..=0xbe => f::F_WIDE_DIGIT,
        0xaa | 0xb5 | 0xba => f::F_LATIN + 1,
        0xa1..0xc0 | 0xd7 | 0xf7 => by_cost(f::F_SYMBOL),
        0xc0..0x2b0 | 0x1e00..0x1f00 | 0xff21..=0xff3a | 0xff41..=0xff5a => {
            two(f::F_LATIN, cost == 1)
        }
        0x2b0..0x300 => by_cost(f::F_SYMBOL),
        0x300..0x370 | 0x20d0..0x20e3 | 0x591..=0x5c7 | 0x64b..=0x65f | 0x670 => f::F_MARK,
        0x370..0x400 | 0x1f00..0x2000 => f::F_GREEK,
        0x400..0x530 => two(f::F_CYRILLIC, one_of("оеаинтсрвлкмдпуяыьгзбчй")),
        0x590..0x600 => f::F_HEBREW,
        0x660..=0x669 | 0x6f0..=0x6f9 | 0x966..=0x96f | 0xe50..=0xe59 | 0xff10..=0xff19 => {
            f::F_WIDE_DIGIT
        }
        0x60c | 0x61b | 0x61f | 0x66a..=0x66d | 0x6d4 | 0x964 | 0x965 => by_cost(f::F_SYMBOL),
        0x600..0x780 | 0x8a0..0x900 | 0xfe70..=0xfeff => two(f::F_ARABIC, one_of("اليمنوترب")),
        0x900..=0x903 | 0x93a..=0x93c | 0x93e..=0x94f | 0x951..=0x957 | 0x962 | 0x963 => {
            f::F_NAGARI_MARK
        }
        0x900..0x980 => f::F_NAGARI,
        0x980..0xe00 => f::F_INDIC,
        0xe80..0x10a0 | 0x1200..0x13a0 | 0x1780..0x1800 if cost > 1 => f::F_OTHER3,
        0xe00..0x10a0 | 0x1780..0x1800 => f::F_THAI,
        0x530..0x590
        | 0x10a0..0x1100
        | 0x1200..0x1780
        | 0x1800..0x1b00
        | 0x1c80..0x1d00
        | 0x2c00..0x2e00 => f::F_ALPHABET,
        0x2070..0x20a0 | 0x2150..0x2190 | 0x2460..0x2500 | 0x2776..0x2794 => f::F_WIDE_DIGIT,
        0x200c | 0x200d | 0x20e3 | 0xfe00..0xfe10 | 0x1f3fb..=0x1f3ff => f::F_JOINER,
        0x200b..0x2c00 | 0x2e00..0x2e80 | 0x3190..0x3400 => by_cost(f::F_SYMBOL),
        0x3001 | 0x3002 | 0xff0c => f::F_CJK_PUNCT,
        0x3003..0x3040 | 0x30fb | 0xff01..=0xff65 => two(f::F_CJK_PUNCT + 1, cost == 1),
        0xfe10..0xfe70 => f::F_CJK_PUNCT + 2,
        0xff66..=0xff9f => f::F_KATAKANA + 2,
        0x1_f000..0x1_fb00 => by_cost(f::F_EMOJI),
        _ => f::F_OTHER3,
    }
}
