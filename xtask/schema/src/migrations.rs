//! `cargo xtask migrations`: numbered, append-only steps that lead to the schema of each database.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};

use crate::migration::{Migration, all, is_name};
use crate::mode::{Mode, root};
use crate::schema::{Database, POSTGRES, SQLITE, build, docs, files};
use crate::{codegen, diff};

/// The first migration. `cargo xtask codegen` writes it from the schema until it is released.
pub(crate) const INITIAL: &str = "0001_initial.sql";

pub(crate) fn run(words: &[&str], mode: Mode) -> anyhow::Result<()> {
    let text = "-- What changes, and why.\n";
    match words {
        ["new", name] => begin(SQLITE, name, text, mode),
        ["new", "postgres", name] => begin(POSTGRES, name, text, mode),
        ["diff", name] => draft(name, mode),
        ["list"] => list(),
        ["check"] => check(),
        ["release"] => release(mode),
        _ => bail!(
            "usage: cargo xtask migrations new NAME | new postgres NAME | diff NAME | list | check | release"
        ),
    }
}

fn begin(database: Database, name: &str, text: &str, mode: Mode) -> anyhow::Result<()> {
    ensure!(is_name(name), "{name}: a name is made of a-z, 0-9 and _");
    ensure!(
        is_released(database, INITIAL)?,
        "{}/{INITIAL} is not released: change {} and run `cargo xtask codegen`, which writes it",
        database.migrations(),
        database.schema()
    );
    let version = all(database)?.len() + 1;
    let path = format!("{}/{version:04}_{name}.sql", database.migrations());
    match mode {
        Mode::Check => {
            println!("{path}: free");
            Ok(())
        }
        _ => mode.apply(&path, text, "cargo xtask migrations new"),
    }
}

fn draft(name: &str, mode: Mode) -> anyhow::Result<()> {
    let source = files(&SQLITE.schema())?;
    let sql = diff::draft(
        &build(&files(&SQLITE.migrations())?)?,
        &build(&source)?,
        &docs(&source),
    );
    if sql.is_empty() {
        println!("the migrations lead to the schema source already");
        return Ok(());
    }
    ensure!(
        mode != Mode::Check,
        "the migrations do not lead to {}: run `cargo xtask codegen`, and once they are released, before that \
         `cargo xtask migrations diff NAME`",
        SQLITE.schema()
    );
    begin(SQLITE, name, &sql, mode)
}

fn list() -> anyhow::Result<()> {
    for database in [SQLITE, POSTGRES] {
        println!("{}", database.migrations());
        let released = lock(database)?;
        for migration in all(database)? {
            let state = if released.contains_key(&migration.file) {
                "released"
            } else {
                "new"
            };
            println!("{:04}  {state:<9} {}", migration.version, migration.name);
        }
    }
    Ok(())
}

fn check() -> anyhow::Result<()> {
    for database in [SQLITE, POSTGRES] {
        let migrations = all(database)?;
        compare(&database.migrations(), &migrations, &lock(database)?)?;
        println!("{}: {} in order", database.migrations(), migrations.len());
    }
    codegen::run(Mode::Check)?;
    draft("", Mode::Check)
}

/// Released migrations are there, come first, and are as they were.
fn compare(
    folder: &str,
    migrations: &[Migration],
    lock: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for migration in migrations {
        let file = &migration.file;
        match lock.get(file) {
            Some(sum) if *sum == migration.checksum() => {}
            Some(_) => bail!(
                "{folder}/{file} is released and was changed: restore it, and put the change in a migration of its \
                 own with `cargo xtask migrations new`"
            ),
            None => ensure!(
                lock.keys().all(|released| released < file),
                "{folder}/{file} is not released but a later one is: give it the next number"
            ),
        }
    }
    for file in lock.keys() {
        ensure!(
            migrations.iter().any(|m| m.file == *file),
            "{folder}/{file} is released and is gone: restore it"
        );
    }
    Ok(())
}

/// Whether a migration is released.
pub(crate) fn is_released(database: Database, file: &str) -> anyhow::Result<bool> {
    Ok(lock(database)?.contains_key(file))
}

fn lock(database: Database) -> anyhow::Result<BTreeMap<String, String>> {
    let lock = database.lock();
    let path = root().join(&lock);
    let text = if path.exists() {
        std::fs::read_to_string(path)?
    } else {
        String::new()
    };
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((sum, file)) = line.split_once("  ") else {
            bail!("{lock}: `{line}` is not `sha256  file`: restore the file");
        };
        found.insert(file.to_owned(), sum.to_owned());
    }
    Ok(found)
}

fn release(mode: Mode) -> anyhow::Result<()> {
    for database in [SQLITE, POSTGRES] {
        let migrations = all(database)?;
        compare(&database.migrations(), &migrations, &lock(database)?)?;
        let text: String = migrations
            .iter()
            .map(|m| format!("{}  {}\n", m.checksum(), m.file))
            .collect();
        mode.apply(&database.lock(), &text, "cargo xtask migrations release")?;
    }
    Ok(())
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
        number(
            "migrations",
            files.map(|(f, t)| (f.to_owned(), t.to_owned())).to_vec(),
        )
        .unwrap()
    }

    #[test]
    fn numbers_are_dense() {
        assert_eq!(two()[1].version, 2);
        for bad in ["0002_a.sql", "0001_A.sql", "1_a.sql", "0001_.sql"] {
            assert!(
                number("migrations", vec![(bad.to_owned(), String::new())]).is_err(),
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
        compare("migrations", &all, &lock).unwrap();
        compare("migrations", &all[1..], &lock).unwrap_err();
        let mut edited = two();
        edited[0].text.push(' ');
        let error = compare("migrations", &edited, &lock)
            .unwrap_err()
            .to_string();
        assert!(error.contains("cargo xtask migrations new"), "{error}");
        let later: BTreeMap<_, _> = all
            .iter()
            .skip(1)
            .map(|m| (m.file.clone(), m.checksum()))
            .collect();
        compare("migrations", &all, &later).unwrap_err();
    }

    #[test]
    fn the_repository_is_in_order() {
        check().unwrap();
    }
}
