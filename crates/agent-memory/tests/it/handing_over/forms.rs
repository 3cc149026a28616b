//! A summary as a user's message, followed by an acknowledgement of the assistant.

use super::*;

/// Returns the roles and texts of a context's summaries.
fn summaries(context: &agent_memory::Context) -> Vec<(Role, String)> {
    let summary = |m: &&agent_memory::context::ContextMessage| {
        matches!(m.source, MessageOrigin::Summary { .. })
    };
    let text = |m: &agent_memory::context::ContextMessage| match &m.parts[0] {
        Part::Text { text } => text.clone(),
        other => panic!("{other:?}"),
    };
    let messages = context.messages.iter().filter(summary);
    messages.map(|m| (m.role, text(m))).collect()
}

#[tokio::test]
async fn a_summary_is_a_users_message_and_an_acknowledgement() {
    let session = open(writing("Modules were renamed.").handoff(keeping(4))).await;
    talk(&session, 12).await;
    done(&session).await;
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    let xml = summaries(&context);
    assert!(xml[0].1.starts_with("<summary id=\"sum_"), "{xml:?}");
    let before = context.tokens;
    let context = context.with_acknowledged_summaries(session.accounting());
    let context = context.unwrap();
    assert!(context.tokens <= before);
    let pair = summaries(&context);
    let text = "[Previous conversation summary]\n\nModules were renamed.";
    assert_eq!(pair[0], (Role::User, text.to_owned()));
    assert_eq!((pair.len(), pair[1].0), (2, Role::Assistant));
}
