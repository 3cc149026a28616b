//! Size of the workspace: code lines, crates, public items, packages, and the program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::api;
use crate::mode::{root, target_folder};
use crate::sources::{files, folders};
use crate::surface::surface;

/// Code lines of files: neither blank nor only a comment.
#[derive(Clone, Copy, Default)]
struct Lines {
    /// In `src`, unit tests included.
    src: usize,
    /// Of `src`, lines of unit tests.
    unit_tests: usize,
    /// In `tests`.
    tests: usize,
    /// In `benches` and `examples`.
    other: usize,
}

impl Lines {
    fn all(self) -> usize {
        self.src + self.tests + self.other
    }

    fn add(&mut self, more: Self) {
        self.src += more.src;
        self.unit_tests += more.unit_tests;
        self.tests += more.tests;
        self.other += more.other;
    }
}

/// Prints the table, of this checkout or of another one. `--items` counts public items too, which takes a run of rustdoc.
pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let items = match flags {
        [] => false,
        [flag] if flag == "--items" => true,
        _ => anyhow::bail!("flags of size: at most --items"),
    };
    let root = match words {
        [] => root(),
        [folder] => PathBuf::from(folder),
        _ => anyhow::bail!("usage: cargo xtask size [FOLDER] [--items]"),
    };
    ensure!(
        root.join("Cargo.toml").is_file(),
        "{} has no Cargo.toml: name the root of a checkout",
        root.display()
    );
    println!(
        "{:<28} {:>8} {:>10} {:>8} {:>8} {:>8}",
        "code lines", "src", "unit tests", "tests", "other", "all"
    );
    let crates = folders(&root.join("crates"))?;
    let mut total = Lines::default();
    let print = |name: &str, lines: Lines| {
        println!(
            "{name:<28} {:>8} {:>10} {:>8} {:>8} {:>8}",
            lines.src,
            lines.unit_tests,
            lines.tests,
            lines.other,
            lines.all()
        );
    };
    for folder in &crates {
        let lines = package(folder)?;
        total.add(lines);
        print(&name(folder), lines);
    }
    print("all crates", total);
    for part in ["adapters", "xtask", "xtask/research"] {
        let lines = nested(&root.join(part), part == "xtask")?;
        total.add(lines);
        print(part, lines);
    }
    print("all", total);
    println!("\ncrates: {}", crates.len());
    let surface = surface(&root)?;
    println!(
        "agent-memory: {} names at the root, {} globs; Session: {} methods, Builder: {} methods",
        surface.root_names, surface.globs, surface.session, surface.builder
    );
    println!("methods `with_…` of all crates: {}", surface.setters);
    for package in ["agent-memory", "agent-memory-cli"] {
        println!(
            "packages that {package} needs: {}",
            packages(&root, package)?
        );
    }
    if items {
        println!("public items: {}", api::count()?);
    }
    let program = target_folder().join("release/agent-memory");
    match std::fs::metadata(&program) {
        Ok(file) => println!("program: {:.1} MB", file.len() as f64 / 1e6),
        Err(_) => println!("program: not built"),
    }
    Ok(())
}

/// Lines of a package.
fn package(folder: &Path) -> anyhow::Result<Lines> {
    let mut lines = Lines::default();
    for (part, file) in files(folder)? {
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let (code, unit_tests) = count(&text, name(&file) == "tests.rs");
        match part.as_str() {
            "src" => {
                lines.src += code;
                lines.unit_tests += unit_tests;
            }
            "tests" => lines.tests += code,
            _ => lines.other += code,
        }
    }
    Ok(lines)
}

/// Lines of all packages in a folder, or of the folder if it is a package. Excludes research in `xtask`.
fn nested(folder: &Path, without_research: bool) -> anyhow::Result<Lines> {
    let mut lines = Lines::default();
    if folder.join("src").is_dir() {
        lines.add(package(folder)?);
    }
    if folder.is_dir() {
        for inner in folders(folder)? {
            let research = without_research && inner.ends_with("research");
            if inner.join("Cargo.toml").is_file() && !research {
                lines.add(nested(&inner, false)?);
            }
        }
    }
    Ok(lines)
}

/// Number of code lines of a file, and of its unit tests, which are last in a file or all of it.
fn count(text: &str, all_tests: bool) -> (usize, usize) {
    let (mut code, mut tests) = (0, 0);
    let mut in_tests = all_tests;
    let mut after_attribute = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        in_tests |= after_attribute && line.starts_with("mod ") && line.ends_with('{');
        after_attribute = line == "#[cfg(test)]";
        code += 1;
        tests += usize::from(in_tests);
    }
    (code, tests)
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Number of packages that a package is built from, itself included.
fn packages(root: &Path, package: &str) -> anyhow::Result<usize> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args([
            "tree",
            "--locked",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .args(["--format", "{p}", "--package", package])
        .output()
        .context("run cargo tree")?;
    ensure!(
        output.status.success(),
        "cargo tree failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listed = String::from_utf8_lossy(&output.stdout);
    let distinct: BTreeSet<&str> = listed.lines().collect();
    Ok(distinct.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_no_code_and_unit_tests_are_told_apart() {
        let text = "//! Docs.\n\nfn a() {\n    // Why.\n}\n\n#[cfg(test)]\nuse b;\n\n#[cfg(test)]\nmod tests {\n    use c;\n}\n";
        assert_eq!(count(text, false), (8, 3));
        assert_eq!(count("fn a() {}\n", true), (1, 1));
    }
}
