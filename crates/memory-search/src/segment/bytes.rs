//! Numbers and texts as bytes.

use crate::error::{Error, ErrorKind, Result};

/// Writes a number in groups of seven bits, the lowest group first (LEB128).
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes the length of some bytes, and then the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads the bytes that [`put`] and [`put_bytes`] wrote.
#[derive(Debug, Clone)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes that were not read yet.
    pub(super) fn rest(&self) -> &'b [u8] {
        self.rest
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64> {
        let (mut number, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
            if shift > 63 {
                return Err(damaged());
            }
        }
    }

    /// Reads a number that fits into 32 bits.
    #[inline]
    pub(super) fn small(&mut self) -> Result<u32> {
        // Most numbers are less than 128.
        match self.rest.split_first() {
            Some((first, rest)) if *first < 0x80 => {
                self.rest = rest;
                Ok(u32::from(*first))
            }
            _ => self.long(),
        }
    }

    /// Reads a number of more than one byte.
    #[cold]
    fn long(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| damaged())
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a length, and then as many bytes.
    #[inline]
    pub(super) fn bytes(&mut self) -> Result<&'b [u8]> {
        let count = self.small()? as usize;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> Result<&'b str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| damaged())
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| damaged())
    }
}

/// Returns the error for bytes that are not a valid part of a segment.
#[cold]
pub(super) fn damaged() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "the search index is damaged: build it again",
    )
}
