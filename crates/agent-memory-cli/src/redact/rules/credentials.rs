//! Credentials: the tests of passwords, keys and tokens.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::identifiers::{goes_on, is_code, is_name};
use super::placeholders::{is_common_word, is_placeholder, is_reference};
use super::randomness::{entropy, is_random, is_uuid};
use crate::redact::found::{Found, is_gap};
use crate::redact::signs;

/// Returns the user and the password in a text in Base64; `None` if it is something else.
pub(super) fn user_and_password(text: &str) -> Option<(String, String)> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, config).decode(text).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    let is_one = !text.contains(char::is_control) && !password.is_empty();
    is_one.then(|| (user.to_owned(), password.to_owned()))
}

/// Returns whether the value of a header is a token, or a user and a password in Base64. After the name of a scheme, and
/// that of the header or in ten characters, it needs not look random.
pub(super) fn is_credential(found: &Found<'_>) -> bool {
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
pub(super) fn is_password(found: &Found<'_>) -> bool {
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
pub(super) fn is_password_of_pw(found: &Found<'_>) -> bool {
    is_clear(found) && is_password(found)
}

/// The same for a name that reports of tests have as well, such as `PASS: tests/a2.rs`.
pub(super) fn is_password_of_pass(found: &Found<'_>) -> bool {
    (found.is_quoted || found.before.ends_with('=')) && is_password(found)
}

/// Returns whether the value of a secret's name is a secret.
pub(super) fn is_secret(found: &Found<'_>) -> bool {
    let lower = found.value.to_ascii_lowercase();
    let names = ["token", "secret", "password", "_key", "-key"];
    found.value.len() >= 16
        && is_random(found.value, 3.0)
        && !is_uuid(found.value)
        && !names.iter().any(|name| lower.contains(name))
        && is_literal(found)
}

/// Returns whether the value of a name that ends with `key` is secret: drawn at random, and not the key of an entry.
pub(super) fn is_key(found: &Found<'_>) -> bool {
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
pub(super) fn is_basic(found: &Found<'_>) -> bool {
    !is_placeholder(found.value) && user_and_password(found.value).is_some()
}

/// Returns whether the value of a cookie may be the key of a session.
pub(super) fn is_cookie(found: &Found<'_>) -> bool {
    is_random(found.value, 2.5) && !(is_code(found.value) && is_name(found.value))
}
