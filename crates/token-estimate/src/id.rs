use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Name and version of an estimator's formula, such as `calibrated@5`.
///
/// Store the id with every figure. Figures with different ids must not be added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct EstimatorId(Cow<'static, str>);

impl EstimatorId {
    /// Creates an id from a name and a version.
    ///
    /// # Errors
    ///
    /// [`MalformedId`](crate::ErrorKind::MalformedId) if the name is empty or has characters other than lower-case
    /// ASCII letters, digits and hyphens, or if the version is 0.
    pub fn new(name: &str, version: u32) -> Result<Self, Error> {
        format!("{name}@{version}").parse()
    }

    /// Creates the id of a formula of this crate. The caller must pass a well-formed id.
    pub(crate) const fn known(id: &'static str) -> Self {
        Self(Cow::Borrowed(id))
    }

    /// Returns the whole id, in the form `name@version`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name: the part of the id before the `@`.
    pub fn name(&self) -> &str {
        self.0.split_once('@').map_or(&self.0, |(name, _)| name)
    }

    /// Returns the version of the formula: the number after the `@`.
    pub fn version(&self) -> u32 {
        self.0
            .split_once('@')
            .and_then(|(_, version)| version.parse().ok())
            .unwrap_or(0)
    }
}

impl FromStr for EstimatorId {
    type Err = Error;

    fn from_str(id: &str) -> Result<Self, Error> {
        let malformed = || Error::malformed_id(id);
        let (name, version) = id.split_once('@').ok_or_else(malformed)?;
        let named = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let number = version.parse::<u32>().map_err(|_| malformed())?;
        // Accepts only one spelling of each number, so that equal ids are equal strings.
        let canonical = number > 0 && version.bytes().all(|b| b.is_ascii_digit());
        if name.is_empty() || !name.bytes().all(named) || !canonical || version.starts_with('0') {
            return Err(malformed());
        }
        Ok(Self(Cow::Owned(id.to_owned())))
    }
}

impl TryFrom<String> for EstimatorId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        id.parse()
    }
}

impl From<EstimatorId> for String {
    fn from(id: EstimatorId) -> Self {
        id.0.into_owned()
    }
}

impl AsRef<str> for EstimatorId {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for EstimatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn ids_parse_from_their_text() {
        let id = EstimatorId::new("calibrated-o200k", 12).unwrap();
        assert_eq!(id.to_string(), "calibrated-o200k@12");
        assert_eq!((id.name(), id.version()), ("calibrated-o200k", 12));
        assert_eq!(id.to_string().parse::<EstimatorId>().unwrap(), id);
        assert_eq!(EstimatorId::known("anna@1"), "anna@1".parse().unwrap());
    }

    #[test]
    fn malformed_ids_are_refused() {
        for bad in [
            "", "anna", "@1", "anna@", "anna@0", "anna@01", "anna@+1", "anna@1@1", "Anna@1",
        ] {
            let error = bad.parse::<EstimatorId>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::MalformedId, "{bad}");
            assert!(error.to_string().contains("anna@1"));
        }
    }
}
