//! SQL statements for jobs and small values, and functions that read their rows.

use memory_model::{ConversationId, RawJson, Timestamp};
use memory_store::{Draft, Fence, JobKey, LeaseUpdate, Owner, State};
use sea_query::{
    CaseStatement, DeleteStatement, Expr, ExprTrait as _, InsertStatement, OnConflict, Query,
    SelectStatement, SimpleExpr, UpdateStatement,
};

use crate::convert::{to_count, to_int, to_json};
use crate::error::{Result, corrupt};
use crate::family::Family;
use crate::insert::{insert, insert_row};
use crate::row::Columns;
use crate::tables::{Conversation as C, Job as J, State as V};

/// State of a job, as stored in the column `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// An owner has the lease on the job, and its work is not prepared yet.
    Held,
    /// The work of the job is prepared and waits to be published.
    Ready,
    /// The last attempt failed, and any owner may claim the job.
    Free,
}

impl JobState {
    fn as_str(self) -> &'static str {
        match self {
            JobState::Held => "held",
            JobState::Ready => "ready",
            JobState::Free => "free",
        }
    }
}

/// A stored job: one piece of work to do once, such as one summary to write, with its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// State of the job.
    pub state: JobState,
    /// Owner that got the last lease on the job.
    pub owner: Owner,
    /// Fencing token of the last lease: a number that rises with each lease.
    pub fence: u64,
    /// End of the lease, by the store's clock.
    pub expires: Timestamp,
    /// Number of times that the job failed.
    pub tries: u64,
    /// Prepared work of the job. `None` if no work is prepared.
    pub draft: Option<Draft>,
}

impl Job {
    /// Returns whether an owner other than `owner` has an active lease on the job at the time `now`.
    pub fn is_held_from(&self, owner: &Owner, now: Timestamp) -> bool {
        self.state != JobState::Free && self.expires > now && self.owner != *owner
    }

    /// Returns the job after `owner` gets a lease with the given fencing token. The lease ends at `expires`. `before`
    /// is the stored job before the lease, or `None` for a new job.
    pub fn granted(before: Option<&Job>, owner: &Owner, fence: u64, expires: Timestamp) -> Self {
        let draft = before.and_then(|job| job.draft.clone());
        Self {
            state: match draft {
                Some(_) => JobState::Ready,
                None => JobState::Held,
            },
            owner: owner.clone(),
            fence,
            expires,
            tries: before.map_or(0, |job| job.tries),
            draft,
        }
    }
}

const JOB: [J; 6] = [J::State, J::Owner, J::Fence, J::Expires, J::Tries, J::Draft];

/// Builds the SQL statement that selects jobs of a conversation by key. Each row has the key, and then the columns that
/// [`job`] reads.
pub fn find_jobs(family: Family, conversation: ConversationId, keys: &[&str]) -> SelectStatement {
    Query::select()
        .column(J::Key)
        .columns(JOB)
        .from(J::Table)
        .and_where_option(family.rows((J::Table, J::Tree)))
        .and_where(with_keys(conversation, keys))
        .take()
}

fn with_keys(conversation: ConversationId, keys: &[&str]) -> SimpleExpr {
    let own = Expr::col(J::Conversation).eq(i64::from(conversation.0));
    own.and(Expr::col(J::Key).is_in(keys.iter().copied()))
}

/// Reads a job from the columns of a row of [`find_jobs`], from index `at` on.
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn job(row: &impl Columns, at: usize) -> Result<Job> {
    let state = match row.text(at)?.as_str() {
        "held" => JobState::Held,
        "ready" => JobState::Ready,
        "free" => JobState::Free,
        other => return Err(corrupt("job", format!("unknown state {other}"))),
    };
    let draft = to_json("the draft of a job", row.opt_text(at + 5)?)?;
    Ok(Job {
        state,
        owner: Owner(row.text(at + 1)?),
        fence: to_count("fence", row.int(at + 2)?)?,
        expires: Timestamp(row.int(at + 3)?),
        tries: to_count("tries", row.int(at + 4)?)?,
        draft: draft.map(Draft),
    })
}

/// Builds the SQL statement that inserts or replaces jobs.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn put_jobs(
    family: Family,
    conversation: ConversationId,
    jobs: &[(&JobKey, Job)],
) -> Result<InsertStatement> {
    let row = |(key, job): &(&JobKey, Job)| {
        let draft = job.draft.as_ref();
        Ok([
            (J::Conversation, i64::from(conversation.0).into()),
            (J::Key, key.0.as_str().into()),
            (J::State, job.state.as_str().into()),
            (J::Owner, job.owner.0.as_str().into()),
            (J::Fence, to_int("fence", job.fence)?.into()),
            (J::Expires, job.expires.0.into()),
            (J::Tries, to_int("tries", job.tries)?.into()),
            (
                J::Draft,
                draft.map(|draft| draft.0.as_str().to_owned()).into(),
            ),
        ])
    };
    let mut statement = insert(family.value(J::Tree), J::Table, jobs.iter().map(row))?;
    statement.on_conflict(
        OnConflict::columns(family.key(J::Tree, [J::Conversation, J::Key]))
            .update_columns(JOB)
            .to_owned(),
    );
    Ok(statement)
}

/// Builds the SQL statement that deletes the jobs with these keys.
pub fn delete_jobs(family: Family, conversation: ConversationId, keys: &[&str]) -> DeleteStatement {
    Query::delete()
        .from_table(J::Table)
        .and_where_option(family.rows(J::Tree))
        .and_where(with_keys(conversation, keys))
        .take()
}

/// Builds the SQL statement that selects the keys and fencing tokens of the jobs with these keys. Jobs without a lease
/// are left out, such as jobs that have failed since their last lease.
pub fn granted_jobs(
    family: Family,
    conversation: ConversationId,
    keys: &[&str],
) -> SelectStatement {
    Query::select()
        .columns([J::Key, J::Fence])
        .from(J::Table)
        .and_where_option(family.rows((J::Table, J::Tree)))
        .and_where(with_keys(conversation, keys))
        .and_where(Expr::col(J::State).ne(JobState::Free.as_str()))
        .take()
}

/// Builds the SQL statement that sets the end of the leases on these jobs to the time `until`.
pub fn renew_jobs(
    family: Family,
    conversation: ConversationId,
    keys: &[&str],
    until: Timestamp,
) -> UpdateStatement {
    update_jobs(family, conversation, keys)
        .value(J::Expires, until.0)
        .take()
}

/// Builds the SQL statement that stores the prepared work of several jobs. `drafts` contains the key and the work of
/// each job.
pub fn prepare_jobs(
    family: Family,
    conversation: ConversationId,
    drafts: &[(&str, &Draft)],
) -> UpdateStatement {
    let keys: Vec<&str> = drafts.iter().map(|(key, _)| *key).collect();
    let mut draft_of_key = CaseStatement::new();
    for (key, draft) in drafts {
        draft_of_key = draft_of_key.case(Expr::col(J::Key).eq(*key), draft.0.as_str());
    }
    update_jobs(family, conversation, &keys)
        .value(J::State, JobState::Ready.as_str())
        .value(J::Draft, draft_of_key)
        .take()
}

/// Builds the SQL statement that frees these jobs after a failure, and adds one to their number of failures.
pub fn fail_jobs(family: Family, conversation: ConversationId, keys: &[&str]) -> UpdateStatement {
    update_jobs(family, conversation, keys)
        .value(J::State, JobState::Free.as_str())
        .value(J::Tries, Expr::col(J::Tries).add(1_i64))
        .take()
}

fn update_jobs(family: Family, conversation: ConversationId, keys: &[&str]) -> UpdateStatement {
    Query::update()
        .table(J::Table)
        .and_where_option(family.rows(J::Tree))
        .and_where(with_keys(conversation, keys))
        .take()
}

fn held(fence: &Fence) -> SimpleExpr {
    Expr::col(J::Conversation)
        .eq(i64::from(fence.conversation.0))
        .and(Expr::col(J::Key).eq(fence.key.0.as_str()))
        // No stored fence is too large for the column.
        .and(Expr::col(J::Fence).eq(i64::try_from(fence.token).unwrap_or(i64::MAX)))
        .and(Expr::col(J::State).ne(JobState::Free.as_str()))
}

/// Builds the SQL statement that updates a leased job, or deletes it if its lease is released. The statement changes no
/// row if the lease is no longer valid: another lease was given, or the job has failed or was released.
pub fn settle_job(
    family: Family,
    fence: &Fence,
    outcome: &LeaseUpdate,
    now: Timestamp,
) -> JobChange {
    let held = held(fence);
    let mut update = Query::update();
    update
        .table(J::Table)
        .and_where_option(family.rows(J::Tree))
        .and_where(held.clone());
    match outcome {
        LeaseUpdate::Renew { ttl } => {
            update.value(J::Expires, now.saturating_add(*ttl).0);
        }
        LeaseUpdate::Prepared(draft) => {
            update.value(J::State, JobState::Ready.as_str());
            update.value(J::Draft, draft.0.as_str());
        }
        LeaseUpdate::Failed => {
            update.value(J::State, JobState::Free.as_str());
            update.value(J::Tries, Expr::col(J::Tries).add(1_i64));
        }
        LeaseUpdate::Release => {
            let delete = Query::delete()
                .from_table(J::Table)
                .and_where_option(family.rows(J::Tree))
                .and_where(held)
                .take();
            return JobChange::Delete(delete);
        }
    }
    JobChange::Update(update.take())
}

/// The SQL statement that [`settle_job`] returns.
#[derive(Debug, Clone)]
pub enum JobChange {
    /// Statement that updates the job's row.
    Update(UpdateStatement),
    /// Statement that deletes the job's row.
    Delete(DeleteStatement),
}

/// Builds the SQL statement that reserves the next `count` fences of a conversation. The answer is one row: the last
/// reserved fence, and the conversation's number of erasures.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn next_fences(
    family: Family,
    conversation: ConversationId,
    count: usize,
) -> Result<UpdateStatement> {
    let count = to_int("count of jobs", count as u64)?;
    Ok(Query::update()
        .table(C::Table)
        .and_where_option(family.rows(C::Tree))
        .value(C::Fences, Expr::col(C::Fences).add(count))
        .and_where(Expr::col(C::No).eq(i64::from(conversation.0)))
        .returning(Query::returning().columns([C::Fences, C::Erasures]))
        .take())
}

/// Builds the SQL statement that selects the small value that a conversation stores under a key. The answer is one row,
/// which [`state`] reads.
pub fn find_state(family: Family, conversation: ConversationId, key: &str) -> SelectStatement {
    Query::select()
        .columns([V::Value, V::Revision])
        .from(V::Table)
        .and_where_option(family.rows((V::Table, V::Tree)))
        .and_where(Expr::col(V::Conversation).eq(i64::from(conversation.0)))
        .and_where(Expr::col(V::Key).eq(key))
        .take()
}

/// Reads a small value from a row of [`find_state`].
///
/// # Errors
/// `Corrupt` if a column of the row cannot be read or holds an invalid value.
pub fn state(row: &impl Columns) -> Result<State> {
    let value = RawJson::parse(row.text(0)?)
        .map_err(|e| corrupt("state", "the value is not JSON").with_source(e))?;
    Ok(State {
        value,
        revision: to_count("revision", row.int(1)?)?,
    })
}

/// Builds the SQL statement that inserts or replaces the small value that a conversation stores under a key.
///
/// # Errors
/// `Limit` if a number is too large for its column.
pub fn put_state(
    family: Family,
    conversation: ConversationId,
    key: &str,
    value: &RawJson,
    revision: u64,
) -> Result<InsertStatement> {
    let row = [
        (V::Conversation, i64::from(conversation.0).into()),
        (V::Key, key.into()),
        (V::Value, value.as_str().into()),
        (V::Revision, to_int("revision", revision)?.into()),
    ];
    let mut statement = insert_row(family.value(V::Tree), V::Table, row)?;
    statement.on_conflict(
        OnConflict::columns(family.key(V::Tree, [V::Conversation, V::Key]))
            .update_columns([V::Value, V::Revision])
            .to_owned(),
    );
    Ok(statement)
}

/// Builds the SQL statement that deletes the small value that a conversation stores under a key.
pub fn delete_state(family: Family, conversation: ConversationId, key: &str) -> DeleteStatement {
    Query::delete()
        .from_table(V::Table)
        .and_where_option(family.rows(V::Tree))
        .and_where(Expr::col(V::Conversation).eq(i64::from(conversation.0)))
        .and_where(Expr::col(V::Key).eq(key))
        .take()
}
