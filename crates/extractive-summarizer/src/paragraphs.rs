//! Joins the lines of paragraphs that were wrapped by hand or by a mail program.

use std::borrow::Cow;

/// Minimum and maximum length of the lines of a paragraph that was wrapped by hand or by a mail program, in characters.
const WRAPPED: std::ops::RangeInclusive<usize> = 40..=100;

/// Returns a text with each hard-wrapped paragraph on one line. Lines count as wrapped if each is full: the first word
/// of the next line would not have fitted.
pub(crate) fn unwrapped(text: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<Cow<'_, str>> = Vec::with_capacity(lines.len());
    let longest = longest(&lines);
    let (mut at, mut code, mut changed) = (0, false, false);
    while let (Some(line), Some(most)) = (lines.get(at), longest.get(at)) {
        code ^= line.trim_start().starts_with("```");
        let rest = lines.get(at..).unwrap_or_default();
        let end = if code { 1 } else { paragraph(rest, *most) };
        if end > 1 {
            changed = true;
            let words = rest.iter().take(end).map(|line| line.trim());
            out.push(Cow::Owned(words.collect::<Vec<_>>().join(" ")));
        } else {
            out.push(Cow::Borrowed(line));
        }
        at += end;
    }
    match changed {
        true => Cow::Owned(out.join("\n")),
        false => Cow::Borrowed(text),
    }
}

/// Returns whether a line may belong to a wrapped paragraph.
fn is_plain(line: &str) -> bool {
    let begins = line.trim_start().chars().next();
    begins.is_some_and(|c| {
        c.is_alphanumeric() || matches!(c, '"' | '\'' | '(' | '“' | '«' | '¿' | '¡')
    }) && !line.starts_with(['\t', ' '])
}

fn length(line: &str) -> usize {
    line.trim_end().chars().count()
}

/// Returns for each line the length of the longest line from it to the end of its run of plain lines; 0 for another line.
fn longest(lines: &[&str]) -> Vec<usize> {
    let mut longest = vec![0; lines.len()];
    let mut most = 0;
    for (line, longest) in lines.iter().zip(&mut longest).rev() {
        most = match is_plain(line) {
            true => most.max(length(line)),
            false => 0,
        };
        *longest = most;
    }
    longest
}

/// Returns the number of lines of the wrapped paragraph at the start of `lines`; 1 if there is none. `most` is the length
/// of the longest line in the run of plain lines.
fn paragraph(lines: &[&str], most: usize) -> usize {
    if !WRAPPED.contains(&most) {
        return 1;
    }
    let full = |pair: &&[&str]| match pair {
        [line, next] => {
            let word = next.split_whitespace().next().unwrap_or("");
            let numbered =
                word.ends_with(['.', ')', ':']) && word.starts_with(|c: char| c.is_ascii_digit());
            let length = length(line);
            let is_full = length >= *WRAPPED.start() && length + 1 + word.chars().count() > most;
            is_plain(next) && !numbered && is_full
        }
        _ => false,
    };
    1 + lines.windows(2).take_while(full).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    /// Joins the lines of wrapped paragraphs, with a look at all later lines for each line.
    fn unwrapped_by_looking_again(text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let (mut out, mut at, mut code) = (Vec::new(), 0, false);
        while at < lines.len() {
            code ^= lines[at].trim_start().starts_with("```");
            let run: Vec<&str> = lines[at..]
                .iter()
                .copied()
                .take_while(|line| is_plain(line))
                .collect();
            let most = run.iter().map(|line| length(line)).max().unwrap_or(0);
            let is_full = |pair: &&[&str]| {
                let word = pair[1].split_whitespace().next().unwrap_or("");
                let is_numbered = word.ends_with(['.', ')', ':'])
                    && word.starts_with(|c: char| c.is_ascii_digit());
                !is_numbered
                    && length(pair[0]) >= 40
                    && length(pair[0]) + 1 + word.chars().count() > most
            };
            let more = run.windows(2).take_while(is_full).count();
            let end = match !code && (40..=100).contains(&most) {
                true => 1 + more,
                false => 1,
            };
            match end {
                1 => out.push(lines[at].to_owned()),
                _ => out.push(
                    lines[at..at + end]
                        .iter()
                        .map(|line| line.trim())
                        .collect::<Vec<_>>()
                        .join(" "),
                ),
            }
            at += end;
        }
        match out.len() == lines.len() {
            true => text.to_owned(),
            false => out.join("\n"),
        }
    }

    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-z]{1,9}( [a-z]{1,9}){6,16}",
            1 => "[a-zé(]{1,9} [a-z]{1,9}",
            1 => Just(String::new()),
            1 => Just("```".to_owned()),
            1 => "[ \t*#-][a-z ]{30,90}",
            1 => "[0-9]\\. [a-z ]{30,90}",
            1 => "[a-z ]{95,110}",
        ]
    }

    proptest! {
        #[test]
        fn paragraphs_are_the_same_in_one_pass(lines in proptest::collection::vec(line(), 0..40)) {
            let text = lines.join("\n");
            prop_assert_eq!(unwrapped(&text).into_owned(), unwrapped_by_looking_again(&text));
        }
    }

    /// With a look at all later lines for each line, this takes hours.
    #[test]
    fn paragraphs_of_a_long_text_are_found() {
        let line = "a log line of thirty-six characters.\n";
        assert!(matches!(unwrapped(&line.repeat(500_000)), Cow::Borrowed(_)));
        let wrapped = "each of these lines is as long as the others are\n".repeat(500_000);
        assert_eq!(unwrapped(&wrapped).lines().count(), 1);
    }

    #[test]
    fn wrapped_paragraphs_are_one_line_and_lists_stay() {
        let mail = "Hello all,\n\nthe machine db-7 was rebooted at night because the kernel had been\n\
                    updated, and two of the jobs did not come back up. Please look at\nthem today.\n\n\
                    - restart the importer\n- check the queue\nThanks\nAda";
        assert_eq!(
            unwrapped(mail),
            "Hello all,\n\nthe machine db-7 was rebooted at night because the kernel had been updated, and \
             two of the jobs did not come back up. Please look at them today.\n\n- restart the importer\n\
             - check the queue\nThanks\nAda"
        );
        let short = "Keep the name.\nKeep the order.\nNever skip a step of the procedure that is written down.";
        assert_eq!(unwrapped(short), short);
        let code = "```\nlet a_name_of_some_length = other_name_of_some_length;\nlet b_name_of_some_length = other;\n```";
        assert_eq!(unwrapped(code), code);
    }
}
