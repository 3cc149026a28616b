//! The public items of each library crate, from rustdoc.

use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::mode::{root, target_folder};

/// Set if cargo calls this program instead of rustdoc; see [`document`].
const AS_RUSTDOC: &str = "AGENT_MEMORY_XTASK_AS_RUSTDOC";

/// Writes the items of each crate into a file in `target/api`, one a line, and prints their numbers.
pub(crate) fn run() -> anyhow::Result<()> {
    let folder = target_folder().join("api");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let mut all = 0;
    for (name, items) in items()? {
        let count = items.lines().count();
        all += count;
        println!("{name:<28} {count:>6}");
        let file = folder.join(format!("{name}.txt"));
        std::fs::write(&file, items).with_context(|| format!("write {}", file.display()))?;
    }
    println!("{:<28} {all:>6}\nlists: {}", "all", folder.display());
    Ok(())
}

/// Counts the public items of all libraries.
pub(crate) fn count() -> anyhow::Result<usize> {
    let items = items()?;
    Ok(items.iter().map(|(_, items)| items.lines().count()).sum())
}

/// The public items of each library.
fn items() -> anyhow::Result<Vec<(String, String)>> {
    let names = library_crates()?;
    document(&names)?;
    let listed = names.into_iter().map(|name| {
        let items = public_items(&name)?;
        Ok((name, items))
    });
    listed.collect()
}

/// Whether cargo called this program instead of rustdoc.
pub(crate) fn is_called_as_rustdoc() -> bool {
    std::env::var_os(AS_RUSTDOC).is_some()
}

/// Runs rustdoc with unstable options, which its JSON output needs.
pub(crate) fn call_rustdoc() -> anyhow::Result<()> {
    let status = Command::new("rustdoc")
        .args(std::env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove(AS_RUSTDOC)
        .status()
        .context("run rustdoc")?;
    std::process::exit(status.code().unwrap_or(1))
}

/// Writes rustdoc JSON of crates, with all their features. Only rustdoc gets the unstable options: an environment
/// variable for all of cargo would rerun every build script.
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

/// Names of the published libraries, in order.
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
        let published = package["publish"].is_null();
        published
            && kinds
                .filter_map(|target| target["kind"].as_array())
                .flatten()
                .any(|kind| kind == "lib")
    };
    let mut names: Vec<String> = packages
        .iter()
        .filter(is_library)
        .filter_map(|package| package["name"].as_str().map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// Lists the public items of a documented crate, one a line, without those for tests, which may change.
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
