//! `turn-map`: cuts a conversation without separating a tool call from its result.

use memory_model::{Message, RawJson};
use turn_map::{CutPolicy, TurnMap, atoms};

pub(crate) fn run() -> crate::Result<String> {
    let messages = [
        Message::user("Is the disk full?"),
        Message::tool_call("call_1", "df", RawJson::parse("{}")?),
        Message::tool_result("call_1", "91 %"),
        Message::assistant("Nearly: 91 %."),
    ];
    let atoms = atoms(&messages);
    let turns = TurnMap::by_role(&messages);
    let keep = CutPolicy::LastMessages { messages: 2 };
    let cuts = keep.cuts(&atoms, &turns, |_| 1);
    assert_eq!(atoms.iter().count(), 3);
    Ok(format!(
        "{} messages in 3 atoms, cuts {cuts:?}",
        messages.len()
    ))
}
