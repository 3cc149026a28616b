//! Versions of a view: every version stays unchanged.

use agent_memory::testing::render_context;
use agent_memory::{
    Budget, Context, ErrorKind, Mode, Seq, Session,
    model::{SpanBody, ViewVersion},
    store::Published,
    view::Change,
};
use proptest::prelude::*;

use crate::support::Inspect as _;
use crate::support::{both, said, small, talk};

fn text(changes: &[Change]) -> String {
    let mut out = String::new();
    for change in changes {
        out += &format!("{}\n", change.range);
        for (sign, spans) in [('-', &change.before), ('+', &change.after)] {
            for span in spans {
                let what = match &span.body {
                    SpanBody::Summary { depth, .. } => format!("summary of depth {depth}"),
                    body => format!("{body:?}"),
                };
                out += &format!("  {sign} {} {what}, {} tokens\n", span.range, span.tokens);
            }
        }
    }
    out
}

#[tokio::test]
async fn versions_are_compared_and_returned_to() {
    for place in both(small).await {
        let session = place.talked(300).await;
        session.compact(Mode::Incremental).await.unwrap();
        talk(&session, 20).await;
        let now = session.current_view().await.unwrap();
        let start = session.view_at(ViewVersion(0)).await.unwrap();
        insta::assert_snapshot!(
            "since_the_beginning",
            text(&start.diff(&now).await.unwrap())
        );
        assert_eq!(text(&now.diff(&now).await.unwrap()), "");
        let back = now.diff(&start).await.unwrap();
        let forth = start.diff(&now).await.unwrap();
        for (back, forth) in back.iter().zip(&forth) {
            assert_eq!((&back.before, &back.after), (&forth.after, &forth.before));
        }

        let newest = now.version();
        let then = session.view_at(ViewVersion(2)).await.unwrap();
        let done = session.revert_to(ViewVersion(2)).await.unwrap();
        assert_eq!(done, Published::Done(newest.next()), "{}", place.name);
        assert_eq!(session.spans().await.unwrap(), then.spans().await.unwrap());
        assert_eq!(
            session.current_view().await.unwrap().tokens(),
            then.tokens()
        );
        let again = session.revert_to(ViewVersion(2)).await.unwrap();
        assert_eq!(again, Published::Already(newest.next()));
        // And back to what it was before that: nothing is ever gone.
        session.revert_to(newest).await.unwrap();
        assert_eq!(session.spans().await.unwrap(), now.spans().await.unwrap());
        session.revert_to(ViewVersion(0)).await.unwrap();
        assert_eq!(session.spans().await.unwrap().len(), 1);
        let made = session.publications(newest, 99).await.unwrap().items;
        assert_eq!(made.len(), 3);
        assert!(session.verify().await.unwrap().is_ok());
        // Going on from there compacts again, without paying again.
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(outcome.published.get("leaf") > 0);
    }
}

#[tokio::test]
async fn versions_that_are_not_there_are_refused() {
    for place in both(small).await {
        let session = place.memory.session("s").await.unwrap();
        assert_eq!(
            session.current_view().await.unwrap().spans().await.unwrap(),
            []
        );
        let nothing = session.revert_to(ViewVersion(0)).await.unwrap();
        assert_eq!(nothing, Published::Already(ViewVersion(0)));
        talk(&session, 60).await;
        session.compact(Mode::Full).await.unwrap();
        let newest = session.current_view().await.unwrap().version();
        let error = session.view_at(newest.next()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{}", place.name);
        assert!(error.to_string().contains("the newest is"), "{error}");
        let error = session.revert_to(newest.next()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let now = session.current_view().await.unwrap();
        let error = now.up_to(Seq(61)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let error = now.up_to(Seq(3)).await.unwrap_err();
        assert!(error.to_string().contains("did not exist"), "{error}");
        let other = place.memory.session("other").await.unwrap();
        let error = now
            .diff(&other.current_view().await.unwrap())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Compact(Mode),
    ReturnTo(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1usize..40).prop_map(Step::Say),
        2 => Just(Step::Compact(Mode::Incremental)),
        1 => Just(Step::Compact(Mode::Full)),
        1 => any::<u64>().prop_map(Step::ReturnTo),
    ]
}

/// An assembled context, and the version and log from which it was assembled.
struct Seen {
    version: ViewVersion,
    head: Seq,
    budget: Budget,
    context: Context,
}

async fn play(session: &Session, steps: &[Step]) {
    let mut seen: Vec<Seen> = Vec::new();
    let mut said_so_far = 0;
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Say(count) => {
                let messages = (said_so_far + 1..=said_so_far + count).map(said);
                let told = session.ingest_batch(messages.collect()).await.unwrap();
                assert_eq!(told.conflicts(), 0);
                said_so_far += count;
            }
            Step::Compact(mode) => {
                session.compact(*mode).await.unwrap();
            }
            Step::ReturnTo(version) => {
                let now = session.current_view().await.unwrap();
                let version = ViewVersion(version % (now.version().0 + 1));
                let then = session.view_at(version).await.unwrap();
                session.revert_to(version).await.unwrap();
                assert_eq!(session.spans().await.unwrap(), then.spans().await.unwrap());
                assert_eq!(session.snapshot().await.unwrap().tokens(), then.tokens());
            }
        }
        let now = session.current_view().await.unwrap();
        let budget = Budget::tokens([600, 2_000, 50_000][n % 3]);
        seen.push(Seen {
            version: now.version(),
            head: now.snapshot().head,
            budget,
            context: session.assemble(budget).await.unwrap(),
        });
    }
    for then in seen {
        let view = session.view_at(then.version).await.unwrap();
        let view = view.up_to(then.head).await.unwrap();
        let context = view.assemble(then.budget).await.unwrap();
        assert_eq!(render_context(&context), render_context(&then.context));
        assert_eq!(context, then.context);
    }
    assert!(session.verify().await.unwrap().is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Each version over its earlier log gives the same context as when it was the latest.
    #[test]
    fn every_version_assembles_as_it_did(steps in prop::collection::vec(step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let memory = small().open().await.unwrap();
            play(&memory.session("s").await.unwrap(), &steps).await;
        });
    }
}

#[tokio::test]
async fn every_version_assembles_as_it_did_on_both_stores() {
    let steps = [
        Step::Say(120),
        Step::Compact(Mode::Incremental),
        Step::Say(30),
        Step::Compact(Mode::Full),
        Step::ReturnTo(3),
        Step::Say(40),
        Step::Compact(Mode::Full),
        Step::ReturnTo(0),
        Step::Say(3),
    ];
    for place in both(small).await {
        play(&place.memory.session("s").await.unwrap(), &steps).await;
    }
}
