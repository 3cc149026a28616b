//! Conversions of numbers, hashes and ids between Rust types and columns of a database.

use std::fmt::Display;

use memory_model::{Hash, RawJson, Seq, SeqRange};
use memory_store::{Error, ErrorKind};

use crate::error::{Result, corrupt};

/// Converts a count to the integer of a column. `what` names the count in an error.
///
/// # Errors
/// `Limit` if `number` exceeds the largest integer of a database.
pub fn to_int(what: &str, number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|source| {
        Error::new(
            ErrorKind::Limit,
            format!("{what}: {number} is too large to be stored"),
        )
        .with_source(source)
    })
}

/// Converts the integer of a column to a count. `what` names the count in an error.
///
/// # Errors
/// `Corrupt` if `number` is negative.
pub fn to_count(what: &str, number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|e| corrupt(what, format!("{number} is negative")).with_source(e))
}

/// Converts the integer of a column to a 32-bit number. `what` names the number in an error.
///
/// # Errors
/// `Corrupt` if `number` is out of range.
pub fn to_u32(what: &str, number: i64) -> Result<u32> {
    u32::try_from(number)
        .map_err(|e| corrupt(what, format!("{number} is out of range")).with_source(e))
}

/// Converts the integer of a column to a position in a log.
///
/// # Errors
/// `Corrupt` if `number` is out of range.
pub fn to_seq(number: i64) -> Result<Seq> {
    to_u32("seq", number).map(Seq)
}

/// Converts the integers of two columns to a range of positions. `what` names the range in an error.
pub(crate) fn to_range(what: impl Display, first: i64, last: i64) -> Result<SeqRange> {
    SeqRange::new(to_seq(first)?, to_seq(last)?)
        .ok_or_else(|| corrupt(what, format!("{first}-{last} is not a range")))
}

/// Parses the JSON of a column. Returns `None` if the column is null. `what` names the value in an error.
pub(crate) fn to_json(what: impl Display, text: Option<String>) -> Result<Option<RawJson>> {
    let json = text.map(RawJson::parse).transpose();
    json.map_err(|e| corrupt(what, "it is not JSON").with_source(e))
}

/// Converts the bytes of a column to a hash. `what` names the hash in an error.
///
/// # Errors
/// `Corrupt` if the number of bytes is not 32.
pub fn to_hash(what: &str, bytes: &[u8]) -> Result<Hash> {
    Hash::from_slice(bytes).ok_or_else(|| {
        corrupt(
            what,
            format!("a hash of {} bytes instead of 32", bytes.len()),
        )
    })
}

/// Returns the key of an entry's row: `conversation << 32 | seq`. `seq` is the position of the entry in the log.
pub fn packed(conversation: u32, seq: u32) -> i64 {
    // The number of a conversation has at most 31 bits, so the key is not negative.
    (i64::from(conversation) << 32) | i64::from(seq)
}

/// Returns the 16 bytes of a UUID in the usual form: lower case, with hyphens. Returns `None` for any other text. The
/// bytes take less than half the space of the text, both in the row and in the index.
pub(crate) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    // Positions of the pairs of hexadecimal digits. The hyphens are between them.
    const PAIRS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut bytes = [0; 16];
    // Has the bit 0x80 set if a character is not a digit.
    let mut wrong = 0;
    for (byte, at) in bytes.iter_mut().zip(PAIRS) {
        let (high, low) = (
            VALUES[usize::from(text[at])],
            VALUES[usize::from(text[at + 1])],
        );
        wrong |= high | low;
        *byte = high << 4 | low & 15;
    }
    let hyphens = [8, 13, 18, 23].into_iter().all(|at| text[at] == b'-');
    (hyphens && wrong & 0x80 == 0).then_some(bytes)
}

/// Value of each character as a hexadecimal digit, or 0x80 if it is not a lower-case digit.
const VALUES: [u8; 256] = {
    let mut values = [0x80; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

/// Returns the text of a UUID from the bytes that [`uuid_bytes`] returned.
pub(crate) fn uuid_text(bytes: [u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uuids_are_packed_and_they_come_back() {
        let id = "0e26ec2f-937e-482c-b889-bc126f99699a";
        let bytes = uuid_bytes(id).unwrap();
        assert_eq!(bytes[..3], [0x0e, 0x26, 0xec]);
        assert_eq!(uuid_text(bytes), id);
        for other in [
            "",
            "0E26ec2f-937e-482c-b889-bc126f99699a",
            "0e26ec2f-937e-482c-b889-bc126f99699",
            "0e26ec2f-937e-482c-b889-bc126f99699g",
            "0e26ec2f-937e-482c-b889-bc126f99699-",
            "0e26ec2f0937e-482c-b889-bc126f99699a",
            "----------------------------------56",
        ] {
            assert_eq!(uuid_bytes(other), None, "{other}");
        }
    }
}
