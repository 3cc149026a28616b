//! Computes which summaries a redo must rewrite. Does not access the store.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{SeqRange, Span, SpanBody, Summary, SummaryId, ViewName, ViewVersion};
use serde::Serialize;

use crate::rejected::is_urgent;
use crate::watch::Rejected;

/// Plan of a redo: the summaries that would be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoPlan {
    /// Name of the view (the compacted log) that contains the summaries.
    pub view: ViewName,
    /// Version of the view (the compacted log) for which the plan was made.
    pub version: ViewVersion,
    /// Summaries to rewrite. The summaries of each span of the view (the compacted log) are together, and each summary
    /// comes after the summaries that are its sources.
    pub nodes: Vec<RedoCandidate>,
}

impl RedoPlan {
    /// Returns the number of summaries to rewrite that were written without a model.
    pub fn provisional(&self) -> u64 {
        self.nodes.iter().filter(|node| node.provisional).count() as u64
    }
}

/// A summary that a redo would rewrite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoCandidate {
    /// Id of the old summary.
    pub id: SummaryId,
    /// Range of messages that the summary covers.
    pub range: SeqRange,
    /// Depth of the summary: 0 for a summary of messages, more for a summary of summaries.
    pub depth: u32,
    /// Whether the redo selects this summary because it was written without a model. If neither this nor `rejected` is
    /// true, it is rewritten only because one of its sources is rewritten.
    pub provisional: bool,
    /// Whether the redo selects this summary because it was rejected: see [`RedoPolicy::again`](crate::RedoPolicy::again).
    pub rejected: bool,
    /// Failure of the model because of which the summary was written without it. `None` if none is recorded.
    pub failure: Option<String>,
}

/// The summaries that a redo selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) rule: Rule,
    /// Rejected summaries, which are rewritten by every rule.
    pub(super) rejected: Rejected,
}

/// Rule that selects the summaries to rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    /// Summaries that were written without a model.
    WithoutModel,
    /// Only rejected summaries.
    Rejected,
    /// Extracts with another recipe than the one of this summarizer, such as `extractive@9`.
    ExtractsBefore(String),
}

impl Wanted {
    /// Returns whether this summary is to be rewritten for its own sake.
    pub(super) fn begins(&self, summary: &Summary) -> bool {
        let by = summary.recipe.as_str().strip_prefix("summarizer=");
        let by = by.and_then(|rest| rest.split(' ').next());
        self.rejects(summary)
            || match &self.rule {
                Rule::WithoutModel => summary.provisional,
                Rule::Rejected => false,
                Rule::ExtractsBefore(now) => {
                    let is_older = |by: &str| by.starts_with("extractive@") && by != now;
                    summary.provisional && by.is_some_and(is_older)
                }
            }
    }

    /// Returns whether a summary was rejected.
    pub(super) fn rejects(&self, summary: &Summary) -> bool {
        self.rejected.contains(&summary.id)
    }

    /// Returns whether a summary is to be rewritten before the others.
    fn comes_first(&self, summary: &Summary) -> bool {
        self.begins(summary) && is_urgent(summary, &self.rejected)
    }

    /// Returns whether a summary may be rewritten because one of its sources is rewritten.
    fn may_follow(&self, summary: &Summary) -> bool {
        match self.rule {
            Rule::WithoutModel | Rule::Rejected => true,
            Rule::ExtractsBefore(_) => summary.provisional,
        }
    }

    /// Returns the number of summaries that the rule selects.
    pub(super) fn count(&self, nodes: &Nodes) -> u64 {
        nodes.values().filter(|node| self.begins(node)).count() as u64
    }
}

/// All summaries of a view and below it, by id.
pub(super) type Nodes = BTreeMap<SummaryId, Summary>;

/// A span of the view with summaries to rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) span: Span,
    /// Summaries to rewrite, each after its sources. The last one is the summary of the span.
    pub(super) stale: Vec<SummaryId>,
}

/// Returns the spans with summaries to rewrite: first those with a rejected summary or one that a model may write now,
/// then the others, each in order. The summaries in `given_up` are not rewritten, nor are the
/// summaries below them, because a summary below can only be replaced together with the summaries made from it.
pub(super) fn trees(
    spans: &[Span],
    nodes: &Nodes,
    given_up: &BTreeSet<SummaryId>,
    wanted: &Wanted,
) -> Vec<Tree> {
    let mut trees = Vec::new();
    for span in spans {
        let SpanBody::Summary { id, .. } = &span.body else {
            continue;
        };
        let stale = stale(id, nodes, given_up, wanted);
        if !stale.is_empty() {
            let span = span.clone();
            trees.push(Tree { span, stale });
        }
    }
    let comes_first = |id: &SummaryId| nodes.get(id).is_some_and(|node| wanted.comes_first(node));
    trees.sort_by_cached_key(|tree| !tree.stale.iter().any(comes_first));
    trees
}

fn stale(
    root: &SummaryId,
    nodes: &Nodes,
    given_up: &BTreeSet<SummaryId>,
    wanted: &Wanted,
) -> Vec<SummaryId> {
    let mut found = sources_first(root, nodes);
    // Sorted by depth and position as far as sources allow: the source of a summary may have the same depth.
    let mut levels: BTreeMap<&SummaryId, usize> = BTreeMap::new();
    for summary in &found {
        let below = summary.source_summaries();
        let level = below.filter_map(|id| levels.get(id)).max();
        levels.insert(&summary.id, level.map_or(0, |level| level + 1));
    }
    found.sort_by_cached_key(|summary| {
        let level = levels.get(&summary.id);
        (level, !wanted.comes_first(summary), summary.range)
    });
    let mut stale: BTreeSet<&SummaryId> = BTreeSet::new();
    for summary in &found {
        if given_up.contains(&summary.id) {
            continue;
        }
        let mut below = summary.source_summaries();
        let is_above = below.any(|source| stale.contains(source)) && wanted.may_follow(summary);
        if wanted.begins(summary) || is_above {
            stale.insert(&summary.id);
        }
    }
    // A summary cannot be replaced if all summaries made from it are kept.
    let mut reached: BTreeSet<&SummaryId> = BTreeSet::new();
    for summary in found.iter().rev() {
        let is_root = summary.id == *root;
        if stale.contains(&summary.id) && (is_root || reached.contains(&summary.id)) {
            reached.insert(&summary.id);
            let below = summary.source_summaries();
            reached.extend(below.filter(|source| stale.contains(source)));
        }
    }
    found
        .iter()
        .filter(|summary| reached.contains(&summary.id))
        .map(|summary| summary.id.clone())
        .collect()
}

/// Returns the summary and all its direct and indirect sources. Each is returned once, after its own sources.
fn sources_first<'n>(root: &SummaryId, nodes: &'n Nodes) -> Vec<&'n Summary> {
    let (mut ordered, mut entered) = (Vec::new(), BTreeSet::new());
    // A summary is pushed twice: first to push its sources, and then to be added after them.
    let mut todo: Vec<(&Summary, bool)> = nodes
        .get(root)
        .map(|top| (top, false))
        .into_iter()
        .collect();
    while let Some((summary, sources_done)) = todo.pop() {
        if sources_done {
            ordered.push(summary);
        } else if entered.insert(&summary.id) {
            todo.push((summary, true));
            let sources = summary.source_summaries().filter_map(|id| nodes.get(id));
            todo.extend(sources.map(|source| (source, false)));
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory_model::{Child, Hash, Recipe, Seq};

    fn node(name: &str, depth: u32, at: u32, provisional: bool, below: &[&str]) -> Summary {
        let range = SeqRange::single(Seq(at));
        let children = below.iter().map(|id| Child::Summary {
            range,
            id: SummaryId::new(*id),
        });
        let (children, recipe) = (children.collect(), Recipe::new("test"));
        Summary {
            id: SummaryId::new(name),
            provisional,
            ..Summary::new(range, depth, children, Hash::ZERO, recipe, "")
        }
    }

    fn without_model(rejected: &[&str]) -> Wanted {
        let rejected = rejected.iter().map(|id| SummaryId::new(*id));
        Wanted {
            rule: Rule::WithoutModel,
            rejected: Rejected::new(rejected.collect()),
        }
    }

    /// Summaries: top ← (left ← (a, b), right ← (c, d)). The ones in `bad` are provisional.
    fn stale_of(bad: &[&str], given_up: &[&str]) -> Vec<String> {
        let shape: [(&str, u32, u32, &[&str]); 7] = [
            ("top", 2, 1, &["left", "right"]),
            ("left", 1, 1, &["a", "b"]),
            ("right", 1, 3, &["c", "d"]),
            ("a", 0, 1, &[]),
            ("b", 0, 2, &[]),
            ("c", 0, 3, &[]),
            ("d", 0, 4, &[]),
        ];
        let nodes: Nodes = shape
            .iter()
            .map(|(name, depth, at, below)| node(name, *depth, *at, bad.contains(name), below))
            .map(|summary| (summary.id.clone(), summary))
            .collect();
        let given_up = given_up.iter().map(|id| SummaryId::new(*id)).collect();
        let found = stale(
            &SummaryId::new("top"),
            &nodes,
            &given_up,
            &without_model(&[]),
        );
        found.iter().map(|id| id.as_str().to_owned()).collect()
    }

    #[test]
    fn a_provisional_node_and_all_above_it_are_made_anew_from_below() {
        assert_eq!(stale_of(&[], &[]), [""; 0]);
        assert_eq!(stale_of(&["c"], &[]), ["c", "right", "top"]);
        assert_eq!(stale_of(&["top"], &[]), ["top"]);
        let all = ["a", "d", "left", "right", "top"];
        assert_eq!(stale_of(&["a", "d", "right"], &[]), all);
    }

    #[test]
    fn what_is_given_up_stays_and_so_does_what_only_it_leads_to() {
        assert_eq!(stale_of(&["c", "d"], &["c"]), ["d", "right", "top"]);
        assert_eq!(stale_of(&["c", "a"], &["right"]), ["a", "left", "top"]);
        assert_eq!(stale_of(&["c", "a"], &["top"]), [""; 0]);
        assert_eq!(stale_of(&["c"], &["c"]), [""; 0]);
    }

    #[test]
    fn extracts_of_other_recipes_are_wanted_and_nothing_that_a_model_wrote() {
        let wanted = Wanted {
            rule: Rule::ExtractsBefore("extractive@9".to_owned()),
            rejected: Rejected::default(),
        };
        let by = |recipe: &str, provisional: bool| Summary {
            recipe: Recipe::new(recipe),
            ..node("a", 0, 1, provisional, &[])
        };
        assert!(wanted.begins(&by("summarizer=extractive@8 ladder=x", true)));
        for (recipe, provisional) in [
            ("summarizer=extractive@9 ladder=x", true),
            ("summarizer=extractive@8 ladder=x", false),
            ("summarizer=cut@1 ladder=x", true),
            ("supplied@1", true),
        ] {
            assert!(!wanted.begins(&by(recipe, provisional)), "{recipe}");
        }
        let above = |provisional| {
            let nodes = [
                by("summarizer=extractive@8 ladder=x", true),
                Summary {
                    recipe: Recipe::new("summarizer=extractive@9 ladder=x"),
                    ..node("top", 1, 1, provisional, &["a"])
                },
            ];
            let nodes: Nodes = nodes.into_iter().map(|one| (one.id.clone(), one)).collect();
            stale(&SummaryId::new("top"), &nodes, &BTreeSet::new(), &wanted).len()
        };
        assert_eq!((above(true), above(false)), (2, 0));
    }
}
