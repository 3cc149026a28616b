//! Reads a user's answers to an agent's questions from the program's text.

/// Text before questions of which a user answered only some, text before each question, and text before its answer.
pub(super) const ASKED: &str = "Questions asked:";
const ASKED_ONE: &str = "- \"";
const ASKED_ANSWER: &str = "Answer: ";
/// Text around a user's answers.
const ANSWERED: &str = "User has answered your questions: ";
const ANSWERED_END: &str = ". You can now continue with the user's answers in mind.";
/// Text between a question and its answer, between an answer and the next question, and behind an answer.
const ANSWER: &str = "\"=\"";
const NEXT: &str = ", \"";
const NOTES: &str = "\" user notes: ";
const CHOSEN: &str = "\" selected markdown:";
/// Written between a question and its answer.
const TOLD: &str = " → ";

/// Returns the user's answers, with one line for each question. The program's text around them and notes that repeat an
/// answer are left out.
pub(super) fn answers(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix(ANSWERED).unwrap_or(text);
    let text = text.strip_suffix(ANSWERED_END).unwrap_or(text);
    let mut pieces = text.split(ANSWER);
    let mut question = pieces.next().and_then(|first| first.strip_prefix('"'));
    let mut pieces = pieces.peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(asked) = question {
        let Some(piece) = pieces.next() else { break };
        let next = piece.rsplit_once(NEXT).filter(|_| pieces.peek().is_some());
        question = next.map(|(_, question)| question);
        add_answer(asked, next.map_or(piece, |(answer, _)| answer), &mut out);
    }
    if out.is_empty() {
        out.push_str(text);
    }
    out
}

/// Adds the line of a question, and the preview of its answer below it.
fn add_answer(question: &str, answer: &str, out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    // With its question mark the question would be a separate sentence.
    let question = question.split_whitespace().collect::<Vec<_>>().join(" ");
    out.push_str(question.trim_end_matches(['?', '？']));
    out.push_str(TOLD);
    if let Some((answer, notes)) = answer.split_once(NOTES) {
        let notes = notes.strip_suffix('"').unwrap_or(notes);
        out.push_str(answer);
        if notes != answer {
            out.push_str(&format!(" ({notes})"));
        }
    } else if let Some((answer, chosen)) = answer.split_once(CHOSEN) {
        out.push_str(answer);
        out.push('\n');
        out.push_str(chosen.trim());
    } else {
        out.push_str(answer.strip_suffix('"').unwrap_or(answer));
    }
}

/// Returns the answers of a user who answered some questions and wants to talk about the others. Returns `None` if the
/// user answered none.
pub(super) fn some_answers(text: &str) -> Option<String> {
    let (_, asked) = text.split_once(ASKED)?;
    let mut out = String::new();
    for one in asked.split(&format!("\n{ASKED_ONE}")).skip(1) {
        let (question, rest) = one.split_once("\"\n")?;
        let answer = rest.trim();
        add_answer(
            question,
            answer.strip_prefix(ASKED_ANSWER).unwrap_or(answer),
            &mut out,
        );
    }
    out.contains(TOLD).then_some(out)
}
