//! This side of `cargo xtask bench-peers`, which says what is measured. By itself it does nothing:
//! `peers export SIZE FILE` writes the messages, `peers run SIZE DATABASE SUMMARY RARE COMMON` prints one JSON object.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs
)]

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use agent_memory::testing::{Generated, Scripted};
use agent_memory::{Budget, GrepArgs, Ladder, Memory, Message, Mode};

fn messages(size: &str) -> impl Iterator<Item = Message> {
    Generated::new(1).take(size.parse().unwrap())
}

/// The messages as the peer takes them: a role and a text.
fn export(size: &str, file: &str) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file).unwrap());
    for message in messages(size) {
        let mut texts = Vec::new();
        for part in &message.parts {
            part.visit_texts(&mut |text| texts.push(text.into_owned()));
        }
        let line = serde_json::json!({"role": message.role.as_str(), "content": texts.join("\n")});
        writeln!(out, "{line}").unwrap();
    }
}

/// The median time of an operation, in seconds, and what it gave first.
macro_rules! median {
    ($times:literal, $work:expr) => {{
        let (mut times, mut first) = (Vec::new(), None);
        for _ in 0..$times {
            let start = Instant::now();
            let done = $work.await.unwrap();
            times.push(start.elapsed().as_secs_f64());
            first.get_or_insert(done);
        }
        times.sort_by(f64::total_cmp);
        (times[$times / 2], first.unwrap())
    }};
}

async fn run(size: &str, database: &str, summary: &str, words: [&str; 2]) {
    let memory = Memory::builder().sqlite(database);
    let memory = memory.summarizer(Arc::new(Scripted::fixed(Ok(summary))));
    // The peer takes what it gets, too: with the gate, this would measure the extracts in place of a text that names
    // nothing of its source.
    let memory = memory.ladder(Ladder::default().with_gate(None));
    let memory = memory.open().await.unwrap();
    let session = memory.session("bench").await.unwrap();
    let all: Vec<Message> = messages(size).collect();
    let count = all.len() as f64;
    let start = Instant::now();
    for message in all {
        session.ingest(message).await.unwrap();
    }
    let ingest = start.elapsed().as_secs_f64() / count;
    let start = Instant::now();
    let outcome = session.compact(Mode::Full).await.unwrap();
    let passes = outcome.leaf + outcome.condensed;
    let pass = start.elapsed().as_secs_f64() / passes.max(1) as f64;
    let (assemble, _) = median!(11, session.assemble(Budget::tokens(32_000)));
    let mut found = serde_json::json!({
        "ingest": ingest, "passes": passes, "pass": pass, "assemble": assemble,
    });
    for (name, word) in ["rare", "common"].into_iter().zip(words) {
        let retrieval = session.retrieval();
        let args = || GrepArgs::new(word).with_limit(20);
        let (took, page) = median!(11, retrieval.grep(args()));
        found[name] = took.into();
        found[format!("{name}_hits")] = page.hits.len().into();
    }
    println!("{found}");
    memory.close().await.unwrap();
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["export", size, file, ..] => export(size, file),
        ["run", size, database, summary, rare, common, ..] => {
            run(size, database, summary, [rare, common]).await;
        }
        _ => println!("run `cargo xtask bench-peers`"),
    }
}
