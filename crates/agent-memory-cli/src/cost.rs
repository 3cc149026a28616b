//! Cost of model calls in tokens, time and money, before a run and after it.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_memory::Memory;
use agent_memory::models::{ModelUsage, Spent};
use agent_memory::tokens::models::{self, ModelInfo, TokenPrices};
use serde::Serialize;

use crate::app::App;
use crate::output::{count, number};

/// Number of billionths in one.
const BILLION: f64 = 1e9;

/// Cost of the calls of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    #[serde(flatten)]
    total: Tokens,
    /// Money for the tokens, in US dollars; `None` if the prices of a model are not known.
    usd: Option<f64>,
    /// Money that the provider's cache saved, in US dollars; `None` if the prices of a model are not known.
    saved_usd: Option<f64>,
    models: Vec<ModelCost>,
}

/// Numbers of calls and tokens.
#[derive(Debug, Clone, Copy, Serialize)]
struct Tokens {
    /// Number of calls. Each retry counts as one.
    calls: u64,
    input: u64,
    /// Tokens of `input` that the provider read from its cache.
    cached_input: u64,
    /// Tokens of `input` that the provider wrote to its cache.
    cache_write: u64,
    output: u64,
    /// Number of calls of which tokens are estimates, because the server did not count them.
    estimated_calls: u64,
    /// Number of calls without an answer, whose tokens are not known.
    unanswered_calls: u64,
    /// Duration of all calls together, in milliseconds.
    call_ms: u64,
}

impl From<Spent> for Tokens {
    fn from(spent: Spent) -> Self {
        let ModelUsage {
            input,
            output,
            cached_input,
            cache_write,
        } = spent.usage;
        Self {
            calls: spent.calls,
            input,
            cached_input,
            cache_write,
            output,
            estimated_calls: spent.estimated_calls,
            unanswered_calls: spent.unanswered_calls,
            call_ms: spent.millis,
        }
    }
}

/// Cost of the calls of one model.
#[derive(Debug, Serialize)]
struct ModelCost {
    model: String,
    #[serde(flatten)]
    tokens: Tokens,
    usd: Option<f64>,
    saved_usd: Option<f64>,
    /// Prices by which the money is counted; `None` if they are not known.
    prices: Option<Prices>,
    /// Reason for which the money is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

/// Prices of a million tokens, in US dollars.
#[derive(Debug, Serialize)]
struct Prices {
    input: f64,
    cached_input: f64,
    cache_write: f64,
    output: f64,
    /// Day on which the prices were compared with their source.
    as_of: String,
    source: String,
}

impl Prices {
    fn new(prices: &TokenPrices, model: &ModelInfo) -> Self {
        let dollars = |price: u64| price as f64 / 1_000.0;
        Self {
            input: dollars(prices.input),
            cached_input: dollars(prices.cached_input.unwrap_or(prices.input)),
            cache_write: dollars(prices.cache_write.unwrap_or(prices.input)),
            output: dollars(prices.output),
            as_of: model.as_of.to_string(),
            source: prices.source.to_owned(),
        }
    }
}

impl ModelCost {
    fn new(name: String, spent: Spent) -> Self {
        let row = models::get(&name).ok();
        let priced = row.and_then(|row| Some((row, row.prices.as_ref()?)));
        let fault = match priced {
            None => Some(format!("the table of models has no prices of {name}")),
            Some((_, prices)) => prices
                .max_prompt
                .filter(|most| spent.longest_prompt > *most)
                .map(|most| {
                    let most = count(most, "token", "tokens");
                    format!("prompts of {name} above {most} have other prices")
                }),
        };
        let money = priced.filter(|_| fault.is_none()).map(|(_, prices)| {
            let cost = spent.usage.cost(prices);
            let uncached = ModelUsage {
                cached_input: 0,
                ..spent.usage
            };
            (cost, uncached.cost(prices).saturating_sub(cost))
        });
        let dollars = |billionths: u64| billionths as f64 / BILLION;
        Self {
            model: name,
            tokens: spent.into(),
            usd: money.map(|(cost, _)| dollars(cost)),
            saved_usd: money.map(|(_, saved)| dollars(saved)),
            prices: priced.map(|(row, prices)| Prices::new(prices, row)),
            unknown: fault,
        }
    }
}

impl Cost {
    /// Returns the spending of a memory in this process.
    pub(crate) fn of(memory: &Memory) -> Self {
        Self::new(memory.spent_by_model())
    }

    fn new(spent: BTreeMap<String, Spent>) -> Self {
        let asked = spent.into_iter().filter(|(_, spent)| spent.calls > 0);
        let asked: Vec<_> = asked.collect();
        let all = asked.iter().map(|(_, spent)| *spent);
        let total = all.fold(Spent::default(), Spent::saturating_add).into();
        let models = asked.into_iter();
        let models: Vec<_> = models.map(|(n, spent)| ModelCost::new(n, spent)).collect();
        let sum = |of: fn(&ModelCost) -> Option<f64>| models.iter().map(of).sum();
        Self {
            total,
            usd: sum(|model| model.usd),
            saved_usd: sum(|model| model.saved_usd),
            models,
        }
    }

    /// Prints the spending of a run, if a model was called.
    pub(crate) fn print_spent(&self, app: &mut App) -> anyhow::Result<()> {
        for line in self.lines(true) {
            app.out.line(&line)?;
        }
        Ok(())
    }

    /// Prints the estimated spending of a run.
    pub(crate) fn print_estimate(&self, app: &mut App) -> anyhow::Result<()> {
        if self.models.is_empty() {
            return Ok(app.out.line("No model would be called.")?);
        }
        for line in self.lines(false) {
            app.out.line(&line)?;
        }
        Ok(())
    }

    /// Returns one line for each model, and one for each source of prices.
    fn lines(&self, spent: bool) -> Vec<String> {
        let mut lines: Vec<_> = self.models.iter().map(|model| model.line(spent)).collect();
        let priced = self.models.iter().filter(|model| model.usd.is_some());
        let priced = priced.filter_map(|model| model.prices.as_ref());
        let mut sources: Vec<_> = priced
            .map(|prices| format!("  list prices of {}, {}", prices.source, prices.as_of))
            .collect();
        sources.dedup();
        lines.extend(sources);
        lines
    }
}

impl ModelCost {
    fn line(&self, spent: bool) -> String {
        let Tokens {
            calls,
            input,
            cached_input,
            output,
            estimated_calls,
            unanswered_calls,
            call_ms,
            ..
        } = self.tokens;
        let calls = count(calls, "call", "calls");
        let (input, output) = (number(input), number(output));
        let money = match (self.usd, &self.unknown) {
            (Some(usd), _) => dollars(usd),
            (None, Some(why)) => format!("money not known: {why}"),
            (None, None) => "money not known".to_owned(),
        };
        if !spent {
            return format!(
                "A run would make about {calls} of {}: about {input} tokens in and, with answers of the desired length, \
                 {output} out; {money}",
                self.model
            );
        }
        let mut line = format!("{calls} of {} in {}: ", self.model, seconds(call_ms));
        line.push_str(&format!("{input} tokens in"));
        if cached_input > 0 {
            line.push_str(&format!(" ({} from the cache)", number(cached_input)));
        }
        line.push_str(&format!(" and {output} out; {money}"));
        if let Some(saved) = self.saved_usd.filter(|saved| *saved > 0.0) {
            line.push_str(&format!(", the cache saved {}", dollars(saved)));
        }
        if estimated_calls > 0 {
            let calls = count(estimated_calls, "call", "calls");
            line.push_str(&format!("; tokens of {calls} are estimates"));
        }
        if unanswered_calls > 0 {
            let calls = count(unanswered_calls, "call", "calls");
            line.push_str(&format!(
                "; {calls} had no answer and are not counted in it"
            ));
        }
        line
    }
}

fn seconds(millis: u64) -> String {
    let duration = Duration::from_millis(millis);
    match millis {
        0..10_000 => format!("{:.1} s", duration.as_secs_f64()),
        _ => format!("{} s", number(duration.as_secs())),
    }
}

/// Returns an amount of money with at least two digits that count.
fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        small if small < 0.0001 => "less than $0.0001".to_owned(),
        cents if cents < 1.0 => format!("${cents:.4}"),
        amount => format!("${amount:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(spent: &[(&str, Spent)]) -> Cost {
        let spent = spent
            .iter()
            .map(|(name, spent)| ((*name).to_owned(), *spent));
        Cost::new(spent.collect())
    }

    fn spent(input: u64, cached_input: u64, output: u64) -> Spent {
        Spent {
            calls: 3,
            usage: ModelUsage {
                cached_input,
                ..ModelUsage::new(input, output)
            },
            longest_prompt: input,
            millis: 4_210,
            ..Spent::default()
        }
    }

    #[test]
    fn money_follows_the_table_of_models() {
        // 0.25, 0.025 and 2 dollars for a million tokens.
        let cost = cost(&[("gpt-5-mini", spent(1_000_000, 400_000, 100_000))]);
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        assert!(near(cost.usd, 0.15 + 0.01 + 0.2), "{cost:?}");
        assert!(near(cost.saved_usd, 0.4 * (0.25 - 0.025)), "{cost:?}");
        assert_eq!(
            cost.lines(true),
            [
                "3 calls of gpt-5-mini in 4.2 s: 1,000,000 tokens in (400,000 from the cache) and 100,000 out; \
                 $0.3600, the cache saved $0.0900",
                "  list prices of https://developers.openai.com/api/docs/pricing, 2026-11-23",
            ]
        );
    }

    #[test]
    fn without_prices_the_tokens_are_told_alone() {
        let long = Spent {
            unanswered_calls: 2,
            estimated_calls: 1,
            ..spent(300_000, 0, 9)
        };
        let cost = cost(&[("gemini-2.5-pro", long), ("qwen3:8b", spent(900, 0, 90))]);
        assert_eq!((cost.usd, cost.saved_usd), (None, None));
        assert_eq!((cost.total.input, cost.total.calls), (300_900, 6));
        assert_eq!(
            cost.lines(true),
            [
                "3 calls of gemini-2.5-pro in 4.2 s: 300,000 tokens in and 9 out; money not known: prompts of \
                 gemini-2.5-pro above 200,000 tokens have other prices; tokens of 1 call are estimates; 2 calls had \
                 no answer and are not counted in it",
                "3 calls of qwen3:8b in 4.2 s: 900 tokens in and 90 out; money not known: the table of models has no \
                 prices of qwen3:8b",
            ]
        );
        assert_eq!(
            cost.lines(false)[1],
            "A run would make about 3 calls of qwen3:8b: about 900 tokens in and, with answers of the desired \
             length, 90 out; money not known: the table \
             of models has no prices of qwen3:8b"
        );
    }

    #[test]
    fn amounts_have_digits_that_count() {
        for (amount, text) in [
            (0.0, "$0"),
            (0.000_01, "less than $0.0001"),
            (0.004_25, "$0.0043"),
            (0.5, "$0.5000"),
            (12.345, "$12.35"),
        ] {
            assert_eq!(dollars(amount), text);
        }
    }
}
