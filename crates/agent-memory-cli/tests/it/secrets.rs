//! Keys, and the user info and queries of addresses: they are sent only to their server, and never shown.

use serde_json::json;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::support::{Home, Ran, fixture};

const KEY: &str = "sk-very-secret-0123456789";
const USER: &str = "hidden-user-1";
const PASSWORD: &str = "hidden-pass-2";
const QUERY: &str = "hidden-query-3";
/// `hidden-user-1:hidden-pass-2` in the form of a `Basic` header.
const BASIC: &str = "aGlkZGVuLXVzZXItMTpoaWRkZW4tcGFzcy0y";

/// A server that repeats the headers of the request, in an error or in the text of a summary.
struct Quotes {
    status: u16,
}

impl Respond for Quotes {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let sent: Vec<String> = ["authorization", "x-api-key"]
            .iter()
            .filter_map(|name| request.headers.get(*name))
            .map(|value| value.to_str().unwrap().to_owned())
            .collect();
        let said = format!("You sent {} to {}", sent.join(" and "), request.url);
        let body = match self.status {
            200 => json!({"choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": format!("Work went on. {said}")}}]}),
            _ => json!({"error": {"message": said, "code": "x"}}),
        };
        ResponseTemplate::new(self.status).set_body_json(body)
    }
}

async fn server(answer: impl Respond + 'static) -> MockServer {
    let server = MockServer::start().await;
    let mock = Mock::given(method("POST"));
    mock.respond_with(answer).mount(&server).await;
    server
}

/// Returns the values of a header in all requests that a server received.
async fn sent(server: &MockServer, name: &str) -> Vec<Option<String>> {
    let requests = server.received_requests().await.unwrap();
    let value = |request: &Request| {
        let value = request.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    requests.iter().map(value).collect()
}

/// Compacts a fixture with a model, and with these variables in the environment.
fn compact(home: &Home, variables: &[(&str, &str)], model: &[&str], stdin: &str) -> Ran {
    let file = fixture("claude-code/release-week");
    // Whatever is written is taken.
    let options = ["compact", &file, "--min-retained", "0", "--summarizer"];
    let mut command = home.command(&[&options[..], model].concat());
    for (name, value) in variables {
        command.env(name, value);
    }
    Ran::from(command.write_stdin(stdin).output().unwrap())
}

/// Asserts that no secret is in the output, in a context, in an export, or in the database.
fn assert_hidden(home: &Home, ran: &Ran, secrets: &[&str]) {
    let mut shown = format!("{}{}", ran.out, ran.err);
    if home.database().exists() {
        for session in home.json(&["sessions"])["sessions"].as_array().unwrap() {
            let key = session["session"].as_str().unwrap();
            shown.push_str(&home.ok(&["context", key, "--budget", "32000"]).out);
            shown.push_str(&home.ok(&["export", key]).out);
        }
    }
    for name in ["memory.db", "memory.db-wal"] {
        let file = home.path().join("agent-memory").join(name);
        if let Ok(bytes) = std::fs::read(file) {
            shown.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    for secret in secrets {
        assert!(!shown.contains(secret), "{secret}: {}{}", ran.out, ran.err);
    }
}

/// A key in place of a model's name would be printed in errors and commands, stored in summaries, and sent.
#[test]
fn a_key_in_place_of_a_name_is_refused_and_not_repeated() {
    let hexadecimal = "5f4dcc3b5aa765d61d8327deb882cf99";
    let google = format!("AI{}", "zaSyD-3xampl3_K3y_of_39_characters_00000");
    for key in [
        KEY,
        "sk-ant-api03-abc",
        hexadecimal,
        &google,
        "gsk_0a1b2c3d",
    ] {
        for given in [
            key.to_owned(),
            format!("openai:{key}"),
            format!("anthropic:{key}"),
            format!("{key}:openai"),
            format!("nobody:{key}"),
            format!("Bearer {key}"),
            format!("OPENAI_API_KEY={key}"),
        ] {
            let home = Home::new();
            let variables = [("OPENAI_API_KEY", "k")];
            for model in [
                &[given.as_str()][..],
                &["ollama:m", "--fallback-model", &given],
            ] {
                let ran = compact(&home, &variables, model, "");
                assert_eq!(ran.code, 2, "{model:?}: {}", ran.err);
                ran.says("looks like a key");
                assert_hidden(&home, &ran, &[key]);
            }
        }
    }
    // A name without the form of a key, but long enough to be an unknown provider's key.
    let home = Home::new();
    let ran = compact(&home, &[], &["correct-horse-battery-staple"], "");
    assert_eq!(ran.code, 2);
    assert_hidden(&home, &ran, &["horse"]);
    ran.says("PROVIDER:MODEL");
}

#[tokio::test]
async fn no_part_of_an_address_but_host_and_path_is_shown() {
    for status in [200, 401, 500] {
        let home = Home::new();
        let server = server(Quotes { status }).await;
        let url = format!(
            "http://{USER}:{PASSWORD}@{}/v1?key={QUERY}",
            server.address()
        );
        let ran = compact(&home, &[], &["compatible:m", "--base-url", &url], "").ended(0);
        let basic = format!("Basic {BASIC}");
        for value in sent(&server, "authorization").await {
            assert_eq!(value.as_deref(), Some(&*basic));
        }
        assert_hidden(&home, &ran, &[USER, PASSWORD, BASIC, QUERY]);
        if status != 200 {
            let address = server.address().to_string();
            ran.says(&address);
        }
    }
}

#[test]
fn an_address_that_cannot_be_used_is_not_shown() {
    let home = Home::new();
    for url in [
        format!("ftp://{USER}:{PASSWORD}@host/v1?key={QUERY}"),
        format!("{USER}:{PASSWORD}@host/v1"),
        format!("http://{USER}:{PASSWORD}@/v1?key={QUERY}"),
        format!("http://{USER}:{PASSWORD}@127.0.0.1:1/v1?key={QUERY}"),
    ] {
        let ran = compact(&home, &[], &["compatible:m", "--base-url", &url], "");
        assert_hidden(&home, &ran, &[USER, PASSWORD, QUERY]);
    }
}

#[tokio::test]
async fn a_quoted_key_is_not_stored() {
    for status in [200, 400, 401] {
        let home = Home::new();
        let server = server(Quotes { status }).await;
        let url = format!("{}/v1", server.uri());
        let model = ["openai:m", "--base-url", &url];
        let ran = compact(&home, &[("OPENAI_API_KEY", KEY)], &model, "").ended(0);
        let bearer = format!("Bearer {KEY}");
        assert!(sent(&server, "authorization").await.contains(&Some(bearer)));
        assert_hidden(&home, &ran, &[KEY]);
    }
}

#[tokio::test]
async fn a_compatible_server_gets_its_own_key_alone() {
    let server = server(Quotes { status: 200 }).await;
    let url = format!("{}/v1", server.uri());
    let model = ["compatible:m", "--base-url", &url];
    let others = [
        ("OPENAI_API_KEY", KEY),
        ("ANTHROPIC_API_KEY", KEY),
        ("GEMINI_API_KEY", KEY),
    ];
    compact(&Home::new(), &others, &model, "").ended(0);
    let keys = sent(&server, "authorization").await;
    assert!(
        !keys.is_empty() && keys.iter().all(Option::is_none),
        "{keys:?}"
    );

    let own = "own-secret-key";
    let variables = [("OPENAI_API_KEY", KEY), ("COMPATIBLE_API_KEY", own)];
    compact(&Home::new(), &variables, &model, "").ended(0);
    let keys = sent(&server, "authorization").await;
    let bearer = format!("Bearer {own}");
    assert_eq!(keys.last().unwrap().as_deref(), Some(&*bearer));
}

#[tokio::test]
async fn a_key_comes_from_a_file_or_from_standard_input() {
    let home = Home::new();
    let path = home.file("key.txt", format!("  {KEY}\n"));
    for (file, stdin) in [(path.to_str().unwrap(), ""), ("-", &*format!("{KEY}\r\n"))] {
        let home = Home::new();
        let server = server(Quotes { status: 200 }).await;
        let url = format!("{}/v1", server.uri());
        let model = ["compatible:m", "--base-url", &url, "--api-key-file", file];
        let ran = compact(&home, &[("COMPATIBLE_API_KEY", "another")], &model, stdin).ended(0);
        let bearer = Some(format!("Bearer {KEY}"));
        let keys = sent(&server, "authorization").await;
        assert!(keys.iter().all(|key| *key == bearer), "{file}: {keys:?}");
        assert_hidden(&home, &ran, &[KEY]);
    }
    let empty = home.file("empty.txt", " \n");
    let binary = home.file("binary", [0xff, 0xfe, 0x00]);
    let long = home.file("long.txt", "k".repeat(100_000));
    for (file, expected) in [
        (empty.to_str().unwrap(), "holds no key"),
        (binary.to_str().unwrap(), "holds no key"),
        (long.to_str().unwrap(), "holds no key"),
        ("nowhere.txt", "cannot read the key"),
        ("-", "holds no key"),
    ] {
        let model = ["openai:m", "--api-key-file", file];
        let ran = compact(&Home::new(), &[("OPENAI_API_KEY", KEY)], &model, "");
        assert_eq!(ran.code, 2, "{file}: {}", ran.err);
        assert!(ran.err.contains(expected), "{file}: {}", ran.err);
    }
    let model = ["openai:m", "--api-key-file", "-", "--api-key", "k"];
    assert_eq!(compact(&home, &[], &model, KEY).code, 2);
}

#[tokio::test]
async fn no_key_goes_to_another_host() {
    let other = server(Quotes { status: 200 }).await;
    // Another name of this machine: another host.
    let elsewhere = format!("http://localhost:{}/v1/", other.address().port());
    for status in [301, 302, 303, 307, 308] {
        let moved = ResponseTemplate::new(status).insert_header("location", &*elsewhere);
        let first = server(moved).await;
        let url = format!("{}/v1", first.uri());
        let model = ["openai:m", "--base-url", &url];
        let ran = compact(&Home::new(), &[("OPENAI_API_KEY", KEY)], &model, "").ended(0);
        assert!(!first.received_requests().await.unwrap().is_empty());
        ran.says(&format!("status {status}"));
    }
    assert!(other.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn no_key_for_this_machine_goes_to_a_proxy() {
    let proxy = server(Quotes { status: 200 }).await;
    let proxies: Vec<(&str, String)> = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .map(|name| (name, proxy.uri()))
        .to_vec();
    let variables: Vec<(&str, &str)> = proxies
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain([("OPENAI_API_KEY", KEY)])
        .collect();
    for host in ["127.0.0.1", "localhost"] {
        let server = server(Quotes { status: 200 }).await;
        let url = format!("http://{host}:{}/v1", server.address().port());
        compact(
            &Home::new(),
            &variables,
            &["openai:m", "--base-url", &url],
            "",
        )
        .ended(0);
        assert!(!server.received_requests().await.unwrap().is_empty());
    }
    assert!(proxy.received_requests().await.unwrap().is_empty());
}
