//! Catches panics with their message and place, without printing them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The last panic of a check on this thread; `None` while no check runs.
    static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// A panic of a check.
#[derive(Debug, Clone, Default)]
pub(super) struct Panic {
    /// File and line.
    pub(super) place: String,
    pub(super) message: String,
}

/// Calls a check.
pub(super) fn call<T>(check: impl FnOnce() -> T) -> Result<T, Panic> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |info| {
            let is_caught = LAST.with_borrow_mut(|last| {
                let Some(last) = last else { return false };
                last.place = info.location().map(ToString::to_string).unwrap_or_default();
                last.message = info.payload_as_str().unwrap_or_default().to_owned();
                true
            });
            if !is_caught {
                print(info);
            }
        }));
    });
    LAST.set(Some(Panic::default()));
    let result = catch_unwind(AssertUnwindSafe(check));
    let last = LAST.take().unwrap_or_default();
    result.map_err(|_| last)
}
