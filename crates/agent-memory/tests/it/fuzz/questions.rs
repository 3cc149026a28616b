//! Searches, and calls of the retrieval tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_memory::model::Timestamp;
use agent_memory::retrieval::{GrepArgs, RecallArgs, RetrievalLimits};
use agent_memory::testing::memory;
use agent_memory::tokens::{HeuristicEstimator, TokenEstimator as _};
use agent_memory::{Message, Session};
use memory_model::{Seq, SeqRange};
use memory_search::{
    HitTarget, Query, Search, SearchMode, SearchScope, SegmentSearch, composed, extend_index,
    fold_case,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{block_on, target};
use crate::corruption::Original;

/// A conversation, and a question about it.
#[derive(Deserialize)]
struct Asked {
    texts: Vec<String>,
    query: GrepArgs,
}

pub(super) fn queries() {
    target("queries", 200).run(|input| {
        let Ok(asked) = serde_json::from_slice::<Asked>(input) else {
            return None;
        };
        Some(block_on(check(asked)))
    });
}

async fn check(Asked { texts, query: args }: Asked) -> (Option<String>, usize, [bool; 3]) {
    let memory = memory().open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    let message = |(at, text): (i64, &String)| match at % 3 {
        0 => Message::user(text.clone()),
        1 => Message::assistant(text.clone()),
        _ => Message::tool_result("c", text.clone()),
    };
    let messages = (0..)
        .zip(&texts)
        .map(|one| message(one).with_created_at(Timestamp(1_000_000 * (one.0 + 1))));
    let report = session.ingest_batch(messages.collect()).await.unwrap();
    assert_eq!(report.inserted(), texts.len());
    extend_index(&**memory.store(), session.id(), u64::MAX)
        .await
        .unwrap();
    let tools = session.retrieval();
    let answers = [
        tools.grep(args.clone()).await.is_ok(),
        tools
            .recall(RecallArgs::query(args.pattern.clone()))
            .await
            .is_ok(),
    ];

    let first = args.first.unwrap_or(Seq::FIRST).max(Seq::FIRST);
    let range = SeqRange::new(first, args.last.unwrap_or(Seq(u32::MAX)));
    let mut query = Query::new(args.pattern)
        .with_mode(args.mode)
        .with_scope(args.scope)
        .with_order(args.order);
    (query.range, query.since, query.until) = (range, args.since, args.until);
    (query.roles, query.tools, query.smart_case) = (args.roles, args.tools, args.smart_case);
    query.limit = 1 + args.limit % 7;
    let indexed = SegmentSearch::new(Arc::clone(memory.store()));
    let scan = SegmentSearch::without_index(Arc::clone(memory.store()));
    let is_accepted = match &args.cursor {
        // Any cursor is an error or goes on somewhere.
        Some(cursor) => {
            let query = query.clone().with_cursor(cursor.clone());
            indexed.search(session.id(), &query).await.is_ok()
        }
        None => false,
    };
    let shape = [answers[0], answers[1], is_accepted];
    let (found, mode) = match pages(&indexed, &session, &query).await {
        Ok(found) => found,
        Err(error) => {
            return (
                Some(error.split(':').next().unwrap_or_default().to_owned()),
                0,
                shape,
            );
        }
    };
    let by_scan = pages(&scan, &session, &query).await.unwrap().0;
    assert_eq!(
        set(&found),
        set(&by_scan),
        "{query:?} by the index and by a scan"
    );
    if query.mode == SearchMode::Literal
        && query.tools.is_empty()
        && query.scope != SearchScope::Summaries
    {
        let fold =
            |text: &str| match query.smart_case && query.pattern.chars().any(char::is_uppercase) {
                true => composed(text).into_owned(),
                false => fold_case(&composed(text)),
            };
        let pattern = fold(&query.pattern);
        let expected = session
            .entries()
            .await
            .unwrap()
            .into_iter()
            .filter(|entry| {
                let at = entry.message.created_at;
                (query.roles.is_empty() || query.roles.contains(&entry.message.role))
                    && query.range.is_none_or(|range| range.contains(entry.seq))
                    && query.since.is_none_or(|since| at >= since)
                    && query.until.is_none_or(|until| at < until)
                    && fold(&texts[entry.seq.0 as usize - 1]).contains(&pattern)
            });
        let expected: BTreeSet<u32> = expected.map(|entry| entry.seq.0).collect();
        assert_eq!(set(&found), expected, "{query:?} in {texts:?}");
    }
    (mode, found.len().min(9), shape)
}

fn set(found: &[u32]) -> BTreeSet<u32> {
    found.iter().copied().collect()
}

/// All hits of a query, page by page, and what was searched for in its place.
async fn pages(
    search: &dyn Search,
    session: &Session,
    query: &Query,
) -> Result<(Vec<u32>, Option<String>), String> {
    let (mut query, mut found) = (query.clone(), Vec::new());
    loop {
        let hits = search
            .search(session.id(), &query)
            .await
            .map_err(|error| error.to_string())?;
        assert!(
            hits.hits.len() <= query.limit && (hits.complete || !hits.hits.is_empty()),
            "{query:?}"
        );
        for hit in hits.hits {
            let HitTarget::Message { seq, .. } = hit.target else {
                panic!("{hit:?}")
            };
            assert!(
                hit.matches
                    .iter()
                    .all(|found| hit.snippet.get(found.clone()).is_some()),
                "{hit:?}"
            );
            assert!(!found.contains(&seq.0), "{seq} comes twice for {query:?}");
            found.push(seq.0);
        }
        assert_eq!(hits.complete, hits.cursor.is_none());
        match hits.cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => {
                return Ok((
                    found,
                    hits.fallback
                        .map(|one| format!("{one:?}").chars().take(9).collect()),
                ));
            }
        }
    }
}

const LIMITS: RetrievalLimits = RetrievalLimits {
    hits: 20,
    expand_tokens: 600,
    describe_tokens: 400,
    answer_tokens: 600,
};

/// Any arguments get an answer within the limits, or an error that is a short text. A cursor of an answer goes on.
pub(super) fn calls() {
    let folder = tempfile::tempdir().unwrap();
    let session = block_on(async {
        let path = folder.path().join("memory.db");
        let original = Original::get().await;
        std::fs::copy(original.copy("calls"), &path).unwrap();
        let memory = memory().sqlite(path).open().await.unwrap();
        memory.get_session(original.main.as_str()).await.unwrap()
    });
    let tools = session.retrieval().with_limits(LIMITS);
    let seeds = block_on(calls_of_summaries(&session));
    target("calls", 150).seeds(seeds).run(|input| {
        let text = String::from_utf8_lossy(input);
        let (name, mut arguments) = match serde_json::from_str::<Value>(&text) {
            Ok(call) if call["tool"].is_string() => (
                call["tool"].as_str().unwrap_or_default().to_owned(),
                call["arguments"].to_string(),
            ),
            _ => ("memory_grep".to_owned(), text.into_owned()),
        };
        let mut shape = Vec::new();
        for _ in 0..4 {
            let answer = block_on(tools.call(&name, &arguments));
            let tokens = HeuristicEstimator::Bytes4.text(&answer.text);
            shape.push((answer.is_error, tokens.min(600) / 100));
            assert!(!answer.text.trim().is_empty(), "no text");
            if answer.is_error {
                assert!(
                    shape.len() == 1,
                    "a cursor of an answer is refused: {}",
                    answer.text
                );
                assert!(tokens < 400, "a long error: {}", answer.text);
                break;
            }
            assert!(tokens <= 1_000, "{tokens} tokens: {}", answer.text);
            let content = answer.json["tokens"]
                .as_u64()
                .filter(|_| name == "memory_expand");
            assert!(
                content.is_none_or(|tokens| tokens <= LIMITS.expand_tokens),
                "{content:?}"
            );
            let (Some(cursor), Ok(mut next)) = (
                answer.json["cursor"].as_str(),
                serde_json::from_str::<Value>(&arguments),
            ) else {
                break;
            };
            if !next.is_object() {
                break;
            }
            next["cursor"] = cursor.into();
            arguments = next.to_string();
        }
        (name.starts_with("memory_"), shape)
    });
}

async fn calls_of_summaries(session: &Session) -> Vec<String> {
    let page = session
        .memory()
        .store()
        .summary_log(session.id(), None, 4)
        .await
        .unwrap();
    let calls = page.items.into_iter().flat_map(|summary| {
        let call =
            |tool| json!({"tool": tool, "arguments": {"summary_id": summary.id}}).to_string();
        ["memory_describe", "memory_expand"].map(call)
    });
    calls.collect()
}
