//! Law (f): a failing write leaves everything unchanged, or is completed.

use agent_memory::{Message, model::ViewVersion};

use super::world::Chat;
use super::{Checked, Law, Tally};

pub(crate) fn check_append(
    failed: bool,
    log: &[Message],
    expected: &[Message],
    tally: &mut Tally,
) -> Checked<()> {
    tally.checked(Law::Failure, 1);
    Law::Failure.holds(failed, || "a failed write was reported as done".to_owned())?;
    Law::Failure.holds(log == expected, || {
        format!(
            "after a failed append {} messages are there, not {}",
            log.len(),
            expected.len()
        )
    })
}

/// Checks that every version belongs to a completed publish, after any failures. Other laws are checked afterwards.
pub(crate) async fn check_compaction(
    chat: &Chat,
    before: ViewVersion,
    made: u64,
    crashed: bool,
    tally: &mut Tally,
) -> Checked<()> {
    if crashed {
        tally.checked(Law::Failure, 1);
    }
    let now = chat.session.current_view().await.unwrap().version();
    Law::Failure.holds(now.0 == before.0 + made, || {
        format!("{made} publishes were done after version {before}, but now it is {now}")
    })
}
