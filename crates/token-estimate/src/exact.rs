use std::fmt;

use tiktoken::CoreBpe;

use crate::{EstimatorId, MessageView, TokenEstimator, overhead};

/// Counts tokens exactly, with OpenAI's public tokenizers. Special tokens are read as plain text. Requires the feature
/// `exact`.
///
/// Messages have the same fixed costs as with [`Calibrated`](crate::Calibrated).
///
/// The first count in a process unpacks the vocabulary, which takes a tenth of a second and some tens of megabytes.
/// Unlike the other estimators, this one allocates memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Exact {
    /// The tokenizer `o200k_base`, for GPT-4o and later models.
    O200k,
    /// The tokenizer `cl100k_base`, for GPT-3.5 and GPT-4.
    Cl100k,
}

impl Exact {
    /// All tokenizers that can count exactly.
    pub const ALL: [Self; 2] = [Self::O200k, Self::Cl100k];

    /// Returns the estimator's name, such as `o200k`: its id without the version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
        }
    }

    fn encoding(self) -> Option<&'static CoreBpe> {
        tiktoken::get_encoding(match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        })
    }
}

/// Length of the longest token of both vocabularies, in bytes.
const LONGEST_TOKEN: usize = 128;

/// Minimum length of a chunk, in bytes.
const CHUNK: usize = 4_096;

/// Splits a text into chunks, each cut before white space that follows another character. No token spans a cut, because
/// neither encoding joins these two characters, except at the ends of lines. Chunks keep the time of counting linear in
/// the length of the text, because a run of white space may be read up to the end of its chunk.
struct Chunks<'a>(&'a str);

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        if text.is_empty() {
            return None;
        }
        let mut before = None;
        let cut = text
            .char_indices()
            .skip_while(|(at, _)| *at + 8 < CHUNK)
            .find(|&(_, c)| {
                let cut = c.is_whitespace()
                    && !matches!(c, '\r' | '\n')
                    && before.is_some_and(|b: char| !b.is_whitespace());
                before = Some(c);
                cut
            })
            .map_or(text.len(), |(at, _)| at);
        let (chunk, rest) = text.split_at(cut);
        self.0 = rest;
        Some(chunk)
    }
}

impl TokenEstimator for Exact {
    fn id(&self) -> EstimatorId {
        EstimatorId::known(match self {
            Self::O200k => "o200k@2",
            Self::Cl100k => "cl100k@2",
        })
    }

    fn text(&self, text: &str) -> u64 {
        self.fits(text, u64::MAX).unwrap_or(u64::MAX)
    }

    fn fits(&self, text: &str, limit: u64) -> Option<u64> {
        let encoding = self.encoding();
        let mut sum = 0_u64;
        for chunk in Chunks(text) {
            if (chunk.len() / LONGEST_TOKEN) as u64 > limit - sum {
                return None;
            }
            // Both encodings are compiled in, so this never falls back. The number of bytes would be an upper bound.
            sum += encoding.map_or(chunk.len(), |encoding| encoding.count(chunk)) as u64;
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        let mut sum = 0_u64;
        let fixed = overhead::count(message, &mut |text| {
            sum = sum.saturating_add(self.text(text));
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
    fn a_text_in_chunks_has_the_tokens_of_the_whole() {
        let units = [
            "word ",
            "日本\u{3000}",
            " \n",
            "x\r\n",
            "\t.\u{a0}",
            "/\n/",
            "\u{0}\u{85}",
            "it's ",
            "1234 ",
            "  ",
        ];
        for first in units {
            for second in units {
                let text = format!("{first}{second}{second}");
                let text = text.repeat(9_000 / text.len());
                for (exact, name) in [(Exact::O200k, "o200k_base"), (Exact::Cl100k, "cl100k_base")]
                {
                    let whole = tiktoken::get_encoding(name).unwrap().count(&text);
                    assert_eq!(
                        exact.text(&text),
                        whole as u64,
                        "{exact}: {first:?} {second:?}"
                    );
                }
            }
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
