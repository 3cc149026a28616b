//! Control tokens of chat templates inside of texts.

use std::borrow::Cow;

/// Words that are control tokens between `<` and `>`, besides those of the forms that [`is_control`] knows.
const TAGS: [&str; 15] = [
    "s",
    "bos",
    "eos",
    "pad",
    "unk",
    "mask",
    "sop",
    "eop",
    "sep",
    "cls",
    "eod",
    "tool_call",
    "tool_response",
    // Of `<<SYS>>`, whose first `>` ends it here.
    "<SYS",
    "</SYS",
];
/// Words that are control tokens between `[` and `]`. Other words in capitals are common in logs, such as `[ERROR]`.
const BRACKETS: [&str; 11] = [
    "INST",
    "SYSTEM_PROMPT",
    "AVAILABLE_TOOLS",
    "TOOL_CALLS",
    "TOOL_RESULTS",
    "TOOL_CONTENT",
    "CALL_ID",
    "ARGS",
    "THINK",
    "gMASK",
    "sMASK",
];
/// Maximum length of a control token, in characters.
const LONGEST: usize = 48;

/// Returns a text in which no control token of a chat template is left: a space behind its first character separates
/// it, such as `< |im_start|>`, `< start_of_turn>` or `[ INST]`, and it can still be read.
///
/// A server that applies a chat template would otherwise take a token that a message quotes for a real one, which ends
/// the message and lets the quoted text speak as another role.
pub(crate) fn without_control_tokens(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    for (at, open) in text.match_indices(['<', '[']) {
        let after = at + open.len();
        let rest = text.get(after..).unwrap_or_default();
        if is_control(open, rest) {
            out.push_str(text.get(kept..after).unwrap_or_default());
            out.push(' ');
            kept = after;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(out)
}

/// Returns whether a text that begins with `open` and goes on with `rest` begins with a control token.
fn is_control(open: &str, rest: &str) -> bool {
    let close = match open {
        "<" => '>',
        _ => ']',
    };
    let Some((end, _)) = rest
        .char_indices()
        .take(LONGEST)
        .find(|(_, character)| *character == close)
    else {
        return false;
    };
    let inside = rest.get(..end).unwrap_or_default();
    // `<|im_start|>`, `<｜begin▁of▁sentence｜>`, `[|user|]`.
    let bar = |character: char| matches!(character, '|' | '｜');
    if inside.chars().count() > 2 && inside.starts_with(bar) && inside.ends_with(bar) {
        return !inside.contains(char::is_whitespace);
    }
    let name = inside.strip_prefix('/').unwrap_or(inside);
    if open == "[" {
        return BRACKETS.contains(&name);
    }
    let numbered = |name: &str, word: &str| {
        let number = name.strip_prefix(word);
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // `<start_of_turn>`, `<end_of_image>`, `<begin_of_text>`; `<unused7>`, `<extra_id_0>`.
    ["start_of_", "end_of_", "begin_of_"]
        .iter()
        .any(|begin| name.starts_with(begin))
        || numbered(name, "unused")
        || numbered(name, "extra_id_")
        || TAGS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_tokens_are_broken_and_everything_else_stays() {
        for (text, broken) in [
            ("<|im_start|>system", "< |im_start|>system"),
            (
                "a<|eot_id|><|start_header_id|>b",
                "a< |eot_id|>< |start_header_id|>b",
            ),
            ("<|START_OF_TURN_TOKEN|>", "< |START_OF_TURN_TOKEN|>"),
            ("<｜end▁of▁sentence｜>", "< ｜end▁of▁sentence｜>"),
            ("[INST] do it [/INST]", "[ INST] do it [ /INST]"),
            ("<<SYS>>x<</SYS>>", "< <SYS>>x< </SYS>>"),
            ("<start_of_turn>model", "< start_of_turn>model"),
            ("<end_of_turn>", "< end_of_turn>"),
            ("</s><s>", "< /s>< s>"),
            ("<unused42> <extra_id_0>", "< unused42> < extra_id_0>"),
            ("[|user|]", "[ |user|]"),
            ("[gMASK]<sop>", "[ gMASK]< sop>"),
            ("<tool_call></tool_call>", "< tool_call>< /tool_call>"),
            // A token in a token.
            ("<|im_<|im_end|>start|>", "< |im_< |im_end|>start|>"),
        ] {
            let found = without_control_tokens(text);
            assert_eq!(found, broken);
            assert_eq!(without_control_tokens(&found), broken, "broken once");
            assert_eq!(found.replace(' ', ""), text.replace(' ', ""));
        }
        for text in [
            "",
            "a < b | c > d",
            "if a <|> b",
            "<div> <span class=\"s\"> <strong>",
            "[ERROR] [x] [1] [INSTALL] array[ARG]",
            "Vec<String> <unused> <| a |>",
            "<message>\nhi\n</message>",
            "||<||>",
            "<",
            "日本語 <名前>",
        ] {
            assert!(
                matches!(without_control_tokens(text), Cow::Borrowed(_)),
                "{text}"
            );
        }
    }
}
