//! Edits of Codex's configuration. Comments, order and layout of everything else stay.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::ours::{SERVER, is_program};

/// Table of the servers.
const SERVERS: &str = "mcp_servers";

/// Sets our server, or removes it. Fields that are not in `wanted` stay. Returns the new text; `None` if there is no
/// file.
pub(super) fn server(
    text: Option<&str>,
    wanted: &Value,
    installed: bool,
) -> Result<Option<String>, String> {
    let Some(text) = text.or(installed.then_some("")) else {
        return Ok(None);
    };
    let own = wanted.get("command").and_then(Value::as_str);
    let is_ours = |server: &dyn TableLike| {
        let command = server.get("command").and_then(Item::as_str);
        command.is_some_and(|command| is_program(command, own.unwrap_or_default()))
    };
    let document = text.parse::<DocumentMut>();
    let mut document = document.map_err(|error| {
        let error = error.to_string();
        format!("is not valid TOML: {}", error.trim().replace('\n', " "))
    })?;
    if installed {
        let mut none = Table::new();
        none.set_implicit(true);
        let servers = document.entry(SERVERS).or_insert(Item::Table(none));
        let servers = servers.as_table_like_mut();
        let servers = servers.ok_or_else(|| format!("has a `{SERVERS}` that is no table"))?;
        let entry = servers.entry(SERVER).or_insert_with(|| {
            let mut table = Table::new();
            table.insert("command", "agent-memory".into());
            Item::Table(table)
        });
        let entry = entry.as_table_like_mut().filter(|entry| is_ours(&**entry));
        let entry = entry.ok_or_else(|| format!("has a server `{SERVER}` of another program"))?;
        for (name, value) in wanted.as_object().into_iter().flatten() {
            let value = item(value);
            if entry.get(name).and_then(plain) != plain(&value) {
                entry.insert(name, value);
            }
        }
    } else if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut)
        && servers
            .get(SERVER)
            .and_then(Item::as_table_like)
            .is_some_and(is_ours)
    {
        servers.remove(SERVER);
        if servers.is_empty() {
            document.remove(SERVERS);
        }
    } else {
        return Ok(Some(text.to_owned()));
    }
    let mark = text.strip_prefix('\u{feff}').map_or("", |_| "\u{feff}");
    let after = document.to_string();
    // The parser turns the ends of lines into those of Unix, except in texts of several lines.
    let ends = text.matches("\r\n").count();
    let after = match ends > 0 && ends == text.matches('\n').count() {
        true => after.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => after,
    };
    Ok(Some(format!("{mark}{after}")))
}

/// Returns a value's text without the comments around it.
fn plain(item: &Item) -> Option<String> {
    let mut value = item.as_value()?.clone();
    value.decor_mut().clear();
    Some(value.to_string())
}

/// Converts a text, a list of texts, or an object of texts.
fn item(value: &Value) -> Item {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match value {
        Value::Array(list) => Item::Value(list.iter().map(text).collect::<Array>().into()),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name, text(value)));
            Item::Value(fields.collect::<InlineTable>().into())
        }
        value => toml_edit::value(text(value)),
    }
}
