//! Cases of leases on jobs, and of small values.

use std::time::Duration;

use memory_model::{RawJson, Timestamp, ViewVersion};
use memory_store::{
    Claim, Draft, ErrorKind, Fence, FullStore, JobKey, LeaseUpdate, Owner, Published, State, Store,
};

use crate::Fixture;
use crate::builders::{range, refused, showing, sound};
use crate::chat::Chat;

/// A time-to-live longer than any test.
pub(super) const HOUR: Duration = Duration::from_secs(3_600);

impl<S: Store + ?Sized> Chat<'_, S> {
    pub(super) async fn claim(&self, job: &str, owner: &str) -> Claim {
        self.claim_for(job, owner, HOUR).await
    }

    /// Claims a job with a lease that ends at once.
    async fn claim_briefly(&self, job: &str, owner: &str) -> Claim {
        self.claim_for(job, owner, Duration::ZERO).await
    }

    async fn claim_for(&self, job: &str, owner: &str, ttl: Duration) -> Claim {
        let (job, owner) = (JobKey(job.to_owned()), Owner(owner.to_owned()));
        let claim = self.store.claim(self.id, &job, &owner, ttl, 0).await;
        claim.expect("a claim is answered")
    }
}

pub(super) fn granted(claim: Claim) -> Fence {
    match claim {
        Claim::Granted(fence) => fence,
        other => panic!("expected a grant, not {other:?}"),
    }
}

/// Returns the owner of the job and the end of its lease.
fn held(claim: Claim) -> (String, Timestamp) {
    match claim {
        Claim::Held { owner, until } => (owner.0, until),
        other => panic!("expected a held job, not {other:?}"),
    }
}

async fn settle<S: Store>(store: &S, fence: &Fence, outcome: LeaseUpdate) {
    let settled = store.settle(fence, &outcome).await;
    settled.expect("a job is settled");
}

async fn is_stale<S: Store>(store: &S, fence: &Fence, outcome: LeaseUpdate) {
    refused(store.settle(fence, &outcome).await, ErrorKind::Stale);
}

pub(super) fn draft(text: &str) -> Draft {
    Draft(RawJson::parse(text).unwrap())
}

/// Checks that no other owner is granted a job while a lease on it is active, and that the lease's owner may claim it
/// again.
pub async fn a_job_is_granted_once<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let other = Chat::root(store, "other").await;
    let first = granted(chat.claim("job", "a").await);
    assert_eq!(
        (first.conversation, &first.key),
        (chat.id, &JobKey("job".to_owned()))
    );
    let (owner, until) = held(chat.claim("job", "b").await);
    assert_eq!(owner, "a");
    // A refused claim does not extend the lease.
    assert_eq!(held(chat.claim("job", "c").await).1, until);
    // Other jobs, and jobs of other conversations, are free.
    granted(chat.claim("job 2", "b").await);
    granted(other.claim("job", "b").await);
    // The owner claims again, for example after a crash. The older fence is no longer valid.
    let second = granted(chat.claim("job", "a").await);
    assert!(second.token > first.token);
    assert!(held(chat.claim("job", "b").await).1 >= until);

    is_stale(store, &first, LeaseUpdate::Release).await;
    settle(store, &second, LeaseUpdate::Release).await;
    is_stale(store, &second, LeaseUpdate::Release).await;
    granted(chat.claim("job", "b").await);
}

/// Checks that a lease ends at its time, and that its owner may continue until another owner is granted the job.
pub async fn a_lease_ends_and_is_renewed<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let renew = |ttl| LeaseUpdate::Renew { ttl };
    // The lease has ended, and no other owner has claimed the job.
    let a = granted(chat.claim_briefly("job", "a").await);
    settle(store, &a, renew(HOUR)).await;
    let (owner, hour) = held(chat.claim("job", "b").await);
    assert_eq!(owner, "a");
    // The new end counts from now. The last renewal decides.
    settle(store, &a, renew(2 * HOUR)).await;
    let (_, two) = held(chat.claim("job", "b").await);
    assert!(two >= hour.saturating_add(HOUR), "{hour} {two}");
    settle(store, &a, renew(HOUR)).await;
    let (_, shorter) = held(chat.claim("job", "b").await);
    assert!(shorter >= hour && shorter < two, "{hour} {shorter} {two}");
    settle(store, &a, renew(Duration::ZERO)).await;
    let b = granted(chat.claim("job", "b").await);
    assert!(b.token > a.token);
    for outcome in [
        renew(HOUR),
        LeaseUpdate::Prepared(draft("1")),
        LeaseUpdate::Failed,
        LeaseUpdate::Release,
    ] {
        is_stale(store, &a, outcome).await;
    }
    assert_eq!(held(chat.claim("job", "c").await).0, "b");
    let unknown = Fence {
        key: JobKey("never claimed".to_owned()),
        ..b
    };
    is_stale(store, &unknown, LeaseUpdate::Failed).await;
    // A lease that is longer than the range of times never ends.
    let c = chat.claim_for("long", "c", Duration::MAX).await;
    settle(store, &granted(c), renew(Duration::MAX)).await;
    assert_eq!(
        held(chat.claim("long", "b").await),
        ("c".to_owned(), Timestamp(i64::MAX))
    );
}

/// Checks that prepared work is kept for the next owner of the job.
pub async fn prepared_work_is_kept<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = Chat::root(&store, "chat").await;
    let a = granted(chat.claim("job", "a").await);
    let work = draft(r#"{"b":1.00,"b":2,"s":"\ud800","n":1e400}"#);
    let prepared = LeaseUpdate::Prepared(work.clone());
    settle(&store, &a, prepared).await;
    // The lease continues.
    assert_eq!(held(chat.claim("job", "b").await).0, "a");
    let handed_back = LeaseUpdate::Renew {
        ttl: Duration::ZERO,
    };
    settle(&store, &a, handed_back).await;
    let id = chat.id;
    let store = fixture.reopen(store).await;
    let chat = Chat::new(&store, id);
    let Claim::Ready(b, found) = chat.claim_briefly("job", "b").await else {
        panic!("prepared work is ready");
    };
    assert_eq!(found, work);
    is_stale(&store, &a, LeaseUpdate::Release).await;
    // Newer work replaces the prepared work, and a release removes it.
    let newer = LeaseUpdate::Prepared(draft("2"));
    settle(&store, &b, newer).await;
    let Claim::Ready(b, found) = chat.claim("job", "b").await else {
        panic!("prepared work is ready");
    };
    assert_eq!(found, draft("2"));
    settle(&store, &b, LeaseUpdate::Release).await;
    granted(chat.claim("job", "c").await);
    sound(&store).await;
}

/// Checks that after a failure any owner may claim the job at once, and that the fence of the failed grant is no longer
/// valid.
pub async fn a_failed_job_is_free_again<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let a = granted(chat.claim("job", "a").await);
    settle(store, &a, LeaseUpdate::Failed).await;
    is_stale(store, &a, LeaseUpdate::Failed).await;
    let b = granted(chat.claim("job", "b").await);
    assert!(b.token > a.token);
    // Prepared work is kept after a failure, because the failure may have been in publishing it.
    let prepared = LeaseUpdate::Prepared(draft("[]"));
    settle(store, &b, prepared).await;
    settle(store, &b, LeaseUpdate::Failed).await;
    let ready = chat.claim("job", "c").await;
    assert!(matches!(ready, Claim::Ready(_, work) if work == draft("[]")));
}

/// Checks that a publish with a fence succeeds only while the fence is valid, and that it completes the job.
pub async fn a_fence_guards_a_publish<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let other = Chat::root(store, "other").await;
    chat.fill(8).await;
    let leaf = chat.leaf(range(1, 4), "leaf").await;
    let mut publish = showing("dag", &leaf);

    let a = granted(chat.claim_briefly("job", "a").await);
    let b = granted(chat.claim("job", "b").await);
    let foreign = granted(other.claim("job", "b").await);
    // A fence with the same job and number, but of another conversation.
    let disguised = Fence {
        token: b.token,
        ..foreign
    };
    for stale in [a, disguised] {
        publish.fence = Some(stale);
        let answer = store.publish(chat.id, &publish).await;
        refused(answer, ErrorKind::Stale);
    }
    assert_eq!(chat.views().await, []);
    assert_eq!(
        chat.summary_by_id(&leaf.id).await,
        None,
        "nothing was stored"
    );

    // A lost publish does not change the job.
    let mut lost = publish.clone();
    lost.expect = vec![];
    lost.fence = Some(b.clone());
    let outcome = chat.publish(&lost).await;
    assert!(matches!(outcome, Published::Lost { .. }));
    held(chat.claim("job", "c").await);

    publish.fence = Some(b.clone());
    let done = chat.publish(&publish).await;
    assert_eq!(done, Published::Done(ViewVersion(1)));
    is_stale(store, &b, LeaseUpdate::Release).await;
    granted(chat.claim("job", "c").await);
}

/// Checks that numbers of fences are never reused, so that an old fence never becomes valid again.
pub async fn an_old_fence_is_never_valid_again<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await;
    let mut old = vec![granted(chat.claim_briefly("job", "a").await)];
    for _ in 0..3 {
        let next = granted(chat.claim("job", "b").await);
        settle(store, &next, LeaseUpdate::Release).await;
        old.push(next);
        let current = granted(chat.claim_briefly("job", "c").await);
        for fence in &old {
            assert!(fence.token < current.token, "{fence:?} and {current:?}");
            let renew = LeaseUpdate::Renew { ttl: HOUR };
            is_stale(store, fence, renew).await;
        }
    }
}

/// Checks that a small value is set only by a caller who gives its current revision.
pub async fn state_is_changed_by_revision<S: FullStore>(store: &S) {
    let chat = Chat::root(store, "chat").await.id;
    let other = Chat::root(store, "other").await.id;
    let json = |text: &str| RawJson::parse(text).unwrap();
    let (one, two) = (json(r#"{"a":1.00,"a":2}"#), json("null"));
    let get = async |chat, key| store.state(chat, key).await.unwrap();
    let put = async |chat, revision, value| store.put_state(chat, "key", revision, value).await;
    assert_eq!(get(chat, "key").await, None);
    refused(put(chat, 1, Some(&one)).await, ErrorKind::Stale);
    assert_eq!(put(chat, 0, Some(&one)).await.unwrap(), 1);
    assert_eq!(put(chat, 1, Some(&two)).await.unwrap(), 2);
    for revision in [0, 1, 3] {
        for value in [None, Some(&one)] {
            refused(put(chat, revision, value).await, ErrorKind::Stale);
        }
    }
    let found = State {
        value: two.clone(),
        revision: 2,
    };
    assert_eq!(get(chat, "key").await, Some(found));
    assert_eq!(get(chat, "Key").await, None);
    assert_eq!(get(other, "key").await, None);
    assert_eq!(put(other, 0, Some(&one)).await.unwrap(), 1);
    assert_eq!(put(chat, 2, None).await.unwrap(), 0);
    assert_eq!(get(chat, "key").await, None);
    assert_eq!(put(chat, 0, None).await.unwrap(), 0);
    let back = get(other, "key").await;
    assert_eq!(back.map(|state| state.value), Some(one.clone()));
    assert_eq!(put(chat, 0, Some(&one)).await.unwrap(), 1);
}
