//! How well a ranking finds the messages that answer questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_memory::Memory;
use agent_memory::store::InMemoryStore;
use anyhow::Context as _;
use memory_search::{
    Hit, HitTarget, Query, Search as _, SearchMode, SearchScope, SegmentSearch, StaticTable,
};

use super::cases::{Case, Question};
use super::compacted::message_of;

/// Sums over questions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) questions: usize,
    recall: [f64; DEPTHS.len()],
    reciprocal_rank: f64,
    sessions: [f64; SESSION_DEPTHS.len()],
}

/// Depths at which recall is measured.
pub(crate) const DEPTHS: [usize; 3] = [1, 10, 20];

/// Depths at which sessions are.
pub(crate) const SESSION_DEPTHS: [usize; 2] = [1, 5];

impl Figures {
    /// Adds the answer to a question: the numbers of messages, best first.
    pub(crate) fn add(&mut self, case: &Case, question: &Question, answer: &[usize]) {
        let gold = &question.gold;
        self.questions += 1;
        for (sum, depth) in self.recall.iter_mut().zip(DEPTHS) {
            let found = answer.iter().take(depth).filter(|at| gold.contains(at));
            *sum += found.count() as f64 / gold.len() as f64;
        }
        let first = answer.iter().position(|at| gold.contains(at));
        self.reciprocal_rank += first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        let mut sessions = Vec::new();
        for at in answer {
            let session = case.turns[*at].session;
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        let is_gold = |session| gold.iter().any(|at| case.turns[*at].session == session);
        for (sum, depth) in self.sessions.iter_mut().zip(SESSION_DEPTHS) {
            *sum += f64::from(u8::from(sessions.iter().take(depth).any(|s| is_gold(*s))));
        }
    }

    /// Adds other figures.
    pub(crate) fn merge(&mut self, other: &Figures) {
        self.questions += other.questions;
        self.reciprocal_rank += other.reciprocal_rank;
        let sums = self.recall.iter_mut().chain(&mut self.sessions);
        for (sum, other) in sums.zip(other.recall.iter().chain(&other.sessions)) {
            *sum += other;
        }
    }

    /// Recall at the first `DEPTHS[index]` messages.
    pub(crate) fn recall(&self, index: usize) -> f64 {
        self.mean(self.recall[index])
    }

    /// Mean of 1 / rank of the first message that answers.
    pub(crate) fn mrr(&self) -> f64 {
        self.mean(self.reciprocal_rank)
    }

    /// Share of questions with the right session among the first `SESSION_DEPTHS[index]`.
    pub(crate) fn session_hits(&self, index: usize) -> f64 {
        self.mean(self.sessions[index])
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.questions.max(1) as f64
    }
}

/// What the figures of LoCoMo are to reach: recall at 1 and 10, MRR, sessions at 1 and 5.
pub(crate) const GOALS: [f64; 5] = [0.43, 0.78, 0.61, 0.76, 0.90];

/// Figures by category.
pub(crate) type ByCategory = BTreeMap<String, Figures>;

/// Asks all questions of a conversation by `answer`.
pub(crate) fn ask(case: &Case, mut answer: impl FnMut(&str) -> Vec<usize>) -> ByCategory {
    let questions = case.questions.iter();
    with_answers(case, questions.map(|question| answer(&question.text)))
}

/// The figures of a conversation by the answers to its questions, in their order.
fn with_answers(case: &Case, answers: impl IntoIterator<Item = Vec<usize>>) -> ByCategory {
    let mut figures = ByCategory::new();
    for (question, answer) in case.questions.iter().zip(answers) {
        let figures = figures.entry(question.category.clone()).or_default();
        figures.add(case, question, &answer);
    }
    figures
}

/// Asks all questions of a conversation in the mode `prose`, with a table of vectors or without.
fn searched(case: &Case, table: Option<&Arc<StaticTable>>) -> anyhow::Result<ByCategory> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.context("start a runtime")?.block_on(async {
        let store = Arc::new(InMemoryStore::new());
        let mut memory = Memory::builder().store(Arc::clone(&store));
        let mut search = SegmentSearch::new(store);
        if let Some(table) = table {
            memory = memory.embedder(Arc::clone(table));
            search = search.with_embedder(Arc::clone(table) as _);
        }
        let session = memory.open().await?.session("case").await?;
        for turn in &case.turns {
            session.ingest(message_of(turn)).await?;
        }
        let mut answers = Vec::new();
        for question in &case.questions {
            let query = Query::new(question.text.as_str())
                .with_mode(SearchMode::Prose)
                .with_scope(SearchScope::Messages)
                .with_limit(case.turns.len());
            let found = search.search(session.id(), &query).await?.hits;
            let number = |hit: Hit| match hit.target {
                HitTarget::Message { seq, .. } => Some(seq.0 as usize - 1),
                HitTarget::Summary { .. } => None,
            };
            answers.push(found.into_iter().filter_map(number).collect());
        }
        Ok(with_answers(case, answers))
    })
}

/// The figures of all conversations, with a table of vectors or without.
pub(crate) fn of_all(
    cases: &[Case],
    table: Option<&Arc<StaticTable>>,
) -> anyhow::Result<ByCategory> {
    let each: anyhow::Result<Vec<_>> = cases.iter().map(|case| searched(case, table)).collect();
    Ok(merged(each?))
}

/// The figures that goals are set for.
pub(crate) fn with_goals(figures: &ByCategory) -> [f64; 5] {
    let sum = pooled(figures);
    [
        sum.recall(0),
        sum.recall(1),
        sum.mrr(),
        sum.session_hits(0),
        sum.session_hits(1),
    ]
}

/// The sum over all categories.
pub(crate) fn pooled(figures: &ByCategory) -> Figures {
    let mut sum = Figures::default();
    figures.values().for_each(|figures| sum.merge(figures));
    sum
}

/// The figures of several conversations, by category.
pub(crate) fn merged(all: impl IntoIterator<Item = ByCategory>) -> ByCategory {
    let mut sum = ByCategory::new();
    for figures in all {
        for (category, figures) in figures {
            sum.entry(category).or_default().merge(&figures);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::cases::Turn;
    use super::*;
    use memory_model::{Role, Timestamp};

    #[test]
    fn figures_are_means_over_questions() {
        let turn = |session| Turn {
            name: None,
            role: Role::User,
            text: String::new(),
            time: Timestamp(0),
            session,
        };
        let case = Case {
            turns: vec![turn(1), turn(1), turn(2)],
            questions: Vec::new(),
        };
        let question = |gold: &[usize]| Question {
            text: String::new(),
            category: String::new(),
            gold: gold.iter().copied().collect(),
        };
        let mut figures = Figures::default();
        figures.add(&case, &question(&[0, 2]), &[0, 1, 2]);
        figures.add(&case, &question(&[2]), &[0, 2]);
        assert_eq!((figures.recall(0), figures.recall(1)), (0.25, 1.0));
        assert_eq!(figures.mrr(), 0.75);
        assert_eq!(
            (figures.session_hits(0), figures.session_hits(1)),
            (0.5, 1.0)
        );
    }
}
