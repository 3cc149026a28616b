//! Contexts as requests of providers, within their limits.

use memory_model::Message;
use provider_shapes::Provider;

use crate::context::{Context, MessageOrigin};
use crate::degrade::pointer;

impl Context {
    /// Returns the messages within the provider's limits on pictures, documents and bytes. Those of the user's latest
    /// request go last.
    fn within(&self, provider: Provider) -> Vec<Message> {
        let requested = &self.receipt.requested;
        let is_requested = |at: usize| {
            let source = self.messages.get(at).map(|message| &message.source);
            let (first, last) = match source {
                Some(
                    MessageOrigin::Message { first, last }
                    | MessageOrigin::Trimmed { first, last }
                    | MessageOrigin::Quoted { first, last },
                ) => (*first, *last),
                _ => return false,
            };
            requested.iter().any(|seq| (first..=last).contains(seq))
        };
        let known = provider_shapes::Known {
            is_requested: (!requested.is_empty()).then_some(&is_requested),
            pointer: &|at| self.messages.get(at).map(pointer),
        };
        let messages = self.to_messages();
        let limits = provider.limits(None);
        provider_shapes::within_known(&messages, limits, &known).into_owned()
    }

    /// Returns the value of `messages` for an OpenAI chat completion.
    pub fn to_openai(&self) -> Vec<serde_json::Value> {
        provider_shapes::openai::write(&self.within(Provider::OpenAi))
    }

    /// Returns the values of `instructions` and `input` for an OpenAI response.
    pub fn to_responses(&self) -> (Option<String>, Vec<serde_json::Value>) {
        provider_shapes::responses::write(&self.within(Provider::Responses))
    }

    /// Returns the values of `system` and `messages` for an Anthropic request.
    pub fn to_anthropic(&self) -> (Option<serde_json::Value>, Vec<serde_json::Value>) {
        provider_shapes::anthropic::write(&self.within(Provider::Anthropic))
    }

    /// Returns the values of `systemInstruction` and `contents` for a Gemini request.
    pub fn to_gemini(&self) -> (Option<serde_json::Value>, Vec<serde_json::Value>) {
        provider_shapes::gemini::write(&self.within(Provider::Gemini))
    }

    /// Returns the fields of a provider's request that contain the messages, by name.
    pub fn to_request(&self, provider: Provider) -> serde_json::Map<String, serde_json::Value> {
        provider.request(&self.within(provider))
    }
}
