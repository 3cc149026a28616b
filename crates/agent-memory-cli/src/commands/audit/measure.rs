//! Measures one compaction after another on the log of a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_memory::compaction::Background;
use agent_memory::context::{AssembleRequest, AssemblyPolicy};
use agent_memory::model::{
    Accounting as _, AgentConventions as _, EntryKind, LogEntry, StepClock, Timestamp,
};
use agent_memory::retrieval::{ExpandArgs, FilesArgs, RecallArgs, RetrievalLimits};
use agent_memory::store::InMemoryStore;
use agent_memory::summaries::{ConversationState, FactKind};
use agent_memory::transcripts::{
    CalledName, CountedInput, KnownAgents, NamePatterns, OwnCompaction, Shown,
};
use agent_memory::{Budget, Builder, Context, Memory, Message, Mode, Part, Role, Session};

use anyhow::ensure;

use super::kept::{Text, WIDE};
use super::report::{
    Cache, Compaction, Kind, KindCounts, Known, OurContext, SizeAfter, SizeBefore,
};
use crate::app::App;

/// Number of messages after a compaction that say which names were needed.
const NEXT: usize = 40;
/// Minimum budget of a context, in tokens.
const LEAST: u64 = 300;
/// Budget of a recall of a lost name, in tokens.
const RECALL: u64 = 1_000;

/// Returns a builder of a memory that is gone when the program ends, and that reads no clock.
pub(super) fn temporary() -> Builder {
    let clock = || Arc::new(StepClock::new(Timestamp(0), 0));
    Memory::builder()
        .store(InMemoryStore::new().with_clock(clock()))
        .clock(clock())
        .background(Background::off())
}

/// Something that the agent knew before a compaction.
struct Item {
    kind: Kind,
    text: String,
    /// Output of a failing check.
    says: Option<String>,
    /// Index of the message that states it.
    at: Option<usize>,
    name: Option<CalledName>,
    /// Part of a file's path that is looked for.
    file: String,
}

impl Item {
    fn new(kind: Kind, text: &str, at: Option<usize>) -> Self {
        Self {
            kind,
            text: text.to_owned(),
            says: None,
            at,
            name: None,
            file: String::new(),
        }
    }

    fn is_in(&self, text: &Text) -> bool {
        match (&self.name, self.kind) {
            (Some(name), _) => text.names(name),
            (None, Kind::ChangedFile) => text.has_file(&self.file),
            (None, Kind::NewestRequest) => text.requests(&self.text),
            _ => text.says(&self.text) || self.says.as_deref().is_some_and(|says| text.says(says)),
        }
    }
}

/// Measures the compactions of a session.
pub(super) struct Measure<'a> {
    pub(super) app: &'a App,
    pub(super) entries: &'a [LogEntry],
    /// Session of another temporary memory that has the entries before the measured compaction.
    pub(super) ours: &'a Session,
    pub(super) patterns: &'a NamePatterns,
}

impl Measure<'_> {
    pub(super) async fn all(
        &self,
        compactions: &[OwnCompaction],
    ) -> anyhow::Result<Vec<Compaction>> {
        let mut out = Vec::new();
        let mut previous: Option<&OwnCompaction> = None;
        let mut stored = 0;
        for own in compactions {
            let new = self.entries.get(stored..own.at).unwrap_or_default();
            let new = new.iter().map(|entry| entry.message.clone());
            let ingested = self.ours.ingest_batch(new.collect()).await?;
            ensure!(ingested.conflicts() == 0, "an entry of the log was refused");
            stored = own.at;
            self.ours.compact(Mode::Full).await?;
            out.push(self.one(own, previous, out.len() + 1).await?);
            previous = Some(own);
        }
        Ok(out)
    }

    async fn one(
        &self,
        own: &OwnCompaction,
        previous: Option<&OwnCompaction>,
        number: usize,
    ) -> anyhow::Result<Compaction> {
        let since = previous.map_or(0, |previous| previous.end.min(own.at));
        let mut before: Vec<Shown> = previous
            .map(|previous| previous.shows.clone())
            .unwrap_or_default();
        before.extend(self.messages(since, own.at).map(|(at, _)| Shown::Entry(at)));
        let tokens = self.tokens(&own.shows);
        let budget = tokens.max(LEAST);
        let context = self.context(budget).await?;
        let known_before = previous.map(|_| Text::new(self.text(&before), self.patterns));
        let ours = Text::new(
            context.as_ref().map_or_else(String::new, context_text),
            self.patterns,
        );
        let items = self.known(own, known_before.as_ref(), &ours).await?;
        let same = before
            .iter()
            .zip(&own.shows)
            .take_while(|(before, after)| before == after)
            .count();
        let same = self.tokens(own.shows.get(..same).unwrap_or_default());
        let before_tokens = self.tokens(&before);
        let is_entry = |shown: &&Shown| matches!(shown, Shown::Entry(at) if *at < own.at);
        let entry = self.entries.get(own.at);
        Ok(Compaction {
            number,
            seq: own.at as u64 + 1,
            entry: entry.and_then(|entry| entry.message.external_id.clone()),
            created_at: entry
                .map(|entry| entry.message.created_at)
                .filter(|time| time.is_known())
                .map(|time| time.to_string()),
            trigger: own.trigger.clone(),
            before: SizeBefore {
                messages: before.iter().filter(is_entry).count() as u64,
                tokens: before_tokens,
                tokens_by_agent: own.tokens_before,
            },
            after: self.size_after(own),
            cache: Cache {
                before: before_tokens,
                same,
                rewritten: tokens - same,
                counted_before: self.counted(since, own.at).last(),
                counted_after: self.counted(own.end, self.entries.len()).next(),
            },
            agent_memory: context.map(|context| OurContext {
                budget,
                tokens: context.tokens,
            }),
            next_messages: self
                .messages(own.end, self.entries.len())
                .take(NEXT)
                .count() as u64,
            kinds: KindCounts::all(items.iter()),
            items,
        })
    }

    /// Returns agent-memory's context; `None` if the budget is too small for one.
    async fn context(&self, budget: u64) -> anyhow::Result<Option<Context>> {
        let request = AssembleRequest::new(Budget::tokens(budget), AssemblyPolicy::once());
        match self.ours.assemble(request).await {
            Ok(context) => Ok(Some(context)),
            // The last messages alone are larger.
            Err(error) if error.budget_needed().is_some() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the items that hold before a compaction, and which of the texts have them: the agent's context `before` it
    /// and after it, and agent-memory's. `before` is `None` for the first compaction.
    async fn known(
        &self,
        own: &OwnCompaction,
        before: Option<&Text>,
        ours: &Text,
    ) -> anyhow::Result<Vec<Known>> {
        let summary = self.text(&own.shows);
        let after = Text::new(summary.clone(), self.patterns);
        let mut items = Vec::new();
        for item in self.items(own) {
            let (kept, by_us) = (item.is_in(&after), item.is_in(ours));
            let was_there = before.is_none_or(|text| item.is_in(text));
            let command = match kept {
                true => None,
                false => self.command(&item).await?,
            };
            items.push(Known {
                kind: item.kind,
                seq: item.at.map(|at| at as u64 + 1),
                kept,
                missing_before: !kept && !was_there,
                other_script: !kept && is_wide(&item.text) && !is_wide(&summary),
                agent_memory: by_us,
                command,
                text: item.text,
                says: item.says,
            });
        }
        items.sort_by_key(|item| (item.missing_before, item.kind));
        Ok(items)
    }

    fn size_after(&self, own: &OwnCompaction) -> SizeAfter {
        let is_entry = |shown: &&Shown| matches!(shown, Shown::Entry(at) if *at < own.at);
        let is_added = |shown: &&Shown| matches!(shown, Shown::Entry(at) if *at >= own.at);
        let is_text = |shown: &&Shown| matches!(shown, Shown::Text(_));
        let part = |is: &dyn Fn(&&Shown) -> bool| -> Vec<Shown> {
            own.shows.iter().filter(is).cloned().collect()
        };
        SizeAfter {
            tokens: self.tokens(&own.shows),
            summary: self.text(&part(&is_text)),
            summary_tokens: self.tokens(&part(&is_text)),
            messages: part(&is_entry).len() as u64,
            message_tokens: self.tokens(&part(&is_entry)),
            added: part(&is_added).len() as u64,
            added_tokens: self.tokens(&part(&is_added)),
        }
    }

    /// Returns the messages of a range, with their indices.
    fn messages(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, &LogEntry)> {
        let range = self.entries.iter().enumerate().take(to).skip(from);
        range.filter(|(_, entry)| entry.message.kind == EntryKind::Message)
    }

    /// Returns the inputs of requests that the provider counted, in a range of entries.
    fn counted(&self, from: usize, to: usize) -> impl Iterator<Item = CountedInput> {
        self.messages(from, to)
            .filter_map(|(_, entry)| CountedInput::of(&entry.message))
    }

    fn tokens(&self, shown: &[Shown]) -> u64 {
        let estimator = self.ours.accounting().estimator();
        let tokens = shown.iter().map(|shown| match shown {
            Shown::Text(text) => estimator.text(text),
            Shown::Entry(at) => self.entries.get(*at).map_or(0, |entry| entry.tokens),
        });
        tokens.sum()
    }

    fn text(&self, shown: &[Shown]) -> String {
        let texts = shown.iter().map(|shown| match shown {
            Shown::Text(text) => text.clone(),
            Shown::Entry(at) => self
                .entries
                .get(*at)
                .map_or_else(String::new, |entry| texts(&entry.message.parts)),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the items that hold before a compaction, and the names that the messages after it use.
    fn items(&self, own: &OwnCompaction) -> Vec<Item> {
        let past: Vec<(usize, &LogEntry)> = self.messages(0, own.at).collect();
        let mut items = Vec::new();
        if let Some((at, text)) = past
            .iter()
            .rev()
            .find_map(|(at, one)| Some((*at, typed(&one.message)?)))
        {
            items.push(Item::new(Kind::NewestRequest, &text, Some(at)));
        }
        let log: Vec<&LogEntry> = past.iter().map(|(_, entry)| *entry).collect();
        for fact in ConversationState::of(&log, &KnownAgents).facts() {
            let kind = match fact.kind {
                FactKind::Rule => Kind::StandingInstruction,
                FactKind::Decision => Kind::Decision,
                FactKind::File => Kind::ChangedFile,
                FactKind::Failing => Kind::FailingCheck,
                FactKind::Task => Kind::OpenTask,
                _ => continue,
            };
            let at = fact.seq.map(|seq| (seq.0 as usize).saturating_sub(1));
            items.push(Item {
                says: fact.says,
                ..Item::new(kind, &fact.text, at)
            });
        }
        let mut files: BTreeMap<String, usize> = BTreeMap::new();
        let is_file = |item: &&mut Item| item.kind == Kind::ChangedFile;
        for item in items.iter_mut().filter(is_file) {
            item.file = last(&item.text, 1).to_owned();
            *files.entry(item.file.clone()).or_default() += 1;
        }
        for item in items.iter_mut().filter(is_file) {
            if files.get(&item.file).is_some_and(|n| *n > 1) {
                item.file = last(&item.text, 2).to_owned();
            }
        }
        let past: Vec<(usize, String)> = past
            .iter()
            .map(|(at, one)| (*at, texts(&one.message.parts)))
            .collect();
        let mut names = BTreeSet::new();
        for (_, entry) in self.messages(own.end, self.entries.len()).take(NEXT) {
            for part in &entry.message.parts {
                if let Part::ToolCall { arguments, .. } = part
                    && let Ok(arguments) = serde_json::from_str(arguments.as_str())
                {
                    names.extend(self.patterns.names(&arguments));
                }
            }
        }
        for name in names {
            let Some((at, _)) = past
                .iter()
                .rev()
                .find(|(_, text)| text.contains(&name.name))
            else {
                continue;
            };
            let text = name.name.clone();
            items.push(Item {
                name: Some(name),
                ..Item::new(Kind::UsedNext, &text, Some(*at))
            });
        }
        items
    }

    /// Returns the command that returns an item from the log, after a trial; `None` if none does.
    async fn command(&self, item: &Item) -> anyhow::Result<Option<String>> {
        let tools = self.ours.retrieval().with_limits(RetrievalLimits::none());
        let session = self.ours.key().as_str();
        if item.kind == Kind::ChangedFile {
            let path = last(&item.text, 2);
            let args = FilesArgs {
                path: Some(path.to_owned()),
                ..FilesArgs::default()
            };
            if !tools.files(args).await?.uses.is_empty() {
                return Ok(Some(self.app.command(&["files"], &[session, path])));
            }
        }
        if let Some(name) = &item.name {
            let args = RecallArgs {
                budget: RECALL,
                ..RecallArgs::query(&*name.name)
            };
            let passages = tools.recall(args).await?.passages;
            if passages
                .iter()
                .any(|passage| passage.text.contains(&name.name))
            {
                return Ok(Some(self.app.command(&["recall"], &[session, &name.name])));
            }
        }
        let Some(at) = item.at else {
            return Ok(None);
        };
        let target = format!("message:{}", at + 1);
        let args = ExpandArgs {
            summary_id: target.clone(),
            token_cap: u64::MAX,
            ..ExpandArgs::default()
        };
        let answer = Text::new(tools.expand(args).await?.to_text(), self.patterns);
        let found = item.is_in(&answer);
        Ok(found.then(|| self.app.command(&["expand"], &[session, &target])))
    }
}

/// Returns the text of a message that a person typed; `None` for other messages, and for commands to the program.
fn typed(message: &Message) -> Option<String> {
    if message.role != Role::User {
        return None;
    }
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(
            KnownAgents
                .user_text(text, message.meta.as_ref())
                .typed
                .into_owned(),
        ),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n").trim().to_owned();
    let is_one_line = !text.contains('\n');
    let is_mark = text.starts_with(['[', '(']) && text.ends_with([']', ')']);
    let is_command = text.starts_with("! ") || (text.starts_with('/') && !text.contains(' '));
    (!text.is_empty() && !(is_one_line && (is_mark || is_command))).then_some(text)
}

/// Returns all texts of a context.
fn context_text(context: &Context) -> String {
    let messages = context.to_messages();
    let texts: Vec<String> = messages
        .iter()
        .map(|message| texts(&message.parts))
        .collect();
    unescaped(&texts.join("\n"))
}

/// Returns all texts of a message, with the arguments and results of tools.
fn texts(parts: &[Part]) -> String {
    let mut texts = Vec::new();
    for part in parts {
        part.visit_texts(&mut |text| texts.push(text));
    }
    texts.join("\n")
}

/// Returns the last components of a path.
fn last(path: &str, components: usize) -> &str {
    let mut slashes = path.rmatch_indices(['/', '\\']);
    let at = slashes.nth(components - 1).map(|(at, _)| at + 1);
    at.and_then(|at| path.get(at..)).unwrap_or(path)
}

/// Returns whether a fifth of a text's letters are of a script without spaces between words.
fn is_wide(text: &str) -> bool {
    let letters = || text.chars().filter(|c| c.is_alphabetic());
    letters().filter(|c| *c >= WIDE).count() * 5 > letters().count()
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&gt;", ">").replace("&lt;", "<");
    text.replace("&amp;", "&")
}
