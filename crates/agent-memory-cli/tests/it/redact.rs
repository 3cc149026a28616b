//! Marks in place of secrets and personal data: `export --redact`, and the page of `view --html`.

use serde_json::{Value, json};

use crate::support::{Home, Ran};

/// Values and their kinds. Each is built from pieces, so that no scanner takes this file for a leak.
fn secrets() -> Vec<(&'static str, String)> {
    let random = "q7Zr2Lw9Xc4Vb8Nm1Kj6Hg3Fd5Sa0PoIuYtReW9q8Z7x6C5v4B3n2M1l";
    let take = |length: usize| random.get(..length).unwrap();
    let upper = "Q7ZR2LW9XC4VB8NM";
    let lines: Vec<&str> = vec![random; 2];
    let dashes = "-".repeat(5);
    vec![
        (
            "private-key",
            format!(
                "{dashes}BEGIN RSA PRIVATE KEY{dashes}\n{}\n{dashes}END RSA PRIVATE KEY{dashes}",
                lines.join("\n")
            ),
        ),
        ("aws-key", format!("AKI{}{upper}", "A")),
        ("github-token", format!("gh{}{}", "p_", take(36))),
        ("gitlab-token", format!("glp{}{}", "at-", take(20))),
        ("slack-token", format!("xox{}{}", "b-", take(24))),
        ("stripe-key", format!("sk_{}{}", "live_", take(24))),
        ("google-key", format!("AI{}{}", "za", take(35))),
        ("anthropic-key", format!("sk-{}{}", "ant-", take(40))),
        ("openai-key", format!("sk-{}{}", "proj-", take(40))),
        ("npm-token", format!("np{}{}", "m_", take(36))),
        ("api-key", format!("hf{}{}", "_", take(34))),
        (
            "jwt",
            format!("ey{}{}.eyJ{}.{}", "J", take(20), take(30), take(40)),
        ),
        ("email", format!("ada.lovelace@{}", "engine.org")),
        ("ip", format!("81.2.{}", "69.142")),
        (
            "ip",
            format!("2a02:8071:{}", "b5c0:1d00:4c1e:77ff:fe12:9a3b"),
        ),
    ]
}

/// Secrets that only their names or places tell, with the text around them.
fn named() -> Vec<(&'static str, String, String)> {
    let random = "q7Zr2Lw9Xc4Vb8Nm1Kj6Hg3Fd5Sa0PoIuYtReW9q";
    [
        ("aws-secret", "AWS_SECRET_ACCESS_KEY=VALUE", random),
        ("password", "DB_PASSWORD='VALUE'", "Tr0ub4dor&3"),
        ("password", "mysql --password VALUE shop", "c0rrect!horse"),
        ("secret", "client_secret: VALUE", "9f8e7d6c5b4a39281706"),
        (
            "authorization",
            "Authorization: Bearer VALUE",
            "a1B2c3D4e5F6g7H8i9",
        ),
        (
            "authorization",
            "authorization: Basic VALUE",
            "YWRhOmwwdmVsYWNlMQ==",
        ),
        (
            "password",
            "postgres://ada:VALUE@db.internal/shop",
            "s3cr3tpw",
        ),
        ("user", "/home/VALUE/.ssh/config", "ada-lovelace"),
        ("user", "/Users/VALUE/src", "babbage"),
        (
            "user",
            "~/.claude/projects/-Users-VALUE-work/x.jsonl",
            "hopper",
        ),
        ("user", r"C:\Users\VALUE\Desktop", "menabrea"),
    ]
    .map(|(kind, text, value)| (kind, text.replace("VALUE", value), value.to_owned()))
    .into()
}

/// Imports a session with the secrets in a user's text, a call's arguments, a result, an unknown part, names and a
/// title, and compacts it, so that summaries quote them.
fn planted() -> (Home, String) {
    let home = Home::new();
    let mut texts: Vec<String> = secrets().into_iter().map(|(_, value)| value).collect();
    texts.extend(named().into_iter().map(|(_, text, _)| text));
    let mut lines: Vec<Value> = Vec::new();
    for round in 0..3 {
        for (index, text) in texts.iter().enumerate() {
            let id = format!("call-{round}-{index}");
            let arguments = json!({"command": format!("echo \"{text}\"\n"), "nested": json!({"half\u{e9}": text}).to_string()});
            let call = json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments.to_string()}});
            lines.push(json!({"role": "user", "name": "ada", "content": format!("Decision {index}: never print {text} again.")}));
            lines.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            lines.push(json!({"role": "tool", "tool_call_id": id, "content": format!("{{\"found\": \"{text}\"\n{text}")}));
        }
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let file = home.file("planted.jsonl", lines.join("\n") + "\n");
    let key = format!("ada.lovelace@{}", "engine.org");
    home.ok(&["import", "--session", &key, file.to_str().unwrap()]);
    home.ok(&["set", &key, "--title", &format!("Keys {}", texts.join(" "))]);
    home.ok(&["compact", &key, "--strategy", "dag"]);
    home.ok(&["compact", &key, "--strategy", "handoff"]);
    (home, key)
}

/// Returns the planted secrets that a text has, as they are and as JSON strings.
fn leaks(text: &str) -> Vec<String> {
    let values = secrets().into_iter().map(|(_, value)| value);
    let values = values.chain(named().into_iter().map(|(_, _, value)| value));
    values
        .flat_map(|value| {
            let lines = value.lines().filter(|line| !line.starts_with("---"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|line| text.contains(line))
        .collect()
}

/// Asserts that stderr has the number of planted values of each kind.
fn assert_counted(ran: &Ran) {
    let mut expected = std::collections::BTreeMap::new();
    let kinds = secrets().into_iter().map(|(kind, _)| kind);
    for kind in kinds.chain(named().into_iter().map(|(kind, ..)| kind)) {
        *expected.entry(kind).or_insert(0) += 1;
    }
    let counts: Vec<String> = expected
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    ran.says(&format!("redacted: {}", counts.join(", ")));
}

#[test]
fn a_page_has_no_secret_unless_it_is_asked_for() {
    let (home, key) = planted();
    let ran = home.ok(&["view", &key, "--html", "-"]);
    assert_eq!(leaks(&ran.out), Vec::<String>::new());
    assert_counted(&ran);
    assert!(ran.out.contains("[redacted:github-token 1]"));
    assert!(
        ran.out
            .contains(r#""redacted":{"anthropic-key":1,"api-key":1,"#)
    );
    let shown = home.ok(&["view", &key, "--html", "-", "--no-redact"]);
    assert!(leaks(&shown.out).len() >= secrets().len() + named().len() - 2);
    assert!(!shown.err.contains("redacted") && !shown.out.contains("[redacted:"));
    let written = home.json(&["view", &key, "--html", "page.html"]);
    assert_eq!(written["redacted"]["user"], 4);
}

#[test]
fn a_redacted_export_has_no_secret_and_imports_again() {
    let (home, key) = planted();
    let plain = home.ok(&["export", &key]);
    assert!(leaks(&plain.out).len() > 12);
    let ran = home.ok(&["export", &key, "--redact"]);
    assert_eq!(leaks(&ran.out), Vec::<String>::new());
    assert_counted(&ran);
    for line in ran.out.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        for part in entry["parts"].as_array().unwrap() {
            if part["type"] == "tool_call" {
                let arguments = part["arguments"].as_str().unwrap();
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                let nested = arguments["nested"].as_str().unwrap();
                assert!(serde_json::from_str::<Value>(nested).unwrap()["half\u{e9}"].is_string());
            }
        }
    }
    assert_eq!(ran.out.lines().count(), plain.out.lines().count());
    let file = home.file("redacted.jsonl", &ran.out);
    let imported = home.json(&["import", "--session", "again", file.to_str().unwrap()]);
    assert_eq!(
        imported["sessions"][0]["inserted"],
        plain.out.lines().count()
    );
    let again = home.ok(&["export", "again", "--redact"]);
    again.says("redacted: nothing");
}

#[test]
fn a_redacted_session_file_has_no_secret() {
    let (home, key) = planted();
    let ran = home.ok(&["export", &key, "--session-file", "--redact"]);
    assert_eq!(leaks(&ran.out), Vec::<String>::new());
    assert!(ran.out.contains("[redacted:email 1]"));
    for line in ran.out.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[test]
fn a_database_is_not_redacted() {
    let (home, key) = planted();
    let ran = home.fails(&["export", &key, "--sqlite", "plain.db", "--redact"], 2);
    ran.says("an export to SQLite cannot be redacted");
    assert!(!home.path().join("plain.db").exists());
    home.fails(&["view", &key, "--no-redact"], 2);
}
