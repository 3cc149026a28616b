//! The public items of each library crate, in `docs/api`: items may be added, and none may go.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::mode::{Mode, root};

const FOLDER: &str = "docs/api";
const COMMAND: &str = "cargo xtask api";

/// Writes or checks the lists. `flags` may hold `--allow-removal`, which a new major version needs.
pub(crate) fn run(flags: &[String]) -> anyhow::Result<()> {
    let is_removal = |flag: &String| flag == "--allow-removal";
    let allow_removal = flags.iter().any(is_removal);
    let rest: Vec<String> = flags.iter().filter(|f| !is_removal(f)).cloned().collect();
    let mode = Mode::from_flags(&rest)?;
    let mut removed = Vec::new();
    let mut counts = Vec::new();
    for name in library_crates()? {
        let listed = public_items(&name)?;
        let path = format!("{FOLDER}/{name}.txt");
        let recorded = std::fs::read_to_string(root().join(&path)).unwrap_or_default();
        removed.extend(gone(&recorded, &listed).map(|item| format!("{name}: {item}")));
        counts.push((listed.lines().count(), name, path, listed));
    }
    ensure!(
        allow_removal || removed.is_empty(),
        "public items are only added, and these are gone or changed:\n{}\nput them back; for a new \
         major version, run `{COMMAND} --allow-removal`",
        removed.join("\n")
    );
    for (count, name, path, listed) in counts {
        println!("{name}: {count} public items");
        mode.apply(&path, &listed, COMMAND)?;
    }
    Ok(())
}

/// Returns the recorded items that are not listed any more.
fn gone<'t>(recorded: &'t str, listed: &str) -> impl Iterator<Item = &'t str> {
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    recorded.lines().filter(move |item| !listed.contains(*item))
}

/// Names of the workspace's packages that are libraries, in order.
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
        .collect();
    names.sort();
    Ok(names)
}

/// Lists the public items of a crate with all its features, one a line.
fn public_items(name: &str) -> anyhow::Result<String> {
    // The compiler describes a crate as data only where unstable options are allowed.
    let documented = Command::new(cargo())
        .current_dir(root())
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["rustdoc", "--locked", "--quiet", "--lib", "--all-features"])
        .args(["--package", name, "--", "-Z", "unstable-options"])
        .args(["--output-format", "json", "--cap-lints", "allow"])
        .output()
        .context("run cargo rustdoc")?;
    ensure!(
        documented.status.success(),
        "cargo rustdoc of {name} failed: {}",
        String::from_utf8_lossy(&documented.stderr)
    );
    let json = target_folder()
        .join("doc")
        .join(format!("{}.json", name.replace('-', "_")));
    let listed = Command::new(public_api())
        .arg("public-api")
        .args([
            "--omit",
            "blanket-impls,auto-trait-impls,auto-derived-impls",
        ])
        .arg("--rustdoc-json")
        .arg(&json)
        .output()
        .context("run cargo-public-api: install it with `cargo install cargo-public-api`")?;
    ensure!(
        listed.status.success(),
        "cargo-public-api of {} failed: {}",
        json.display(),
        String::from_utf8_lossy(&listed.stderr)
    );
    Ok(String::from_utf8(listed.stdout)?)
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// `CARGO_PUBLIC_API` names the program where it is not on the path.
fn public_api() -> std::ffi::OsString {
    std::env::var_os("CARGO_PUBLIC_API").unwrap_or_else(|| "cargo-public-api".into())
}

fn target_folder() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| Path::new(&root()).join("target"))
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
