//! Opening sessions, and turns by `user`, `context`, `reply` and `answer`.

use agent_memory::context::IdentityFiles;
use agent_memory::testing::memory;
use agent_memory::tokens::Usage;
use agent_memory::{
    Budget, ErrorKind, Memory, Message, Part, RawJson, Reply, Retrieval, Session, Strategy, Window,
};

async fn open(window: u64) -> Session {
    let memory: Memory = memory().open().await.unwrap();
    let session = memory.session("chat").window(Window::new(window));
    session.system("Be brief.").memory_tools().await.unwrap()
}

fn reply(text: &str, prompt: u64) -> Reply {
    let mut reply = Reply::from(Message::assistant(text));
    reply.model = Some("small".to_owned());
    reply.usage = Some(Usage {
        input: prompt,
        output: 9,
        ..Usage::default()
    });
    reply
}

#[tokio::test]
async fn a_builder_without_a_store_names_the_stores() {
    let error = Memory::builder().open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(
        text.contains("`sqlite`") && text.contains("InMemoryStore"),
        "{text}"
    );
}

#[tokio::test]
async fn tools_that_no_provider_accepts_are_refused_by_name_where_the_session_is_opened() {
    let memory = Memory::in_memory().await.unwrap();
    let tool = |name: &str, parameters: &str| {
        agent_memory::ToolDefinition::new(name, RawJson::parse(parameters).unwrap())
    };
    let object = r#"{"type":"object"}"#;
    for (tools, expected) in [
        (
            vec![tool("read", object), tool("read", object)],
            "the tool \"read\" comes twice",
        ),
        (
            vec![tool("memory_grep", object)],
            "the tool \"memory_grep\" comes twice",
        ),
        (
            vec![tool("read a file!", object)],
            "\"read a file!\" is no name",
        ),
        (vec![tool("", object)], "\"\" is no name"),
        (vec![tool(&"x".repeat(129), object)], "is no name"),
        (vec![tool("läs", object)], "\"läs\" is no name"),
        (
            vec![tool("list", "[1]")],
            "the tool \"list\" has parameters",
        ),
        (
            vec![tool("none", "null")],
            "the tool \"none\" has parameters",
        ),
    ] {
        let opened = memory.session("chat").tools(tools).memory_tools().await;
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(expected), "{error}");
    }
    // No session was created.
    assert!(memory.find_session("chat").await.unwrap().is_none());
    let tools = [tool("fs.read-all:2", " {}"), tool(&"x".repeat(128), object)];
    let session = memory.session("chat").tools(tools).memory_tools().await;
    assert_eq!(
        session.unwrap().tools().len(),
        2 + Retrieval::definitions().count()
    );
}

#[tokio::test]
async fn a_session_without_a_window_takes_messages_and_refuses_contexts() {
    let memory = Memory::in_memory().await.unwrap();
    let session = memory.session("chat").await.unwrap();
    session.user("Where does the log go?").await.unwrap();
    session
        .reply(reply("To standard error.", 40))
        .await
        .unwrap();
    assert_eq!(session.entries().await.unwrap().len(), 2);
    for error in [
        session.context().await.unwrap_err(),
        session.before_turn().await.unwrap_err(),
        session.recover_from_overflow().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error
                .to_string()
                .contains("the session chat has no context window"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn settings_of_a_session_hold_for_its_forks_and_not_for_the_next_handle() {
    let session = open(16_000).await;
    session.user("Hello.").await.unwrap();
    assert_eq!(session.tools().len(), Retrieval::definitions().count());
    let head = session.info().await.unwrap().conversation.head;
    let fork = session.fork(head, "fork").await.unwrap();
    assert_eq!(
        fork.context().await.unwrap().messages[0].parts,
        [agent_memory::Part::text("Be brief.")]
    );
    let again = session.memory().session("chat").await.unwrap();
    assert!(again.tools().is_empty() && again.context().await.is_err());
    let handoff = session
        .memory()
        .session("chat")
        .strategy(Strategy::Handoff)
        .await
        .unwrap();
    assert_eq!(handoff.strategy(), Some(Strategy::Handoff));
    assert_eq!(again.strategy(), Some(Strategy::Dag));
}

#[tokio::test]
async fn a_missing_session_is_not_created_by_get_session() {
    let memory = Memory::in_memory().await.unwrap();
    let missing = memory.get_session("chat").window(Window::new(8_000)).await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(memory.find_session("chat").await.unwrap().is_none());
}

#[tokio::test]
async fn a_reply_teaches_the_safety_factor_from_the_context_that_was_sent() {
    let session = open(16_000).await;
    let mut factor = None;
    for n in 0..30 {
        session
            .user(format!("Question {n}? ").repeat(40))
            .await
            .unwrap();
        let sent = session.context().await.unwrap();
        let tokens = sent.tokens + sent.receipt.tools_tokens + sent.receipt.request_tokens;
        session.reply(reply("Yes.", tokens * 2)).await.unwrap();
        factor = Some(session.usage().await.unwrap().safety_factor);
    }
    let factor = factor.unwrap().thousandths();
    assert!(
        factor > 1_500,
        "real counts are twice the estimates, and the factor is {factor}"
    );
}

#[tokio::test]
async fn the_memory_answers_calls_of_its_own_tools_only() {
    let session = open(16_000).await;
    session
        .user("Deploy only after the tests are green.")
        .await
        .unwrap();
    let call = |name: &str| {
        let arguments = RawJson::parse(r#"{"pattern":"green"}"#).unwrap();
        Message::tool_call(format!("call of {name}"), name, arguments)
    };
    for name in ["memory_grep", "deploy"] {
        let reply = Reply::from(call(name));
        session.reply(&reply).await.unwrap();
        let answered = session.answer(reply.calls().next().unwrap()).await.unwrap();
        assert_eq!(answered, name == "memory_grep");
    }
    let log = session.entries().await.unwrap();
    assert_eq!(log.len(), 4, "a message, two calls and one result");
    let results: Vec<String> = log
        .iter()
        .map(|entry| format!("{:?}", entry.parts))
        .collect();
    assert!(
        results
            .iter()
            .any(|text| text.contains("ToolResult") && text.contains("green"))
    );
}

#[tokio::test]
async fn the_agent_edits_its_identity_files_by_a_tool_and_nothing_else() {
    let (user, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let agents = project.path().join(".agents");
    std::fs::create_dir(&agents).unwrap();
    std::fs::write(agents.join("user.md"), "Works on crumb.").unwrap();
    let files = IdentityFiles::new(user.path()).with_project(project.path());
    let memory = memory().identity(files.clone()).open().await.unwrap();
    let session = memory.session("chat").window(Window::new(16_000));
    let session = session.memory_tools().await.unwrap();
    let declared = |session: &Session| -> Vec<String> {
        session
            .tools()
            .iter()
            .map(|tool| tool.name.clone())
            .collect()
    };
    assert!(declared(&session).contains(&"memory_identity".to_owned()));

    let asked = async |arguments: &str| {
        let arguments = RawJson::parse(arguments).unwrap();
        let id = format!("call {}", session.entries().await.unwrap().len());
        let reply = Reply::from(Message::tool_call(id, "memory_identity", arguments));
        session.reply(&reply).await.unwrap();
        assert!(session.answer(reply.calls().next().unwrap()).await.unwrap());
        let log = session.entries().await.unwrap();
        match &log.last().unwrap().parts[0] {
            Part::ToolResult {
                content, is_error, ..
            } => (content.text().into_owned(), *is_error == Some(true)),
            other => panic!("{other:?}"),
        }
    };
    // The user's own file is made, and the next context begins with it.
    session.user("Call me Ada, and be terse.").await.unwrap();
    let (text, failed) = asked(r#"{"file":"SOUL.md","content":"Be terse."}"#).await;
    assert!(
        !failed && text.contains("SOUL.md now has 9 bytes"),
        "{text}"
    );
    let context = session.context().await.unwrap();
    let first = format!("{:?}", context.messages[0].parts);
    assert!(first.contains("Be terse."), "{first}");
    // The project's file is read and written instead of the user's, in any case of its name.
    let (text, failed) = asked(r#"{"file":"user.md"}"#).await;
    assert!(!failed && text.ends_with("Works on crumb."), "{text}");
    let (_, failed) = asked(r#"{"file":"USER.md","content":"Ada works on crumb."}"#).await;
    assert!(!failed);
    let written = std::fs::read_to_string(agents.join("user.md")).unwrap();
    assert_eq!(written, "Ada works on crumb.");
    assert!(!user.path().join("USER.md").exists());

    // No other file is reached, and the model learns what to do next.
    for (arguments, next) in [
        (
            r#"{"file":"../USER.md","content":"x"}"#,
            "SOUL.md, USER.md or MEMORY.md",
        ),
        (r#"{"file":"/etc/passwd"}"#, "SOUL.md, USER.md or MEMORY.md"),
        (r#"{"content":"x"}"#, "SOUL.md, USER.md or MEMORY.md"),
    ] {
        let (text, failed) = asked(arguments).await;
        assert!(failed && text.contains(next), "{text}");
    }
    let long = format!(r#"{{"file":"SOUL.md","content":"{}"}}"#, "x".repeat(70_000));
    let (text, failed) = asked(&long).await;
    assert!(failed && text.contains("shorten it to 65536"), "{text}");
    std::fs::write(user.path().join("MEMORY.md"), [0xff, 0xfe]).unwrap();
    let (text, failed) = asked(r#"{"file":"MEMORY.md"}"#).await;
    assert!(failed && text.contains("ask the user to mend"), "{text}");
    assert_eq!(files.read("SOUL.md").unwrap(), "Be terse.");

    // A memory without identity files has no such tool, and leaves the call to the application.
    let session = open(16_000).await;
    assert!(!declared(&session).contains(&"memory_identity".to_owned()));
    let arguments = RawJson::parse(r#"{"file":"SOUL.md"}"#).unwrap();
    let reply = Reply::from(Message::tool_call("c", "memory_identity", arguments));
    session.reply(&reply).await.unwrap();
    assert!(!session.answer(reply.calls().next().unwrap()).await.unwrap());
}

#[tokio::test]
async fn errors_say_whether_to_retry_and_which_budget_would_do() {
    let session = open(16_000).await;
    session.user("A question. ".repeat(200)).await.unwrap();
    let error = session.assemble(Budget::tokens(20)).await.unwrap_err();
    let needed = error.budget_needed().unwrap();
    assert!(!error.is_retryable() && needed > 20);
    assert!(session.assemble(Budget::tokens(needed)).await.is_ok());
    let busy = memory_store::Error::new(memory_store::ErrorKind::Busy, "locked");
    assert!(agent_memory::Error::from(busy).is_retryable());
}
