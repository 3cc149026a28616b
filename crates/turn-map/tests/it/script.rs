//! Conversations written as words.

use turn_map::{AtomKind, Atoms, GroupState, Role};

use crate::reference::Line;

/// One word a message: `s`ystem, `u`ser, `a`ssistant, `t`ool or `n`ote, then any of `/response`,
/// `+call` and `-result`: `a/r1+x` calls x in response r1, `u-x-y` answers x and y.
pub(crate) fn lines(script: &str) -> Vec<Line> {
    script.split_whitespace().map(line).collect()
}

fn line(word: &str) -> Line {
    let role = match word.as_bytes()[0] {
        b's' | b'n' => Role::System,
        b'u' => Role::User,
        b'a' => Role::Assistant,
        b't' => Role::Tool,
        _ => panic!("no such role: {word}"),
    };
    let mut line = Line {
        role,
        turn: None,
        response: None,
        note: word.starts_with('n'),
        calls: Vec::new(),
        results: Vec::new(),
    };
    let mut rest = &word[1..];
    while !rest.is_empty() {
        let end = rest[1..]
            .find(['/', '+', '-'])
            .map_or(rest.len(), |n| n + 1);
        let value = rest[1..end].to_owned();
        match rest.as_bytes()[0] {
            b'/' => line.response = Some(value),
            b'+' => line.calls.push(value),
            b'-' => line.results.push(value),
            _ => panic!("cannot read {word}"),
        }
        rest = &rest[end..];
    }
    line
}

/// One word an atom: its kind's letter and its positions; a bar stands before the unsettled ones.
pub(crate) fn shown(atoms: &Atoms) -> String {
    let mut words: Vec<String> = atoms
        .iter()
        .map(|atom| {
            let letter = match atom.kind() {
                AtomKind::Plain => 'P',
                AtomKind::Note => 'N',
                AtomKind::Late => 'L',
                AtomKind::Group(GroupState::Closed) => 'G',
                AtomKind::Group(GroupState::Interrupted) => 'I',
                AtomKind::Group(GroupState::Open) => 'O',
                other => panic!("{other:?} has no letter"),
            };
            let range = atom.range();
            match range.len() {
                1 => format!("{letter}{}", range.start),
                _ => format!("{letter}{}-{}", range.start, range.end - 1),
            }
        })
        .collect();
    if atoms.settled().len() < words.len() {
        words.insert(atoms.settled().len(), "|".to_owned());
    }
    words.join(" ")
}
