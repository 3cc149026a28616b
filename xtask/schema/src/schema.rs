//! Reading the schema: its source, the migrations, and what SQLite makes of either.

use std::collections::BTreeMap;

use anyhow::Context as _;
use rusqlite::Connection;

use crate::mode::root;

/// A database that has tables: the folder of its crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Database(&'static str);

/// The database of the schema source.
pub(crate) const SQLITE: Database = Database("crates/store-sqlite");
/// The database with the columns of the schema source, and other keys.
pub(crate) const POSTGRES: Database = Database("crates/store-postgres");

impl Database {
    /// Folder of the schema, one family of objects per file.
    pub(crate) fn schema(self) -> String {
        format!("{}/schema", self.0)
    }

    /// Folder of the migrations.
    pub(crate) fn migrations(self) -> String {
        format!("{}/migrations", self.0)
    }

    /// SHA-256 of each released migration: `sha256  file`, one a line, append-only.
    pub(crate) fn lock(self) -> String {
        format!("{}/migrations/lock", self.0)
    }

    /// The generated list of the migrations.
    pub(crate) fn list(self) -> String {
        format!("{}/src/migrations.rs", self.0)
    }
}

/// A table, index, trigger or view as `sqlite_schema` has it, in order of creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// `table`, `index`, `trigger` or `view`.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// The table it belongs to; its own name for tables and views.
    pub(crate) table: String,
    /// The statement that makes it.
    pub(crate) sql: String,
    /// Columns, for tables and views.
    pub(crate) columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) not_null: bool,
    pub(crate) default: Option<String>,
    pub(crate) key: bool,
}

impl Object {
    /// Whether it has a column of the family's root.
    pub(crate) fn has_tree(&self) -> bool {
        self.columns.iter().any(|column| column.name == "tree")
    }
}

/// The comment above an object and those beside its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doc {
    pub(crate) text: String,
    pub(crate) columns: BTreeMap<String, String>,
}

/// The `.sql` files of a folder: name and text, sorted by name.
pub(crate) fn files(folder: &str) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).with_context(|| format!("read {folder}"))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default()
            .to_owned();
        if name.ends_with(".sql") {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("read {}", path.display()))?;
            found.push((name, text));
        }
    }
    found.sort();
    Ok(found)
}

/// Runs `scripts` in order in an empty database in memory and lists what is there afterwards.
pub(crate) fn build(scripts: &[(String, String)]) -> anyhow::Result<Vec<Object>> {
    let db = Connection::open_in_memory()?;
    for (name, text) in scripts {
        db.execute_batch(text)
            .with_context(|| format!("run {name}"))?;
    }
    let mut listed = db.prepare(
        "select type, name, tbl_name, sql from sqlite_schema where sql is not null order by rowid",
    )?;
    let objects = listed.query_map((), |row| {
        Ok(Object {
            kind: row.get(0)?,
            name: row.get(1)?,
            table: row.get(2)?,
            sql: row.get(3)?,
            columns: Vec::new(),
        })
    })?;
    let mut objects: Vec<Object> = objects.collect::<Result<_, _>>()?;
    let mut described = db.prepare(
        "select name, type, \"notnull\", dflt_value, pk from pragma_table_xinfo(?) order by cid",
    )?;
    for object in &mut objects {
        if object.kind == "table" || object.kind == "view" {
            let columns = described.query_map([&object.name], |row| {
                Ok(Column {
                    name: row.get(0)?,
                    ty: row.get::<_, String>(1)?.to_lowercase(),
                    not_null: row.get::<_, i64>(2)? != 0,
                    default: row.get(3)?,
                    key: row.get::<_, i64>(4)? != 0,
                })
            })?;
            object.columns = columns.collect::<Result<_, _>>()?;
        }
    }
    Ok(objects)
}

/// The comments of a schema source, by object. The source keeps to a layout: `create KIND NAME` begins a line,
/// its comment stands right above it, and a column's comment ends the column's line.
pub(crate) fn docs(source: &[(String, String)]) -> BTreeMap<String, Doc> {
    let mut docs = BTreeMap::new();
    for (_, text) in source {
        let mut above: Vec<&str> = Vec::new();
        let mut table: Option<String> = None;
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("-- ") {
                above.push(comment);
            } else if let Some(rest) = line.strip_prefix("create ") {
                let mut words = rest.split_whitespace().filter(|w| *w != "unique");
                let kind = words.next().unwrap_or_default();
                let name = words.next().unwrap_or_default().to_owned();
                let doc = Doc {
                    text: above.join(" "),
                    columns: BTreeMap::new(),
                };
                docs.insert(name.clone(), doc);
                table = (kind == "table").then_some(name);
                above.clear();
            } else {
                above.clear();
                let Some(doc) = table.as_ref().and_then(|name| docs.get_mut(name)) else {
                    continue;
                };
                if let (Some((_, comment)), Some(column)) =
                    (line.split_once("-- "), line.split_whitespace().next())
                {
                    doc.columns
                        .insert(column.to_owned(), comment.trim().to_owned());
                }
            }
        }
    }
    docs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_above_and_beside() {
        let text = "-- One.\n-- Two.\ncreate table t (\n  a integer, -- the a\n  b text,\n  check (a > 0)\n) strict;\n\n\
                    -- Not this.\n\n-- Fast.\ncreate unique index t_b on t (b);\n";
        let docs = docs(&[("x.sql".into(), text.into())]);
        assert_eq!(docs["t"].text, "One. Two.");
        assert_eq!(docs["t"].columns["a"], "the a");
        assert!(!docs["t"].columns.contains_key("b"));
        assert_eq!(docs["t_b"].text, "Fast.");
    }

    #[test]
    fn build_lists_objects_with_columns() {
        let made = build(&[(
            "x".into(),
            "create table t (a integer primary key, b text not null) strict;".into(),
        )])
        .unwrap();
        assert_eq!(made.len(), 1);
        assert_eq!(
            (
                made[0].columns[1].name.as_str(),
                made[0].columns[1].not_null
            ),
            ("b", true)
        );
        assert!(build(&[("x".into(), "create tabel".into())]).is_err());
    }
}
