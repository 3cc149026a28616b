use memory_model::{Message, Part, RawJson, Role, Seq};
use retrieval_tools::{ErrorKind, GrepArgs, RecallArgs, RetrievalLimits};
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::world::{Set, World, at, child, range};

/// Creates a conversation of thirty messages, a few of which are about the harbour.
async fn harbour() -> World {
    let world = World::new().await;
    let talk = |n: u32| {
        let text = match n {
            4 => "The harbour crane is painted green.".to_owned(),
            9 => "Who paints the crane in the harbour?".to_owned(),
            22 => "The crane broke down; the harbour is closed until Monday.".to_owned(),
            _ => format!("Entry {n} of the diary: nothing of note, tea at four."),
        };
        let message = match n % 2 {
            1 => Message::user(text),
            _ => Message::assistant(text),
        };
        message
            .with_external_id(format!("m{n}"))
            .with_created_at(at(i64::from(n)))
    };
    world.say((1..=30).map(talk).collect()).await;
    world
}

#[tokio::test]
async fn the_best_passages_come_first_with_the_way_to_them() {
    let world = harbour().await;
    let low = world
        .leaf(range(1, 10), "The harbour crane and its paint.")
        .await;
    let high = world.leaf(range(11, 20), "Diary only.").await;
    let top = world
        .summarize(vec![child(&low), child(&high)], "Diary and harbour.")
        .await;
    let tools = world.tools();
    let answer = tools.recall("harbour crane").await.unwrap();
    assert!(answer.complete && answer.cursor.is_none());
    // The message with the exact words comes first. The summaries above it are its path.
    let first = &answer.passages[0];
    assert_eq!((first.seq, first.role), (Seq(4), Some(Role::Assistant)));
    assert_eq!(first.path, [top.id.clone(), low.id.clone()]);
    assert_eq!(first.text, "The harbour crane is painted green.");
    assert_eq!(first.external_id.as_deref(), Some("m4"));
    let at_22 = answer.passages.iter().find(|one| one.seq == Seq(22));
    assert!(at_22.unwrap().path.is_empty(), "the view shows it itself");
    let scores: Vec<f64> = answer.passages.iter().map(|one| one.score).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let tokens: u64 = answer.passages.iter().map(|one| one.tokens).sum();
    assert_eq!(answer.tokens, tokens);
    // A repeated call has the same answer.
    assert_eq!(tools.recall("harbour crane").await.unwrap(), answer);
    insta::assert_json_snapshot!("recall_json", answer);
    insta::assert_snapshot!("recall_text", answer.to_text());
}

#[tokio::test]
async fn lineage_and_place_move_passages_up() {
    let world = World::new().await;
    let mut said = vec!["tea"; 20];
    (said[1], said[18]) = ("A ferry came.", "A ferry sank.");
    world
        .say(said.into_iter().map(Message::user).collect())
        .await;
    let first = async || world.tools().recall("ferry").await.unwrap().passages[0].seq;
    assert_eq!(first().await, Seq(19), "the newest of equals");
    world.leaf(range(1, 4), "The ferry, the ferry.").await;
    world.leaf(range(5, 9), "Nothing.").await;
    world.leaf(range(10, 14), "Nothing.").await;
    world.leaf(range(15, 20), "Nothing.").await;
    assert_eq!(first().await, Seq(2), "under a summary about it");
}

#[tokio::test]
async fn a_budget_holds_and_the_cursor_continues() {
    let world = World::new().await;
    let long = |n: usize| {
        let text = format!(
            "the canal, part {n}: {}",
            format!("water {n} ").repeat(n * 40)
        );
        Message::user(text)
    };
    world.say((1..=12).map(long).collect()).await;
    let tools = world.tools();
    let whole = tools.recall(RecallArgs::query("canal").set(|it| it.budget = 100_000));
    let whole: Vec<Seq> = whole
        .await
        .unwrap()
        .passages
        .iter()
        .map(|one| one.seq)
        .collect();
    assert_eq!(whole.len(), 12);
    for budget in [20, 150, 700] {
        let mut args = RecallArgs::query("canal").set(|it| it.budget = budget);
        let mut all = Vec::new();
        loop {
            let answer = tools.recall(args.clone()).await.unwrap();
            let cost = |text: &str| HeuristicEstimator::Bytes4.text(text);
            let cost: u64 = answer.passages.iter().map(|one| cost(&one.text)).sum();
            assert!(
                cost <= budget && cost == answer.tokens,
                "{cost} of {budget}"
            );
            // Counts the text with its citations. A citation and the end have fewer than 80 tokens.
            let read = HeuristicEstimator::Bytes4.text(&answer.to_text());
            assert!(read <= budget.max(80), "{read} of {budget}");
            assert_eq!(answer.complete, answer.cursor.is_none());
            all.extend(answer.passages.iter().map(|one| one.seq));
            match answer.cursor {
                Some(cursor) => args = args.set(|it| it.cursor = Some(cursor)),
                None => break,
            }
        }
        assert_eq!(all, whole, "{budget}");
    }
    // The limit of the host is lower than the budget of the call, and applies.
    let limits = RetrievalLimits::default().set(|it| it.answer_tokens = 30);
    let answer = tools.with_limits(limits).recall("canal").await.unwrap();
    assert!(answer.tokens <= 30 && !answer.complete);
}

#[tokio::test]
async fn words_that_only_a_summary_has_are_the_summarys() {
    let world = World::new().await;
    world.chatter(1, 10).await;
    let leaf = world
        .leaf(range(3, 8), "They argued about zeppelins.")
        .await;
    let answer = world.tools().recall("zeppelins").await.unwrap();
    let [passage] = answer.passages.as_slice() else {
        panic!("{answer:?}");
    };
    assert_eq!(passage.seq, Seq(3));
    assert_eq!(passage.summary_id.as_ref(), Some(&leaf.id));
    assert_eq!(passage.pointer(), leaf.id.as_str());
    assert!(passage.path.is_empty() && passage.role.is_none());
    let nothing = world.tools().recall("airships").await.unwrap();
    assert!(nothing.passages.is_empty() && nothing.complete);
    assert_eq!(nothing.to_text(), "Nothing was found.\n");
}

#[tokio::test]
async fn by_a_query_or_by_a_turn() {
    let world = World::new().await;
    let arguments = RawJson::parse(r#"{"path":"src/main.rs"}"#).unwrap();
    let mut said = vec![
        Message::user(format!("é{}", "é".repeat(2_999))),
        Message::tool_call("c1", "read", arguments),
        Message::note(Role::System, vec![Part::text("a note")]),
    ];
    said.extend((0..15).map(|n| {
        Message::user(format!(
            "{} needle {n} {}",
            "緑".repeat(900),
            "緑".repeat(900)
        ))
    }));
    world.say(said).await;
    world.leaf(range(1, 5), "compacted").await;
    let tools = world.tools().with_limits(RetrievalLimits::none());
    let wide = |args: RecallArgs| args.set(|it| it.budget = 100_000);
    // By a position: the whole message.
    let answer = tools.recall(wide(RecallArgs::turn(Seq(1)))).await.unwrap();
    assert_eq!(answer.passages[0].text, "é".repeat(3_000));
    assert_eq!(answer.passages[0].path.len(), 1);
    let call = tools.recall(RecallArgs::turn(Seq(2))).await.unwrap();
    assert!(call.passages[0].text.contains("src/main.rs"));
    for turn in [Seq(0), Seq(3), Seq(99)] {
        let error = tools.recall(RecallArgs::turn(turn)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{turn}");
    }
    // By a query: up to 1,200 characters of each hit.
    let answer = tools
        .recall(wide(RecallArgs::query("needle")))
        .await
        .unwrap();
    assert!(answer.passages.len() >= 15 && answer.complete);
    for passage in answer.passages.iter().take(15) {
        let text = passage.text.trim_matches('…');
        assert!(text.chars().count() <= 1_200, "{text}");
        assert!(text.contains("needle"));
    }
    let none = tools.recall("no such thing").await.unwrap();
    assert!(none.passages.is_empty());
    let error = tools.recall(RecallArgs::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let empty = World::new().await;
    assert!(empty.tools().recall("x").await.unwrap().passages.is_empty());
    let error = empty
        .tools()
        .recall(RecallArgs::turn(Seq(1)))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("it has none"), "{error}");
}

#[tokio::test]
async fn a_long_passage_keeps_within_the_budget_and_uses_it() {
    let controls = "canal \u{1}\u{2}\u{3} ~~~~~~~~~~~~ ";
    for text in ["canal word ".repeat(2_000), controls.repeat(200)] {
        let world = World::new().await;
        world.say(vec![Message::user(text)]).await;
        for budget in [1, 10, 100, 150, 400, 2_000] {
            for args in [RecallArgs::turn(Seq(1)), RecallArgs::query("canal")] {
                let args = args.set(|it| it.budget = budget);
                let answer = world.tools().recall(args).await.unwrap();
                let text = &answer.passages[0].text;
                let cost = HeuristicEstimator::Bytes4.text(text);
                assert!(cost <= budget, "{cost} of {budget}");
                assert!(budget > 400 || text.ends_with('…'), "{text}");
                assert_eq!(answer.tokens, cost);
                // A citation and the end have fewer than 80 tokens.
                let read = HeuristicEstimator::Bytes4.text(&answer.to_text());
                assert!(read <= budget.max(80), "{read} of {budget}");
                let is_used = !(100..=400).contains(&budget) || read > budget / 2;
                assert!(is_used, "{read} of {budget}");
            }
        }
    }
}

/// A table of ports, prices or limits has a line for each thing, and no line changes another one.
#[tokio::test]
async fn lines_about_numbered_things_change_no_other_line() {
    let lines: [fn(u32) -> String; 5] = [
        |n| format!("Port of service {n} is {}.", 8000 + n),
        |n| format!("The budget for {} is {n}00 euros.", 2000 + n),
        |n| format!("From now on, limit tier {n} to {n}00 requests."),
        |n| format!("Always set the timeout of worker {n} to {n}0 seconds."),
        |n| format!("Die Miete für Wohnung {n} beträgt {} Euro.", 800 + n),
    ];
    for line in lines {
        let world = World::new().await;
        world
            .say((1..=20).map(|n| Message::user(line(n))).collect())
            .await;
        let tools = world.tools();
        let asked = line(7);
        let recalled = tools.recall(asked.as_str()).await.unwrap();
        assert!(recalled.passages.len() > 5, "{}", recalled.to_text());
        let mut passages = recalled.passages.iter();
        assert!(
            passages.all(|one| one.changed.is_empty()),
            "{}",
            recalled.to_text()
        );
        let word = asked.split(' ').find(|word| word.len() > 5).unwrap();
        let args = GrepArgs::new(word).set(|it| it.corrections = true);
        let found = tools.grep(args).await.unwrap();
        assert!(found.hits.len() > 5, "{}", found.to_text());
        assert!(
            found.hits.iter().all(|hit| hit.later.is_none()),
            "{}",
            found.to_text()
        );
    }
}

#[tokio::test]
async fn a_changed_passage_comes_after_the_change_with_a_note() {
    let world = World::new().await;
    let mut said: Vec<Message> = (1..=40)
        .map(|n| {
            Message::user(format!(
                "Entry {n} of the diary: tea at four, rain at five."
            ))
        })
        .collect();
    let mut say = |at: usize, text: &str| said[at - 1] = Message::user(text);
    say(
        3,
        "Please end the names of all tables with '_old', always end table names so.",
    );
    say(5, "Always begin table names with 't_'.");
    say(12, "Please end view names with '_v'.");
    say(
        20,
        "From now on, please end all table names with '_mid', since the export needs it.",
    );
    say(
        33,
        "One more thing. Going forward, end table names with '_tab', so that the tool finds them.",
    );
    say(36, "Going forward, end view names with '_view'.");
    world.say(said).await;
    let tools = world.tools();
    let answer = tools.recall("What should table names end with?").await;
    let answer = answer.unwrap();
    let place = |seq: u32| answer.passages.iter().position(|one| one.seq == Seq(seq));
    let text = answer.to_text();
    assert_eq!(place(33), Some(0), "{text}");
    assert!(place(33) < place(20) && place(33) < place(3), "{text}");
    let changed = |seq: u32| {
        let passage = &answer.passages[place(seq).unwrap()];
        passage
            .changed
            .iter()
            .map(|one| one.seq.0)
            .collect::<Vec<_>>()
    };
    assert_eq!([changed(3), changed(20)], [[33], [33]], "{text}");
    assert_eq!((changed(33), changed(5)), (vec![], vec![]), "{text}");
    assert_eq!(changed(12), [36], "{text}");
    let line =
        "\n[20] user (changed in [33]: Going forward, end table names with '_tab'): From now on";
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn the_budget_is_used_and_the_last_passage_is_cut() {
    let world = World::new().await;
    let long = |n: usize| Message::user(format!("the canal, part {n}: {}", "water ".repeat(190)));
    world.say((1..=30).map(long).collect()).await;
    for budget in [700, 1_500, 4_000] {
        let args = RecallArgs::query("canal").set(|it| it.budget = budget);
        let answer = world.tools().recall(args).await.unwrap();
        assert!(!answer.complete);
        let read = HeuristicEstimator::Bytes4.text(&answer.to_text());
        assert!(
            read <= budget && read * 100 >= budget * 95,
            "{read} of {budget}"
        );
    }
}

#[tokio::test]
async fn narration_of_an_agent_changes_no_passage() {
    let rule = "Please end the names of all tables with '_old'.";
    let told = "Going forward, I'll end the names of all tables with '_new'.";
    for has_tools in [false, true] {
        let world = World::new().await;
        let mut said = vec![Message::user(rule), Message::assistant(told)];
        if has_tools {
            let arguments = RawJson::parse(r#"{"path":"tables.sql"}"#).unwrap();
            said.push(Message::tool_call("c1", "read", arguments));
            said.push(Message::tool_result("c1", "names of tables"));
        }
        world.say(said).await;
        let answer = world.tools().recall("names of tables").await.unwrap();
        let is_first = |one: &&retrieval_tools::Passage| one.seq == Seq(1);
        let first = answer.passages.iter().find(is_first).unwrap();
        assert_eq!(first.changed.is_empty(), has_tools, "{}", answer.to_text());
    }
}
