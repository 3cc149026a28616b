//! `view --html`: one page with the log, the views and what contexts show. A browser opens it in [`crate::browser`].

#![allow(clippy::print_stderr)]

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Home, fixture};

const WEEK: &str = "claude-code/release-week";

/// Texts that would end an element, begin one, or be code, if the page took them for markup.
const HOSTILE: [&str; 7] = [
    "</script><img src=x onerror=\"window.hostile = 1\">",
    "<!-- <script> -->]]>",
    "{{script}} {{data}} $& $1",
    "line\u{2028}paragraph\u{2029}end \u{202e}reversed\u{202c} \u{7} \u{fffd}",
    "'\"`${window.hostile = 1}`\\u003c/script\\u003e",
    "&lt;b&gt; &amp; <b>bold</b>",
    "javascript:alert(1) <a href=\"javascript:alert(1)\">x</a>",
];

/// Imports a fixture, and compacts it with these strategies.
fn compacted(strategies: &[&str]) -> (Home, String) {
    let home = Home::new();
    home.ok(&["import", &fixture(WEEK)]);
    let session = home.session();
    for strategy in strategies {
        home.ok(&["compact", &session, "--strategy", strategy]);
    }
    (home, session)
}

/// Imports a session of hostile texts, with a hostile name, and writes its page.
fn hostile() -> (Home, PathBuf) {
    let home = Home::new();
    let name = "</title><script>window.hostile = 1</script>";
    let mut lines: Vec<Value> = Vec::new();
    for (index, text) in HOSTILE.iter().enumerate() {
        let id = format!("call-{index}");
        // The arguments contain half of a surrogate pair.
        let arguments = format!("{{\"half\":\"\\ud800\",\"text\":{}}}", json!(text));
        let call = json!({"id": id, "type": "function", "function": {"name": text, "arguments": arguments}});
        lines.push(json!({"role": "user", "content": text}));
        lines.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        lines.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let file = home.file("hostile.jsonl", lines.join("\n") + "\n");
    home.ok(&["import", "--session", name, file.to_str().unwrap()]);
    home.ok(&["set", name, "--title", HOSTILE[0]]);
    home.ok(&["view", name, "--html", "hostile.html"]);
    let path = home.path().join("hostile.html");
    (home, path)
}

/// Returns the parts of a page: its JSON values in order, and the rest.
fn parts(page: &str) -> (Vec<Value>, String) {
    const BEGIN: &str = "<script type=\"application/json\"";
    const END: &str = "</script>";
    let (mut values, mut rest, mut left) = (Vec::new(), String::new(), page);
    while let Some((before, after)) = left.split_once(BEGIN) {
        rest.push_str(before);
        let (_, after) = after.split_once('>').unwrap();
        let (json, after) = after.split_once(END).unwrap();
        values.push(serde_json::from_str(json).unwrap());
        left = after;
    }
    rest.push_str(left);
    (values, rest)
}

/// Returns the entries of all elements with messages.
fn entries(values: &[Value]) -> Vec<Value> {
    let lists = values
        .iter()
        .skip(1)
        .flat_map(|list| list.as_array().unwrap());
    lists.cloned().collect()
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let (home, session) = compacted(&["dag"]);
    let page = home.ok(&["view", &session, "--html", "-"]).out;
    let (_, rest) = parts(&page);
    assert!(rest.contains("default-src 'none'; script-src 'sha256-"));
    // The only address is the name of a namespace.
    let rest = rest.replacen("\"http://www.w3.org/2000/svg\"", "", 1);
    for outside in [
        "http:",
        "https:",
        "src=",
        "href=",
        "url(",
        "@import",
        "//fonts",
        "fetch(",
        "eval(",
        "innerHTML",
    ] {
        assert!(!rest.contains(outside), "{outside}");
    }
}

#[test]
fn the_data_is_json_and_has_each_message_and_each_summary() {
    let (home, session) = compacted(&["dag", "handoff", "blocks"]);
    let page = home
        .ok(&["view", &session, "--html", "-", "--no-redact"])
        .out;
    let (values, _) = parts(&page);
    let entries = entries(&values);
    let export = home.ok(&["export", &session]).out;
    let log: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries.len(), log.len());
    for (entry, stored) in entries.iter().zip(&log) {
        assert_eq!(entry["seq"], stored["seq"]);
        assert_eq!(entry["role"], stored["role"]);
        let shown = entry["parts"].as_array().unwrap().iter();
        for (shown, part) in shown.zip(stored["parts"].as_array().unwrap()) {
            match part["type"].as_str().unwrap() {
                "text" | "reasoning" => assert_eq!(shown["text"], part["text"]),
                "tool_call" => {
                    let arguments: Value =
                        serde_json::from_str(shown["arguments"].as_str().unwrap()).unwrap();
                    assert_eq!(arguments, part["arguments"]);
                    assert_eq!(shown["name"], part["name"]);
                }
                "tool_result" => assert_eq!(shown["text"], part["content"]),
                other => panic!("{other}"),
            }
        }
    }
    let data = &values[0];
    let names: Vec<&Value> = data["views"]
        .as_array()
        .unwrap()
        .iter()
        .map(|view| &view["name"])
        .collect();
    assert_eq!(names, ["dag", "handoff", "blocks"]);
    // The page has the same tree as `view`, and the text of each summary in it.
    let view = home.json(&["view", &session, "--depth", "9"]);
    let blocks = &data["views"][2];
    assert_eq!(blocks["tokens"], view["tokens"]);
    let spans = blocks["spans"]
        .as_array()
        .unwrap()
        .iter()
        .zip(view["spans"].as_array().unwrap());
    for (span, stored) in spans {
        for field in ["kind", "first", "last", "tokens"] {
            assert_eq!(span[field], stored[field]);
        }
        if let Some(id) = stored["summary_id"].as_str() {
            let described = home.ok(&["describe", &session, id]).out;
            let first = data["summaries"][id]["text"]
                .as_str()
                .unwrap()
                .lines()
                .next()
                .unwrap();
            assert!(described.contains(first), "{first}");
        }
    }
}

#[test]
fn the_page_says_of_every_message_what_a_context_shows_of_it() {
    let (home, session) = compacted(&["dag"]);
    let page = home
        .ok(&["view", &session, "--html", "-", "--no-redact"])
        .out;
    let (values, _) = parts(&page);
    let data = &values[0];
    let contexts = data["contexts"].as_array().unwrap();
    let budgets: Vec<u64> = contexts
        .iter()
        .map(|context| context["budget"].as_u64().unwrap())
        .collect();
    assert_eq!(
        budgets,
        [4_000, 8_000, 16_000, 32_000],
        "sizes below the log's"
    );
    for context in contexts {
        let budget = context["budget"].to_string();
        let assembled = home.json(&["context", &session, "--budget", &budget]);
        assert_eq!(context["tokens"], assembled["tokens"]);
        let mut next = 1;
        for run in context["runs"].as_array().unwrap() {
            assert_eq!(run[0], next, "no message is missing");
            next = run[1].as_u64().unwrap() + 1;
        }
        assert_eq!(
            next,
            data["log"]["tokens"].as_array().unwrap().len() as u64 + 1
        );
        let last = context["runs"].as_array().unwrap().last().unwrap();
        assert_eq!(last[2], "whole");
        let messages = assembled["messages"].as_array().unwrap();
        let sources = messages.iter().map(|message| &message["source"]);
        let summaries: Vec<&Value> = sources
            .filter_map(|source| source.get("summary_id"))
            .collect();
        let shown = context["summaries"].as_array().unwrap();
        assert_eq!(
            shown.iter().map(|one| &one["id"]).collect::<Vec<_>>(),
            summaries
        );
    }
}

#[test]
fn hostile_text_stays_in_the_data() {
    let (_home, path) = hostile();
    let page = std::fs::read_to_string(path).unwrap();
    let (values, rest) = parts(&page);
    // Outside of the data there is no text of the log but the escaped name.
    let title =
        "<title>&lt;/title>&lt;script>window.hostile = 1&lt;/script> · agent-memory</title>";
    let rest = rest.replacen(title, "", 1);
    assert!(!rest.contains("hostile"));
    assert_eq!(rest.matches("<script").count(), 1);
    for separator in ['\u{2028}', '\u{2029}'] {
        assert!(!page.contains(separator));
    }
    let entries = entries(&values);
    for (text, group) in HOSTILE.iter().zip(entries.chunks(3)) {
        assert_eq!(group[0]["parts"][0]["text"], *text);
        assert_eq!(group[1]["parts"][0]["name"], *text);
        assert_eq!(group[2]["parts"][0]["text"], *text);
    }
}

#[test]
fn a_page_is_a_new_file_of_its_owner() {
    let (home, session) = compacted(&[]);
    let written = home.json(&["view", &session, "--html", "page.html"]);
    assert_eq!(
        written,
        json!({"file": "page.html", "messages": 585, "views": 1, "summaries": 0, "redacted": {}})
    );
    let path = home.path().join("page.html");
    let page = std::fs::read_to_string(&path).unwrap();
    assert_eq!(page, home.ok(&["view", &session, "--html", "-"]).out);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let refused = home.fails(&["--json", "view", &session, "--html", "page.html"], 4);
    assert_eq!(refused.error()["kind"], "invalid");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
    home.fails(&["view", &session, "--html", "none/page.html"], 4);
    home.fails(&["view", &session, "--html", "-", "--at", "0"], 2);
    let files = home.path().read_dir().unwrap().filter(|file| {
        file.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|end| end == "html")
    });
    assert_eq!(files.count(), 1, "no part of a page is left");
}

#[cfg(target_os = "linux")]
mod browsers {
    use std::fmt::Write as _;

    use super::*;
    use crate::browser::Browser;

    /// The label of the active row, as a screen reader reads it.
    const ACTIVE: &str = "document.getElementById(\
        document.getElementById('log').getAttribute('aria-activedescendant')).getAttribute('aria-label')";

    #[test]
    fn a_summary_opens_down_to_the_exact_words_by_keys_alone() {
        let (home, session) = compacted(&["dag"]);
        let Some(mut browser) = Browser::start(&home) else {
            return;
        };
        home.ok(&["view", &session, "--html", "page.html"]);
        browser.open(&home.path().join("page.html"));
        assert_eq!(
            browser.text("document.getElementById('log').getAttribute('role')"),
            "tree"
        );
        browser.press("Home");
        assert!(
            browser
                .text(ACTIVE)
                .starts_with("summary of summaries, messages 1–563, 45,418 tokens in 7,513")
        );
        // Closed and opened again, then down to the first summary in it, and into that.
        browser.press("ArrowLeft");
        let open = "document.querySelector('.row.active').getAttribute('aria-expanded')";
        assert_eq!(browser.text(open), "false");
        for key in ["ArrowRight", "ArrowDown", "ArrowDown"] {
            browser.press(key);
        }
        assert!(browser.text(ACTIVE).starts_with("summary, messages 1–237"));
        for key in ["Enter", "ArrowDown", "ArrowDown"] {
            browser.press(key);
        }
        let first = browser.text(ACTIVE);
        assert!(
            first.starts_with("user, message 1: Hi! Release 2.4 of parcelwatch"),
            "{first}"
        );
        for _ in 2..=7 {
            browser.press("ArrowDown");
        }
        assert!(
            browser
                .text(ACTIVE)
                .starts_with("tool result, message 7: src/courier_client.rs:23:")
        );
        browser.press("Enter");
        let shown = browser.text("document.querySelector('.row.active .block-text').textContent");
        let stored = home.ok(&["export", &session]).out;
        let stored: Value = serde_json::from_str(stored.lines().nth(6).unwrap()).unwrap();
        assert_eq!(shown, stored["parts"][0]["content"].as_str().unwrap());
        // The other view sizes, the help and the colours have keys too.
        browser.press("c");
        assert!(browser.text(ACTIVE).contains("message 7, in a summary"));
        browser.press("?");
        assert_eq!(browser.value("document.getElementById('keys').open"), true);
        browser.press("Escape");
        browser.until("!document.getElementById('keys').open");
        let colours = "getComputedStyle(document.body).backgroundColor";
        let before = browser.text(colours);
        browser.press("t");
        assert_ne!(browser.text(colours), before);
        // Nothing is wider than a phone.
        browser.resize(390, 844);
        browser.until("innerWidth === 390 && document.documentElement.scrollWidth === 390");
        browser.assert_quiet();
    }

    #[test]
    fn a_search_counts_and_marks_its_hits_and_goes_through_them() {
        let (home, session) = compacted(&["dag"]);
        let Some(mut browser) = Browser::start(&home) else {
            return;
        };
        home.ok(&["view", &session, "--html", "page.html"]);
        browser.open(&home.path().join("page.html"));
        browser.press("/");
        browser.write("no  JITTER");
        let hits = "document.getElementById('hits').textContent";
        // While the search runs, an ellipsis follows the number.
        browser.until(&format!("/^[0-9]+ hits$/.test({hits})"));
        let all = browser.text(hits);
        let number: usize = all.split(' ').next().unwrap().parse().unwrap();
        assert!(number > 3, "{all}");
        let marked = "document.querySelector('mark.now').textContent";
        for hit in 1..=number {
            browser.press("Enter");
            assert_eq!(browser.text(hits), format!("{hit} of {number}"));
            assert_eq!(browser.text(marked), "no jitter");
            let in_sight = "(() => { const hit = document.querySelector('mark.now').getBoundingClientRect(); \
                const box = document.getElementById('log').getBoundingClientRect(); \
                return hit.top >= box.top && hit.bottom <= box.bottom })()";
            assert_eq!(browser.value(in_sight), true, "hit {hit}");
        }
        browser.press("Enter");
        assert_eq!(browser.text(hits), format!("1 of {number}"));
        browser.press("Escape");
        assert_eq!(browser.value("document.querySelectorAll('mark').length"), 0);
        assert_eq!(browser.text("document.activeElement.id"), "log");
        browser.press("/");
        browser.write("nobody wrote this");
        browser.until(&format!("{hits} === 'no hits'"));
        browser.assert_quiet();
    }

    #[test]
    fn hostile_messages_are_shown_as_text() {
        let (home, path) = hostile();
        let Some(mut browser) = Browser::start(&home) else {
            return;
        };
        // All rows are in sight, folded and unfolded.
        browser.resize(1_440, 4_000);
        browser.open(&path);
        assert_eq!(
            browser.text("document.getElementById('title').textContent"),
            HOSTILE[0]
        );
        browser.press("End");
        for _ in 0..3 * HOSTILE.len() {
            browser.press("Enter");
            browser.press("ArrowUp");
        }
        let texts = browser
            .value("[...document.querySelectorAll('.u .say')].map((say) => say.textContent)");
        assert_eq!(texts, json!(HOSTILE));
        let unfolded = "document.querySelectorAll('.block-text').length";
        assert_eq!(browser.value(unfolded), 2 * HOSTILE.len());
        let elements = "document.querySelectorAll('img, a, iframe, object, #rows script').length";
        assert_eq!(browser.value(elements), 0);
        assert_eq!(browser.value("typeof window.hostile"), "undefined");
        browser.assert_quiet();
    }

    #[test]
    fn twenty_thousand_messages_open_at_once_and_scroll() {
        let home = Home::new();
        let Some(mut browser) = Browser::start(&home) else {
            return;
        };
        let mut lines = String::new();
        for seq in 1..=20_000 {
            let (role, text) = match seq % 2 {
                1 => ("user", "Where does the parcel go? ".repeat(1 + seq % 9)),
                _ => ("assistant", "It goes by the depot.\n".repeat(1 + seq % 13)),
            };
            let line = json!({"role": role, "content": format!("{seq}: {text}")});
            writeln!(lines, "{line}").unwrap();
        }
        home.file("long.jsonl", lines);
        home.ok(&["import", "--session", "long", "long.jsonl"]);
        home.ok(&["view", "long", "--html", "long.html"]);
        let took = browser.open(&home.path().join("long.html"));
        eprintln!("20,000 messages opened in {} ms", took.as_millis());
        // Only rows in sight are drawn, anywhere in the log.
        let drawn = "document.querySelectorAll('[role=treeitem]').length";
        for share in ["0", "0.31", "0.5", "0.77", "1"] {
            browser.value(&format!(
                "(async () => {{ const box = document.getElementById('log'); box.scrollTop = {share} * box.scrollHeight; \
                 await new Promise((done) => setTimeout(done, 100)); }})()"
            ));
            let number = browser.value(drawn).as_u64().unwrap();
            assert!((3..200).contains(&number), "{number} rows at {share}");
        }
        browser.press("End");
        assert!(
            browser
                .text(ACTIVE)
                .starts_with("assistant, message 20000: 20000: It goes by the depot.")
        );
        browser.press("/");
        browser.write("12345:");
        browser.until("document.getElementById('hits').textContent === '1 hit'");
        browser.press("Enter");
        assert!(browser.text(ACTIVE).starts_with("user, message 12345"));
        browser.assert_quiet();
    }
}
