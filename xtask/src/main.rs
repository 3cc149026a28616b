//! Maintenance tasks: `cargo xtask <task> [--check | --dry-run]`.

mod fixtures;
mod mode;

use mode::Mode;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((task, rest)) if task == "fixtures" => fixtures::run(Mode::from_args(rest)?),
        _ => anyhow::bail!("usage: cargo xtask fixtures [--check | --dry-run]"),
    }
}
