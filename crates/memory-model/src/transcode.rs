//! Reading and writing of [`RawJson`](crate::RawJson) in formats other than JSON.

use std::any::type_name;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The key of the one-entry map that carries JSON text in formats other than JSON.
pub(crate) const TEXT_KEY: &str = "$json";

/// Maximum nesting depth of a value in a format other than JSON.
const MAX_DEPTH: usize = 128;

/// Returns whether `S` is a serializer of `serde_json`. No other serializer can write a raw value.
///
/// The check compares the name of the type, because serde has no other way to find out. A serializer that wraps
/// `serde_json`'s is treated as another format.
pub(crate) fn is_json_serializer<S>() -> bool {
    let name = plain_name::<S>();
    name.starts_with("serde_json::ser::Serializer<")
        || name.starts_with("serde_json::value::ser::Serializer")
}

/// Returns whether `D` is a deserializer of `serde_json`. No other deserializer can read a raw value.
pub(crate) fn is_json_deserializer<D>() -> bool {
    let name = plain_name::<D>();
    name.starts_with("serde_json::de::Deserializer<")
        || name.starts_with("serde_json::value::Value")
}

fn plain_name<T>() -> &'static str {
    let name = type_name::<T>();
    let name = name.strip_prefix('&').unwrap_or(name);
    name.strip_prefix("mut ").unwrap_or(name)
}

/// Reads one value of any self-describing format and returns it as compact JSON text. A map with one entry, from
/// [`TEXT_KEY`] to JSON text, is read as that JSON text.
///
/// # Errors
/// If the value has no JSON form (bytes, a number that is not finite, a key that is not a string) or nests deeper than
/// [`MAX_DEPTH`].
pub(crate) fn to_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let mut out = String::new();
    Transcoder {
        out: &mut out,
        depth: 0,
    }
    .deserialize(deserializer)?;
    Ok(out)
}

/// Visitor that appends the visited value to `out` as JSON text.
struct Transcoder<'o> {
    out: &'o mut String,
    depth: usize,
}

impl Transcoder<'_> {
    fn inner<E: Error>(&mut self) -> Result<Transcoder<'_>, E> {
        if self.depth >= MAX_DEPTH {
            let text = format!("a value nests deeper than {MAX_DEPTH} levels");
            return Err(E::custom(text));
        }
        Ok(Transcoder {
            out: self.out,
            depth: self.depth + 1,
        })
    }

    fn put<E: Error>(self, value: &impl serde::Serialize) -> Result<(), E> {
        let text = serde_json::to_string(value).map_err(E::custom)?;
        self.out.push_str(&text);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Transcoder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Transcoder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can hold")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.put(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.put(&value)
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<(), E> {
        self.put(&value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.put(&value)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.put(&value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        if !value.is_finite() {
            return Err(E::custom(format!("JSON has no number {value}")));
        }
        self.put(&value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.put(&value)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.out.push_str("null");
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        self.inner()?.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        mut self,
        deserializer: D,
    ) -> Result<(), D::Error> {
        self.inner()?.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        self.out.push('[');
        let start = self.out.len();
        loop {
            let before = self.out.len();
            if before > start {
                self.out.push(',');
            }
            if seq.next_element_seed(self.inner()?)?.is_none() {
                self.out.truncate(before);
                break;
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let start = self.out.len();
        let mut entries = 0;
        let mut text = None;
        while let Some(key) = map.next_key::<String>()? {
            self.out.push(if entries == 0 { '{' } else { ',' });
            entries += 1;
            let json = serde_json::to_string(&key).map_err(A::Error::custom)?;
            self.out.push_str(&json);
            self.out.push(':');
            let value = self.out.len();
            map.next_value_seed(self.inner()?)?;
            text = match self.out.get(value..) {
                Some(value) if entries == 1 && key == TEXT_KEY => carried_text(value),
                _ => None,
            };
        }
        match (text, entries) {
            (Some(text), _) => {
                self.out.truncate(start);
                self.out.push_str(&text);
            }
            (None, 0) => self.out.push_str("{}"),
            (None, _) => self.out.push('}'),
        }
        Ok(())
    }
}

/// Returns the JSON text inside a JSON string; `None` if `value` is not a string, or its text is not JSON.
fn carried_text(value: &str) -> Option<String> {
    let text: String = serde_json::from_str(value).ok()?;
    let raw: &RawValue = serde_json::from_str(&text).ok()?;
    Some(raw.get().to_owned())
}
