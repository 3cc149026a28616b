//! A list that asks for no cleverness: short lines of the user, paths, errors, frequent names, and
//! the last commands.

use super::gold::{COMMANDS, DIRECTIVES, ERRORS, Gold, IDENTIFIERS, PATHS};

/// Longer sentences of the user are left out, in characters.
const LONGEST: usize = 80;
/// How many commands are listed.
const LAST_COMMANDS: usize = 40;

/// Returns the list.
pub(super) fn naive(gold: &Gold) -> String {
    let directives = gold.items(DIRECTIVES).iter();
    let mut lines: Vec<&str> = directives
        .filter(|text| text.chars().count() <= LONGEST)
        .map(String::as_str)
        .collect();
    let commands = gold.items(COMMANDS);
    let last = &commands[commands.len().saturating_sub(LAST_COMMANDS)..];
    for items in [gold.items(PATHS), gold.items(ERRORS), last] {
        lines.extend(items.iter().map(String::as_str));
    }
    let identifiers = gold.items(IDENTIFIERS).join(" ");
    lines.push(&identifiers);
    lines.join("\n")
}
