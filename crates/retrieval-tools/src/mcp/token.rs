//! The secret token that clients of a server send.

use std::fmt;

/// Minimum length of a token, in bytes.
const LEAST: usize = 16;

/// A secret that a client sends with each request, as `Authorization: Bearer TOKEN`. Every user of a machine can
/// connect to the ports of its loopback address. The server refuses requests without the token.
///
/// The output of `Debug` does not contain the token.
///
/// ```
/// use retrieval_tools::mcp::AccessToken;
///
/// let token = AccessToken::from_random([7; 32]);
/// assert!(token.admits(&format!("Bearer {}", token.as_str())));
/// assert!(!token.admits("Bearer guess"));
/// assert_eq!(AccessToken::new("short"), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl AccessToken {
    /// Creates a token from a text that the host application chooses. Returns `None` if the text has fewer than 16
    /// characters, or characters other than visible ASCII, which a header cannot contain.
    pub fn new(token: impl Into<String>) -> Option<Self> {
        let token = token.into();
        let is_good = token.len() >= LEAST && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_good.then_some(Self(token))
    }

    /// Creates a token from random bytes, which the host application must take from a secure source.
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the value of an `Authorization` header contains this token. The duration of the comparison
    /// reveals only the length of the token.
    pub fn admits(&self, authorization: &str) -> bool {
        let Some((scheme, shown)) = authorization.split_once(' ') else {
            return false;
        };
        let (own, shown) = (self.0.as_bytes(), shown.trim().as_bytes());
        let pairs = own.iter().zip(shown);
        let differ = pairs.fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b)));
        scheme.eq_ignore_ascii_case("Bearer") && own.len() == shown.len() && differ == 0
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_token_is_compared() {
        let token = AccessToken::new("0123456789abcdef").unwrap();
        for shown in ["Bearer 0123456789abcdef", "bearer  0123456789abcdef "] {
            assert!(token.admits(shown), "{shown}");
        }
        for shown in [
            "",
            "Bearer",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcdee",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
        ] {
            assert!(!token.admits(shown), "{shown}");
        }
        assert_eq!(format!("{token:?}"), "AccessToken(…)");
        for bad in [
            "",
            "0123456789abcde",
            "0123456789 abcdef",
            "0123456789abcdé",
        ] {
            assert_eq!(AccessToken::new(bad), None, "{bad}");
        }
    }
}
