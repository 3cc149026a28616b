//! The configuration file: policies of compaction as tables of TOML.

use std::path::{Path, PathBuf};

use agent_memory::compaction::{AutoHandoff, BlockPolicy};
use agent_memory::context::AssemblyPolicy;
use agent_memory::{DagPolicy, Strategy, TurnPolicy};
use serde::Deserialize;

use crate::error::{Failure, Kind, unreadable};

/// Allowed tables, keys and values of the file.
const TABLES: &str = "the table [handoff] has max_tokens, a number of tokens (0 for 80000, -1 for no threshold), and \
                      keep_tail, a number of messages (0 for 20); [dag], [blocks], [turns] and [context] have the \
                      fields of DagPolicy, BlockPolicy, TurnPolicy and AssemblyPolicy";

/// A configuration file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    path: PathBuf,
    tables: Tables,
}

/// The tables of a configuration file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tables {
    /// Policy of the strategy handoff.
    pub(crate) handoff: Option<AutoHandoff>,
    /// Policy of the strategy dag.
    pub(crate) dag: Option<DagPolicy>,
    /// Policy of the strategy blocks.
    pub(crate) blocks: Option<BlockPolicy>,
    /// Thresholds. Those of `handoff` take precedence.
    pub(crate) turns: Option<TurnPolicy>,
    /// Policy of the contexts.
    pub(crate) context: Option<AssemblyPolicy>,
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

    /// Returns the tables of the file.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the policy with the thresholds; `None` if the file sets none.
    pub(crate) fn turns(&self) -> Option<TurnPolicy> {
        let of_handoff = self.tables.handoff.map(TurnPolicy::from);
        of_handoff.or_else(|| self.tables.turns.clone())
    }

    /// Returns an error if the file has no table for a strategy.
    pub(crate) fn check(&self, strategy: Strategy) -> Result<(), Failure> {
        let tables = &self.tables;
        let strategies = [
            (Strategy::Dag, tables.dag.is_some()),
            (Strategy::Handoff, tables.handoff.is_some()),
            (Strategy::Blocks, tables.blocks.is_some()),
        ];
        let mut with_table = strategies.into_iter().filter(|(_, has_table)| *has_table);
        let for_all = tables.turns.is_some() || tables.context.is_some();
        if for_all || with_table.clone().any(|(with, _)| with == strategy) {
            return Ok(());
        }
        let path = self.path.display();
        let text = format!(
            "--config has no effect with the strategy {strategy}: {path} has no table for it"
        );
        let other = with_table.next();
        let other = other.map(|(with, _)| format!(", or give --strategy {with}"));
        Err(Failure::new(Kind::Usage, text).hint(format!(
            "leave it out, or add the table [{strategy}]{}",
            other.unwrap_or_default()
        )))
    }
}

#[cfg(test)]
mod fuzz {
    use std::collections::BTreeMap;

    use agent_memory::testing::memory;
    use agent_memory::{Message, Mode};
    use outside_checks::fuzz::Target;

    use super::*;
    use crate::args::Policy;

    /// Any file is refused with the line of the problem, or applied.
    #[test]
    fn settings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.toml");
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let tables = [
            toml::to_string(&BTreeMap::from([("dag", DagPolicy::default())])),
            toml::to_string(&BTreeMap::from([("blocks", BlockPolicy::default())])),
            toml::to_string(&BTreeMap::from([("turns", TurnPolicy::default())])),
            toml::to_string(&BTreeMap::from([("context", AssemblyPolicy::default())])),
        ];
        let seeds = tables.into_iter().flatten();
        Target::new("settings", env!("CARGO_MANIFEST_DIR"), 300)
            .seeds(seeds)
            .run(|input| {
                std::fs::write(&path, input).unwrap();
                let config = match Config::read(&path) {
                    Ok(config) => config,
                    Err(error) => {
                        let text = error.to_string();
                        let line = text
                            .split_once(", line ")
                            .and_then(|(_, text)| text.split_once(", `"));
                        let line =
                            line.map(|(number, text)| (number.parse::<usize>().unwrap(), text));
                        let lines = str::from_utf8(input).map(|text| text.lines().map(str::trim));
                        match (line, lines) {
                            (Some((number, text)), Ok(mut lines)) => {
                                let line = lines.nth(number - 1).unwrap_or_default();
                                assert!(text.starts_with(&format!("{line}`: ")), "{line}: {text}");
                            }
                            (line, lines) => assert!(line.is_none() && lines.is_err(), "{text}"),
                        }
                        let kind = text.rsplit("`: ").next().unwrap_or_default();
                        return (kind.chars().take(16).collect(), None);
                    }
                };
                let done = runtime.block_on(async {
                    let builder = Policy::default().apply(memory(), DagPolicy::default(), &config);
                    let memory = match builder.open().await {
                        Ok(memory) => memory,
                        Err(error) => return Err(error.to_string()),
                    };
                    let session = memory.session("s").await.unwrap();
                    let message =
                        |n| Message::user(format!("Message {n} about the shore. ").repeat(20));
                    let report = session.ingest_batch((0..24).map(message).collect()).await;
                    assert_eq!(report.unwrap().inserted(), 24);
                    let outcome = session.compact(Mode::Full).await.unwrap();
                    let context = session
                        .current_view()
                        .await
                        .unwrap()
                        .assemble(agent_memory::Budget::tokens(2_000))
                        .await;
                    assert!(session.verify().await.unwrap().is_ok());
                    Ok((outcome.published.total().min(4), context.is_ok()))
                });
                (String::new(), Some(done))
            });
    }
}
