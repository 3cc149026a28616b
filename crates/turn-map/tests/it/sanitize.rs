//! Sanitizing: the repairs, and that providers accept the result.

use proptest::prelude::*;
use turn_map::{Edit, Finding, Problem, Remedy, Rule, apply, atoms, check_anthropic, check_openai};

use crate::parts::{Msg, Part, messages, script, shown};

fn sanitize(list: &[Msg]) -> turn_map::Sanitized {
    turn_map::sanitize(list, "[no result]")
}

fn mended(words: &str) -> String {
    let list = script(words);
    let plan = sanitize(&list);
    assert_eq!(plan.edits.is_empty(), plan.findings.is_empty());
    let list = apply(list, &plan.edits);
    assert_eq!(check_openai(&list), []);
    assert_eq!(check_anthropic(&list), []);
    shown(&list)
}

#[test]
fn a_clean_list_stays() {
    for clean in [
        "",
        "u:hi a:hello",
        "s:be u:hi a:+x t:-x a:done",
        "u:hi a:look:+x:+y t:-y t:-x u:and",
        "u:hi a:+x:+y u:-x:-y:text a:#",
        "a/r:+x u:-x a/r:+y u:-y",
        "u:hi n a:+x n t:-x",
    ] {
        assert_eq!(sanitize(&script(clean)).edits, [], "{clean}");
    }
}

#[test]
fn a_call_without_a_result_gets_a_stub() {
    assert_eq!(mended("u:hi a:+x"), "u:hi a:+x t:-x=[no_result]");
    assert_eq!(
        mended("a:+x:+y t:-y u:stop a:ok"),
        "a:+x:+y t:-x=[no_result] t:-y u:stop a:ok"
    );
}

#[test]
fn an_orphan_becomes_text() {
    assert_eq!(
        mended("u:hi t:-x a:ok"),
        "u:hi u:[Result_without_a_call:_x]_r a:ok"
    );
    // A tool message keeps its role as long as it contains a result.
    assert_eq!(
        mended("a:+x t:-x:-y"),
        "a:+x t:-x:[Result_without_a_call:_y]_r"
    );
    assert_eq!(
        mended("a:+x t:-y:-x"),
        "a:+x t:-x t:[Result_without_a_call:_y]_r".replace("t:[", "u:[")
    );
}

#[test]
fn a_late_result_becomes_text() {
    let late = "a:+x a:busy t:-x";
    assert_eq!(
        mended(late),
        "a:+x t:-x=[no_result] a:busy u:[Late_result_of_call_x]_r"
    );
}

#[test]
fn a_result_that_is_not_right_behind_its_call_moves() {
    assert_eq!(mended("a:+x u:wait t:-x"), "a:+x t:-x u:wait");
    assert_eq!(mended("a:+x u:wait:-x"), "a:+x t:-x u:wait");
    assert_eq!(mended("a:+x:-x u:go"), "a:+x t:-x u:go");
    assert_eq!(
        mended("a:+x:+y t:-y s:note t:-x"),
        "a:+x:+y t:-x t:-y s:note"
    );
    assert_eq!(mended("a/r:+x a/r:+y t:-x t:-y"), "a/r:+x t:-x a/r:+y t:-y");
}

#[test]
fn ids_that_are_empty_or_used_twice_are_renamed() {
    assert_eq!(mended("a:+x t:-x a:+x t:-x"), "a:+x t:-x a:+x_2 t:-x_2");
    // Parallel calls without ids get their results in order.
    let mut list = script("a:+:+ t:- t:-");
    list[2].parts = vec![Part::Result(String::new(), "second".into(), false)];
    let plan = sanitize(&list);
    assert_eq!(
        shown(&apply(list, &plan.edits)),
        "a:+call_2:+call_3 t:-call_2 t:-call_3=second"
    );
    // The new id must not be used by another call.
    assert_eq!(
        mended("a:+x t:-x a:+x_2:+x t:-x_2 t:-x"),
        "a:+x t:-x a:+x_2:+x_3 t:-x_2 t:-x_3"
    );
}

#[test]
fn only_assistants_call() {
    assert_eq!(
        mended("u:hi:+x t:-x"),
        "u:hi u:[Result_without_a_call:_x]_r"
    );
}

#[test]
fn the_report_has_problems_and_remedies() {
    let found = |words: &str| -> Vec<(usize, Problem, Remedy)> {
        let plan = sanitize(&script(words));
        let tell = |f: &Finding| (f.message, f.problem, f.remedy);
        plan.findings.iter().map(tell).collect()
    };
    assert_eq!(
        found("a:+x u:so a:+x u:hm t:-x t:-x t:-z"),
        [
            (0, Problem::Unanswered, Remedy::Stubbed),
            (2, Problem::DuplicateId, Remedy::Renamed),
            (4, Problem::Misplaced, Remedy::Moved),
            (5, Problem::Late, Remedy::MadeText),
            (6, Problem::Orphan, Remedy::MadeText),
        ]
    );
    // Neighbouring messages with calls: both results are answers.
    assert_eq!(
        found("a:+x a:+x u:hm t:-x t:-x t:-z"),
        [
            (1, Problem::DuplicateId, Remedy::Renamed),
            (3, Problem::Misplaced, Remedy::Moved),
            (4, Problem::Misplaced, Remedy::Moved),
            (5, Problem::Orphan, Remedy::MadeText),
        ]
    );
    assert_eq!(
        found("u:+x"),
        [(0, Problem::CallByAnother, Remedy::Dropped)]
    );
}

#[test]
fn the_checkers_find_all_violations() {
    let openai = |words: &str| rules(&check_openai(&script(words)));
    let anthropic = |words: &str| rules(&check_anthropic(&script(words)));
    fn rules(found: &[turn_map::Violation]) -> Vec<(usize, Rule)> {
        found.iter().map(|v| (v.message, v.rule)).collect()
    }
    for both in [&openai as &dyn Fn(&str) -> Vec<(usize, Rule)>, &anthropic] {
        assert_eq!(both("u:a a:+x t:-x n a:+y:+z t:-z:-y u:b"), []);
        assert_eq!(both("a:+x"), [(0, Rule::Unanswered)]);
        assert_eq!(both("a:+x u:hm t:-x")[0], (0, Rule::Unanswered));
        assert_eq!(both("t:-x u:a"), [(0, Rule::AnswersNothing)]);
        assert_eq!(both("a:+x t:-x t:-x"), [(2, Rule::AnswersNothing)]);
        assert_eq!(both("a:+ t:-"), [(0, Rule::EmptyId)]);
        assert_eq!(both("u:+x"), [(0, Rule::CallByAnother)]);
        assert_eq!(both("a:-x"), [(0, Rule::ResultByAssistant)]);
        assert_eq!(both("s:-x"), [(0, Rule::AnswersNothing)]);
    }
    assert_eq!(openai("a:+x:+x t:-x t:-x"), [(0, Rule::DuplicateId)]);
    // The providers differ in what counts as one message.
    assert_eq!(openai("a:+x t:-x a:+x t:-x"), []);
    assert_eq!(anthropic("a:+x t:-x a:+x t:-x"), [(2, Rule::DuplicateId)]);
    assert_eq!(
        openai("a:+x a:+y t:-x t:-y"),
        [(0, Rule::Unanswered), (2, Rule::AnswersNothing)]
    );
    assert_eq!(anthropic("a:+x a:+y t:-x t:-y"), []);
    assert_eq!(
        anthropic("a:+x u:hm:-x"),
        [(0, Rule::Unanswered), (1, Rule::ResultAfterContent)]
    );
}

fn texts(list: &[Msg]) -> Vec<&str> {
    fn text(part: &Part) -> Option<&str> {
        match part {
            Part::Text(text) => Some(text),
            _ => None,
        }
    }
    list.iter()
        .flat_map(|message| &message.parts)
        .filter_map(text)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn sanitized_lists_are_valid_and_are_not_changed_again(
        list in messages(),
    ) {
        let plan = sanitize(&list);
        prop_assert_eq!(plan.edits.is_empty(), plan.findings.is_empty());
        let mended = apply(list.clone(), &plan.edits);
        prop_assert_eq!(check_openai(&mended), vec![], "{}", shown(&mended));
        prop_assert_eq!(check_anthropic(&mended), vec![], "{}", shown(&mended));
        let again = sanitize(&mended);
        prop_assert_eq!(again.edits, vec![], "{}", shown(&mended));
        if check_openai(&list).is_empty() && check_anthropic(&list).is_empty() {
            prop_assert!(plan.edits.is_empty());
        }
    }

    #[test]
    fn the_default_keeps_every_text_and_every_result(list in messages()) {
        let plan = sanitize(&list);
        let mended = apply(list.clone(), &plan.edits);
        let count = |list: &[Msg], which: &dyn Fn(&Part) -> bool| {
            list.iter().filter(|m| !m.note).flat_map(|m| &m.parts).filter(|p| which(p)).count()
        };
        let made = plan.findings.iter().filter(|f| f.remedy == Remedy::MadeText).count();
        let stubs = plan.findings.iter().filter(|f| f.remedy == Remedy::Stubbed).count();
        let result = |part: &Part| matches!(part, Part::Result(..));
        prop_assert_eq!(count(&mended, &result) + made, count(&list, &result) + stubs);
        let mended = texts(&mended);
        let mut rest = mended.iter();
        for text in texts(&list) {
            prop_assert!(rest.any(|kept| *kept == text), "{}", text);
        }
    }

    #[test]
    fn later_messages_do_not_change_settled_atoms(list in messages()) {
        let whole = sanitize(&list).edits;
        for length in 0..list.len() {
            let list = &list[..length];
            let end = atoms(list).settled_end().position();
            let before = |edits: Vec<Edit>| -> Vec<Edit> {
                edits.into_iter().filter(|edit| position(edit) < end).collect()
            };
            prop_assert_eq!(before(sanitize(list).edits), before(whole.clone()));
        }
    }
}

fn position(edit: &Edit) -> usize {
    match edit {
        Edit::DropMessage { message }
        | Edit::DropPart { message, .. }
        | Edit::ResultToText { message, .. }
        | Edit::SetId { message, .. }
        | Edit::SetRole { message, .. } => *message,
        Edit::InsertResults { after, .. } => *after,
        other => panic!("no remedy: {other:?}"),
    }
}
