use std::fmt;

use bpe_openai::Tokenizer;

use crate::{EstimatorId, MessageView, TokenEstimator, overhead};

/// Counts tokens exactly, with OpenAI's public tokenizers; special tokens are read as plain text. Feature `exact`.
///
/// Messages have the fixed costs of [`Calibrated`](crate::Calibrated).
///
/// The first count of a process reads the vocabulary: some tens of milliseconds and megabytes. Unlike the other
/// estimators it allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Exact {
    /// `o200k_base`: GPT-4o and later.
    O200k,
    /// `cl100k_base`: GPT-3.5, GPT-4.
    Cl100k,
}

impl Exact {
    /// Every tokenizer.
    pub const ALL: [Self; 2] = [Self::O200k, Self::Cl100k];

    /// The name, as in `o200k`: the id without its version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }

    fn tokenizer(self) -> &'static Tokenizer {
        match self {
            Self::O200k => bpe_openai::o200k_base(),
            Self::Cl100k => bpe_openai::cl100k_base(),
        }
    }
}

impl TokenEstimator for Exact {
    fn id(&self) -> EstimatorId {
        EstimatorId::known(match self {
            Self::O200k => "o200k@1",
            Self::Cl100k => "cl100k@1",
        })
    }

    fn text(&self, text: &str) -> u64 {
        self.tokenizer().count(text) as u64
    }

    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        let tokenizer = self.tokenizer();
        let mut sum = 0_u64;
        for piece in tokenizer.split(text) {
            // A piece can be as long as the text (a line of letters): count no further than the limit in it either.
            let left = usize::try_from(limit - sum).unwrap_or(usize::MAX);
            let tokens = tokenizer.bpe.count_till_limit(piece.as_bytes(), left)?;
            sum += tokens as u64;
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        let mut sum = 0_u64;
        let fixed = overhead::count(message, &mut |text| {
            sum = sum.saturating_add(self.text(text))
        });
        sum.saturating_add(fixed)
    }

    fn request_overhead(&self) -> u64 {
        overhead::REQUEST
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MessageParts, PartView, Role};

    #[test]
    fn literal_counts() {
        for (text, o200k, cl100k) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("tiktoken is great!", 6, 6),
            ("<|endoftext|>", 7, 7),
        ] {
            assert_eq!(Exact::O200k.text(text), o200k, "{text}");
            assert_eq!(Exact::Cl100k.text(text), cl100k, "{text}");
        }
    }

    #[test]
    fn fits_returns_the_count_within_the_limit() {
        for text in [
            "",
            "a",
            "hello world, how are you?",
            &"x".repeat(4_000),
            &"日本語".repeat(50),
        ] {
            for exact in Exact::ALL {
                let count = exact.text(text);
                for limit in [0, 1, count.saturating_sub(1), count, count + 1, u64::MAX] {
                    let expected = (count <= limit).then_some(count);
                    assert_eq!(
                        exact.fits(text, limit),
                        expected,
                        "{exact} of {text:.20}, limit {limit}"
                    );
                }
            }
        }
    }

    #[test]
    fn messages_have_fixed_costs() {
        let call = [
            PartView::Text("hello world"),
            PartView::ToolCall {
                id: "c",
                name: "read",
                arguments: "{}",
            },
        ];
        assert_eq!(
            Exact::O200k.message(&MessageParts::new(Role::Assistant, &call)),
            4 + 2 + 4 + 1 + 1
        );
        let image = [PartView::ToolResult {
            call_id: "c",
            name: Some("x"),
            content: &[PartView::Image { base64_len: 9 }],
            is_error: false,
        }];
        assert_eq!(
            Exact::O200k.message(&MessageParts::new(Role::Tool, &image)),
            4 + 4 + 1_600
        );
    }
}
