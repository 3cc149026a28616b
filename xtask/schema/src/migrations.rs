//! `cargo xtask migrations`: numbered, append-only steps whose sum is the schema source.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};

use crate::migration::{Migration, all, is_name};
use crate::mode::{Mode, root};
use crate::schema::{MIGRATIONS, SOURCE, build, docs, files};
use crate::{codegen, diff};

/// SHA-256 of each released migration: `sha256  file`, one a line, append-only.
const LOCK: &str = "crates/store-sqlite/migrations/lock";

pub(crate) fn run(words: &[&str], mode: Mode) -> anyhow::Result<()> {
    match words {
        ["new", name] => {
            let text = "-- What changes, and why.\n";
            begin(name, text, mode)
        }
        ["diff", name] => draft(name, mode),
        ["list"] => list(),
        ["check"] => check(),
        ["release"] => release(mode),
        _ => bail!("usage: cargo xtask migrations new NAME | diff NAME | list | check | release"),
    }
}

fn begin(name: &str, text: &str, mode: Mode) -> anyhow::Result<()> {
    ensure!(is_name(name), "{name}: a name is made of a-z, 0-9 and _");
    let version = all()?.len() + 1;
    let path = format!("{MIGRATIONS}/{version:04}_{name}.sql");
    match mode {
        Mode::Check => {
            println!("{path}: free");
            Ok(())
        }
        _ => mode.apply(&path, text, "cargo xtask migrations new"),
    }
}

fn draft(name: &str, mode: Mode) -> anyhow::Result<()> {
    let source = files(SOURCE)?;
    let sql = diff::draft(
        &build(&files(MIGRATIONS)?)?,
        &build(&source)?,
        &docs(&source),
    );
    if sql.is_empty() {
        println!("the migrations lead to the schema source already");
        return Ok(());
    }
    ensure!(
        mode != Mode::Check,
        "the migrations do not lead to {SOURCE}: run `cargo xtask migrations diff NAME`, then `cargo xtask codegen`"
    );
    begin(name, &sql, mode)
}

fn list() -> anyhow::Result<()> {
    let released = lock()?;
    for migration in all()? {
        let state = if released.contains_key(&migration.file) {
            "released"
        } else {
            "new"
        };
        println!("{:04}  {:<9} {}", migration.version, state, migration.name);
    }
    Ok(())
}

fn check() -> anyhow::Result<()> {
    let migrations = all()?;
    compare(&migrations, &lock()?)?;
    draft("", Mode::Check)?;
    codegen::run(Mode::Check)?;
    println!("{} migrations: in order", migrations.len());
    Ok(())
}

/// Released migrations are there, come first, and are as they were.
fn compare(migrations: &[Migration], lock: &BTreeMap<String, String>) -> anyhow::Result<()> {
    for migration in migrations {
        let file = &migration.file;
        match lock.get(file) {
            Some(sum) if *sum == migration.checksum() => {}
            Some(_) => bail!(
                "{MIGRATIONS}/{file} is released and was changed: restore it, and put the change in a migration of its \
                 own with `cargo xtask migrations new NAME`"
            ),
            None => ensure!(
                lock.keys().all(|released| released < file),
                "{MIGRATIONS}/{file} is not released but a later one is: give it the next number"
            ),
        }
    }
    for file in lock.keys() {
        ensure!(
            migrations.iter().any(|m| m.file == *file),
            "{MIGRATIONS}/{file} is released and is gone: restore it"
        );
    }
    Ok(())
}

fn lock() -> anyhow::Result<BTreeMap<String, String>> {
    let path = root().join(LOCK);
    let text = if path.exists() {
        std::fs::read_to_string(path)?
    } else {
        String::new()
    };
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((sum, file)) = line.split_once("  ") else {
            bail!("{LOCK}: `{line}` is not `sha256  file`: restore the file");
        };
        found.insert(file.to_owned(), sum.to_owned());
    }
    Ok(found)
}

fn release(mode: Mode) -> anyhow::Result<()> {
    let migrations = all()?;
    compare(&migrations, &lock()?)?;
    let text: String = migrations
        .iter()
        .map(|m| format!("{}  {}\n", m.checksum(), m.file))
        .collect();
    mode.apply(LOCK, &text, "cargo xtask migrations release")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::number;

    fn two() -> Vec<Migration> {
        let files = [
            ("0001_a.sql", "create table a (x);"),
            ("0002_b.sql", "create table b (x);"),
        ];
        number(files.map(|(f, t)| (f.to_owned(), t.to_owned())).to_vec()).unwrap()
    }

    #[test]
    fn numbers_are_dense() {
        assert_eq!(two()[1].version, 2);
        for bad in ["0002_a.sql", "0001_A.sql", "1_a.sql", "0001_.sql"] {
            assert!(
                number(vec![(bad.to_owned(), String::new())]).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn released_migrations_do_not_change() {
        let all = two();
        let lock: BTreeMap<_, _> = all
            .iter()
            .take(1)
            .map(|m| (m.file.clone(), m.checksum()))
            .collect();
        compare(&all, &lock).unwrap();
        compare(&all[1..], &lock).unwrap_err();
        let mut edited = two();
        edited[0].text.push(' ');
        let error = compare(&edited, &lock).unwrap_err().to_string();
        assert!(error.contains("cargo xtask migrations new"), "{error}");
        let later: BTreeMap<_, _> = all
            .iter()
            .skip(1)
            .map(|m| (m.file.clone(), m.checksum()))
            .collect();
        compare(&all, &later).unwrap_err();
    }

    #[test]
    fn the_repository_is_in_order() {
        check().unwrap();
    }
}
