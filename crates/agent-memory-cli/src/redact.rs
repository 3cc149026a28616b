//! Replaces keys, tokens, passwords and personal data in texts by marks, such as `[redacted:github-token 1]`.
//!
//! Equal values get the same mark, numbered in the order of their first occurrence. Values are found by their form, or by
//! the name that they are assigned to.

mod rules;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use agent_memory::RawJson;
use serde::de::IgnoredAny;
use serde_json::Value;

use self::rules::{Found, Rule, of_keys, of_texts};

/// Begins every mark.
const MARK: &str = "[redacted:";

/// Marks by the values that they replace, and the number of values of each kind.
#[derive(Default)]
struct Marks {
    of: HashMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
}

/// Returns a text as it is shown: unchanged without a redactor.
pub(crate) fn shown<'t>(redactor: Option<&Redactor>, text: &'t str) -> Cow<'t, str> {
    redactor.map_or(Cow::Borrowed(text), |redactor| redactor.text(text))
}

/// Replaces values in texts by marks, and counts them.
pub(crate) struct Redactor {
    rules: Vec<Rule>,
    /// Kinds of values by the end of a key of a JSON object.
    keys: Vec<Rule>,
    marks: RefCell<Marks>,
}

impl Redactor {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            rules: of_texts()?,
            keys: of_keys()?,
            marks: RefCell::default(),
        })
    }

    /// Returns a text with marks in place of secrets and personal data. In a text that is JSON only strings and keys
    /// change, so it stays JSON.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        // A mark may end a value that another rule finds next to it.
        while let Some(changed) = self.changed(&shown) {
            shown = Cow::Owned(changed);
        }
        shown
    }

    /// Returns the number of different values of each kind that were replaced.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.marks.borrow().counts.clone()
    }

    /// Returns a line with the numbers of replaced values: `redacted: 2 email, 1 github-token`.
    pub(crate) fn report(&self) -> String {
        let mut text = "redacted: ".to_owned();
        for (index, (kind, values)) in self.counts().iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{values} {kind}");
        }
        if self.counts().is_empty() {
            text.push_str("nothing");
        }
        text
    }

    fn changed(&self, text: &str) -> Option<String> {
        let is_json = text.trim_start().starts_with(['{', '[', '"'])
            && serde_json::from_str::<IgnoredAny>(text).is_ok();
        if is_json {
            // The lines of a private key may be strings of a list.
            let key = self.rules.first().and_then(|key| self.replaced(key, text));
            let key = key.filter(|changed| serde_json::from_str::<IgnoredAny>(changed).is_ok());
            return key.or_else(|| self.json(text));
        }
        let mut shown = Cow::Borrowed(text);
        for rule in &self.rules {
            if let Some(changed) = self.replaced(rule, &shown) {
                shown = Cow::Owned(changed);
            }
        }
        match shown {
            Cow::Borrowed(_) => None,
            Cow::Owned(shown) => Some(shown),
        }
    }

    /// Replaces the values that one rule finds; `None` if there are none.
    fn replaced(&self, rule: &Rule, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        for groups in rule.pattern.captures_iter(text) {
            let Some(found) = Found::of(text, &groups) else {
                continue;
            };
            if !found.value.is_empty() && !found.value.contains(MARK) && (rule.is_secret)(&found) {
                out.push_str(text.get(copied..found.start).unwrap_or_default());
                out.push_str(&self.mark(rule.kind, found.value));
                copied = found.start + found.value.len();
            }
        }
        (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
    }

    /// Replaces values in the strings of a JSON text; `None` if there are none.
    fn json(&self, json: &str) -> Option<String> {
        let (mut out, mut copied, mut at) = (String::new(), 0, 0);
        let mut key = Cow::Borrowed("");
        while let Some(open) = json.get(at..).and_then(|rest| rest.find('"')) {
            let start = at + open;
            let token = string_at(json, start);
            at = start + token.len();
            let text = decoded(token);
            let after = json.get(at..).unwrap_or_default();
            let is_key = after.trim_start().starts_with(':');
            let shown = if is_key {
                self.text(&text)
            } else {
                self.value(&key, &text)
            };
            if shown != text {
                out.push_str(json.get(copied..start).unwrap_or_default());
                out.push_str(&Value::from(shown).to_string());
                copied = at;
            }
            if is_key {
                key = text;
            }
        }
        (copied > 0).then(|| out + json.get(copied..).unwrap_or_default())
    }

    /// Returns a string of a JSON object as it is shown under its key.
    fn value<'t>(&self, key: &str, text: &'t str) -> Cow<'t, str> {
        let found = Found::alone(text);
        let is_one = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '[');
        let named = self
            .keys
            .iter()
            .find(|named| is_one && named.pattern.is_match(key));
        match (self.text(text), named) {
            (Cow::Borrowed(_), Some(named)) if (named.is_secret)(&found) => {
                Cow::Owned(self.mark(named.kind, text))
            }
            (shown, _) => shown,
        }
    }

    /// Returns the mark of a value: of the kind by which it was found first.
    fn mark(&self, kind: &'static str, value: &str) -> String {
        // A key of several lines is the same with other line ends, and with escapes for them.
        let value = value.replace("\\n", "").replace("\\r", "");
        let value = value.replace(|c: char| c == '\\' || c.is_whitespace(), "");
        let Marks { of, counts } = &mut *self.marks.borrow_mut();
        let new = || {
            let number = counts.entry(kind).or_default();
            *number += 1;
            format!("{MARK}{kind} {number}]")
        };
        of.entry(value).or_insert_with(new).clone()
    }
}

/// Returns the JSON string that begins at this quote, with its quotes.
fn string_at(json: &str, start: usize) -> &str {
    let rest = json.get(start..).unwrap_or_default();
    let mut is_escaped = false;
    let end = rest.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.and_then(|end| rest.get(..end + 2)).unwrap_or(rest)
}

/// Decodes a JSON string. Lone surrogates become U+FFFD.
fn decoded(token: &str) -> Cow<'_, str> {
    let inside = token
        .strip_prefix('"')
        .and_then(|token| token.strip_suffix('"'));
    match inside {
        Some(inside) if !inside.contains('\\') => Cow::Borrowed(inside),
        _ => match RawJson::parse(token) {
            Ok(raw) => Cow::Owned(raw.decoded_strings()),
            Err(_) => Cow::Borrowed(token),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_get_the_same_mark() {
        let redactor = Redactor::new().unwrap();
        let shown = redactor.text("ada@engine.org, bob@engine.org; ada@engine.org");
        assert_eq!(
            shown,
            "[redacted:email 1], [redacted:email 2]; [redacted:email 1]"
        );
        let json = redactor.text(r#"{"to":"\u0062ob@engine.org","password":"hunter-2"}"#);
        assert_eq!(
            json,
            r#"{"to":"[redacted:email 2]","password":"[redacted:password 1]"}"#
        );
        let url = redactor.text("ftp://bob:hunter-2@engine.org and PASSWORD=hunter-2");
        assert_eq!(
            url,
            "ftp://bob:[redacted:password 1]@engine.org and PASSWORD=[redacted:password 1]"
        );
        assert_eq!(redactor.report(), "redacted: 2 email, 1 password");
    }

    #[test]
    fn values_are_found_where_they_end_a_word_or_follow_an_escape() {
        for (text, shown) in [
            ("ssh root@81.2.69.142", "ssh root@[redacted:ip 1]"),
            ("<td>81.2.69.142</td>", "<td>[redacted:ip 1]</td>"),
            (
                r#"cut {"a":"\nada@engine.org"#,
                r#"cut {"a":"\n[redacted:email 1]"#,
            ),
            ("PASSWORD=hunter2;", "PASSWORD=[redacted:password 1];"),
            ("/home/jean-luc.", "/home/[redacted:user 1]."),
            (
                "SECRET_KEY=/a8B7c6D5/e4F3g2H1",
                "SECRET_KEY=[redacted:secret 1]",
            ),
            (r"C:\Users\nancy\x", r"C:\Users\[redacted:user 1]\x"),
            ("[2a02:8071::b5c0:1d00]:443", "[[redacted:ip 1]]:443"),
        ] {
            assert_eq!(Redactor::new().unwrap().text(text), shown);
        }
    }

    #[test]
    fn a_private_key_is_found_in_lines_of_a_list_or_of_code() {
        let dashes = "-".repeat(5);
        let lines = [
            format!("+{dashes}BEGIN PRIVATE KEY{dashes}"),
            format!("+{}", "q7Zr2Lw9".repeat(8)),
            format!("+{dashes}END PRIVATE KEY{dashes}"),
        ];
        let redactor = Redactor::new().unwrap();
        let json =
            serde_json::json!({"lines": lines, "of": {lines[0].as_str(): lines[2]}}).to_string();
        let shown: Value = serde_json::from_str(&redactor.text(&json)).unwrap();
        assert_eq!(
            shown["lines"],
            serde_json::json!(["+[redacted:private-key 1]"])
        );
        let code = format!(
            "key = \"{}\\n\" +\n  \"{}\"",
            lines[0],
            lines[1..].join("\\n\" +\n  \"")
        );
        assert_eq!(redactor.text(&code), "key = \"+[redacted:private-key 2]\"");
    }

    #[test]
    fn what_only_looks_like_a_secret_stays() {
        let redactor = Redactor::new().unwrap();
        for text in [
            "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
            "id 123e4567-e89b-12d3-a456-426614174000",
            "git clone git@github.com:rust-lang/regex.git",
            "user@example.com, noreply@corp.net, icon@2x.png, react@18.2.0",
            "127.0.0.1:8080 0.0.0.0 ::1 192.0.2.7 2001:db8::1 10.0.0.0/8",
            "version 4.18.2.1, **V8**: update to 4.4.63.30, v1.2.3.5, chrome/120.0.6099.71",
            "12:34:56, std::fmt::Debug, aa:bb:cc:dd:ee:ff, ffff:ffff:ffff:ffff::",
            "let token = self.next_token2(); password = get_password1(); secret: process.env.SECRET_1",
            "password: string, token?: string; \"max_tokens\": 4096, password=$PASSWORD1",
            "https://site.org/home/page https://user:password@host/ /home/user/x src/home/index.ts",
            "the bearer of this-is-a-long-word, API key: your_api_key_0123456789",
            "token_secret=/run/secrets/db_token_12 pwd = $WORK_DIR2 PWD=/home/user/work1 csrf token: 123e4567-e89b-12d3-a456-426614174000",
        ] {
            assert_eq!(redactor.text(text), text);
        }
    }

    /// Texts of pieces of secrets, of their surroundings, and of JSON.
    #[test]
    fn redaction_is_idempotent_and_keeps_json() {
        let random = "q7Zr2Lw9Xc4Vb8Nm1Kj6Hg3Fd5Sa0PoIuYtReW9q";
        let redactor = Redactor::new().unwrap();
        let token = format!("gh{}{random}", "p_");
        let pieces = [
            token.as_str(),
            random,
            "ada@engine.org",
            "81.2.69.142",
            "/home/ada",
            "\"",
            "\\",
            "\\n",
            "\n",
            " ",
            ":",
            "=",
            "{",
            "}",
            "[",
            "]",
            ",",
            "password",
            "token",
            "\"password\":\"",
            "://ada:",
            "@",
            "Bearer ",
            "\\u00e9",
            "é",
            "[redacted:email 1]",
            "[redacted:",
            "1]",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "2a02:8071:b5c0::1d00:4c1e",
            "C:\\Users\\",
            "-Users-",
            "api_key",
            "<",
            "--",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        let mut texts = |length: usize| -> String {
            (0..random.usize(..length))
                .map(|_| pieces[random.usize(..pieces.len())])
                .collect()
        };
        for _ in 0..3_000 {
            let text = texts(12);
            let once = redactor.text(&text);
            assert_eq!(redactor.text(&once), once, "{text:?}");
            let json = serde_json::json!({texts(3): texts(6), "password": [texts(4)], "arguments":
                serde_json::json!({"a": texts(6)}).to_string(), "half": texts(6)})
            .to_string()
            .replace("é", "\\ud800");
            let once = redactor.text(&json);
            let value: Value = serde_json::from_str(&once.replace("\\ud800", "?")).unwrap();
            serde_json::from_str::<Value>(value["arguments"].as_str().unwrap()).unwrap();
            assert_eq!(redactor.text(&once), once, "{json}");
        }
    }
}
