//! Every Claude Code transcript of the corpus: a loop for each prompt, with new blocks after every ten messages.

use std::path::PathBuf;

use block_overlay::planner::BlockPolicy;
use block_overlay::{DefaultBlockCompaction, LoopRecord, LoopSession, compact_session_loops};
use memory_model::{Message, SpanBody};
use message_formats::{ReadOptions, read_file};
use turn_map::MessageView as _;

use crate::laws::check_context;
use crate::planner::Lab;
use crate::world::{config, record};

/// Maximum cost of a context, in tokens.
const BUDGET: u64 = 40_000;

fn transcripts() -> Vec<(String, Vec<Message>)> {
    let Some(root) = std::env::var_os("AGENT_MEMORY_CORPUS") else {
        let required = std::env::var_os("AGENT_MEMORY_REQUIRE_CORPUS");
        assert!(
            required.is_none_or(|value| value != "1"),
            "AGENT_MEMORY_CORPUS is not set"
        );
        println!("left out: AGENT_MEMORY_CORPUS is not set");
        return Vec::new();
    };
    let folder = PathBuf::from(root).join("claude-code");
    let paths = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    let messages = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let transcript = read_file(&path, &ReadOptions::default()).unwrap();
        (
            name,
            transcript.sessions.into_iter().next().unwrap().messages,
        )
    };
    paths.into_iter().map(messages).collect()
}

/// Appends messages to the latest loop, and begins a loop at each prompt.
fn grow(session: &mut LoopSession, more: &[Message]) {
    for message in more {
        let newest = session.loops.last();
        let mut said = newest.iter().flat_map(|one| one.messages.iter().rev());
        let after_prompt = said.find(|message| !message.is_note()).is_some_and(speaks);
        if newest.is_none() || (speaks(message) && !after_prompt) {
            let next = LoopRecord {
                parent_loop_id: newest.map(|newest| newest.loop_id.clone()),
                ..record(&format!("loop {}", session.loops.len() + 1), Vec::new())
            };
            session.loops.push(next);
        }
        let newest = session.loops.last_mut().unwrap();
        newest.messages.push(message.clone());
    }
}

fn speaks(message: &Message) -> bool {
    !message.is_note() && turn_map::TurnMap::by_role([message]).start_of(0).is_some()
}

#[tokio::test]
async fn sessions_keep_every_turn_as_transcripts_grow() {
    let config = config();
    for (name, messages) in transcripts() {
        let (mut session, mut too_large) = (LoopSession::default(), 0);
        for some in messages.chunks(10) {
            grow(&mut session, some);
            let newest = session.loops.last().unwrap().loop_id.clone();
            let strategy = &DefaultBlockCompaction;
            let made = compact_session_loops(&mut session, &newest, strategy, &config, BUDGET);
            made.await.unwrap();
            let fits = check_context(&session, &newest, &config, BUDGET).unwrap();
            too_large += usize::from(fits.is_none());
        }
        let kept = session.loops.iter().flat_map(|record| &record.messages);
        assert!(
            kept.eq(messages.iter()),
            "{name}: originals are as they were"
        );
        let (count, loops) = (messages.len(), session.loops.len());
        println!(
            "{name}: {count} messages, {loops} loops, newest turn too large {too_large} times"
        );
    }
}

#[tokio::test]
async fn the_view_is_sound_as_transcripts_grow() {
    for (name, messages) in transcripts() {
        let lab = Lab::new(BlockPolicy::default()).await;
        for some in messages.chunks(10) {
            lab.append(some.to_vec()).await;
            let outcome = lab.block().await;
            assert_eq!(outcome.published.get("unfold"), 0, "{name}");
        }
        let spans = lab.spans().await;
        let count = |is: fn(&SpanBody) -> bool| spans.iter().filter(|one| is(&one.body)).count();
        println!(
            "{name}: {} messages, {} raw, {} trimmed, {} summaries, {} omitted",
            messages.len(),
            count(|body| *body == SpanBody::Raw),
            count(|body| matches!(body, SpanBody::Trimmed(_))),
            count(|body| body.summary().is_some()),
            count(|body| *body == SpanBody::Omitted),
        );
    }
}
