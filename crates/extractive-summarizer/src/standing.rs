//! Puts users' rules on lines of their own, and leaves out or marks what a later sentence replaces.

use std::borrow::Cow;

use memory_model::Seq;

use crate::item::{Item, Kind, PASTED, REPLACED, RULE, TYPED, VALUED};
use crate::rules::{Force, Statement, force, refers, statements};
use crate::text::line_sentences;

/// Number of the newest statements that are compared.
const COMPARED: usize = 256;
/// Maximum number of sentences of a message that are read.
const SENTENCES: usize = 400;
/// Number of letters and digits below which a message with a rule stays as it is.
const BESIDE: usize = 40;
/// Maximum length of a sentence that is told with the rule that refers to it, in bytes.
const LEAD: usize = 240;
/// Maximum length of an assistant's message that is searched for what was replaced, in bytes.
const REPLY: usize = 2_000;

/// Beginning and end of the mark at a sentence of which a later one replaces a part.
const LATER: &str = " (later: [";
const IN_PART: &str = "] in part)";

/// A sentence of a user's message.
struct Sentence {
    line: usize,
    text: String,
    force: Force,
    statements: Vec<Statement>,
    fate: Fate,
    /// Whether the next sentence, a rule, says what this one is about.
    leads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Live,
    /// A later sentence says the same.
    Repeated,
    /// The sentence of this message says something else.
    Replaced(Seq),
    /// It says something else of one of several things.
    InPart(Seq),
}

impl Sentence {
    /// Its text, with a mark where a part of it was replaced.
    fn printed(&self) -> Cow<'_, str> {
        match self.fate {
            Fate::InPart(seq) => Cow::Owned(format!("{}{LATER}{seq}{IN_PART}", self.text)),
            _ => Cow::Borrowed(&self.text),
        }
    }
}

/// A user's message, read sentence by sentence.
struct Told {
    item: usize,
    seq: Seq,
    sentences: Vec<Sentence>,
}

/// Splits users' messages into what they say, their rules, and what was replaced.
pub(crate) fn apply(items: &mut Vec<Item>) {
    let mut told: Vec<Told> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if item.kind == Kind::User && item.later.is_none() && item.weight >= PASTED {
            told.push(read(at, item));
        }
    }
    let replaced = compare(&mut told);
    forget(items, &replaced);
    let mut told = told.into_iter().peekable();
    let mut out = Vec::with_capacity(items.len());
    for (at, item) in items.drain(..).enumerate() {
        match told.next_if(|told| told.item == at) {
            Some(told) => split(item, told.sentences, &mut out),
            None => out.push(item),
        }
    }
    *items = out;
}

fn read(at: usize, item: &Item) -> Told {
    let mut sentences: Vec<Sentence> = Vec::new();
    let mut code = false;
    for (line, text) in item.lines.iter().enumerate() {
        let fence = text.trim_start().starts_with("```");
        code ^= fence;
        let parts = match code || fence {
            true => vec![text.clone()],
            false => line_sentences(text),
        };
        for text in parts {
            if sentences.len() > SENTENCES {
                break;
            }
            let plain = !code && !fence && !text.contains(" (to [");
            let (said, fate) = marked(&text);
            let before = sentences.last().filter(|before| before.line == line);
            let statements = match plain {
                true => statements(said, before.map(|before| before.text.as_str())),
                false => Vec::new(),
            };
            sentences.push(Sentence {
                line,
                force: if plain { force(said) } else { Force::None },
                statements,
                text: said.to_owned(),
                fate,
                leads: false,
            });
        }
    }
    for n in 1..sentences.len() {
        let refers = sentences
            .get(n)
            .is_some_and(|one| one.force >= Force::Rule && refers(&one.text));
        if let Some(before) = sentences.get_mut(n - 1) {
            before.leads = refers && before.force < Force::Rule && before.text.len() < LEAD;
        }
    }
    Told {
        item: at,
        seq: item.range.first,
        sentences,
    }
}

/// A sentence without the mark that an earlier extract gave it, and what the mark says.
fn marked(text: &str) -> (&str, Fate) {
    let found = text.strip_suffix(IN_PART).and_then(|rest| {
        let (said, seq) = rest.rsplit_once(LATER)?;
        Some((said, Fate::InPart(Seq(seq.parse().ok()?))))
    });
    found.unwrap_or((text, Fate::Live))
}

/// Finds which sentences later ones repeat or replace, the newest first. Returns the replaced statements with the item of
/// the sentence that replaces them.
fn compare(told: &mut [Told]) -> Vec<(usize, Statement)> {
    let mut later: Vec<(usize, Seq, Statement)> = Vec::new();
    let mut replaced = Vec::new();
    for told in told.iter_mut().rev() {
        let mut own = Vec::new();
        for sentence in told.sentences.iter_mut().rev() {
            let (mut repeated, mut changed) = (0, None);
            let all = sentence.statements.len();
            let mut live = Vec::new();
            for statement in &sentence.statements {
                // The newest statement about the subject.
                let about = later.iter().find_map(|(item, seq, later)| match () {
                    () if later.replaces(statement) => Some((*item, Some(*seq))),
                    () if later.repeats(statement) => Some((*item, None)),
                    () => None,
                });
                match about {
                    Some((item, Some(seq))) => {
                        changed = changed.max(Some(seq));
                        replaced.push((item, statement.clone()));
                    }
                    Some((_, None)) => repeated += 1,
                    None => live.push((told.item, told.seq, statement.clone())),
                }
            }
            sentence.fate = match changed {
                Some(seq) if live.is_empty() => Fate::Replaced(seq),
                Some(seq) => Fate::InPart(seq),
                None if all > 0 && repeated == all && sentence.force >= Force::Rule => {
                    Fate::Repeated
                }
                None => sentence.fate,
            };
            if later.len() < COMPARED {
                own.append(&mut live);
            }
        }
        later.append(&mut own);
    }
    replaced
}

/// Takes from short replies the sentences that name what a user replaced later.
fn forget(items: &mut [Item], replaced: &[(usize, Statement)]) {
    if replaced.is_empty() {
        return;
    }
    for (at, item) in items.iter_mut().enumerate() {
        if item.kind != Kind::Reply || item.bytes() > REPLY {
            continue;
        }
        let stale = |sentence: &str| {
            let mut later = replaced.iter().filter(|(by, _)| *by > at);
            later.any(|(_, statement)| statement.is_named_in(sentence))
        };
        for line in &mut item.lines {
            let sentences = line_sentences(line);
            if sentences.iter().any(|sentence| stale(sentence)) {
                *line = joined(
                    sentences
                        .iter()
                        .map(|one| (Cow::Borrowed(one.as_str()), !stale(one))),
                );
            }
        }
        item.lines
            .retain(|line| line.chars().any(char::is_alphanumeric));
        if item.lines.is_empty() {
            item.weight = 0;
        }
    }
}

/// Sentences on one line, with `…` in the place of those that are left out.
fn joined<'a>(sentences: impl Iterator<Item = (Cow<'a, str>, bool)>) -> String {
    let mut out = String::new();
    for (text, kept) in sentences {
        let text = if kept { &*text } else { "…" };
        if !kept && out.ends_with('…') {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(text);
    }
    out
}

/// Adds a message: what it says, its rules, and what was replaced.
fn split(item: Item, sentences: Vec<Sentence>, out: &mut Vec<Item>) {
    let kept = |one: &Sentence| matches!(one.fate, Fate::Live | Fate::InPart(_));
    let is_rule = |one: &Sentence| one.force >= Force::Rule && kept(one);
    let rest = |one: &Sentence| one.force < Force::Rule && kept(one) && !one.leads;
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let beside: usize = sentences
        .iter()
        .filter(|one| rest(one))
        .map(|one| letters(&one.text))
        .sum();
    let live = sentences.iter().all(|one| one.fate == Fate::Live);
    let rules = sentences.iter().any(|one| is_rule(one));
    let weight = |valued: bool| match item.weight < TYPED {
        true => item.weight + 1,
        false if valued => VALUED,
        false => RULE,
    };
    if live && (!rules || beside < BESIDE) {
        let valued = sentences.iter().any(|one| one.force == Force::Value);
        let weight = if rules { weight(valued) } else { item.weight };
        out.push(Item { weight, ..item });
        return;
    }
    let part = |lines: Vec<String>, weight| {
        Item::new(item.range, Kind::User, &item.label, weight).with_lines(lines)
    };
    let mut lines: Vec<String> = Vec::new();
    for (n, line) in item.lines.iter().enumerate() {
        let of_line = || sentences.iter().filter(|one| one.line == n);
        match of_line().all(|one| rest(one)) {
            true => lines.push(line.clone()),
            false if of_line().any(|one| rest(one)) => {
                lines.push(joined(of_line().map(|one| (one.printed(), rest(one)))));
            }
            false => {}
        }
    }
    if lines
        .iter()
        .any(|line| line.chars().any(char::is_alphanumeric))
    {
        out.push(part(lines, item.weight));
    }
    for force in [Force::Value, Force::Rule] {
        let mut lines = Vec::new();
        for (n, one) in sentences.iter().enumerate() {
            if !is_rule(one) || one.force != force {
                continue;
            }
            let lead = n.checked_sub(1).and_then(|n| sentences.get(n));
            lines.push(match lead.filter(|lead| lead.leads) {
                Some(lead) => format!("{} {}", lead.text, one.printed()),
                None => one.printed().into_owned(),
            });
        }
        if !lines.is_empty() {
            out.push(part(lines, weight(force == Force::Value)));
        }
    }
    for one in &sentences {
        if let Fate::Replaced(seq) = one.fate {
            let mut item = part(vec![one.text.clone()], REPLACED);
            item.later = Some(seq);
            out.push(item);
        }
    }
}
