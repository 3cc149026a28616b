//! The HTML of pages: templates, escapes, and the policy of their content.

use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::error::{Failure, Kind};
use crate::files;
use crate::output::escaped_json;

pub(super) const PAGE: &str = include_str!("page.html");
pub(super) const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");

/// Writes a page into a new file that only its owner may read and write. The file is complete as soon as it exists.
pub(crate) fn save(html: &[u8], path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let text = format!("{} cannot be written: {error}", path.display());
        Failure::new(Kind::Invalid, text).hint("name a file that does not exist yet")
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file =
        tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    files::keep_private(file.as_file()).map_err(failed)?;
    file.write_all(html).map_err(failed)?;
    file.persist_noclobber(path)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

/// Renders a page without a script, with the style of all pages and more of its own. `body` is markup, and every text in
/// it is [`escaped`].
pub(crate) fn still(session: &str, style: &str, body: &str) -> Vec<u8> {
    let head = PAGE.split_once("<body>").map_or(PAGE, |(head, _)| head);
    let page = format!("{head}<body class=\"still\">\n{{{{data}}}}</body>\n</html>\n");
    fill(
        &page,
        session,
        &format!("{STYLE}{style}"),
        "",
        body.as_bytes(),
    )
}

/// Fills a page with its name, its style, its data and its script.
pub(super) fn fill(page: &str, session: &str, style: &str, script: &str, data: &[u8]) -> Vec<u8> {
    let policy = policy(script, style);
    let title = escaped(&format!("{session} · agent-memory"));
    let mut html = Vec::with_capacity(page.len() + data.len() + script.len() + style.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        html.extend_from_slice(before.as_bytes());
        html.extend_from_slice(match name {
            "policy" => policy.as_bytes(),
            "title" => title.as_bytes(),
            "style" => style.as_bytes(),
            "script" => script.as_bytes(),
            _ => data,
        });
        rest = after;
    }
    html.extend_from_slice(rest.as_bytes());
    html
}

/// Returns the page's policy: nothing is loaded, and only its own script and style apply.
fn policy(script: &str, style: &str) -> String {
    let source = |text: &str| {
        let hash =
            base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text.as_bytes()));
        format!("'sha256-{hash}'")
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        source(script),
        source(style)
    )
}

/// Escapes a text for an element of HTML.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let is_raw = |c: char| c == '\0' || ('\u{7f}'..='\u{9f}').contains(&c);
    text.replace(is_raw, "\u{fffd}")
}

/// Appends an element with a value as JSON. `<` occurs only in strings, and is escaped there, so that no text can end the
/// element.
pub(super) fn element(
    out: &mut Vec<u8>,
    attributes: &str,
    value: &impl Serialize,
) -> anyhow::Result<()> {
    let json = serde_json::to_string(value)?.replace('<', "\\u003c");
    let json = json
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    let json = escaped_json(&json);
    writeln!(
        out,
        "<script type=\"application/json\" {attributes}>{json}</script>"
    )?;
    Ok(())
}
