//! Mutated transcripts: see `outside_checks::fuzz`.

mod shapes;
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
fn shapes() {
    target("shapes", 400)
        .seeds_of("providers")
        .fixtures(&["claude-code", "pi", "jsonl"], 12)
        .run(shapes::check);
}
