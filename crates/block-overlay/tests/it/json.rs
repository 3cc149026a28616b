//! The JSON of sessions, blocks and configurations.

use block_overlay::{
    CompactionBlock, CompactionConfig, CompactionScope, ContextConfig, ContinuationKind,
    ExecutionLimits, LoopSession, LoopStatus, TurnRange,
};
use serde_json::{Value, json};

use crate::world::{Msg, chain, compact, config, context, turns, user};

fn loads<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn a_block_has_the_documented_names_and_comes_back() {
    let mut session = chain(vec![turns("a", 20, 3)]);
    compact(&mut session, "a", &config(), 100_000);
    let block = session.get("a").unwrap().compaction_block.clone().unwrap();
    let value = serde_json::to_value(&block).unwrap();
    assert_eq!(value["keep_first"], json!({"startTurn": 0, "endTurn": 1}));
    assert_eq!(
        value["keep_compacted"]["range"],
        json!({"startTurn": 2, "endTurn": 9})
    );
    assert_eq!(value["createdAt"], json!("2026-02-02T02:40:00Z"));
    assert_eq!(loads::<CompactionBlock<Msg>>(&value), block);
}

#[test]
fn absent_fields_of_a_block_have_defaults() {
    let block: CompactionBlock<Msg> = loads(&json!({"createdAt": "2026-02-02T02:40:00Z"}));
    assert_eq!(
        (block.keep_first, &block.keep_recent, &block.keep_compacted),
        (None, &None, &None)
    );
    assert_eq!(block.covered_messages, None);
    let value = serde_json::to_value(&block).unwrap();
    assert_eq!(value, json!({"createdAt": "2026-02-02T02:40:00Z"}));
    let spelled: CompactionBlock<Msg> = loads(&json!({
        "keepFirst": {"start_turn": 0, "end_turn": 3},
        "created_at": "2026-02-02T02:40:00Z",
    }));
    assert_eq!(spelled.keep_first, TurnRange::new(0, 3));
    let wrong = json!({"createdAt": "yesterday"});
    let error = serde_json::from_value::<CompactionBlock<Msg>>(wrong).unwrap_err();
    assert!(
        error.to_string().contains("\"yesterday\" is not a time"),
        "{error}"
    );
}

/// A session as a program of that family wrote it, with fields that are not known here.
fn stored() -> Value {
    json!({
        "session_id": "s",
        "agent_id": "g",
        "formation": {"FirstLoop": {"timestamp": "2026-02-02T02:40:00Z"}},
        "loops": [
            {
                "loop_id": "s.main.1",
                "session_id": "s",
                "agent_id": "g",
                "parent_loop_id": null,
                "continuation_kind": null,
                "started_at": "2026-02-02T02:40:00Z",
                "ended_at": "2026-02-02T02:41:00Z",
                "status": "Completed",
                "rejection": null,
                "config": {"model": "m", "provider": "p"},
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "Hello."}]},
                    {
                        "role": "assistant",
                        "content": [{"type": "text", "text": "Hello!"}],
                        "turnId": {"loop_id": "s.main.1", "turn_index": 0},
                    },
                ],
                "usage": {"input": 3, "output": 4},
                "events": [{"sequence": 0}],
                "children_loop_ids": ["s.main.2"],
                "child_loop_refs": [],
                "parallel_group": null,
            },
            {
                "loop_id": "s.main.2",
                "parent_loop_id": "s.main.1",
                "continuation_kind": {"Branch": {"name": "try"}},
                "status": "Aborted",
                "messages": [{"role": "user", "content": []}],
                "turns": [{"turn_id": {"loop_id": "s.main.2", "turn_index": 0}, "usage": {"input": 1}}],
                "parallel_group": {
                    "all_loop_ids": ["s.main.2"],
                    "selected_loop_id": "s.main.2",
                    "selected_config_index": 0,
                    "is_selected": true,
                },
            },
        ],
    })
}

#[test]
fn a_session_of_before_blocks_loads_and_is_kept() {
    let session: LoopSession<Msg> = loads(&stored());
    let (first, second) = (&session.loops()[0], &session.loops()[1]);
    assert_eq!(first.continuation_kind, ContinuationKind::Initial);
    assert_eq!(
        (first.compaction_block.is_none(), first.messages.len()),
        (true, 2)
    );
    assert_eq!(first.messages[0].turn_id, None);
    assert_eq!(first.messages[1].turn_id.as_ref().unwrap().turn_index, 0);
    assert!(
        matches!(&second.continuation_kind, ContinuationKind::Branch { details }
        if details["name"] == "try")
    );
    assert_eq!(
        (second.status, second.turns.len()),
        (LoopStatus::Aborted, 1)
    );
    assert!(second.parallel_group.as_ref().unwrap().is_selected);
    assert_eq!(session.chain("s.main.2").len(), 2);
    // What is not known here is kept.
    let written = serde_json::to_value(&session).unwrap();
    assert_eq!(written["formation"], stored()["formation"]);
    assert_eq!(
        written["loops"][0]["config"],
        stored()["loops"][0]["config"]
    );
    assert_eq!(
        written["loops"][0]["events"],
        stored()["loops"][0]["events"]
    );
    assert_eq!(
        written["loops"][1]["turns"][0]["usage"],
        json!({"input": 1})
    );
    assert_eq!(loads::<LoopSession<Msg>>(&written), session);
}

#[test]
fn a_session_with_blocks_comes_back_and_shows_the_same() {
    let mut session = chain(vec![turns("a", 20, 60), turns("b", 20, 60)]);
    compact(&mut session, "b", &config(), 100_000);
    let read: LoopSession<Msg> = loads(&serde_json::to_value(&session).unwrap());
    assert_eq!(read, session);
    let shown = |session| context(session, "b", &config(), 100_000);
    assert_eq!(shown(&read), shown(&session));
}

#[test]
fn a_message_keeps_its_turn() {
    let message = user("Hello.").in_turn("a", 3);
    let value = serde_json::to_value(&message).unwrap();
    assert_eq!(value["turnId"], json!({"loop_id": "a", "turn_index": 3}));
    assert_eq!(loads::<Msg>(&value), message);
    let old: Msg = loads(&json!({"role": "user", "content": []}));
    assert_eq!(old.turn_id, None);
}

#[test]
fn configurations_have_documented_defaults_and_come_back() {
    let by_default: CompactionConfig<Msg> = loads(&json!({}));
    let value = serde_json::to_value(&by_default).unwrap();
    insta::assert_json_snapshot!(value);
    let scopes = [
        (json!({"FixedCount": 5}), CompactionScope::FixedCount(5)),
        (json!("TokenBudget"), CompactionScope::TokenBudget),
    ];
    for (text, scope) in scopes {
        let config: CompactionConfig<Msg> = loads(&json!({"compaction_scope": text}));
        assert_eq!(config.compaction_scope, scope);
        let again = serde_json::to_value(&config).unwrap();
        assert_eq!(
            loads::<CompactionConfig<Msg>>(&again).compaction_scope,
            scope
        );
    }
    let context: ContextConfig<Msg> = loads(&json!({
        "max_context_tokens": 200_000, "system_prompt_tokens": 1, "keep_recent": 7,
        "compaction": {"focus_message": "Prices."},
    }));
    assert_eq!(
        (context.max_context_tokens, context.keep_recent),
        (200_000, Some(7))
    );
    assert_eq!(context.compaction.focus_message.as_deref(), Some("Prices."));
    let limits: ExecutionLimits = loads(&json!({"max_turns": 3}));
    assert_eq!((limits.max_turns, limits.max_total_tokens), (3, 1_000_000));
    assert_eq!(limits.max_duration.as_secs(), 600);
}
