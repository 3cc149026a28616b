//! Rules about things that a number names stay in a context, each with its own value.

use agent_memory::testing::memory;
use agent_memory::{Budget, Message, Mode};

/// Number of rules in a session.
const RULES: u32 = 40;

/// Returns the context of 4,000 tokens of a session without a model, in which a user gives rules with small exchanges
/// between them and a tail behind them, after a full compaction.
async fn context(rule: fn(u32) -> String) -> String {
    let memory = memory().open().await.unwrap();
    let session = memory.session("rules").await.unwrap();
    let mut said = Vec::new();
    for n in 1..=RULES {
        said.push(Message::user(rule(n)));
        said.push(Message::assistant("I will."));
        for step in 1..=2 {
            said.push(Message::user(format!(
                "Look at module {n}, part {step}, please."
            )));
            said.push(Message::assistant(format!(
                "Part {step} of module {n} is in order."
            )));
        }
    }
    for n in 1..=40 {
        said.push(Message::user(format!("What is in the file notes/{n}.md?")));
        said.push(Message::assistant(format!(
            "It lists the harbours of coast {n}."
        )));
    }
    let _ = session.ingest_batch(said).await.unwrap();
    session.compact(Mode::Full).await.unwrap();
    let context = session.assemble(Budget::tokens(4_000)).await.unwrap();
    let texts: Vec<String> = context.to_messages().iter().map(Message::text).collect();
    texts.join("\n")
}

#[tokio::test]
async fn forty_rules_for_numbered_things_stay_without_a_mark() {
    let rules: [fn(u32) -> String; 4] = [
        |n| format!("From now on, limit tier {n} to {n}00 requests."),
        |n| format!("From now on, keep {} backups of database {n}.", n + 2),
        |n| format!("Always set the timeout of worker {n} to {n}0 seconds."),
        |n| format!("Ab sofort läuft Dienst {n} immer auf Port {}.", 8000 + n),
    ];
    for rule in rules {
        let text = context(rule).await;
        let missing: Vec<String> = (1..=RULES)
            .map(rule)
            .filter(|rule| !text.contains(rule.as_str()))
            .collect();
        assert!(missing.is_empty(), "{missing:?} of {text}");
        assert!(!text.contains("(later:"), "{text}");
    }
}

#[tokio::test]
async fn of_a_numbered_thing_the_later_value_stays() {
    let text = context(|n| match n {
        40 => "From now on, limit tier 3 to 7777 requests.".to_owned(),
        n => format!("From now on, limit tier {n} to {n}00 requests."),
    });
    let text = text.await;
    assert!(text.contains("limit tier 3 to 7777 requests."), "{text}");
    let old: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("tier 3 to 300"))
        .collect();
    assert!(
        old.iter().all(|line| line.contains("(later: [235]")),
        "{old:?}"
    );
    assert_eq!(text.matches("(later:").count(), old.len(), "{text}");
    assert!(text.contains("limit tier 33 to 3300 requests."), "{text}");
}
