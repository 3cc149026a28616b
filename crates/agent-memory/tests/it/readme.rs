//! Checks that the READMEs agree.

use std::path::Path;

/// Returns the first block of Rust code in a README, without the lines that rustdoc hides.
fn first_block(readme: &str) -> String {
    let (_, rest) = readme.split_once("```rust\n").unwrap();
    let (block, _) = rest.split_once("```\n").unwrap();
    let shown = block.lines().filter(|line| !line.starts_with("# "));
    shown.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_readme_begins_with_the_loop_that_the_documentation_tests_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let tested = first_block(&read(&folder.join("README.md")));
    assert_eq!(first_block(&read(&folder.join("../../README.md"))), tested);
    let code = tested
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("use "));
    assert!(code.count() <= 24, "{tested}");
}
