//! The table that the abuse ends with.

/// A row of the table.
pub(super) struct Counts {
    pub(super) group: &'static str,
    pub(super) right: usize,
    pub(super) wrong: usize,
    pub(super) left_out: usize,
    pub(super) seconds: u64,
}

impl Counts {
    pub(super) fn new(group: &'static str) -> Counts {
        Counts {
            group,
            right: 0,
            wrong: 0,
            left_out: 0,
            seconds: 0,
        }
    }

    pub(super) fn print(&self) {
        println!(
            "{:<8}  {:>5}  {:>5}  {:>5}  {:>8}  {:>7}",
            self.group,
            self.right + self.wrong,
            self.right,
            self.wrong,
            self.left_out,
            self.seconds
        );
    }
}
