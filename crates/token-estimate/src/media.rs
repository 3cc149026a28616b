//! Cost of pictures, documents and other binary data, which providers do not count as text.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

use crate::binary::{BinaryKind, BinaryRun, PDF, binary_in_json, binary_in_text, is_sealed};

/// Tokens of an image. Anthropic scales images down to at most 1,568 tokens. OpenAI's tiles cost less.
pub(crate) const IMAGE: u64 = 1_600;
/// Tokens of a page of a PDF. Anthropic states 1,500 to 3,000 tokens for the text of a page, as of November 2026; Gemini
/// counts 258 for a page.
const PAGE: u64 = 3_000;
/// Bytes of a PDF for each page, if the pages cannot be counted. Pages with pictures are larger, so this is an upper
/// bound of the number of pages for most documents.
const BYTES_OF_PAGE: u64 = 4_000;
/// Bytes of sounds and of other data for each token. Speech of 128 kbit/s has 500 bytes for each token of Gemini.
const BYTES_PER_TOKEN: u64 = 500;
/// Bytes of a text or of an encrypted value for each token.
const BYTES_OF_TEXT: u64 = 4;
/// Minimum tokens of binary data, which may become a note of its size.
const NOTE: u64 = 10;
/// Number of characters at the beginning of Base64 that decide whether it is text.
const SAMPLE: usize = 400;
/// Largest unpacked size of the object streams of a PDF that are read, in bytes.
const MOST_UNPACKED: u64 = 64 << 20;

/// Calls `add` with the pieces of a text that are words, and returns the cost of the pictures and documents in it.
pub(crate) fn text(text: &str, add: &mut dyn FnMut(&str)) -> u64 {
    pieces(text, binary_in_text, add)
}

/// Calls `add` with the pieces of JSON text that are no binary data, and returns the cost of the binary data.
pub(crate) fn json(json: &str, add: &mut dyn FnMut(&str)) -> u64 {
    pieces(json, binary_in_json, add)
}

/// Calls `add` with the text of reasoning, or returns the cost of reasoning that only the provider can read.
pub(crate) fn reasoning(text: &str, add: &mut dyn FnMut(&str)) -> u64 {
    if is_sealed(text) {
        return (bytes(text) / BYTES_OF_TEXT).max(NOTE);
    }
    add(text);
    0
}

fn pieces(text: &str, find: fn(&str, &mut dyn FnMut(BinaryRun)), add: &mut dyn FnMut(&str)) -> u64 {
    let (mut cost, mut counted) = (0_u64, 0);
    find(text, &mut |run| {
        add(text.get(counted..run.range.start).unwrap_or_default());
        counted = run.range.end;
        let data = text.get(run.range).unwrap_or_default();
        cost = cost.saturating_add(match run.kind {
            BinaryKind::Picture => IMAGE,
            BinaryKind::Sealed => (bytes(data) / BYTES_OF_TEXT).max(NOTE),
            BinaryKind::Data if data.starts_with(PDF) => document(data),
            BinaryKind::Data => (bytes(data) / BYTES_PER_TOKEN).max(NOTE),
        });
    });
    add(text.get(counted..).unwrap_or_default());
    cost
}

/// Returns the cost of a file, in tokens. `data` is its Base64 or its data URL. `unread` is the cost of a file that is
/// given by a URL.
pub(crate) fn file(data: &str, unread: u64) -> u64 {
    let data = base64_of(data);
    match data {
        "" => unread,
        _ if data.starts_with(PDF) => document(data),
        _ if is_text(data) => (bytes(data) / BYTES_OF_TEXT).max(NOTE),
        _ => (bytes(data) / BYTES_PER_TOKEN).max(IMAGE),
    }
}

/// Returns the Base64 of a data URL, or the text itself.
fn base64_of(text: &str) -> &str {
    let text = text.trim_start();
    match text.get(..5) {
        Some(scheme) if scheme.eq_ignore_ascii_case("data:") => {
            text.split_once(',').map_or("", |(_, data)| data)
        }
        _ => text,
    }
}

/// Returns the number of bytes of Base64 text.
fn bytes(data: &str) -> u64 {
    data.len() as u64 / 4 * 3
}

/// Returns whether Base64 begins as plain text.
fn is_text(data: &str) -> bool {
    let sample = data.as_bytes().get(..SAMPLE.min(data.len()));
    let head = decode(sample.unwrap_or_default());
    let text = match str::from_utf8(&head) {
        Ok(text) => text,
        // A character may be cut at the end of the sample.
        Err(error) if head.len() - error.valid_up_to() < 4 => {
            str::from_utf8(head.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.contains(|c: char| c.is_control() && !c.is_whitespace())
}

/// Returns the cost of a PDF, in tokens.
fn document(data: &str) -> u64 {
    pdf_pages(data)
        .unwrap_or_else(|| (bytes(data) / BYTES_OF_PAGE).max(1))
        .saturating_mul(PAGE)
}

/// Returns the number of pages of a PDF in Base64, or `None` if they cannot be counted, as in an encrypted document.
///
/// The number is the largest count of a node of the page tree, or the number of page objects if that is larger. Objects
/// in compressed streams are read too. Of a damaged document it may be another number than a reader of PDF shows.
pub fn pdf_pages(base64: &str) -> Option<u64> {
    let file = decode(base64_of(base64).as_bytes());
    if !file.starts_with(b"%PDF") || find(&file, b"/Encrypt").is_some() {
        return None;
    }
    let mut pages = Pages::default();
    let mut left = MOST_UNPACKED;
    let (mut read, mut at) = (0, 0);
    while let Some(found) = file.get(at..).and_then(|rest| find(rest, b"stream")) {
        let word = at + found;
        at = word + b"stream".len();
        let before = file.get(read..word).unwrap_or_default();
        // The word is also the end of other words.
        if !before.trim_ascii_end().ends_with(b">>") {
            continue;
        }
        let data = file.get(at..).unwrap_or_default();
        let data = data.get(..find(data, b"endstream").unwrap_or(data.len()));
        let data = data.unwrap_or_default();
        at += data.len();
        read = at;
        pages.read(before);
        let object = rfind(before, b"endobj").and_then(|end| before.get(end..));
        let dictionary = object.unwrap_or(before);
        if find(dictionary, b"/ObjStm").is_none() {
            continue;
        }
        let mut objects = Vec::new();
        match find(dictionary, b"/Fl") {
            None => objects.extend_from_slice(data),
            // What can be unpacked of a damaged stream is read.
            Some(_) => {
                let unpacking = ZlibDecoder::new(data.trim_ascii_start());
                let _ = unpacking.take(left).read_to_end(&mut objects);
            }
        }
        left = left.saturating_sub(objects.len() as u64);
        pages.read(&objects);
    }
    pages.read(file.get(read..).unwrap_or_default());
    Some(pages.count.max(pages.objects)).filter(|pages| *pages > 0)
}

/// The pages that the objects of a PDF name.
#[derive(Default)]
struct Pages {
    /// Largest count of a node of the page tree.
    count: u64,
    /// Number of page objects.
    objects: u64,
}

impl Pages {
    /// Reads objects that are not compressed.
    fn read(&mut self, objects: &[u8]) {
        let mut rest = objects;
        while let Some(at) = find(rest, b"/Type") {
            let (before, after) = rest.split_at(at + b"/Type".len());
            rest = after;
            let name = after.trim_ascii_start();
            let Some(end) = name.strip_prefix(b"/Page") else {
                continue;
            };
            if !end.starts_with(b"s") {
                self.objects += u64::from(!end.first().is_some_and(u8::is_ascii_alphanumeric));
                continue;
            }
            // The count is in the same dictionary, before or behind the type.
            let ahead = end.get(..find(end, b">>").unwrap_or(end.len()));
            let behind = rfind(before, b"<<").and_then(|start| before.get(start..));
            for dictionary in [ahead, behind].into_iter().flatten() {
                self.count = self.count.max(count(dictionary).unwrap_or(0));
            }
        }
    }
}

/// Returns the number behind `/Count` in a dictionary.
fn count(dictionary: &[u8]) -> Option<u64> {
    let at = find(dictionary, b"/Count")?;
    let digits = dictionary
        .get(at + b"/Count".len()..)?
        .trim_ascii_start()
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some(number)
}

/// Returns the last place of a word.
fn rfind(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).rposition(|window| window == word)
}

/// Returns the first place of a word.
fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    let first = *word.first()?;
    let mut from = 0;
    loop {
        let rest = bytes.get(from..)?;
        let at = from + rest.iter().position(|byte| *byte == first)?;
        if bytes.get(at..)?.starts_with(word) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Decodes Base64 of either alphabet, up to its padding. Other characters are skipped.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => continue,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits & 0xff) as u8);
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use super::*;

    /// Encodes bytes as Base64.
    pub(crate) fn encode(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for three in bytes.chunks(3) {
            let held = three
                .iter()
                .fold(0_u32, |held, byte| held << 8 | u32::from(*byte))
                << (8 * (3 - three.len()));
            for place in 0..4 {
                let digit = DIGITS[(held >> (18 - 6 * place) & 63) as usize];
                out.push(if place > three.len() {
                    '='
                } else {
                    digit as char
                });
            }
        }
        out
    }

    /// Returns a PDF with `pages` pages. If `packed` is true, its objects are in a compressed stream.
    pub(crate) fn pdf(pages: usize, packed: bool) -> String {
        let kids: Vec<String> = (0..pages).map(|n| format!("{} 0 R", n + 3)).collect();
        let tree = format!("<</Kids[{}]/Count {pages}/Type/Pages>>", kids.join(" "));
        let page = "<</Parent 2 0 R/Type/Page/Resources<</Font 9 0 R>>>>";
        let outlines = "<</Type/Outlines/Count 400>>";
        let mut file = b"%PDF-1.7\n1 0 obj\n<</Title(upstream)>>\nendobj\n".to_vec();
        if packed {
            let objects = format!("{outlines} {tree} {}", vec![page; pages].join(" "));
            let mut packing =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            packing.write_all(objects.as_bytes()).unwrap();
            file.extend(b"2 0 obj\n<</Type/ObjStm/N 9/Filter/FlateDecode>>\nstream\r\n");
            file.extend(packing.finish().unwrap());
            file.extend(b"\nendstream\nendobj\n");
        } else {
            for object in [outlines, &tree].into_iter().chain(vec![page; pages]) {
                file.extend(format!("7 0 obj\n{object}\nendobj\n").bytes());
                file.extend(b"8 0 obj\n<</Length 5>>\nstream\n/Type /Page\nendstream\nendobj\n");
            }
        }
        file.extend(b"%%EOF");
        encode(&file)
    }

    #[test]
    fn pages_are_counted_packed_or_not() {
        for (pages, packed) in [(1, false), (10, false), (90, false), (1, true), (90, true)] {
            let pdf = pdf(pages, packed);
            assert_eq!(pdf_pages(&pdf), Some(pages as u64), "{packed}");
            let url = format!("data:application/pdf;base64,{pdf}");
            let cost = file(&url, IMAGE);
            assert_eq!(cost, 3_000 * pages as u64);
        }
        for none in [
            "",
            "%PDF-1.7 <</Type/Catalog>>",
            "%PDF-1.7 <</Type/Page>> <</Encrypt 3 0 R>>",
        ] {
            assert_eq!(pdf_pages(&encode(none.as_bytes())), None);
        }
    }

    #[test]
    fn a_document_that_cannot_be_read_costs_by_its_bytes() {
        let sealed = format!("%PDF-1.7 <</Encrypt 3 0 R>> {}", "x".repeat(80_000));
        assert_eq!(file(&encode(sealed.as_bytes()), IMAGE), 60_000);
    }

    #[test]
    fn files_cost_by_what_they_are() {
        let words = encode("Ein Satz über Gärten. ".repeat(500).as_bytes());
        let cost = file(&words, IMAGE);
        assert_eq!(cost, words.len() as u64 / 4 * 3 / 4);
        let sound = encode(&[0xff, 0xfb, 0x90, 0].repeat(500_000));
        assert_eq!(file(&sound, IMAGE), 4_000);
        assert_eq!(file(&sound[..400], IMAGE), IMAGE);
        assert_eq!(file("", 7), 7);
    }

    #[test]
    fn data_in_json_costs_by_its_kind() {
        let data = "aB3/".repeat(1_000);
        let cost = |json: &str| {
            let mut words = String::new();
            let cost = super::json(json, &mut |piece| words.push_str(piece));
            (cost, words)
        };
        let picture = format!(r#"{{"result":"iVBORw0KGgo{data}","id":"x"}}"#);
        assert_eq!(
            cost(&picture),
            (IMAGE, r#"{"result":"","id":"x"}"#.to_owned())
        );
        let sealed = format!(r#"{{"encrypted_content":"{data}"}}"#);
        assert_eq!(cost(&sealed).0, 750);
        assert_eq!(reasoning(&data, &mut |_| panic!()), 750);
        let sound = format!(r#"{{"blob":"{data}"}}"#);
        assert_eq!(cost(&sound).0, 10);
        let document = format!(
            r#"{{"file_data":"data:application/pdf;base64,{}"}}"#,
            pdf(4, true)
        );
        assert_eq!(cost(&document).0, 12_000);
    }
}
