//! The ids of policies: `name/parameters@version`.

use std::fmt;

use crate::{Error, ErrorKind};

/// The parts of an id. Every policy has version 1.
pub(crate) struct Id<'a> {
    given: &'a str,
    known: &'static [&'static str],
    pub(crate) name: &'a str,
    /// The numbers among the parameters, joined by hyphens.
    numbers: &'a str,
    /// The text behind a colon among the parameters.
    pub(crate) rest: Option<&'a str>,
}

impl<'a> Id<'a> {
    pub(crate) fn read(given: &'a str, known: &'static [&'static str]) -> Result<Self, Error> {
        let malformed = || Error::new(ErrorKind::MalformedId, given, known);
        let (named, version) = given.rsplit_once('@').ok_or_else(malformed)?;
        let (name, parameters) = named.split_once('/').ok_or_else(malformed)?;
        let (numbers, rest) = match parameters.split_once(':') {
            Some((numbers, rest)) => (numbers, Some(rest)),
            None => (parameters, None),
        };
        let id = Self {
            given,
            known,
            name,
            numbers,
            rest,
        };
        match version {
            "1" => Ok(id),
            _ => Err(id.unknown()),
        }
    }

    pub(crate) fn unknown(&self) -> Error {
        Error::new(ErrorKind::UnknownPolicy, self.given, self.known)
    }

    pub(crate) fn malformed(&self) -> Error {
        Error::new(ErrorKind::MalformedId, self.given, self.known)
    }

    /// Parses exactly `N` numbers in their canonical spelling, so that equal policies have equal ids.
    pub(crate) fn numbers<const N: usize>(&self) -> Result<[u64; N], Error> {
        let mut numbers = [0; N];
        let mut words = self.numbers.split('-');
        for number in &mut numbers {
            let word = words.next().ok_or_else(|| self.malformed())?;
            *number = word.parse().map_err(|_| self.malformed())?;
            if number.to_string() != word {
                return Err(self.malformed());
            }
        }
        match words.next() {
            Some(_) => Err(self.malformed()),
            None => Ok(numbers),
        }
    }

    /// Fails when text stands behind the numbers.
    pub(crate) fn no_rest(&self) -> Result<(), Error> {
        self.rest.map_or(Ok(()), |_| Err(self.malformed()))
    }

    pub(crate) fn size(&self, number: u64) -> Result<usize, Error> {
        usize::try_from(number).map_err(|_| self.malformed())
    }
}

/// Writes an id.
pub(crate) fn write_id(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    numbers: &[u64],
    rest: Option<&str>,
) -> fmt::Result {
    write!(f, "{name}/")?;
    for (n, number) in numbers.iter().enumerate() {
        write!(f, "{}{number}", if n == 0 { "" } else { "-" })?;
    }
    if let Some(rest) = rest {
        write!(f, ":{rest}")?;
    }
    write!(f, "@1")
}
