//! A summarizer that asks a model.

mod parts;
mod window;

use async_trait::async_trait;

use crate::call::Unguarded;
use crate::prompt::{Prompt, PromptSet};
use crate::{
    CallGuard, Error, Generate, LeftOut, ModelCall, ModelUsage, Summarizer, SummaryRequest,
    SummaryText,
};

pub use window::{Overflow, Window};

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

/// What the calls for one summary came to.
#[derive(Debug, Default)]
struct Tally {
    calls: u32,
    usage: Option<ModelUsage>,
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

    /// Makes one call by way of the guard.
    async fn ask(
        &self,
        prompt: &Prompt,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
        tally: &mut Tally,
    ) -> Result<SummaryText, Error> {
        let tokens = (window::input(prompt, request), request.target_tokens);
        let call = ModelCall::new(tokens, request.estimator, || self.client.complete(prompt));
        match guard.call(call).await {
            Ok(mut answer) => {
                tally.calls = tally.calls.saturating_add(answer.calls);
                tally.usage = together(tally.usage, answer.usage);
                answer.text = self.prompts.read(&answer.text);
                Ok(answer)
            }
            Err(error) => {
                tally.calls = tally.calls.saturating_add(error.calls());
                Err(error)
            }
        }
    }

    async fn write(
        &self,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
        tally: &mut Tally,
    ) -> Result<SummaryText, Error> {
        let prompt = self.prompts.render(request);
        let Some(window) = self.window else {
            return self.ask(&prompt, request, guard, tally).await;
        };
        if let Some(prompt) = window.fit(prompt, request) {
            return self.ask(&prompt, request, guard, tally).await;
        }
        match window.overflow {
            Overflow::Parts => self.parts(request, window, guard, tally).await,
            Overflow::DropOldest {
                percent,
                tries,
                keep,
            } => {
                let share = (percent, tries, keep);
                self.newest(request, window, share, guard, tally).await
            }
            Overflow::Fail => Err(self.too_long(request, window)),
        }
    }

    /// Without the oldest pieces that it takes for the prompt to fit.
    async fn newest(
        &self,
        request: &SummaryRequest<'_>,
        window: Window,
        (percent, tries, keep): (u32, u32, u32),
        guard: &dyn CallGuard,
        tally: &mut Tally,
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
            let mut part = request.with_source(request.source.get(first..).unwrap_or_default());
            part.target_tokens = part.target_tokens.min(part.source_tokens());
            let Some(prompt) = window.fit(self.prompts.render(&part), &part) else {
                continue;
            };
            let mut text = self.ask(&prompt, &part, guard, tally).await?;
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

#[async_trait]
impl<G: Generate> Summarizer for LlmSummarizer<G> {
    fn id(&self) -> &str {
        &self.id
    }

    fn model(&self) -> Option<&str> {
        Some(&self.model)
    }

    fn calls_needed(&self, request: &SummaryRequest<'_>) -> u64 {
        let Some(window) = self.window else { return 1 };
        let fits = window.fit(self.prompts.render(request), request).is_some();
        match window.overflow {
            Overflow::Parts if !fits => self.parts_needed(request, window),
            _ => 1,
        }
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
        self.summarize_guarded(request, &Unguarded).await
    }

    async fn summarize_guarded(
        &self,
        request: &SummaryRequest<'_>,
        guard: &dyn CallGuard,
    ) -> Result<SummaryText, Error> {
        let mut tally = Tally::default();
        match self.write(request, guard, &mut tally).await {
            Ok(mut text) => {
                text.calls = tally.calls;
                text.usage = tally.usage;
                Ok(text)
            }
            Err(error) => Err(error.with_calls(tally.calls)),
        }
    }
}
