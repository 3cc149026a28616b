//! This engine's side of the comparison: `engine export SIZE FILE` writes the messages, `engine run SIZE DATABASE SUMMARY
//! RARE COMMON` prints one JSON object of seconds and counts.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use agent_memory::testing::{Generated, Scripted};
use agent_memory::{Budget, Memory, Message, Mode, retrieval::GrepArgs, search::HitOrder, summaries::Ladder};
use anyhow::{Context as _, bail};

pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    match words {
        ["export", size, file] => export(size, file),
        ["run", size, database, summary, rare, common] => {
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(measure(size, database, summary, [rare, common]))
        }
        _ => bail!("unknown words for the engine: {words:?}"),
    }
}

fn messages(size: &str) -> anyhow::Result<impl Iterator<Item = Message>> {
    let count = size
        .parse()
        .with_context(|| format!("not a number of messages: {size}"))?;
    Ok(Generated::new(1).take(count))
}

/// The messages as the peer takes them: a role and a text.
fn export(size: &str, file: &str) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    for message in messages(size)? {
        let mut texts = Vec::new();
        for part in &message.parts {
            part.visit_texts(&mut |text| texts.push(text.into_owned()));
        }
        let line = serde_json::json!({"role": message.role.as_str(), "content": texts.join("\n")});
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// The median time of an operation, in seconds, and what it gave first.
macro_rules! median {
    ($times:literal, $work:expr) => {{
        let (mut times, mut first) = (Vec::new(), None);
        for _ in 0..$times {
            let start = Instant::now();
            let done = $work.await?;
            times.push(start.elapsed().as_secs_f64());
            first.get_or_insert(done);
        }
        times.sort_by(f64::total_cmp);
        (times[$times / 2], first.context("nothing was measured")?)
    }};
}

async fn measure(
    size: &str,
    database: &str,
    summary: &str,
    words: [&str; 2],
) -> anyhow::Result<()> {
    let memory = Memory::builder().sqlite(database);
    let memory = memory.summarizer(Arc::new(Scripted::fixed(Ok(summary))));
    // The peer takes what it gets, too: with the gate, this would measure the extracts in place of a text that names
    // nothing of its source.
    let memory = memory.ladder(Ladder {
        gate: None,
        ..Ladder::default()
    });
    let memory = memory.open().await?;
    let session = memory.session("bench").await?;
    let all: Vec<Message> = messages(size)?.collect();
    let count = all.len() as f64;
    let start = Instant::now();
    for message in all {
        session.ingest(message).await?;
    }
    let ingest = start.elapsed().as_secs_f64() / count;
    let start = Instant::now();
    let outcome = session.compact(Mode::Full).await?;
    let passes = outcome.published.total();
    let pass = start.elapsed().as_secs_f64() / passes.max(1) as f64;
    let (assemble, _) = median!(11, session.assemble(Budget::tokens(32_000)));
    let mut found = serde_json::json!({
        "ingest": ingest, "passes": passes, "pass": pass, "assemble": assemble,
    });
    for (name, word) in ["rare", "common"].into_iter().zip(words) {
        let retrieval = session.retrieval();
        let newest = HitOrder::Newest;
        let args = || GrepArgs {
            order: newest,
            ..GrepArgs::new(word)
        };
        let (took, page) = median!(11, retrieval.grep(args()));
        found[name] = took.into();
        found[format!("{name}_hits")] = page.hits.len().into();
    }
    println!("{found}");
    memory.close().await?;
    Ok(())
}
