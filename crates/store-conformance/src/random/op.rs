//! Steps of a random sequence, and their random generation.

use proptest::prelude::*;

/// One step of a sequence. A number that names an object is taken modulo the number of existing objects.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Root,
    Fork {
        parent: u8,
        at: u8,
    },
    Spawn {
        parent: u8,
        at: u8,
    },
    Append {
        chat: u8,
        texts: Vec<u8>,
        demand_head: bool,
    },
    /// Publishes a summary over whole spans: a leaf over raw messages, else a condensed summary.
    Summarize {
        chat: u8,
        view: u8,
        first: u8,
        len: u8,
        text: u8,
        stale: bool,
        fenced: bool,
    },
    /// Publishes another body over whole spans or parts of spans.
    Show {
        chat: u8,
        view: u8,
        first: u8,
        len: u8,
        body: Shown,
    },
    /// Makes a publish that may be invalid.
    Odd {
        chat: u8,
        first: u8,
        len: u8,
        expect_first: u8,
        span_len: u8,
    },
    Claim {
        chat: u8,
        job: u8,
        owner: u8,
        /// Whether the lease lasts longer than the test. Otherwise it ends at once.
        lasting: bool,
    },
    Settle {
        fence: u8,
        outcome: u8,
    },
    PutState {
        chat: u8,
        revision: u8,
        remove: bool,
    },
    /// Erases the words of a range. Some of the ranges end beyond the log.
    Erase {
        chat: u8,
        first: u8,
        len: u8,
    },
    Reopen,
    /// Continues with the other open store on the same data.
    Switch,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Shown {
    Raw,
    Omitted,
    Trimmed(u8),
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let n = any::<u8>;
    let shown = prop_oneof![
        Just(Shown::Raw),
        Just(Shown::Omitted),
        (0u8..2).prop_map(Shown::Trimmed),
    ];
    prop_oneof![
        1 => Just(Op::Root),
        2 => (n(), n()).prop_map(|(parent, at)| Op::Fork { parent, at }),
        1 => (n(), n()).prop_map(|(parent, at)| Op::Spawn { parent, at }),
        6 => (n(), prop::collection::vec(n(), 0..9), prop::bool::weighted(0.2))
            .prop_map(|(chat, texts, demand_head)| Op::Append { chat, texts, demand_head }),
        6 => (n(), n(), n(), n(), n(), prop::bool::weighted(0.2), prop::bool::weighted(0.3))
            .prop_map(|(chat, view, first, len, text, stale, fenced)| Op::Summarize {
                chat, view, first, len, text, stale, fenced,
            }),
        4 => (n(), n(), n(), n(), shown)
            .prop_map(|(chat, view, first, len, body)| Op::Show { chat, view, first, len, body }),
        1 => (n(), n(), n(), n(), n())
            .prop_map(|(chat, first, len, expect_first, span_len)| Op::Odd {
                chat, first, len, expect_first, span_len,
            }),
        2 => (n(), n(), n(), any::<bool>())
            .prop_map(|(chat, job, owner, lasting)| Op::Claim { chat, job, owner, lasting }),
        2 => (n(), n()).prop_map(|(fence, outcome)| Op::Settle { fence, outcome }),
        1 => (n(), n(), any::<bool>())
            .prop_map(|(chat, revision, remove)| Op::PutState { chat, revision, remove }),
        1 => (n(), n(), n()).prop_map(|(chat, first, len)| Op::Erase { chat, first, len }),
        1 => Just(Op::Reopen),
        4 => Just(Op::Switch),
    ]
}
