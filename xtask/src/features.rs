//! The features of a crate, one a line, for a feature matrix.

use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::mode::root;

/// Prints the features of a crate, except `default`.
pub(crate) fn run(package: &str) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root())
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .context("run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .context("read the list of packages")?;
    let found = packages
        .iter()
        .find(|found| found["name"] == package)
        .with_context(|| format!("there is no crate {package}"))?;
    let features = found["features"].as_object().context("read the features")?;
    let mut names: Vec<&String> = features.keys().filter(|name| *name != "default").collect();
    names.sort();
    for name in names {
        println!("{name}");
    }
    Ok(())
}
