//! A table of word vectors: an embedder without a neural model.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use async_trait::async_trait;
use memory_store::Vector;
use sha2::{Digest as _, Sha256};

use super::embedder::Embedder;
use crate::error::Result;
use sentence_model::fold::fold_case;
use sentence_model::words::visit_words;

/// First bytes of a table file.
const MAGIC: &[u8; 8] = b"AMTABLE\0";

/// Version of the file format.
const VERSION: u32 = 1;

/// Length of the checksum at the end of a table file, in bytes.
const CHECKSUM: usize = 32;

/// Maximum size of a table file, in bytes.
const MAX_TABLE_BYTES: usize = 8_000_000;

/// Probability of a word at which its vector has the weight 1/2. Arora, Liang and Ma, "A Simple but Tough-to-Beat
/// Baseline for Sentence Embeddings" (2017), find 0.001 to 0.0001 best.
const HALF_WEIGHT: f32 = 0.0001;

/// An embedder without a neural model: a table with one vector for each word, sorted by frequency with the most
/// frequent word first. The vector of a text is the weighted mean of the vectors of its words. The weight of a word is
/// a / (a + p), where a is 0.0001 and p is the probability of the word. Zipf's law gives p from the position of the
/// word in the table. Words that are not in the table are ignored.
///
/// # File format
/// All numbers are little-endian.
///
/// | bytes | content |
/// |---|---|
/// | 8 | `AMTABLE` and a zero byte |
/// | 4 | version of the format: 1 |
/// | 4 | number of words, n |
/// | 4 | number of components of each vector, d |
/// | 4 | length of the table's name, in bytes |
/// | 4 | length of all words, in bytes |
/// | | name of the table and its version, UTF-8 |
/// | | the words, the most frequent first: for each, its length in one byte and its case-folded UTF-8 text |
/// | 4 n | scale of each vector, a 32-bit float |
/// | n d | the vectors: for each component a signed byte, which is multiplied by the vector's scale |
/// | 32 | SHA-256 of all bytes before |
#[derive(Clone)]
pub struct StaticTable {
    id: String,
    dimension: usize,
    /// Content of the table file.
    bytes: Box<[u8]>,
    /// Row of the table in which the vector of each word is. If a word has several rows: the row of the most frequent
    /// one.
    rows: HashMap<Box<str>, u32>,
    /// Number of words in the table.
    count: usize,
    /// Byte offset of the scales in the file. The vectors follow the scales.
    scales: usize,
    vectors: usize,
}

impl fmt::Debug for StaticTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTable")
            .field("id", &self.id)
            .field("words", &self.count)
            .field("dimension", &self.dimension)
            .finish_non_exhaustive()
    }
}

/// Error of reading or writing a [`StaticTable`].
#[derive(Debug, thiserror::Error)]
#[error("the table {table}: {reason}")]
pub struct TableError {
    /// Name of the table in the error message, such as the path of its file.
    table: String,
    reason: String,
}

impl TableError {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            table: "of vectors".to_owned(),
            reason: reason.into(),
        }
    }
}

/// Reads the bytes of a table file from the beginning.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8], TableError> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        self.at = self.at.saturating_add(count);
        taken.ok_or_else(|| TableError::new("the file ends too early: fetch or build it again"))
    }

    fn number(&mut self) -> Result<usize, TableError> {
        let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
        Ok(u32::from_le_bytes(bytes) as usize)
    }
}

impl StaticTable {
    /// Reads a table from a file in the format that [`StaticTable`] describes.
    ///
    /// # Errors
    /// A [`TableError`] if the file cannot be read, is larger than 8,000,000 bytes, or is not a valid table.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TableError> {
        let path = path.as_ref();
        let read = || {
            let size =
                std::fs::metadata(path).map_err(|error| TableError::new(error.to_string()))?;
            if size.len() > MAX_TABLE_BYTES as u64 {
                return Err(too_large(size.len()));
            }
            let bytes = std::fs::read(path).map_err(|error| TableError::new(error.to_string()))?;
            Self::from_bytes(bytes)
        };
        read().map_err(|error| TableError {
            table: path.display().to_string(),
            ..error
        })
    }

    /// Reads a table from the bytes of a file in the format that [`StaticTable`] describes.
    ///
    /// # Errors
    /// A [`TableError`] if there are more than 8,000,000 bytes, or if they are not a valid table. A table is invalid if
    /// its first bytes, version, lengths, checksum, or any word or vector is wrong.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, TableError> {
        if bytes.len() > MAX_TABLE_BYTES {
            return Err(too_large(bytes.len() as u64));
        }
        let mut reader = Reader {
            bytes: &bytes,
            at: 0,
        };
        if reader.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(TableError::new(
                "the file does not begin like a table of vectors: name a file that `cargo xtask static-table` wrote",
            ));
        }
        let version = reader.number()?;
        if version != VERSION as usize {
            return Err(TableError::new(format!(
                "its format has version {version}, but only version {VERSION} is supported: build the table again"
            )));
        }
        let (count, dimension) = (reader.number()?, reader.number()?);
        let (name, words_length) = (reader.number()?, reader.number()?);
        let name = reader.take(name)?;
        let first_word = reader.at;
        reader.take(words_length)?;
        let (scales, scales_length) = (reader.at, count.saturating_mul(4));
        reader.take(scales_length)?;
        let (vectors, vectors_length) = (reader.at, count.saturating_mul(dimension));
        reader.take(vectors_length)?;
        let end = reader.at;
        let checksum = reader.take(CHECKSUM)?;
        if reader.at != bytes.len() {
            return Err(TableError::new(
                "there are bytes after its end: build it again",
            ));
        }
        let sum = Sha256::digest(bytes.get(..end).unwrap_or_default());
        if checksum != sum.as_slice() {
            return Err(TableError::new(
                "its checksum does not match its content: fetch or build it again",
            ));
        }
        let name =
            std::str::from_utf8(name).map_err(|_| TableError::new("its name is not UTF-8"))?;
        if dimension == 0 || count == 0 {
            return Err(TableError::new("it has no vectors: build it again"));
        }
        let words = bytes.get(first_word..scales).unwrap_or_default();
        let table = Self {
            id: format!(
                "static/{name}/{}",
                hexadecimal(sum.get(..8).unwrap_or_default())
            ),
            dimension,
            rows: rows_of(words, count)?,
            count,
            bytes: bytes.into(),
            scales,
            vectors,
        };
        let is_sound = |row| table.scale(row).is_normal() && table.scale(row) > 0.0;
        match (0..count).all(is_sound) {
            true => Ok(table),
            false => Err(TableError::new("a vector has no scale: build it again")),
        }
    }

    /// Returns the bytes of a table file. `rows` are the words with their vectors, the most frequent word first. `name`
    /// is the name and version of the table. A word is left out if it is empty or longer than 255 bytes, or if its
    /// vector is zero or does not have `dimension` components. When the file would exceed 8,000,000 bytes, the
    /// remaining words are left out.
    ///
    /// # Errors
    /// A [`TableError`] if no word is left.
    pub fn write<'w>(
        name: &str,
        dimension: usize,
        rows: impl IntoIterator<Item = (&'w str, &'w [f32])>,
    ) -> Result<Vec<u8>, TableError> {
        let (mut words, mut scales, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0_u32;
        let mut size = MAGIC.len() + 5 * 4 + name.len() + CHECKSUM;
        for (word, vector) in rows {
            let word = fold_case(word);
            let Ok(length @ 1..) = u8::try_from(word.len()) else {
                continue;
            };
            let Some(vector) =
                Vector::from_slice(vector).filter(|one| one.dimension() == dimension)
            else {
                continue;
            };
            size += 1 + word.len() + 4 + dimension;
            if size > MAX_TABLE_BYTES {
                break;
            }
            words.push(length);
            words.extend_from_slice(word.as_bytes());
            // The first 4 bytes are the scale, and each further byte is a component.
            let bytes = vector.to_bytes();
            let (scale, components) = bytes.split_at(4);
            scales.extend_from_slice(scale);
            vectors.extend_from_slice(components);
            count += 1;
        }
        if count == 0 {
            return Err(TableError::new(
                "no word with a vector is left: check its source",
            ));
        }
        let length = |length: usize| {
            let length = u32::try_from(length);
            length.map_err(|_| TableError::new("it is too large: take fewer components"))
        };
        let mut bytes = MAGIC.to_vec();
        for number in [
            VERSION,
            count,
            length(dimension)?,
            length(name.len())?,
            length(words.len())?,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for part in [name.as_bytes(), &words, &scales, &vectors] {
            bytes.extend_from_slice(part);
        }
        let sum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&sum);
        Ok(bytes)
    }

    /// Returns the number of words in the table.
    pub fn word_count(&self) -> usize {
        self.count
    }

    /// Returns the vector of a text. All components are 0 if no word of the text is in the table.
    pub fn vector_of(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.dimension];
        let mut weights = 0.0;
        let harmonic = (self.count as f32).ln() + 0.577;
        visit_words(text, &mut |word| {
            let word = fold_case(text.get(word.range).unwrap_or_default());
            let Some(row) = self.rows.get(word.as_str()) else {
                return;
            };
            let row = *row as usize;
            let probability = 1.0 / ((row as f32 + 1.0) * harmonic);
            let weight = HALF_WEIGHT / (HALF_WEIGHT + probability);
            let weighted = weight * self.scale(row);
            let components = sum.iter_mut().zip(self.components(row));
            components.for_each(|(sum, component)| {
                *sum += weighted * f32::from(i8::from_le_bytes([*component]))
            });
            weights += weight;
        });
        if weights > 0.0 {
            sum.iter_mut().for_each(|sum| *sum /= weights);
        }
        sum
    }

    fn scale(&self, row: usize) -> f32 {
        let bytes = self.bytes.get(self.scales + row * 4..);
        let bytes = bytes.and_then(|bytes| bytes.first_chunk());
        f32::from_le_bytes(bytes.copied().unwrap_or_default())
    }

    fn components(&self, row: usize) -> &[u8] {
        let begin = self.vectors + row * self.dimension;
        let components = self.bytes.get(begin..begin + self.dimension);
        components.unwrap_or_default()
    }
}

fn too_large(bytes: u64) -> TableError {
    TableError::new(format!(
        "it has {bytes} bytes, and at most {MAX_TABLE_BYTES} are read: take fewer words or components"
    ))
}

/// Reads the words of a table file, and returns the row of each.
fn rows_of(mut words: &[u8], count: usize) -> Result<HashMap<Box<str>, u32>, TableError> {
    let broken = || TableError::new("its words are broken: build it again");
    let mut rows = HashMap::with_capacity(count);
    for row in 0..u32::try_from(count).unwrap_or(u32::MAX) {
        let (length, rest) = words.split_first().ok_or_else(broken)?;
        let (word, rest) = rest.split_at_checked((*length).into()).ok_or_else(broken)?;
        let word = std::str::from_utf8(word)
            .ok()
            .filter(|word| !word.is_empty());
        rows.entry(word.ok_or_else(broken)?.into()).or_insert(row);
        words = rest;
    }
    match words.is_empty() {
        true => Ok(rows),
        false => Err(broken()),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[async_trait]
impl Embedder for StaticTable {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn is_cheap(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.vector_of(text)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [(&str, [f32; 3]); 4] = [
        ("the", [0.1, 0.1, 0.1]),
        ("Dog", [1.0, 0.0, 0.0]),
        ("puppy", [0.9, 0.1, 0.0]),
        ("wheel", [0.0, 0.0, -2.0]),
    ];

    fn file() -> Vec<u8> {
        let rows = ROWS.iter().map(|(word, vector)| (*word, vector.as_slice()));
        StaticTable::write("small@1", 3, rows).expect("it is written")
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let table = StaticTable::from_bytes(file()).expect("it is sound");
        assert_eq!((table.count, table.dimension()), (4, 3));
        assert!(table.id().starts_with("static/small@1/"), "{}", table.id());
        assert_eq!(
            (table.rows.get("dog"), table.rows.get("cat")),
            (Some(&1), None)
        );
        let near = |a: f32, b: f32| (a - b).abs() < 0.01;
        let vector = table.vector_of("WHEEL, unheard-of!");
        assert!(near(vector[2], -2.0) && near(vector[0], 0.0), "{vector:?}");
        assert_eq!(table.vector_of("unheard-of"), [0.0; 3]);
    }

    #[test]
    fn frequent_words_count_less() {
        let words: Vec<String> = (0..5_000).map(|at| format!("w{at}")).collect();
        let vectors = [[1.0, 0.0], [0.0, 1.0]];
        let rows = words.iter().enumerate();
        let rows = rows.map(|(at, word)| (word.as_str(), &vectors[usize::from(at > 0)][..]));
        let file = StaticTable::write("zipf@1", 2, rows).expect("it is written");
        let table = StaticTable::from_bytes(file).expect("it is sound");
        let vector = table.vector_of("w0 w4999");
        assert!(vector[1] > vector[0] * 20.0, "{vector:?}");
    }

    #[test]
    fn broken_files_are_refused_wherever_they_are_broken() {
        let file = file();
        for length in 0..file.len() {
            assert!(
                StaticTable::from_bytes(file[..length].to_vec()).is_err(),
                "{length}"
            );
        }
        for at in 0..file.len() {
            for bit in [1, 0x80] {
                let mut changed = file.clone();
                changed[at] ^= bit;
                assert!(StaticTable::from_bytes(changed).is_err(), "{at}");
            }
        }
        let mut longer = file;
        longer.push(0);
        assert!(StaticTable::from_bytes(longer).is_err());
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let reason = |bytes: Vec<u8>| {
            let error = StaticTable::from_bytes(bytes).expect_err("it is refused");
            error.to_string()
        };
        let mut newer = file();
        newer[8] = 2;
        assert!(reason(newer).contains("version 2"));
        let mut changed = file();
        let last_vector = changed.len() - CHECKSUM - 1;
        changed[last_vector] ^= 1;
        assert!(reason(changed).contains("checksum"));
        let mut short = file();
        short.pop();
        assert!(reason(short).contains("too early"));
        assert!(reason(b"{}".to_vec()).contains("does not begin"));
        assert!(reason(vec![0; MAX_TABLE_BYTES + 1]).contains("at most"));
        // The checksum is valid, but the bytes are not words.
        let mut words = file();
        words[28 + "small@1".len()] = 200;
        let end = words.len() - CHECKSUM;
        let sum = Sha256::digest(&words[..end]);
        words[end..].copy_from_slice(&sum);
        assert!(reason(words).contains("words are broken"));
        let error = StaticTable::open("/nowhere/table").expect_err("there is none");
        assert!(error.to_string().contains("/nowhere/table"), "{error}");
    }
}
