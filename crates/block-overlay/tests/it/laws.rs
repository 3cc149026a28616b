//! The invariants of blocks and contexts, over random loop chains.

use block_overlay::{
    CompactionBlock, CompactionConfig, CompactionScope, Error, LoopContext, LoopRecord,
    LoopSession, Shown, TurnMap, build_context_from_session, resolve_scope,
};
use memory_model::Message;
use proptest::prelude::*;
use token_estimate::TokenEstimatorExt as _;
use turn_map::{Role, atoms};

use crate::world::{
    COUNTER, assistant, call, chain, compact, config, output, record, result, text, texts, user,
};

/// A turn: the user's text, whether a tool is called, and whether messages have a turn index.
type Turn = (u8, bool, bool);

fn messages(id: &str, turns: &[Turn]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (index, (size, tool, indexed)) in turns.iter().enumerate() {
        let mut of_turn = vec![user(&format!(
            "{id} {index} {}",
            "ask ".repeat(usize::from(*size))
        ))];
        if *tool {
            let call_id = format!("{id}-{index}");
            of_turn.push(call(&call_id));
            of_turn.push(result(&call_id, &output(usize::from(*size) * 5)));
        }
        of_turn.push(assistant(&format!(
            "answer {id} {index} {}",
            "tell ".repeat(usize::from(*size) * 3)
        )));
        messages.extend(of_turn.into_iter().map(|message| match indexed {
            true => message.with_turn(id, index as u32),
            false => message,
        }));
    }
    messages
}

fn loops() -> impl Strategy<Value = Vec<LoopRecord>> {
    let turn = (0..12_u8, any::<bool>(), prop::bool::weighted(0.8));
    let of_loop = prop::collection::vec(turn, 0..24);
    prop::collection::vec(of_loop, 1..7).prop_map(|loops| {
        let a_loop = |(index, turns): (usize, Vec<Turn>)| {
            let id = format!("l{index}");
            record(&id, messages(&id, &turns))
        };
        loops.into_iter().enumerate().map(a_loop).collect()
    })
}

fn configs() -> impl Strategy<Value = CompactionConfig> {
    let scope = prop_oneof![
        (0..6_usize).prop_map(CompactionScope::FixedCount),
        Just(CompactionScope::TokenBudget),
    ];
    (scope, 0..5_usize, 0..9_usize, 0..900_u64).prop_map(|(scope, first, recent, tokens)| {
        CompactionConfig {
            compaction_scope: scope,
            keep_first_turns: first,
            keep_recent_turns: recent,
            max_summary_tokens: tokens,
            ..config()
        }
    })
}

/// Checks the invariants 1, 2, 4 and 6 of a block.
fn check_block(
    record: &LoopRecord,
    block: &CompactionBlock,
    config: &CompactionConfig,
    newest: bool,
) -> Result<(), TestCaseError> {
    let turns = TurnMap::of_loop(&record.messages);
    let atoms = atoms(&record.messages);
    let count = turns.turn_count();
    let recent = block.keep_recent.as_ref().map(|section| section.range);
    let middle = block.keep_compacted.as_ref().map(|section| section.range);
    let ranges: Vec<_> = [block.keep_first, middle, recent]
        .into_iter()
        .flatten()
        .collect();
    let mut next = 0;
    for range in &ranges {
        prop_assert_eq!(range.indices().start, next, "sections follow each other");
        next = range.indices().end;
        let position = turns.turn_msg_range(range.indices().start).unwrap().start;
        let cut = atoms.cut_before(position).position();
        prop_assert_eq!(cut, position, "a call and its result are in one section");
    }
    prop_assert_eq!(next, count, "sections cover the loop");
    if !newest {
        prop_assert!(block.keep_first.is_none() && block.keep_recent.is_none());
    }
    if let Some(section) = &block.keep_compacted {
        prop_assert!(COUNTER.messages(&section.messages) <= config.max_summary_tokens);
    }
    Ok(())
}

/// Checks that every turn in scope is shown once or counted in one omission, and that every message is counted. Returns
/// `None` if the latest turn does not fit.
pub(crate) fn check_context(
    session: &LoopSession,
    current: &str,
    config: &CompactionConfig,
    budget: u64,
) -> Result<Option<LoopContext>, TestCaseError> {
    let shown = match build_context_from_session(session, current, config, budget) {
        Ok(shown) => shown,
        Err(Error::BudgetTooSmall { .. }) => return Ok(None),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    prop_assert!(shown.tokens <= budget);
    prop_assert_eq!(shown.tokens, COUNTER.messages(&shown.messages));
    let chain = session.chain(current).unwrap();
    let (out, inside) = chain.split_at(chain.len() - shown.loops);
    let mut turns = shown.turns.iter();
    let mut hidden = 0;
    for record in inside {
        for turn in 0..TurnMap::of_loop(&record.messages).turn_count() {
            let one = turns.next().unwrap();
            prop_assert_eq!(
                (one.loop_id.as_str(), one.turn),
                (record.loop_id.as_str(), turn)
            );
            let counted = shown.omissions.iter().filter(|omission| {
                omission.loop_id == record.loop_id && omission.turns.indices().contains(&turn)
            });
            prop_assert_eq!(counted.count(), usize::from(one.shown == Shown::Omitted));
            hidden += usize::from(one.shown == Shown::Omitted);
        }
    }
    prop_assert!(turns.next().is_none());
    let named: usize = shown
        .omissions
        .iter()
        .map(|one| one.turns.indices().len())
        .sum();
    prop_assert_eq!(named, hidden);
    let counted = shown.out_of_scope.as_ref().map(|older| {
        let ends = (older.first_loop_id.as_str(), older.last_loop_id.as_str());
        (ends, older.loops, older.messages)
    });
    let messages = out.iter().map(|record| record.messages.len()).sum();
    let expected = out.first().zip(out.last()).map(|(first, last)| {
        let ends = (first.loop_id.as_str(), last.loop_id.as_str());
        (ends, out.len(), messages)
    });
    prop_assert_eq!(counted, expected);
    Ok(Some(shown))
}

/// Checks that the texts of a shown turn are in the context once, including texts added later.
fn check_words(
    session: &LoopSession,
    current: &str,
    config: &CompactionConfig,
    budget: u64,
) -> Result<(), TestCaseError> {
    let Some(shown) = check_context(session, current, config, budget)? else {
        return Ok(());
    };
    let texts = texts(&shown.messages);
    for one in &shown.turns {
        let messages = &session.get(&one.loop_id).unwrap().messages;
        let turn_map = TurnMap::of_loop(messages);
        let said = &messages[turn_map.turn_msg_range(one.turn).unwrap()];
        let said = said.iter().filter(|message| message.role != Role::Tool);
        for text in said.map(text).filter(|text| !text.starts_with('<')) {
            let times = texts.iter().filter(|other| **other == text).count();
            // Messages added after the summary of their turn are shown too.
            let least = usize::from(matches!(one.shown, Shown::Raw | Shown::Trimmed));
            prop_assert!((least..=1).contains(&times), "{}: {}", text, times);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn blocks_and_contexts_keep_their_promises(
        loops in loops(), config in configs(), budget in 50..6_000_u64, grows in 0..5_usize,
    ) {
        let mut session = chain(Vec::new());
        for mut record in loops {
            let id = record.loop_id.clone();
            // The loop grows while it is the latest one.
            let rest = record.messages.split_off(record.messages.len() * grows / 5);
            record.parent_loop_id = session.loops.last().map(|parent| parent.loop_id.clone());
            session.loops.push(record);
            compact(&mut session, &id, &config, budget);
            check_words(&session, &id, &config, budget)?;
            session.get_mut(&id).unwrap().messages.extend(rest);
            check_words(&session, &id, &config, budget)?;
            let before: Vec<_> = session.loops.iter().map(|one| one.messages.clone()).collect();
            compact(&mut session, &id, &config, budget);
            let after: Vec<_> = session.loops.iter().map(|one| one.messages.clone()).collect();
            prop_assert_eq!(before, after, "originals stay");
            let scope = resolve_scope(&session, &id, &config, budget).unwrap();
            let chain = session.chain(&id).unwrap();
            for (age, record) in chain.into_iter().rev().take(scope + 1).enumerate() {
                let block = record.compaction_block.as_ref();
                // Invariant 5: in scope every loop has a block, and the older ones have a block over all of their
                // turns.
                if age == 0 || !record.messages.is_empty() {
                    check_block(record, block.unwrap(), &config, age == 0)?;
                }
            }
            check_words(&session, &id, &config, budget)?;
            check_words(&session, &id, &config, u64::MAX)?;
        }
    }

    #[test]
    fn a_larger_budget_has_no_smaller_scope(loops in loops(), config in configs(), budget in 0..5_000_u64) {
        let newest = loops.last().unwrap().loop_id.clone();
        let session = chain(loops);
        let scope = |budget| resolve_scope(&session, &newest, &config, budget).unwrap();
        prop_assert!(scope(budget) <= scope(budget + 500));
    }
}
