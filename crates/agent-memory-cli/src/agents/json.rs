//! Edits of JSON files. Comments, order and layout of everything else stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::ours::{SERVER, is_our_hook, is_program};

/// Parses JSON with comments and trailing commas.
fn parse(text: &str) -> Result<CstRootNode, String> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| format!("is not valid JSON: {error}"))
}

/// Parses JSON with comments and trailing commas into a value. `None` if it is not valid.
pub(crate) fn read(text: &str) -> Option<Value> {
    parse(text).ok()?.to_serde_value()
}

/// Edits the object in a file. Creates it if `create` is given. Returns the new text; `None` if there is no file.
pub(super) fn edit(
    text: Option<&str>,
    create: bool,
    edit: impl FnOnce(&CstObject) -> Result<(), String>,
) -> Result<Option<String>, String> {
    let Some(text) = text.or(create.then_some("")) else {
        return Ok(None);
    };
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let root = parse(text)?;
    if root.value().is_none() && !create {
        return Ok(Some(format!("{mark}{text}")));
    }
    let object = root.object_value_or_create();
    edit(&object.ok_or("is no JSON object")?)?;
    Ok(Some(format!("{mark}{root}")))
}

/// Fails if a key comes twice. Agents take the last one, and edits change the first.
fn once(object: &CstObject, key: &str) -> Result<(), String> {
    let properties = object.properties();
    let is_it = |property: &&CstObjectProp| property.decoded_name().is_some_and(|name| name == key);
    match properties.iter().filter(is_it).count() {
        0 | 1 => Ok(()),
        _ => Err(format!("has `{key}` twice in an object")),
    }
}

/// Returns the object at a key. Creates it if `create` is given.
fn table(root: &CstObject, key: &str, create: bool) -> Result<Option<CstObject>, String> {
    once(root, key)?;
    let found = match create {
        true => root.object_value_or_create(key),
        false => root.object_value(key),
    };
    match found {
        None if create => Err(format!("has a `{key}` that is no object")),
        found => Ok(found),
    }
}

/// Removes the property at a key if it is an object without properties.
fn prune(root: &CstObject, key: &str) {
    if let Some(property) = root.get(key)
        && let Some(object) = property.object_value()
        && object.properties().is_empty()
    {
        property.remove();
    }
}

/// Sets our commands of the hooks: one for each event, and none of other events.
pub(super) fn hooks(root: &CstObject, events: &[&str], command: &str) -> Result<(), String> {
    let Some(hooks) = table(root, "hooks", !events.is_empty())? else {
        return Ok(());
    };
    for event in events {
        once(&hooks, event)?;
    }
    let mut missing = events.to_vec();
    let mut removed = false;
    for event in hooks.properties() {
        let name = event.decoded_name().unwrap_or_default();
        let Some(groups) = event.array_value() else {
            continue;
        };
        let mut is_emptied = false;
        for group in groups.elements() {
            let Some(entries) = group
                .as_object()
                .and_then(|group| group.array_value("hooks"))
            else {
                continue;
            };
            let mut is_shortened = false;
            for entry in entries.elements() {
                let Some((property, found)) = our_command(&entry, command) else {
                    continue;
                };
                match missing.iter().position(|missing| *missing == name) {
                    Some(at) => {
                        missing.remove(at);
                        if found != command {
                            property.set_value(command.into());
                        }
                    }
                    None => {
                        entry.remove();
                        is_shortened = true;
                    }
                }
            }
            if is_shortened && entries.elements().is_empty() {
                group.remove();
                is_emptied = true;
            }
        }
        if is_emptied && groups.elements().is_empty() {
            event.remove();
            removed = true;
        }
    }
    for event in missing {
        let groups = hooks.array_value_or_create(event);
        let groups = groups.ok_or_else(|| format!("has a `hooks.{event}` that is no list"))?;
        let hook = [("type", "command"), ("command", command)];
        let hook = hook.map(|(name, text)| (name.to_owned(), text.into()));
        let hooks = CstInputValue::Array(vec![CstInputValue::Object(hook.to_vec())]);
        groups.append(CstInputValue::Object(vec![("hooks".to_owned(), hooks)]));
    }
    if removed {
        prune(root, "hooks");
    }
    Ok(())
}

/// Returns the property of a hook's command if the command is ours, and the command. `own` is the one of this program.
fn our_command(entry: &CstNode, own: &str) -> Option<(CstObjectProp, String)> {
    let property = entry.as_object()?.get("command")?;
    let text = property.value()?.as_string_lit()?.decoded_value().ok()?;
    is_our_hook(&text, own).then_some((property, text))
}

/// Sets our server in the object at a key, or removes it. Fields that are not in `wanted` stay.
pub(super) fn server(
    root: &CstObject,
    key: &str,
    wanted: &Value,
    installed: bool,
) -> Result<(), String> {
    let Some(servers) = table(root, key, installed)? else {
        return Ok(());
    };
    once(&servers, SERVER)?;
    let found = servers.get(SERVER);
    let found_value = found
        .as_ref()
        .and_then(|found| found.object_value()?.to_serde_value());
    let is_ours = found_value.is_some_and(|found| {
        command(&found).is_some_and(|path| is_program(path, command(wanted).unwrap_or_default()))
    });
    match (found, wanted.as_object().filter(|_| installed)) {
        (None, Some(_)) => {
            servers.append(SERVER, input(wanted));
        }
        (Some(_), Some(_)) if !is_ours => {
            return Err(format!("has a server `{SERVER}` of another program"));
        }
        (Some(found), Some(wanted)) => {
            let object = found.object_value();
            for (name, value) in wanted {
                let object = object.as_ref();
                let known = object.and_then(|object| object.get(name));
                let same = known.as_ref().and_then(CstObjectProp::to_serde_value);
                match known {
                    Some(_) if same.as_ref() == Some(value) => {}
                    Some(known) => known.set_value(input(value)),
                    None => drop(object.map(|object| object.append(name, input(value)))),
                }
            }
        }
        (Some(found), None) if is_ours => {
            found.remove();
            prune(root, key);
        }
        _ => {}
    }
    Ok(())
}

/// Returns the path of a server's program: its command, or the first word of it.
fn command(server: &Value) -> Option<&str> {
    let command = server.get("command")?;
    command.as_str().or_else(|| command.get(0)?.as_str())
}

/// Converts a value. The type and the command of an object come first.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| (*name != "type", *name != "command"));
            let fields = fields.into_iter();
            CstInputValue::Object(
                fields
                    .map(|(name, value)| (name.clone(), input(value)))
                    .collect(),
            )
        }
    }
}
