//! Mutated transcripts, messages, questions and stored bytes: see `outside_checks::fuzz`.

mod damage;
mod imports;
mod messages;
mod questions;

use outside_checks::fuzz::Target;

fn target(name: &'static str, inputs: usize) -> Target {
    Target::new(name, env!("CARGO_MANIFEST_DIR"), inputs)
}

/// Runs asynchronous code on this thread, so that its panics are caught here.
fn block_on<T>(code: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(code)
}

#[test]
fn imports() {
    target("imports", 150)
        .seeds_of("transcripts")
        .fixtures(&["agents", "claude-code", "pi", "jsonl"], 16)
        .run(|source| block_on(imports::check(source)));
}

#[test]
fn messages() {
    messages::messages();
}

#[test]
fn packs() {
    damage::packs();
}

#[test]
fn stored() {
    damage::stored();
}

#[test]
fn queries() {
    questions::queries();
}

#[test]
fn calls() {
    questions::calls();
}
