//! How large the API of the facade is: names, methods and setters.

use std::path::Path;

use anyhow::Context as _;
use syn::{ImplItem, Item, UseTree, Visibility};

use crate::sources::{files, folders};

/// Counts of public items.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Surface {
    /// Names at the root of `agent-memory`, modules included.
    pub(crate) root_names: usize,
    /// Re-exports of everything in a module of `agent-memory`.
    pub(crate) globs: usize,
    /// Public methods of `Session`.
    pub(crate) session: usize,
    /// Public methods of `Builder`.
    pub(crate) builder: usize,
    /// Public methods of all crates that begin with `with_`.
    pub(crate) setters: usize,
}

/// Counts the API of a checkout.
pub(crate) fn surface(root: &Path) -> anyhow::Result<Surface> {
    let mut surface = Surface::default();
    let facade = root.join("crates/agent-memory/src");
    for item in parse(&facade.join("lib.rs"))?.items {
        match &item {
            Item::Use(item) if is_public(&item.vis) => surface.root_names += names(&item.tree).0,
            Item::Mod(item) if is_public(&item.vis) => surface.root_names += 1,
            _ => {}
        }
        surface.globs += globs(&item);
    }
    let mut sources = Vec::new();
    for folder in folders(&root.join("crates"))? {
        let all = files(&folder)?.into_iter();
        sources.extend(all.filter(|(part, _)| part == "src").map(|(_, file)| file));
    }
    for file in sources {
        for item in parse(&file)?.items {
            let Item::Impl(item) = item else { continue };
            let syn::Type::Path(of) = &*item.self_ty else {
                continue;
            };
            let of = of.path.segments.last().map(|one| one.ident.to_string());
            let methods = item.items.iter().filter_map(|one| match one {
                ImplItem::Fn(method) if is_public(&method.vis) => Some(&method.sig),
                _ => None,
            });
            let methods: Vec<_> = methods.collect();
            surface.setters += methods
                .iter()
                .filter(|one| {
                    one.receiver().is_some() && one.ident.to_string().starts_with("with_")
                })
                .count();
            if file.starts_with(&facade) {
                match of.as_deref() {
                    Some("Session") => surface.session += methods.len(),
                    Some("Builder") => surface.builder += methods.len(),
                    _ => {}
                }
            }
        }
    }
    Ok(surface)
}

fn parse(file: &Path) -> anyhow::Result<syn::File> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    syn::parse_file(&text).with_context(|| format!("parse {}", file.display()))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the number of names and of globs in a `use`.
fn names(tree: &UseTree) -> (usize, usize) {
    match tree {
        UseTree::Path(path) => names(&path.tree),
        UseTree::Name(_) | UseTree::Rename(_) => (1, 0),
        UseTree::Glob(_) => (0, 1),
        UseTree::Group(group) => group
            .items
            .iter()
            .map(names)
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)),
    }
}

/// Returns the number of public globs in an item and in the modules inside it.
fn globs(item: &Item) -> usize {
    match item {
        Item::Use(item) if is_public(&item.vis) => names(&item.tree).1,
        Item::Mod(item) => {
            let inner = item.content.iter().flat_map(|(_, items)| items);
            inner.map(globs).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_methods_and_setters_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let src = folder.path().join("crates/agent-memory/src");
        std::fs::create_dir_all(&src).unwrap();
        let lib = "mod a; pub use a::{Session, b as c}; pub mod d { pub use e::{f::*, g}; }";
        std::fs::write(src.join("lib.rs"), lib).unwrap();
        let a = "pub struct Session; impl Session { pub fn a(&self) {} fn b(&self) {} \
                 pub fn with_c(self) -> Self { self } pub fn with_capacity() -> Self { Self } }";
        std::fs::write(src.join("a.rs"), a).unwrap();
        let expected = Surface {
            root_names: 3,
            globs: 1,
            session: 3,
            builder: 0,
            setters: 1,
        };
        assert_eq!(surface(folder.path()).unwrap(), expected);
    }
}
