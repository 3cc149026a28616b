//! Hashes of messages, logs and summaries.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::ids::SeqRange;

/// A SHA-256 digest, displayed as 64 lower-case hex digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Chain hash of an empty log. The chain hash of a log is a hash over the hashes of all its messages.
    pub const ZERO: Hash = Hash([0; 32]);

    /// Creates a digest from exactly 32 bytes; `None` for any other length.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns a log's chain hash after one more message: H(chain ‖ hash). `self` is the chain hash before the message,
    /// `hash` is the hash of the message.
    pub fn chain(self, hash: Hash) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(hash.0);
        Hash(hasher.finalize().into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let mut out = [0u8; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(serde::de::Error::custom("a hash has 64 hex digits"));
        }
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(serde::de::Error::custom)?;
            *byte = u8::from_str_radix(pair, 16).map_err(serde::de::Error::custom)?;
        }
        Ok(Hash(out))
    }
}

/// Returns the first 16 hex digits of the SHA-256 of a text.
pub fn short_hash(text: &str) -> String {
    let mut digits = Hash(Sha256::digest(text.as_bytes()).into()).to_string();
    digits.truncate(16);
    digits
}

/// Computes a digest over fields. A field of variable length is prefixed with its length, so that no two lists of
/// fields give the same bytes.
#[derive(Clone)]
pub struct FieldHasher(Sha256);

impl FieldHasher {
    /// Creates a hasher for one kind of object. `domain` names the kind. Equal fields of two different kinds give
    /// different digests.
    pub fn new(domain: &str) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.bytes(domain.as_bytes());
        hasher
    }

    /// Adds a field of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a field of text that may be missing. A missing text and an empty text give different digests.
    pub fn optional(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.0.update([1]);
                self.bytes(text.as_bytes());
            }
            None => self.0.update([0]),
        }
    }

    /// Adds a field that is a number.
    pub fn number(&mut self, number: i64) {
        self.0.update(number.to_le_bytes());
    }

    /// Adds a field that is a range of positions.
    pub fn range(&mut self, range: SeqRange) {
        self.number(i64::from(range.first.0));
        self.number(i64::from(range.last.0));
    }

    /// Adds a field that is a digest.
    pub fn hash(&mut self, hash: Hash) {
        self.0.update(hash.0);
    }

    /// Returns the digest of all added fields.
    pub fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

impl fmt::Debug for FieldHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FieldHasher(..)")
    }
}
