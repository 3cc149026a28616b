//! Conversations written as words.

use turn_map::{AtomKind, Atoms, GroupState};

use crate::parts::{Msg, script};

/// Parses messages from words, one for each message, like [`script`] but without colons: `a/r1+x` calls x in response
/// r1, `u-x-y` has the results of x and y.
pub(crate) fn lines(words: &str) -> Vec<Msg> {
    script(&words.replace('+', ":+").replace('-', ":-"))
}

/// Writes atoms as words: the letter of the kind, and the positions. A bar is before the unsettled atoms.
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
