//! Reads JSON objects and keeps the text of their values as it came.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{RawJson, Timestamp, Zone};

/// One member of an object.
#[derive(Debug)]
pub struct Member<'a> {
    /// The decoded key, or the key as it came if it cannot be decoded.
    pub name: Cow<'a, str>,
    /// The key as it came, with its quotes.
    pub key: &'a str,
    /// The value as it came.
    pub value: &'a RawValue,
}

/// A JSON object: its members in order, with repeated keys.
#[derive(Debug)]
pub struct RawObject<'a> {
    /// The members as they came.
    pub members: Vec<Member<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                    let key = key.get();
                    members.push(Member {
                        name: decode(key),
                        key,
                        value,
                    });
                }
                Ok(RawObject { members })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

fn decode(key: &str) -> Cow<'_, str> {
    let inside = key.get(1..key.len().saturating_sub(1)).unwrap_or(key);
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    serde_json::from_str::<String>(key).map_or(Cow::Borrowed(key), Cow::Owned)
}

impl<'a> RawObject<'a> {
    /// Reads an object, or returns `None` for any other text.
    pub fn parse(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Returns the value of a key. If the key comes twice, the last value counts, as JSON readers agree.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members
            .iter()
            .rev()
            .find(|member| member.name == name)
            .map(|member| member.value)
    }

    /// Returns the value of a key, unless it is `null`.
    pub fn present(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|value| value.get() != "null")
    }

    /// Returns a string, or `None` if the value is missing, not a string, or not Unicode.
    pub fn string(&self, name: &str) -> Option<String> {
        self.get(name).and_then(string)
    }

    /// Returns an id: a string that is not empty.
    pub fn id(&self, name: &str) -> Option<String> {
        self.string(name).filter(|id| !id.is_empty())
    }

    /// Returns the value of a key as an object.
    pub fn object(&self, name: &str) -> Option<RawObject<'a>> {
        self.get(name)
            .and_then(|value| RawObject::parse(value.get()))
    }

    /// Returns whether the key's value is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// Returns whether one of the keys comes twice.
    pub fn repeats_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| {
            let same = self.members.iter().filter(|member| member.name == *name);
            same.count() > 1
        })
    }

    /// Returns whether any key comes twice.
    pub fn repeats(&self) -> bool {
        let mut seen = BTreeSet::new();
        !self
            .members
            .iter()
            .all(|member| seen.insert(member.name.as_ref()))
    }

    /// Returns the members with keys that are not in `known`.
    pub fn others<'s>(&'s self, known: &'s [&'s str]) -> impl Iterator<Item = &'s Member<'a>> {
        self.members
            .iter()
            .filter(move |member| !known.contains(&member.name.as_ref()))
    }

    /// Returns the members with keys that are not in `known`, as an object.
    pub fn rest(&self, known: &[&str]) -> MetaBuilder {
        let mut rest = MetaBuilder::default();
        rest.extend(self.others(known));
        rest
    }

    /// Returns the members with keys that are not in `known`, and the time if it is not exact.
    pub fn facts(&self, known: &[&str]) -> MetaBuilder {
        let mut facts = self.rest(known);
        facts.extend(self.inexact_time("timestamp"));
        facts
    }

    /// Returns a time in any of the forms that [`Timestamp::from_text`] and [`Timestamp::from_number`] know.
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        let value = self.get(name)?;
        match string(value) {
            Some(text) => Timestamp::from_text(&text).or_else(|| micros(&text)),
            None => Timestamp::from_number(value.get()),
        }
    }

    /// Returns a time that may be a clock time of a zone.
    pub fn local_time(&self, name: &str, zone: &Zone) -> Option<Timestamp> {
        let local = Timestamp::from_text_in(&self.string(name)?, zone);
        local.or_else(|| self.time(name))
    }

    /// Returns the member of a time that a [`Timestamp`] cannot hold exactly: it is neither RFC 3339 nor a whole number,
    /// has an offset or is finer than a microsecond.
    pub fn inexact_time(&self, name: &'static str) -> impl Iterator<Item = &Member<'a>> {
        let exact = self.get(name).is_some_and(|value| match string(value) {
            Some(text) => {
                text.len() <= "2026-03-02T09:00:00.123456Z".len()
                    && text.ends_with(['Z', 's'])
                    && (Timestamp::parse(&text).is_some() || micros(&text).is_some())
            }
            None => {
                let number = value.get();
                number.parse::<i64>().is_ok() && Timestamp::from_number(number).is_some()
            }
        });
        let members = self.members.iter();
        members.filter(move |member| !exact && member.name == name)
    }
}

/// Reads the exported form of a time outside the calendar's range: `123us`.
fn micros(text: &str) -> Option<Timestamp> {
    text.strip_suffix("us")?.parse().ok().map(Timestamp)
}

/// Returns a JSON string's text, or `None` if the value is no string or not Unicode.
pub fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Returns a JSON string's text, and whether the text is complete.
///
/// A text cannot hold half a surrogate pair, so each half becomes a replacement character. Returns `None` if the value
/// is no string.
pub fn readable(value: &RawValue) -> Option<(String, bool)> {
    if let Some(text) = string(value) {
        return Some((text, true));
    }
    let readable = value.get().starts_with('"');
    readable.then(|| (RawJson::from_raw(value).decoded_strings(), false))
}

/// Returns the text of a string as [`readable`] does. If the text is not complete, `extra` keeps the string under
/// `key`, which is JSON text.
pub fn text(value: &RawValue, key: &str, extra: &mut MetaBuilder) -> Option<String> {
    let (text, whole) = readable(value)?;
    if !whole {
        extra.add(key, value.get());
    }
    Some(text)
}

/// Returns a list's items as they came, or `None` if the value is no list.
pub fn list(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// Builds a compact JSON object from raw members.
#[derive(Debug, Default)]
pub struct MetaBuilder {
    text: String,
}

impl MetaBuilder {
    /// Adds a member. `key` is JSON text with its quotes.
    pub fn add(&mut self, key: &str, value: &str) {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        self.text.push_str(key);
        self.text.push(':');
        self.text.push_str(value);
    }

    /// Adds members as they came.
    pub fn extend<'m, 'a: 'm>(&mut self, members: impl Iterator<Item = &'m Member<'a>>) {
        for member in members {
            self.add(member.key, member.value.get());
        }
    }

    /// Adds another object under a key, unless it is empty.
    pub fn nest(&mut self, key: &str, inner: MetaBuilder) {
        if let Some(inner) = inner.into_text() {
            self.add(key, &inner);
        }
    }

    /// Adds the members of another object.
    pub fn take(&mut self, other: MetaBuilder) {
        let Some(members) = other.text.strip_prefix('{') else {
            return;
        };
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        self.text.push_str(members);
    }

    /// Returns whether the object has no members.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text of the object, or `None` if it has no members.
    pub fn into_text(mut self) -> Option<String> {
        (!self.text.is_empty()).then(|| {
            self.text.push('}');
            self.text
        })
    }

    /// Returns the object, or `None` if it has no members.
    pub fn finish(self) -> Option<RawJson> {
        self.into_text().and_then(|text| RawJson::parse(text).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_text() {
        let json = r#"{"a":1.00,"a":1e400,"\u0062":"x","\ud800":[ 1 ]}"#;
        let object = RawObject::parse(json).unwrap();
        let names: Vec<&str> = object.members.iter().map(|m| m.name.as_ref()).collect();
        assert_eq!(names, ["a", "a", "b", r#""\ud800""#]);
        assert_eq!(object.get("a").unwrap().get(), "1e400");
        assert_eq!(object.string("b").unwrap(), "x");
        assert!(object.repeats() && object.repeats_any(&["a"]) && !object.repeats_any(&["b"]));
        let mut meta = MetaBuilder::default();
        meta.extend(object.others(&["b"]));
        assert_eq!(
            meta.finish().unwrap().as_str(),
            r#"{"a":1.00,"a":1e400,"\ud800":[ 1 ]}"#
        );
        assert!(RawObject::parse("[1]").is_none());
    }

    #[test]
    fn times_are_read_in_many_forms() {
        let object = RawObject::parse(
            r#"{"a":"1970-01-01T00:00:01Z","b":1500,"c":"x","d":"-7us","e":1780000000,"f":"2026-05-28 20:26:40"}"#,
        )
        .unwrap();
        let second = Timestamp(1_780_000_000_000_000);
        for (name, time) in [
            ("a", Some(Timestamp(1_000_000))),
            ("b", None),
            ("c", None),
            ("d", Some(Timestamp(-7))),
            ("e", Some(second)),
            ("f", Some(second)),
        ] {
            assert_eq!(object.time(name), time, "{name}");
        }
        let object = RawObject::parse(
            r#"{"a":"2026-03-02T09:00:00.123456Z","b":"2026-03-02T09:00:00+02:00","c":"2026-03-02T09:00:00.1234567Z","d":"x","e":1780000000,"f":1}"#,
        )
        .unwrap();
        for (name, inexact) in [("a", 0), ("b", 1), ("c", 1), ("d", 1), ("e", 0), ("f", 1)] {
            let found = object.inexact_time(name).count();
            assert_eq!(found, inexact, "{name}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_leaves_the_text_readable() {
        for (json, text) in [
            (
                r#""a \ud83d \"b\" \\ud83d \ud83d\ude00""#,
                "a \u{fffd} \"b\" \\ud83d \u{1f600}",
            ),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00é\n""#, "\u{fffd}\u{1f600}é\n"),
        ] {
            let value: &RawValue = serde_json::from_str(json).unwrap();
            let found = readable(value);
            assert_eq!(found, Some((text.to_owned(), false)), "{json}");
        }
        let value: &RawValue = serde_json::from_str(r#""\u00e9\ud83d\ude00""#).unwrap();
        let whole = ("é\u{1f600}".to_owned(), true);
        assert_eq!(readable(value), Some(whole));
        let value: &RawValue = serde_json::from_str("1").unwrap();
        assert_eq!(readable(value), None);
    }
}
