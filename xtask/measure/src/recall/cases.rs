//! The conversations, their questions, and the messages that answer them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, ensure};
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use memory_model::{Role, Timestamp};
use serde_json::Value;

use crate::files::{files, json};

/// A message.
pub(crate) struct Turn {
    /// The participant's name, where the conversation has names.
    pub(crate) name: Option<String>,
    pub(crate) role: Role,
    pub(crate) text: String,
    pub(crate) time: Timestamp,
    /// Number of the session.
    pub(crate) session: usize,
}

/// A question.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) category: String,
    /// Numbers of the messages that answer it; never none.
    pub(crate) gold: BTreeSet<usize>,
}

/// A conversation and what is asked about it.
pub(crate) struct Case {
    pub(crate) turns: Vec<Turn>,
    pub(crate) questions: Vec<Question>,
}

/// Names of LoCoMo's categories, from 1 on. The fifth asks for facts that are false.
const CATEGORIES: [&str; 4] = ["multi-hop", "temporal", "open-domain", "single-hop"];

/// Reads the conversations of all files of LoCoMo in a folder.
///
/// # Errors
/// When the folder has none, or a file cannot be read.
pub(crate) fn locomo(folder: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in files(folder, ".json")? {
        let conversations = json(&path)?;
        let conversations = conversations.as_array().map_or(&[][..], Vec::as_slice);
        for conversation in conversations {
            cases.push(locomo_case(conversation).with_context(|| path.display().to_string())?);
        }
    }
    ensure!(
        !cases.is_empty(),
        "{} has no conversation: put LoCoMo's files there",
        folder.display()
    );
    Ok(cases)
}

fn locomo_case(value: &Value) -> anyhow::Result<Case> {
    let sessions = &value["conversation"];
    let (mut turns, mut ids) = (Vec::new(), BTreeMap::new());
    for session in 1.. {
        let key = format!("session_{session}");
        let Some(said) = sessions[key.as_str()].as_array() else {
            // A session may be dated and missing.
            if sessions[format!("{key}_date_time")].is_null() {
                break;
            }
            continue;
        };
        let time = text(&sessions[format!("{key}_date_time")]);
        let time = DateTime::strptime("%I:%M %p on %d %B, %Y", time)
            .with_context(|| format!("the time of {key}"))?;
        for turn in said {
            ids.insert(text(&turn["dia_id"]).to_owned(), turns.len());
            let said = [&turn["text"], &turn["blip_caption"]].map(text);
            turns.push(Turn {
                name: Some(text(&turn["speaker"]).to_owned()),
                role: Role::User,
                text: said.join(" ").trim().to_owned(),
                time: utc(time)?,
                session,
            });
        }
    }
    let asked = value["qa"].as_array().map_or(&[][..], Vec::as_slice);
    let questions = asked.iter().filter_map(|asked| {
        let category = usize::try_from(asked["category"].as_u64()?).ok()?;
        let evidence = asked["evidence"].as_array()?;
        let names = evidence.iter().flat_map(|one| turn_ids(text(one)));
        Some(Question {
            text: text(&asked["question"]).to_owned(),
            category: CATEGORIES.get(category.checked_sub(1)?)?.to_string(),
            gold: names.filter_map(|name| ids.get(&name).copied()).collect(),
        })
    });
    let questions = questions.filter(|question| !question.gold.is_empty());
    Ok(Case {
        questions: questions.collect(),
        turns,
    })
}

/// The ids `D1:2` in a text, however they are separated.
fn turn_ids(evidence: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for piece in evidence.split('D').skip(1) {
        let Some((session, rest)) = piece.split_once(':') else {
            continue;
        };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        if let (Ok(session), Ok(turn)) = (session.parse::<u32>(), digits.parse::<u32>()) {
            ids.push(format!("D{session}:{turn}"));
        }
    }
    ids
}

/// Reads the chats of BEAM in a folder.
///
/// # Errors
/// When the folder has none, or a file cannot be read.
pub(crate) fn beam(folder: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in files(folder, "-chat.json")? {
        let name = path
            .to_string_lossy()
            .replace("-chat.json", "-questions.json");
        let case = beam_case(&json(&path)?, &json(Path::new(&name))?);
        cases.push(case.with_context(|| path.display().to_string())?);
    }
    ensure!(
        !cases.is_empty(),
        "{} has no chat: put BEAM's files there",
        folder.display()
    );
    Ok(cases)
}

fn beam_case(chat: &Value, asked: &Value) -> anyhow::Result<Case> {
    let (mut turns, mut ids) = (Vec::new(), BTreeMap::new());
    let mut time = Timestamp(0);
    for (session, batch) in items(chat).iter().enumerate() {
        for message in items(&batch["turns"]).iter().flat_map(items) {
            if let Some(anchor) = message["time_anchor"].as_str()
                && let Ok(date) = strtime::parse("%B-%d-%Y", anchor)
            {
                time = utc(date.to_date()?.at(0, 0, 0, 0))?;
            }
            ids.insert(message["id"].as_u64(), turns.len());
            turns.push(Turn {
                name: None,
                role: match text(&message["role"]) {
                    "user" => Role::User,
                    _ => Role::Assistant,
                },
                text: without_marker(text(&message["content"])).to_owned(),
                time,
                session,
            });
        }
    }
    let mut questions = Vec::new();
    for (category, asked) in asked.as_object().into_iter().flatten() {
        for asked in items(asked) {
            let mut gold = BTreeSet::new();
            integers(&asked["source_chat_ids"], &mut |id| {
                gold.extend(ids.get(&Some(id)));
            });
            if !gold.is_empty() {
                questions.push(Question {
                    text: text(&asked["question"]).to_owned(),
                    category: category.replace('_', " "),
                    gold,
                });
            }
        }
    }
    Ok(Case { turns, questions })
}

/// The text without the marker `->-> N,M` that ends what users say in BEAM.
fn without_marker(text: &str) -> &str {
    let Some((said, marker)) = text.rsplit_once("->->") else {
        return text;
    };
    let is_marker = |c: char| c.is_ascii_digit() || c == ',' || c.is_whitespace();
    match marker.chars().all(is_marker) {
        true => said.trim_end(),
        false => text,
    }
}

/// Calls `f` with all integers in a value, at any depth.
fn integers(value: &Value, f: &mut impl FnMut(u64)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| integers(value, f)),
        Value::Object(values) => values.values().for_each(|value| integers(value, f)),
        other => other.as_u64().into_iter().for_each(f),
    }
}

fn utc(time: DateTime) -> anyhow::Result<Timestamp> {
    let time = time
        .in_tz("UTC")
        .or_else(|_| time.to_zoned(jiff::tz::TimeZone::UTC));
    Ok(Timestamp(time?.timestamp().as_microsecond()))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_however_it_is_written() {
        assert_eq!(turn_ids("D8:6; D9:17"), ["D8:6", "D9:17"]);
        assert_eq!(turn_ids("D30:05"), ["D30:5"]);
        assert!(turn_ids("D").is_empty() && turn_ids("D:11:26").is_empty());
    }

    #[test]
    fn markers_are_stripped() {
        assert_eq!(without_marker("plan it ->-> 1,12"), "plan it");
        assert_eq!(without_marker("a ->-> b"), "a ->-> b");
    }
}
