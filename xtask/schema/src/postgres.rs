//! The tables of PostgreSQL: the columns of the schema source, with the keys and rules of the templates.
//!
//! A template is SQL but for two marks: a line `{columns}` in a `create table`, in place of the columns and checks of
//! SQLite's table, and `/* by tree */` after the table's closing bracket, where it is keyed by family.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

use crate::diff::{comment, take_apart};
use crate::mode::root;
use crate::schema::{Column, Doc, Object, POSTGRES, docs};

const COLUMNS: &str = "{columns}";
const BY_TREE: &str = "/* by tree */";

/// The templates, read.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    /// File names and texts.
    texts: Vec<(String, String)>,
    /// Each table by its name.
    pub(crate) tables: BTreeMap<String, Template>,
    /// Comments, as in the schema source.
    pub(crate) docs: BTreeMap<String, Doc>,
}

/// A table of the templates.
#[derive(Debug, Default)]
pub(crate) struct Template {
    /// Whether its keys begin with `tree`.
    pub(crate) by_tree: bool,
    /// Whether its columns come from the schema source.
    pub(crate) expanded: bool,
    /// Its statement.
    sql: String,
    /// Its primary key, then what else is unique.
    pub(crate) keys: Vec<String>,
    /// Columns of its other indices, with their conditions.
    pub(crate) indices: Vec<String>,
}

impl Templates {
    /// Reads the templates with these file names.
    pub(crate) fn read<'a>(names: impl Iterator<Item = &'a str>) -> anyhow::Result<Self> {
        let texts = names.map(|name| {
            let path = format!("{}/{name}", POSTGRES.schema());
            let text = std::fs::read_to_string(root().join(&path)).with_context(|| {
                format!("read {path}, which has the tables of the schema source's {name}")
            })?;
            Ok((name.to_owned(), text))
        });
        Self::parse(texts.collect::<anyhow::Result<_>>()?)
    }

    pub(crate) fn parse(texts: Vec<(String, String)>) -> anyhow::Result<Self> {
        let mut tables = BTreeMap::new();
        for line in texts.iter().flat_map(|(_, text)| statements(text)) {
            if let Some(name) = table_name(line) {
                tables.insert(name.to_owned(), template(line));
            } else if let Some((unique, table, on)) = index(line) {
                let table: &mut Template = tables
                    .get_mut(table)
                    .with_context(|| format!("`{line}`: its table is not above it"))?;
                match unique {
                    true => table.keys.push(format!("unique {on}")),
                    false => table.indices.push(on.to_owned()),
                }
            }
        }
        let docs = docs(&texts);
        Ok(Self {
            texts,
            tables,
            docs,
        })
    }

    /// The tables that only PostgreSQL has, as objects of a schema.
    pub(crate) fn own(&self) -> Vec<Object> {
        let own = self.tables.iter().filter(|(_, table)| !table.expanded);
        own.map(|(name, table)| Object {
            kind: "table".to_owned(),
            name: name.clone(),
            table: name.clone(),
            sql: table.sql.clone(),
            columns: take_apart(&table.sql)
                .columns
                .iter()
                .map(|words| own_column(words))
                .collect(),
        })
        .collect()
    }

    /// The SQL of the templates with the columns of `objects` in them.
    pub(crate) fn expand(
        &self,
        objects: &[Object],
        docs: &BTreeMap<String, Doc>,
    ) -> anyhow::Result<String> {
        let mut missing: BTreeSet<&str> =
            tables(objects).map(|table| table.name.as_str()).collect();
        let mut out = String::new();
        for (file, text) in &self.texts {
            if !out.is_empty() {
                out.push('\n');
            }
            let mut current = None;
            for line in text.lines() {
                if let Some(name) = table_name(line) {
                    current = self
                        .tables
                        .get(name)
                        .filter(|table| table.expanded)
                        .map(|table| (name, table));
                    if let Some(doc) = current.and_then(|_| docs.get(name)) {
                        out.push_str(&comment(&doc.text));
                    }
                }
                match current {
                    Some((name, table)) if line.trim() == COLUMNS => {
                        let object = tables(objects)
                            .find(|object| object.name == name)
                            .with_context(|| {
                                format!("{file}: the schema source has no table {name}")
                            })?;
                        let doc = docs.get(name).cloned().unwrap_or_default();
                        out.push_str(&columns(object, table.by_tree, &doc));
                        missing.remove(name);
                    }
                    _ => {
                        out.push_str(line);
                        out.push('\n');
                    }
                }
            }
        }
        ensure!(
            missing.is_empty(),
            "{}: no template for {}",
            POSTGRES.schema(),
            missing.into_iter().collect::<Vec<_>>().join(", ")
        );
        Ok(out)
    }
}

/// The tables among `objects`.
pub(crate) fn tables(objects: &[Object]) -> impl Iterator<Item = &Object> {
    objects.iter().filter(|object| object.kind == "table")
}

/// The statements that begin with `create`, without the comments above them. Blank lines are between statements.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").filter_map(|part| {
        let mut found = part.match_indices("create ").map(|(at, _)| at);
        let at = found.find(|at| *at == 0 || part[..*at].ends_with('\n'))?;
        Some(&part[at..])
    })
}

fn table_name(statement: &str) -> Option<&str> {
    statement
        .strip_prefix("create table ")?
        .split_whitespace()
        .next()
}

/// Whether an index is unique, its table, and its columns with its condition.
fn index(statement: &str) -> Option<(bool, &str, &str)> {
    let rest = statement.strip_prefix("create ")?;
    let (unique, rest) = rest
        .strip_prefix("unique ")
        .map_or((false, rest), |rest| (true, rest));
    let (_, on) = rest.strip_prefix("index ")?.split_once(" on ")?;
    let (table, on) = on.split_once(' ')?;
    Some((unique, table, on.trim_end().trim_end_matches(';')))
}

fn template(sql: &str) -> Template {
    let whole = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default().trim());
    let lines: Vec<&str> = whole.map(|line| line.trim_end_matches(',')).collect();
    let mut keys: Vec<String> = Vec::new();
    for line in &lines {
        let column = line.split_whitespace().next().unwrap_or_default();
        if line.starts_with("primary key ") || line.starts_with("unique ") {
            keys.push((*line).to_owned());
        } else if line.ends_with(" primary key") {
            keys.push(format!("primary key ({column})"));
        } else if line.ends_with(" unique") {
            keys.push(format!("unique ({column})"));
        }
    }
    Template {
        by_tree: sql.contains(BY_TREE),
        expanded: lines.contains(&COLUMNS),
        sql: sql.to_owned(),
        keys,
        indices: Vec::new(),
    }
}

/// A column of a table that only PostgreSQL has.
fn own_column(words: &[String]) -> Column {
    let has = |pair: [&str; 2]| words.windows(2).any(|found| found == pair);
    let default = words.iter().position(|word| word == "default");
    Column {
        name: words.first().cloned().unwrap_or_default(),
        ty: words.get(1).cloned().unwrap_or_default(),
        not_null: has(["not", "null"]),
        default: default.and_then(|at| words.get(at + 1)).cloned(),
        key: has(["primary", "key"]),
    }
}

/// The lines of a table's columns, and of its checks.
fn columns(table: &Object, by_tree: bool, doc: &Doc) -> String {
    let parts = take_apart(&table.sql);
    let mut rows = Vec::new();
    if by_tree && !table.has_tree() {
        let about = "number of the family's root".to_owned();
        rows.push(("tree", "integer", "not null".to_owned(), Some(about)));
    }
    for (column, words) in table.columns.iter().zip(&parts.columns) {
        let mut rest = Vec::new();
        if column.not_null || column.key {
            rest.push("not null".to_owned());
        }
        if let Some(default) = &column.default {
            rest.push(format!("default {}", value(default)));
        }
        rest.extend(check(words).map(sql));
        let mut about = doc.columns.get(&column.name).cloned();
        if column.ty == "any" {
            about = about.map(|text| format!("{text}; after a byte that says which"));
        }
        rows.push((
            &column.name,
            ty(&table.name, column, words),
            rest.join(" "),
            about,
        ));
    }
    let names = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let types = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, ty, rest, about) in &rows {
        let line = format!("  {name:names$} {ty:types$} {rest}");
        let about = about
            .as_ref()
            .map(|text| format!(" -- {text}"))
            .unwrap_or_default();
        let _ = writeln!(out, "{},{about}", line.trim_end());
    }
    for words in parts.constraints.iter().filter_map(|words| check(words)) {
        let _ = writeln!(out, "  {},", sql(words));
    }
    out
}

/// The type of a column in PostgreSQL. A number of a conversation has 32 bits.
fn ty(table: &str, column: &Column, words: &[String]) -> &'static str {
    let flag = check(words).is_some_and(|check| sql(check).contains(" in (0, 1)"));
    match (column.ty.as_str(), column.name.as_str()) {
        ("integer", "tree" | "conversation") => "integer",
        ("integer", "no" | "parent") if table == "conversation" => "integer",
        ("integer", _) if flag => "smallint",
        ("integer", _) => "bigint",
        ("text", _) => "text collate \"C\"",
        _ => "bytea",
    }
}

/// A default value in PostgreSQL.
fn value(default: &str) -> String {
    let zeros = default
        .strip_prefix("zeroblob(")
        .and_then(|rest| rest.strip_suffix(')'));
    match zeros.and_then(|count| count.parse().ok()) {
        Some(count) => format!("'\\x{}'", "00".repeat(count)),
        None => default.to_owned(),
    }
}

/// The words of a `check` among the words of a column or a constraint.
fn check(words: &[String]) -> Option<&[String]> {
    let check = &words[words.iter().position(|word| word == "check")?..];
    let mut depth = 0;
    let end = check.iter().position(|word| {
        depth += i32::from(word == "(") - i32::from(word == ")");
        depth == 0 && word == ")"
    })?;
    Some(&check[..=end])
}

/// Words as SQL of PostgreSQL.
fn sql(words: &[String]) -> String {
    let operator = |word: &str| matches!(word, "<" | ">" | "=" | "|" | "!");
    let mut out = String::new();
    let mut before = "(";
    for (at, word) in words.iter().enumerate() {
        let glued = before == "("
            || matches!(word.as_str(), ")" | ",")
            || (word == "(" && before == "length")
            || (operator(word) && operator(before));
        if !glued {
            out.push(' ');
        }
        let shifted = words
            .get(at + 1..at + 3)
            .is_some_and(|next| next == ["<", "<"]);
        match word.as_str() {
            "length" => out.push_str("octet_length"),
            // It has 32 bits, the key has 64.
            "conversation" if shifted => out.push_str("conversation::bigint"),
            word => out.push_str(word),
        }
        before = word;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{SQLITE, build, files};

    fn one(name: &str, text: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), text.to_owned())]
    }

    fn expanded(source: &str, template: &str) -> anyhow::Result<String> {
        let source = one("01_x.sql", source);
        Templates::parse(one("01_x.sql", template))?.expand(&build(&source)?, &docs(&source))
    }

    #[test]
    fn columns_and_checks_come_from_the_source() {
        let source = "-- A log.\ncreate table log (\n  id integer primary key, -- the key\n  conversation integer not null,\n  \
                      seq integer not null check (seq >= 1),\n  done integer not null default 0 check (done in (0, 1)),\n  \
                      word text,\n  external_id any, -- a text or bytes\n  \
                      hash blob not null default (zeroblob(2)) check (length(hash) = 2),\n  \
                      check (id = ((conversation << 32) | seq))\n) strict;";
        let template =
            "create table log (\n  {columns}\n  primary key (tree, id)\n) /* by tree */;\n";
        let made = "-- A log.\ncreate table log (\n  \
                    tree         integer          not null, -- number of the family's root\n  \
                    id           bigint           not null, -- the key\n  \
                    conversation integer          not null,\n  \
                    seq          bigint           not null check (seq >= 1),\n  \
                    done         smallint         not null default 0 check (done in (0, 1)),\n  \
                    word         text collate \"C\",\n  \
                    external_id  bytea, -- a text or bytes; after a byte that says which\n  \
                    hash         bytea            not null default '\\x0000' check (octet_length(hash) = 2),\n  \
                    check (id = ((conversation::bigint << 32) | seq)),\n  \
                    primary key (tree, id)\n) /* by tree */;\n";
        assert_eq!(expanded(source, template).unwrap(), made);
    }

    #[test]
    fn a_table_has_one_tree_and_only_where_it_is_keyed_by_family() {
        let source =
            "create table t (tree integer primary key);\ncreate table u (no integer primary key);";
        let template = "create table t (\n  {columns}\n  primary key (tree)\n) /* by tree */;\n\n\
                        create table u (\n  {columns}\n  primary key (no)\n);\n";
        let sql = expanded(source, template).unwrap();
        assert_eq!(sql.matches("tree integer not null,").count(), 1, "{sql}");
        assert!(sql.contains("no bigint not null,"), "{sql}");
    }

    #[test]
    fn a_table_in_one_of_the_two_only_is_said() {
        let table = "create table t (\n  {columns}\n  primary key (a)\n);\n";
        let error = expanded("create table u (a integer);", table)
            .unwrap_err()
            .to_string();
        assert!(error.contains("has no table t"), "{error}");
        let error = expanded("create table u (a integer);", "")
            .unwrap_err()
            .to_string();
        assert!(error.contains("no template for u"), "{error}");
    }

    #[test]
    fn keys_indices_and_own_tables_are_read() {
        let templates = Templates::parse(one(
            "01_x.sql",
            "-- Keys.\ncreate table d (\n  key text collate \"C\" primary key, -- the key\n  no integer not null unique,\n  \
             at bigint not null default 0\n);\n\n-- Fast.\ncreate index d_at on d (at) where at > 0;\n\n\
             create unique index d_two on d (no, at);\n",
        ))
        .unwrap();
        let table = &templates.tables["d"];
        assert_eq!(
            table.keys,
            ["primary key (key)", "unique (no)", "unique (no, at)"]
        );
        assert_eq!(table.indices, ["(at) where at > 0"]);
        assert_eq!(templates.docs["d"].columns["key"], "the key");
        let own = templates.own();
        let columns: Vec<_> = own[0]
            .columns
            .iter()
            .map(|c| (c.name.as_str(), c.ty.as_str(), c.key))
            .collect();
        assert_eq!(
            columns,
            [
                ("key", "text", true),
                ("no", "integer", false),
                ("at", "bigint", false)
            ]
        );
        assert_eq!(own[0].columns[2].default.as_deref(), Some("0"));
    }

    #[test]
    fn each_key_of_a_table_keyed_by_family_begins_with_tree() {
        let source = files(&SQLITE.schema()).unwrap();
        let templates = Templates::read(source.iter().map(|(name, _)| name.as_str())).unwrap();
        for (name, table) in templates.tables.iter().filter(|(_, table)| table.by_tree) {
            assert!(!table.keys.is_empty(), "{name}");
            for key in &table.keys {
                assert!(key.contains("(tree"), "{name}: {key}");
            }
            let references = table
                .sql
                .lines()
                .filter(|line| line.contains("foreign key"));
            for line in references {
                assert_eq!(line.matches("(tree, ").count(), 2, "{name}: {line}");
            }
        }
    }

    #[test]
    fn the_rules_of_the_source_have_the_same_errors() {
        let source = files(&SQLITE.schema()).unwrap();
        let templates = Templates::read(source.iter().map(|(name, _)| name.as_str())).unwrap();
        for (name, text) in &templates.texts {
            let (_, sqlite) = source.iter().find(|(file, _)| file == name).unwrap();
            let errors = sqlite.split("raise(abort, '").skip(1);
            let errors = errors.filter_map(|rest| rest.split('\'').next());
            // Only SQLite replaces a row without asking the trigger on deletes.
            for error in errors.filter(|error| !error.ends_with("can not be replaced")) {
                assert!(text.contains(&format!("'{error}'")), "{name}: {error}");
            }
        }
    }

    #[test]
    fn the_grants_name_each_table() {
        let source = files(&SQLITE.schema()).unwrap();
        let templates = Templates::read(source.iter().map(|(name, _)| name.as_str())).unwrap();
        let grants = files(&POSTGRES.schema()).unwrap();
        let (_, grants) = grants
            .iter()
            .find(|(name, _)| name == "grants.sql")
            .unwrap();
        let words = crate::diff::words(grants);
        for name in templates.tables.keys() {
            assert!(words.contains(name), "{name}");
        }
    }
}
