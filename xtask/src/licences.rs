//! Checks the licences of all dependencies of the workspace with `deny.toml`.

use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::mode::root;

pub(crate) fn run() -> anyhow::Result<()> {
    let allowed = allowed(&std::fs::read_to_string(root().join("deny.toml"))?)?;
    let packages = packages()?;
    let problems: Vec<String> = packages
        .iter()
        .filter_map(|package| problem(package, &allowed))
        .collect();
    ensure!(
        problems.is_empty(),
        "replace these dependencies, or allow their licences in deny.toml:\n{}",
        problems.join("\n")
    );
    println!("{} packages, licences as deny.toml allows", packages.len());
    Ok(())
}

/// A package and its licence expression.
struct Package {
    name: String,
    licence: Option<String>,
}

/// The licences that `deny.toml` allows.
fn allowed(deny: &str) -> anyhow::Result<Vec<String>> {
    let deny: toml::Table = deny.parse().context("deny.toml is not TOML")?;
    let list = deny
        .get("licenses")
        .and_then(|licences| licences.get("allow"))
        .and_then(toml::Value::as_array)
        .context("deny.toml has no list `allow` in `[licenses]`")?;
    Ok(list
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect())
}

/// Everything in the lock file.
fn packages() -> anyhow::Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root())
        .args(["metadata", "--locked", "--format-version", "1"])
        .output()
        .context("run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .context("the answer of cargo metadata has no packages")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok(packages
        .iter()
        .map(|package| Package {
            name: text(&package["name"]).unwrap_or_default(),
            licence: text(&package["license"]),
        })
        .collect())
}

/// The problem of a package's licence, if there is one.
fn problem(package: &Package, allowed: &[String]) -> Option<String> {
    let name = &package.name;
    let Some(licence) = &package.licence else {
        return Some(format!("{name}: states no licence"));
    };
    let Ok(expression) = Expression::parse_mode(licence, ParseMode::LAX) else {
        return Some(format!("{name}: {licence} is no SPDX expression"));
    };
    let granted = expression.evaluate(|one| {
        let id = one.license.id();
        id.is_some_and(|id| allowed.iter().any(|allowed| allowed == id.name))
    });
    (!granted).then(|| format!("{name}: {licence}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_that_is_not_allowed_is_found() {
        let allowed = allowed("[licenses]\nallow = [\"MIT\", \"ISC\"]").unwrap();
        for (licence, granted) in [
            (Some("MIT"), true),
            (Some("MIT/Apache-2.0"), true),
            (Some("MIT AND ISC"), true),
            (Some("MIT AND GPL-3.0-only"), false),
            (Some("LGPL-3.0-or-later"), false),
            (Some("my own"), false),
            (None, false),
        ] {
            let package = Package {
                name: "a".to_owned(),
                licence: licence.map(str::to_owned),
            };
            assert_eq!(
                problem(&package, &allowed).is_none(),
                granted,
                "{licence:?}"
            );
        }
    }
}
