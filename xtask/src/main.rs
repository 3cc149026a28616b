//! Maintenance tasks: `cargo xtask <task>`.

fn main() -> anyhow::Result<()> {
    anyhow::bail!("usage: cargo xtask <task>")
}
