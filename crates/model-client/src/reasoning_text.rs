//! Reasoning that models write into the text of an answer.

/// Tags around it: of DeepSeek, Qwen and most others, of variants of them, of Mistral's and of ByteDance's models.
const TAGS: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
];

/// Returns the text of an answer without the reasoning before it. `None` if the answer ends inside of its reasoning.
///
/// The opening tag may be missing: many chat templates write it at the end of the prompt, so that the answer begins
/// inside. A tag in quotation marks is a word of the text.
///
/// ```
/// use model_client::without_reasoning;
///
/// assert_eq!(without_reasoning("The user asks …\n</think>\n\nIt works."), Some("It works."));
/// assert_eq!(without_reasoning("<think>The user asks"), None);
/// ```
pub fn without_reasoning(answer: &str) -> Option<&str> {
    let text = answer.trim();
    for (open, close) in TAGS {
        let inside = text.strip_prefix(open);
        let text = inside.unwrap_or(text);
        match tag(text, close) {
            None if inside.is_some() => return None,
            None => {}
            Some((start, end)) => {
                // A text about tags names the opening one first.
                let is_about = tag(text, open).is_some_and(|(first, _)| first < start);
                if inside.is_some() || !is_about {
                    return text.get(end..).map(str::trim);
                }
            }
        }
    }
    Some(text)
}

/// Returns the beginning and the end of the first tag that is not in quotation marks.
fn tag(text: &str, tag: &str) -> Option<(usize, usize)> {
    let mut places = text.match_indices(tag).map(|(at, _)| (at, at + tag.len()));
    places.find(|(start, end)| {
        let before = text.get(..*start).and_then(|text| text.chars().next_back());
        let after = text.get(*end..).and_then(|text| text.chars().next());
        before != after || !before.is_some_and(|mark| ['`', '"', '\''].contains(&mark))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_comes_after_its_reasoning() {
        for (answer, text) in [
            (" a\n", Some("a")),
            ("<think>hm</think>\n\na <think> b", Some("a <think> b")),
            ("hm, he wants a\n</think>\n\na", Some("a")),
            ("hm</think>a </think> b", Some("a </think> b")),
            ("he says \"a\"</think>b", Some("b")),
            ("it ends with `</think>`, so\n</think>a", Some("a")),
            ("<think>no `</think>` yet</think>a", Some("a")),
            ("\n[THINK]hm[/THINK]a", Some("a")),
            ("hm[/THINK] a", Some("a")),
            ("hm</thinking>a", Some("a")),
            ("hm</seed:think>a", Some("a")),
            ("hm</think>", Some("")),
            ("<think>hm", None),
            ("[THINK]hm", None),
            // Texts about tags.
            (
                "It strips <think> to </think>.",
                Some("It strips <think> to </think>."),
            ),
            ("It strips `</think>`.", Some("It strips `</think>`.")),
            ("", Some("")),
        ] {
            assert_eq!(without_reasoning(answer), text, "{answer:?}");
        }
    }
}
