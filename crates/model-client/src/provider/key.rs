//! API keys and other secrets of requests. No text may show them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A secret API key. `Debug` does not show it, and it can be neither displayed nor serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Creates a key from a text. White space at both ends of the text is removed.
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

/// Minimum length of a redacted secret, in bytes. Shorter secrets are part of many words.
const LEAST_SECRET: usize = 4;
/// Minimum length of a part of an address that is redacted in summaries, in bytes.
const LEAST_DISTINCT: usize = 12;
/// Minimum length of a key that is redacted in summaries without `Bearer` before it, in bytes. Local servers take short
/// keys such as `none`.
const LEAST_KEY: usize = 8;

/// All secrets of a request. A server may repeat any of them in its answer.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Secrets {
    /// Secrets that are redacted in all texts: the values of headers, and the long parts of the address.
    distinct: Vec<String>,
    /// Secrets that are redacted only in errors, because they may be words of a conversation.
    common: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Secrets {
    /// Returns the secrets of an address: the user and the password, separately and in the form of a `Basic` header,
    /// and the query with its values. Each is included in its original form and without percent-encoding.
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

    /// Adds the API key, which is sent in a header.
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

    /// Redacts the values of the request's headers and the long parts of its address in a summary. Keeps short
    /// parts of the address, because they may be words of the conversation.
    pub(super) fn redact_summary(&self, text: &str) -> String {
        redact(text.to_owned(), &self.distinct)
    }
}

fn add(secrets: &mut Vec<String>, secret: &str) {
    let secret = secret.trim();
    if secret.len() >= LEAST_SECRET && !secrets.iter().any(|known| known == secret) {
        secrets.push(secret.to_owned());
        // A longer secret is replaced first, because it may contain a shorter one.
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
        // A short key may be a word of the text.
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
