//! Kinds of secrets and personal data: the patterns that find them, and the tests of the found values.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::{Captures, Regex};

use super::signs;

/// Names to which passwords and other secrets are assigned: the last words of such names.
const PASSWORDS: &str = "(?:password|passwd|passphrase|passcode|pwd|[_-]pass|[_-]pw)";
const SECRETS: &str = "(?:secret|token|credentials?|(?:api|access|account|app|application|auth|client|encryption|license|\
    master|private|secret|service|shared|signing|storage|webhook)[_-]?key)";
/// Names that other things have as well, so that their values are judged more strictly.
const PASS: &str = r"(?-u:\b)pass";
const KEYS: &str = "(?:[_-]key|(?-i:[a-z0-9]Key))";
const AUTH: &str = r"(?-u:\b)_?auth";
const PW: &str = r"(?-u:\b)pw";

/// Ids that are hashes of contents, after a word, and those that name a session.
pub(super) const IDS: &str =
    r"(?:[a-z][_-](?P<v>[0-9a-f]{32}|[0-9a-f]{16})|(?-u:\b)resp_(?P<r>[A-Za-z0-9_-]{16,}))(?-u:\b)";
/// Keys of JSON objects with ids of calls as values.
pub(super) const CALL_IDS: &str = "(?i:^(?:id|call_?id|tool_?call_?id|tool_?use_?id)$)";
/// Keys of JSON objects with headers as values.
pub(super) const HEADERS: &str = "(?i:(?:authorization|cookie)$)";

type Test = fn(&Found<'_>) -> bool;

/// A kind of values, the pattern that finds them, and the test that a found value has to pass.
pub(super) struct Rule {
    pub(super) kind: &'static str,
    pub(super) pattern: Regex,
    /// Finds the values in the matches of the pattern, if this is a list.
    each: Option<Regex>,
    pub(super) is_secret: Test,
}

impl Rule {
    /// `%S` in a pattern stands for the characters of signs, and `%C` for those of color codes.
    fn new(kind: &'static str, pattern: &str, is_secret: Test) -> Result<Self, regex::Error> {
        let regex = |pattern: &str| {
            let pattern = pattern.replace("%S", signs::ANY);
            Regex::new(&pattern.replace("%C", signs::COLORS))
        };
        let each = (kind == "cookie").then_some(COOKIE).map(regex);
        Ok(Self {
            kind,
            pattern: regex(pattern)?,
            each: each.transpose()?,
            is_secret,
        })
    }

    /// Returns the values in a text.
    pub(super) fn find<'t>(&self, text: &'t str) -> Vec<Found<'t>> {
        let mut all = Vec::new();
        for groups in self.pattern.captures_iter(text) {
            let Some(found) = Found::of(text, &groups) else {
                continue;
            };
            match &self.each {
                None => all.push(found),
                Some(each) => {
                    let parts = each.captures_iter(found.value);
                    let parts = parts.filter_map(|groups| groups.name("v"));
                    let at = |at: usize| found.start + at;
                    all.extend(
                        parts.filter_map(|one| Found::at(text, at(one.start()), at(one.end()))),
                    );
                }
            }
        }
        all.retain(|found| {
            !found.value.is_empty() && !signs::has_value(found.value) && (self.is_secret)(found)
        });
        all
    }
}

/// Kinds of values by the names that they are assigned to.
const NAMED: [(&str, &str, Test); 6] = [
    ("password", PASSWORDS, is_password),
    ("secret", SECRETS, is_secret),
    ("password", PASS, is_password_of_pass),
    ("secret", KEYS, is_key),
    ("authorization", AUTH, is_basic),
    ("password", PW, is_password_of_pw),
];

/// Returns the rules for texts, in the order in which they are applied. The first one finds private keys.
pub(super) fn of_texts() -> Result<Vec<Rule>, regex::Error> {
    let (first, last) = FORMS.split_at(FORMS.len() - PERSONAL);
    let of_form =
        |(kind, pattern, test): &(&'static str, &str, Test)| Rule::new(kind, pattern, *test);
    let assigned = NAMED.map(|(kind, names, test)| {
        // A name before `=`, `:` or a tab, of an option, of a variable of an image, of an element of XML, or of a pair of
        // a name and a value.
        let named = format!(
            r#"--[a-z0-9-]*{names}[ \t]+|(?-i:ENV|setx)[ \t]+[a-z0-9_]*{names}[ \t]+|{names}\t+|{names}\\*["']?\]?(?:[ \t]*:[ \t]*&?(?:str|string))?[ \t%C]*(?:=>|[:=]=?)[ \t%C]*|<[^<>\s]*{names}>\s*|{names}\\*["']?,?\s+\\*["']?value\\*["']?[ \t]*[:=][ \t]*"#
        );
        let quoted = r#"\\*["'`][%C]*(?P<q>[^\s"'`\\%S]{6,})[%C]*\\*["'`]"#;
        let other = r#"\s"'`\\,;(){}<>\[\]|%S"#;
        let bare = format!(r"(?P<v>[^&{other}]{{6,}}(?:&[^&={other}]+)*)(?:[&{other}]|\z)");
        Rule::new(kind, &format!("(?i)(?:{named})(?:{quoted}|{bare})"), test)
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

/// Finds the values of a cookie.
const COOKIE: &str = r"=(?P<v>[^\s;,=%S]{8,}=*)";

/// The kinds with a form of their own, in the order in which they are looked for. The value is the pattern's group `q` in
/// quotes, its group `v`, or all that it matches.
const FORMS: [(&str, &str, Test); 28] = [
    (
        "private-key",
        r#"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9\s+/=\\:;,.()<>#*|│→"'%C-]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"#,
        has_base64,
    ),
    // Without its end: to the end of the text, and to a last line with more than letters.
    (
        "private-key",
        r#"(?P<v>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[\s\\nr0-9+>#*|│→:%C]+[A-Za-z0-9+/=]{24,})+[\s\\nr0-9+>#*|│→:%C]+[A-Za-z0-9+/=]{1,23})(?:\s*\z|["'…])"#,
        |_| true,
    ),
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[\s\\nr0-9+>#*|│→:%C]+[A-Za-z0-9+/=]{24,})+(?:(?:\s*\n|\\r|\\n)[ \t0-9+>#*|│→:%C]*[A-Za-z]{0,22}[0-9+/=][A-Za-z0-9+/=]{0,22})?",
        |_| true,
    ),
    (
        "aws-key",
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
        |found| begins_there(found) && is_random(found.value, 3.0),
    ),
    (
        "aws-secret",
        r#"(?i)secret_?access_?key\\*["']?[ \t]*(?::=|=>|[=:])[ \t]*\\*["']?(?P<v>[A-Za-z0-9/+]{40})"#,
        |found| is_random(found.value, 3.5),
    ),
    (
        "github-token",
        r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{50,255}",
        |found| is_drawn(found.value, 3.5),
    ),
    (
        "gitlab-token",
        r"gl(?:pat|dt|rt|ptt|soat|ft|imt|agent|cbt|oas|rtr)-[A-Za-z0-9_-]{20,}(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?",
        |found| is_random(found.value, 3.0),
    ),
    (
        "slack-token",
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}|hooks\.slack\.com(?:/|%2F)(?:services|workflows|triggers)(?:/|%2F)[A-Za-z0-9/%]{20,}",
        |found| is_random(found.value, 3.0),
    ),
    (
        "stripe-key",
        r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}",
        |found| begins_there(found) && is_random(found.value, 3.0),
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
        r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}",
        |found| begins_there(found) && is_random(found.value, 3.5),
    ),
    ("npm-token", r"npm_[A-Za-z0-9]{36}", |found| {
        is_drawn(found.value, 3.5)
    }),
    (
        "api-key",
        r"sk-or-v1-[0-9a-f]{64}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}|hf_[A-Za-z0-9]{30,}|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}|EAA[A-Z][A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{40,}|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|do[opr]_v1_[0-9a-f]{64}|pypi-AgE[A-Za-z0-9_-]{50,}|dckr_pat_[A-Za-z0-9_-]{27}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|dapi[0-9a-f]{32}|hv[sb]\.[A-Za-z0-9_-]{24,}|lin_api_[A-Za-z0-9]{40}|AGE-SECRET-KEY-1[0-9A-Z]{58}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}|gl(?:sa|c)_[A-Za-z0-9+/=_]{30,}|sntry[su]_[A-Za-z0-9+/=_]{40,}|NRAK-[A-Z0-9]{27}|dp\.(?:pt|st|ct)\.[A-Za-z0-9._-]{40,}|tskey-[a-z]+-[A-Za-z0-9-]{20,}|rubygems_[0-9a-f]{48}|ATATT3x[A-Za-z0-9_=-]{50,}|fig[du]_[A-Za-z0-9_-]{40,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|r8_[A-Za-z0-9]{37}|ntn_[A-Za-z0-9]{40,}|sbp_[0-9a-f]{40}|ph[cx]_[A-Za-z0-9]{40,}|pul-[0-9a-f]{40}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}",
        |found| begins_there(found) && is_drawn(found.value, 3.0),
    ),
    (
        "jwt",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        |_| true,
    ),
    (
        "password",
        r#"(?i)[a-z][a-z0-9+.-]{1,20}://[^\s/:@"'`<>\\\[\]()%S]*:(?P<v>[^\s/@"'`<>\\\[\]()%S]{3,})@"#,
        is_own,
    ),
    ("password", r"://(?P<v>[A-Za-z0-9_-]{20,})@", |found| {
        is_random(found.value, 3.0)
    }),
    // Options and files of programs.
    (
        "password",
        r#"(?x)(?-u:\b)(?:(?:mysql|mariadb)[a-z-]*(?-u:\b)[^\n|;]{0,200}?[\x20\t]-p|7z[ar]?[\x20\t](?:[^\n|;]{0,200}?[\x20\t])?-p|sshpass[\x20\t]+-p[\x20\t]*
            |zip[\x20\t][^\n|;]{0,200}?-P[\x20\t]+|redis-cli[\x20\t][^\n|;]{0,200}?-a[\x20\t]+|(?:docker|podman|helm)[\x20\t][^\n|;]{0,200}?login[\x20\t][^\n|;]{0,200}?-p[\x20\t]+
            |ldap[a-z]+[\x20\t][^\n|;]{0,200}?-w[\x20\t]+|openssl[\x20\t][^\n|;]{0,200}?pass:|smbclient[\x20\t][^\n|;]{0,200}?%|(?:machine[\x20\t\n]+[^\s,;%S]+|default)[\x20\t\n]+login[\x20\t\n]+[^\s,;%S]+[\x20\t\n]+password[\x20\t\n]+
            |(?:curl|wget|https?|xh)[\x20\t](?:[^\n|;]{0,200}?[\x20\t])?(?:-[uUa]|--(?:proxy-)?user|--auth)[\x20\t=]*["']?[^\s:"'%S]{1,64}:)["']?(?P<v>[^\s"'`|;%S]{3,})"#,
        is_own,
    ),
    (
        "cookie",
        r#"(?i)(?-u:\b)cookies?\\*["']?[ \t%C]*[:=][ \t%C]*\\*["'`]?(?P<v>[^\s=;"'`]+=[^\r\n"'`\\]+)"#,
        is_cookie,
    ),
    (
        "signature",
        r#"(?i)(?:[?&;,\s]|\\u0026)(?:(?:x-(?:amz|goog)-)?(?:signature|security-token|credential)|sig|hmac|key)=(?P<v>[A-Za-z0-9%+/_~.-]{16,}=*)"#,
        |found| is_random(&found.value.replace("%2F", "/"), 3.0) && !is_uuid(found.value),
    ),
    (
        "authorization",
        r#"(?i)(?:authorization\\*["']?[ \t%C]*[=:][ \t%C]*\\*["'`]?(?:[a-z]+[ \t]+)?|(?-u:\b)bearer[ \t]+)(?P<v>[A-Za-z0-9._~+/-][^\s"'`\\,;<>(){}\[\]%S]{5,})"#,
        is_credential,
    ),
    // A statement of SQL, and a key of JSON that is cut off and has escapes in it.
    (
        "password",
        r#"(?i)(?-u:\b)(?:identified[ \t]+(?:with[ \t]+\S+[ \t]+)?by|password)[ \t]+(?:password[ \t]+)?\\*["'](?P<q>[^\s"'`\\%S]{6,})\\*["']"#,
        is_password,
    ),
    (
        "password",
        r#"(?i)"[a-z0-9_-]*\\+u00[2-7][0-9a-f](?:[a-z0-9_-]|\\+u00[2-7][0-9a-f])*\\*"[ \t]*:[ \t]*\\*"(?P<q>[^\s"'`\\%S]{6,})\\*""#,
        |found| has_escaped_name(found) && is_password(found),
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
        r#"(?:(?:^|[\s"'`(=:,\[<>|;%C\x{FDD0}]|\\[nrt]|file://|/mnt/[a-z])(?:/home/|/Users/)|(?i:[a-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)))(?P<v>[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_])?)"#,
        is_own,
    ),
    (
        "user",
        r#"(?:^|[/\\\s"'`%C])--?(?:Users|home)-(?P<v>[\p{L}\p{N}_]+)"#,
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
        let mut end = value.end();
        if quoted.is_none() && groups.name("v").is_some() {
            // The end of a sentence.
            end -= value.as_str().len() - value.as_str().trim_end_matches(['.', ':']).len();
        }
        let found = Self::at(text, value.start() + escape, end)?;
        let is_quoted = quoted.is_some() || found.after.trim_start().starts_with("</");
        Some(Self { is_quoted, ..found })
    }

    /// Returns a part of a text.
    fn at(text: &'t str, start: usize, end: usize) -> Option<Self> {
        Some(Self {
            start,
            before: text.get(text.floor_char_boundary(start.saturating_sub(BEFORE))..start)?,
            value: text.get(start..end)?,
            after: text.get(end..)?,
            is_quoted: false,
        })
    }

    /// Returns a string of a JSON object under its key.
    pub(super) fn of_key(key: &'t str, value: &'t str) -> Self {
        Self {
            start: 0,
            before: key,
            value,
            after: "",
            is_quoted: true,
        }
    }
}

/// Returns whether a text has the length of a hash, and only its digits.
pub(super) fn is_hash(text: &str) -> bool {
    [16, 32].contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the parts of a value that are secrets without the rest: the password in Base64.
pub(super) fn parts(kind: &str, value: &str) -> Option<(&'static str, String)> {
    let (_, password) = Some(kind)
        .filter(|kind| *kind == "authorization")
        .and_then(|_| user_and_password(value))?;
    let is_secret = is_own(&Found::of_key("", &password));
    is_secret.then_some(("password", password))
}

/// Returns the user and the password in a text in Base64; `None` if it is something else.
fn user_and_password(text: &str) -> Option<(String, String)> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, config).decode(text).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    let is_one = !text.contains(char::is_control) && !password.is_empty();
    is_one.then(|| (user.to_owned(), password.to_owned()))
}

/// Returns whether a value does not begin inside of a word. The letters of an escape and of an option, such as `-p`, are
/// none, and neither is the `bot` of an address.
fn begins_there(found: &Found<'_>) -> bool {
    let before = found
        .before
        .trim_end_matches(|c: char| c.is_ascii_alphanumeric());
    let word = found.before.get(before.len()..).unwrap_or_default();
    let is_option = || {
        before
            .strip_suffix('-')
            .is_some_and(|before| !before.ends_with(|c: char| c.is_ascii_alphanumeric()))
    };
    // Nothing else has a beginning of so many fixed characters.
    let is_unmistakable = found.value.len() >= 24
        && found
            .value
            .get(5..10)
            .is_some_and(|first| first.contains(['_', '-', '.']));
    is_unmistakable
        || word.is_empty()
        || word == "bot"
        || (word.len() == 1 && (before.ends_with('\\') || is_option()))
}

/// Returns whether a character ends a word: white space, and signs, because the marks in their places have spaces.
fn is_gap(c: char) -> bool {
    c.is_whitespace() || signs::is_sign(c)
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
        "agent",
        "app",
        "builder",
        "coder",
        "codespace",
        "default",
        "demo",
        "dev",
        "developer",
        "docker",
        "foo",
        "foobar",
        "www",
        "ec2-user",
        "guest",
        "jenkins",
        "linuxbrew",
        "me",
        "name",
        "node",
        "pass",
        "passwd",
        "password",
        "postgres",
        "project",
        "projects",
        "public",
        "pwd",
        "root",
        "runner",
        "sandbox",
        "secret",
        "service",
        "shared",
        "test",
        "token",
        "ubuntu",
        "user",
        "username",
        "vagrant",
        "vscode",
        "work",
        "workspace",
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

/// The same for a long text after the beginning of a token, which may have letters alone, of both cases in equal shares.
fn is_drawn(text: &str, bits: f64) -> bool {
    let letters = text.chars().filter(char::is_ascii_alphabetic).count();
    let capitals = text.chars().filter(char::is_ascii_uppercase).count();
    let is_mixed = (letters * 3..=letters * 7).contains(&(capitals * 10));
    is_random(text, bits)
        || (text.len() >= 36 && is_mixed && !is_placeholder(text) && entropy(text) >= 4.0)
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

/// Returns whether the value of a header is a token, or a user and a password in Base64. After the name of a scheme, and
/// that of the header or in ten characters, it needs not look random.
fn is_credential(found: &Found<'_>) -> bool {
    let before = found.before.trim_end().to_ascii_lowercase();
    let length = found.value.len();
    let is_base64 = before.ends_with("basic") && !is_placeholder(found.value);
    let is_named = ["apikey", "bearer", "key", "token"]
        .into_iter()
        .any(|scheme| {
            let rest = before.strip_suffix(scheme);
            let is_sign = |c: char| c.is_whitespace() || "\"'`\\".contains(c) || signs::is_sign(c);
            rest.is_some_and(|rest| {
                length >= 10 || rest.trim_end_matches(is_sign).ends_with([':', '='])
            })
        });
    let is_other = is_code(found.value) && is_name(found.value);
    (length >= 12 && is_random(found.value, 3.0))
        || (length >= 12 && is_base64 && entropy(found.value) >= 3.0)
        || (is_named && has_password(found.value) && !is_reference(found.value) && !is_other)
}

/// Returns whether the key before a value is that of a secret, with escapes of JSON.
fn has_escaped_name(found: &Found<'_>) -> bool {
    let key = found.before.trim_end_matches(['"', '\\', ' ', '\t', ':']);
    let key = key.rsplit('"').next().unwrap_or_default();
    let mut name = String::new();
    for (number, piece) in key.split("\\u00").enumerate() {
        let (code, rest) = match number {
            0 => ("", piece),
            _ => piece.split_at_checked(2).unwrap_or_default(),
        };
        name.extend(u8::from_str_radix(code, 16).ok().map(char::from));
        name.push_str(rest.trim_end_matches('\\'));
    }
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "passphrase", "pwd", "secret", "token"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Words of the names that programs give to values. Those with at most three letters are whole words.
const NAMES: &str = "account|admin|alg|algo|answer|arg|argon|array|auth|base|bcrypt|body|buffer|byte|bytes|cfg|char|client|confirm|\
    config|context|cred|ctx|current|data|database|db|decode|default|encode|encrypt|entry|env|error|expected|field|file|\
    foo|form|from|generate|get|given|hash|header|id|in|index|input|int|json|key|len|length|line|list|login|make|map|member|\
    method|my|name|new|next|node|null|num|object|old|option|out|output|param|parse|pass|path|pbkdf|plain|prop|pw|pwd|random|\
    raw|read|repeat|req|request|res|response|result|row|scrypt|secret|self|server|session|setting|sha|state|step|str|\
    string|temp|test|text|this|tmp|token|type|uint|url|user|utf|val|value|var|word|write";

/// Names of algorithms and formats with numbers of more than two digits.
const NUMBERED: [&str; 8] = ["aes", "crc", "curve", "ed", "rsa", "secp", "sha", "varchar"];

/// Returns whether an identifier is made of words that name a value in a program. Such words are counted with one or two
/// digits; a longer number, such as a year, belongs to a password.
fn is_name(text: &str) -> bool {
    let mut words = vec![String::new()];
    let mut last = '_';
    for c in text.chars() {
        if !c.is_ascii_alphabetic() || (c.is_ascii_uppercase() && last.is_ascii_lowercase()) {
            words.push(String::new());
        }
        let word = words.last_mut().filter(|_| c.is_ascii_alphabetic());
        word.into_iter()
            .for_each(|word| word.push(c.to_ascii_lowercase()));
        last = c;
    }
    let is = |word: &String, name: &str| word == name || (name.len() > 3 && word.contains(name));
    let has = |name: &str| words.iter().any(|word| is(word, name));
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    NUMBERED.into_iter().any(has)
        || (NAMES.split('|').any(has) && !numbers.any(|number| number.len() > 2))
}

/// Returns whether an expression goes on behind a value: it is called or indexed, or an operator follows.
fn goes_on(found: &Found<'_>) -> bool {
    let after = found.after;
    let is_tight = found.before.ends_with('=');
    let next = after.trim_start_matches([' ', '\t']);
    let has_operator = !is_tight
        && next.len() < after.len()
        && next.starts_with(['+', '*', '/', '%', '?', '=', '<', '>', '!', '&', '|', '.'])
        && !next.starts_with("//");
    after.starts_with(['(', '[', '{', '<']) || has_operator
}

/// Returns whether an assigned value is a literal: in quotes, after an option, after a variable of a shell, or no
/// expression of a programming language.
fn is_literal(found: &Found<'_>) -> bool {
    let name = found.before.rsplit(is_gap).find(|word| !word.is_empty());
    let is_assigned = |name: &str| {
        let variable = name.strip_suffix('=');
        name.starts_with("--")
            || variable.is_some_and(|name| name.ends_with(|c: char| c.is_ascii_uppercase()))
    };
    if is_reference(found.value) {
        return false;
    }
    if found.is_quoted || name.is_some_and(is_assigned) || !is_code(found.value) {
        return true;
    }
    let before = found.before.trim_end();
    let is_setting = !["==", ":="].iter().any(|sign| before.ends_with(sign))
        && (!before.ends_with("=>") || is_clear(found));
    is_setting && !goes_on(found) && !is_name(found.value)
}

/// Returns whether a text has letters and what else passwords are made of, and is no placeholder.
fn has_password(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_alphabetic())
        && text.contains(|c: char| c.is_ascii_digit() || "!@#$%^&*?~+".contains(c))
        && !is_placeholder(text)
        && !text.starts_with(['*', '&', '@'])
}

/// Returns whether the value of a password's name is a password.
fn is_password(found: &Found<'_>) -> bool {
    let before = found.before.trim_end_matches(' ');
    let is_clear = !before.ends_with('\t') || is_clear(found);
    (has_password(found.value) && is_clear && is_literal(found)) || is_of_letters(found)
}

/// Returns whether a value in quotes has letters alone, but is no word about passwords.
fn is_of_letters(found: &Found<'_>) -> bool {
    let words = [
        "ciphertext",
        "compromised",
        "configured",
        "description",
        "documented",
        "duplicates",
        "encoding",
        "encrypted",
        "expiration",
        "forgotten",
        "generated",
        "important",
        "incorrect",
        "mandatory",
        "mismatched",
        "plaintext",
        "prohibited",
        "protected",
        "sensitive",
        "unchanged",
        "unencrypted",
    ];
    let lower = found.value.to_ascii_lowercase();
    found.is_quoted
        && found.value.len() >= 8
        && found.value.bytes().all(|byte| byte.is_ascii_alphabetic())
        && entropy(&lower) >= 3.0
        && !is_name(found.value)
        && !is_placeholder(found.value)
        && !is_common_word(found.value)
        && !words.contains(&lower.as_str())
}

/// Returns whether a value cannot be a name of a program: in quotes, with other characters, or with a number as a year.
fn is_clear(found: &Found<'_>) -> bool {
    let mut numbers = found.value.split(|c: char| !c.is_ascii_digit());
    found.is_quoted
        || !is_code(found.value)
        || found.value.ends_with('!')
        || numbers.any(|number| number.len() > 2)
}

/// The same for a name that other things have as well, such as a module.
fn is_password_of_pw(found: &Found<'_>) -> bool {
    is_clear(found) && is_password(found)
}

/// The same for a name that reports of tests have as well, such as `PASS: tests/a2.rs`.
fn is_password_of_pass(found: &Found<'_>) -> bool {
    (found.is_quoted || found.before.ends_with('=')) && is_password(found)
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

/// Returns whether the value of a name that ends with `key` is secret: drawn at random, and not the key of an entry.
fn is_key(found: &Found<'_>) -> bool {
    let name = found.before.to_ascii_lowercase();
    let name = name.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let name = name.strip_suffix("key").unwrap_or(name);
    let name = name.trim_end_matches(['_', '-']);
    let others = [
        "cache",
        "content",
        "dedup",
        "dedupe",
        "entry",
        "file",
        "foreign",
        "group",
        "hash",
        "host",
        "idempotency",
        "index",
        "lookup",
        "lock",
        "map",
        "object",
        "partition",
        "primary",
        "pub",
        "public",
        "query",
        "row",
        "s3",
        "sort",
        "unique",
    ];
    // Letters and digits take turns more often than in words with numbers.
    let kind = |c: char| {
        (
            c.is_ascii_digit(),
            c.is_ascii_uppercase(),
            c.is_ascii_alphanumeric(),
        )
    };
    let turns = found.value.chars().zip(found.value.chars().skip(1));
    let turns = turns.filter(|(one, next)| {
        let (one, next) = (kind(*one), kind(*next));
        one.2 && next.2 && (one.0 != next.0 || (next.1 && !one.1))
    });
    found.value.len() >= 16
        && turns.count() * 4 >= found.value.len()
        && is_random(found.value, 3.0)
        && !is_uuid(found.value)
        && !is_reference(found.value)
        && !others.iter().any(|other| name.ends_with(other))
}

/// Returns whether a text has a user and a password in Base64, as in a configuration of docker.
fn is_basic(found: &Found<'_>) -> bool {
    !is_placeholder(found.value) && user_and_password(found.value).is_some()
}

/// Returns whether the value of a cookie may be the key of a session.
fn is_cookie(found: &Found<'_>) -> bool {
    is_random(found.value, 2.5) && !(is_code(found.value) && is_name(found.value))
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
    let in_url = found.before.rsplit(is_gap).next().is_some_and(|before| {
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
    let mut words = before.rsplit(is_gap).take(4);
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
