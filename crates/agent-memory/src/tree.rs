//! A view as a tree: spans, and under each summary what it was made from.

use memory_model::{Body, Child, SeqRange, Summary, SummaryId};

use crate::error::Result;
use crate::history::SnapshotView;
use crate::session::Session;

/// A view as a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The spans, in order.
    pub nodes: Vec<TreeNode>,
}

/// A span of a view, or a piece that a summary was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    /// Which messages.
    pub range: SeqRange,
    /// What stands for them in the view: `raw`, `summary`, `trimmed` or `omitted`.
    pub kind: &'static str,
    /// The summary, for a summary.
    pub summary: Option<Summary>,
    /// What it costs, in tokens; for messages inside a summary what they cost themselves.
    pub tokens: u64,
    /// What a summary was made from, in order.
    pub children: Vec<TreeNode>,
}

impl SnapshotView {
    /// The view as a tree, `depth` levels below the spans.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn tree(&self, depth: usize) -> Result<Tree> {
        let head = self.snapshot().head;
        let mut nodes = Vec::new();
        for span in self.spans().await? {
            let Some(range) = span.range.up_to(head) else {
                continue;
            };
            let (kind, id) = match &span.body {
                Body::Raw => ("raw", None),
                Body::Summary { id, .. } => ("summary", Some(id.clone())),
                Body::Trimmed(_) => ("trimmed", None),
                Body::Omitted => ("omitted", None),
            };
            nodes.push((
                TreeNode {
                    range,
                    kind,
                    summary: None,
                    tokens: span.tokens,
                    children: Vec::new(),
                },
                id,
            ));
        }
        Ok(Tree {
            nodes: self.session().fill(nodes, depth).await?,
        })
    }
}

impl Session {
    /// The session's view as a tree, `depth` levels below the spans.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn tree(&self, depth: usize) -> Result<Tree> {
        self.now().await?.tree(depth).await
    }

    /// Looks up the summaries of a whole level at once, then the level below.
    async fn fill(
        &self,
        nodes: Vec<(TreeNode, Option<SummaryId>)>,
        depth: usize,
    ) -> Result<Vec<TreeNode>> {
        let ids: Vec<SummaryId> = nodes.iter().filter_map(|(_, id)| id.clone()).collect();
        let mut found = self.summaries(&ids).await?.into_iter();
        let mut level = Vec::new();
        // The children of all nodes, and how many each has.
        let mut below: Vec<(TreeNode, Option<SummaryId>)> = Vec::new();
        let mut counts = Vec::new();
        for (mut node, id) in nodes {
            if id.is_some() {
                node.summary = found.next().flatten();
            }
            let mut count = 0;
            if let Some(summary) = node.summary.as_ref().filter(|_| depth > 0) {
                for child in &summary.children {
                    below.push(self.child(child).await?);
                    count += 1;
                }
            }
            counts.push(count);
            level.push(node);
        }
        if below.is_empty() {
            return Ok(level);
        }
        let mut filled = Box::pin(self.fill(below, depth.saturating_sub(1)))
            .await?
            .into_iter();
        for (node, count) in level.iter_mut().zip(counts) {
            node.children = filled.by_ref().take(count).collect();
            for child in &mut node.children {
                if let Some(summary) = &child.summary {
                    child.tokens = summary.tokens;
                }
            }
        }
        Ok(level)
    }

    async fn child(&self, child: &Child) -> Result<(TreeNode, Option<SummaryId>)> {
        let range = child.range();
        let (kind, tokens) = match child {
            Child::Summary { .. } => ("summary", 0),
            Child::Messages { .. } => {
                let at = [range.first.prev(), range.last];
                let running = self.memory().inner.store.running(self.id(), &at).await?;
                match running.as_slice() {
                    [before, through] => ("raw", through.saturating_sub(*before)),
                    _ => ("raw", 0),
                }
            }
        };
        let node = TreeNode {
            range,
            kind,
            summary: None,
            tokens,
            children: Vec::new(),
        };
        Ok((node, child.summary().cloned()))
    }
}

impl std::fmt::Display for Tree {
    /// A line a node, children indented.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.nodes
            .iter()
            .try_for_each(|node| write_node(node, 0, f))
    }
}

fn write_node(node: &TreeNode, level: usize, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let indent = "  ".repeat(level);
    match &node.summary {
        Some(summary) => {
            let provisional = if summary.provisional {
                ", provisional"
            } else {
                ""
            };
            writeln!(
                f,
                "{indent}{} {} depth {} · messages {} · {} tokens for {} · {}{provisional}",
                summary.id,
                summary.kind(),
                summary.depth,
                node.range,
                summary.tokens,
                summary.source_tokens,
                summary.tier,
            )?;
        }
        None => {
            writeln!(
                f,
                "{indent}{} · messages {} · {} tokens",
                node.kind, node.range, node.tokens
            )?;
        }
    }
    node.children
        .iter()
        .try_for_each(|child| write_node(child, level + 1, f))
}
