//! What leads from one schema to another, as SQL. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::schema::{Doc, Object};

/// The words of a statement without blanks and comments, in lower case outside quotes: equal words mean equal
/// objects.
pub(crate) fn words(sql: &str) -> Vec<String> {
    let chars: Vec<char> = sql.chars().collect();
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let start = i;
        if c.is_whitespace() {
            i += 1;
            continue;
        }
        if c == '-' && chars.get(i + 1) == Some(&'-') {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
            continue;
        }
        if c == '/' && chars.get(i + 1) == Some(&'*') {
            i += 2;
            while i < chars.len() && !(chars[i - 1] == '*' && chars[i] == '/' && i > start + 2) {
                i += 1;
            }
            i += 1;
            continue;
        }
        if matches!(c, '\'' | '"' | '`') {
            i += 1;
            while i < chars.len() {
                if chars[i] == c {
                    if chars.get(i + 1) != Some(&c) {
                        break;
                    }
                    i += 1;
                }
                i += 1;
            }
            i = (i + 1).min(chars.len());
            out.push(chars[start..i].iter().collect());
            continue;
        }
        if c.is_alphanumeric() || c == '_' {
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            out.push(chars[start..i].iter().collect::<String>().to_lowercase());
            continue;
        }
        out.push(c.to_string());
        i += 1;
    }
    out
}

/// A `create table` taken apart: columns, constraints, and what follows the closing bracket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Vec<String>>,
    pub(crate) constraints: Vec<Vec<String>>,
    options: Vec<String>,
}

pub(crate) fn take_apart(sql: &str) -> Table {
    let words = words(sql);
    let open = words.iter().position(|w| w == "(").unwrap_or(words.len());
    let mut table = Table {
        columns: Vec::new(),
        constraints: Vec::new(),
        options: Vec::new(),
    };
    let (mut depth, mut item) = (0usize, Vec::new());
    let mut end = words.len();
    for (i, word) in words.iter().enumerate().skip(open) {
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if (depth == 1 && word == ",") || depth == 0 {
            let done: Vec<String> = std::mem::take(&mut item);
            match done.first().map(String::as_str) {
                Some("check" | "primary" | "unique" | "foreign" | "constraint") => {
                    table.constraints.push(done);
                }
                _ => table.columns.push(done),
            }
            if depth == 0 {
                end = i + 1;
                break;
            }
        } else if !(depth == 1 && word == "(") {
            item.push(word.clone());
        }
    }
    table.options = words.get(end..).unwrap_or_default().to_vec();
    table
}

/// Why `alter table … add column` can not add this column, if so.
fn not_addable(column: &[String]) -> Option<&'static str> {
    let has = |a: &str| column.iter().any(|w| w == a);
    if has("primary") || has("unique") {
        return Some("a key can not be added to a table");
    }
    (has("not") && has("null") && !has("default")).then_some("`not null` needs a default")
}

/// Drafts the statements that lead from `old` to `new`; empty when there is nothing to do. `docs` are the comments
/// of the new schema.
pub(crate) fn draft(old: &[Object], new: &[Object], docs: &BTreeMap<String, Doc>) -> String {
    let before: BTreeMap<&str, &Object> = old.iter().map(|o| (o.name.as_str(), o)).collect();
    let after: BTreeMap<&str, &Object> = new.iter().map(|o| (o.name.as_str(), o)).collect();
    let same = |a: &Object, b: &Object| a.kind == b.kind && words(&a.sql) == words(&b.sql);
    let mut sql = String::new();

    for gone in old.iter().rev() {
        let changed = after
            .get(gone.name.as_str())
            .is_none_or(|now| !same(gone, now));
        if gone.kind != "table" && changed {
            let _ = writeln!(sql, "drop {} {};\n", gone.kind, gone.name);
        }
    }
    for gone in old
        .iter()
        .filter(|o| o.kind == "table" && !after.contains_key(o.name.as_str()))
    {
        let _ = writeln!(
            sql,
            "-- TODO by hand: table {} is not in the schema any more. Dropping it loses its rows.\n",
            gone.name
        );
    }
    for now in new {
        match before.get(now.name.as_str()) {
            Some(then) if same(then, now) => {}
            Some(then) if now.kind == "table" && then.kind == "table" => {
                sql.push_str(&alter(then, now));
            }
            _ => {
                if let Some(doc) = docs.get(&now.name).filter(|d| !d.text.is_empty()) {
                    sql.push_str(&comment(&doc.text));
                }
                // SQLite keeps the statement as it was written but for the first two words.
                let upper = format!("CREATE {}", now.kind.to_uppercase());
                let text = match now.sql.strip_prefix(&upper) {
                    Some(rest) => format!("create {}{rest}", now.kind),
                    None => now
                        .sql
                        .replacen("CREATE UNIQUE INDEX", "create unique index", 1),
                };
                let _ = writeln!(sql, "{text};\n");
            }
        }
    }
    let trimmed = sql.trim_end().len();
    sql.truncate(trimmed);
    if !sql.is_empty() {
        sql.push('\n');
    }
    sql
}

fn alter(then: &Object, now: &Object) -> String {
    let (a, b) = (take_apart(&then.sql), take_apart(&now.sql));
    let mut sql = String::new();
    let mut reason = None;
    if a.options != b.options {
        reason = Some("its options changed");
    } else if a.constraints != b.constraints {
        reason = Some("its constraints changed");
    } else if !b.columns.starts_with(&a.columns) {
        reason = Some("a column changed, moved or went");
    } else {
        for column in &b.columns[a.columns.len()..] {
            reason = reason.or(not_addable(column));
            let _ = writeln!(
                sql,
                "alter table {} add column {};\n",
                now.name,
                column.join(" ")
            );
        }
    }
    match reason {
        None => sql,
        Some(why) => format!(
            "-- TODO by hand: table {name} must be rebuilt, because {why}: create {name}_new as in the schema source,\n\
             -- copy the rows, drop {name}, rename {name}_new, and make its indices, triggers and views again.\n\n",
            name = now.name
        ),
    }
}

pub(crate) fn comment(text: &str) -> String {
    let mut out = String::new();
    let mut line = String::from("--");
    for word in text.split(' ') {
        if line.len() + word.len() > 115 {
            let _ = writeln!(out, "{line}");
            line = String::from("--");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::build;

    fn schema(sql: &str) -> Vec<Object> {
        build(&[("test".into(), sql.into())]).unwrap()
    }

    fn between(old: &str, new: &str) -> String {
        draft(&schema(old), &schema(new), &BTreeMap::new())
    }

    /// The draft must be right, not merely look right: applied to the old schema it gives the new one.
    fn leads(old: &str, new: &str) -> String {
        let sql = between(old, new);
        let reached = schema(&format!("{old}\n{sql}"));
        assert_eq!(
            draft(&reached, &schema(new), &BTreeMap::new()),
            "",
            "after {sql}"
        );
        sql
    }

    #[test]
    fn equal_up_to_layout_case_and_comments() {
        let a = "create table t (a integer primary key, b text default 'X y') strict;";
        let b = "CREATE TABLE t (\n a integer primary key, -- the a\n /* the */ b TEXT default 'X y'\n) strict;";
        assert_eq!(between(a, b), "");
        assert_ne!(between(a, &b.replace("'X y'", "'x y'")), "");
    }

    #[test]
    fn new_objects_are_created_with_their_comment() {
        let sql = leads("", "create table t (a integer); create index t_a on t (a);");
        assert!(sql.contains("create index t_a"));
        let docs = BTreeMap::from([(
            "t".to_owned(),
            Doc {
                text: "A table.".into(),
                ..Doc::default()
            },
        )]);
        assert!(
            draft(&[], &schema("create table t (a);"), &docs)
                .to_lowercase()
                .starts_with("-- a table.\ncreate table t")
        );
    }

    #[test]
    fn appended_columns_are_added() {
        let old = "create table t (a integer primary key, check (a > 0)) strict;";
        let new = "create table t (a integer primary key, b text, c integer not null default (1 + 1), check (a > 0)) strict;";
        let sql = leads(old, new);
        assert!(sql.contains("alter table t add column b text;"), "{sql}");
        assert!(
            sql.contains("alter table t add column c integer not null default ( 1 + 1 );"),
            "{sql}"
        );
    }

    #[test]
    fn changed_triggers_views_and_indices_are_made_again() {
        let table = "create table t (a integer, b integer);";
        let old = format!("{table} create index i on t (a); create view v as select a from t;");
        let new = format!("{table} create index i on t (b); create view v as select b from t;");
        let sql = leads(&old, &new);
        assert!(
            sql.contains("drop view v;") && sql.contains("drop index i;"),
            "{sql}"
        );
        let sql = leads(&old, table);
        assert!(!sql.contains("create"), "{sql}");
    }

    #[test]
    fn what_can_not_be_drafted_is_said() {
        let old = "create table t (a integer, b text) strict;";
        for (new, why) in [
            (
                "create table t (a integer, b integer) strict;",
                "a column changed",
            ),
            (
                "create table t (b text, a integer) strict;",
                "a column changed",
            ),
            ("create table t (a integer, b text);", "its options changed"),
            (
                "create table t (a integer, b text, check (a > 0)) strict;",
                "its constraints changed",
            ),
            (
                "create table t (a integer, b text, c text not null) strict;",
                "needs a default",
            ),
            (
                "create table t (a integer, b text, c text unique) strict;",
                "a key can not be added",
            ),
            ("", "is not in the schema any more"),
        ] {
            let sql = between(old, new);
            assert!(
                sql.starts_with("-- TODO by hand") && sql.contains(why),
                "{new}: {sql}"
            );
        }
    }
}
