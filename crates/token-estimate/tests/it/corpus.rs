//! How far the calibrated estimator is off, on the corpus that `AGENT_MEMORY_CORPUS` names.

use std::fs;
use std::path::{Path, PathBuf};

use bpe_openai::{Tokenizer, cl100k_base, o200k_base};
use serde_json::Value;
use token_estimate::{Calibrated, TokenEstimator};

fn corpus() -> Option<PathBuf> {
    let found = std::env::var_os("AGENT_MEMORY_CORPUS").map(PathBuf::from);
    if found.is_none() {
        assert!(
            std::env::var_os("AGENT_MEMORY_REQUIRE_CORPUS").is_none_or(|v| v != "1"),
            "AGENT_MEMORY_CORPUS is not set"
        );
        println!("left out: AGENT_MEMORY_CORPUS is not set");
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    out.sort();
    out
}

/// In percent.
fn error(estimate: u64, exact: u64) -> f64 {
    (estimate as f64 / exact as f64 - 1.0) * 100.0
}

type Family = (Calibrated, fn() -> &'static Tokenizer);

const FAMILIES: [Family; 2] = [
    (Calibrated::O200k, o200k_base),
    (Calibrated::Cl100k, cl100k_base),
];

#[test]
fn texts_within_3_percent_on_average_and_8_at_worst() {
    let Some(corpus) = corpus() else { return };
    for (family, tokenizer) in FAMILIES {
        let errors: Vec<(f64, PathBuf)> = files(&corpus.join("text"))
            .into_iter()
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                (
                    error(family.text(&text), tokenizer().count(text.as_str()) as u64).abs(),
                    path,
                )
            })
            .collect();
        let mean = errors.iter().map(|(e, _)| e).sum::<f64>() / errors.len() as f64;
        let worst = errors.iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        println!(
            "{family}: texts mean {mean:.2} %, worst {:.2} % {}",
            worst.0,
            worst.1.display()
        );
        assert!(
            mean <= 3.0 && worst.0 <= 8.0,
            "{family}: mean {mean:.2} %, worst {worst:?}"
        );
    }
}

/// The texts, arguments and results of a message's content.
fn pieces(content: &Value, out: &mut Vec<String>) {
    match content {
        Value::String(text) => out.push(text.clone()),
        Value::Array(parts) => {
            for part in parts {
                for key in ["text", "thinking"] {
                    out.extend(part[key].as_str().map(str::to_owned));
                }
                for key in ["input", "arguments"] {
                    out.extend(part.get(key).map(Value::to_string));
                }
                pieces(part.get("content").unwrap_or(&Value::Null), out);
            }
        }
        _ => {}
    }
}

#[test]
fn messages_within_6_percent_and_transcripts_within_3() {
    let Some(corpus) = corpus() else { return };
    for (family, tokenizer) in FAMILIES {
        let mut errors = Vec::new();
        for path in files(&corpus.join("claude-code"))
            .into_iter()
            .chain(files(&corpus.join("pi")))
        {
            let (mut all, mut all_exact) = (0, 0);
            for line in fs::read_to_string(&path).unwrap().lines() {
                let line: Value = serde_json::from_str(line).unwrap_or(Value::Null);
                let mut texts = Vec::new();
                pieces(&line["message"]["content"], &mut texts);
                let estimate: u64 = texts.iter().map(|t| family.text(t)).sum();
                let exact: u64 = texts
                    .iter()
                    .map(|t| tokenizer().count(t.as_str()) as u64)
                    .sum();
                if exact > 50 {
                    errors.push(error(estimate, exact));
                }
                all += estimate;
                all_exact += exact;
            }
            let whole = error(all, all_exact);
            println!(
                "{family}: {whole:+.2} % of {all_exact} on {}",
                path.display()
            );
            // The smallest transcript, nine messages, is held to o200k only.
            let bound = if family == Calibrated::O200k || all_exact > 5_000 {
                3.0
            } else {
                6.0
            };
            assert!(
                whole.abs() <= bound,
                "{family}: {whole:+.2} % on {}",
                path.display()
            );
        }
        let mean = errors.iter().map(|e| e.abs()).sum::<f64>() / errors.len() as f64;
        errors.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let p95 = errors[errors.len() * 95 / 100].abs();
        println!(
            "{family}: {} messages, mean {mean:.2} %, 95th percentile {p95:.2} %",
            errors.len()
        );
        assert!(
            mean <= 6.0 && p95 <= 20.0,
            "{family}: mean {mean:.2} %, 95th percentile {p95:.2} %"
        );
    }
}
