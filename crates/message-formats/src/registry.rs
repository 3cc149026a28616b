//! The formats that a program reads, and the choice of one for a source.

use std::io::{
    BufRead, BufReader, Cursor, ErrorKind as IoErrorKind, Read as _, Seek as _, SeekFrom,
};
use std::path::Path;
use std::sync::Arc;

use crate::json_lines::is_object;
use crate::unpack::Unpacked;
use crate::{
    AgentHome, ClaudeCode, Codex, Confidence, Error, ErrorKind, Format, GeminiCli, Head, Input,
    KimiCode, Pi, PlainLines, QwenCode, ReadOptions, SessionLog, Transcript,
};
use crate::{Cline, MessageLists, OpenCode, OpenHands, SweAgent, TauBench};

/// Number of bytes in the first head that the formats see. The head doubles each time that they need more.
const FIRST_HEAD: usize = 1 << 16;

/// Maximum number of bytes at the end of a transcript that are read alone.
const MOST_APPENDED: u64 = 16 << 20;

/// A list of formats. The default list has the formats of this crate.
#[derive(Debug, Clone)]
pub struct Formats {
    formats: Vec<Arc<dyn Format>>,
}

impl Default for Formats {
    fn default() -> Self {
        Self::empty()
            .with(ClaudeCode::new())
            .with(Codex::new())
            .with(GeminiCli::new())
            .with(KimiCode::new())
            .with(Pi::new())
            .with(QwenCode::new())
            .with(PlainLines::new())
            .with(MessageLists::new())
            .with(OpenCode::new())
            .with(Cline::new())
            .with(SweAgent::new())
            .with(OpenHands::new())
            .with(TauBench::new())
    }
}

impl Formats {
    /// Creates a list without formats.
    pub fn empty() -> Self {
        Self {
            formats: Vec::new(),
        }
    }

    /// Adds a format. If several formats are equally certain of a source, the one that was added last reads it.
    #[must_use]
    pub fn with(mut self, format: impl Format + 'static) -> Self {
        self.formats.push(Arc::new(format));
        self
    }

    /// Returns the names of the formats, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.formats.iter().map(|format| format.name())
    }

    /// Returns the home of each agent with a known format, in the order of the formats.
    pub fn homes(&self) -> impl Iterator<Item = AgentHome> {
        self.formats.iter().filter_map(|format| format.home())
    }

    /// Returns whether a file belongs to a transcript next to it and is not a transcript itself.
    pub fn is_companion(&self, path: &Path) -> bool {
        self.formats.iter().any(|format| format.is_companion(path))
    }

    /// Returns the format of a source with this beginning. `None` means that no format claims the source, or that the
    /// head is too short.
    pub fn detect(&self, head: &Head<'_>) -> Option<&dyn Format> {
        match self.choose(head) {
            Choice::Found(format) => Some(format),
            Choice::ReadOn | Choice::Unknown => None,
        }
    }

    /// Reads a transcript. The content decides the format. A source that zstd or gzip has compressed is unpacked.
    ///
    /// The source may grow meanwhile, and it needs no known size: a pipe can be read too.
    ///
    /// # Errors
    /// - [`ErrorKind::Io`] if the reader fails.
    /// - [`ErrorKind::Empty`], [`ErrorKind::NotText`], [`ErrorKind::Encoding`] or [`ErrorKind::UnknownFormat`] if no
    ///   format claims the source by its first [`ReadOptions::max_line_bytes`] bytes.
    /// - [`ErrorKind::Invalid`] if a compressed source is damaged, or has more than
    ///   [`ReadOptions::max_unpacked_bytes`].
    /// - Any error of the format itself.
    ///
    /// A record that cannot be read is not an error: see [`Report::skipped`](crate::Report::skipped).
    pub fn read(&self, reader: impl BufRead, options: &ReadOptions) -> Result<Transcript, Error> {
        self.read_stream(reader, None, options)
    }

    /// Reads a transcript from a file or a directory.
    ///
    /// # Errors
    /// The same errors as [`Formats::read`], with the path in the text. [`ErrorKind::Io`] also for a directory that no
    /// format claims.
    pub fn read_path(&self, path: &Path, options: &ReadOptions) -> Result<Transcript, Error> {
        let options = options.clone().with_name(path.display().to_string());
        if !path.is_dir() {
            let file =
                std::fs::File::open(path).map_err(|error| Error::io(&options.name, error))?;
            return self.read_stream(
                BufReader::with_capacity(1 << 16, file),
                Some(path),
                &options,
            );
        }
        let Choice::Found(format) = self.choose(&Head::of_directory(path)) else {
            let directory = std::io::Error::from(IoErrorKind::IsADirectory);
            return Err(Error::io(&options.name, directory));
        };
        read_as(
            format,
            Input::new(&mut std::io::empty()).with_path(path),
            &options,
        )
    }

    /// Reads the records of a transcript from the byte `from` on, without the records before it. `last` is
    /// [`SessionLog::last`] of the log that the records before it give. Returns `None` if the records may refer to earlier
    /// ones in other ways than by following that entry, if the last record does not end, or if they are too many: read the
    /// whole transcript then.
    ///
    /// # Errors
    /// The same errors as [`Formats::read_path`].
    pub fn read_appended(
        &self,
        path: &Path,
        from: u64,
        last: &str,
        options: &ReadOptions,
    ) -> Result<Option<Transcript>, Error> {
        let options = options.clone().with_name(path.display().to_string());
        let failed = |error| Error::io(&options.name, error);
        let mut file = std::fs::File::open(path).map_err(failed)?;
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        let mut records = Vec::new();
        let read = file.take(MOST_APPENDED + 1).read_to_end(&mut records);
        if read.map_err(failed)? as u64 > MOST_APPENDED {
            return Ok(None);
        }
        if records.last() != Some(&b'\n') {
            return Ok(None);
        }
        let Choice::Found(format) = self.choose(&Head::new(&records, true).with_path(path)) else {
            return Ok(None);
        };
        if !format.continues(&records, last) {
            return Ok(None);
        }
        let mut reader = Cursor::new(records);
        let input = Input::new(&mut reader).with_path(path);
        let transcript = read_as(format, input, &options)?;
        let is_one = matches!(transcript.sessions.as_slice(), [log] if log.summaries.is_empty());
        Ok(Some(transcript).filter(|_| is_one))
    }

    fn read_stream(
        &self,
        reader: impl BufRead,
        path: Option<&Path>,
        options: &ReadOptions,
    ) -> Result<Transcript, Error> {
        // A format that was added may read compressed bytes itself.
        let claims =
            |begin: &[u8]| matches!(self.choose(&Head::new(begin, false)), Choice::Found(_));
        let source = Unpacked::new(reader, options, claims)?;
        let problem = source.problem();
        let read = self.read_unpacked(source, path, options);
        match Unpacked::error(&problem, options) {
            Some(error) => Err(error),
            None => read,
        }
    }

    fn read_unpacked(
        &self,
        source: Unpacked<'_>,
        path: Option<&Path>,
        options: &ReadOptions,
    ) -> Result<Transcript, Error> {
        let mut reader = source.reader;
        let choose = |bytes: &[u8], complete| {
            let head = Head::new(bytes, complete);
            match path {
                // A format that opens the path itself finds compressed bytes there.
                Some(path) if source.method.is_none() => self.choose(&head.with_path(path)),
                _ => self.choose(&head),
            }
        };
        // The head may hold a line of the greatest length, with its end.
        let longest = options.max_line_bytes.saturating_add(1);
        let mut bytes = Vec::new();
        let mut complete = false;
        let mut wanted = FIRST_HEAD.min(longest);
        let format = loop {
            while !complete && bytes.len() < wanted {
                complete = !read_some(&mut reader, &mut bytes, wanted)
                    .map_err(|error| Error::io(&options.name, error))?;
            }
            match choose(&bytes, complete) {
                Choice::Found(format) => break format,
                Choice::ReadOn if !complete && wanted < longest => {
                    wanted = wanted.saturating_mul(2).min(longest);
                }
                Choice::ReadOn | Choice::Unknown => {
                    return Err(match encoding(&bytes) {
                        Some(encoding) => Error::encoding(&options.name, encoding),
                        None => Error::new(kind_of_unknown(&bytes), &options.name),
                    });
                }
            }
        };
        let head = Cursor::new(bytes);
        // A source that has ended once is read no further: new bytes belong to the next reading.
        let mut whole: Box<dyn BufRead + '_> = match complete {
            true => Box::new(head),
            false => Box::new(head.chain(reader)),
        };
        let input = Input::new(&mut *whole);
        let input = match path {
            Some(path) => input.with_path(path),
            None => input,
        };
        read_as(format, input, options)
    }

    fn choose(&self, head: &Head<'_>) -> Choice<'_> {
        let mut best = (Confidence::No, None);
        let mut undecided = false;
        for format in &self.formats {
            let confidence = format.sniff(head);
            undecided |= confidence == Confidence::Undecided;
            if confidence >= best.0 {
                best = (confidence, Some(&**format));
            }
        }
        match best {
            (Confidence::Certain, Some(format)) => Choice::Found(format),
            _ if undecided && !head.is_complete() => Choice::ReadOn,
            (Confidence::Possible, Some(format)) => Choice::Found(format),
            _ => Choice::Unknown,
        }
    }
}

/// Choice of a format by a head.
enum Choice<'a> {
    Found(&'a dyn Format),
    /// Some formats need a longer head.
    ReadOn,
    Unknown,
}

fn read_as(
    format: &dyn Format,
    input: Input<'_>,
    options: &ReadOptions,
) -> Result<Transcript, Error> {
    let mut sessions: Vec<SessionLog> = Vec::new();
    let options = ReadOptions {
        overflow: options.overflow.renewed(),
        ..options.clone()
    };
    let report = format.read(input, &options, &mut sessions)?;
    if let Some((folder, error)) = options.overflow.failure() {
        let folder = folder.display();
        let message = format!("its messages do not fit into {folder} ({error}): free space there");
        return Err(Error::invalid(&options.name, message));
    }
    Ok(Transcript {
        format: format.name().to_owned(),
        sessions,
        report,
    })
}

/// Reads once into `bytes`, up to `wanted` bytes in total. Returns `false` if the source has ended.
fn read_some(
    reader: &mut impl BufRead,
    bytes: &mut Vec<u8>,
    wanted: usize,
) -> std::io::Result<bool> {
    let chunk = loop {
        match reader.fill_buf() {
            Ok(chunk) => break chunk,
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let taken = chunk.len().min(wanted - bytes.len());
    bytes.extend_from_slice(chunk.get(..taken).unwrap_or_default());
    let more = !chunk.is_empty();
    reader.consume(taken);
    Ok(more)
}

/// Returns the encoding of a source without a known format, if its byte order mark or first characters show that the
/// encoding is not UTF-8.
fn encoding(head: &[u8]) -> Option<&'static str> {
    const MARKS: [(&[u8], &str); 6] = [
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
        (b"{\0\"\0", "UTF-16"),
        (b"\0{\0\"", "UTF-16"),
    ];
    let mark = MARKS.iter().find(|(mark, _)| head.starts_with(mark));
    mark.map(|(_, encoding)| *encoding)
}

/// Returns the kind of error for a source without a known format.
fn kind_of_unknown(head: &[u8]) -> ErrorKind {
    let lines = || {
        let lines = head.split(|&byte| byte == b'\n');
        lines.filter(|line| !line.trim_ascii().is_empty())
    };
    let binary = |line: &[u8]| line.contains(&0) || std::str::from_utf8(line).is_err();
    if lines().next().is_none() {
        ErrorKind::Empty
    } else if lines().any(binary) && !lines().any(is_object) {
        ErrorKind::NotText
    } else {
        ErrorKind::UnknownFormat
    }
}

/// Reads a transcript in one of the default [`Formats`].
///
/// # Errors
/// The same errors as [`Formats::read`].
pub fn read(reader: impl BufRead, options: &ReadOptions) -> Result<Transcript, Error> {
    Formats::default().read(reader, options)
}

/// Reads a transcript from a file or a directory in one of the default [`Formats`].
///
/// # Errors
/// The same errors as [`Formats::read_path`].
pub fn read_file(path: &Path, options: &ReadOptions) -> Result<Transcript, Error> {
    Formats::default().read_path(path, options)
}
