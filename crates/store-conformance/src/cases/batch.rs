//! Several jobs or publishes in one call.

use std::time::Duration;

use memory_model::{ConversationId, RawJson, ViewVersion};
use memory_store::{Claim, Draft, ErrorKind, Fence, JobKey, LeaseUpdate, Owner, Published, Store};

use crate::Fixture;
use crate::builders::{Source, fill, range, raw, replace, root, shown, sound, summary_of};

/// A time-to-live that is longer than any test.
const HOUR: Duration = Duration::from_secs(3_600);

async fn claim_all<S: Store>(
    store: &S,
    chat: ConversationId,
    keys: &[&str],
    owner: &str,
) -> Vec<Claim> {
    let keys: Vec<JobKey> = keys.iter().map(|key| JobKey((*key).to_owned())).collect();
    let owner = Owner(owner.to_owned());
    store.claim_all(chat, &keys, &owner, HOUR, 0).await.unwrap()
}

fn granted(claim: &Claim) -> Fence {
    match claim {
        Claim::Granted(fence) => fence.clone(),
        other => panic!("expected a grant, not {other:?}"),
    }
}

/// Jobs are claimed and settled in one call, each by itself.
pub async fn several_jobs_are_claimed_and_settled_in_one_call<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    assert_eq!(claim_all(&store, chat, &[], "a").await, []);
    let first = claim_all(&store, chat, &["1", "2", "3"], "a").await;
    let fences: Vec<Fence> = first.iter().map(granted).collect();
    assert!(
        fences
            .iter()
            .zip(["1", "2", "3"])
            .all(|(fence, key)| fence.key.0 == key)
    );
    assert!(fences[0].token < fences[1].token && fences[1].token < fences[2].token);
    // Of another owner's jobs one is held, which does not keep the rest from being granted.
    let handed_back = LeaseUpdate::Renew {
        ttl: Duration::ZERO,
    };
    let settled = [
        (fences[0].clone(), LeaseUpdate::Release),
        (fences[0].clone(), LeaseUpdate::Release),
        (fences[2].clone(), handed_back),
    ];
    let answers = store.settle_all(&settled).await.unwrap();
    let kinds: Vec<Option<ErrorKind>> = answers
        .iter()
        .map(|answer| answer.as_ref().err().map(|error| error.kind()))
        .collect();
    assert_eq!(kinds, [None, Some(ErrorKind::Stale), None]);
    let owner = Owner("b".to_owned());
    let keys = ["1", "2", "3"].map(|key| JobKey(key.to_owned()));
    let second = store.claim_all(chat, &keys, &owner, HOUR, 0).await.unwrap();
    let (one, three) = (granted(&second[0]), granted(&second[2]));
    assert!(matches!(&second[1], Claim::Held { owner, .. } if owner.0 == "a"));
    assert!(one.token > fences[2].token && three.token > one.token);
    sound(&store).await;
}

/// Updates of one call are applied in order, also where several are of one job.
pub async fn updates_of_one_job_are_applied_in_order<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let other = root(&store, "other").await.id;
    let draft = |text: &str| LeaseUpdate::Prepared(Draft(RawJson::parse(text).unwrap()));
    let fences: Vec<Fence> = claim_all(&store, chat, &["1", "2", "3"], "a")
        .await
        .iter()
        .map(granted)
        .collect();
    let elsewhere = granted(&claim_all(&store, other, &["1"], "a").await[0]);
    let settled = [
        (fences[0].clone(), draft("1")),
        (fences[1].clone(), draft("2")),
        (fences[0].clone(), draft("3")),
        (elsewhere.clone(), draft("4")),
        (fences[0].clone(), LeaseUpdate::Failed),
        (fences[0].clone(), draft("5")),
        (fences[2].clone(), LeaseUpdate::Release),
        (fences[2].clone(), LeaseUpdate::Failed),
    ];
    let answers = store.settle_all(&settled).await.unwrap();
    let done: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(done, [true, true, true, true, true, false, true, false]);
    let ready = async |chat, key| {
        let keys = [JobKey(String::from(key))];
        let owner = Owner("a".to_owned());
        let claims = store.claim_all(chat, &keys, &owner, HOUR, 0);
        match claims.await.unwrap().remove(0) {
            Claim::Ready(_, draft) => Some(draft.0.as_str().to_owned()),
            _ => None,
        }
    };
    assert_eq!(ready(chat, "1").await.as_deref(), Some("3"));
    assert_eq!(ready(chat, "2").await.as_deref(), Some("2"));
    assert_eq!(ready(chat, "3").await, None);
    assert_eq!(ready(other, "1").await.as_deref(), Some("4"));
    sound(&store).await;
}

/// Each publish of a call sees what those before it left; one that is lost or refused undoes no
/// other.
pub async fn several_publishes_are_told_apart<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    fill(&store, chat, 12).await;
    let leaf = async |first, last| {
        let source = [Source::Messages(range(first, last))];
        let made = summary_of(&store, chat, &source, "leaf").await;
        let at = range(first, last);
        replace("dag", at, vec![raw(at)], vec![shown(&made)], vec![made])
    };
    let fences = claim_all(&store, chat, &["a", "b"], "me").await;
    let mut a = leaf(1, 4).await;
    a.fence = Some(granted(&fences[0]));
    let mut lost = leaf(3, 6).await;
    lost.fence = Some(granted(&fences[1]));
    let mut stale = leaf(9, 10).await;
    stale.fence.clone_from(&a.fence);
    let b = leaf(5, 8).await;
    // Made from two summaries that are not stored when the call begins.
    let sources = [
        Source::Summary(&a.summaries[0]),
        Source::Summary(&b.summaries[0]),
    ];
    let above = summary_of(&store, chat, &sources, "above").await;
    let expect = vec![shown(&a.summaries[0]), shown(&b.summaries[0])];
    let condensed = replace(
        "dag",
        range(1, 8),
        expect,
        vec![shown(&above)],
        vec![above.clone()],
    );
    let mut beyond = leaf(9, 12).await;
    beyond.at = range(9, 13);

    let publishes = [a, lost, b, stale, condensed, beyond];
    let outcomes = store.publish_all(chat, &publishes).await.unwrap();
    assert_eq!(outcomes.len(), publishes.len());
    let done = |index: usize| outcomes[index].as_ref().unwrap().clone();
    assert_eq!(done(0), Published::Done(ViewVersion(1)));
    assert!(matches!(done(1), Published::Lost { .. }));
    assert_eq!(done(2), Published::Done(ViewVersion(2)));
    assert_eq!(outcomes[3].as_ref().unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(done(4), Published::Done(ViewVersion(3)));
    assert_eq!(outcomes[5].as_ref().unwrap_err().kind(), ErrorKind::Invalid);

    let store = fixture.reopen(store).await;
    let stored = store.summary_log(chat, None, 10).await.unwrap().items;
    assert_eq!(stored.len(), 3, "what was lost or refused left no summary");
    // The whole history is there, with spans that were live within the call alone.
    let history = store
        .publications(chat, &publishes[0].view, ViewVersion(0), 10)
        .await;
    let ranges: Vec<_> = history.unwrap().items.iter().map(|p| p.at).collect();
    assert_eq!(ranges, [range(1, 4), range(5, 8), range(1, 8)]);
    // The job of what was done has ended, the other's is still held.
    let claims = claim_all(&store, chat, &["a", "b"], "other").await;
    granted(&claims[0]);
    assert!(matches!(claims[1], Claim::Held { .. }));
    sound(&store).await;
}

/// Publishes of one call are to one view; a call that cannot be understood writes nothing.
pub async fn publishes_to_several_views_are_refused<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    fill(&store, chat, 4).await;
    let at = range(1, 2);
    let made = summary_of(&store, chat, &[Source::Messages(at)], "leaf").await;
    let to = |view| {
        replace(
            view,
            at,
            vec![raw(at)],
            vec![shown(&made)],
            vec![made.clone()],
        )
    };
    let refused = store.publish_all(chat, &[to("dag"), to("other")]).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(store.views(chat).await.unwrap(), []);
    assert_eq!(store.publish_all(chat, &[]).await.unwrap().len(), 0);
    sound(&store).await;
}
