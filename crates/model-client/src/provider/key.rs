//! Keys and other secrets of a request, which no text may show.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An API key, kept secret: `Debug` does not show it, and it can be neither displayed nor serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Creates a key from a text, without white space at its ends.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into().trim().to_owned())
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Minimum length of a secret that is redacted, in bytes: a shorter one is part of many words.
const LEAST_SECRET: usize = 4;
/// Minimum length of a part of an address that is redacted in a summary, in bytes.
const LEAST_DISTINCT: usize = 12;
/// Minimum length of a key that is redacted in a summary without the name of its scheme, in bytes: local
/// servers take keys such as `none`.
const LEAST_KEY: usize = 8;

/// All secrets of a request. A server may quote any of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Secrets {
    /// Replaced everywhere: the values of its headers, and the long parts of its address.
    distinct: Vec<String>,
    /// Replaced in errors only, because they may be words of a conversation.
    common: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Secrets {
    /// The secrets of an address: user and password, separately and in the form of a `Basic` header, and the query with
    /// its values; in their original form and without percent-encoding.
    #[cfg(any(test, feature = "openai-compatible"))]
    pub(super) fn of_url(url: &reqwest::Url) -> Self {
        let mut secrets = Self::default();
        secrets.add_url(url);
        secrets
    }

    /// Adds the secrets of an address.
    pub(super) fn add_url(&mut self, url: &reqwest::Url) {
        let plain = |text: &str| {
            percent_encoding::percent_decode_str(text)
                .decode_utf8_lossy()
                .into_owned()
        };
        let (user, password) = (url.username(), url.password().unwrap_or_default());
        if !user.is_empty() || !password.is_empty() {
            let both = format!("{}:{}", plain(user), plain(password));
            add(&mut self.distinct, &STANDARD.encode(&both));
            add(&mut self.distinct, &both);
        }
        let query = url.query().unwrap_or_default();
        let values = query
            .split('&')
            .map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
        for text in [user, password, query].into_iter().chain(values) {
            for text in [text, &plain(text)] {
                match text.len() < LEAST_DISTINCT {
                    true => add(&mut self.common, text),
                    false => add(&mut self.distinct, text),
                }
            }
        }
    }

    /// Adds the key, which a header carries.
    pub(super) fn add_key(&mut self, key: &ApiKey) {
        let key = key.secret();
        if key.len() < LEAST_KEY {
            add(&mut self.distinct, &format!("Bearer {key}"));
            add(&mut self.common, key);
        } else {
            add(&mut self.distinct, key);
        }
    }

    /// Redacts all secrets in a server's text.
    pub(super) fn redact(&self, text: &str) -> String {
        redact(redact(text.to_owned(), &self.distinct), &self.common)
    }

    /// Redacts the values of the request's headers and the long parts of its address in a summary. Short
    /// parts of the address stay: they may be words of the conversation.
    pub(super) fn redact_summary(&self, text: &str) -> String {
        redact(text.to_owned(), &self.distinct)
    }
}

fn add(secrets: &mut Vec<String>, secret: &str) {
    let secret = secret.trim();
    if secret.len() >= LEAST_SECRET && !secrets.iter().any(|known| known == secret) {
        secrets.push(secret.to_owned());
        // A secret that is part of another is replaced after it.
        secrets.sort_by_key(|known| std::cmp::Reverse(known.len()));
    }
}

fn redact(mut text: String, secrets: &[String]) -> String {
    for secret in secrets {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), "[redacted]");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let key = ApiKey::new(" sk-secret\n");
        assert_eq!(key.secret(), "sk-secret");
        assert_eq!(format!("{key:?} {:#?}", Some(&key)).find("secret"), None);
        let mut secrets = Secrets::default();
        secrets.add_key(&key);
        assert_eq!(format!("{secrets:?}").find("secret"), None);
        let quoted = "Incorrect API key provided: sk-secret. sk-secret?";
        let text = secrets.redact(quoted);
        let without = "Incorrect API key provided: [redacted]. [redacted]?";
        assert_eq!(text, without);
        assert_eq!(secrets.redact_summary(quoted), without);
        secrets.add_key(&ApiKey::new(""));
        assert_eq!(secrets.redact("abc"), "abc");
        // A short key is a word of many texts.
        secrets.add_key(&ApiKey::new("none"));
        let quoted = "none of them: Bearer none";
        assert_eq!(secrets.redact_summary(quoted), "none of them: [redacted]");
        assert_eq!(secrets.redact(quoted), "[redacted] of them: [redacted]");
    }

    #[test]
    fn the_secrets_of_an_address_are_redacted_in_every_form() {
        let url = "https://us%65r:p%40ss%2Fword@host/v1?key=qu%65ry&flag&token=other/value";
        let secrets = Secrets::of_url(&reqwest::Url::parse(url).unwrap());
        for quoted in [
            "p@ss/word",
            "p%40ss%2Fword",
            "user",
            "us%65r",
            "dXNlcjpwQHNzL3dvcmQ=",
            "query",
            "qu%65ry",
            "other/value",
            "key=qu%65ry&flag&token=other/value",
        ] {
            let text = secrets.redact(&format!("you sent <{quoted}>"));
            assert_eq!(text, "you sent <[redacted]>", "{quoted}");
        }
        assert_eq!(secrets.redact("host /v1"), "host /v1");
        let summary = "The user sent dXNlcjpwQHNzL3dvcmQ= as user:p@ss/word.";
        assert_eq!(
            secrets.redact_summary(summary),
            "The user sent [redacted] as [redacted]."
        );
    }
}
