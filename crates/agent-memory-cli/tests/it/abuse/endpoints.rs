//! Model endpoints that misbehave. The program continues without the model, reports this, and loses nothing.

use super::tools::{
    SESSION, assert_same_log, command, completes, end, first_seed, home_with, start, transcript,
    undisturbed,
};
use crate::endpoint::{Answer, Endpoint, completion};
use crate::support::Ran;

const JSON: &str = "content-type: application/json\r\n";

fn status(code: u16, headers: &str, body: &str) -> Answer {
    Answer::Status(code, headers.to_owned(), body.to_owned())
}

/// Compacts with a misbehaving endpoint. The summaries are provisional extracts, and a model that answers replaces them
/// later.
fn survives(name: &str, answer: impl Fn() -> Answer + Send + Sync + 'static) -> Endpoint {
    let mut rng = fastrand::Rng::with_seed(first_seed());
    let lines = transcript(&mut rng, 300);
    let expected = undisturbed(&lines);
    let (home, file) = home_with(&lines);
    let endpoint = Endpoint::start(move |_| answer());
    let compact = [
        "--json",
        "compact",
        &file,
        "--model-timeout",
        "1",
        "--model-attempts",
        "1",
    ];
    let ran = Ran::from(end(start(command(&home, &endpoint.asked_by(&compact)))));
    assert_eq!(ran.code, 0, "{name}: {}", ran.err);
    let answer = ran.json();
    let made = &answer["summaries"];
    let made = made["leaf"].as_u64().unwrap() + made["condensed"].as_u64().unwrap();
    assert!(made > 0, "{name}: {answer}");
    assert_eq!(answer["provisional"], made, "{name}: {answer}");
    assert!(ran.err.contains("without the model"), "{name}: {}", ran.err);
    for text in [&ran.out, &ran.err] {
        assert!(!text.contains("the-key-of-the-test"), "{name}: {text}");
    }
    assert!(endpoint.count() > 0);
    assert_same_log(&home, &expected, name);
    let well = Endpoint::well();
    let answer = completes(&home, &well.asked_by(&["redo", SESSION]), name);
    assert_eq!(answer["provisional"]["left"], 0, "{name}: {answer}");
    endpoint
}

#[test]
fn refusals() {
    let error = format!(
        "{{\"error\":{{\"message\":\"no: {}\"}}}}",
        "the-key-of-the-test"
    );
    for code in [400, 401, 403, 404, 429, 500, 503] {
        let error = error.clone();
        survives(&format!("status {code}"), move || {
            status(code, JSON, &error)
        });
    }
}

#[test]
fn answers_that_are_none() {
    survives("half of an answer", || Answer::CutOff);
    survives("a closed connection", || Answer::Nothing);
    survives("no HTTP", || Answer::Noise);
    survives("half of the JSON", || {
        let text = completion("Cut off");
        status(200, JSON, &text[..text.len() / 2])
    });
    survives("a page", || {
        status(
            200,
            "content-type: text/html\r\n",
            "<html><body>Sign in</body></html>",
        )
    });
    survives("no choices", || status(200, JSON, "{\"choices\":[]}"));
    survives("an empty summary", || status(200, JSON, &completion("")));
}

#[test]
fn silence() {
    survives("silence", || Answer::Silence);
}

#[test]
fn an_answer_that_drips() {
    survives("drips", || Answer::Drip);
}

#[test]
fn a_body_without_an_end() {
    let endpoint = survives("a flood", || Answer::Flood);
    let taken = endpoint.flooded() / (1 << 20);
    let requests = endpoint.count() as u64;
    assert!(
        taken <= 64 * requests,
        "{taken} MiB taken in {requests} requests"
    );
}
