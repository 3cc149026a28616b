//! A small JSON walker that keeps the bytes of every value.

/// A JSON value with the bytes that it came in.
#[derive(Debug)]
pub(super) enum Json<'a> {
    Object(&'a str, Vec<(&'a str, Json<'a>)>),
    Array(&'a str, Vec<Json<'a>>),
    String(&'a str),
    Other(&'a str),
}

impl<'a> Json<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(_, members) => {
                let quoted = format!("\"{name}\"");
                let mut members = members.iter().rev();
                members.find(|(key, _)| *key == quoted).map(|(_, v)| v)
            }
            _ => None,
        }
    }

    /// The keys, with their quotes.
    pub(super) fn keys(&self) -> Vec<&'a str> {
        match self {
            Json::Object(_, members) => members.iter().map(|(key, _)| *key).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a key comes twice.
    pub(super) fn repeats(&self) -> bool {
        let mut keys = self.keys();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        keys.len() != all
    }

    pub(super) fn items(&self) -> &[Json<'a>] {
        match self {
            Json::Array(_, items) => items,
            _ => &[],
        }
    }

    pub(super) fn raw(&self) -> &'a str {
        match self {
            Json::Object(raw, _) | Json::Array(raw, _) | Json::String(raw) | Json::Other(raw) => {
                raw
            }
        }
    }

    /// A string, decoded; `None` for anything else and for lone surrogates.
    pub(super) fn text(&self) -> Option<String> {
        self.decoded()
            .filter(|(_, whole)| *whole)
            .map(|(text, _)| text)
    }

    /// A string, decoded, and whether that is all of it: of a lone surrogate a replacement character is left.
    pub(super) fn decoded(&self) -> Option<(String, bool)> {
        let Json::String(raw) = self else {
            return None;
        };
        let inside = raw.get(1..raw.len().checked_sub(1)?)?;
        let mut out = String::with_capacity(inside.len());
        let mut whole = true;
        let mut rest = inside;
        while let Some(at) = rest.find('\\') {
            out.push_str(rest.get(..at)?);
            let escape = rest.as_bytes().get(at + 1)?;
            let mut used = 2;
            match escape {
                b'n' => out.push('\n'),
                b't' => out.push('\t'),
                b'r' => out.push('\r'),
                b'b' => out.push('\u{8}'),
                b'f' => out.push('\u{c}'),
                b'u' => {
                    let unit = |at: usize| u16::from_str_radix(rest.get(at..at + 4)?, 16).ok();
                    let mut units = vec![unit(at + 2)?];
                    used = 6;
                    if rest.get(at + 6..at + 8) == Some("\\u")
                        && (0xd800..0xdc00).contains(units.first()?)
                        && (0xdc00..0xe000).contains(&unit(at + 8)?)
                    {
                        units.push(unit(at + 8)?);
                        used = 12;
                    }
                    whole &= String::from_utf16(&units).is_ok();
                    out.push_str(&String::from_utf16_lossy(&units));
                }
                other => out.push(char::from(*other)),
            }
            rest = rest.get(at + used..)?;
        }
        out.push_str(rest);
        Some((out, whole))
    }
}

/// How deep a value is looked into; what lies deeper is [`Json::Other`], with its bytes.
const MAX_DEPTH: usize = 64;

/// Walks one JSON value that fills the text. It trusts the text to be JSON where that costs
/// nothing.
pub(super) fn parse(text: &str) -> Option<Json<'_>> {
    let mut walker = Walker { text, at: 0 };
    let value = walker.value(0)?;
    walker.space();
    (walker.at == text.len()).then_some(value)
}

struct Walker<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walker<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Passes an object or a list without looking into it.
    fn skip(&mut self) -> Option<Json<'a>> {
        let start = self.at;
        let mut open = 0usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                b'"' => {
                    self.string()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return self.text.get(start..self.at).map(Json::Other);
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        self.space();
        let start = self.at;
        match self.peek()? {
            b'{' | b'[' if depth >= MAX_DEPTH => self.skip(),
            b'{' => {
                self.at += 1;
                let mut members = Vec::new();
                if self.take(b'}').is_none() {
                    loop {
                        self.space();
                        let key = self.string()?;
                        self.take(b':')?;
                        members.push((key, self.value(depth + 1)?));
                        if self.take(b',').is_none() {
                            self.take(b'}')?;
                            break;
                        }
                    }
                }
                Some(Json::Object(self.text.get(start..self.at)?, members))
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                if self.take(b']').is_none() {
                    loop {
                        items.push(self.value(depth + 1)?);
                        if self.take(b',').is_none() {
                            self.take(b']')?;
                            break;
                        }
                    }
                }
                Some(Json::Array(self.text.get(start..self.at)?, items))
            }
            b'"' => self.string().map(Json::String),
            _ => {
                while self
                    .peek()
                    .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                {
                    self.at += 1;
                }
                let raw = self.text.get(start..self.at)?;
                (!raw.is_empty()).then_some(Json::Other(raw))
            }
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> Option<&'a str> {
        let start = self.at;
        (self.peek()? == b'"').then_some(())?;
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                0..=31 => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(start..self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walker_keeps_bytes_and_decodes_strings() {
        let value =
            parse(r#" {"a": {"x":1.00,"x" :[ ]}, "b":"q\"\u00e9\ud83d\ude00", "c":"\ud800"} "#)
                .unwrap();
        assert_eq!(value.get("a").unwrap().raw(), r#"{"x":1.00,"x" :[ ]}"#);
        assert_eq!(value.get("b").unwrap().text().unwrap(), "q\"é😀");
        assert_eq!(value.get("c").unwrap().text(), None);
        assert_eq!(value.get("c").unwrap().raw(), r#""\ud800""#);
        let deep = format!("{}\"]\"{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(parse(&deep).unwrap().raw(), deep);
        assert!(parse(&deep[..deep.len() - 1]).is_none());
        for broken in ["", "{", "[1,]x", "{\"a\" 1}", "\"\n\"", "1 2"] {
            assert!(parse(broken).is_none(), "{broken}");
        }
    }
}
