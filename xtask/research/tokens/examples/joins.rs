//! Writes which characters the tokenizers' vocabularies join: `coefficients/*.joins.bin` of the calibrated estimators.
//!
//! `cargo research tokens --example joins`, then `cargo xtask codegen`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool of this repository"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};
use token_estimate::fit::places;

/// Bits of the sets for one entry.
const ROOM: usize = 8;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../crates/token-estimate/src/calibrated/coefficients");
    for (name, tokenizer) in [("o200k", o200k_base()), ("cl100k", cl100k_base())] {
        let data = joins(tokenizer);
        std::fs::write(folder.join(format!("{name}.joins.bin")), &data).unwrap();
        println!("{name}: {} bytes", data.len());
    }
}

/// The joins of a vocabulary, as the coefficients' README describes them.
pub fn joins(tokenizer: &Tokenizer) -> Vec<u8> {
    let mut joined = BTreeSet::new();
    let (mut pairs, mut triples) = (BTreeSet::new(), BTreeSet::new());
    let mut repeats: BTreeMap<u16, u8> = BTreeMap::new();
    for id in 0..tokenizer.bpe.num_tokens() as u32 {
        let points = whole(tokenizer.bpe.token_bytes(id));
        for two in points.windows(2) {
            match (two[0] < 0x80, two[1] < 0x80) {
                (true, true) => {}
                (false, false) => joined.extend(two.iter().copied()),
                _ => _ = pairs.insert([1, two[0], two[1]]),
            }
        }
        for run in points.split(|point| *point < 0x80) {
            if let [a, b] = *run {
                pairs.insert([0, a, b]);
            }
            triples.extend(run.windows(3).map(|three| [three[0], three[1], three[2]]));
            if let Some(&first) = run.first()
                && run.len() > 1
                && run.iter().all(|point| *point == first)
                && let Ok(first) = u16::try_from(first)
            {
                let longest = repeats.entry(first).or_default();
                *longest = (*longest).max(run.len() as u8);
            }
        }
    }
    // Of a token, the character may be the beginning: after a space some of its bytes.
    for character in (0x80..0x2_0000).filter_map(char::from_u32) {
        let count = |text: String| tokenizer.bpe.count(text.as_bytes());
        if count(format!(" {character}")) <= count(character.to_string()) {
            pairs.insert([1, u32::from(' '), u32::from(character)]);
        }
    }
    let fact = |point: u32| {
        let character = char::from_u32(point)?;
        let alone = tokenizer.bpe.count(character.to_string().as_bytes());
        Some([
            alone.clamp(1, 4) as u8 - 1,
            u8::from(joined.contains(&point)),
        ])
    };
    let of_block = |block: u32| {
        let facts = (0..64).filter_map(|n| fact(0x1_0000 + 64 * block + n));
        let least = |a: [u8; 2], b: [u8; 2]| [a[0].min(b[0]), a[1] | b[1]];
        facts.reduce(least)
    };
    let facts = (0..0x1_0000).map(fact).chain((0..1_024).map(of_block));
    let facts: Vec<u8> = facts
        .map(|fact| fact.map_or(0, |[alone, joins]| alone | joins << 2))
        .collect();
    let mut out: Vec<u8> = facts.chunks(2).map(|two| two[0] | two[1] << 4).collect();
    out.extend((repeats.len() as u16).to_le_bytes());
    for (point, longest) in repeats {
        out.extend(point.to_le_bytes());
        out.push(longest);
    }
    for set in [pairs, triples] {
        let bits = (set.len() * ROOM).next_power_of_two().ilog2();
        let mut room = vec![0_u8; (1 << bits) / 8];
        for characters in set {
            for place in places(characters, bits) {
                room[place as usize / 8] |= 1 << (place % 8);
            }
        }
        out.push(bits as u8);
        out.extend(room);
    }
    out
}

/// Returns the whole characters of a token; its ends may be parts of characters.
fn whole(bytes: &[u8]) -> Vec<u32> {
    let begin = bytes
        .iter()
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    let rest = bytes.get(begin..).unwrap_or_default();
    let text = match std::str::from_utf8(rest) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap(),
    };
    text.chars().map(u32::from).collect()
}
