//! The start of a context stays as it is.

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, ContextMessage, Eviction, Item, assemble,
};
use memory_model::{LogEntry, Role};
use token_estimate::HeuristicEstimator;

use crate::script::{Event, accounting, log, messages};

/// A conversation of realistic sizes: questions, tool calls with results of a few hundred tokens,
/// now and then a large one, answers.
fn conversation(turns: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for turn in 0..turns {
        let size = |n: usize| 200 + (turn * 7_919 + n * 104_729) % 3_000;
        let results = (0..1 + turn % 3).map(|n| "r".repeat(size(n))).collect();
        events.push(Event::User("q".repeat(100 + size(1) / 8)));
        events.push(Event::Calls {
            results,
            answered: if turn % 17 == 3 { 0 } else { 9 },
            lines: turn % 2 == 0,
            between: turn % 4 == 0,
            aside: false,
        });
        if turn % 17 == 9 {
            events.push(Event::Late("too late".to_owned()));
        }
        events.push(Event::Assistant("a".repeat(size(2) / 2)));
    }
    events
}

/// What a caller reads: from the group that `first_needed_token` falls in.
fn read(entries: &[LogEntry], policy: &AssemblyPolicy, budget: Budget) -> AssemblyInput {
    let view_tokens = entries.last().map_or(0, |entry| entry.running);
    let from = policy.first_needed_token(view_tokens, 0, budget);
    let mut first = entries.partition_point(|entry| entry.running <= from);
    // A user speaks only between groups.
    while first > 0
        && entries
            .get(first)
            .is_some_and(|entry| entry.role != Role::User)
    {
        first -= 1;
    }
    AssemblyInput {
        view_tokens,
        tokens_before: first.checked_sub(1).map_or(0, |last| entries[last].running),
        items: vec![Item::Raw(entries[first..].to_vec())],
    }
}

/// The share of the tokens sent that the context before had at the same place.
fn reused(preset: HeuristicEstimator, eviction: Eviction) -> f64 {
    const BUDGET: u64 = 48_000;
    let accounting = accounting(preset);
    let entries = log(messages(&conversation(220)), &accounting);
    let policy = AssemblyPolicy::default().with_eviction(eviction);
    let mut before: Vec<ContextMessage> = Vec::new();
    let (mut sent, mut same) = (0, 0);
    for head in 1..=entries.len() {
        let budget = Budget::tokens(BUDGET);
        let input = read(&entries[..head], &policy, budget);
        let context = assemble(&input, None, budget, &policy, &accounting).unwrap();
        assert!(context.tokens <= BUDGET);
        sent += context.tokens;
        same += context
            .messages
            .iter()
            .zip(&before)
            .take_while(|(now, before)| now == before)
            .map(|(now, _)| now.tokens)
            .sum::<u64>();
        before = context.messages;
    }
    same as f64 / sent as f64
}

#[test]
fn stepping_keeps_the_prefix() {
    for preset in [HeuristicEstimator::Bytes4, HeuristicEstimator::Bytes3_5] {
        let reused = reused(preset, Eviction::default());
        assert!(reused >= 0.95, "{preset}: {reused}");
    }
    let stop = reused(HeuristicEstimator::Bytes4, Eviction::NewestUntilFull);
    assert!(stop < 0.8, "{stop}");
}

/// Between two steps nothing at the start changes but the newest group.
#[test]
fn the_start_changes_only_with_the_step() {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let entries = log(messages(&conversation(150)), &accounting);
    let mut last: Option<(u64, ContextMessage)> = None;
    let mut changes = 0;
    let mut steps = 0;
    for head in 1..=entries.len() {
        let (policy, budget) = (AssemblyPolicy::default(), Budget::tokens(16_000));
        let input = read(&entries[..head], &policy, budget);
        let context = assemble(&input, None, budget, &policy, &accounting).unwrap();
        let first = context.messages[0].clone();
        let dropped = context.receipt.stepped_tokens;
        if let Some((before, start)) = last.filter(|_| head > 3) {
            assert!(dropped >= before);
            steps += usize::from(dropped != before);
            changes += usize::from(first != start);
            assert!(dropped != before || first == start, "at {head}");
        }
        last = Some((dropped, first));
    }
    assert!(steps > 5 && changes <= steps, "{changes} {steps}");
}
