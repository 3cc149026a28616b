//! Checks the layers of the workspace with `cargo tree`.
//!
//! A crate may use only crates that come earlier in the table, and its forbidden crates must not be among its
//! dependencies at any depth.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::mode::root;

/// Dependencies that only some crates may have, at any depth.
const ASYNC_RUNTIME: &[&str] = &["tokio", "async-std", "smol"];
const DATABASES: &[&str] = &[
    "sqlx",
    "sqlx-core",
    "sea-query",
    "libsqlite3-sys",
    "rusqlite",
];
const PROVIDERS: &[&str] = &["reqwest", "genai", "hyper"];

/// Dependencies that planners and assemblers must not have, because other crates carry out their plans.
const RUNNING: &[&str] = &["futures", "memory-store", "summarize-escalation"];

/// The crates, bottom up, with their forbidden dependencies.
const LAYERS: &[(&str, &[&[&str]])] = &[
    (
        "token-estimate",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["async-trait", "futures", "memory-model"],
        ],
    ),
    (
        "sentence-model",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["async-trait", "futures", "memory-model"],
        ],
    ),
    (
        "memory-model",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["async-trait", "futures"],
        ],
    ),
    (
        "turn-map",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["async-trait", "futures", "memory-model"],
        ],
    ),
    (
        "compaction-plan",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["futures", "memory-store"],
        ],
    ),
    (
        "provider-shapes",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["async-trait", "futures", "memory-store"],
        ],
    ),
    (
        "agent-conventions",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["async-trait", "futures", "memory-store"],
        ],
    ),
    (
        "message-formats",
        &[ASYNC_RUNTIME, DATABASES, PROVIDERS, &["memory-store"]],
    ),
    ("memory-store", &[ASYNC_RUNTIME, DATABASES, PROVIDERS]),
    ("memory-search", &[ASYNC_RUNTIME, DATABASES, PROVIDERS]),
    ("store-conformance", &[ASYNC_RUNTIME, DATABASES, PROVIDERS]),
    (
        "model-client",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["memory-model", "memory-store"],
        ],
    ),
    (
        "extractive-summarizer",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["async-trait", "futures", "memory-store", "model-client"],
        ],
    ),
    (
        "summarize-escalation",
        &[ASYNC_RUNTIME, DATABASES, PROVIDERS, &["memory-store"]],
    ),
    (
        "context-assembler",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            RUNNING,
            &["async-trait", "message-formats"],
        ],
    ),
    (
        "dag-compactor",
        &[ASYNC_RUNTIME, DATABASES, PROVIDERS, RUNNING],
    ),
    (
        "handoff-compactor",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            RUNNING,
            &["dag-compactor"],
        ],
    ),
    (
        "block-overlay",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["memory-store", "context-assembler", "dag-compactor"],
        ],
    ),
    (
        "compaction-runner",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &[
                "dag-compactor",
                "handoff-compactor",
                "block-overlay",
                "store-sqlite",
            ],
        ],
    ),
    (
        "store-sql",
        &[
            PROVIDERS,
            &[
                "summarize-escalation",
                "context-assembler",
                "dag-compactor",
                "compaction-runner",
            ],
        ],
    ),
    (
        "store-sqlite",
        &[
            PROVIDERS,
            &[
                "summarize-escalation",
                "context-assembler",
                "dag-compactor",
                "compaction-runner",
            ],
        ],
    ),
    (
        "store-postgres",
        &[
            PROVIDERS,
            &[
                "summarize-escalation",
                "context-assembler",
                "dag-compactor",
                "compaction-runner",
            ],
        ],
    ),
    (
        "retrieval-tools",
        &[
            ASYNC_RUNTIME,
            DATABASES,
            PROVIDERS,
            &["store-sqlite", "compaction-runner"],
        ],
    ),
    (
        "agent-memory",
        // The readers of transcripts come with the feature `import`.
        &[PROVIDERS, &["clap", "indicatif", "message-formats"]],
    ),
    ("agent-memory-cli", &[]),
];

/// Checks every crate of the workspace.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut found: Vec<String> = std::fs::read_dir(root().join("crates"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<anyhow::Result<_>>()?;
    found.sort();
    for name in &found {
        let known = LAYERS.iter().any(|(layer, _)| layer == name);
        ensure!(
            known,
            "crates/{name} has no layer: enter it into xtask/src/layering.rs"
        );
    }
    let mut problems = misplaced(&root())?;
    for (level, (name, forbidden)) in LAYERS.iter().enumerate() {
        let used = dependencies(name)?;
        for other in LAYERS.iter().skip(level + 1).map(|(other, _)| *other) {
            if used.contains(other) {
                problems.push(format!(
                    "{name} uses {other}, which comes later in the list of layers"
                ));
            }
        }
        for word in forbidden.iter().flat_map(|words| words.iter()) {
            if used.contains(*word) {
                problems.push(format!(
                    "{name} must not know {word}; see `cargo tree -p {name} -i {word} -e normal`"
                ));
            }
        }
        println!("{name}: {} dependencies", used.len());
    }
    for name in direct_dependencies("agent-memory-cli")? {
        if name != "agent-memory" && LAYERS.iter().any(|(layer, _)| *layer == name) {
            problems.push(format!(
                "agent-memory-cli names {name}: take it from the facade's modules"
            ));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("the layering is broken:\n  {}", problems.join("\n  "))
}

/// Folders `crates/X/crates`: snapshots that insta wrote to a place from which no test reads them. It does so if it
/// does not know the workspace's root, which `.cargo/config.toml` sets.
fn misplaced(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if root.join("crates").join(&name).join("crates").exists() {
            problems.push(format!(
                "crates/{name}/crates holds snapshots that no test reads: delete it, and run the \
                 tests through cargo"
            ));
        }
    }
    problems.sort();
    Ok(problems)
}

/// The names of all dependencies of a crate, at any depth, without those for tests.
fn dependencies(name: &str) -> anyhow::Result<BTreeSet<String>> {
    tree(name, &["--edges", "normal"])
}

/// The names of the crates in a crate's manifest, including those for tests.
fn direct_dependencies(name: &str) -> anyhow::Result<BTreeSet<String>> {
    tree(name, &["--edges", "normal,build,dev", "--depth", "1"])
}

/// The names that `cargo tree` prints for a crate.
fn tree(name: &str, options: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root())
        .args(["tree", "--locked", "--prefix", "none", "--format", "{p}"])
        .args(options)
        .args(["--package", name])
        .output()
        .context("run cargo tree")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "cargo tree -p {name} failed: {errors}"
    );
    let text = String::from_utf8(output.stdout).context("read the output of cargo tree")?;
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    Ok(names
        .filter(|found| *found != name)
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_in_the_wrong_folder_are_found() {
        let root = tempfile::tempdir().unwrap();
        let tests = root.path().join("crates/a/tests/snapshots");
        std::fs::create_dir_all(tests).unwrap();
        assert!(misplaced(root.path()).unwrap().is_empty());
        let wrong = root.path().join("crates/a/crates/a/tests/snapshots");
        std::fs::create_dir_all(wrong).unwrap();
        let problems = misplaced(root.path()).unwrap();
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("crates/a/crates holds snapshots"));
    }
}
