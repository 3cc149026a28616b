//! The JSON of sessions, blocks and configurations.

use block_overlay::{
    CompactionBlock, CompactionConfig, CompactionScope, ContextConfig, LoopSession, TurnRange,
};
use serde_json::{Value, json};

use crate::world::{chain, compact, config, context, turns};

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
    assert_eq!(loads::<CompactionBlock>(&value), block);
}

#[test]
fn absent_fields_of_a_block_have_defaults() {
    let block: CompactionBlock = loads(&json!({"createdAt": "2026-02-02T02:40:00Z"}));
    assert_eq!(
        (block.keep_first, &block.keep_recent, &block.keep_compacted),
        (None, &None, &None)
    );
    assert_eq!(block.covered_messages, None);
    let value = serde_json::to_value(&block).unwrap();
    assert_eq!(value, json!({"createdAt": "2026-02-02T02:40:00Z"}));
    let spelled: CompactionBlock = loads(&json!({
        "keep_first": {"start_turn": 0, "end_turn": 3},
        "created_at": "2026-02-02T02:40:00Z",
    }));
    assert_eq!(spelled.keep_first, TurnRange::from_indices(0..4));
    let wrong = json!({"createdAt": "yesterday"});
    let error = serde_json::from_value::<CompactionBlock>(wrong).unwrap_err();
    assert!(
        error.to_string().contains("\"yesterday\" is not a time"),
        "{error}"
    );
}

#[test]
fn a_session_without_blocks_loads() {
    let session: LoopSession = loads(&json!({
        "session_id": "s",
        "loops": [
            {
                "loop_id": "s.main.1",
                "parent_loop_id": null,
                "status": "Completed",
                "messages": [
                    {"role": "user", "parts": [{"type": "text", "text": "Hello."}]},
                    {
                        "role": "assistant",
                        "parts": [{"type": "text", "text": "Hello!"}],
                        "turn": {"loop_id": "s.main.1", "turn": 0},
                    },
                ],
            },
            {"loop_id": "s.main.2", "parent_loop_id": "s.main.1"},
        ],
    }));
    let first = &session.loops[0];
    assert!(first.compaction_block.is_none());
    assert_eq!(first.messages[0].turn, None);
    assert_eq!(first.messages[1].turn.as_ref().unwrap().turn, 0);
    assert_eq!(session.chain("s.main.2").unwrap().len(), 2);
}

#[test]
fn a_session_with_blocks_comes_back_and_shows_the_same() {
    let mut session = chain(vec![turns("a", 20, 60), turns("b", 20, 60)]);
    compact(&mut session, "b", &config(), 100_000);
    let read: LoopSession = loads(&serde_json::to_value(&session).unwrap());
    assert_eq!(read, session);
    let shown = |session| context(session, "b", &config(), 100_000);
    assert_eq!(shown(&read), shown(&session));
}

#[test]
fn configurations_have_documented_defaults_and_come_back() {
    let by_default: CompactionConfig = loads(&json!({}));
    let value = serde_json::to_value(&by_default).unwrap();
    insta::assert_json_snapshot!(value);
    let scopes = [
        (json!({"FixedCount": 5}), CompactionScope::FixedCount(5)),
        (json!("TokenBudget"), CompactionScope::TokenBudget),
    ];
    for (text, scope) in scopes {
        let config: CompactionConfig = loads(&json!({"compaction_scope": text}));
        assert_eq!(config.compaction_scope, scope);
        let again = serde_json::to_value(&config).unwrap();
        assert_eq!(loads::<CompactionConfig>(&again).compaction_scope, scope);
    }
    let context: ContextConfig = loads(&json!({
        "max_context_tokens": 200_000, "compaction": {"keep_first_turns": 7},
    }));
    assert_eq!(context.message_budget(), 196_000);
    assert_eq!(context.compaction.keep_first_turns, 7);
}
