//! Automatic handoffs as one setting.

use compaction_runner::Trigger;
use handoff_compactor::HandoffPolicy;
use serde::{Deserialize, Serialize};
use turn_map::CutPolicy;

use crate::turn_policy::{Action, TurnPolicy};

/// Default of [`AutoHandoff::max_tokens`].
const MAX_TOKENS: u64 = 80_000;
/// Default of [`AutoHandoff::keep_tail`].
const KEEP_TAIL: usize = 20;

/// Setting for automatic handoffs: the size above which a session is handed over before a turn, and the number of
/// messages that stay. It can be a part of an application's configuration file. See
/// [`Builder::auto_handoff`](crate::Builder::auto_handoff).
///
/// It converts into a [`HandoffPolicy`] and into a [`TurnPolicy`], for policies with further settings or policies that
/// change while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct AutoHandoff {
    /// Maximum size of the view (the compacted log), in tokens: the bytes of its stored lines divided by 4, as
    /// [`Trigger::StoredLines`] counts them. Default 80,000, which 0 selects too. A negative number disables automatic
    /// handoffs; [`Session::hand_over`](crate::Session::hand_over) still works.
    ///
    /// Without the crate's feature `conventions`, which has the form of such lines, the number is compared with the
    /// view's cost.
    pub max_tokens: i64,
    /// Number of last messages that a handoff keeps unchanged. Default 20, which 0 selects too.
    pub keep_tail: usize,
}

impl Default for AutoHandoff {
    fn default() -> Self {
        Self {
            max_tokens: MAX_TOKENS as i64,
            keep_tail: KEEP_TAIL,
        }
    }
}

/// Keeps the last messages by number. One summary covers everything before them, without a line for files.
impl From<AutoHandoff> for HandoffPolicy {
    fn from(setting: AutoHandoff) -> Self {
        let messages = match setting.keep_tail {
            0 => KEEP_TAIL,
            messages => messages,
        };
        Self {
            keep: CutPolicy::LastMessages { messages },
            split_turns: false,
            max_source_tokens: None,
            min_tokens: 0,
            list_files: false,
            ..Self::default()
        }
    }
}

/// Compacts before a turn, and at no other time.
impl From<AutoHandoff> for TurnPolicy {
    fn from(setting: AutoHandoff) -> Self {
        let hard = match u64::try_from(setting.max_tokens) {
            Err(_) => Trigger::Never,
            Ok(0) => above(MAX_TOKENS),
            Ok(tokens) => above(tokens),
        };
        Self {
            hard,
            before_turn: Action::Compact,
            ..Self::manual()
        }
    }
}

fn above(tokens: u64) -> Trigger {
    match cfg!(feature = "conventions") {
        true => Trigger::StoredLines { tokens },
        false => Trigger::Absolute { tokens },
    }
}
