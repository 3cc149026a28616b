//! Agents that take turns back: the session in use has each turn that the agent would still send, once and in order, and
//! the log keeps the others. A model of the agent writes its files or its database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agent_memory::testing::memory;
use agent_memory::transcripts::{Formats, OpenCodeDatabase, ReadOptions};
use agent_memory::{Memory, SessionKey, model::EntryKind, store::ConversationFilter};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::corpus::is_deep;

/// Returns a number of cases: the same ones in each run, and new ones in the long form.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: if is_deep() { 20 * cases } else { cases },
        failure_persistence: None,
        rng_seed: match is_deep() {
            true => RngSeed::Random,
            false => RngSeed::Fixed(1),
        },
        ..ProptestConfig::default()
    }
}

/// Imports a file, and returns the key of its main session.
async fn import(memory: &Memory, path: &Path) -> Option<SessionKey> {
    let formats = Formats::default().with(OpenCodeDatabase::new());
    let transcript = formats.read_path(path, &ReadOptions::default()).unwrap();
    memory.import(&transcript).await.unwrap().main
}

/// Returns the texts of what was said in the session in which another goes on, and of that session's key.
async fn in_use(memory: &Memory, key: &str) -> Vec<String> {
    let session = memory.get_session(key).await.unwrap();
    let session = session.in_use().await.unwrap();
    said(memory, session.key()).await
}

/// Returns the texts of the messages of a session, without results.
async fn said(memory: &Memory, key: &SessionKey) -> Vec<String> {
    let session = memory.get_session(key.clone()).await.unwrap();
    let entries = session.entries().await.unwrap();
    let texts = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Message)
        .map(|entry| entry.text());
    texts.filter(|text| !text.is_empty()).collect()
}

/// Returns all texts that any session has.
async fn told(memory: &Memory) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let filter = ConversationFilter::default();
    for info in memory.sessions(&filter).await.unwrap() {
        texts.extend(said(memory, &info.conversation.key).await);
    }
    texts
}

/// A turn of a model: its words, and the place before it.
#[derive(Debug, Clone)]
struct Turn {
    text: String,
    before: (usize, u64, u64),
}

/// A Codex thread: its turns, and the rollout that it writes to.
#[derive(Debug, Clone)]
struct Thread {
    id: String,
    rollout: usize,
    turns: Vec<Turn>,
}

#[derive(Debug, Clone)]
struct Rollout {
    id: String,
    path: PathBuf,
    text: String,
    ordinal: u64,
}

/// A model of Codex: its home, threads and rollouts.
#[derive(Debug)]
struct Codex {
    home: tempfile::TempDir,
    threads: Vec<Thread>,
    rollouts: Vec<Rollout>,
    said: BTreeSet<String>,
    clock: u32,
    spaced: bool,
}

impl Codex {
    fn new(spaced: bool) -> Self {
        let mut codex = Self {
            home: tempfile::tempdir().unwrap(),
            threads: Vec::new(),
            rollouts: Vec::new(),
            said: BTreeSet::new(),
            clock: 0,
            spaced,
        };
        let id = codex.id();
        codex.begin(&id, None);
        codex.threads.push(Thread {
            id,
            rollout: 0,
            turns: Vec::new(),
        });
        codex
    }

    fn id(&mut self) -> String {
        self.clock += 1;
        format!("01b20000-0000-7000-8000-{:012}", self.clock)
    }

    /// Begins a rollout, perhaps behind a place in another.
    fn begin(&mut self, thread: &str, base: Option<(usize, u64, u64)>) -> usize {
        let id = match base.is_none() || self.threads.iter().all(|known| known.id != thread) {
            true => thread.to_owned(),
            false => self.id(),
        };
        let name = match id == thread {
            true => id.clone(),
            false => format!("{thread}_{id}"),
        };
        let day = format!("sessions/2026/10/{:02}", 1 + self.clock % 2);
        let folder = self.home.path().join(day);
        std::fs::create_dir_all(&folder).unwrap();
        let time = format!(
            "2026-10-03T09-{:02}-{:02}",
            self.clock / 60,
            self.clock % 60
        );
        let path = folder.join(format!("rollout-{time}-{name}.jsonl"));
        let mut meta = json!({"id": thread, "cwd": "/pond", "history_mode": "paginated"});
        if let Some((rollout, ordinal, bytes)) = base {
            meta["history_base"] = json!({
                "thread_id": self.rollouts[rollout].id,
                "end_ordinal_exclusive": ordinal,
                "end_byte_offset": bytes,
            });
        }
        self.rollouts.push(Rollout {
            id,
            path,
            text: String::new(),
            ordinal: base.map_or(0, |(_, ordinal, _)| ordinal),
        });
        let rollout = self.rollouts.len() - 1;
        self.line(rollout, "session_meta", meta);
        rollout
    }

    fn line(&mut self, rollout: usize, tag: &str, payload: Value) {
        self.clock += 1;
        let time = format!(
            "2026-10-03T10:{:02}:{:02}.000Z",
            self.clock / 60,
            self.clock % 60
        );
        let rollout = &mut self.rollouts[rollout];
        let line = json!({
            "timestamp": time, "ordinal": rollout.ordinal, "type": tag, "payload": payload,
        });
        let line = match self.spaced {
            true => serde_json::to_string_pretty(&line)
                .unwrap()
                .replace('\n', " "),
            false => line.to_string(),
        };
        rollout.ordinal += 1;
        rollout.text.push_str(&line);
        rollout.text.push('\n');
        std::fs::write(&rollout.path, &rollout.text).unwrap();
    }

    /// Says something and answers it, in one turn with a call.
    fn say(&mut self, thread: usize) {
        let at = self.threads[thread].rollout;
        let rollout = &self.rollouts[at];
        let before = (at, rollout.ordinal, rollout.text.len() as u64);
        let turn = self.id();
        let text = format!("wish {}", self.clock);
        self.line(
            at,
            "event_msg",
            json!({"type": "task_started", "turn_id": turn}),
        );
        for (role, kind, text) in [
            ("user", "input_text", text.clone()),
            ("assistant", "output_text", format!("answer to {text}")),
        ] {
            let id = format!("msg_{role}_{}", self.clock);
            let content = json!([{"type": kind, "text": text}]);
            let message = json!({"type": "message", "id": id, "role": role, "content": content});
            self.line(at, "response_item", message);
            self.said.insert(text);
        }
        self.threads[thread].turns.push(Turn { text, before });
    }

    /// Edits one of the thread's messages: the turns from it on are gone.
    fn edit(&mut self, thread: usize, turn: Index) {
        let known = &self.threads[thread];
        if known.turns.is_empty() {
            return;
        }
        let turn = turn.index(known.turns.len());
        let (id, before) = (known.id.clone(), known.turns[turn].before);
        let rollout = self.begin(&id, Some(before));
        let thread = &mut self.threads[thread];
        thread.turns.truncate(turn);
        thread.rollout = rollout;
    }

    /// Forks a thread behind some of its turns.
    fn fork(&mut self, thread: usize, turns: usize) {
        let known = self.threads[thread].clone();
        let end = &self.rollouts[known.rollout];
        let end = (known.rollout, end.ordinal, end.text.len() as u64);
        let base = known.turns.get(turns).map_or(end, |turn| turn.before);
        let id = self.id();
        let rollout = self.begin(&id, Some(base));
        self.threads.push(Thread {
            id,
            rollout,
            turns: known.turns[..turns].to_vec(),
        });
    }

    /// Takes a turn back as older versions do, with a line in the same file.
    fn roll_back(&mut self, thread: usize) {
        let (at, known) = (self.threads[thread].rollout, &mut self.threads[thread]);
        if known.turns.pop().is_some() {
            let event = json!({"type": "thread_rolled_back", "num_turns": 1});
            self.line(at, "event_msg", event);
        }
    }

    /// Returns what a thread would send.
    fn sends(&self, thread: &Thread) -> Vec<String> {
        let turns = thread.turns.iter();
        turns
            .flat_map(|turn| [turn.text.clone(), format!("answer to {}", turn.text)])
            .collect()
    }

    /// Imports the rollout that a thread writes to.
    async fn hook(&self, memory: &Memory, thread: usize) {
        let thread = &self.threads[thread];
        let path = &self.rollouts[thread.rollout].path;
        let main = import(memory, path).await.unwrap();
        assert_eq!(said(memory, &main).await, self.sends(thread));
    }

    async fn check(&self, memory: &Memory) {
        for thread in &self.threads {
            assert_eq!(
                in_use(memory, &thread.id).await,
                self.sends(thread),
                "{thread:?}"
            );
        }
        assert_eq!(told(memory).await, self.said);
        assert_eq!(memory.verify().await.unwrap().violations, []);
    }
}

#[tokio::test]
async fn a_rollback_that_came_with_the_file_of_a_fork_is_noted_by_the_threads_own() {
    let mut codex = Codex::new(false);
    let memory = memory().open().await.unwrap();
    codex.say(0);
    codex.fork(0, 1);
    for _ in 0..2 {
        codex.say(0);
        codex.hook(&memory, 0).await;
        codex.roll_back(0);
    }
    codex.hook(&memory, 0).await;
    codex.say(0);
    codex.roll_back(0);
    codex.say(0);
    // The file of the fork brings all entries of the thread's file, which brings none then.
    codex.hook(&memory, 1).await;
    codex.hook(&memory, 0).await;
    codex.check(&memory).await;
}

#[tokio::test]
async fn a_session_with_all_turns_taken_back_is_not_gone_on_with_by_a_fork() {
    for turns in [1, 2] {
        let mut codex = Codex::new(false);
        let memory = memory().open().await.unwrap();
        for _ in 0..turns {
            codex.say(0);
        }
        codex.fork(0, turns);
        for thread in [0, 1] {
            for _ in 0..turns {
                codex.roll_back(thread);
            }
        }
        codex.say(1);
        codex.hook(&memory, 0).await;
        codex.hook(&memory, 1).await;
        codex.check(&memory).await;
    }
}

#[tokio::test]
async fn an_older_copy_of_a_rollout_takes_no_rollback_back() {
    let mut codex = Codex::new(false);
    let memory = memory().open().await.unwrap();
    codex.say(0);
    codex.hook(&memory, 0).await;
    let path = codex.rollouts[0].path.clone();
    let mut copies = Vec::new();
    for _ in 0..3 {
        copies.push(codex.rollouts[0].text.clone());
        codex.say(0);
        codex.hook(&memory, 0).await;
        codex.roll_back(0);
        codex.hook(&memory, 0).await;
    }
    for copy in copies {
        std::fs::write(&path, copy).unwrap();
        import(&memory, &path).await;
        codex.check(&memory).await;
    }
}

/// What a model of an agent does next.
#[derive(Debug, Clone)]
enum Step {
    Say(Index),
    Edit(Index, Index),
    Fork(Index, Index),
    RollBack(Index),
    /// A hook imports the file in use.
    Hook(Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = any::<Index>;
    let step = prop_oneof![
        5 => at().prop_map(Step::Say),
        2 => (at(), at()).prop_map(|(thread, turn)| Step::Edit(thread, turn)),
        1 => (at(), at()).prop_map(|(thread, turn)| Step::Fork(thread, turn)),
        1 => at().prop_map(Step::RollBack),
        2 => at().prop_map(Step::Hook),
    ];
    prop::collection::vec(step, 1..14)
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn codex_goes_on_with_the_turns_that_it_would_send(
        steps in steps(),
        order in prop::collection::vec(any::<Index>(), 24),
        spaced in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut codex = Codex::new(spaced);
            let memory = memory().open().await.unwrap();
            codex.say(0);
            for step in &steps {
                let of = |codex: &Codex, at: &Index| at.index(codex.threads.len());
                match step {
                    Step::Say(at) => codex.say(of(&codex, at)),
                    Step::Edit(at, turn) => codex.edit(of(&codex, at), *turn),
                    Step::Fork(at, turns) => {
                        let thread = of(&codex, at);
                        let turns = turns.index(codex.threads[thread].turns.len() + 1);
                        codex.fork(thread, turns);
                    }
                    Step::RollBack(at) => codex.roll_back(of(&codex, at)),
                    Step::Hook(at) => codex.hook(&memory, of(&codex, at)).await,
                }
            }
            // All files at last, in any order, each twice.
            let mut files: Vec<PathBuf> = codex.rollouts.iter().map(|one| one.path.clone()).collect();
            files.extend(files.clone());
            for (at, with) in order.iter().enumerate().take(files.len()) {
                let with = with.index(files.len());
                files.swap(at, with);
            }
            for file in &files {
                import(&memory, file).await;
            }
            codex.check(&memory).await;
        });
    }
}

const FIRST: &str =
    "create table session (id text primary key, slug text, project_id text, directory text,
        parent_id text, version text, revert text, time_created integer, time_updated integer);
    create table message (id text primary key, session_id text, data text);
    create table part (id text primary key, message_id text, session_id text, data text);";
const SECOND: &str = "create table session_v2 (id text primary key, slug text, project_id text, directory text,
        parent_id text, version text, revert text, time_created integer, time_updated integer);
    create table session_message (id text primary key, session_id text, type text, seq integer, data text);";

/// A model of opencode: its database, and for each session the turns and the number of those that are not taken back.
struct OpenCode {
    folder: tempfile::TempDir,
    database: SqliteConnection,
    is_second: bool,
    sessions: BTreeMap<String, (Vec<(String, String)>, usize)>,
    said: BTreeSet<String>,
    clock: i64,
}

impl OpenCode {
    async fn new(is_second: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("opencode.db"))
            .create_if_missing(true);
        let database = SqliteConnection::connect_with(&options).await.unwrap();
        let mut agent = Self {
            folder,
            database,
            is_second,
            sessions: BTreeMap::new(),
            said: BTreeSet::new(),
            clock: 0,
        };
        agent
            .run(if is_second { SECOND } else { FIRST }.to_owned())
            .await;
        agent.begin().await;
        agent
    }

    async fn run(&mut self, sql: String) {
        let done = sqlx::raw_sql(AssertSqlSafe(sql));
        done.execute(&mut self.database).await.unwrap();
    }

    /// Returns the time in milliseconds.
    fn now(&self) -> i64 {
        1_790_000_000_000 + self.clock
    }

    fn table(&self) -> &'static str {
        if self.is_second {
            "session_v2"
        } else {
            "session"
        }
    }

    async fn begin(&mut self) -> String {
        self.clock += 1;
        let id = format!("ses_{:06}", self.clock);
        let (table, at) = (self.table(), self.now());
        self.run(format!(
            "insert into {table} values ('{id}', 'calm', 'p', '/pond', null, '1', null, {at}, {at})"
        ))
        .await;
        self.sessions.insert(id.clone(), (Vec::new(), 0));
        id
    }

    fn session(&self, at: &Index) -> String {
        let at = at.index(self.sessions.len());
        self.sessions.keys().nth(at).unwrap().clone()
    }

    async fn touch(&mut self, session: &str, revert: &str) {
        self.clock += 1;
        let (table, at) = (self.table(), self.now());
        self.run(format!(
            "update {table} set revert = {revert}, time_updated = {at} where id = '{session}'"
        ))
        .await;
    }

    async fn write(&mut self, session: &str, user: &str, text: &str) {
        for (role, said) in [
            ("user", text.to_owned()),
            ("assistant", format!("answer to {text}")),
        ] {
            self.clock += 1;
            let at = self.clock;
            let id = match role {
                "user" => user.to_owned(),
                _ => format!("{user}_answer"),
            };
            let sql = match self.is_second {
                true => {
                    let time = json!({"created": self.now(), "completed": self.now()});
                    let data = match role {
                        "user" => json!({"time": time, "text": said}),
                        _ => json!({"time": time, "content": [{"type": "text", "text": said}]}),
                    };
                    format!(
                        "insert into session_message values ('{id}', '{session}', '{role}', {at}, '{data}')"
                    )
                }
                false => {
                    let time = json!({"created": self.now(), "completed": self.now()});
                    let data = json!({"role": role, "time": time});
                    let part = json!({"type": "text", "text": said});
                    format!(
                        "insert into message values ('{id}', '{session}', '{data}');
                         insert into part values ('prt_{at:06}', '{id}', '{session}', '{part}')"
                    )
                }
            };
            self.run(sql).await;
        }
    }

    /// Deletes what was taken back, and says something.
    async fn say(&mut self, session: &str) {
        let (turns, shown) = self.sessions[session].clone();
        for (user, _) in &turns[shown..] {
            let ids = format!("('{user}', '{user}_answer')");
            let sql = match self.is_second {
                true => format!("delete from session_message where id in {ids}"),
                false => format!(
                    "delete from part where message_id in {ids}; delete from message where id in {ids}"
                ),
            };
            self.run(sql).await;
        }
        self.touch(session, "null").await;
        let (user, text) = (
            format!("msg_{:06}", self.clock),
            format!("wish {}", self.clock),
        );
        self.write(session, &user, &text).await;
        let (turns, shown) = self.sessions.get_mut(session).unwrap();
        turns.truncate(*shown);
        turns.push((user, text));
        *shown += 1;
    }

    /// Takes back the turns behind the first ones.
    async fn revert(&mut self, session: &str, shown: usize) {
        let (turns, _) = &self.sessions[session];
        let revert = match turns.get(shown) {
            Some((user, _)) => format!("'{}'", json!({"messageID": user, "snapshot": "x"})),
            None => "null".to_owned(),
        };
        self.touch(session, &revert).await;
        self.sessions.get_mut(session).unwrap().1 = shown;
    }

    /// Copies the shown turns to a new session.
    async fn fork(&mut self, session: &str) {
        let (turns, shown) = self.sessions[session].clone();
        let new = self.begin().await;
        for (_, text) in &turns[..shown] {
            self.touch(&new, "null").await;
            let user = format!("msg_{:06}", self.clock);
            self.write(&new, &user, text).await;
            let copy = self.sessions.get_mut(&new).unwrap();
            copy.0.push((user, text.clone()));
            copy.1 += 1;
        }
    }

    /// Upgrades the database, which keeps the older tables.
    async fn upgrade(&mut self) {
        if self.is_second {
            return;
        }
        self.is_second = true;
        self.run(SECOND.to_owned()).await;
        self.run("insert into session_v2 select * from session".to_owned())
            .await;
        for (session, (turns, _)) in self.sessions.clone() {
            for (user, text) in turns {
                self.write(&session, &user, &text).await;
            }
        }
    }

    async fn import(&mut self, memory: &Memory) {
        import(memory, &self.folder.path().join("opencode.db")).await;
        for (turns, _) in self.sessions.values() {
            for (_, text) in turns {
                self.said
                    .extend([text.clone(), format!("answer to {text}")]);
            }
        }
        for (session, (turns, shown)) in &self.sessions {
            let sends = turns[..*shown].iter();
            let sends: Vec<String> = sends
                .flat_map(|(_, text)| [text.clone(), format!("answer to {text}")])
                .collect();
            if !turns.is_empty() {
                assert_eq!(in_use(memory, session).await, sends, "{session}");
            }
        }
        // An upgraded database still has what was deleted since.
        assert!(told(memory).await.is_superset(&self.said));
        assert_eq!(memory.verify().await.unwrap().violations, []);
    }
}

#[tokio::test]
async fn what_an_upgraded_database_lost_is_not_behind_what_came_since() {
    // What the first import knows of the turn that is lost: nothing, or the turn itself.
    for known in [1, 2] {
        let mut agent = OpenCode::new(false).await;
        let memory = memory().open().await.unwrap();
        let session = agent.sessions.keys().next().unwrap().clone();
        for turn in 0..3 {
            agent.say(&session).await;
            if turn + 1 == known {
                agent.import(&memory).await;
            }
        }
        agent.upgrade().await;
        agent.revert(&session, 1).await;
        agent.say(&session).await;
        agent.revert(&session, 1).await;
        agent.import(&memory).await;
        agent.revert(&session, 2).await;
        agent.import(&memory).await;
        agent.say(&session).await;
        agent.import(&memory).await;
    }
}

#[derive(Debug, Clone)]
enum Move {
    Say(Index),
    Revert(Index, Index),
    Fork(Index),
    Upgrade,
    Import,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let at = any::<Index>;
    let one = prop_oneof![
        5 => at().prop_map(Move::Say),
        3 => (at(), at()).prop_map(|(session, turn)| Move::Revert(session, turn)),
        1 => at().prop_map(Move::Fork),
        1 => Just(Move::Upgrade),
        4 => Just(Move::Import),
    ];
    prop::collection::vec(one, 1..14)
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn opencode_goes_on_with_the_turns_that_it_would_send(moves in moves(), is_second in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut agent = OpenCode::new(is_second).await;
            let memory = memory().open().await.unwrap();
            let first = agent.sessions.keys().next().unwrap().clone();
            agent.say(&first).await;
            for one in &moves {
                match one {
                    Move::Say(at) => {
                        let session = agent.session(at);
                        agent.say(&session).await;
                    }
                    Move::Revert(at, turn) => {
                        let session = agent.session(at);
                        let shown = turn.index(agent.sessions[&session].0.len() + 1);
                        agent.revert(&session, shown).await;
                    }
                    Move::Fork(at) => {
                        let session = agent.session(at);
                        agent.fork(&session).await;
                    }
                    Move::Upgrade => agent.upgrade().await,
                    Move::Import => agent.import(&memory).await,
                }
            }
            agent.import(&memory).await;
            agent.import(&memory).await;
        });
    }
}
