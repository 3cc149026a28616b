//! The result of `compact` in the form of `--json`.

use std::collections::BTreeMap;

use agent_memory::compaction::{LabelCounts, Measure, ModelReport, Outcome, Plan, StopReason};
use agent_memory::model::SummaryId;
use agent_memory::{Session, VerifyReport};
use serde::Serialize;

use crate::commands::dropped::Dropped;
use crate::commands::import;
use crate::commands::verify::Verified;
use crate::cost::Cost;
use crate::output::number;

#[derive(Debug, Serialize)]
pub(super) struct CompactReport {
    #[serde(flatten)]
    pub(super) view: ViewChange,
    pub(super) imported: Option<import::ImportedFiles>,
    #[serde(flatten)]
    pub(super) run: CompactionResult,
    /// Messages that the published summaries do not mention; `None` unless they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dropped: Option<Vec<Dropped>>,
    /// The next step of the compaction; `None` except for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plan: Option<Plan>,
    /// Cost of the calls of the model.
    pub(super) spent: Cost,
    /// Estimated cost of a run; `None` except for a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) estimate: Option<Cost>,
}

/// Size of a session's view before and after the compaction, and the result of the verification.
#[derive(Debug, Serialize)]
pub(super) struct ViewChange {
    session: String,
    pub(super) before: LogSize,
    pub(super) after: ViewSize,
    pub(super) verify: Verified,
}

impl ViewChange {
    pub(super) fn new(
        session: &Session,
        before: Measure,
        after: Measure,
        report: VerifyReport,
    ) -> Self {
        Self {
            session: session.key().to_string(),
            before: LogSize {
                messages: report.messages - report.notes,
                tokens: before.tokens,
            },
            after: after.into(),
            verify: report.into(),
        }
    }
}

/// Result of a compaction.
#[derive(Debug, Serialize)]
pub(super) struct CompactionResult {
    pub(super) summaries: SummaryCounts,
    /// Id of the last published summary; `None` if none was published.
    pub(super) summary: Option<SummaryId>,
    /// Text of the handoff; `None` for another strategy, or if none was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary_text: Option<String>,
    calls: u64,
    /// Duration of the compaction, in milliseconds.
    duration_ms: u64,
    pub(super) stop_reason: StopReason,
    /// Number of published summaries that were written without a model.
    provisional: u64,
    /// Number of summaries that the model was asked for, and the reasons for summaries that it did not write.
    pub(super) model: ModelReport,
    /// Text of the summarizer's failure; `None` if it did not fail.
    pub(super) failure: Option<String>,
}

impl CompactionResult {
    /// Returns the result of a run that published no summary.
    pub(super) fn none(stop_reason: StopReason) -> Self {
        Self {
            summaries: SummaryCounts::default(),
            summary: None,
            summary_text: None,
            calls: 0,
            duration_ms: 0,
            stop_reason,
            provisional: 0,
            model: ModelReport::default(),
            failure: None,
        }
    }

    pub(super) fn new(outcome: Outcome) -> Self {
        Self {
            summaries: SummaryCounts::new(&outcome.published),
            summary: outcome.summaries.last().cloned(),
            summary_text: None,
            calls: outcome.calls,
            duration_ms: u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
            stop_reason: outcome.stop_reason,
            provisional: outcome.provisional,
            model: outcome.model,
            failure: outcome.failure.or(outcome.summarizer_error),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct LogSize {
    pub(super) messages: u64,
    pub(super) tokens: u64,
}

/// Size of a view: its numbers of spans and tokens.
#[derive(Debug, Serialize)]
pub(crate) struct ViewSize {
    pub(crate) spans: u64,
    pub(crate) tokens: u64,
}

impl From<Measure> for ViewSize {
    fn from(Measure { spans, tokens, .. }: Measure) -> Self {
        Self { spans, tokens }
    }
}

/// Numbers of published summaries, by the label that the planner gives to each kind.
#[derive(Debug, Default, Serialize)]
pub(super) struct SummaryCounts {
    leaf: u64,
    condensed: u64,
    /// Numbers for labels of other strategies, such as `handoff`.
    #[serde(flatten)]
    others: BTreeMap<String, u64>,
}

impl SummaryCounts {
    fn new(published: &LabelCounts) -> Self {
        let others = published.iter().map(|(label, n)| (label.to_string(), n));
        Self {
            leaf: published.get("leaf"),
            condensed: published.get("condensed"),
            others: others
                .filter(|(label, _)| label != "leaf" && label != "condensed")
                .collect(),
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.leaf + self.condensed + self.others.values().sum::<u64>()
    }

    /// Returns the counts as text, such as `3 leaf and 1 condensed`.
    pub(super) fn text(&self) -> String {
        let own = [("leaf", self.leaf), ("condensed", self.condensed)];
        // For another strategy than `dag`, only the labels of that strategy are printed.
        let own = own.into_iter().filter(|_| self.others.is_empty());
        let others = self.others.iter().map(|(label, n)| (label.as_str(), *n));
        let counts = own
            .chain(others)
            .map(|(label, n)| format!("{} {}", number(n), label.replace('_', " ")));
        counts.collect::<Vec<_>>().join(" and ")
    }
}
