//! The report as one page without a script.

use std::fmt::Write as _;

use super::report::{KindCounts, Report};
use super::text::{cells, command, facts, heading, introduction, lacks, none, place, what, words};
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
    for line in introduction(report) {
        let _ = writeln!(out, "<p>{}</p>", escaped(&line));
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
        table(&mut out, &one.kinds);
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
        let _ = writeln!(out, "<p>{}</p></section>", escaped(&lacks(one)));
    }
    out += "<section><h2>All compactions</h2>\n";
    table(&mut out, &report.total.kinds);
    out += "</section>\n</main>\n";
    out
}

fn table(out: &mut String, kinds: &[KindCounts]) {
    out.push_str("<table>");
    for (name, cells) in cells(kinds) {
        let tag = if name.is_empty() { "th" } else { "td" };
        let _ = write!(out, "<tr><th>{name}</th>");
        for cell in cells {
            let _ = write!(out, "<{tag}>{}</{tag}>", escaped(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>\n");
}
