//! Regression tests for bugs of similar programs.

use block_overlay::{AgentContext, Compactor, ContextConfig, LoopSession, TurnRange};
use memory_model::Message;

use crate::world::{
    PLENTY, block_on, chain, child, compact, config, context, fixed, kept, letters, summary_tokens,
    texts, turns,
};

/// Returns how often the text of each original message is in the context.
fn occurrences(session: &LoopSession, shown: &[Message], id: &str) -> Vec<usize> {
    let shown = texts(shown);
    let originals = texts(&session.get(id).unwrap().messages);
    let count = |text: &String| shown.iter().filter(|other| *other == text).count();
    originals.iter().map(count).collect()
}

#[test]
fn turns_that_two_sections_want_are_shown_once() {
    for count in 1..=12 {
        let mut session = chain(vec![turns("a", count, 3)]);
        compact(&mut session, "a", &config(), PLENTY);
        let shown = context(&session, "a", &config(), PLENTY);
        let once = occurrences(&session, &shown.messages, "a");
        assert!(
            once.iter().all(|count| *count == 1),
            "{count} turns: {once:?}"
        );
    }
    // A block with overlapping ranges, made by another program, is shown once too.
    let mut session = chain(vec![turns("a", 10, 3)]);
    compact(&mut session, "a", &kept(0, 10), PLENTY);
    let record = session.get_mut("a").unwrap();
    let block = record.compaction_block.as_mut().unwrap();
    block.keep_first = TurnRange::from_indices(0..2);
    block.covered_messages = None;
    let shown = context(&session, "a", &config(), PLENTY);
    assert!(
        occurrences(&session, &shown.messages, "a")
            .iter()
            .all(|count| *count == 1)
    );
}

#[test]
fn a_digest_hides_neither_the_first_turns_nor_the_recent_ones() {
    let mut session = chain(vec![turns("a", 10, 80)]);
    compact(&mut session, "a", &kept(2, 3), PLENTY);
    let record = session.get_mut("a").unwrap();
    let block = record.compaction_block.as_mut().unwrap();
    let digest = block.keep_compacted.as_mut().unwrap();
    digest.range = TurnRange::from_indices(0..10).unwrap();
    digest.messages = vec![Message::user("All of it.")];
    let recent = block.keep_recent.as_ref().unwrap().messages.clone();
    let first = record.messages[..4].to_vec();
    let shown = context(&session, "a", &config(), PLENTY);
    assert_eq!(letters(&shown, "a"), "rrsssssttt");
    let middle = vec![Message::user("All of it.")];
    assert_eq!(shown.messages, [first, middle, recent].concat());
}

#[test]
fn a_former_newest_loop_keeps_its_beginning_and_its_end() {
    // The loop is too short for a middle, so its old block has no summary for an older loop.
    for count in [5, 20] {
        let mut session = chain(vec![turns("a", count, 3)]);
        compact(&mut session, "a", &config(), PLENTY);
        session.loops.push(child("a", turns("b", 3, 3)));
        // Before the blocks are made again, every turn is shown.
        let between = context(&session, "b", &config(), PLENTY);
        assert_eq!(letters(&between, "a").matches('-').count(), 0);
        assert_eq!(letters(&between, "a").len(), count as usize);
        assert!(
            texts(&between.messages)
                .iter()
                .any(|text| text.contains("a: question 0"))
        );
        // Then the block is one section over all turns.
        assert_eq!(compact(&mut session, "b", &config(), PLENTY), ["b", "a"]);
        let shown = context(&session, "b", &config(), PLENTY);
        assert_eq!(letters(&shown, "a"), "s".repeat(count as usize));
        let last = format!("a: question {}", count - 1);
        assert!(
            texts(&shown.messages)
                .iter()
                .any(|text| text.contains(&last)),
            "{count}"
        );
        // A third compaction does not change the block.
        assert_eq!(compact(&mut session, "b", &config(), PLENTY), ["b"]);
    }
}

#[test]
fn compacting_again_and_again_changes_no_original() {
    let session = chain(vec![turns("a", 20, 80), turns("b", 30, 80)]);
    let originals = messages(&session);
    let mut agent = AgentContext::of_session(session, "b").unwrap();
    let compactor = Compactor {
        config: ContextConfig {
            max_context_tokens: 6_000,
            system_prompt_tokens: 100,
            compaction: config(),
        },
        hooks: Vec::new(),
    };
    let compact = async |agent: &mut AgentContext| {
        let outcome = compactor.compact_context(agent).await;
        outcome.unwrap().unwrap()
    };
    let first = block_on(compact(&mut agent));
    let (shown, tokens) = (agent.messages.clone(), first.tokens_after);
    for _ in 0..5 {
        let again = block_on(compact(&mut agent));
        assert_eq!((again.tokens_before, again.tokens_after), (tokens, tokens));
        assert_eq!(agent.messages, shown);
        let session = agent.session.as_ref().unwrap();
        assert_eq!(messages(session), originals);
    }
}

fn messages(session: &LoopSession) -> Vec<Vec<Message>> {
    let loops = session.loops.iter();
    loops.map(|record| record.messages.clone()).collect()
}

#[test]
fn what_the_user_said_in_the_middle_is_in_the_lines_and_the_rest_is_counted() {
    let mut session = chain(vec![turns("a", 30, 3)]);
    let small = summary_tokens(400);
    compact(&mut session, "a", &small, PLENTY);
    let block = session.get("a").unwrap().compaction_block.as_ref().unwrap();
    let middle = block.keep_compacted.as_ref().unwrap();
    assert!(texts(&middle.messages)[0].contains("User: a: question 2, please"));
    // The summary says that turns are missing at its end.
    let omitted = middle.omitted.as_ref().unwrap();
    assert_eq!(omitted.turns.end_turn, middle.range.end_turn);
    assert!(
        texts(&middle.messages)
            .last()
            .unwrap()
            .contains(&omitted.to_string())
    );
    let shown = context(&session, "a", &small, PLENTY);
    let hidden = letters(&shown, "a").matches('-').count();
    let turns = omitted.turns.indices().len();
    assert_eq!((hidden, shown.omissions.len()), (turns, 1));
}

#[test]
fn parents_in_a_circle_end() {
    let mut session = chain(vec![turns("a", 3, 3), turns("b", 3, 3), turns("c", 3, 3)]);
    session.get_mut("a").unwrap().parent_loop_id = Some("c".to_owned());
    assert_eq!(session.chain("c").unwrap().len(), 3);
    assert_eq!(
        compact(&mut session, "c", &fixed(9), PLENTY),
        ["c", "b", "a"]
    );
    assert_eq!(context(&session, "c", &fixed(9), PLENTY).loops, 3);
}
