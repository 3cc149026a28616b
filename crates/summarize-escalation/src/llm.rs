use async_trait::async_trait;
use memory_model::SeqRange;
use serde::{Deserialize, Serialize};

use crate::prompt::{Clip, Prompt, PromptSet, piece_text};
use crate::{
    Error, ErrorKind, Generate, LeftOut, ModelUsage, Source, Summarizer, SummaryRequest,
    SummarySource, SummaryText, cut_to_tokens,
};

/// How much a model takes in at once, and what to do with a source that is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The longest prompt and answer together, in tokens of the request's estimator.
    pub tokens: u64,
    /// What to do with a source that makes them longer.
    #[serde(default)]
    pub overflow: Overflow,
    /// A source that would take more calls than this is too long.
    #[serde(default = "max_calls")]
    pub max_calls: u32,
}

fn max_calls() -> u32 {
    64
}

/// What to do with a source that is longer than a [`Window`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overflow {
    /// Summarise it part by part, and then the summaries, until one is left. A single message that
    /// is too long is shortened, which its text says. The default: nothing is left out.
    #[default]
    Parts,
    /// Leave out the oldest pieces, a share of what is left at each try (koda's rule). What was
    /// left out is reported, and the summary's first line says so.
    DropOldest {
        /// Percent of the pieces, rounding up; koda's 20.
        percent: u32,
        /// How often; koda's 3.
        tries: u32,
        /// Never fewer pieces than this; koda's 5.
        keep: u32,
    },
    /// Make no summary.
    Fail,
}

impl Overflow {
    /// koda's figures.
    pub const KODA: Self = Self::DropOldest {
        percent: 20,
        tries: 3,
        keep: 5,
    };
}

impl Window {
    /// A window of so many tokens; a longer source is summarised part by part.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            overflow: Overflow::Parts,
            max_calls: max_calls(),
        }
    }

    /// Sets what to do with a source that is longer.
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Sets how many calls a summary may take.
    pub fn with_max_calls(mut self, calls: u32) -> Self {
        self.max_calls = calls;
        self
    }
}

/// A summarizer that asks a model with the prompts of a [`PromptSet`].
#[derive(Debug, Clone)]
pub struct LlmSummarizer<G> {
    id: String,
    provider: Option<String>,
    model: String,
    client: G,
    prompts: PromptSet,
    window: Option<Window>,
}

impl<G: Generate> LlmSummarizer<G> {
    /// A summarizer that asks `model` by way of `client`, with the standard prompts and without a
    /// limit to what it sends.
    ///
    /// Its id is made of the model's name, the id of the prompts, and the window.
    pub fn new(model: impl Into<String>, client: G) -> Self {
        let mut made = Self {
            id: String::new(),
            provider: None,
            model: model.into(),
            client,
            prompts: PromptSet::standard(),
            window: None,
        };
        made.name();
        made
    }

    /// Puts the provider's name before the model's in the id: two providers may have models of the
    /// same name.
    pub fn with_provider(mut self, provider: &str) -> Self {
        self.provider = Some(provider.to_owned());
        self.name();
        self
    }

    /// Sets the prompts.
    pub fn with_prompts(mut self, prompts: PromptSet) -> Self {
        self.prompts = prompts;
        self.name();
        self
    }

    /// Sets how much the model takes in at once.
    pub fn with_window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self.name();
        self
    }

    fn name(&mut self) {
        self.id = format!("{}/{}", self.model, self.prompts.id);
        if let Some(provider) = &self.provider {
            self.id = format!("{provider}:{}", self.id);
        }
        if let Some(window) = self.window {
            self.id.push_str(&format!("/{}", window.tokens));
            self.id.push_str(match window.overflow {
                Overflow::Parts => "",
                Overflow::DropOldest { .. } => "-drop",
                Overflow::Fail => "-fail",
            });
        }
    }

    async fn ask(&self, prompt: &Prompt) -> Result<SummaryText, Error> {
        let mut answer = self.client.complete(prompt).await?;
        answer.text = self.prompts.read(&answer.text);
        Ok(answer)
    }

    fn too_long(&self, request: &SummaryRequest<'_>, window: Window) -> Error {
        let range = request.range().map_or_else(String::new, |r| r.to_string());
        Error::new(
            ErrorKind::TooLong,
            format!(
                "messages {range} are too long for the window of {} tokens of summarizer {}: give \
                 it a larger window or more calls, or let it summarise parts",
                window.tokens, self.id,
            ),
        )
    }

    /// Without the oldest pieces that it takes for the prompt to fit.
    async fn newest(
        &self,
        request: &SummaryRequest<'_>,
        window: Window,
        (percent, tries, keep): (u32, u32, u32),
    ) -> Result<SummaryText, Error> {
        let keep = usize::try_from(keep).unwrap_or(usize::MAX).max(1);
        let percent = usize::try_from(percent.min(100)).unwrap_or(100);
        let mut first = 0;
        for _ in 0..tries {
            let left = request.source.len() - first;
            if left <= keep {
                break;
            }
            first += (left * percent).div_ceil(100).min(left - keep);
            let part = request.with_source(request.source.get(first..).unwrap_or_default());
            let prompt = self.prompts.render(&part);
            if cost(&prompt, request) > window.tokens {
                continue;
            }
            let mut text = self.ask(&prompt).await?;
            let without = request.with_source(request.source.get(..first).unwrap_or_default());
            if let Some(range) = without.range().filter(|_| first > 0) {
                let left_out = LeftOut {
                    range,
                    pieces: first as u64,
                    tokens: without.source_tokens(),
                };
                if !text.text.trim().is_empty() {
                    text.text = format!(
                        "[Not in this summary: messages {range}, {} tokens; expand them.]\n{}",
                        left_out.tokens, text.text
                    );
                }
                text.left_out = Some(left_out);
            }
            return Ok(text);
        }
        Err(self.too_long(request, window))
    }

    /// Part by part, and then the summaries of the parts.
    async fn parts(
        &self,
        request: &SummaryRequest<'_>,
        window: Window,
    ) -> Result<SummaryText, Error> {
        let mut calls = 0;
        let mut usage = None;
        let mut made = self.pass(request, window, &mut calls, &mut usage).await?;
        while made.len() > 1 {
            let pieces: Vec<Source<'_>> = made.iter().map(Part::source).collect();
            let merge = request.with_source(&pieces);
            let prompt = self.prompts.render(&merge);
            if cost(&prompt, request) <= window.tokens {
                let mut text = self.ask(&prompt).await?;
                text.calls = calls + 1;
                text.usage = together(usage, text.usage);
                return Ok(text);
            }
            made = self.pass(&merge, window, &mut calls, &mut usage).await?;
        }
        let mut text = SummaryText::new(made.pop().map_or_else(String::new, |part| part.text));
        text.calls = calls;
        text.usage = usage;
        Ok(text)
    }

    /// Summarises a source part by part, once.
    async fn pass(
        &self,
        request: &SummaryRequest<'_>,
        window: Window,
        calls: &mut u32,
        usage: &mut Option<ModelUsage>,
    ) -> Result<Vec<Part>, Error> {
        let estimator = request.estimator;
        // What a prompt costs besides its pieces; seams may cost a little more.
        let around = cost(&self.prompts.render(&request.with_source(&[])), request) + 64;
        let room = window.tokens.saturating_sub(around);
        let mut groups: Vec<(usize, usize, Clip)> = Vec::new();
        let mut full = room;
        for (n, piece) in request.source.iter().enumerate() {
            let mut clip = self.prompts.clip;
            let mut cost = estimator.text(&piece_text(piece, clip)) + 1;
            let mut chars = usize::try_from(room.saturating_mul(4)).unwrap_or(usize::MAX);
            while cost > room {
                if chars < 40 {
                    return Err(self.too_long(request, window));
                }
                clip = self.prompts.clip.at_most(chars);
                cost = estimator.text(&piece_text(piece, clip)) + 1;
                chars /= 2;
            }
            match groups.last_mut() {
                Some((_, end, kept)) if full + cost <= room && *kept == clip => {
                    *end = n + 1;
                    full += cost;
                }
                _ => {
                    groups.push((n, n + 1, clip));
                    full = cost;
                }
            }
        }
        let total = request.source_tokens().max(1);
        let mut made = Vec::with_capacity(groups.len());
        for (start, end, clip) in groups {
            *calls += 1;
            if *calls >= window.max_calls {
                return Err(self.too_long(request, window));
            }
            let mut part = request.with_source(request.source.get(start..end).unwrap_or_default());
            let wide = u128::from(request.target_tokens) * u128::from(part.source_tokens());
            let share = u64::try_from(wide / u128::from(total)).unwrap_or(u64::MAX);
            part.target_tokens = share.max(16).min(request.target_tokens);
            let answer = self.ask(&self.prompts.render_clipped(&part, clip)).await?;
            *usage = together(*usage, answer.usage);
            let text = answer.text;
            let range = part.range();
            // Twice its share at most, so that the parts together are shorter than their source.
            let most = part.target_tokens.saturating_mul(2).max(1);
            let (Some(text), Some(range)) = (cut_to_tokens(&text, most, estimator), range) else {
                let cause = format!(
                    "it returned nothing for part {} of a long source",
                    made.len() + 1
                );
                return Err(Error::provider(&self.id, cause));
            };
            let (earliest_at, latest_at) = part.times().unwrap_or_default();
            made.push(Part {
                range,
                depth: part.depth(),
                tokens: estimator.text(&text),
                text,
                earliest_at,
                latest_at,
            });
        }
        Ok(made)
    }
}

/// What two calls cost together, as far as it is known.
fn together(a: Option<ModelUsage>, b: Option<ModelUsage>) -> Option<ModelUsage> {
    match (a, b) {
        (Some(a), Some(b)) => Some(ModelUsage {
            input: a.input.saturating_add(b.input),
            output: a.output.saturating_add(b.output),
        }),
        (one, other) => one.or(other),
    }
}

/// What was made of a part of a source.
struct Part {
    range: SeqRange,
    depth: u32,
    text: String,
    tokens: u64,
    earliest_at: memory_model::Timestamp,
    latest_at: memory_model::Timestamp,
}

impl Part {
    fn source(&self) -> Source<'_> {
        Source::Summary(SummarySource {
            id: "",
            range: self.range,
            depth: self.depth,
            text: &self.text,
            tokens: self.tokens,
            earliest_at: self.earliest_at,
            latest_at: self.latest_at,
        })
    }
}

/// What a prompt and its answer cost at most.
fn cost(prompt: &Prompt, request: &SummaryRequest<'_>) -> u64 {
    let count = |text: &str| request.estimator.text(text);
    count(&prompt.system)
        .saturating_add(count(&prompt.user))
        .saturating_add(prompt.max_tokens)
}

#[async_trait]
impl<G: Generate> Summarizer for LlmSummarizer<G> {
    fn id(&self) -> &str {
        &self.id
    }

    fn model(&self) -> Option<&str> {
        Some(&self.model)
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
        let prompt = self.prompts.render(request);
        let Some(window) = self.window else {
            return self.ask(&prompt).await;
        };
        if cost(&prompt, request) <= window.tokens {
            return self.ask(&prompt).await;
        }
        match window.overflow {
            Overflow::Parts => self.parts(request, window).await,
            Overflow::DropOldest {
                percent,
                tries,
                keep,
            } => self.newest(request, window, (percent, tries, keep)).await,
            Overflow::Fail => Err(self.too_long(request, window)),
        }
    }
}
