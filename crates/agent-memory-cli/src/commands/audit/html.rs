//! The report as one page without a script.

use std::fmt::Write as _;

use super::report::{KindCounts, Report};
use super::text::{cells, command, facts, heading, none, place, recovery, what, words};
use crate::output::{clip, count};
use crate::page::escaped;

pub(super) const STYLE: &str = include_str!("../../page/audit.css");

/// Maximum number of characters of a lost item whose words are folded in.
const FOLDED: usize = 120;

/// Returns the content of the page.
pub(super) fn body(report: &Report) -> String {
    let mut out = format!(
        "<header><div class=\"session\"><h1>{}</h1><p id=\"facts\">{}, {}</p></div></header>\n<main>\n",
        escaped(&heading(report)),
        escaped(&report.file),
        count(report.messages, "message", "messages"),
    );
    if report.compactions.is_empty() {
        let _ = write!(out, "<p>{}</p>\n</main>\n", none(report));
        return out;
    }
    for one in &report.compactions {
        let _ = write!(
            out,
            "<section><h2>Compaction {} of {}: {}</h2>\n<dl>",
            one.number,
            report.total.compactions,
            escaped(&place(one))
        );
        for (name, text) in facts(one) {
            let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&text));
        }
        out += "</dl>\n";
        let budget = one.agent_memory.as_ref().map(|ours| ours.budget);
        table(&mut out, &one.kinds, budget);
        if one.missing().next().is_some() {
            out += "<p>Lost items, each with its words and the command that returns it:</p>\n";
        }
        for lost in one.missing() {
            let words = words(lost);
            let _ = writeln!(
                out,
                "<details><summary><b>{}</b> {}</summary><p class=\"say\">{}</p><code>{}</code></details>",
                escaped(&what(lost)),
                escaped(&clip(&words, FOLDED)),
                escaped(&words),
                escaped(command(lost))
            );
        }
        out += "</section>\n";
    }
    out += "<section><h2>All compactions</h2>\n";
    table(&mut out, &report.total.kinds, None);
    let _ = write!(
        out,
        "<p class=\"say\">{}</p></section>\n</main>\n",
        escaped(&recovery(report))
    );
    out
}

fn table(out: &mut String, kinds: &[KindCounts], budget: Option<u64>) {
    out.push_str("<table>");
    for (name, cells) in cells(kinds, budget) {
        let tag = if name.is_empty() { "th" } else { "td" };
        let _ = write!(out, "<tr><th>{name}</th>");
        for cell in cells {
            let _ = write!(out, "<{tag}>{}</{tag}>", escaped(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>\n");
}
