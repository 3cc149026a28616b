//! The planner of handoffs.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use compaction_plan::{
    BoxError, Details, JobSink, Label, PassInput, Planner, Request, ViewSource, WrittenText,
};
use memory_model::conventions::{AgentConventions, GenericConventions};
use memory_model::{RawJson, Seq, Summary, ViewName};

use crate::facts::HandoffFacts;
use crate::files::FileLedger;
use crate::labels::HANDOFF;
use crate::pass::plan_handoffs;
use crate::policy::{HandoffPolicy, LiveHandoffPolicy};
use crate::tasks::OpenTasks;

static PASSES: [Label; 1] = [HANDOFF];

/// Plans handoffs in the view `handoff`: one rolling summary, then the latest messages unchanged.
///
/// Each handoff combines the previous summary and the messages since then into a new summary. The new summary unfolds
/// to all messages that it covers. The cut is the border between summarized and kept messages. If the cut is inside a
/// turn, the beginning of that turn gets a separate summary until the next handoff. No cut separates a tool call from
/// its result.
#[derive(Debug, Clone)]
pub struct HandoffPlanner {
    policy: LiveHandoffPolicy,
    conventions: Arc<dyn AgentConventions>,
    /// Position of the first message to keep; `None` if the policy selects the cut.
    kept_from: Option<Seq>,
    /// Additional fields for the metadata of the planned summaries.
    facts: BTreeMap<String, RawJson>,
}

impl Default for HandoffPlanner {
    fn default() -> Self {
        Self::new(HandoffPolicy::default())
    }
}

impl HandoffPlanner {
    /// Creates a planner that follows `policy`. The planner does not know the effects of tools until
    /// [`HandoffPlanner::with_conventions`] sets them.
    pub fn new(policy: HandoffPolicy) -> Self {
        Self::live(policy.into())
    }

    /// Creates a planner that reads the current values of `policy` at each plan.
    pub fn live(policy: LiveHandoffPolicy) -> Self {
        Self {
            policy,
            conventions: Arc::new(GenericConventions),
            kept_from: None,
            facts: BTreeMap::new(),
        }
    }

    /// Keeps the messages from position `first` on, regardless of the policy's [`keep`](HandoffPolicy::keep). One
    /// handoff replaces everything before them. If `first` is inside a group of tool calls and results, the kept
    /// messages begin with the group.
    pub fn with_kept_from(mut self, first: Seq) -> Self {
        self.kept_from = Some(first);
        self
    }

    /// Sets the conventions, which define how each tool uses files.
    pub fn with_conventions(mut self, conventions: Arc<dyn AgentConventions>) -> Self {
        self.conventions = conventions;
        self
    }

    /// Returns the current policy.
    pub fn policy(&self) -> HandoffPolicy {
        self.policy.get()
    }
}

#[async_trait]
impl Planner for HandoffPlanner {
    fn view(&self) -> ViewName {
        ViewName::new("handoff")
    }

    fn fingerprint(&self) -> String {
        // A policy consists of plain values, which always have a JSON form.
        let policy = serde_json::to_string(&self.policy()).unwrap_or_default();
        let at = self.kept_from.map(|seq| format!(" kept-from={seq}"));
        let (id, at) = (self.conventions.id(), at.unwrap_or_default());
        format!("handoff@1 {id} {policy}{at}")
    }

    fn passes(&self) -> &[Label] {
        &PASSES
    }

    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError> {
        let mut policy = self.policy().within(input.room);
        if input.excess() > 0 {
            // A requested handoff is made for any number of messages.
            policy.min_tokens = 1;
        }
        let most = input.room.filter(|room| !room.whole_tail);
        let most = most.map(|room| (room.tokens / 4).max(1));
        let rule = self.details_rule();
        let kept = (most, &*rule, self.kept_from);
        plan_handoffs(&policy, kept, input, view, jobs).await
    }

    fn details(&self, written: &WrittenText<'_>) -> Details {
        let mut ledger = FileLedger::default();
        for source in written.sources {
            ledger.add(source, &*self.conventions);
        }
        ledger.end();
        let mut details = Details::default();
        let tasks = OpenTasks::newest(written.sources, &*self.conventions);
        if let Some(tasks) = &tasks {
            details.lines.extend(tasks.unnamed(written.text));
        }
        if self.policy().list_files {
            details
                .lines
                .extend(ledger.unnamed(written.text, written.room(), written.accounting));
        }
        let facts = written.job.request.as_ref().map(HandoffFacts::of);
        for (name, value) in [
            (FileLedger::FACT, RawJson::from_value(&ledger)),
            (HandoffFacts::FACT, RawJson::from_value(&facts)),
            (OpenTasks::FACT, RawJson::from_value(&tasks)),
        ] {
            if let Ok(value) = value {
                details.facts.insert(name.to_owned(), value);
            }
        }
        details.facts.extend(self.facts.clone());
        details
    }

    fn keeping(
        &self,
        kept_from: Seq,
        facts: &BTreeMap<String, RawJson>,
    ) -> Option<Box<dyn Planner>> {
        let planner = self.clone().with_kept_from(kept_from);
        Some(Box::new(Self {
            facts: facts.clone(),
            ..planner
        }))
    }

    fn request_again(&self, summary: &Summary) -> Option<Request> {
        let facts = HandoffFacts::read(summary)?;
        Some(facts.request(&self.policy(), self.details_rule()))
    }
}

impl HandoffPlanner {
    /// Returns the name and version of the rule by which files are listed.
    fn details_rule(&self) -> String {
        let lists = if self.policy().list_files {
            "+list"
        } else {
            ""
        };
        format!("files@2{lists}/{}", self.conventions.id())
    }
}
