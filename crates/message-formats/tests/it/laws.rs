//! Laws that hold for any input.

use message_formats::{Formats, Head, ReadOptions, read};
use proptest::prelude::*;

/// A line that may be anything from noise to a message of any format.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let id = prop::sample::select(vec!["a", "b", "c", "d", "e"]);
    let text = prop::sample::select(vec!["hi", "", "\\u0000", "\\ud800", "job"]);
    let claude = (id.clone(), id.clone(), text.clone(), any::<bool>(), 0..5u8).prop_map(
        |(uuid, parent, text, side, shape)| {
            let (tag, content) = match shape {
                0 => ("user", format!("\"{text}\"")),
                1 => ("user", format!(r#"[{{"type":"tool_result","tool_use_id":"{parent}"}}]"#)),
                2 => (
                    "assistant",
                    format!(r#"[{{"type":"tool_use","id":"{uuid}","name":"Task","input":{{"prompt":"{text}"}}}}]"#),
                ),
                3 => ("progress", "1".to_owned()),
                _ => ("system", "[]".to_owned()),
            };
            format!(
                r#"{{"type":"{tag}","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"{parent}","isSidechain":{side},"message":{{"id":"m{parent}","content":{content}}}}}"#
            )
        },
    );
    let pi = (id.clone(), id.clone(), text.clone()).prop_map(|(id, parent, text)| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{"role":"user","content":"{text}"}}}}"#
        )
    });
    let header = id
        .clone()
        .prop_map(|id| format!(r#"{{"type":"session","id":"{id}"}}"#));
    let plain = (id, text).prop_map(|(session, text)| {
        format!(r#"{{"role":"user","content":"{text}","session":"{session}"}}"#)
    });
    prop_oneof![
        8 => claude.prop_map(String::into_bytes),
        8 => pi.prop_map(String::into_bytes),
        4 => plain.prop_map(String::into_bytes),
        1 => header.prop_map(String::into_bytes),
        1 => Just(b"{\"type\":\"summary\",\"leafUuid\":\"z\"}".to_vec()),
        1 => Just(b"{\"type\":\"new\"}".to_vec()),
        1 => Just(b"[1]".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Formats::default().detect(&Head::new(&bytes, false));
        let _ = read(bytes.as_slice(), &ReadOptions::default());
    }

    #[test]
    fn a_source_that_grows_keeps_what_it_had(
        lines in prop::collection::vec(line(), 1..24),
        at in any::<prop::sample::Index>(),
        bytes_more in 0..9usize,
    ) {
        let whole = lines.join(&b'\n');
        let cut = lines[..at.index(lines.len())].join(&b'\n').len() + bytes_more;
        let part = &whole[..cut.min(whole.len())];
        let options = ReadOptions::default();
        let (Ok(part), whole) = (read(part, &options), read(whole.as_slice(), &options)) else {
            return Ok(());
        };
        let whole = whole.unwrap();
        prop_assert_eq!(part.format, whole.format);
        for session in &part.sessions {
            let same = whole.sessions.iter().find(|other| other.key == session.key);
            prop_assert!(same.is_some(), "{:?} is gone", session.key);
            let same = same.unwrap();
            prop_assert_eq!(&same.origin, &session.origin);
            prop_assert!(same.messages.starts_with(&session.messages));
            let mut ids: Vec<_> = same.messages.iter().map(|m| m.external_id.clone()).collect();
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), same.messages.len());
        }
    }
}
