//! Mutated transcripts and messages: see `outside_checks::fuzz`.

mod providers;
mod transcripts;

use outside_checks::fuzz::Target;

fn target(name: &'static str, inputs: usize) -> Target {
    Target::new(name, env!("CARGO_MANIFEST_DIR"), inputs)
}

#[test]
fn transcripts() {
    target("transcripts", 1_000)
        .fixtures(&["agents", "claude-code", "pi", "jsonl"], 24)
        .run(transcripts::check);
}

#[test]
fn providers() {
    target("providers", 800)
        .fixtures(&["claude-code", "pi", "jsonl"], 12)
        .run(providers::check);
}
