//! What theirs, ours and others keep, case by case and added up.

use token_estimate::TokenEstimator as _;

use super::cases::Case;
use super::gold::Gold;
use super::naive::naive;
use super::ours::{Ours, TOKENS};
use super::table::{Pool, Row};
use crate::retention::cuts;

/// The sizes of the curve, in tokens.
pub(super) const SIZES: [u64; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
/// How recorded rows name the agents' own size, and six tenths of it.
pub(super) const OWN: [&str; 2] = ["theirs", "0.6"];

/// Number of handoffs of the last row.
pub(super) const HANDOFFS: usize = 3;

/// What the texts of one case keep, or of all.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) theirs: Pool,
    pub(super) naive: Pool,
    /// At the agent's own size, and at six tenths of it.
    pub(super) ours: [Pool; OWN.len()],
    /// By size.
    pub(super) curve: [Point; SIZES.len()],
    /// By handoff at the agent's own size: after one handoff, and after the last of [`HANDOFFS`].
    pub(super) handoffs: [Pool; 2],
}

/// What texts of one size keep.
#[derive(Default)]
pub(super) struct Point {
    pub(super) ours: Pool,
    pub(super) head: Pool,
    pub(super) tail: Pool,
}

impl Measured {
    pub(super) fn of(case: &Case) -> anyhow::Result<Self> {
        let gold = Gold::of(&case.lines);
        let ours = Ours::of(case)?;
        let add = |pool: &mut Pool, text: &str| pool.add(text, gold.kept(text));
        let mut out = Self::default();
        add(&mut out.theirs, &case.theirs);
        add(&mut out.naive, &naive(&gold));
        let own = TOKENS.text(&case.theirs);
        for (pool, budget) in out.ours.iter_mut().zip([own, own * 6 / 10]) {
            add(pool, &ours.text(budget)?);
        }
        for (pool, handoffs) in out.handoffs.iter_mut().zip([1, HANDOFFS]) {
            let handed_over = Ours::handed_over(case, own, handoffs)?;
            add(pool, &handed_over.text(own)?);
        }
        for (point, size) in out.curve.iter_mut().zip(SIZES) {
            add(&mut point.ours, &ours.text(size)?);
            add(&mut point.head, &cuts::head(&ours.plain, size, &TOKENS));
            add(&mut point.tail, &cuts::tail(&ours.plain, size, &TOKENS));
        }
        Ok(out)
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.theirs.merge(&other.theirs);
        self.naive.merge(&other.naive);
        for (sum, pool) in self.ours.iter_mut().zip(&other.ours) {
            sum.merge(pool);
        }
        for (sum, pool) in self.handoffs.iter_mut().zip(&other.handoffs) {
            sum.merge(pool);
        }
        for (sum, point) in self.curve.iter_mut().zip(&other.curve) {
            sum.ours.merge(&point.ours);
            sum.head.merge(&point.head);
            sum.tail.merge(&point.tail);
        }
    }

    /// All figures, one row a text.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = vec![self.theirs.row("theirs"), self.naive.row("naive")];
        for (pool, size) in self.ours.iter().zip(OWN) {
            rows.push(pool.row(&format!("ours, {size}")));
        }
        rows.extend(self.handoff_rows());
        for (point, size) in self.curve.iter().zip(SIZES) {
            rows.push(point.ours.row(&format!("ours, {size}")));
            rows.push(point.head.row(&format!("head, {size}")));
            rows.push(point.tail.row(&format!("tail, {size}")));
        }
        rows
    }

    /// The figures of the strategy handoff, at the agents' own size.
    pub(super) fn handoff_rows(&self) -> [Row; 2] {
        let [first, last] = &self.handoffs;
        [
            first.row("handoff"),
            last.row(&format!("handoff, number {HANDOFFS}")),
        ]
    }
}
