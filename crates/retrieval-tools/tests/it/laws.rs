//! Paging returns all content exactly once and never exceeds the maximum of tokens, whatever is stored.

use memory_model::{
    Accounting, Child, Media, MediaSource, Message, Part, RawJson, ResultContent, Role, Seq,
    SeqRange, Summary,
};
use proptest::prelude::*;
use retrieval_tools::{ExpandArgs, ExpandedChild, Piece, Retrieval};
use token_estimate::HeuristicEstimator;

use crate::world::{Counts, Set, World, child, expanded};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z ~\n\\\\\"é緑😀\u{fffc}]{0,40}",
        1 => "[a-z緑]{100,400}",
    ]
}

fn media() -> impl Strategy<Value = Media> {
    (any::<bool>(), "[A-Za-z]{0,40}").prop_map(|(data, text)| Media {
        media_type: "image/png".to_owned(),
        source: match data {
            true => MediaSource::Data(text),
            false => MediaSource::Url(text),
        },
    })
}

fn raw() -> impl Strategy<Value = RawJson> {
    text().prop_map(|text| {
        let text = serde_json::to_string(&text).unwrap();
        RawJson::parse(format!(r#"{{"k":1.00,"k":{text}}}"#)).unwrap()
    })
}

fn part() -> impl Strategy<Value = Part> {
    let leaf = prop_oneof![
        4 => text().prop_map(Part::text),
        1 => (text(), proptest::option::of("[a-z]{0,5}"))
            .prop_map(|(text, signature)| Part::Reasoning { text, signature }),
        2 => raw().prop_map(|arguments| Part::ToolCall {
            id: "c".to_owned(),
            name: "read".to_owned(),
            arguments,
        }),
        2 => text().prop_map(|text| Part::ToolResult {
            call_id: "c".to_owned(),
            content: ResultContent::Text(text),
            is_error: None,
        }),
        1 => media().prop_map(Part::Image),
        1 => media().prop_map(Part::File),
        1 => raw().prop_map(|raw| Part::Unknown { raw }),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        proptest::collection::vec(inner, 0..3).prop_map(|parts| Part::ToolResult {
            call_id: "list".to_owned(),
            content: ResultContent::Parts(parts),
            is_error: Some(false),
        })
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool)];
    (role, proptest::collection::vec(part(), 0..4))
        .prop_map(|(role, parts)| Message::new(role, parts))
}

/// Returns the parts of a message that an answer can contain. Images and files with more tokens than the maximum have
/// no data.
fn possible(parts: &[Part], role: Role, counts: &Counts, cap: u64) -> Vec<Part> {
    let mut parts = parts.to_vec();
    for part in &mut parts {
        let alone = Message::new(role, vec![part.clone()]);
        match part {
            Part::Image(media) | Part::File(media) if counts.message(&alone) > cap => {
                if let MediaSource::Data(data) = &mut media.source {
                    data.clear();
                }
            }
            Part::ToolResult {
                content: ResultContent::Parts(inner),
                ..
            } => *inner = possible(inner, role, counts, cap),
            _ => {}
        }
    }
    parts
}

/// Appends a piece to the parts from earlier pieces.
fn join(all: &mut Vec<Part>, new: &[Part], path: &[usize], at: usize, open: bool) {
    let Some((first, rest)) = new.split_first() else {
        return;
    };
    if path[0] < all.len() {
        let open = open && rest.is_empty();
        glue(all.last_mut().unwrap(), first, &path[1..], at, open);
        all.extend_from_slice(rest);
    } else {
        assert_eq!((path[0], at), (all.len(), 0));
        all.extend_from_slice(new);
    }
}

fn glue(before: &mut Part, after: &Part, path: &[usize], at: usize, open: bool) {
    use MediaSource::Url;
    use ResultContent::{Parts, Text};
    match (before, after) {
        (Part::Text { text }, Part::Text { text: more }) => text.push_str(more),
        (
            Part::Reasoning { text, signature },
            Part::Reasoning {
                text: more,
                signature: end,
            },
        ) => {
            assert_eq!(*signature, None, "a signature goes with the end");
            text.push_str(more);
            signature.clone_from(end);
        }
        (
            Part::ToolCall { arguments: raw, .. },
            Part::ToolCall {
                arguments: more, ..
            },
        )
        | (Part::Unknown { raw }, Part::Unknown { raw: more }) => {
            let string = |raw: &RawJson| serde_json::from_str::<String>(raw.as_str()).unwrap();
            let both = string(raw) + &string(more);
            *raw = match open {
                true => RawJson::from_value(&both).unwrap(),
                false => RawJson::parse(both).unwrap(),
            };
        }
        (Part::ToolResult { content, .. }, Part::ToolResult { content: more, .. }) => {
            match (content, more) {
                (Text(text), Text(more)) => text.push_str(more),
                (Parts(list), Parts(more)) => join(list, more, path, at, open),
                other => panic!("cannot join {other:?}"),
            }
        }
        (Part::Image(a), Part::Image(b)) | (Part::File(a), Part::File(b)) => {
            match (&mut a.source, &b.source) {
                (Url(text), Url(more)) => text.push_str(more),
                other => panic!("media are never cut: {other:?}"),
            }
        }
        other => panic!("cannot join {other:?}"),
    }
}

/// All content from paging through a target: messages, and summaries with their texts.
#[derive(Default)]
struct Read {
    messages: Vec<(Seq, Vec<Part>)>,
    summaries: Vec<(String, String)>,
}

async fn page_through(tools: &Retrieval, what: &str, cap: u64) -> Read {
    let mut read = Read::default();
    let args = ExpandArgs::new(what).set(|it| it.token_cap = cap);
    for answer in expanded(tools, args).await {
        assert!(answer.tokens <= cap, "{} > {cap}", answer.tokens);
        let mut sum = 0;
        for child in &answer.children {
            match child {
                ExpandedChild::Message(message) => {
                    sum += message.tokens;
                    let begins = message.piece.as_ref().is_none_or(|p| p.offset == 0);
                    match (begins, read.messages.last_mut()) {
                        (true, _) => read.messages.push((message.seq, message.parts.clone())),
                        (false, Some((seq, parts))) => {
                            assert_eq!(*seq, message.seq);
                            let Piece { path, at, open, .. } = message.piece.as_ref().unwrap();
                            join(parts, &message.parts, path, *at, *open);
                        }
                        (false, None) => panic!("a piece without a beginning"),
                    }
                }
                ExpandedChild::Summary(summary) => {
                    sum += summary.tokens;
                    let begins = summary.piece.as_ref().is_none_or(|p| p.offset == 0);
                    match (begins, read.summaries.last_mut()) {
                        (false, Some((_, text))) => text.push_str(&summary.content),
                        _ => read
                            .summaries
                            .push((summary.summary_id.to_string(), summary.content.clone())),
                    }
                }
            }
        }
        assert_eq!(sum, answer.tokens);
    }
    read
}

/// Returns all messages under a summary.
async fn unfold(world: &World, summary: &Summary, cap: u64) -> Vec<(Seq, Vec<Part>)> {
    let read = page_through(&world.tools(), summary.id.as_str(), cap).await;
    let mut all = read.messages;
    for (id, text) in read.summaries {
        let id = memory_model::SummaryId::new(id);
        let found =
            memory_store::Store::summaries(&*world.store, world.chat, std::slice::from_ref(&id))
                .await;
        let found = found.unwrap().remove(0).unwrap();
        assert_eq!(found.text(), text);
        all.extend(Box::pin(unfold(world, &found, cap)).await);
    }
    all.sort_by_key(|(seq, _)| *seq);
    all
}

async fn check(
    messages: Vec<Message>,
    cuts: Vec<(usize, bool)>,
    preset: HeuristicEstimator,
    cap: u64,
) {
    let world = World::counting(preset).await;
    let counts = Counts(preset);
    let total = messages.len() as u32;
    world.say(messages.clone()).await;
    // Random leaf summaries and ranges of messages, then a summary of all of them except the last, and a summary of
    // that one and the rest.
    let mut children = Vec::new();
    let mut next = 1;
    for (index, (len, leaf)) in cuts.into_iter().enumerate() {
        let last = (next + len as u32).min(total);
        let Some(range) = SeqRange::new(Seq(next), Seq(last)) else {
            break;
        };
        if leaf || index == 0 {
            let text = format!("summary {index} {}", "long text 緑 ".repeat(index * 7));
            children.push(child(&world.leaf(range, &text).await));
        } else {
            // The view merges neighbouring ranges of messages.
            match children.last_mut() {
                Some(Child::Messages { range: before }) => {
                    *before = SeqRange::new(before.first, range.last).unwrap();
                }
                _ => children.push(Child::Messages { range }),
            }
        }
        next = last + 1;
    }
    let tail = children.split_off(children.len().min(2));
    let lower = world.summarize(children, "the lower node").await;
    let mut upper = vec![child(&lower)];
    upper.extend(tail);
    // The last range of messages ends inside the last span of the view, which a publication may cut.
    let top = world.summarize(upper, "the upper node").await;

    let covered: Vec<(Seq, Vec<Part>)> = (top.range.first.0..=top.range.last.0)
        .map(|seq| {
            let message = &messages[seq as usize - 1];
            (
                Seq(seq),
                possible(&message.parts, message.role, &counts, cap),
            )
        })
        .collect();
    assert_eq!(unfold(&world, &top, cap).await, covered);
    let pointer = format!("messages:1-{}", top.range.last);
    let read = page_through(&world.tools(), &pointer, cap).await;
    assert_eq!(read.messages, covered);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn paging_reaches_everything_once_and_keeps_the_cap(
        messages in proptest::collection::vec(message(), 3..14),
        cuts in proptest::collection::vec((0usize..4, any::<bool>()), 3..8),
        preset in proptest::sample::select(HeuristicEstimator::ALL.to_vec()),
        cap in prop_oneof![1u64..12, 12u64..150, 1150u64..2600],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(messages, cuts, preset, cap));
    }
}
