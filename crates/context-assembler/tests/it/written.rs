//! Summaries without ranks, as a model writes them: shown whole, or by the summary above them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, Context, Item, MessageOrigin, Preamble, assemble,
    render_summary,
};
use memory_model::{
    Accounting, Child, Hash, LogEntry, Message, Part, Recipe, Seq, SeqRange, Summary, SummaryId,
};
use proptest::prelude::*;

use crate::laws::{counted, in_steps, paired};
use crate::script::{PRESETS, accounting, log};

/// A written summary of a range, made from messages or from summaries.
fn summary(
    range: SeqRange,
    children: &[&Summary],
    text: String,
    accounting: &dyn Accounting,
) -> Summary {
    let of = |child: &&Summary| Child::Summary {
        range: child.range,
        id: child.id.clone(),
    };
    let depth = children.iter().map(|child| child.depth + 1).max();
    let children: Vec<Child> = match children {
        [] => vec![Child::Messages { range }],
        _ => children.iter().map(of).collect(),
    };
    let depth = depth.unwrap_or(0);
    let mut summary = Summary::new(
        range,
        depth,
        children,
        Hash::ZERO,
        Recipe::new("test@1"),
        text,
    );
    summary.id = SummaryId::new(format!("sum_{depth:08x}{:08x}", range.first.0));
    summary.tokens = accounting.summary(&summary);
    summary
}

/// Paragraphs of a summary. Each ends with a full stop, and each title has items.
fn text(name: &str, size: usize) -> String {
    let mut text = format!(
        "{name} was about the ferry timetable of the northern islands, and how the harbour reads it."
    );
    for n in 0..size {
        let _ = write!(
            text,
            "\n\n{name} part {n}: the ferry to island {n} leaves at {}:{:02}, which the reader of the table \
             takes for local time; the offset is stored beside it, and a test compares both.",
            n % 24,
            n * 7 % 60
        );
    }
    let _ = write!(
        text,
        "\n\nRules that hold:\n- {name} keeps the names of the columns.\n- No pier is renamed.\n\nDone:\n\
         - the table of {name} is read.\n\nNext: write the winter timetable of {name}."
    );
    text
}

/// A view with summaries of summaries: the tops, their descendants, and the messages after them.
#[derive(Debug, Clone)]
struct Tree {
    /// For each leaf: the number of messages, and the size of the text.
    leaves: Vec<(usize, usize)>,
    /// Numbers of summaries that each summary of the next level is made from.
    groups: Vec<usize>,
    levels: u32,
    /// Sizes of the messages after the summaries, in words.
    tail: Vec<usize>,
    /// Number of summarized messages that are quoted.
    quoted: usize,
}

fn tree() -> impl Strategy<Value = Tree> {
    (
        prop::collection::vec((1_usize..5, 0_usize..25), 1..12),
        prop::collection::vec(1_usize..5, 1..4),
        0_u32..4,
        prop::collection::vec(1_usize..300, 1..12),
        0_usize..20,
    )
        .prop_map(|(leaves, groups, levels, tail, quoted)| Tree {
            leaves,
            groups,
            levels,
            tail,
            quoted,
        })
}

impl Tree {
    fn input(&self, accounting: &dyn Accounting) -> AssemblyInput {
        let summarized: usize = self.leaves.iter().map(|(messages, _)| messages).sum();
        let of_leaves = (0..summarized)
            .map(|n| Message::user(format!("Message {n} about the timetable. ").repeat(1 + n % 9)));
        let tail = self
            .tail
            .iter()
            .map(|words| Message::user("word ".repeat(*words)));
        let entries = log(of_leaves.chain(tail).collect(), accounting);
        let (mut level, mut first) = (Vec::new(), 1_u32);
        for (n, (messages, size)) in self.leaves.iter().enumerate() {
            let last = first + *messages as u32 - 1;
            let range = SeqRange::new(Seq(first), Seq(last)).unwrap();
            level.push(summary(
                range,
                &[],
                text(&format!("Leaf {n}"), *size),
                accounting,
            ));
            first = last + 1;
        }
        let mut below: Vec<Summary> = Vec::new();
        for depth in 0..self.levels {
            let (mut next, mut rest) = (Vec::new(), level.as_slice());
            // The last summaries of a level are not merged yet.
            for size in &self.groups {
                let (merged, after) = rest.split_at((*size).min(rest.len()));
                let Some((begin, end)) = merged.first().zip(merged.last()) else {
                    continue;
                };
                let range = SeqRange::new(begin.range.first, end.range.last).unwrap();
                let children: Vec<&Summary> = merged.iter().collect();
                let name = format!("Merge {} {depth}", range.first);
                next.push(summary(
                    range,
                    &children,
                    text(&name, merged.len() * 3),
                    accounting,
                ));
                below.extend_from_slice(merged);
                rest = after;
            }
            next.extend_from_slice(rest);
            level = next;
        }
        let from = entries.partition_point(|entry| entry.seq < Seq(first));
        let (summarized, tail) = entries.split_at(from);
        let quoted = summarized.len() - self.quoted.min(summarized.len());
        let mut items = Vec::new();
        for summary in level {
            let of_summary: Vec<LogEntry> = summarized
                .iter()
                .skip(quoted)
                .filter(|entry| summary.range.contains(entry.seq))
                .cloned()
                .collect();
            items.push(Item::Summary(Box::new(summary)));
            if !of_summary.is_empty() {
                items.push(Item::Quoted(of_summary));
            }
        }
        items.push(Item::Raw(tail.to_vec()));
        AssemblyInput {
            view_tokens: entries.last().map_or(0, |entry| entry.running),
            items,
            below,
            ..AssemblyInput::default()
        }
    }
}

fn all(input: &AssemblyInput) -> BTreeMap<SummaryId, &Summary> {
    let tops = input.items.iter().filter_map(|item| match item {
        Item::Summary(summary) => Some(&**summary),
        _ => None,
    });
    let all = tops.chain(&input.below);
    all.map(|summary| (summary.id.clone(), summary)).collect()
}

/// Form in which a context shows a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Excerpt,
    LeftOut,
}

/// Returns the summaries of a context with their forms.
fn shown<'a>(
    context: &Context,
    all: &BTreeMap<SummaryId, &'a Summary>,
) -> Vec<(&'a Summary, Form)> {
    let mut shown = Vec::new();
    for message in &context.messages {
        let (MessageOrigin::Summary { summary_id, .. }, [Part::Text { text }]) =
            (&message.source, message.parts.as_slice())
        else {
            continue;
        };
        let summary = all[summary_id];
        let whole = &render_summary(summary)[0];
        let form = match text {
            _ if message.parts == whole.parts => Form::Whole,
            text if text.contains(" lines=\"0 of ") => Form::LeftOut,
            _ => Form::Excerpt,
        };
        if form == Form::Excerpt {
            is_of_whole_parts(text, summary);
        }
        shown.push((summary, form));
    }
    shown
}

/// Asserts that an excerpt has only whole lines, says how much is left out, and has no title without an item.
fn is_of_whole_parts(text: &str, summary: &Summary) {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let all = summary.text().split('\n').count();
    if text.contains(&format!("lines=\"{all} of {all}\"")) {
        let said = summary.text().lines().filter(|line| !line.is_empty());
        assert!(said.eq(lines[1..lines.len() - 1].iter().copied()), "{text}");
        return;
    }
    let [_, said @ .., remark, end] = lines.as_slice() else {
        panic!("{text}");
    };
    assert!(
        remark.starts_with("[… ") && remark.contains(&format!("expand {}", summary.id)),
        "{text}"
    );
    assert_eq!(*end, "</summary>");
    let source: Vec<&str> = summary.text().split('\n').collect();
    for (at, line) in said.iter().enumerate() {
        assert!(source.contains(line), "{line:?} of {text}");
        if line.ends_with(':') {
            let next = said.get(at + 1);
            assert!(next.is_some_and(|next| next.starts_with("- ")), "{text}");
        }
    }
}

/// Depth at which each message is shown: 0 if it is shown itself, 1 more than the depth of the summary that is shown
/// whole, or the maximum.
fn depths(context: &Context, input: &AssemblyInput) -> BTreeMap<Seq, u32> {
    let all = all(input);
    let mut depths = BTreeMap::new();
    for (summary, form) in shown(context, &all) {
        let depth = match form {
            Form::Whole => summary.depth + 1,
            Form::Excerpt | Form::LeftOut => u32::MAX,
        };
        depths.extend((summary.range.first.0..=summary.range.last.0).map(|seq| (Seq(seq), depth)));
    }
    let Some(Item::Raw(tail)) = input.items.last() else {
        return depths;
    };
    let whole: Vec<Seq> = context
        .messages
        .iter()
        .filter_map(|message| match message.source {
            MessageOrigin::Message { first, .. } => Some(first),
            _ => None,
        })
        .collect();
    for entry in tail {
        let depth = if whole.contains(&entry.seq) {
            0
        } else {
            u32::MAX
        };
        depths.insert(entry.seq, depth);
    }
    depths
}

fn once(input: &AssemblyInput, budget: u64, accounting: &dyn Accounting) -> Option<Context> {
    let policy = AssemblyPolicy::once();
    let budget = Budget::tokens(budget);
    assemble(input, &Preamble::default(), budget, &policy, accounting).ok()
}

/// Asserts the laws of one context.
fn law(context: &Context, input: &AssemblyInput, accounting: &dyn Accounting) {
    counted(context, accounting);
    paired(context);
    assert!(context.tokens + context.receipt.request_tokens <= context.receipt.limit);
    let all = all(input);
    let is_top = |summary: &Summary| {
        let mut items = input.items.iter();
        items.any(|item| matches!(item, Item::Summary(top) if top.id == summary.id))
    };
    let forms = shown(context, &all);
    for (summary, form) in &forms {
        assert!(
            *form == Form::Whole || is_top(summary),
            "{} at {}",
            summary.id,
            context.budget
        );
    }
    let excerpts = forms
        .iter()
        .filter(|(_, form)| *form == Form::Excerpt)
        .count();
    let is_any_whole = forms.iter().any(|(_, form)| *form == Form::Whole);
    assert!(
        excerpts == 0 || (excerpts == 1 && !is_any_whole),
        "{:?}",
        context.receipt
    );
}

fn budgets() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(60_u64), |budget| Some(budget + budget / 8 + 3))
        .take_while(|budget| *budget < 20_000)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// Over random trees: summaries are whole or not there, the context is within its budget, and a larger budget shows
    /// each range whole, or by a summary at most as deep.
    #[test]
    fn a_larger_budget_shows_no_deeper_summary(tree in tree()) {
        larger_budgets(&tree);
    }

    /// In a context of a live session the view's own summaries are shown, each whole or not at all.
    #[test]
    fn a_live_context_shows_whole_summaries(tree in tree()) {
        live(&tree);
    }
}

fn larger_budgets(tree: &Tree) {
    let accounting = accounting(PRESETS[0]);
    let input = tree.input(&accounting);
    let mut before: Option<(u64, BTreeMap<Seq, u32>)> = None;
    for budget in budgets() {
        let Some(context) = once(&input, budget, &accounting) else {
            continue;
        };
        law(&context, &input, &accounting);
        let depths = depths(&context, &input);
        if let Some((smaller, before)) = &before {
            for (seq, depth) in before {
                let now = depths.get(seq).copied().unwrap_or(u32::MAX);
                let receipt = &context.receipt;
                assert!(
                    now <= *depth,
                    "{seq}: {depth} at {smaller}, {now} at {budget}: {receipt:#?}"
                );
            }
        }
        before = Some((budget, depths));
    }
}

fn live(tree: &Tree) {
    let accounting = accounting(PRESETS[1]);
    let input = tree.input(&accounting);
    for steps in [4, u64::MAX] {
        let policy = in_steps(steps);
        for budget in budgets() {
            let within = Budget::tokens(budget);
            let context = assemble(&input, &Preamble::default(), within, &policy, &accounting);
            if let Ok(context) = context {
                law(&context, &input, &accounting);
            }
        }
    }
}

/// Digests in place of messages that fit cost more than there was room for, a leaf that fitted was cut to make room for
/// one, and the whole text of a summary fitted where its whole form did not.
#[test]
fn trees_that_were_found() {
    for (leaves, groups, levels, tail, quoted) in [
        (vec![(4, 0)], vec![1], 1, vec![1, 92, 198, 67], 4),
        (vec![(1, 4)], vec![1], 1, vec![1, 10], 1),
        (vec![(1, 0); 10], vec![4], 3, vec![1, 220], 8),
    ] {
        let tree = Tree {
            leaves,
            groups,
            levels,
            tail,
            quoted,
        };
        larger_budgets(&tree);
        live(&tree);
    }
}

/// Six leaves of about a thousand tokens under one summary, two leaves after it, and messages.
fn ferries() -> Tree {
    Tree {
        leaves: vec![(3, 16); 8],
        groups: vec![6],
        levels: 1,
        tail: (0..24).map(|n| 40 + n * 37 % 300).collect(),
        quoted: 24,
    }
}

fn text_of(part: &Part) -> String {
    match part {
        Part::Text { text } => text.clone(),
        part => panic!("{part:?}"),
    }
}

/// Returns the messages of a context, each by its place, its cost and the ends of its text.
fn outline(context: &Context, input: &AssemblyInput) -> String {
    let mut text = format!("== {} of {} tokens\n", context.tokens, context.budget);
    let forms = shown(context, &all(input));
    let mut forms = forms.iter();
    for message in &context.messages {
        let said: String = message.parts.iter().map(text_of).collect();
        let (place, form) = match &message.source {
            MessageOrigin::Summary { first, last, .. } => {
                let (summary, form) = forms.next().unwrap();
                (
                    format!("{first}-{last} depth {}", summary.depth),
                    format!(" {form:?}"),
                )
            }
            MessageOrigin::Quoted { first, .. } => (format!("{first} quoted"), String::new()),
            source => (format!("{}", source.range().unwrap()), String::new()),
        };
        let is_cut = form.ends_with("Excerpt") || form.ends_with("LeftOut");
        let said = match said.chars().count() {
            chars if chars > 80 && !is_cut => {
                let begin: String = said.chars().take(40).collect();
                let end: String = said.chars().skip(chars - 30).collect();
                format!("{begin} … {end}")
            }
            _ => said,
        };
        let said = said.replace('\n', "\n    ");
        let _ = writeln!(text, "[{place}]{form}, {} tokens: {said}", message.tokens);
    }
    text
}

#[test]
fn whole_summaries_at_five_budgets() {
    let accounting = accounting(PRESETS[0]);
    let input = ferries().input(&accounting);
    let mut text = String::new();
    for budget in [600, 2_000, 4_000, 8_000, 16_000, 32_000] {
        let context = once(&input, budget, &accounting).unwrap();
        law(&context, &input, &accounting);
        text += &outline(&context, &input);
    }
    insta::assert_snapshot!(text);
}

/// Two thousand tokens hold a summary of half as many, whatever stands behind it.
#[test]
fn the_topmost_summary_is_whole_where_it_fits() {
    let accounting = accounting(PRESETS[0]);
    for size in 0..26 {
        let tree = Tree {
            leaves: vec![(3, size)],
            groups: vec![1],
            levels: 0,
            tail: vec![300, 100, 200, 40],
            quoted: 2,
        };
        let input = tree.input(&accounting);
        let context = once(&input, 2_000, &accounting).unwrap();
        let all = all(&input);
        let [(top, form)] = shown(&context, &all)[..] else {
            panic!("{:?}", context.receipt);
        };
        assert_eq!(
            form == Form::Whole,
            top.tokens <= 1_780,
            "{size}: {} {form:?}",
            top.tokens
        );
    }
}

/// What a merge says is not taken apart: its children are shown if all of them fit, also where another would fit alone.
#[test]
fn children_are_shown_together() {
    let accounting = accounting(PRESETS[0]);
    let input = ferries().input(&accounting);
    let all = all(&input);
    for budget in (1_000..40_000).step_by(250) {
        let context = once(&input, budget, &accounting).unwrap();
        let leaves = shown(&context, &all);
        let merged = leaves
            .iter()
            .filter(|(summary, _)| summary.depth == 1)
            .count();
        let count = if merged == 1 { 3 } else { 8 };
        assert_eq!(leaves.len(), count, "{budget}");
    }
}
