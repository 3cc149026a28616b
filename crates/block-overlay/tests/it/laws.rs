//! The invariants of blocks and contexts, over random loop chains.

use block_overlay::{
    CompactionBlock, CompactionConfig, CompactionScope, LoopLayout, LoopRecord, LoopSession, Shown,
    build_context_from_session, resolve_scope,
};
use proptest::prelude::*;
use token_estimate::TokenEstimatorExt as _;
use turn_map::Role;

use crate::world::{
    COUNTER, Msg, assistant, call, chain, compact, config, output, result, settings, texts, user,
};

/// A turn: what the user says, whether a tool is called, whether messages carry their turn.
type Turn = (u8, bool, bool);

fn messages(id: &str, turns: &[Turn]) -> Vec<Msg> {
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
            true => message.in_turn(id, index as u32),
            false => message,
        }));
    }
    messages
}

fn loops() -> impl Strategy<Value = Vec<LoopRecord<Msg>>> {
    let turn = (0..12_u8, any::<bool>(), prop::bool::weighted(0.8));
    let of_loop = prop::collection::vec(turn, 0..24);
    prop::collection::vec(of_loop, 1..7).prop_map(|loops| {
        let record = |(index, turns): (usize, Vec<Turn>)| {
            let id = format!("l{index}");
            LoopRecord::new(id.as_str(), messages(&id, &turns))
        };
        loops.into_iter().enumerate().map(record).collect()
    })
}

fn configs() -> impl Strategy<Value = CompactionConfig<Msg>> {
    let scope = prop_oneof![
        (0..6_usize).prop_map(CompactionScope::FixedCount),
        Just(CompactionScope::TokenBudget),
        Just(CompactionScope::TokenBudgetRaw),
    ];
    (scope, 0..5_usize, 0..9_usize, 0..900_u64).prop_map(|(scope, first, recent, tokens)| {
        config()
            .with_scope(scope)
            .with_kept_turns(first, recent)
            .with_max_summary_tokens(tokens)
    })
}

fn layout(record: &LoopRecord<Msg>, config: &CompactionConfig<Msg>) -> LoopLayout {
    LoopLayout::new(&record.messages, config.turn_rule)
}

/// Invariants 1, 2, 4 and 6 of a block.
fn check_block(
    record: &LoopRecord<Msg>,
    block: &CompactionBlock<Msg>,
    config: &CompactionConfig<Msg>,
    newest: bool,
) -> Result<(), TestCaseError> {
    let layout = layout(record, config);
    let count = layout.turns().count();
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
        let position = layout.turns().span(range.indices()).start;
        let cut = layout.atoms().cut_before(position).position();
        prop_assert_eq!(cut, position, "a call and its result are in one section");
    }
    prop_assert_eq!(next, count, "sections cover the loop");
    let long = layout.sections(config.keep_first_turns, config.keep_recent_turns);
    if newest && long.middle.is_some() {
        prop_assert!(block.keep_compacted.is_some());
    }
    if !newest {
        prop_assert!(block.keep_first.is_none() && block.keep_recent.is_none());
    }
    if let Some(section) = &block.keep_compacted {
        prop_assert!(COUNTER.messages(&section.messages) <= config.max_summary_tokens);
    }
    Ok(())
}

/// Every turn in scope is shown once or counted in one omission, and every message is accounted for.
fn check_context(
    session: &LoopSession<Msg>,
    current: &str,
    config: &CompactionConfig<Msg>,
    budget: u64,
) -> Result<(), TestCaseError> {
    let settings = settings(config, budget);
    let Ok(shown) = build_context_from_session(session, current, &settings) else {
        return Ok(());
    };
    prop_assert!(shown.tokens <= budget);
    prop_assert_eq!(shown.tokens, COUNTER.messages(&shown.messages));
    let texts = texts(&shown.messages);
    let chain = session.chain(current);
    let (out, inside) = chain.split_at(chain.len() - shown.loops);
    let mut turns = shown.turns.iter();
    let mut hidden = 0;
    for record in inside {
        let layout = layout(record, config);
        for turn in 0..layout.turns().count() {
            let one = turns.next().unwrap();
            prop_assert_eq!(
                (one.loop_id.as_str(), one.turn),
                (record.loop_id.as_str(), turn)
            );
            prop_assert_eq!(one.messages, layout.turns().range(turn).len());
            let counted = shown.omissions.iter().filter(|omission| {
                omission.loop_id == record.loop_id && omission.turns.contains(turn)
            });
            prop_assert_eq!(counted.count(), usize::from(one.shown == Shown::Omitted));
            hidden += usize::from(one.shown == Shown::Omitted);
            // What was said in a turn that is shown is there once, whenever it was said.
            let said = layout.turns().slice(&record.messages, turn..turn + 1);
            let said = said.iter().filter(|message| message.role != Role::Tool);
            for text in said.map(Msg::text).filter(|text| !text.starts_with('<')) {
                let times = texts.iter().filter(|other| **other == text).count();
                // What came after a summary of its turn is shown beside it.
                let least = usize::from(matches!(one.shown, Shown::Raw | Shown::Trimmed));
                prop_assert!((least..=1).contains(&times), "{}: {}", text, times);
            }
        }
    }
    prop_assert!(turns.next().is_none());
    let named: usize = shown.omissions.iter().map(|one| one.turns.len()).sum();
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
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn blocks_and_contexts_keep_their_promises(
        loops in loops(), config in configs(), budget in 50..6_000_u64, grows in 0..5_usize,
    ) {
        let mut session = chain(Vec::new());
        let mut parent: Option<String> = None;
        for mut record in loops {
            let id = record.loop_id.clone();
            // A loop grows while it is the newest.
            let rest = record.messages.split_off(record.messages.len() * grows / 5);
            session.push(match parent.take() {
                Some(parent) => record.with_parent(parent),
                None => record,
            });
            let settings_before = settings(&config, budget);
            compact(&mut session, &id, &config, budget);
            check_context(&session, &id, &config, budget)?;
            session.update(&id, |record| record.messages.extend(rest));
            check_context(&session, &id, &config, budget)?;
            let before: Vec<_> = session.loops().iter().map(|one| one.messages.clone()).collect();
            compact(&mut session, &id, &config, budget);
            let after: Vec<_> = session.loops().iter().map(|one| one.messages.clone()).collect();
            prop_assert_eq!(before, after, "originals stay");
            let scope = resolve_scope(&session, &id, &settings_before);
            for (age, record) in session.ancestors(&id).take(scope + 1).enumerate() {
                let block = record.compaction_block.as_ref();
                // 5: in scope every loop has a block, the older ones over all of their turns.
                if age == 0 || !record.messages.is_empty() {
                    check_block(record, block.unwrap(), &config, age == 0)?;
                }
            }
            check_context(&session, &id, &config, budget)?;
            check_context(&session, &id, &config, u64::MAX)?;
            parent = Some(id);
        }
    }

    #[test]
    fn a_larger_budget_has_no_smaller_scope(loops in loops(), config in configs(), budget in 0..5_000_u64) {
        let newest = loops.last().unwrap().loop_id.clone();
        let session = chain(loops);
        let scope = |budget| resolve_scope(&session, &newest, &settings(&config, budget));
        prop_assert!(scope(budget) <= scope(budget + 500));
    }
}
