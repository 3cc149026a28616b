//! The beginning of a context stays the same.

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, ContextAccounting, ContextMessage, Item,
    Preamble, assemble,
};
use memory_model::{LogEntry, Message, Role, Seq, SeqRange};
use token_estimate::HeuristicEstimator;

use crate::script::{Event, Shown, accounting, input, log, messages};

/// Returns a conversation of realistic sizes: questions, tool calls with results of a few hundred tokens, sometimes a
/// large one, and answers.
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

/// Returns the part of the view that a caller reads: from the group at the policy's limit on.
fn read(entries: &[LogEntry], policy: &AssemblyPolicy, budget: Budget) -> AssemblyInput {
    let view_tokens = entries.last().map_or(0, |entry| entry.running);
    let needed = policy.input_limits(view_tokens, 0, budget).message_tokens;
    let from = view_tokens.saturating_sub(needed);
    let mut first = entries.partition_point(|entry| entry.running <= from);
    // A user message is never inside a group.
    while first > 0
        && entries
            .get(first)
            .is_some_and(|entry| entry.role != Role::User)
    {
        first -= 1;
    }
    let (unread, read) = entries.split_at(first);
    let unread = unread.last().map(|last| {
        let range = SeqRange::new(Seq::FIRST, last.seq).unwrap();
        Item::Unread(range, last.running)
    });
    let read = Item::Raw(read.to_vec());
    AssemblyInput {
        below: Vec::new(),
        view_tokens,
        requested: Vec::new(),
        state: None,
        remarks: Vec::new(),
        items: unread.into_iter().chain([read]).collect(),
    }
}

/// Returns the share of the sent tokens that the previous context had at the same position.
fn reused(preset: HeuristicEstimator, whole_tail: Option<usize>) -> f64 {
    const BUDGET: u64 = 48_000;
    let accounting = accounting(preset);
    let entries = log(messages(&conversation(220)), &accounting);
    let policy = AssemblyPolicy {
        whole_tail,
        ..AssemblyPolicy::default()
    };
    let mut before: Vec<ContextMessage> = Vec::new();
    let (mut sent, mut same) = (0, 0);
    for head in 1..=entries.len() {
        let budget = Budget::tokens(BUDGET);
        let input = read(&entries[..head], &policy, budget);
        let context = assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap();
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
        let reused = reused(preset, None);
        assert!(reused >= 0.95, "{preset}: {reused}");
    }
    let newest_first = reused(HeuristicEstimator::Bytes4, Some(1));
    assert!(newest_first < 0.8, "{newest_first}");
}

/// The beginning of a context changes only with a step.
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
        let context = assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap();
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

/// A view that begins with summaries, and grows by one message at a time.
struct Growing {
    entries: Vec<LogEntry>,
    /// The summaries, with the number of raw messages before each.
    summaries: Vec<Item>,
    /// Number of messages that the summaries cover.
    covered: usize,
    accounting: ContextAccounting,
}

impl Growing {
    /// Creates summaries of `lines` lines over ten messages each, with some raw messages between the first two.
    fn new(lines: &[usize]) -> Self {
        let accounting = accounting(HeuristicEstimator::Bytes4);
        let users = (0..3_000).map(|n| {
            let words = "word ".repeat(10 + n * 7 % 40);
            match n % 2 {
                0 => Message::user(format!("{n} {words}")),
                _ => Message::assistant(format!("{n} {words}")),
            }
        });
        let entries = log(users.collect(), &accounting);
        let mut stretches = Vec::new();
        for (at, lines) in lines.iter().enumerate() {
            if at == 1 {
                stretches.push((5, Shown::Raw));
            }
            let ranked = at % 3 != 2;
            stretches.push((
                10,
                Shown::Lines {
                    lines: *lines,
                    ranked,
                },
            ));
        }
        let covered = stretches.iter().map(|(length, _)| length).sum();
        let mut summaries = input(&entries[..covered + 1], &stretches, &accounting).items;
        summaries.pop();
        Self {
            entries,
            summaries,
            covered,
            accounting,
        }
    }

    /// Returns the view when the log has `head` messages.
    fn view(&self, head: usize) -> AssemblyInput {
        let mut items = self.summaries.clone();
        items.push(Item::Raw(self.entries[self.covered..head].to_vec()));
        let cost = |item: &Item| match item {
            Item::Summary(summary) => summary.tokens,
            Item::Raw(entries) => entries.iter().map(|entry| entry.tokens).sum(),
            item => panic!("{item:?}"),
        };
        AssemblyInput {
            below: Vec::new(),
            view_tokens: items.iter().map(cost).sum(),
            requested: Vec::new(),
            state: None,
            remarks: Vec::new(),
            items,
        }
    }
}

/// Between steps, only the latest group changes, also with summaries. A context uses three quarters of its room after a
/// step, and nine tenths before a step, minus the group at the cut and a line of a summary.
#[test]
fn between_steps_only_the_latest_group_changes() {
    for (lines, budget) in [
        (&[120, 90, 60, 100, 80, 120][..], 4_000),
        (&[120, 90, 60, 100, 80, 120], 8_000),
        (&[120, 90, 60, 100, 80, 120], 12_000),
        (&[30, 20, 10], 6_000),
        (&[100, 100, 100, 100], 1_500),
    ] {
        let growing = Growing::new(lines);
        let policy = AssemblyPolicy::default();
        let mut before: Option<Context> = None;
        let mut steps = 0;
        for head in growing.covered + 1..growing.entries.len().min(growing.covered + 900) {
            let (view, budget) = (growing.view(head), Budget::tokens(budget));
            let context = assemble(
                &view,
                &Preamble::default(),
                budget,
                &policy,
                &growing.accounting,
            )
            .unwrap();
            assert_eq!(context.receipt.dropped, []);
            let Some(last) = before.replace(context.clone()) else {
                continue;
            };
            let line = crate::forms::longest_line(&view);
            let boundary = |context: &Context| {
                context
                    .receipt
                    .boundary
                    .as_ref()
                    .map_or(0, |boundary| boundary.tokens)
            };
            let room = budget.get();
            if context.receipt.stepped_tokens == last.receipt.stepped_tokens {
                let stays = last.messages.len() - 1;
                assert_eq!(
                    context.messages[..stays],
                    last.messages[..stays],
                    "at {head}"
                );
            } else {
                steps += 1;
                let used = last.tokens + line + boundary(&last);
                assert!(
                    used >= room * 9 / 10,
                    "{used} of {room} before a step at {head}"
                );
            }
            if context.receipt.stepped_tokens > 0 {
                let used = context.tokens + line + boundary(&context);
                assert!(
                    used >= room * 3 / 4,
                    "{used} of {room} at {head}: {:?}",
                    context.receipt
                );
            }
        }
        // A step removes a quarter of the room that the summaries leave (three sixteenths or an eighth of the whole
        // room), minus the reserve for digests.
        let tokens = growing.entries[growing.covered..].iter().take(900);
        let tokens: u64 = tokens.map(|entry| entry.tokens).sum();
        let left = if budget < 3_072 {
            budget / 8
        } else {
            budget * 3 / 16
        };
        let most = tokens / (left * 7 / 8 / 4) + 8;
        assert!(
            steps > 3 && steps <= most,
            "{steps} of {most} steps at {budget}"
        );
    }
}
