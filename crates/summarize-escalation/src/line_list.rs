//! The lines of a summary by number, and a model's choice among them.

use std::collections::BTreeSet;

use serde::Deserialize;

/// Returns the lines that have a number, with their positions among all lines: those that are not blank. The first has
/// number 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split('\n').enumerate();
    lines.filter(|(_, line)| !line.trim().is_empty())
}

/// A number as models write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(usize),
    Quoted(String),
}

/// Returns the numbers in an answer, which has one JSON list of them and perhaps words around it. `None` where there is
/// no such list, where one of the numbers is not between 1 and `most`, or where all of these are in it.
pub(crate) fn read_numbers(answer: &str, most: usize) -> Option<BTreeSet<usize>> {
    let list = answer.get(answer.find('[')?..=answer.rfind(']')?)?;
    let numbers: Vec<Number> = serde_json::from_str(list).ok()?;
    let number = |number: Number| match number {
        Number::Plain(number) => Some(number),
        Number::Quoted(text) => text.trim().parse().ok(),
    };
    let numbers = numbers.into_iter().map(number);
    let numbers: BTreeSet<usize> = numbers.collect::<Option<_>>()?;
    let known = numbers.iter().all(|number| (1..=most).contains(number));
    (known && numbers.len() < most).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_numbers_is_read_and_nothing_else() {
        let read = |answer| read_numbers(answer, 4).map(|set| set.into_iter().collect::<Vec<_>>());
        for (answer, numbers) in [
            ("[]", vec![]),
            ("[3, 1, 3]", vec![1, 3]),
            ("Leave out:\n```json\n[\"2\", 4]\n```", vec![2, 4]),
        ] {
            assert_eq!(read(answer), Some(numbers), "{answer}");
        }
        for nonsense in [
            "",
            "Lines 1 and 2.",
            "[low] goes: [1]",
            "[0]",
            "[5]",
            "[-1]",
            "[1.5]",
            "[\"one\"]",
            "[1, 2, 3, 4]",
            "][",
            "[1",
        ] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn blank_lines_have_no_number() {
        let lines: Vec<_> = numbered("a\n\n \nb\n").collect();
        assert_eq!(lines, [(0, "a"), (3, "b")]);
    }
}
