//! Sanitizing a message type whose messages hold one result each, as OpenAI's do.

use proptest::prelude::*;
use turn_map::{
    EditableMessage, MessageView, PartView, Remedy, Role, apply, check_anthropic, check_openai,
    sanitize,
};

use crate::parts::{Msg, Part, messages, script, shown};

/// A message with at most one result. A second one is lost, as it would be in JSON.
#[derive(Debug, Clone, PartialEq)]
struct Single(Msg);

fn is_result(part: &Part) -> bool {
    matches!(part, Part::Result(..))
}

fn results(message: &Msg) -> usize {
    message.parts.iter().filter(|part| is_result(part)).count()
}

impl MessageView for Single {
    fn role(&self) -> Role {
        self.0.role()
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.0.parts(visit);
    }

    fn response(&self) -> Option<&str> {
        self.0.response()
    }

    fn is_note(&self) -> bool {
        self.0.is_note()
    }
}

impl EditableMessage for Single {
    type Part = Part;

    fn take_parts(&mut self) -> Vec<Part> {
        self.0.take_parts()
    }

    fn put_parts(&mut self, parts: Vec<Part>) {
        let mut held = 0;
        let fits = |part: &Part| {
            held += usize::from(is_result(part));
            held <= 1 || !is_result(part)
        };
        self.0.put_parts(parts.into_iter().filter(fits).collect());
    }

    fn set_role(&mut self, role: Role) {
        self.0.set_role(role);
    }

    fn results_behind(&self, parts: Vec<Part>) -> Vec<Self> {
        let single = |part| Self(self.0.results_behind(vec![part]).remove(0));
        parts.into_iter().map(single).collect()
    }

    fn result_part(call_id: String, text: String) -> Part {
        Msg::result_part(call_id, text)
    }

    fn set_text(part: &mut Part, text: String) {
        Msg::set_text(part, text);
    }

    fn set_id(part: &mut Part, id: String) {
        Msg::set_id(part, id);
    }

    fn result_to_text(part: Part, heading: String) -> Vec<Part> {
        Msg::result_to_text(part, heading)
    }
}

/// The messages, with a message for each result beyond the first of a message.
fn singles(list: Vec<Msg>) -> Vec<Single> {
    let mut singles = Vec::new();
    for mut message in list {
        let mut further = Vec::new();
        while results(&message) > 1 {
            let at = message.parts.iter().rposition(is_result).unwrap();
            let part = message.parts.remove(at);
            further.insert(
                0,
                Single(Msg {
                    parts: vec![part],
                    ..message.clone()
                }),
            );
        }
        singles.push(Single(message));
        singles.extend(further);
    }
    singles
}

fn words(list: &[Single]) -> String {
    let list: Vec<Msg> = list.iter().map(|single| single.0.clone()).collect();
    shown(&list)
}

#[test]
fn results_that_move_get_a_message_each() {
    let list = singles(script("a:+x:+y:+z u:wait t:-x t:-y"));
    let plan = sanitize(&list, "[no result]");
    assert_eq!(
        words(&apply(list, &plan.edits)),
        "a:+x:+y:+z t:-x t:-y t:-z=[no_result] u:wait"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_result_is_lost_where_a_message_holds_one(list in messages()) {
        let list = singles(list);
        let plan = sanitize(&list, "[no result]");
        let mended = apply(list.clone(), &plan.edits);
        let count = |list: &[Single]| -> usize {
            list.iter().filter(|single| !single.0.note).map(|single| results(&single.0)).sum()
        };
        let done = |remedy| plan.findings.iter().filter(|f| f.remedy == remedy).count();
        prop_assert_eq!(
            count(&mended) + done(Remedy::MadeText),
            count(&list) + done(Remedy::Stubbed)
        );
        prop_assert!(mended.iter().all(|single| single.0.note || results(&single.0) <= 1));
        prop_assert_eq!(check_openai(&mended), vec![], "{}", words(&mended));
        prop_assert_eq!(check_anthropic(&mended), vec![], "{}", words(&mended));
        prop_assert!(sanitize(&mended, "[no result]").edits.is_empty());
    }
}
