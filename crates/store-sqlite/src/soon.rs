//! Waiting for an answer that is likely to be ready soon.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of polls before the task sleeps.
const TRIES: u32 = 100;

/// Maximum time of polling before the task sleeps.
const PATIENCE: Duration = Duration::from_micros(100);

/// Waits for a future that is likely to be ready before a sleeping thread could wake.
///
/// The driver runs SQL statements on a separate thread, where a short statement takes about ten microseconds. Putting
/// the waiting thread to sleep takes about the same time again, and waking it takes several times longer. The future is
/// therefore polled for a while first, and other threads may run between two polls. Longer statements are then awaited
/// as usual.
///
/// If many short SQL statements follow each other, other tasks get their turn as they do between messages of a channel.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::task::coop::consume_budget().await;
    let mut future = pin!(future);
    let (mut begun, mut left) = (None, TRIES);
    poll_fn(|context| {
        loop {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            let begun = begun.get_or_insert_with(Instant::now);
            if left == 0 || begun.elapsed() > PATIENCE {
                left = 0;
                return Poll::Pending;
            }
            left -= 1;
            std::thread::yield_now();
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a future that is pending for `pending` polls, and then returns its number of polls.
    fn ready_after(pending: u32, wakes: bool) -> impl Future<Output = u32> {
        let mut polls = 0;
        poll_fn(move |context| {
            polls += 1;
            if polls > pending {
                return Poll::Ready(polls);
            }
            if wakes {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }

    #[tokio::test]
    async fn soon_ready_futures_need_no_waking() {
        assert_eq!(soon(ready_after(1, false)).await, 2);
    }

    #[tokio::test]
    async fn later_ready_futures_wake_the_task() {
        assert_eq!(soon(ready_after(TRIES * 3, true)).await, TRIES * 3 + 1);
    }

    /// A task that only awaits ready futures would keep all other tasks from running.
    #[tokio::test]
    async fn others_run_between_many_short_waits() {
        let other = tokio::spawn(async {});
        let mut waits = 0;
        while !other.is_finished() && waits < 10_000 {
            soon(std::future::ready(())).await;
            waits += 1;
        }
        assert!(other.is_finished());
    }
}
