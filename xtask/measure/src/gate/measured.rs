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

/// Figures of some pairs.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Good answers: every second pair, and the others.
    pub(crate) halves: [Judged; 2],
    pub(crate) languages: BTreeMap<String, usize>,
    /// Planted faults, in the order of [`Planted::ALL`].
    pub(crate) faults: [Judged; Planted::ALL.len()],
}

impl Measured {
    pub(crate) fn of(
        pairs: &[Pair],
        conventions: &dyn AgentConventions,
        each: bool,
    ) -> anyhow::Result<Self> {
        let mut out = Self::default();
        for (at, pair) in pairs.iter().enumerate() {
            let estimator = token_estimate::default_estimator();
            let estimator = &*estimator;
            let log = pair.log(estimator);
            let source = log.source();
            let request = SummaryRequest {
                target_tokens: pair.target,
                conventions,
                ..SummaryRequest::new(&source, estimator)
            };
            *out.languages.entry(pair.language.clone()).or_default() += 1;
            let rules = refusing(&pair.answer, &request);
            if each && !rules.is_empty() {
                println!("good answer refused: {} by {}", pair.id, rules.join(", "));
            }
            if let Some(half) = out.halves.get_mut(at % 2) {
                half.add(&rules);
            }
            let changes = changes_files(&request, conventions);
            for ((kind, name, _), judged) in Planted::ALL.into_iter().zip(&mut out.faults) {
                for form in 0..FORMS {
                    let Some(text) = kind.plant(form, pair, pairs, &request, changes) else {
                        continue;
                    };
                    let rules = refusing(&text, &request);
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
        Ok(out)
    }

    pub(crate) fn pairs(&self) -> usize {
        self.halves.iter().map(|half| half.texts).sum()
    }

    /// # Errors
    /// When a goal is missed.
    pub(crate) fn hold(&self, names: &[&str]) -> anyhow::Result<()> {
        let (texts, refused) = self.halves.iter().fold((0, 0), |sum, half| {
            (sum.0 + half.texts, sum.1 + half.refused)
        });
        let names = names.join(" and ");
        ensure!(
            refused * 1_000 <= texts * MOST_REFUSED,
            "{names}: {refused} of {texts} good answers are refused"
        );
        for ((_, name, _), judged) in Planted::ALL.iter().zip(&self.faults) {
            ensure!(
                judged.refused * 1_000 >= judged.texts * LEAST_CAUGHT,
                "{names}: {name}: {} of {} faults are caught",
                judged.refused,
                judged.texts
            );
        }
        Ok(())
    }
}

/// The figures of answers that readers called junk.
pub(crate) fn junk(
    pairs: &[Pair],
    conventions: &dyn AgentConventions,
    each: bool,
) -> anyhow::Result<Judged> {
    let mut out = Judged::default();
    for pair in pairs {
        let estimator = token_estimate::default_estimator();
        let estimator = &*estimator;
        let log = pair.log(estimator);
        let source = log.source();
        let request = SummaryRequest {
            target_tokens: pair.target,
            conventions,
            ..SummaryRequest::new(&source, estimator)
        };
        let rules = refusing(&pair.answer, &request);
        if each && rules.is_empty() {
            let text: String = pair.answer.chars().take(300).collect();
            println!("junk accepted: {}: {}", pair.id, text.replace('\n', " / "));
        }
        out.add(&rules);
    }
    Ok(out)
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
