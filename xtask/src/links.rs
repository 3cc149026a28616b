//! Links between the pages of the repository.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::mode::root;

/// Checks that every relative link of the pages leads to a file or a folder.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = root();
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["docs", "crates", "adapters"] {
        collect(&root.join(folder), &mut pages)?;
    }
    let mut broken = Vec::new();
    for page in &pages {
        let text =
            std::fs::read_to_string(page).with_context(|| format!("read {}", page.display()))?;
        let folder = page.parent().unwrap_or(&root);
        for link in links(&text).filter(|link| !folder.join(link).exists()) {
            broken.push(format!("{}: {link}", page.display()));
        }
    }
    ensure!(
        broken.is_empty(),
        "links that lead nowhere; mend them:\n  {}",
        broken.join("\n  ")
    );
    println!("{} pages: every relative link leads to a file", pages.len());
    Ok(())
}

/// Adds the pages of a folder, without the sources and fixtures of crates.
fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let skipped = ["src", "tests", "target", "benches"]
            .iter()
            .any(|name| path.ends_with(name));
        if path.is_dir() && !skipped {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Returns the relative links of a page, without fragments. Links to items of Rust are left out.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let link = rest.split_once(')')?.0.split('#').next()?;
        let is_file = link.contains(['/', '.']) && !link.contains("::") && !link.contains(' ');
        let is_relative = is_file && !link.contains("://") && !link.starts_with("mailto:");
        is_relative.then_some(link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_links_are_found() {
        let text = "[a](docs/a.md#b), [c](https://c.org/d), [e](crate::f), [g](#h), [i](../j)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md", "../j"]);
    }
}
