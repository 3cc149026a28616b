//! Damaged sources of every format: truncated, shuffled, repeated, with flipped bits and in wrong encodings.
//!
//! `AGENT_MEMORY_SEEDS` sets the number of damages of each kind; the default is 3.

use std::collections::BTreeSet;

use memory_model::Message;
use message_formats::{ReadOptions, Transcript, read};
use outside_checks::fixtures::{claude_code, pi, plain};

use crate::support::{agents, export};

/// A generator of numbers that needs no crate: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

type Damage = fn(&[u8], &mut Random) -> Vec<u8>;

const DAMAGES: [(&str, Damage); 7] = [
    ("truncated", |bytes, random| {
        bytes[..random.below(bytes.len())].to_vec()
    }),
    ("shuffled", |bytes, random| {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for at in (1..lines.len()).rev() {
            lines.swap(at, random.below(at + 1));
        }
        lines.concat()
    }),
    ("repeated", |bytes, random| {
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let twice = |line: &&[u8], random: &mut Random| line.repeat(1 + random.below(3));
        lines.iter().flat_map(|line| twice(line, random)).collect()
    }),
    ("flipped", |bytes, random| {
        let mut bytes = bytes.to_vec();
        for _ in 0..1 + bytes.len() / 500 {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        bytes
    }),
    ("cut out", |bytes, random| {
        let from = random.below(bytes.len());
        let to = from + random.below(bytes.len() - from);
        [&bytes[..from], &bytes[to..]].concat()
    }),
    ("in UTF-16", |bytes, random| {
        let text = String::from_utf8_lossy(bytes);
        let mark = if random.below(2) == 0 { "\u{feff}" } else { "" };
        let units = mark.encode_utf16().chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    }),
    ("in Latin-1", |bytes, random| {
        let text = String::from_utf8_lossy(bytes)
            .replace(' ', if random.below(2) == 0 { "é" } else { " ü" });
        text.chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))
            .collect()
    }),
];

/// Checks what a reading of a source has: ids that are unique, and messages that can be exported and read again.
fn check(what: &str, transcript: &Transcript) {
    let keys: BTreeSet<&str> = transcript
        .sessions
        .iter()
        .map(|log| log.key.as_str())
        .collect();
    assert_eq!(keys.len(), transcript.sessions.len(), "{what}");
    for log in &transcript.sessions {
        let ids: Vec<&str> = log
            .messages
            .iter()
            .map(|message| message.external_id.as_deref().unwrap())
            .collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "{what}");
        if ids.is_empty() {
            continue;
        }
        let again = read(export(log).as_bytes(), &ReadOptions::default());
        let again = again.unwrap_or_else(|error| panic!("{what}: {error}"));
        let said: Vec<Message> = again
            .sessions
            .into_iter()
            .flat_map(|log| log.messages)
            .collect();
        assert!(said == log.messages, "{what}");
    }
}

#[test]
fn damaged_sources_are_read_in_part_or_refused() {
    let seeds = std::env::var("AGENT_MEMORY_SEEDS").map_or(3, |seeds| seeds.parse().unwrap());
    let mut sources = agents();
    for (name, source) in [
        ("claude", claude_code(8)),
        ("pi", pi(8)),
        ("plain", plain(8)),
    ] {
        sources.push((name.to_owned(), source.into_bytes()));
    }
    let (mut readings, mut refusals) = (0, 0);
    for (name, bytes) in &sources {
        for (damage, apply) in DAMAGES {
            for seed in 1..=seeds {
                let what = format!("{name}, {damage}, seed {seed}");
                let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
                random.below(1);
                let damaged = apply(bytes, &mut random);
                match read(damaged.as_slice(), &ReadOptions::default()) {
                    Ok(transcript) => {
                        check(&what, &transcript);
                        readings += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().len() > 10, "{what}");
                        refusals += 1;
                    }
                }
            }
        }
    }
    assert!(
        readings > refusals && refusals > 0,
        "{readings}, {refusals}"
    );
}
