//! A sentence as clauses of words.

use crate::scripts::is_unspaced;

/// Word in place of a quotation, code or a path among words.
pub(super) const NAME: &str = "qq";
/// Word in place of a number.
pub(super) const NUMBER: &str = "0";
/// Character in place of a quotation.
const QUOTED: char = '\u{1}';

/// A word of a clause, or a run of characters of a script without spaces, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Run(String),
}

/// A sentence, divided into clauses.
#[derive(Debug, Default)]
pub(super) struct Clauses {
    /// The sentence in lower case, without the mark of a list.
    pub(super) text: String,
    pub(super) clauses: Vec<Vec<Token>>,
    pub(super) is_listed: bool,
}

/// Words between two clauses.
const JOINTS: [&str; 5] = ["and", "but", "so", "und", "aber"];

impl Clauses {
    pub(super) fn of(sentence: &str) -> Self {
        let (body, is_listed) = without_mark(sentence.trim());
        let text = without_quotations(body);
        let mut out = Self {
            clauses: vec![Vec::new()],
            is_listed,
            ..Self::default()
        };
        for chunk in text.split_whitespace() {
            out.read(chunk);
        }
        out.clauses.retain(|clause| !clause.is_empty());
        out.text = text.replace(QUOTED, NAME);
        out
    }

    /// Returns the words of the sentence.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.clauses
            .iter()
            .flatten()
            .filter_map(|token| match token {
                Token::Word(word) => Some(word.as_str()),
                Token::Run(_) => None,
            })
    }

    fn end_clause(&mut self) {
        if self.clauses.last().is_some_and(|clause| !clause.is_empty()) {
            self.clauses.push(Vec::new());
        }
    }

    fn push(&mut self, token: Token) {
        if let Token::Word(word) = &token
            && JOINTS.contains(&word.as_str())
        {
            return self.end_clause();
        }
        if let Some(clause) = self.clauses.last_mut() {
            clause.push(token);
        }
    }

    /// Reads the characters between two spaces.
    fn read(&mut self, chunk: &str) {
        if matches!(chunk, "-" | "--" | "->" | "=>" | "→") {
            return self.end_clause();
        }
        let is_mark = |c: char| !c.is_alphanumeric() && c != QUOTED;
        let inner = chunk.trim_matches(is_mark);
        let begins = chunk.find(inner).unwrap_or(0);
        let (before, rest) = chunk.split_at_checked(begins).unwrap_or(("", chunk));
        if before.contains(ends_clause) {
            self.end_clause();
        }
        if is_name(inner) || before.starts_with("--") && !inner.is_empty() {
            self.push(Token::Word(NAME.to_owned()));
        } else {
            self.read_words(inner);
        }
        let behind = rest.get(inner.len()..).unwrap_or("");
        if behind.contains(ends_clause) {
            self.end_clause();
        }
    }

    fn read_words(&mut self, chunk: &str) {
        let mut chars = chunk.char_indices().peekable();
        while let Some((start, first)) = chars.next() {
            if ends_clause(first) {
                self.end_clause();
            }
            if !first.is_alphanumeric() {
                continue;
            }
            let kind = |c: char| (is_unspaced(c), c.is_numeric());
            let joins = |c: char| {
                (c.is_alphanumeric() && kind(c) == kind(first)) || (c == '\'' && !kind(first).0)
            };
            let mut end = start + first.len_utf8();
            while let Some((at, c)) = chars.next_if(|(_, c)| joins(*c)) {
                end = at + c.len_utf8();
            }
            let text = chunk.get(start..end).unwrap_or("");
            self.push(match kind(first) {
                (true, _) => Token::Run(text.to_owned()),
                (_, true) => Token::Word(NUMBER.to_owned()),
                _ => Token::Word(text.trim_end_matches('\'').to_owned()),
            });
        }
    }
}

/// Returns whether a character ends a clause.
fn ends_clause(c: char) -> bool {
    matches!(
        c,
        ',' | ';'
            | ':'
            | '.'
            | '!'
            | '?'
            | '('
            | ')'
            | '—'
            | '–'
            | '、'
            | '，'
            | '；'
            | '：'
            | '。'
            | '！'
            | '？'
    )
}

/// Returns whether the characters between two spaces are a quotation, a path, a name in code or an address.
fn is_name(chunk: &str) -> bool {
    let inside = |mark: char| {
        let mut parts = chunk.split(mark);
        let first = parts.next().unwrap_or("");
        let ends =
            |part: &str, c: Option<char>| !part.is_empty() && c.is_some_and(char::is_alphanumeric);
        parts.any(|part| ends(first, first.chars().next_back()) && ends(part, part.chars().next()))
    };
    let is_plain = |c: char| !is_unspaced(c);
    chunk.contains([QUOTED, '_', '\\', '@'])
        || (chunk.chars().all(is_plain) && (inside('.') || inside('/') || inside(':')))
}

/// Returns a sentence without the mark of a list or heading before it, and whether it has one.
fn without_mark(sentence: &str) -> (&str, bool) {
    let rest = sentence.trim_start_matches(['-', '*', '•', '#', '>', '+']);
    let digits = sentence.trim_start_matches(|c: char| c.is_ascii_digit());
    let ordinal = digits
        .strip_prefix(['.', ')'])
        .filter(|_| digits.len() < sentence.len());
    let rest = ordinal.unwrap_or(rest);
    match rest.len() < sentence.len() && rest.starts_with(' ') {
        true => (rest.trim_start(), true),
        false => (sentence, sentence.starts_with('•')),
    }
}

/// Returns a text in lower case with [`QUOTED`] in place of code and quotations, and without emphasis.
fn without_quotations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let behind = rest.get(first.len_utf8()..).unwrap_or("");
        let close = match first {
            '`' | '"' => Some(first),
            '“' => Some('”'),
            '「' => Some('」'),
            '『' => Some('』'),
            '«' => Some('»'),
            '\'' | '‘' if !out.ends_with(char::is_alphanumeric) => {
                Some(if first == '‘' { '’' } else { first })
            }
            _ => None,
        };
        let end = close.and_then(|close| {
            behind.char_indices().find_map(|(at, c)| {
                let next = behind
                    .get(at + c.len_utf8()..)
                    .and_then(|next| next.chars().next());
                // An apostrophe within a word closes nothing.
                let is_end = c == close
                    && !(matches!(c, '\'' | '’') && next.is_some_and(char::is_alphanumeric));
                is_end.then_some(at + c.len_utf8())
            })
        });
        match end {
            Some(end) => {
                out.extend([' ', QUOTED, ' ']);
                rest = behind.get(end..).unwrap_or("");
            }
            None => {
                match first {
                    '’' => out.push('\''),
                    '*' => {}
                    _ => out.extend(first.to_lowercase()),
                }
                rest = behind;
            }
        }
    }
    out
}
