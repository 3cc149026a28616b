//! A tool set never reveals content that it does not see, whatever the arguments. A derived tool set sees less.

use std::sync::Arc;

use memory_model::{Message, RawJson, Seq, StepClock, Summary, Timestamp};
use memory_store::Origin;
use proptest::prelude::*;
use retrieval_tools::{
    ErrorKind, ExpandArgs, FilesArgs, GrepArgs, Narrowing, RecallArgs, Retrieval, RetrievalLimits,
    RetrievalSet, SearchMode, SearchScope,
};
use serde_json::{Value, json};

use crate::world::{Set, World, child, range, tree};

/// A message or summary with content that occurs only there.
#[derive(Debug)]
struct Canary {
    word: String,
    /// Index of the conversation to which it belongs.
    of: usize,
    /// First and last position that it covers. The two are equal for a message.
    first: u32,
    last: u32,
    /// Depth of the summary. `None` for a message.
    depth: Option<u32>,
}

/// Four conversations in one store: a root, a fork of it at position 12, a conversation that it spawned, and an
/// unrelated one.
struct Family {
    worlds: Vec<World>,
    canaries: Vec<Canary>,
    summaries: Vec<Summary>,
}

const FORK_AT: u32 = 12;

async fn family() -> Family {
    let root = World::new().await;
    let mut family = Family {
        worlds: Vec::new(),
        canaries: Vec::new(),
        summaries: Vec::new(),
    };
    say(&mut family, &root, 0, 1, 24).await;
    // A summary that the fork shares, one that extends beyond the fork's beginning, and one that covers both.
    let low = summarize(&mut family, &root, 0, vec![(1, 6)], Vec::new()).await;
    let crossing = summarize(&mut family, &root, 0, vec![(9, 16)], Vec::new()).await;
    summarize(&mut family, &root, 0, vec![(7, 8)], vec![low, crossing]).await;
    let (parent, at) = (root.chat, Seq(FORK_AT));
    let fork = root.open("fork", Origin::Fork { parent, at }).await;
    let call = None;
    let spawned = root
        .open("spawned", Origin::Spawn { parent, at, call })
        .await;
    let stranger = root.open("stranger", Origin::Root).await;
    for (index, (world, first)) in [(&fork, FORK_AT + 1), (&spawned, 1), (&stranger, 1)]
        .into_iter()
        .enumerate()
    {
        say(&mut family, world, index + 1, first, 10).await;
        let over = (first + 2, first + 5);
        summarize(&mut family, world, index + 1, vec![over], Vec::new()).await;
    }
    family.worlds = vec![root, fork, spawned, stranger];
    family
}

/// Appends messages that each contain a unique word. Some of them are calls and results of tools.
async fn say(family: &mut Family, world: &World, of: usize, first: u32, count: u32) {
    let mut said = Vec::new();
    for seq in first..first + count {
        let word = format!("kq{of}z{seq}kq");
        let id = format!("call-{}", seq / 3);
        said.push(match seq % 3 {
            0 => {
                let arguments = format!(r#"{{"command":"make common {word} src/main.rs"}}"#);
                Message::tool_call(id, "bash", RawJson::parse(arguments).unwrap())
            }
            1 => Message::tool_result(id, format!("common output {word}")),
            _ => Message::user(format!("a common remark {word}")),
        });
        family.canaries.push(Canary {
            word,
            of,
            first: seq,
            last: seq,
            depth: None,
        });
    }
    world.say(said).await;
}

async fn summarize(
    family: &mut Family,
    world: &World,
    of: usize,
    messages: Vec<(u32, u32)>,
    summaries: Vec<Summary>,
) -> Summary {
    let word = format!("ks{of}z{}ks", family.summaries.len());
    let mut children: Vec<_> = summaries.iter().map(child).collect();
    children.extend(
        messages
            .into_iter()
            .map(|(first, last)| memory_model::Child::Messages {
                range: range(first, last),
            }),
    );
    children.sort_by_key(|child| child.range().first);
    let made = world
        .summarize(children, &format!("a common summary {word}"))
        .await;
    family.canaries.push(Canary {
        word,
        of,
        first: made.range.first.0,
        last: made.range.last.0,
        depth: Some(made.depth),
    });
    family.summaries.push(made.clone());
    made
}

/// The part of a conversation that a tool set sees.
#[derive(Debug, Clone, Copy)]
struct Sight {
    of: usize,
    first: u32,
    last: u32,
    depth: u32,
}

impl Sight {
    fn sees(&self, canary: &Canary) -> bool {
        let own = match (self.of, canary.of) {
            (own, of) if own == of => true,
            // A fork shares everything before its beginning.
            (1, 0) => canary.last <= FORK_AT,
            _ => false,
        };
        own && self.first <= canary.first
            && canary.last <= self.last
            && canary.depth.is_none_or(|depth| depth <= self.depth)
    }
}

/// Creates the arguments of a tool call from numbers.
fn arguments(family: &Family, tool: &str, pick: [usize; 6], cursor: Option<&str>) -> String {
    let patterns = [
        "common",
        "kq",
        "z1",
        "make common",
        "summary remark output",
        ".",
        "a",
        "ks",
    ];
    let modes = ["auto", "literal", "regex", "words", "prose"];
    let (scopes, orders) = (
        ["both", "messages", "summaries"],
        ["relevance", "oldest", "newest"],
    );
    let pattern = patterns[pick[0] % patterns.len()];
    let summary = &family.summaries[pick[1] % family.summaries.len()];
    let targets = [
        summary.id.to_string(),
        format!("message:{}", pick[2] % 40),
        format!("messages:{}-{}", pick[2] % 40, pick[3] % 60),
        "messages:1-4294967295".to_owned(),
    ];
    let number = |n: usize| json!(n % 40);
    let mut given = match tool {
        "memory_grep" => json!({
            "pattern": pattern,
            "mode": modes[pick[1] % modes.len()],
            "scope": scopes[pick[2] % 3],
            "order": orders[pick[3] % 3],
            "limit": pick[4] % 9,
            "roles": if pick[5].is_multiple_of(5) { json!(["tool"]) } else { json!([]) },
        }),
        "memory_recall" if pick[1].is_multiple_of(3) => json!({"turn": number(pick[2])}),
        "memory_recall" => json!({"query": pattern, "budget": pick[4] % 300}),
        "memory_files" => json!({
            "path": if pick[1].is_multiple_of(2) { json!("main.rs") } else { Value::Null },
            "limit": pick[4] % 5,
        }),
        "memory_requests" => json!({"limit": pick[4] % 9}),
        "memory_describe" => json!({"summary_id": targets[pick[4] % 2]}),
        "memory_expand" => json!({"summary_id": targets[pick[4] % 4], "token_cap": pick[5] % 200}),
        tool => panic!("no arguments for {tool}"),
    };
    if tool == "memory_grep" && pick[5].is_multiple_of(4) {
        given["first"] = number(pick[2]);
        given["last"] = json!(pick[2] % 40 + pick[3] % 20);
    }
    if let Some(cursor) = cursor {
        given["cursor"] = cursor.into();
    }
    given.to_string()
}

/// Returns a position for a forged cursor.
fn positions(family: &Family, pick: usize) -> String {
    let summary = &family.summaries[pick % family.summaries.len()].id;
    let n = pick % 50;
    let all = [
        format!("m{n}"),
        format!("lm{n}"),
        format!("s{summary}"),
        format!("ls{summary}"),
        format!("r{}/{n}", pick % 4),
        format!("f{n}+{}", pick % 3),
        format!("x{n}"),
        format!("x{n}+{}/7", pick % 30),
        format!("w{n}.{n}.{n}"),
        "f4294967295+0".to_owned(),
        "r0/4294967295".to_owned(),
    ];
    all[pick / 7 % all.len()].clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_hidden_message_is_returned(
        calls in proptest::collection::vec(
            (0usize..4, any::<usize>(), any::<[u16; 8]>()),
            1..40,
        ),
        narrowed in proptest::option::of((1u32..30, 0u32..20, 0u32..2)),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let family = family().await;
            let mut sets = Vec::new();
            for (of, world) in family.worlds.iter().enumerate() {
                let mut sight = Sight { of, first: 1, last: u32::MAX, depth: u32::MAX };
                let mut tools = world.tools();
                if let Some((first, more, depth)) = narrowed {
                    let last = first + more;
                    let part = format!("messages:{first}-{last}");
                    // Then narrows to a wider range, which has no effect.
                    for (depth, within) in [(depth, part.as_str()), (9, "messages:1-4294967295")] {
                        tools = part_of(&tools, |it| {
                            (it.depth, it.within) = (Some(depth), Some(within.parse().unwrap()));
                        }).await;
                    }
                    sight = Sight { of, first, last, depth };
                }
                sets.push((sight, tools));
            }
            let names: Vec<&str> = Retrieval::tools().iter().map(|tool| tool.name).collect();
            let mut cursors: Vec<String> = Vec::new();
            for (of, tool, pick) in calls {
                let (sight, tools) = &sets[of];
                let tool = names[tool % names.len()];
                let pick = pick.map(usize::from);
                let own: [usize; 6] = pick[..6].try_into().unwrap();
                let foreign = cursors.get(pick[6] % (cursors.len() + 3));
                // Some calls go to two conversations at once.
                let (also, others) = &sets[(of + 1) % sets.len()];
                let both = RetrievalSet::new("one", tools.clone()).with("other", others.clone());
                let across = tool == "memory_grep" && pick[7].is_multiple_of(3);
                let sees = |canary: &Canary| sight.sees(canary) || across && also.sees(canary);
                let mut asked = arguments(&family, tool, own, foreign.map(String::as_str));
                // Repeats the call with a forged position in its cursor.
                for _ in 0..4 {
                    let answer = match across {
                        true => both.call(tool, &asked).await,
                        false => tools.call(tool, &asked).await,
                    };
                    let said = format!("{}\n{}", answer.text, answer.json);
                    for canary in &family.canaries {
                        assert!(
                            sees(canary) || !said.contains(&canary.word),
                            "{sight:?} {tool} {asked} gave {canary:?}\n{said}",
                        );
                    }
                    for summary in &family.summaries {
                        let id = summary.id.as_str();
                        let word = family.canaries.iter().filter(|one| one.depth.is_some());
                        let mut word = word.filter(|one| summary.text().contains(&one.word));
                        let seen = sees(word.next().unwrap());
                        assert!(
                            seen || asked.contains(id) || !said.contains(id),
                            "{sight:?} {tool} {asked} named {id}\n{said}",
                        );
                    }
                    let json = &answer.json;
                    let Some(cursor) = json["cursor"].as_str() else { break };
                    cursors.push(cursor.to_owned());
                    // A cursor over several conversations may have no position inside any of them.
                    let tag = cursor.rsplit_once('@').map_or("01234567", |(_, tag)| tag);
                    let tag = tag.get(..8).unwrap_or(tag);
                    let mut forged = format!("{}@{tag}", positions(&family, pick[7] + cursors.len()));
                    if across {
                        let stage = cursor.get(..1).unwrap_or("l");
                        let length = forged.len();
                        forged = format!("{stage}1/{length}:{forged}1/{length}:{forged}");
                    }
                    asked = arguments(&family, tool, own, Some(&forged));
                }
            }
        });
    }
}

#[tokio::test]
async fn the_family_has_the_expected_summaries() {
    let family = family().await;
    for world in &family.worlds {
        world.check().await;
    }
    // Visible content is found, so the checks above are not empty.
    for (of, world) in family.worlds.iter().enumerate() {
        let sight = Sight {
            of,
            first: 1,
            last: u32::MAX,
            depth: u32::MAX,
        };
        let args = GrepArgs::new("common")
            .set(|it| it.mode = SearchMode::Literal)
            .set(|it| it.limit = 100);
        let found = world.tools().grep(args).await.unwrap().to_text();
        let read = world.tools().expand("messages:1-4294967295").await.unwrap();
        let read = read.to_text();
        for canary in &family.canaries {
            let (word, seen) = (&canary.word, sight.sees(canary));
            assert_eq!(found.contains(word), seen, "{of} {canary:?}");
            let is_read = seen && canary.depth.is_none();
            assert_eq!(read.contains(word), is_read, "{of} {canary:?}");
        }
    }
}

/// Derives a tool set that sees less.
async fn part_of(tools: &Retrieval, set: impl FnOnce(&mut Narrowing)) -> Retrieval {
    let by = Narrowing::default().set(set);
    tools.narrow(&by).await.unwrap()
}

async fn kind_of(tools: &Retrieval) -> Option<ErrorKind> {
    let error = tools.grep("number").await.err();
    error.map(|error| error.kind())
}

#[tokio::test]
async fn a_narrowed_tool_set_sees_a_part() {
    let (world, [a, b, top]) = tree().await;
    let tools = world.tools();
    let part = part_of(&tools, |it| {
        it.within = Some(a.id.as_str().parse().unwrap())
    })
    .await;
    let args = GrepArgs::new("message number")
        .set(|it| it.mode = SearchMode::Literal)
        .set(|it| it.limit = 100);
    assert_eq!(part.grep(args.clone()).await.unwrap().hits.len(), 8);
    // Only this summary, because the summary above it covers more.
    let summaries = args.clone().set(|it| {
        it.scope = SearchScope::Summaries;
        it.pattern = "e".to_owned();
    });
    let hits = part.grep(summaries).await.unwrap().hits;
    let ids = hits.into_iter().filter_map(|hit| hit.summary_id);
    assert!(ids.eq([a.id.clone()]));
    assert!(part.describe(&a.id).await.unwrap().parents.is_empty());
    for id in [&b.id, &top.id] {
        let error = part.describe(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(part.expand(id.as_str()).await.is_err());
    }
    let read = part.expand("messages:1-30").await.unwrap();
    assert_eq!((read.first, read.last), (Seq(1), Seq(8)));
    let error = part.expand("messages:9-30").await.unwrap_err();
    assert!(error.to_string().contains("it has messages:1-8"), "{error}");
    let outside = args.set(|it| (it.first, it.last) = (Some(Seq(9)), Some(Seq(30))));
    let error = part.grep(outside).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let recalled = part.recall("message number 5").await.unwrap();
    for passage in recalled.passages {
        assert!(passage.seq <= Seq(8) && passage.path == [a.id.clone()]);
    }
    // A derived tool set cannot see hidden content again.
    let other = Narrowing::default().set(|it| it.within = Some(b.id.as_str().parse().unwrap()));
    assert!(part.narrow(&other).await.is_err());
    let leaves = part_of(&tools, |it| it.depth = Some(0)).await;
    assert!(leaves.describe(&top.id).await.is_err());
    assert!(leaves.describe(&b.id).await.unwrap().parents.is_empty());
}

#[tokio::test]
async fn a_narrowed_tool_set_has_an_end_few_tokens_and_few_tools() {
    let (world, _) = tree().await;
    let tools = world.tools();
    let clock = Arc::new(StepClock::new(Timestamp(1_000), 0));
    let now = clock.clone();
    let until = part_of(&tools, |it| it.until = Some((Timestamp(1_500), now))).await;
    assert_eq!(kind_of(&until).await, None);
    clock.advance(std::time::Duration::from_micros(500));
    assert_eq!(kind_of(&until).await, Some(ErrorKind::Expired));
    let late = Arc::new(StepClock::new(Timestamp(0), 0));
    let longer = part_of(&until, |it| it.until = Some((Timestamp(9_999), late))).await;
    assert_eq!(kind_of(&longer).await, Some(ErrorKind::Expired));
    let answer = longer.call("memory_files", "{}").await;
    assert!(answer.text.contains("expired at"));

    // 120 tokens for all answers of all clones together.
    let few = part_of(&tools, |it| it.tokens = Some(120)).await;
    let few = few.with_limits(RetrievalLimits::none());
    let mut given = 0;
    for n in 1..=30 {
        let args = ExpandArgs::new(format!("messages:{n}-30")).set(|it| it.token_cap = 50);
        match few.clone().expand(args).await {
            Ok(answer) => given += answer.tokens,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Spent),
        }
    }
    assert!((100..=120).contains(&given), "{given}");
    let more = part_of(&few, |it| it.tokens = Some(9_999)).await;
    let args = RecallArgs::turn(Seq(1)).set(|it| it.budget = 500);
    let left = more.recall(args).await.map(|answer| answer.tokens);
    assert!(left.is_err() || left.unwrap() <= 120 - given);

    let named = |tools: &[&str]| Some(tools.iter().map(|&tool| tool.to_owned()).collect());
    let only = ["memory_grep", "memory_files"];
    let only = part_of(&tools, |it| it.tools = named(&only)).await;
    assert!(only.files(FilesArgs::default()).await.is_ok());
    let error = only.expand("message:1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let none = part_of(&only, |it| it.tools = named(&["memory_recall"])).await;
    let error = none.recall(RecallArgs::turn(Seq(1))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(kind_of(&none).await, Some(ErrorKind::Denied));
    let set = RetrievalSet::new("main", only);
    let names: Vec<&str> = set.tools().iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["memory_grep", "memory_files"]);
}

#[tokio::test]
async fn limits_of_a_derived_tool_set_stay_within_those_of_its_parent() {
    let world = World::new().await;
    world.chatter(1, 150).await;
    let limits = RetrievalLimits::default()
        .set(|it| it.hits = 5)
        .set(|it| it.expand_tokens = 30);
    let tools = world.tools().with_limits(limits);
    let derived = part_of(&tools, |_| {}).await;
    let derived = derived.with_limits(RetrievalLimits::none());
    let all = GrepArgs::new("number").set(|it| it.limit = 1_000);
    assert_eq!(derived.grep(all.clone()).await.unwrap().hits.len(), 5);
    let args = ExpandArgs::new("messages:1-150").set(|it| it.token_cap = 9_999);
    assert!(derived.expand(args).await.unwrap().tokens <= 30);
}
