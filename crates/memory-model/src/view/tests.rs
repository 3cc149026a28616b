use proptest::prelude::*;

use super::*;

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(Seq(first), Seq(last)).unwrap()
}

fn summary(n: u32) -> SpanBody {
    SpanBody::Summary {
        id: SummaryId::new(format!("sum_{n:016x}")),
        depth: n % 3,
    }
}

fn body() -> impl Strategy<Value = SpanBody> {
    prop_oneof![
        3 => Just(SpanBody::Raw),
        3 => (0u32..1000).prop_map(summary),
        1 => Just(SpanBody::Omitted),
        1 => (0u32..2).prop_map(|n| SpanBody::Trimmed(TrimPolicyId::new(format!("trim@{n}")))),
    ]
}

/// Form of each of the first `n` messages, by position: the model that views must equal.
fn per_message(view: &View, n: u32) -> Vec<SpanBody> {
    (1..=n)
        .map(|seq| {
            let holds = |span: &&Span| {
                span.range.first <= Seq(seq) && span.range.last.is_none_or(|last| last >= Seq(seq))
            };
            let holders: Vec<&Span> = view.spans().iter().filter(holds).collect();
            assert_eq!(
                holders.len(),
                1,
                "message {seq} is in {} spans",
                holders.len()
            );
            holders[0].body.clone()
        })
        .collect()
}

/// A publish: its start, its length, and its spans.
type Edit = (u32, u32, Vec<(u32, SpanBody)>);

/// A publish over whole spans or parts of divisible ones: the range, and how to fill it.
fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let piece = (1u32..8, body());
    prop::collection::vec(
        (1u32..60, 1u32..30, prop::collection::vec(piece, 1..4)),
        0..12,
    )
}

/// Widens `[first, last]` until it cuts no indivisible span.
fn widen(view: &View, first: u32, last: u32) -> SeqRange {
    let (mut first, mut last) = (Seq(first), Seq(last));
    for span in view.spans() {
        let Some(r) = span.closed_range() else {
            continue;
        };
        if !span.body.is_divisible() && r.first <= last && r.last >= first {
            first = first.min(r.first);
            last = last.max(r.last);
        }
    }
    SeqRange::new(first, last).unwrap()
}

fn fill(at: SeqRange, pieces: &[(u32, SpanBody)]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut next = at.first;
    for (i, (len, body)) in pieces.iter().enumerate() {
        if next > at.last {
            break;
        }
        let end = if i + 1 == pieces.len() {
            at.last
        } else {
            at.last.min(Seq(next.0 + len - 1))
        };
        spans.push(Span::closed(
            SeqRange::new(next, end).unwrap(),
            body.clone(),
            1,
        ));
        next = end.next();
    }
    spans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn splicing_changes_exactly_the_range(edits in edits()) {
        let mut view = View::new();
        for (first, len, pieces) in edits {
            let at = widen(&view, first, first + len);
            let new = fill(at, &pieces);
            let before = per_message(&view, 120);
            let next = view.splice(at, &view.clip(at), &new).unwrap();
            let after = per_message(&next, 120);
            for seq in 1..=120u32 {
                let expected = new
                    .iter()
                    .find(|span| span.closed_range().unwrap().contains(Seq(seq)))
                    .map_or(&before[seq as usize - 1], |span| &span.body);
                prop_assert_eq!(&after[seq as usize - 1], expected);
            }
            // The result is in normal form: it can be read back from its rows.
            let again = View::from_starts(&next.starts());
            prop_assert_eq!(again.as_ref(), Ok(&next));
            view = next;
        }
    }

    #[test]
    fn rows_near_the_range_are_enough(edits in edits()) {
        let mut view = View::new();
        for (first, len, pieces) in edits {
            let at = widen(&view, first, first + len);
            let new = fill(at, &pieces);
            let expect = view.clip(at);
            let starts = view.starts();
            let from = starts.iter().rposition(|s| s.first < at.first).unwrap_or(0);
            let to = starts.iter().rposition(|s| s.first <= at.last.next()).unwrap();
            let near = splice_starts(&starts[from..=to], at, &expect, &new).unwrap();
            prop_assert_eq!(&near, &splice_starts(&starts, at, &expect, &new).unwrap());
            view = view.splice(at, &expect, &new).unwrap();
        }
    }

    #[test]
    fn the_second_of_two_racing_publishes_loses(
        first in 1u32..20, len in 0u32..10, shift in 0u32..5, other in body(),
    ) {
        let view = View::new();
        let a = range(first, first + len);
        let b = range(first + shift.min(len), first + len + shift);
        let expect_b = view.clip(b);
        let after = view.splice(a, &view.clip(a), &[Span::closed(a, summary(1), 1)]).unwrap();
        let second = after.splice(b, &expect_b, &[Span::closed(b, other, 1)]);
        let lost = matches!(second, Err(SpliceError::Lost { .. }));
        prop_assert!(lost);
    }
}

#[test]
fn appended_messages_do_not_lose_a_race() {
    // A publish names a closed range, so the open tail may grow meanwhile.
    let view = View::new();
    let expect = view.clip(range(1, 5));
    assert_eq!(expect, [Span::closed(range(1, 5), SpanBody::Raw, 0)]);
    assert!(
        view.splice(
            range(1, 5),
            &expect,
            &[Span::closed(range(1, 5), summary(1), 3)]
        )
        .is_ok()
    );
}

#[test]
fn equal_neighbours_merge() {
    let view = View::new();
    let omit = |view: &View, at: SeqRange| {
        view.splice(
            at,
            &view.clip(at),
            &[Span::closed(at, SpanBody::Omitted, 0)],
        )
        .unwrap()
    };
    let view = omit(&omit(&view, range(1, 3)), range(4, 6));
    assert_eq!(view.spans().len(), 2);
    assert_eq!(view.spans()[0].range.last, Some(Seq(6)));
    // Restoring the middle cuts the omitted span in two.
    let raw = [Span::closed(range(3, 4), SpanBody::Raw, 0)];
    let view = view
        .splice(range(3, 4), &view.clip(range(3, 4)), &raw)
        .unwrap();
    let bodies: Vec<&SpanBody> = view.spans().iter().map(|span| &span.body).collect();
    assert_eq!(
        bodies,
        [
            &SpanBody::Omitted,
            &SpanBody::Raw,
            &SpanBody::Omitted,
            &SpanBody::Raw
        ]
    );
}

#[test]
fn trimmed_neighbours_stay_apart() {
    let trim = || SpanBody::Trimmed(TrimPolicyId::new("t@1"));
    let view = View::new();
    let a = range(1, 3);
    let view = view
        .splice(a, &view.clip(a), &[Span::closed(a, trim(), 5)])
        .unwrap();
    let b = range(4, 6);
    let view = view
        .splice(b, &view.clip(b), &[Span::closed(b, trim(), 7)])
        .unwrap();
    let apart = [Span::closed(a, trim(), 5), Span::closed(b, trim(), 7)];
    assert_eq!(view.spans()[..2], apart);
    // Each is replaced without the other.
    let starts = view.starts();
    let new = [Span::closed(a, summary(0), 1)];
    let rows = splice_starts(&starts, a, &apart[..1], &new).unwrap();
    assert_eq!(rows.removed, starts[..1]);
    assert_eq!(rows.added.len(), 1);
}

#[test]
fn bad_splices_are_named() {
    let view = View::new();
    let at = range(2, 5);
    let view = view
        .splice(at, &view.clip(at), &[Span::closed(at, summary(1), 1)])
        .unwrap();
    let cut = range(3, 5);
    let error = view
        .splice(cut, &view.clip(cut), &[Span::closed(cut, SpanBody::Raw, 0)])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "3-5 divides the span 2-5, which can only be replaced whole"
    );
    let error = view.splice(
        at,
        &view.clip(at),
        &[Span::closed(range(2, 4), SpanBody::Raw, 0)],
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "the new spans do not tile 2-5: they end at 4"
    );
    let error = view.splice(
        at,
        &view.clip(at),
        &[Span::closed(range(3, 5), SpanBody::Raw, 0)],
    );
    assert!(error.unwrap_err().to_string().contains("should begin at 2"));
    let error = view
        .splice(at, &[], &[Span::closed(at, SpanBody::Raw, 0)])
        .unwrap_err();
    assert!(matches!(error, SpliceError::Lost { found } if found.len() == 1));
}

#[test]
fn bad_rows_are_named() {
    let start = |first: u32, body: SpanBody| SpanStart {
        first: Seq(first),
        body,
        tokens: 0,
    };
    for (starts, message) in [
        (vec![], "a view has at least one span"),
        (
            vec![start(2, SpanBody::Raw)],
            "the first span begins at 2, not at 1",
        ),
        (
            vec![start(1, SpanBody::Omitted)],
            "the final span, at 1, is not raw",
        ),
        (
            vec![start(1, SpanBody::Raw), start(3, SpanBody::Raw)],
            "the spans at 1 and 3 should be merged",
        ),
        (
            vec![start(1, SpanBody::Omitted), start(1, SpanBody::Raw)],
            "spans begin at 1 and then at 1",
        ),
    ] {
        assert_eq!(View::from_starts(&starts).unwrap_err(), message);
    }
}

#[test]
fn figures_of_raw_and_omitted_spans_are_not_kept() {
    let at = range(2, 4);
    let odd = Span::closed(at, SpanBody::Omitted, 99);
    let rows = splice_starts(
        &View::new().starts(),
        at,
        &[Span::closed(at, SpanBody::Raw, 7)],
        &[odd],
    );
    assert!(rows.unwrap().added.iter().all(|row| row.tokens == 0));
}
