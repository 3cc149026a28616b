use crate::TurnMessage;

/// One part of a message, borrowed from whatever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartView<'a> {
    /// Text that is said.
    Text(&'a str),
    /// A call of a tool.
    Call {
        /// The id that the result names.
        id: &'a str,
        /// The tool.
        name: &'a str,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        call_id: &'a str,
        /// Its text; of a list of parts, the texts joined by newlines.
        text: &'a str,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// Anything else: reasoning, a picture, a file. It is kept or dropped, never changed.
    Other,
}

/// What trimming and sanitising have to know of a message: its parts.
///
/// An [`Edit`](crate::Edit) names a part by its place in this order, from 0. The calls and results
/// among them are those of [`TurnMessage`].
pub trait PartMessage: TurnMessage {
    /// Hands over every part, in order.
    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>));
}

impl<M: PartMessage + ?Sized> PartMessage for &M {
    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        (**self).parts(visit);
    }
}
