//! Replaces keys, tokens, passwords and personal data in texts by marks, such as `[redacted:github-token 1]`.
//!
//! Values are found by their form, or by the name that they are assigned to. A value that was found once is replaced
//! wherever it occurs: [`Redactor::learn`] reads all texts of an output before [`Redactor::text`] returns the first one.
//! Equal values get the same mark, numbered in the order of their first occurrence in the output.
//!
//! Ids that are hashes of contents become other ids, by a secret of the run, because a hash of the unredacted content
//! would confirm a guess.

mod found;
mod json;
mod known;
mod rules;
mod signs;
#[cfg(test)]
mod tests;
mod values;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use agent_memory::model::LogEntry;
use agent_memory::{Part, Role, Session};
use anyhow::Context as _;
use regex::{Captures, Regex};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::Value;

use self::found::Found;
use self::json::{decoded, is_json, string_at};
use self::known::Known;
use self::rules::{Rule, of_keys, of_texts, parts};
use self::values::{MARK, Values};
use crate::output::hex;

/// Begins a mark that a text had before it was redacted, so that no text can forge a mark.
const EARLIER: &str = "[was redacted:";

/// Maximum length of a request or of arguments that are read for an outline, in bytes.
const SHORT: usize = 4_096;

/// Returns a text as it is shown: unchanged without a redactor.
pub(crate) fn shown<'t>(redactor: Option<&Redactor>, text: &'t str) -> Cow<'t, str> {
    redactor.map_or(Cow::Borrowed(text), |redactor| redactor.text(text))
}

/// Replaces values in texts by marks, and counts them.
pub(crate) struct Redactor {
    rules: Vec<Rule>,
    /// Kinds of values by the end of a key of a JSON object.
    keys: Vec<Rule>,
    /// Ids that are hashes of contents, and the keys of JSON objects with ids of calls as values.
    ids: Option<(Regex, Regex)>,
    /// Keys of JSON objects with headers as values.
    headers: Regex,
    colors: Regex,
    secret: hmac::Key,
    values: RefCell<Values>,
    /// Values that were learned; `None` while texts are learned.
    known: RefCell<Option<Rc<Known>>>,
}

impl Redactor {
    /// Makes a redactor with a new secret.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut secret = [0; 32];
        let filled = SystemRandom::new().fill(&mut secret);
        filled
            .ok()
            .context("the system gives no random bytes for redacted ids")?;
        Self::with_secret(&secret)
    }

    /// Makes a redactor of secrets alone, for texts in which names, addresses and ids are needed.
    pub(crate) fn of_secrets() -> anyhow::Result<Self> {
        let mut redactor = Self::new()?;
        redactor
            .rules
            .retain(|rule| !known::WORDS.contains(&rule.kind));
        redactor.ids = None;
        Ok(redactor)
    }

    /// Makes a redactor with ids that come from a secret.
    fn with_secret(secret: &[u8]) -> anyhow::Result<Self> {
        Ok(Self {
            rules: of_texts()?,
            keys: of_keys()?,
            ids: Some((Regex::new(rules::IDS)?, Regex::new(rules::CALL_IDS)?)),
            headers: Regex::new(rules::HEADERS)?,
            colors: Regex::new(signs::CODES)?,
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret),
            values: RefCell::default(),
            known: RefCell::default(),
        })
    }

    /// Collects the values of a text, so that they are replaced in all texts that are shown.
    pub(crate) fn learn(&self, text: &str) {
        *self.known.borrow_mut() = None;
        self.changed(&signs::without(text));
    }

    /// Collects the values of a session: of its key, its title and all messages of its log.
    pub(crate) async fn learn_session(&self, session: &Session) -> anyhow::Result<()> {
        let conversation = session.info().await?.conversation;
        self.learn(session.key().as_str());
        self.learn(conversation.title.as_deref().unwrap_or_default());
        let mut rest = conversation.range();
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            self.learn_entries(&page.items)?;
            rest = page.next;
        }
        Ok(())
    }

    /// Collects the values of what users wrote and of the arguments of calls, as far as they are short: what an agent has
    /// to wait for takes a few milliseconds.
    pub(crate) fn learn_requests(&self, entries: &[LogEntry]) {
        for entry in entries {
            for part in &entry.message.parts {
                let text = match part {
                    Part::Text { text } if entry.message.role == Role::User => text.as_str(),
                    Part::ToolCall { arguments, .. } => arguments.as_str(),
                    _ => "",
                };
                if text.len() <= SHORT {
                    self.learn(text);
                }
            }
        }
    }

    /// Collects the values of messages.
    pub(crate) fn learn_entries(&self, entries: &[LogEntry]) -> Result<(), serde_json::Error> {
        for entry in entries {
            self.learn(&serde_json::to_string(&entry.to_export())?);
        }
        Ok(())
    }

    /// Returns a text with marks in place of secrets and personal data. In a text that is JSON only strings and keys
    /// change, so it stays JSON.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.known.borrow().is_none() {
            *self.known.borrow_mut() = Some(Rc::new(Known::of(&self.values.borrow().all)));
        }
        let text = signs::without(text);
        match self.changed(&text) {
            None => text,
            Some(changed) => {
                let mut values = self.values.borrow_mut();
                Cow::Owned(signs::with_marks(&changed, EARLIER, |number| {
                    values.shown(number)
                }))
            }
        }
    }

    /// Returns the words of a text that are in none of the values that were found so far or are in it.
    pub(crate) fn words(&self, text: &str) -> Vec<String> {
        let text = signs::without(text);
        let changed = self.changed(&text);
        let shown = changed.as_deref().unwrap_or(&text);
        let shown = signs::with_marks(shown, " ", |_| " ".to_owned());
        let all = &self.values.borrow().all;
        let words = shown.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !all.iter().any(|value| value.text.contains(*word)));
        words.map(str::to_owned).collect()
    }

    /// Returns the number of different values of each kind that were replaced.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.values.borrow().counts.clone()
    }

    /// Returns a line with the numbers of replaced values: `redacted: 2 email, 1 github-token`.
    pub(crate) fn report(&self) -> String {
        let counts = self.counts();
        let values = counts
            .iter()
            .map(|(kind, values)| format!("{values} {kind}"));
        match values.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "redacted: nothing".to_owned(),
            values => format!("redacted: {values}"),
        }
    }

    /// Returns a text with [signs](signs) for its values; `None` if it has none.
    fn changed(&self, text: &str) -> Option<String> {
        if is_json(text) {
            // The lines of a private key may be strings of a list.
            let key = self.rules.first().and_then(|key| self.replaced(key, text));
            let key = key.filter(|changed| is_json(changed));
            let rest = self.json(key.as_deref().unwrap_or(text));
            return rest.or(key);
        }
        let known = self.known.borrow().clone();
        let (shown, colors) = signs::without_colors(text, &self.colors);
        let mut shown = match shown.contains(MARK) {
            true => Cow::Owned(shown.replace(MARK, signs::EARLIER_MARK)),
            false => shown,
        };
        // A mark may end a value that another rule finds next to it.
        loop {
            let mut is_same = true;
            for rule in &self.rules {
                if let Some(changed) = self.replaced(rule, &shown) {
                    (shown, is_same) = (Cow::Owned(changed), false);
                }
            }
            if let Some(changed) = known.as_ref().and_then(|known| known.replaced(&shown)) {
                (shown, is_same) = (Cow::Owned(changed), false);
            }
            if is_same {
                break;
            }
        }
        let ids = self.ids.as_ref().map(|(ids, _)| {
            ids.replace_all(&shown, |id: &Captures<'_>| {
                let whole = id.get(0).map_or("", |id| id.as_str());
                let hash = id
                    .name("v")
                    .or(id.name("r"))
                    .map_or("", |hash| hash.as_str());
                let before = whole.strip_suffix(hash).unwrap_or_default();
                format!("{before}{}", self.id(hash))
            })
        });
        if let Some(Cow::Owned(ids)) = ids {
            shown = Cow::Owned(ids);
        }
        match shown {
            Cow::Borrowed(_) => None,
            Cow::Owned(shown) if colors.is_empty() => Some(shown),
            Cow::Owned(shown) => {
                Some(signs::with_colors(&shown, &colors)).filter(|new| new != text)
            }
        }
    }

    /// Replaces the values that one rule finds; `None` if there are none.
    fn replaced(&self, rule: &Rule, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        for found in rule.find(text) {
            out.push_str(text.get(copied..found.start).unwrap_or_default());
            out.push_str(&self.mark(rule.kind, found.value));
            copied = found.start + found.value.len();
        }
        (copied > 0).then(|| out + text.get(copied..).unwrap_or_default())
    }

    /// Replaces values in the strings of a JSON text; `None` if there are none.
    fn json(&self, json: &str) -> Option<String> {
        let (mut out, mut copied, mut at) = (String::new(), 0, 0);
        let (mut key, mut named) = (Cow::Borrowed(""), String::new());
        while let Some(open) = json.get(at..).and_then(|rest| rest.find('"')) {
            let start = at + open;
            let token = string_at(json, start);
            at = start + token.len();
            let text = decoded(token);
            let after = json.get(at..).unwrap_or_default();
            let is_key = after.trim_start().starts_with(':');
            let shown = match key.to_ascii_lowercase().as_str() {
                _ if is_key => self.changed(&text),
                // The value of a pair such as {"name": "DB_PASSWORD", "value": "…"}.
                "value" => self.value(&named, &text),
                "name" | "key" => {
                    named = text.to_string();
                    self.value(&key, &text)
                }
                _ => self.value(&key, &text),
            };
            if let Some(shown) = shown {
                out.push_str(json.get(copied..start).unwrap_or_default());
                out.push_str(&Value::from(shown).to_string());
                copied = at;
            }
            if is_key {
                key = text;
            }
        }
        (copied > 0).then(|| out + json.get(copied..).unwrap_or_default())
    }

    /// Returns a string of a JSON object as it is shown under its key; `None` if it is unchanged.
    fn value(&self, key: &str, text: &str) -> Option<String> {
        let is_call = |(_, keys): &(Regex, Regex)| keys.is_match(key);
        if rules::is_hash(text) && self.ids.as_ref().is_some_and(is_call) {
            return Some(self.id(text));
        }
        if self.headers.is_match(key) {
            let before = format!("{key}: ");
            let line = self.changed(&format!("{before}{text}"))?;
            let after = line.strip_prefix(&before);
            return after.map(str::to_owned).or_else(|| self.changed(text));
        }
        let changed = self.changed(text);
        let value = text.replace(MARK, signs::EARLIER_MARK);
        let is_one = !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '[');
        if !is_one || changed.as_deref().is_some_and(signs::has_value) {
            return changed;
        }
        let found = Found::of_key(key, &value);
        let mut named = self.keys.iter().filter(|rule| rule.pattern.is_match(key));
        match named.find(|rule| (rule.is_secret)(&found)) {
            Some(rule) => Some(self.mark(rule.kind, &value)),
            None => changed,
        }
    }

    /// Returns the sign of a value: of the kind by which it was found first.
    fn mark(&self, kind: &'static str, value: &str) -> String {
        let value = value.replace(signs::is_sign, "");
        let values = &mut *self.values.borrow_mut();
        let number = values.number(kind, &value);
        if let Some((kind, part)) = parts(kind, &value) {
            values.number(kind, &part);
        }
        signs::of(number)
    }

    /// Returns the sign of an id that is a hash: another hash of the same length, by the secret.
    fn id(&self, hash: &str) -> String {
        let values = &mut *self.values.borrow_mut();
        let number = values.number("id", hash);
        if let Some(id) = values.all.get_mut(number) {
            let other = || {
                let mut other = hex(hmac::sign(&self.secret, hash.as_bytes()).as_ref());
                other.truncate(hash.len());
                other
            };
            id.shown.get_or_insert_with(other);
        }
        signs::of(number)
    }
}
