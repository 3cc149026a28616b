//! The outline of a view: the tree of its spans with their topics, and the summaries in it.

use std::collections::BTreeMap;

use agent_memory::model::Summary;
use agent_memory::view::{NodeKind, TreeNode};
use serde::Serialize;

use super::messages::Shown;
use super::requests::{TOPIC, asked, topic};
use crate::output::clip;
use crate::redact::Redactor;

/// A span of a view, or a child of a summary.
#[derive(Debug, Serialize)]
pub(super) struct Node {
    kind: NodeKind,
    first: u32,
    last: u32,
    tokens: u64,
    topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Node>,
}

/// The text of a summary, and facts about it.
#[derive(Debug, Serialize)]
pub(super) struct Written {
    text: String,
    depth: u32,
    provisional: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

/// Collects the values of summaries.
pub(super) fn learn(redactor: &Redactor, nodes: &[TreeNode]) {
    for node in nodes {
        if let Some(summary) = &node.summary {
            redactor.learn(summary.body.text());
            redactor.learn(
                summary
                    .messages
                    .as_ref()
                    .map_or("", |messages| messages.as_str()),
            );
        }
        learn(redactor, &node.children);
    }
}

/// Collects the trees of views and the summaries in them.
pub(super) struct Outline<'a> {
    pub(super) requests: &'a [(u32, String)],
    pub(super) shown: Shown<'a>,
    pub(super) summaries: &'a mut BTreeMap<String, Written>,
}

impl Outline<'_> {
    pub(super) fn node(&mut self, node: TreeNode) -> Node {
        let (first, last) = (node.range.first.0, node.range.last.0);
        let children = node.children.into_iter();
        let children: Vec<Node> = children.map(|child| self.node(child)).collect();
        let topic = self.topic(first, last, node.summary.as_ref(), &children);
        if let Some(summary) = &node.summary {
            let written = Written::of(summary, self.shown);
            self.summaries.insert(self.id(summary), written);
        }
        Node {
            kind: node.kind,
            first,
            last,
            tokens: node.tokens,
            topic,
            summary: node.summary.as_ref().map(|summary| self.id(summary)),
            children,
        }
    }

    /// Returns the id of a summary, which is a hash of its content, as the page shows it.
    fn id(&self, summary: &Summary) -> String {
        (self.shown)(summary.id.as_str()).into_owned()
    }

    /// Returns the topic of a range: the beginning of a model's summary, the topics of several summaries, or the longest
    /// of the first requests in the range. Short requests, such as `Go on.`, have no topic.
    fn topic(&self, first: u32, last: u32, summary: Option<&Summary>, children: &[Node]) -> String {
        let text = |summary: &Summary| topic(&(self.shown)(summary.body.text()));
        let of_model = summary.filter(|summary| !summary.provisional);
        if let Some(topic) = of_model.and_then(text) {
            return topic;
        }
        let below = children.iter().filter(|child| child.summary.is_some());
        let below: Vec<&str> = below.map(|child| child.topic.as_str()).collect();
        if below.len() > 1 {
            let topics = below.iter().map(|topic| clip(topic, TOPIC / below.len()));
            return topics.collect::<Vec<_>>().join(" · ");
        }
        match asked(self.requests, first, last) {
            Some(topic) => topic.to_owned(),
            None => summary.and_then(text).unwrap_or_default(),
        }
    }
}

impl Written {
    fn of(summary: &Summary, shown: Shown<'_>) -> Self {
        let text = match (summary.body.text(), &summary.messages) {
            ("", Some(messages)) => messages.as_str(),
            (text, _) => text,
        };
        Self {
            text: shown(text).into_owned(),
            depth: summary.depth,
            provisional: summary.provisional,
            model: summary
                .model
                .as_deref()
                .map(|model| shown(model).into_owned()),
        }
    }
}
