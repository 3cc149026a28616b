//! Damaged databases: `verify` reports the kind and the place of the damage.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use agent_memory::testing::memory;
use agent_memory::{
    DagPolicy, Memory, Message, Mode, Seq, compaction::FreshTail, store::ViolationKind,
    tokens::estimator,
};
use context_assembler::ContextAccounting;
use message_formats::ReadOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// One way to damage a database.
struct Case {
    name: &'static str,
    sql: &'static str,
    kind: ViolationKind,
    /// Text that the violation must contain. `{top}`, `{leaf}` and `{main}` are replaced by their ids.
    names: &'static str,
}

const fn case(
    name: &'static str,
    kind: ViolationKind,
    names: &'static str,
    sql: &'static str,
) -> Case {
    Case {
        name,
        sql,
        kind,
        names,
    }
}

/// Conversation 1 is the imported one, 2 its fork, and 3 another conversation. `TOP` is a condensed summary of
/// conversation 1, and `LEAF` the first summary from which it was made.
const CASES: &[Case] = &[
    case(
        "a row is gone",
        ViolationKind::EntryMissing,
        "{main}: entry 50 is missing",
        "delete from message where conversation = 1 and seq = 50",
    ),
    case(
        "many rows are gone",
        ViolationKind::EntryMissing,
        "{main}: entries 50-59 are missing",
        "delete from message where conversation = 1 and seq between 50 and 59",
    ),
    case(
        "the newest row is gone",
        ViolationKind::EntryMissing,
        "{main}: entry",
        "delete from message where id = (select max(id) from message where conversation = 1)",
    ),
    case(
        "a text is changed",
        ViolationKind::EntryChanged,
        "{main}: entry 51 ",
        "update message set (body, codec, payload, meta) =
            (select body, codec, payload, meta from message where conversation = 1 and seq = 11)
          where conversation = 1 and seq = 51",
    ),
    case(
        "a body is no JSON any more",
        ViolationKind::EntryUnreadable,
        "51",
        "update message set body = substr(body, 2) where conversation = 1 and seq = 51",
    ),
    case(
        "erased words are back",
        ViolationKind::EntryChanged,
        "{main}: the words of entry 51 were erased, and are back",
        "insert into erasure values (1, 51, 51, 0, 'a password')",
    ),
    case(
        "erased words of a summary are back",
        ViolationKind::SummaryChanged,
        "{main}: the words of {leaf} were erased, and are back",
        "insert into erased_summary values (LEAF, 0)",
    ),
    case(
        "the words of a summary are lost, and recorded as erased",
        ViolationKind::SummaryChanged,
        "{main}: {leaf} was changed: its hash or id differs",
        "insert into erased_summary values (LEAF, 0);
         update summary set text = '[erased]', ranks = null, messages = null, meta = null where id = LEAF",
    ),
    case(
        "a body is blanked",
        ViolationKind::EntryChanged,
        "{main}: entry 51 ",
        "update message set body = null where conversation = 1 and seq = 51",
    ),
    case(
        "a role is changed",
        ViolationKind::EntryChanged,
        "{main}: entry 52 ",
        "update message set role = 'system' where conversation = 1 and seq = 52",
    ),
    case(
        "a time is changed",
        ViolationKind::EntryChanged,
        "{main}: entry 53 ",
        "update message set at = at + 1 where conversation = 1 and seq = 53",
    ),
    case(
        "a message became a note",
        ViolationKind::EntryChanged,
        "{main}: entry 53 ",
        "update message set kind = 'note' where conversation = 1 and seq = 53",
    ),
    case(
        "a recorded hash is changed",
        ViolationKind::EntryChanged,
        "{main}: entry 54 ",
        "update message set hash = randomblob(32) where conversation = 1 and seq = 54",
    ),
    case(
        "a hole in the numbers",
        ViolationKind::EntryMissing,
        "{main}: entry 60 is missing",
        "update message set id = id + 100000, seq = seq + 100000 where conversation = 1 and seq >= 60;
         update message set id = id - 99999, seq = seq - 99999 where conversation = 1 and seq >= 60",
    ),
    case(
        "a row too many",
        ViolationKind::EntryMisplaced,
        "conversation 1",
        "insert into message select id + 1, conversation, seq + 1, kind, role, null, response, name, loop, turn, at,
                clocked, tokens, running + tokens, hash, codec, payload, meta, body
           from message where id = (select max(id) from message where conversation = 1)",
    ),
    case(
        "two rows changed places",
        ViolationKind::ChainBroken,
        "{main}",
        "update message set id = id + 100000, seq = seq + 100000 where conversation = 1 and seq = 61;
         update message set id = id - 1, seq = 61 where conversation = 1 and seq = 62;
         update message set id = id - 99999, seq = 62 where conversation = 1 and seq = 100061",
    ),
    case(
        "the log's chain is another",
        ViolationKind::ChainBroken,
        "{main}",
        "update conversation set chain = randomblob(32) where no = 1",
    ),
    case(
        "the end is cut off with the head",
        ViolationKind::ChainBroken,
        "{main}",
        "delete from message where id = (select max(id) from message where conversation = 1);
         update conversation set head = head - 1, tokens = (select max(running) from message
           where conversation = 1) where no = 1",
    ),
    case(
        "an external id is changed",
        ViolationKind::EntryChanged,
        "{main}: entry 55 ",
        "update message set external_id = 'another' where conversation = 1 and seq = 55",
    ),
    case(
        "a running sum is wrong",
        ViolationKind::SumWrong,
        "entry 64 ",
        "update message set running = running + 1 where conversation = 1 and seq = 64",
    ),
    case(
        "the conversation's total is wrong",
        ViolationKind::SumWrong,
        "{main}: the log is recorded with",
        "update conversation set tokens = tokens + 7 where no = 1",
    ),
    case(
        "what the view saves is wrong",
        ViolationKind::SumWrong,
        "view dag",
        "update view set saved = saved + 1 where conversation = 1",
    ),
    case(
        "the cost of a summary's sources is wrong",
        ViolationKind::SumWrong,
        "{leaf}",
        "update summary set source_tokens = source_tokens + 1 where id = LEAF",
    ),
    case(
        "a message's figure is of another estimator",
        ViolationKind::EstimatorMixed,
        "{main}: entry 65 ",
        "update message set tokens = tokens + 1 where conversation = 1 and seq = 65;
         update message set running = running + 1 where conversation = 1 and seq >= 65;
         update conversation set tokens = tokens + 1 where no = 1",
    ),
    case(
        "a summary's figure is of another estimator",
        ViolationKind::EstimatorMixed,
        "{leaf}",
        "update summary set tokens = tokens + 1 where id = LEAF",
    ),
    case(
        "the conversation's estimator is another",
        ViolationKind::EstimatorMixed,
        "koda@2 gives",
        "update conversation set estimator = 'koda@2' where no = 1",
    ),
    case(
        "the conversation's estimator is unknown",
        ViolationKind::EstimatorMixed,
        "{main} is counted with strange@7",
        "update conversation set estimator = 'strange@7' where no = 1",
    ),
    case(
        "a span begins inside another",
        ViolationKind::SpansOverlap,
        "{main}: view dag",
        "insert into span select conversation, view, 2, added_in, 'raw', null, null, 0, 0
           from span where conversation = 1 and kind = 'summary' order by first limit 1",
    ),
    case(
        "a span begins too early",
        ViolationKind::SpansOverlap,
        "{main}: view dag",
        "update span set first = first - 3 where conversation = 1
           and first = (select max(first) from span where conversation = 1)",
    ),
    case(
        "a span is gone",
        ViolationKind::SpanWrong,
        "{main}: view dag",
        "delete from span where conversation = 1
           and first = (select max(first) from span where conversation = 1 and kind = 'summary')",
    ),
    case(
        "the first span is gone",
        ViolationKind::SpansOverlap,
        "{main}: view dag",
        "delete from span where conversation = 1 and first = 1",
    ),
    case(
        "a span shows another summary",
        ViolationKind::SpanWrong,
        "{leaf}",
        "update span set summary = (select public_id from summary where id = LEAF)
          where conversation = 1 and kind = 'summary'
            and first = (select max(first) from span where conversation = 1 and kind = 'summary')",
    ),
    case(
        "a span's cost is changed",
        ViolationKind::SpanWrong,
        "{top}",
        "update span set tokens = tokens - 1 where conversation = 1 and summary =
           (select public_id from summary where id = TOP)",
    ),
    case(
        "spans of no view",
        ViolationKind::SpansOverlap,
        "conversation 1",
        "insert into span select conversation, 'ghost', first, added_in, kind, summary, policy, tokens, depth
           from span where conversation = 1",
    ),
    case(
        "the history of spans is edited",
        ViolationKind::HistoryChanged,
        "{main}: view dag: the history was changed at version",
        "update span_history set tokens = tokens + 1 where conversation = 1 and kind = 'summary'",
    ),
    case(
        "the history has spans that nothing replaced",
        ViolationKind::HistoryChanged,
        "conversation 1",
        "insert into span_history select conversation, view, 900, 1, added_in - 900, kind, summary, policy, tokens, depth
           from span where conversation = 1 and first = 1",
    ),
    case(
        "a publication is edited",
        ViolationKind::HistoryChanged,
        "{main}: view dag: the history was changed at version 1",
        "update publication set last = last + 1 where conversation = 1 and version = 1",
    ),
    case(
        "a publication is gone",
        ViolationKind::HistoryChanged,
        "{main}: view dag: version 2 is missing from its history",
        "delete from publication where conversation = 1 and version = 2",
    ),
    case(
        "the view was set back a version",
        ViolationKind::HistoryChanged,
        "conversation 1",
        "update view set version = version - 1 where conversation = 1",
    ),
    case(
        "the history's chain is another",
        ViolationKind::HistoryChanged,
        "{main}: view dag",
        "update view set chain = randomblob(32) where conversation = 1",
    ),
    case(
        "a summary's text is changed",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set text = replace(text, 'e', 'a') where id = LEAF",
    ),
    case(
        "a summary's range is changed",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set last = last - 1 where id = LEAF",
    ),
    case(
        "a summary is said to be of other sources",
        ViolationKind::SourceChanged,
        "{leaf}",
        "update summary set source_hash = randomblob(32) where id = LEAF",
    ),
    case(
        "a summary's source is not what it was",
        ViolationKind::SourceChanged,
        "{leaf}",
        "update message set hash = randomblob(32) where conversation = 1 and seq = 2",
    ),
    case(
        "a child covers too little",
        ViolationKind::ChildRangeWrong,
        "{leaf}",
        "update summary_link set last = last - 1 where parent = LEAF",
    ),
    case(
        "a child is gone",
        ViolationKind::ChildRangeWrong,
        "{top}",
        "delete from summary_link where parent = TOP and ordinal = 1",
    ),
    case(
        "a summary contains what contains it",
        ViolationKind::Cycle,
        "{leaf}",
        "update summary_link set child = TOP where parent = LEAF",
    ),
    case(
        "a summary is as deep as what it was made from",
        ViolationKind::Cycle,
        "{top}",
        "update summary set depth = 0 where id = TOP",
    ),
    case(
        "a summary was made from another conversation's",
        ViolationKind::ForeignLineage,
        "{top}",
        "update summary_link set child = (select min(id) from summary where conversation = 3)
          where parent = TOP and ordinal = 0",
    ),
    case(
        "a summary that others were made from is gone",
        ViolationKind::ForeignLineage,
        "{top}",
        "delete from summary where id = LEAF",
    ),
    case(
        "a fork reads less of its parent",
        ViolationKind::ConversationChanged,
        "fork",
        "update conversation set shared = shared - 1 where no = 2",
    ),
    case(
        "a fork is of another family",
        ViolationKind::FamilyWrong,
        "fork",
        "update conversation set tree = 3 where no = 2",
    ),
    case(
        "a conversation is gone",
        ViolationKind::Database,
        "a row of message refers to a missing row of conversation",
        "delete from conversation where no = 3",
    ),
    case(
        "an index is gone",
        ViolationKind::Database,
        "the index summary_source is missing",
        "drop index summary_source",
    ),
    case(
        "an index is another",
        ViolationKind::Database,
        "the index message_external was changed",
        "drop index message_external; create index message_external on message (external_id)",
    ),
    case(
        "a foreign trigger on a table of ours",
        ViolationKind::Database,
        "the trigger stranger does not belong to the schema",
        "create trigger stranger after insert on message begin select 1; end",
    ),
    case(
        "a foreign index on a table of ours",
        ViolationKind::Database,
        "the index stranger does not belong to the schema",
        "create unique index stranger on message (id, role)",
    ),
    case(
        "a session has another key",
        ViolationKind::FamilyWrong,
        "conversation 3",
        "update conversation set key = 'renamed' where no = 3",
    ),
    case(
        "a fork has another key",
        ViolationKind::FamilyWrong,
        "conversation 1",
        "update conversation set key = 'renamed' where no = 2",
    ),
    case(
        "a key is another in the head row",
        ViolationKind::ConversationChanged,
        "renamed",
        "update conversation set key = 'renamed' where no = 3",
    ),
    case(
        "a title is another",
        ViolationKind::ConversationChanged,
        "{main}",
        "update conversation set title = 'another' where no = 1",
    ),
    case(
        "a conversation was archived",
        ViolationKind::ConversationChanged,
        "{main}",
        "update conversation set archived = 1 where no = 1",
    ),
    case(
        "a conversation is said to be older",
        ViolationKind::ConversationChanged,
        "{main}",
        "update conversation set created_at = created_at - 1 where no = 1",
    ),
    case(
        "a conversation is said to be changed later",
        ViolationKind::ConversationChanged,
        "{main}",
        "update conversation set updated_at = updated_at + 1 where no = 1",
    ),
    case(
        "a conversation's facts are others",
        ViolationKind::ConversationChanged,
        "{main}",
        "update conversation set meta = '{}' where no = 1",
    ),
    case(
        "a summary is said to be written by a model",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set provisional = 1 - provisional where id = LEAF",
    ),
    case(
        "a summary is of another tier",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set tier = 'another' where id = LEAF",
    ),
    case(
        "a summary is of another model",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set model = 'another' where id = LEAF",
    ),
    case(
        "a summary is said to be older",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set created_at = created_at - 1 where id = LEAF",
    ),
    case(
        "a summary's times are others",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set earliest_at = earliest_at - 1 where id = LEAF",
    ),
    case(
        "a summary's facts are others",
        ViolationKind::SummaryChanged,
        "{leaf}",
        "update summary set meta = '{}' where id = LEAF",
    ),
    case(
        "a view is removed",
        ViolationKind::ViewMissing,
        "{main}",
        "delete from view where conversation = 1; delete from span where conversation = 1;
         delete from span_history where conversation = 1; delete from publication where conversation = 1",
    ),
    case(
        "a session is removed",
        ViolationKind::FamilyWrong,
        "conversation 3",
        "delete from view where conversation = 3; delete from span where conversation = 3;
         delete from span_history where conversation = 3; delete from publication where conversation = 3;
         delete from summary_link where parent >> 32 = 3; delete from summary where conversation = 3;
         delete from message where conversation = 3; delete from facts where conversation = 3;
         delete from payload where id not in (select payload from message where payload is not null);
         delete from job where conversation = 3; delete from state where conversation = 3;
         delete from conversation where no = 3",
    ),
    case(
        "a fork is removed",
        ViolationKind::FamilyWrong,
        "conversation 1",
        "delete from view where conversation = 2; delete from span where conversation = 2;
         delete from span_history where conversation = 2; delete from publication where conversation = 2;
         delete from summary_link where parent >> 32 = 2; delete from summary where conversation = 2;
         delete from message where conversation = 2; delete from facts where conversation = 2;
         delete from payload where id not in (select payload from message where payload is not null);
         delete from job where conversation = 2; delete from state where conversation = 2;
         delete from conversation where no = 2",
    ),
];

/// A database with leaves, condensed summaries, several versions of two views, and a fork.
pub(crate) struct Original {
    folder: TempDir,
    pub(crate) main: String,
    top: String,
    leaf: String,
}

fn policy() -> DagPolicy {
    let tail = FreshTail {
        messages: 4,
        max_tokens: Some(2_000),
        max_part: None,
    };
    DagPolicy {
        fresh_tail: tail,
        max_source_tokens: Some(1_500),
        condensed_min: 2,
        condensed_max: Some(3),
        max_depth: Some(1),
        ..DagPolicy::default()
    }
}

impl Original {
    async fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let memory = memory()
            .dag(policy())
            .sqlite(folder.path().join("original.db"))
            .open()
            .await
            .unwrap();
        let path = crate::support::fixture("claude-code/bugfix");
        let transcript = message_formats::read_file(&path, &ReadOptions::default()).unwrap();
        memory.import(&transcript).await.unwrap();
        let main = transcript.sessions[0].key.to_string();
        let session = memory.get_session(main.as_str()).await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(
            outcome.published.get("leaf") >= 5 && outcome.published.get("condensed") >= 2,
            "{outcome:?}"
        );
        let fork = session.fork(Seq(70), "fork").await.unwrap();
        fork.ingest(Message::user("Another way.")).await.unwrap();
        fork.compact(Mode::Full).await.unwrap();
        let other = memory.session("other").await.unwrap();
        crate::support::talk(&other, 60).await;
        other.compact(Mode::Full).await.unwrap();
        memory.close().await.unwrap();

        let mut db = open(&folder.path().join("original.db")).await;
        let one = async |db: &mut SqliteConnection, id: &str| -> String {
            let sql = format!("select public_id from summary where id = {id}");
            let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(&mut *db).await;
            row.unwrap().get(0)
        };
        let (top, leaf) = (one(&mut db, TOP).await, one(&mut db, LEAF).await);
        db.close().await.unwrap();
        Self {
            folder,
            main,
            top,
            leaf,
        }
    }

    /// Returns the original that all running tests share. Tests damage copies of it, and no test has it open.
    pub(crate) async fn get() -> Arc<Self> {
        static SHARED: Mutex<Weak<Original>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        match shared.upgrade() {
            Some(original) => original,
            None => {
                let original = Arc::new(Self::build().await);
                *shared = Arc::downgrade(&original);
                original
            }
        }
    }

    /// Returns a copy for a test to damage.
    pub(crate) fn copy(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{name}.db"));
        std::fs::copy(self.folder.path().join("original.db"), &path).unwrap();
        path
    }

    fn fill(&self, names: &str) -> String {
        names
            .replace("{main}", &self.main)
            .replace("{top}", &self.top)
            .replace("{leaf}", &self.leaf)
    }
}

/// The first condensed summary that the view shows.
const TOP: &str = "(select s.id from summary s join span p on p.summary = s.public_id \
    and p.conversation = 1 where s.conversation = 1 and s.depth > 0 order by s.first limit 1)";
/// The first leaf; `TOP` was made from it.
const LEAF: &str =
    "(select id from summary where conversation = 1 and depth = 0 order by first limit 1)";

pub(crate) async fn open(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .pragma("ignore_check_constraints", "on")
        .connect()
        .await
        .unwrap()
}

async fn run(db: &mut SqliteConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(db);
    done.await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Executes statements without the triggers, and creates the triggers again.
async fn damage(path: &Path, sql: &str) {
    let mut db = open(path).await;
    let triggers = sqlx::query("select name, sql from sqlite_schema where type = 'trigger'")
        .fetch_all(&mut db)
        .await
        .unwrap();
    for trigger in &triggers {
        let name: String = trigger.get(0);
        run(&mut db, &format!("drop trigger {name}")).await;
    }
    // Both are looked up before anything is changed.
    let sql = sql.replace("TOP", "(select id from temp.top)");
    let sql = sql.replace("LEAF", "(select id from temp.leaf)");
    let look_up = format!(
        "create temp table top as select {TOP} as id; create temp table leaf as select {LEAF} as id"
    );
    run(&mut db, &look_up).await;
    run(&mut db, &sql).await;
    for trigger in &triggers {
        run(&mut db, &trigger.get::<String, _>(1)).await;
    }
    db.close().await.unwrap();
}

async fn open_again(path: &Path) -> Memory {
    memory().sqlite(path).open().await.unwrap()
}

#[tokio::test]
async fn every_damage_is_named() {
    let original = Original::get().await;
    // As it is, it is sound.
    let control = open_again(&original.copy("control")).await;
    let verified = control.verify().await.unwrap();
    assert!(verified.is_ok(), "{:?}", verified.violations);
    assert_eq!((verified.conversations, verified.views), (3, 3));
    control.close().await.unwrap();

    let mut missed = Vec::new();
    for case in CASES {
        let path = original.copy(case.name);
        damage(&path, case.sql).await;
        let memory = open_again(&path).await;
        let verified = match memory.verify().await {
            Ok(verified) => verified,
            Err(error) => {
                missed.push(format!("{}: an error instead: {error}", case.name));
                continue;
            }
        };
        memory.close().await.unwrap();
        let names = original.fill(case.names);
        let named = verified
            .violations
            .iter()
            .any(|v| v.kind == case.kind && v.message.contains(&names));
        if !named {
            let violations = &verified.violations;
            missed.push(format!(
                "{}: {:?} {names:?} in {violations:#?}",
                case.name, case.kind
            ));
        }
    }
    assert!(
        missed.is_empty(),
        "{} missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

/// Some messages are counted again with another estimator, and all sums are corrected.
#[tokio::test]
async fn recounting_a_part_is_noticed() {
    let original = Original::get().await;
    let path = original.copy("recounted");
    let memory = open_again(&path).await;
    let session = memory.get_session(original.main.as_str()).await.unwrap();
    let koda = ContextAccounting::new(estimator("koda").unwrap());
    let recounted: Vec<(memory_model::Seq, u64)> = session.entries().await.unwrap()[59..70]
        .iter()
        .map(|entry| {
            let tokens = memory_model::Accounting::message(&koda, &entry.message);
            (entry.seq, entry.tokens, tokens)
        })
        // By chance the two agree on some.
        .filter(|(_, before, after)| before != after)
        .map(|(seq, _, after)| (seq, after))
        .collect();
    assert!(recounted.len() > 6, "{recounted:?}");
    let updates: String = recounted
        .iter()
        .map(|(seq, tokens)| {
            format!("update message set tokens = {tokens} where conversation = 1 and seq = {seq};")
        })
        .collect();
    memory.close().await.unwrap();
    let sums = "update message set running = (select sum(tokens) from message m
                   where m.conversation = 1 and m.seq <= message.seq) where conversation = 1;
                update conversation set tokens = (select sum(tokens) from message
                   where conversation = 1) where no = 1";
    damage(&path, &format!("{updates}{sums}")).await;
    let verified = open_again(&path).await.verify().await.unwrap();
    for (seq, _) in recounted {
        let names = format!("{}: entry {seq} is recorded with", original.main);
        let named = verified
            .violations
            .iter()
            .any(|v| v.kind == ViolationKind::EstimatorMixed && v.message.starts_with(&names));
        assert!(named, "{seq}: {:#?}", verified.violations);
    }
}

/// A user's tables in the same file, and the tables of `analyze`, are not damage.
#[tokio::test]
async fn foreign_tables_are_accepted() {
    let original = Original::get().await;
    let path = original.copy("foreign");
    let mut db = open(&path).await;
    run(
        &mut db,
        "create table notes (id integer primary key, text text, of integer references notes (id));
         insert into notes values (1, 'mine', 7);
         create index notes_text on notes (text);
         create trigger notes_insert after insert on notes begin select 1; end;
         create view mine as select text from notes;
         analyze",
    )
    .await;
    db.close().await.unwrap();
    let verified = open_again(&path).await.verify().await.unwrap();
    assert_eq!(verified.violations, []);
}

#[tokio::test]
async fn a_trigger_that_is_gone_is_noticed() {
    let original = Original::get().await;
    let path = original.copy("trigger");
    let mut db = open(&path).await;
    run(&mut db, "drop trigger message_delete").await;
    db.close().await.unwrap();
    let verified = open_again(&path).await.verify().await.unwrap();
    let [violation] = verified.violations.as_slice() else {
        panic!("{:#?}", verified.violations);
    };
    assert_eq!(violation.kind, ViolationKind::Database);
    assert!(
        violation
            .message
            .contains("the trigger message_delete is missing")
    );
}

/// An index with other content than its table.
#[tokio::test]
async fn a_damaged_index_is_noticed() {
    let original = Original::get().await;
    let path = original.copy("index");
    let hide = "pragma writable_schema = on;
         create table hidden as select * from sqlite_schema where name = 'message_external';
         delete from sqlite_schema where name = 'message_external';";
    let mut db = open(&path).await;
    run(&mut db, hide).await;
    db.close().await.unwrap();
    // The index is not known now, so it does not follow.
    damage(
        &path,
        "update message set external_id = 'moved' where conversation = 1 and seq = 40",
    )
    .await;
    let mut db = open(&path).await;
    run(
        &mut db,
        "pragma writable_schema = on;
         insert into sqlite_schema select * from hidden;
         pragma writable_schema = reset;
         drop table hidden",
    )
    .await;
    db.close().await.unwrap();
    let verified = open_again(&path).await.verify().await.unwrap();
    for (kind, names) in [
        (ViolationKind::Database, "index message_external"),
        (
            ViolationKind::ExternalIdWrong,
            "entry 40 is not found by its id \"moved\"",
        ),
    ] {
        let named = verified
            .violations
            .iter()
            .any(|v| v.kind == kind && v.message.contains(names));
        assert!(named, "{names}: {:#?}", verified.violations);
    }
}

/// Pages of garbage and a truncated file are reported, or the database is refused when it is opened.
#[tokio::test]
async fn a_damaged_file_is_noticed() {
    let original = Original::get().await;
    let sound = std::fs::read(original.copy("sound")).unwrap();
    // The header says how large a page is.
    let page_size = usize::from(u16::from_be_bytes([sound[16], sound[17]]));
    let pages = sound.len() / page_size;
    assert!(pages > 16, "{pages}");
    let mut named = 0;
    for page in (1..pages).step_by(pages / 16) {
        let path = original.copy(&format!("page {page}"));
        let mut bytes = sound.clone();
        // Half of a page, so that its header is damaged too.
        bytes[page * page_size..page * page_size + page_size / 2].fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        named += usize::from(noticed(&path).await);
    }
    // Without some pages it cannot be opened; with the others `verify` has to tell.
    assert!(named >= 8, "{named}");
    for keep in [sound.len() / 2, sound.len() - page_size] {
        let path = original.copy(&format!("first {keep}"));
        std::fs::write(&path, &sound[..keep]).unwrap();
        noticed(&path).await;
    }
}

/// Returns whether `verify` found the damage; `false` if opening the database failed.
async fn noticed(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    let memory = match memory().sqlite(path).open().await {
        Ok(memory) => memory,
        Err(error) => {
            assert!(error.to_string().contains(name), "{error}");
            return false;
        }
    };
    let verified = memory
        .verify()
        .await
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let database = |v: &agent_memory::store::Violation| v.kind == ViolationKind::Database;
    assert!(verified.violations.iter().any(database), "{name}");
    memory.close().await.unwrap();
    true
}
