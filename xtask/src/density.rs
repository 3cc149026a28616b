//! `cargo xtask bench-density --data DIR [--each] [--print NAME] [--record] [--check | --dry-run]`: what
//! a context of a few thousand tokens carries, beside the compaction summaries that agents wrote
//! themselves; writes docs/density.md, or with `--record` the figures that later ones are compared with.

mod before;
mod cases;
mod gold;
mod naive;
mod ours;
mod page;
mod table;
mod words;

use std::path::PathBuf;

use token_estimate::TokenEstimator as _;

use crate::mode::Mode;
use crate::retention::{cuts, transcripts};
use cases::Case;
use gold::{COLUMNS, Gold};
use ours::{Ours, TOKENS};
use table::{Pool, Row, table};

const PAGE: &str = "docs/density.md";
const BEFORE: &str = "xtask/src/density/before.tsv";
const COMMAND: &str = "cargo xtask bench-density";
/// The sizes of the curve, in tokens.
const SIZES: [u64; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
/// How recorded rows name the agents' own size, and six tenths of it.
const OWN: [&str; 2] = ["theirs", "0.6"];

pub(crate) fn run(flags: &[String], words: &[&str]) -> anyhow::Result<()> {
    let (mut words, mut mode_flags) = (words.iter(), Vec::new());
    let (mut data, mut each, mut print, mut record) = (None, false, None, false);
    for flag in flags {
        match flag.as_str() {
            "--data" => data = words.next().map(PathBuf::from),
            "--print" => print = words.next().copied(),
            "--each" => each = true,
            "--record" => record = true,
            _ => mode_flags.push(flag.clone()),
        }
    }
    let mode = Mode::from_flags(&mode_flags)?;
    let data = transcripts::corpus(data, COMMAND)?;
    let cases = cases::cases(&data)?;
    if let Some(wanted) = print {
        let wanted = cases.iter().filter(|case| case.name.contains(wanted));
        return wanted.into_iter().try_for_each(print_case);
    }
    let mut sum = Measured::default();
    for case in &cases {
        let measured = Measured::of(case)?;
        if each {
            println!("{}\n{}", case.name, table(&measured.rows()));
        }
        sum.merge(&measured);
    }
    if record {
        return mode.apply(BEFORE, &sum.recorded(), COMMAND);
    }
    mode.apply(PAGE, &page::page(&sum, cases.len())?, COMMAND)
}

/// Prints what the agent and the library make of a case, and what the latter misses.
fn print_case(case: &Case) -> anyhow::Result<()> {
    let gold = Gold::of(&case.lines);
    let budget = TOKENS.text(&case.theirs);
    let ours = Ours::of(case)?.text(budget)?;
    println!(
        "==== {}, theirs: {budget} tokens\n{}",
        case.name, case.theirs
    );
    println!(
        "==== {}, ours: {} tokens\n{ours}",
        case.name,
        TOKENS.text(&ours)
    );
    for (column, name) in COLUMNS.iter().enumerate() {
        let missing = gold.missing(column, &ours);
        let all = gold.items(column).len();
        println!("-- {name} that ours misses: {} of {all}", missing.len());
        missing.iter().for_each(|item| println!("   {item}"));
    }
    Ok(())
}

/// What the texts of one case keep, or of all.
#[derive(Default)]
struct Measured {
    theirs: Pool,
    naive: Pool,
    /// At the agent's own size, and at six tenths of it.
    ours: [Pool; OWN.len()],
    /// By size.
    curve: [Point; SIZES.len()],
}

/// What texts of one size keep.
#[derive(Default)]
struct Point {
    ours: Pool,
    head: Pool,
    tail: Pool,
}

impl Measured {
    fn of(case: &Case) -> anyhow::Result<Self> {
        let gold = Gold::of(&case.lines);
        let ours = Ours::of(case)?;
        let add = |pool: &mut Pool, text: &str| pool.add(text, gold.kept(text));
        let mut out = Self::default();
        add(&mut out.theirs, &case.theirs);
        add(&mut out.naive, &naive::naive(&gold));
        let own = TOKENS.text(&case.theirs);
        for (pool, budget) in out.ours.iter_mut().zip([own, own * 6 / 10]) {
            add(pool, &ours.text(budget)?);
        }
        for (point, size) in out.curve.iter_mut().zip(SIZES) {
            add(&mut point.ours, &ours.text(size)?);
            add(&mut point.head, &cuts::head(&ours.plain, size, &TOKENS));
            add(&mut point.tail, &cuts::tail(&ours.plain, size, &TOKENS));
        }
        Ok(out)
    }

    fn merge(&mut self, other: &Self) {
        self.theirs.merge(&other.theirs);
        self.naive.merge(&other.naive);
        for (sum, pool) in self.ours.iter_mut().zip(&other.ours) {
            sum.merge(pool);
        }
        for (sum, point) in self.curve.iter_mut().zip(&other.curve) {
            sum.ours.merge(&point.ours);
            sum.head.merge(&point.head);
            sum.tail.merge(&point.tail);
        }
    }

    /// All figures, one row a text.
    fn rows(&self) -> Vec<Row> {
        let mut rows = vec![self.theirs.row("theirs"), self.naive.row("naive")];
        for (pool, size) in self.ours.iter().zip(OWN) {
            rows.push(pool.row(&format!("ours, {size}")));
        }
        for (point, size) in self.curve.iter().zip(SIZES) {
            rows.push(point.ours.row(&format!("ours, {size}")));
            rows.push(point.head.row(&format!("head, {size}")));
            rows.push(point.tail.row(&format!("tail, {size}")));
        }
        rows
    }

    /// The figures of the library, to be recorded.
    fn recorded(&self) -> String {
        let sizes = SIZES.map(|size| size.to_string());
        let curve = self.curve.iter().map(|point| &point.ours).zip(&sizes);
        let own = self.ours.iter().zip(OWN);
        let rows = own.chain(curve.map(|(pool, size)| (pool, size.as_str())));
        before::recorded(rows.map(|(pool, size)| (size, pool.row(size))))
    }
}
