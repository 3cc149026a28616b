//! Checks that the tests named in `docs/parity.md` and `docs/promises.md` exist and run.
//!
//! A test is named as code: `` `crate: module::name` ``. The modules are the path below `tests/it` or `src` of the file
//! with the test; a module `tests` inside of that file may be left out. A test of the suite for every store is
//! `` `store-sqlite: conformance::files::name` ``.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::mode::root;

/// The page of the laws, with the tests and mutations of each.
pub(crate) const PROMISES: &str = "docs/promises.md";

/// Fails if a page names a test that does not exist, or has a row without a test.
pub(crate) fn run() -> anyhow::Result<()> {
    for page in ["docs/parity.md", PROMISES] {
        let text =
            std::fs::read_to_string(root().join(page)).with_context(|| format!("read {page}"))?;
        let rows = rows(&text);
        ensure!(!rows.is_empty(), "{page} has no row with a test");
        let problems = problems(&root(), &rows)?;
        ensure!(
            problems.is_empty(),
            "name tests that exist in {page}, or move these rows to its section Open:\n  {}",
            problems.join("\n  ")
        );
        let tests: usize = rows.iter().map(|row| row.tests.len()).sum();
        println!(
            "the {tests} tests that {page} names in {} rows exist",
            rows.len()
        );
    }
    Ok(())
}

/// A row of a table that has a column `test`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    /// Number of its line.
    line: usize,
    tests: Vec<TestName>,
}

/// A test as the page names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestName {
    crate_name: String,
    modules: Vec<String>,
    function: String,
}

impl TestName {
    /// Reads `crate: module::name`; `None` for other code.
    pub(crate) fn parse(code: &str) -> Option<Self> {
        let (crate_name, path) = code.split_once(": ")?;
        let is_word = |word: &str, dash: bool| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || (dash && c == '-');
            !word.is_empty() && word.chars().all(allowed)
        };
        let mut modules: Vec<String> = path.split("::").map(str::to_owned).collect();
        let words = modules.iter().all(|word| is_word(word, false));
        let function = modules.pop()?;
        (is_word(crate_name, true) && words).then(|| Self {
            crate_name: crate_name.to_owned(),
            modules,
            function,
        })
    }

    pub(crate) fn crate_name(&self) -> &str {
        &self.crate_name
    }

    /// Returns the path of the test in its binary, without modules `tests`.
    pub(crate) fn path(&self) -> String {
        let modules = self.modules.iter().map(String::as_str);
        let path: Vec<&str> = modules.chain([self.function.as_str()]).collect();
        path.join("::")
    }

    /// Returns whether a macro of the crate `store-conformance` writes the test.
    fn is_in_suite(&self) -> anyhow::Result<bool> {
        let case = format!("pub async fn {}<", self.function);
        let is_suite = self
            .modules
            .first()
            .is_some_and(|name| name == "conformance");
        for file in files(&root().join("crates/store-conformance/src/cases"))? {
            if is_suite && std::fs::read_to_string(&file)?.contains(&case) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the options of `cargo test` for the binary with the test.
    pub(crate) fn target(&self, root: &Path) -> anyhow::Result<&'static [&'static str]> {
        if self.is_in_suite()? {
            return Ok(&["--test", "it"]);
        }
        let folder = folder(root, &self.crate_name).context("a crate has a folder")?;
        let tests = folder.join("tests/it");
        for file in files(&tests)? {
            let path = file.strip_prefix(&tests)?;
            let text = std::fs::read_to_string(&file)?;
            if find_in(&modules(path), &text, self) == Found::Runs {
                return Ok(&["--test", "it"]);
            }
        }
        let is_library = folder.join("src/lib.rs").is_file();
        Ok(if is_library { &["--lib"] } else { &["--bins"] })
    }
}

impl std::fmt::Display for TestName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.crate_name)?;
        for module in &self.modules {
            write!(f, "{module}::")?;
        }
        f.write_str(&self.function)
    }
}

/// The cells of a line of a table; `None` for other lines.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// The code spans of a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of all tables that have a column `test`.
fn rows(page: &str) -> Vec<Row> {
    let (mut rows, mut column, mut in_table) = (Vec::new(), None, false);
    for (number, line) in (1..).zip(page.lines()) {
        let Some(cells) = cells(line) else {
            in_table = false;
            continue;
        };
        if !in_table {
            (in_table, column) = (true, cells.iter().position(|cell| *cell == "test"));
            continue;
        }
        let is_rule = cells
            .iter()
            .all(|cell| cell.chars().all(|c| "-: ".contains(c)));
        let Some(column) = column.filter(|_| !is_rule) else {
            continue;
        };
        let cell = cells.get(column).copied().unwrap_or_default();
        rows.push(Row {
            line: number,
            tests: code(cell).filter_map(TestName::parse).collect(),
        });
    }
    rows
}

/// The problems of the rows, a line each.
fn problems(root: &Path, rows: &[Row]) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for Row { line, tests } in rows {
        if tests.is_empty() {
            problems.push(format!("line {line} names no test"));
        }
        for test in tests {
            let found = match folder(root, &test.crate_name) {
                Some(folder) => find(&folder, test)?,
                None => Found::Nowhere,
            };
            match found {
                Found::Runs => {}
                Found::Ignored => problems.push(format!("line {line}: {test} is ignored")),
                Found::NoTest => problems.push(format!("line {line}: {test} is no test")),
                Found::Nowhere => problems.push(format!("line {line}: {test} does not exist")),
            }
        }
    }
    Ok(problems)
}

/// The folder of a crate.
fn folder(root: &Path, crate_name: &str) -> Option<PathBuf> {
    let folders = ["crates", "adapters", ""].map(|folder| root.join(folder).join(crate_name));
    folders
        .into_iter()
        .find(|folder| folder.join("Cargo.toml").exists())
}

/// Result of looking for a test's name, best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nowhere,
    /// A function that is not a test.
    NoTest,
    /// A test that only runs on request.
    Ignored,
    Runs,
}

/// Looks for a test in the sources of a crate, or in the suite for every store.
fn find(folder: &Path, test: &TestName) -> anyhow::Result<Found> {
    if test.is_in_suite()? {
        return Ok(Found::Runs);
    }
    let mut best = Found::Nowhere;
    for sources in ["src", "tests"] {
        let sources = folder.join(sources);
        for file in files(&sources)? {
            let path = file.strip_prefix(&sources)?;
            let text = std::fs::read_to_string(&file)?;
            best = best.max(find_in(&modules(path), &text, test));
        }
    }
    Ok(best)
}

/// The Rust files below a folder; empty if it does not exist.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The module path of a file, from its path below `src` or `tests`.
fn modules(path: &Path) -> Vec<String> {
    let words = path.with_extension("");
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    let is_module = |word: &String| !["it", "lib", "main", "mod"].contains(&word.as_str());
    words.filter(is_module).collect()
}

/// Looks for a test in a file with these modules.
fn find_in(file: &[String], text: &str, test: &TestName) -> Found {
    let lines: Vec<&str> = text.lines().collect();
    // Inline modules around a line, with their indentation.
    let mut inline: Vec<(usize, &str)> = Vec::new();
    let mut best = Found::Nowhere;
    for (number, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if !line.trim().is_empty() {
            inline.retain(|(outer, _)| *outer < indent);
        }
        if let Some(name) = declared(line, "mod ").filter(|_| line.ends_with('{')) {
            inline.push((indent, name));
        }
        if declared(line, "fn ") != Some(test.function.as_str()) {
            continue;
        }
        let inner: Vec<&str> = inline
            .iter()
            .map(|(_, name)| *name)
            .filter(|name| *name != "tests" || test.modules.iter().any(|word| word == "tests"))
            .collect();
        let place = file.iter().map(String::as_str).chain(inner);
        if place.eq(test.modules.iter().map(String::as_str)) {
            best = best.max(kind(&lines, number));
        }
    }
    best
}

/// The name that a line declares after a keyword.
fn declared<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let mut rest = line.trim_start();
    for before in ["pub(crate) ", "pub ", "async "] {
        rest = rest.strip_prefix(before).unwrap_or(rest);
    }
    let name = rest.strip_prefix(keyword)?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    name.get(..end.unwrap_or(name.len()))
}

/// The kind of a function by the attributes before its line.
fn kind(lines: &[&str], function: usize) -> Found {
    let before = lines.iter().take(function).rev().map(|line| line.trim());
    let before: Vec<&str> = before
        .take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';']))
        .collect();
    let has = |start: &str| before.iter().any(|line| line.starts_with(start));
    match has("#[test]") || has("#[tokio::test") {
        true if has("#[ignore") => Found::Ignored,
        true => Found::Runs,
        false => Found::NoTest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_that_the_page_names_exists() {
        run().unwrap();
    }

    fn write(folder: &Path, path: &str, text: &str) {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn a_name_that_is_no_test_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let crate_file = |path: &str, text: &str| {
            write(folder.path(), &format!("crates/a-b/{path}"), text);
        };
        crate_file("Cargo.toml", "");
        crate_file(
            "src/cut.rs",
            "fn helper() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn short() {}\n\n    proptest! {\n        /// Law.\n        \
             #[test]\n        fn law(n in 0..9) {}\n    }\n}\n",
        );
        crate_file(
            "tests/it/deep/mod.rs",
            "#[tokio::test(flavor = \"multi_thread\")]\n#[expect(\n    clippy::x,\n    reason = \"y\"\n)]\nasync fn waits() {}\n\n\
             #[test]\n#[ignore = \"slow\"]\nfn slow() {}\n",
        );
        crate_file("tests/it/main.rs", "mod deep;\n\n#[test]\nfn top() {}\n");
        for (name, problem) in [
            ("a-b: cut::short", None),
            ("a-b: cut::tests::short", None),
            ("a-b: cut::law", None),
            ("a-b: deep::waits", None),
            ("a-b: top", None),
            ("a-b: cut::shorter", Some("does not exist")),
            ("a-b: short", Some("does not exist")),
            ("a-b: other::short", Some("does not exist")),
            ("a-b: deep::short", Some("does not exist")),
            ("b-a: cut::short", Some("does not exist")),
            ("a-b: cut::helper", Some("is no test")),
            ("a-b: deep::slow", Some("is ignored")),
        ] {
            let page = format!("| what | test |\n|---|---|\n| x | see `{name}` |\n");
            let found = problems(folder.path(), &rows(&page)).unwrap();
            let expected = problem.map(|problem| format!("line 3: {name} {problem}"));
            assert_eq!(found, Vec::from_iter(expected), "{name}");
        }
    }

    #[test]
    fn tables_with_a_column_of_tests_name_one_in_each_row() {
        let page = "| what | here | test |\n|---|:--|--:|\n| a | `X: y` | `c: m::f`, `c: g` |\n| b | `c: m::f` | none |\n\n\
                    | what | missing |\n|---|---|\n| c | all |\n";
        let found = rows(page);
        let counts: Vec<(usize, usize)> = found
            .iter()
            .map(|row| (row.line, row.tests.len()))
            .collect();
        assert_eq!(counts, [(3, 2), (4, 0)]);
        assert_eq!(found[0].tests[0].to_string(), "c: m::f");
        let folder = tempfile::tempdir().unwrap();
        let problems = problems(folder.path(), &found[1..]).unwrap();
        assert_eq!(problems, ["line 4 names no test"]);
    }
}
