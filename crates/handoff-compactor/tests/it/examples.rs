//! Single handoffs.

use compaction_plan::{Job, JobSource, Planner as _, Room, Work};
use handoff_compactor::{CutPolicy, FileLedger, HandoffPlanner, HandoffPolicy, left_out, prepare};
use memory_model::conventions::{AgentConventions, FileAccess, GenericConventions, ToolUse};
use memory_model::{Child, Purpose, RawJson, Role, Seq, SeqRange, Summary};

use crate::world::{World, log, ranges};

fn keeping(messages: usize) -> HandoffPolicy {
    HandoffPolicy {
        keep: CutPolicy::LastMessages { messages },
        min_tokens: 0,
        ..HandoffPolicy::default()
    }
}

fn recent(tokens: u64) -> HandoffPolicy {
    HandoffPolicy {
        keep: CutPolicy::RecentTokens { tokens },
        ..HandoffPolicy::default()
    }
}

fn whole(policy: HandoffPolicy) -> HandoffPolicy {
    HandoffPolicy {
        split_turns: false,
        ..policy
    }
}

fn purposes(jobs: &[Job]) -> Vec<Purpose> {
    jobs.iter()
        .map(|job| job.request.as_ref().unwrap().purpose)
        .collect()
}

#[test]
fn everything_before_what_is_kept_becomes_one_summary_and_later_one_of_both() {
    let mut world = World::new(log("u*90 a*90 u*90 a*90 u a"));
    let policy = keeping(2);
    let jobs = world.plan(&policy, None, 100);
    assert_eq!(ranges(&jobs), [(1, 4)]);
    world.publish(&jobs[0], 60);
    world
        .entries
        .extend(log("n n n n n n u*90 a*90 u*90 a*90").split_off(6));
    for (index, entry) in world.entries.iter_mut().enumerate() {
        entry.seq = Seq(index as u32 + 1);
    }
    let jobs = world.plan(&policy, None, 3);
    assert_eq!(ranges(&jobs), [(1, 8)]);
    // Its writer sees the summary before and the messages since; it unfolds to all messages.
    let sources = jobs[0].sources();
    assert!(matches!(sources[0], Child::Summary { range, .. } if range.last == Seq(4)));
    assert_eq!(sources[1].range(), SeqRange::new(Seq(5), Seq(8)).unwrap());
    assert_eq!(
        jobs[0].children(),
        [Child::Messages {
            range: jobs[0].range
        }]
    );
    assert_eq!(jobs[0].depth(), Some(0));
}

#[test]
fn a_cut_inside_a_turn_gives_a_summary_of_its_beginning() {
    let world = World::new(log("u*90 a*90 u*90 a*90 u*90 a*90 a*90 a"));
    let jobs = world.plan(&keeping(1), None, 100);
    assert_eq!(ranges(&jobs), [(1, 4), (5, 7)]);
    assert_eq!(purposes(&jobs), [Purpose::Replace, Purpose::TurnPrefix]);
    let jobs = world.plan(&whole(keeping(1)), None, 100);
    assert_eq!(ranges(&jobs), [(1, 7)]);
}

#[test]
fn what_is_too_short_for_a_summary_of_its_own_goes_with_the_turns_beginning() {
    let world = World::new(log("u*2 a*2 u*90 a*90 a*90 a"));
    let jobs = world.plan(&keeping(1), None, 100);
    assert_eq!(ranges(&jobs), [(1, 5)]);
    assert_eq!(purposes(&jobs), [Purpose::Replace]);
}

#[test]
fn a_group_is_kept_or_handed_over_whole() {
    let world = World::new(log("u*90 a*90 u*90 a+x*90 a+y t-x*90 t-y*90 a u"));
    for (messages, last) in [(1, 8), (2, 7), (3, 3), (4, 3), (6, 3)] {
        let jobs = world.plan(&whole(keeping(messages)), None, 100);
        assert_eq!(
            jobs.last().unwrap().range.last,
            Seq(last),
            "{messages} are kept"
        );
    }
}

#[test]
fn calls_that_wait_for_their_results_are_kept() {
    let world = World::new(log("u*90 a*90 u*90 a+x"));
    let jobs = world.plan(&whole(keeping(0)), None, 100);
    assert_eq!(ranges(&jobs), [(1, 3)]);
}

#[test]
fn a_result_that_is_larger_than_what_is_kept_does_not_stop_a_handoff() {
    // Recent tokens reach into the newest group; everything before it is old all the same.
    let policy = HandoffPolicy {
        keep: CutPolicy::RecentTokens { tokens: 50 },
        ..whole(keeping(0))
    };
    let world = World::new(log("u*90 a*90 u*90 a+x t-x*900"));
    assert_eq!(ranges(&world.plan(&policy, None, 100)), [(1, 3)]);
}

#[test]
fn little_is_not_worth_a_handoff() {
    let world = World::new(log("u*90 a*90 u*90 a*90 u a"));
    assert_eq!(
        world.plan(
            &HandoffPolicy {
                min_tokens: 10_000,
                ..keeping(2)
            },
            None,
            100
        ),
        []
    );
    assert_eq!(world.plan(&HandoffPolicy::default(), None, 100), []);
    assert_eq!(World::new(log("u a")).plan(&keeping(0), None, 100), []);
    assert_eq!(World::new(Vec::new()).plan(&keeping(0), None, 100), []);
}

#[test]
fn contexts_with_little_room_keep_less_and_get_shorter_summaries() {
    let world = World::new(log(&"u*100 a*100 ".repeat(30)));
    let room = |tokens, whole_tail| Some(Room { tokens, whole_tail });
    let kept = |jobs: &[Job]| {
        let first = jobs.last().unwrap().range.last.next();
        world.tokens(SeqRange::new(first, world.head()).unwrap())
    };
    let jobs = world.plan(&keeping(40), room(2_000, false), 100);
    assert!(kept(&jobs) <= 500, "{}", kept(&jobs));
    assert!(jobs[0].request.as_ref().unwrap().max_tokens <= 2_000 / 3);
    // A tail that contexts show whole is not limited.
    let jobs = world.plan(&keeping(40), room(2_000, true), 100);
    assert!(kept(&jobs) >= 4_000, "{}", kept(&jobs));
}

#[test]
fn a_long_history_is_folded_handoff_by_handoff() {
    let mut world = World::new(log(&"u*100 a*100 ".repeat(50)));
    let policy = HandoffPolicy {
        max_source_tokens: Some(2_500),
        ..whole(keeping(2))
    };
    let mut handoffs = 0;
    while let [job] = world.plan(&policy, None, 100).as_slice() {
        let new: u64 = job.source_tokens.saturating_sub(300);
        assert!(new <= 2_500, "{new}");
        world.publish(job, 300);
        handoffs += 1;
    }
    assert!(handoffs > 3, "{handoffs}");
    assert_eq!(world.shown(), "S0:1-98 R:99-");
}

#[test]
fn the_policy_is_a_config_value() {
    let text = r#"{"keep":{"kind":"last_messages","messages":4},"min_tokens":0}"#;
    let policy: HandoffPolicy = serde_json::from_str(text).unwrap();
    assert_eq!(policy, keeping(4));
    assert!(serde_json::from_str::<HandoffPolicy>(r#"{"kep":1}"#).is_err());
    let default = HandoffPolicy::default();
    assert_eq!(
        (default.summary_tokens, default.prefix_tokens),
        (6_553, 4_096)
    );
    let again = serde_json::to_string(&default).unwrap();
    assert_eq!(
        serde_json::from_str::<HandoffPolicy>(&again).unwrap(),
        default
    );
    let print = |policy: &HandoffPolicy| HandoffPlanner::new(policy.clone()).fingerprint();
    assert_ne!(print(&keeping(4)), print(&keeping(5)));
}

#[test]
fn the_message_that_reaches_the_kept_tokens_is_kept() {
    // 60 messages of 500 tokens: the one that reaches the figure is kept.
    let entries = log(&"u*500 a*500 ".repeat(30));
    let cost = entries[0].tokens;
    assert!(entries.iter().all(|entry| entry.tokens == cost), "{cost}");
    for (policy, tokens) in [
        (HandoffPolicy::default(), 16_384_u64),
        (recent(20_000), 20_000),
    ] {
        let handoff = prepare(&entries, None, &policy, &GenericConventions).unwrap();
        let kept = 60 - u64::from(handoff.kept_from.prev().0);
        assert_eq!(kept, tokens.div_ceil(cost), "{policy:?}");
    }
}

#[test]
fn a_window_slides_over_the_oldest_10000_tokens_at_a_time() {
    let policy = HandoffPolicy {
        max_source_tokens: Some(10_000),
        min_tokens: 0,
        ..recent(20_000)
    };
    let mut world = World::new(log(&"u*500 a*500 ".repeat(60)));
    let cost = world.entries[0].tokens;
    let mut folded = Vec::new();
    while let [job] = world.plan(&policy, None, 100).as_slice() {
        let before: u64 = job
            .expect
            .iter()
            .filter(|s| s.body.summary().is_some())
            .map(|s| s.tokens)
            .sum();
        folded.push(job.source_tokens - before);
        world.publish(job, 800);
    }
    let whole = 10_000 / cost * cost;
    let (last, batches) = folded.split_last().unwrap();
    assert!(batches.iter().all(|tokens| *tokens == whole), "{folded:?}");
    assert!(*last <= whole, "{folded:?}");
    let head = world.head();
    let spans = world.view.spans();
    let kept = SeqRange::new(spans[1].range.first, head).unwrap();
    assert_eq!(world.tokens(kept), 20_000_u64.div_ceil(cost) * cost);
}

#[test]
fn entries_are_named_by_their_ids_and_nothing_is_prepared_where_nothing_is_old() {
    let mut entries = log("u*90 a*90 u*90 a*90 u a");
    for entry in &mut entries {
        entry.message.external_id = Some(format!("id-{}", entry.seq));
    }
    let prepared =
        |entries: &[_], keep| prepare(entries, None, &keeping(keep), &GenericConventions);
    let handoff = prepared(&entries, 2).unwrap();
    assert_eq!(
        (handoff.kept_from, handoff.kept_from_id.as_deref()),
        (Seq(5), Some("id-5"))
    );
    // An entry without an id has its position.
    entries[4].message.external_id = None;
    let handoff = prepared(&entries, 2).unwrap();
    assert_eq!((handoff.kept_from, handoff.kept_from_id), (Seq(5), None));
    // Nothing is old, and nothing is left behind the summary before.
    assert_eq!(prepared(&entries, 6), None);
    assert_eq!(prepared(&entries, 100), None);
    let range = SeqRange::new(Seq(1), Seq(6)).unwrap();
    let sources = vec![Child::Messages { range }];
    let recipe = memory_model::Recipe::new("test");
    let before = Summary::new(range, 0, sources, memory_model::Hash::ZERO, recipe, "x");
    let after = prepare(&entries, Some(&before), &keeping(2), &GenericConventions);
    assert_eq!(after, None);
}

#[test]
fn only_an_assistants_calls_name_files() {
    let write = r#"{"file_path":"/srv/a.rs","content":"x"}"#;
    let call = |role| {
        let mut call =
            memory_model::Message::tool_call("c", "Write", RawJson::parse(write).unwrap());
        call.role = role;
        let result = memory_model::Message::tool_result("c", "written");
        let mut ledger = FileLedger::default();
        for (seq, message) in (1..).zip([call, result]) {
            let mut entry = log("u")[0].clone();
            (entry.seq, entry.message) = (Seq(seq), message);
            ledger.add(&JobSource::Entry(&entry), &Files);
        }
        ledger
    };
    assert_eq!(call(Role::Assistant).modified(), ["/srv/a.rs"]);
    for role in [Role::User, Role::System, Role::Tool] {
        assert!(call(role).is_empty(), "{role}");
    }
}

/// Conventions under which every call changes one file.
#[derive(Debug)]
struct Files;

impl AgentConventions for Files {
    fn id(&self) -> &str {
        "files@1"
    }

    fn tool_use(&self, _: &str, _: &str) -> ToolUse {
        let file = FileAccess {
            path: "/srv/a.rs".to_owned(),
            changed: true,
        };
        let mut used = ToolUse::default();
        used.files = vec![file];
        used
    }
}

#[test]
fn a_footer_has_a_list_for_each_kind_of_files() {
    let footer = |json: &str| serde_json::from_str::<FileLedger>(json).unwrap().footer();
    let (read, modified) = (
        "\n\n<read-files>\na\nb\n</read-files>",
        "\n\n<modified-files>\nc\nd\ne\n</modified-files>",
    );
    let changed = r#""created":["d"],"updated":["c","d"],"deleted":["e"]"#;
    assert_eq!(footer("{}"), "");
    assert_eq!(footer(r#"{"unknown_tools":{"x":1}}"#), "");
    assert_eq!(footer(r#"{"read":["b","a"]}"#), read);
    assert_eq!(footer(&format!("{{{changed}}}")), modified);
    // A file that was read and modified is in the second list alone.
    let both = format!(r#"{{"read":["b","a","c"],{changed}}}"#);
    assert_eq!(footer(&both), format!("{read}{modified}"));
}

#[test]
fn a_list_without_a_view_is_prepared() {
    let entries = log("u*90 a*90 u*90 a*90 u*90 a*90 a*90 a");
    let handoff = prepare(&entries, None, &keeping(1), &GenericConventions).unwrap();
    assert_eq!(handoff.history, SeqRange::new(Seq(1), Seq(4)));
    assert_eq!(handoff.turn_prefix, SeqRange::new(Seq(5), Seq(7)));
    assert_eq!(handoff.kept_from, Seq(8));
    assert!(handoff.is_split_turn() && handoff.previous.is_none());
    assert_eq!(
        handoff.tokens_before,
        entries.iter().map(|e| e.tokens).sum::<u64>()
    );
    // What the summary before covers is passed over.
    let range = SeqRange::new(Seq(1), Seq(4)).unwrap();
    let sources = vec![Child::Messages { range }];
    let recipe = memory_model::Recipe::new("test");
    let mut before = Summary::new(
        range,
        0,
        sources,
        memory_model::Hash::ZERO,
        recipe,
        "before",
    );
    before.tokens = 7;
    let again = prepare(&entries, Some(&before), &keeping(1), &GenericConventions).unwrap();
    assert_eq!(
        (again.history, again.previous.as_ref()),
        (None, Some(&before))
    );
    assert_eq!(again.turn_prefix, handoff.turn_prefix);
    let since: u64 = entries.iter().skip(4).map(|entry| entry.tokens).sum();
    assert_eq!(again.tokens_before, 7 + since);
    assert_eq!(prepare(&[], None, &keeping(1), &GenericConventions), None);
}

#[test]
fn messages_that_a_text_does_not_tell_are_named() {
    let mut entries = log("u a+x t-x u a");
    let say = |text: &str| vec![memory_model::Part::text(text)];
    entries[0].message.parts = say("Rename the module crumb before the release.");
    entries[3].message.parts = say("Then publish version seven everywhere.");
    entries[4].message.parts = say("ok");
    let text =
        "[2] read: texttexttext\nThe user wants module crumb renamed before release: rename it.";
    let missing = left_out(text, &entries);
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(
        (missing[0].seq, missing[0].start.as_str()),
        (Seq(4), "Then publish version seven everywhere.")
    );
    assert_eq!(left_out("", &entries).len(), 4);
    assert_eq!(left_out("[1-5]", &entries), []);
}

#[test]
fn ledgers_add_up() {
    let read = |json: &str| -> FileLedger { serde_json::from_str(json).unwrap() };
    let mut ledger = read(r#"{"read":["a","b"],"created":["c"],"unknown_tools":{"x":2}}"#);
    ledger.add_ledger(&read(
        r#"{"updated":["a"],"deleted":["c"],"unknown_tools":{"x":1}}"#,
    ));
    assert_eq!((ledger.read(), ledger.updated()), (vec!["b"], vec!["a"]));
    assert_eq!((ledger.created(), ledger.deleted()), (vec![], vec!["c"]));
    assert_eq!(ledger.unknown_tools()["x"], 3);
    ledger.add_ledger(&read(r#"{"created":["c"]}"#));
    assert_eq!((ledger.created(), ledger.deleted()), (vec!["c"], vec![]));
    let again: FileLedger = serde_json::from_str(&serde_json::to_string(&ledger).unwrap()).unwrap();
    assert_eq!(again, ledger);
    assert_eq!(
        ledger.footer(),
        "\n\n<read-files>\nb\n</read-files>\n\n<modified-files>\na\nc\n</modified-files>"
    );
    assert_eq!(FileLedger::default().footer(), "");
}

#[test]
fn a_summary_that_is_made_anew_is_asked_for_as_before() {
    use compaction_plan::WrittenText;
    let world = World::new(log("u*90 a*90 u*90 a*90 u*90 a*90 a*90 a"));
    let planner = HandoffPlanner::new(keeping(1));
    for job in world.plan(&keeping(1), None, 100) {
        let accounting = crate::world::accounting();
        let details = planner.details(&WrittenText {
            job: &job,
            sources: &[],
            text: "text",
            accounting: &accounting,
        });
        let (Work::Summarize { sources, .. }, Some(request)) = (&job.work, &job.request) else {
            panic!("{job:?}");
        };
        let recipe = memory_model::Recipe::new("test");
        let mut summary = Summary::new(
            job.range,
            0,
            sources.clone(),
            memory_model::Hash::ZERO,
            recipe,
            "text",
        );
        assert_eq!(
            planner.request_again(&summary),
            None,
            "nothing is known of it"
        );
        summary.meta = memory_model::RawJson::from_value(&details.facts).ok();
        assert_eq!(planner.request_again(&summary).as_ref(), Some(request));
    }
}

#[test]
fn who_changed_a_file_last_is_kept_with_the_message_that_says_it() {
    use handoff_compactor::FileOwner;
    use memory_model::{LogEntry, Message, RawJson};
    let call = |id: &str, agent: Option<&str>, arguments: &str| {
        let arguments = RawJson::parse(arguments).unwrap();
        let mut message = Message::tool_call(id, "write", arguments);
        message.name = agent.map(str::to_owned);
        message
    };
    let write = |path: &str| format!(r#"{{"path":"{path}","content":"x"}}"#);
    let ledger = |messages: Vec<Message>| {
        let mut ledger = FileLedger::default();
        for (seq, message) in (1..).map(Seq).zip(messages) {
            let entry = LogEntry {
                seq,
                message,
                tokens: 1,
                running: 0,
                hash: memory_model::Hash::ZERO,
            };
            ledger.add(&JobSource::Entry(&entry), &GenericConventions);
        }
        ledger
    };
    let ok = |id: &str| Message::tool_result(id, "done");
    let mut first = ledger(vec![
        call("1", Some("coder"), &write("src/a.rs")),
        ok("1"),
        call("2", Some("tester"), &write("src/b.rs")),
        ok("2"),
        call("3", Some("coder"), &write("src/c.rs")),
        ok("3"),
        // Without a result nobody has changed it.
        call("4", Some("tester"), &write("src/d.rs")),
        call("5", Some("tester"), r#"{"path":"src/a.rs"}"#),
        ok("5"),
    ]);
    let owner = |agent: &str, at: u32| FileOwner {
        agent: agent.to_owned(),
        at: Seq(at),
    };
    let owners: Vec<_> = first.owners().iter().collect();
    let expected = [
        (&"src/a.rs".to_owned(), &owner("coder", 1)),
        (&"src/b.rs".to_owned(), &owner("tester", 3)),
        (&"src/c.rs".to_owned(), &owner("coder", 5)),
    ];
    assert_eq!(owners, expected);
    // A summary keeps them, and what was said later counts.
    let stored = serde_json::to_string(&first).unwrap();
    let mut again: FileLedger = serde_json::from_str(&stored).unwrap();
    assert_eq!(again.owners(), first.owners());
    again.add_ledger(&ledger(vec![
        call("6", Some("tester"), &write("src/a.rs")),
        ok("6"),
        call("7", Some("tester"), r#"{"command":"rm src/b.rs"}"#),
        ok("7"),
        call("8", None, &write("src/c.rs")),
        ok("8"),
    ]));
    let owners: Vec<_> = again.owners().iter().collect();
    assert_eq!(owners, [(&"src/a.rs".to_owned(), &owner("tester", 1))]);
    // Without names nothing is stored of owners.
    first = ledger(vec![call("1", None, &write("a.rs")), ok("1")]);
    assert!(!serde_json::to_string(&first).unwrap().contains("owners"));
}
