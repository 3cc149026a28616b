//! Non-negative least squares by coordinate descent, with a pull towards given values.

/// One chunk: what each counter came to, as a share of the exact count.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) counters: Vec<(u32, f32)>,
    /// How much the chunk matters.
    pub(super) weight: f32,
}

/// The weights (in tokens) that bring every row's sum nearest to 1. `pull[j]` draws weight j towards `target[j]`; none is below 0 or above
/// `most_of[j]`.
pub(super) fn solve(
    rows: &[&Row],
    target: &[f64],
    pull: &[f64],
    most_of: &[f64],
    sweeps: usize,
) -> Vec<f64> {
    let width = target.len();
    let mut columns: Vec<Vec<(u32, f32)>> = vec![Vec::new(); width];
    for (n, row) in rows.iter().enumerate() {
        for &(j, value) in &row.counters {
            columns[j as usize].push((n as u32, value));
        }
    }
    let mut x: Vec<f64> = target
        .iter()
        .zip(most_of)
        .map(|(x, most)| x.min(*most))
        .collect();
    let mut rest: Vec<f64> = rows
        .iter()
        .map(|row| {
            1.0 - row
                .counters
                .iter()
                .map(|&(j, v)| f64::from(v) * x[j as usize])
                .sum::<f64>()
        })
        .collect();
    let weight: Vec<f64> = rows.iter().map(|row| f64::from(row.weight)).collect();
    let curve: Vec<f64> = columns
        .iter()
        .map(|column| {
            column
                .iter()
                .map(|&(n, v)| weight[n as usize] * f64::from(v) * f64::from(v))
                .sum()
        })
        .collect();
    for _ in 0..sweeps {
        let mut most = 0.0_f64;
        for j in 0..width {
            if curve[j] + pull[j] <= 0.0 || columns[j].is_empty() {
                continue;
            }
            let slope: f64 = columns[j]
                .iter()
                .map(|&(n, v)| weight[n as usize] * f64::from(v) * rest[n as usize])
                .sum::<f64>()
                + pull[j] * (target[j] - x[j]);
            let next = (x[j] + slope / (curve[j] + pull[j])).clamp(0.0, most_of[j]);
            let change = next - x[j];
            if change != 0.0 {
                for &(n, v) in &columns[j] {
                    rest[n as usize] -= change * f64::from(v);
                }
                x[j] = next;
                most = most.max(change.abs() * curve[j].sqrt());
            }
        }
        if most < 1e-6 {
            break;
        }
    }
    x
}
