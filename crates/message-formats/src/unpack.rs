//! Reads sources that are compressed by zstd or gzip. Their first bytes tell, not their names.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Error as IoError, ErrorKind as IoErrorKind, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use zstd_safe::{DCtx, InBuffer, OutBuffer};

use crate::{Error, ReadOptions};

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Size of the buffer between the decompression and its reader, in bytes.
const BUFFER: usize = 1 << 16;

/// A source, decompressed if it is compressed.
pub(crate) struct Unpacked<'a> {
    pub(crate) reader: Box<dyn BufRead + 'a>,
    /// Name of the compression. `None` for a source that is not compressed.
    pub(crate) method: Option<&'static str>,
    problem: Problem,
}

/// Reason for which the decompression ended early.
type Problem = Rc<RefCell<Option<String>>>;

impl<'a> Unpacked<'a> {
    /// Looks at the first bytes of a source, which is unpacked unless something else `claims` these bytes.
    pub(crate) fn new(
        mut packed: impl BufRead + 'a,
        options: &ReadOptions,
        claims: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Self, Error> {
        let problem = Problem::default();
        let mut begin = Vec::new();
        // A pipe may give its first bytes one by one.
        while begin.len() < ZSTD.len() && (ZSTD.starts_with(&begin) || GZIP.starts_with(&begin)) {
            let chunk = match packed.fill_buf() {
                Ok([]) => break,
                Ok(chunk) => chunk,
                Err(error) if error.kind() == IoErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io(&options.name, error)),
            };
            let taken = chunk.len().min(ZSTD.len() - begin.len());
            begin.extend_from_slice(chunk.get(..taken).unwrap_or_default());
            packed.consume(taken);
        }
        let (mut is_zstd, mut is_gzip) = (begin == ZSTD, begin.starts_with(&GZIP));
        if (is_zstd || is_gzip) && claims(&begin) {
            (is_zstd, is_gzip) = (false, false);
        }
        let whole = BufReader::with_capacity(BUFFER, std::io::Cursor::new(begin).chain(packed));
        let (unpacked, method): (Box<dyn Read + 'a>, _) = match (is_zstd, is_gzip) {
            (true, _) => (Box::new(Zstd::new(whole)), "zstd"),
            (_, true) => (Box::new(MultiGzDecoder::new(whole)), "gzip"),
            _ => {
                return Ok(Self {
                    reader: Box::new(whole),
                    method: None,
                    problem,
                });
            }
        };
        let guarded = Guarded {
            unpacked,
            method,
            left: options.max_unpacked_bytes,
            most: options.max_unpacked_bytes,
            problem: problem.clone(),
        };
        Ok(Self {
            reader: Box::new(BufReader::with_capacity(BUFFER, guarded)),
            method: Some(method),
            problem,
        })
    }

    /// Returns the error for a source that could not be read, if the decompression is the reason.
    pub(crate) fn error(problem: &Problem, options: &ReadOptions) -> Option<Error> {
        let problem = problem.borrow_mut().take()?;
        Some(Error::invalid(&options.name, problem))
    }

    pub(crate) fn problem(&self) -> Problem {
        self.problem.clone()
    }
}

/// A decompression that stops at a limit, and remembers why it failed.
struct Guarded<'a> {
    unpacked: Box<dyn Read + 'a>,
    method: &'static str,
    most: u64,
    left: u64,
    problem: Problem,
}

impl Read for Guarded<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let problem = match self.unpacked.read(out) {
            Ok(read) if read as u64 <= self.left => {
                self.left -= read as u64;
                return Ok(read);
            }
            Err(error) if error.kind() == IoErrorKind::Interrupted => return Err(error),
            Ok(_) => format!(
                "its {} data has more than {} bytes: unpack it, and give the file",
                self.method, self.most
            ),
            Err(error) => format!(
                "its {} data is damaged or cut off ({error}): write or copy it again",
                self.method
            ),
        };
        *self.problem.borrow_mut() = Some(problem.clone());
        Err(IoError::new(IoErrorKind::InvalidData, problem))
    }
}

/// A decompression of zstd's frames, one after another.
struct Zstd<R> {
    packed: R,
    context: DCtx<'static>,
    /// Whether a frame has begun and not ended.
    is_open: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(packed: R) -> Self {
        Self {
            packed,
            context: DCtx::create(),
            is_open: false,
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while !out.is_empty() {
            let chunk = self.packed.fill_buf()?;
            let is_end = chunk.is_empty();
            if is_end && !self.is_open {
                return Ok(0);
            }
            let mut input = InBuffer::around(chunk);
            let mut output = OutBuffer::around(&mut *out);
            let hint = self.context.decompress_stream(&mut output, &mut input);
            let hint = hint.map_err(|code| IoError::other(zstd_safe::get_error_name(code)))?;
            let (taken, given) = (input.pos(), output.pos());
            self.packed.consume(taken);
            self.is_open = hint != 0;
            if given > 0 {
                return Ok(given);
            }
            if is_end {
                return Err(IoErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        let mut context = zstd_safe::CCtx::create();
        // Only a frame with a checksum tells of every damage.
        let checksum = zstd_safe::CParameter::ChecksumFlag(true);
        context.set_parameter(checksum).unwrap();
        context.compress2(&mut packed, bytes).unwrap();
        packed
    }

    /// Returns the unpacked bytes, or the error.
    fn unpack(packed: &[u8], most: u64) -> Result<Vec<u8>, String> {
        let mut options = ReadOptions::default().with_name("it");
        options.max_unpacked_bytes = most;
        // Each read gives one byte.
        let slow = BufReader::with_capacity(1, packed);
        let mut unpacked = Unpacked::new(slow, &options, |_| false).unwrap();
        let mut out = Vec::new();
        match unpacked.reader.read_to_end(&mut out) {
            Ok(_) => Ok(out),
            Err(_) => Err(Unpacked::error(&unpacked.problem, &options)
                .unwrap()
                .to_string()),
        }
    }

    #[test]
    fn the_first_bytes_tell_the_compression() {
        let text = "a line of words\n".repeat(9_000).into_bytes();
        for packed in [gzip(&text), zstd(&text), text.clone()] {
            assert!(unpack(&packed, 1 << 20).unwrap() == text);
        }
        for short in ["", "(", "\u{1f}", "x"] {
            assert_eq!(unpack(short.as_bytes(), 9).unwrap(), short.as_bytes());
        }
        // One file may have several parts.
        let parts = [zstd(b"one "), zstd(b"two")].concat();
        assert_eq!(unpack(&parts, 9).unwrap(), b"one two");
        let parts = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(unpack(&parts, 9).unwrap(), b"one two");
    }

    #[test]
    fn damage_and_too_many_bytes_are_told() {
        let text = "a line of words\n".repeat(9_000).into_bytes();
        for (packed, method) in [(gzip(&text), "gzip"), (zstd(&text), "zstd")] {
            let half = unpack(&packed[..packed.len() / 2], 1 << 20).unwrap_err();
            let found = format!("its {method} data is damaged or cut off");
            assert!(half.contains(&found), "{half}");
            let mut changed = packed.clone();
            let middle = packed.len() / 2;
            changed[middle..middle + 4].copy_from_slice(&[0xff; 4]);
            assert!(unpack(&changed, 1 << 20).is_err(), "{method}");
            let many = unpack(&packed, 1_000).unwrap_err();
            let found = format!("its {method} data has more than 1000 bytes");
            assert!(many.contains(&found), "{many}");
        }
    }
}
