//! Waiting for an answer that is there soon.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// How often a future is asked before its task sleeps: some tens of microseconds.
const TRIES: u32 = 100;

/// Waits for a future that is likely to be ready before a sleeping thread is awake again.
///
/// The driver runs statements on a thread of its own. A short one takes some ten microseconds there, and the thread that
/// waits for it as many as that to fall asleep and several times as many to be woken: so it looks a few times before.
/// Between two looks it lets other threads run.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        for _ in 0..TRIES {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            std::thread::yield_now();
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pending so many times, and then ready with the number of times that it was asked.
    fn ready_after(pending: u32, wakes: bool) -> impl Future<Output = u32> {
        let mut asked = 0;
        poll_fn(move |context| {
            asked += 1;
            if asked > pending {
                return Poll::Ready(asked);
            }
            if wakes {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }

    #[tokio::test]
    async fn what_is_there_soon_needs_no_waking() {
        assert_eq!(soon(ready_after(TRIES - 1, false)).await, TRIES);
    }

    #[tokio::test]
    async fn what_comes_later_wakes() {
        assert_eq!(soon(ready_after(TRIES * 3, true)).await, TRIES * 3 + 1);
    }
}
