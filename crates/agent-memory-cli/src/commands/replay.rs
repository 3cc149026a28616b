//! `replay`: replays a transcript message by message, as a live agent would process it.

use std::path::Path;
use std::sync::Arc;

use agent_memory::compaction::Background;
use agent_memory::replay::{Broken, Replay, ReplayReport, Reuse};
use agent_memory::transcripts::ReadOptions;
use agent_memory::{DagPolicy, HandoffPolicy, Memory, Window, store::SqliteStore};
use serde::Serialize;

use super::import;
use crate::app::App;
use crate::args;
use crate::config::Config;
use crate::error::{Failure, Kind};
use crate::output::{clip, count, number, one_line, table};
use crate::progress::Progress;

/// Maximum number of violations that the text output lists.
const NAMED: usize = 20;

#[derive(Debug, Serialize)]
struct FileReplay {
    file: String,
    window: u64,
    budget: u64,
    max_statements: u64,
    ok: bool,
    sessions: Vec<SessionReplay>,
    together: ReplayTotals,
}

/// Report of the replay of one session of the file.
#[derive(Debug, Serialize)]
struct SessionReplay {
    leaf: u64,
    condensed: u64,
    /// Number of published summaries with the strategy handoff, including summaries of the beginnings of turns.
    handoff: u64,
    /// Number of changes of the view with the strategy blocks: summaries, shortened turns and omissions.
    blocks: u64,
    #[serde(flatten)]
    replayed: ReplayReport,
}

impl From<ReplayReport> for SessionReplay {
    fn from(replayed: ReplayReport) -> Self {
        Self {
            leaf: replayed.published.get("leaf"),
            condensed: replayed.published.get("condensed"),
            handoff: replayed.published.get("handoff") + replayed.published.get("turn_prefix"),
            blocks: ["summarize", "trim", "omit", "unfold"]
                .iter()
                .map(|label| replayed.published.get(label))
                .sum(),
            replayed,
        }
    }
}

/// Totals over all sessions of the file.
#[derive(Debug, Default, Serialize)]
struct ReplayTotals {
    steps: u64,
    publishing_steps: u64,
    reuse: f64,
    reuse_all: f64,
    reuse_newest_first: f64,
    broken: u64,
}

pub(crate) async fn run(app: &mut App, args: &args::Replay) -> anyhow::Result<()> {
    args.policy.check(args.strategy)?;
    let mut options = ReadOptions::default();
    options.session.clone_from(&args.session);
    let transcript = import::read(Path::new(&args.file), &options)?;
    let window = Window::new(args.window);
    let progress = Arc::new(Progress::new(app.json));
    // The database is temporary, so that a replay leaves no data behind.
    let folder = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(folder.path().join("replay.db")).await?);
    let builder = Memory::builder().store(store.clone());
    let usual = DagPolicy::for_window(args.window);
    let memory = args
        .policy
        .apply(builder, usual, &Config::default())
        .handoff(HandoffPolicy::for_window(window.budget().get()))
        .strategy(args.strategy)
        .background(Background::off())
        .open()
        .await?;
    let statements = || store.statements();
    let mut sessions = Vec::new();
    for log in &transcript.sessions {
        progress.say(&format!("replaying {}", log.key));
        let key = memory.open_log(log).await?.key().clone();
        let session = memory.get_session(key).window(window).await?;
        let mut replay = Replay::new(&session);
        replay.statements = Some(&statements);
        replay.most_statements = Some(args.max_statements);
        sessions.push(replay.run(&log.messages).await?);
    }
    progress.done();
    memory.close().await?;

    let together = together(&sessions);
    let sessions = sessions.into_iter().map(SessionReplay::from).collect();
    let answer = FileReplay {
        file: args.file.display().to_string(),
        window: args.window,
        budget: window.budget().get(),
        max_statements: args.max_statements,
        ok: together.broken == 0,
        sessions,
        together,
    };
    if app.json {
        app.out.json(&answer)?;
    } else {
        app.out.text(&text(&answer))?;
    }
    match answer.together.broken {
        0 => Ok(()),
        broken => {
            let text = format!("{} broken", count(broken, "law was", "laws were"));
            let hint = "this is a defect of the program: please report it with the transcript";
            Err(Failure::new(Kind::VerificationFailed, text)
                .hint(hint)
                .into())
        }
    }
}

fn together(sessions: &[ReplayReport]) -> ReplayTotals {
    let sum = |of: fn(&ReplayReport) -> Reuse| {
        let mut sum = Reuse::default();
        sessions.iter().for_each(|session| sum.add(of(session)));
        sum.share()
    };
    ReplayTotals {
        steps: sessions.iter().map(|s| s.steps).sum(),
        publishing_steps: sessions.iter().map(|s| s.publishing_steps).sum(),
        reuse: sum(|s| s.reuse),
        reuse_all: sum(|s| s.reuse_all),
        reuse_newest_first: sum(|s| s.reuse_newest_first),
        broken: sessions.iter().map(|s| s.broken.len() as u64).sum(),
    }
}

fn text(answer: &FileReplay) -> String {
    let header = [
        "session",
        "steps",
        "log tokens",
        "view tokens",
        "largest context",
        "publishes",
        "summaries",
        "prefix kept",
        "in all",
        "newest first",
        "statements",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for SessionReplay {
        replayed: session, ..
    } in &answer.sessions
    {
        let most = session
            .most_statements
            .max(session.most_statements_publishing);
        rows.push(vec![
            clip(&session.session, 44).into_owned(),
            number(session.steps),
            number(session.log_tokens),
            number(session.view_tokens),
            number(session.largest_context),
            number(session.publishing_steps),
            number(session.published.total()),
            share(session.reuse.share()),
            share(session.reuse_all.share()),
            share(session.reuse_newest_first.share()),
            number(most.unwrap_or(0)),
        ]);
    }
    let mut out = table(&rows);
    let together = &answer.together;
    out += &format!(
        "\na window of {} tokens leaves {} for a context\n",
        number(answer.window),
        number(answer.budget),
    );
    out += &format!(
        "share of a context that began the next: {} between publishes, {} over all steps; {} for contexts of the latest messages alone\n",
        share(together.reuse),
        share(together.reuse_all),
        share(together.reuse_newest_first),
    );
    let broken: Vec<(&str, &Broken)> = answer
        .sessions
        .iter()
        .map(|session| &session.replayed)
        .flat_map(|s| s.broken.iter().map(|broken| (s.session.as_str(), broken)))
        .collect();
    if broken.is_empty() {
        out += &format!(
            "all laws held after each of {}\n",
            count(together.steps, "step", "steps")
        );
    }
    for (session, broken) in broken.iter().take(NAMED) {
        let line = format!("broken in {session}: {broken}");
        out += &format!("{}\n", one_line(&line));
    }
    if broken.len() > NAMED {
        out += &format!("broken: {} more; --json lists all\n", broken.len() - NAMED);
    }
    out
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
