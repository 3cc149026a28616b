//! A summary as a user's message, followed by an acknowledgement of the assistant.

use super::*;
use crate::support::Inspect as _;

/// Returns the roles and texts of a context's messages, and whether each shows a summary.
fn texts(context: &agent_memory::Context) -> Vec<(Role, String, bool)> {
    let text = |m: &agent_memory::context::ContextMessage| match &m.parts[0] {
        Part::Text { text } => text.clone(),
        other => panic!("{other:?}"),
    };
    let summary = |m: &agent_memory::context::ContextMessage| {
        matches!(m.source, MessageOrigin::Summary { .. })
    };
    let messages = context.messages.iter();
    messages.map(|m| (m.role, text(m), summary(m))).collect()
}

#[tokio::test]
async fn a_summary_is_a_users_message_and_an_acknowledgement() {
    let policy = AssemblyPolicy {
        acknowledge_summaries: true,
        ..AssemblyPolicy::default()
    };
    let answer = "Modules were renamed. ".repeat(20);
    let builder = writing(&answer).handoff(keeping(4)).assembly(policy);
    let session = open(builder).await.in_window(Window::new(100_000)).await;
    talk(&session, 12).await;
    done(&session).await;
    // Every assembly has the pair: for a budget, for a turn, and of a view.
    let budget = Budget::tokens(100_000);
    for context in [
        session.assemble(budget).await.unwrap(),
        session.context().await.unwrap().context,
        session
            .current_view()
            .await
            .unwrap()
            .assemble(budget)
            .await
            .unwrap(),
    ] {
        let shown = texts(&context);
        let (role, text, is_summary) = &shown[0];
        assert!(
            *is_summary && *role == Role::User && text.contains(answer.trim()),
            "{text}"
        );
        assert_eq!((shown[1].0, shown[1].2), (Role::Assistant, true));
        assert!(
            shown.windows(2).all(|pair| pair[0].0 != pair[1].0),
            "{shown:#?}"
        );
        assert_eq!(shown.len(), 2 + 4);
    }
    // The pair is in the budget: what does not fit is shortened as ever, and never the rule given up.
    let whole = session.assemble(budget).await.unwrap();
    let overhead = whole.receipt.request_tokens;
    for tokens in (100..whole.tokens + overhead + 20).step_by(7) {
        let budget =
            Budget::tokens(tokens).with_safety_factor(agent_memory::tokens::SafetyFactor::ONE);
        let Ok(context) = session.assemble(budget).await else {
            continue;
        };
        assert!(context.tokens + overhead <= tokens, "{tokens}");
        let shown = texts(&context);
        for (at, (role, ..)) in shown.iter().enumerate().filter(|(_, shown)| shown.2) {
            let before = at.checked_sub(1).map(|before| shown[before].0);
            assert_ne!(before, Some(*role), "{tokens}: {shown:#?}");
        }
        assert_eq!(shown[0].0, Role::User, "{tokens}");
    }
    // Where the assistant goes on itself, its own message is the answer.
    let _ = session.ingest(Message::user("Go on.")).await.unwrap();
    done(&session).await;
    let shown = texts(&session.assemble(budget).await.unwrap());
    assert_eq!((shown[0].2, shown[1].2), (true, false), "{shown:#?}");
    assert_eq!(shown[1].0, Role::Assistant);
}
