//! Names in a text: addresses, names in code, issue numbers, commit ids, versions.

/// Returns whether a text contains a name, a path or a number, in any script.
pub(crate) fn has_name(text: &str) -> bool {
    // A path: letters on both sides of a slash.
    let path = |word: &str| {
        let inside = word.trim_matches(|c: char| !c.is_alphanumeric());
        inside.len() > 4 && inside.contains(['/', '\\'])
    };
    let mut found = text.chars().any(char::is_numeric) || text.split_whitespace().any(path);
    if !found {
        visit_names(text, &mut |_| found = true);
    }
    found
}

/// Calls `f` with the names in a text: addresses, `code`, issue numbers, commit ids, versions, constants,
/// codes.
pub(crate) fn visit_names(text: &str, f: &mut dyn FnMut(&str)) {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('`') {
        let Some((name, tail)) = after.split_once('`') else {
            break;
        };
        let length = name.chars().count();
        // A single common word in quotes is hardly a name.
        let telling = length > 5 || !name.bytes().all(|b| b.is_ascii_lowercase());
        let plain = !name.contains(['\n', '\\']) && name.split(' ').count() < 4;
        if (3..=50).contains(&length) && telling && plain && name.trim() == name {
            f(name);
        }
        rest = tail;
    }
    for word in text.split(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '`' | '(' | ')' | '"' | '\'' | ',' | ';' | '<' | '>' | '|' | '[' | ']'
            )
            || !c.is_ascii()
    }) {
        let word = word.trim_matches(['.', ':', '*', '!', '?', '{', '}', '=']);
        if is_name(word) {
            f(word);
        }
    }
}

fn is_name(word: &str) -> bool {
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let upper = bytes.iter().filter(|b| b.is_ascii_uppercase()).count();
    let (Some(first), 3..=200) = (bytes.first(), bytes.len()) else {
        return false;
    };
    word.starts_with("http://")
        || word.starts_with("https://")
        || (*first == b'#' && digits == bytes.len() - 1)
        // A commit id.
        || ((7..=40).contains(&bytes.len())
            && digits > 1
            && digits < bytes.len()
            && bytes.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)))
        // A constant or a code: E0382, MAX_RETRIES, ENT-221.
        || (first.is_ascii_uppercase()
            && bytes.len() <= 40
            && (digits > 0 || word.contains('_'))
            && upper + digits + bytes.iter().filter(|b| matches!(b, b'_' | b'-')).count()
                == bytes.len())
        // A name in code: read_all, readAll, Utf8.
        || is_code_name(bytes)
        // A version.
        || (*first == b'v'
            && digits > 1
            && bytes.iter().skip(1).all(|b| b.is_ascii_digit() || *b == b'.'))
}

/// Returns whether a word looks like a name in code: it has an underscore, a capital after a small letter, or letters
/// and digits.
fn is_code_name(bytes: &[u8]) -> bool {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let hump =
        |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    (4..=50).contains(&bytes.len())
        && bytes.iter().all(word)
        && bytes.iter().any(u8::is_ascii_alphabetic)
        && (bytes
            .iter()
            .skip(1)
            .any(|b| *b == b'_' || b.is_ascii_digit())
            || bytes.windows(2).any(hump))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        let mut names = Vec::new();
        visit_names(
            "see `read_all` at https://a.b/c?d=1, #172 and a8f68ce (E0382, MAX_RETRIES) v1.2.3; not Deadline or 12:30 or decade",
            &mut |name| names.push(name.to_owned()),
        );
        names.dedup();
        assert_eq!(
            names,
            [
                "read_all",
                "https://a.b/c?d=1",
                "#172",
                "a8f68ce",
                "E0382",
                "MAX_RETRIES",
                "v1.2.3"
            ]
        );
    }
}
