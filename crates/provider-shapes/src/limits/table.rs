//! The published limits of each provider.

use token_estimate::models::ModelInfo;

use crate::Provider;

/// Limits of a provider on a request. A request beyond one of them is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Provider with these limits.
    pub provider: Provider,
    /// Smallest context window of the models that have these limits, in tokens.
    pub window: u64,
    /// Largest number of pictures. If [`pages_are_pictures`](Self::pages_are_pictures), pages of documents count too.
    pub pictures: u64,
    /// Largest side of a picture, in pixels.
    pub side: Option<u32>,
    /// Number of pictures above which the side of every picture has a smaller limit, and this limit in pixels.
    pub many: Option<(u64, u32)>,
    /// Largest picture, in characters of Base64.
    pub picture_bytes: u64,
    /// Largest number of pages of all documents together.
    pub pages: u64,
    /// Whether a page of a document counts as a picture.
    pub pages_are_pictures: bool,
    /// Largest request, in bytes of JSON.
    pub bytes: u64,
    /// Day on which the row was last compared with its source.
    pub as_of: &'static str,
    /// Address of the provider's page.
    pub source: &'static str,
}

pub(super) const AS_OF: &str = "2026-11-28";
const MB: u64 = 1_000_000;
/// No published limit.
const ANY: u64 = u64::MAX;

/// Limits of the models of Anthropic with a window of 200,000 tokens. The limit of a picture is the one of the error
/// «image exceeds 5 MB maximum», which counts the characters of Base64; the page on vision and the servers of other hosts
/// differ, and none is lower. Pages and pictures are added up by the error «too many images and documents».
const CLAUDE: RequestLimits = RequestLimits {
    provider: Provider::Anthropic,
    window: 0,
    pictures: 100,
    side: Some(8_000),
    many: Some((20, 2_000)),
    picture_bytes: 5_242_880,
    pages: 100,
    pages_are_pictures: true,
    bytes: 32 * MB,
    as_of: AS_OF,
    source: "https://platform.claude.com/docs/en/build-with-claude/vision, …/pdf-support",
};

/// Limits of OpenAI. Of two published values, it is the smaller one: later pages name 1,500 pictures and 512 MB.
const GPT: RequestLimits = RequestLimits {
    provider: Provider::OpenAi,
    window: 0,
    pictures: 500,
    side: None,
    many: None,
    picture_bytes: 20 * MB,
    pages: ANY,
    pages_are_pictures: false,
    bytes: 50 * MB,
    as_of: AS_OF,
    source: "https://platform.openai.com/docs/guides/images-vision, …/guides/pdf-files",
};

/// The limits by provider and context window. The first row of a provider has the strictest limits.
pub const LIMITS: [RequestLimits; 5] = [
    CLAUDE,
    RequestLimits {
        window: 200_001,
        pictures: 600,
        pages: 600,
        ..CLAUDE
    },
    GPT,
    RequestLimits {
        provider: Provider::Responses,
        ..GPT
    },
    RequestLimits {
        provider: Provider::Gemini,
        window: 0,
        pictures: 3_600,
        side: None,
        many: None,
        picture_bytes: 20 * MB,
        pages: 1_000,
        pages_are_pictures: false,
        bytes: 20 * MB,
        as_of: AS_OF,
        source: "https://ai.google.dev/gemini-api/docs/image-understanding, …/document-processing",
    },
];

/// Bytes of a request that are left for its fields without messages, such as the definitions of tools.
pub(super) const OTHER_FIELDS: u64 = MB;

impl RequestLimits {
    /// Returns the bytes of a request that its messages may take. The rest is left for other fields, such as the
    /// definitions of tools.
    pub const fn message_bytes(&self) -> u64 {
        self.bytes.saturating_sub(OTHER_FIELDS)
    }
}

impl Provider {
    /// Returns the limits on a request to a model. Without a model, they are the strictest limits of the provider.
    pub fn limits(self, model: Option<&ModelInfo>) -> &'static RequestLimits {
        let window = model.map_or(0, |model| model.context_window);
        let mut rows = LIMITS.iter().filter(|row| row.provider == self);
        let found = rows.rfind(|row| row.window <= window);
        found.unwrap_or(&CLAUDE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        for provider in Provider::ALL {
            let rows: Vec<_> = LIMITS
                .iter()
                .filter(|row| row.provider == provider)
                .collect();
            assert_eq!(rows[0].window, 0, "{provider:?}");
            assert!(rows.is_sorted_by_key(|row| (row.window, row.pictures, row.pages)));
            assert_eq!(provider.limits(None), rows[0]);
        }
    }
}
