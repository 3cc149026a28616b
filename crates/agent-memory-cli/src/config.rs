//! The configuration file: policies of compaction as tables of TOML.

use std::path::{Path, PathBuf};

use agent_memory::Strategy;
use agent_memory::compaction::AutoHandoff;
use serde::Deserialize;

use crate::error::{Failure, Kind, unreadable};

/// Allowed tables, keys and values of the file.
const TABLES: &str = "the table [handoff] has max_tokens, a number of tokens (0 for 80000, -1 for no threshold), and \
                      keep_tail, a number of messages (0 for 20)";

/// A configuration file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    path: PathBuf,
    tables: Tables,
}

/// The tables of a configuration file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Tables {
    handoff: Option<AutoHandoff>,
}

impl Config {
    /// Reads a configuration file. The error for an unknown key or a bad value has the line with the key, and the
    /// allowed values.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| unreadable(&name.to_string(), Some(&error.to_string())))?;
        let tables = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let number = before.map_or(0, |before| before.matches('\n').count());
            let line = text.lines().nth(number).unwrap_or_default().trim();
            let cause = error.message().replace('\n', ", ");
            let text = format!("{name}, line {}, `{line}`: {cause}", number + 1);
            Failure::new(Kind::Invalid, text).hint(TABLES)
        })?;
        Ok(Self {
            path: path.to_owned(),
            tables,
        })
    }

    /// Returns the setting for handoffs.
    pub(crate) fn handoff(&self) -> Option<AutoHandoff> {
        self.tables.handoff
    }

    /// Returns an error if the file has no table for a strategy.
    pub(crate) fn check(&self, strategy: Strategy) -> Result<(), Failure> {
        if strategy == Strategy::Handoff && self.tables.handoff.is_some() {
            return Ok(());
        }
        let path = self.path.display();
        let text = format!(
            "--config has no effect with the strategy {strategy}: {path} has no table for it"
        );
        Err(Failure::new(Kind::Usage, text)
            .hint("leave it out, or give --strategy handoff and a file with the table [handoff]"))
    }
}
