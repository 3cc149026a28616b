//! Output for a model that fails or gives answers that are rejected.

use serde_json::{Value, json};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::providers::{Writer, completion, run, server};
use crate::support::{Home, fixture, is, tells, words};

/// Returns the lines on stderr with the number of summaries that no model wrote.
fn told(err: &str) -> Vec<&str> {
    let tells =
        |line: &&str| line.contains("written without the model") || line.contains("not made");
    err.lines().filter(tells).collect()
}

/// Compacts a fixture with a model that gives this answer to every request.
async fn compact(answer: impl Respond + 'static) -> (Home, MockServer, Value, String) {
    let home = Home::new();
    let server = server(answer).await;
    let url = format!("{}/v1", server.uri());
    let file = fixture("claude-code/release-week");
    let model = ["--summarizer", "openai:m", "--base-url", &url];
    let ran = run(&home, &[&["--json", "compact", &file][..], &model].concat()).ended(0);
    let answer = ran.json();
    (home, server, answer, ran.err)
}

#[tokio::test]
async fn refused_answers_are_reported_with_their_rule() {
    let (_home, _server, answer, err) =
        compact(completion("Work went on, and well.", "stop")).await;
    let refused = answer["provisional"].as_u64().unwrap();
    assert!(refused > 0);
    let told = told(&err);
    assert_eq!(told.len(), 1, "{err}");
    assert!(told[0].starts_with(&format!("{refused} of ")), "{err}");
    assert!(told[0].contains("refused by rule"), "{err}");
    assert!(
        told[0].contains("`identifiers`") || told[0].contains("`paths`"),
        "{err}"
    );
    assert!(told[0].contains("redo --summarizer openai:m"), "{err}");
    let model = &answer["model"];
    assert_eq!(model["without_model"], refused, "{model}");
    let causes = model["causes"].as_array().unwrap();
    let counts = causes
        .iter()
        .map(|cause| cause["summaries"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), refused, "{model}");
    assert_eq!(causes[0]["kind"], "gate", "{model}");
    assert!(
        !causes[0]["rules"].as_array().unwrap().is_empty(),
        "{model}"
    );
}

#[tokio::test]
async fn a_refused_key_is_reported_on_one_line_with_the_next_step() {
    let (_home, _server, answer, err) = compact(ResponseTemplate::new(401)).await;
    let without = answer["provisional"].as_u64().unwrap();
    let told = told(&err);
    assert_eq!(told.len(), 1, "{err}");
    assert!(
        told[0].starts_with(&format!("{without} of {without} summaries")),
        "{err}"
    );
    assert!(
        told[0].contains("× auth") && told[0].contains("401"),
        "{err}"
    );
    assert!(told[0].contains("check the key"), "{err}");
    assert!(told[0].contains("redo --summarizer openai:m"), "{err}");
    assert_eq!(answer["model"]["asked"], without);
}

#[tokio::test]
async fn the_printed_redo_has_the_options_of_the_run() {
    let home = Home::new();
    let server = server(ResponseTemplate::new(401)).await;
    let url = format!("{}/v1", server.uri());
    let file = fixture("claude-code/release-week");
    let options = [
        "--summarizer",
        "openai:m",
        "--base-url",
        &url,
        "--api-key",
        "given-on-the-line",
        "--instructions",
        "Keep the plan's dates.",
        "--prompts",
        "checkpoint",
        "--min-retained",
        "0.25",
        "--model-timeout",
        "7",
        "--model-attempts",
        "2",
        "--wait",
        "30",
        "--reasoning",
        "low",
    ];
    let expected = format!(
        "redo --summarizer openai:m --base-url {url} --instructions 'Keep the plan'\\''s dates.' --prompts checkpoint \
         --min-retained 0.25 --model-timeout 7 --model-attempts 2 --wait 30 --reasoning low"
    );
    let ran = run(
        &home,
        &[&["--json", "compact", &file][..], &options].concat(),
    )
    .ended(0);
    let lines = told(&ran.err);
    assert!(lines[0].contains(&expected), "{}", ran.err);
    assert!(!ran.err.contains("given-on-the-line"), "{}", ran.err);
    let session = home.session();
    let limited = ["--json", "redo", &session, "--max-calls", "9"];
    let ran = run(&home, &[&limited[..], &options].concat()).ended(1);
    let expected = format!("{expected} --max-calls 9 {session}");
    assert!(told(&ran.err)[0].ends_with(&expected), "{}", ran.err);
}

#[tokio::test]
async fn a_run_waits_for_a_model_that_fails_for_the_moment() {
    for waits in [false, true] {
        let home = Home::new();
        let server = server(Writer("Goal: ship the release. Kept: the plan.", 10)).await;
        let busy = Mock::given(wiremock::matchers::method("POST"));
        let busy = busy.respond_with(ResponseTemplate::new(503));
        busy.up_to_n_times(2).with_priority(1).mount(&server).await;
        let url = format!("{}/v1", server.uri());
        let file = fixture("claude-code/release-week");
        let wait = if waits { " --wait 600" } else { "" };
        let command = format!(
            "--json compact {file} --summarizer openai:m --base-url {url} --model-attempts 1{wait}"
        );
        let ran = run(&home, &words(&command)).ended(0);
        let answer = ran.json();
        let without = answer["provisional"].as_u64().unwrap();
        assert_eq!(without == 0, waits, "{answer} {}", ran.err);
        assert_eq!(answer["model"]["not_made"], 0, "{answer}");
        if waits {
            continue;
        }
        // Later runs name what is to be done, and redo does it.
        let session = answer["session"].as_str().unwrap();
        let ran = home.ok(&["--json", "compact", session]);
        assert_eq!(ran.json()["stop_reason"], "waits_for_model", "{}", ran.out);
        ran.says("redo --summarizer PROVIDER:MODEL");
        let plan = home.ok(&["redo", session, "--dry-run"]);
        plan.shows("written without a model (");
        assert_eq!(
            redo(&home, &server, session, "9").ended(0).json()["stop_reason"],
            "done"
        );
    }
}

#[tokio::test]
async fn a_summary_that_should_not_have_been_accepted_is_made_anew() {
    let (home, _server, answer, _) = compact(Writer("All is well.", 10)).await;
    let session = answer["session"].as_str().unwrap();
    let bad = answer["summary"].as_str().unwrap();
    let better = server(Writer("Goal: ship the release. Kept: the plan.", 10)).await;
    let url = format!("{}/v1", better.uri());
    let again = |id: &str, more: &[&str]| {
        let words = [
            "redo",
            session,
            "--again",
            id,
            "--summarizer",
            "openai:m",
            "--base-url",
            &url,
        ];
        run(&home, &[&["--json"], &words[..], more].concat())
    };
    let plan = again(bad, &["--dry-run"]).ended(0).json();
    is(
        &plan["plan"]["nodes"],
        json!([{"id": bad, "rejected": true, "provisional": false}]),
    );
    assert_eq!(plan["provisional"]["found"], 1);
    let redone = again(bad, &[]).ended(0).json();
    assert_eq!(
        redone["provisional"],
        json!({"found": 1, "redone": 1, "left": 0})
    );
    assert_eq!(redone["replaced"][0]["old"], bad);
    let new = redone["replaced"][0]["new"].as_str().unwrap();
    let text = |id: &str| home.json(&["describe", session, id])["content"].clone();
    tells(&text(new), "ship the release");
    tells(&text(bad), "All is well");
    // It is in the view no more.
    let ran = again(bad, &[]).ended(3);
    tells(&ran.error()["message"], bad);
    again(new, &["--extracts"]).ended(2);
}

#[tokio::test]
async fn a_model_that_writes_everything_is_not_mentioned() {
    let (_home, _server, answer, err) = compact(Writer("All is well.", 10)).await;
    assert_eq!(answer["provisional"], 0, "{err}");
    assert_eq!(told(&err), [""; 0], "{err}");
    is(&answer["model"], json!({"without_model": 0, "causes": []}));
}

/// Returns a session in which all summaries were written without a model, and their number.
async fn provisional() -> (Home, String, u64) {
    let (home, _down, answer, _) = compact(ResponseTemplate::new(401)).await;
    let session = answer["session"].as_str().unwrap().to_owned();
    (home, session, answer["provisional"].as_u64().unwrap())
}

/// Runs `redo` with a limit on calls.
fn redo(home: &Home, server: &MockServer, session: &str, calls: &str) -> crate::support::Ran {
    let url = format!("{}/v1", server.uri());
    let model = ["--summarizer", "openai:m", "--base-url", &url];
    let limited = ["--json", "redo", session, "--max-calls", calls];
    run(home, &[&limited[..], &model].concat())
}

#[tokio::test]
async fn redo_with_one_call_at_a_time_ends() {
    let (home, session, all) = provisional().await;
    let server = server(Writer("Goal: ship the release. Kept: the plan.", 10)).await;
    let mut runs = 0;
    loop {
        let before = server.received_requests().await.unwrap().len();
        let ran = redo(&home, &server, &session, "1");
        let calls = server.received_requests().await.unwrap().len() - before;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let answer = ran.json();
        assert_eq!(answer["calls"], calls);
        runs += 1;
        if answer["stop_reason"] == "done" {
            assert_eq!(answer["provisional"]["left"], 0);
            break;
        }
        assert_eq!(
            (calls, &answer["written"]),
            (1, &Value::from(1)),
            "{answer}"
        );
        assert!(runs <= all, "{answer}");
    }
    assert_eq!(server.received_requests().await.unwrap().len() as u64, all);
}

/// A model that refuses sources with the key phrase in every style, and summarizes all others correctly.
struct Picky(String);

impl Respond for Picky {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        match String::from_utf8_lossy(&request.body).contains(&self.0) {
            true => completion("Work went on, and well.", "stop"),
            false => Writer("Goal: ship the release. Kept: the plan.", 10).respond(request),
        }
    }
}

#[tokio::test]
async fn a_refused_summary_waits_until_the_others_are_redone() {
    let (home, session, all) = provisional().await;
    // A user's words in the source of the first leaf.
    let plan = home.json(&["redo", &session, "--dry-run"]);
    let nodes = plan["plan"]["nodes"].as_array().unwrap();
    let leaf = nodes.iter().find(|node| node["depth"] == 0).unwrap();
    let log = home.ok(&["export", &session]).out;
    let entries = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let phrase = entries
        .filter(|entry| entry["seq"].as_u64() >= leaf["range"]["first"].as_u64())
        .find_map(|entry| {
            let text = entry["parts"][0]["text"]
                .as_str()
                .filter(|_| entry["role"] == "user")?;
            let plain = |c: &char| c.is_ascii_alphanumeric() || *c == ' ';
            let phrase: String = text.chars().take_while(plain).collect();
            (phrase.len() > 20).then_some(phrase)
        })
        .unwrap();
    let server = MockServer::start().await;
    Mock::given(wiremock::matchers::method("POST"))
        .respond_with(Picky(phrase.clone()))
        .mount(&server)
        .await;
    let leaves = nodes.iter().filter(|node| node["depth"] == 0).count() as u64;
    let (mut written, mut in_vain) = (0, 0);
    for _ in 0..2 * all {
        let before = server.received_requests().await.unwrap().len();
        let ran = redo(&home, &server, &session, "2");
        let answer = ran.json();
        let requests = server.received_requests().await.unwrap();
        let asked = requests.len() - before;
        assert!((1..=2).contains(&asked), "{answer}");
        let progress = answer["written"].as_u64().unwrap() > 0
            || !answer["replaced"].as_array().unwrap().is_empty();
        // Progress, or a reason and a code that is not zero.
        assert!(progress || ran.code != 0, "{answer} {}", ran.err);
        if ran.code != 0 {
            let error = ran.error();
            tells(&error["message"], "refused by rule");
        }
        // While there are others to write, no two runs in a row are in vain.
        if written < leaves - 1 {
            in_vain = if progress { 0 } else { in_vain + 1 };
            assert!(in_vain < 2, "{answer}");
        }
        written += answer["written"].as_u64().unwrap();
    }
    assert!(written >= leaves - 1, "{written} of {leaves}");
    let requests = server.received_requests().await.unwrap();
    let bodies = requests
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body));
    let refused = bodies.filter(|body| body.contains(&phrase)).count();
    assert!(refused > 2, "it has its turn again: {refused}");
}

#[tokio::test]
async fn a_limit_that_is_too_small_for_one_summary_is_an_error() {
    let (home, session, _) = provisional().await;
    let server = server(Writer("Goal: ship the release.", 10)).await;
    redo(&home, &server, &session, "0").ended(2);
    assert_eq!(server.received_requests().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_wait_for_the_model_is_reported_without_a_terminal_too() {
    let home = Home::new();
    let server = server(ResponseTemplate::new(503)).await;
    let url = format!("{}/v1", server.uri());
    let ran = run(
        &home,
        &words(&format!(
            "compact {} --summarizer openai:m --base-url {url} --model-attempts 2 --model-timeout 5",
            fixture("claude-code/release-week")
        )),
    ).ended(0);
    ran.says("attempt 1 of 2 failed after");
    ran.says("503");
    ran.says("next attempt in 1 s");
    ran.says("attempt 2 of 2 failed after");
}
