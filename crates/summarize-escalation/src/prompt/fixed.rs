//! Lines of this crate's prompts, which a summary should not repeat.

use std::cmp::Ordering;
use std::sync::LazyLock;

use super::render::DATA_RULE;
use super::set::PromptSet;

/// Minimum length of a line that is compared, in characters.
const MIN_CHARS: usize = 30;

/// Returns the lines, in the order of [`by_length`].
pub(crate) fn fixed_lines() -> &'static [String] {
    static LINES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let sets = PromptSet::all();
        let templates = sets.iter().flat_map(PromptSet::templates);
        let lines = templates
            .flat_map(|template| template.lines())
            .map(str::trim);
        let long = lines.filter(|line| line.chars().count() >= MIN_CHARS);
        let mut lines: Vec<String> = long.chain([DATA_RULE]).map(str::to_owned).collect();
        lines.sort_by(|a, b| by_length(a, b));
        lines.dedup();
        lines
    });
    &LINES
}

/// Orders texts by length, so that comparisons rarely read their content.
pub(crate) fn by_length(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}
