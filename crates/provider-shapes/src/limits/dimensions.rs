//! Width and height of a picture, by the header of its data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Number of characters of Base64 at the beginning of a picture that are searched for its size.
const HEADER: usize = 1 << 20;

/// Returns the width and height of a PNG, JPEG, GIF or WebP in Base64, in pixels. Returns `None` for other data.
pub(super) fn sides(data: &str) -> Option<(u32, u32)> {
    let length = data.len().min(HEADER) / 4 * 4;
    let head = data.get(..length)?;
    let bytes = match data.get(..64) {
        // The size of most formats is in the first bytes.
        Some(first) if !data.starts_with("/9j/") => STANDARD.decode(first).ok()?,
        _ => STANDARD.decode(head).ok()?,
    };
    let pair = |at: usize, big: bool| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        let [a, b, c, d] = four.map(u32::from);
        Some(match big {
            true => (a << 8 | b, c << 8 | d),
            false => (b << 8 | a, d << 8 | c),
        })
    };
    if bytes.starts_with(b"\x89PNG") {
        let four = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        return Some((four(16)?, four(20)?));
    }
    if bytes.starts_with(b"GIF8") {
        return pair(6, false);
    }
    if bytes.starts_with(b"RIFF") {
        let three = |at: usize| {
            let three: [u8; 3] = bytes.get(at..at + 3)?.try_into().ok()?;
            let [a, b, c] = three.map(u32::from);
            Some((c << 16 | b << 8 | a) + 1)
        };
        return match bytes.get(12..16)? {
            b"VP8X" => Some((three(24)?, three(27)?)),
            b"VP8L" => {
                let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            b"VP8 " => pair(26, false).map(|(width, height)| (width & 0x3fff, height & 0x3fff)),
            _ => None,
        };
    }
    // A JPEG is a list of segments. The frame's segment has the size.
    let mut at = bytes.starts_with(b"\xff\xd8").then_some(2)?;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else {
            return None;
        };
        match marker {
            0xff => at += 1,
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return pair(at + 5, true).map(|(height, width)| (width, height));
            }
            0x01 | 0xd0..=0xd7 => at += 2,
            _ => {
                let length: [u8; 2] = bytes.get(at + 2..at + 4)?.try_into().ok()?;
                at += 2 + usize::from(u16::from_be_bytes(length)).max(2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{MediaSource, Part};

    use super::super::tests::png;
    use super::*;

    #[test]
    fn sizes_are_read_from_the_headers() {
        let size = |bytes: &[u8]| sides(&STANDARD.encode(bytes));
        let Part::Image(media) = png(2_560, 1_440) else {
            panic!()
        };
        let MediaSource::Data(data) = media.source else {
            panic!()
        };
        assert_eq!(sides(&data), Some((2_560, 1_440)));
        assert_eq!(
            size(b"GIF89a\x00\x10\x01\x02rest of it"),
            Some((4_096, 513))
        );
        let mut jpeg = b"\xff\xd8\xff\xe1".to_vec();
        jpeg.extend(40_002_u16.to_be_bytes());
        jpeg.extend([7; 40_000]);
        jpeg.extend(b"\xff\xdb\x00\x02\xff\xc2\x00\x0b\x08\x03\x20\x09\x00\x01\x00\x00\x00");
        assert_eq!(size(&jpeg), Some((2_304, 800)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\xff\x0f\0\x57\x02\0\0\0".to_vec();
        assert_eq!(size(&webp), Some((4_096, 600)));
        for other in [&b"RIFF\0\0\0\0WAVE"[..], b"", b"\xff\xd8\xff", b"%PDF"] {
            assert_eq!(size(other), None);
        }
    }
}
