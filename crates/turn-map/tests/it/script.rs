//! Conversations written as words.

use turn_map::{AtomKind, Atoms, GroupState};

use crate::parts::{Msg, script};

/// One word a message, as [`script`] reads it but for the colons: `a/r1+x` calls x in response r1, `u-x-y` answers x and
/// y.
pub(crate) fn lines(words: &str) -> Vec<Msg> {
    script(&words.replace('+', ":+").replace('-', ":-"))
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
