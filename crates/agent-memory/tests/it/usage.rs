//! Costs of requests that providers report.

use agent_memory::testing::memory;
use agent_memory::{
    Budget, Context, ErrorKind, HandoffPolicy, Mode, Seq, Session,
    compaction::{CompactionResult, CutPolicy, HandOver, HandOverOutcome},
    tokens::{ObservedUsage, ResponseStatus, SafetyFactor, Usage as ResponseUsage, estimator},
};

use crate::support::Inspect as _;
use crate::support::{both, plain, said, talk};

fn usage(input: u64, output: u64) -> ResponseUsage {
    ResponseUsage {
        input,
        output,
        ..ResponseUsage::default()
    }
}

async fn assembled(session: &Session, budget: u64) -> Context {
    session.assemble(Budget::tokens(budget)).await.unwrap()
}

/// Sends a request whose prompt costs this many thousandths of its estimate.
async fn request(session: &Session, model: &str, thousandths: u64) -> bool {
    let context = assembled(session, 100_000).await;
    session.ingest(said(2)).await.unwrap();
    let real = context.tokens * thousandths / 1_000;
    let observed = ObservedUsage::new(model, usage(real, 30)).with_context(&context);
    session.observe_usage(&observed).await.unwrap()
}

#[tokio::test]
async fn with_nothing_observed_the_estimators_own_factor_scales_budgets() {
    for place in plain().await {
        let session = place.talked(400).await;
        let factor = session.usage().await.unwrap().safety_factor.thousandths();
        assert!((1_001..1_200).contains(&factor), "{factor}");
        for budget in [1_500, 4_000, 100_000] {
            let context = assembled(&session, budget).await;
            let limit = budget * 1_000 / u64::from(factor);
            assert_eq!(context.budget, budget);
            assert_eq!(context.receipt.limit, limit, "{}", place.name);
            assert!(context.tokens <= limit);
            let whole = Budget::tokens(budget).with_safety_factor(SafetyFactor::ONE);
            let context = session.assemble(whole).await.unwrap();
            assert_eq!(context.receipt.limit, budget);
            assert!(context.tokens <= budget);
        }
        let anna = memory().estimator(estimator("anna").unwrap()).open().await;
        let session = anna.unwrap().session("s").await.unwrap();
        talk(&session, 40).await;
        assert_eq!(assembled(&session, 1_000).await.receipt.limit, 1_000);
    }
}

#[tokio::test]
async fn budgets_follow_the_model_and_counts_stay() {
    for place in plain().await {
        let session = place.talked(100).await;
        let documented = session.usage().await.unwrap().safety_factor.thousandths();
        assert!(request(&session, "large", 1_234).await);
        let before = session.info().await.unwrap().conversation;
        // Rounded up to a step, so that the start of a context stays where it is.
        assert_eq!(
            session.usage().await.unwrap().safety_factor.thousandths(),
            1_250
        );
        let context = assembled(&session, 2_000).await;
        assert_eq!(context.receipt.limit, 1_600, "{}", place.name);
        assert!(context.tokens <= 1_600);
        request(&session, "large", 1_240).await;
        assert_eq!(
            session.usage().await.unwrap().safety_factor.thousandths(),
            1_250
        );

        // It is kept.
        let place = place.reopen(memory()).await;
        let session = place.memory.session("s").await.unwrap();
        assert_eq!(
            session.usage().await.unwrap().safety_factor.thousandths(),
            1_250
        );
        assert_eq!(assembled(&session, 2_000).await.receipt.limit, 1_600);

        // A model that was never seen begins with what is documented, or with worse.
        request(&session, "small", 900).await;
        let factor = session.usage().await.unwrap().safety_factor.thousandths();
        assert!((documented..documented + 25).contains(&factor), "{factor}");
        // A real count below the estimate never gives more than the budget.
        for _ in 0..20 {
            request(&session, "small", 700).await;
        }
        let context = assembled(&session, 2_000).await;
        assert_eq!((context.receipt.limit, context.budget), (2_000, 2_000));
        assert!(context.tokens <= 2_000);

        let log = session.entries().await.unwrap();
        let then = usize::try_from(before.head.0).unwrap();
        assert_eq!(log[then - 1].running, before.tokens);
        assert!(place.memory.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn the_size_of_a_view_begins_with_the_last_real_figure() {
    for place in plain().await {
        let session = place.talked(20).await;
        let estimate = session.info().await.unwrap().conversation.tokens;
        let size = session.usage().await.unwrap().context;
        assert_eq!((size.reported, size.estimated), (0, estimate));

        let observed = ObservedUsage::new("m", usage(5_000, 50));
        assert!(session.observe_usage(&observed).await.unwrap());
        talk(&session, 4).await;
        let after = session.info().await.unwrap().conversation.tokens - estimate;
        let size = session.usage().await.unwrap().context;
        assert_eq!(
            (size.reported, size.estimated, size.reported_at),
            (5_050, after, Some(20)),
            "{}",
            place.name
        );
        assert!(session.needs_compaction(5_049 + after).await.unwrap());
        assert!(!session.needs_compaction(5_050 + after).await.unwrap());

        // What says nothing changes nothing.
        for said_nothing in [
            ObservedUsage::new("m", usage(0, 0)),
            ObservedUsage {
                status: ResponseStatus::Aborted,
                ..ObservedUsage::new("m", usage(9, 9))
            },
            ObservedUsage {
                status: ResponseStatus::Failed,
                ..ObservedUsage::new("m", usage(9, 9))
            },
            ObservedUsage {
                at: Some(Seq(7)),
                ..ObservedUsage::new("m", usage(9, 9))
            },
        ] {
            assert!(!session.observe_usage(&said_nothing).await.unwrap());
            assert_eq!(session.usage().await.unwrap().context, size);
        }
        // A response that is not the newest message.
        let older = ObservedUsage {
            at: Some(Seq(22)),
            ..ObservedUsage::new("m", usage(6_000, 0))
        };
        assert!(session.observe_usage(&older).await.unwrap());
        let log = session.entries().await.unwrap();
        let size = session.usage().await.unwrap().context;
        assert_eq!(size.estimated, log[22].tokens + log[23].tokens);
        let error = session
            .observe_usage(&ObservedUsage {
                at: Some(Seq(25)),
                ..ObservedUsage::new("m", usage(1, 1))
            })
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("no message 25"), "{error}");
    }
}

#[tokio::test]
async fn a_figure_from_before_a_compaction_does_not_count() {
    for place in plain().await {
        let session = place.talked(2_000).await;
        let observed = ObservedUsage::new("m", usage(70_000, 0));
        assert!(session.observe_usage(&observed).await.unwrap());
        assert!(session.needs_compaction(65_000).await.unwrap());
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(outcome.published.get("leaf") > 0);
        let size = session.usage().await.unwrap().context;
        assert_eq!((size.reported, size.reported_at), (0, None));
        assert_eq!(size.estimated, outcome.after.tokens, "{}", place.name);
        assert!(!session.observe_usage(&observed).await.unwrap());
        session.ingest(said(2)).await.unwrap();
        assert!(session.observe_usage(&observed).await.unwrap());
        assert_eq!(session.usage().await.unwrap().context.reported, 70_000);
    }
}

#[tokio::test]
async fn what_a_context_left_out_is_still_part_of_the_view() {
    for place in plain().await {
        let session = place.talked(300).await;
        let context = assembled(&session, 2_000).await;
        // A digest stands for the oldest messages.
        let digest = context
            .receipt
            .degraded
            .iter()
            .find(|d| d.first == Seq::FIRST);
        let digest = digest.expect("a digest");
        let left_out = digest.from_tokens - digest.to_tokens;
        assert!(context.receipt.dropped.is_empty());
        assert!(left_out > 4_000);
        session.ingest(said(2)).await.unwrap();
        let observed = ObservedUsage::new("m", usage(context.tokens, 30)).with_context(&context);
        assert!(session.observe_usage(&observed).await.unwrap());
        let size = session.usage().await.unwrap().context;
        assert_eq!(size.estimated, left_out, "{}", place.name);
        // What else was sent is in the real figure, and so belongs into the estimate.
        session.ingest(said(2)).await.unwrap();
        let mut observed =
            ObservedUsage::new("n", usage(context.tokens + 500, 30)).with_context(&context);
        observed.other_tokens = 500;
        assert!(session.observe_usage(&observed).await.unwrap());
        assert!(session.usage().await.unwrap().safety_factor.thousandths() < 1_100);
    }
}

#[tokio::test]
async fn a_figure_from_before_a_handoff_does_not_count() {
    let build = || {
        memory().handoff(HandoffPolicy {
            keep: CutPolicy::LastMessages { messages: 4 },
            min_tokens: 0,
            ..HandoffPolicy::default()
        })
    };
    for place in both(build).await {
        for appended in [false, true] {
            let session = place.memory.session(format!("{appended}")).await.unwrap();
            talk(&session, 200).await;
            let observed = ObservedUsage::new("m", usage(70_000, 0));
            assert!(session.observe_usage(&observed).await.unwrap());
            let tokens_after = match appended {
                true => {
                    let result = CompactionResult::new("All of it.", Seq(190));
                    let handoff = session.append_compaction(&result).await;
                    handoff.unwrap().tokens_after
                }
                false => match session.hand_over(&HandOver::default()).await.unwrap() {
                    HandOverOutcome::Done(handoff) => handoff.tokens_after,
                    skipped => panic!("{skipped:?}"),
                },
            };
            let size = session.usage().await.unwrap().context;
            assert_eq!((size.reported, size.reported_at), (0, None));
            assert_eq!(size.estimated, tokens_after, "{}", place.name);
            assert!(!session.observe_usage(&observed).await.unwrap());
        }
    }
}
