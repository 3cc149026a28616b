//! Options of a task with numbers, `--name N` or `--name=N`, and without.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

/// The given options, and the words that are no number of an option.
pub(crate) struct Options<'a> {
    given: BTreeMap<&'a str, u64>,
    pub(crate) words: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// Reads options: those in `numbers` have a number, and those in `switches` have none.
    pub(crate) fn read(
        flags: &'a [String],
        words: &[&'a str],
        (numbers, switches): (&[&str], &[&str]),
        usage: &str,
    ) -> anyhow::Result<Self> {
        let mut given = BTreeMap::new();
        let mut words = words.iter().copied();
        for flag in flags {
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (flag.as_str(), None),
            };
            let value = if numbers.contains(&name) {
                let value = value
                    .or_else(|| words.next())
                    .with_context(|| usage.to_owned())?;
                let number = value.parse();
                number.with_context(|| format!("{name} {value}: give a number\n{usage}"))?
            } else if switches.contains(&flag.as_str()) {
                1
            } else {
                bail!("{name} is not known\n{usage}");
            };
            given.insert(name, value);
        }
        let words = words.collect();
        Ok(Self { given, words })
    }

    /// Returns the number of an option, if it was given.
    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        self.given.get(name).copied()
    }

    /// Returns whether an option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }
}
