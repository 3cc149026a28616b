//! Kinds of secrets and personal data: the patterns that find them, and the tests of the found values.

mod credentials;
mod forms;
mod identifiers;
mod personal;
mod placeholders;
mod randomness;

use regex::Regex;

use self::credentials::{
    is_basic, is_key, is_password, is_password_of_pass, is_password_of_pw, is_secret,
    user_and_password,
};
use self::forms::{FORMS, PERSONAL};
use self::placeholders::is_own;
use super::found::{Found, Test};
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
