//! A headless Chromium, driven over the pipe of its DevTools protocol.
//!
//! Chromium reads commands from descriptor 3 and writes answers to descriptor 4, each ended by a zero byte. A shell
//! connects both to the process's standard input and output.

#![allow(clippy::print_stderr, clippy::disallowed_methods)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, PATIENCE};

const PROGRAMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// A browser with one page. Ends with the value.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<Value>,
    next: u64,
    /// Id of the page's session.
    page: Option<String>,
    /// Messages that the browser sent on its own: errors, refused content, dialogs.
    pub events: Vec<Value>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts a browser. Returns `None` if there is none and none is required.
    pub fn start(home: &Home) -> Option<Self> {
        let is_there = |name: &&str| {
            let version = home.process(name).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        };
        let Some(name) = PROGRAMS.iter().find(|name| is_there(name)) else {
            assert!(
                std::env::var_os("AGENT_MEMORY_REQUIRE_CHROMIUM").is_none(),
                "there is no Chromium, and AGENT_MEMORY_REQUIRE_CHROMIUM is set"
            );
            eprintln!("left out, for there is no Chromium");
            return None;
        };
        let line = format!(
            "exec {name} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --user-data-dir=profile --remote-debugging-pipe about:blank 3<&0 4>&1 </dev/null >/dev/null"
        );
        let mut shell = home.process("sh");
        shell
            .args(["-c", &line])
            .stdin(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = shell.spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (send, answers) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while output.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
                bytes.pop();
                if send.send(serde_json::from_slice(&bytes).unwrap()).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
        let mut browser = Self {
            child,
            commands,
            answers,
            next: 0,
            page: None,
            events: Vec::new(),
        };
        let targets = browser.send("Target.getTargets", json!({}));
        let mut targets = targets["targetInfos"].as_array().unwrap().iter();
        let page = targets.find(|target| target["type"] == "page").unwrap();
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.send("Target.attachToTarget", attach);
        browser.page = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in [
            "Page.enable",
            "Runtime.enable",
            "Log.enable",
            "Network.enable",
        ] {
            browser.send(domain, json!({}));
        }
        browser.resize(1_440, 900);
        Some(browser)
    }

    /// Sets the size of the window, in pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.send("Emulation.setDeviceMetricsOverride", size);
    }

    /// Opens a file, and waits until the page shows rows. Returns the time that this took.
    pub fn open(&mut self, path: &Path) -> Duration {
        let start = Instant::now();
        let url = format!("file://{}", path.display());
        self.send("Page.navigate", json!({"url": url}));
        self.until("document.readyState === 'complete' && document.querySelector('[role=treeitem]') !== null");
        start.elapsed()
    }

    /// Evaluates an expression of JavaScript in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.send("Runtime.evaluate", ask);
        assert_eq!(answer.get("exceptionDetails"), None, "{expression}");
        answer["result"]["value"].take()
    }

    /// Evaluates an expression that gives a text.
    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let start = Instant::now();
        while self.value(expression) != true {
            assert!(start.elapsed() < PATIENCE, "never true: {expression}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.chars().count() == 1 => key,
            _ => "",
        };
        // The browser itself ends a dialog by the number of the key.
        let number = if key == "Escape" { 27 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            let event =
                json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": number});
            self.send("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a text into the element with the focus.
    pub fn write(&mut self, text: &str) {
        self.send("Input.insertText", json!({"text": text}));
    }

    /// Sends a command, and returns its result.
    pub fn send(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut command = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(page) = &self.page {
            command["sessionId"] = json!(page);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        loop {
            let mut answer = self.answers.recv_timeout(PATIENCE).unwrap();
            if answer["id"] == self.next {
                assert_eq!(answer.get("error"), None, "{command}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Asserts that the page reported no error, was refused nothing, opened no dialog, and asked for nothing but itself.
    pub fn assert_quiet(&self) {
        for event in &self.events {
            let method = event["method"].as_str().unwrap_or_default();
            let loud = [
                "Runtime.exceptionThrown",
                "Runtime.consoleAPICalled",
                "Log.entryAdded",
                "Page.javascriptDialogOpening",
            ];
            assert!(!loud.contains(&method), "{event}");
            if method == "Network.requestWillBeSent" {
                assert_eq!(event["params"]["type"], "Document", "{event}");
            }
        }
    }
}
