use std::fmt;
use std::str::FromStr;

use crate::{CountedMessage, Error, ErrorKind, EstimatorId, Piece, Role, TokenEstimator};

/// The formulas of systems in use, as values. The README has them side by side.
///
/// Unless said otherwise, a message's pieces are measured together and rounded once: the text of
/// every piece, the names and arguments of calls, and what tools answered, but neither call ids nor
/// the names of tools beside their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Preset {
    /// anna's rule: ceil(bytes / 4), reasoning free.
    #[default]
    Anna,
    /// The rule of anna's handoff: floor(bytes / 4), reasoning included.
    AnnaHandoff,
    /// Operator Use's rule: floor(code points / 4) and at least 1, reasoning included; an image is
    /// 4,800 characters.
    OperatorUse,
    /// pi's rule: ceil(UTF-16 units / 4), reasoning included; an image is 4,800 characters, but
    /// nothing when a user sent it.
    Pi,
    /// koda's rule: floor(bytes / 3.5) and 10 a message, reasoning free; 100 a request.
    Koda,
    /// phi-core's rule: ceil(bytes / 4) for each piece, reasoning included, and overheads: 4 for a
    /// message or an unknown piece, 8 for a call, 8 and the tool's name for a result (which then
    /// has no 4). An image is a token for each 750 decoded bytes, from 85 to 16,000.
    PhiCore,
}

/// pi's figure for an image, in characters: 1,200 tokens.
const IMAGE_CHARS: u64 = 4_800;
const IMAGE_TOKENS: u64 = 1_200;
/// phi-core's smallest and largest figure for an image, in tokens.
const PHI_IMAGE: (u64, u64) = (85, 16_000);
const PHI_IMAGE_BYTES_PER_TOKEN: u64 = 750;
/// phi-core's overhead for a message that is not a tool's, and for an unknown piece.
const PHI_MESSAGE: u64 = 4;
/// phi-core's overhead for a call, and for a result.
const PHI_TOOL: u64 = 8;
/// koda's overhead for a message and for a request.
const KODA_MESSAGE: u64 = 10;
const KODA_REQUEST: u64 = 100;

impl Preset {
    /// Every preset, the default first.
    pub const ALL: [Self; 6] = [
        Self::Anna,
        Self::AnnaHandoff,
        Self::OperatorUse,
        Self::Pi,
        Self::Koda,
        Self::PhiCore,
    ];

    /// The name, as in `anna`: the id without its version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anna => "anna",
            Self::AnnaHandoff => "anna-handoff",
            Self::OperatorUse => "operator-use",
            Self::Pi => "pi",
            Self::Koda => "koda",
            Self::PhiCore => "phi-core",
        }
    }

    /// How long a text is in the unit that this formula divides.
    fn units(self, text: &str) -> u64 {
        match self {
            Self::OperatorUse => text.chars().count() as u64,
            // A character has two UTF-16 units exactly if its UTF-8 form has four bytes.
            Self::Pi => (text.chars().count() + text.bytes().filter(|b| *b >= 0xF0).count()) as u64,
            _ => text.len() as u64,
        }
    }

    /// Units to tokens.
    const fn tokens(self, units: u64) -> u64 {
        match self {
            Self::Anna | Self::Pi | Self::PhiCore => units.div_ceil(4),
            Self::AnnaHandoff => units / 4,
            Self::OperatorUse => {
                if units < 4 {
                    1
                } else {
                    units / 4
                }
            }
            // floor(units * 2 / 7) that cannot overflow.
            Self::Koda => units / 7 * 2 + units % 7 * 2 / 7,
        }
    }

    /// Every preset but phi-core: units first, one rounding, then what is counted in tokens.
    fn whole_message(self, message: &dyn CountedMessage) -> u64 {
        let (mut units, mut tokens) = (0_u64, 0_u64);
        let role = message.role();
        let mut in_result = role == Role::Tool;
        message.pieces(&mut |piece| match piece {
            Piece::Text(text) | Piece::Other(text) => add(&mut units, self.units(text)),
            Piece::Reasoning(text) => {
                if !matches!(self, Self::Anna | Self::Koda) {
                    add(&mut units, self.units(text));
                }
            }
            Piece::ToolCall { name, arguments } => {
                add(&mut units, self.units(name));
                add(&mut units, self.units(arguments));
            }
            Piece::ToolResult { .. } => in_result = true,
            Piece::Image { .. } | Piece::File { .. } => match self {
                Self::Pi if role == Role::User && !in_result => {}
                Self::Pi | Self::OperatorUse => add(&mut units, IMAGE_CHARS),
                _ => add(&mut tokens, IMAGE_TOKENS),
            },
        });
        if self == Self::Koda {
            add(&mut tokens, KODA_MESSAGE);
        }
        self.tokens(units).saturating_add(tokens)
    }

    /// phi-core rounds each piece and adds overheads.
    fn phi_message(self, message: &dyn CountedMessage) -> u64 {
        let mut tokens = 0_u64;
        let mut results = 0_u64;
        message.pieces(&mut |piece| match piece {
            Piece::Text(text) | Piece::Reasoning(text) => add(&mut tokens, self.text(text)),
            Piece::ToolCall { name, arguments } => {
                add(&mut tokens, self.text(name));
                add(&mut tokens, self.text(arguments));
                add(&mut tokens, PHI_TOOL);
            }
            Piece::ToolResult { name } => {
                add(&mut results, 1);
                add(&mut tokens, self.text(name.unwrap_or_default()));
                add(&mut tokens, PHI_TOOL);
            }
            Piece::Image { base64_len } | Piece::File { base64_len } => {
                let bytes = (base64_len as u64).saturating_mul(3) / 4;
                let (least, most) = PHI_IMAGE;
                add(
                    &mut tokens,
                    (bytes / PHI_IMAGE_BYTES_PER_TOKEN).clamp(least, most),
                );
            }
            Piece::Other(text) => {
                add(&mut tokens, self.text(text));
                add(&mut tokens, PHI_MESSAGE);
            }
        });
        let overhead = match (message.role(), results) {
            (Role::Tool, 0) => PHI_TOOL,
            (Role::Tool, _) => 0,
            _ => PHI_MESSAGE,
        };
        tokens.saturating_add(overhead)
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl TokenEstimator for Preset {
    fn id(&self) -> EstimatorId {
        EstimatorId::known(match self {
            Self::Anna => "anna@1",
            Self::AnnaHandoff => "anna-handoff@1",
            Self::OperatorUse => "operator-use@1",
            Self::Pi => "pi@1",
            Self::Koda => "koda@1",
            Self::PhiCore => "phi-core@1",
        })
    }

    fn text(&self, text: &str) -> u64 {
        self.tokens(self.units(text))
    }

    fn message(&self, message: &dyn CountedMessage) -> u64 {
        match self {
            Self::PhiCore => self.phi_message(message),
            _ => self.whole_message(message),
        }
    }

    fn request_overhead(&self) -> u64 {
        match self {
            Self::Koda => KODA_REQUEST,
            _ => 0,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == name)
            .ok_or_else(|| Error::new(ErrorKind::UnknownEstimator, name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Preset::{Anna, AnnaHandoff, Koda, OperatorUse, PhiCore, Pi};
    use super::*;
    use crate::MessageParts;

    /// In the order of `Preset::ALL`.
    fn texts(text: &str) -> [u64; 6] {
        Preset::ALL.map(|preset| preset.text(text))
    }

    fn messages(role: Role, pieces: &[Piece<'_>]) -> [u64; 6] {
        Preset::ALL.map(|preset| preset.message(&MessageParts::new(role, pieces)))
    }

    #[test]
    fn texts_cost_what_each_formula_says() {
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
    fn a_plain_message_has_overhead_only_where_stated() {
        let five = [Piece::Text("abcde")];
        for role in [Role::System, Role::User, Role::Assistant] {
            assert_eq!(messages(role, &five), [2, 1, 1, 2, 11, 6]);
        }
        assert_eq!(messages(Role::Tool, &five), [2, 1, 1, 2, 11, 10]);
        assert_eq!(messages(Role::User, &[]), [0, 0, 1, 0, 10, 4]);
    }

    #[test]
    fn pieces_are_rounded_once_but_by_phi_core() {
        let split = [Piece::Text("a"), Piece::Text("b"), Piece::Text("cde")];
        assert_eq!(messages(Role::User, &split), [2, 1, 1, 2, 11, 4 + 3]);
    }

    #[test]
    fn reasoning_is_free_for_anna_and_koda() {
        let thought = [Piece::Reasoning("twelve bytes"), Piece::Text("abcd")];
        assert_eq!(messages(Role::Assistant, &thought), [1, 4, 4, 4, 11, 8]);
    }

    #[test]
    fn calls_cost_their_name_and_arguments() {
        let call = [Piece::ToolCall {
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
        let result = [
            Piece::ToolResult {
                name: Some("reader"),
            },
            Piece::Text("12345678"),
        ];
        assert_eq!(messages(Role::Tool, &result), [2, 2, 2, 2, 12, 2 + 8 + 2]);
        // Two results in what the format calls a user message.
        let two = [
            Piece::ToolResult { name: None },
            Piece::Text("1234"),
            Piece::ToolResult { name: None },
            Piece::Text("5678"),
        ];
        assert_eq!(
            messages(Role::User, &two),
            [2, 2, 2, 2, 12, 4 + 8 + 1 + 8 + 1]
        );
    }

    #[test]
    fn images_cost_by_rule_and_never_as_text() {
        let image = |base64_len| [Piece::Image { base64_len }];
        assert_eq!(
            messages(Role::User, &image(0)),
            [1200, 1200, 1200, 0, 1210, 85 + 4]
        );
        assert_eq!(messages(Role::User, &image(400_000))[5], 400 + 4);
        assert_eq!(messages(Role::User, &image(84_999))[5], 85 + 4);
        assert_eq!(messages(Role::User, &image(86_000))[5], 86 + 4);
        assert_eq!(messages(Role::User, &image(usize::MAX))[5], 16_000 + 4);
        assert_eq!(messages(Role::Assistant, &image(9))[3], 1200);

        let in_result = [
            Piece::ToolResult { name: None },
            Piece::File { base64_len: 0 },
        ];
        assert_eq!(messages(Role::User, &in_result)[3], 1200);
        assert_eq!(
            messages(Role::Tool, &in_result),
            [1200, 1200, 1200, 1200, 1210, 85 + 8]
        );
        // 4,801 characters.
        let said = [Piece::Text("a"), Piece::Image { base64_len: 7 }];
        assert_eq!(messages(Role::Tool, &said)[2..4], [1200, 1201]);
    }

    #[test]
    fn unknown_pieces_count_as_their_text() {
        let other = [Piece::Other(r#"{"type":"x"}"#)];
        assert_eq!(messages(Role::User, &other), [3, 3, 3, 3, 13, 3 + 4 + 4]);
    }

    #[test]
    fn division_by_three_and_a_half_is_exact() {
        for bytes in 0..10_000_u64 {
            assert_eq!(Koda.tokens(bytes), bytes * 2 / 7);
        }
        assert_eq!(
            u128::from(Koda.tokens(u64::MAX)),
            u128::from(u64::MAX) * 2 / 7
        );
    }

    #[test]
    fn names_and_ids_agree() {
        assert_eq!(
            Preset::ALL,
            [Anna, AnnaHandoff, OperatorUse, Pi, Koda, PhiCore]
        );
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse::<Preset>().unwrap(), preset);
            assert_eq!(preset.id(), EstimatorId::new(preset.name(), 1).unwrap());
        }
        assert_eq!(
            "phi".parse::<Preset>().unwrap_err().kind(),
            ErrorKind::UnknownEstimator
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn more_text_never_costs_less(a in any::<String>(), b in any::<String>()) {
            for preset in Preset::ALL {
                let (one, both) = (preset.text(&a), preset.text(&format!("{a}{b}")));
                prop_assert!(one <= both);
                prop_assert!(both <= one + preset.text(&b) + 1);
            }
        }

        #[test]
        fn units_are_those_of_the_standard_library(text in any::<String>()) {
            prop_assert_eq!(Pi.units(&text), text.encode_utf16().count() as u64);
            prop_assert_eq!(OperatorUse.units(&text), text.chars().count() as u64);
        }

        #[test]
        fn one_more_piece_never_costs_less(texts in prop::collection::vec(any::<String>(), 0..6)) {
            let pieces: Vec<_> = texts
                .iter()
                .enumerate()
                .map(|(n, text)| match n % 4 {
                    0 => Piece::Text(text),
                    1 => Piece::ToolCall { name: text, arguments: text },
                    2 => Piece::ToolResult { name: Some(text) },
                    _ => Piece::Reasoning(text),
                })
                .collect();
            for preset in Preset::ALL {
                let costs: Vec<_> = (0..=pieces.len())
                    .map(|n| preset.message(&MessageParts::new(Role::User, &pieces[..n])))
                    .collect();
                prop_assert!(costs.is_sorted(), "{preset}: {costs:?}");
            }
        }
    }
}
