//! Users' words that a later message says anew: the earlier one names the later.

use std::collections::BTreeSet;

use memory_model::Seq;

use crate::item::{Item, Kind, TYPED};

/// Number of the newest typed messages that are compared.
const COMPARED: usize = 200;
/// Maximum length of a message that is compared, in bytes: a longer one says many things.
const LENGTH: usize = 400;
/// Minimum number of words that two messages about the same thing share.
const SHARED: usize = 2;

/// Notes at each typed message which later one says something else about the same thing: it has most of its
/// words, and at least one other.
pub(crate) fn mark(items: &mut [Item]) {
    let typed = items.iter().enumerate().rev().filter(|(_, item)| {
        item.kind == Kind::User && item.weight >= TYPED && item.bytes() <= LENGTH
    });
    let typed: Vec<(usize, Seq, BTreeSet<String>)> = typed
        .take(COMPARED)
        .map(|(at, item)| (at, item.range.first, words(&item.lines.join(" "))))
        .collect();
    for (n, (at, _, earlier)) in typed.iter().enumerate() {
        let mut alike = typed.iter().take(n).filter(|(_, _, later)| {
            let shared = earlier.intersection(later).count();
            shared >= SHARED && shared * 5 >= earlier.len() * 3 && later.len() > shared
        });
        // Many messages that are alike are a list, and none corrects another.
        let newest = alike.next();
        if let (Some((_, seq, _)), Some(item)) = (newest, items.get_mut(*at))
            && alike.nth(1).is_none()
        {
            item.later = Some(*seq);
        }
    }
}

/// Telling words of a text: words of four letters and more, numbers, and pairs of characters in scripts without
/// spaces.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
        let wide = |c: &char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}');
        if chars.iter().any(wide) {
            words.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if chars.len() >= 4 || chars.iter().any(|c| c.is_numeric()) {
            words.insert(chars.into_iter().collect());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use memory_model::SeqRange;

    use super::*;

    fn marked(texts: &[&str]) -> Vec<Option<u32>> {
        let items = texts.iter().zip(1..).map(|(text, seq)| {
            let range = SeqRange::single(Seq(seq));
            Item::new(range, Kind::User, "User", TYPED).with_lines(vec![(*text).to_owned()])
        });
        let mut items: Vec<Item> = items.collect();
        mark(&mut items);
        items
            .iter()
            .map(|item| item.later.map(|seq| seq.0))
            .collect()
    }

    #[test]
    fn a_later_message_about_the_same_thing_is_named() {
        let said = [
            "The server listens on port 8080.",
            "Write the release notes.",
            "No, the server listens on port 9090 from now on.",
        ];
        assert_eq!(marked(&said), [Some(3), None, None]);
        let said = [
            "サーバーのポートは8080です。",
            "サーバーのポートは9090に変更してください。",
        ];
        assert_eq!(marked(&said), [Some(2), None]);
    }

    #[test]
    fn a_list_of_rules_corrects_nothing() {
        let rules: Vec<String> = (0..9)
            .map(|n| format!("Rule {n}: never change module number {n} alone."))
            .collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let marked = marked(&rules);
        assert!(marked.iter().take(6).all(Option::is_none), "{marked:?}");
    }

    #[test]
    fn what_is_repeated_or_only_shares_a_word_is_none() {
        assert_eq!(
            marked(&["Keep commits small.", "Keep commits small."]),
            [None, None]
        );
        assert_eq!(
            marked(&["Deploy the importer today.", "Is the importer green?"]),
            [None, None]
        );
    }
}
