//! Runs of summaries of equal depth become fewer summaries.

use memory_model::{Accounting, Body, Child, Job, JobKind, SeqRange, Span, summary_overhead};

use crate::policy::DagPolicy;

/// The condensed summaries to make of these spans.
pub(crate) fn jobs(spans: &[Span], policy: &DagPolicy, accounting: &dyn Accounting) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut group: Vec<&Span> = Vec::new();
    let mut depth = 0;
    let mut tokens = 0_u64;
    for span in spans {
        let found = match &span.body {
            Body::Summary { depth, .. } if policy.max_depth.is_none_or(|most| *depth < most) => {
                Some(*depth)
            }
            _ => None,
        };
        let full = policy
            .condensed_max
            .is_some_and(|most| group.len() >= most.max(policy.fewest()))
            || (group.len() >= policy.fewest() && !policy.fits(tokens.saturating_add(span.tokens)));
        if found != Some(depth) || full {
            jobs.extend(enough(&group, depth, policy, accounting));
            group.clear();
            tokens = 0;
        }
        if let Some(found) = found {
            depth = found;
            tokens = tokens.saturating_add(span.tokens);
            group.push(span);
        }
    }
    jobs.extend(enough(&group, depth, policy, accounting));
    jobs
}

/// The job for a run of summaries, if it is as long as the policy asks.
fn enough(
    group: &[&Span],
    depth: u32,
    policy: &DagPolicy,
    accounting: &dyn Accounting,
) -> Option<Job> {
    let enough = group.len() >= policy.fewest();
    enough
        .then(|| job(group, depth, policy, accounting))
        .flatten()
}

/// One condensed summary of the newest neighbouring summaries of any depths: as few of them as save
/// `excess` tokens when the summary is half as long, or all of them; of the newest summary alone
/// where none has a neighbour. For a view that costs too much when condensing neighbours of equal depth
/// would not save enough.
pub(crate) fn squeeze(
    spans: &[Span],
    excess: u64,
    policy: &DagPolicy,
    accounting: &dyn Accounting,
) -> Option<Job> {
    let depth = |span: &Span| match &span.body {
        Body::Summary { depth, .. } if policy.max_depth.is_none_or(|most| *depth < most) => {
            Some(*depth)
        }
        _ => None,
    };
    let neighbours = |pair: &[Span]| pair.iter().all(|span| depth(span).is_some());
    let newest = match spans.windows(2).rposition(neighbours) {
        Some(left) => left.saturating_add(1),
        None => spans.iter().rposition(|span| depth(span).is_some())?,
    };
    let (mut group, mut tokens, mut deepest) = (Vec::new(), 0_u64, 0);
    for span in spans.get(..=newest)?.iter().rev() {
        let Some(depth) = depth(span) else { break };
        if group.len() >= 2 && tokens / 2 >= excess {
            break;
        }
        group.push(span);
        tokens = tokens.saturating_add(span.tokens);
        deepest = deepest.max(depth);
    }
    group.reverse();
    job(&group, deepest, policy, accounting)
}

fn job(
    group: &[&Span],
    depth: u32,
    policy: &DagPolicy,
    accounting: &dyn Accounting,
) -> Option<Job> {
    let first = group.first()?.range.first;
    let range = SeqRange::new(first, group.last()?.range.last?)?;
    let children: Vec<Child> = group
        .iter()
        .filter_map(|span| {
            Some(Child::Summary {
                range: span.closed_range()?,
                id: span.body.summary()?.clone(),
            })
        })
        .collect();
    let source_tokens = group
        .iter()
        .map(|span| span.tokens)
        .fold(0, u64::saturating_add);
    let equal = group
        .iter()
        .all(|span| matches!(&span.body, Body::Summary { depth: found, .. } if *found == depth));
    let depth = depth.saturating_add(1);
    let overhead = summary_overhead(accounting, range, depth, &children);
    policy.gains(source_tokens, overhead).then(|| Job {
        kind: JobKind::Condensed,
        range,
        expect: group.iter().map(|span| (*span).clone()).collect(),
        why: format!(
            "{} neighbouring summaries {} depth {} cost {source_tokens} tokens",
            group.len(),
            if equal { "of" } else { "up to" },
            depth - 1
        ),
        children,
        depth,
        source_tokens,
    })
}
