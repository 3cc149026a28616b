//! Anchors outside of the database: `receipt`, `certify` and `verify --against`. `docs/measurements/proof.md` counts more
//! corruptions, with an independent verifier.

use serde_json::{Value, json};

use crate::support::{Home, fixture, has, is, sql};

/// Test key of RFC 8032, section 7.1, test 1, as `openssl genpkey` writes keys.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
";
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// Returns lines of a chat that names its session.
fn chat(count: u32) -> String {
    let line = |n: u32| {
        let text = format!("Step {n} renamed the module {n}. ").repeat(40);
        json!({"session": "chat", "external_id": format!("e{n}"), "role": "user", "content": text})
            .to_string()
            + "\n"
    };
    (1..=count).map(line).collect()
}

/// Returns a home with a compacted session of 120 messages.
fn home() -> Home {
    let home = Home::new();
    home.file("chat.jsonl", chat(120));
    home.ok(&["import", "chat.jsonl"]);
    home.ok(&["compact", "chat"]);
    home
}

/// Returns the violations of a verification that must find some.
fn wrong(home: &Home, arguments: &[&str]) -> Vec<(String, String)> {
    let report = home.fails(&[&["--json", "verify"], arguments].concat(), 7);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let violations = report.json()["violations"].clone();
    let violations = violations.as_array().unwrap().iter();
    violations
        .map(|one| (text(&one["kind"]), text(&one["message"])))
        .collect()
}

#[test]
fn a_receipt_finds_an_older_copy_a_lost_session_and_an_undone_erasure() {
    let home = Home::new();
    home.file("chat.jsonl", chat(100));
    home.ok(&["import", "chat.jsonl", &fixture("jsonl/tiny")]);
    let older = std::fs::read(home.database()).unwrap();
    home.file("chat.jsonl", chat(120));
    home.ok(&["import", "chat.jsonl"]);
    let receipts = home.ok(&["receipt"]).out;
    assert_eq!(receipts.lines().count(), 2, "{receipts}");
    home.file("receipts.jsonl", &receipts);
    let one = home.ok(&["receipt", "chat"]).out;
    let one: Value = serde_json::from_str(&one).unwrap();
    has(
        &one,
        "format session conversation head hash erasures erased at",
    );
    is(&one, json!({"head": 120, "erasures": 0, "erased": []}));

    // Later entries and erasures are no violation.
    home.file("chat.jsonl", chat(130));
    home.ok(&["import", "chat.jsonl"]);
    home.ok(&["erase", "chat", "--from", "7", "--reason", "a name"]);
    let report = home.json(&["verify", "--against", "receipts.jsonl"]);
    is(
        &report,
        json!({"ok": true, "against": [{"file": "receipts.jsonl", "kind": "receipts", "sessions": 2}]}),
    );
    home.file("erased.jsonl", home.ok(&["receipt", "chat"]).out);

    std::fs::write(home.database(), &older).unwrap();
    home.ok(&["verify"]);
    let found = wrong(&home, &["--against", "receipts.jsonl"]);
    let [(kind, message)] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(kind, "log_shortened");
    for part in [
        "receipts.jsonl: chat",
        "entries 101-120",
        "write-ahead log",
        "older copy",
    ] {
        assert!(message.contains(part), "{message}");
    }
    home.ok(&["import", "chat.jsonl"]);
    let found = wrong(&home, &["--against", "erased.jsonl"]);
    assert_eq!(found[0].0, "erasure_missing", "{found:?}");

    // The same session with other words, and without the other session.
    std::fs::remove_file(home.database()).unwrap();
    home.file("chat.jsonl", chat(120).replace("Step 3 ", "Step 4 "));
    home.ok(&["import", "chat.jsonl"]);
    home.ok(&["verify"]);
    let found = wrong(&home, &["--against", "receipts.jsonl"]);
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["log_replaced", "session_missing"], "{found:?}");
}

#[test]
fn a_certificate_outlives_later_versions_and_no_change_of_its_fields() {
    let home = home();
    home.file("key.pem", KEY);
    let text = home.ok(&["certify", "chat", "--key", "key.pem"]).out;
    let certificate: Value = serde_json::from_str(&text).unwrap();
    has(
        &certificate,
        "format log estimator view version history spans partition replay public_key signature",
    );
    is(&certificate, json!({"view": "dag", "public_key": PUBLIC}));
    let spans = certificate["spans"].as_array().unwrap();
    assert!(
        spans.iter().any(|span| span["summary"]["hash"].is_string()),
        "{text}"
    );
    assert_eq!(spans.last().unwrap()["last"], 120);
    home.file("certificate.json", &text);

    home.file("chat.jsonl", chat(200));
    home.ok(&["import", "chat.jsonl"]);
    home.ok(&["compact", "chat"]);
    home.ok(&["erase", "chat", "--from", "7", "--reason", "a name"]);
    let against = [
        "verify",
        "--signer",
        PUBLIC,
        "--against",
        "certificate.json",
    ];
    let report = home.json(&against);
    is(
        &report,
        json!({"against": [{"kind": "certificate", "signed_by": PUBLIC}]}),
    );

    // White space and the order of fields have no meaning.
    home.file("certificate.json", certificate.to_string());
    home.ok(&against);
    let mut changed = certificate.clone();
    changed["spans"][0]["tokens"] = json!(1);
    home.file("certificate.json", changed.to_string());
    let found = wrong(&home, &against[1..]);
    let told: Vec<&str> = found.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(found.len(), 3, "{told:?}");
    assert!(
        told[1].contains("other spans than are certified"),
        "{told:?}"
    );
    assert!(told[2].contains("the signature"), "{told:?}");

    let unsigned = home.ok(&["certify", "chat"]).out;
    home.file("certificate.json", unsigned);
    home.ok(&["verify", "--against", "certificate.json"]);
    wrong(&home, &against[1..]);
}

#[test]
fn a_certified_budget_is_kept_by_the_view() {
    let home = home();
    let cost = home.json(&["view", "chat"])["tokens"].as_u64().unwrap();
    let certified = |budget: u64| home.json(&["certify", "chat", "--budget", &budget.to_string()]);
    let mut certificate = certified(cost);
    is(&certificate, json!({"budget": cost}));
    let less = (cost - 1).to_string();
    home.fails(&["certify", "chat", "--budget", &less], 6)
        .says(&format!("the view of chat costs {cost} tokens"));

    home.file("certificate.json", certificate.to_string());
    home.ok(&["verify", "--against", "certificate.json"]);
    certificate["budget"] = json!(cost - 1);
    home.file("certificate.json", certificate.to_string());
    let found = wrong(&home, &["--against", "certificate.json"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].1.contains("more than the certified budget"),
        "{found:?}"
    );
}

#[test]
fn a_transcript_is_found_entry_by_entry_and_nothing_is_written() {
    let home = home();
    let before = std::fs::read(home.database()).unwrap();
    let report = home.json(&["verify", "--against", "chat.jsonl"]);
    is(
        &report,
        json!({"against": [{"kind": "transcript", "sessions": 1, "entries": 120}]}),
    );

    let lines = chat(125);
    let mut lines: Vec<&str> = lines.lines().collect();
    let other = lines[2].replace("Step 3 ", "Step 4 ");
    lines[2] = &other;
    lines.swap(50, 51);
    home.file("chat.jsonl", lines.join("\n"));
    let found = wrong(&home, &["--against", "chat.jsonl"]);
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["entry_changed", "entry_misplaced", "entry_missing"],
        "{found:?}"
    );
    assert!(found[0].1.contains("entry 3 differs from e3"), "{found:?}");
    assert!(
        found[1].1.contains("entry 51 comes before entry 52"),
        "{found:?}"
    );
    assert!(found[2].1.contains("5 entries"), "{found:?}");
    assert!(found[2].1.contains("from e121 to e125"), "{found:?}");

    let found = wrong(&home, &["--against", &fixture("pi/branched")]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found.iter().all(|(kind, _)| kind == "session_missing"),
        "{found:?}"
    );
    assert_eq!(std::fs::read(home.database()).unwrap(), before);
}

#[test]
fn files_that_are_no_anchors_and_no_keys_are_refused() {
    let home = home();
    home.fails(&["verify", "--against", "nowhere.jsonl"], 4)
        .says("nowhere.jsonl");
    home.file(
        "later.json",
        json!({"format": "agent-memory receipt 2"}).to_string(),
    );
    home.fails(&["verify", "--against", "later.json"], 4)
        .says("update the program");
    home.file(
        "half.json",
        json!({"format": "agent-memory receipt 1"}).to_string(),
    );
    home.fails(&["verify", "--against", "half.json"], 4)
        .says("half.json: line 1 is no receipt");
    home.fails(&["certify", "chat", "--key", "chat.jsonl"], 4)
        .says("openssl genpkey");
}

#[test]
fn every_receipt_and_certificate_of_a_file_is_compared() {
    let home = home();
    home.file("key.pem", KEY);
    home.file("other.jsonl", chat(120).replace("chat", "other"));
    home.ok(&["import", "other.jsonl"]);
    let receipts = home.ok(&["receipt"]).out;
    let certificate = home.ok(&["certify", "chat", "--key", "key.pem"]).out;
    let of_other = home.ok(&["certify", "other", "--key", "key.pem"]).out;
    let key = PUBLIC.to_uppercase();
    let against = ["verify", "--signer", &key, "--against", "all.json"];
    home.file("all.json", format!("{certificate}{of_other}{receipts}"));
    let report = home.json(&against);
    let compared = json!({"kind": "receipts", "sessions": 2, "signed_by": PUBLIC});
    is(&report, json!({"against": [compared]}));

    let changed = of_other.replace("\"dag\"", "\"day\"");
    home.file("all.json", format!("{certificate}{changed}"));
    let found = wrong(&home, &against[1..]);
    assert!(
        found.iter().all(|(_, told)| told.contains("other:")),
        "{found:?}"
    );
    let more = receipts.replace("\"head\":120", "\"head\":121");
    home.file("all.json", format!("{certificate}{more}"));
    let found = wrong(&home, &against[1..]);
    let kinds: Vec<&str> = found.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["log_shortened", "log_shortened"], "{found:?}");

    // A line that was torn, and continued by the next receipt.
    let (first, second) = more.split_once('\n').unwrap();
    home.file(
        "all.json",
        format!("{receipts}{}{first}\n{second}", &first[..50]),
    );
    let found = wrong(&home, &["--against", "all.json"]);
    let told: Vec<&str> = found.iter().map(|(_, told)| told.as_str()).collect();
    assert_eq!(found.len(), 2, "{told:?}");
    assert!(told[0].contains("entries 121"), "{told:?}");
    assert!(
        told[1].starts_with("all.json: line 3 is no receipt"),
        "{told:?}"
    );

    // A certificate cannot be replaced by a receipt.
    home.file("all.json", &receipts);
    home.ok(&["verify", "--against", "all.json"]);
    let found = wrong(&home, &against[1..]);
    assert!(
        found[0].1.contains("no file holds a certificate"),
        "{found:?}"
    );
}

#[test]
fn every_session_is_verified_and_every_file_is_compared_in_spite_of_others() {
    let home = home();
    home.file("other.jsonl", chat(3).replace("chat", "other"));
    home.ok(&["import", "other.jsonl"]);
    home.file("receipts.jsonl", home.ok(&["receipt"]).out);
    let change = "drop trigger message_update;
         update message set role = 'system' where conversation = 2 and seq = 2";
    sql(&home.database(), change).close();
    home.ok(&["verify", "chat"]);
    let found = wrong(
        &home,
        &["chat", "--against", "nowhere.jsonl", "receipts.jsonl"],
    );
    let of_other = found.iter().find(|(kind, _)| kind == "entry_changed");
    let (_, told) = of_other.unwrap();
    assert!(told.starts_with("other: entry 2"), "{found:?}");
    let (kind, told) = found.last().unwrap();
    assert_eq!(kind, "other", "{found:?}");
    assert!(told.starts_with("not compared: "), "{found:?}");
    assert!(told.contains("nowhere.jsonl"), "{found:?}");
}
