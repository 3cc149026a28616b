//! Cases with several jobs or publishes in one call.

use std::time::Duration;

use memory_model::ViewVersion;
use memory_store::{
    Claim, ErrorKind, Fence, FullStore, JobKey, LeaseUpdate, Owner, Publish, Published, Store,
};

use super::jobs::{HOUR, draft, granted};
use crate::Fixture;
use crate::builders::{range, refused, showing, shown, sound};
use crate::chat::{Chat, Source};

impl<S: Store + ?Sized> Chat<'_, S> {
    async fn claim_all(&self, keys: &[&str], owner: &str) -> Vec<Claim> {
        let keys: Vec<JobKey> = keys.iter().map(|key| JobKey((*key).to_owned())).collect();
        let owner = Owner(owner.to_owned());
        let claims = self.store.claim_all(self.id, &keys, &owner, HOUR, 0).await;
        claims.expect("claims are answered")
    }

    async fn fences(&self, keys: &[&str], owner: &str) -> Vec<Fence> {
        let claims = self.claim_all(keys, owner).await;
        claims.into_iter().map(granted).collect()
    }
}

/// Checks that several jobs are claimed and settled in one call, each independently of the others.
pub async fn several_jobs_are_claimed_and_settled_in_one_call<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    assert_eq!(chat.claim_all(&[], "a").await, []);
    let fences = chat.fences(&["1", "2", "3"], "a").await;
    assert!(fences.iter().map(|fence| &*fence.key.0).eq(["1", "2", "3"]));
    assert!(fences.is_sorted_by(|a, b| a.token < b.token));
    // Job 1 is released, job 3 is handed back, and job 2 stays held. Another owner can be granted jobs 1 and 3.
    let handed_back = LeaseUpdate::Renew {
        ttl: Duration::ZERO,
    };
    let settled = [
        (fences[0].clone(), LeaseUpdate::Release),
        (fences[0].clone(), LeaseUpdate::Release),
        (fences[2].clone(), handed_back),
    ];
    let answers = store.settle_all(&settled).await.unwrap();
    let kinds = answers
        .into_iter()
        .map(|answer| answer.err().map(|error| error.kind()));
    let kinds: Vec<Option<ErrorKind>> = kinds.collect();
    assert_eq!(kinds, [None, Some(ErrorKind::Stale), None]);
    let claims = chat.claim_all(&["1", "2", "3"], "b").await;
    let [
        Claim::Granted(one),
        Claim::Held { owner, .. },
        Claim::Granted(three),
    ] = &claims[..]
    else {
        panic!("the second is held: {claims:?}");
    };
    assert_eq!(owner.0, "a");
    assert!(one.token > fences[2].token && three.token > one.token);
}

/// Checks that the updates in one call are applied in order, even if several updates are to the same job.
pub async fn updates_of_one_job_are_applied_in_order<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let other = Chat::root(store, "other").await;
    let draft = |text: &str| LeaseUpdate::Prepared(draft(text));
    let fences = chat.fences(&["1", "2", "3"], "a").await;
    let elsewhere = other.fences(&["1"], "a").await.remove(0);
    let settled = [
        (fences[0].clone(), draft("1")),
        (fences[1].clone(), draft("2")),
        (fences[0].clone(), draft("3")),
        (elsewhere, draft("4")),
        (fences[0].clone(), LeaseUpdate::Failed),
        (fences[0].clone(), draft("5")),
        (fences[2].clone(), LeaseUpdate::Release),
        (fences[2].clone(), LeaseUpdate::Failed),
    ];
    let answers = store.settle_all(&settled).await.unwrap();
    let done: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(done, [true, true, true, true, true, false, true, false]);
    for (chat, key, ready) in [
        (chat, "1", Some("3")),
        (chat, "2", Some("2")),
        (chat, "3", None),
        (other, "1", Some("4")),
    ] {
        let claim = chat.claim(key, "a").await;
        let draft = match &claim {
            Claim::Ready(_, draft) => Some(draft.0.as_str()),
            _ => None,
        };
        assert_eq!(draft, ready, "{key}");
    }
}

/// Checks that each publish of a call sees the effects of the earlier ones, and that a lost or refused publish does not
/// undo the others.
pub async fn several_publishes_have_separate_outcomes<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = Chat::filled(&store, 12).await;
    let leaf = async |first, last, fence: Option<&Fence>| Publish {
        fence: fence.cloned(),
        ..showing("dag", &chat.leaf(range(first, last), "leaf").await)
    };
    let fences = chat.fences(&["a", "b"], "me").await;
    let a = leaf(1, 4, Some(&fences[0])).await;
    let lost = leaf(3, 6, Some(&fences[1])).await;
    let stale = leaf(9, 10, Some(&fences[0])).await;
    let b = leaf(5, 8, None).await;
    // This summary is made from two summaries that are not stored when the call begins.
    let made = [&a.summaries[0], &b.summaries[0]];
    let above = chat.summary(&made.map(Source::Summary), "above").await;
    let condensed = Publish {
        expect: made.map(shown).into(),
        ..showing("dag", &above)
    };
    let mut beyond = leaf(9, 12, None).await;
    beyond.at = range(9, 13);

    let publishes = [a, lost, b, stale, condensed, beyond];
    let outcomes = store.publish_all(chat.id, &publishes).await.unwrap();
    let [a, lost, b, stale, condensed, beyond] = outcomes.try_into().unwrap();
    for (done, version) in [(a, 1), (b, 2), (condensed, 3)] {
        assert_eq!(done.unwrap(), Published::Done(ViewVersion(version)));
    }
    assert!(matches!(lost, Ok(Published::Lost { .. })));
    refused(stale, ErrorKind::Stale);
    refused(beyond, ErrorKind::Invalid);

    let id = chat.id;
    let store = fixture.reopen(store).await;
    let chat = Chat::new(&store, id);
    let stored = chat.summary_log().await;
    assert_eq!(stored.len(), 3, "what was lost or refused left no summary");
    // The history has every version, including spans that were current only within the call.
    let history = chat.publications("dag").await;
    let ranges: Vec<_> = history.iter().map(|p| p.at).collect();
    assert_eq!(ranges, [range(1, 4), range(5, 8), range(1, 8)]);
    // The successful publish has completed its job. The other job is still held.
    let claims = chat.claim_all(&["a", "b"], "other").await;
    assert!(matches!(
        claims[..],
        [Claim::Granted(_), Claim::Held { .. }]
    ));
    sound(&store).await;
}

/// Checks that a call with publishes to several views is refused, and that a refused call has no effect.
pub async fn publishes_to_several_views_are_refused<S: FullStore>(store: &S) {
    let chat = Chat::filled(store, 4).await;
    let leaf = chat.leaf(range(1, 2), "leaf").await;
    let publishes = [showing("dag", &leaf), showing("other", &leaf)];
    let answer = store.publish_all(chat.id, &publishes).await;
    refused(answer, ErrorKind::Invalid);
    assert_eq!(chat.views().await, []);
    assert_eq!(store.publish_all(chat.id, &[]).await.unwrap().len(), 0);
}
