//! Properties of every context.

use std::num::NonZeroU64;

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, Degradation, DegradationStep, Error, ErrorKind,
    Form, Item, MessageOrigin, Preamble, assemble,
};
use memory_model::{Accounting, EntryKind, LogEntry, Part, Role, Seq, SeqRange};
use proptest::prelude::*;
use token_estimate::HeuristicEstimator;
use turn_map::atoms;

use crate::forms;
use crate::script::{self, PRESETS, accounting, event, input, log, messages, shown};

/// Numbers of steps to test.
const STEPS: [u64; 3] = [4, 1, 9];

/// Returns the policy of a live session's contexts that change in this number of steps.
pub(crate) fn in_steps(steps: u64) -> AssemblyPolicy {
    let steps = NonZeroU64::new(steps).unwrap();
    AssemblyPolicy {
        form: Form::Live { steps },
        ..AssemblyPolicy::default()
    }
}

/// Assembles a view at a budget, and checks the properties of every context.
pub(crate) fn assembled(input: &AssemblyInput, budget: u64, policy: &AssemblyPolicy) -> Context {
    let accounting = accounting(HeuristicEstimator::Bytes4);
    let budget = Budget::tokens(budget);
    let context = assemble(input, &Preamble::default(), budget, policy, &accounting).unwrap();
    counted(&context, &accounting);
    paired(&context);
    assert!(context.tokens <= context.receipt.limit);
    context
}

pub(crate) fn needed(error: &Error) -> u64 {
    match error.kind() {
        ErrorKind::BudgetTooSmall { needed } => needed,
        kind => panic!("{kind:?}"),
    }
}

/// Returns the budgets to test for a view of this cost.
fn budgets(view_tokens: u64, any: u64) -> [u64; 8] {
    [
        1,
        8,
        40,
        300,
        1_000,
        view_tokens,
        1 + any % (view_tokens + 50),
        1 + any % 3_000,
    ]
}

fn entries(item: &Item) -> &[LogEntry] {
    match item {
        Item::Raw(entries) | Item::Quoted(entries) | Item::Trimmed(_, entries, _) => entries,
        Item::Summary(_) | Item::Omitted(_) | Item::Unread(..) => &[],
    }
}

/// Returns the positions of the latest visible block.
fn newest(input: &AssemblyInput) -> Option<(Seq, Seq)> {
    for item in input.items.iter().rev() {
        match item {
            Item::Summary(summary) => return Some((summary.range.first, summary.range.last)),
            Item::Omitted(range) => return Some((range.first, range.last)),
            Item::Unread(..) => {}
            Item::Raw(entries) | Item::Quoted(entries) | Item::Trimmed(_, entries, _) => {
                let atoms = atoms(entries);
                let shows = |at: usize| entries[at].kind == EntryKind::Message;
                let found = atoms.iter().rev().find(|atom| atom.range().any(shows));
                if let Some(atom) = found {
                    let range = atom.range();
                    return Some((entries[range.start].seq, entries[range.end - 1].seq));
                }
            }
        }
    }
    None
}

pub(crate) fn counted(context: &Context, accounting: &dyn Accounting) {
    for message in &context.messages {
        assert_eq!(
            message.tokens,
            accounting.parts(message.role, &message.parts)
        );
    }
    let sum: u64 = context.messages.iter().map(|message| message.tokens).sum();
    assert_eq!(sum, context.tokens);
}

/// Asserts that providers accept the messages.
pub(crate) fn paired(context: &Context) {
    let accepted = crate::provider::accepted(&context.messages);
    assert_eq!(accepted, Ok(()), "{:#?}", context.messages);
}

/// Asserts that messages are in the order of the log, except for moved results in the receipt, which follow their
/// calls.
fn ordered(context: &Context) {
    let mut moved: Vec<_> = context.receipt.moved_results.iter().collect();
    let mut newest = Seq::NONE;
    let mut call: Option<SeqRange> = None;
    for message in &context.messages {
        let Some(range) = message.source.range() else {
            continue;
        };
        if message.role != Role::Tool {
            call = Some(range);
        }
        let named = moved
            .iter()
            .filter(|moved| moved.from == range.first && range.first == range.last)
            .any(|moved| call.is_some_and(|call| call.contains(moved.after)));
        if named && message.role == Role::Tool {
            moved.retain(|moved| moved.from != range.first);
            continue;
        }
        assert!(
            newest <= range.first,
            "{range} stands behind {newest}: {:?}",
            context.receipt
        );
        newest = range.first;
    }
    // The other results were in a group that became one text or was stubbed.
    let degraded = |seq: Seq| {
        let degraded = &context.receipt.degraded;
        degraded.iter().any(|d| d.first <= seq && seq <= d.last)
    };
    let shown: Vec<_> = moved.iter().filter(|moved| !degraded(moved.from)).collect();
    assert!(shown.is_empty(), "not moved: {shown:?}");
}

/// Asserts that each message of the view is either shown or dropped.
fn tiled(context: &Context, input: &AssemblyInput) {
    let covered = |seq: Seq| {
        context
            .messages
            .iter()
            .filter_map(|message| message.source.range())
            .any(|range| range.contains(seq))
    };
    let dropped = |seq: Seq| {
        let dropped = &context.receipt.dropped;
        dropped
            .iter()
            .filter(|d| d.first <= seq && seq <= d.last)
            .count()
    };
    for item in &input.items {
        let seqs: Vec<Seq> = match item {
            Item::Summary(summary) => vec![summary.range.first, summary.range.last],
            Item::Omitted(range) | Item::Unread(range, _) => vec![range.first, range.last],
            _ => entries(item)
                .iter()
                .filter(|entry| entry.kind == EntryKind::Message)
                .map(|entry| entry.seq)
                .collect(),
        };
        for seq in seqs {
            assert_eq!(dropped(seq) + usize::from(covered(seq)), 1, "message {seq}");
        }
    }
    for pair in context.receipt.dropped.windows(2) {
        assert!(pair[0].last < pair[1].first);
    }
}

fn newest_is_there(context: &Context, input: &AssemblyInput) {
    let Some((first, last)) = newest(input) else {
        let identity = |source: &MessageOrigin| *source == MessageOrigin::Identity;
        assert!(
            context
                .messages
                .iter()
                .all(|message| identity(&message.source))
        );
        return;
    };
    let of_newest: Vec<_> = context
        .messages
        .iter()
        .filter(|message| {
            let range = message.source.range();
            range.is_some_and(|range| range.first >= first && range.last <= last)
        })
        .collect();
    assert!(!of_newest.is_empty());
    let degraded = context.receipt.degraded.iter().find(|d| d.first == first);
    let shortened = |source: &MessageOrigin| matches!(source, MessageOrigin::Trimmed { .. });
    if let Some(degraded) = degraded {
        assert_eq!(degraded.last, last);
        let tokens: u64 = of_newest.iter().map(|message| message.tokens).sum();
        assert_eq!(tokens, degraded.to_tokens);
        assert!(degraded.to_tokens < degraded.from_tokens);
    } else {
        assert!(!of_newest.iter().any(|message| shortened(&message.source)));
    }
}

/// Maximum cost of a pointer to dropped messages, in tokens.
const POINTER: u64 = 32;

/// Maximum cost of a line of a digest with the shortest beginning of a message, in tokens.
const LINE_OF_A_DIGEST: u64 = 16;

/// Asserts that a context that shortens or leaves out content uses its room. At most these may be unused: a step, the
/// block at the cut, the next line of a summary, the next line of a digest, and the pointer to the left out messages if
/// it does not fit.
fn used_well(context: &Context, input: &AssemblyInput, steps: u64) {
    let receipt = &context.receipt;
    if receipt.dropped.is_empty() && receipt.degraded.is_empty() && receipt.shortened.is_empty() {
        return;
    }
    let fixed = context.receipt.identity_tokens + context.receipt.request_tokens;
    let room = context.receipt.limit - fixed;
    let used = context.tokens - context.receipt.identity_tokens;
    let boundary = receipt.boundary.as_ref().map(|boundary| boundary.tokens);
    assert!(boundary.is_some() || receipt.dropped.is_empty() && receipt.degraded.is_empty());
    let boundary = boundary.unwrap_or(0);
    let line = match receipt.shortened.is_empty() && receipt.dropped.is_empty() {
        true => 0,
        false => forms::longest_line(input),
    };
    let is_digest = |d: &Degradation| d.step == DegradationStep::Digest;
    let line = line
        + match receipt.degraded.iter().any(is_digest) {
            true => LINE_OF_A_DIGEST,
            false => 0,
        };
    let pointer = match receipt.dropped.is_empty() {
        true => 0,
        false => POINTER,
    };
    // The sizes for which the latest group is shown whole differ by a quarter of the room.
    assert!(
        used + boundary + line + pointer >= room - (room / steps).max(room / 4),
        "{used}, the boundary's {boundary} and a line of {line} of {room}: {receipt:?}"
    );
}

fn law(input: &AssemblyInput, accounting: &dyn Accounting, any: u64) {
    let preamble = Preamble {
        identity: any.is_multiple_of(3).then_some("You are a careful agent."),
        ..Preamble::default()
    };
    for of_budget in STEPS {
        let policy = in_steps(of_budget);
        let mut steps: Vec<(u64, Option<DegradationStep>)> = Vec::new();
        for budget in budgets(input.view_tokens, any) {
            let run = |budget| {
                assemble(
                    input,
                    &preamble,
                    Budget::tokens(budget),
                    &policy,
                    accounting,
                )
            };
            let context = match run(budget) {
                Ok(context) => context,
                Err(error) => {
                    let needed = needed(&error);
                    assert!(budget < needed && needed < 1_000, "{budget} {needed}");
                    assert!(run(needed).is_ok(), "{needed} do not do");
                    assert!(run(needed - 1).is_err(), "{} do", needed - 1);
                    continue;
                }
            };
            assert_eq!(context.budget, budget);
            assert!(context.tokens <= budget);
            counted(&context, accounting);
            paired(&context);
            ordered(&context);
            tiled(&context, input);
            newest_is_there(&context, input);
            used_well(&context, input, of_budget);
            assert_eq!(run(budget).unwrap(), context);
            let newest = newest(input);
            let step = context.receipt.degraded.iter().rev();
            let step = step
                .filter(|d| Some((d.first, d.last)) == newest)
                .map(|d| d.step)
                .next();
            steps.push((budget, step));
        }
        // Less room never leads to an earlier step.
        steps.sort();
        let steps: Vec<_> = steps.into_iter().map(|(_, step)| step).rev().collect();
        assert!(steps.is_sorted(), "{steps:?}");
    }
    let tail = (any % 7) as usize;
    let policy = AssemblyPolicy {
        whole_tail: Some(tail),
        ..AssemblyPolicy::default()
    };
    for budget in budgets(input.view_tokens, any) {
        let context = assemble(
            input,
            &preamble,
            Budget::tokens(budget),
            &policy,
            accounting,
        );
        let context = context.unwrap();
        counted(&context, accounting);
        paired(&context);
        ordered(&context);
        tiled(&context, input);
        newest_is_there(&context, input);
        tail_is_whole(&context, input, tail);
        assert!(context.receipt.degraded.is_empty() && context.receipt.shortened.is_empty());
        // The content that is left out does not fit.
        let boundary = context
            .receipt
            .boundary
            .as_ref()
            .map(|boundary| boundary.tokens);
        let with =
            context.tokens + context.receipt.request_tokens + boundary.unwrap_or(u64::MAX / 2);
        assert!(with > context.receipt.limit);
    }
}

/// Asserts that the latest messages are whole.
fn tail_is_whole(context: &Context, input: &AssemblyInput, tail: usize) {
    let newest_first = input
        .items
        .iter()
        .rev()
        .flat_map(|item| entries(item).iter().rev());
    let messages = newest_first.filter(|entry| entry.kind == EntryKind::Message);
    for entry in messages.take(tail) {
        let dropped = &context.receipt.dropped;
        let is_dropped = dropped
            .iter()
            .any(|d| d.first <= entry.seq && entry.seq <= d.last);
        assert!(!is_dropped, "{}: {:?}", entry.seq, context.receipt);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn every_context_keeps_the_laws(
        events in prop::collection::vec(event(), 0..30),
        stretches in prop::collection::vec((1_usize..8, shown()), 0..6),
        any in any::<u64>(),
    ) {
        for preset in PRESETS {
            let accounting = accounting(preset);
            let entries = log(messages(&events), &accounting);
            law(&input(&entries, &stretches, &accounting), &accounting, any);
        }
    }

    /// A case in which rendering adds many tokens: only results without a call.
    #[test]
    fn headings_do_not_eat_the_budget(sizes in prop::collection::vec(0_usize..30, 1..200)) {
        let accounting = accounting(PRESETS[0]);
        let orphans: Vec<_> = sizes
            .iter()
            .map(|n| script::Event::Orphan("x".repeat(*n)))
            .collect();
        let entries = log(messages(&orphans), &accounting);
        law(&input(&entries, &[], &accounting), &accounting, 1_500);
    }

    /// A case in which rendering saves many tokens: many short messages of few responses.
    #[test]
    fn joined_lines_do_not_leave_the_budget_empty(
        sizes in prop::collection::vec(1_usize..60, 1..20),
    ) {
        let accounting = accounting(PRESETS[1]);
        let lines: Vec<_> = sizes
            .iter()
            .map(|n| script::Event::Lines(vec!["ok".to_owned(); *n]))
            .collect();
        let entries = log(messages(&lines), &accounting);
        law(&input(&entries, &[], &accounting), &accounting, 400);
    }

    /// The part of the view within `input_limits` is enough: no other message is shown whole.
    #[test]
    fn the_input_limits_are_sufficient(
        sizes in prop::collection::vec(0_usize..4_000, 1..200),
        budget in 1_000_u64..60_000,
    ) {
        let accounting = accounting(PRESETS[0]);
        let users: Vec<_> = sizes
            .iter()
            .map(|n| script::Event::User("x".repeat(*n)))
            .collect();
        let entries = log(messages(&users), &accounting);
        let whole = input(&entries, &[], &accounting);
        for steps in STEPS {
            let policy = in_steps(steps);
            let budget = Budget::tokens(budget);
            let limits = policy.input_limits(whole.view_tokens, 0, budget);
            let from = whole.view_tokens.saturating_sub(limits.message_tokens);
            let skipped = entries.iter().take_while(|entry| from > 0 && entry.running <= from).count();
            let context = assemble(&whole, &Preamble::default(), budget, &policy, &accounting).unwrap();
            let is_read = |source: &MessageOrigin| match source {
                MessageOrigin::Message { first, .. } => first.0 as usize > skipped,
                _ => true,
            };
            prop_assert!(context.messages.iter().all(|message| is_read(&message.source)));
        }
    }
}

/// A limit of 999 tokens is enough for any latest group.
#[test]
fn the_floor_is_below_a_thousand_tokens() {
    use memory_model::{Message, RawJson, Role};
    let call = |id: String, name: &str, bytes: usize| Part::ToolCall {
        id,
        name: name.to_owned(),
        arguments: RawJson::from_value(&"a".repeat(bytes)).unwrap(),
    };
    let many = (0..3_000).map(|n| call(format!("c{n}"), "t", 1)).collect();
    let long = "n".repeat(50_000);
    let texts = (0..5_000).map(|_| Part::text("some words here")).collect();
    let orphan = Message::tool_result(format!("\n\u{1b}{long}"), "x");
    let newest = [
        vec![Message::new(Role::Assistant, many)],
        vec![Message::new(
            Role::Assistant,
            vec![call("c".into(), "t", 500_000)],
        )],
        vec![Message::new(
            Role::Assistant,
            vec![call(long.clone(), &long, 1)],
        )],
        vec![Message::new(Role::User, texts).with_name(long.clone())],
        vec![orphan],
        vec![Message::user("日本".repeat(60_000))],
        (0..3_000)
            .map(|n| Message::assistant(format!("line {n} ")).with_response("r"))
            .collect(),
    ];
    for preset in PRESETS {
        let accounting = accounting(preset);
        for messages in &newest {
            let entries = log(messages.clone(), &accounting);
            let input = input(&entries, &[], &accounting);
            let policy = AssemblyPolicy::default();
            let run = |budget| {
                assemble(
                    &input,
                    &Preamble::default(),
                    Budget::tokens(budget),
                    &policy,
                    &accounting,
                )
            };
            let context = run(999).unwrap();
            counted(&context, &accounting);
            paired(&context);
            let needed = needed(&run(0).unwrap_err());
            let overhead = accounting.estimator().request_overhead();
            assert!(needed < 60 + overhead, "{needed}");
            assert!(run(needed).is_ok() && run(needed - 1).is_err());
        }
    }
}
