//! Short forms of summaries and digests: a context covers the whole view at every budget.

use std::collections::BTreeMap;

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, DegradationStep, Item, MessageOrigin, Preamble,
    assemble, is_ranked,
};
use memory_model::{Accounting, EntryKind, LogEntry, Part, Role, Seq, SeqRange, Summary};
use proptest::prelude::*;
use turn_map::atoms;

use crate::laws::{counted, in_steps, paired};
use crate::script::{Event, PRESETS, Shown, accounting, event, input, log, messages};

/// Returns the lines of a summary, each with the number of the shortest form that contains it.
fn lines(summary: &Summary, accounting: &dyn Accounting) -> Vec<(String, usize)> {
    let lines: Vec<&str> = summary.text().split('\n').collect();
    if !is_ranked(summary) {
        return lines.into_iter().map(|line| (line.to_owned(), 1)).collect();
    }
    let mut ranks: Vec<u8> = summary.body.ranks().unwrap_or_default().to_vec();
    let of_lines = ranks.clone();
    ranks.sort_unstable();
    ranks.dedup();
    let mut cost = 0;
    let mut form = 0;
    let numbered = lines.into_iter().enumerate().map(|(at, line)| {
        let number = match of_lines.get(at) {
            Some(rank) => ranks.iter().filter(|higher| *higher > rank).count(),
            None => {
                cost += accounting.text(&xml(line)) + 1;
                form += usize::from(at > 0 && cost > 60);
                form
            }
        };
        (line.to_owned(), number)
    });
    numbered.collect()
}

fn xml(text: &str) -> String {
    text.replace("<user>", "&lt;user>").replace("[… ", "[... ")
}

/// Returns the largest cost between two successive forms of any summary, and of any headline, in tokens.
pub(crate) fn longest_line(input: &AssemblyInput) -> u64 {
    let bytes = input.items.iter().map(|item| match item {
        Item::Summary(summary) => {
            // The largest line, and the difference between a short form and the whole summary.
            let accounting = accounting(PRESETS[0]);
            let mut forms: BTreeMap<usize, usize> = BTreeMap::new();
            for (line, form) in lines(summary, &accounting) {
                *forms.entry(form).or_default() += xml(&line).len() + 1;
            }
            forms.values().copied().max().unwrap_or(0) + 300
        }
        _ => 0,
    });
    // No estimator of the tests counts more than one token for three bytes.
    bytes.max().unwrap_or(0) as u64 / 3
}

/// Returns the cost of a text in a user's message.
fn message_cost(text: String, accounting: &dyn Accounting) -> u64 {
    accounting.parts(Role::User, &[Part::text(text)])
}

fn headline_cost(summary: &Summary, accounting: &dyn Accounting) -> u64 {
    let all = lines(summary, accounting);
    let headline: Vec<String> = all
        .iter()
        .filter(|(_, form)| *form == 0)
        .map(|(line, _)| xml(line))
        .collect();
    let (id, range, of_lines) = (&summary.id, summary.range, all.len());
    let (lines, said) = match is_ranked(summary) {
        true => (headline.len(), headline.join("\n")),
        false => (
            0,
            format!("[… {} tokens left out; expand {id} …]", summary.tokens),
        ),
    };
    let text = format!(
        "<summary id=\"{id}\" messages=\"{range}\" lines=\"{lines} of {of_lines}\">\n{said}\n</summary>"
    );
    message_cost(text, accounting).min(summary.tokens)
}

/// Messages between summaries: the entries, the number of omitted or unread messages, and whether a summary follows.
type Run = (Vec<LogEntry>, u64, bool);

/// Returns the runs of a view. An omission adds no entries, and its number of messages exceeds the cost of a pointer.
fn runs(input: &AssemblyInput) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open = false;
    for item in &input.items {
        match item {
            Item::Summary(_) => {
                if let Some(run) = runs.last_mut().filter(|_| open) {
                    run.2 = true;
                }
                open = false;
            }
            Item::Raw(entries) | Item::Quoted(entries) | Item::Trimmed(_, entries, _) => {
                if !open {
                    runs.push((Vec::new(), 0, false));
                }
                open = true;
                runs.last_mut().unwrap().0.extend(entries.iter().cloned());
            }
            Item::Omitted(range) | Item::Unread(range, _) => {
                if !open {
                    runs.push((Vec::new(), 0, false));
                }
                open = true;
                runs.last_mut().unwrap().1 += range.len();
            }
        }
    }
    runs
}

/// Returns the maximum cost of headlines and pointers, in tokens.
fn least(input: &AssemblyInput, accounting: &dyn Accounting) -> u64 {
    let headlines = input.items.iter().map(|item| match item {
        Item::Summary(summary) => headline_cost(summary, accounting),
        _ => 0,
    });
    let pointer = message_cost(
        "[… 1000 messages left out; expand messages:1000-1000 …]".into(),
        accounting,
    );
    headlines.sum::<u64>() + pointer * runs(input).len() as u64
}

/// Returns the cost of the latest group when rendered whole, in tokens. 0 if the view ends with a summary.
fn newest_group(input: &AssemblyInput, accounting: &dyn Accounting) -> u64 {
    if !matches!(input.items.last(), Some(Item::Raw(_) | Item::Trimmed(..))) {
        return 0;
    }
    let policy = AssemblyPolicy::default();
    let whole = assemble(
        input,
        &Preamble::default(),
        Budget::tokens(10_000_000),
        &policy,
        accounting,
    )
    .unwrap();
    let Some(Item::Raw(entries) | Item::Quoted(entries) | Item::Trimmed(_, entries, _)) =
        input.items.last()
    else {
        return 0;
    };
    let all = atoms(entries);
    let shows = |at: usize| entries[at].kind == EntryKind::Message;
    let Some(atom) = all.iter().rev().find(|atom| atom.range().any(shows)) else {
        return u64::MAX;
    };
    let first = entries[atom.range().start].seq;
    let of_group = whole.messages.iter().filter(|message| {
        message
            .source
            .range()
            .is_some_and(|range| range.first >= first)
    });
    of_group.map(|message| message.tokens).sum()
}

/// Returns the positions of the view's messages that no message of the context covers.
fn uncovered(context: &Context, input: &AssemblyInput) -> Vec<Seq> {
    let covered = |seq: Seq| {
        let ranges = context
            .messages
            .iter()
            .filter_map(|message| message.source.range());
        ranges.into_iter().any(|range| range.contains(seq))
    };
    let mut missing = Vec::new();
    for item in &input.items {
        let seqs: Vec<Seq> = match item {
            Item::Raw(entries) | Item::Quoted(entries) | Item::Trimmed(_, entries, _) => {
                let messages = entries
                    .iter()
                    .filter(|entry| entry.kind == EntryKind::Message);
                messages.map(|entry| entry.seq).collect()
            }
            Item::Summary(summary) => vec![summary.range.first, summary.range.last],
            Item::Omitted(range) | Item::Unread(range, _) => vec![range.first, range.last],
        };
        missing.extend(seqs.into_iter().filter(|seq| !covered(*seq)));
    }
    missing
}

/// The content of a context: lines of summaries, whole messages, and beginnings of messages in digests.
struct Said {
    lines: Vec<String>,
    whole: Vec<SeqRange>,
    /// Beginnings and ends, by position and author.
    beginnings: BTreeMap<String, (String, String)>,
    /// Ranges of digests.
    digests: Vec<SeqRange>,
}

fn said(context: &Context) -> Said {
    let mut said = Said {
        lines: Vec::new(),
        whole: Vec::new(),
        beginnings: BTreeMap::new(),
        digests: Vec::new(),
    };
    for message in &context.messages {
        let [Part::Text { text }] = message.parts.as_slice() else {
            if let MessageOrigin::Message { first, last } = message.source {
                said.whole.extend(SeqRange::new(first, last));
            }
            continue;
        };
        match message.source {
            // A summary with a headline that does not fit is shortened like a group.
            MessageOrigin::Summary { first, .. }
                if context.receipt.degraded.iter().any(|d| d.first == first) => {}
            // The current parts of a summary without ranks.
            MessageOrigin::Summary { .. } if text.contains(" tokens left out; expand sum_") => {}
            MessageOrigin::Summary { .. } => {
                let line = |line: &&str| line.starts_with('S');
                said.lines
                    .extend(text.lines().filter(line).map(str::to_owned));
            }
            MessageOrigin::Message { first, last } => said.whole.extend(SeqRange::new(first, last)),
            MessageOrigin::Trimmed { first, .. } => {
                let digest = |d: &&context_assembler::Degradation| {
                    d.first == first && d.step == DegradationStep::Digest
                };
                if context.receipt.degraded.iter().any(|d| digest(&d)) {
                    said.digests.extend(message.source.range());
                    for line in text.lines().skip(1) {
                        let (author, rest) = line.split_once(':').unwrap_or((line, ""));
                        let rest = rest.trim();
                        // In a remark, a space or a bracket is before the ellipsis.
                        let is_cut = |(at, _): &(usize, &str)| {
                            let before = rest[..*at].chars().next_back();
                            before.is_some_and(|c| c != '[' && !c.is_whitespace())
                        };
                        let cut = rest.match_indices('…').find(is_cut);
                        let ends = match cut {
                            Some((at, mark)) => (&rest[..at], &rest[at + mark.len()..]),
                            None => (rest, rest),
                        };
                        let ends = (ends.0.to_owned(), ends.1.to_owned());
                        said.beginnings.insert(author.to_owned(), ends);
                    }
                }
            }
            _ => {}
        }
    }
    said
}

/// Asserts that the context with the larger budget contains everything of the smaller one. In a view with summaries
/// without ranks (`written`), digests fill the room that these leave, so the beginnings in digests are not compared.
fn says_no_less(small: &Context, large: &Context, written: bool) {
    let (before, after) = (said(small), said(large));
    for line in &before.lines {
        assert!(
            after.lines.contains(line),
            "{line:?} is missing at {}",
            large.budget
        );
    }
    for range in &before.whole {
        assert!(
            after.whole.contains(range),
            "{range} is whole at {} and not at {}: {:#?} {:#?}",
            small.budget,
            large.budget,
            small.receipt,
            large.receipt
        );
    }
    if written {
        return;
    }
    for (author, (beginning, end)) in &before.beginnings {
        let seq = Seq(author.split(' ').next().unwrap().parse().unwrap());
        let in_digest = after.digests.iter().any(|range| range.contains(seq));
        assert_eq!(
            in_digest,
            after.beginnings.contains_key(author),
            "{author}: {:?} {:?} {:?}",
            before.beginnings.keys(),
            after.beginnings.keys(),
            after.digests
        );
        if let Some((longer, longer_end)) = after.beginnings.get(author) {
            let clipped = |text: &str| text.chars().take(150).collect::<String>();
            assert!(
                longer.starts_with(beginning.as_str()),
                "{author}: {:?} {:?}",
                clipped(longer),
                clipped(beginning)
            );
            assert!(
                longer_end.ends_with(end),
                "{author}: {longer_end:?} {end:?}"
            );
        }
    }
}

fn view() -> impl Strategy<Value = (Vec<Event>, Vec<(usize, Shown)>)> {
    let summary = (1_usize..120, any::<bool>());
    let stretch = (0_usize..3, 1_usize..6, summary);
    let stretches = prop::collection::vec(stretch, 0..6).prop_map(|stretches| {
        let stretches = stretches
            .into_iter()
            .flat_map(|(gap, length, (lines, ranked))| {
                [(gap, Shown::Raw), (length, Shown::Lines { lines, ranked })]
            });
        stretches.filter(|(length, _)| *length > 0).collect()
    });
    (prop::collection::vec(event(), 0..60), stretches)
}

/// Returns budgets from almost 0 to more than the view.
fn budgets(view_tokens: u64) -> Vec<u64> {
    let mut budgets = Vec::new();
    let mut budget = 60;
    while budget < view_tokens * 5 / 4 + 100 {
        budgets.push(budget);
        budget += budget / 4 + 7;
    }
    budgets
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    /// If headlines and pointers fit together with the latest group, every message is covered.
    #[test]
    fn every_message_is_covered((events, stretches) in view()) {
        for preset in PRESETS {
            let accounting = accounting(preset);
            let entries = log(messages(&events), &accounting);
            let input = input(&entries, &stretches, &accounting);
            let (least, newest) = (least(&input, &accounting), newest_group(&input, &accounting));
            for budget in budgets(input.view_tokens) {
                let policy = AssemblyPolicy::default();
                let Ok(context) = assemble(&input, &Preamble::default(), Budget::tokens(budget), &policy, &accounting) else {
                    continue;
                };
                counted(&context, &accounting);
                paired(&context);
                let room = context.receipt.limit.saturating_sub(context.receipt.request_tokens);
                prop_assert!(context.tokens <= room || context.messages.is_empty());
                // The minimum cost of the group is below 60 tokens.
                let fits = newest.saturating_add(least) <= room || (least <= room / 2 && least + 60 <= room);
                if fits {
                    let missing = uncovered(&context, &input);
                    prop_assert!(missing.is_empty(), "{missing:?} at {budget}: {:#?}", context.receipt);
                    prop_assert!(context.receipt.dropped.is_empty());
                }
            }
        }
    }

    /// With steps of one token, a larger budget removes no content.
    #[test]
    fn a_larger_budget_says_no_less((events, stretches) in view()) {
        for preset in PRESETS {
            let accounting = accounting(preset);
            let entries = log(messages(&events), &accounting);
            let input = input(&entries, &stretches, &accounting);
            let policy = in_steps(u64::MAX);
            let written = input.items.iter().any(|item| matches!(item, Item::Summary(summary) if !is_ranked(summary)));
            let mut before: Option<Context> = None;
            for budget in budgets(input.view_tokens) {
                let Ok(context) = assemble(&input, &Preamble::default(), Budget::tokens(budget), &policy, &accounting) else {
                    continue;
                };
                if let Some(before) = &before {
                    says_no_less(before, &context, written);
                }
                before = Some(context);
            }
        }
    }
}

/// A large group and the latest one do not grow so much that a small group between them has no room any more.
#[test]
fn large_groups_leave_the_room_of_small_ones() {
    let accounting = accounting(PRESETS[0]);
    let words = [500, 500, 40, 8_000, 40, 5_000];
    let users = words.map(|words| memory_model::Message::user("word ".repeat(words)));
    let entries = log(users.to_vec(), &accounting);
    let input = input(&entries, &[], &accounting);
    let policy = in_steps(u64::MAX);
    let contexts = (0..60).map(|step| {
        let budget = Budget::tokens(3_000 + 60 * step);
        assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap()
    });
    let contexts: Vec<Context> = contexts.collect();
    for pair in contexts.windows(2) {
        says_no_less(&pair[0], &pair[1], false);
    }
}

/// Returns a view of the log: summaries of ranked lines over ten messages each, and the rest raw.
fn summarized(lines: &[usize], messages: usize, accounting: &dyn Accounting) -> AssemblyInput {
    let users =
        (0..messages).map(|n| memory_model::Message::user(format!("message {n} ").repeat(20)));
    let entries = log(users.collect(), accounting);
    let lines = lines.iter().map(|lines| {
        let (lines, ranked) = (*lines, true);
        (10, Shown::Lines { lines, ranked })
    });
    input(&entries, &lines.collect::<Vec<_>>(), accounting)
}

fn at(input: &AssemblyInput, budget: u64, accounting: &dyn Accounting) -> Context {
    let policy = AssemblyPolicy::default();
    assemble(
        input,
        &Preamble::default(),
        Budget::tokens(budget),
        &policy,
        accounting,
    )
    .unwrap()
}

/// A large view in a small context: later summaries keep more of their lines.
#[test]
fn a_large_compacted_view_is_covered_in_a_small_context() {
    let accounting = accounting(PRESETS[0]);
    let input = summarized(&[625; 6], 80, &accounting);
    assert!(input.view_tokens > 40_000, "{}", input.view_tokens);
    for budget in [1_500, 2_000, 4_000, 8_000, 16_000, 32_000] {
        let context = at(&input, budget, &accounting);
        assert_eq!(uncovered(&context, &input), [], "at {budget}");
        assert_eq!(context.receipt.dropped, []);
        let shown: Vec<usize> = context
            .receipt
            .shortened
            .iter()
            .map(|form| form.lines)
            .collect();
        assert!(
            shown.is_sorted() && shown.first() < shown.last(),
            "{shown:?} at {budget}"
        );
        assert!(
            context.tokens >= budget * 3 / 4,
            "{} at {budget}",
            context.tokens
        );
    }
    let receipt = at(&input, 8_000, &accounting).receipt;
    let summaries: u64 = receipt.shortened.iter().map(|form| form.to_tokens).sum();
    // Whole steps would leave less. The share of the summaries is 6,000 tokens, minus the lines of a rank.
    assert!((5_800..=6_000).contains(&summaries), "{summaries}");
}

/// A summary of many messages keeps more of its lines than a summary of few messages with the same length.
#[test]
fn the_summary_of_many_messages_gets_more_room() {
    let accounting = accounting(PRESETS[0]);
    let users = (0..420).map(|n| memory_model::Message::user(format!("message {n} ").repeat(20)));
    let entries = log(users.collect(), &accounting);
    let lines = || Shown::Lines {
        lines: 200,
        ranked: true,
    };
    let input = input(&entries, &[(400, lines()), (10, lines())], &accounting);
    let shown = at(&input, 2_000, &accounting).receipt.shortened;
    assert!(shown[0].lines > 2 * shown[1].lines, "{shown:?}");
}

/// If the latest group is large, summaries get at least fifteen sixteenths of the remaining room.
#[test]
fn a_large_latest_group_leaves_little_unused() {
    let accounting = accounting(PRESETS[0]);
    for words in [400, 700, 1_000] {
        let mut messages: Vec<memory_model::Message> = (0..20)
            .map(|n| memory_model::Message::user(format!("message {n} ").repeat(20)))
            .collect();
        messages.push(memory_model::Message::user("word ".repeat(words)));
        let entries = log(messages, &accounting);
        let lines = Shown::Lines {
            lines: 400,
            ranked: true,
        };
        let input = input(&entries, &[(15, lines)], &accounting);
        let context = at(&input, 2_000, &accounting);
        assert!(context.tokens >= 2_000 * 7 / 8, "{}", context.tokens);
    }
}

#[test]
fn a_short_form_names_its_range_and_its_lines() {
    let accounting = accounting(PRESETS[0]);
    let input = summarized(&[40, 40], 30, &accounting);
    let context = at(&input, 1_000, &accounting);
    let form = &context.receipt.shortened[0];
    let [Part::Text { text }] = context.messages[0].parts.as_slice() else {
        panic!("{:?}", context.messages[0]);
    };
    let (id, lines) = (&form.summary_id, form.lines);
    let begins = format!("<summary id=\"{id}\" messages=\"1-10\" lines=\"{lines} of 40\">\n");
    assert!(
        text.starts_with(&begins) && text.ends_with("\n</summary>"),
        "{text}"
    );
    assert_eq!(text.lines().count(), lines + 2);
    assert!(text.contains("\nS1L3: "), "{text}");
    let source = &context.messages[0].source;
    assert!(matches!(
        source,
        MessageOrigin::Summary { last: Seq(10), .. }
    ));
    assert_eq!(context.messages[0].tokens, form.to_tokens);
}

/// Unread spans are left out under any policy, and no digest replaces messages that were not all read.
#[test]
fn unread_spans_are_left_out() {
    let accounting = accounting(PRESETS[0]);
    let mut input = summarized(&[20], 60, &accounting);
    let Some(Item::Raw(entries)) = input.items.pop() else {
        panic!("{input:?}");
    };
    let (unread, read) = entries.split_at(20);
    let range = SeqRange::new(unread[0].seq, unread[19].seq).unwrap();
    let tokens = unread.iter().map(|entry| entry.tokens).sum();
    input
        .items
        .extend([Item::Unread(range, tokens), Item::Raw(read.to_vec())]);
    for whole_tail in [None, Some(3)] {
        let policy = AssemblyPolicy {
            whole_tail,
            ..AssemblyPolicy::default()
        };
        for budget in [600, 1_500, 100_000] {
            let budget = Budget::tokens(budget);
            let context = assemble(&input, &Preamble::default(), budget, &policy, &accounting);
            let receipt = context.unwrap().receipt;
            let is_dropped =
                |d: &context_assembler::Dropped| d.first <= range.first && range.last <= d.last;
            assert!(
                receipt.dropped.iter().any(is_dropped),
                "{whole_tail:?} {receipt:?}"
            );
            assert_eq!(receipt.degraded, []);
        }
    }
}

/// A summary that contains messages is shown whole or left out.
#[test]
fn a_summary_with_messages_has_one_form() {
    let accounting = accounting(PRESETS[0]);
    let mut input = summarized(&[100, 100], 30, &accounting);
    let Some(Item::Summary(first)) = input.items.first_mut() else {
        panic!("{input:?}");
    };
    let own = r#"[{"role":"assistant","parts":[{"type":"text","text":"TEXT"}]}]"#;
    let own = own.replace("TEXT", &"a thought ".repeat(60));
    first.messages = Some(memory_model::RawJson::parse(own).unwrap());
    first.tokens = accounting.summary(first);
    for budget in [700, 1_000, 3_000] {
        let context = at(&input, budget, &accounting);
        assert_eq!(context.messages[0].role, Role::Assistant, "at {budget}");
        let of_first = |form: &context_assembler::ShortenedSummary| form.first == Seq(1);
        assert!(!context.receipt.shortened.iter().any(of_first));
    }
}
