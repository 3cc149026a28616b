use std::fmt;

use crate::media;
use crate::{EstimatorId, MessageView, PartView, Role, TokenEstimator};

/// Estimates tokens as the length of the text divided by a fixed ratio, plus fixed costs. Each variant is the formula
/// of an existing agent. The README compares the formulas.
///
/// Unless a variant says otherwise, the lengths of all parts of a message are added and rounded once. Counted are all
/// texts, the names and arguments of calls, and the content of results. Ids and the tool names of results are not
/// counted. Base64 is never counted as text, and a file with its data costs by its pages or its size, as with
/// [`Calibrated`](crate::Calibrated). A variant's [`name`](Self::name) in settings is the name of the agent that uses the
/// formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum HeuristicEstimator {
    /// The formula `anna`: ceil(bytes / 4). Reasoning costs 0.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "anna"))]
    Bytes4,
    /// The formula `anna-handoff`: floor(bytes / 4). Reasoning is counted too.
    #[cfg_attr(feature = "serde", serde(rename = "anna-handoff"))]
    Bytes4Floor,
    /// The formula `operator-use`: floor(code points / 4), but at least 1. Reasoning is counted too. An image costs as
    /// much as 4,800 characters.
    #[cfg_attr(feature = "serde", serde(rename = "operator-use"))]
    Chars4,
    /// The formula `pi`: ceil(UTF-16 units / 4). Reasoning is counted too. An image costs as much as 4,800 characters,
    /// but 0 in a message of the user.
    #[cfg_attr(feature = "serde", serde(rename = "pi"))]
    Utf16Units4,
    /// The formula `koda`: floor(bytes / 3.5), plus 10 tokens for each message and 100 for a request. Reasoning costs
    /// 0.
    #[cfg_attr(feature = "serde", serde(rename = "koda"))]
    Bytes3_5,
    /// The formula `phi-core`: ceil(bytes / 4) for each part. Reasoning is counted too. Added are 4 tokens for a
    /// message and for an unknown part, 8 for a call, and 8 plus the cost of the tool's name for a result. A tool's
    /// message with results adds no tokens for the message. An image costs one token for each 750 decoded bytes, from
    /// 85 to 16,000 tokens.
    #[cfg_attr(feature = "serde", serde(rename = "phi-core"))]
    Bytes4PerPart,
}

/// Unit in which a formula measures the length of a text.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Chars,
    Utf16Units,
}

/// The constants of a formula.
struct Formula {
    id: &'static str,
    unit: Unit,
    /// Conversion of units to tokens: `ratio.0` tokens for `ratio.1` units.
    ratio: (u64, u64),
    round_up: bool,
    /// Minimum cost of a text, in tokens.
    least: u64,
    counts_reasoning: bool,
    /// Whether an image costs [`IMAGE_CHARS`] units instead of [`IMAGE_TOKENS`] tokens.
    image_as_chars: bool,
    per_message: u64,
    per_request: u64,
}

const CEIL_BYTES_4: Formula = Formula {
    id: "anna@2",
    unit: Unit::Bytes,
    ratio: (1, 4),
    round_up: true,
    least: 0,
    counts_reasoning: false,
    image_as_chars: false,
    per_message: 0,
    per_request: 0,
};

/// The constants of each formula, in the order of [`HeuristicEstimator::ALL`].
const FORMULAS: [Formula; 6] = [
    CEIL_BYTES_4,
    Formula {
        id: "anna-handoff@2",
        round_up: false,
        counts_reasoning: true,
        ..CEIL_BYTES_4
    },
    Formula {
        id: "operator-use@2",
        unit: Unit::Chars,
        round_up: false,
        least: 1,
        counts_reasoning: true,
        image_as_chars: true,
        ..CEIL_BYTES_4
    },
    Formula {
        id: "pi@2",
        unit: Unit::Utf16Units,
        counts_reasoning: true,
        image_as_chars: true,
        ..CEIL_BYTES_4
    },
    Formula {
        id: "koda@2",
        ratio: (2, 7),
        round_up: false,
        per_message: 10,
        per_request: 100,
        ..CEIL_BYTES_4
    },
    Formula {
        id: "phi-core@2",
        counts_reasoning: true,
        ..CEIL_BYTES_4
    },
];

/// Cost of an image in characters, for the formulas that measure images in characters.
const IMAGE_CHARS: u64 = 4_800;
/// Cost of an image in tokens, for the formulas that define no cost of images.
const IMAGE_TOKENS: u64 = 1_200;
/// Constants of [`HeuristicEstimator::Bytes4PerPart`], in tokens: for a message or unknown part, for a call or result,
/// and the minimum and maximum for an image.
const PER_PART_MESSAGE: u64 = 4;
const PER_PART_TOOL: u64 = 8;
const PER_PART_IMAGE: (u64, u64) = (85, 16_000);
/// Number of decoded bytes of an image that cost one token.
const IMAGE_BYTES_PER_TOKEN: u64 = 750;

impl HeuristicEstimator {
    /// All heuristic estimators, the default one first.
    pub const ALL: [Self; 6] = [
        Self::Bytes4,
        Self::Bytes4Floor,
        Self::Chars4,
        Self::Utf16Units4,
        Self::Bytes3_5,
        Self::Bytes4PerPart,
    ];

    /// Returns the estimator's name in settings, such as `anna`: its id without the version.
    pub fn name(self) -> &'static str {
        let id = self.formula().id;
        id.split_once('@').map_or(id, |(name, _)| name)
    }

    const fn formula(self) -> &'static Formula {
        &FORMULAS[self as usize]
    }

    /// Returns the length of a text in the unit of the formula.
    fn units(self, text: &str) -> u64 {
        let length = match self.formula().unit {
            Unit::Bytes => text.len(),
            Unit::Chars => text.chars().count(),
            // A character has two UTF-16 units if its UTF-8 form has four bytes, and one unit otherwise.
            Unit::Utf16Units => {
                text.chars().count() + text.bytes().filter(|byte| *byte >= 0xF0).count()
            }
        };
        length as u64
    }

    /// Converts units to tokens, without overflow.
    const fn tokens(self, units: u64) -> u64 {
        let formula = self.formula();
        let (tokens, per) = formula.ratio;
        let rest = units % per * tokens;
        let rest = if formula.round_up {
            rest.div_ceil(per)
        } else {
            rest / per
        };
        let sum = units / per * tokens + rest;
        if sum < formula.least {
            formula.least
        } else {
            sum
        }
    }

    /// Returns the cost of a message: adds the units of all parts and rounds once.
    fn whole_message(self, message: &dyn MessageView) -> u64 {
        let formula = self.formula();
        let (mut units, mut tokens) = (0, formula.per_message);
        let role = message.role();
        message.parts(&mut |part| {
            part.each(&mut |part, in_result| match part {
                PartView::Reasoning(_) if !formula.counts_reasoning => {}
                PartView::Image { .. } | PartView::File { .. } => {
                    let file = match part {
                        PartView::File { data } => media::file(data, 0),
                        _ => 0,
                    };
                    let sent_by_user = role == Role::User && !in_result;
                    match self {
                        _ if file > 0 => add(&mut tokens, file),
                        Self::Utf16Units4 if sent_by_user => {}
                        _ if formula.image_as_chars => add(&mut units, IMAGE_CHARS),
                        _ => add(&mut tokens, IMAGE_TOKENS),
                    }
                }
                _ => {
                    let data = part.counted(&mut |text| add(&mut units, self.units(text)));
                    add(&mut tokens, data);
                }
            });
        });
        self.tokens(units).saturating_add(tokens)
    }

    /// Returns the cost of a message: rounds the cost of each part and adds the part's fixed cost.
    fn message_per_part(self, message: &dyn MessageView) -> u64 {
        let (mut tokens, mut results) = (0, 0_u64);
        message.parts(&mut |part| {
            part.each(&mut |part, _| {
                let data = part.counted(&mut |text| add(&mut tokens, self.text(text)));
                add(&mut tokens, data);
                let fixed = match part {
                    PartView::Text(_) | PartView::Reasoning(_) => 0,
                    PartView::ToolCall { .. } => PER_PART_TOOL,
                    PartView::ToolResult { name, .. } => {
                        add(&mut results, 1);
                        PER_PART_TOOL.saturating_add(self.text(name.unwrap_or_default()))
                    }
                    PartView::Image { base64_len } => by_bytes(*base64_len),
                    PartView::File { data } => media::file(data, by_bytes(0)),
                    PartView::Other(_) => PER_PART_MESSAGE,
                };
                add(&mut tokens, fixed);
            });
        });
        let fixed = match (message.role(), results) {
            (Role::Tool, 0) => PER_PART_TOOL,
            (Role::Tool, _) => 0,
            _ => PER_PART_MESSAGE,
        };
        tokens.saturating_add(fixed)
    }
}

/// Returns the cost of an image by [`HeuristicEstimator::Bytes4PerPart`], from the length of its Base64.
fn by_bytes(base64_len: usize) -> u64 {
    let bytes = (base64_len as u64).saturating_mul(3) / 4;
    let (least, most) = PER_PART_IMAGE;
    (bytes / IMAGE_BYTES_PER_TOKEN).clamp(least, most)
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl TokenEstimator for HeuristicEstimator {
    fn id(&self) -> EstimatorId {
        EstimatorId::known(self.formula().id)
    }

    fn text(&self, text: &str) -> u64 {
        self.tokens(self.units(text))
    }

    fn message(&self, message: &dyn MessageView) -> u64 {
        match self {
            _ if message.is_note() => 0,
            Self::Bytes4PerPart => self.message_per_part(message),
            _ => self.whole_message(message),
        }
    }

    fn request_overhead(&self) -> u64 {
        self.formula().per_request
    }
}

impl fmt::Display for HeuristicEstimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::HeuristicEstimator::{Bytes3_5, Bytes4PerPart, Chars4, Utf16Units4};
    use super::*;
    use crate::MessageParts;

    /// Returns the cost of a text by each formula, in the order of `HeuristicEstimator::ALL`.
    fn texts(text: &str) -> [u64; 6] {
        HeuristicEstimator::ALL.map(|formula| formula.text(text))
    }

    fn messages(role: Role, parts: &[PartView<'_>]) -> [u64; 6] {
        HeuristicEstimator::ALL.map(|formula| formula.message(&MessageParts::new(role, parts)))
    }

    fn returned<'a>(name: Option<&'a str>, content: &'a [PartView<'a>]) -> PartView<'a> {
        PartView::ToolResult {
            call_id: "c",
            name,
            content,
            is_error: false,
        }
    }

    #[test]
    fn texts_cost_by_the_formula() {
        //                                anna handoff operator pi koda phi
        assert_eq!(texts(""), /*     */ [0, 0, 1, 0, 0, 0]);
        assert_eq!(texts("a"), /*    */ [1, 0, 1, 1, 0, 1]);
        assert_eq!(texts("abcd"), /* */ [1, 1, 1, 1, 1, 1]);
        assert_eq!(texts("abcde"), /**/ [2, 1, 1, 2, 1, 2]);
        assert_eq!(texts("abcdefg"), [2, 1, 1, 2, 2, 2]);
        // Seven characters, 21 bytes, 7 UTF-16 units.
        assert_eq!(texts("日本語日本語日"), [6, 5, 1, 2, 6, 6]);
        // Five characters of four bytes and two UTF-16 units each.
        assert_eq!(texts("🦀🦀🦀🦀🦀"), [5, 5, 1, 3, 5, 5]);
        assert_eq!(texts(&"x".repeat(1_000)), [250, 250, 250, 250, 285, 250]);
    }

    #[test]
    fn a_plain_message_has_overhead_only_by_some_formulas() {
        let five = [PartView::Text("abcde")];
        for role in [Role::System, Role::User, Role::Assistant] {
            assert_eq!(messages(role, &five), [2, 1, 1, 2, 11, 6]);
        }
        assert_eq!(messages(Role::Tool, &five), [2, 1, 1, 2, 11, 10]);
        assert_eq!(messages(Role::User, &[]), [0, 0, 1, 0, 10, 4]);
    }

    #[test]
    fn parts_are_rounded_once_but_by_phi_core() {
        let split = [
            PartView::Text("a"),
            PartView::Text("b"),
            PartView::Text("cde"),
        ];
        assert_eq!(messages(Role::User, &split), [2, 1, 1, 2, 11, 4 + 3]);
    }

    #[test]
    fn reasoning_is_free_for_anna_and_koda() {
        let thought = [PartView::Reasoning("twelve bytes"), PartView::Text("abcd")];
        assert_eq!(messages(Role::Assistant, &thought), [1, 4, 4, 4, 11, 8]);
    }

    #[test]
    fn calls_cost_their_name_and_arguments() {
        let call = [PartView::ToolCall {
            id: "c",
            name: "read",
            arguments: r#"{"path":"x"}"#,
        }];
        // 16 bytes; koda: floor(16 / 3.5) + 10.
        assert_eq!(
            messages(Role::Assistant, &call),
            [4, 4, 4, 4, 14, 4 + 1 + 3 + 8]
        );
    }

    #[test]
    fn results_cost_their_content_and_for_phi_core_their_name() {
        let result = [returned(Some("reader"), &[PartView::Text("12345678")])];
        assert_eq!(messages(Role::Tool, &result), [2, 2, 2, 2, 12, 2 + 8 + 2]);
        // Two results in one message, which the format calls a user message.
        let two = [
            returned(None, &[PartView::Text("1234")]),
            returned(None, &[PartView::Text("5678")]),
        ];
        assert_eq!(
            messages(Role::User, &two),
            [2, 2, 2, 2, 12, 4 + 8 + 1 + 8 + 1]
        );
    }

    #[test]
    fn images_cost_by_rule_and_never_as_text() {
        let image = |base64_len| [PartView::Image { base64_len }];
        assert_eq!(
            messages(Role::User, &image(0)),
            [1200, 1200, 1200, 0, 1210, 85 + 4]
        );
        assert_eq!(messages(Role::User, &image(400_000))[5], 400 + 4);
        assert_eq!(messages(Role::User, &image(84_999))[5], 85 + 4);
        assert_eq!(messages(Role::User, &image(86_000))[5], 86 + 4);
        assert_eq!(messages(Role::User, &image(usize::MAX))[5], 16_000 + 4);
        assert_eq!(messages(Role::Assistant, &image(9))[3], 1200);

        let in_result = [returned(None, &[PartView::File { data: "" }])];
        assert_eq!(messages(Role::User, &in_result)[3], 1200);
        assert_eq!(
            messages(Role::Tool, &in_result),
            [1200, 1200, 1200, 1200, 1210, 85 + 8]
        );
        // 4,801 characters.
        let said = [PartView::Text("a"), PartView::Image { base64_len: 7 }];
        assert_eq!(messages(Role::Tool, &said)[2..4], [1200, 1201]);
    }

    #[test]
    fn unknown_parts_count_as_their_text() {
        let other = [PartView::Other(r#"{"type":"x"}"#)];
        assert_eq!(messages(Role::User, &other), [3, 3, 3, 3, 13, 3 + 4 + 4]);
    }

    #[test]
    fn division_by_three_and_a_half_is_exact() {
        for bytes in 0..10_000_u64 {
            assert_eq!(Bytes3_5.tokens(bytes), bytes * 2 / 7);
        }
        assert_eq!(
            u128::from(Bytes3_5.tokens(u64::MAX)),
            u128::from(u64::MAX) * 2 / 7
        );
    }

    #[test]
    fn names_and_ids_agree() {
        for (place, formula) in HeuristicEstimator::ALL.into_iter().enumerate() {
            assert_eq!(formula as usize, place);
        }
        assert_eq!(Bytes4PerPart.name(), "phi-core");
        for formula in HeuristicEstimator::ALL {
            assert_eq!(formula.to_string(), formula.name());
            assert_eq!(formula.id(), EstimatorId::new(formula.name(), 2).unwrap());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn more_text_never_costs_less(a in any::<String>(), b in any::<String>()) {
            for formula in HeuristicEstimator::ALL {
                let (one, both) = (formula.text(&a), formula.text(&format!("{a}{b}")));
                prop_assert!(one <= both);
                prop_assert!(both <= one + formula.text(&b) + 1);
            }
        }

        #[test]
        fn units_are_those_of_the_standard_library(text in any::<String>()) {
            prop_assert_eq!(Utf16Units4.units(&text), text.encode_utf16().count() as u64);
            prop_assert_eq!(Chars4.units(&text), text.chars().count() as u64);
        }

        #[test]
        fn one_more_piece_never_costs_less(texts in prop::collection::vec(any::<String>(), 0..6)) {
            let parts: Vec<_> = texts
                .iter()
                .enumerate()
                .map(|(n, text)| match n % 4 {
                    0 => PartView::Text(text),
                    1 => PartView::ToolCall { id: text, name: text, arguments: text },
                    2 => returned(Some(text), &[]),
                    _ => PartView::Reasoning(text),
                })
                .collect();
            for formula in HeuristicEstimator::ALL {
                let costs: Vec<_> = (0..=parts.len())
                    .map(|n| formula.message(&MessageParts::new(Role::User, &parts[..n])))
                    .collect();
                prop_assert!(costs.is_sorted(), "{formula}: {costs:?}");
            }
        }
    }
}
