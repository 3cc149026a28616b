//! The messages that a summary is written as.

use super::*;

/// What precedes the messages: roles, and the beginning of each text.
async fn beginning(session: &Session, form: SummaryForm) -> Vec<(Role, String)> {
    let context = session.assemble(Budget::tokens(100_000)).await.unwrap();
    let before = context.tokens;
    let context = context
        .with_summary_form(form, session.accounting())
        .unwrap();
    assert!(
        form == SummaryForm::Xml || context.tokens <= before,
        "{form:?}"
    );
    let summary =
        |m: &&agent_memory::ContextMessage| matches!(m.source, MessageOrigin::Summary { .. });
    let text = |m: &agent_memory::ContextMessage| match &m.parts[0] {
        Part::Text { text } => text.clone(),
        other => panic!("{other:?}"),
    };
    context
        .messages
        .iter()
        .filter(summary)
        .map(|m| (m.role, text(m)))
        .collect()
}

#[tokio::test]
async fn a_summary_is_written_as_each_engine_writes_it() {
    let session = open(writing("Modules were renamed.").handoff(keeping(4))).await;
    talk(&session, 12).await;
    done(&session).await;
    let [mark, koda] = [
        "[Previous conversation summary]",
        "[Compacted conversation summary]",
    ];
    let text = "Modules were renamed.";
    let (user, assistant, system) = (Role::User, Role::Assistant, Role::System);
    let pair = beginning(&session, SummaryForm::UserAndReply).await;
    assert_eq!(pair[0], (user, format!("{mark}\n\n{text}")));
    assert_eq!((pair.len(), pair[1].0), (2, assistant));
    let code = beginning(&session, SummaryForm::MarkAndAssistant).await;
    assert_eq!(
        code,
        [(user, mark.to_owned()), (assistant, text.to_owned())]
    );
    let hint = beginning(&session, SummaryForm::SystemAndHint).await;
    assert_eq!(hint[0], (system, format!("{koda}\n\n{text}")));
    assert_eq!((hint.len(), hint[1].0), (2, assistant));
    let hint = beginning(&session, SummaryForm::SystemAndUserHint).await;
    assert_eq!((hint.len(), hint[0].0, hint[1].0), (2, system, user));
    let pi = beginning(&session, SummaryForm::User).await;
    assert_eq!(pi, [(user, text.to_owned())]);
    let xml = beginning(&session, SummaryForm::Xml).await;
    assert!(xml[0].1.starts_with("<summary id=\"sum_"), "{xml:?}");
}
