//! Overlays and labels.
use compaction_plan::{Label, LabelCounts, Overlay};
use memory_model::{Seq, SeqRange, Span, SpanBody, SpanRange, SummaryId, View};

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(Seq(first), Seq(last)).unwrap()
}

fn summary(first: u32, last: u32, name: &str) -> Span {
    let id = SummaryId::new(name);
    Span::closed(range(first, last), SpanBody::Summary { id, depth: 0 }, 10)
}

fn raw(first: u32, last: Option<u32>) -> Span {
    let range = SpanRange {
        first: Seq(first),
        last: last.map(Seq),
    };
    let body = SpanBody::Raw;
    Span {
        range,
        body,
        tokens: 0,
    }
}

#[test]
fn an_overlay_shows_what_the_view_will_hold_whatever_the_pages() {
    let view = [
        summary(1, 10, "a"),
        summary(11, 20, "b"),
        raw(21, Some(50)),
        summary(51, 60, "c"),
        raw(61, None),
    ];
    let overlay = Overlay::new([
        (range(61, 70), vec![summary(61, 70, "y")]),
        (range(1, 20), vec![summary(1, 20, "x")]),
        (range(31, 40), vec![raw(31, Some(35)), summary(36, 40, "z")]),
    ]);
    let expected = [
        summary(1, 20, "x"),
        raw(21, Some(30)),
        raw(31, Some(35)),
        summary(36, 40, "z"),
        raw(41, Some(50)),
        summary(51, 60, "c"),
        summary(61, 70, "y"),
        raw(71, None),
    ];
    for page in 1..=view.len() {
        let shown: Vec<Span> = view.chunks(page).flat_map(|p| overlay.apply(p)).collect();
        assert_eq!(shown, expected, "in pages of {page}");
    }
}

#[test]
fn a_later_replacement_covers_earlier_ones() {
    let mut overlay = Overlay::default();
    overlay.replace(range(11, 20), vec![summary(11, 20, "b")]);
    overlay.replace(range(1, 10), vec![summary(1, 10, "a")]);
    overlay.replace(range(1, 20), vec![summary(1, 20, "ab")]);
    let shown = overlay.apply(View::new().spans());
    assert_eq!(shown, [summary(1, 20, "ab"), raw(21, None)]);
}

#[test]
fn labels_are_counted_and_keep_their_json_form() {
    let mut counts = LabelCounts::default();
    counts.add(&Label::from_static("leaf"), 2);
    counts.add(&Label::new("trim"), 1);
    counts.add(&Label::new("leaf"), 1);
    counts.add(&Label::new("never"), 0);
    assert_eq!(
        serde_json::to_string(&counts).unwrap(),
        r#"{"leaf":3,"trim":1}"#
    );
    assert_eq!(
        (counts.get("leaf"), counts.get("never"), counts.total()),
        (3, 0, 4)
    );
}
