//! The workspace's own messages.

use memory_model::{EntryKind, LogEntry, Message, Part};
use token_estimate::{CountedMessage, Role};

use crate::TurnMessage;

impl TurnMessage for Message {
    fn role(&self) -> Role {
        CountedMessage::role(self)
    }

    fn calls(&self, visit: &mut dyn FnMut(&str)) {
        for part in &self.parts {
            if let Part::ToolCall { id, .. } = part {
                visit(id);
            }
        }
    }

    fn results(&self, visit: &mut dyn FnMut(&str)) {
        for part in &self.parts {
            if let Part::ToolResult { call_id, .. } = part {
                visit(call_id);
            }
        }
    }

    fn turn(&self) -> Option<u64> {
        self.turn.as_ref().map(|turn| u64::from(turn.turn))
    }

    fn response(&self) -> Option<&str> {
        self.response.as_deref()
    }

    fn is_note(&self) -> bool {
        self.kind == EntryKind::Note
    }
}

impl TurnMessage for LogEntry {
    fn role(&self) -> Role {
        TurnMessage::role(&self.message)
    }

    fn calls(&self, visit: &mut dyn FnMut(&str)) {
        self.message.calls(visit);
    }

    fn results(&self, visit: &mut dyn FnMut(&str)) {
        self.message.results(visit);
    }

    fn turn(&self) -> Option<u64> {
        TurnMessage::turn(&self.message)
    }

    fn response(&self) -> Option<&str> {
        TurnMessage::response(&self.message)
    }

    fn is_note(&self) -> bool {
        self.message.is_note()
    }
}

#[cfg(test)]
mod tests {
    use memory_model::{RawJson, ResultContent};

    use super::*;
    use crate::script::shown;
    use crate::{HullPolicy, TurnMap, atoms};

    #[test]
    fn the_models_messages_are_grouped() {
        let call = |id: &str| Part::ToolCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: RawJson::parse("{}").unwrap(),
        };
        let result = |id: &str| Part::ToolResult {
            call_id: id.to_owned(),
            content: ResultContent::Text("found".to_owned()),
            is_error: None,
        };
        let mut note = Message::user("model changed");
        note.kind = EntryKind::Note;
        let mut first = Message::new(memory_model::Role::Assistant, vec![call("x")]);
        first.response = Some("r".to_owned());
        let mut second = Message::new(memory_model::Role::Assistant, vec![call("y")]);
        second.response = Some("r".to_owned());
        let messages = [
            Message::user("Look."),
            first,
            Message::new(memory_model::Role::Tool, vec![result("x")]),
            note,
            second,
            Message::new(memory_model::Role::Tool, vec![result("y")]),
            Message::user("And?"),
        ];
        assert_eq!(
            shown(&atoms(&messages, HullPolicy::default())),
            "P0 G1-5 P6"
        );
        assert_eq!(TurnMap::by_role(&messages).count(), 2);
    }
}
