//! A message type for the tests, with parts in any order.

use proptest::prelude::*;
use turn_map::{EditableMessage, MessageView, PartView, Role};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Call(String, String),
    Result(String, String, bool),
    Picture,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Msg {
    pub(crate) role: Role,
    pub(crate) note: bool,
    pub(crate) turn: Option<u64>,
    pub(crate) response: Option<String>,
    pub(crate) parts: Vec<Part>,
}

impl Msg {
    pub(crate) fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            role,
            note: false,
            turn: None,
            response: None,
            parts,
        }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &String> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(id, _) => Some(id),
            _ => None,
        })
    }

    pub(crate) fn results(&self) -> impl Iterator<Item = &String> {
        self.parts.iter().filter_map(|part| match part {
            Part::Result(id, ..) => Some(id),
            _ => None,
        })
    }
}

/// A call of the tool `Read`.
pub(crate) fn call(id: impl Into<String>) -> Part {
    Part::Call(id.into(), "Read".to_owned())
}

/// A short result.
pub(crate) fn result(id: impl Into<String>) -> Part {
    Part::Result(id.into(), "r".to_owned(), false)
}

impl MessageView for Msg {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        for part in &self.parts {
            match part {
                Part::Text(text) => visit(PartView::Text(text)),
                Part::Call(id, name) => visit(PartView::ToolCall {
                    id,
                    name,
                    arguments: "",
                }),
                Part::Result(call_id, text, is_error) => visit(PartView::ToolResult {
                    call_id,
                    name: None,
                    content: &[PartView::Text(text)],
                    is_error: *is_error,
                }),
                Part::Picture => visit(PartView::Image { base64_len: 0 }),
            }
        }
    }

    fn turn(&self) -> Option<u64> {
        self.turn
    }

    fn response(&self) -> Option<&str> {
        self.response.as_deref()
    }

    fn is_note(&self) -> bool {
        self.note
    }
}

impl EditableMessage for Msg {
    type Part = Part;

    fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    fn put_parts(&mut self, parts: Vec<Part>) {
        self.parts = parts;
    }

    fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    fn results_behind(&self, parts: Vec<Part>) -> Vec<Self> {
        vec![Self::new(Role::Tool, parts)]
    }

    fn result_part(call_id: String, text: String) -> Part {
        Part::Result(call_id, text, false)
    }

    fn set_text(part: &mut Part, text: String) {
        match part {
            Part::Text(old) | Part::Result(_, old, _) => *old = text,
            other => panic!("{other:?} has no text"),
        }
    }

    fn set_id(part: &mut Part, new: String) {
        match part {
            Part::Call(id, _) | Part::Result(id, ..) => *id = new,
            other => panic!("{other:?} has no id"),
        }
    }

    fn result_to_text(part: Part, heading: String) -> Vec<Part> {
        match part {
            Part::Result(_, text, _) => vec![Part::Text(format!("{heading} {text}"))],
            other => panic!("{other:?} is no result"),
        }
    }
}

/// Parses messages from words, one for each message, such as `a/r:+x:-y:text`. A word has the first letter of the role
/// (`n` for a note), the response, and the parts: a call, a result (`-!` for an error), `#` for a picture, or a text.
pub(crate) fn script(words: &str) -> Vec<Msg> {
    words.split_whitespace().map(message).collect()
}

fn message(word: &str) -> Msg {
    let mut parts = word.split(':');
    let head = parts.next().unwrap();
    let (letter, response) = match head.split_once('/') {
        Some((letter, response)) => (letter, Some(response.to_owned())),
        None => (head, None),
    };
    let part = |text: &str| match text.split_at(text.len().min(1)) {
        ("+", id) => call(id),
        ("-", id) => Part::Result(
            id.trim_start_matches('!').to_owned(),
            "r".into(),
            id.starts_with('!'),
        ),
        ("#", _) => Part::Picture,
        _ => Part::Text(text.to_owned()),
    };
    let role = match letter {
        "s" | "n" => Role::System,
        "u" => Role::User,
        "a" => Role::Assistant,
        "t" => Role::Tool,
        _ => panic!("no such role: {word}"),
    };
    Msg {
        note: letter == "n",
        response,
        ..Msg::new(role, parts.map(part).collect())
    }
}

/// Writes messages in the form that [`script`] parses.
pub(crate) fn shown(messages: &[Msg]) -> String {
    let words = messages.iter().map(|message| {
        let letter = match (message.note, message.role) {
            (true, _) => "n",
            (_, Role::System) => "s",
            (_, Role::User) => "u",
            (_, Role::Assistant) => "a",
            (_, Role::Tool) => "t",
        };
        let response = message.response.iter().map(|id| format!("/{id}"));
        let parts = message.parts.iter().map(|part| match part {
            Part::Text(text) => format!(":{}", text.replace(' ', "_")),
            Part::Call(id, _) => format!(":+{id}"),
            Part::Result(id, text, error) => {
                let error = if *error { "!" } else { "" };
                match text.as_str() {
                    "r" => format!(":-{error}{id}"),
                    text => format!(":-{error}{id}={}", text.replace(' ', "_")),
                }
            }
            Part::Picture => ":#".to_owned(),
        });
        letter.to_owned() + &response.chain(parts).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

fn id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "x", "y", "z", "x_2"]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("r".to_owned()),
        "[a-z ]{0,30}",
        "(?s).{0,300}",
        "([a-zü日 ]{0,9}\n){0,90}",
        "[0-9a-f]{1000,1400}",
    ]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        2 => text().prop_map(Part::Text),
        3 => (id(), prop::sample::select(vec!["Read", "Edit"])).prop_map(|(id, tool)| Part::Call(id, tool.into())),
        3 => (id(), text(), any::<bool>()).prop_map(|(id, text, bad)| Part::Result(id, text, bad)),
        1 => Just(Part::Picture),
    ]
}

/// Invalid messages: calls by users, results by assistants, empty messages.
fn wild() -> impl Strategy<Value = Msg> {
    let role = prop::sample::select(vec![
        Role::Assistant,
        Role::Assistant,
        Role::Assistant,
        Role::Tool,
        Role::Tool,
        Role::User,
        Role::System,
    ]);
    let response = prop::option::of(prop::sample::select(vec!["r", "s"]));
    let parts = prop::collection::vec(part(), 0..4);
    let note = prop::bool::weighted(0.1);
    (role, note, response, parts).prop_map(|(role, note, response, parts)| Msg {
        note,
        response: response.map(str::to_owned),
        ..Msg::new(role, parts)
    })
}

/// Messages that are mostly valid: assistants write and call, and tools answer.
fn tame() -> impl Strategy<Value = Msg> {
    let call = id().prop_map(call);
    let result = (id(), text()).prop_map(|(id, text)| Part::Result(id, text, false));
    prop_oneof![
        3 => prop::collection::vec(call, 0..4).prop_map(|p| Msg::new(Role::Assistant, p)),
        4 => prop::collection::vec(result, 1..4).prop_map(|p| Msg::new(Role::Tool, p)),
        1 => text().prop_map(|text| Msg::new(Role::User, vec![Part::Text(text)])),
    ]
}

pub(crate) fn messages() -> impl Strategy<Value = Vec<Msg>> {
    prop_oneof![
        prop::collection::vec(wild(), 0..16),
        prop::collection::vec(tame(), 0..16),
        prop::collection::vec(prop_oneof![wild(), tame()], 0..16),
    ]
}
