//! Summaries in the session files of other programs, and session files that this crate writes.

use agent_memory::testing::memory;
use agent_memory::{Budget, Part, Seq, Strategy, context::MessageOrigin, model::SpanBody};
use message_formats::Transcript;

use crate::corpus::parse;
use crate::support::Inspect as _;
use crate::support::{export, said};

fn line(id: usize, parent: &str, text: &str) -> String {
    let role = if id % 2 == 1 { "user" } else { "assistant" };
    format!(
        r#"{{"type":"message","id":"m{id}","parentId":{parent},"timestamp":"2026-03-08T10:00:{id:02}Z","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// Returns a session of pi with forty messages that was compacted twice.
fn compacted_twice() -> Transcript {
    let mut lines = vec![
        r#"{"type":"session","version":3,"id":"p","timestamp":"2026-03-08T10:00:00Z","cwd":"/w"}"#
            .to_owned(),
    ];
    let mut parent = "null".to_owned();
    for n in 1..=40 {
        lines.push(line(n, &parent, &said(n).text()));
        parent = format!("\"m{n}\"");
        let compaction = match n {
            20 => Some(("c1", "m15", "Modules 1 to 14 were renamed.")),
            40 => Some(("c2", "m31", "Modules 1 to 30 were renamed.")),
            _ => None,
        };
        if let Some((id, kept, text)) = compaction {
            lines.push(format!(
                r#"{{"type":"compaction","id":"{id}","parentId":{parent},"summary":"{text}","firstKeptEntryId":"{kept}","tokensBefore":900,"details":{{"readFiles":["a"]}}}}"#
            ));
            parent = format!("\"{id}\"");
        }
    }
    parse((lines.join("\n") + "\n").as_bytes())
}

#[tokio::test]
async fn compactions_of_a_session_file_become_handoffs() {
    let memory = memory().open().await.unwrap();
    let transcript = compacted_twice();
    memory.import(&transcript).await.unwrap();
    let session = memory.get_session("p").await.unwrap();
    let before = export(&session).await;
    let imported = memory.import_summaries(&transcript).await.unwrap();
    assert_eq!((imported[0].published, imported[0].passed_over), (2, 0));
    assert_eq!(export(&session).await, before, "the log is as it was");
    // The session's own strategy sees nothing of it until it changes.
    assert_eq!(session.spans().await.unwrap().len(), 1);
    let session = session.use_strategy(Strategy::Handoff).await.unwrap();
    let spans = session.spans().await.unwrap();
    let [summary, rest] = &*spans else {
        panic!("{spans:?}")
    };
    let SpanBody::Summary { id, .. } = &summary.body else {
        panic!("{summary:?}")
    };
    let stored = session.summaries(std::slice::from_ref(id)).await.unwrap();
    let stored = stored[0].as_ref().unwrap();
    assert!(stored.text().contains("Modules 1 to 30 were renamed."));
    assert!(stored.meta.as_ref().unwrap().as_str().contains("readFiles"));
    let kept = session
        .entries_in(agent_memory::SeqRange::single(rest.range.first))
        .await;
    assert_eq!(kept.unwrap().items[0].external_id.as_deref(), Some("m31"));
    // The summary is shown, and not its messages, though there is room for them.
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    assert_eq!(context.messages.len(), 11);
    // Again does nothing.
    let again = memory.import_summaries(&transcript).await.unwrap();
    assert_eq!((again[0].published, again[0].passed_over), (0, 2));
    let report = memory.verify().await.unwrap();
    assert!(report.is_ok(), "{:?}", report.violations);
}

#[tokio::test]
async fn a_session_file_is_written_with_its_summary_and_read_as_summary_and_tail() {
    let ours = memory().open().await.unwrap();
    let transcript = compacted_twice();
    ours.import(&transcript).await.unwrap();
    let session = ours.get_session("p").await.unwrap();
    let whole = session.session_file().await.unwrap();
    assert!(!whole.contains("\"compaction\""));
    ours.import_summaries(&transcript).await.unwrap();
    let file = session.session_file().await.unwrap();
    let lines: Vec<&str> = file.lines().collect();
    assert!(lines[0].contains(r#""cwd":"/w""#), "{}", lines[0]);
    assert!(
        lines[1].starts_with(r#"{"type":"compaction""#),
        "{}",
        lines[1]
    );
    assert_eq!(lines.len(), 2 + 10, "a header, the summary, ten messages");
    // Elsewhere the summary is all that is left of what it stands for: a context begins with it.
    let theirs = memory().open().await.unwrap();
    theirs.import(&parse(file.as_bytes())).await.unwrap();
    let read = theirs.get_session("p").await.unwrap();
    let context = read.assemble(Budget::tokens(100_000)).await.unwrap();
    assert_eq!(context.messages.len(), 11);
    let Part::Text { text } = &context.messages[0].parts[0] else {
        panic!("{:?}", context.messages[0])
    };
    assert!(text.contains("Modules 1 to 30 were renamed."), "{text}");
    assert!(matches!(
        context.messages[0].source,
        MessageOrigin::Message { .. }
    ));

    // Where the messages are known, it is no message: it stands for them.
    let third = memory().open().await.unwrap();
    third.import(&parse(whole.as_bytes())).await.unwrap();
    let rewritten = parse(file.as_bytes());
    third.import(&rewritten).await.unwrap();
    let known = third.get_session("p").await.unwrap();
    let said = known.entries().await.unwrap();
    assert!(
        said.iter()
            .all(|entry| !entry.text().contains("Modules 1 to 30"))
    );
    let imported = third.import_summaries(&rewritten).await.unwrap();
    assert_eq!(imported[0].published, 1);
    let known = third
        .session("p")
        .strategy(Strategy::Handoff)
        .await
        .unwrap();
    let spans = known.spans().await.unwrap();
    assert!(matches!(spans[0].body, SpanBody::Summary { .. }) && spans[0].range.first == Seq(1));
    assert!(third.verify().await.unwrap().is_ok());
}
