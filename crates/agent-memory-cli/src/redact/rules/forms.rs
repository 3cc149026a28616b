//! Values of known forms: the patterns that find them.

use super::credentials::{is_cookie, is_credential, is_password};
use super::personal::{is_email, is_ipv4, is_ipv6};
use super::placeholders::is_own;
use super::randomness::{is_drawn, is_random, is_uuid};
use crate::redact::found::{Found, Test};

/// The kinds with a form of their own, in the order in which they are looked for. The value is the pattern's group `q` in
/// quotes, its group `v`, or all that it matches.
pub(super) const FORMS: [(&str, &str, Test); 28] = [
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
pub(super) const PERSONAL: usize = 5;

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

/// Returns whether a block has a line of Base64, and not only code about such blocks.
fn has_base64(found: &Found<'_>) -> bool {
    let mut runs = found
        .value
        .split(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c));
    runs.any(|run| run.len() >= 24)
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
