//! Replaces keys, tokens, passwords and personal data in texts by marks, such as `[redacted:github-token 1]`.
//!
//! Equal values get the same mark, numbered in the order of their first occurrence. Values are found by their form, or by
//! the name that they are assigned to.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use agent_memory::RawJson;
use regex::{Captures, Regex};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Begins every mark.
const MARK: &str = "[redacted:";

/// Names to which passwords and other secrets are assigned: the last words of such names.
const PASSWORDS: &str = "(?:password|passwd|passphrase|pwd)";
const SECRETS: &str =
    "(?:secret|token|credentials?|(?:api|access|auth|private|secret|signing|encryption)[_-]?key)";

/// A kind of values, the pattern that finds them, and the test that a found value has to pass. The value is the
/// pattern's group `q` in quotes, its group `v`, or all that it matches.
type Rule = (&'static str, &'static str, fn(&Found<'_>) -> bool);

/// The kinds with a form of their own, in the order in which they are looked for.
const RULES: [Rule; 22] = [
    (
        "private-key",
        r#"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9\s+/=\\:;,.()<>#*|│→"'-]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"#,
        has_base64,
    ),
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[\s\\nr0-9+>#*|│→:]+[A-Za-z0-9+/=]{24,})+",
        |_| true,
    ),
    (
        "aws-key",
        r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
        |found| is_random(found.value, 3.0),
    ),
    (
        "aws-secret",
        r#"(?i)secret_?access_?key\\*["']?[ \t]*(?::=|=>|[=:])[ \t]*\\*["']?(?P<v>[A-Za-z0-9/+]{40})"#,
        |found| is_random(found.value, 3.5),
    ),
    (
        "github-token",
        r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{50,255}",
        |found| is_random(found.value, 3.5),
    ),
    (
        "gitlab-token",
        r"gl(?:pat|dt|rt|ptt|soat|ft|imt|agent|cbt|oas|rtr)-[A-Za-z0-9_-]{20,}(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?",
        |found| is_random(found.value, 3.0),
    ),
    (
        "slack-token",
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}",
        |found| is_random(found.value, 3.0),
    ),
    (
        "stripe-key",
        r"(?-u:\b)(?:[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})",
        |found| is_random(found.value, 3.0),
    ),
    (
        "google-key",
        r"AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{20,}",
        |found| is_random(found.value, 3.0),
    ),
    ("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}", |found| {
        is_random(found.value, 3.0)
    }),
    (
        "openai-key",
        r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|(?-u:\b)sk-[A-Za-z0-9]{32,}",
        |found| is_random(found.value, 3.5),
    ),
    ("npm-token", r"npm_[A-Za-z0-9]{36}", |found| {
        is_random(found.value, 3.5)
    }),
    (
        "api-key",
        r"(?-u:\b)(?:sk-or-v1-[0-9a-f]{64}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}|hf_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{40,}|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|do[opr]_v1_[0-9a-f]{64}|pypi-AgE[A-Za-z0-9_-]{50,}|dckr_pat_[A-Za-z0-9_-]{27}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|dapi[0-9a-f]{32}|hvs\.[A-Za-z0-9_-]{24,}|lin_api_[A-Za-z0-9]{40}|AGE-SECRET-KEY-1[0-9A-Z]{58}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33})",
        |found| is_random(found.value, 3.0),
    ),
    (
        "jwt",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        |_| true,
    ),
    (
        "password",
        r#"(?i)[a-z][a-z0-9+.-]{1,20}://[^\s/:@"'`<>\\\[\]()]*:(?P<v>[^\s/@"'`<>\\\[\]()]{3,})@"#,
        is_own,
    ),
    ("password", r"://(?P<v>[A-Za-z0-9_-]{20,})@", |found| {
        is_random(found.value, 3.0)
    }),
    (
        "authorization",
        r#"(?i)(?:authorization\\*["']?[ \t]*[=:][ \t]*\\*["'`]?(?:[a-z]+[ \t]+)?|(?-u:\b)bearer[ \t]+)(?P<v>[A-Za-z0-9._~+/-]{12,}=*)"#,
        is_credential,
    ),
    (
        "email",
        r"[A-Za-z0-9][A-Za-z0-9._%+-]*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,24}(?-u:\b)",
        is_email,
    ),
    (
        "ip",
        r"(?:^|[^0-9A-Za-z._/-]|\\[nrt]|://)(?P<v>(?:[0-9]{1,3}\.){3}[0-9]{1,3})",
        is_ipv4,
    ),
    (
        "ip",
        r"(?:^|[^0-9A-Za-z._:]|\\[nrt])(?P<v>[0-9A-Fa-f:]*:[0-9A-Fa-f]*:[0-9A-Fa-f:]*)",
        is_ipv6,
    ),
    (
        "user",
        r#"(?:(?:^|[\s"'`(=:,\[<>|;]|\\[nrt]|file://|/mnt/[a-z])(?:/home/|/Users/)|(?i:[a-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)))(?P<v>[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_])?)"#,
        is_own,
    ),
    (
        "user",
        r#"(?:^|[/\\\s"'`])--?(?:Users|home)-(?P<v>[\p{L}\p{N}_]+)"#,
        is_own,
    ),
];

/// Number of the last kinds, which are looked for after assigned values.
const PERSONAL: usize = 5;

/// Number of bytes before a value that its test sees, so that a long line takes no longer for each value in it.
const BEFORE: usize = 80;

/// A value that a pattern found, and the text on both sides of it.
struct Found<'t> {
    start: usize,
    before: &'t str,
    value: &'t str,
    after: &'t str,
    is_quoted: bool,
}

/// Marks by the values that they replace, and the number of values of each kind.
#[derive(Default)]
struct Marks {
    of: HashMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
}

/// A rule with its compiled pattern.
struct Compiled {
    kind: &'static str,
    pattern: Regex,
    is_secret: fn(&Found<'_>) -> bool,
}

/// Returns a text as it is shown: unchanged without a redactor.
pub(crate) fn shown<'t>(redactor: Option<&Redactor>, text: &'t str) -> Cow<'t, str> {
    redactor.map_or(Cow::Borrowed(text), |redactor| redactor.text(text))
}

/// Replaces values in texts by marks, and counts them.
pub(crate) struct Redactor {
    rules: Vec<Compiled>,
    /// Kinds of values by the end of a key of a JSON object.
    keys: Vec<Compiled>,
    marks: RefCell<Marks>,
}

impl Redactor {
    pub(crate) fn new() -> Result<Self, regex::Error> {
        let compiled = |(kind, pattern, is_secret): (_, &str, _)| {
            let pattern = Regex::new(pattern)?;
            Ok(Compiled {
                kind,
                pattern,
                is_secret,
            })
        };
        let named: [Rule; 2] = [
            ("password", PASSWORDS, is_password),
            ("secret", SECRETS, is_secret),
        ];
        let keys = named.map(|(kind, names, test)| (kind, format!("(?i:{names})$"), test));
        let assigned = named.map(|(kind, names, test)| {
            let pattern = format!(
                r#"(?i)(?:--[a-z0-9-]*{names}[ \t]+|{names}\\*["']?\]?(?:[ \t]*:[ \t]*&?(?:str|string))?[ \t]*(?:=>|[:=]=?)[ \t]*)(?:\\*["'`](?P<q>[^\s"'`\\]{{6,}})\\*["'`]|(?P<v>[^\s"'`\\,;(){{}}<>\[\]|&]{{6,}}))"#
            );
            (kind, pattern, test)
        });
        let (first, last) = RULES.split_at(RULES.len() - PERSONAL);
        let assigned = assigned
            .iter()
            .map(|(kind, pattern, test)| (*kind, pattern.as_str(), *test));
        let rules = first
            .iter()
            .copied()
            .chain(assigned)
            .chain(last.iter().copied());
        let keys = keys
            .iter()
            .map(|(kind, pattern, test)| (*kind, pattern.as_str(), *test));
        Ok(Self {
            rules: rules.map(compiled).collect::<Result<_, _>>()?,
            keys: keys.map(compiled).collect::<Result<_, _>>()?,
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
    fn replaced(&self, rule: &Compiled, text: &str) -> Option<String> {
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
        let found = Found {
            start: 0,
            before: "",
            value: text,
            after: "",
            is_quoted: true,
        };
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

impl<'t> Found<'t> {
    fn of(text: &'t str, groups: &Captures<'t>) -> Option<Self> {
        let quoted = groups.name("q");
        let value = quoted.or(groups.name("v")).or(groups.get(0))?;
        let before = text.get(..value.start())?;
        // The letter of an escape, such as `\n`, does not belong to a value that begins there.
        let is_first = groups
            .get(0)
            .is_some_and(|all| all.start() == value.start());
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let escape = match value.as_str().chars().next() {
            Some(letter) if is_first && backslashes % 2 == 1 => 1 + 4 * usize::from(letter == 'u'),
            _ => 0,
        };
        let start = value.start() + escape;
        Some(Self {
            start,
            before: text.get(text.floor_char_boundary(start.saturating_sub(BEFORE))..start)?,
            value: text.get(start..value.end())?,
            after: text.get(value.end()..)?,
            is_quoted: quoted.is_some(),
        })
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

/// Returns whether a block has a line of Base64, and not only code about such blocks.
fn has_base64(found: &Found<'_>) -> bool {
    let mut runs = found
        .value
        .split(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c));
    runs.any(|run| run.len() >= 24)
}

/// Returns whether a text is a stand-in for a secret in an example.
fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let words = [
        "example",
        "placeholder",
        "changeme",
        "change-me",
        "change_me",
        "redacted",
        "dummy",
        "sample",
        "your_",
        "your-",
        "xxxx",
        "****",
        "....",
        "...",
        "…",
        "${",
        "$(",
        "{{",
        "<",
        "process.env",
        "://",
    ];
    words.iter().any(|word| lower.contains(word))
}

/// Returns whether a text is a path, or a variable of a shell or a template.
fn is_reference(text: &str) -> bool {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let folder = text
        .strip_prefix('/')
        .and_then(|path| path.split('/').next());
    folder.is_some_and(|name| name.chars().all(|c| c.is_ascii_lowercase()))
        || text.strip_prefix('$').is_some_and(is_word)
        || text.starts_with(['{', '~', '.'])
        || text.starts_with("%(")
        || text.ends_with('%')
}

/// Returns whether a text is a name or password that many examples and images of systems have.
fn is_common_word(text: &str) -> bool {
    let words = [
        "admin",
        "app",
        "default",
        "demo",
        "dev",
        "foo",
        "foobar",
        "www",
        "guest",
        "linuxbrew",
        "me",
        "name",
        "node",
        "pass",
        "passwd",
        "password",
        "postgres",
        "public",
        "pwd",
        "root",
        "runner",
        "secret",
        "shared",
        "test",
        "token",
        "ubuntu",
        "user",
        "username",
        "vscode",
        "you",
        "yourname",
    ];
    words.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns the entropy of a text's bytes, in bits for each byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let length = text.len() as f64;
    let shares = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / length);
    shares.map(|share| -share * share.log2()).sum()
}

/// Returns whether a text looks as if it was drawn at random: letters and digits with at least this entropy.
fn is_random(text: &str, bits: f64) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && text.contains(|c: char| c.is_ascii_alphabetic())
        && !is_placeholder(text)
        && entropy(text) >= bits
}

/// Returns whether a text is a name or an expression of a programming language, such as `config.token2`.
fn is_code(text: &str) -> bool {
    let text = text.trim_end_matches(['!', '?', ':', '.']);
    let is_digit = |c: char| c.is_ascii_digit();
    text.split(['.', ':', '-', '>', '/']).all(|word| {
        let numbers = word.split(|c| !is_digit(c)).filter(|run| !run.is_empty());
        !word.starts_with(is_digit)
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
            && numbers.count() < 3
    })
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Returns whether the value of a header is a token, or a user and a password in Base64.
fn is_credential(found: &Found<'_>) -> bool {
    let before = found.before.trim_end().to_ascii_lowercase();
    let is_base64 = before.ends_with("basic") && !is_placeholder(found.value);
    is_random(found.value, 3.0) || (is_base64 && entropy(found.value) >= 3.0)
}

/// Returns whether an assigned value is a literal: in quotes, after an option, or after a variable of a shell.
fn is_literal(found: &Found<'_>) -> bool {
    let name = found
        .before
        .rsplit(char::is_whitespace)
        .find(|word| !word.is_empty());
    let is_assigned = |name: &str| {
        let variable = name.strip_suffix('=');
        name.starts_with("--")
            || variable.is_some_and(|name| name.ends_with(|c: char| c.is_ascii_uppercase()))
    };
    !is_reference(found.value)
        && (found.is_quoted || name.is_some_and(is_assigned) || !is_code(found.value))
}

/// Returns whether the value of a password's name is a password.
fn is_password(found: &Found<'_>) -> bool {
    let has = |kind: fn(char) -> bool| found.value.contains(kind);
    has(|c| c.is_ascii_alphabetic())
        && has(|c| c.is_ascii_digit() || "!@#$%^&*?~+".contains(c))
        && !is_placeholder(found.value)
        && !found.value.starts_with(['*', '&', '@'])
        && is_literal(found)
}

/// Returns whether the value of a secret's name is a secret.
fn is_secret(found: &Found<'_>) -> bool {
    let lower = found.value.to_ascii_lowercase();
    let names = ["token", "secret", "password", "_key", "-key"];
    found.value.len() >= 16
        && is_random(found.value, 3.0)
        && !is_uuid(found.value)
        && !names.iter().any(|name| lower.contains(name))
        && is_literal(found)
}

/// Returns whether a name or password is no stand-in for one, and none that many have.
fn is_own(found: &Found<'_>) -> bool {
    !is_placeholder(found.value) && !is_reference(found.value) && !is_common_word(found.value)
}

/// Returns whether an address is one of a person: not of an example, a program, or a file.
fn is_email(found: &Found<'_>) -> bool {
    let lower = found.value.to_ascii_lowercase();
    let Some((local, domain)) = lower.split_once('@') else {
        return false;
    };
    let last = domain.rsplit('.').next().unwrap_or_default();
    let files = [
        "css",
        "gif",
        "html",
        "ico",
        "jpeg",
        "jpg",
        "js",
        "json",
        "local",
        "lock",
        "png",
        "service",
        "socket",
        "svg",
        "target",
        "timer",
        "ts",
        "tsx",
        "webp",
        "yaml",
        "yml",
        "example",
        "test",
        "invalid",
        "localhost",
    ];
    let of_example = [
        "example", "domain", "email", "test", "host", "company", "openssh",
    ];
    let programs = ["git", "noreply", "no-reply", "donotreply", "root"];
    let in_url = found
        .before
        .rsplit(char::is_whitespace)
        .next()
        .is_some_and(|before| {
            before
                .rsplit_once("://")
                .is_some_and(|(_, rest)| !rest.contains('/'))
        });
    !files.contains(&last)
        && !domain
            .rsplit('.')
            .nth(1)
            .is_some_and(|label| of_example.contains(&label))
        && !local.is_empty()
        && !programs.contains(&local)
        && !found.after.starts_with(['(', '@'])
        && !in_url
}

/// Returns whether a number with four parts is the address of one machine, and no version.
fn is_ipv4(found: &Found<'_>) -> bool {
    let Ok(address) = found.value.parse::<Ipv4Addr>() else {
        return false;
    };
    let [first, second, _, last] = address.octets();
    // Versions have small numbers, object identifiers begin with two.
    let is_other = address.octets().iter().all(|part| *part < 20) || (first < 3 && second < 40);
    let is_special = address.is_loopback()
        || address.is_documentation()
        || address.is_link_local()
        || matches!(first, 0 | 255)
        || matches!(last, 0 | 255);
    let of_versions = ["version", "release", "upgrade", "update", "bump", "section"];
    let before = found.before.to_ascii_lowercase();
    let mut words = before.rsplit(char::is_whitespace).take(4);
    let is_version = words.any(|word| of_versions.iter().any(|name| word.contains(name)));
    let ends_there = !found
        .after
        .starts_with(|c: char| c.is_ascii_alphanumeric() || "._-".contains(c))
        || found.after.starts_with(". ")
        || found.after.starts_with(".\n")
        || found.after == ".";
    !is_special && !is_other && ends_there && !is_version
}

/// Returns whether groups of digits are the address of one machine.
fn is_ipv6(found: &Found<'_>) -> bool {
    let Ok(address) = found.value.parse::<Ipv6Addr>() else {
        return false;
    };
    let groups = address.segments();
    let is_documentation = groups.starts_with(&[0x2001, 0xdb8]);
    found.value.matches(':').count() >= 4
        && groups.iter().filter(|group| **group != 0).count() >= 3
        && !is_documentation
        && found.value.contains(|c: char| c.is_ascii_digit())
        && !found.after.starts_with(|c: char| c.is_ascii_alphanumeric())
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
