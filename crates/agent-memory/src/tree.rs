//! The summary tree of a view: its spans, and the children of each summary below the summary.

use std::fmt;

use memory_model::{Child, Seq, SeqRange, Span, SpanBody, Summary, SummaryId};
use memory_store::{Order, message_costs, read_span_page};
use serde::Serialize;

use crate::error::Result;
use crate::history::ViewAtVersion;
use crate::session::Session;

/// Number of spans that [`ViewAtVersion::tree`] reads at once.
const PAGE: usize = 256;

/// The tree of summaries in a view, or one page of the tree. `Display` writes one line for each node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Tree {
    /// Nodes for the spans of the view (the compacted log), in the requested order. The nodes below are in
    /// [`TreeNode::children`].
    pub nodes: Vec<TreeNode>,
    /// Range of positions to request for the next page; `None` after the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<SeqRange>,
}

/// A node of a summary tree: a span of a view, or a child of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TreeNode {
    /// Range of messages that the node covers.
    pub range: SeqRange,
    /// Kind of the content that the node shows for its messages.
    pub kind: NodeKind,
    /// Cost of the node's content, in tokens.
    pub tokens: u64,
    /// The summary that the node shows; `None` if its kind is not [`NodeKind::Summary`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Nodes for the children of the summary, in the order of the log. Empty if the node is at the requested depth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<TreeNode>,
}

/// Kind of the content that a node of a summary tree shows for its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeKind {
    /// The messages, unchanged.
    Raw,
    /// A summary of the messages.
    Summary,
    /// The messages, shortened.
    Trimmed,
    /// No content: the messages are left out.
    Omitted,
}

impl NodeKind {
    /// Returns the name of the kind: `raw`, `summary`, `trimmed` or `omitted`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Summary => "summary",
            Self::Trimmed => "trimmed",
            Self::Omitted => "omitted",
        }
    }
}

impl From<&SpanBody> for NodeKind {
    fn from(body: &SpanBody) -> Self {
        match body {
            SpanBody::Raw => Self::Raw,
            SpanBody::Summary { .. } => Self::Summary,
            SpanBody::Trimmed(_) => Self::Trimmed,
            SpanBody::Omitted => Self::Omitted,
        }
    }
}

/// Selects the part of a tree that [`ViewAtVersion::tree_page`] reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct TreeRequest {
    /// Number of levels to read below the spans of the view (the compacted log); 0 reads only the spans.
    pub depth: usize,
    /// Range of positions to read, such as [`Tree::next`]. The spans in this range are returned. `None` reads the
    /// whole view.
    pub range: Option<SeqRange>,
    /// Order in which the spans are returned.
    pub order: Order,
    /// Maximum number of spans in one page.
    pub limit: usize,
}

impl TreeRequest {
    /// Requests the oldest 256 spans of a view, with `depth` levels below them.
    pub fn new(depth: usize) -> Self {
        Self {
            depth,
            range: None,
            order: Order::OldestFirst,
            limit: PAGE,
        }
    }
}

impl ViewAtVersion {
    /// Returns the whole summary tree of the view (the compacted log), with `depth` levels below the spans.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn tree(&self, depth: usize) -> Result<Tree> {
        let mut tree = Tree::default();
        let mut request = TreeRequest::new(depth);
        loop {
            let page = self.tree_page(&request).await?;
            tree.nodes.extend(page.nodes);
            match page.next {
                Some(range) => request.range = Some(range),
                None => return Ok(tree),
            }
        }
    }

    /// Returns one page of the view's summary tree.
    ///
    /// Each level takes one query for summaries and one for message costs, regardless of the number of nodes.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn tree_page(&self, request: &TreeRequest) -> Result<Tree> {
        let snapshot = self.snapshot();
        let Some(range) = request
            .range
            .or_else(|| SeqRange::new(Seq::FIRST, snapshot.head))
        else {
            return Ok(Tree::default());
        };
        let store = &*self.session().memory().inner.store;
        let page = read_span_page(store, snapshot, range, request.order, request.limit).await?;
        let pending: Vec<PendingNode> = page
            .items
            .iter()
            .filter_map(|span| PendingNode::of_span(span, snapshot.head))
            .collect();
        Ok(Tree {
            nodes: self.session().read_level(pending, request.depth).await?,
            next: page.next,
        })
    }
}

/// A node whose summary and the cost are not read yet.
struct PendingNode {
    node: TreeNode,
    id: Option<SummaryId>,
    /// Whether the cost must be read from the log.
    needs_tokens: bool,
}

impl PendingNode {
    fn new(range: SeqRange, kind: NodeKind, id: Option<&SummaryId>) -> Self {
        let node = TreeNode {
            range,
            kind,
            tokens: 0,
            summary: None,
            children: Vec::new(),
        };
        Self {
            node,
            id: id.cloned(),
            needs_tokens: false,
        }
    }

    /// Creates the node of a span, up to the end of the log; `None` for an empty span after the end.
    fn of_span(span: &Span, head: Seq) -> Option<Self> {
        let range = span.range.up_to(head)?;
        let mut pending = Self::new(range, NodeKind::from(&span.body), span.body.summary());
        pending.node.tokens = span.tokens;
        Some(pending)
    }

    fn of_child(child: &Child) -> Self {
        let kind = match child {
            Child::Summary { .. } => NodeKind::Summary,
            Child::Messages { .. } => NodeKind::Raw,
        };
        let mut pending = Self::new(child.range(), kind, child.summary());
        pending.needs_tokens = kind == NodeKind::Raw;
        pending
    }
}

impl Session {
    /// Reads the summaries and costs of all nodes of one level at once, then the levels below.
    async fn read_level(&self, level: Vec<PendingNode>, depth: usize) -> Result<Vec<TreeNode>> {
        let ids: Vec<SummaryId> = level.iter().filter_map(|node| node.id.clone()).collect();
        let mut summaries = match ids.as_slice() {
            [] => Vec::new(),
            ids => self.summaries(ids).await?,
        }
        .into_iter();
        let raw = level.iter().filter(|pending| pending.needs_tokens);
        let ranges: Vec<SeqRange> = raw.map(|pending| pending.node.range).collect();
        let store = &*self.memory().inner.store;
        let mut costs = message_costs(store, self.id(), &ranges).await?.into_iter();
        let mut nodes = Vec::with_capacity(level.len());
        let mut children = Vec::new();
        let mut child_counts = Vec::with_capacity(level.len());
        for pending in level {
            let mut node = pending.node;
            if pending.id.is_some() {
                node.summary = summaries.next().flatten();
            }
            if pending.needs_tokens {
                node.tokens = costs.next().unwrap_or_default();
            }
            let before = children.len();
            if let Some(summary) = &node.summary {
                node.tokens = summary.tokens;
                if depth > 0 {
                    children.extend(summary.children.iter().map(PendingNode::of_child));
                }
            }
            child_counts.push(children.len() - before);
            nodes.push(node);
        }
        if children.is_empty() {
            return Ok(nodes);
        }
        let mut children = Box::pin(self.read_level(children, depth.saturating_sub(1)))
            .await?
            .into_iter();
        for (node, count) in nodes.iter_mut().zip(child_counts) {
            node.children = children.by_ref().take(count).collect();
        }
        Ok(nodes)
    }
}

impl fmt::Display for Tree {
    /// Writes a line for each node, with indented children.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nodes
            .iter()
            .try_for_each(|node| write_node(node, 0, f))
    }
}

fn write_node(node: &TreeNode, level: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let indent = "  ".repeat(level);
    let (range, tokens) = (node.range, node.tokens);
    match &node.summary {
        Some(summary) => {
            let provisional = match summary.provisional {
                true => ", provisional",
                false => "",
            };
            writeln!(
                f,
                "{indent}{} {} depth {} · messages {range} · {tokens} tokens for {} · {}{provisional}",
                summary.id,
                summary.kind(),
                summary.depth,
                summary.source_tokens,
                summary.tier,
            )?;
        }
        None => writeln!(
            f,
            "{indent}{} · messages {range} · {tokens} tokens",
            node.kind.as_str()
        )?,
    }
    node.children
        .iter()
        .try_for_each(|child| write_node(child, level + 1, f))
}
