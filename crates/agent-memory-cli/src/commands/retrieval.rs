//! `grep`, `recall`, `files`, `describe` and `expand`: from a summary back to the words.

use agent_memory::retrieval::{
    ExpandArgs, FilesArgs, GrepArgs, RecallArgs, Retrieval, RetrievalLimits, UseKind,
};
use agent_memory::{HitOrder, Role, SearchMode, SearchScope, Seq, SeqRange, Session, SummaryId};
use clap::ValueEnum;
use serde_json::json;

use crate::app::App;
use crate::args::{
    ActionArg, Describe, Expand, Files, Grep, GrepForm, OrderArg, Recall, RoleArg, ScopeArg,
    SearchModeArg,
};
use crate::error::{Failure, Kind};
use crate::table::Table;

/// The tools without ceilings: who calls them here is the host.
fn tools(session: &Session) -> Retrieval {
    session.retrieval().with_limits(RetrievalLimits::none())
}

/// The name of a value on the command line.
fn name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The options of a command that continues an answer.
struct Options(Vec<String>);

impl Options {
    fn new(command: &str) -> Self {
        Self(vec![command.to_owned()])
    }

    /// Adds an option that has a value.
    fn with(mut self, option: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.0.extend([option.to_owned(), value.to_string()]);
        }
        self
    }

    fn next(&self, app: &App, about: &[&str]) -> String {
        let options: Vec<&str> = self.0.iter().map(String::as_str).collect();
        format!("next: {}", app.command(&options, about))
    }
}

pub(crate) async fn grep(app: &mut App, args: &Grep) -> anyhow::Result<()> {
    let table = match args.mode {
        None | Some(SearchModeArg::Prose) => args.vectors.read()?,
        Some(_) => Table::default(),
    };
    let memory = app.open_to_search(&table).await?;
    let session = app.session(&memory, &args.session).await?;
    let mut asked = GrepArgs::new(&args.pattern)
        .with_scope(match args.scope {
            ScopeArg::Messages => SearchScope::Messages,
            ScopeArg::Summaries => SearchScope::Summaries,
            ScopeArg::Both => SearchScope::Both,
        })
        .with_order(match args.order {
            OrderArg::Relevance => HitOrder::Relevance,
            OrderArg::Oldest => HitOrder::Oldest,
            OrderArg::Newest => HitOrder::Newest,
        })
        .with_limit(args.limit.get())
        .with_corrections();
    let role = |role: &RoleArg| match role {
        RoleArg::System => Role::System,
        RoleArg::User => Role::User,
        RoleArg::Assistant => Role::Assistant,
        RoleArg::Tool => Role::Tool,
    };
    asked.roles = args.roles.iter().map(role).collect();
    if let Some(mode) = args.mode {
        asked = asked.with_mode(match mode {
            SearchModeArg::Literal => SearchMode::Literal,
            SearchModeArg::Regex => SearchMode::Regex,
            SearchModeArg::Words => SearchMode::Words,
            SearchModeArg::Prose => SearchMode::Prose,
        });
    }
    asked.tools.clone_from(&args.tools);
    asked.echoes = args.echoes;
    asked.around = args.around;
    asked.smart_case = args.smart_case;
    asked.since = args.since;
    asked.until = args.until;
    if args.from.is_some() || args.to.is_some() {
        let (from, to) = (args.from.unwrap_or(1), args.to.unwrap_or(u32::MAX));
        let range = SeqRange::new(Seq(from), Seq(to)).ok_or_else(|| {
            let text = format!("--from {from} --to {to} is no range");
            Failure::new(Kind::Usage, text).hint("give the smaller number first; the first is 1")
        })?;
        asked = asked.with_range(range);
    }
    asked.cursor = args.cursor.clone();
    let answer = tools(&session).grep(asked).await?;
    if args.form == GrepForm::Results {
        let results = json!({"results": answer.search_results()});
        return Ok(app.out.json(&results)?);
    }
    if app.json || args.form == GrepForm::Json {
        return Ok(app.out.json(&answer)?);
    }
    app.out.text(&answer.to_text())?;
    if let Some(cursor) = &answer.cursor {
        let mut options = Options::new("grep")
            .with("--mode", args.mode.as_ref().map(name))
            .with("--scope", Some(name(&args.scope)));
        for role in &args.roles {
            options = options.with("--role", Some(name(role)));
        }
        for tool in &args.tools {
            options = options.with("--tool", Some(tool));
        }
        if args.echoes {
            options.0.push("--echoes".to_owned());
        }
        if args.around > 0 {
            options = options.with("--around", Some(args.around));
        }
        let mut options = options
            .with("--from", args.from)
            .with("--to", args.to)
            .with("--since", args.since)
            .with("--until", args.until)
            .with("--order", Some(name(&args.order)))
            .with("--limit", Some(args.limit))
            .with("--table", args.vectors.path())
            .with("--cursor", Some(cursor));
        if args.smart_case {
            options.0.push("--smart-case".to_owned());
        }
        let about = [session.key().as_str(), &args.pattern];
        let next = options.next(app, &about);
        app.out.line(&next)?;
    }
    Ok(())
}

pub(crate) async fn recall(app: &mut App, args: &Recall) -> anyhow::Result<()> {
    let table = match &args.query {
        Some(_) => args.vectors.read()?,
        None => Table::default(),
    };
    let memory = app.open_to_search(&table).await?;
    let session = app.session(&memory, &args.session).await?;
    let mut asked = match (&args.query, args.turn) {
        (Some(query), _) => RecallArgs::query(query),
        (None, turn) => RecallArgs::turn(Seq(turn.unwrap_or_default())),
    };
    asked = asked.with_budget(args.budget);
    asked.cursor = args.cursor.clone();
    let answer = tools(&session).recall(asked).await?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    let text = answer.to_text();
    // Its last line tells a model which tool to call; a person gets the commands.
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some(passage) = answer.passages.first() {
        lines.pop();
        app.out.text(&format!("{}\n", lines.join("\n")))?;
        let pointer = passage.pointer();
        let about = [session.key().as_str(), &pointer];
        let read = app.command(&["expand"], &about);
        app.out.line(&format!("read the first: {read}"))?;
    } else {
        app.out.text(&text)?;
    }
    if let (Some(cursor), Some(query)) = (&answer.cursor, &args.query) {
        let options = Options::new("recall")
            .with("--budget", Some(args.budget))
            .with("--table", args.vectors.path())
            .with("--cursor", Some(cursor));
        let next = options.next(app, &[session.key().as_str(), query]);
        app.out.line(&next)?;
    }
    Ok(())
}

pub(crate) async fn files(app: &mut App, args: &Files) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let mut asked = FilesArgs::new().with_limit(args.limit.get());
    asked.path = args.path.clone();
    asked.command = args.command.clone();
    asked.action = args.action.map(|action| match action {
        ActionArg::Read => UseKind::Read,
        ActionArg::Changed => UseKind::Changed,
        ActionArg::Ran => UseKind::Ran,
    });
    asked.cursor = args.cursor.clone();
    let answer = tools(&session).files(asked).await?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    app.out.text(&answer.to_text())?;
    if let Some(cursor) = &answer.cursor {
        let options = Options::new("files")
            .with("--command", args.command.as_ref())
            .with("--action", args.action.as_ref().map(name))
            .with("--limit", Some(args.limit))
            .with("--cursor", Some(cursor));
        let mut about = vec![session.key().as_str()];
        about.extend(args.path.as_deref());
        let next = options.next(app, &about);
        app.out.line(&next)?;
    }
    Ok(())
}

pub(crate) async fn describe(app: &mut App, args: &Describe) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let id = SummaryId::new(&args.summary);
    let found = tools(&session).describe(&id).await;
    let answer = found.map_err(|error| not_found(error, &args.summary))?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    let text = answer.to_text();
    // Its last line tells a model which tool to call; a person gets the command.
    let text = text.trim_end().rsplit_once('\n').map_or("", |(all, _)| all);
    app.out.text(text)?;
    app.out.line("")?;
    let about = [session.key().as_str(), answer.summary_id.as_str()];
    let command = app.command(&["expand"], &about);
    app.out.line(&format!("expand it: {command}"))?;
    Ok(())
}

pub(crate) async fn expand(app: &mut App, args: &Expand) -> anyhow::Result<()> {
    let memory = app.open().await?;
    let session = app.session(&memory, &args.session).await?;
    let mut asked = ExpandArgs::new(&args.target).with_token_cap(args.cap);
    if let Some(cursor) = &args.cursor {
        asked = asked.with_cursor(cursor);
    }
    let found = tools(&session).expand(asked).await;
    let answer = found.map_err(|error| not_found(error, &args.target))?;
    if app.json {
        return Ok(app.out.json(&answer)?);
    }
    app.out.text(&answer.to_text())?;
    if let Some(cursor) = &answer.cursor {
        let (cap, cursor) = (args.cap.to_string(), cursor.to_string());
        let options = ["expand", "--cap", &cap, "--cursor", &cursor];
        let about = [session.key().as_str(), answer.summary_id.as_str()];
        app.out
            .line(&format!("next: {}", app.command(&options, &about)))?;
    }
    Ok(())
}

/// A summary that is not there, with the commands that find one.
fn not_found(error: agent_memory::retrieval::Error, target: &str) -> anyhow::Error {
    let summary = !target.trim_start().starts_with("message");
    if error.kind() == agent_memory::retrieval::ErrorKind::NotFound && summary {
        return Failure::new(
            Kind::NotFound,
            format!("the session has no summary {target}"),
        )
        .hint("take an id from what `compact`, `context`, `grep` or `describe` print")
        .into();
    }
    error.into()
}
