//! MemoryCode's dialogues: a mentor gives rules for names in code, and replaces some of them in later sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use regex::Regex;
use serde_json::Value;

use crate::files::{files, json};

/// Subjects of rules, longest names first, with their words; imports and comments have none.
const NOUNS: [(&str, &str); 8] = [
    ("function argument", r"(?i)\b(arguments?|parameters?)\b"),
    ("function", r"(?i)\bfunctions?\b"),
    ("method", r"(?i)\bmethods?\b"),
    ("class", r"(?i)\bclass(es)?\b"),
    ("variable", r"(?i)\bvariables?\b"),
    ("attribute", r"(?i)\battributes?\b"),
    ("import", ""),
    ("comment", ""),
];

/// Values that rules name without quotes.
const CASES: [(&str, &str); 3] = [
    ("all UPPERCASE", "UPPERCASE"),
    ("CamelCase", "CamelCase"),
    ("snake_case", "snake_case"),
];

/// A line counts as about the rule's subject by this many characters before and behind the value.
pub(super) const NEAR: usize = 160;

/// A dialogue as one session.
pub(super) struct Dialogue {
    /// The messages as JSON lines.
    pub(super) lines: Vec<u8>,
    /// Their texts, one after the other.
    pub(super) plain: String,
    pub(super) rules: Vec<Rule>,
}

/// A rule with its values.
pub(super) struct Rule {
    /// The current value.
    pub(super) current: Meant,
    /// Earlier values.
    pub(super) stale: Vec<Meant>,
    /// Questions for the rule: a general one and an exact one. Some kinds of rules have none.
    pub(super) questions: Option<[String; 2]>,
}

/// A value of a rule and the subject that it is found by.
pub(super) struct Meant {
    text: String,
    value: Regex,
    noun: Option<Regex>,
}

impl Meant {
    fn new(text: &str, noun: &str) -> anyhow::Result<Self> {
        let any_case = CASES.iter().any(|(_, case)| *case == text);
        let case = if any_case { "(?i)" } else { "" };
        let noun = NOUNS.iter().find(|(name, _)| *name == noun);
        let noun = noun
            .map(|(_, words)| *words)
            .filter(|words| !words.is_empty());
        Ok(Self {
            value: Regex::new(&format!("{case}{}", regex::escape(text)))?,
            noun: noun.map(Regex::new).transpose()?,
            text: text.to_owned(),
        })
    }

    /// The lines of a text with the value as a word of its own, and its subject near it.
    pub(super) fn lines<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let is_inside = |c: char| c.is_alphanumeric() || c == '_';
        self.value.find_iter(text).filter_map(move |found| {
            let (before, after) = (&text[..found.start()], &text[found.end()..]);
            if before.ends_with(is_inside) || after.starts_with(is_inside) {
                return None;
            }
            let first = before.rfind('\n').map_or(0, |at| at + 1);
            let last = after.find('\n').map_or(text.len(), |at| found.end() + at);
            let near_first = text.floor_char_boundary(found.start().saturating_sub(NEAR));
            let near_last = text.ceil_char_boundary((found.end() + NEAR).min(text.len()));
            let near = &text[first.max(near_first)..last.min(near_last)];
            let is_about = self.noun.as_ref().is_none_or(|noun| noun.is_match(near));
            is_about.then(|| &text[first..last])
        })
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.lines(text).next().is_some()
    }
}

/// Reads the dialogues of a folder, by file name; never none.
///
/// # Errors
/// When the folder has none, or a file cannot be read.
pub(super) fn dialogues(folder: &Path) -> anyhow::Result<Vec<Dialogue>> {
    let read = |path: &PathBuf| {
        let dialogue = Dialogue::of(&json(path)?);
        dialogue.with_context(|| path.display().to_string())
    };
    files(folder, ".json")?.iter().map(read).collect()
}

impl Dialogue {
    fn of(dialogue: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = ["mentor", "mentee"].map(|role| text(&dialogue["context"][role]));
        let sessions = list(&dialogue["sessions"]);
        let (mut lines, mut said) = (Vec::new(), Vec::new());
        for (day, session) in sessions.iter().enumerate() {
            let turns = turns(&text(&session["text"]), &names)?;
            for (minute, (name, text)) in turns.iter().enumerate() {
                let role = if *name == names[0] {
                    "user"
                } else {
                    "assistant"
                };
                let time = jiff::civil::date(2024, 1, 1).at(9, 0, 0, 0)
                    + jiff::Span::new().try_days(i64::try_from(day)?)?
                    + jiff::Span::new().try_minutes(i64::try_from(minute)?)?;
                let line = serde_json::json!({
                    "role": role,
                    "name": name,
                    "content": text,
                    "created_at": format!("{time}Z"),
                    "external_id": format!("S{day}:{minute}"),
                });
                lines.extend_from_slice(format!("{line}\n").as_bytes());
            }
            let texts: Vec<&str> = turns.iter().map(|(_, text)| text.as_str()).collect();
            said.push(texts.join("\n"));
        }
        let mut rules = Vec::new();
        for values in chains(sessions, list(&dialogue["instructions"])).into_values() {
            rules.extend(Rule::of(&values, &said)?);
        }
        Ok(Self {
            lines,
            plain: said.join("\n"),
            rules,
        })
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The rules of a dialogue by their numbers: in which session each value was given, and in which words.
fn chains<'a>(sessions: &'a [Value], numbers: &[Value]) -> BTreeMap<i64, Vec<(usize, &'a str)>> {
    let mut out: BTreeMap<i64, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, (session, numbers)) in sessions.iter().zip(numbers).enumerate() {
        let kinds = list(&session["type"]).iter().zip(list(&session["topic"]));
        let is_rule = |kind: &Value| kind.as_str().is_some_and(|k| k.starts_with("instruction"));
        let topics = kinds.filter_map(|(kind, topic)| is_rule(kind).then_some(topic.as_str()?));
        for (topic, number) in topics.zip(list(numbers)) {
            let number = number.get(0).unwrap_or(number).as_i64();
            out.entry(number.unwrap_or_default())
                .or_default()
                .push((at, topic));
        }
    }
    out
}

/// The turns of a session: a line without a speaker belongs to the turn before.
fn turns(session: &str, names: &[String; 2]) -> anyhow::Result<Vec<(String, String)>> {
    let [mentor, mentee] = names.each_ref().map(|name| regex::escape(name));
    let speaker = Regex::new(&format!(r"^\**({mentor}|{mentee})\**\s*:\s*(.*)$"))?;
    let mut turns: Vec<(String, String)> = Vec::new();
    for line in session
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        match (speaker.captures(line), turns.last_mut()) {
            (Some(found), _) => turns.push((found[1].to_owned(), found[2].to_owned())),
            (None, Some((_, text))) => text.extend(["\n", line]),
            (None, None) => turns.push((names[0].clone(), line.to_owned())),
        }
    }
    Ok(turns)
}

impl Rule {
    /// A rule with a value that can be found; `None` for others, and if its own session does not show the value.
    fn of(values: &[(usize, &str)], said: &[String]) -> anyhow::Result<Option<Self>> {
        let (Some((_, first)), Some((at, topic))) = (values.first(), values.last()) else {
            return Ok(None);
        };
        let noun = NOUNS.iter().find(|(noun, _)| first.contains(noun));
        let noun = noun.map_or("", |(noun, _)| noun);
        let Some(current) = literal(topic) else {
            return Ok(None);
        };
        let current = Meant::new(current, noun)?;
        if !current.is_in(&said[*at]) {
            return Ok(None);
        }
        let mut stale: Vec<Meant> = Vec::new();
        for (at, topic) in values {
            let Some(text) = literal(topic) else { continue };
            let value = Meant::new(text, noun)?;
            let is_known = text == current.text || stale.iter().any(|known| known.text == text);
            if !is_known && value.is_in(&said[*at]) {
                stale.push(value);
            }
        }
        Ok(Some(Self {
            questions: questions(topic, noun)?,
            current,
            stale,
        }))
    }
}

/// The value that a rule names: its first quoted text that is no module, or a case.
fn literal(topic: &str) -> Option<&str> {
    let pieces: Vec<&str> = topic.split('\'').collect();
    let quoted = pieces[1..]
        .iter()
        .step_by(2)
        .zip(pieces[1..].iter().skip(1).step_by(2));
    let mut quoted =
        quoted.filter(|(text, after)| !text.is_empty() && !after.starts_with(" module"));
    let case = || CASES.iter().find(|(name, _)| topic.contains(name));
    match quoted.next() {
        Some((text, _)) => Some(text.trim_start_matches('@')),
        None => case().map(|(_, case)| *case),
    }
}

fn questions(topic: &str, noun: &str) -> anyhow::Result<Option<[String; 2]>> {
    let plural = if noun == "class" {
        "classes".to_owned()
    } else {
        format!("{noun}s")
    };
    let specific =
        if let Some(found) = Regex::new("always (start|end) .*names with")?.captures(topic) {
            format!("What should {noun} names {} with?", &found[1])
        } else if Regex::new("always use .* for .*names")?.is_match(topic) {
            format!("Which case do we use for {noun} names?")
        } else {
            return Ok(None);
        };
    Ok(Some([
        format!("What is the rule for naming {plural}?"),
        specific,
    ]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dialogue() -> Dialogue {
        let session = |topic: &str, text: &str| json!({"type": ["filler-add", "instruction-add"], "topic": ["tea", topic], "text": text});
        let dialogue = json!({
            "context": {"mentor": "Ada", "mentee": "Bo"},
            "instructions": [[[7, 0]], [[7, 1]]],
            "sessions": [
                session("always end function names with '_fn'", "Ada: Function names end with '_fn'.\n\n**Bo**: Yes.\nSure."),
                session("always end function names with '_do'", "Ada: From now on functions end with '_do', not x_do."),
            ],
        });
        Dialogue::of(&dialogue).unwrap()
    }

    #[test]
    fn the_last_value_of_a_rule_is_current() {
        let dialogue = dialogue();
        let rule = &dialogue.rules[0];
        assert_eq!(rule.current.text, "_do");
        assert_eq!(rule.stale.len(), 1);
        assert_eq!(
            rule.questions.as_ref().unwrap()[1],
            "What should function names end with?"
        );
        assert!(dialogue.plain.contains("Yes.\nSure.\nFrom now on"));
        let lines = String::from_utf8(dialogue.lines).unwrap();
        let last = r#""created_at":"2024-01-02T09:00:00Z""#;
        assert!(lines.lines().last().unwrap().contains(last), "{lines}");
    }

    #[test]
    fn a_value_is_a_word_near_its_subject() {
        let dialogue = dialogue();
        let value = &dialogue.rules[0].current;
        assert!(value.is_in("a function ends with '_do'"));
        assert!(!value.is_in("a function is called x_do"));
        assert!(!value.is_in("a method ends with '_do'\nfunction"));
        let far = format!("function {} '_do'", "x ".repeat(NEAR));
        assert!(!value.is_in(&far));
    }
}
