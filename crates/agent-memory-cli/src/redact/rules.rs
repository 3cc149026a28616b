//! Kinds of secrets and personal data: the patterns that find them, and the tests of the found values.

use std::net::{Ipv4Addr, Ipv6Addr};

use regex::{Captures, Regex};

/// Names to which passwords and other secrets are assigned: the last words of such names.
const PASSWORDS: &str = "(?:password|passwd|passphrase|pwd)";
const SECRETS: &str =
    "(?:secret|token|credentials?|(?:api|access|auth|private|secret|signing|encryption)[_-]?key)";

type Test = fn(&Found<'_>) -> bool;

/// A kind of values, the pattern that finds them, and the test that a found value has to pass.
pub(super) struct Rule {
    pub(super) kind: &'static str,
    pub(super) pattern: Regex,
    pub(super) is_secret: Test,
}

impl Rule {
    fn new(kind: &'static str, pattern: &str, is_secret: Test) -> Result<Self, regex::Error> {
        let pattern = Regex::new(pattern)?;
        Ok(Self {
            kind,
            pattern,
            is_secret,
        })
    }
}

/// Kinds of values by the names that they are assigned to.
const NAMED: [(&str, &str, Test); 2] = [
    ("password", PASSWORDS, is_password),
    ("secret", SECRETS, is_secret),
];

/// Returns the rules for texts, in the order in which they are applied. The first one finds private keys.
pub(super) fn of_texts() -> Result<Vec<Rule>, regex::Error> {
    let (first, last) = FORMS.split_at(FORMS.len() - PERSONAL);
    let of_form =
        |(kind, pattern, test): &(&'static str, &str, Test)| Rule::new(kind, pattern, *test);
    let assigned = NAMED.map(|(kind, names, test)| {
        let pattern = format!(
            r#"(?i)(?:--[a-z0-9-]*{names}[ \t]+|{names}\\*["']?\]?(?:[ \t]*:[ \t]*&?(?:str|string))?[ \t]*(?:=>|[:=]=?)[ \t]*)(?:\\*["'`](?P<q>[^\s"'`\\]{{6,}})\\*["'`]|(?P<v>[^\s"'`\\,;(){{}}<>\[\]|&]{{6,}}))"#
        );
        Rule::new(kind, &pattern, test)
    });
    let rules = first.iter().map(of_form).chain(assigned);
    rules.chain(last.iter().map(of_form)).collect()
}

/// Returns the rules for the keys of JSON objects. Their patterns find the keys of secret values.
pub(super) fn of_keys() -> Result<Vec<Rule>, regex::Error> {
    let rules = NAMED.iter();
    let rules = rules.map(|(kind, names, test)| Rule::new(kind, &format!("(?i:{names})$"), *test));
    rules.collect()
}

/// The kinds with a form of their own, in the order in which they are looked for. The value is the pattern's group `q` in
/// quotes, its group `v`, or all that it matches.
const FORMS: [(&str, &str, Test); 22] = [
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

/// Number of the last of these kinds, which are looked for after assigned values.
const PERSONAL: usize = 5;

/// Number of bytes before a value that its test sees, so that a long line takes no longer for each value in it.
const BEFORE: usize = 80;

/// A value that a pattern found, and the text on both sides of it.
pub(super) struct Found<'t> {
    pub(super) start: usize,
    before: &'t str,
    pub(super) value: &'t str,
    after: &'t str,
    is_quoted: bool,
}

impl<'t> Found<'t> {
    /// Returns the match of a pattern in a text.
    pub(super) fn of(text: &'t str, groups: &Captures<'t>) -> Option<Self> {
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

    /// Returns a value that is alone, such as a string of a JSON object.
    pub(super) fn alone(value: &'t str) -> Self {
        Self {
            start: 0,
            before: "",
            value,
            after: "",
            is_quoted: true,
        }
    }
}

/// Returns whether a block has a line of Base64, and not only code about such blocks.
fn has_base64(found: &Found<'_>) -> bool {
    let mut runs = found
        .value
        .split(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c));
    runs.any(|run| run.len() >= 24)
}

/// Returns whether a text is a placeholder of a secret, as in an example.
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

/// Returns whether a name or password is neither a placeholder nor a common one.
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
