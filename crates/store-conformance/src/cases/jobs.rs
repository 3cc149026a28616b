//! Leases and small values.

use std::time::Duration;

use memory_model::{ConversationId, RawJson, Timestamp, ViewVersion};
use memory_store::{
    Claim, Draft, ErrorKind, Fence, JobKey, LeaseUpdate, Owner, Published, State, Store,
};

use crate::Fixture;
use crate::builders::{Source, fill, range, raw, replace, root, shown, sound, summary_of};

/// A time-to-live that is longer than any test.
const HOUR: Duration = Duration::from_secs(3_600);

async fn claim<S: Store>(store: &S, chat: ConversationId, job: &str, owner: &str) -> Claim {
    claim_for(store, chat, job, owner, HOUR).await
}

/// Claims a job whose lease has ended already when somebody else asks.
async fn claim_briefly<S: Store>(store: &S, chat: ConversationId, job: &str, owner: &str) -> Claim {
    claim_for(store, chat, job, owner, Duration::ZERO).await
}

async fn claim_for<S: Store>(
    store: &S,
    chat: ConversationId,
    job: &str,
    owner: &str,
    ttl: Duration,
) -> Claim {
    let (job, owner) = (JobKey(job.to_owned()), Owner(owner.to_owned()));
    store.claim(chat, &job, &owner, ttl, 0).await.unwrap()
}

fn granted(claim: Claim) -> Fence {
    match claim {
        Claim::Granted(fence) => fence,
        other => panic!("expected a grant, not {other:?}"),
    }
}

/// Who holds the job, and until when.
fn held(claim: Claim) -> (String, Timestamp) {
    match claim {
        Claim::Held { owner, until } => (owner.0, until),
        other => panic!("expected a held job, not {other:?}"),
    }
}

async fn settle<S: Store>(store: &S, fence: &Fence, outcome: LeaseUpdate) -> Result<(), ErrorKind> {
    let settled = store.settle(fence, &outcome).await;
    settled.map_err(|error| error.kind())
}

fn draft(text: &str) -> Draft {
    Draft(RawJson::parse(text).unwrap())
}

/// While a lease runs, nobody else gets the job; its owner may take it again.
pub async fn a_job_is_granted_once<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let other = root(&store, "other").await.id;
    let first = granted(claim(&store, chat, "job", "a").await);
    assert_eq!(
        (first.conversation, &first.key),
        (chat, &JobKey("job".to_owned()))
    );
    let (owner, until) = held(claim(&store, chat, "job", "b").await);
    assert_eq!(owner, "a");
    // Who is refused does not lengthen the lease.
    assert_eq!(held(claim(&store, chat, "job", "c").await).1, until);
    // Other jobs and other conversations are free.
    granted(claim(&store, chat, "job 2", "b").await);
    granted(claim(&store, other, "job", "b").await);
    // The owner claims again, after a crash perhaps: the older fence is worth nothing then.
    let second = granted(claim(&store, chat, "job", "a").await);
    assert!(second.token > first.token);
    assert!(held(claim(&store, chat, "job", "b").await).1 >= until);
    let stale = Err(ErrorKind::Stale);
    assert_eq!(settle(&store, &first, LeaseUpdate::Release).await, stale);
    assert_eq!(settle(&store, &second, LeaseUpdate::Release).await, Ok(()));
    assert_eq!(settle(&store, &second, LeaseUpdate::Release).await, stale);
    granted(claim(&store, chat, "job", "b").await);
    sound(&store).await;
}

/// A lease ends at its time; until somebody else takes the job its owner may go on.
pub async fn a_lease_ends_and_is_renewed<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let renew = |ttl| LeaseUpdate::Renew { ttl };
    // Its time is over, but nobody took it.
    let a = granted(claim_briefly(&store, chat, "job", "a").await);
    assert_eq!(settle(&store, &a, renew(HOUR)).await, Ok(()));
    let (owner, hour) = held(claim(&store, chat, "job", "b").await);
    assert_eq!(owner, "a");
    // The new end counts from now, and the later one of two that overlap holds.
    assert_eq!(settle(&store, &a, renew(2 * HOUR)).await, Ok(()));
    let (_, two) = held(claim(&store, chat, "job", "b").await);
    assert!(two >= hour.saturating_add(HOUR), "{hour} {two}");
    assert_eq!(settle(&store, &a, renew(HOUR)).await, Ok(()));
    let (_, shorter) = held(claim(&store, chat, "job", "b").await);
    assert!(shorter >= hour && shorter < two, "{hour} {shorter} {two}");
    assert_eq!(settle(&store, &a, renew(Duration::ZERO)).await, Ok(()));
    let b = granted(claim(&store, chat, "job", "b").await);
    assert!(b.token > a.token);
    for outcome in [
        renew(HOUR),
        LeaseUpdate::Prepared(draft("1")),
        LeaseUpdate::Failed,
        LeaseUpdate::Release,
    ] {
        assert_eq!(settle(&store, &a, outcome).await, Err(ErrorKind::Stale));
    }
    assert_eq!(held(claim(&store, chat, "job", "c").await).0, "b");
    let unknown = Fence {
        key: JobKey("never claimed".to_owned()),
        ..b
    };
    assert_eq!(
        settle(&store, &unknown, LeaseUpdate::Failed).await,
        Err(ErrorKind::Stale)
    );
    // A lease that is longer than time itself ends never.
    let c = claim_for(&store, chat, "long", "c", Duration::MAX).await;
    assert_eq!(
        settle(&store, &granted(c), renew(Duration::MAX)).await,
        Ok(())
    );
    assert_eq!(
        held(claim(&store, chat, "long", "b").await),
        ("c".to_owned(), Timestamp(i64::MAX))
    );
    sound(&store).await;
}

/// Prepared work waits for whoever claims the job next.
pub async fn prepared_work_is_kept<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let a = granted(claim(&store, chat, "job", "a").await);
    let work = draft(r#"{"b":1.00,"b":2,"s":"\ud800","n":1e400}"#);
    let prepared = LeaseUpdate::Prepared(work.clone());
    assert_eq!(settle(&store, &a, prepared).await, Ok(()));
    // The lease goes on.
    assert_eq!(held(claim(&store, chat, "job", "b").await).0, "a");
    let handed_back = LeaseUpdate::Renew {
        ttl: Duration::ZERO,
    };
    assert_eq!(settle(&store, &a, handed_back).await, Ok(()));
    let store = fixture.reopen(store).await;
    let Claim::Ready(b, found) = claim_briefly(&store, chat, "job", "b").await else {
        panic!("prepared work is ready");
    };
    assert_eq!(found, work);
    assert_eq!(
        settle(&store, &a, LeaseUpdate::Release).await,
        Err(ErrorKind::Stale)
    );
    // It is replaced by newer work, and gone after release.
    let newer = LeaseUpdate::Prepared(draft("2"));
    assert_eq!(settle(&store, &b, newer).await, Ok(()));
    let Claim::Ready(b, found) = claim(&store, chat, "job", "b").await else {
        panic!("prepared work is ready");
    };
    assert_eq!(found, draft("2"));
    assert_eq!(settle(&store, &b, LeaseUpdate::Release).await, Ok(()));
    granted(claim(&store, chat, "job", "c").await);
    sound(&store).await;
}

/// After a failure anybody may claim the job at once, and the failed fence is worth nothing.
pub async fn a_failed_job_is_free_again<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let a = granted(claim(&store, chat, "job", "a").await);
    assert_eq!(settle(&store, &a, LeaseUpdate::Failed).await, Ok(()));
    assert_eq!(
        settle(&store, &a, LeaseUpdate::Failed).await,
        Err(ErrorKind::Stale)
    );
    let b = granted(claim(&store, chat, "job", "b").await);
    assert!(b.token > a.token);
    // Prepared work outlives a failure: what failed may have been its publishing.
    let prepared = LeaseUpdate::Prepared(draft("[]"));
    assert_eq!(settle(&store, &b, prepared).await, Ok(()));
    assert_eq!(settle(&store, &b, LeaseUpdate::Failed).await, Ok(()));
    let ready = claim(&store, chat, "job", "c").await;
    assert!(matches!(ready, Claim::Ready(_, work) if work == draft("[]")));
    sound(&store).await;
}

/// A publish under a fence is done only while the fence holds, and then ends the job.
pub async fn a_fence_guards_a_publish<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let other = root(&store, "other").await.id;
    fill(&store, chat, 8).await;
    let leaf = summary_of(&store, chat, &[Source::Messages(range(1, 4))], "leaf").await;
    let at = range(1, 4);
    let mut publish = replace(
        "dag",
        at,
        vec![raw(at)],
        vec![shown(&leaf)],
        vec![leaf.clone()],
    );

    let a = granted(claim_briefly(&store, chat, "job", "a").await);
    let b = granted(claim(&store, chat, "job", "b").await);
    let foreign = granted(claim(&store, other, "job", "b").await);
    // The same job and number, but of another conversation.
    let disguised = Fence {
        token: b.token,
        ..foreign
    };
    for stale in [a, disguised] {
        publish.fence = Some(stale);
        let error = store.publish(chat, &publish).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    }
    assert_eq!(store.views(chat).await.unwrap(), []);
    let ids = std::slice::from_ref(&leaf.id);
    assert_eq!(
        store.summaries(chat, ids).await.unwrap(),
        [None],
        "nothing was stored"
    );

    // A lost publish leaves the job as it is.
    let mut lost = publish.clone();
    lost.expect = vec![];
    lost.fence = Some(b.clone());
    let outcome = store.publish(chat, &lost).await.unwrap();
    assert!(matches!(outcome, Published::Lost { .. }));
    held(claim(&store, chat, "job", "c").await);

    publish.fence = Some(b.clone());
    let done = store.publish(chat, &publish).await.unwrap();
    assert_eq!(done, Published::Done(ViewVersion(1)));
    let gone = settle(&store, &b, LeaseUpdate::Release).await;
    assert_eq!(gone, Err(ErrorKind::Stale), "the job is done");
    granted(claim(&store, chat, "job", "c").await);
    sound(&store).await;
}

/// Numbers of fences are never used again, so an old fence stays worthless for ever.
pub async fn an_old_fence_never_comes_back<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let mut old = vec![granted(claim_briefly(&store, chat, "job", "a").await)];
    for _ in 0..3 {
        let next = granted(claim(&store, chat, "job", "b").await);
        assert_eq!(settle(&store, &next, LeaseUpdate::Release).await, Ok(()));
        old.push(next);
        let current = granted(claim_briefly(&store, chat, "job", "c").await);
        for fence in &old {
            assert!(fence.token < current.token, "{fence:?} and {current:?}");
            let renew = LeaseUpdate::Renew { ttl: HOUR };
            assert_eq!(settle(&store, fence, renew).await, Err(ErrorKind::Stale));
        }
    }
    sound(&store).await;
}

/// A small value is set only by who knows its revision.
pub async fn state_is_changed_by_revision<F: Fixture>(fixture: &F) {
    let store = fixture.fresh().await;
    let chat = root(&store, "chat").await.id;
    let other = root(&store, "other").await.id;
    let json = |text: &str| RawJson::parse(text).unwrap();
    let (one, two) = (json(r#"{"a":1.00,"a":2}"#), json("null"));
    assert_eq!(store.state(chat, "key").await.unwrap(), None);
    let stale = store
        .put_state(chat, "key", 1, Some(&one))
        .await
        .unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Stale, "{stale}");
    assert_eq!(
        store.put_state(chat, "key", 0, Some(&one)).await.unwrap(),
        1
    );
    assert_eq!(
        store.put_state(chat, "key", 1, Some(&two)).await.unwrap(),
        2
    );
    for revision in [0, 1, 3] {
        for value in [None, Some(&one)] {
            let stale = store
                .put_state(chat, "key", revision, value)
                .await
                .unwrap_err();
            assert_eq!(stale.kind(), ErrorKind::Stale, "{stale}");
        }
    }
    let found = State {
        value: two,
        revision: 2,
    };
    assert_eq!(store.state(chat, "key").await.unwrap(), Some(found));
    assert_eq!(store.state(chat, "Key").await.unwrap(), None);
    assert_eq!(store.state(other, "key").await.unwrap(), None);
    assert_eq!(
        store.put_state(other, "key", 0, Some(&one)).await.unwrap(),
        1
    );
    assert_eq!(store.put_state(chat, "key", 2, None).await.unwrap(), 0);
    assert_eq!(store.state(chat, "key").await.unwrap(), None);
    assert_eq!(store.put_state(chat, "key", 0, None).await.unwrap(), 0);
    let back = store.state(other, "key").await.unwrap();
    assert_eq!(back.map(|state| state.value), Some(one.clone()));
    assert_eq!(
        store.put_state(chat, "key", 0, Some(&one)).await.unwrap(),
        1
    );
    sound(&store).await;
}
