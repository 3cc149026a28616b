//! Mutations of an input: of its lines, of the values of its JSON, and of its bytes.

use std::ops::Range;

use fastrand::Rng;

use super::json::{Value, values};

/// Values that programs forget to expect, one a line. The first [`FREQUENT`] are half of those that are used.
const ODD: &str = r#"
null
""
[]
{}
0
true
-1
"a"
false
7
0.1
1e400
-0
9007199254740993
18446744073709551615
-9223372036854775808
123456789012345678901234567890
[[]]
{"a":1,"a":2}
{"":null}
[null]
" "
"\u0000"
"\ud800"
"\udc00\ud800"
"\ud83d\ude00"
"\u202e\u200b"
"a\nb"
"\\"
"null"
"{}"
"{\"a\":1}"
"e\u0301"
"ß"
"日本語"
"%"
"*"
"("
"../.."
"2026-02-30T25:61:00Z"
"-1"
"1e9"
"data:image/png;base64,AAAA"
"data:,"
"https://a.b/c"
"h-0123456789abcdef-1"
"</summary>"
"<system>"
"<agent-memory>\nx\n</agent-memory>"
"user"
"assistant"
"tool"
"system"
"#;
const FREQUENT: usize = 7;
/// Bytes with a meaning in some format.
const BYTES: &[u8] = b"\0\n\r\t \"'\\{}[]:,0-.ueE\x7f\x80\xbf\xc3\xe2\xed\xf0\xff";
const MAX_REPEATED: usize = 6_000;
const MAX_DEPTH: usize = 300;

/// A mutated input. Inputs that were kept last are more frequent.
pub(super) fn input(kept: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut input = any(kept, random).to_vec();
    if random.u8(..4) == 0 {
        input = kept[random.usize(kept.len().saturating_sub(32)..kept.len())].clone();
    }
    for _ in 0..=random.u8(..4) {
        let other = any(kept, random);
        input = match random.u8(..10) {
            0..=5 => of_values(&input, other, random),
            6..=8 => of_lines(&input, other, random),
            _ => of_bytes(&input, other, random),
        };
    }
    input
}

fn any<'a>(kept: &'a [Vec<u8>], random: &mut Rng) -> &'a [u8] {
    &kept[random.usize(..kept.len())]
}

fn pick<T: Clone>(list: &[T], random: &mut Rng) -> Option<T> {
    (!list.is_empty()).then(|| list[random.usize(..list.len())].clone())
}

/// The input with other bytes in a range.
fn replaced(input: &[u8], range: Range<usize>, by: &[u8]) -> Vec<u8> {
    [&input[..range.start], by, &input[range.end..]].concat()
}

fn of_values(input: &[u8], other: &[u8], random: &mut Rng) -> Vec<u8> {
    let own = values(input);
    let Some(Value { bytes, key }) = pick(&own, random) else {
        return of_bytes(input, other, random);
    };
    let value = &input[bytes.clone()];
    let with_key = key.unwrap_or(bytes.start)..bytes.end;
    match random.u8(..12) {
        0..=3 => replaced(input, bytes, &odd(random)),
        4 | 5 => match pick(&values(other), random) {
            Some(Value { bytes: by, .. }) => replaced(input, bytes, &other[by]),
            None => replaced(input, bytes, other),
        },
        6 => match pick(&own, random) {
            Some(Value { bytes: by, .. }) => replaced(input, bytes, &input[by]),
            None => input.to_vec(),
        },
        // Without the value, and the comma before or behind it.
        7 => {
            let (mut start, mut end) = (with_key.start, with_key.end);
            match (
                input.get(end),
                start.checked_sub(1).and_then(|at| input.get(at)),
            ) {
                (Some(b','), _) => end += 1,
                (_, Some(b',')) => start -= 1,
                _ => {}
            }
            replaced(input, start..end, b"")
        }
        // The value or member twice: a second item or a repeated key.
        8 => replaced(
            input,
            bytes.end..bytes.end,
            &[b",", &input[with_key]].concat(),
        ),
        9 => {
            let depth = 1 + random.usize(..3) * random.usize(..MAX_DEPTH / 2);
            let (open, close) = [("[", "]"), (r#"{"a":"#, "}")][random.usize(..2)];
            let nested = [
                open.repeat(depth).as_bytes(),
                value,
                close.repeat(depth).as_bytes(),
            ]
            .concat();
            replaced(input, bytes, &nested)
        }
        // Inside of a string: an odd text there.
        10 if value.len() > 1 && value.starts_with(b"\"") => {
            let at = bytes.start + 1;
            let text = odd(random);
            let text = text
                .strip_prefix(b"\"")
                .and_then(|text| text.strip_suffix(b"\""));
            replaced(input, at..at, text.unwrap_or(b"\\u0001"))
        }
        _ => of_bytes(input, other, random),
    }
}

fn odd(random: &mut Rng) -> Vec<u8> {
    if random.u8(..24) == 0 {
        let texts = ["a", "a ", "é", "<", "\\n", "\\\"", "([", "x\\u0000"];
        let text = texts[random.usize(..texts.len())].repeat(random.usize(..MAX_REPEATED));
        return format!("\"{text}\"").into_bytes();
    }
    let odd: Vec<&str> = ODD.trim().lines().collect();
    let among = if random.bool() { FREQUENT } else { odd.len() };
    odd[random.usize(..among)].into()
}

fn of_lines(input: &[u8], other: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    if lines.len() < 2 {
        return of_values(input, other, random);
    }
    let at = random.usize(..lines.len());
    let second = random.usize(..lines.len());
    match random.u8(..6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(second, lines[at]),
        2 => lines.swap(at, second),
        3 => lines.truncate(at + 1),
        4 => drop(lines.drain(..at)),
        _ => {
            let others: Vec<&[u8]> = other.split_inclusive(|&byte| byte == b'\n').collect();
            let more = pick(&others, random).unwrap_or_default();
            lines.insert(at, more);
        }
    }
    lines.concat()
}

fn of_bytes(input: &[u8], other: &[u8], random: &mut Rng) -> Vec<u8> {
    let start = random.usize(..=input.len());
    let end = start + random.usize(..=16).min(input.len() - start);
    match random.u8(..6) {
        0 => replaced(input, start..start, &[BYTES[random.usize(..BYTES.len())]]),
        1 => replaced(input, start..end, b""),
        2 => replaced(input, end..end, &input[start..end]),
        3 => input[..start].to_vec(),
        4 if start < input.len() => replaced(
            input,
            start..start + 1,
            &[input[start] ^ (1 << random.u8(..8))],
        ),
        _ => {
            let from = random.usize(..=other.len());
            let to = from + random.usize(..=64).min(other.len() - from);
            replaced(input, start..end, &other[from..to])
        }
    }
}

/// A smaller input that fails in the same way: without lines, values and pieces, as long as attempts are left.
pub(super) fn smaller(
    mut input: Vec<u8>,
    attempts: usize,
    fails: impl Fn(&[u8]) -> bool,
) -> Vec<u8> {
    let mut left = attempts;
    let mut size = input.len() / 2;
    while size > 0 && left > 0 {
        let mut pieces: Vec<Range<usize>> = match size > 256 {
            true => Vec::new(),
            false => values(&input)
                .into_iter()
                .map(|value| value.key.unwrap_or(value.bytes.start)..value.bytes.end)
                .collect(),
        };
        let mut start = 0;
        for line in input.split_inclusive(|&byte| byte == b'\n') {
            pieces.push(start..start + line.len());
            start += line.len();
        }
        pieces.extend(
            (0..input.len())
                .step_by(size)
                .map(|at| at..(at + size).min(input.len())),
        );
        let shorter = pieces
            .into_iter()
            .filter(|piece| piece.len() >= size)
            .take(left)
            .find_map(|piece| {
                left -= 1;
                let shorter = replaced(&input, piece, b"");
                fails(&shorter).then_some(shorter)
            });
        match shorter {
            Some(shorter) => input = shorter,
            None => size /= 2,
        }
    }
    input
}
