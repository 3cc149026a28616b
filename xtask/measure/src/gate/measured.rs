//! What the gate says to pairs and to planted faults.

use std::collections::BTreeMap;

use anyhow::ensure;
use memory_model::conventions::AgentConventions;
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::{Gate, SummaryRequest, Tolerance, is_cut, measure};

use super::faults::{FORMS, Planted, changes_files};
use super::pairs::Pair;

/// Goals: refused good answers and caught faults, in parts of a thousand.
const MOST_REFUSED: usize = 10;
const LEAST_CAUGHT: usize = 980;
/// Goal: answers of small models that are junk and accepted, of all their answers.
const MOST_JUNK: (usize, usize) = (2, 40);

/// How often each rule refused a text; a text may break several.
pub(crate) type Rules = BTreeMap<String, usize>;

/// Texts that were judged, and the rules that refused them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    pub(crate) texts: usize,
    pub(crate) refused: usize,
    pub(crate) rules: Rules,
}

impl Judged {
    fn add(&mut self, rules: &[String]) {
        self.texts += 1;
        self.refused += usize::from(!rules.is_empty());
        for rule in rules {
            *self.rules.entry(rule.clone()).or_default() += 1;
        }
    }
}

/// Figures of good answers.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// By author and by language.
    pub(crate) authors: BTreeMap<String, Judged>,
    pub(crate) languages: BTreeMap<String, Judged>,
    /// Planted faults, in the order of [`Planted::ALL`].
    pub(crate) faults: [Judged; Planted::ALL.len()],
}

impl Measured {
    pub(crate) fn of(pairs: &[Pair], conventions: &dyn AgentConventions, each: bool) -> Self {
        let mut out = Self::default();
        for pair in pairs {
            with_request(pair, conventions, |request| {
                out.add(pair, pairs, request, each)
            });
        }
        out
    }

    /// Judges an answer and its faults. `all` are the pairs from which faults are taken.
    fn add(&mut self, pair: &Pair, all: &[Pair], request: &SummaryRequest<'_>, each: bool) {
        let rules = refusing(&pair.answer, request);
        if each && !rules.is_empty() {
            println!("good answer refused: {} by {}", pair.id, rules.join(", "));
        }
        let language = self.languages.entry(pair.language.clone()).or_default();
        language.add(&rules);
        let author = self.authors.entry(pair.author.clone()).or_default();
        author.add(&rules);
        let changes = changes_files(request, request.conventions);
        for ((kind, name, _), judged) in Planted::ALL.into_iter().zip(&mut self.faults) {
            for form in 0..FORMS {
                let Some(text) = kind.plant(form, pair, all, request, changes) else {
                    continue;
                };
                let rules = refusing(&text, request);
                if each && rules.is_empty() {
                    let text: String = text.chars().take(160).collect();
                    println!(
                        "missed: {} {name} {form}: {}",
                        pair.id,
                        text.replace('\n', " / ")
                    );
                }
                judged.add(&rules);
            }
        }
    }

    /// All good answers.
    pub(crate) fn answers(&self) -> Judged {
        let mut sum = Judged::default();
        for one in self.authors.values() {
            sum.texts += one.texts;
            sum.refused += one.refused;
            for (rule, times) in &one.rules {
                *sum.rules.entry(rule.clone()).or_default() += times;
            }
        }
        sum
    }

    /// # Errors
    /// When a goal is missed.
    pub(crate) fn hold(&self, name: &str) -> anyhow::Result<()> {
        let Judged { texts, refused, .. } = self.answers();
        ensure!(
            refused * 1_000 <= texts * MOST_REFUSED,
            "{name}: {refused} of {texts} good answers are refused"
        );
        for ((_, fault, _), judged) in Planted::ALL.iter().zip(&self.faults) {
            ensure!(
                judged.refused * 1_000 >= judged.texts * LEAST_CAUGHT,
                "{name}: {fault}: {} of {} faults are caught",
                judged.refused,
                judged.texts
            );
        }
        Ok(())
    }
}

/// Figures of answers of small models, by the set of answers and by whether their readers called them junk.
#[derive(Debug, Default)]
pub(crate) struct Small(pub(crate) BTreeMap<(String, bool), Judged>);

impl Small {
    pub(crate) fn of(pairs: &[Pair], conventions: &dyn AgentConventions, each: bool) -> Self {
        let mut out = Self::default();
        for pair in pairs {
            let rules = with_request(pair, conventions, |request| refusing(&pair.answer, request));
            if each && rules.is_empty() == pair.is_junk {
                let text: String = pair.answer.chars().take(300).collect();
                let rules = rules.join(", ");
                println!("{} ({rules}): {}", pair.id, text.replace('\n', " / "));
            }
            let set = (pair.author.clone(), pair.is_junk);
            out.0.entry(set).or_default().add(&rules);
        }
        out
    }

    /// # Errors
    /// When more junk is accepted than the goal allows, in one of the sets.
    pub(crate) fn hold(&self) -> anyhow::Result<()> {
        for ((set, is_junk), junk) in &self.0 {
            let others = self.0.get(&(set.clone(), !is_junk));
            let texts = junk.texts + others.map_or(0, |others| others.texts);
            let accepted = junk.texts - junk.refused;
            ensure!(
                !is_junk || accepted * MOST_JUNK.1 <= texts * MOST_JUNK.0,
                "small models, {set}: {accepted} of {texts} answers are junk and accepted"
            );
        }
        Ok(())
    }
}

/// Calls `f` with the request that a pair's answer is for.
fn with_request<T>(
    pair: &Pair,
    conventions: &dyn AgentConventions,
    f: impl FnOnce(&SummaryRequest<'_>) -> T,
) -> T {
    let estimator = token_estimate::default_estimator();
    let log = pair.log(&*estimator);
    let (source, before) = (log.source(), log.before());
    f(&SummaryRequest {
        target_tokens: pair.target,
        before: &before,
        conventions,
        ..SummaryRequest::new(&source, &*estimator)
    })
}

/// The rules by which the default ladder refuses a text: its length, a refusal, and the gate.
fn refusing(text: &str, request: &SummaryRequest<'_>) -> Vec<String> {
    let scores = measure(text, request);
    let failures = Gate::default().failures(&scores);
    let mut rules: Vec<String> = failures
        .iter()
        .map(|failure| failure.rule().to_owned())
        .collect();
    if scores.refusal {
        rules.push("declined".to_owned());
    }
    let tokens = request.estimator.text(text);
    if is_cut(&PromptSet::standard().leaf, text) {
        rules.push("cut_off".to_owned());
    }
    if rules.is_empty() && tokens > Tolerance::DEFAULT.limit(request.target_tokens) {
        rules.push("too_long".to_owned());
    }
    rules
}
