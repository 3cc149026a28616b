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

/// A kind of secrets: a name to which it is assigned, its beginning, and the number of random characters behind it.
struct Kind {
    name: &'static str,
    /// In two pieces, so that no scanner takes this file for a leak.
    begins: [&'static str; 2],
    alphabet: &'static str,
    length: usize,
}

const DIGITS: &str = "0123456789abcdef";
const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Kinds with a form of their own have a name that tells nothing.
const KINDS: [Kind; 32] = [
    kind("extra_word", ["AK", "IA"], CAPITALS, 16),
    kind("aws_secret_access_key", ["", ""], BASE64, 40),
    kind("extra_word", ["gh", "p_"], LETTERS, 36),
    kind("extra_word", ["github", "_pat_"], LETTERS, 60),
    kind("extra_word", ["gl", "pat-"], LETTERS, 20),
    kind("extra_word", ["xo", "xb-"], LETTERS, 30),
    kind("extra_word", ["hooks.slack", ".com/services/"], LETTERS, 40),
    kind("extra_word", ["sk_", "live_"], LETTERS, 24),
    kind("extra_word", ["wh", "sec_"], LETTERS, 32),
    kind("extra_word", ["AI", "za"], LETTERS, 35),
    kind("extra_word", ["ya", "29."], LETTERS, 60),
    kind("extra_word", ["sk-", "ant-"], LETTERS, 60),
    kind("extra_word", ["sk-", "proj-"], LETTERS, 60),
    kind("extra_word", ["s", "k-"], LETTERS, 48),
    kind("extra_word", ["np", "m_"], LETTERS, 36),
    kind("extra_word", ["h", "f_"], LETTERS, 34),
    kind("extra_word", ["gs", "k_"], LETTERS, 52),
    kind("extra_word", ["py", "pi-AgE"], LETTERS, 80),
    kind("extra_word", ["dckr", "_pat_"], LETTERS, 27),
    kind("extra_word", ["shp", "at_"], DIGITS, 32),
    kind("extra_word", ["hv", "s."], LETTERS, 30),
    kind("extra_word", ["lin_", "api_"], LETTERS, 40),
    kind("extra_word", ["do", "p_v1_"], DIGITS, 64),
    kind("extra_word", ["gl", "sa_"], LETTERS, 32),
    kind("extra_word", ["pu", "l-"], DIGITS, 40),
    kind("extra_word", ["12345678", "90:AA"], LETTERS, 33),
    kind(
        "extra_word",
        ["ey", "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ."],
        LETTERS,
        43,
    ),
    kind("db_password", ["Summer", "2"], LETTERS, 8),
    kind("client_secret", ["", ""], LETTERS, 32),
    kind("datadog_key", ["", ""], DIGITS, 32),
    kind("account_key", ["", ""], BASE64, 86),
    kind("session_token", ["", ""], LETTERS, 64),
];

const fn kind(
    name: &'static str,
    begins: [&'static str; 2],
    alphabet: &'static str,
    length: usize,
) -> Kind {
    Kind {
        name,
        begins,
        alphabet,
        length,
    }
}

impl Kind {
    fn value(&self, random: &mut fastrand::Rng) -> String {
        let letters: Vec<char> = self.alphabet.chars().collect();
        let tail = (0..self.length).map(|_| letters[random.usize(..letters.len())]);
        self.begins.concat() + &tail.collect::<String>()
    }
}

/// A place of a secret: the text around it, and the value.
struct Placed {
    text: String,
    value: String,
}

/// Returns each kind of secrets in each form, all with different values; and two that have a form of their own.
fn placed() -> Vec<Placed> {
    let mut random = fastrand::Rng::with_seed(54);
    let mut all = Vec::new();
    for kind in &KINDS {
        let name = kind.name;
        let dashed = name.replace('_', "-");
        for form in [
            format!("{}=VALUE", name.to_uppercase()),
            format!("{name}: VALUE"),
            json!({name: "VALUE"}).to_string(),
            format!("https://files.org/list?{name}=VALUE&page=2"),
            format!("X-{dashed}: VALUE"),
            format!("tool --{dashed} VALUE --quiet"),
            format!("\u{1b}[36m{name}\u{1b}[0m=\u{1b}[33mVALUE\u{1b}[0m"),
        ] {
            let value = kind.value(&mut random);
            let shown = match form.contains("://") {
                true => value.replace('+', "%2B").replace('/', "%2F"),
                false => value.clone(),
            };
            all.push(Placed {
                text: form.replace("VALUE", &shown),
                value: shown,
            });
        }
    }
    let auth = format!("YWRhOm{}", "tpdHRlbjc3N2Fi");
    let link = "GET https://files.org/a?X-Amz-Expires=900&X-Amz-Signature=";
    let hash = kind("", ["", ""], DIGITS, 64).value(&mut random);
    let mut add = |text: String, value: &str| {
        all.push(Placed {
            text,
            value: value.to_owned(),
        });
    };
    add(
        json!({"auths": {"index.docker.io": {"auth": auth}}}).to_string(),
        &auth,
    );
    add(format!("{link}{hash}"), &hash);
    all
}

/// Returns calls that failed with a text that repeats a secret of their arguments.
fn repeated() -> Vec<Placed> {
    let mut random = fastrand::Rng::with_seed(55);
    let of = |kind: &Kind| {
        let value = kind.value(&mut random);
        let text = json!({kind.name: value}).to_string();
        Placed { text, value }
    };
    KINDS.iter().map(of).collect()
}

/// A transcript of Claude Code with all secrets, in which the agent compacted its conversation.
fn transcript() -> String {
    let mut lines: Vec<Value> = Vec::new();
    let mut push = |mut line: Value| {
        let n = lines.len();
        let facts = [
            ("uuid", json!(format!("line-{n}"))),
            (
                "parentUuid",
                json!((n > 0).then(|| format!("line-{}", n - 1))),
            ),
            ("sessionId", json!("vault")),
            (
                "timestamp",
                json!(format!("2026-03-02T09:{:02}:{:02}.000Z", n / 60, n % 60)),
            ),
        ];
        for (key, value) in facts {
            line[key] = value;
        }
        lines.push(line);
    };
    for (n, one) in placed().iter().enumerate() {
        let text = match n % 3 {
            0 => format!("From now on, never print {}", one.text),
            _ => format!("Step {n}:\n{}\n", one.text),
        };
        push(json!({"type": "user", "message": {"role": "user", "content": text}}));
        let answer = format!("Done, as for {} before.", one.value);
        let answer = json!([{"type": "text", "text": answer}]);
        push(json!({"type": "assistant", "message": {"role": "assistant", "content": answer}}));
    }
    for (n, one) in repeated().iter().enumerate() {
        let id = format!("call-{n}");
        let input: Value = serde_json::from_str(&one.text).unwrap();
        let call =
            json!([{"type": "tool_use", "id": id, "name": "mcp__db__query", "input": input}]);
        push(json!({"type": "assistant", "message": {"role": "assistant", "content": call}}));
        let said = format!("Error: {} was refused", one.value);
        let result =
            json!([{"type": "tool_result", "tool_use_id": id, "content": said, "is_error": true}]);
        push(json!({"type": "user", "message": {"role": "user", "content": result}}));
    }
    let summary = format!("The database refused {}.", repeated()[27].value);
    push(
        json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}),
    );
    push(
        json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": summary}}),
    );
    push(json!({"type": "user", "message": {"role": "user", "content": "Go on."}}));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

#[test]
fn no_output_repeats_a_secret_in_any_form() {
    let home = Home::new();
    let path = home.file("projects/-srv-vault/vault.jsonl", transcript());
    let file = path.to_str().unwrap();
    home.ok(&["import", file]);
    home.ok(&["compact", "vault", "--strategy", "dag"]);
    home.ok(&["compact", "vault", "--strategy", "handoff"]);
    let event = json!({
        "hook_event_name": "SessionStart", "source": "compact", "session_id": "vault", "transcript_path": path,
        "cwd": home.path(),
    });
    let mut outline = home.command(&["hook"]);
    let outline = Ran::from(outline.write_stdin(event.to_string()).output().unwrap()).ended(0);
    let secrets: Vec<Placed> = placed().into_iter().chain(repeated()).collect();
    let left = |text: &str| {
        let left = secrets.iter().filter(|one| text.contains(&one.value));
        left.map(|one| one.text.as_str()).collect::<Vec<_>>()
    };
    for (name, output) in [
        ("page", home.ok(&["view", "vault", "--html", "-"])),
        ("export", home.ok(&["export", "vault", "--redact"])),
        (
            "file",
            home.ok(&["export", "vault", "--session-file", "--redact"]),
        ),
        ("audit", home.ok(&["audit", file, "--json"])),
        ("audit page", home.ok(&["audit", file, "--html", "-"])),
        ("outline", outline),
    ] {
        assert_eq!(left(&output.out), Vec::<&str>::new(), "{name}");
        assert!(output.out.contains("[redacted:"), "{name}: {}", output.out);
    }
    let plain = home.ok(&["view", "vault", "--html", "-", "--no-redact"]);
    assert!(left(&plain.out).len() > 200);
}

#[test]
fn ids_of_redacted_outputs_confirm_no_guess() {
    let home = Home::new();
    let lines: Vec<String> = (0..100)
        .map(|n| {
            let text = format!("Step {n}: the box is at 81.2.69.{n}, fix it. ").repeat(25);
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": text}).to_string()
        })
        .collect();
    home.file("ids.jsonl", lines.join("\n") + "\n");
    home.ok(&["import", "ids.jsonl"]);
    let session = home.session();
    home.ok(&["compact", &session, "--strategy", "dag"]);
    let plain = home.ok(&["export", &session]).out;
    let page = home
        .ok(&["view", &session, "--html", "-", "--no-redact"])
        .out;
    let hashes = |text: &str, before: &str| -> std::collections::BTreeSet<String> {
        let found = text.split(before).skip(1);
        found
            .filter_map(|rest| Some(rest.get(..16)?.to_owned()))
            .collect()
    };
    let mut ids = hashes(&plain, "\"h-");
    ids.extend(hashes(&page, "\"sum_"));
    ids.extend(hashes(&session, "jsonl-"));
    assert!(ids.len() > 101, "{ids:?}");
    let export = home.ok(&["export", &session, "--redact"]).out;
    let again = home.ok(&["export", &session, "--redact"]).out;
    let shown = home.ok(&["view", &session, "--html", "-"]).out;
    let file = home
        .ok(&["export", &session, "--session-file", "--redact"])
        .out;
    for text in [&export, &again, &shown, &file] {
        assert!(!ids.iter().any(|id| text.contains(id)));
    }
    // Each run has a secret of its own, and in one run equal ids are equal.
    assert_ne!(hashes(&export, "\"h-"), hashes(&again, "\"h-"));
    assert_eq!(hashes(&export, "\"h-").len(), 100);
    let links = |text: &str, key: &str| hashes(text, &format!("\"{key}\":\"sum_"));
    assert_eq!(
        links(&shown, "summary").len(),
        links(&page, "summary").len()
    );
    let written: Value = serde_json::from_str(file.lines().nth(2).unwrap()).unwrap();
    let first: Value = serde_json::from_str(file.lines().nth(1).unwrap()).unwrap();
    assert_eq!(written["parentId"], first["id"]);
}
