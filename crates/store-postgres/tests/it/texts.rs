//! Tests that any text is stored and comes back, also one that PostgreSQL cannot store as it is.

use memory_model::{Message, RawJson, SessionKey, Timestamp};
use memory_store::{ConversationPatch, ConversationRef, NewConversation, Origin, Store as _};
use store_conformance::{Chat, Fixture as _, new_conversation, range, sound};

use crate::common::{Schemas, schemas};

/// Returns texts with characters of every plane, and with those that have to be escaped. No two are equal, also if a
/// character is lost or changed into another one.
fn odd_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        "\0",
        "\0\0",
        "\u{1}",
        "\u{1}0",
        "\u{1}1",
        "\u{1}\u{1}",
        "\0\u{1}",
        "\u{1}\0",
        "0",
        "1",
        "a\0b",
        "a\u{1}0b",
        "ab",
        "\\0",
        "\\x00",
        "'; drop table message; --",
        "$1 %s ? \u{7f} \u{80} \u{9f}",
        "é",
        "e\u{301}",
        "\u{feff}\u{200b}\u{202e}",
        " \t\r\n\u{b}\u{c} ",
    ]
    .map(str::to_owned)
    .into();
    for plane in 0..=16_u32 {
        let of_plane = [0x0041, 0x1234, 0xd7ff, 0xe000, 0xfffd, 0xfffe, 0xffff];
        let chars = of_plane.map(|low| char::from_u32(plane << 16 | low).unwrap());
        texts.push(chars.iter().collect());
    }
    texts
}

/// Returns a JSON object with escapes of NUL, U+0001, a pair of surrogates and lone ones. They come back as they were.
fn odd_json(n: usize) -> RawJson {
    let json =
        format!(r#"{{"n":{n},"\u0000":"\u0000\u0001\ud83d\ude00\ud800 \udfff é","at": 1.50e+2 }}"#);
    RawJson::parse(&json).unwrap()
}

async fn comes_back(schemas: Schemas) {
    let (_url, store) = schemas.store().await;
    let texts = odd_texts();
    let mut ids = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let new = NewConversation {
            title: Some(format!("title {text}")),
            meta: Some(odd_json(n)),
            ..new_conversation(&format!("key {text}"), Origin::Root)
        };
        let chat = Chat::open(&store, &new).await;
        let message = Message::user(text.clone())
            .with_name(format!("name {text}"))
            .with_external_id(format!("id {text}"))
            .with_meta(odd_json(n));
        let long = Message::assistant(text.repeat(1 + 5_000 / (1 + text.len())));
        chat.append([message, long]).await;
        chat.show_leaf(
            &format!("view {text}"),
            range(1, 2),
            &format!("summary {text}"),
        )
        .await;
        let (key, value) = (format!("state {text}"), odd_json(n));
        let put = store.put_state(chat.id, &key, 0, Some(&value)).await;
        put.unwrap();
        ids.push(chat.id);
    }
    sound(&store).await;
    // A store that remembers nothing of it.
    let store = schemas.reopen(store).await;
    for ((n, text), id) in texts.iter().enumerate().zip(ids) {
        let key = SessionKey::from(format!("key {text}"));
        let found = store.conversation(&ConversationRef::Key(key.clone())).await;
        let found = found.unwrap().expect("the key is found");
        assert_eq!((found.id, &found.key), (id, &key));
        assert_eq!(found.title, Some(format!("title {text}")));
        assert_eq!(found.meta, Some(odd_json(n)));
        let chat = Chat::root(&store, &format!("key {text}")).await;
        assert_eq!(chat.id, id, "{text:?} opens the same conversation");
        let entries = chat.entries().await;
        let said = &entries[0].message;
        assert_eq!(said.text(), *text);
        assert_eq!(said.name, Some(format!("name {text}")));
        assert_eq!(said.external_id, Some(format!("id {text}")));
        assert_eq!(said.meta, Some(odd_json(n)));
        assert_eq!(entries[1].text(), text.repeat(1 + 5_000 / (1 + text.len())));
        let seqs = chat
            .find(&[format!("id {text}"), format!("id {text}0")])
            .await;
        assert_eq!(seqs, [Some(entries[0].seq), None], "{text:?}");
        let views = chat.views().await;
        assert_eq!(views.len(), 1);
        assert_eq!(views[0].name.as_str(), format!("view {text}"));
        assert_eq!(chat.spans(&format!("view {text}")).await.len(), 2);
        assert_eq!(
            chat.summary_log().await[0].text(),
            format!("summary {text}")
        );
        let state = store.state(id, &format!("state {text}")).await.unwrap();
        assert_eq!(state.map(|state| state.value), Some(odd_json(n)));
        let patch = ConversationPatch {
            title: Some(text.clone()),
            ..ConversationPatch::default()
        };
        let renamed = store.update(id, &patch, Timestamp(9)).await.unwrap();
        assert_eq!(renamed.title.as_ref(), Some(text));
    }
    sound(&store).await;
}

#[tokio::test]
async fn every_text_comes_back_and_is_found_again() {
    comes_back(schemas!()).await;
}
