//! A family of sessions on a store, with a simple independent record of their messages.

use std::sync::Arc;

use agent_memory::CompactRequest;
use agent_memory::testing::memory;
use agent_memory::{
    Budget, Memory, Message, Mode, Seq, Session,
    compaction::{CancellationToken, Outcome, RunnerPolicy},
    model::ViewVersion,
    store::{EntryOutcome, Origin},
};
use memory_store::{NewConversation, Store as _};

use super::ops::{Behaviour, Crash, End, Op, Script, messages};
use store_conformance::Layered;

use super::stage::{Fickle, Sabotage, Stage};
use super::{Checked, Law, Tally, compaction, context, failure, lossless};
use crate::support::Inspect as _;

/// A session, and the messages that it must contain.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) session: Session,
    /// Every appended message, in order, including messages that a fork shares.
    pub(crate) said: Vec<Message>,
    unanswered: Vec<String>,
}

pub(crate) struct World {
    pub(crate) stage: Arc<Layered<Stage>>,
    pub(crate) script: Script,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) chats: Vec<Chat>,
    pub(crate) tally: Tally,
    pub(crate) model: Fickle,
    pub(crate) memory: Memory,
    count: u64,
}

impl World {
    pub(crate) async fn new(
        store: Arc<dyn agent_memory::store::FullStore>,
        script: Script,
        sabotage: Option<Sabotage>,
    ) -> World {
        let stage = Arc::new(Layered(Stage::new(store, sabotage)));
        let model = Fickle::new();
        let memory = open(&stage, &model, &script, sabotage).await;
        let session = memory.session("root").await.unwrap();
        let chat = Chat {
            session,
            said: Vec::new(),
            unanswered: Vec::new(),
        };
        World {
            stage,
            script,
            sabotage,
            chats: vec![chat],
            tally: Tally::default(),
            model,
            memory,
            count: 0,
        }
    }

    pub(crate) fn budget(&self) -> Budget {
        Budget::tokens(self.script.budget)
    }

    /// Runs the script and checks the laws.
    pub(crate) async fn play(&mut self) -> Checked<()> {
        for op in self.script.ops.clone() {
            let touched = self.step(&op).await?;
            let chat = &self.chats[touched];
            context::check(chat, self.budget(), self.sabotage, &mut self.tally).await?;
        }
        for chat in &self.chats {
            compaction::check_shrinking(chat, &mut self.tally).await?;
            lossless::check(chat, &mut self.tally).await?;
            context::check_limits(chat, &mut self.tally).await?;
        }
        compaction::check_idempotence(self).await?;
        for chat in &self.chats {
            lossless::check(chat, &mut self.tally).await?;
            context::check(chat, self.budget(), self.sabotage, &mut self.tally).await?;
        }
        Ok(())
    }

    fn chat(&self, number: u8) -> usize {
        usize::from(number) % self.chats.len()
    }

    fn next_messages(&mut self, chat: usize, kinds: &[u8]) -> Vec<Message> {
        let name = format!("c{chat}");
        let unanswered = &mut self.chats[chat].unanswered;
        messages(kinds, &name, &mut self.count, unanswered)
    }

    /// Runs one operation. Returns the index of its session.
    async fn step(&mut self, op: &Op) -> Checked<usize> {
        match op {
            Op::Say { chat, kinds, crash } => {
                let at = self.chat(*chat);
                let messages = self.next_messages(at, kinds);
                if let Some(crash) = crash {
                    self.crash_saying(at, &messages, *crash).await?;
                }
                let again = crash.is_some_and(|crash| crash.after);
                self.say(at, messages, again).await?;
                Ok(at)
            }
            Op::SayAgain { chat, last } => {
                let at = self.chat(*chat);
                let said = &self.chats[at].said;
                let from = said.len().saturating_sub(usize::from(*last) % 8);
                let known = said[from..].iter().filter(|m| m.external_id.is_some());
                let known: Vec<Message> = known.cloned().collect();
                let session = &self.chats[at].session;
                let outcomes = session.ingest_batch(known).await.unwrap().outcomes;
                let new = |o: &EntryOutcome| !matches!(o, EntryOutcome::Duplicate(_));
                Law::Order.holds(!outcomes.iter().any(new), || {
                    format!("what was there was stored again: {outcomes:?}")
                })?;
                Ok(at)
            }
            Op::Compact {
                chat,
                mode,
                model,
                end,
            } => {
                let at = self.chat(*chat);
                self.compact(at, *mode, model, *end).await?;
                Ok(at)
            }
            Op::Race {
                chat,
                kinds,
                model,
                yields,
            } => {
                let at = self.chat(*chat);
                self.race(at, kinds, model, *yields).await?;
                Ok(at)
            }
            Op::Fork { chat, at } => {
                let parent = self.chat(*chat);
                let parent = &self.chats[parent];
                let at = usize::from(*at) % (parent.said.len() + 1);
                let key = format!("chat {}", self.chats.len());
                let session = parent.session.fork(Seq(at as u32), key).await.unwrap();
                let said = parent.said[..at].to_vec();
                self.chats.push(Chat {
                    session,
                    said,
                    unanswered: Vec::new(),
                });
                Ok(self.chats.len() - 1)
            }
            Op::Spawn { chat, at } => {
                let parent = &self.chats[self.chat(*chat)].session;
                let key = format!("chat {}", self.chats.len());
                let new = NewConversation {
                    origin: Origin::Spawn {
                        parent: parent.id(),
                        at: Seq(u32::from(*at)),
                        call: None,
                    },
                    ..NewConversation::root(
                        key.as_str(),
                        parent.info().await.unwrap().conversation.estimator,
                        agent_memory::testing::START,
                    )
                };
                self.stage.open(&new).await.unwrap();
                let session = self.memory.get_session(key).await.unwrap();
                self.chats.push(Chat {
                    session,
                    said: Vec::new(),
                    unanswered: Vec::new(),
                });
                Ok(self.chats.len() - 1)
            }
            Op::Return { chat, version } => {
                let at = self.chat(*chat);
                let session = &self.chats[at].session;
                let newest = session.current_view().await.unwrap().version();
                let version = ViewVersion(u64::from(*version) % (newest.0 + 1));
                let then = session
                    .view_at(version)
                    .await
                    .unwrap()
                    .spans()
                    .await
                    .unwrap();
                session.revert_to(version).await.unwrap();
                let now = session.spans().await.unwrap();
                Law::Reachable.holds(now == then, || {
                    format!("version {version} was returned to, but {now:?} is not {then:?}")
                })?;
                Ok(at)
            }
            Op::Reopen => {
                self.memory = open(&self.stage, &self.model, &self.script, self.sabotage).await;
                for chat in &mut self.chats {
                    let key = chat.session.key().clone();
                    chat.session = self.memory.get_session(key).await.unwrap();
                }
                Ok(0)
            }
        }
    }

    async fn say(&mut self, at: usize, messages: Vec<Message>, again: bool) -> Checked<()> {
        let chat = &mut self.chats[at];
        // After a crash behind the commit only what has an id is known to be there.
        let all_known = messages.iter().all(|m| m.external_id.is_some());
        let stored = again && !all_known;
        if !stored {
            let told = chat.session.ingest_batch(messages.clone()).await.unwrap();
            assert_eq!(told.conflicts(), 0);
        }
        chat.said.extend(messages);
        Ok(())
    }

    /// Appends messages with a failing write. The log must be as before, or contain all of them.
    async fn crash_saying(&mut self, at: usize, messages: &[Message], crash: Crash) -> Checked<()> {
        let chat = &self.chats[at];
        lossless::check_log(chat, &mut self.tally).await?;
        self.stage.0.crash(Crash { write: 1, ..crash });
        let failed = chat.session.ingest_batch(messages.to_vec()).await;
        self.stage.0.heal();
        let log = lossless::log(&chat.session).await;
        let mut expected = chat.said.clone();
        if crash.after {
            expected.extend(messages.iter().cloned());
        }
        failure::check_append(failed.is_err(), &log, &expected, &mut self.tally)
    }

    async fn compact(
        &mut self,
        at: usize,
        mode: Mode,
        model: &[Behaviour],
        end: End,
    ) -> Checked<Option<Outcome>> {
        self.model.behave(model, None);
        let chat = &self.chats[at];
        let before = compaction::Before::of(chat).await;
        let published = self.stage.0.publishes();
        let done = match end {
            End::Done => Some(chat.session.compact(mode).await),
            End::Crash(crash) => {
                self.stage.0.crash(crash);
                let done = chat.session.compact(mode).await;
                let crashed = self.stage.0.heal();
                let made = self.stage.0.publishes() - published;
                failure::check_compaction(chat, before.version, made, crashed, &mut self.tally)
                    .await?;
                Some(done)
            }
            End::CancellationToken(steps) => {
                self.model.behave(model, Some(u64::from(steps)));
                self.stage.0.take_turns(Some(u64::from(steps)));
                let cancel = CancellationToken::new();
                let run = chat.session.compact(CompactRequest {
                    mode,
                    cancel: cancel.clone(),
                    ..CompactRequest::default()
                });
                let stop = async {
                    for _ in 0..steps {
                        tokio::task::yield_now().await;
                    }
                    cancel.cancel();
                };
                let (done, ()) = tokio::join!(run, stop);
                Some(done)
            }
            End::Drop(steps) => {
                self.model.behave(model, Some(u64::from(steps)));
                self.stage.0.take_turns(Some(u64::from(steps)));
                let wait = async {
                    for _ in 0..steps {
                        tokio::task::yield_now().await;
                    }
                };
                tokio::select! {
                    biased;
                    done = chat.session.compact(mode) => Some(done),
                    () = wait => None,
                }
            }
        };
        self.stage.0.take_turns(None);
        self.model.behave(&[Behaviour::Good], None);
        let policy = &self.script.policy;
        compaction::check_tail(chat, &before, policy, &mut self.tally).await?;
        Ok(done.and_then(Result::ok))
    }

    async fn race(
        &mut self,
        at: usize,
        kinds: &[u8],
        model: &[Behaviour],
        yields: u64,
    ) -> Checked<()> {
        let messages = self.next_messages(at, kinds);
        self.model.behave(model, Some(yields));
        self.stage.0.take_turns(Some(yields));
        let chat = &self.chats[at];
        let before = compaction::Before::of(chat).await;
        let (one, two, said) = tokio::join!(
            chat.session.compact(Mode::Full),
            chat.session.compact(Mode::Incremental),
            chat.session.ingest_batch(messages.clone()),
        );
        self.stage.0.take_turns(None);
        self.model.behave(&[Behaviour::Good], None);
        assert_eq!(said.unwrap().conflicts(), 0);
        one.unwrap();
        two.unwrap();
        self.chats[at].said.extend(messages);
        let chat = &self.chats[at];
        compaction::check_tail(chat, &before, &self.script.policy, &mut self.tally).await
    }
}

async fn open(
    stage: &Arc<Layered<Stage>>,
    model: &Fickle,
    script: &Script,
    sabotage: Option<Sabotage>,
) -> Memory {
    let mut policy = script.policy.clone();
    if sabotage == Some(Sabotage::NoTail) {
        policy.fresh_tail.messages = 0;
    }
    let mut runner = RunnerPolicy::default();
    if script.serial {
        runner.concurrency = 1;
    }
    memory()
        .runner(runner)
        .store(Arc::clone(stage) as Arc<dyn agent_memory::store::FullStore>)
        .summarizer(Arc::new(model.clone()))
        .dag(policy)
        .open()
        .await
        .unwrap()
}
