//! Times as RFC 3339 text, as session files have them.

use memory_model::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(time)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    Timestamp::parse(&text).ok_or_else(|| {
        de::Error::custom(format!(
            "{text:?} is not a time such as 2026-02-08T09:16:52Z"
        ))
    })
}

/// Times that may be absent.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Serializer, Timestamp, de};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.collect_str(time),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else {
            return Ok(None);
        };
        let time = Timestamp::parse(&text);
        time.map(Some)
            .ok_or_else(|| de::Error::custom(format!("{text:?} is not a time")))
    }
}
