//! Circles of modules: within a crate, no module may use another that leads back to it.
//!
//! A module is a file, or an inline `mod`. It uses another module if a path in its code leads to a definition there. A
//! re-export leads to the definition, and is not itself a use. Unit tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use syn::visit::Visit;
use syn::{Item, UseTree};

use crate::mode::root;

/// Path of a module: the names from the crate's root, which has an empty path.
type Place = Vec<String>;

/// Fails when a module of a library or of the program leads back to itself.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for source in sources(&root())? {
        let crate_name = crate_name(&source);
        for circle in circles(&Modules::read(&source)?.uses()) {
            found.push(format!("{crate_name}: {circle}"));
        }
    }
    ensure!(
        found.is_empty(),
        "modules that lead back to themselves; move what both need into a module below them:\n  {}",
        found.join("\n  ")
    );
    Ok(())
}

/// The root files of all libraries and programs under `crates`, and of these tasks.
fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut crates = vec![root.join("xtask")];
    for entry in std::fs::read_dir(root.join("crates"))? {
        crates.push(entry?.path());
    }
    let mut sources = Vec::new();
    for folder in crates {
        let folder = folder.join("src");
        sources.extend(
            ["lib.rs", "main.rs"]
                .map(|file| folder.join(file))
                .into_iter()
                .filter(|file| file.exists()),
        );
    }
    sources.sort();
    Ok(sources)
}

fn crate_name(source: &Path) -> String {
    source
        .ancestors()
        .nth(2)
        .and_then(Path::file_name)
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Content of one module.
#[derive(Default)]
struct Module {
    /// The paths in its code, from the crate's root.
    paths: Vec<Place>,
    /// Targets of the names that are imported or re-exported here.
    imports: BTreeMap<String, Place>,
}

struct Modules {
    modules: BTreeMap<Place, Module>,
}

impl Modules {
    fn read(source: &Path) -> anyhow::Result<Self> {
        let mut modules = Self {
            modules: BTreeMap::new(),
        };
        let folder = source.parent().context("a source file has a folder")?;
        modules.read_file(source, folder, Vec::new())?;
        Ok(modules)
    }

    /// `folder` contains the files of the module's child modules.
    fn read_file(&mut self, file: &Path, folder: &Path, place: Place) -> anyhow::Result<()> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("parse {}", file.display()))?;
        self.read_items(&parsed.items, folder, place)
    }

    fn read_items(&mut self, items: &[Item], folder: &Path, place: Place) -> anyhow::Result<()> {
        let children: BTreeSet<String> = items
            .iter()
            .filter_map(|item| match item {
                Item::Mod(module) if !is_test(&module.attrs) => Some(module.ident.to_string()),
                _ => None,
            })
            .collect();
        let mut reader = Reader {
            place: &place,
            children: &children,
            module: Module::default(),
        };
        for item in items {
            reader.visit_item(item);
        }
        self.modules.insert(place.clone(), reader.module);
        for item in items {
            let Item::Mod(module) = item else { continue };
            if is_test(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let child: Place = place.iter().cloned().chain([name.clone()]).collect();
            let below = folder.join(&name);
            if let Some((_, items)) = &module.content {
                self.read_items(items, &below, child)?;
                continue;
            }
            let beside = folder.join(format!("{name}.rs"));
            let file = if beside.exists() {
                beside
            } else {
                below.join("mod.rs")
            };
            self.read_file(&file, &below, child)?;
        }
        Ok(())
    }

    /// The modules that each module uses.
    fn uses(&self) -> BTreeMap<Place, BTreeSet<Place>> {
        self.modules
            .iter()
            .map(|(place, module)| {
                let used = module
                    .paths
                    .iter()
                    .filter_map(|path| self.definition(path, 0))
                    .filter(|used| used != place)
                    .collect();
                (place.clone(), used)
            })
            .collect()
    }

    /// The module that defines the target of a path, through imports and re-exports.
    fn definition(&self, path: &[String], depth: usize) -> Option<Place> {
        // A re-export that leads to itself does not compile; a glob may meet one that is no item of ours.
        if depth > 16 {
            return None;
        }
        let at = (0..=path.len()).rev().find(|&at| {
            self.modules
                .contains_key(path.get(..at).unwrap_or_default())
        })?;
        let (place, rest) = path.split_at(at);
        let module = self.modules.get(place)?;
        let Some((name, rest)) = rest.split_first() else {
            return Some(place.to_vec());
        };
        if let Some(target) = module.imports.get(name) {
            let path: Place = target.iter().chain(rest).cloned().collect();
            return self.definition(&path, depth + 1);
        }
        Some(place.to_vec())
    }
}

/// Reads the paths of one module.
struct Reader<'a> {
    place: &'a Place,
    children: &'a BTreeSet<String>,
    module: Module,
}

impl Reader<'_> {
    /// The path from the crate's root; `None` for another crate's.
    fn absolute(&self, path: &[String]) -> Option<Place> {
        let mut place = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.place.clone(),
            child if self.children.contains(child) => {
                return Some(self.place.iter().chain(path).cloned().collect());
            }
            _ => return None,
        };
        for name in path {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => {
                    place.pop();
                }
                _ => place.push(name.clone()),
            }
        }
        Some(place)
    }

    fn imports(&mut self, tree: &UseTree, before: &mut Place, is_door: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.imports(&path.tree, before, is_door);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.imports(tree, before, is_door);
                }
            }
            UseTree::Name(name) => self.import(before, &name.ident, &name.ident, is_door),
            UseTree::Rename(rename) => self.import(before, &rename.ident, &rename.rename, is_door),
            UseTree::Glob(_) => {
                if let Some(target) = self.absolute(before)
                    && !is_door
                {
                    self.module.paths.push(target);
                }
            }
        }
    }

    fn import(
        &mut self,
        before: &[String],
        name: &syn::Ident,
        known_as: &syn::Ident,
        is_door: bool,
    ) {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        let Some(target) = self.absolute(&path) else {
            return;
        };
        if !is_door {
            self.module.paths.push(target.clone());
        }
        let known_as = if known_as == "self" {
            target.last().cloned().unwrap_or_default()
        } else {
            known_as.to_string()
        };
        self.module.imports.insert(known_as, target);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            // Modules are read by themselves.
            Item::Mod(_) => {}
            Item::Use(import) => {
                let is_door = !matches!(import.vis, syn::Visibility::Inherited);
                self.imports(&import.tree, &mut Vec::new(), is_door);
            }
            _ => syn::visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Place = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1
            && let Some(target) = self.absolute(&names)
        {
            self.module.paths.push(target);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(in crate::x)` says who may see a thing.
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

/// One line for each set of modules that lead to each other, with their uses.
fn circles(uses: &BTreeMap<Place, BTreeSet<Place>>) -> Vec<String> {
    let reached: BTreeMap<&Place, BTreeSet<&Place>> = uses
        .keys()
        .map(|from| (from, reached(uses, from)))
        .collect();
    let leads = |from: &Place, to: &Place| reached.get(from).is_some_and(|all| all.contains(to));
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for place in uses.keys() {
        if !leads(place, place) || told.contains(place) {
            continue;
        }
        let members: Vec<&Place> = uses
            .keys()
            .filter(|other| leads(place, other) && leads(other, place))
            .collect();
        told.extend(members.iter().copied());
        let arrows: Vec<String> = members
            .iter()
            .map(|from| {
                let to: Vec<String> = members
                    .iter()
                    .filter(|to| uses.get(*from).is_some_and(|used| used.contains(&***to)))
                    .map(|to| shown(to))
                    .collect();
                format!("{} -> {}", shown(from), to.join(", "))
            })
            .collect();
        circles.push(arrows.join("; "));
    }
    circles
}

fn reached<'a>(uses: &'a BTreeMap<Place, BTreeSet<Place>>, from: &Place) -> BTreeSet<&'a Place> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Place> = uses.get(from).into_iter().flatten().collect();
    while let Some(place) = open.pop() {
        if reached.insert(place) {
            open.extend(uses.get(place).into_iter().flatten());
        }
    }
    reached
}

fn shown(place: &Place) -> String {
    if place.is_empty() {
        "(root)".to_owned()
    } else {
        place.join("::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        for (file, text) in files {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        }
        let modules = Modules::read(&folder.path().join("lib.rs")).expect("modules");
        circles(&modules.uses())
    }

    #[test]
    fn modules_that_use_each_other_are_found() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; fn f() { let _ = super::a::A; }"),
        ];
        assert_eq!(found(&files), ["a -> b; b -> a"]);
    }

    #[test]
    fn a_module_and_its_parent_are_found() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; pub struct A; fn f() { b::g(); }"),
            ("a/b.rs", "use super::A; pub fn g() {}"),
        ];
        assert_eq!(found(&files), ["a -> a::b; a::b -> a"]);
    }

    #[test]
    fn a_re_export_is_no_use() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "use crate::B; pub struct A(B);"),
            (
                "b.rs",
                "pub struct B; #[cfg(test)] mod tests { use crate::A; }",
            ),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn a_re_export_leads_to_where_a_thing_is_defined() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "use crate::B; pub struct A(B);"),
            ("b.rs", "pub struct B(crate::A);"),
        ];
        assert_eq!(found(&files), ["a -> b; b -> a"]);
    }
}
