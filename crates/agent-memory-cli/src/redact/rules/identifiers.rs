//! Identifiers and expressions of programming languages.

use crate::redact::found::Found;

/// Returns whether a text is a name or an expression of a programming language, such as `config.token2`.
pub(super) fn is_code(text: &str) -> bool {
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
pub(super) fn is_name(text: &str) -> bool {
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
pub(super) fn goes_on(found: &Found<'_>) -> bool {
    let after = found.after;
    let is_tight = found.before.ends_with('=');
    let next = after.trim_start_matches([' ', '\t']);
    let has_operator = !is_tight
        && next.len() < after.len()
        && next.starts_with(['+', '*', '/', '%', '?', '=', '<', '>', '!', '&', '|', '.'])
        && !next.starts_with("//");
    after.starts_with(['(', '[', '{', '<']) || has_operator
}
