use std::fmt;

/// A secret key. It is not shown by `Debug`, and can be neither displayed nor serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key; white space around it is left out, as it comes with files and pasted text.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into().trim().to_owned())
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// A text without the key, should a server have quoted it.
    pub(crate) fn redact(key: Option<&Self>, text: &str) -> String {
        match key.map(|key| key.0.as_str()).filter(|key| !key.is_empty()) {
            Some(key) => text.replace(key, "[key]"),
            None => text.to_owned(),
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let key = ApiKey::new(" sk-secret\n");
        assert_eq!(key.secret(), "sk-secret");
        assert_eq!(format!("{key:?} {:#?}", Some(&key)).find("secret"), None);
        let quoted = "Incorrect API key provided: sk-secret. sk-secret?";
        let text = ApiKey::redact(Some(&key), quoted);
        assert_eq!(text, "Incorrect API key provided: [key]. [key]?");
        assert_eq!(ApiKey::redact(Some(&ApiKey::new("")), "abc"), "abc");
    }
}
