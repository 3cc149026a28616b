//! Progress of answers that a server sends in pieces.

use std::cell::RefCell;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

/// Receives the progress of an answer while a server sends it. The method must return at once.
///
/// [`observed`] connects an observer with a call. The guards do this for each attempt, and pass the progress on to a
/// [`CallObserver`](crate::guard::CallObserver).
pub trait AnswerObserver: Send + Sync + Debug {
    /// Called each time a piece of the answer has arrived.
    fn received(&self, progress: &AnswerProgress);
}

/// The part of one answer that a client has received so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerProgress {
    /// Number of bytes of the answer's body, in the provider's form.
    pub bytes: u64,
    /// Number of tokens in the prompt, as the provider counted them; `None` if it has not reported it yet.
    pub input: Option<u64>,
    /// Number of tokens that the model has written, including reasoning: the provider's number, or an estimate until
    /// the provider reports one.
    pub output: u64,
}

impl AnswerProgress {
    /// Creates the progress of an answer of which this many bytes have arrived, with this many tokens.
    pub fn new(bytes: u64, output: u64) -> Self {
        Self {
            bytes,
            input: None,
            output,
        }
    }

    /// Sets the number of tokens in the prompt, as the provider counted them.
    #[must_use]
    pub fn with_input(mut self, input: Option<u64>) -> Self {
        self.input = input;
        self
    }
}

thread_local! {
    /// Observers of the calls that this thread is polling, the outermost first.
    static OBSERVERS: RefCell<Vec<Arc<dyn AnswerObserver>>> = const { RefCell::new(Vec::new()) };
}

/// Entry of an observer in [`OBSERVERS`] while a call is polled.
struct Polled;

impl Polled {
    fn by(observer: &Arc<dyn AnswerObserver>) -> Self {
        OBSERVERS.with_borrow_mut(|all| all.push(Arc::clone(observer)));
        Self
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        OBSERVERS.with_borrow_mut(Vec::pop);
    }
}

/// Runs a call, such as [`ChatModel::complete`](crate::ChatModel::complete), and reports the progress of its answer to
/// `observer`. A call on another task, started by the client, is not observed.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use model_client::{AnswerObserver, AnswerProgress, observed, report_progress};
///
/// #[derive(Debug, Default)]
/// struct Tokens(AtomicU64);
///
/// impl AnswerObserver for Tokens {
///     fn received(&self, progress: &AnswerProgress) {
///         self.0.store(progress.output, Ordering::Relaxed);
///     }
/// }
///
/// let tokens = Arc::new(Tokens::default());
/// // What a client does when a piece of an answer has arrived.
/// let call = async { report_progress(&AnswerProgress::new(900, 12)) };
/// futures::executor::block_on(observed(tokens.clone(), call));
/// assert_eq!(tokens.0.load(Ordering::Relaxed), 12);
/// ```
pub async fn observed<F: Future>(observer: Arc<dyn AnswerObserver>, call: F) -> F::Output {
    let mut call = pin!(call);
    std::future::poll_fn(move |context| {
        let _polled = Polled::by(&observer);
        call.as_mut().poll(context)
    })
    .await
}

/// Reports progress to the observers of the running call. For clients of providers; without an observer nothing
/// happens.
pub fn report_progress(progress: &AnswerProgress) {
    let observers = OBSERVERS.with_borrow(Vec::clone);
    for observer in observers {
        observer.received(progress);
    }
}
