//! Stored form of a message's bytes: compressed, with repeated content stored once.
//!
//! The body and the metadata of a message are compressed together, as one zstd frame with a dictionary. The dictionary
//! is a fixed text, which may be followed by a conversation's *facts*: the text that the metadata of its entries have
//! in common. The longest string of a body may be cut out, so that a store keeps equal strings once. Hashes are over
//! the bytes before packing, and unpacking returns exactly these bytes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use memory_model::Hash;
use memory_store::{Error, ErrorKind, Result};
use sha2::{Digest as _, Sha256};
use zstd_safe::{CCtx, CDict, DCtx, DDict};

/// Codec of a body and metadata that are stored unchanged, in two columns.
pub const PLAIN: i64 = 0;
/// Codec of a body and metadata that are compressed together, as one frame with the fixed dictionary.
pub const PACKED: i64 = 1;
/// Codec of a body and metadata that are compressed together, as one frame with the fixed dictionary and revision 0 of
/// the conversation's [`Facts`]: texts that the metadata of its entries have in common. The codec for revision N of the
/// facts is this number plus 256 × N.
pub const PACKED_WITH_FACTS: i64 = 2;
/// Bits of a codec that give the kind of packing. The other bits are the revision of the [`Facts`] that were used as a
/// dictionary.
const KIND: i64 = 0xff;

/// Returns the revision of the conversation's [`Facts`] that is needed to unpack bytes with this codec. Returns `None`
/// if the bytes were compressed without them.
pub const fn facts_revision(codec: i64) -> Option<i64> {
    if codec & KIND == PACKED_WITH_FACTS {
        Some(codec >> KIND.count_ones())
    } else {
        None
    }
}

/// Minimum size, in bytes, at which a message with metadata is compressed. Smaller messages are stored unchanged.
pub const SMALLEST: usize = 128;
/// Minimum size, in bytes, at which a message without metadata is compressed. Smaller messages are stored unchanged,
/// because compressing a short text saves little, makes storing several times slower, and hides the text from SQL.
pub const SMALLEST_TEXT: usize = 1024;
/// Minimum size, in bytes, at which a string is cut out of its message and stored once for all messages that contain
/// it. A shorter string would save less than its separate row and index entry cost. In the measured transcripts,
/// repeated strings are 2 % of all bytes.
pub const CUT_FROM: usize = 4096;
/// Maximum size, in bytes, of a message that is compressed. Longer messages are stored unchanged, so that unpacking
/// needs a bounded amount of memory.
const LARGEST: usize = 512 << 20;
/// Compression level of zstd. On transcripts, level 3 takes half the time and 7 % more bytes, and level 7 does not save
/// more.
const LEVEL: i32 = 5;
/// Maximum length of the text of a conversation's [`Facts`], in bytes.
const FACTS: usize = 1024;
/// Range of lengths, in bytes, of the pieces of metadata that may become part of the [`Facts`], the texts that the
/// metadata of several entries have in common.
const FACT: Range<usize> = 8..300;

/// First bytes of every zstd frame, which are not stored.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Fixed dictionary with typical text of agents' messages. It consists of a dictionary that zstd trained on the
/// generated transcripts in `fixtures/` (tables of 3 KiB, with the id set to 0 so that no frame repeats the id), and a
/// text of common words and keys. It must never change, because stored messages cannot be read without it.
static FIXED: &[u8] = include_bytes!("dictionary.bin");
static COMMON: LazyLock<Option<Dictionary>> = LazyLock::new(|| Dictionary::new(None));

thread_local! {
    static COMPRESS: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
    static DECOMPRESS: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// The text that messages are compressed against, in zstd's prepared form.
struct Dictionary {
    compress: CDict<'static>,
    decompress: DDict<'static>,
}

impl Dictionary {
    /// Creates the dictionary from the fixed text and the text of a conversation's [`Facts`]. Returns `None` if there
    /// is not enough memory.
    fn new(facts: Option<&str>) -> Option<Self> {
        // Text at the end of a dictionary is the cheapest to refer to.
        let text = [FIXED, facts.unwrap_or_default().as_bytes()].concat();
        Some(Self {
            compress: CDict::try_create(&text, LEVEL)?,
            decompress: DDict::try_create(&text)?,
        })
    }
}

/// Texts that the metadata of a conversation's entries have in common, for example the working folder. Entries are
/// compressed with these texts as a dictionary. The text of a revision never changes. An erasure that removes a part of
/// the text creates the next revision.
#[derive(Clone)]
pub struct Facts(Arc<FactsText>);

struct FactsText {
    text: String,
    revision: i64,
    dictionary: Dictionary,
}

impl std::fmt::Debug for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts")
            .field("text", &self.text())
            .field("revision", &self.revision())
            .finish()
    }
}

impl Facts {
    /// Creates the facts (texts that the metadata of entries have in common) from their stored text and revision.
    ///
    /// # Errors
    /// `Limit` if there is not enough memory.
    pub fn new(text: String, revision: i64) -> Result<Self> {
        let dictionary = Dictionary::new(Some(&text)).ok_or_else(no_memory)?;
        Ok(Self(Arc::new(FactsText {
            text,
            revision,
            dictionary,
        })))
    }

    /// Returns the common texts as one text, which is used as a dictionary.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the revision of the text: the number of erasures that removed pieces from it.
    pub fn revision(&self) -> i64 {
        self.0.revision
    }

    /// Returns the codec of bytes that are compressed with these texts as a dictionary.
    fn codec(&self) -> i64 {
        PACKED_WITH_FACTS | self.revision() << KIND.count_ones()
    }

    /// Returns the pieces of the text. Each piece occurred in the metadata of at least two entries.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.text().split(",\"").filter(|piece| !piece.is_empty())
    }

    /// Returns a text for new facts: the pieces that at least two of these metadata contain, for example the folder,
    /// the version and the session. Returns `None` if there are no common pieces. A piece of a single entry is never
    /// included, so that erasing the entry removes the piece.
    pub fn common<'a>(metas: impl IntoIterator<Item = &'a str>) -> Option<String> {
        struct SharedPiece {
            last: usize,
            entries: usize,
            at: usize,
        }
        let mut pieces: BTreeMap<&str, SharedPiece> = BTreeMap::new();
        let mut at = 0;
        for (entry, meta) in metas.into_iter().enumerate() {
            for text in meta.split(",\"").filter(|text| FACT.contains(&text.len())) {
                at += 1;
                let piece = pieces.entry(text).or_insert(SharedPiece {
                    last: entry,
                    entries: 1,
                    at,
                });
                if piece.last != entry {
                    piece.last = entry;
                    piece.entries += 1;
                }
            }
        }
        let mut shared: Vec<(usize, usize, &str)> = pieces
            .into_iter()
            .filter(|(_, piece)| piece.entries > 1)
            .map(|(text, piece)| (text.len() * (piece.entries - 1), piece.at, text))
            .collect();
        // Pieces that save the most bytes are at the end of the text: they are kept when space is short, and are
        // nearest to the compressed bytes.
        shared.sort_unstable();
        let mut free_bytes = FACTS;
        let mut kept: Vec<&str> = Vec::new();
        for (_, _, text) in shared.into_iter().rev() {
            if let Some(rest) = free_bytes.checked_sub(text.len() + 2) {
                free_bytes = rest;
                kept.push(text);
            }
        }
        if kept.is_empty() {
            return None;
        }
        Some(
            kept.into_iter()
                .rev()
                .flat_map(|text| [",\"", text])
                .collect(),
        )
    }
}

/// Body of a message with its metadata, in stored form.
#[derive(Debug)]
pub struct Packed {
    /// Codec of the bytes: the kind of packing, and the revision of the [`Facts`] if they were used as a dictionary.
    pub codec: i64,
    /// Bytes for the column `body`.
    pub body: Vec<u8>,
    /// Text for the column `meta`. `None` if the metadata are packed with the body, or if there are none.
    pub meta: Option<String>,
    /// String that was cut out of the body, to be stored once for all messages that contain it. `None` if no string was
    /// cut out.
    pub cut: Option<Vec<u8>>,
}

/// Packs the body of a message and its metadata. `facts` are texts to use as a dictionary. The same input always gives
/// the same bytes.
pub fn pack(body: Vec<u8>, meta: Option<&str>, facts: Option<&Facts>) -> Packed {
    let plain = |body| Packed {
        codec: PLAIN,
        body,
        meta: meta.map(str::to_owned),
        cut: None,
    };
    let tail = meta.unwrap_or_default().as_bytes();
    let size = body.len() + tail.len();
    let smallest = if meta.is_some() {
        SMALLEST
    } else {
        SMALLEST_TEXT
    };
    if !(smallest..=LARGEST).contains(&size) {
        return plain(body);
    }
    let cut = longest_string(&body).filter(|cut| cut.len() >= CUT_FROM);
    let mut rest = Vec::with_capacity(size);
    match &cut {
        Some(cut) => {
            rest.extend_from_slice(&body[..cut.start]);
            rest.extend_from_slice(&body[cut.end..]);
        }
        None => rest.extend_from_slice(&body),
    }
    let mut packed = Vec::with_capacity(32);
    put_varint(&mut packed, rest.len());
    put_varint(&mut packed, cut.as_ref().map_or(0, |cut| cut.start));
    rest.extend_from_slice(tail);
    if frame(&mut packed, &rest, facts).is_none() || cut.is_none() && packed.len() >= size {
        return plain(body);
    }
    Packed {
        codec: facts.map_or(PACKED, Facts::codec),
        body: packed,
        meta: None,
        cut: cut.map(|cut| body[cut].to_vec()),
    }
}

/// Unpacks a body and its metadata from bytes that [`pack`] returned with a codec other than [`PLAIN`]. `cut` is the
/// string that was cut out, and `facts` are the texts that were used as a dictionary.
///
/// # Errors
/// `Corrupt` if [`pack`] did not write the bytes.
pub fn unpack(
    packed: &[u8],
    cut: Option<&[u8]>,
    facts: Option<&Facts>,
) -> Result<(Vec<u8>, Option<String>)> {
    let mut at = packed;
    let (length, start) = (take_varint(&mut at)?, take_varint(&mut at)?);
    let mut body = unframe(at, facts)?;
    if length > body.len() || (start > 0) != cut.is_some() || start > length {
        return Err(damaged());
    }
    let meta = match body.split_off(length) {
        meta if meta.is_empty() => None,
        meta => Some(String::from_utf8(meta).map_err(|e| damaged().with_source(e))?),
    };
    if let Some(cut) = cut {
        let end = body.split_off(start);
        body.reserve_exact(cut.len() + end.len());
        body.extend_from_slice(cut);
        body.extend_from_slice(&end);
    }
    Ok((body, meta))
}

/// Returns the hash under which a string that was cut out of a message is stored: SHA-256 of its bytes.
pub fn payload_hash(payload: &[u8]) -> Hash {
    Hash(Sha256::digest(payload).into())
}

/// Packs a string that was cut out of a message, to be stored once. Returns its codec and the packed bytes.
pub fn pack_payload(payload: &[u8]) -> (i64, Cow<'_, [u8]>) {
    let mut packed = Vec::new();
    match frame(&mut packed, payload, None) {
        Some(()) if packed.len() < payload.len() => (PACKED, packed.into()),
        _ => (PLAIN, payload.into()),
    }
}

/// Unpacks a string from bytes that [`pack_payload`] returned.
///
/// # Errors
/// `Corrupt` if [`pack_payload`] did not write the bytes.
pub fn unpack_payload(codec: i64, payload: Vec<u8>) -> Result<Vec<u8>> {
    match codec {
        PLAIN => Ok(payload),
        PACKED => unframe(&payload, None),
        _ => Err(unknown_codec()),
    }
}

/// Returns the error for a codec that this version of the crate does not know.
pub fn unknown_codec() -> Error {
    let message = "the bytes are packed in an unknown way: update the program";
    Error::new(ErrorKind::Corrupt, message)
}

/// Compresses bytes and appends the frame to `out`. Returns `None` if zstd runs out of memory.
fn frame(out: &mut Vec<u8>, bytes: &[u8], facts: Option<&Facts>) -> Option<()> {
    let dictionary = match facts {
        Some(facts) => &facts.0.dictionary,
        None => COMMON.as_ref()?,
    };
    COMPRESS.with_borrow_mut(|context| {
        if context.is_none() {
            *context = CCtx::try_create();
        }
        let mut framed = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        context
            .as_mut()?
            .compress_using_cdict(&mut framed, bytes, &dictionary.compress)
            .ok()?;
        out.extend_from_slice(framed.strip_prefix(&MAGIC)?);
        Some(())
    })
}

fn unframe(bytes: &[u8], facts: Option<&Facts>) -> Result<Vec<u8>> {
    let dictionary = match facts {
        Some(facts) => &facts.0.dictionary,
        None => COMMON.as_ref().ok_or_else(no_memory)?,
    };
    let framed = [&MAGIC, bytes].concat();
    let size = match zstd_safe::get_frame_content_size(&framed) {
        Ok(Some(size)) => usize::try_from(size).ok().filter(|size| *size <= LARGEST),
        _ => None,
    };
    let size = size.ok_or_else(damaged)?;
    DECOMPRESS.with_borrow_mut(|context| {
        if context.is_none() {
            *context = DCtx::try_create();
        }
        let context = context.as_mut().ok_or_else(no_memory)?;
        let mut out = Vec::with_capacity(size);
        match context.decompress_using_ddict(&mut out, &framed, &dictionary.decompress) {
            Ok(written) if written == size => Ok(out),
            _ => Err(damaged()),
        }
    })
}

fn damaged() -> Error {
    let message = "packed bytes are damaged: run a check, restore a backup";
    Error::new(ErrorKind::Corrupt, message)
}

fn no_memory() -> Error {
    Error::new(
        ErrorKind::Limit,
        "out of memory while packing or unpacking a message",
    )
}

/// Returns the position of the longest string in a JSON text, without its quotes and with its escapes. Returns `None`
/// if the text has no string, or is too short for a string to be cut out.
fn longest_string(json: &[u8]) -> Option<Range<usize>> {
    // A string is no longer than the whole text, so most texts are too short to be searched.
    if json.len() < CUT_FROM {
        return None;
    }
    let mut longest: Option<Range<usize>> = None;
    let mut at = 0;
    while let Some(open) = json[at..].iter().position(|byte| *byte == b'"') {
        let start = at + open + 1;
        let mut end = start;
        while let Some(byte) = json.get(end).filter(|byte| **byte != b'"') {
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        let end = end.min(json.len());
        if longest
            .as_ref()
            .is_none_or(|found| end - start > found.len())
        {
            longest = Some(start..end);
        }
        at = (end + 1).min(json.len());
    }
    longest
}

fn put_varint(out: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

fn take_varint(from: &mut &[u8]) -> Result<usize> {
    let mut number = 0_usize;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = from.split_first().ok_or_else(damaged)?;
        *from = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(damaged())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn back(packed: &Packed, facts: Option<&Facts>) -> (Vec<u8>, Option<String>) {
        match packed.codec {
            PLAIN => (packed.body.clone(), packed.meta.clone()),
            _ => unpack(&packed.body, packed.cut.as_deref(), facts).unwrap(),
        }
    }

    #[test]
    fn the_fixed_text_has_not_changed() {
        // Stored messages cannot be read without this text. A new text needs a new codec.
        let hash = payload_hash(FIXED);
        assert_eq!(
            format!("{} bytes {hash}", FIXED.len()),
            "6924 bytes 7b1ef029c87017f23ae77f098c9368583bc93b859b02448e1725f54b8c87b22e"
        );
    }

    #[test]
    fn long_strings_are_cut_out_and_come_back() {
        let text = "line \\\"of\\\" a file\\n".repeat(500);
        let body = format!(r#"[{{"type":"tool_result","call_id":"c","content":"{text}"}}]"#);
        let packed = pack(body.clone().into_bytes(), Some("{}"), None);
        assert_eq!(packed.cut.as_deref(), Some(text.as_bytes()));
        assert!(packed.body.len() < 100, "{}", packed.body.len());
        assert_eq!(
            back(&packed, None),
            (body.into_bytes(), Some("{}".to_owned()))
        );
        let (codec, stored) = pack_payload(text.as_bytes());
        assert!(stored.len() < 200);
        let again = unpack_payload(codec, stored.into_owned()).unwrap();
        assert_eq!(again, text.as_bytes());
    }

    #[test]
    fn facts_are_shared_by_two_entries() {
        let metas = [
            r#"{"id":"0001","folder":"/home/a","version":"1.2.3"}"#,
            r#"{"id":"0002","folder":"/home/a","version":"1.2.3"}"#,
            r#"{"id":"0003","secret":"said once","secret":"said once"}"#,
        ];
        let facts = Facts::common(metas).unwrap();
        assert_eq!(facts, r#","folder":"/home/a","version":"1.2.3"}"#);
        assert_eq!(Facts::common([metas[1], metas[2]]), None);
        let many: Vec<String> = (0..99)
            .map(|n| format!("{{\"key\":{n},\"k{n}\":\"{}\"", "v".repeat(90)))
            .collect();
        let twice = many.iter().chain(&many).map(String::as_str);
        assert!(Facts::common(twice).unwrap().len() <= FACTS);
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let body = "[{\"type\":\"text\",\"text\":\"some words that are long enough\"}]".repeat(40);
        let packed = pack(body.into_bytes(), None, None).body;
        for at in 0..packed.len() {
            let _ = unpack(&packed[..at], None, None).unwrap_err();
        }
        let _ = unpack(&packed, Some(b"x"), None).unwrap_err();
        let mut huge = vec![1, 0, 0xe0];
        huge.extend([0xff; 8]);
        let _ = unpack(&huge, None, None).unwrap_err();
        let _ = unpack_payload(9, Vec::new()).unwrap_err();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn packing_is_lossless(
            words in proptest::collection::vec("[a-z\"\\\\é]{0,40}", 0..200),
            repeat in 1_usize..20,
            meta in proptest::option::of("[{][ -~]{0,300}"),
            facts in proptest::option::of("[ -~]{0,300}"),
        ) {
            let body = words.join("\"").repeat(repeat).into_bytes();
            let facts = facts.map(|text| Facts::new(text, 3).unwrap());
            let packed = pack(body.clone(), meta.as_deref(), facts.as_ref());
            prop_assert_eq!(back(&packed, facts.as_ref()), (body, meta));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&bytes, None, None);
            let _ = unpack_payload(PACKED, bytes);
        }
    }
}
