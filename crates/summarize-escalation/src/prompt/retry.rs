//! Words of a prompt about the answer that was refused before.

use crate::refusal::Reason;

/// Returns the facts that the model should know about its refused answer, which it does not see; empty if no answer came.
pub(super) fn retry(reason: &Reason) -> String {
    let (what, advice) = match reason {
        Reason::Failed { .. } => return String::new(),
        Reason::Empty => (
            "it was empty".to_owned(),
            "Write the summary itself, without thinking aloud before it.",
        ),
        Reason::TooLong { tokens, limit } => (
            format!("it had {tokens} tokens, and {limit} are the most"),
            SHORTER,
        ),
        Reason::NotShorter { .. } => ("it was as long as the material".to_owned(), SHORTER),
        Reason::CutOff => (
            "it was stopped at its maximum length, before its end".to_owned(),
            SHORTER,
        ),
        Reason::Refused => (
            "it declined".to_owned(),
            "Nothing is asked of you but an account of what others said and did.",
        ),
        Reason::Filtered => (
            "a filter withheld it".to_owned(),
            "Describe in general words what may have caused this.",
        ),
        Reason::Gate {
            failures, missing, ..
        } => {
            let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
            let mut what = failures.join("; ");
            if !missing.is_empty() {
                what.push_str(&format!("; it lacked {}", missing.join(", ")));
            }
            (what, "Keep the rest of the task in mind, and mend this.")
        }
    };
    format!(
        "An earlier answer to this request, which you do not see, was refused: {what}. {advice}\n\n"
    )
}

const SHORTER: &str = "Write a shorter one: give up explanations and finished steps first, and keep requests, \
                       constraints, decisions, and the present state.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::{GateFailure, Scores};

    #[test]
    fn a_retry_says_what_was_wrong_and_what_to_do() {
        let long = retry(&Reason::TooLong {
            tokens: 900,
            limit: 600,
        });
        assert!(long.contains("it had 900 tokens, and 600 are the most. Write a shorter one"));
        let language = retry(&Reason::Gate {
            failures: vec![GateFailure::Language, GateFailure::Echo],
            missing: vec!["notes/pond.md".to_owned()],
            scores: Box::new(Scores::default()),
        });
        assert!(language.contains("it lacked notes/pond.md"), "{language}");
        assert!(
            language.contains("in another language than the conversation; "),
            "{language}"
        );
        assert!(!language.contains("shorter"));
        let failed = Reason::Failed {
            failure: None,
            message: "503".to_owned(),
            is_lasting: false,
        };
        assert_eq!(retry(&failed), "");
        for reason in [
            Reason::Empty,
            Reason::CutOff,
            Reason::Refused,
            Reason::Filtered,
        ] {
            let said = retry(&reason);
            assert!(said.starts_with("An earlier answer") && said.ends_with(".\n\n"));
            assert!(!said.to_lowercase().contains("halve"));
        }
    }
}
