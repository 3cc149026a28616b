//! Forks: they begin at a position of their parent. Later changes of one are not visible in the other.

use std::sync::Arc;

use agent_memory::testing::Scripted;
use agent_memory::{
    Budget, ErrorKind, Message, Mode, Seq, Session,
    retrieval::{ExpandArgs, GrepArgs},
    search::SearchScope,
};

use crate::support::Inspect as _;
use crate::support::{both, dump, made, plain, say, small, talk};

const BUDGET: u64 = 1_500;

async fn shown(session: &Session) -> String {
    let context = session.assemble(Budget::tokens(BUDGET)).await.unwrap();
    agent_memory::testing::render_context(&context)
}

/// Returns all data of a session, except for the list of summaries that it sees.
async fn state(session: &Session) -> String {
    let log = session.entries().await.unwrap();
    let spans = session.spans().await.unwrap();
    let versions = session
        .publications(agent_memory::model::ViewVersion(0), 999)
        .await
        .unwrap();
    format!("{log:?}\n{spans:?}\n{versions:?}\n{}", shown(session).await)
}

#[tokio::test]
async fn a_fork_goes_on_from_its_parents_view() {
    for place in both(small).await {
        let parent = place.talked(400).await;
        parent.compact(Mode::Full).await.unwrap();
        let spans = parent.spans().await.unwrap();
        // At the head the fork is its parent.
        let twin = parent.fork(Seq(400), "twin").await.unwrap();
        assert_eq!(twin.spans().await.unwrap(), spans, "{}", place.name);
        assert_eq!(shown(&twin).await, shown(&parent).await);

        for at in [0, 1, 7, 133, 200, 377] {
            let child = parent.fork(Seq(at), format!("at {at}")).await.unwrap();
            let snapshot = child.snapshot().await.unwrap();
            let (raw, cost) = (snapshot.log_tokens, snapshot.tokens());
            let inherited = child.spans().await.unwrap();
            assert!(at < 100 || cost < raw / 2, "{at}: {cost} of {raw}");
            assert!(
                inherited
                    .iter()
                    .filter(|s| s.body.summary().is_none())
                    .count()
                    <= 1
            );
            let context = child.assemble(Budget::tokens(BUDGET)).await.unwrap();
            assert!(context.tokens <= 1_500);
            assert!(child.verify().await.unwrap().is_ok());
        }
        let verified = place.memory.verify().await.unwrap();
        assert_eq!(verified.violations, []);
    }
}

#[tokio::test]
async fn parent_and_child_compact_by_themselves() {
    for place in both(small).await {
        let parent = place.talked(200).await;
        parent.compact(Mode::Full).await.unwrap();
        let child = parent.fork(Seq(130), "child").await.unwrap();
        let before = state(&parent).await;
        for n in 1..=120 {
            say(
                &child,
                Message::user(format!("Only the child hears word {n}. ").repeat(6)),
            )
            .await;
        }
        let outcome = child.compact(Mode::Full).await.unwrap();
        assert!(
            outcome.published.get("leaf") > 0,
            "{}: {outcome:?}",
            place.name
        );
        assert_eq!(state(&parent).await, before);
        let before = state(&child).await;
        for n in 1..=120 {
            say(
                &parent,
                Message::user(format!("Only the parent hears noise {n}. ").repeat(6)),
            )
            .await;
        }
        assert!(made(&parent.compact(Mode::Full).await.unwrap()).0 > 0);
        assert_eq!(state(&child).await, before);
        // A fork of the fork, within what the fork shares and within its own.
        for at in [90, 200] {
            let grandchild = child
                .fork(Seq(at), format!("grandchild {at}"))
                .await
                .unwrap();
            let before = state(&child).await;
            talk(&grandchild, 100).await;
            assert!(made(&grandchild.compact(Mode::Full).await.unwrap()).0 > 0);
            assert_eq!(state(&child).await, before);
        }
        assert_eq!(place.memory.verify().await.unwrap().violations, []);
    }
}

#[tokio::test]
async fn a_fork_sees_nothing_that_came_after_it() {
    for place in plain().await {
        let parent = place.talked(100).await;
        let child = parent.fork(Seq(60), "child").await.unwrap();
        let secret = "The launch code is heliotrope. ".repeat(10);
        for _ in 0..100 {
            parent.ingest(Message::user(secret.clone())).await.unwrap();
        }
        parent.compact(Mode::Full).await.unwrap();
        talk(&child, 30).await;
        let tools = child.retrieval();
        assert!(!tools.grep("Step 3:").await.unwrap().hits.is_empty());
        for scope in [
            SearchScope::Messages,
            SearchScope::Summaries,
            SearchScope::Both,
        ] {
            let mut args = GrepArgs::new("heliotrope");
            args.scope = scope;
            let found = tools.grep(args).await.unwrap();
            assert!(found.hits.is_empty(), "{}: {found:?}", place.name);
        }
        // Every summary of the parent is there for the child exactly if it covers shared messages.
        let all = place
            .memory
            .store()
            .summary_log(parent.id(), None, 999)
            .await
            .unwrap()
            .items;
        assert!(
            all.iter()
                .any(|summary| summary.text().contains("heliotrope"))
        );
        for summary in &all {
            let visible = summary.range.last <= Seq(60);
            let described = tools.describe(&summary.id).await;
            assert_eq!(described.is_ok(), visible, "{}", summary.range);
            let expanded = tools.expand(ExpandArgs::new(summary.id.as_str())).await;
            assert_eq!(expanded.is_ok(), visible, "{}", summary.range);
        }
        let expanded = tools
            .expand(ExpandArgs::new("messages:1-250"))
            .await
            .unwrap();
        assert!(!format!("{expanded:?}").contains("heliotrope"));
        let context = child.assemble(Budget::tokens(100_000)).await.unwrap();
        assert!(!format!("{context:?}").contains("heliotrope"));
        let parents = parent.assemble(Budget::tokens(100_000)).await.unwrap();
        assert!(format!("{parents:?}").contains("heliotrope"));
        // Nor does the parent hear the child.
        say(&child, Message::user("The child says periwinkle.")).await;
        let found = parent
            .retrieval()
            .grep(GrepArgs::new("periwinkle"))
            .await
            .unwrap();
        assert!(found.hits.is_empty());
    }
}

#[tokio::test]
async fn what_is_shared_is_paid_for_once() {
    let model = Scripted::head_cut();
    for place in both(|| small().summarizer(Arc::new(model.clone()))).await {
        let parent = place.talked(200).await;
        // As an import makes them: before anything is compacted.
        let child = parent.fork(Seq(200), "child").await.unwrap();
        let sister = parent.fork(Seq(120), "sister").await.unwrap();
        let first = parent.compact(Mode::Full).await.unwrap();
        assert!(first.calls > 0);
        let calls = model.calls();
        let again = child.compact(Mode::Full).await.unwrap();
        assert_eq!(made(&again).0, made(&first).0, "{}", place.name);
        assert_eq!(
            model.calls(),
            calls,
            "{}: the same summaries were paid for",
            place.name
        );
        assert_eq!(shown(&child).await, shown(&parent).await);
        // The sister's newest messages stay as they are: she needs fewer.
        assert!(made(&sister.compact(Mode::Full).await.unwrap()).0 > 0);
        assert!(u64::from(model.calls() - calls) < first.calls);
        assert_eq!(place.memory.verify().await.unwrap().violations, []);
    }
}

#[tokio::test]
async fn a_forks_name_is_its_own() {
    for place in plain().await {
        let parent = place.talked(20).await;
        let child = parent.fork(Seq(10), "child").await.unwrap();
        talk(&child, 1).await;
        let before = dump(&place.memory).await;
        let again = parent.fork(Seq(10), "child").await.unwrap();
        assert_eq!(again.id(), child.id());
        for (at, key) in [(11, "child"), (10, "s")] {
            let error = parent.fork(Seq(at), key).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains("choose another name"), "{error}");
        }
        let error = parent.fork(Seq(21), "beyond").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(dump(&place.memory).await, before, "{}", place.name);
    }
}
