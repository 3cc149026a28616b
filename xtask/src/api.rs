//! The public items of each library crate, in `docs/api`: items may be added, and none may go.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::mode::{Mode, root, target_folder};

/// Libraries whose items may change: the stores of this workspace share them.
const NOT_FROZEN: [&str; 2] = ["store-conformance", "store-sql"];
const FOLDER: &str = "docs/api";
const COMMAND: &str = "cargo xtask api";

/// Set where cargo calls this program in place of rustdoc; see [`document`].
const AS_RUSTDOC: &str = "AGENT_MEMORY_XTASK_AS_RUSTDOC";

/// Writes or checks the lists. `flags` may hold `--allow-removal`, which a new major version needs.
pub(crate) fn run(flags: &[String]) -> anyhow::Result<()> {
    let is_removal = |flag: &String| flag == "--allow-removal";
    let allow_removal = flags.iter().any(is_removal);
    let rest: Vec<String> = flags.iter().filter(|f| !is_removal(f)).cloned().collect();
    let mode = Mode::from_flags(&rest)?;
    let names = library_crates()?;
    document(&names)?;
    let mut removed = Vec::new();
    let mut lists = Vec::new();
    for name in names {
        let listed = public_items(&name)?;
        let path = format!("{FOLDER}/{name}.txt");
        let recorded = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        removed.extend(gone(&recorded, &listed).map(|item| format!("{name}: {item}")));
        lists.push((path, listed));
    }
    ensure!(
        allow_removal || removed.is_empty(),
        "public items are only added, and these are gone or changed:\n{}\nput them back; for a new \
         major version, run `{COMMAND} --allow-removal`",
        removed.join("\n")
    );
    let items: usize = lists.iter().map(|(_, listed)| listed.lines().count()).sum();
    println!("{items} public items of {} crates", lists.len());
    for (path, listed) in lists {
        mode.apply(&path, &listed, COMMAND)?;
    }
    Ok(())
}

/// Whether cargo has called this program in place of rustdoc.
pub(crate) fn is_called_as_rustdoc() -> bool {
    std::env::var_os(AS_RUSTDOC).is_some()
}

/// Runs rustdoc with unstable options allowed, as its description of a crate as data is one.
pub(crate) fn call_rustdoc() -> anyhow::Result<()> {
    let status = Command::new("rustdoc")
        .args(std::env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove(AS_RUSTDOC)
        .status()
        .context("run rustdoc")?;
    std::process::exit(status.code().unwrap_or(1))
}

/// Describes crates as data, with all their features. Unstable options are allowed to rustdoc alone:
/// a variable that all of cargo sees would have every build script run again.
fn document(crates: &[String]) -> anyhow::Result<()> {
    let packages = crates.iter().flat_map(|name| ["--package", name]);
    let output = Command::new(cargo())
        .current_dir(root())
        .args([
            "doc",
            "--locked",
            "--quiet",
            "--lib",
            "--no-deps",
            "--all-features",
        ])
        .args(packages)
        .env("RUSTDOC", std::env::current_exe()?)
        .env(AS_RUSTDOC, "1")
        .env(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json --cap-lints allow",
        )
        .output()
        .context("run cargo doc")?;
    ensure!(
        output.status.success(),
        "cargo doc failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Returns the recorded items that are not listed any more.
fn gone<'t>(recorded: &'t str, listed: &str) -> impl Iterator<Item = &'t str> {
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    recorded.lines().filter(move |item| !listed.contains(*item))
}

/// Names of the workspace's libraries whose items are only added to, in order.
fn library_crates() -> anyhow::Result<Vec<String>> {
    let output = Command::new(cargo())
        .current_dir(root())
        .args(["metadata", "--locked", "--no-deps", "--format-version", "1"])
        .output()
        .context("run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array();
    let packages = packages.context("the answer of cargo metadata has no packages")?;
    let is_library = |package: &&Value| {
        let targets = package["targets"].as_array();
        let kinds = targets.into_iter().flatten();
        kinds
            .filter_map(|target| target["kind"].as_array())
            .flatten()
            .any(|kind| kind == "lib")
    };
    let mut names: Vec<String> = packages
        .iter()
        .filter(is_library)
        .filter_map(|package| package["name"].as_str().map(str::to_owned))
        .filter(|name| !NOT_FROZEN.contains(&name.as_str()))
        .collect();
    names.sort();
    Ok(names)
}

/// Lists the public items of a documented crate, one a line; those for tests may change.
fn public_items(name: &str) -> anyhow::Result<String> {
    let json = target_folder()
        .join("doc")
        .join(format!("{}.json", name.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| {
            format!(
                "read {}: the lists are made with the compiler that public-api in Cargo.toml is for",
                json.display()
            )
        })?;
    let items = api.items().map(|item| format!("{item}\n"));
    Ok(items.filter(|item| !item.contains("::testing")).collect())
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_gone_or_changed_is_found_and_a_new_one_is_not() {
        let recorded = "pub fn a::b()\npub fn a::c(u32)\n";
        let listed = "pub fn a::c(u64)\npub fn a::d()\npub fn a::b()\n";
        let gone: Vec<&str> = gone(recorded, listed).collect();
        assert_eq!(gone, ["pub fn a::c(u32)"]);
    }
}
