//! Laws of contexts: pairs of calls and results, order, and limits.

use std::collections::BTreeSet;

use agent_memory::{
    Budget, Context, ErrorKind, Role, Seq,
    retrieval::{ExpandArgs, GrepArgs},
};
use memory_model::Accounting as _;

use super::stage::{Sabotage, falsify};
use super::world::Chat;
use super::{Checked, Law, Tally};
use crate::provider::accepted;

/// Checks the laws (b), (c) and (j) of a context.
pub(crate) async fn check(
    chat: &Chat,
    budget: Budget,
    sabotage: Option<Sabotage>,
    tally: &mut Tally,
) -> Checked<()> {
    let session = &chat.session;
    let mut context = match session.assemble(budget).await {
        Ok(context) => context,
        Err(error) => {
            let ErrorKind::BudgetTooSmall { needed } = error.kind() else {
                return Err(Law::Limits.broken(format!("no context: {error}")));
            };
            let context = session.assemble(Budget::tokens(needed)).await;
            context
                .map_err(|error| Law::Limits.broken(format!("{needed} was not enough: {error}")))?
        }
    };
    falsify(&mut context, sabotage);
    tally.checked(Law::Chronology, context.messages.len());
    chronology(&context)?;
    tally.checked(Law::Pairs, context.messages.len());
    accepted(&context.messages).map_err(|why| Law::Pairs.broken(why))?;
    tally.checked(Law::Limits, 1);
    let request = session.accounting().estimator().request_overhead();
    Law::Limits.holds(context.tokens + request <= context.budget, || {
        format!(
            "{} tokens and {request} for the request in a budget of {}",
            context.tokens, context.budget
        )
    })?;
    let cost: u64 = context
        .messages
        .iter()
        .map(|message| session.accounting().parts(message.role, &message.parts))
        .sum();
    Law::Limits.holds(cost == context.tokens, || {
        format!(
            "the messages cost {cost}, and not {} tokens",
            context.tokens
        )
    })
}

/// Checks that positions ascend, except for results that the receipt lists as moved. A summary comes before later
/// messages, and covers no message that is shown.
fn chronology(context: &Context) -> Checked<()> {
    let moved: BTreeSet<Seq> = context
        .receipt
        .moved_results
        .iter()
        .map(|moved| moved.from)
        .collect();
    let mut before: Option<&agent_memory::context::ContextMessage> = None;
    for message in &context.messages {
        let Some(range) = message.source.range() else {
            continue;
        };
        if message.role == Role::Tool && moved.contains(&range.first) {
            continue;
        }
        if let Some(before) = before {
            let (a, b) = (
                before.source.range().unwrap(),
                message.source.range().unwrap(),
            );
            let summary = |m: &agent_memory::context::ContextMessage| {
                matches!(
                    m.source,
                    agent_memory::context::MessageOrigin::Summary { .. }
                )
            };
            let apart = a.last < b.first || !(summary(before) || summary(message));
            Law::Chronology.holds(a.first <= b.first && a.last <= b.last && apart, || {
                format!("{:?} stands before {:?}", before.source, message.source)
            })?;
        }
        before = Some(message);
    }
    Ok(())
}

/// Checks the law (j) of the retrieval tools.
pub(crate) async fn check_limits(chat: &Chat, tally: &mut Tally) -> Checked<()> {
    let session = &chat.session;
    let tools = session.retrieval();
    for limit in [1, 3] {
        let found = tools
            .grep(GrepArgs {
                limit,
                ..GrepArgs::new("e")
            })
            .await
            .unwrap();
        tally.checked(Law::Limits, 1);
        Law::Limits.holds(found.hits.len() <= limit, || {
            format!("{} hits for a limit of {limit}", found.hits.len())
        })?;
    }
    let store = session.memory().store();
    let newest = store
        .summary_log(session.id(), None, 9_999)
        .await
        .unwrap()
        .items
        .pop();
    let mut targets = vec![format!("messages:1-{}", chat.said.len().max(1))];
    targets.extend(newest.map(|summary| summary.id.to_string()));
    for target in targets {
        if chat.said.is_empty() {
            continue;
        }
        let mut args = ExpandArgs {
            token_cap: 60,
            ..ExpandArgs::new(target.as_str())
        };
        for _ in 0..3 {
            let part = tools.expand(args.clone()).await.unwrap();
            tally.checked(Law::Limits, 1);
            Law::Limits.holds(part.tokens <= 60, || {
                format!("{target}: {} tokens for a cap of 60", part.tokens)
            })?;
            match part.cursor {
                Some(cursor) => args.cursor = Some(cursor.clone()),
                None => break,
            }
        }
    }
    Ok(())
}
